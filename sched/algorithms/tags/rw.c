/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rw.c: request windows, RW(D) (Jin, Chase, Kaur, "Interposed Proportional Sharing", SIGMETRICS
 * 2004), and the hybrid of RW(D) and SFQ(D): the same with every window wider by a slack.
 *
 * A flow may issue iff  in use - slack < D * w / W,  W the weights of all flows that are active or
 * pinned; without division, (in use - slack) * W < D * w. Fractional windows are not rounded:
 * rounding down would give the flow with the smaller fraction more than its share for good. Among
 * the flows with room the start tags decide, v as in SFQ(D).
 *
 * A backlogged flow is in s->ready, by (start tag, sequence), or in s->parked, by the ratio
 * (in use - slack) / w. Windows change with D and W, that is with all flows at once; but the parked
 * flow with the smallest ratio is always the first to get room, so no change needs a scan:
 *   - a flow that is found at the top of s->ready without room moves to s->parked;
 *   - the top of s->parked moves to s->ready as soon as it has room.
 * Flows in s->ready may have lost their room meanwhile; those in s->parked may have none only if
 * the top has none. Both are put right by peek.
 *
 * v may pass the start tags of parked flows, so items keep v(A) (stamped.h).
 */
#include "sched/algorithms/tags/stamped.h"

#define MANTISSA_BITS 57

static uint64_t slack(const struct sched *s)
{
    return s->algorithm == SCHED_ALGORITHM_HYBRID ? s->options.slack : 0;
}

/* What the flow has in use that its window must hold. */
static uint64_t held(const struct sched *s, const struct sched_flow *flow)
{
    uint64_t in_use = sched_flow_in_use(s, flow);

    return in_use > slack(s) ? in_use - slack(s) : 0;
}

static bool has_room(const struct sched *s, const struct sched_flow *flow)
{
    const uint64_t weights = s->active_weight + s->idle_pinned_weight;

    return (unsigned __int128)held(s, flow) * weights < (unsigned __int128)s->depth * flow->weight;
}

/*
 * held / weight as a number whose order is that of the ratios, exact to 2^-57 of them: the place of
 * its leading bit above, the bits behind it below.
 */
static uint64_t ratio(const struct sched *s, const struct sched_flow *flow)
{
    unsigned __int128 quotient = ((unsigned __int128)held(s, flow) << 63) / flow->weight;
    uint64_t high = (uint64_t)(quotient >> 64);

    if (quotient == 0)
        return 0;
    unsigned length = high != 0 ? 128U - (unsigned)__builtin_clzll(high)
                                : 64U - (unsigned)__builtin_clzll((uint64_t)quotient);
    uint64_t bits = length > MANTISSA_BITS ? (uint64_t)(quotient >> (length - MANTISSA_BITS))
                                           : (uint64_t)quotient << (MANTISSA_BITS - length);
    /* The leading bit is always there and counts as one more step of the length. */
    return ((uint64_t)(length - 1) << (MANTISSA_BITS - 1)) + bits;
}

/* To s->ready, whether there is room or not. */
static void rw_place(struct sched *s, struct sched_flow *flow)
{
    const struct sched_item *head = flow->queue.head;

    if (heap_has(&s->parked, flow))
        heap_remove(&s->parked, flow);
    if (head == NULL) {
        if (heap_has(&s->ready, flow))
            heap_remove(&s->ready, flow);
    } else if (heap_has(&s->ready, flow)) {
        heap_rekey(&s->ready, flow, flow->tag, head->sequence);
    } else {
        heap_push(&s->ready, flow, flow->tag, head->sequence);
    }
}

static void rw_leave(struct sched *s)
{
    heap_clear(&s->ready);
    heap_clear(&s->parked);
}

static struct sched_item *rw_peek(struct sched *s)
{
    while (s->parked.count > 0) {
        struct sched_flow *flow = s->parked.entries[0].flow;
        if (!has_room(s, flow))
            break;
        rw_place(s, flow);
    }
    while (s->ready.count > 0) {
        struct sched_flow *flow = s->ready.entries[0].flow;
        if (has_room(s, flow))
            return flow->queue.head;
        heap_remove(&s->ready, flow);
        heap_push(&s->parked, flow, ratio(s, flow), sched_flow_head(flow)->sequence);
    }
    return NULL;
}

static void rw_take(struct sched *s, struct sched_item *item)
{
    stamped_take(s, item);
    s->vtime = vtime_later(s->vtime, item->start);
}

const struct sched_ops sched_rw_ops = {
    .name = "rw",
    .heaps = SCHED_HEAPS_PARKED,
    .stamps_arrival = true,
    .place = rw_place,
    .enter = stamped_enter,
    .leave = rw_leave,
    .queue = stamped_queue,
    .peek = rw_peek,
    .take = rw_take,
    .put_back = stamped_put_back,
    .remove = stamped_remove,
    .done = stamped_done,
    .changed = stamped_changed,
};

const struct sched_ops sched_hybrid_ops = {
    .name = "hybrid",
    .heaps = SCHED_HEAPS_PARKED,
    .stamps_arrival = true,
    .place = rw_place,
    .enter = stamped_enter,
    .leave = rw_leave,
    .queue = stamped_queue,
    .peek = rw_peek,
    .take = rw_take,
    .put_back = stamped_put_back,
    .remove = stamped_remove,
    .done = stamped_done,
    .changed = stamped_changed,
};
