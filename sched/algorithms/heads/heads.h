/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heads.h: the flows ordered by some property of their heads, without tags. Private to sched/.
 *
 * An algorithm of this kind is one function, ops->head_key: the smaller it is for the head of a
 * flow, the sooner that goes; equal ones go by arrival. v stands still, so no flow is ahead of its
 * share and none is behind. FIFO within each flow.
 *
 * Invariant: a flow is in s->ready, under (head_key, sequence of its head), iff its queue is not
 * empty.
 */
#ifndef SPILLWAY_SCHED_ALGORITHMS_HEADS_HEADS_H
#define SPILLWAY_SCHED_ALGORITHMS_HEADS_HEADS_H

#include "sched/engine/engine.h"

/* What the flow was promised; all 0 when nothing. */
const struct sched_terms *heads_terms(const struct sched_flow *flow);

/* The functions of the same name of struct sched_ops. */
void heads_enter(struct sched *s);
void heads_leave(struct sched *s);
void heads_queue(struct sched *s, struct sched_item *item);
struct sched_item *heads_peek(struct sched *s);
void heads_take(struct sched *s, struct sched_item *item);
void heads_put_back(struct sched *s, struct sched_item *item);
void heads_remove(struct sched *s, struct sched_item *item);
void heads_done(struct sched *s, struct sched_item *item, uint64_t true_cost);
void heads_changed(struct sched *s, struct sched_flow *flow);

#endif
