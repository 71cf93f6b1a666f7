/* SPDX-License-Identifier: Apache-2.0 */
/* Factorisation: every small number against a sieve, products of known primes, random semiprimes
 * of every size from a fixed seed, and each method by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/base/rng.h"
#include "loadgen/origin/service/factor.h"

#define SIEVE 1000000
#define SEED  20260

static uint32_t least_factor[SIEVE];

static void fill_sieve(void)
{
    for (uint32_t i = 2; i < SIEVE; i++) {
        if (least_factor[i])
            continue;
        for (uint32_t j = i; j < SIEVE; j += i) {
            if (!least_factor[j])
                least_factor[j] = i;
        }
    }
}

static void every_number_below_a_million(void **state)
{
    uint64_t found[FACTOR_MAX];

    (void)state;
    fill_sieve();
    for (uint32_t n = 2; n < SIEVE; n++) {
        size_t count = factor(n, found);
        uint32_t left = n;

        for (size_t i = 0; i < count; i++) {
            assert_int_equal(found[i], least_factor[left]);
            left /= least_factor[left];
        }
        assert_int_equal(left, 1);
        assert_int_equal(factor_is_prime(n), count == 1);
    }
    assert_int_equal(factor(0, found), 0);
    assert_int_equal(factor(1, found), 0);
    assert_false(factor_is_prime(0));
    assert_false(factor_is_prime(1));
}

static void known_numbers(void **state)
{
    static const struct {
        uint64_t n;
        size_t count;
        uint64_t factors[FACTOR_MAX];
    } known[] = {
        {18446744073709551615ULL, 7, {3, 5, 17, 257, 641, 65537, 6700417}},
        {18446744073709551557ULL, 1, {18446744073709551557ULL}}, /* the largest prime below 2^64 */
        {18446744030759878681ULL, 2, {4294967291ULL, 4294967291ULL}},
        {4294967291ULL * 4294967279ULL, 2, {4294967279ULL, 4294967291ULL}},
        {1018081ULL, 2, {1009, 1009}},
        {1031ULL * 1033 * 1039 * 1049 * 1051, 5, {1031, 1033, 1039, 1049, 1051}},
        {3215031751ULL, 3, {151, 751, 28351}},                   /* fools the bases 2, 3, 5, 7 */
        {3825123056546413051ULL, 3, {149491, 747451, 34233211}}, /* fools those up to 23 */
        {2097143ULL * 2097143 * 2097143, 3, {2097143, 2097143, 2097143}},
        {1125897758834689ULL, 2, {524287, 2147483647}},
    };
    uint64_t found[FACTOR_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        assert_int_equal(factor(known[i].n, found), known[i].count);
        for (size_t j = 0; j < known[i].count; j++)
            assert_int_equal(found[j], known[i].factors[j]);
    }
    assert_int_equal(factor(1ULL << 63, found), 63);
    assert_int_equal(found[0] + found[62], 4);
}

/* A random prime with exactly `bits` bits, by trial division alone. */
static uint64_t random_prime(struct rng *rng, unsigned bits)
{
    for (;;) {
        uint64_t n = (1ULL << (bits - 1)) | rng_below(rng, 1ULL << (bits - 1)) | 1;
        uint64_t d = 3;

        while (d * d <= n && n % d)
            d += 2;
        if (d * d > n)
            return n;
    }
}

static void random_products_of_two_primes(void **state)
{
    struct rng rng;
    uint64_t found[FACTOR_MAX];

    (void)state;
    print_message("seed %d\n", SEED);
    rng_init(&rng, SEED, 0);
    for (unsigned bits = 32; bits <= 64; bits++) {
        for (int i = 0; i < 40; i++) {
            unsigned smaller = bits / 2 - (unsigned)rng_below(&rng, bits / 4);
            uint64_t p = random_prime(&rng, smaller);
            uint64_t q = random_prime(&rng, bits - smaller > 32 ? 32 : bits - smaller);

            assert_int_equal(factor(p * q, found), 2);
            assert_int_equal(found[0], p < q ? p : q);
            assert_int_equal(found[1], p < q ? q : p);
        }
    }
}

static void square_forms_alone_find_nearly_all(void **state)
{
    struct rng rng;
    int missed = 0;

    (void)state;
    print_message("seed %d\n", SEED + 1);
    rng_init(&rng, SEED + 1, 0);
    for (int i = 0; i < 1000; i++) {
        unsigned bits = 16 + (unsigned)i % 17;
        uint64_t p = random_prime(&rng, bits);
        uint64_t q = random_prime(&rng, bits);
        uint64_t n = p * q;

        if (p == q)
            continue;
        uint64_t divisor = factor_square_forms(n);

        assert_true(divisor == 0 || divisor == p || divisor == q);
        missed += divisor == 0;
    }
    assert_int_equal(missed, 0);
}

static void p_minus_one_finds_smooth_factors(void **state)
{
    (void)state;
    /* Both predecessors have a large prime factor. */
    assert_int_equal(factor_smooth(4294967291ULL * 4294967279ULL), 0);
    /* 1000033 - 1 = 2^5 * 3 * 11 * 947, 1000081 - 1 = 2^4 * 3^3 * 5 * 463: all below 1000. */
    assert_int_equal(factor_smooth(1000033ULL * 4294967291ULL), 1000033);
    assert_int_equal(factor_smooth(1000081ULL * 4294967291ULL), 1000081);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_below_a_million),
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(random_products_of_two_primes),
        cmocka_unit_test(square_forms_alone_find_nearly_all),
        cmocka_unit_test(p_minus_one_finds_smooth_factors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
