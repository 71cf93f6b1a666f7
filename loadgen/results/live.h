/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run shows while it runs, a second at a time.
 *
 *   text    a line per flow and second
 *   json    an object per second
 *   table   redrawn in place, on terminals only:
 *
 *     [#############------------------------------]  12 s of 40 s
 *     flow              rate/s      p50      p99   in flight    waiting  refused   errors
 *     gold              1203.0   1.21ms   4.90ms           3          0        0        0
 *     total             ...
 *
 * A narrow terminal loses columns from the right, a low one loses flows; lines never wrap, or they
 * could not be drawn over.
 */
#ifndef LOADGEN_RESULTS_LIVE_H
#define LOADGEN_RESULTS_LIVE_H

#include "loadgen/results/results.h"
#include "loadgen/results/summary/summary.h"

struct live {
    FILE *out;
    enum results_live mode; /* never AUTO */
    uint64_t warmup_ns;
    uint64_t duration_ns;
    size_t lines_drawn;
    struct histogram *all; /* table: of all flows' seconds */
};

/* A second's row of a flow, whose meters have not been reset. */
struct live_row {
    const struct flow *flow;
    struct summary_second second;
};

void live_init(struct live *live, FILE *out, const struct results_options *options);
/* `number` counts seconds from 1. */
void live_second(struct live *live, unsigned number, const struct live_row *rows, size_t count);
/* Takes the table off the screen: the final one follows. */
void live_finish(struct live *live);
void live_fini(struct live *live);

/* Draws the table for a screen of that size; returns its lines. For the tests too. */
size_t live_draw(struct live *live, double elapsed_s, const struct live_row *rows, size_t count,
                 size_t columns, size_t lines);

#endif
