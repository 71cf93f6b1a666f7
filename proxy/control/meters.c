/* SPDX-License-Identifier: Apache-2.0 */
/* Reading histograms: see meters.h. Names, units and help are in api/meter_table.c. */
#include "proxy/control/meters.h"

uint64_t histogram_bucket_end_ns(unsigned bucket)
{
    if (bucket >= HISTOGRAM_BUCKETS - 1)
        return UINT64_MAX;
    uint64_t quarter = UINT64_C(1) << (HISTOGRAM_FIRST_SHIFT + bucket / 4 - 2);
    return (5 + bucket % 4) * quarter;
}

static uint64_t bucket_start_ns(unsigned bucket)
{
    return bucket == 0 ? 0 : histogram_bucket_end_ns(bucket - 1);
}

uint64_t histogram_quantile_ns(const struct histogram *histogram, double quantile)
{
    double rank = quantile * (double)histogram->count;
    double below = 0;
    unsigned last = 0;

    if (histogram->count == 0)
        return 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        double count = (double)histogram->buckets[i];
        if (count == 0)
            continue;
        last = i;
        if (below + count >= rank) {
            uint64_t start = bucket_start_ns(i);
            uint64_t end = histogram_bucket_end_ns(i);
            double part = rank > below ? (rank - below) / count : 0;
            /* The last bucket has no end to interpolate towards. */
            return end == UINT64_MAX ? start : start + (uint64_t)(part * (double)(end - start));
        }
        below += count;
    }
    return bucket_start_ns(last);
}
