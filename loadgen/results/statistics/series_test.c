/* SPDX-License-Identifier: Apache-2.0 */
/* Block means and their test. */
#include "loadgen/results/statistics/series_test.h"

#include <math.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"
#include "loadgen/results/statistics/rank_test.h"

#define NORMAL_975 1.96

static double mean_of(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double covariance(const double *values, size_t count, double mean, size_t lag)
{
    double sum = 0;

    for (size_t i = lag; i < count; i++)
        sum += (values[i] - mean) * (values[i - lag] - mean);
    return sum / (double)count;
}

size_t series_test_block(const double *values, size_t count)
{
    if (count < 4)
        return 1;
    double mean = mean_of(values, count);
    double variance = covariance(values, count, mean, 0);
    double chance = NORMAL_975 / sqrt((double)count);
    double tau = 1;

    for (size_t lag = 1; variance > 0 && lag <= count / 2; lag++) {
        double correlation = covariance(values, count, mean, lag) / variance;

        if (correlation < chance)
            break;
        tau += 2 * correlation;
    }
    return tau > 1 ? (size_t)ceil(2 * tau) : 1;
}

/* Means of whole blocks; what is left over at the end is dropped. */
static double *block_means(const double *values, size_t block, size_t blocks)
{
    double *means = memory_zeroed(blocks, sizeof(*means));

    for (size_t i = 0; i < blocks; i++)
        means[i] = mean_of(values + i * block, block);
    return means;
}

struct series_test series_test(const double *a, size_t n, const double *b, size_t m)
{
    size_t block_a = series_test_block(a, n);
    size_t block_b = series_test_block(b, m);
    struct series_test test = {.p = -1, .block = block_a > block_b ? block_a : block_b};

    test.blocks_a = n / test.block;
    test.blocks_b = m / test.block;
    if (test.blocks_a < SERIES_TEST_BLOCKS || test.blocks_b < SERIES_TEST_BLOCKS)
        return test;
    double *means_a = block_means(a, test.block, test.blocks_a);
    double *means_b = block_means(b, test.block, test.blocks_b);

    test.p = rank_test_p(means_a, test.blocks_a, means_b, test.blocks_b);
    free(means_a);
    free(means_b);
    return test;
}
