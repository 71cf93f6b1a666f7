/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle_order.h: which head the slow scheduler would send, and when, word for word by sched.h.
 *
 * Every function only looks. `now` is a point in time in 1/ORACLE_NS nanoseconds.
 */
#ifndef SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_ORDER_H
#define SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_ORDER_H

#include "tests/property/sched/oracle_state.h"

/* Whether rate limits make requests wait, or refuse them on arrival. */
static inline bool oracle_limit_waits(const struct oracle *o)
{
    return o->algorithm == SCHED_ALGORITHM_LEAKY_BUCKET ||
           (o->algorithm == SCHED_ALGORITHM_MCLOCK && !o->options.refuse_at_limit);
}

static inline bool oracle_limit_polices(const struct oracle *o)
{
    return o->algorithm == SCHED_ALGORITHM_MCLOCK && o->options.refuse_at_limit;
}

/* When the limit lets the flow's head go. */
static inline exact_t oracle_conforms(const struct oracle *o, int flow)
{
    const struct oracle_flow *f = &o->flows[flow];
    const exact_t arrival = (exact_t)oracle_head(o, flow)->arrival_ns * ORACLE_NS;

    if (f->terms.limit_per_s == 0)
        return arrival;
    return oracle_later(arrival, f->limit - oracle_span(f->terms.burst, f->terms.limit_per_s));
}

/* R of the flow's head, which has a reservation. */
static inline exact_t oracle_reserved(const struct oracle *o, int flow)
{
    const exact_t arrival = (exact_t)oracle_head(o, flow)->arrival_ns * ORACLE_NS;
    return oracle_later(arrival, o->flows[flow].reservation);
}

/* By what the heads are ordered first. */
static inline exact_t oracle_key(const struct oracle *o, int flow)
{
    const struct oracle_flow *f = &o->flows[flow];
    const struct oracle_item *head = oracle_head(o, flow);
    const uint64_t ageing = o->options.ageing_ns != 0 ? o->options.ageing_ns : 1000000;

    switch (o->algorithm) {
    case SCHED_ALGORITHM_FIFO:
        return head->rank;
    case SCHED_ALGORITHM_WFQ:
        return f->tag + oracle_charge(o, flow, head->cost);
    case SCHED_ALGORITHM_EDF:
        return (exact_t)head->arrival_ns + f->terms.target_ns;
    case SCHED_ALGORITHM_SCF:
        return (exact_t)head->arrival_ns + (exact_t)head->cost * ageing;
    case SCHED_ALGORITHM_LEAKY_BUCKET:
        return oracle_conforms(o, flow);
    default:
        return f->tag;
    }
}

static inline bool oracle_head_before(const struct oracle *o, int a, int b)
{
    const exact_t x = oracle_key(o, a);
    const exact_t y = oracle_key(o, b);

    if (x != y)
        return x < y;
    if (o->algorithm == SCHED_ALGORITHM_FSFQ && o->flows[a].adjusted != o->flows[b].adjusted)
        return o->flows[a].adjusted < o->flows[b].adjusted;
    return oracle_head(o, a)->sequence < oracle_head(o, b)->sequence;
}

/* Outstanding < D * weight / (sum of the weights of the flows pinned or active) + slack. */
static inline bool oracle_window_open(const struct oracle *o, int flow)
{
    const struct oracle_flow *f = &o->flows[flow];
    exact_t weights = 0;
    exact_t outstanding =
        o->unit == SCHED_DEPTH_COST ? (exact_t)f->outstanding_cost : (exact_t)f->outstanding;

    for (int i = 0; i < ORACLE_FLOWS; i++)
        if (o->flows[i].pinned || oracle_active(&o->flows[i]))
            weights += o->flows[i].weight;
    if (o->algorithm == SCHED_ALGORITHM_HYBRID)
        outstanding -= (exact_t)o->options.slack;
    return outstanding * weights < (exact_t)o->depth * f->weight;
}

/* mclock: whether the head may go by its reservation, or within its limit. */
static inline bool oracle_reservation_due(const struct oracle *o, int flow, exact_t now)
{
    return o->flows[flow].terms.reservation_per_s != 0 && oracle_reserved(o, flow) <= now;
}

static inline bool oracle_within_limit(const struct oracle *o, int flow, exact_t now)
{
    return o->options.refuse_at_limit || oracle_conforms(o, flow) <= now;
}

static inline int oracle_best_mclock(const struct oracle *o, exact_t now)
{
    int best = -1;

    for (int f = 0; f < ORACLE_FLOWS; f++) {
        if (o->flows[f].queued == 0 || !oracle_reservation_due(o, f, now))
            continue;
        if (best < 0 || oracle_reserved(o, f) < oracle_reserved(o, best) ||
            (oracle_reserved(o, f) == oracle_reserved(o, best) &&
             oracle_head(o, f)->sequence < oracle_head(o, best)->sequence))
            best = f;
    }
    if (best >= 0)
        return best;
    for (int f = 0; f < ORACLE_FLOWS; f++)
        if (o->flows[f].queued > 0 && oracle_within_limit(o, f, now) &&
            (best < 0 || oracle_head_before(o, f, best)))
            best = f;
    return best;
}

/* The lowest slot that nothing outstanding is in. */
static inline int oracle_free_slot(const struct oracle *o)
{
    int slot = 0;

    for (int i = 0; i < ORACLE_ITEMS; i++) {
        if (o->items[i].state == SCHED_ITEM_OUTSTANDING && o->items[i].slot == slot) {
            slot++;
            i = -1;
        }
    }
    return slot;
}

