/* SPDX-License-Identifier: Apache-2.0 */
/* What a run shows: a line per flow and second, a table at the end, a JSON summary. */
#ifndef LOADGEN_CLIENT_REPORT_H
#define LOADGEN_CLIENT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/client/flow.h"

enum report_live {
    REPORT_LIVE_OFF,
    REPORT_LIVE_TEXT,
    REPORT_LIVE_JSON, /* one object per line: {"second": 3, "flows": [...]} */
};

/* The second that ended: how many the run is old, and the length it really had. Resets the meters.
 */
void report_second(FILE *out, enum report_live live, struct flow *flows, size_t count,
                   unsigned second, double length_s);

/* `measured_s` is the length of the measured window. */
void report_table(FILE *out, const struct flow *flows, size_t count, double measured_s);

/* 0, or negative errno when the file could not be written. */
int report_json(const char *path, const struct flow *flows, size_t count, double measured_s,
                uint64_t seed);

/* Sentences about what makes the figures less than they seem; prints nothing when all is well. */
void report_warnings(FILE *out, const struct flow *flows, size_t count);

#endif
