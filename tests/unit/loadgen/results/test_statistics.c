/* SPDX-License-Identifier: Apache-2.0 */
/* Rank-sum test against tabulated values, Holm by hand, block lengths, false alarms, knees. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/base/rng.h"
#include "loadgen/results/statistics/knee.h"
#include "loadgen/results/statistics/rank_test.h"
#include "loadgen/results/statistics/series_test.h"

static uint64_t seed_of_run(void)
{
    const char *text = getenv("SPILLWAY_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 42;

    print_message("seed %llu (SPILLWAY_TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

static void near(double got, double wanted, double within)
{
    if (fabs(got - wanted) > within)
        fail_msg("%.9g, wanted %.9g within %g", got, wanted, within);
}

/* ---------------------------------------------------------------- the rank-sum test */

static void u_counts_pairs(void **state)
{
    static const double a[] = {1, 4, 6};
    static const double b[] = {2, 3, 5, 7};
    static const double equal[] = {4, 4};
    double ties;

    (void)state;
    /* 1 is above none of b, 4 above 2, 6 above 3. */
    near(rank_test_u(a, 3, b, 4, &ties), 5, 0);
    near(ties, 0, 0);
    near(rank_test_u(b, 4, a, 3, NULL), 12 - 5, 0);
    /* 1 below both, 4 level with both, 6 above both; three fours: 27 - 3. */
    near(rank_test_u(a, 3, equal, 2, &ties), 0 + 1 + 2, 0);
    near(ties, 24, 0);
}

/* The first `below` values of a lie below all of b, the last one of a above `above` of b. */
static double p_of_u(size_t n, size_t m, size_t u)
{
    double a[32];
    double b[32];

    for (size_t i = 0; i < n; i++)
        a[i] = (double)i;
    for (size_t i = 0; i < m; i++)
        b[i] = 100 + (double)i;
    /* Each step of the topmost of a past one of b adds one to U. */
    for (size_t i = n; u > 0 && i-- > 0;) {
        size_t steps = u < m ? u : m;

        a[i] = 99.5 + (double)steps + 0.01 * (double)i;
        u -= steps;
    }
    return rank_test_p(a, n, b, m);
}

static void small_samples_are_exact(void **state)
{
    (void)state;
    /* Of C(10, 5) = 252 orders one has U = 0, one 1, two 2, three 3. */
    near(p_of_u(5, 5, 0), 2.0 / 252, 1e-12);
    near(p_of_u(5, 5, 1), 4.0 / 252, 1e-12);
    near(p_of_u(5, 5, 2), 8.0 / 252, 1e-12);
    near(p_of_u(5, 5, 3), 14.0 / 252, 1e-12);
    near(p_of_u(3, 4, 0), 2.0 / 35, 1e-12);
    near(p_of_u(1, 1, 0), 1, 1e-12);
    near(p_of_u(1, 9, 0), 2.0 / 10, 1e-12);
}

/* Critical values of the usual tables, two-sided, 0.05: U is just inside, U + 1 is not. */
static void critical_values_are_those_of_the_tables(void **state)
{
    static const struct {
        size_t n;
        size_t m;
        size_t critical;
    } table[] = {{5, 5, 2},    {5, 8, 6},    {8, 8, 13},   {8, 10, 17},  {10, 10, 23},
                 {12, 15, 49}, {15, 15, 64}, {10, 20, 55}, {20, 20, 127}};

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_true(p_of_u(table[i].n, table[i].m, table[i].critical) <= 0.05);
        assert_true(p_of_u(table[i].n, table[i].m, table[i].critical + 1) > 0.05);
    }
}

