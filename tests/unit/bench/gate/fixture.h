/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of the gate for its tests: a pool, a load, and the means over five seeds, printed. */
#ifndef TESTS_UNIT_BENCH_GATE_FIXTURE_H
#define TESTS_UNIT_BENCH_GATE_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sim/gate/gate_sim.h"

#define NS_PER_S   1000000000ULL
#define SEEDS      5
#define FIRST_SEED 11

struct figures {
    double wait_ms;
    double p99_ms;
    double used;
    double beyond; /* points refused above the ideal */
    double tries;  /* offers per request served */
    double marked; /* percent */
    double response_ms;
};

static inline struct gate_config pool(enum admit_policy policy, uint32_t slots,
                                      double capacity_per_s)
{
    return (struct gate_config){
        .admit = {.policy = policy, .limit = 64, .seed = 3},
        .slots = slots,
        .capacity_per_s = capacity_per_s,
        .service = {.kind = DISTRIBUTION_EXPONENTIAL},
        .cost = {.kind = DISTRIBUTION_FIXED, .mean = 1},
        .end_ns = 210 * NS_PER_S,
        .warmup_ns = 10 * NS_PER_S,
        .seed = 1,
    };
}

static inline struct flow_spec poisson(double rate_per_s)
{
    struct flow_spec spec;

    flow_spec_init(&spec);
    spec.open_loop = true;
    spec.arrival.rate_per_s = rate_per_s;
    return spec;
}

/* Clients that want the next answer as soon as they have one; a refused one tries again in 50 ms.
 */
static inline struct flow_spec clients(uint32_t count)
{
    struct flow_spec spec;

    flow_spec_init(&spec);
    spec.concurrency = count;
    spec.pause_ns = NS_PER_S / 20;
    return spec;
}

static inline struct figures run(const struct gate_config *config)
{
    struct gate_sim *sim = gate_sim_create(config);

    gate_sim_run(sim);
    const struct gate_meter *meter = gate_sim_meter(sim);
    struct figures figures = {
        .wait_ms = histogram_mean(&meter->wait) / 1e6,
        .p99_ms = (double)histogram_quantile(&meter->wait, 0.99) / 1e6,
        .used = 100 * gate_meter_used(meter, config),
        .beyond = 100 * (gate_meter_refused(meter) - gate_meter_ideal(meter)),
        .tries = gate_meter_tries(meter),
        .marked = 100 * (double)meter->marked / (double)meter->offered,
        .response_ms = histogram_mean(&meter->response) / 1e6,
    };

    assert_true(meter->completed + meter->refused <= meter->offered);
    assert_true(config->mark ? meter->refused == 0 : meter->marked == 0);
    gate_sim_destroy(sim);
    return figures;
}

/* Means over the seeds, printed after `what`. */
static inline struct figures runs_of(struct gate_config *config, const struct flow_spec *flow,
                                     const char *what)
{
    struct figures sum = {0};

    config->flows = flow;
    config->flow_count = 1;
    for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
        config->seed = config->admit.seed = seed;
        struct figures one = run(config);

        sum.wait_ms += one.wait_ms / SEEDS;
        sum.p99_ms += one.p99_ms / SEEDS;
        sum.used += one.used / SEEDS;
        sum.beyond += one.beyond / SEEDS;
        sum.tries += one.tries / SEEDS;
        sum.marked += one.marked / SEEDS;
        sum.response_ms += one.response_ms / SEEDS;
    }
    printf("%-11s D=%-3u C=%-6.0f %s wait %8.2f ms  p99 %8.2f ms  used %6.2f %%  beyond %6.2f "
           "points  tries %5.2f  marked %6.2f %% (seeds %d to %d)\n",
           admit_policy_name(config->admit.policy), config->slots, config->capacity_per_s, what,
           sum.wait_ms, sum.p99_ms, sum.used, sum.beyond, sum.tries, sum.marked, FIRST_SEED,
           FIRST_SEED + SEEDS - 1);
    return sum;
}

/* The same with Poisson arrivals at so many times the capacity. */
static inline struct figures runs(struct gate_config *config, double load)
{
    struct flow_spec flow = poisson(load * config->capacity_per_s);
    char what[32];

    snprintf(what, sizeof(what), "load %-4g", load);
    return runs_of(config, &flow, what);
}

#endif
