/* SPDX-License-Identifier: Apache-2.0 */
/* heads.c: the order by heads that heads.h describes. */
#include "sched/algorithms/heads/heads.h"

const struct sched_terms *heads_terms(const struct sched_flow *flow)
{
    static const struct sched_terms none;

    return flow->terms != NULL ? flow->terms : &none;
}

static void push(struct sched *s, struct sched_flow *flow)
{
    heap_push(&s->ready, flow, s->ops->head_key(s, flow), sched_flow_head(flow)->sequence);
}

static void head_changed(struct sched *s, struct sched_flow *flow)
{
    if (flow->queue.head != NULL)
        heap_rekey(&s->ready, flow, s->ops->head_key(s, flow), sched_flow_head(flow)->sequence);
    else
        heap_remove(&s->ready, flow);
}

void heads_enter(struct sched *s)
{
    sched_flows_forget(s);
    for (uint64_t i = 0; i < s->flows; i++)
        if (s->slots[i]->queue.head != NULL)
            push(s, s->slots[i]);
}

void heads_leave(struct sched *s)
{
    heap_clear(&s->ready);
}

void heads_queue(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    queue_push_back(&flow->queue, item);
    if (first)
        push(s, flow);
}

struct sched_item *heads_peek(struct sched *s)
{
    return s->ready.entries[0].flow->queue.head;
}

void heads_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    assert(flow->queue.head == item);
    queue_pop_front(&flow->queue);
    head_changed(s, flow);
    item->start = s->vtime;
    item->finish = s->vtime;
    queue_push_back(&s->out, item);
}

void heads_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    queue_push_front(&flow->queue, item);
    if (first)
        push(s, flow);
    else
        head_changed(s, flow);
}

void heads_remove(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool was_head = flow->queue.head == item;

    queue_remove(&flow->queue, item);
    if (was_head)
        head_changed(s, flow);
}

void heads_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    (void)s;
    (void)item;
    (void)true_cost;
}

void heads_changed(struct sched *s, struct sched_flow *flow)
{
    if (flow != NULL) {
        if (flow->queue.head != NULL)
            head_changed(s, flow);
        return;
    }
    for (uint64_t i = 0; i < s->flows; i++)
        if (s->slots[i]->queue.head != NULL)
            head_changed(s, s->slots[i]);
}
