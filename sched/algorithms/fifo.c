/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo.c: arrival order over all flows, at most D outstanding. No tags: v stands still.
 *
 * All that waits is in s->arrivals; the flows' own queues and the ready heap are empty.
 */
#include "sched/engine/engine.h"

/* Merges the flows' queues by arrival; within a flow the queue's own order stands. */
static void fifo_enter(struct sched *s)
{
    sched_flows_forget(s);
    for (uint64_t i = 0; i < s->flows; i++)
        if (s->slots[i]->queue.head != NULL)
            heap_push(&s->ready, s->slots[i], 0, s->slots[i]->queue.head->sequence);
    while (s->ready.count > 0) {
        struct sched_flow *flow = s->ready.entries[0].flow;
        struct sched_item *item = flow->queue.head;
        queue_pop_front(&flow->queue);
        queue_push_back(&s->arrivals, item);
        if (flow->queue.head != NULL)
            heap_rekey(&s->ready, flow, 0, flow->queue.head->sequence);
        else
            heap_remove(&s->ready, flow);
    }
}

static void fifo_leave(struct sched *s)
{
    struct sched_item *item;

    while ((item = s->arrivals.head) != NULL) {
        queue_remove(&s->arrivals, item);
        queue_push_back(&item->flow->queue, item);
    }
}

static void fifo_queue(struct sched *s, struct sched_item *item)
{
    queue_push_back(&s->arrivals, item);
}

static struct sched_item *fifo_peek(struct sched *s)
{
    return s->arrivals.head;
}

static void fifo_take(struct sched *s, struct sched_item *item)
{
    queue_remove(&s->arrivals, item);
    item->start = s->vtime;
    item->finish = s->vtime;
    queue_push_back(&s->out, item);
}

static void fifo_put_back(struct sched *s, struct sched_item *item)
{
    queue_push_front(&s->arrivals, item);
}

static void fifo_remove(struct sched *s, struct sched_item *item)
{
    queue_remove(&s->arrivals, item);
}

static void fifo_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    (void)s;
    (void)item;
    (void)true_cost;
}

const struct sched_ops sched_fifo_ops = {
    .name = "fifo",
    .enter = fifo_enter,
    .leave = fifo_leave,
    .queue = fifo_queue,
    .peek = fifo_peek,
    .take = fifo_take,
    .put_back = fifo_put_back,
    .remove = fifo_remove,
    .done = fifo_done,
};
