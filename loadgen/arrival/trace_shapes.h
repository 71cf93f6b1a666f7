/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces that are made from a seed: bursty load in the shapes that studies of autoscaling use
 * (Gandhi, Harchol-Balter, Raghunathan, Kozuch, "AutoScale: dynamic, robust capacity management for
 * multi-tier data centers", ACM TOCS 30(4), 2012, gives six real traces these names), and a day of
 * a production site. They are drawn here, not recorded: what is alike is the shape.
 *
 *   big-spike        ____/\________      a low level, one spike to the peak
 *   dual-phase       ______/~~~~~~~      a low half, then a high one
 *   large-variation  _/\__/\_/~\__/      swings of a minute or so between little and the peak
 *   quick-varying    /\/\/\/\/\/\/\      swings of half a minute
 *   slow-varying     __--~~~~~--___      one long wave
 *   steep-tri-phase  ___/~~~\______      three levels, steep between
 *   production-day   __-----^--_         24 h: night, day, the spike at hour 17
 */
#ifndef LOADGEN_ARRIVAL_TRACE_SHAPES_H
#define LOADGEN_ARRIVAL_TRACE_SHAPES_H

#include "loadgen/arrival/trace.h"

struct trace_shape {
    const char *name;
    const char *help; /* one line */
    uint64_t interval_ns;
    uint64_t length_ns; /* as the name is used; another length stretches the shape */
    double noise;       /* deviation of the rates from the shape, as a part of them */
    double (*level)(const struct trace_shape *shape, const void *draws, double part);
};

/* NULL for an unknown name; by number, NULL past the last. */
const struct trace_shape *trace_shape_find(const char *name);
const struct trace_shape *trace_shape_at(size_t number);

/*
 * Makes the trace: one rate per interval over the length, which holds at least 10 intervals and at
 * most TRACE_MAX_ENTRIES; the highest rate is the peak, and rates are whole ten-thousandths of it.
 * The same seed makes the same trace. trace_fini() is due.
 */
void trace_make(const struct trace_shape *shape, uint64_t seed, uint64_t length_ns,
                double peak_per_s, struct trace *out);

#endif
