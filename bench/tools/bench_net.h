/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bench's small servers and clients share: TCP sockets set the way every side of a
 * measurement needs them, the clock, and command-line numbers with units.
 *
 * Nothing here is on a measured path but bench_now_ns().
 */
#ifndef BENCH_TOOLS_BENCH_NET_H
#define BENCH_TOOLS_BENCH_NET_H

#include <stdint.h>

#include "loadgen/base/units.h"

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t bench_now_ns(void);

/*
 * Opens a non-blocking listening socket on `text` ("ADDRESS:PORT"; port 0: one that is free) and
 * prints one line "listening ADDRESS:PORT" to stdout, so that a driver learns the port and that
 * the server is ready. Returns the descriptor, or a negative errno after a message to stderr.
 */
int bench_listen(const char *text);

/*
 * Starts connecting a new non-blocking TCP_NODELAY socket to `target`.
 * Returns the descriptor (connected, or with the connection in progress), or a negative errno.
 */
int bench_connect(const struct units_address *target);

/* Makes a descriptor TCP_NODELAY. */
void bench_set_nodelay(int fd);

/*
 * Values of the options called `option`: a whole number from `low` to `high`, a duration with its
 * unit, an address. The process exits with status 2 and a message on anything else: a benchmark
 * with a misread number must not run.
 */
uint64_t bench_option_count(const char *option, const char *text, uint64_t low, uint64_t high);
uint64_t bench_option_duration_ns(const char *option, const char *text);
void bench_option_address(const char *option, const char *text, struct units_address *address);

#endif
