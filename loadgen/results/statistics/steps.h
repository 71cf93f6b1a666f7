/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a parameter that a sweep takes, as text:
 *
 *   rate=100/s..2000/s:10     ten values in equal steps
 *   concurrency=1..256:x9     nine values in equal factors: 1 2 4 ... 256
 *   streams=1,2,5,10          these
 *
 * Values rise, all with one unit. Between whole ends steps are rounded to whole values, and those
 * that fall together are one.
 */
#ifndef LOADGEN_RESULTS_STATISTICS_STEPS_H
#define LOADGEN_RESULTS_STATISTICS_STEPS_H

#include <stddef.h>

#define STEPS_MAX        1000
#define STEPS_NAME_BYTES 64
#define STEPS_UNIT_BYTES 16

struct steps {
    char name[STEPS_NAME_BYTES];
    char unit[STEPS_UNIT_BYTES];
    double values[STEPS_MAX];
    size_t count;
};

/* 0, or -EINVAL. */
int steps_parse(const char *text, struct steps *out);

/* A value with its unit. */
void steps_format(const struct steps *steps, size_t place, char *out, size_t size);

#endif
