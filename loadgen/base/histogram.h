/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log-linear histogram of 64-bit values that keeps three significant decimal digits.
 *
 * Values below 2048 have a bucket each. Above, every power of two is cut into 1024 equal buckets,
 * so a bucket is never wider than 1/1024 of the values in it: a value read back (the middle of its
 * bucket) is off by less than 0.05 %.
 *
 *   value      0 .. 2047 | 2048 .. 4095 | 4096 .. 8191 | ...
 *   width              1 |            2 |            4 | ...
 *   buckets         2048 |         1024 |         1024 | ...
 *
 * Values past HISTOGRAM_MAX_VALUE are counted in the last bucket; `max` stays exact. Fixed size,
 * nothing to free; adding is O(1), the rest is one pass over the buckets from min to max.
 */
#ifndef LOADGEN_BASE_HISTOGRAM_H
#define LOADGEN_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_HALF_BITS 10
#define HISTOGRAM_HALF      (1U << HISTOGRAM_HALF_BITS)
/* 2^43 ns is a little over 2 hours and 26 minutes. */
#define HISTOGRAM_MAX_BITS  43
#define HISTOGRAM_MAX_VALUE ((1ULL << HISTOGRAM_MAX_BITS) - 1)
#define HISTOGRAM_BUCKETS   ((HISTOGRAM_MAX_BITS - HISTOGRAM_HALF_BITS + 1) * HISTOGRAM_HALF)

struct histogram {
    uint64_t total;
    uint64_t min;
    uint64_t max;
    double sum;
    uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *histogram);
/* As reset, of a histogram in use: costs the range of its values, not all the buckets. */
void histogram_clear(struct histogram *histogram);
void histogram_add(struct histogram *histogram, uint64_t value);

/* Adds every count of `from` to `into`. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * The smallest recorded value that at least `quantile` (0..1) of the values do not exceed, within
 * the bucket's width; never outside [min, max]. 0 when nothing was recorded.
 */
uint64_t histogram_quantile(const struct histogram *histogram, double quantile);

/* Exact, from the sum; 0 when nothing was recorded. */
double histogram_mean(const struct histogram *histogram);

/* The bucket of a value, and the least value of a bucket: exposed for the tests. */
size_t histogram_bucket(uint64_t value);
uint64_t histogram_bucket_start(size_t bucket);

#endif
