/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms as percentile text. */
#include "loadgen/results/summary/histogram_text.h"

#include <math.h>

static double bucket_middle(const struct histogram *histogram, size_t bucket)
{
    uint64_t start = histogram_bucket_start(bucket);
    uint64_t half = (histogram_bucket_start(bucket + 1) - start) / 2;

    return fmin(fmax((double)(start + half), (double)histogram->min), (double)histogram->max);
}

static double deviation_ns(const struct histogram *histogram)
{
    double mean = histogram_mean(histogram);
    double sum = 0;

    for (size_t i = 0; histogram->total && i < HISTOGRAM_BUCKETS; i++) {
        double off = bucket_middle(histogram, i) - mean;

        if (histogram->counts[i])
            sum += (double)histogram->counts[i] * off * off;
    }
    return histogram->total ? sqrt(sum / (double)histogram->total) : 0;
}

void histogram_text_write(FILE *out, const char *name, const struct histogram *histogram)
{
    uint64_t seen = 0;
    size_t filled = 0;

    if (name)
        fprintf(out, "# flow %s\n", name);
    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    for (size_t i = 0; seen < histogram->total && i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i] == 0)
            continue;
        filled++;
        seen += histogram->counts[i];
        double share = (double)seen / (double)histogram->total;

        if (seen < histogram->total)
            fprintf(out, "%12.6f %14.12f %10llu %14.2f\n", bucket_middle(histogram, i) / 1e6, share,
                    (unsigned long long)seen,
                    (double)histogram->total / (double)(histogram->total - seen));
        else
            fprintf(out, "%12.6f %14.12f %10llu\n", (double)histogram->max / 1e6, 1.0,
                    (unsigned long long)seen);
    }
    fprintf(out, "#[Mean    = %12.6f, StdDeviation   = %12.6f]\n", histogram_mean(histogram) / 1e6,
            deviation_ns(histogram) / 1e6);
    fprintf(out, "#[Max     = %12.6f, Total count    = %12llu]\n", (double)histogram->max / 1e6,
            (unsigned long long)histogram->total);
    fprintf(out, "#[Buckets = %12zu, SubBuckets     = %12u]\n", filled, 2 * HISTOGRAM_HALF);
}
