/* SPDX-License-Identifier: Apache-2.0 */
/* stamped.c: the start tags of stamped.h. */
#include "sched/algorithms/tags/stamped.h"

void stamped_enter(struct sched *s)
{
    for (uint64_t i = 0; i < s->flows; i++)
        s->ops->place(s, s->slots[i]);
}

void stamped_queue(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    item->aside = s->vtime;
    queue_push_back(&flow->queue, item);
    if (first) {
        tags_wake(s, flow);
        s->ops->place(s, flow);
    }
}

void stamped_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    assert(flow->queue.head == item);
    queue_pop_front(&flow->queue);
    tags_take(s, flow, item);
    tags_heed_arrival(flow);
    s->ops->place(s, flow);
    queue_push_back(&s->out, item);
}

void stamped_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    tags_put_back(s, flow, item);
    item->aside = item->start;
    queue_push_front(&flow->queue, item);
    s->ops->place(s, flow);
}

void stamped_remove(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool was_head = flow->queue.head == item;

    queue_remove(&flow->queue, item);
    if (!was_head)
        return;
    tags_heed_arrival(flow);
    s->ops->place(s, flow);
}

/* What the flow has in use is less now, and its time tags may have moved. */
void stamped_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    tags_correct(item->flow, item, true_cost);
    s->ops->place(s, item->flow);
}

void stamped_changed(struct sched *s, struct sched_flow *flow)
{
    if (flow != NULL)
        s->ops->place(s, flow);
    else
        stamped_enter(s);
}
