/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions of durations: service times of the origin, think times of closed-loop clients.
 *
 *   fixed        always the mean
 *   exponential  memoryless
 *   uniform      between 0 and twice the mean
 *   bimodal      nine in ten take half the mean, one in ten takes five and a half times the mean
 *                (0.9 * 0.5 + 0.1 * 5.5 = 1)
 */
#ifndef LOADGEN_BASE_DISTRIBUTION_H
#define LOADGEN_BASE_DISTRIBUTION_H

#include <stdint.h>

#include "loadgen/base/rng.h"

enum distribution_kind {
    DISTRIBUTION_FIXED,
    DISTRIBUTION_EXPONENTIAL,
    DISTRIBUTION_UNIFORM,
    DISTRIBUTION_BIMODAL,
    DISTRIBUTION_KINDS,
};

struct distribution {
    enum distribution_kind kind;
    uint64_t mean_ns;
};

/* 0, or -EINVAL for an unknown name. */
int distribution_parse(const char *name, enum distribution_kind *out);

const char *distribution_name(enum distribution_kind kind);

/* One draw, in nanoseconds. */
uint64_t distribution_draw(const struct distribution *distribution, struct rng *rng);

#endif
