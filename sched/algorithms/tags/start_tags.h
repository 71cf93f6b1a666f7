/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_tags.h: what every algorithm with start and finish tags shares. Private to sched/.
 *
 * Equations (Goyal, Vin, Cheng 1997; Jin, Chase, Kaur 2004), for request j of flow f arriving at A:
 *
 *     S_j = max(v(A_j), F_{j-1})        F_j = S_j + c_j / weight
 *
 * Tags are given late: S when a request becomes the head of its flow, F when it is dispatched. What
 * late tags buy: a new weight holds for all that waits, a cancelled request is charged nothing, and
 * tags stay within one charge of v however long a queue is. So one number per flow suffices,
 * flow->tag: the start tag of the head while the flow is backlogged, otherwise its last finish tag.
 *
 * v(A_j) of a request that arrives behind others comes in two ways:
 *   - where v never passes the start tag of a waiting head (sfq, sfqd, min-sfqd, virtual-clock), it
 *     needs no looking at: F_{j-1} >= S of the head >= v(A_j);
 *   - where it may (rw and hybrid pass over flows whose window is full, mclock over those at their
 *     limit, wfq lets v run with time), the item keeps it in `aside` until it becomes the head: see
 *     stamped.h, and fsfq.c.
 *
 * Corrections collect in flow->owed. A backlogged flow pays, or is paid, from its next start tag
 * on; a refund makes a request free at most (the next start tag is never before the one just
 * dispatched) and the rest waits. When a flow becomes backlogged again the correction counts as if
 * the true cost had always been known, S = max(v, F_prev + owed), and nothing is kept.
 */
#ifndef SPILLWAY_SCHED_ALGORITHMS_TAGS_START_TAGS_H
#define SPILLWAY_SCHED_ALGORITHMS_TAGS_START_TAGS_H

#include "sched/engine/engine.h"

/* ---- tags alone --------------------------------------------------------------------------- */

/* The flow becomes backlogged: flow->tag becomes the start tag of its head. */
static inline void tags_wake(const struct sched *s, struct sched_flow *flow)
{
    flow->tag += (uint64_t)flow->owed;
    flow->owed = 0;
    if (vtime_before(flow->tag, s->vtime)) {
        flow->tag = s->vtime;
        flow->tag_rest = 0;
    }
}

/* Where the head of a backlogged flow starts, after one that started and finished so. */
static inline uint64_t tags_next(struct sched_flow *flow, uint64_t start, uint64_t finish)
{
    int64_t charged = (int64_t)(finish - start) + flow->owed;

    flow->owed = charged < 0 ? charged : 0;
    return charged < 0 ? start : start + (uint64_t)charged;
}

/* What the head will be charged at the flow's present weight. */
static inline uint64_t tags_charge_of_head(const struct sched_flow *flow)
{
    unsigned __int128 exact =
        (unsigned __int128)sched_flow_head(flow)->cost * flow->reciprocal + flow->tag_rest;

    return (uint64_t)(exact >> VTIME_REST_BITS);
}

/* The head has just left its flow's queue: it gets its tags, and the flow the next one's. */
static inline void tags_take(struct sched *s, struct sched_flow *flow, struct sched_item *item)
{
    item->start = flow->tag;
    item->finish = item->start + (uint64_t)vtime_charge(flow, (int64_t)item->cost);
    s->front = vtime_later(s->front, item->start);
    s->max_finish = vtime_later(s->max_finish, item->finish);
    if (flow->queue.head != NULL)
        flow->tag = tags_next(flow, item->start, item->finish);
    else
        flow->tag = item->finish;
}

/* The flow's head is another now: its start tag is not before the v that its arrival found. */
static inline void tags_heed_arrival(struct sched_flow *flow)
{
    const struct sched_item *head = flow->queue.head;

    if (head != NULL && vtime_before(flow->tag, head->aside)) {
        flow->tag = head->aside;
        flow->tag_rest = 0;
    }
}

/*
 * An item returns to the head of its queue, its charge undone; but no tag goes further back than
 * VTIME_LAG before v, so that tags stay comparable however many large requests return.
 */
static inline void tags_put_back(const struct sched *s, struct sched_flow *flow,
                                 const struct sched_item *item)
{
    flow->tag = vtime_later(flow->tag - (item->finish - item->start), s->vtime - VTIME_LAG);
}

/* The true cost of an item that has ended. */
void tags_correct(struct sched_flow *flow, const struct sched_item *item, uint64_t true_cost);

/* ---- whole functions of struct sched_ops, for s->ready ordered by (flow->tag, sequence) ----- */

void start_tags_enter(struct sched *s);
void start_tags_leave(struct sched *s);
void start_tags_queue(struct sched *s, struct sched_item *item);
struct sched_item *start_tags_peek(struct sched *s);
void start_tags_put_back(struct sched *s, struct sched_item *item);
void start_tags_remove(struct sched *s, struct sched_item *item);
void start_tags_done(struct sched *s, struct sched_item *item, uint64_t true_cost);

/*
 * Takes the item peek() named out of its queue and gives it its tags. The algorithm then puts it
 * into s->out and moves v.
 */
void start_tags_take(struct sched *s, struct sched_item *item);

#endif
