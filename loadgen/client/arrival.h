/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrival processes of open-loop flows: when each request is meant to be sent, whatever became of
 * the ones before it.
 *
 * With ON and OFF times the process runs in ON time only: its clock stands still while the flow is
 * OFF. The first phase is ON. `rate_per_s` is the rate while ON.
 *
 *   ON time    0─────────on──────────2on
 *   real time  0─────────on   (off)   on+off────────2on+off   ...
 */
#ifndef LOADGEN_CLIENT_ARRIVAL_H
#define LOADGEN_CLIENT_ARRIVAL_H

#include <stdint.h>

#include "loadgen/base/rng.h"

enum arrival_kind {
    ARRIVAL_POISSON,  /* exponential gaps */
    ARRIVAL_CONSTANT, /* equal gaps, the first request after one gap */
};

struct arrival_spec {
    enum arrival_kind kind;
    double rate_per_s;
    uint64_t on_ns; /* 0: always on */
    uint64_t off_ns;
};

struct arrival {
    struct arrival_spec spec;
    struct rng rng;
    uint64_t count;
    double on_time_ns;
};

void arrival_init(struct arrival *arrival, const struct arrival_spec *spec, uint64_t seed,
                  uint64_t stream);

/* The next request's time, from the flow's start; never less than the one before. */
uint64_t arrival_next_ns(struct arrival *arrival);

#endif
