/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulation in virtual time: flows of requests, the project's scheduler, a disk array.
 *
 *   arrivals, clients ──► sched_enqueue ──► sched_dispatch ──► array ──► sched_complete
 *      (flow_spec)             │                 ▲                            │
 *                              └──── after every event: dispatch until NULL ──┘
 *
 * The scheduler is the one of sched/, called as any other user of it calls it; only time is made
 * up. Every flow is pinned (sched_flow_pin): it is one that was declared, so rw keeps its window
 * for it while it is idle. The charge of a request is its cost, from beginning to end.
 *
 * A run is repeatable: same configuration, same result to the last bit. Each flow draws its
 * arrivals, think times, disks and service times from generators of its own, so two algorithms get
 * the very same requests, and so does a flow whose neighbours change.
 *
 * Response time: from the arrival to the end of service. Requests that have not ended at the end of
 * the run are in no response time; `waiting` tells how many there are.
 *
 * Requests come from a free list that only grows: no allocation per request.
 */
#ifndef BENCH_SIM_SIM_H
#define BENCH_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "bench/sim/array.h"
#include "loadgen/base/histogram.h"
#include "loadgen/client/flow_spec.h"
#include "sched/sched.h"

#define SIM_FLOWS_MAX 10000U

struct sim_config {
    struct sched_params sched;
    struct array_config array;
    const struct flow_spec *flows; /* parsed as FLOW_SIMULATED; kept by the caller */
    uint32_t flow_count;           /* 1 to SIM_FLOWS_MAX */
    uint64_t end_ns;               /* no arrivals from here on, and the end of the last interval */
    uint64_t warmup_ns;            /* what happens earlier is not metered; the intervals show it */
    uint64_t interval_ns;          /* of the time series; 0: none is kept */
    uint64_t seed;
};

/* What happened in the metered time. */
struct sim_meter {
    uint64_t offered;   /* arrivals, refused ones included */
    uint64_t refused;   /* by the scheduler: a limit of queued requests, or of the rate */
    uint64_t completed; /* ends of service, whenever the request came */
    double wait_ns;     /* sum over the completed ones of their time in the scheduler */
    struct histogram response;
};

/* What happened in one interval of the time series. */
struct sim_interval {
    uint64_t offered;
    uint64_t refused;
    uint64_t completed;
    double response_ns;   /* sum over the completed ones */
    uint64_t waiting;     /* in the scheduler at its end */
    uint64_t outstanding; /* at the array at its end */
};

struct sim;

/*
 * A simulation at time 0. NULL and errno = EINVAL when the scheduler refuses its parameters or a
 * flow's weight or terms. Running out of memory ends the program (loadgen/base/memory.h).
 */
struct sim *sim_create(const struct sim_config *config);
void sim_destroy(struct sim *sim); /* NULL is accepted */

/*
 * Lets everything up to `until_ns` happen. Call it with the end for a whole run, or in steps, with
 * changes to the scheduler in between (weights, depth, algorithm) by whoever plays the operator.
 */
void sim_advance(struct sim *sim, uint64_t until_ns);

/* The scheduler and a flow in it, e.g. for sched_set_depth, sched_flow_set_weight. */
struct sched *sim_sched(struct sim *sim);
struct sched_flow *sim_sched_flow(struct sim *sim, uint32_t flow);

/* ---- results, valid until sim_destroy() --------------------------------------------------- */

const struct sim_meter *sim_flow_meter(const struct sim *sim, uint32_t flow);

/* `count` intervals that have ended, oldest first. */
const struct sim_interval *sim_flow_series(const struct sim *sim, uint32_t flow, size_t *count);

/* Requests of a flow in the scheduler or at the array now. */
uint64_t sim_flow_waiting(const struct sim *sim, uint32_t flow);

uint64_t sim_now_ns(const struct sim *sim);
uint64_t sim_events(const struct sim *sim);    /* fired since the start */
uint64_t sim_requests(const struct sim *sim);  /* offered since the start */
double sim_utilisation(const struct sim *sim); /* of the disks, since the start, 0 to 1 */

#endif
