/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run leaves behind: the live lines, the final table and its warnings, the CSV time series,
 * and the JSON summary that everything else reads again (summary.h): compare, merge, plot, sweep.
 *
 *   run ──results_second──► live table, series in memory, CSV line per flow
 *       ──results_finish──► table, warnings, JSON (figures, histograms, series)
 *
 * Files are opened at the start, so that a path that can't be written is told before the load. A
 * disk that fills up is told once, by name, and makes the exit status 1; the run goes on.
 */
#ifndef LOADGEN_RESULTS_RESULTS_H
#define LOADGEN_RESULTS_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/client/flow.h"

enum results_live {
    RESULTS_LIVE_AUTO, /* a table with a progress bar where stdout is a terminal, else nothing */
    RESULTS_LIVE_OFF,
    RESULTS_LIVE_TEXT,  /* a line per flow and second */
    RESULTS_LIVE_TABLE, /* redrawn in place */
    RESULTS_LIVE_JSON,  /* one object per line: {"second": 3, "flows": [...]} */
};

struct results_options {
    enum results_live live;
    const char *json_path;      /* NULL: none */
    const char *csv_path;       /* one file, a line per flow and second */
    const char *histogram_path; /* the latency histograms as text, one bucket per line */
    const char *command;        /* the command line, kept in the JSON */
    const char *label;          /* free text for tables and pictures; NULL: none */
    uint64_t seed;
    uint64_t warmup_ns;
    uint64_t duration_ns;
};

struct results;

/* Opens the files. NULL after a message on stderr. */
struct results *results_create(const struct results_options *options, struct flow *flows,
                               size_t count);

/* The load begins now: `window` is that of the flows. */
void results_begin(struct results *results, const struct flow_window *window);

/* A second is over (or the rest of the last one); resets the flows' second meters. */
void results_second(struct results *results, uint64_t now_ns);

/*
 * Something beside the load (a fault) began or ended `at_s` after the run's start; `number` tells
 * spans apart. Kept in the summary, shaded by `plot time`. One that never ends lasts to the end.
 */
void results_mark(struct results *results, uint64_t number, bool begins, double at_s,
                  const char *text);

/* After the drain; `window` as it was in the end (an interrupt shortens it). 0, or 1 when a file
 * could not be written. */
int results_finish(struct results *results, const struct flow_window *window);

void results_destroy(struct results *results);

#endif
