/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_tags.c: the flows ordered by the start tags of their heads.
 *
 * Invariant: a flow is in s->ready, under (flow->tag, sequence of its head), iff its queue is not
 * empty.
 */
#include "sched/algorithms/tags/start_tags.h"

static void push(struct sched *s, struct sched_flow *flow)
{
    heap_push(&s->ready, flow, flow->tag, sched_flow_head(flow)->sequence);
}

static void rekey(struct sched *s, struct sched_flow *flow)
{
    heap_rekey(&s->ready, flow, flow->tag, sched_flow_head(flow)->sequence);
}

void start_tags_enter(struct sched *s)
{
    for (uint64_t i = 0; i < s->flows; i++)
        if (s->slots[i]->queue.head != NULL)
            push(s, s->slots[i]);
}

void start_tags_leave(struct sched *s)
{
    heap_clear(&s->ready);
}

void start_tags_queue(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    queue_push_back(&flow->queue, item);
    if (first) {
        tags_wake(s, flow);
        push(s, flow);
    }
}

struct sched_item *start_tags_peek(struct sched *s)
{
    assert(s->ready.count > 0);
    return s->ready.entries[0].flow->queue.head;
}

void start_tags_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    assert(flow->queue.head == item && s->ready.entries[0].flow == flow);
    queue_pop_front(&flow->queue);
    tags_take(s, flow, item);
    if (flow->queue.head != NULL)
        rekey(s, flow);
    else
        heap_remove(&s->ready, flow);
}

void start_tags_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    tags_put_back(s, flow, item);
    queue_push_front(&flow->queue, item);
    if (heap_has(&s->ready, flow))
        rekey(s, flow);
    else
        push(s, flow);
}

/*
 * The tag stays: it becomes the start tag of the next in line, or, as a last finish tag, charges
 * nothing, since the next start is the later of it and v.
 */
void start_tags_remove(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool was_head = flow->queue.head == item;

    queue_remove(&flow->queue, item);
    if (!was_head)
        return;
    if (flow->queue.head != NULL)
        rekey(s, flow);
    else
        heap_remove(&s->ready, flow);
}

void tags_correct(struct sched_flow *flow, const struct sched_item *item, uint64_t true_cost)
{
    if (true_cost == item->cost)
        return;
    int64_t owed = flow->owed + vtime_charge(flow, (int64_t)true_cost - (int64_t)item->cost);
    if (owed > VTIME_OWED_MAX)
        owed = VTIME_OWED_MAX;
    else if (owed < -VTIME_OWED_MAX)
        owed = -VTIME_OWED_MAX;
    flow->owed = owed;
}

void start_tags_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    (void)s;
    tags_correct(item->flow, item, true_cost);
}
