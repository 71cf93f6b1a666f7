/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation shows: a table, a time series as CSV, a summary as JSON. */
#ifndef BENCH_SIM_REPORT_H
#define BENCH_SIM_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "bench/sim/sim.h"

/*
 * A line per flow: weight, requests offered and completed per second of metered time, share of all
 * completed work (cost), mean, median, 99th percentile and maximum of the response time, mean wait
 * in the scheduler, requests refused and left at the end. Then a line on the array and the speed of
 * the simulation; `wall_ns` is what it took.
 */
void sim_report_table(FILE *out, const struct sim *sim, const struct sim_config *config,
                      uint64_t wall_ns);

/*
 * A line per interval, oldest first, with the columns time_s (the interval's end) and, for each
 * flow, NAME.offered_per_s, NAME.completed_per_s, NAME.response_ms (mean over those completed;
 * empty when none was), NAME.waiting and NAME.outstanding (at the interval's end).
 * 0, or negative errno when the file could not be written.
 */
int sim_report_csv(const char *path, const struct sim *sim, const struct sim_config *config);

/* The table's figures and the run's parameters. 0, or negative errno. */
int sim_report_json(const char *path, const struct sim *sim, const struct sim_config *config,
                    uint64_t wall_ns);

#endif
