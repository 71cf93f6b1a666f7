/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle_state.h: what the slow scheduler of oracle.h knows, and the formulas over it.
 *
 * Arrays, scans and exact fractions: no heap, no rounding, no wrap, nothing retired or forgotten.
 * Items and flows are numbers. Virtual times are counts of 1/arithmetic.scale, points in time
 * counts of 1/ORACLE_NS nanoseconds.
 */
#ifndef SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_STATE_H
#define SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_STATE_H

#include "tests/property/sched/property.h"

#include <string.h>

#define ORACLE_FLOWS 9
#define ORACLE_ITEMS 128
#define ORACLE_NS    ((exact_t)1 << 32)

struct oracle_item {
    int flow;
    enum sched_item_state state;
    uint64_t cost;
    uint64_t sequence;
    uint64_t arrival_ns;
    int64_t rank;      /* FIFO's order */
    exact_t v_arrival; /* v and v' when it came */
    exact_t adjusted_arrival;
    exact_t start;
    exact_t charge;
    bool reserved; /* mclock: went by its flow's reservation */
    bool limited;  /* mclock, leaky-bucket: was charged to its flow's limit */
    int slot;      /* 2dfq: -1 when dispatched under another algorithm */
};

struct oracle_flow {
    uint32_t weight;
    bool pinned;
    struct sched_terms terms;
    uint64_t queue_limit;
    int queue[ORACLE_ITEMS];
    int queued;
    int outstanding;
    uint64_t queued_cost;
    uint64_t outstanding_cost;
    exact_t tag;      /* start tag of the head, or last finish tag */
    exact_t adjusted; /* fsfq: the same of S', F' */
    exact_t owed;
    exact_t reservation; /* mclock: R of the next request, unless that arrives later */
    exact_t limit;       /* mclock, leaky-bucket: L or T likewise */
};

struct oracle {
    struct property_arithmetic arithmetic;
    enum sched_algorithm algorithm;
    enum sched_depth_unit unit;
    uint64_t depth;
    uint64_t flow_limit;
    uint64_t total_limit;
    struct sched_options options;
    struct oracle_item items[ORACLE_ITEMS];
    struct oracle_flow flows[ORACLE_FLOWS];
    int queued;
    int outstanding;
    uint64_t outstanding_cost;
    uint64_t now_ns; /* the latest time told */
    uint64_t sequence;
    uint64_t slot_ns; /* wfq, 2dfq: how long slots were held */
    uint64_t done_cost;
    exact_t progress; /* 2dfq: work done per weight, in last places of sched/'s tags */
    exact_t progress_rest;
    exact_t ahead; /* 2dfq: work taken for done before its request has ended, in the same */
    int64_t first_rank;
    int64_t last_rank;
    exact_t v;
    exact_t adjusted; /* fsfq: v' */
    exact_t largest_finish;
};

static inline exact_t oracle_later(exact_t a, exact_t b)
{
    return a > b ? a : b;
}

/* Whether an algorithm works with start tags, which are kept when changing between two such. */
static inline bool oracle_has_tags(enum sched_algorithm algorithm)
{
    return algorithm != SCHED_ALGORITHM_FIFO && algorithm != SCHED_ALGORITHM_EDF &&
           algorithm != SCHED_ALGORITHM_SCF && algorithm != SCHED_ALGORITHM_LEAKY_BUCKET;
}

static inline exact_t oracle_charge(const struct oracle *o, int flow, uint64_t cost)
{
    return property_charge(&o->arithmetic, cost, o->flows[flow].weight);
}

/* How long `cost` takes at a rate, which is not 0. */
static inline exact_t oracle_span(uint64_t cost, uint64_t rate)
{
    return (exact_t)cost * 1000000000 * ORACLE_NS / rate;
}

static inline bool oracle_active(const struct oracle_flow *f)
{
    return f->queued > 0 || f->outstanding > 0;
}

static inline const struct oracle_item *oracle_head(const struct oracle *o, int flow)
{
    return &o->items[o->flows[flow].queue[0]];
}

/* The smallest start tag outstanding. False when nothing is. */
static inline bool oracle_least_outstanding(const struct oracle *o, exact_t *least)
{
    bool any = false;

    for (int i = 0; i < ORACLE_ITEMS; i++) {
        const struct oracle_item *item = &o->items[i];
        if (item->state == SCHED_ITEM_OUTSTANDING && (!any || item->start < *least)) {
            *least = item->start;
            any = true;
        }
    }
    return any;
}

/* The smallest start tag of a head. False when nothing is queued. */
static inline bool oracle_least_head(const struct oracle *o, exact_t *least)
{
    bool any = false;

    for (int f = 0; f < ORACLE_FLOWS; f++) {
        if (o->flows[f].queued > 0 && (!any || o->flows[f].tag < *least)) {
            *least = o->flows[f].tag;
            any = true;
        }
    }
    return any;
}

