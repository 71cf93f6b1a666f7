/* SPDX-License-Identifier: Apache-2.0 */
/* What the command lines of spillsim's simulations have in common: reading options, saying what is
 * wrong with them, choosing policies. Messages go to stderr; the status for a wrong one is 2. */
#ifndef BENCH_SIM_COMMAND_LINE_H
#define BENCH_SIM_COMMAND_LINE_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/base/histogram.h"
#include "sched/admission/admission.h"

#define SIM_TIME_TEXT 24

struct sim_command_line {
    const char *name; /* of the simulation */
    const struct option *options;
    int help; /* the value of --help */
    void (*usage)(FILE *out);
    /* One option: 0, or 2 after a message. */
    int (*read)(void *context, int option, const char *value);
};

/* Reads all of it; ends the program for --help. 0 or 2. */
int sim_read_command_line(const struct sim_command_line *line, void *context, int argc,
                          char **argv);

/* "spillsim: --OPTION VALUE: expected ..."; 2. */
int sim_bad_option(const char *option, const char *value, const char *expected);

/* 0 or 2. */
int sim_read_count(const char *option, const char *value, uint64_t least, uint64_t most,
                   uint64_t *out);
int sim_read_time(const char *option, const char *value, uint64_t least_ns, uint64_t most_ns,
                  uint64_t *out);

/* "duk,pie": marks those named. */
int sim_read_policies(const char *value, bool policies[ADMIT_POLICIES]);
/* All of them, when none is marked. */
void sim_default_policies(bool policies[ADMIT_POLICIES]);

/* The mean (quantile below 0) or a quantile as text, "-" when nothing was recorded. */
const char *sim_time_text(const struct histogram *histogram, double quantile,
                          char buffer[SIM_TIME_TEXT]);

/* Count, mean, median, 95th, 99th, 99.9th percentile, and the list of all from 0 to 100, in ms. */
json_t *sim_times_json(const struct histogram *histogram);

#endif
