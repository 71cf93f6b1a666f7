/* SPDX-License-Identifier: Apache-2.0 */
/* The final table: a row per flow, below it one per kind of request when it has several. */
#ifndef LOADGEN_RESULTS_TABLE_H
#define LOADGEN_RESULTS_TABLE_H

#include <stdio.h>

#include "loadgen/results/summary/summary.h"

void table_print(FILE *out, const struct summary *summary);

/* A time in milliseconds with its unit, or "-" when nothing was counted. */
#define TABLE_TIME_BYTES 24
const char *table_time(double value_ms, uint64_t count, char buffer[TABLE_TIME_BYTES]);

#endif
