/* SPDX-License-Identifier: Apache-2.0 */
/* What `spillload run` was asked for, read from its command line. */
#ifndef LOADGEN_COMMANDS_RUN_OPTIONS_H
#define LOADGEN_COMMANDS_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/client/flow_spec.h"
#include "loadgen/results/report.h"

#define RUN_MAX_FLOWS 64

struct run_options {
    struct flow_spec flows[RUN_MAX_FLOWS];
    size_t flows_count;
    uint64_t duration_ns;
    uint64_t warmup_ns;
    uint64_t drain_ns;
    uint64_t seed;
    const char *json_path;
    enum report_live live;
    bool help; /* was asked for and has been printed; there is nothing to run */
};

/* 0, or the exit status after a message on stderr. Allocates nothing but what flows refer to. */
int run_options_read(struct run_options *options, int argc, char **argv);

#endif
