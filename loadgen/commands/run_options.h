/* SPDX-License-Identifier: Apache-2.0 */
/* What `spillload run` was asked for, read from its command line. */
#ifndef LOADGEN_COMMANDS_RUN_OPTIONS_H
#define LOADGEN_COMMANDS_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/results/results.h"
#include "loadgen/workload/workload.h"

struct run_options {
    struct workload workload;
    struct results_options results; /* its times and seed are those of the workload */
    char *command;                  /* the command line as one text */
    int64_t start_at_ns;            /* wall clock, since 1970; 0: as soon as all is ready */
    bool help;  /* was asked for and has been printed; there is nothing to run */
    bool check; /* reads and checks everything, says so, sends nothing */
};

/* 0, or the exit status after a message on stderr. run_options_fini() is due in either case. */
int run_options_read(struct run_options *options, int argc, char **argv);
void run_options_fini(struct run_options *options);

/* "HH:MM:SS" (of today), "YYYY-MM-DDTHH:MM:SS", both local, or "@SECONDS" since 1970, each with a
 * fraction or without. 0 or -EINVAL. */
int run_options_read_moment(const char *text, int64_t now_ns, int64_t *out);

#endif
