/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run's seconds: from a flow's meter to a row of figures, and rows as CSV (RFC 4180): a line per
 * flow and second.
 */
#ifndef LOADGEN_RESULTS_SERIES_H
#define LOADGEN_RESULTS_SERIES_H

#include "loadgen/results/summary/summary.h"

/* The rest of the row after its times and `offered`: from the flow's second meter, which stays. */
void series_take(struct summary_second *second, const struct flow *flow);

/* The figures of a histogram; all 0 for an empty one. In one pass, as it is done while load runs.
 */
void series_latency(struct summary_second *second, const struct histogram *latency);

void series_csv_head(FILE *out);
void series_csv_line(FILE *out, const char *flow, const struct summary_second *second);

#endif
