/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two time series differ in level. Neighbouring seconds of a run resemble each other (a
 * queue that is long stays so for a while), so they are no independent samples: a test of the bare
 * seconds finds differences where there are none.
 *
 * Hence blocks: tau = 1 + 2 * (the autocorrelations of lags 1, 2, ... as long as they are above
 * what chance gives, 1.96 / sqrt(n)) says how many seconds one independent value takes; where tau
 * is above 1, blocks are 2 tau long, which leaves neighbouring block means nearly uncorrelated.
 * Both series are cut into blocks of the longer length, and their means go into the rank-sum test.
 */
#ifndef LOADGEN_RESULTS_STATISTICS_SERIES_TEST_H
#define LOADGEN_RESULTS_STATISTICS_SERIES_TEST_H

#include <stddef.h>

/* With fewer blocks on either side nothing can be told. */
#define SERIES_TEST_BLOCKS 8U

struct series_test {
    double p; /* negative: too short to tell */
    size_t block;
    size_t blocks_a;
    size_t blocks_b;
};

/* In places of the series; at least 1. */
size_t series_test_block(const double *values, size_t count);

struct series_test series_test(const double *a, size_t n, const double *b, size_t m);

#endif
