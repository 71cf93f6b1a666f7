/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sweep leaves behind: a run's summary per value of the parameter. As JSON:
 *
 *   format 1, kind "sweep", parameter, command, knee (a value, or null: none in the range)
 *   steps[]   text ("200/s"), value (200), summary (as of one run)
 */
#ifndef LOADGEN_RESULTS_SUMMARY_SWEEP_FILE_H
#define LOADGEN_RESULTS_SUMMARY_SWEEP_FILE_H

#include <jansson.h>

#include "loadgen/results/summary/summary.h"

#define SWEEP_MAX_STEPS  1000U
#define SWEEP_NAME_BYTES 64

struct sweep_step {
    char text[SWEEP_NAME_BYTES];
    double value;
    struct summary summary;
};

struct sweep {
    char parameter[SWEEP_NAME_BYTES];
    char *command; /* NULL: not known */
    struct sweep_step *steps;
    size_t count;
};

void sweep_init(struct sweep *sweep, const char *parameter);
void sweep_fini(struct sweep *sweep);

/* The summary becomes the sweep's. */
void sweep_add(struct sweep *sweep, const char *text, double value, const struct summary *summary);

/* Good replies per second of all flows of a step. */
double sweep_throughput(const struct sweep_step *step);

/* The step at the knee of throughput over the parameter (statistics/knee.h), or NULL. */
const struct sweep_step *sweep_knee(const struct sweep *sweep);

void sweep_write(FILE *out, const struct sweep *sweep);

/* 0, or -EINVAL with a sentence in `error`; the sweep is empty then. */
int sweep_from_json(const json_t *json, const char *name, struct sweep *out,
                    char error[SUMMARY_ERROR_BYTES]);

#endif
