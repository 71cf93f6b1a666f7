/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fluid.h: a clock that runs as a service would that works at all flows at once. Private to sched/.
 *
 *     d clock / dt = C / W
 *
 * C, W: options.capacity_per_s and the weights of all flows with requests; or, where the capacity
 * is not known, outstanding / u and the weights of the flows with requests queued (of those with
 * any, when none are queued). u = slot time held / cost completed is the mean time that a unit of
 * cost holds a slot; both sums are halved whenever either reaches 2^36, so that u follows the last
 * minute of slot time. Until something has completed the clock stands.
 *
 * What falls below the last place is carried on, so that many short steps make the same way as one
 * long one. The clock moves no further than half the range of the tags ahead of the start tags
 * dispatched, whatever the capacity that was claimed.
 */
#ifndef SPILLWAY_SCHED_ALGORITHMS_TAGS_FLUID_H
#define SPILLWAY_SCHED_ALGORITHMS_TAGS_FLUID_H

#include "sched/engine/engine.h"

/* So much time has passed: moves *clock on, and counts the slots held. For ops->elapse. */
void fluid_elapse(struct sched *s, uint64_t *clock, uint64_t passed_ns);

/* Counts the slots held, without a clock. */
void fluid_hold(struct sched *s, uint64_t passed_ns);

/* The work that the requests outstanding have had done in that time, by u, in 2^-20 units of cost.
 */
uint64_t fluid_work(const struct sched *s, uint64_t passed_ns);

/* So much cost has been completed. For ops->done. */
void fluid_done(struct sched *s, uint64_t cost);

#endif
