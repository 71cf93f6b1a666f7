/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions of durations (service times, think times) and of sizes (files, bodies, transfers).
 *
 *   fixed        always the mean
 *   exponential  memoryless
 *   uniform      between 0 and twice the mean
 *   bimodal      nine in ten take half the mean, one in ten takes five and a half times the mean
 *                (0.9 * 0.5 + 0.1 * 5.5 = 1)
 *   lognormal    exp of a normal; `shape` is sigma, of the logarithm
 *   pareto       bounded Pareto on [least, most]; `shape` is alpha
 *                P(X <= x) = (1 - (least/x)^alpha) / (1 - (least/most)^alpha)
 *   list         values of a file, one per line, drawn in turn from the first on, over and over
 *
 * As text, everywhere they are written:
 *
 *   10ms                     fixed
 *   exponential:10ms         the mean; so fixed, uniform and bimodal
 *   lognormal:10ms:1.5       mean and sigma
 *   pareto:1.1:500:10MiB     alpha, least, most
 *   list:FILE                a duration or a size per line; empty lines and those that begin with
 *                            # are skipped
 *
 * Durations have their unit, sizes may have one; sigma and alpha are numbers above 0.
 */
#ifndef LOADGEN_BASE_DISTRIBUTION_H
#define LOADGEN_BASE_DISTRIBUTION_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/base/rng.h"

enum distribution_kind {
    DISTRIBUTION_FIXED,
    DISTRIBUTION_EXPONENTIAL,
    DISTRIBUTION_UNIFORM,
    DISTRIBUTION_BIMODAL,
    DISTRIBUTION_LOGNORMAL,
    DISTRIBUTION_PARETO,
    DISTRIBUTION_LIST,
    DISTRIBUTION_KINDS,
};

/* What the values are, for reading and writing them. */
enum distribution_unit {
    DISTRIBUTION_NS,
    DISTRIBUTION_BYTES,
};

/* Plain data; a copy shares the list, which is never freed: it lives as long as the program. */
struct distribution {
    enum distribution_kind kind;
    uint64_t mean; /* nanoseconds or bytes; of pareto and list worked out when it was read */
    double shape;
    uint64_t least;
    uint64_t most;
    const uint64_t *list;
    const char *list_file;
    size_t list_count;
    size_t list_next;
};

#define DISTRIBUTION_TEXT_BYTES 512

/* 0, or -EINVAL for an unknown name. Only the kinds that a mean describes: up to bimodal. */
int distribution_parse(const char *name, enum distribution_kind *out);

/* The text form above. 0 or -EINVAL (of a list: it holds no value, or something else); for a list
 * negative errno of reading it. `out` is untouched on errors. */
int distribution_read(const char *text, enum distribution_unit unit, struct distribution *out);

/* What was wrong with the list of the last distribution_read() that failed on one, with the file's
 * name and the line; "" when the last one failed otherwise. */
const char *distribution_list_problem(void);

const char *distribution_name(enum distribution_kind kind);

/* Writes the text form into a buffer of DISTRIBUTION_TEXT_BYTES; returns it. */
const char *distribution_format(const struct distribution *distribution,
                                enum distribution_unit unit, char *buffer);

/* One draw. A list moves on, which is why the distribution is not const. */
uint64_t distribution_draw(struct distribution *distribution, struct rng *rng);

/* The draw of the number-th of something: a list gives its number-th value, over and over, and
 * nothing moves on. The same number and generator give the same value. */
uint64_t distribution_draw_for(const struct distribution *distribution, struct rng *rng,
                               uint64_t number);

/* The mean in full; `mean` is rounded to a whole. */
double distribution_mean(const struct distribution *distribution);

#endif
