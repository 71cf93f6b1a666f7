/* SPDX-License-Identifier: Apache-2.0 */
/* What spillsim gate is told on its command line. */
#ifndef BENCH_SIM_GATE_GATE_OPTIONS_H
#define BENCH_SIM_GATE_GATE_OPTIONS_H

#include "bench/sim/gate/gate_sim.h"

#define GATE_LOADS_MAX 32
#define GATE_FLOWS_MAX 100
#define GATE_COSTS_MAX 8

struct gate_cost {
    const char *text; /* as it was written */
    struct distribution distribution;
};

struct gate_options {
    struct gate_config config;
    bool policies[ADMIT_POLICIES];
    double loads[GATE_LOADS_MAX];
    size_t load_count;
    struct flow_spec *flows; /* the first is the load's, when there is one */
    uint32_t flow_count;
    struct gate_cost costs[GATE_COSTS_MAX];
    size_t cost_count;
    uint64_t seeds;
    const char *csv_path;
    const char *json_path;
};

/* Reads it into defaults; ends the program for --help. 0, or 2 after a message. Either way
 * gate_options_fini() frees what was made. */
int gate_options_read(struct gate_options *options, int argc, char **argv);
void gate_options_fini(struct gate_options *options);

#endif
