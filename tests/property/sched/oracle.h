/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h: a slow scheduler with exact tags, for everything that sched.h promises.
 *
 * It follows the header's words over the arrays of oracle_state.h. It does not choose on its own:
 * oracle_best (oracle_order.h) names what it would send, and oracle_send is told what was sent.
 * Time is told by oracle_advance, before each call that has a `now_ns` in sched.h.
 *
 * Where sched.h leaves a choice, it is this:
 *   - v(A) of a request that waits behind others counts where v may pass a waiting head: under wfq,
 *     fsfq, rw, hybrid and mclock;
 *   - a head cancelled hands its tags on to the next, as if they were the flow's last finish tags;
 *   - a request sent back counts as one that arrived at its own start tag (fsfq: with v' as it is
 *     now), and its charge comes off the tag that the flow has reached;
 *   - fsfq: v' is the smallest S outstanding, but not after v, and never goes back. A correction
 *     goes to F and F' alike. On entering, every adjusted tag is the other, and v' is v;
 *   - mclock: v moves when a request goes by its share; one that goes by its reservation may lie
 *     far ahead, and v there would shut newcomers out. Both are charged to the flow's P. L is
 *     charged in both phases, R in its own;
 *   - wfq, 2dfq: the speed is the cost completed over the time for which slots were held, both
 *     halved while one is 2^36 or more, and begins anew when the algorithm changes;
 *   - what a request was charged at a rate comes back (requeue, correction, cancel of what was
 *     policed) at the rate of the moment, what it was not does not;
 *   - reservations and limits begin anew, for flows and requests, when the algorithm changes.
 */
#ifndef SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_H
#define SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_H

#include "tests/property/sched/oracle_order.h"

/* Whether v may pass a head that waits, so that v(A) of those behind it counts. */
static inline bool oracle_looks_back(enum sched_algorithm algorithm)
{
    return algorithm == SCHED_ALGORITHM_FSFQ || algorithm == SCHED_ALGORITHM_WFQ ||
           algorithm == SCHED_ALGORITHM_RW || algorithm == SCHED_ALGORITHM_HYBRID ||
           algorithm == SCHED_ALGORITHM_MCLOCK;
}

/* S, S' of the request that has become its flow's head; the flow's tags are the last F, F'. */
static inline void oracle_tag_head(struct oracle *o, int flow)
{
    struct oracle_flow *f = &o->flows[flow];
    const struct oracle_item *head = oracle_head(o, flow);

    if (o->algorithm == SCHED_ALGORITHM_FSFQ) {
        const exact_t last = f->tag < head->v_arrival ? f->tag : f->adjusted;
        f->adjusted = oracle_later(head->adjusted_arrival, last);
        f->tag = oracle_later(head->v_arrival, f->adjusted);
    } else {
        f->tag = oracle_later(head->v_arrival, f->tag);
        f->adjusted = f->tag;
    }
}

/* mclock with refuse_at_limit: charges the limit on arrival, if it allows the request. */
static inline bool oracle_police(struct oracle *o, int flow, struct oracle_item *item)
{
    struct oracle_flow *f = &o->flows[flow];
    const exact_t now = (exact_t)o->now_ns * ORACLE_NS;

    if (!oracle_limit_polices(o) || f->terms.limit_per_s == 0)
        return true;
    if (f->limit - oracle_span(f->terms.burst, f->terms.limit_per_s) > now)
        return false;
    item->limited = true;
    f->limit = oracle_later(f->limit, now) + oracle_span(item->cost, f->terms.limit_per_s);
    return true;
}

/* What a limit or reservation is moved by is taken back, at the present rate. */
static inline void oracle_refund(exact_t *tag, uint64_t cost, uint64_t rate)
{
    if (rate != 0)
        *tag -= oracle_span(cost, rate);
}

