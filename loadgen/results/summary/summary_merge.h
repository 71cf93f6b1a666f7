/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on several machines at the same time as one run.
 *
 * Flows of one name become one: counts, bytes, histograms and rates are added, so totals and
 * quantiles are those of the whole. Windows are laid along the wall clock, seconds on a common grid
 * of whole seconds, each at the place nearest to its own: up to half a second off, and what the
 * clocks of the machines differ comes on top.
 *
 *   part 1   |--1--|--2--|--3--|
 *   part 2      |--1--|--2--|--3--|        0.4 s later: its second 1 joins second 1
 *   merged   |--1--|--2--|--3--|
 *
 * A second's mean and maximum are exact; its percentiles can't be had from percentiles: they are
 * the largest of the parts', which the true ones do not exceed.
 */
#ifndef LOADGEN_RESULTS_SUMMARY_SUMMARY_MERGE_H
#define LOADGEN_RESULTS_SUMMARY_SUMMARY_MERGE_H

#include "loadgen/results/summary/summary.h"

/* How long all parts measured at once; below 0: the time between the end of one and the start of
 * another. */
double summary_overlap_s(const struct summary *parts, size_t count);

/* At least one part. The result is the caller's to summary_fini(). */
void summary_merge(struct summary *out, const struct summary *parts, size_t count);

#endif
