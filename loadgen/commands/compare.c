/* SPDX-License-Identifier: Apache-2.0 */
/* spillload compare: two summaries side by side, with what can be said of the difference. */
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/commands/commands.h"
#include "loadgen/results/statistics/comparison.h"
#include "loadgen/results/summary/json_text.h"
#include "loadgen/results/table.h"

#define MAX_LIMITS 16

/* --fail-above p99=1.1, --fail-below throughput=0.95 */
struct limit {
    enum comparison_metric metric;
    bool above;
    double ratio;
};

struct request {
    bool json;
    struct limit limits[MAX_LIMITS];
    size_t limits_count;
};

/* A flow that is in both runs, and its rows. */
struct pair {
    const struct summary_flow *a;
    const struct summary_flow *b;
    struct comparison *rows;
};

static void usage(FILE *out)
{
    fputs("usage: spillload compare A.json B.json [options]\n"
          "\n"
          "Shows two summaries (spillload run --json) side by side, flow by flow: A, B, B/A, and\n"
          "whether the seconds of the two runs show a difference. The test is the rank-sum test\n"
          "of Mann and Whitney on the means of blocks of seconds, the blocks as long as the\n"
          "seconds depend on each other; p is corrected for the number of tests (Holm), a\n"
          "difference is shown below 0.05. It is one between these two runs: whether it comes\n"
          "from what you changed takes more of them.\n"
          "\n"
          "  --json                  as JSON\n"
          "  --fail-above M=RATIO    exit 1 when B/A of M is above it in any flow, as p99=1.1\n"
          "  --fail-below M=RATIO    exit 1 when B/A of M is below it, as throughput=0.95\n"
          "                          M: throughput, mean, p50, p90, p99, p99.9, refused, errors\n"
          "  --help                  this text\n"
          "\n"
          "Exit status: 0; 1 when a file can't be used or a limit is passed; 2 for a wrong\n"
          "command line.\n",
          out);
}

static bool read_limit(struct request *request, const char *text, bool above)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;

    for (int i = 0; equals && i < COMPARISON_METRICS; i++) {
        const char *name = comparison_name((enum comparison_metric)i);
        double ratio = strtod(equals + 1, &end);

        if (strlen(name) != (size_t)(equals - text) || strncmp(name, text, strlen(name)) != 0 ||
            end == equals + 1 || *end || !isfinite(ratio) || ratio < 0 ||
            request->limits_count == MAX_LIMITS)
            continue;
        request->limits[request->limits_count++] =
            (struct limit){(enum comparison_metric)i, above, ratio};
        return true;
    }
    fprintf(stderr,
            "spillload compare: --fail-%s %s: expected METRIC=RATIO, as p99=1.1 (see --help)\n",
            above ? "above" : "below", text);
    return false;
}

/* ---------------------------------------------------------------- text */

static const char *figure(enum comparison_metric metric, double value, char *buffer, size_t size)
{
    char text[TABLE_TIME_BYTES];

    if (comparison_is_time(metric))
        snprintf(buffer, size, "%s", table_time(value, 1, text));
    else
        snprintf(buffer, size, "%.1f/s", value);
    return buffer;
}

static void verdict_text(const struct comparison *row, char *out, size_t size)
{
    switch (comparison_judge(row)) {
    case COMPARISON_UNTESTED:
        snprintf(out, size, "not tested");
        break;
    case COMPARISON_TOO_SHORT:
        snprintf(out, size, "not enough seconds to tell");
        break;
    case COMPARISON_SHOWN:
        snprintf(out, size, row->p < 0.001 ? "yes (p < 0.001)" : "yes (p = %.3f)", row->p);
        break;
    default:
        snprintf(out, size, row->p < 0.1 ? "not shown (p = %.3f)" : "not shown (p = %.2f)", row->p);
    }
}

static void print_run(const char *letter, const char *path, const struct summary *summary)
{
    printf("%s  %s", letter, path);
    if (summary->label)
        printf("  (%s)", summary->label);
    printf("  %.1f s measured on %s\n", summary->measured_s,
           summary->host[0] ? summary->host : "an unknown host");
}

static void print_pair(const struct pair *pair)
{
    size_t block = 1;

    printf("\n%-16s %12s %12s %8s  %s\n", pair->a->name, "A", "B", "B/A", "differ?");
    for (int i = 0; i < COMPARISON_METRICS; i++) {
        const struct comparison *row = &pair->rows[i];
        enum comparison_metric metric = (enum comparison_metric)i;
        char text[2][TABLE_TIME_BYTES + 16];
        char ratio[24] = "-";
        char verdict[64];

        if (row->a <= 0 && row->b <= 0)
            continue;
        if (!isnan(row->ratio))
            snprintf(ratio, sizeof(ratio), "%.3f", row->ratio);
        verdict_text(row, verdict, sizeof(verdict));
        printf("  %-14s %12s %12s %8s  %s\n", comparison_name(metric),
               figure(metric, row->a, text[0], sizeof(text[0])),
               figure(metric, row->b, text[1], sizeof(text[1])), ratio, verdict);
        if (row->tested && row->test.block > block)
            block = row->test.block;
    }
    if (block > 1)
        printf("  blocks of up to %zu s were taken for one: their seconds depend on each other\n",
               block);
}

static void print_missing(const struct summary *in, const struct summary *from, const char *letter)
{
    for (size_t i = 0; i < in->flows_count; i++) {
        if (!summary_find(from, in->flows[i].name))
            printf("\nflow %s is only in %s\n", in->flows[i].name, letter);
    }
}

