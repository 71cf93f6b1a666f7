/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_tags.c: start and finish tags, and the heap of backlogged flows.
 *
 * Invariant: a flow is in s->ready, under (flow->tag, sequence of its head), iff its queue is not
 * empty.
 */
#include "sched/algorithms/start_tags.h"

#include <assert.h>

void start_tags_enter(struct sched *s)
{
    for (struct sched_flow *flow = s->all; flow != NULL; flow = flow->all_next)
        if (flow->queue.head != NULL)
            heap_push(&s->ready, flow, flow->tag, flow->queue.head->sequence);
}

void start_tags_leave(struct sched *s)
{
    for (uint32_t i = 0; i < s->ready.count; i++)
        s->ready.entries[i].flow->heap_index = HEAP_NONE;
    s->ready.count = 0;
}

void start_tags_queue(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    if (flow->queue.head == NULL) {
        flow->tag += (uint64_t)flow->owed;
        flow->owed = 0;
        if (vtime_before(flow->tag, s->vtime)) {
            flow->tag = s->vtime;
            flow->tag_rest = 0;
        }
        heap_push(&s->ready, flow, flow->tag, item->sequence);
    }
    queue_push_back(&flow->queue, item);
}

struct sched_item *start_tags_peek(const struct sched *s)
{
    assert(s->ready.count > 0);
    return s->ready.entries[0].flow->queue.head;
}

/* Where the head of a backlogged flow starts, after one that started and finished so. */
static uint64_t next_start(struct sched_flow *flow, uint64_t start, uint64_t finish)
{
    int64_t charged = (int64_t)(finish - start) + flow->owed;

    flow->owed = charged < 0 ? charged : 0;
    return charged < 0 ? start : start + (uint64_t)charged;
}

void start_tags_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    assert(flow->queue.head == item && flow->heap_index == 0);
    queue_remove(&flow->queue, item);
    item->start = flow->tag;
    item->finish = item->start + (uint64_t)vtime_charge(flow, (int64_t)item->cost);
    s->front = vtime_later(s->front, item->start);
    s->max_finish = vtime_later(s->max_finish, item->finish);
    if (flow->queue.head != NULL) {
        flow->tag = next_start(flow, item->start, item->finish);
        heap_rekey(&s->ready, 0, flow->tag, flow->queue.head->sequence);
    } else {
        flow->tag = item->finish;
        heap_remove(&s->ready, 0);
    }
}

void start_tags_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    flow->tag -= item->finish - item->start;
    queue_push_front(&flow->queue, item);
    if (flow->heap_index == HEAP_NONE)
        heap_push(&s->ready, flow, flow->tag, item->sequence);
    else
        heap_rekey(&s->ready, flow->heap_index, flow->tag, item->sequence);
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
        heap_rekey(&s->ready, flow->heap_index, flow->tag, flow->queue.head->sequence);
    else
        heap_remove(&s->ready, flow->heap_index);
}

void start_tags_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    struct sched_flow *flow = item->flow;

    (void)s;
    if (true_cost == item->cost)
        return;
    int64_t owed = flow->owed + vtime_charge(flow, (int64_t)true_cost - (int64_t)item->cost);
    if (owed > VTIME_OWED_MAX)
        owed = VTIME_OWED_MAX;
    else if (owed < -VTIME_OWED_MAX)
        owed = -VTIME_OWED_MAX;
    flow->owed = owed;
}
