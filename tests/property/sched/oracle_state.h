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
    uint64_t slot_ns; /* wfq: how long slots were held */
    uint64_t done_cost;
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

/* wfq: the sum of the weights of the flows with requests (queued only: with queued ones). */
static inline exact_t oracle_weights(const struct oracle *o, bool queued_only)
{
    exact_t weights = 0;

    for (int f = 0; f < ORACLE_FLOWS; f++)
        if (queued_only ? o->flows[f].queued > 0 : oracle_active(&o->flows[f]))
            weights += o->flows[f].weight;
    return weights;
}

/* wfq: the older half of what was measured counts half when there is much. */
static inline void oracle_measure(struct oracle *o, uint64_t slot_ns, uint64_t cost)
{
    o->slot_ns += slot_ns;
    o->done_cost += cost;
    while (o->slot_ns >= UINT64_C(1) << 32 || o->done_cost >= UINT64_C(1) << 32) {
        o->slot_ns /= 2;
        o->done_cost /= 2;
    }
}

/*
 * Time goes on, and v with it under wfq: by C / (sum of weights) per second. Without a known C that
 * is outstanding / (mean time for which a unit of cost holds a slot).
 */
static inline void oracle_advance(struct oracle *o, uint64_t now_ns)
{
    const uint64_t passed = now_ns - o->now_ns;
    const bool known = o->options.capacity_per_s != 0;

    o->now_ns = now_ns;
    if (o->algorithm != SCHED_ALGORITHM_WFQ)
        return;
    const exact_t weights = oracle_weights(o, !known && o->queued > 0);
    if (known && weights > 0)
        o->v += (exact_t)passed * (exact_t)o->options.capacity_per_s * o->arithmetic.scale /
                (weights * 1000000000);
    if (!known && weights > 0 && o->slot_ns > 0)
        o->v += (exact_t)passed * o->outstanding * (exact_t)o->done_cost * o->arithmetic.scale /
                ((exact_t)o->slot_ns * weights);
    oracle_measure(o, (uint64_t)o->outstanding * passed, 0);
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
