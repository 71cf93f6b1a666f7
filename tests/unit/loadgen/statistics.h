/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of goodness of fit for what generators draw. Limits are set so that a right generator fails
 * for one seed in a million; the seed is 42 or SPILLWAY_TEST_SEED, and is printed.
 */
#ifndef TESTS_UNIT_LOADGEN_STATISTICS_H
#define TESTS_UNIT_LOADGEN_STATISTICS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static inline uint64_t statistics_seed(void)
{
    const char *text = getenv("SPILLWAY_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 42;

    print_message("seed %llu (SPILLWAY_TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

static inline void assert_near(double value, double wanted, double error)
{
    if (!(fabs(value - wanted) <= error))
        fail_msg("%.17g is not %.17g +- %g", value, wanted, error);
}

static inline int statistics_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/*
 * Kolmogorov and Smirnov: the values, put through the distribution function they are thought to
 * have, must be uniform on [0, 1]. Sorts them. The limit is that of the asymptotic distribution:
 * 2 exp(-2 * 2.7^2) is 1e-6.
 */
static inline void assert_uniform(double *values, size_t count)
{
    double distance = 0;

    qsort(values, count, sizeof(*values), statistics_compare);
    for (size_t i = 0; i < count; i++) {
        double below = values[i] - (double)i / (double)count;
        double above = (double)(i + 1) / (double)count - values[i];

        distance = fmax(distance, fmax(below, above));
    }
    if (!(distance * sqrt((double)count) < 2.7))
        fail_msg("Kolmogorov-Smirnov: %g sqrt(%zu) is %g, not below 2.7", distance, count,
                 distance * sqrt((double)count));
}

/* Upper limit of chi squared by Wilson and Hilferty's approximation, 4.75 deviations out. */
static inline double chi_squared_limit(double degrees)
{
    double part = 2 / (9 * degrees);

    return degrees * pow(1 - part + 4.75 * sqrt(part), 3);
}

/* Counts against what was expected of each; `degrees` is their number less what was fitted. */
static inline void assert_counts(const double *counts, const double *expected, size_t count,
                                 size_t degrees)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    if (!(sum < chi_squared_limit((double)degrees)))
        fail_msg("chi squared is %g, not below %g (%zu degrees)", sum,
                 chi_squared_limit((double)degrees), degrees);
}

#endif
