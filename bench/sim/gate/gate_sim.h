/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An admission policy of sched/ in front of a pool of slots, in virtual time.
 *
 *   flows ──► admit_offer ──► FIFO ──admit_dispatch──► slots ──admit_complete──► done
 *                 │                        │
 *              refused ◄───────────────────┘   an open flow's request is lost; a closed loop's
 *                                              client comes again after its pause
 *           or marked, and goes on             a closed loop's client is not heard for
 *                                              admit_mark_ns() from then on
 *
 * A slot serves one request at a time, for cost * drawn service time / present capacity. Capacity
 * steps change what starts from then on; what runs goes on to its end as it is. All capacities are
 * in requests (or cost) per second of the whole pool; a slot's mean service time is slots /
 * capacity.
 *
 * A run is repeatable, and policies get the very same requests: arrivals, costs and service times
 * come from generators of their own, and a request's cost and service time are drawn when it comes.
 * Clients of a closed loop begin at random within a second: they don't come in step.
 */
#ifndef BENCH_SIM_GATE_GATE_SIM_H
#define BENCH_SIM_GATE_GATE_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/base/distribution.h"
#include "loadgen/base/histogram.h"
#include "loadgen/client/flow_spec.h"
#include "sched/admission/admission.h"

#define GATE_STEPS 64

struct gate_step {
    uint64_t from_ns;
    double share; /* of the capacity; above 0 */
};

struct gate_config {
    struct admit_options admit; /* its slots are set from `slots` and the mean cost */
    bool mark;                  /* instead of refusing */
    uint32_t per_connection; /* clients that share one, and are not heard together; 0 counts as 1 */
    uint32_t slots;
    double capacity_per_s;       /* requests of mean cost */
    struct distribution service; /* its kind; the mean follows from the capacity */
    struct distribution cost;    /* of a request; mean 1 fixed: the request form */
    const struct flow_spec *flows;
    uint32_t flow_count;
    struct gate_step steps[GATE_STEPS]; /* in order of time; none: all of the capacity */
    size_t step_count;
    uint64_t end_ns;
    uint64_t warmup_ns;
    uint64_t interval_ns; /* of the series; 0: none */
    uint64_t seed;
};

/* Of the metered time; requests count by when they came, slots' time by the clock. */
struct gate_meter {
    uint64_t offered;
    uint64_t refused;
    uint64_t marked;
    uint64_t completed;
    uint64_t offered_cost;
    uint64_t refused_cost;
    double busy_ns;    /* slot time spent on service */
    double could_cost; /* what the capacity could serve */
    uint64_t queue_peak;
    struct histogram wait;     /* of what was served */
    struct histogram response; /* from the arrival (a client's first try) to the end of service */
};

struct gate_interval {
    uint64_t offered;
    uint64_t refused;
    uint64_t started;
    double wait_ns; /* sum over what started */
    uint64_t queue; /* at its end */
};

struct gate_sim;

struct gate_sim *gate_sim_create(const struct gate_config *config);
void gate_sim_destroy(struct gate_sim *sim); /* NULL is accepted */
void gate_sim_run(struct gate_sim *sim);

const struct gate_meter *gate_sim_meter(const struct gate_sim *sim);
/* The same for one flow, without slots' time and queue. */
const struct gate_meter *gate_sim_flow_meter(const struct gate_sim *sim, uint32_t flow);
const struct gate_interval *gate_sim_intervals(const struct gate_sim *sim, size_t *count);
const struct admit *gate_sim_admit(const struct gate_sim *sim);

/* Of the metered time: the share of slot time in use, of requests (by cost) refused, and of those
 * that no policy could have served. */
double gate_meter_used(const struct gate_meter *meter, const struct gate_config *config);
double gate_meter_refused(const struct gate_meter *meter);
/* Offers per request that was served: 1 without a refusal. */
double gate_meter_tries(const struct gate_meter *meter);
double gate_meter_ideal(const struct gate_meter *meter);

#endif
