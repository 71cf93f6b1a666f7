/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about what makes a run's figures less than they seem; silence when all is well. */
#ifndef LOADGEN_RESULTS_WARNINGS_H
#define LOADGEN_RESULTS_WARNINGS_H

#include <stdio.h>

#include "loadgen/results/summary/summary.h"

/* From this share of one processor on the generator is said to be the limit: it has one thread. */
#define WARNINGS_GENERATOR_CPU 0.95

void warnings_print(FILE *out, const struct summary *summary);

#endif
