/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaky_bucket.c: a leaky bucket per flow, as SLEDS throttles (Chambliss et al., SRDS 2003).
 *
 * flow->limit_ns is T, the time at which the flow's next request conforms without a burst:
 *     dispatched at t:  T := max(T, t) + c / limit
 *     may go from:      max(arrival, T - burst / limit) on; the earliest such time goes first
 * Not work-conserving: what a flow may not send now stays queued though slots are free.
 */
#include "sched/algorithms/heads/heads.h"
#include "sched/algorithms/heads/rate.h"

static uint64_t conforms_ns(const struct sched *s, const struct sched_flow *flow)
{
    const struct sched_terms *terms = heads_terms(flow);
    uint64_t arrival_ns = sched_flow_head(flow)->arrival_ns;

    (void)s;
    if (terms->limit_per_s == 0)
        return arrival_ns;
    uint64_t from_ns =
        rate_from_ns(flow->limit_ns, flow->limit_rest, terms->burst, terms->limit_per_s);
    return from_ns > arrival_ns ? from_ns : arrival_ns;
}

static struct sched_item *bucket_peek(struct sched *s)
{
    return s->ready.entries[0].tag <= s->now_ns ? heads_peek(s) : NULL;
}

static void bucket_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const uint64_t limit_per_s = heads_terms(flow)->limit_per_s;

    if (limit_per_s != 0) {
        if (flow->limit_ns < s->now_ns) {
            flow->limit_ns = s->now_ns;
            flow->limit_rest = 0;
        }
        rate_charge(&flow->limit_ns, &flow->limit_rest, item->cost, limit_per_s);
        item->charged = SCHED_CHARGED_LIMIT;
    }
    heads_take(s, item);
}

static void bucket_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const uint64_t limit_per_s = heads_terms(flow)->limit_per_s;

    if (limit_per_s != 0 && item->charged != 0)
        rate_refund(&flow->limit_ns, &flow->limit_rest, item->cost, limit_per_s);
    item->charged = 0;
    heads_put_back(s, item);
}

static void bucket_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    struct sched_flow *flow = item->flow;

    if (item->charged != 0 && rate_correct(&flow->limit_ns, &flow->limit_rest, item->cost,
                                           true_cost, heads_terms(flow)->limit_per_s))
        heads_changed(s, flow);
}

static uint64_t bucket_wake_ns(const struct sched *s)
{
    return s->ready.entries[0].tag;
}

const struct sched_ops sched_leaky_bucket_ops = {
    .name = "leaky-bucket",
    .heaps = SCHED_HEAPS_COOLING,
    .head_key = conforms_ns,
    .enter = heads_enter,
    .leave = heads_leave,
    .queue = heads_queue,
    .peek = bucket_peek,
    .take = bucket_take,
    .put_back = bucket_put_back,
    .remove = heads_remove,
    .done = bucket_done,
    .changed = heads_changed,
    .wake_ns = bucket_wake_ns,
};