/* Which power of two the charge of the flow's head reaches. */
static inline int oracle_size_group(const struct oracle *o, int flow)
{
    exact_t charge = oracle_charge(o, flow, oracle_head(o, flow)->cost);
    int group = 0;

    for (; charge > 1; charge >>= 1)
        group++;
    return group;
}

/* Whether the flow's head has the smallest start tag of its size group. */
static inline bool oracle_first_of_group(const struct oracle *o, int flow)
{
    const int group = oracle_size_group(o, flow);

    for (int f = 0; f < ORACLE_FLOWS; f++)
        if (o->flows[f].queued > 0 && f != flow && oracle_size_group(o, f) == group &&
            oracle_head_before(o, f, flow))
            return false;
    return true;
}

/* v when a request is dispatched under 2dfq. */
static inline exact_t oracle_v_2dfq(const struct oracle *o)
{
    exact_t least = o->v;
    return oracle_least_head(o, &least) ? oracle_later(o->v, least) : o->v;
}

/* Whether the head may take a slot that is part / whole of the way up: S - part / whole * c / w is
 * not after the progress made. */
static inline bool oracle_may_take(const struct oracle *o, int flow, exact_t part, exact_t whole)
{
    const exact_t charge = oracle_charge(o, flow, oracle_head(o, flow)->cost);
    exact_t least = 0;

    oracle_least_head(o, &least);
    const exact_t reached = oracle_later(o->progress, oracle_places(o, least));
    return (oracle_places(o, o->flows[flow].tag) - reached) * whole <=
           part * oracle_places(o, charge);
}

static inline int oracle_best_2dfq(const struct oracle *o)
{
    const exact_t whole = (exact_t)o->depth;
    exact_t part =
        o->unit == SCHED_DEPTH_REQUESTS ? oracle_free_slot(o) : (exact_t)o->outstanding_cost;
    exact_t best_finish = 0;
    int best = -1;

    part = part < whole ? part : whole - 1;
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        if (o->flows[f].queued == 0 || !oracle_first_of_group(o, f) ||
            !oracle_may_take(o, f, part, whole))
            continue;
        const exact_t finish = o->flows[f].tag + oracle_charge(o, f, oracle_head(o, f)->cost);
        if (best < 0 || finish < best_finish ||
            (finish == best_finish &&
             oracle_head(o, f)->sequence < oracle_head(o, best)->sequence)) {
            best = f;
            best_finish = finish;
        }
    }
    return best;
}

/* The flow whose head is next at that time, or -1. The depth is not looked at. */
static inline int oracle_best_flow(const struct oracle *o, exact_t now)
{
    const bool windows =
        o->algorithm == SCHED_ALGORITHM_RW || o->algorithm == SCHED_ALGORITHM_HYBRID;
    int best = -1;

    if (o->algorithm == SCHED_ALGORITHM_MCLOCK)
        return oracle_best_mclock(o, now);
    if (o->algorithm == SCHED_ALGORITHM_2DFQ)
        return oracle_best_2dfq(o);
    for (int f = 0; f < ORACLE_FLOWS; f++)
        if (o->flows[f].queued > 0 && (!windows || oracle_window_open(o, f)) &&
            (best < 0 || oracle_head_before(o, f, best)))
            best = f;
    if (o->algorithm == SCHED_ALGORITHM_LEAKY_BUCKET && best >= 0 && oracle_conforms(o, best) > now)
        return -1;
    return best;
}

static inline bool oracle_room(const struct oracle *o, uint64_t cost)
{
    if (o->outstanding == 0)
        return o->depth > 0;
    if (o->depth == 0 || o->algorithm == SCHED_ALGORITHM_SFQ)
        return false;
    if (o->unit == SCHED_DEPTH_REQUESTS)
        return (uint64_t)o->outstanding < o->depth;
    return o->outstanding_cost + cost <= o->depth;
}

/* The item to send at that time, or -1. */
static inline int oracle_best(const struct oracle *o, exact_t now)
{
    int flow = oracle_best_flow(o, now);

    if (flow < 0)
        return -1;
    return oracle_room(o, oracle_head(o, flow)->cost) ? o->flows[flow].queue[0] : -1;
}

/* The first time after now_ns, in whole ns, at which there is an item to send if nothing else
 * happens; SCHED_NEVER_NS when there is none. */
static inline uint64_t oracle_wake(const struct oracle *o)
{
    const bool held =
        o->algorithm == SCHED_ALGORITHM_LEAKY_BUCKET || o->algorithm == SCHED_ALGORITHM_MCLOCK;
    exact_t wake = -1;

    for (int i = 0; held && i < 2 * ORACLE_FLOWS; i++) {
        const int f = i / 2;
        if (o->flows[f].queued == 0 || (i % 2 == 1 && o->flows[f].terms.reservation_per_s == 0))
            continue;
        exact_t at = i % 2 == 0 ? oracle_conforms(o, f) : oracle_reserved(o, f);
        at = (at + ORACLE_NS - 1) / ORACLE_NS;
        if (at > (exact_t)o->now_ns && (wake < 0 || at < wake) &&
            oracle_best(o, at * ORACLE_NS) >= 0)
            wake = at;
    }
    return wake < 0 ? SCHED_NEVER_NS : (uint64_t)wake;
}

#endif
