/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minsfq.c: Min-SFQ(D) (Jin, Chase, Kaur, "Interposed Proportional Sharing", SIGMETRICS 2004).
 *
 * v is the smallest start tag among the outstanding requests. A baseline: a flow that lags and
 * always holds one request at the service freezes v, and its next burst, starting at that old v,
 * holds up all others.
 *
 * The waiting heads are counted in as well, so that v passes none of them even if the caller does
 * not dispatch after each completion, and never goes back. Where the caller does, and the depth is
 * not lowered, they make no difference: as long as a head waits, dispatch has gone to start tags no
 * later than its own, and whenever the last such request completes the slot goes to another.
 *
 * s->out is kept sorted by start tag, so the smallest is its head.
 */
#include "sched/algorithms/tags/start_tags.h"

static void move_vtime(struct sched *s)
{
    const struct sched_item *first = s->out.head;

    if (s->ready.count > 0) {
        uint64_t least = s->ready.entries[0].tag;
        if (first != NULL && vtime_before(first->start, least))
            least = first->start;
        s->vtime = vtime_later(s->vtime, least);
    } else if (first != NULL) {
        s->vtime = vtime_later(s->vtime, first->start);
    }
}

static void minsfq_enter(struct sched *s)
{
    start_tags_enter(s);
    queue_sort_by_start(&s->out);
    move_vtime(s);
}

static void minsfq_take(struct sched *s, struct sched_item *item)
{
    start_tags_take(s, item);
    queue_insert_by_start(&s->out, item);
    move_vtime(s);
}

static void minsfq_remove(struct sched *s, struct sched_item *item)
{
    start_tags_remove(s, item);
    move_vtime(s);
}

static void minsfq_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    start_tags_done(s, item, true_cost);
    move_vtime(s);
}

const struct sched_ops sched_minsfqd_ops = {
    .name = "min-sfqd",
    .enter = minsfq_enter,
    .leave = start_tags_leave,
    .queue = start_tags_queue,
    .peek = start_tags_peek,
    .take = minsfq_take,
    .put_back = start_tags_put_back,
    .remove = minsfq_remove,
    .done = minsfq_done,
};
