/* SPDX-License-Identifier: Apache-2.0 */
/*
 * property.h: random numbers, exact tags and random cases for the property tests of sched/.
 *
 * A test program runs many cases, each from its own seed. The first seed is SPILLWAY_TEST_SEED or
 * drawn anew, SPILLWAY_TEST_RUNS the number of cases; a failing case prints the seed to repeat it:
 *     SPILLWAY_TEST_SEED=... SPILLWAY_TEST_RUNS=1 build/release/tests/property/sched/test_NAME
 *
 * Exact tags are 128-bit counts of 1/scale, where every weight divides scale, so that cost/weight
 * is a whole number. Two kinds of weights are drawn:
 *   - powers of two up to 2^19 (scale 2^19): the fixed point of sched/ is exact as well, and every
 *     choice and tag must be equal to the last bit;
 *   - 1 to 16 (scale 720720): the fixed point rounds, and a choice may differ where the exact start
 *     tags are within the bound of engine/vtime.h of each other.
 */
#ifndef SPILLWAY_TESTS_PROPERTY_SCHED_PROPERTY_H
#define SPILLWAY_TESTS_PROPERTY_SCHED_PROPERTY_H

#include "sched/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define ULPS_PER_UNIT (UINT64_C(1) << 20) /* of virtual time, per cost unit at weight 1 */
#define SCALE_BINARY  (INT64_C(1) << 19)
#define SCALE_MIXED   INT64_C(720720)

typedef __int128 exact_t;

struct property_random {
    uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood, 2014). */
static inline uint64_t property_next(struct property_random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in low..high, both included. */
static inline uint64_t property_between(struct property_random *random, uint64_t low, uint64_t high)
{
    return low + property_next(random) % (high - low + 1);
}

static inline bool property_chance(struct property_random *random, unsigned percent)
{
    return property_between(random, 0, 99) < percent;
}

static inline uint64_t property_number_from(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);
    return given != NULL ? strtoull(given, NULL, 0) : otherwise;
}

static inline enum sched_algorithm property_algorithm(struct property_random *random)
{
    return (enum sched_algorithm)property_between(random, 0, SCHED_ALGORITHMS - 1);
}

/* Runs a case for many seeds; `body` uses cmocka's assertions. */
static inline void property_run(const char *name, unsigned runs, void (*body)(uint64_t seed))
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = property_number_from(
        "SPILLWAY_TEST_SEED", ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) % 1000000000);
    uint64_t cases = property_number_from("SPILLWAY_TEST_RUNS", runs);

    printf("%s: %llu cases from SPILLWAY_TEST_SEED=%llu\n", name, (unsigned long long)cases,
           (unsigned long long)seed);
    for (uint64_t i = 0; i < cases; i++)
        body(seed + i);
}

/* Use in place of assert_true inside a case: says which seed failed. */
#define property_check(seed, condition)                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("SPILLWAY_TEST_SEED=%llu: not true: %s", (unsigned long long)(seed),          \
                     #condition);                                                                  \
    } while (0)

/* The arithmetic of one case. `exact`: the fixed point of sched/ is to agree to the last bit. */
struct property_arithmetic {
    int64_t scale;
    uint64_t largest_cost;
    bool binary;
    bool exact;
};

static inline struct property_arithmetic property_arithmetic_draw(struct property_random *random,
                                                                  bool huge_costs)
{
    const uint64_t costs[] = {1, 8, 1000, 1000000, SCHED_COST_MAX};
    struct property_arithmetic a = {.binary = property_chance(random, 60)};
    a.scale = a.binary ? SCALE_BINARY : SCALE_MIXED;
    a.exact = a.binary;
    a.largest_cost = costs[property_between(random, 0, a.binary && huge_costs ? 4 : 3)];
    return a;
}

static inline uint32_t property_weight(struct property_random *random,
                                       const struct property_arithmetic *a)
{
    if (!a->binary)
        return (uint32_t)property_between(random, 1, 16);
    return UINT32_C(1) << property_between(random, 0, property_chance(random, 50) ? 3 : 19);
}

static inline uint64_t property_cost(struct property_random *random,
                                     const struct property_arithmetic *a)
{
    return property_between(random, property_chance(random, 30) ? a->largest_cost : 1,
                            a->largest_cost);
}

static inline exact_t property_charge(const struct property_arithmetic *a, uint64_t cost,
                                      uint32_t weight)
{
    return (exact_t)cost * (a->scale / weight);
}

/*
 * Whether two exact start tags are so close that rounding may have swapped them, when `activations`
 * flows have become backlogged so far. Never where the arithmetic is exact.
 */
static inline bool property_near(const struct property_arithmetic *a, exact_t one, exact_t other,
                                 uint64_t activations)
{
    exact_t gap = one > other ? one - other : other - one;
    return !a->exact && gap * ULPS_PER_UNIT <= (exact_t)(activations + 2) * a->scale;
}

/* The fixed point of an exact tag in 1/SCALE_BINARY. */
static inline uint64_t property_fixed(uint64_t virtual_start, exact_t tag)
{
    return virtual_start + (uint64_t)tag * (ULPS_PER_UNIT / (uint64_t)SCALE_BINARY);
}

/* Somewhere tags are about to wrap, as unsigned or as signed numbers, or anywhere. */
static inline uint64_t property_virtual_start(struct property_random *random)
{
    switch (property_between(random, 0, 3)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - property_between(random, 0, 1000 * ULPS_PER_UNIT);
    case 2:
        return INT64_MAX - property_between(random, 0, 1000 * ULPS_PER_UNIT);
    default:
        return property_next(random);
    }
}

#endif
