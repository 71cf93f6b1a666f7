/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a run: seconds and the end of it, shown and written. */
#include "loadgen/results/results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "loadgen/base/memory.h"
#include "loadgen/results/live.h"
#include "loadgen/results/output.h"
#include "loadgen/results/series.h"
#include "loadgen/results/summary/histogram_text.h"
#include "loadgen/results/summary/summary.h"
#include "loadgen/results/table.h"
#include "loadgen/results/warnings.h"

struct results {
    struct results_options options;
    struct flow *flows;
    size_t count;
    struct output json;
    struct output csv;
    struct output histogram;
    struct live live;
    struct summary summary;
    struct live_row *rows;
    uint64_t *numbers; /* requests offered before this second, per flow */
    uint64_t start_ns;
    uint64_t second_began_ns;
    unsigned seconds;
    double cpu_began_s;
    uint64_t busy_began_ns; /* of the loop */
};

static double cpu_s(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
           (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

/* All flows are on one loop. */
static uint64_t busy_ns(const struct results *results)
{
    return results->count && results->flows[0].loop ? loop_busy_ns(results->flows[0].loop) : 0;
}

static double wall_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---------------------------------------------------------------- life */

struct results *results_create(const struct results_options *options, struct flow *flows,
                               size_t count)
{
    struct results *results = memory_zeroed(1, sizeof(*results));

    results->options = *options;
    results->flows = flows;
    results->count = count;
    if (output_open(&results->json, options->json_path, true) != 0 ||
        output_open(&results->csv, options->csv_path, false) != 0 ||
        output_open(&results->histogram, options->histogram_path, true) != 0) {
        results_destroy(results);
        return NULL;
    }
    live_init(&results->live, stdout, options);
    summary_init(&results->summary, count);
    results->rows = memory_zeroed(count, sizeof(*results->rows));
    results->numbers = memory_zeroed(count, sizeof(*results->numbers));
    if (results->csv.file)
        series_csv_head(results->csv.file);
    return results;
}

void results_destroy(struct results *results)
{
    if (!results)
        return;
    output_drop(&results->json);
    output_drop(&results->csv);
    output_drop(&results->histogram);
    live_fini(&results->live);
    summary_fini(&results->summary);
    free(results->rows);
    free(results->numbers);
    free(results);
}

static void begin_flow(struct summary_flow *out, const struct flow *flow)
{
    memcpy(out->name, flow->spec.name, sizeof(out->name));
    out->protocol = summary_protocol_of(&flow->spec);
    out->open_loop = flow->spec.open_loop;
    out->concurrency = flow->spec.concurrency;
}

void results_begin(struct results *results, const struct flow_window *window)
{
    struct summary *summary = &results->summary;
    double age_s = ((double)loop_clock_ns() - (double)window->start_ns) / 1e9;

    results->start_ns = results->second_began_ns = window->start_ns;
    results->cpu_began_s = cpu_s();
    results->busy_began_ns = busy_ns(results);
    summary_machine(summary);
    summary->seed = results->options.seed;
    summary->label = results->options.label ? memory_string(results->options.label) : NULL;
    summary->command = results->options.command ? memory_string(results->options.command) : NULL;
    summary->warmup_s = (double)(window->measure_ns - window->start_ns) / 1e9;
    summary->began_unix_s = wall_s() - age_s + summary->warmup_s;
    for (size_t i = 0; i < results->count; i++) {
        begin_flow(&summary->flows[i], &results->flows[i]);
        results->rows[i].flow = &results->flows[i];
        results->numbers[i] = results->flows[i].next_number;
    }
}

/* ---------------------------------------------------------------- a second */

void results_second(struct results *results, uint64_t now_ns)
{
    if (now_ns <= results->second_began_ns)
        return;
    results->seconds++;
    for (size_t i = 0; i < results->count; i++) {
        struct summary_second *second = &results->rows[i].second;
        const struct flow *flow = &results->flows[i];

        second->time_s = (double)(now_ns - results->start_ns) / 1e9;
        second->length_s = (double)(now_ns - results->second_began_ns) / 1e9;
        second->offered = flow->next_number - results->numbers[i];
        results->numbers[i] = flow->next_number;
        series_take(second, flow);
        *summary_add_second(&results->summary.flows[i]) = *second;
        if (results->csv.file)
            series_csv_line(results->csv.file, flow->spec.name, second);
    }
    output_flush(&results->csv);
    if (results->count)
        live_second(&results->live, results->seconds, results->rows, results->count);
    for (size_t i = 0; i < results->count; i++)
        meter_clear(&results->flows[i].second);
    results->second_began_ns = now_ns;
}

/* ---------------------------------------------------------------- the end */

void results_mark(struct results *results, uint64_t number, bool begins, double at_s,
                  const char *text)
{
    struct summary *summary = &results->summary;

    if (begins) {
        struct summary_mark *mark = summary_add_mark(summary, text);

        if (!mark)
            return;
        mark->number = number;
        mark->from_s = at_s > 0 ? at_s : 0;
        mark->to_s = mark->from_s;
        mark->open = true;
        return;
    }
    for (size_t i = 0; i < summary->marks_count; i++) {
        struct summary_mark *mark = &summary->marks[i];

        if (mark->open && mark->number == number) {
            mark->to_s = at_s > mark->from_s ? at_s : mark->from_s;
            mark->open = false;
        }
    }
}

/* What has not ended by now ends now. */
static void close_marks(struct summary *summary)
{
    double end_s = summary->warmup_s + summary->measured_s;

    for (size_t i = 0; i < summary->marks_count; i++) {
        struct summary_mark *mark = &summary->marks[i];

        if (mark->open && mark->to_s < end_s)
            mark->to_s = end_s;
        mark->open = false;
    }
}

static void take_kinds(struct summary_flow *out, const struct flow *flow)
{
    for (uint32_t i = 0; i < FLOW_KINDS; i++) {
        if (!flow->kinds[i])
            continue;
        const char *name = flow->transport->kind_name ? flow->transport->kind_name(flow, i) : NULL;
        char number[16];

        snprintf(number, sizeof(number), "kind %u", i);
        *summary_kind(out, name ? name : number)->meter = *flow->kinds[i];
    }
}

static void take_flow(struct summary_flow *out, const struct flow *flow, double measured_s)
{
    *out->total = flow->total;
    out->offered = flow->offered;
    out->completed = flow->completed;
    out->offered_per_s = (double)flow->offered / measured_s;
    out->throughput_per_s = (double)flow->completed / measured_s;
    out->bytes_in_per_s = (double)flow->total.bytes_in / measured_s;
    out->bytes_out_per_s = (double)flow->total.bytes_out / measured_s;
    out->late = flow->late;
    out->delayed = flow->delayed;
    out->late_max_ns = flow->late_max_ns;
    out->unfinished = flow_outstanding(flow);
    out->retried = flow->retried;
    out->reconnects = flow->reconnects;
    out->verified = flow->verified;
    out->unverified = flow->unverified;
    take_kinds(out, flow);
}

static void write_histograms(FILE *out, const struct summary *summary)
{
    for (size_t i = 0; i < summary->flows_count; i++) {
        const struct summary_flow *flow = &summary->flows[i];

        if (i > 0)
            fputc('\n', out);
        histogram_text_write(out, summary->flows_count > 1 ? flow->name : NULL,
                             &flow->total->latency);
    }
}

int results_finish(struct results *results, const struct flow_window *window)
{
    struct summary *summary = &results->summary;
    double measured_s = window->end_ns > window->measure_ns
                            ? (double)(window->end_ns - window->measure_ns) / 1e9
                            : 1e-9;
    double run_s = ((double)loop_clock_ns() - (double)window->start_ns) / 1e9;

    summary->measured_s = measured_s;
    close_marks(summary);
    if (run_s > 0) {
        summary->generator_cpu = (cpu_s() - results->cpu_began_s) / run_s;
        summary->generator_busy = (double)(busy_ns(results) - results->busy_began_ns) / 1e9 / run_s;
    }
    for (size_t i = 0; i < results->count; i++)
        take_flow(&summary->flows[i], &results->flows[i], measured_s);
    live_finish(&results->live);
    table_print(stdout, summary);
    bool good = fflush(stdout) == 0;

    if (!good)
        fprintf(stderr, "spillload: standard output: %s: the table is lost\n", strerror(errno));

    warnings_print(stderr, summary);
    if (results->json.file)
        summary_write(results->json.file, summary);
    if (results->histogram.file)
        write_histograms(results->histogram.file, summary);
    good = output_finish(&results->json) && good;
    good = output_finish(&results->histogram) && good;
    good = output_finish(&results->csv) && good;
    return good ? 0 : 1;
}
