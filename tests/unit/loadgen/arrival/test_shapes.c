/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of arrivals: hand-made cases, the inversion against the integral, the integral against a
 * sum of the rate, Poisson gaps on the integral's scale, ends, repeats, speed and scale.
 */
#include "loadgen/arrival/arrival.h"

#include <string.h>

#include "tests/unit/loadgen/statistics.h"

#define NS_PER_S   1000000000ULL
#define SECONDS(s) ((uint64_t)((s)*1e9))

static uint64_t seed;

static double trace_rates[] = {10, 0, 0, 40.5, 3, 0.25};
static const struct trace rates_trace = {.interval_ns = NS_PER_S,
                                         .count = 6,
                                         .rates_per_s = trace_rates,
                                         .total = 53.75,
                                         .length_ns = 6 * NS_PER_S};
static uint64_t trace_times[] = {100, 100, 250, 900};
static const struct trace times_trace = {
    .times = true, .count = 4, .times_ns = trace_times, .total = 4, .length_ns = 1066};

/* One spec of every kind that is walked in pieces, in the forms that matter. */
static const struct arrival_spec shapes[] = {
    {.shape = ARRIVAL_STEP_LIST,
     .steps = {{20, SECONDS(3)}, {0, SECONDS(1)}, {0.5, SECONDS(10)}, {200, SECONDS(0.25)}},
     .steps_count = 4},
    {.shape = ARRIVAL_SINE, .rate_per_s = 50, .amplitude_per_s = 30, .period_ns = SECONDS(7)},
    {.shape = ARRIVAL_SINE, .rate_per_s = 50, .amplitude_per_s = 50, .period_ns = SECONDS(7)},
    {.shape = ARRIVAL_SINE, .rate_per_s = 20, .amplitude_per_s = 100, .period_ns = SECONDS(2)},
    {.shape = ARRIVAL_SINE, .rate_per_s = 0, .amplitude_per_s = 10, .period_ns = SECONDS(5)},
    {.shape = ARRIVAL_RAMP, .rate_per_s = 0, .peak_per_s = 100, .period_ns = SECONDS(20)},
    {.shape = ARRIVAL_RAMP, .rate_per_s = 80, .peak_per_s = 4, .period_ns = SECONDS(20)},
    {.shape = ARRIVAL_TRACE, .trace = &rates_trace, .repeats = true},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const struct {
    double speed;
    double scale;
} clocks[] = {{0, 0}, {1, 3}, {60, 1}, {0.25, 0.5}};
#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

static struct arrival_spec shape_at(size_t shape, size_t clock)
{
    struct arrival_spec spec = shapes[shape];

    spec.speed = clocks[clock].speed;
    spec.scale = clocks[clock].scale;
    return spec;
}

static int read_seed(void **state)
{
    (void)state;
    seed = statistics_seed();
    return 0;
}

static void assert_times(const struct arrival_spec *spec, const uint64_t *wanted_ns, size_t count)
{
    struct arrival arrival;

    arrival_init(&arrival, spec, seed, 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(arrival_next_ns(&arrival), wanted_ns[i]);
}

/* ---------------------------------------------------------------- by hand */

static void steps_with_a_pause(void **state)
{
    struct arrival_spec spec = {.gaps = ARRIVAL_CONSTANT,
                                .shape = ARRIVAL_STEP_LIST,
                                .steps = {{2, SECONDS(1)}, {0, SECONDS(1)}, {4, SECONDS(1)}},
                                .steps_count = 3};
    /* What is due as the pause begins comes at its end; the list begins again after 3 s. */
    static const uint64_t wanted_ns[] = {SECONDS(0.5),  SECONDS(2),   SECONDS(2.25), SECONDS(2.5),
                                         SECONDS(2.75), SECONDS(3),   SECONDS(3.5),  SECONDS(5),
                                         SECONDS(5.25), SECONDS(5.5), SECONDS(5.75), SECONDS(6)};

    (void)state;
    assert_times(&spec, wanted_ns, sizeof(wanted_ns) / sizeof(wanted_ns[0]));
    assert_near(arrival_expected(&spec, SECONDS(1.5)), 2, 1e-9);
    assert_near(arrival_expected(&spec, SECONDS(2.5)), 4, 1e-9);
    assert_near(arrival_expected(&spec, SECONDS(302.5)), 604, 1e-6);
    assert_near(arrival_rate_at(&spec, SECONDS(1)), 0, 0);
    assert_near(arrival_rate_at(&spec, SECONDS(302)), 4, 0);
}

static void a_ramp_goes_as_the_root_of_the_count(void **state)
{
    struct arrival_spec spec = {
        .gaps = ARRIVAL_CONSTANT, .shape = ARRIVAL_RAMP, .peak_per_s = 8, .period_ns = SECONDS(4)};
    /* R(t) = t^2 up to 4 s, 16 + 8 (t - 4) from there. */
    static const uint64_t wanted_ns[] = {SECONDS(1), 1414213562, 1732050807, SECONDS(2)};
    struct arrival arrival;

    (void)state;
    assert_times(&spec, wanted_ns, sizeof(wanted_ns) / sizeof(wanted_ns[0]));
    arrival_init(&arrival, &spec, seed, 0);
    for (int i = 1; i < 16; i++)
        arrival_next_ns(&arrival);
    assert_int_equal(arrival_next_ns(&arrival), SECONDS(4));
    assert_int_equal(arrival_next_ns(&arrival), SECONDS(4.125));
    for (int i = 18; i < 16 + 8 * 100000; i++)
        arrival_next_ns(&arrival);
    assert_int_equal(arrival_next_ns(&arrival), SECONDS(100004));
}

static void a_ramp_to_nothing_ends(void **state)
{
    struct arrival_spec spec = {
        .gaps = ARRIVAL_CONSTANT, .shape = ARRIVAL_RAMP, .rate_per_s = 8, .period_ns = SECONDS(4)};
    struct arrival arrival;
    uint64_t last_ns = 0;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (int i = 1; i < 16; i++)
        last_ns = arrival_next_ns(&arrival);
    assert_true(last_ns < SECONDS(4));
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
}

static void a_square_wave_at_sixty_times_the_speed(void **state)
{
    struct arrival_spec spec = {
        .gaps = ARRIVAL_CONSTANT,
        .shape = ARRIVAL_STEP_LIST,
        .steps = {{15, SECONDS(600)}, {35, SECONDS(600)}, {15, SECONDS(600)}, {150, SECONDS(600)}},
        .steps_count = 4,
        .speed = 60};
    struct arrival arrival;
    int counts[8] = {0};

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (uint64_t at; (at = arrival_next_ns(&arrival)) < SECONDS(80);)
        counts[at / SECONDS(10)]++;
    /* The rates are those written; the first request comes a gap after the start. */
    assert_int_equal(counts[0], 149);
    assert_int_equal(counts[1], 350);
    assert_int_equal(counts[2], 150);
    assert_int_equal(counts[3], 1500);
    assert_int_equal(counts[4], 150);
    assert_int_equal(counts[7], 1500);
}

static void a_trace_of_rates_ends_or_repeats(void **state)
{
    struct arrival_spec spec = {
        .gaps = ARRIVAL_CONSTANT, .shape = ARRIVAL_TRACE, .trace = &rates_trace};
    struct arrival arrival;
    uint64_t at = 0;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (int i = 1; i <= 53; i++) {
        uint64_t next_ns = arrival_next_ns(&arrival);

        assert_true(next_ns >= at && next_ns < 6 * NS_PER_S);
        assert_true(i != 9 || next_ns == SECONDS(0.9));
        assert_true(i != 10 || next_ns == SECONDS(3)); /* the two pauses passed */
        at = next_ns;
    }
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
    assert_near(arrival_expected(&spec, SECONDS(1000)), 53.75, 1e-9);
    assert_near(arrival_rate_at(&spec, SECONDS(1000)), 0, 0);
    spec.repeats = true;
    assert_near(arrival_expected(&spec, SECONDS(6003.5)), 1001 * 53.75 - 40.5 / 2 - 3 - 0.25, 1e-6);
    assert_near(arrival_rate_at(&spec, SECONDS(6003.5)), 40.5, 0);
}

static void a_trace_of_times_is_replayed_to_the_nanosecond(void **state)
{
    struct arrival_spec spec = {.shape = ARRIVAL_TRACE, .trace = &times_trace, .scale = 1};
    static const uint64_t once[] = {100, 100, 250, 900, ARRIVAL_NEVER, ARRIVAL_NEVER};
    static const uint64_t twice_as_fast[] = {50, 50, 125, 450, ARRIVAL_NEVER};
    static const uint64_t again[] = {100, 100, 250, 900, 1166, 1166, 1316, 1966, 2232};

    (void)state;
    assert_times(&spec, once, 6);
    assert_near(arrival_expected(&spec, 250), 2, 0);
    assert_near(arrival_expected(&spec, 251), 3, 0);
    assert_near(arrival_expected(&spec, SECONDS(1)), 4, 0);
    assert_near(arrival_rate_at(&spec, 100), 0, 0);
    spec.speed = 2;
    assert_times(&spec, twice_as_fast, 5);
    spec.speed = 1;
    spec.repeats = true;
    assert_times(&spec, again, 9);
    assert_near(arrival_expected(&spec, 2 * 1066 + 101), 10, 0);
}

/* 100/s * 0.55 s is a little more than 55 in binary: the 55th is due as the pause begins. */
static void rounding_puts_nothing_into_a_pause(void **state)
{
    struct arrival_spec spec = {.gaps = ARRIVAL_CONSTANT,
                                .shape = ARRIVAL_STEP_LIST,
                                .steps = {{100, SECONDS(0.55)}, {0, SECONDS(1)}},
                                .steps_count = 2};
    struct arrival arrival;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (int i = 0; i < 55; i++) {
        uint64_t at_ns = arrival_next_ns(&arrival);

        assert_true(at_ns < SECONDS(0.55) || at_ns == SECONDS(1.55));
    }
}

static void pauses_alone_never_come(void **state)
{
    struct arrival_spec spec = {
        .shape = ARRIVAL_STEP_LIST, .steps = {{0, SECONDS(1)}, {0, SECONDS(2)}}, .steps_count = 2};
    struct arrival arrival;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
    /* So rare that the clock ends before: found without walking every cycle. */
    spec.steps[0].rate_per_s = 1e-15;
    arrival_init(&arrival, &spec, seed, 0);
    assert_true(arrival_next_ns(&arrival) == ARRIVAL_NEVER);
}

/* ---------------------------------------------------------------- for every shape */

static void the_integral_is_the_sum_of_the_rate(void **state)
{
    enum { CUTS = 200000 };

    (void)state;
    for (size_t i = 0; i < SHAPES * CLOCKS; i++) {
        struct arrival_spec spec = shape_at(i / CLOCKS, i % CLOCKS);
        double speed = spec.speed > 0 ? spec.speed : 1;
        double length_s = 31.7 / speed;
        double sum = 0;

        for (int cut = 0; cut < CUTS; cut++)
            sum += arrival_rate_at(&spec, (uint64_t)((cut + 0.5) / CUTS * length_s * 1e9));
        sum *= length_s / CUTS;
        assert_near(arrival_expected(&spec, (uint64_t)(length_s * 1e9)), sum, 2e-4 * sum);
    }
}

static void constant_gaps_invert_the_integral(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * CLOCKS; i++) {
        struct arrival_spec spec = shape_at(i / CLOCKS, i % CLOCKS);
        struct arrival arrival;
        uint64_t before_ns = 0;

        spec.gaps = ARRIVAL_CONSTANT;
        arrival_init(&arrival, &spec, seed, 0);
        for (int k = 1; k <= 5000; k++) {
            uint64_t at_ns = arrival_next_ns(&arrival);
            /* Times are whole nanoseconds, and the inversion is good for a tenth of one; cut down
             * they are early by what the rate makes of that. */
            double off = 3e-9 * (arrival_rate_at(&spec, at_ns) + arrival_rate_at(&spec, at_ns + 2));

            assert_true(at_ns >= before_ns && at_ns != ARRIVAL_NEVER);
            assert_near(arrival_expected(&spec, at_ns), k, off + 1e-9 * k);
            before_ns = at_ns;
        }
    }
}

static void poisson_gaps_are_exponential_in_the_integral(void **state)
{
    enum { COUNT = 20000 };
    static double values[COUNT];

    (void)state;
    for (size_t i = 0; i < SHAPES * CLOCKS; i++) {
        struct arrival_spec spec = shape_at(i / CLOCKS, i % CLOCKS);
        struct arrival arrival;
        double before = 0;

        arrival_init(&arrival, &spec, seed, i);
        for (int k = 0; k < COUNT; k++) {
            double reached = arrival_expected(&spec, arrival_next_ns(&arrival));

            values[k] = -expm1(before - reached);
            before = reached;
        }
        assert_uniform(values, COUNT);
    }
}

static void counts_of_intervals_are_poisson_around_the_integral(void **state)
{
    enum { INTERVALS = 60 };
    const double length_s = 7.3;

    (void)state;
    for (size_t shape = 0; shape < SHAPES; shape++) {
        struct arrival_spec spec = shape_at(shape, 0);
        double counts[INTERVALS] = {0};
        double expected[INTERVALS];
        size_t used = 0;
        struct arrival arrival;

        spec.scale = 10;
        arrival_init(&arrival, &spec, seed, 100 + shape);
        for (uint64_t at; (at = arrival_next_ns(&arrival)) < SECONDS(INTERVALS * length_s);)
            counts[(size_t)((double)at / 1e9 / length_s)]++;
        for (size_t i = 0; i < INTERVALS; i++) {
            double more = arrival_expected(&spec, SECONDS((double)(i + 1) * length_s)) -
                          arrival_expected(&spec, SECONDS((double)i * length_s));

            /* Chi squared wants counts that are not small. */
            if (more < 20)
                continue;
            counts[used] = counts[i];
            expected[used++] = more;
        }
        assert_true(used > INTERVALS / 2);
        assert_counts(counts, expected, used, used);
    }
}

static void nothing_comes_where_the_rate_is_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * CLOCKS; i++) {
        struct arrival_spec spec = shape_at(i / CLOCKS, i % CLOCKS);
        struct arrival arrival;

        arrival_init(&arrival, &spec, seed, 200 + i);
        for (int k = 0; k < 5000; k++) {
            uint64_t at_ns = arrival_next_ns(&arrival);

            /* A nanosecond on either side: a time is cut down to a whole one. */
            assert_true(arrival_rate_at(&spec, at_ns) > 0 || arrival_rate_at(&spec, at_ns + 1) > 0);
        }
    }
}

