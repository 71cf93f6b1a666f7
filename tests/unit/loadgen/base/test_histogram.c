/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram: bucket borders, three digits everywhere, quantiles against sorted values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/base/histogram.h"
#include "loadgen/base/rng.h"

static struct histogram histogram;
static struct histogram other;

static uint64_t seed_of_run(void)
{
    const char *text = getenv("SPILLWAY_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 42;

    print_message("seed %llu (SPILLWAY_TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

static void buckets_follow_each_other(void **state)
{
    (void)state;
    assert_int_equal(histogram_bucket(0), 0);
    assert_int_equal(histogram_bucket(2047), 2047);
    assert_int_equal(histogram_bucket(2048), 2048);
    assert_int_equal(histogram_bucket(2049), 2048);
    assert_int_equal(histogram_bucket(4095), 3071);
    assert_int_equal(histogram_bucket(4096), 3072);
    assert_int_equal(histogram_bucket(HISTOGRAM_MAX_VALUE), HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(histogram_bucket(histogram_bucket_start(i)), i);
        if (i > 0)
            assert_int_equal(histogram_bucket(histogram_bucket_start(i) - 1), i - 1);
    }
}

static void a_value_reads_back_to_three_digits(void **state)
{
    struct rng rng;

    (void)state;
    rng_init(&rng, seed_of_run(), 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t value = rng_next(&rng) >> (64 - HISTOGRAM_MAX_BITS + (i % 40));
        size_t bucket = histogram_bucket(value);
        uint64_t start = histogram_bucket_start(bucket);
        uint64_t middle = start + (histogram_bucket_start(bucket + 1) - start) / 2;
        double error = (double)middle - (double)value;

        assert_true(value >= start);
        assert_true(value < histogram_bucket_start(bucket + 1));
        assert_true(error <= 0.0005 * (double)value && error >= -0.0005 * (double)value);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void quantiles_agree_with_sorted_values(void **state)
{
    enum { COUNT = 10001 };
    static uint64_t values[COUNT];
    static const double quantiles[] = {0, 0.01, 0.5, 0.9, 0.99, 0.999, 1};
    struct rng rng;
    double sum = 0;

    (void)state;
    rng_init(&rng, seed_of_run(), 2);
    histogram_reset(&histogram);
    for (int i = 0; i < COUNT; i++) {
        values[i] = (uint64_t)rng_exponential(&rng, 20e6);
        sum += (double)values[i];
        histogram_add(&histogram, values[i]);
    }
    qsort(values, COUNT, sizeof(values[0]), compare);
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        size_t rank = (size_t)ceil(quantiles[i] * COUNT);
        double exact = (double)values[rank ? rank - 1 : 0];
        double error = (double)histogram_quantile(&histogram, quantiles[i]) - exact;

        assert_true(error <= 0.0005 * exact + 1 && error >= -0.0005 * exact - 1);
    }
    assert_true(histogram_quantile(&histogram, 1) == values[COUNT - 1] ||
                histogram_quantile(&histogram, 1) < values[COUNT - 1] * 1.0005);
    assert_true(histogram_mean(&histogram) == sum / COUNT);
    assert_int_equal(histogram.min, values[0]);
    assert_int_equal(histogram.max, values[COUNT - 1]);
}

static void an_empty_one_reads_zero(void **state)
{
    (void)state;
    histogram_reset(&histogram);
    assert_int_equal(histogram_quantile(&histogram, 0.5), 0);
    assert_true(histogram_mean(&histogram) == 0);
    assert_int_equal(histogram.total, 0);
}

static void huge_values_are_counted_and_kept_exact_as_max(void **state)
{
    (void)state;
    histogram_reset(&histogram);
    histogram_add(&histogram, UINT64_MAX / 2);
    assert_int_equal(histogram.total, 1);
    assert_int_equal(histogram.max, UINT64_MAX / 2);
    assert_int_equal(histogram_quantile(&histogram, 0.5), UINT64_MAX / 2);
}

static void a_cleared_one_is_as_a_new_one(void **state)
{
    struct rng rng;

    (void)state;
    rng_init(&rng, seed_of_run(), 3);
    histogram_reset(&histogram);
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < 100; i++)
            histogram_add(&histogram, rng_next(&rng) >> rng_below(&rng, 64));
        histogram_clear(&histogram);
        histogram_reset(&other);
        assert_memory_equal(&histogram, &other, sizeof(histogram));
    }
    histogram_clear(&histogram);
    assert_memory_equal(&histogram, &other, sizeof(histogram));
}

/* Any quantile of values of any size is within half a bucket of the value it stands for. */
static void quantiles_are_good_to_three_digits_at_every_size(void **state)
{
    enum { COUNT = 400 };
    static uint64_t values[COUNT];
    struct rng rng;

    (void)state;
    rng_init(&rng, seed_of_run(), 4);
    for (unsigned bits = 1; bits <= HISTOGRAM_MAX_BITS; bits++) {
        histogram_reset(&histogram);
        histogram_reset(&other);
        for (int i = 0; i < COUNT; i++) {
            values[i] = rng_next(&rng) >> (64 - bits);
            histogram_add(i % 3 ? &histogram : &other, values[i]);
        }
        histogram_merge(&histogram, &other);
        qsort(values, COUNT, sizeof(values[0]), compare);
        for (int i = 0; i < COUNT; i++) {
            double exact = (double)values[i];
            double got = (double)histogram_quantile(&histogram, (i + 0.5) / COUNT);

            assert_true(fabs(got - exact) <= exact / 2048);
        }
    }
}

static void merging_is_adding_both(void **state)
{
    (void)state;
    histogram_reset(&histogram);
    histogram_reset(&other);
    for (uint64_t i = 1; i <= 100; i++) {
        histogram_add(i <= 50 ? &histogram : &other, i);
    }
    histogram_merge(&histogram, &other);
    assert_int_equal(histogram.total, 100);
    assert_int_equal(histogram.min, 1);
    assert_int_equal(histogram.max, 100);
    assert_int_equal(histogram_quantile(&histogram, 0.5), 50);
    assert_int_equal(histogram_quantile(&histogram, 0.99), 99);
    assert_true(histogram_mean(&histogram) == 50.5);
    histogram_reset(&other);
    histogram_merge(&histogram, &other);
    assert_int_equal(histogram.min, 1);
    assert_int_equal(histogram.total, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_follow_each_other),
        cmocka_unit_test(a_value_reads_back_to_three_digits),
        cmocka_unit_test(quantiles_agree_with_sorted_values),
        cmocka_unit_test(an_empty_one_reads_zero),
        cmocka_unit_test(huge_values_are_counted_and_kept_exact_as_max),
        cmocka_unit_test(a_cleared_one_is_as_a_new_one),
        cmocka_unit_test(quantiles_are_good_to_three_digits_at_every_size),
        cmocka_unit_test(merging_is_adding_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