/* ---------------------------------------------------------------- JSON */

static json_t *row_json(enum comparison_metric metric, const struct comparison *row)
{
    static const char *const verdicts[] = {"not tested", "not enough seconds", "not shown",
                                           "shown"};

    return json_pack(
        "{s:s, s:s, s:f, s:f, s:o, s:o, s:o, s:I, s:I, s:I, s:s}", "metric",
        comparison_name(metric), "unit", comparison_is_time(metric) ? "ms" : "per_s", "a", row->a,
        "b", row->b, "ratio", isnan(row->ratio) ? json_null() : json_real(row->ratio), "p",
        row->p < 0 ? json_null() : json_real(row->p), "p_uncorrected",
        !row->tested || row->test.p < 0 ? json_null() : json_real(row->test.p), "block_s",
        (json_int_t)row->test.block, "blocks_a", (json_int_t)row->test.blocks_a, "blocks_b",
        (json_int_t)row->test.blocks_b, "difference", verdicts[comparison_judge(row)]);
}

static void print_json(const char *const paths[2], const struct pair *pairs, size_t count)
{
    json_t *flows = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *rows = json_array();

        for (int m = 0; m < COMPARISON_METRICS; m++)
            json_array_append_new(rows, row_json((enum comparison_metric)m, &pairs[i].rows[m]));
        json_array_append_new(
            flows, json_pack("{s:o, s:o}", "name", json_text(pairs[i].a->name), "metrics", rows));
    }
    json_t *json =
        json_pack("{s:i, s:s, s:o, s:o, s:o}", "format", SUMMARY_FORMAT, "kind", "comparison", "a",
                  json_text(paths[0]), "b", json_text(paths[1]), "flows", flows);

    json_text_write(stdout, json);
    json_decref(json);
}

/* ---------------------------------------------------------------- limits, and all of it */

/* 1 when a limit is passed, each told. A ratio to nothing passes every upper limit. */
static int check_limits(const struct request *request, const struct pair *pairs, size_t count)
{
    int status = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < request->limits_count; k++) {
            const struct limit *limit = &request->limits[k];
            const struct comparison *row = &pairs[i].rows[limit->metric];
            double ratio = isnan(row->ratio) ? (row->b > 0 ? INFINITY : 1) : row->ratio;

            if (limit->above ? ratio <= limit->ratio : ratio >= limit->ratio)
                continue;
            fprintf(stderr, "spillload compare: flow %s: %s is %.3f of A's, the limit is %.3f\n",
                    pairs[i].a->name, comparison_name(limit->metric), ratio, limit->ratio);
            status = 1;
        }
    }
    return status;
}

static int compare(const struct request *request, const char *const paths[2],
                   const struct summary runs[2])
{
    struct pair *pairs = memory_zeroed(runs[0].flows_count, sizeof(*pairs));
    struct comparison *rows =
        memory_zeroed(runs[0].flows_count * COMPARISON_METRICS, sizeof(*rows));
    size_t count = 0;

    for (size_t i = 0; i < runs[0].flows_count; i++) {
        const struct summary_flow *a = &runs[0].flows[i];
        const struct summary_flow *b = summary_find(&runs[1], a->name);

        if (!b)
            continue;
        pairs[count] = (struct pair){a, b, rows + count * COMPARISON_METRICS};
        comparison_make(&runs[0], a, &runs[1], b, pairs[count].rows);
        count++;
    }
    comparison_correct(rows, count * COMPARISON_METRICS);
    if (request->json) {
        print_json(paths, pairs, count);
    } else {
        print_run("A", paths[0], &runs[0]);
        print_run("B", paths[1], &runs[1]);
        for (size_t i = 0; i < count; i++)
            print_pair(&pairs[i]);
        print_missing(&runs[0], &runs[1], "A");
        print_missing(&runs[1], &runs[0], "B");
    }
    int status = check_limits(request, pairs, count);

    if (count == 0) {
        fputs("spillload compare: the runs have no flow of the same name\n", stderr);
        status = 1;
    }
    free(rows);
    free(pairs);
    return status;
}

/* -1: go on. */
static int read_options(struct request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"fail-above", required_argument, NULL, 'a'},
        {"fail-below", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (option == 'j')
            request->json = true;
        else if (option == '?' || !read_limit(request, optarg, option == 'a'))
            return 2;
    }
    if (argc - optind != 2) {
        fputs("spillload compare: expected two files, A.json and B.json (see --help)\n", stderr);
        return 2;
    }
    return -1;
}

int command_compare(int argc, char **argv)
{
    struct request request = {0};
    struct summary runs[2];
    char error[SUMMARY_ERROR_BYTES];
    int status = read_options(&request, argc, argv);

    if (status >= 0)
        return status;
    const char *const paths[2] = {argv[optind], argv[optind + 1]};
    bool good = true;

    for (int i = 0; i < 2; i++) {
        summary_init(&runs[i], 0);
        if (good && summary_read(paths[i], &runs[i], error) != 0) {
            fprintf(stderr, "spillload compare: %s\n", error);
            good = false;
        }
    }
    status = good ? compare(&request, paths, runs) : 1;
    if (fflush(stdout) != 0) {
        fputs("spillload compare: standard output could not be written\n", stderr);
        status = 1;
    }
    summary_fini(&runs[0]);
    summary_fini(&runs[1]);
    return status;
}
