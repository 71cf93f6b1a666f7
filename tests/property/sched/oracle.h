/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h: a slow scheduler with exact tags, for everything that sched.h promises.
 *
 * It follows the header's words, with arrays, scans and whole-number fractions: no heap, no
 * rounding, no wrap, nothing retired or forgotten. Items and flows are numbers. It does not choose
 * on its own: oracle_best names what it would send, and oracle_send is told what was sent.
 */
#ifndef SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_H
#define SPILLWAY_TESTS_PROPERTY_SCHED_ORACLE_H

#include "tests/property/sched/property.h"

#include <string.h>

#define ORACLE_FLOWS 9
#define ORACLE_ITEMS 128
/* The first so many of enum sched_algorithm are known here. */
#define ORACLE_ALGORITHMS 4

struct oracle_item {
    int flow;
    enum sched_item_state state;
    uint64_t cost;
    uint64_t sequence;
    int64_t rank; /* FIFO's order */
    exact_t start;
    exact_t charge;
};

struct oracle_flow {
    uint32_t weight;
    int queue[ORACLE_ITEMS];
    int queued;
    int outstanding;
    exact_t tag; /* start tag of the head, or last finish tag */
    exact_t owed;
};

struct oracle {
    struct property_arithmetic arithmetic;
    enum sched_algorithm algorithm;
    enum sched_depth_unit unit;
    uint64_t depth;
    uint64_t flow_limit;
    uint64_t total_limit;
    struct oracle_item items[ORACLE_ITEMS];
    struct oracle_flow flows[ORACLE_FLOWS];
    int queued;
    int outstanding;
    uint64_t outstanding_cost;
    uint64_t sequence;
    int64_t first_rank;
    int64_t last_rank;
    uint64_t activations;
    exact_t v;
    exact_t largest_finish;
};

static inline exact_t oracle_later(exact_t a, exact_t b)
{
    return a > b ? a : b;
}

static inline bool oracle_head_before(const struct oracle *o, const struct oracle_flow *a,
                                      const struct oracle_flow *b)
{
    const struct oracle_item *x = &o->items[a->queue[0]];
    const struct oracle_item *y = &o->items[b->queue[0]];

    if (o->algorithm == SCHED_ALGORITHM_FIFO)
        return x->rank < y->rank;
    return a->tag < b->tag || (a->tag == b->tag && x->sequence < y->sequence);
}

/* The flow whose head is next, or -1. */
static inline int oracle_best_flow(const struct oracle *o)
{
    int best = -1;

    for (int f = 0; f < ORACLE_FLOWS; f++)
        if (o->flows[f].queued > 0 &&
            (best < 0 || oracle_head_before(o, &o->flows[f], &o->flows[best])))
            best = f;
    return best;
}

static inline bool oracle_room(const struct oracle *o, uint64_t cost)
{
    if (o->outstanding == 0)
        return o->depth > 0;
    if (o->algorithm == SCHED_ALGORITHM_SFQ)
        return false;
    if (o->unit == SCHED_DEPTH_REQUESTS)
        return (uint64_t)o->outstanding < o->depth;
    return o->outstanding_cost + cost <= o->depth;
}

/* The item to send now, or -1. */
static inline int oracle_best(const struct oracle *o)
{
    int flow = oracle_best_flow(o);

    if (flow < 0)
        return -1;
    int item = o->flows[flow].queue[0];
    return oracle_room(o, o->items[item].cost) ? item : -1;
}

/* v of Min-SFQ(D): the smallest start tag outstanding or at the head of a queue; never back. */
static inline void oracle_minimum(struct oracle *o)
{
    bool any = false;
    exact_t least = 0;

    if (o->algorithm != SCHED_ALGORITHM_MINSFQD)
        return;
    for (int i = 0; i < ORACLE_ITEMS; i++) {
        const struct oracle_item *item = &o->items[i];
        if (item->state == SCHED_ITEM_OUTSTANDING && (!any || item->start < least)) {
            least = item->start;
            any = true;
        }
    }
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        if (o->flows[f].queued > 0 && (!any || o->flows[f].tag < least)) {
            least = o->flows[f].tag;
            any = true;
        }
    }
    if (any)
        o->v = oracle_later(o->v, least);
}

