/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms as text in the percentile form that HdrHistogram's tools write and read (.hgrm): per
 * bucket that holds something its value in milliseconds, the share of values up to it, their
 * number, and 1 / (1 - share); then mean, deviation, maximum and count. The value of the last
 * bucket is the maximum, where the last column is left out.
 */
#ifndef LOADGEN_RESULTS_SUMMARY_HISTOGRAM_TEXT_H
#define LOADGEN_RESULTS_SUMMARY_HISTOGRAM_TEXT_H

#include <stdio.h>

#include "loadgen/base/histogram.h"

/* `name`, when it is not NULL, goes in front as a comment: the flow, where there are several. */
void histogram_text_write(FILE *out, const char *name, const struct histogram *histogram);

#endif
