/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backlogs.h: which flow's queue goes the furthest beyond its share. Private to sched/.
 *
 * Once watched, every flow has a share tag: when its next request would be due by its share, in
 * virtual time as in start-time fair queueing (Goyal, Vin, Cheng, 1996), whatever the algorithm in
 * use:
 *
 *      the flow is attached             share_tag = V
 *      a request joins an empty queue   share_tag = max(V - credit, share_tag)
 *      a request is dispatched          V = max(V, share_tag), share_tag += cost / weight
 *      a request comes back             share_tag -= cost / weight
 *
 * s->backlogs is a heap of the flows that have requests queued, by the tag of their newest one:
 * share_tag + (queued cost - its own cost, taken as the mean) / weight. The largest is what fair
 * service would come to last. Unlike a queue's length it knows whose requests the service has been
 * at, and unlike a start tag it remembers who took less than its share: the credit is worth 64
 * requests, so that a burst of such a flow does not look like an excess. (With the lengths alone,
 * 4 to 8 % of the requests of a flow at 60 % of its share were put out while another offered ten
 * times the capacity; with the credit less than 1 %.)
 */
#ifndef SPILLWAY_SCHED_ENGINE_BACKLOGS_H
#define SPILLWAY_SCHED_ENGINE_BACKLOGS_H

#include "sched/engine/engine.h"

void sched_backlog_rekey(struct sched *s, struct sched_flow *flow);
void sched_backlog_joined(struct sched *s, struct sched_flow *flow);
void sched_backlog_charge(struct sched *s, struct sched_item *item);
void sched_backlog_refund(struct sched *s, struct sched_item *item);

/* The flow's queue is shorter, or its weight another. */
static inline void sched_note_changed(struct sched *s, struct sched_flow *flow)
{
    if (s->watching)
        sched_backlog_rekey(s, flow);
}

/* A request was queued, dispatched, put back; it is counted already. */
static inline void sched_note_queued(struct sched *s, struct sched_flow *flow)
{
    if (s->watching)
        sched_backlog_joined(s, flow);
}

static inline void sched_note_taken(struct sched *s, struct sched_item *item)
{
    if (s->watching)
        sched_backlog_charge(s, item);
}

static inline void sched_note_put_back(struct sched *s, struct sched_item *item)
{
    if (s->watching)
        sched_backlog_refund(s, item);
}

#endif
