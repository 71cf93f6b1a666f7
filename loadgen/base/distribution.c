/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions: their draws and means; the text form is in distribution_text.c. */
#include "loadgen/base/distribution.h"

#include <math.h>

/* Draws above are cut off here: 292 years, 8 EiB. */
#define MOST 0x1p63

static uint64_t rounded(double value)
{
    return value < MOST ? (uint64_t)(value + 0.5) : (uint64_t)MOST;
}

/* Standard normal, by Box and Muller; the second of the pair is not kept, there being no state. */
static double normal(struct rng *rng)
{
    double radius = sqrt(-2 * log(1 - rng_unit(rng)));

    return radius * cos(2 * M_PI * rng_unit(rng));
}

static uint64_t draw_lognormal(const struct distribution *distribution, struct rng *rng)
{
    double sigma = distribution->shape;

    return rounded((double)distribution->mean * exp(sigma * normal(rng) - sigma * sigma / 2));
}

static uint64_t draw_pareto(const struct distribution *distribution, struct rng *rng)
{
    double alpha = distribution->shape;
    double least = (double)distribution->least;
    double most = (double)distribution->most;
    /* log of 1 - u (1 - (least/most)^alpha), which keeps its digits for a small alpha. */
    double tail = log1p(rng_unit(rng) * expm1(alpha * log(least / most)));
    uint64_t value = rounded(least * exp(-tail / alpha));

    return value < distribution->least  ? distribution->least
           : value > distribution->most ? distribution->most
                                        : value;
}

double distribution_mean(const struct distribution *distribution)
{
    if (distribution->kind != DISTRIBUTION_PARETO)
        return (double)distribution->mean;
    /*
     * The integral of x dP: least alpha (1 - q^(alpha-1)) / ((alpha-1) (1 - q^alpha)), where q is
     * least/most; it goes on through alpha = 1, where its middle is -log q.
     */
    double alpha = distribution->shape;
    double log_q = log((double)distribution->least / (double)distribution->most);

    if (log_q == 0)
        return (double)distribution->least;
    double middle = fabs(alpha - 1) < 1e-9 ? -log_q : -expm1((alpha - 1) * log_q) / (alpha - 1);

    return (double)distribution->least * alpha * middle / -expm1(alpha * log_q);
}

uint64_t distribution_draw_for(const struct distribution *distribution, struct rng *rng,
                               uint64_t number)
{
    double mean = (double)distribution->mean;

    switch (distribution->kind) {
    case DISTRIBUTION_EXPONENTIAL:
        return (uint64_t)rng_exponential(rng, mean);
    case DISTRIBUTION_UNIFORM:
        return (uint64_t)(2.0 * mean * rng_unit(rng));
    case DISTRIBUTION_BIMODAL:
        return (uint64_t)(rng_unit(rng) < 0.9 ? mean * 0.5 : mean * 5.5);
    case DISTRIBUTION_LOGNORMAL:
        return draw_lognormal(distribution, rng);
    case DISTRIBUTION_PARETO:
        return draw_pareto(distribution, rng);
    case DISTRIBUTION_LIST:
        return distribution->list[number % distribution->list_count];
    case DISTRIBUTION_FIXED:
    default:
        return distribution->mean;
    }
}

uint64_t distribution_draw(struct distribution *distribution, struct rng *rng)
{
    size_t number = distribution->list_next;

    if (distribution->kind == DISTRIBUTION_LIST)
        distribution->list_next = (number + 1) % distribution->list_count;
    return distribution_draw_for(distribution, rng, number);
}