/* v of min-sfqd (the smallest start tag outstanding or at the head of a queue), v' of fsfq. */
static inline void oracle_clocks(struct oracle *o)
{
    exact_t least = 0;
    exact_t head = 0;
    bool out = oracle_least_outstanding(o, &least);

    if (o->algorithm == SCHED_ALGORITHM_FSFQ)
        o->adjusted = oracle_later(o->adjusted, out && least < o->v ? least : o->v);
    if (o->algorithm != SCHED_ALGORITHM_MINSFQD)
        return;
    if (oracle_least_head(o, &head) && (!out || head < least)) {
        least = head;
        out = true;
    }
    if (out)
        o->v = oracle_later(o->v, least);
}

/* The sum of the weights of the flows with requests (queued only: with queued ones). */
static inline exact_t oracle_weights(const struct oracle *o, bool queued_only)
{
    exact_t weights = 0;

    for (int f = 0; f < ORACLE_FLOWS; f++)
        if (queued_only ? o->flows[f].queued > 0 : oracle_active(&o->flows[f]))
            weights += o->flows[f].weight;
    return weights;
}

/* A virtual time in last places of sched/'s tags, less where virtual time began. */
static inline exact_t oracle_places(const struct oracle *o, exact_t tag)
{
    return tag * (exact_t)ULPS_PER_UNIT / o->arithmetic.scale;
}

/* The speed is a mean over what was seen; the older part counts half when there is much. */
static inline void oracle_measure(struct oracle *o, uint64_t slot_ns, uint64_t cost)
{
    o->slot_ns += slot_ns;
    o->done_cost += cost;
    while (o->slot_ns >= UINT64_C(1) << 36 || o->done_cost >= UINT64_C(1) << 36) {
        o->slot_ns /= 2;
        o->done_cost /= 2;
    }
}

/* wfq: v goes on by C / (sum of weights) per second; C is known or outstanding / (mean time for
 * which a unit of cost holds a slot). */
static inline void oracle_elapse_wfq(struct oracle *o, exact_t passed)
{
    const bool known = o->options.capacity_per_s != 0;
    const exact_t weights = oracle_weights(o, !known && o->queued > 0);

    if (known && weights > 0)
        o->v += passed * (exact_t)o->options.capacity_per_s * o->arithmetic.scale /
                (weights * 1000000000);
    if (!known && weights > 0 && o->slot_ns > 0)
        o->v += passed * o->outstanding * (exact_t)o->done_cost * o->arithmetic.scale /
                ((exact_t)o->slot_ns * weights);
}

/* 2dfq: so much work was done, under flows of these weights. */
static inline void oracle_progress(struct oracle *o, exact_t work, exact_t weights)
{
    if (weights == 0)
        return;
    o->progress += (work + o->progress_rest) / weights;
    o->progress_rest = (work + o->progress_rest) % weights;
}

/* 2dfq: what is outstanding is taken to be done at the speed seen so far, but not beyond its cost.
 */
static inline void oracle_elapse_2dfq(struct oracle *o, exact_t passed)
{
    const exact_t most = (exact_t)o->outstanding_cost * (exact_t)ULPS_PER_UNIT - o->ahead;
    exact_t work = 0;

    if (o->slot_ns > 0)
        work = passed * o->outstanding * (exact_t)o->done_cost * (exact_t)ULPS_PER_UNIT /
               (exact_t)o->slot_ns;
    work = work < most ? work : most;
    o->ahead += work;
    oracle_progress(o, work, oracle_weights(o, false));
}

static inline void oracle_hold_ahead(struct oracle *o)
{
    const exact_t most = (exact_t)o->outstanding_cost * (exact_t)ULPS_PER_UNIT;

    o->ahead = o->ahead < most ? o->ahead : most;
}

/* Time goes on. */
static inline void oracle_advance(struct oracle *o, uint64_t now_ns)
{
    const uint64_t longest = UINT64_C(1) << 40;
    const uint64_t passed = now_ns - o->now_ns < longest ? now_ns - o->now_ns : longest;

    if (o->algorithm == SCHED_ALGORITHM_WFQ)
        oracle_elapse_wfq(o, (exact_t)(now_ns - o->now_ns));
    if (o->algorithm == SCHED_ALGORITHM_2DFQ && passed > 0)
        oracle_elapse_2dfq(o, (exact_t)passed);
    if (o->algorithm == SCHED_ALGORITHM_WFQ || o->algorithm == SCHED_ALGORITHM_2DFQ)
        oracle_measure(o, (uint64_t)o->outstanding * passed, 0);
    o->now_ns = now_ns;
}

/* Whether the flow could be forgotten: its next request would be treated as a new flow's. */
static inline bool oracle_idle(const struct oracle *o, int flow)
{
    const struct oracle_flow *f = &o->flows[flow];
    const exact_t now = (exact_t)o->now_ns * ORACLE_NS;

    if (oracle_active(f))
        return false;
    switch (o->algorithm) {
    case SCHED_ALGORITHM_FSFQ:
        return f->tag <= o->adjusted;
    case SCHED_ALGORITHM_MCLOCK:
        return f->tag <= o->v && f->reservation <= now && f->limit <= now;
    case SCHED_ALGORITHM_LEAKY_BUCKET:
        return f->limit <= now;
    default:
        return f->tag <= o->v;
    }
}

#endif
