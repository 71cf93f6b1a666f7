/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs of a flow side by side: figures of the whole runs, their ratio, and whether the seconds
 * of the runs show a difference (series_test.h).
 *
 * What the test can't know: two runs of the same thing differ too, by caches, placement, other
 * load. A difference that is shown here is one of these two runs; that it is one of what was
 * changed between them takes more runs.
 */
#ifndef LOADGEN_RESULTS_STATISTICS_COMPARISON_H
#define LOADGEN_RESULTS_STATISTICS_COMPARISON_H

#include <stdbool.h>

#include "loadgen/results/statistics/series_test.h"
#include "loadgen/results/summary/summary.h"

enum comparison_metric {
    COMPARISON_THROUGHPUT,
    COMPARISON_MEAN,
    COMPARISON_P50,
    COMPARISON_P90,
    COMPARISON_P99,
    COMPARISON_P999, /* not tested: most seconds have none */
    COMPARISON_REFUSED,
    COMPARISON_ERRORS,
    COMPARISON_METRICS,
};

enum comparison_verdict {
    COMPARISON_UNTESTED,
    COMPARISON_TOO_SHORT, /* not enough seconds to tell */
    COMPARISON_NOT_SHOWN,
    COMPARISON_SHOWN,
};

/* Below this p, corrected for the number of tests, a difference counts as shown. */
#define COMPARISON_SIGNIFICANT 0.05

struct comparison {
    double a;
    double b;
    double ratio; /* of b to a; NAN where a is 0 */
    bool tested;
    struct series_test test; /* its p is uncorrected */
    double p;                /* corrected; negative: none */
};

/* "throughput", "mean", "p50"... */
const char *comparison_name(enum comparison_metric metric);
bool comparison_is_time(enum comparison_metric metric); /* in milliseconds; else per second */

/* All metrics of one flow; `p` is uncorrected yet. */
void comparison_make(const struct summary *a, const struct summary_flow *flow_a,
                     const struct summary *b, const struct summary_flow *flow_b,
                     struct comparison out[COMPARISON_METRICS]);

/* Corrects the p of all comparisons of a report. */
void comparison_correct(struct comparison *all, size_t count);

enum comparison_verdict comparison_judge(const struct comparison *comparison);

#endif