static inline enum sched_verdict oracle_enqueue(struct oracle *o, int flow, int number,
                                                uint64_t cost)
{
    struct oracle_flow *f = &o->flows[flow];
    const uint64_t flow_limit = f->queue_limit != 0 ? f->queue_limit : o->flow_limit;
    struct oracle_item item = {.flow = flow,
                               .state = SCHED_ITEM_QUEUED,
                               .cost = cost,
                               .arrival_ns = o->now_ns,
                               .v_arrival = o->v,
                               .slot = -1};

    if (flow_limit != 0 && (uint64_t)f->queued >= flow_limit)
        return SCHED_FLOW_FULL;
    if (o->total_limit != 0 && (uint64_t)o->queued >= o->total_limit)
        return SCHED_TOTAL_FULL;
    if (!oracle_police(o, flow, &item))
        return SCHED_AT_LIMIT;
    if (o->algorithm == SCHED_ALGORITHM_FSFQ)
        item.adjusted_arrival = o->adjusted;
    item.sequence = o->sequence++;
    item.rank = ++o->last_rank;
    o->items[number] = item;
    f->queue[f->queued++] = number;
    f->queued_cost += cost;
    o->queued++;
    if (f->queued == 1) {
        f->tag += f->owed;
        f->adjusted += f->owed;
        f->owed = 0;
        oracle_tag_head(o, flow);
    }
    return SCHED_OK;
}

static inline void oracle_unqueue(struct oracle *o, int number, int place)
{
    struct oracle_flow *f = &o->flows[o->items[number].flow];

    f->queued--;
    f->queued_cost -= o->items[number].cost;
    memmove(&f->queue[place], &f->queue[place + 1],
            (size_t)(f->queued - place) * sizeof(f->queue[0]));
    o->queued--;
}

/* Charges reservation and limit of what is about to be sent. */
static inline void oracle_charge_rates(struct oracle *o, struct oracle_item *item)
{
    struct oracle_flow *f = &o->flows[item->flow];
    const exact_t now = (exact_t)o->now_ns * ORACLE_NS;
    const exact_t arrival = (exact_t)item->arrival_ns * ORACLE_NS;
    const bool bucket = o->algorithm == SCHED_ALGORITHM_LEAKY_BUCKET;

    if (item->reserved)
        f->reservation = oracle_later(arrival, f->reservation) +
                         oracle_span(item->cost, f->terms.reservation_per_s);
    if (!oracle_limit_waits(o))
        return;
    item->limited = f->terms.limit_per_s != 0;
    if (item->limited)
        f->limit = oracle_later(bucket ? now : arrival, f->limit) +
                   oracle_span(item->cost, f->terms.limit_per_s);
}

/* The finish tag becomes the start tag of the next, if one waits, and corrections go in. */
static inline void oracle_next_head(struct oracle *o, const struct oracle_item *sent)
{
    struct oracle_flow *f = &o->flows[sent->flow];
    exact_t applied = oracle_later(sent->start - f->tag, f->owed);

    if (f->queued == 0)
        return;
    f->tag += applied;
    f->adjusted += applied;
    f->owed -= applied;
    if (oracle_looks_back(o->algorithm))
        oracle_tag_head(o, sent->flow);
}