static void large_samples_agree_with_the_exact_test(void **state)
{
    double exact = p_of_u(20, 20, 127);
    double a[21];
    double b[20];

    (void)state;
    /* One more value, in the middle, and the normal approximation takes over. */
    for (size_t i = 0; i < 20; i++) {
        a[i] = (double)i;
        b[i] = (double)i + 6.1;
    }
    double small = rank_test_p(a, 20, b, 20);

    a[20] = 12.7;
    near(rank_test_p(a, 21, b, 20), small, 0.01);
    assert_true(exact > 0.045 && exact < 0.05);
}

static void ties_lower_the_variance(void **state)
{
    static const double a[] = {0, 0, 0, 0, 0, 0, 0, 1};
    static const double b[] = {0, 0, 0, 0, 1, 1, 1, 1};
    static const double same[] = {3, 3, 3};

    (void)state;
    /* U = 8 * 4 / 2 ... by hand: pairs of a above b 4, level 28 + 4 halves: U = 4 + 16 = 20;
     * ties 11^3 - 11 + 5^3 - 5 = 1440; variance 64/12 * (17 - 1440/240) = 58.667; z = 11.5/7.6594.
     */
    near(rank_test_u(a, 8, b, 8, NULL), 20, 0);
    near(rank_test_p(a, 8, b, 8), erfc(11.5 / sqrt(64.0 / 12 * 11) / sqrt(2)), 1e-9);
    near(rank_test_p(same, 3, same, 3), 1, 0);
    near(rank_test_p(same, 0, same, 3), 1, 0);
}

static void holm_by_hand(void **state)
{
    double p[] = {0.01, 0.04, -1, 0.03, 0.005};

    (void)state;
    rank_test_holm(p, 5);
    /* 4 * 0.005, 3 * 0.01, 2 * 0.03, then 1 * 0.04, which is not below the one before. */
    near(p[4], 0.02, 1e-12);
    near(p[0], 0.03, 1e-12);
    near(p[3], 0.06, 1e-12);
    near(p[1], 0.06, 1e-12);
    near(p[2], -1, 0);
}

/* ---------------------------------------------------------------- series */

/* An autoregressive series: each value `memory` times the one before, and a draw. */
static void draw_series(struct rng *rng, double memory, double level, double *out, size_t count)
{
    double value = 0;

    for (size_t i = 0; i < count + 50; i++) {
        double normal = sqrt(-2 * log(1 - rng_unit(rng))) * cos(2 * M_PI * rng_unit(rng));

        value = memory * value + normal;
        if (i >= 50)
            out[i - 50] = level + value;
    }
}

static void blocks_are_as_long_as_seconds_depend(void **state)
{
    static double values[2000];
    struct rng rng;

    (void)state;
    rng_init(&rng, seed_of_run(), 1);
    draw_series(&rng, 0, 0, values, 2000);
    assert_true(series_test_block(values, 2000) <= 3);
    /* tau of such a series is (1 + memory) / (1 - memory). */
    draw_series(&rng, 0.5, 0, values, 2000);
    size_t short_memory = series_test_block(values, 2000);

    draw_series(&rng, 0.8, 0, values, 2000);
    size_t long_memory = series_test_block(values, 2000);

    print_message("blocks %zu and %zu\n", short_memory, long_memory);
    assert_true(short_memory >= 5 && short_memory <= 8);
    assert_true(long_memory >= 13 && long_memory <= 25);
    for (size_t i = 0; i < 2000; i++)
        values[i] = 7;
    assert_int_equal(series_test_block(values, 2000), 1);
    assert_int_equal(series_test_block(values, 0), 1);
}

/* How often of 2000 a difference is found where there is none, or where there is one. */
static double alarms(struct rng *rng, double memory, double apart, size_t seconds, bool blocks)
{
    double *a = calloc(seconds, sizeof(*a));
    double *b = calloc(seconds, sizeof(*b));
    unsigned told = 0;
    unsigned found = 0;

    for (int i = 0; i < 2000; i++) {
        draw_series(rng, memory, 0, a, seconds);
        draw_series(rng, memory, apart, b, seconds);
        struct series_test test = series_test(a, seconds, b, seconds);
        double p = blocks ? test.p : rank_test_p(a, seconds, b, seconds);

        told += p >= 0;
        found += p >= 0 && p < 0.05;
    }
    free(a);
    free(b);
    print_message("memory %.1f, %zu s, apart %.1f: found %u of %u\n", memory, seconds, apart, found,
                  told);
    return told ? (double)found / told : 0;
}

