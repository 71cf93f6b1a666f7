/* SPDX-License-Identifier: Apache-2.0 */
/* Log-linear histogram; the drawing of the buckets is in the header. */
#include "loadgen/base/histogram.h"

#include <math.h>
#include <string.h>

void histogram_reset(struct histogram *histogram)
{
    memset(histogram, 0, sizeof(*histogram));
    histogram->min = UINT64_MAX;
}

size_t histogram_bucket(uint64_t value)
{
    if (value > HISTOGRAM_MAX_VALUE)
        value = HISTOGRAM_MAX_VALUE;
    if (value < 2 * HISTOGRAM_HALF)
        return (size_t)value;
    unsigned int shift = (unsigned int)(63 - __builtin_clzll(value)) - HISTOGRAM_HALF_BITS;

    return (size_t)shift * HISTOGRAM_HALF + (size_t)(value >> shift);
}

uint64_t histogram_bucket_start(size_t bucket)
{
    if (bucket < (size_t)2 * HISTOGRAM_HALF)
        return bucket;
    size_t shift = bucket / HISTOGRAM_HALF - 1;

    return (uint64_t)(bucket - shift * HISTOGRAM_HALF) << shift;
}

void histogram_clear(struct histogram *histogram)
{
    if (histogram->total > 0) {
        size_t first = histogram_bucket(histogram->min);
        size_t last = histogram_bucket(histogram->max);

        memset(&histogram->counts[first], 0, (last - first + 1) * sizeof(histogram->counts[0]));
    }
    histogram->total = histogram->max = 0;
    histogram->sum = 0;
    histogram->min = UINT64_MAX;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->counts[histogram_bucket(value)]++;
    histogram->total++;
    histogram->sum += (double)value;
    if (value < histogram->min)
        histogram->min = value;
    if (value > histogram->max)
        histogram->max = value;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (from->total == 0)
        return;
    size_t last = histogram_bucket(from->max);

    for (size_t i = histogram_bucket(from->min); i <= last; i++)
        into->counts[i] += from->counts[i];
    into->total += from->total;
    into->sum += from->sum;
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

uint64_t histogram_quantile(const struct histogram *histogram, double quantile)
{
    if (histogram->total == 0)
        return 0;
    uint64_t rank = (uint64_t)ceil(quantile * (double)histogram->total);
    uint64_t seen = 0;

    rank = clamp(rank, 1, histogram->total);
    for (size_t i = histogram_bucket(histogram->min); i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen >= rank) {
            uint64_t start = histogram_bucket_start(i);
            uint64_t width = histogram_bucket_start(i + 1) - start;

            return clamp(start + width / 2, histogram->min, histogram->max);
        }
    }
    return histogram->max;
}

double histogram_mean(const struct histogram *histogram)
{
    return histogram->total ? histogram->sum / (double)histogram->total : 0.0;
}
