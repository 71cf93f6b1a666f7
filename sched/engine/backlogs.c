/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backlogs.c: whom to put out of the queue, and whom not; see backlogs.h, and sched_victim in
 * sched.h.
 *
 * Invariant while watching, between calls: a flow is in s->backlogs iff it has queued requests, and
 * its key is that of its newest one. There is room for every attached flow.
 *
 * Tags wrap around and are compared by the sign of their difference, as those of vtime.h: so each
 * time V has moved on by VTIME_LAG, tags that stand behind it are lifted.
 */
#include "sched/engine/backlogs.h"

#include <errno.h>

#define FIFO_SEARCHED   64
#define CREDIT_REQUESTS 64
#define BURST_REQUESTS  (CREDIT_REQUESTS / 2)

/* No queue is as long as this: it keeps differences below 2^62. */
#define BACKLOG_MOST (UINT64_C(1) << 61)

/* In the unit of virtual time: 2^-20 of a unit of cost at weight 1. */
static uint64_t normalised(const struct sched_flow *flow, uint64_t cost)
{
    unsigned __int128 time = (unsigned __int128)cost * flow->reciprocal >> VTIME_REST_BITS;

    return time < BACKLOG_MOST ? (uint64_t)time : BACKLOG_MOST;
}

/* How far a flow's tag may stand behind V when it gets a request of that cost. */
static uint64_t credit(const struct sched_flow *flow, uint64_t cost)
{
    return normalised(flow, CREDIT_REQUESTS * cost);
}

/* Of the newest of the flow's requests, with one of `cost` more. */
static uint64_t newest_tag(const struct sched *s, const struct sched_flow *flow, uint64_t cost)
{
    uint64_t before = flow->queued_cost;
    uint64_t tag = flow->share_tag;

    if (flow->queued == 0)
        tag = vtime_later(s->share_clock - credit(flow, cost), tag);
    else if (cost == 0)
        before -= before / flow->queued;
    return tag + normalised(flow, before);
}

void sched_backlog_rekey(struct sched *s, struct sched_flow *flow)
{
    bool is_in = heap_has(&s->backlogs, flow);
    /* The heap has the smallest first. */
    uint64_t key = 0 - newest_tag(s, flow, 0);

    if (flow->queued == 0) {
        if (is_in)
            heap_remove(&s->backlogs, flow);
    } else if (is_in) {
        heap_rekey(&s->backlogs, flow, key, 0);
    } else {
        heap_push(&s->backlogs, flow, key, 0);
    }
}

void sched_backlog_joined(struct sched *s, struct sched_flow *flow)
{
    if (flow->queued == 1)
        flow->share_tag =
            vtime_later(s->share_clock - credit(flow, flow->queued_cost), flow->share_tag);
    sched_backlog_rekey(s, flow);
}

static void lift(struct sched *s)
{
    s->shares_lifted = s->share_clock;
    for (uint64_t i = 0; i < s->flows; i++) {
        struct sched_flow *flow = s->slots[i];
        if (vtime_before(flow->share_tag, s->share_clock - VTIME_LAG / 2))
            flow->share_tag = s->share_clock - VTIME_LAG / 2;
        sched_backlog_rekey(s, flow);
    }
}

void sched_backlog_charge(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    s->share_clock = vtime_later(s->share_clock, flow->share_tag);
    flow->share_tag += normalised(flow, item->cost);
    sched_backlog_rekey(s, flow);
    if (s->share_clock - s->shares_lifted >= VTIME_LAG)
        lift(s);
}

void sched_backlog_refund(struct sched *s, struct sched_item *item)
{
    item->flow->share_tag -= normalised(item->flow, item->cost);
    sched_backlog_rekey(s, item->flow);
}

int sched_watch_backlogs(struct sched *s, bool on)
{
    if (on == s->watching)
        return 0;
    if (on && heap_reserve(&s->backlogs, s->flows) != 0)
        return -ENOMEM;
    heap_clear(&s->backlogs);
    s->watching = on;
    for (uint64_t i = 0; on && i < s->flows; i++) {
        s->slots[i]->share_tag = s->share_clock;
        sched_backlog_rekey(s, s->slots[i]);
    }
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
    if (longest == flow || !vtime_before(newest_tag(s, flow, cost), newest_tag(s, longest, 0)))
        return NULL;
    return longest->queue.tail != NULL ? longest->queue.tail : newest_in_arrivals(s, longest);
}

static bool takes_less_than_its_share(const struct sched *s, const struct sched_flow *flow)
{
    uint64_t mean_cost = flow->queued != 0 ? flow->queued_cost / flow->queued : 1;
    uint64_t tag = newest_tag(s, flow, 0) + credit(flow, mean_cost) / 2;
    bool is_alone = s->active_weight <= flow->weight;

    return s->watching && !is_alone && vtime_before(tag, s->share_clock);
}

bool sched_within_share(const struct sched *s, const struct sched_flow *flow, uint64_t slots)
{
    bool cost = s->depth_unit == SCHED_DEPTH_COST;
    uint64_t has =
        cost ? flow->queued_cost + flow->outstanding_cost : flow->queued + flow->outstanding;
    uint64_t queue = cost ? s->queued_cost : s->queued;
    uint64_t burst = BURST_REQUESTS * (cost && s->queued > 0 ? s->queued_cost / s->queued : 1);

    if ((unsigned __int128)has * s->active_weight <= (unsigned __int128)slots * flow->weight)
        return true;
    return queue <= (slots > burst ? slots : burst) && takes_less_than_its_share(s, flow);
}
