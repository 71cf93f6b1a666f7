/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wfq.c: weighted fair queueing (Demers, Keshav, Shenker 1989) in front of a service with D slots,
 * as the 2004 paper sets it beside SFQ(D): dispatch by finish tag, v runs with time.
 *
 *     dv/dt = C / W
 *
 * C, W: options.capacity_per_s and the weights of all flows with requests; or, where the capacity
 * is not known, outstanding / u and the weights of the flows with requests queued (of those with
 * any, when none are queued). u = slot time held / cost completed is the mean time that a unit of
 * cost holds a slot; both sums are halved whenever either reaches 2^32, so that u follows the last
 * seconds. Until something has completed v stands.
 *
 * What falls below the last place of v is carried on, so that many short steps make the same way as
 * one long one. v is taken to move no further than half the range of the tags ahead of the start
 * tags dispatched, whatever the capacity that was claimed.
 *
 * v may pass the start tags of waiting requests, so items keep v(A) (start_tags.h).
 * Invariant: a flow is in s->ready, under (F of its head, sequence), iff its queue is not empty;
 * s->speed.backlogged_weight is the sum over these.
 */
#include "sched/algorithms/start_tags.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define LONGEST_NS    (UINT64_C(1) << 40) /* passed over at a time; more counts as this much */
#define SUM_LIMIT     (UINT64_C(1) << 32)
#define MOST_SLOTS    (UINT64_C(1) << 31)
#define REST_BITS     32

static uint64_t finish_of_head(const struct sched_flow *flow)
{
    unsigned __int128 charge =
        (unsigned __int128)flow->queue.head->cost * flow->reciprocal + flow->tag_rest;

    return flow->tag + (uint64_t)(charge >> VTIME_REST_BITS);
}

static void push(struct sched *s, const struct sched_flow *flow)
{
    heap_push(&s->ready, flow->slot, finish_of_head(flow), 0, flow->queue.head->sequence);
}

static void rekey(struct sched *s, const struct sched_flow *flow)
{
    heap_rekey(&s->ready, flow->slot, finish_of_head(flow), 0, flow->queue.head->sequence);
}

static void limit_sums(struct sched_speed *speed)
{
    while (speed->slot_ns >= SUM_LIMIT || speed->done_cost >= SUM_LIMIT) {
        speed->slot_ns /= 2;
        speed->done_cost /= 2;
    }
}

/* The speed of v, in its last place per ns, as a fraction; 0 / 1 when it can't be told. */
static void vtime_speed(const struct sched *s, unsigned __int128 *above, unsigned __int128 *below)
{
    const struct sched_speed *speed = &s->speed;

    *above = 0;
    *below = 1;
    if (s->active_weight == 0)
        return;
    if (s->options.capacity_per_s != 0) {
        *above = (unsigned __int128)s->options.capacity_per_s << VTIME_SHIFT;
        *below = (unsigned __int128)NS_PER_SECOND * s->active_weight;
    } else if (speed->slot_ns != 0) {
        uint64_t weights =
            speed->backlogged_weight != 0 ? speed->backlogged_weight : s->active_weight;
        uint64_t outstanding = s->outstanding < MOST_SLOTS ? s->outstanding : MOST_SLOTS;
        *above = (unsigned __int128)(outstanding * speed->done_cost) << VTIME_SHIFT;
        *below = (unsigned __int128)speed->slot_ns * weights;
    }
}

static void wfq_elapse(struct sched *s, uint64_t passed_ns)
{
    unsigned __int128 above;
    unsigned __int128 below;

    if (passed_ns > LONGEST_NS)
        passed_ns = LONGEST_NS;
    vtime_speed(s, &above, &below);
    unsigned __int128 way = above * passed_ns;
    uint64_t rest = s->speed.vtime_rest + (uint64_t)(((way % below) << REST_BITS) / below);
    unsigned __int128 moved = way / below + (rest >> REST_BITS);
    uint64_t furthest = s->front + VTIME_LAG - s->vtime;

    if (furthest > 2 * VTIME_LAG)
        furthest = 0;
    s->speed.vtime_rest = rest & ((UINT64_C(1) << REST_BITS) - 1);
    s->vtime += moved < furthest ? (uint64_t)moved : furthest;
    s->speed.slot_ns += s->outstanding * passed_ns;
    limit_sums(&s->speed);
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
    s->speed.done_cost += true_cost;
    limit_sums(&s->speed);
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
