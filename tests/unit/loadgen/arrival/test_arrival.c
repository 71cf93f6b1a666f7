/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steady and on/off arrivals: means, spread, no drift, and that a seed repeats a run. The shapes
 * that are walked piece by piece are in test_shapes.c.
 */
#include "loadgen/arrival/arrival.h"
#include "tests/unit/loadgen/statistics.h"

#define NS_PER_S 1000000000ULL

static uint64_t seed;

static int read_seed(void **state)
{
    (void)state;
    seed = statistics_seed();
    return 0;
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

static void poisson_gaps_are_exponential(void **state)
{
    enum { COUNT = 100000 };
    static double values[COUNT];
    struct arrival_spec spec = {.rate_per_s = 1000};
    struct arrival arrival;
    uint64_t before = 0;

    (void)state;
    arrival_init(&arrival, &spec, seed, 4);
    for (int i = 0; i < COUNT; i++) {
        uint64_t at = arrival_next_ns(&arrival);

        values[i] = -expm1(-(double)(at - before) / 1e6);
        before = at;
    }
    assert_uniform(values, COUNT);
}

static void on_off_sends_in_on_phases_only_at_the_full_rate(void **state)
{
    struct arrival_spec spec = {
        .shape = ARRIVAL_ON_OFF, .rate_per_s = 500, .on_ns = 3 * NS_PER_S, .off_ns = 2 * NS_PER_S};
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
    struct arrival_spec spec = {.gaps = ARRIVAL_CONSTANT,
                                .shape = ARRIVAL_ON_OFF,
                                .rate_per_s = 2,
                                .on_ns = NS_PER_S,
                                .off_ns = 9 * NS_PER_S};
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

/* The first draws of this seed, kept: a change of them changes every recorded run. */
static void the_draws_of_a_seed_stay(void **state)
{
    static const uint64_t steady_ns[] = {984784, 17071976, 25386942, 36206996, 37184804, 39050009};
    static const uint64_t on_off_ns[] = {984784,    47071976,  85386942,
                                         126206996, 127184804, 129050009};
    struct arrival_spec spec = {.rate_per_s = 100};
    struct arrival arrival;

    (void)state;
    arrival_init(&arrival, &spec, 42, 1);
    for (size_t i = 0; i < sizeof(steady_ns) / sizeof(steady_ns[0]); i++)
        assert_int_equal(arrival_next_ns(&arrival), steady_ns[i]);
    spec = (struct arrival_spec){
        .shape = ARRIVAL_ON_OFF, .rate_per_s = 100, .on_ns = 10000000, .off_ns = 30000000};
    arrival_init(&arrival, &spec, 42, 1);
    for (size_t i = 0; i < sizeof(on_off_ns) / sizeof(on_off_ns[0]); i++)
        assert_int_equal(arrival_next_ns(&arrival), on_off_ns[i]);
}

static void a_rate_of_nothing_never_comes(void **state)
{
    struct arrival_spec spec = {.shape = ARRIVAL_STEADY};
    struct arrival arrival;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
    spec.rate_per_s = 1e-12; /* one in 31700 years is past the clock's end */
    spec.gaps = ARRIVAL_CONSTANT;
    arrival_init(&arrival, &spec, seed, 0);
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
}

static void scale_multiplies_and_speed_shortens_phases(void **state)
{
    struct arrival_spec spec = {.gaps = ARRIVAL_CONSTANT,
                                .shape = ARRIVAL_ON_OFF,
                                .rate_per_s = 2,
                                .on_ns = NS_PER_S,
                                .off_ns = 9 * NS_PER_S,
                                .speed = 10,
                                .scale = 10};
    static const uint64_t wanted_ms[] = {50, 1000, 1050, 2000, 2050};
    struct arrival arrival;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (size_t i = 0; i < sizeof(wanted_ms) / sizeof(wanted_ms[0]); i++)
        assert_int_equal(arrival_next_ns(&arrival), wanted_ms[i] * 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_gaps_do_not_drift),
        cmocka_unit_test(poisson_gaps_have_the_mean_and_spread_of_the_exponential),
        cmocka_unit_test(poisson_gaps_are_exponential),
        cmocka_unit_test(on_off_sends_in_on_phases_only_at_the_full_rate),
        cmocka_unit_test(on_off_with_constant_gaps_is_exact),
        cmocka_unit_test(a_seed_repeats_a_run_and_streams_differ),
        cmocka_unit_test(the_draws_of_a_seed_stay),
        cmocka_unit_test(a_rate_of_nothing_never_comes),
        cmocka_unit_test(scale_multiplies_and_speed_shortens_phases),
    };

    return cmocka_run_group_tests(tests, read_seed, NULL);
}
