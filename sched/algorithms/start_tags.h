/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_tags.h: what every start-time fair algorithm shares. Private to sched/.
 *
 * Equations (Goyal, Vin, Cheng 1997; Jin, Chase, Kaur 2004), for request j of flow f arriving at A:
 *
 *     S = max(v(A), F_prev)        F = S + cost / weight        dispatch by S, ties by sequence
 *
 * Tags are given late: S when a request becomes the head of its flow, F when it is dispatched. The
 * result is the same as giving both on arrival: a request that arrives behind others finds
 * F_prev >= S of the head >= v(A), because these algorithms never let v pass the start tag of a
 * waiting head. What late tags buy: a new weight holds for all that waits, a cancelled request is
 * charged nothing, and tags stay within one charge of v however long a queue is.
 *
 * So one number per flow suffices, flow->tag: the start tag of the head while the flow is
 * backlogged, otherwise its last finish tag.
 *
 * Corrections collect in flow->owed. A backlogged flow pays, or is paid, from its next start tag
 * on; a refund makes a request free at most (the next start tag is never before the one just
 * dispatched) and the rest waits. When a flow becomes backlogged again the correction counts as if
 * the true cost had always been known, S = max(v, F_prev + owed), and nothing is kept.
 */
#ifndef SPILLWAY_SCHED_ALGORITHMS_START_TAGS_H
#define SPILLWAY_SCHED_ALGORITHMS_START_TAGS_H

#include "sched/engine/engine.h"

/* From and to the neutral form (engine.h). */
void start_tags_enter(struct sched *s);
void start_tags_leave(struct sched *s);

/* The functions of the same name of struct sched_ops. */
void start_tags_queue(struct sched *s, struct sched_item *item);
struct sched_item *start_tags_peek(const struct sched *s);
void start_tags_put_back(struct sched *s, struct sched_item *item);
void start_tags_remove(struct sched *s, struct sched_item *item);
void start_tags_done(struct sched *s, struct sched_item *item, uint64_t true_cost);

/*
 * Takes the item peek() named out of its queue and gives it its tags. The algorithm then puts it
 * into s->out and moves v.
 */
void start_tags_take(struct sched *s, struct sched_item *item);

#endif
