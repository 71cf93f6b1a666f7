/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsfq.c: four-tag start-time fair queueing, FSFQ(D) (Jin, Chase, Kaur, "Interposed Proportional
 * Sharing", SIGMETRICS 2004), with v' taken from the start tags S of the outstanding requests.
 *
 *     S'_j = max(v'(A_j), F_{j-1})  if F_{j-1} < v(A_j),   else  max(v'(A_j), F'_{j-1})
 *     S_j  = max(v(A_j), S'_j)      F_j = S_j + c_j / w    F'_j = S'_j + c_j / w
 *     order of dispatch: S, then S', then arrival
 *
 * As everywhere, tags are given when a request becomes its flow's head (start_tags.h); flow->tag
 * and flow->adjusted are S and S' of the head, or F and F' of the last request. Until then
 * item->start and item->aside keep v(A) and v'(A).
 *
 * Dispatch is in ascending order of S, so s->out, sorted by S, grows at its tail and its head is
 * v'. Not so what another algorithm dispatched, or what was taken back: v' is never after v, and
 * never goes back.
 *
 * Invariant: a flow is in s->ready, under (S, S', sequence), iff its queue is not empty.
 */
#include "sched/algorithms/tags/start_tags.h"

#define IN_STEP (UINT64_C(1) << 63)

/*
 * What decides between equal S: S', then the arrival. Flows with S' < S come first, by S' as told
 * from S (below IN_STEP), and heap.h compares the arrivals where that is equal too; those with S' =
 * S, the most by far, come behind them by arrival.
 */
static uint64_t low(const struct sched_flow *flow)
{
    return flow->adjusted == flow->tag ? IN_STEP | sched_flow_head(flow)->sequence
                                       : flow->adjusted - flow->tag + IN_STEP;
}

static void push(struct sched *s, struct sched_flow *flow)
{
    heap_push(&s->ready, flow, flow->tag, low(flow));
}

static void rekey(struct sched *s, struct sched_flow *flow)
{
    heap_rekey(&s->ready, flow, flow->tag, low(flow));
}

static void move_adjusted_vtime(struct sched *s)
{
    const struct sched_item *first = s->out.head;
    uint64_t least = s->vtime;

    if (first != NULL && vtime_before(first->start, least))
        least = first->start;
    s->adjusted_vtime = vtime_later(s->adjusted_vtime, least);
}

/* The flow has a head, before which F and F' were these. */
static void tag_head(struct sched_flow *flow, uint64_t finish, uint64_t adjusted_finish)
{
    const struct sched_item *head = sched_flow_head(flow);

    flow->adjusted = vtime_before(finish, head->start) ? finish : adjusted_finish;
    if (vtime_before(flow->adjusted, head->aside)) {
        flow->adjusted = head->aside;
        flow->tag_rest = 0;
    }
    flow->tag = vtime_later(head->start, flow->adjusted);
}

static void fsfq_enter(struct sched *s)
{
    queue_sort_by_start(&s->out);
    for (uint64_t i = 0; i < s->flows; i++)
        if (s->slots[i]->queue.head != NULL)
            push(s, s->slots[i]);
}

static void fsfq_queue(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    item->start = s->vtime;
    item->aside = s->adjusted_vtime;
    queue_push_back(&flow->queue, item);
    if (first) {
        const uint64_t owed = (uint64_t)flow->owed;
        flow->owed = 0;
        tag_head(flow, flow->tag + owed, flow->adjusted + owed);
        push(s, flow);
    }
}

static void fsfq_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const uint64_t charge = (uint64_t)vtime_charge(flow, (int64_t)item->cost);

    assert(flow->queue.head == item && s->ready.entries[0].flow == flow);
    queue_pop_front(&flow->queue);
    item->start = flow->tag;
    item->finish = flow->tag + charge;
    item->aside = flow->adjusted;
    s->front = vtime_later(s->front, item->start);
    s->max_finish = vtime_later(s->max_finish, item->finish);
    s->vtime = vtime_later(s->vtime, item->start);
    queue_insert_by_start(&s->out, item);
    move_adjusted_vtime(s);
    if (flow->queue.head != NULL) {
        const uint64_t charged = tags_next(flow, 0, charge);
        tag_head(flow, item->start + charged, flow->adjusted + charged);
        rekey(s, flow);
    } else {
        flow->adjusted += charge;
        flow->tag = item->finish;
        heap_remove(&s->ready, flow);
    }
}

/* Its S' may have been lifted over F' of the one before; then less than the charge comes off. */
static void fsfq_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    flow->adjusted =
        vtime_later(flow->adjusted - (item->finish - item->start), s->vtime - VTIME_LAG);
    flow->tag = vtime_later(item->start, flow->adjusted);
    item->aside = s->adjusted_vtime;
    queue_push_front(&flow->queue, item);
    if (heap_has(&s->ready, flow))
        rekey(s, flow);
    else
        push(s, flow);
    move_adjusted_vtime(s);
}

/* The next in line takes over the tags, as in start_tags_remove. */
static void fsfq_remove(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool was_head = flow->queue.head == item;

    queue_remove(&flow->queue, item);
    if (!was_head)
        return;
    if (flow->queue.head == NULL) {
        heap_remove(&s->ready, flow);
        return;
    }
    const uint64_t tag = flow->tag;
    tag_head(flow, tag, flow->adjusted);
    flow->tag = vtime_later(flow->tag, tag);
    rekey(s, flow);
}

static void fsfq_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    tags_correct(item->flow, item, true_cost);
    move_adjusted_vtime(s);
}

const struct sched_ops sched_fsfq_ops = {
    .name = "fsfq",
    .second_clock = true,
    .stamps_arrival = true,
    .enter = fsfq_enter,
    .leave = start_tags_leave,
    .queue = fsfq_queue,
    .peek = start_tags_peek,
    .take = fsfq_take,
    .put_back = fsfq_put_back,
    .remove = fsfq_remove,
    .done = fsfq_done,
};
