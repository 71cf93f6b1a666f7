/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wfq.c: weighted fair queueing (Demers, Keshav, Shenker 1989) in front of a service with D slots,
 * as the 2004 paper sets it beside SFQ(D): dispatch by finish tag, v runs with time.
 *
 * The speed of v is that of the clock in fluid.h.
 *
 * v may pass the start tags of waiting requests, so items keep v(A) (start_tags.h).
 * Invariant: a flow is in s->ready, under (F of its head, sequence), iff its queue is not empty;
 * s->speed.backlogged_weight is the sum over these.
 */
#include "sched/algorithms/fluid.h"
#include "sched/algorithms/start_tags.h"

static uint64_t finish_of_head(const struct sched_flow *flow)
{
    unsigned __int128 charge =
        (unsigned __int128)sched_flow_head(flow)->cost * flow->reciprocal + flow->tag_rest;

    return flow->tag + (uint64_t)(charge >> VTIME_REST_BITS);
}

static void push(struct sched *s, const struct sched_flow *flow)
{
    heap_push(&s->ready, flow->slot, finish_of_head(flow), 0, sched_flow_head(flow)->sequence);
}

static void rekey(struct sched *s, const struct sched_flow *flow)
{
    heap_rekey(&s->ready, flow->slot, finish_of_head(flow), 0, sched_flow_head(flow)->sequence);
}

static void wfq_elapse(struct sched *s, uint64_t passed_ns)
{
    fluid_elapse(s, &s->vtime, passed_ns);
}

static void wfq_enter(struct sched *s)
{
    s->speed.backlogged_weight = 0;
    for (uint64_t i = 0; i < s->flows; i++) {
        if (s->slots[i]->queue.head == NULL)
            continue;
        push(s, s->slots[i]);
        s->speed.backlogged_weight += s->slots[i]->weight;
    }
}

static void wfq_queue(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    item->aside = s->vtime;
    queue_push_back(&flow->queue, item);
    if (first) {
        tags_wake(s, flow);
        push(s, flow);
        s->speed.backlogged_weight += flow->weight;
    }
}

/* The flow has another head, or none. */
static void head_changed(struct sched *s, struct sched_flow *flow)
{
    if (flow->queue.head != NULL) {
        rekey(s, flow);
        return;
    }
    heap_remove(&s->ready, flow->slot);
    s->speed.backlogged_weight -= flow->weight;
}

static void wfq_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    assert(flow->queue.head == item);
    queue_pop_front(&flow->queue);
    tags_take(s, flow, item);
    tags_heed_arrival(flow);
    head_changed(s, flow);
    queue_push_back(&s->out, item);
}

static void wfq_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    tags_put_back(flow, item);
    item->aside = item->start;
    queue_push_front(&flow->queue, item);
    if (first) {
        push(s, flow);
        s->speed.backlogged_weight += flow->weight;
    } else {
        rekey(s, flow);
    }
}

static void wfq_remove(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool was_head = flow->queue.head == item;

    queue_remove(&flow->queue, item);
    if (!was_head)
        return;
    tags_heed_arrival(flow);
    head_changed(s, flow);
}

static void wfq_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    tags_correct(item->flow, item, true_cost);
    fluid_done(s, true_cost);
}

static void wfq_changed(struct sched *s, struct sched_flow *flow)
{
    if (flow != NULL && flow->queue.head != NULL)
        rekey(s, flow);
}

const struct sched_ops sched_wfq_ops = {
    .name = "wfq",
    .stamps_arrival = true,
    .elapse = wfq_elapse,
    .enter = wfq_enter,
    .leave = start_tags_leave,
    .queue = wfq_queue,
    .peek = start_tags_peek,
    .take = wfq_take,
    .put_back = wfq_put_back,
    .remove = wfq_remove,
    .done = wfq_done,
    .changed = wfq_changed,
};
