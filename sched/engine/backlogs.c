/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backlogs.c: whom to put out of the queue; see backlogs.h and sched_victim in sched.h.
 *
 * Invariant while watching, between calls: a flow is in s->backlogs iff it has queued requests, and
 * its key is that of its present backlog. There is room for every attached flow.
 */
#include "sched/engine/backlogs.h"

#include <errno.h>

/* The heap has the smallest first and compares by the sign of the difference. */
#define LONGEST_KEY (UINT64_C(1) << 62)

#define FIFO_SEARCHED 64

/* In the unit of virtual time: 2^-20 of a unit of cost at weight 1. */
static uint64_t normalised(const struct sched_flow *flow, uint64_t more)
{
    unsigned __int128 cost = (unsigned __int128)flow->queued_cost + flow->outstanding_cost + more;
    /* Any backlog as long as this is the longest there is. */
    if (cost > LONGEST_KEY)
        return LONGEST_KEY;
    cost = cost * flow->reciprocal >> VTIME_REST_BITS;
    return cost < LONGEST_KEY ? (uint64_t)cost : LONGEST_KEY;
}

void sched_backlog_rekey(struct sched *s, struct sched_flow *flow)
{
    uint64_t key = LONGEST_KEY - normalised(flow, 0);
    bool is_in = heap_has(&s->backlogs, flow);

    if (flow->queued == 0) {
        if (is_in)
            heap_remove(&s->backlogs, flow);
    } else if (is_in) {
        heap_rekey(&s->backlogs, flow, key, 0);
    } else {
        heap_push(&s->backlogs, flow, key, 0);
    }
}

int sched_watch_backlogs(struct sched *s, bool on)
{
    if (on == s->watching)
        return 0;
    heap_clear(&s->backlogs);
    s->watching = on;
    if (on && heap_reserve(&s->backlogs, s->flows) != 0) {
        s->watching = false;
        return -ENOMEM;
    }
    for (uint64_t i = 0; on && i < s->flows; i++)
        sched_backlog_rekey(s, s->slots[i]);
    return 0;
}

/* FIFO has one queue for all. */
static struct sched_item *newest_in_arrivals(const struct sched *s, const struct sched_flow *flow)
{
    struct sched_item *item = s->arrivals.tail;

    for (unsigned i = 0; item != NULL && item->flow != flow; i++)
        item = i < FIFO_SEARCHED ? item->prev : NULL;
    return item;
}

struct sched_item *sched_victim(const struct sched *s, const struct sched_flow *flow, uint64_t cost)
{
    if (!s->watching || s->backlogs.count == 0)
        return NULL;
    struct sched_flow *longest = s->backlogs.entries[0].flow;
    if (longest == flow || normalised(longest, 0) <= normalised(flow, cost))
        return NULL;
    return longest->queue.tail != NULL ? longest->queue.tail : newest_in_arrivals(s, longest);
}
