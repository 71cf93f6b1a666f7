/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mclock.c: reservation, weight and limit per flow (Gulati, Merchant, Varman, "mClock", OSDI 2010).
 *
 * Three tags of a head that arrived at A. Two are in time, and flow->reserve_ns and limit_ns are
 * what they start from:
 *
 *     R = max(A, reserve_ns)
 *     L = max(A, limit_ns)
 *     P = flow->tag
 *
 * Dispatched for its reservation, reserve_ns := R + c / reservation; in any case
 * limit_ns := L + c / limit, and P, a start tag as in SFQ(D), is charged. A request that goes by
 * its share leaves reserve_ns alone; that is the paper's "subtract 1/r from the R tags". v is the P
 * of the request that went last by its share: so what reservations push ahead does not hold back
 * those who come anew, and an idle flow comes back at v, without credit.
 *
 * With refuse_at_limit limit_ns is charged on arrival and decides there; nobody waits for L.
 *
 * A backlogged flow is in s->reserve, by R, if it has a reservation; and in s->ready, by (P,
 * sequence), or in s->parked, by the time at which its limit lets the head go, if that was after
 * now when last looked at.
 */
#include "sched/algorithms/heads/heads.h"
#include "sched/algorithms/heads/rate.h"
#include "sched/algorithms/tags/stamped.h"

static uint64_t reserve_tag_ns(const struct sched_flow *flow)
{
    uint64_t arrival_ns = sched_flow_head(flow)->arrival_ns;
    uint64_t from_ns =
        rate_from_ns(flow->reserve_ns, flow->reserve_rest, 0, heads_terms(flow)->reservation_per_s);

    return from_ns > arrival_ns ? from_ns : arrival_ns;
}

static bool waits_at_limit(const struct sched *s, const struct sched_flow *flow)
{
    return heads_terms(flow)->limit_per_s != 0 && !s->options.refuse_at_limit;
}

/* When the limit lets the head go. */
static uint64_t allowed_ns(const struct sched *s, const struct sched_flow *flow)
{
    const struct sched_terms *terms = heads_terms(flow);

    if (!waits_at_limit(s, flow))
        return 0;
    uint64_t arrival_ns = sched_flow_head(flow)->arrival_ns;
    const bool later = flow->limit_ns >= arrival_ns;
    return rate_from_ns(later ? flow->limit_ns : arrival_ns, later ? flow->limit_rest : 0,
                        terms->burst, terms->limit_per_s);
}

/* Takes the flow out of all heaps. */
static void unplace(struct sched *s, struct sched_flow *flow)
{
    if (heap_has(&s->reserve, flow))
        heap_remove(&s->reserve, flow);
    if (heap_has(&s->ready, flow))
        heap_remove(&s->ready, flow);
    else if (heap_has(&s->parked, flow))
        heap_remove(&s->parked, flow);
}

/* Puts the flow where its head belongs. */
static void mclock_place(struct sched *s, struct sched_flow *flow)
{
    const struct sched_item *head = flow->queue.head;

    unplace(s, flow);
    if (head == NULL)
        return;
    if (heads_terms(flow)->reservation_per_s != 0)
        heap_push(&s->reserve, flow, reserve_tag_ns(flow), head->sequence);
    uint64_t from_ns = allowed_ns(s, flow);
    if (from_ns > s->now_ns)
        heap_push(&s->parked, flow, from_ns, head->sequence);
    else
        heap_push(&s->ready, flow, flow->tag, head->sequence);
}

static enum sched_verdict mclock_admit(struct sched *s, struct sched_flow *flow, uint64_t cost)
{
    const struct sched_terms *terms = heads_terms(flow);

    if (!s->options.refuse_at_limit || terms->limit_per_s == 0)
        return SCHED_OK;
    if (rate_from_ns(flow->limit_ns, flow->limit_rest, terms->burst, terms->limit_per_s) >
        s->now_ns)
        return SCHED_AT_LIMIT;
    if (flow->limit_ns < s->now_ns) {
        flow->limit_ns = s->now_ns;
        flow->limit_rest = 0;
    }
    rate_charge(&flow->limit_ns, &flow->limit_rest, cost, terms->limit_per_s);
    return SCHED_OK;
}

static void mclock_leave(struct sched *s)
{
    heap_clear(&s->ready);
    heap_clear(&s->parked);
    heap_clear(&s->reserve);
}

static void mclock_queue(struct sched *s, struct sched_item *item)
{
    if (s->options.refuse_at_limit && heads_terms(item->flow)->limit_per_s != 0)
        item->charged = SCHED_CHARGED_LIMIT;
    stamped_queue(s, item);
}

