/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing two runs of a flow. */
#include "loadgen/results/statistics/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"
#include "loadgen/results/statistics/rank_test.h"

/* A rest of a second shorter than this is no second. */
#define LEAST_SECOND_S 0.5

static const struct {
    const char *name;
    double quantile; /* above 0: of the latency */
    bool is_time;
    bool tested;
} metrics[COMPARISON_METRICS] = {
    [COMPARISON_THROUGHPUT] = {"throughput", 0, false, true},
    [COMPARISON_MEAN] = {"mean", 0, true, true},
    [COMPARISON_P50] = {"p50", 0.5, true, true},
    [COMPARISON_P90] = {"p90", 0.9, true, true},
    [COMPARISON_P99] = {"p99", 0.99, true, true},
    [COMPARISON_P999] = {"p99.9", 0.999, true, false},
    [COMPARISON_REFUSED] = {"refused", 0, false, true},
    [COMPARISON_ERRORS] = {"errors", 0, false, true},
};

const char *comparison_name(enum comparison_metric metric)
{
    return metrics[metric].name;
}

bool comparison_is_time(enum comparison_metric metric)
{
    return metrics[metric].is_time;
}

static double whole_run(const struct summary *summary, const struct summary_flow *flow,
                        enum comparison_metric metric)
{
    const struct histogram *latency = &flow->total->latency;
    double measured_s = summary->measured_s > 0 ? summary->measured_s : 1e-9;

    if (metrics[metric].quantile > 0)
        return (double)histogram_quantile(latency, metrics[metric].quantile) / 1e6;
    switch (metric) {
    case COMPARISON_THROUGHPUT:
        return flow->throughput_per_s;
    case COMPARISON_MEAN:
        return histogram_mean(latency) / 1e6;
    case COMPARISON_REFUSED:
        return (double)flow->total->outcomes[OUTCOME_REFUSED] / measured_s;
    default:
        return (double)meter_errors(flow->total) / measured_s;
    }
}

static double of_second(const struct summary_second *second, enum comparison_metric metric)
{
    switch (metric) {
    case COMPARISON_THROUGHPUT:
        return (double)second->done / second->length_s;
    case COMPARISON_MEAN:
        return second->mean_ms;
    case COMPARISON_P50:
        return second->p50_ms;
    case COMPARISON_P90:
        return second->p90_ms;
    case COMPARISON_P99:
        return second->p99_ms;
    case COMPARISON_REFUSED:
        return (double)second->refused / second->length_s;
    default:
        return (double)second->errors / second->length_s;
    }
}

/* The measured seconds' values; times only where there was a reply. Returns how many. */
static size_t take_series(const struct summary *summary, const struct summary_flow *flow,
                          enum comparison_metric metric, double *out)
{
    size_t count = 0;

    for (size_t i = 0; i < flow->seconds_count; i++) {
        const struct summary_second *second = &flow->seconds[i];

        if (second->length_s < LEAST_SECOND_S ||
            second->time_s - second->length_s < summary->warmup_s - LEAST_SECOND_S ||
            (metrics[metric].is_time && second->done == 0))
            continue;
        out[count++] = of_second(second, metric);
    }
    return count;
}

void comparison_make(const struct summary *a, const struct summary_flow *flow_a,
                     const struct summary *b, const struct summary_flow *flow_b,
                     struct comparison out[COMPARISON_METRICS])
{
    double *series_a = memory_zeroed(flow_a->seconds_count, sizeof(*series_a));
    double *series_b = memory_zeroed(flow_b->seconds_count, sizeof(*series_b));

    for (int i = 0; i < COMPARISON_METRICS; i++) {
        enum comparison_metric metric = (enum comparison_metric)i;
        struct comparison *row = &out[i];

        *row = (struct comparison){.a = whole_run(a, flow_a, metric),
                                   .b = whole_run(b, flow_b, metric),
                                   .tested = metrics[i].tested,
                                   .p = -1};
        row->ratio = row->a > 0 ? row->b / row->a : NAN;
        if (!row->tested)
            continue;
        size_t n = take_series(a, flow_a, metric, series_a);
        size_t m = take_series(b, flow_b, metric, series_b);

        row->test = series_test(series_a, n, series_b, m);
        row->p = row->test.p;
    }
    free(series_a);
    free(series_b);
}

void comparison_correct(struct comparison *all, size_t count)
{
    double *p = memory_zeroed(count, sizeof(*p));

    for (size_t i = 0; i < count; i++)
        p[i] = all[i].p;
    rank_test_holm(p, count);
    for (size_t i = 0; i < count; i++)
        all[i].p = p[i];
    free(p);
}

enum comparison_verdict comparison_judge(const struct comparison *comparison)
{
    if (!comparison->tested)
        return COMPARISON_UNTESTED;
    if (comparison->p < 0)
        return COMPARISON_TOO_SHORT;
    return comparison->p < COMPARISON_SIGNIFICANT ? COMPARISON_SHOWN : COMPARISON_NOT_SHOWN;
}