static void ten_million_requests_do_not_drift(void **state)
{
    struct arrival_spec spec = {
        .gaps = ARRIVAL_CONSTANT,
        .shape = ARRIVAL_STEP_LIST,
        .steps = {{1000.0 / 3, SECONDS(0.3)}, {0, SECONDS(0.1)}, {3000, SECONDS(0.3)}},
        .steps_count = 3};
    struct arrival arrival;
    uint64_t at_ns = 0;

    (void)state;
    arrival_init(&arrival, &spec, seed, 0);
    for (int k = 1; k <= 10000000; k++)
        at_ns = arrival_next_ns(&arrival);
    /* 1000 a cycle of 0.7 s: the last one is due as the 10000th ends. */
    assert_near((double)at_ns, 7000e9, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_with_a_pause),
        cmocka_unit_test(a_ramp_goes_as_the_root_of_the_count),
        cmocka_unit_test(a_ramp_to_nothing_ends),
        cmocka_unit_test(a_square_wave_at_sixty_times_the_speed),
        cmocka_unit_test(a_trace_of_rates_ends_or_repeats),
        cmocka_unit_test(a_trace_of_times_is_replayed_to_the_nanosecond),
        cmocka_unit_test(rounding_puts_nothing_into_a_pause),
        cmocka_unit_test(pauses_alone_never_come),
        cmocka_unit_test(the_integral_is_the_sum_of_the_rate),
        cmocka_unit_test(constant_gaps_invert_the_integral),
        cmocka_unit_test(poisson_gaps_are_exponential_in_the_integral),
        cmocka_unit_test(counts_of_intervals_are_poisson_around_the_integral),
        cmocka_unit_test(nothing_comes_where_the_rate_is_nothing),
        cmocka_unit_test(ten_million_requests_do_not_drift),
    };

    return cmocka_run_group_tests(tests, read_seed, NULL);
}
