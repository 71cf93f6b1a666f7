/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrival processes and distributions: means, shapes, and that a seed repeats a run. Bounds on
 * random results are five standard errors wide, so another seed fails one run in a million.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "loadgen/base/distribution.h"
#include "loadgen/arrival/arrival.h"

#define NS_PER_S 1000000000ULL

static uint64_t seed;

static int read_seed(void **state)
{
    const char *text = getenv("SPILLWAY_TEST_SEED");

    (void)state;
    seed = text ? strtoull(text, NULL, 10) : 42;
    print_message("seed %llu (SPILLWAY_TEST_SEED)\n", (unsigned long long)seed);
    return 0;
}

static void assert_near(double value, double wanted, double error)
{
    if (value < wanted - error || value > wanted + error)
        fail_msg("%g is not %g +- %g", value, wanted, error);
}

static void constant_gaps_do_not_drift(void **state)
{
    struct arrival_spec spec = {.gaps = ARRIVAL_CONSTANT, .rate_per_s = 3};
    struct arrival arrival;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    assert_int_equal(arrival_next_ns(&arrival), 333333333);
    assert_int_equal(arrival_next_ns(&arrival), 666666666);
    for (int i = 3; i < 3 * 86400; i++)
        arrival_next_ns(&arrival);
    assert_int_equal(arrival_next_ns(&arrival), 86400 * NS_PER_S);
}

static void poisson_gaps_have_the_mean_and_spread_of_the_exponential(void **state)
{
    enum { COUNT = 100000 };
    struct arrival_spec spec = {.gaps = ARRIVAL_POISSON, .rate_per_s = 1000};
    struct arrival arrival;
    uint64_t before = 0;
    double sum = 0;
    double squares = 0;
    int above_mean = 0;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (int i = 0; i < COUNT; i++) {
        uint64_t at = arrival_next_ns(&arrival);
        double gap = (double)(at - before) / 1e6;

        assert_true(at >= before);
        before = at;
        sum += gap;
        squares += gap * gap;
        above_mean += gap > 1.0;
    }
    double mean = sum / COUNT;
    double deviation = sqrt(squares / COUNT - mean * mean);

    assert_near(mean, 1.0, 5 / sqrt(COUNT));
    assert_near(deviation, 1.0, 5 * sqrt(2.0 / COUNT));
    assert_near((double)above_mean / COUNT, exp(-1), 5 * 0.49 / sqrt(COUNT));
}

static void on_off_sends_in_on_phases_only_at_the_full_rate(void **state)
{
    struct arrival_spec spec = {
        .gaps = ARRIVAL_POISSON, .rate_per_s = 500, .on_ns = 3 * NS_PER_S, .off_ns = 2 * NS_PER_S};
    struct arrival arrival;
    uint64_t count = 0;
    uint64_t before = 0;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (;;) {
        uint64_t at = arrival_next_ns(&arrival);

        assert_true(at >= before);
        before = at;
        if (at >= 100 * NS_PER_S)
            break;
        assert_true(at % (5 * NS_PER_S) < 3 * NS_PER_S);
        count++;
    }
    /* 20 cycles of 3 s at 500/s. */
    assert_near((double)count, 30000, 5 * sqrt(30000));
}

static void on_off_with_constant_gaps_is_exact(void **state)
{
    struct arrival_spec spec = {
        .gaps = ARRIVAL_CONSTANT, .rate_per_s = 2, .on_ns = NS_PER_S, .off_ns = 9 * NS_PER_S};
    static const uint64_t wanted_ms[] = {500, 10000, 10500, 20000, 20500};
    struct arrival arrival;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (size_t i = 0; i < sizeof(wanted_ms) / sizeof(wanted_ms[0]); i++)
        assert_int_equal(arrival_next_ns(&arrival), wanted_ms[i] * 1000000);
}

static void a_seed_repeats_a_run_and_streams_differ(void **state)
{
    struct arrival_spec spec = {.gaps = ARRIVAL_POISSON, .rate_per_s = 10};
    struct arrival a;
    struct arrival b;
    struct arrival c;
    int equal = 0;

    (void)state;
    arrival_init(&a, &spec, seed, 1);
    arrival_init(&b, &spec, seed, 1);
    arrival_init(&c, &spec, seed, 2);
    for (int i = 0; i < 1000; i++) {
        uint64_t at = arrival_next_ns(&a);

        assert_int_equal(at, arrival_next_ns(&b));
        equal += at == arrival_next_ns(&c);
    }
    assert_true(equal < 5);
}

/* Mean and standard deviation, both in units of the mean, of each distribution. */
static void distributions_have_their_mean_and_spread(void **state)
{
    enum { COUNT = 200000 };
    static const struct {
        const char *name;
        double deviation;
        double fourth; /* standard error of the squared deviation, generously */
    } rows[] = {
        {"fixed", 0, 0}, {"exponential", 1, 3}, {"uniform", 0.57735, 1}, {"bimodal", 1.5, 4}};

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct distribution distribution = {.mean = 10000000};
        struct rng rng;
        double sum = 0;
        double squares = 0;

        assert_int_equal(distribution_parse(rows[row].name, &distribution.kind), 0);
        assert_string_equal(distribution_name(distribution.kind), rows[row].name);
        rng_init(&rng, seed, row);
        for (int i = 0; i < COUNT; i++) {
            double value = (double)distribution_draw(&distribution, &rng) / 1e7;

            sum += value;
            squares += value * value;
        }
        double mean = sum / COUNT;
        double variance = squares / COUNT - mean * mean;
        double wanted = rows[row].deviation * rows[row].deviation;

        assert_near(mean, 1, 1e-6 + 5 * rows[row].deviation / sqrt(COUNT));
        assert_near(variance, wanted, 1e-5 + 5 * rows[row].fourth / sqrt(COUNT));
    }
}

static void unknown_distributions_are_refused(void **state)
{
    enum distribution_kind kind = DISTRIBUTION_UNIFORM;

    (void)state;
    assert_true(distribution_parse("normal", &kind) < 0);
    assert_true(distribution_parse("", &kind) < 0);
    assert_int_equal(kind, DISTRIBUTION_UNIFORM);
}

static void bounded_draws_stay_below_their_bound(void **state)
{
    struct rng rng;
    uint64_t counts[10] = {0};

    (void)state;
    rng_init(&rng, seed, 3);
    for (int i = 0; i < 100000; i++)
        counts[rng_below(&rng, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_near((double)counts[i], 10000, 5 * sqrt(9000));
    assert_int_equal(rng_below(&rng, 0), 0);
    assert_int_equal(rng_below(&rng, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_gaps_do_not_drift),
        cmocka_unit_test(poisson_gaps_have_the_mean_and_spread_of_the_exponential),
        cmocka_unit_test(on_off_sends_in_on_phases_only_at_the_full_rate),
        cmocka_unit_test(on_off_with_constant_gaps_is_exact),
        cmocka_unit_test(a_seed_repeats_a_run_and_streams_differ),
        cmocka_unit_test(distributions_have_their_mean_and_spread),
        cmocka_unit_test(unknown_distributions_are_refused),
        cmocka_unit_test(bounded_draws_stay_below_their_bound),
    };

    return cmocka_run_group_tests(tests, read_seed, NULL);
}
