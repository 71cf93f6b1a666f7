/* SPDX-License-Identifier: Apache-2.0 */
/* The rank-sum test. */
#include "loadgen/results/statistics/rank_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

struct ranked {
    double value;
    int first; /* of the first sample */
};

static int by_value(const void *left, const void *right)
{
    double x = ((const struct ranked *)left)->value;
    double y = ((const struct ranked *)right)->value;

    return x < y ? -1 : x > y;
}

double rank_test_u(const double *a, size_t n, const double *b, size_t m, double *ties)
{
    struct ranked *all = memory_zeroed(n + m, sizeof(*all));
    double rank_sum = 0;
    double tied = 0;

    for (size_t i = 0; i < n + m; i++)
        all[i] = (struct ranked){i < n ? a[i] : b[i - n], i < n};
    qsort(all, n + m, sizeof(*all), by_value);
    for (size_t i = 0, next; i < n + m; i = next) {
        for (next = i + 1; next < n + m && all[next].value <= all[i].value;)
            next++;
        double group = (double)(next - i);

        for (size_t k = i; k < next; k++)
            rank_sum += all[k].first ? (double)i + (group + 1) / 2 : 0;
        tied += group * group * group - group;
    }
    free(all);
    if (ties)
        *ties = tied;
    return rank_sum - (double)n * ((double)n + 1) / 2;
}

/* P(U <= u) without ties: the product of (1 - q^(m+i)) / (1 - q^i), i from 1 to n, up to q^u. */
static double exact_below(size_t n, size_t m, size_t u)
{
    double *counts = memory_zeroed(n * m + 1, sizeof(*counts));
    double all = 1;
    double below = 0;

    counts[0] = 1;
    for (size_t i = 1; i <= n; i++) {
        for (size_t k = n * m; k >= m + i; k--)
            counts[k] -= counts[k - m - i];
        for (size_t k = i; k <= n * m; k++)
            counts[k] += counts[k - i];
        all *= (double)(m + i) / (double)i;
    }
    for (size_t k = 0; k <= u; k++)
        below += counts[k];
    free(counts);
    return below / all;
}

double rank_test_p(const double *a, size_t n, const double *b, size_t m)
{
    double ties;

    if (n == 0 || m == 0)
        return 1;
    double pairs = (double)n * (double)m;
    double u = rank_test_u(a, n, b, m, &ties);
    double least = fmin(u, pairs - u);

    if (ties <= 0 && n + m <= RANK_TEST_EXACT)
        return fmin(1, 2 * exact_below(n, m, (size_t)llround(least)));
    double all = (double)(n + m);
    double variance = pairs / 12 * (all + 1 - ties / (all * (all - 1)));
    double off = pairs / 2 - least - 0.5;

    if (variance <= 0 || off <= 0)
        return 1;
    return fmin(1, erfc(off / sqrt(variance) / sqrt(2)));
}

/* ---------------------------------------------------------------- many tests */

struct numbered {
    double p;
    size_t place;
};

static int by_p(const void *left, const void *right)
{
    double x = ((const struct numbered *)left)->p;
    double y = ((const struct numbered *)right)->p;

    return x < y ? -1 : x > y;
}

void rank_test_holm(double *p, size_t count)
{
    struct numbered *made = memory_zeroed(count, sizeof(*made));
    size_t tests = 0;
    double least = 0;

    for (size_t i = 0; i < count; i++) {
        if (p[i] >= 0)
            made[tests++] = (struct numbered){p[i], i};
    }
    qsort(made, tests, sizeof(*made), by_p);
    for (size_t i = 0; i < tests; i++) {
        least = fmax(least, fmin(1, made[i].p * (double)(tests - i)));
        p[made[i].place] = least;
    }
    free(made);
}
