/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of load: files that say when requests came, or how many per second.
 *
 *   # comment                       a line that begins with # or is empty is skipped, but for
 *   # spillload-trace: rates 1s     the line that says what the numbers are; without it the file
 *   15                              holds times
 *   15.5
 *
 *   rates INTERVAL   each line is the rate, in requests per second, of the next interval
 *   times UNIT       each line is the time of one request since the trace's start, not less than
 *                    the line before; UNIT is ns, us, ms or s (the default)
 *
 * Only the first column counts, columns are parted by blanks, tabs, commas or semicolons: a CSV
 * with the times in front is a trace. A first line of words, as CSV files have it, is skipped.
 * Numbers are decimal, with or without an exponent; times are exact to the nanosecond.
 */
#ifndef LOADGEN_ARRIVAL_TRACE_H
#define LOADGEN_ARRIVAL_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAX_ENTRIES 50000000U
#define TRACE_MAX_RATE    1e9 /* per second */
#define TRACE_ERROR_BYTES 512

struct trace {
    bool times;
    uint64_t interval_ns; /* rates: of one entry */
    size_t count;
    uint64_t *times_ns;  /* times: in order */
    double *rates_per_s; /* rates */
    double total;        /* requests in all of it */
    /* Until it begins again, if it does. Of times so long that the gap between the last request
     * and the first of the next turn is the mean gap, or the first request's time if that is more;
     * never 0. */
    uint64_t length_ns;
};

/*
 * Reads a trace from memory. 0, or -EINVAL with a sentence in `error` that names the line; the
 * trace is empty then. Traces without any request are an error.
 */
int trace_parse(const char *text, size_t length, struct trace *out, char error[TRACE_ERROR_BYTES]);

/* The same of a file; negative errno when it can't be read, with the sentence too. */
int trace_read(const char *path, struct trace *out, char error[TRACE_ERROR_BYTES]);

void trace_fini(struct trace *trace);

#endif