/* `number` is the head of its flow; `reserved`: it goes by its reservation (mclock). */
static inline void oracle_send(struct oracle *o, int number, bool reserved)
{
    struct oracle_item *item = &o->items[number];
    struct oracle_flow *f = &o->flows[item->flow];

    if (o->algorithm == SCHED_ALGORITHM_2DFQ) {
        o->v = oracle_v_2dfq(o);
        o->progress = oracle_later(o->progress, oracle_places(o, o->v));
        item->slot = oracle_free_slot(o);
    }
    item->reserved = reserved;
    oracle_charge_rates(o, item);
    oracle_unqueue(o, number, 0);
    item->state = SCHED_ITEM_OUTSTANDING;
    f->outstanding++;
    f->outstanding_cost += item->cost;
    o->outstanding++;
    o->outstanding_cost += item->cost;
    if (!oracle_has_tags(o->algorithm)) {
        item->start = o->v;
        item->charge = 0;
        return;
    }
    item->start = f->tag;
    item->charge = oracle_charge(o, item->flow, item->cost);
    f->tag += item->charge;
    f->adjusted += item->charge;
    o->largest_finish = oracle_later(o->largest_finish, f->tag);
    oracle_next_head(o, item);
    if (o->algorithm == SCHED_ALGORITHM_SFQ || o->algorithm == SCHED_ALGORITHM_SFQD ||
        o->algorithm == SCHED_ALGORITHM_FSFQ || o->algorithm == SCHED_ALGORITHM_RW ||
        o->algorithm == SCHED_ALGORITHM_HYBRID ||
        (o->algorithm == SCHED_ALGORITHM_MCLOCK && !item->reserved))
        o->v = oracle_later(o->v, item->start);
    oracle_clocks(o);
}

static inline void oracle_gone(struct oracle *o, int number)
{
    struct oracle_flow *f = &o->flows[o->items[number].flow];

    o->items[number].state = SCHED_ITEM_IDLE;
    oracle_clocks(o);
    if (!oracle_active(f)) {
        f->tag += f->owed;
        f->adjusted += f->owed;
        f->owed = 0;
        o->largest_finish = oracle_later(o->largest_finish, f->tag);
    }
    if (o->queued == 0 && o->outstanding == 0) {
        o->v = oracle_later(o->v, o->largest_finish);
        oracle_clocks(o);
    }
}

static inline void oracle_land(struct oracle *o, int number)
{
    struct oracle_flow *f = &o->flows[o->items[number].flow];

    f->outstanding--;
    f->outstanding_cost -= o->items[number].cost;
    o->outstanding--;
    o->outstanding_cost -= o->items[number].cost;
}

static inline void oracle_correct_rate(exact_t *tag, uint64_t cost, uint64_t true_cost,
                                       uint64_t rate)
{
    if (rate != 0)
        *tag += oracle_span(true_cost, rate) - oracle_span(cost, rate);
}

/* 2dfq: what was not taken for done of a request that has ended is done now. */
static inline void oracle_end_2dfq(struct oracle *o, uint64_t true_cost, exact_t weights)
{
    const exact_t work = (exact_t)true_cost * (exact_t)ULPS_PER_UNIT;
    const exact_t assumed = work < o->ahead ? work : o->ahead;

    o->ahead -= assumed;
    oracle_hold_ahead(o);
    oracle_progress(o, work - assumed, weights);
}

static inline void oracle_complete(struct oracle *o, int number, uint64_t true_cost)
{
    struct oracle_item *item = &o->items[number];
    struct oracle_flow *f = &o->flows[item->flow];

    const exact_t weights = oracle_weights(o, false);
    oracle_land(o, number);
    if (o->algorithm == SCHED_ALGORITHM_2DFQ)
        oracle_end_2dfq(o, true_cost, weights);
    if (o->algorithm == SCHED_ALGORITHM_WFQ || o->algorithm == SCHED_ALGORITHM_2DFQ)
        oracle_measure(o, 0, true_cost);
    if (oracle_has_tags(o->algorithm))
        f->owed +=
            oracle_charge(o, item->flow, true_cost) - oracle_charge(o, item->flow, item->cost);
    if (item->reserved)
        oracle_correct_rate(&f->reservation, item->cost, true_cost, f->terms.reservation_per_s);
    if (item->limited)
        oracle_correct_rate(&f->limit, item->cost, true_cost, f->terms.limit_per_s);
    oracle_gone(o, number);
}

