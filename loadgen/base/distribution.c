/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions; stateless but for lists, the generator is the caller's. */
#include "loadgen/base/distribution.h"

#include <errno.h>
#include <string.h>

static const char *const names[DISTRIBUTION_KINDS] = {
    [DISTRIBUTION_FIXED] = "fixed",         [DISTRIBUTION_EXPONENTIAL] = "exponential",
    [DISTRIBUTION_UNIFORM] = "uniform",     [DISTRIBUTION_BIMODAL] = "bimodal",
    [DISTRIBUTION_LOGNORMAL] = "lognormal", [DISTRIBUTION_PARETO] = "pareto",
    [DISTRIBUTION_LIST] = "list",
};

int distribution_parse(const char *name, enum distribution_kind *out)
{
    for (int kind = 0; kind <= DISTRIBUTION_BIMODAL; kind++) {
        if (strcmp(names[kind], name) == 0) {
            *out = (enum distribution_kind)kind;
            return 0;
        }
    }
    return -EINVAL;
}

const char *distribution_name(enum distribution_kind kind)
{
    return names[kind];
}

uint64_t distribution_draw(struct distribution *distribution, struct rng *rng)
{
    double mean = (double)distribution->mean;

    switch (distribution->kind) {
    case DISTRIBUTION_EXPONENTIAL:
        return (uint64_t)rng_exponential(rng, mean);
    case DISTRIBUTION_UNIFORM:
        return (uint64_t)(2.0 * mean * rng_unit(rng));
    case DISTRIBUTION_BIMODAL:
        return (uint64_t)(rng_unit(rng) < 0.9 ? mean * 0.5 : mean * 5.5);
    case DISTRIBUTION_FIXED:
    default:
        return distribution->mean;
    }
}