static void false_alarms_are_rare_and_differences_found(void **state)
{
    struct rng rng;

    (void)state;
    rng_init(&rng, seed_of_run(), 2);
    assert_true(alarms(&rng, 0, 0, 60, true) < 0.07);
    assert_true(alarms(&rng, 0.5, 0, 120, true) < 0.10);
    assert_true(alarms(&rng, 0.7, 0, 300, true) < 0.10);
    /* What the blocks are there for. */
    assert_true(alarms(&rng, 0.7, 0, 300, false) > 0.3);
    assert_true(alarms(&rng, 0, 1, 60, true) > 0.95);
    assert_true(alarms(&rng, 0.5, 1.5, 300, true) > 0.95);
}

static void too_few_seconds_are_said(void **state)
{
    static const double a[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
    struct series_test test = series_test(a, 10, a, 7);

    (void)state;
    assert_true(test.p < 0);
    test = series_test(a, 10, a, 8);
    assert_int_equal(test.block, 1);
    assert_int_equal(test.blocks_b, 8);
    assert_true(test.p > 0.9);
}

/* ---------------------------------------------------------------- knees */

static void the_knee_of_known_curves(void **state)
{
    static const double x[] = {0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000};
    static const double straight[] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
    static const double saturated[] = {0, 100, 200, 300, 400, 400, 400, 400, 400, 400, 400};
    static const double falling[] = {0, 100, 200, 300, 395, 380, 350, 300, 250, 220, 200};
    static const double bump[] = {0, 10, 20, 30, 40, 57, 65, 73, 81, 90, 100};
    static const double flat[] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    double paper[10];
    double places[10];

    (void)state;
    assert_int_equal(knee_find(x, saturated, 11), 4);
    assert_int_equal(knee_find(x, falling, 11), 4);
    assert_int_equal(knee_find(x, straight, 11), KNEE_NONE);
    assert_int_equal(knee_find(x, flat, 11), KNEE_NONE);
    /* Less above the diagonal than one step of ten. */
    assert_int_equal(knee_find(x, bump, 11), KNEE_NONE);
    assert_int_equal(knee_find(x, saturated, 2), KNEE_NONE);
    /* The paper's own example, y = -1 / (x + 0.1) + 5 on [0, 1] in ten points: the knee is at 0.22.
     */
    for (int i = 0; i < 10; i++) {
        places[i] = i / 9.0;
        paper[i] = -1 / (places[i] + 0.1) + 5;
    }
    assert_int_equal(knee_find(places, paper, 10), 2);
    /* A circle's quarter: largest distance above the diagonal at sqrt(2) - 1 scaled, 0.29. */
    double arc[101];
    double along[101];

    for (int i = 0; i <= 100; i++) {
        along[i] = i / 100.0;
        arc[i] = sqrt(1 - (1 - along[i]) * (1 - along[i]));
    }
    assert_int_equal(knee_find(along, arc, 101), 29);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u_counts_pairs),
        cmocka_unit_test(small_samples_are_exact),
        cmocka_unit_test(critical_values_are_those_of_the_tables),
        cmocka_unit_test(large_samples_agree_with_the_exact_test),
        cmocka_unit_test(ties_lower_the_variance),
        cmocka_unit_test(holm_by_hand),
        cmocka_unit_test(blocks_are_as_long_as_seconds_depend),
        cmocka_unit_test(false_alarms_are_rare_and_differences_found),
        cmocka_unit_test(too_few_seconds_are_said),
        cmocka_unit_test(the_knee_of_known_curves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
