/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries: written and read back, merged as the run as a whole, refused when they are not right.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/base/rng.h"
#include "loadgen/results/series.h"
#include "loadgen/results/summary/histogram_text.h"
#include "loadgen/results/summary/summary_merge.h"

static void near(double got, double wanted, double within)
{
    if (!(fabs(got - wanted) <= within))
        fail_msg("%.12g, wanted %.12g within %g", got, wanted, within);
}

static void name_flow(struct summary_flow *flow, const char *name)
{
    snprintf(flow->name, sizeof(flow->name), "%s", name);
}

/* A latency into everything that counts it: the total, its kind, its second. */
static void count(struct summary_flow *flow, const char *kind, size_t second, uint64_t latency_ns)
{
    meter_add(flow->total, OUTCOME_OK, latency_ns);
    meter_add(summary_kind(flow, kind)->meter, OUTCOME_OK, latency_ns);
    while (flow->seconds_count <= second) {
        struct summary_second *added = summary_add_second(flow);

        added->time_s = (double)flow->seconds_count;
        added->length_s = 1;
    }
    struct summary_second *row = &flow->seconds[second];
    double latency_ms = (double)latency_ns / 1e6;

    row->mean_ms = (row->mean_ms * (double)row->done + latency_ms) / ((double)row->done + 1);
    row->max_ms = fmax(row->max_ms, latency_ms);
    row->done++;
    row->offered++;
    flow->offered++;
    flow->completed++;
}

static void finish(struct summary *summary)
{
    for (size_t i = 0; i < summary->flows_count; i++) {
        struct summary_flow *flow = &summary->flows[i];

        flow->throughput_per_s = (double)flow->completed / summary->measured_s;
        flow->offered_per_s = (double)flow->offered / summary->measured_s;
    }
}

static void head(struct summary *summary, double began_s)
{
    summary->began_unix_s = began_s;
    summary->measured_s = 4;
    snprintf(summary->host, sizeof(summary->host), "%s", "here");
    snprintf(summary->kernel, sizeof(summary->kernel), "%s", "Linux");
}

/* Not inlined: gcc 12 takes what is found in the text for a pointer to the local that held it. */
static __attribute__((noinline)) char *text_of(const struct summary *summary, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);

    summary_write(out, summary);
    fclose(out);
    return text;
}

static void same_histogram(const struct histogram *a, const struct histogram *b)
{
    assert_int_equal(a->total, b->total);
    assert_memory_equal(a->counts, b->counts, sizeof(a->counts));
    assert_int_equal(a->min, b->min);
    assert_int_equal(a->max, b->max);
    near(a->sum, b->sum, 1e-9 * b->sum);
}

/* ---------------------------------------------------------------- writing and reading */

static void what_was_written_is_read_back(void **state)
{
    struct summary written;
    struct summary read;
    char error[SUMMARY_ERROR_BYTES];
    size_t length;

    (void)state;
    summary_init(&written, 1);
    head(&written, 1700000000.25);
    written.seed = INT64_MAX;
    written.warmup_s = 1.5;
    written.cpus = 7;
    written.generator_cpu = 0.25;
    written.label = strdup("a \"label\"");
    written.command = strdup("not UTF-8: \xff");
    struct summary_flow *flow = &written.flows[0];

    name_flow(flow, "gold");
    flow->protocol = summary_protocols[5];
    flow->open_loop = true;
    flow->concurrency = 12;
    for (uint64_t i = 0; i < 1000; i++)
        count(flow, i % 3 ? "read" : "write", i / 250, 1000 + i * i * i);
    /* A bucket's start, where rounding down would fall into the one before. */
    count(flow, "read", 3, 1ULL << 40);
    meter_add(flow->total, OUTCOME_REFUSED, 77);
    meter_add(flow->total, OUTCOME_CORRUPT, 0);
    flow->total->bytes_in = 1ULL << 45;
    flow->late_max_ns = 123456789;
    flow->retried = 5;
    flow->unverified = 6;
    finish(&written);
    struct summary_mark *mark = summary_add_mark(&written, "cpu burst");

    mark->from_s = 1.25;
    mark->to_s = 2;
    char *text = text_of(&written, &length);

    if (summary_parse(text, length, "text", &read, error) != 0)
        fail_msg("%s", error);
    assert_string_equal(read.label, "a \"label\"");
    assert_string_equal(read.command, "not UTF-8: ?");
    assert_string_equal(read.host, "here");
    assert_true(read.seed == INT64_MAX && read.cpus == 7);
    near(read.began_unix_s, 1700000000.25, 1e-5);
    near(read.warmup_s, 1.5, 0);
    assert_int_equal(read.flows_count, 1);
    assert_int_equal(read.marks_count, 1);
    assert_string_equal(read.marks[0].text, "cpu burst");
    near(read.marks[0].from_s, 1.25, 0);
    near(read.marks[0].to_s, 2, 0);
    const struct summary_flow *back = &read.flows[0];

    assert_string_equal(back->name, "gold");
    assert_true(back->protocol == summary_protocols[5] && back->open_loop &&
                back->concurrency == 12);
    assert_memory_equal(back->total->outcomes, flow->total->outcomes,
                        sizeof(flow->total->outcomes));
    same_histogram(&back->total->latency, &flow->total->latency);
    same_histogram(&back->total->refusal, &flow->total->refusal);
    assert_true(back->total->bytes_in == 1ULL << 45);
    assert_true(back->late_max_ns == 123456789 && back->retried == 5 && back->unverified == 6);
    assert_int_equal(back->kinds_count, 2);
    assert_string_equal(back->kinds[0].name, "write");
    same_histogram(&back->kinds[0].meter->latency, &flow->kinds[0].meter->latency);
    assert_int_equal(back->seconds_count, 4);
    assert_int_equal(back->seconds[2].done, 250);
    near(back->seconds[2].mean_ms, flow->seconds[2].mean_ms, 1e-9);
    free(text);
    summary_fini(&written);
    summary_fini(&read);
}

