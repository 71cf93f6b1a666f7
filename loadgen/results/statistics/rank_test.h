/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two samples come from one distribution: the rank-sum test of Mann and Whitney ("On a test
 * of whether one of two random variables is stochastically larger than the other", 1947),
 * two-sided.
 *
 * U counts the pairs (a, b) with a above b, a tie half. Small samples without ties take U's exact
 * distribution, whose counts are the coefficients of the Gaussian binomial (n + m over n); others
 * the normal approximation, corrected for ties and continuity.
 */
#ifndef LOADGEN_RESULTS_STATISTICS_RANK_TEST_H
#define LOADGEN_RESULTS_STATISTICS_RANK_TEST_H

#include <stddef.h>

/* Up to this many values together the test is exact: C(40, 20) is exact in a double. */
#define RANK_TEST_EXACT 40U

/* U of the first sample; `ties`, unless NULL, is the sum of t^3 - t over groups of t equal values.
 */
double rank_test_u(const double *a, size_t n, const double *b, size_t m, double *ties);

/* The probability of a U as far from its mean, both sides; 1 when a sample is empty. */
double rank_test_p(const double *a, size_t n, const double *b, size_t m);

/*
 * Holm's correction for many tests ("A simple sequentially rejective multiple test procedure",
 * 1979), in place: of k p values, those below 0.05 afterwards are wrong all together in one case
 * of twenty. Negative values stand for tests that were not made and stay.
 */
void rank_test_holm(double *p, size_t count);

#endif
