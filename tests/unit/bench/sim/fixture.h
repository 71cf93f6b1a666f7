/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's tests share: the seed, a run described by flow texts, approximate equality.
 */
#ifndef TESTS_UNIT_BENCH_SIM_FIXTURE_H
#define TESTS_UNIT_BENCH_SIM_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sim/sim.h"

#define NS_PER_S    UINT64_C(1000000000)
#define NS_PER_MS   UINT64_C(1000000)
#define FLOWS_LIMIT 4

/* SPILLWAY_TEST_SEED, or 1: the tests judge means over a long time, not one draw. */
static inline uint64_t fixture_seed(void)
{
    const char *text = getenv("SPILLWAY_TEST_SEED");

    return text ? strtoull(text, NULL, 0) : 1;
}

/* A configuration of the array that fits the paper's, with flows as on spillsim's command line. */
struct fixture {
    struct sim_config config;
    struct flow_spec flows[FLOWS_LIMIT];
};

static inline void fixture_init(struct fixture *fixture, const char *algorithm, uint64_t depth,
                                uint64_t seconds)
{
    int number = sched_algorithm_from_name(algorithm);

    assert_true(number >= 0);
    memset(fixture, 0, sizeof(*fixture));
    fixture->config = (struct sim_config){
        .sched = {.algorithm = (enum sched_algorithm)number, .depth = depth},
        .array = {.disks = 4, .service = {DISTRIBUTION_EXPONENTIAL, 6700000}},
        .flows = fixture->flows,
        .end_ns = seconds * NS_PER_S,
        .seed = fixture_seed(),
    };
}

static inline void fixture_flow(struct fixture *fixture, const char *text)
{
    char error[FLOW_ERROR_BYTES] = "";
    uint32_t *count = &fixture->config.flow_count;

    assert_true(*count < FLOWS_LIMIT);
    if (flow_spec_parse(text, FLOW_SIMULATED, &fixture->flows[*count], error) != 0)
        fail_msg("%s: %s", text, error);
    (*count)++;
}

/* The run, to its end; sim_destroy() is due. */
static inline struct sim *fixture_run(const struct fixture *fixture)
{
    struct sim *sim = sim_create(&fixture->config);

    assert_non_null(sim);
    sim_advance(sim, fixture->config.end_ns);
    return sim;
}

static inline double fixture_per_s(const struct fixture *fixture, const struct sim *sim,
                                   uint32_t flow)
{
    uint64_t metered_ns = fixture->config.end_ns - fixture->config.warmup_ns;

    return (double)sim_flow_meter(sim, flow)->completed * 1e9 / (double)metered_ns;
}

static inline double fixture_response_ms(const struct sim *sim, uint32_t flow)
{
    return histogram_mean(&sim_flow_meter(sim, flow)->response) / 1e6;
}

#define assert_within(value, low, high)                                                            \
    do {                                                                                           \
        double value_ = (value);                                                                   \
                                                                                                   \
        if (!(value_ >= (low) && value_ <= (high)))                                                \
            fail_msg("%s is %g, expected %g to %g", #value, value_, (double)(low),                 \
                     (double)(high));                                                              \
    } while (0)

/* Within `part` of the expectation, e.g. 0.02 for two per cent. */
#define assert_near(value, expected, part)                                                         \
    assert_within(value, (expected) * (1 - (part)), (expected) * (1 + (part)))

#endif
