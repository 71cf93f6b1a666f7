/* SPDX-License-Identifier: Apache-2.0 */
/* Factorisation of 64-bit numbers; the road of a number is in the header. */
#include "loadgen/origin/service/factor.h"

#include <math.h>

typedef unsigned __int128 wide;

#define TRIAL_LIMIT  1024
#define SMOOTH_LIMIT 1000

/* ---------------------------------------------------------------- arithmetic */

static uint64_t multiply(uint64_t a, uint64_t b, uint64_t n)
{
    return (uint64_t)((wide)a * b % n);
}

static uint64_t power(uint64_t base, uint64_t exponent, uint64_t n)
{
    uint64_t result = 1 % n;

    for (base %= n; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = multiply(result, base, n);
        base = multiply(base, base, n);
    }
    return result;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The largest r with r * r <= n; the estimate of a double is corrected. n is below 2^80. */
static uint64_t root(wide n)
{
    uint64_t r = (uint64_t)sqrtl((long double)n);

    while ((wide)r * r > n)
        r--;
    while ((wide)(r + 1) * (r + 1) <= n)
        r++;
    return r;
}

/* ---------------------------------------------------------------- primes */

static bool witness(uint64_t base, uint64_t n, uint64_t odd, unsigned twos)
{
    uint64_t x = power(base, odd, n);

    if (x == 1 || x == n - 1)
        return false;
    for (unsigned i = 1; i < twos; i++) {
        x = multiply(x, x, n);
        if (x == n - 1)
            return false;
    }
    return true;
}

bool factor_is_prime(uint64_t n)
{
    static const uint8_t bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    unsigned twos = 0;

    if (n < 2)
        return false;
    for (size_t i = 0; i < sizeof(bases); i++) {
        if (n % bases[i] == 0)
            return n == bases[i];
    }
    while (((n - 1) >> twos) % 2 == 0)
        twos++;
    for (size_t i = 0; i < sizeof(bases); i++) {
        if (witness(bases[i], n, (n - 1) >> twos, twos))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- p - 1 */

static bool is_small_prime(unsigned p)
{
    for (unsigned d = 2; d * d <= p; d++) {
        if (p % d == 0)
            return false;
    }
    return p >= 2;
}

uint64_t factor_smooth(uint64_t n)
{
    uint64_t a = 2;

    for (unsigned p = 2; p <= SMOOTH_LIMIT; p++) {
        if (!is_small_prime(p))
            continue;
        for (unsigned q = p; q <= SMOOTH_LIMIT; q *= p)
            a = power(a, p, n);
        uint64_t divisor = greatest_common_divisor(a > 0 ? a - 1 : n - 1, n);

        if (divisor == n)
            return 0;
        if (divisor > 1)
            return divisor;
    }
    return 0;
}

/* ---------------------------------------------------------------- square forms */

/* One step of the continued fraction of the root of kn. */
struct form {
    uint64_t root;
    uint64_t p;
    uint64_t q_before;
    uint64_t q;
};

static void reduce(struct form *form)
{
    uint64_t b = (form->root + form->p) / form->q;
    uint64_t p = b * form->q - form->p;
    /* The difference may be negative; the sum never is. */
    uint64_t q = form->q_before + b * (form->p - p);

    form->q_before = form->q;
    form->q = q;
    form->p = p;
}

static bool square_root_of(uint64_t n, uint64_t *r)
{
    /* No square ends in other bits than these, of four. */
    if (!((0x0213U >> (n & 15)) & 1))
        return false;
    *r = root(n);
    return *r * *r == n;
}

/* From a form whose last term is a square on, backwards on the cycle to its symmetric point. */
static uint64_t symmetric_point(wide kn, uint64_t root_kn, uint64_t p, uint64_t r, uint64_t steps)
{
    uint64_t b = (root_kn - p) / r;
    struct form form = {.root = root_kn, .p = b * r + p, .q_before = r};

    form.q = (uint64_t)((kn - (wide)form.p * form.p) / r);
    for (uint64_t i = 0; i < steps && form.q > 0; i++) {
        uint64_t before = form.p;

        reduce(&form);
        if (form.p == before)
            return form.p;
    }
    return 0;
}

static uint64_t square_forms(uint64_t n, unsigned k)
{
    wide kn = (wide)n * k;
    uint64_t root_kn = root(kn);
    struct form form = {.root = root_kn, .p = root_kn, .q_before = 1};
    /* Three times what Gower and Wagstaff give as enough for nearly all. */
    uint64_t steps = 6 * root(2 * (wide)root_kn);
    uint64_t r;

    form.q = (uint64_t)(kn - (wide)root_kn * root_kn);
    if (form.q == 0)
        return greatest_common_divisor(n, root_kn) % n;
    for (uint64_t i = 1; i < steps; i++) {
        if (i % 2 == 0 && square_root_of(form.q, &r)) {
            if (r == 1)
                return 0;
            uint64_t p = symmetric_point(kn, root_kn, form.p, r, steps);
            uint64_t divisor = greatest_common_divisor(n, p);

            if (p > 0 && divisor > 1 && divisor < n)
                return divisor;
        }
        reduce(&form);
    }
    return 0;
}

uint64_t factor_square_forms(uint64_t n)
{
    static const uint16_t multipliers[] = {1,  3,  5,  7,   11,  15,  21,  33,
                                           35, 55, 77, 105, 165, 231, 385, 1155};

    for (size_t i = 0; i < sizeof(multipliers) / sizeof(*multipliers); i++) {
        uint64_t divisor = square_forms(n, multipliers[i]);

        if (divisor > 1 && divisor < n)
            return divisor;
    }
    return 0;
}

/* ---------------------------------------------------------------- all of it */

/* Pollard's rho with one constant after the other: for the few that are left, cubes above all. */
static uint64_t cycle_factor(uint64_t n)
{
    for (uint64_t c = 1;; c++) {
        uint64_t slow = 2;
        uint64_t fast = 2;
        uint64_t divisor = 1;

        while (divisor == 1) {
            slow = (uint64_t)(((wide)slow * slow + c) % n);
            fast = (uint64_t)(((wide)fast * fast + c) % n);
            fast = (uint64_t)(((wide)fast * fast + c) % n);
            divisor = greatest_common_divisor(slow > fast ? slow - fast : fast - slow, n);
        }
        if (divisor < n)
            return divisor;
    }
}

static uint64_t proper_factor(uint64_t n)
{
    uint64_t r = root(n);

    if ((wide)r * r == n)
        return r;
    uint64_t divisor = factor_smooth(n);

    if (divisor == 0)
        divisor = factor_square_forms(n);
    return divisor > 0 ? divisor : cycle_factor(n);
}

static size_t insert(uint64_t *out, size_t count, uint64_t prime)
{
    size_t i = count;

    for (; i > 0 && out[i - 1] > prime; i--)
        out[i] = out[i - 1];
    out[i] = prime;
    return count + 1;
}

size_t factor(uint64_t n, uint64_t out[FACTOR_MAX])
{
    uint64_t left[FACTOR_MAX];
    size_t left_count = 0;
    size_t count = 0;

    if (n == 0)
        return 0;
    for (unsigned p = 2; p < TRIAL_LIMIT && (uint64_t)p * p <= n; p += 1 + p % 2) {
        for (; n % p == 0; n /= p)
            out[count++] = p;
    }
    if (n > 1)
        left[left_count++] = n;
    while (left_count > 0) {
        uint64_t part = left[--left_count];

        if (part < (uint64_t)TRIAL_LIMIT * TRIAL_LIMIT || factor_is_prime(part)) {
            count = insert(out, count, part);
            continue;
        }
        uint64_t divisor = proper_factor(part);

        left[left_count++] = divisor;
        left[left_count++] = part / divisor;
    }
    return count;
}