/* A small good summary, with one piece of its text replaced. */
static void refused_twice(const char *piece, const char *instead, const char *second,
                          const char *second_instead, const char *reason)
{
    struct summary summary;
    struct summary read;
    char error[SUMMARY_ERROR_BYTES] = "";
    size_t length;

    summary_init(&summary, 1);
    head(&summary, 1);
    name_flow(&summary.flows[0], "f");
    count(&summary.flows[0], "GET /", 0, 5000);
    finish(&summary);
    char *text = text_of(&summary, &length);
    char *found = strstr(text, piece);
    char changed[8192];

    assert_non_null(found);
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(found - text), text, instead,
             found + strlen(piece));
    char *again = strstr(changed, second);
    char twice[16384];

    assert_non_null(again);
    snprintf(twice, sizeof(twice), "%.*s%s%s", (int)(again - changed), changed, second_instead,
             again + strlen(second));
    assert_int_equal(summary_parse(twice, strlen(twice), "text", &read, error), -EINVAL);
    if (!strstr(error, reason))
        fail_msg("\"%s\" does not say \"%s\"", error, reason);
    assert_int_equal(read.flows_count, 0);
    free(text);
    summary_fini(&summary);
}

static void refused(const char *piece, const char *instead, const char *reason)
{
    refused_twice(piece, instead, "", "", reason);
}

static void what_is_no_summary_is_refused(void **state)
{
    (void)state;
    refused("\"format\": 1", "\"format\": 2", "another version");
    refused("\"format\": 1,", "", "no summary");
    refused("\"kind\": \"run\"", "\"kind\": \"sweep\"", "wanted is a run");
    refused("{", "", "not JSON");
    refused("\"offered\": 1", "\"offered\": -1", "flow f: offered must be");
    refused("\"proto\": \"http\"", "\"proto\": \"ftp\"", "proto must be");
    refused("\"start_ns\": [5000]", "\"start_ns\": [5001]", "starts of buckets");
    refused("\"start_ns\": [5000]", "\"start_ns\": [5000, 5000]", "of one length");
    refused_twice("\"start_ns\": [5000]", "\"start_ns\": [5000, 5000]", "\"count\": [1]",
                  "\"count\": [1, 1]", "in rising order");
    refused("\"count\": 1", "\"count\": 2", "those of its histogram");
    refused("\"length_s\": [1.0]", "\"length_s\": [0.0]", "must have a length");
    refused("\"length_s\": [1.0]", "\"length_s\": []", "same length");
    refused("\"measured_s\": 4.0", "\"measured_s\": \"4\"", "measured_s must be");
}

/* ---------------------------------------------------------------- merging */

