/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pictures of runs and sweeps, as gnuplot commands. A flow has a colour, which it keeps in
 * every file; a file has a line style.
 *
 *   time         throughput, response time and, where there are any, refusals and errors against
 *                time; the warm-up is grey
 *   cdf          the share of requests answered within a time
 *   percentiles  response time up to the percentile, over 1 / (1 - p): each step to the right is a
 *                digit more
 *   sweep        throughput and response time against the parameter; the knee is marked
 */
#ifndef LOADGEN_RESULTS_PLOT_PICTURES_H
#define LOADGEN_RESULTS_PLOT_PICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "loadgen/results/summary/summary.h"
#include "loadgen/results/summary/sweep_file.h"

enum picture_metric {
    PICTURE_MEAN,
    PICTURE_P50,
    PICTURE_P90,
    PICTURE_P99,
    PICTURE_METRICS,
};

extern const char *const picture_metric_names[PICTURE_METRICS];

struct picture {
    FILE *script;
    const char *title; /* NULL: none */
    enum picture_metric metric;
    const char *const *names; /* of the files */
    size_t files;
    const char *const *wanted; /* flows; none: all */
    size_t wanted_count;
    unsigned width; /* pixels */
};

/* Each returns false when there is nothing to draw: no flow of the wanted names has a reply. */
bool picture_time(const struct picture *picture, const struct summary *runs);
bool picture_cdf(const struct picture *picture, const struct summary *runs);
bool picture_percentiles(const struct picture *picture, const struct summary *runs);
bool picture_sweep(const struct picture *picture, const struct sweep *sweeps);

/* ---- for the pictures themselves ---- */

bool picture_wants(const struct picture *picture, const char *flow);

/* The colour of a flow: its place among the names of all flows, in the order of the files. */
struct picture_palette {
    const char *names[SUMMARY_MAX_FLOWS];
    size_t count;
};
size_t picture_colour(struct picture_palette *palette, const char *flow);

/* " title '...'": the flow, with the file's name where there are several. */
void picture_curve_title(const struct picture *picture, size_t file, const char *flow);

/* Its length in bytes, for the room that the legend takes. */
size_t picture_title_length(const struct picture *picture, size_t file, const char *flow);

/* Lays the legend right of the data, from `top` (a share of the height) down, wide enough for the
 * longest title; returns where the data ends, as a share of the width. */
double picture_legend(const struct picture *picture, size_t longest, double top);

/* A logarithmic axis where the values span more than a factor of 30; "x" or "y". */
void picture_time_axis(FILE *script, const char *axis, double least_ms, double most_ms);

#endif
