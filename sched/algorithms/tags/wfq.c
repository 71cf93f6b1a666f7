/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wfq.c: weighted fair queueing (Demers, Keshav, Shenker 1989) in front of a service with D slots,
 * as the 2004 paper sets it beside SFQ(D): dispatch by finish tag, v runs with time.
 *
 * The speed of v is that of the clock in fluid.h.
 *
 * v may pass the start tags of waiting requests, so items keep v(A) (stamped.h).
 * Invariant: a flow is in s->ready, under (F of its head, sequence), iff its queue is not empty;
 * s->speed.backlogged_weight is the sum over these.
 */
#include "sched/algorithms/tags/fluid.h"
#include "sched/algorithms/tags/stamped.h"

static void wfq_place(struct sched *s, struct sched_flow *flow)
{
    const bool placed = heap_has(&s->ready, flow);

    if (flow->queue.head == NULL) {
        if (!placed)
            return;
        heap_remove(&s->ready, flow);
        s->speed.backlogged_weight -= flow->weight;
        return;
    }
    uint64_t finish = flow->tag + tags_charge_of_head(flow);
    uint64_t sequence = flow->queue.head->sequence;
    if (placed) {
        heap_rekey(&s->ready, flow, finish, sequence);
        return;
    }
    heap_push(&s->ready, flow, finish, sequence);
    s->speed.backlogged_weight += flow->weight;
}

static void wfq_elapse(struct sched *s, uint64_t passed_ns)
{
    fluid_elapse(s, &s->vtime, passed_ns);
}

static void wfq_enter(struct sched *s)
{
    s->speed.backlogged_weight = 0;
    stamped_enter(s);
}

static void wfq_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    tags_correct(item->flow, item, true_cost);
    fluid_done(s, true_cost);
}

const struct sched_ops sched_wfq_ops = {
    .name = "wfq",
    .stamps_arrival = true,
    .place = wfq_place,
    .elapse = wfq_elapse,
    .enter = wfq_enter,
    .leave = start_tags_leave,
    .queue = stamped_queue,
    .peek = start_tags_peek,
    .take = stamped_take,
    .put_back = stamped_put_back,
    .remove = stamped_remove,
    .done = wfq_done,
    .changed = stamped_changed,
};