static void parts_merge_to_the_run_as_a_whole(void **state)
{
    struct summary parts[2];
    struct summary whole;
    struct summary merged;
    struct rng rng;

    (void)state;
    rng_init(&rng, 42, 1);
    summary_init(&parts[0], 1);
    summary_init(&parts[1], 1);
    summary_init(&whole, 1);
    for (int i = 0; i < 2; i++)
        head(&parts[i], 1000 + 0.3 * i);
    head(&whole, 1000);
    name_flow(&parts[0].flows[0], "f");
    name_flow(&parts[1].flows[0], "f");
    name_flow(&whole.flows[0], "f");
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t latency_ns = (uint64_t)rng_exponential(&rng, 3e6);
        size_t second = rng_below(&rng, 4);
        const char *kind = i % 2 ? "read" : "write";

        count(&parts[rng_below(&rng, 2)].flows[0], kind, second, latency_ns);
        count(&whole.flows[0], kind, second, latency_ns);
    }
    for (int i = 0; i < 2; i++)
        finish(&parts[i]);
    finish(&whole);
    near(summary_overlap_s(parts, 2), 3.7, 1e-9);
    summary_merge(&merged, parts, 2);
    const struct summary_flow *flow = &merged.flows[0];
    const struct summary_flow *all = &whole.flows[0];

    assert_int_equal(merged.flows_count, 1);
    same_histogram(&flow->total->latency, &all->total->latency);
    assert_int_equal(flow->offered, 5000);
    assert_int_equal(flow->completed, 5000);
    near(flow->throughput_per_s, all->throughput_per_s, 1e-9);
    near(merged.measured_s, 4.3, 1e-9);
    near(merged.began_unix_s, 1000, 0);
    assert_int_equal(flow->kinds_count, 2);
    for (int i = 0; i < 2; i++) {
        const char *kind = i ? "read" : "write";

        same_histogram(&summary_kind(&merged.flows[0], kind)->meter->latency,
                       &summary_kind(&whole.flows[0], kind)->meter->latency);
    }
    assert_int_equal(flow->seconds_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(flow->seconds[i].done, all->seconds[i].done);
        near(flow->seconds[i].mean_ms, all->seconds[i].mean_ms, 1e-9);
        near(flow->seconds[i].max_ms, all->seconds[i].max_ms, 0);
        near(flow->seconds[i].time_s, (double)i + 1, 0);
    }
    for (int i = 0; i < 2; i++)
        summary_fini(&parts[i]);
    summary_fini(&whole);
    summary_fini(&merged);
}

static void seconds_are_laid_by_the_wall_clock(void **state)
{
    struct summary parts[2];
    struct summary merged;

    (void)state;
    for (int i = 0; i < 2; i++) {
        summary_init(&parts[i], 1);
        head(&parts[i], 1000);
        name_flow(&parts[i].flows[0], i ? "g" : "f");
    }
    /* The second part began 2.6 s later, had 1 s of warm-up, and ended in half a second. */
    parts[1].began_unix_s = 1003.6;
    snprintf(summary_add_mark(&parts[1], "pause")->text, 8, "pause");
    parts[1].marks[0].from_s = 1;
    parts[1].marks[0].to_s = 2;
    parts[1].warmup_s = 1;
    count(&parts[0].flows[0], "k", 0, 1000000);
    count(&parts[1].flows[0], "k", 0, 2000000);
    count(&parts[1].flows[0], "k", 1, 2000000);
    count(&parts[1].flows[0], "k", 2, 2000000);
    /* A second that was noticed a little late is the second it was. */
    parts[1].flows[0].seconds[1].time_s = 2.004;
    parts[1].flows[0].seconds[2].time_s = 2.5;
    parts[1].flows[0].seconds[2].length_s = 0.5;
    summary_merge(&merged, parts, 2);
    assert_int_equal(merged.flows_count, 2);
    assert_int_equal(summary_find(&merged, "f")->seconds_count, 1);
    const struct summary_flow *later = summary_find(&merged, "g");

    assert_int_equal(later->seconds_count, 6);
    assert_int_equal(merged.marks_count, 1);
    near(merged.marks[0].from_s, 3.6, 1e-9);
    near(merged.marks[0].to_s, 4.6, 1e-9);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(later->seconds[i].done, i >= 3);
        near(later->seconds[i].length_s, i == 5 ? 0.5 : 1, 0);
    }
    near(merged.measured_s, 7.6, 1e-9);
    near(merged.warmup_s, 0, 1e-9);
    parts[1].began_unix_s = 1005;
    near(summary_overlap_s(parts, 2), -1, 1e-9);
    summary_fini(&parts[0]);
    summary_fini(&parts[1]);
    summary_fini(&merged);
}