static inline enum sched_verdict oracle_enqueue(struct oracle *o, int flow, int number,
                                                uint64_t cost)
{
    struct oracle_flow *f = &o->flows[flow];

    if (o->flow_limit != 0 && (uint64_t)f->queued >= o->flow_limit)
        return SCHED_FLOW_FULL;
    if (o->total_limit != 0 && (uint64_t)o->queued >= o->total_limit)
        return SCHED_TOTAL_FULL;
    if (f->queued == 0) {
        f->tag = oracle_later(o->v, f->tag + f->owed);
        f->owed = 0;
        o->activations++;
    }
    o->items[number] = (struct oracle_item){.flow = flow,
                                            .state = SCHED_ITEM_QUEUED,
                                            .cost = cost,
                                            .sequence = o->sequence++,
                                            .rank = ++o->last_rank};
    f->queue[f->queued++] = number;
    o->queued++;
    return SCHED_OK;
}

static inline void oracle_unqueue(struct oracle *o, int number, int place)
{
    struct oracle_flow *f = &o->flows[o->items[number].flow];

    f->queued--;
    memmove(&f->queue[place], &f->queue[place + 1],
            (size_t)(f->queued - place) * sizeof(f->queue[0]));
    o->queued--;
}

/* `number` is the head of its flow. */
static inline void oracle_send(struct oracle *o, int number)
{
    struct oracle_item *item = &o->items[number];
    struct oracle_flow *f = &o->flows[item->flow];

    oracle_unqueue(o, number, 0);
    item->state = SCHED_ITEM_OUTSTANDING;
    f->outstanding++;
    o->outstanding++;
    o->outstanding_cost += item->cost;
    if (o->algorithm == SCHED_ALGORITHM_FIFO) {
        item->start = o->v;
        item->charge = 0;
        return;
    }
    item->start = f->tag;
    item->charge = property_charge(&o->arithmetic, item->cost, f->weight);
    f->tag += item->charge;
    o->largest_finish = oracle_later(o->largest_finish, f->tag);
    if (f->queued > 0) {
        exact_t corrected = f->tag + f->owed;
        f->tag = oracle_later(item->start, corrected);
        f->owed = corrected - f->tag;
    }
    if (o->algorithm != SCHED_ALGORITHM_MINSFQD)
        o->v = oracle_later(o->v, item->start);
    oracle_minimum(o);
}

static inline void oracle_gone(struct oracle *o, int number)
{
    struct oracle_flow *f = &o->flows[o->items[number].flow];

    o->items[number].state = SCHED_ITEM_IDLE;
    oracle_minimum(o);
    if (f->queued == 0 && f->outstanding == 0) {
        f->tag += f->owed;
        f->owed = 0;
        o->largest_finish = oracle_later(o->largest_finish, f->tag);
    }
    if (o->queued == 0 && o->outstanding == 0)
        o->v = oracle_later(o->v, o->largest_finish);
}

static inline void oracle_land(struct oracle *o, int number)
{
    o->outstanding--;
    o->outstanding_cost -= o->items[number].cost;
    o->flows[o->items[number].flow].outstanding--;
}

static inline void oracle_complete(struct oracle *o, int number, uint64_t true_cost)
{
    struct oracle_item *item = &o->items[number];
    struct oracle_flow *f = &o->flows[item->flow];

    oracle_land(o, number);
    if (o->algorithm != SCHED_ALGORITHM_FIFO)
        f->owed += property_charge(&o->arithmetic, true_cost, f->weight) -
                   property_charge(&o->arithmetic, item->cost, f->weight);
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
    o->queued++;
    item->state = SCHED_ITEM_QUEUED;
    if (o->algorithm == SCHED_ALGORITHM_FIFO)
        item->rank = --o->first_rank;
    else
        f->tag -= item->charge;
}

static inline void oracle_cancel(struct oracle *o, int number)
{
    const struct oracle_flow *f = &o->flows[o->items[number].flow];
    int place = 0;

    while (f->queue[place] != number)
        place++;
    oracle_unqueue(o, number, place);
    oracle_gone(o, number);
}

/* To FIFO: by arrival, as far as the order within each flow allows; all tags are forgotten. */
static inline void oracle_to_fifo(struct oracle *o)
{
    int taken[ORACLE_FLOWS] = {0};

    o->v = oracle_later(o->v, o->largest_finish);
    o->largest_finish = o->v;
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
    if (algorithm == SCHED_ALGORITHM_FIFO)
        oracle_to_fifo(o);
    oracle_minimum(o);
}

/* Whether the flow could be forgotten: its next request would start at v anyway. */
static inline bool oracle_idle(const struct oracle *o, int flow)
{
    const struct oracle_flow *f = &o->flows[flow];

    return f->queued == 0 && f->outstanding == 0 && f->tag <= o->v;
}

#endif
