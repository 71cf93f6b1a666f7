/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that stream through memory in bursts: they take memory bandwidth and cache from whatever
 * runs beside them. Between bursts they sleep. The memory is taken and touched at the start, so
 * that a burst is nothing but streaming.
 */
#ifndef LOADGEN_FAULTS_STREAMING_H
#define LOADGEN_FAULTS_STREAMING_H

#include <stdint.h>

#include "loadgen/faults/fault_spec.h"

struct streaming;

/* Takes the memory and starts the threads, asleep. NULL after a message on stderr. */
struct streaming *streaming_create(const struct fault_spec *spec);

void streaming_begin(struct streaming *streaming);
void streaming_end(struct streaming *streaming);

/* Bytes that were read and written since the start, all threads together. */
uint64_t streaming_bytes(const struct streaming *streaming);

/* Ends the threads. NULL is fine. */
void streaming_destroy(struct streaming *streaming);

#endif
