/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: the buckets are one gapless row, quantiles are near the sorted truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/control/meters.h"

#define VALUES 2000

static void every_bucket_ends_where_the_next_begins(void **state)
{
    (void)state;
    for (unsigned i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        uint64_t end_ns = histogram_bucket_end_ns(i);

        assert_int_equal(histogram_bucket(end_ns - 1), i);
        assert_int_equal(histogram_bucket(end_ns), i + 1);
    }
    assert_int_equal(histogram_bucket_end_ns(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_bucket(0), 0);
}

static void octaves_end_at_powers_of_two(void **state)
{
    (void)state;
    assert_int_equal(histogram_bucket_end_ns(0), 20480);
    assert_int_equal(histogram_bucket_end_ns(3), 1 << 15);
    assert_int_equal(histogram_bucket_end_ns(7), 1 << 16);
    assert_true(histogram_bucket_end_ns(HISTOGRAM_BUCKETS - 2) > UINT64_C(60000000000));
}

static void an_empty_histogram_has_no_quantile(void **state)
{
    struct histogram histogram = {0};

    (void)state;
    assert_int_equal(histogram_quantile_ns(&histogram, 0.5), 0);
    assert_int_equal(histogram_quantile_ns(&histogram, 0), 0);
    assert_int_equal(histogram_quantile_ns(&histogram, 1), 0);
}

static void quantiles_interpolate_within_a_bucket(void **state)
{
    struct histogram histogram = {0};

    (void)state;
    /* Bucket 4 is [32768, 40960). */
    for (int i = 0; i < 4; i++)
        histogram_add(&histogram, 33000);
    assert_int_equal(histogram.count, 4);
    assert_int_equal(histogram.sum_ns, 132000);
    assert_int_equal(histogram_quantile_ns(&histogram, 0.5), 36864);
    assert_int_equal(histogram_quantile_ns(&histogram, 1), 40960);
}

static void what_is_off_the_scale_counts_at_its_ends(void **state)
{
    struct histogram histogram = {0};

    (void)state;
    histogram_add(&histogram, 0);
    histogram_add(&histogram, UINT64_C(3600000000000));
    assert_int_equal(histogram.buckets[0], 1);
    assert_int_equal(histogram.buckets[HISTOGRAM_BUCKETS - 1], 1);
    assert_true(histogram_quantile_ns(&histogram, 0.25) < 20480);
    assert_int_equal(histogram_quantile_ns(&histogram, 0.99),
                     histogram_bucket_end_ns(HISTOGRAM_BUCKETS - 2));
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The oracle is the sorted list: a quantile lies in the bucket of the true value. */
static void quantiles_are_in_the_bucket_of_the_truth(void **state)
{
    static const double quantiles[] = {0.01, 0.1, 0.5, 0.9, 0.99, 0.999};
    static uint64_t values[VALUES];
    struct histogram histogram = {0};
    const char *given = getenv("SPILLWAY_TEST_SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : 20090;

    (void)state;
    printf("SPILLWAY_TEST_SEED=%u\n", seed);
    for (int i = 0; i < VALUES; i++) {
        /* Even over the octaves, from 2^14 ns to 2^34 ns. */
        unsigned octave = 14 + (unsigned)rand_r(&seed) % 20;
        values[i] = (UINT64_C(1) << octave) +
                    (uint64_t)rand_r(&seed) % (UINT64_C(1) << (octave < 31 ? octave : 31));
        histogram_add(&histogram, values[i]);
    }
    qsort(values, VALUES, sizeof(values[0]), compare);
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        uint64_t truth = values[(size_t)(quantiles[i] * VALUES) - 1];
        unsigned bucket = histogram_bucket(truth);
        uint64_t found = histogram_quantile_ns(&histogram, quantiles[i]);

        assert_true(found <= histogram_bucket_end_ns(bucket));
        assert_true(bucket == 0 || found >= histogram_bucket_end_ns(bucket - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bucket_ends_where_the_next_begins),
        cmocka_unit_test(octaves_end_at_powers_of_two),
        cmocka_unit_test(an_empty_histogram_has_no_quantile),
        cmocka_unit_test(quantiles_interpolate_within_a_bucket),
        cmocka_unit_test(what_is_off_the_scale_counts_at_its_ends),
        cmocka_unit_test(quantiles_are_in_the_bucket_of_the_truth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
