/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load of schedbench: one scheduler, its flows and requests, brought into a steady state, and
 * the turns that are timed. A turn is one enqueue, one dispatch and one complete.
 *
 *   steady  every flow has `queued` requests waiting, always, and `depth` are outstanding. A turn
 *           completes the oldest outstanding request, dispatches the next, and queues the completed
 *           one again, at the flow that was just served.
 *   churn   as many flows are attached, but half of them are idle and the others have one request
 *           each. A turn queues a request at the flow that has been idle longest, dispatches, and
 *           completes the oldest outstanding one, which makes its flow idle. So every turn takes a
 *           flow from idle to backlogged, to empty, to idle again. (With so few flows that there is
 *           no half: the one request is queued, dispatched and completed.)
 *   life    waves: every flow is attached, queues one request, all are dispatched and completed,
 *           and every flow is named by sched_retire_next and detached. A turn is one such flow.
 *
 * Flows and requests lie in two arrays; which flow is attached and activated when, and which
 * requests it gets, is a random permutation, so that the order of service is not the order of the
 * memory, as it wouldn't be in a proxy.
 *
 * The name "list" stands for a bare singly linked list of requests, first in first out, which is
 * no scheduler at all: what the turns themselves cost.
 */
#ifndef BENCH_SCHED_TURNS_H
#define BENCH_SCHED_TURNS_H

#include "loadgen/base/rng.h"
#include "sched/sched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum turns_mode { TURNS_STEADY, TURNS_CHURN, TURNS_LIFE };

struct turns_plan {
    bool bare_list;
    enum sched_algorithm algorithm; /* unless bare_list */
    enum turns_mode mode;
    uint64_t flows;
    uint64_t queued; /* per flow, in steady mode */
    uint64_t depth;
    bool random_weights; /* 1 to 100, else all 1 */
    bool random_costs;   /* 1 to 16, else all 1 */
    bool pinned;         /* flows are declared ones, which are never retired */
    uint64_t seed;
};

/* First in, first out; a power of two of places. */
struct turns_ring {
    void **places;
    uint64_t mask;
    uint64_t head;
    uint64_t tail;
};

/* The bare list, through sched_item's `next`. */
struct turns_list {
    struct sched_item *head;
    struct sched_item *tail;
};

struct turns {
    struct turns_plan plan;
    struct sched *sched;
    struct turns_list list;
    struct sched_flow *flows;
    struct sched_item *items;
    struct turns_ring outstanding; /* requests, oldest first */
    struct turns_ring idle;        /* churn: flows, idle longest first; life: all of them */
    struct sched_item *spare;      /* churn: the request that the next turn queues */
    uint64_t now_ns;
    size_t heap_bytes; /* what attaching the flows made the scheduler allocate */
};

/*
 * Builds the steady state. 0, -ENOMEM, -ENOTSUP for a mode that the bare list has not, or -EIO when
 * the scheduler refuses what it should take. turns_fini() frees everything, also after an error.
 */
int turns_init(struct turns *turns, const struct turns_plan *plan);
void turns_fini(struct turns *turns);

/*
 * Runs at least `count` turns (in life mode whole waves) and returns how many; 0 when the scheduler
 * had nothing to dispatch where it should have.
 */
uint64_t turns_run(struct turns *turns, uint64_t count);

#endif