/* Whether the smallest R is due. */
static bool reserve_due(const struct sched *s)
{
    return s->reserve.count > 0 && s->reserve.entries[0].tag <= s->now_ns;
}

static struct sched_item *mclock_peek(struct sched *s)
{
    while (s->parked.count > 0 && s->parked.entries[0].tag <= s->now_ns)
        mclock_place(s, s->parked.entries[0].flow);
    if (reserve_due(s))
        return s->reserve.entries[0].flow->queue.head;
    return s->ready.count > 0 ? start_tags_peek(s) : NULL;
}

static void charge_time(struct sched *s, struct sched_flow *flow, struct sched_item *item,
                        bool reserved)
{
    const struct sched_terms *terms = heads_terms(flow);

    if (reserved) {
        item->charged |= SCHED_CHARGED_RESERVATION;
        if (flow->reserve_ns < item->arrival_ns) {
            flow->reserve_ns = item->arrival_ns;
            flow->reserve_rest = 0;
        }
        rate_charge(&flow->reserve_ns, &flow->reserve_rest, item->cost, terms->reservation_per_s);
    }
    if (waits_at_limit(s, flow)) {
        item->charged |= SCHED_CHARGED_LIMIT;
        if (flow->limit_ns < item->arrival_ns) {
            flow->limit_ns = item->arrival_ns;
            flow->limit_rest = 0;
        }
        rate_charge(&flow->limit_ns, &flow->limit_rest, item->cost, terms->limit_per_s);
    }
}

static void mclock_take(struct sched *s, struct sched_item *item)
{
    const bool reserved = reserve_due(s) && s->reserve.entries[0].flow == item->flow;

    charge_time(s, item->flow, item, reserved);
    stamped_take(s, item);
    if (!reserved)
        s->vtime = vtime_later(s->vtime, item->start);
}

/* What was charged on arrival stays so. */
static void mclock_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const struct sched_terms *terms = heads_terms(flow);

    if ((item->charged & SCHED_CHARGED_RESERVATION) != 0 && terms->reservation_per_s != 0)
        rate_refund(&flow->reserve_ns, &flow->reserve_rest, item->cost, terms->reservation_per_s);
    item->charged &= (uint8_t)~SCHED_CHARGED_RESERVATION;
    if ((item->charged & SCHED_CHARGED_LIMIT) != 0 && waits_at_limit(s, flow)) {
        rate_refund(&flow->limit_ns, &flow->limit_rest, item->cost, terms->limit_per_s);
        item->charged = 0;
    }
    stamped_put_back(s, item);
}

static void mclock_remove(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const uint64_t limit_per_s = heads_terms(flow)->limit_per_s;

    if ((item->charged & SCHED_CHARGED_LIMIT) != 0 && limit_per_s != 0)
        rate_refund(&flow->limit_ns, &flow->limit_rest, item->cost, limit_per_s);
    stamped_remove(s, item);
}

static void mclock_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    struct sched_flow *flow = item->flow;
    const struct sched_terms *terms = heads_terms(flow);

    if ((item->charged & SCHED_CHARGED_RESERVATION) != 0)
        rate_correct(&flow->reserve_ns, &flow->reserve_rest, item->cost, true_cost,
                     terms->reservation_per_s);
    if ((item->charged & SCHED_CHARGED_LIMIT) != 0)
        rate_correct(&flow->limit_ns, &flow->limit_rest, item->cost, true_cost, terms->limit_per_s);
    if (true_cost == item->cost)
        return;
    stamped_done(s, item, true_cost);
}

static uint64_t mclock_wake_ns(const struct sched *s)
{
    uint64_t reserve_ns = s->reserve.count > 0 ? s->reserve.entries[0].tag : SCHED_NEVER_NS;
    uint64_t parked_ns = s->parked.count > 0 ? s->parked.entries[0].tag : SCHED_NEVER_NS;

    return reserve_ns < parked_ns ? reserve_ns : parked_ns;
}

const struct sched_ops sched_mclock_ops = {
    .name = "mclock",
    .heaps = SCHED_HEAPS_PARKED | SCHED_HEAPS_RESERVE | SCHED_HEAPS_COOLING,
    .stamps_arrival = true,
    .place = mclock_place,
    .admit = mclock_admit,
    .enter = stamped_enter,
    .leave = mclock_leave,
    .queue = mclock_queue,
    .peek = mclock_peek,
    .take = mclock_take,
    .put_back = mclock_put_back,
    .remove = mclock_remove,
    .done = mclock_done,
    .changed = stamped_changed,
    .wake_ns = mclock_wake_ns,
};
