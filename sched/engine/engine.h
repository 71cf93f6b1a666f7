/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h: what the engine and the algorithms share. Private to sched/.
 *
 * The engine (engine.c, flows.c) keeps counters, limits, depth, item states and the lives of
 * flows. An algorithm (algorithms/) decides the order, through one table of functions. The engine
 * calls them with the item already in the right state:
 *
 *   queue      a QUEUED item joins behind its flow's others
 *   peek       the item that would go next; called only while something is queued
 *   take       that item leaves its queue, gets its tags and joins s->out
 *   put_back   an item taken out of s->out by the engine returns to the head of its flow
 *   remove     a QUEUED item leaves its queue
 *   done       an item taken out of s->out by the engine has ended, its true cost is known
 *   leave      the algorithm is given up: bring everything to the neutral form, which is: every
 *              queued item in its flow's queue, the ready heap and s->arrivals empty
 *   enter      the algorithm takes over from the neutral form
 *
 * Life of an attached flow (`place`); only flows.c writes it:
 *
 *        sched_flow_attach                     nothing queued or outstanding
 *   ---> CLEAN ------ wake ------> ACTIVE --------------- rest ---------------> RESTING
 *          ^                       ^ ^ ^ ^                                         | settle
 *          |                       | | | +-------------- wake ---------------------+
 *          | sched_retire_next     | | +---------------- wake ------- OWING <------+ F > v
 *          +------ RETIRED --------+-+                                  |          |
 *                     ^  ^         wake              v reaches F        |          |
 *                     |  +----------------------------------------------+          |
 *                     +--------------------------------------------------- F <= v -+
 *
 *   CLEAN    its tags mean nothing: its next request starts at v. In no list.
 *   ACTIVE   has queued or outstanding requests.
 *   RESTING  has just become empty; in s->resting. Exists so that completion is O(1).
 *   OWING    empty, but its last finish tag is after v; in s->owing, ordered by that tag.
 *   RETIRED  as CLEAN, waiting in s->retired to be named by sched_retire_next. A pinned flow skips
 *            this place and becomes CLEAN.
 */
#ifndef SPILLWAY_SCHED_ENGINE_ENGINE_H
#define SPILLWAY_SCHED_ENGINE_ENGINE_H

#include "sched/engine/heap.h"
#include "sched/engine/queue.h"
#include "sched/engine/vtime.h"
#include "sched/sched.h"

#include <stdbool.h>
#include <stdint.h>

enum flow_place { FLOW_CLEAN, FLOW_ACTIVE, FLOW_RESTING, FLOW_OWING, FLOW_RETIRED };

struct sched_ops {
    const char *name;
    bool serial; /* one outstanding request, whatever the depth */
    void (*enter)(struct sched *s);
    void (*leave)(struct sched *s);
    void (*queue)(struct sched *s, struct sched_item *item);
    struct sched_item *(*peek)(const struct sched *s);
    void (*take)(struct sched *s, struct sched_item *item);
    void (*put_back)(struct sched *s, struct sched_item *item);
    void (*remove)(struct sched *s, struct sched_item *item);
    void (*done)(struct sched *s, struct sched_item *item, uint64_t true_cost);
};

extern const struct sched_ops sched_fifo_ops;
extern const struct sched_ops sched_sfq_ops;
extern const struct sched_ops sched_sfqd_ops;
extern const struct sched_ops sched_minsfqd_ops;

/* Flows in order of insertion, linked through place_next and place_prev. */
struct flow_list {
    struct sched_flow *head;
    struct sched_flow *tail;
};

struct sched {
    const struct sched_ops *ops;
    uint64_t depth;
    uint64_t flow_queue_limit; /* 0: none */
    uint64_t total_queue_limit;
    enum sched_depth_unit depth_unit;
    enum sched_algorithm algorithm;
    struct sched_options options;

    uint64_t queued;
    uint64_t queued_cost;
    uint64_t outstanding;
    uint64_t outstanding_cost;
    uint64_t sequence; /* of the next arrival */

    uint64_t vtime;      /* v; never goes back */
    uint64_t max_finish; /* largest finish tag given since the busy period began */
    uint64_t front;      /* largest start tag dispatched */
    uint64_t rebased;    /* `front` when the tags were last looked over */

    struct heap ready;           /* backlogged flows by (start tag of head, its sequence) */
    struct sched_queue arrivals; /* FIFO's one queue */
    struct sched_queue out;      /* outstanding items in order of dispatch, or of start tag */

    struct heap owing;
    struct flow_list resting;
    struct flow_list retired;
    struct sched_flow *all; /* every attached flow */
    uint64_t flows;
};

/* The flow is about to get a request: make it ACTIVE, with usable tags. */
void sched_flow_wake(struct sched *s, struct sched_flow *flow);

/* The flow has nothing queued or outstanding any more: ACTIVE to RESTING. O(1). */
void sched_flow_rest(struct sched *s, struct sched_flow *flow);

/* After v may have moved: passes on a bounded number of resting and owing flows. */
void sched_flows_settle(struct sched *s);

/* Whether sched_flows_settle has anything to do. */
static inline bool sched_flows_unsettled(const struct sched *s)
{
    return s->resting.head != NULL || s->owing.count > 0 || s->front - s->rebased >= VTIME_LAG;
}

/* Every attached flow forgets its tags and debts: the next start tag of each is v. O(F log F). */
void sched_flows_forget(struct sched *s);

/* Lifts every tag that stands too far behind s->front to be compared for much longer. O(F). */
void sched_flows_rebase(struct sched *s);

#endif