static inline void oracle_requeue(struct oracle *o, int number)
{
    struct oracle_item *item = &o->items[number];
    struct oracle_flow *f = &o->flows[item->flow];

    oracle_land(o, number);
    memmove(&f->queue[1], &f->queue[0], (size_t)f->queued * sizeof(f->queue[0]));
    f->queue[0] = number;
    f->queued++;
    f->queued_cost += item->cost;
    o->queued++;
    item->state = SCHED_ITEM_QUEUED;
    if (item->reserved)
        oracle_refund(&f->reservation, item->cost, f->terms.reservation_per_s);
    if (item->limited && oracle_limit_waits(o)) {
        oracle_refund(&f->limit, item->cost, f->terms.limit_per_s);
        item->limited = false;
    }
    item->reserved = false;
    if (o->algorithm == SCHED_ALGORITHM_FIFO)
        item->rank = --o->first_rank;
    if (oracle_has_tags(o->algorithm)) {
        f->tag -= item->charge;
        f->adjusted -= item->charge;
    }
    item->v_arrival = item->start;
    if (o->algorithm == SCHED_ALGORITHM_2DFQ)
        oracle_hold_ahead(o);
    if (o->algorithm == SCHED_ALGORITHM_FSFQ) {
        f->tag = oracle_later(item->start, f->adjusted);
        item->adjusted_arrival = o->adjusted;
        oracle_clocks(o);
    }
}

static inline void oracle_cancel(struct oracle *o, int number)
{
    struct oracle_item *item = &o->items[number];
    struct oracle_flow *f = &o->flows[item->flow];
    int place = 0;

    while (f->queue[place] != number)
        place++;
    oracle_unqueue(o, number, place);
    if (item->limited)
        oracle_refund(&f->limit, item->cost, f->terms.limit_per_s);
    if (place == 0 && f->queued > 0 && oracle_looks_back(o->algorithm)) {
        const exact_t handed = f->tag;
        oracle_tag_head(o, item->flow);
        f->tag = oracle_later(handed, f->tag);
    }
    oracle_gone(o, number);
}

/* To FIFO: by arrival, as far as the order within each flow allows. */
static inline void oracle_to_fifo(struct oracle *o)
{
    int taken[ORACLE_FLOWS] = {0};

    for (;;) {
        struct oracle_item *first = NULL;
        for (int f = 0; f < ORACLE_FLOWS; f++) {
            if (taken[f] == o->flows[f].queued)
                continue;
            struct oracle_item *head = &o->items[o->flows[f].queue[taken[f]]];
            if (first == NULL || head->sequence < first->sequence)
                first = head;
        }
        if (first == NULL)
            break;
        first->rank = ++o->last_rank;
        taken[first->flow]++;
    }
    o->first_rank = o->last_rank - o->queued;
}

/* Every flow starts again without debts. */
static inline void oracle_level(struct oracle *o)
{
    o->v = oracle_later(o->v, o->largest_finish);
    o->largest_finish = o->v;
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        o->flows[f].tag = o->v;
        o->flows[f].owed = 0;
    }
}

static inline void oracle_set_algorithm(struct oracle *o, enum sched_algorithm algorithm)
{
    if (algorithm == o->algorithm)
        return;
    o->algorithm = algorithm;
    if (!oracle_has_tags(algorithm))
        oracle_level(o);
    if (algorithm == SCHED_ALGORITHM_FIFO)
        oracle_to_fifo(o);
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        o->flows[f].adjusted = o->flows[f].tag;
        o->flows[f].reservation = 0;
        o->flows[f].limit = 0;
    }
    for (int i = 0; i < ORACLE_ITEMS; i++) {
        o->items[i].v_arrival = o->v;
        o->items[i].adjusted_arrival = o->v;
        o->items[i].slot = -1;
        o->items[i].reserved = false;
        o->items[i].limited = false;
    }
    o->adjusted = o->v;
    o->slot_ns = 0;
    o->done_cost = 0;
    o->progress = oracle_places(o, o->v);
    o->progress_rest = 0;
    o->ahead = 0;
    oracle_clocks(o);
}

#endif