/* A short rest joins the second before it, which is longer by it: its rate stays what it was. */
static void a_rest_that_joins_makes_the_second_longer(void **state)
{
    struct summary parts[2];
    struct summary merged;

    (void)state;
    for (int i = 0; i < 2; i++) {
        summary_init(&parts[i], 1);
        head(&parts[i], 1000);
        name_flow(&parts[i].flows[0], "f");
        count(&parts[i].flows[0], "k", 0, 1000000);
    }
    count(&parts[1].flows[0], "k", 1, 1000000);
    parts[1].flows[0].seconds[1].time_s = 1.05;
    parts[1].flows[0].seconds[1].length_s = 0.05;
    summary_merge(&merged, parts, 2);
    assert_int_equal(merged.flows[0].seconds_count, 1);
    assert_int_equal(merged.flows[0].seconds[0].done, 3);
    near(merged.flows[0].seconds[0].length_s, 1.05, 1e-9);
    summary_fini(&parts[0]);
    summary_fini(&parts[1]);
    summary_fini(&merged);
}

/* ---------------------------------------------------------------- text forms */

static void csv_lines_follow_the_rules(void **state)
{
    struct summary_second second = {.time_s = 1,
                                    .length_s = 0.5,
                                    .offered = 4,
                                    .done = 2,
                                    .refused = 1,
                                    .errors = 3,
                                    .mean_ms = 1.5,
                                    .p50_ms = 1,
                                    .p90_ms = 2,
                                    .p99_ms = 2,
                                    .max_ms = 2.25,
                                    .bytes_in = 9};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    (void)state;
    series_csv_line(out, "odd,\"name\"", &second);
    second.done = 0;
    series_csv_line(out, "f", &second);
    fclose(out);
    assert_string_equal(text, "1,\"odd,\"\"name\"\"\",4,2,4,1.5,1,2,2,2.25,1,3,0,0,9,0\r\n"
                              "1,f,4,0,0,,,,,,1,3,0,0,9,0\r\n");
    free(text);
}

static void a_second_has_the_quantiles_of_its_histogram(void **state)
{
    struct histogram *histogram = calloc(1, sizeof(*histogram));
    struct summary_second second;
    struct rng rng;

    (void)state;
    rng_init(&rng, 42, 3);
    histogram_reset(histogram);
    series_latency(&second, histogram);
    near(second.p50_ms + second.p99_ms + second.max_ms + second.mean_ms, 0, 0);
    for (int i = 0; i < 2000; i++) {
        histogram_add(histogram, (uint64_t)rng_exponential(&rng, 1e7));
        series_latency(&second, histogram);
        near(second.p50_ms, (double)histogram_quantile(histogram, 0.5) / 1e6, 1e-12);
        near(second.p90_ms, (double)histogram_quantile(histogram, 0.9) / 1e6, 1e-12);
        near(second.p99_ms, (double)histogram_quantile(histogram, 0.99) / 1e6, 1e-12);
    }
    near(second.mean_ms, histogram_mean(histogram) / 1e6, 1e-12);
    near(second.max_ms, (double)histogram->max / 1e6, 0);
    free(histogram);
}

static void histograms_as_text(void **state)
{
    struct histogram *histogram = calloc(1, sizeof(*histogram));
    char *text = NULL;
    size_t length;

    (void)state;
    histogram_reset(histogram);
    for (int i = 0; i < 3; i++)
        histogram_add(histogram, 1000);
    histogram_add(histogram, 2000);
    FILE *out = open_memstream(&text, &length);

    histogram_text_write(out, "gold", histogram);
    fclose(out);
    /* Mean 1250 ns; deviation sqrt((3 * 250^2 + 750^2) / 4) = 433.01 ns. */
    assert_string_equal(text, "# flow gold\n"
                              "       Value     Percentile TotalCount 1/(1-Percentile)\n\n"
                              "    0.001000 0.750000000000          3           4.00\n"
                              "    0.002000 1.000000000000          4\n"
                              "#[Mean    =     0.001250, StdDeviation   =     0.000433]\n"
                              "#[Max     =     0.002000, Total count    =            4]\n"
                              "#[Buckets =            2, SubBuckets     =         2048]\n");
    free(text);
    free(histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(what_is_no_summary_is_refused),
        cmocka_unit_test(parts_merge_to_the_run_as_a_whole),
        cmocka_unit_test(seconds_are_laid_by_the_wall_clock),
        cmocka_unit_test(a_rest_that_joins_makes_the_second_longer),
        cmocka_unit_test(csv_lines_follow_the_rules),
        cmocka_unit_test(a_second_has_the_quantiles_of_its_histogram),
        cmocka_unit_test(histograms_as_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
