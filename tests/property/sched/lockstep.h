/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep.h: a scheduler and the oracle, side by side: each call on both, then compared.
 *
 * What must be equal depends on the arithmetic of the case (property.h):
 *   - arithmetic.exact: every choice, tag and virtual time, to the last bit;
 *   - else a choice may differ where the exact keys are within the rounding of engine/vtime.h.
 * Under fsfq and 2dfq rounding can also decide between two equations or two size groups, so
 * `lenient` leaves out which head was chosen;
 *   - rates that divide 10^9 (exact_times) give whole nanoseconds, to be met exactly; else a
 *     request may be due a nanosecond sooner or later for every charge so far.
 * Verdicts, counters, states, depth, windows and the order within a flow are always equal.
 */
#ifndef SPILLWAY_TESTS_PROPERTY_SCHED_LOCKSTEP_H
#define SPILLWAY_TESTS_PROPERTY_SCHED_LOCKSTEP_H

#include "tests/property/sched/oracle.h"

/* v of wfq is a quotient: more bits for it, so that only sched/ rounds. */
#define LOCKSTEP_WFQ_SCALE (INT64_C(1) << 20)

struct lockstep {
    uint64_t seed;
    struct property_random random;
    struct oracle oracle;
    struct sched *s;
    struct sched_flow flows[ORACLE_FLOWS];
    struct sched_terms terms[ORACLE_FLOWS];
    struct sched_item items[ORACLE_ITEMS];
    uint64_t virtual_start;
    uint64_t last_vtime;
    uint64_t steps; /* bounds the roundings so far */
    uint64_t now_ns;
    bool exact_times;
    bool lenient;
};

static inline uint64_t lockstep_draw(struct lockstep *p, uint64_t low, uint64_t high)
{
    return property_between(&p->random, low, high);
}

/* ---- drawing what a flow is promised -------------------------------------------------------- */

/* A rate at which a request of middling cost takes milliseconds to seconds. */
static inline uint64_t lockstep_rate(struct lockstep *p)
{
    const uint64_t cost = p->oracle.arithmetic.largest_cost;
    const uint64_t low = cost < 1000000 ? cost : 1000000;
    uint64_t rate = 1;

    if (!p->exact_times)
        return lockstep_draw(p, low, low * 300);
    /* The divisors of 10^9 up to there, each by steps of 2 and 5. */
    while (rate < low * 30)
        rate *=
            rate % 1024 == 0 || (rate % 1953125 != 0 && property_chance(&p->random, 50)) ? 5 : 2;
    return 1000000000 % rate == 0 ? rate : 1000000;
}

static inline void lockstep_set_terms(struct lockstep *p, int flow)
{
    static const struct sched_terms none = {0};
    struct sched_terms *terms = &p->terms[flow];
    struct oracle_flow *f = &p->oracle.flows[flow];
    const bool plain = property_chance(&p->random, 20);

    *terms = none;
    if (!plain) {
        terms->target_ns = lockstep_draw(p, 0, 3000000000);
        if (property_chance(&p->random, 60))
            terms->reservation_per_s = lockstep_rate(p);
        if (property_chance(&p->random, 70))
            terms->limit_per_s = lockstep_rate(p);
        if (property_chance(&p->random, 50))
            terms->burst = lockstep_draw(p, 0, p->oracle.arithmetic.largest_cost);
    }
    f->terms = *terms;
    f->reservation = 0;
    f->limit = 0;
    property_check(p->seed, sched_flow_set_terms(&p->flows[flow], plain ? NULL : terms) == 0);
}

/* refuse_at_limit changes only while nothing waits that was let in by the other rule. */
static inline void lockstep_set_options(struct lockstep *p)
{
    struct sched_options *options = &p->oracle.options;

    options->slack = lockstep_draw(p, 0, 4);
    if (p->oracle.unit == SCHED_DEPTH_COST)
        options->slack *= p->oracle.arithmetic.largest_cost / 2;
    options->capacity_per_s = p->oracle.arithmetic.largest_cost * lockstep_draw(p, 1, 100);
    if (property_chance(&p->random, 50))
        options->capacity_per_s = 0;
    if (options->capacity_per_s > SCHED_RATE_MAX)
        options->capacity_per_s = SCHED_RATE_MAX;
    options->ageing_ns = lockstep_draw(p, 0, 2000000);
    if (p->oracle.queued == 0 && p->oracle.outstanding == 0)
        options->refuse_at_limit = property_chance(&p->random, 40);
    property_check(p->seed, sched_set_options(p->s, options) == 0);
}

static inline void lockstep_attach(struct lockstep *p, int flow)
{
    struct oracle_flow *f = &p->oracle.flows[flow];

    property_check(p->seed, sched_flow_init(&p->flows[flow], f->weight) == 0);
    if (f->pinned)
        sched_flow_pin(&p->flows[flow]);
    sched_flow_set_limit(&p->flows[flow], (uint32_t)f->queue_limit);
    property_check(p->seed, sched_flow_set_terms(&p->flows[flow], &p->terms[flow]) == 0);
    property_check(p->seed, sched_flow_attach(p->s, &p->flows[flow]) == 0);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static inline exact_t lockstep_now(const struct lockstep *p)
{
    return (exact_t)p->now_ns * ORACLE_NS;
}

/* How far rounding may have moved a tag in time. */
static inline exact_t lockstep_slip(const struct lockstep *p)
{
    return p->exact_times ? 0 : (exact_t)(p->steps + 2) * ORACLE_NS;
}

static inline bool lockstep_near(const struct lockstep *p, int flow, int best)
{
    return best >= 0 && property_near(&p->oracle.arithmetic, oracle_key(&p->oracle, flow),
                                      oracle_key(&p->oracle, best), p->steps);
}

/* A head other than the oracle's was sent; whether rounding can be the reason. */
static inline bool lockstep_excused(const struct lockstep *p, int flow)
{
    const struct oracle *o = &p->oracle;
    const exact_t late = lockstep_now(p) + lockstep_slip(p);

    switch (o->algorithm) {
    case SCHED_ALGORITHM_FIFO:
    case SCHED_ALGORITHM_EDF:
    case SCHED_ALGORITHM_SCF:
        return false;
    case SCHED_ALGORITHM_LEAKY_BUCKET:
        return !p->exact_times && oracle_conforms(o, flow) <= late;
    case SCHED_ALGORITHM_MCLOCK:
        if (!p->exact_times || p->lenient)
            return oracle_within_limit(o, flow, late) || oracle_reservation_due(o, flow, late);
        for (int f = 0; f < ORACLE_FLOWS; f++)
            if (o->flows[f].queued > 0 && oracle_reservation_due(o, f, lockstep_now(p)))
                return false;
        return oracle_within_limit(o, flow, late) &&
               lockstep_near(p, flow, oracle_best_flow(o, lockstep_now(p)));
    default:
        return p->lenient || lockstep_near(p, flow, oracle_best_flow(o, lockstep_now(p)));
    }
}

static inline void lockstep_check_choice(const struct lockstep *p, int expected, int number)
{
    const struct oracle *o = &p->oracle;
    const int flow = o->items[number].flow;

    property_check(p->seed, o->flows[flow].queued > 0 && o->flows[flow].queue[0] == number);
    property_check(p->seed, oracle_room(o, o->items[number].cost));
    if (o->algorithm == SCHED_ALGORITHM_RW || o->algorithm == SCHED_ALGORITHM_HYBRID)
        property_check(p->seed, oracle_window_open(o, flow));
    property_check(p->seed, number == expected || lockstep_excused(p, flow));
}

static inline void lockstep_check_vtime(struct lockstep *p)
{
    const struct property_arithmetic *a = &p->oracle.arithmetic;
    const uint64_t vtime = sched_virtual_time(p->s);

    property_check(p->seed, (int64_t)(vtime - p->last_vtime) >= 0);
    if (a->exact)
        property_check(p->seed, vtime == property_fixed(p->virtual_start, p->oracle.v));
    else if (!p->lenient)
        property_check(p->seed,
                       property_near(a, p->oracle.v,
                                     (exact_t)(vtime - p->virtual_start) * a->scale / ULPS_PER_UNIT,
                                     p->steps));
    p->last_vtime = vtime;
}

/* Nothing was dispatched: neither may the oracle have anything, nor another wake-up time. */
static inline void lockstep_check_nothing(const struct lockstep *p)
{
    const struct oracle *o = &p->oracle;

    if ((!o->arithmetic.exact || !p->exact_times) && o->unit == SCHED_DEPTH_COST)
        return;
    property_check(p->seed, oracle_best(o, lockstep_now(p) - lockstep_slip(p)) < 0);
    if (p->exact_times && o->unit == SCHED_DEPTH_REQUESTS)
        property_check(p->seed, sched_wake_ns(p->s) == oracle_wake(o));
    else
        property_check(p->seed, sched_wake_ns(p->s) > p->now_ns);
    if (p->exact_times && o->algorithm == SCHED_ALGORITHM_LEAKY_BUCKET)
        property_check(p->seed, sched_wake_ns(p->s) <= oracle_wake(o));
}

static inline void lockstep_check_same(struct lockstep *p)
{
    const struct oracle *o = &p->oracle;

    property_check(p->seed, sched_queued(p->s) == (uint64_t)o->queued);
    property_check(p->seed, sched_outstanding(p->s) == (uint64_t)o->outstanding);
    property_check(p->seed, sched_outstanding_cost(p->s) == o->outstanding_cost);
    lockstep_check_vtime(p);
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        property_check(p->seed, p->flows[f].queued == (uint64_t)o->flows[f].queued);
        property_check(p->seed, p->flows[f].queued_cost == o->flows[f].queued_cost);
        property_check(p->seed, p->flows[f].outstanding == (uint64_t)o->flows[f].outstanding);
        property_check(p->seed, p->flows[f].outstanding_cost == o->flows[f].outstanding_cost);
        if (o->arithmetic.exact && p->exact_times)
            property_check(p->seed, sched_flow_idle(p->s, &p->flows[f]) == oracle_idle(o, f));
    }
    for (int i = 0; i < ORACLE_ITEMS; i++)
        property_check(p->seed, p->items[i].state == (uint8_t)o->items[i].state);
}

/* ---- calls on both -------------------------------------------------------------------------- */

/* A random item in that state, or -1. */
static inline int lockstep_item(struct lockstep *p, enum sched_item_state state)
{
    int found = -1;
    uint64_t seen = 0;

    for (int i = 0; i < ORACLE_ITEMS; i++)
        if (p->oracle.items[i].state == state && lockstep_draw(p, 0, seen++) == 0)
            found = i;
    return found;
}

static inline void lockstep_enqueue(struct lockstep *p, int flow, int number, uint64_t cost)
{
    oracle_advance(&p->oracle, p->now_ns);
    const enum sched_verdict expected = oracle_enqueue(&p->oracle, flow, number, cost);
    const enum sched_verdict verdict =
        sched_enqueue(p->s, &p->flows[flow], &p->items[number], cost, p->now_ns);

    if (verdict == expected)
        return;
    /* A limit that is reached a few nanoseconds sooner or later: the oracle goes along. */
    property_check(p->seed, !p->exact_times && (verdict == SCHED_OK || verdict == SCHED_AT_LIMIT) &&
                                (expected == SCHED_OK || expected == SCHED_AT_LIMIT));
    if (verdict == SCHED_OK) {
        const uint64_t limit = p->oracle.flows[flow].terms.limit_per_s;
        const exact_t late = p->oracle.flows[flow].limit -
                             oracle_span(p->oracle.flows[flow].terms.burst, limit) -
                             lockstep_now(p);
        property_check(p->seed, late <= lockstep_slip(p));
        p->oracle.flows[flow].limit -= late;
        property_check(p->seed, oracle_enqueue(&p->oracle, flow, number, cost) == SCHED_OK);
        p->oracle.flows[flow].limit += late;
    } else {
        oracle_cancel(&p->oracle, number);
    }
}

/* mclock: whether the item went by its reservation; which of two phases rounding may decide. */
static inline bool lockstep_by_reservation(const struct lockstep *p, const struct sched_item *item,
                                           int number)
{
    const struct oracle *o = &p->oracle;
    const int flow = o->items[number].flow;
    const exact_t now = lockstep_now(p);

    if (o->algorithm != SCHED_ALGORITHM_MCLOCK)
        return false;
    const bool expected = oracle_reservation_due(o, flow, now);
    const bool reserved = (item->charged & SCHED_CHARGED_RESERVATION) != 0;
    if (reserved != expected)
        property_check(p->seed, oracle_reservation_due(o, flow, now + lockstep_slip(p)) !=
                                    oracle_reservation_due(o, flow, now - lockstep_slip(p)));
    return reserved;
}

static inline bool lockstep_dispatch(struct lockstep *p)
{
    oracle_advance(&p->oracle, p->now_ns);
    const int expected = oracle_best(&p->oracle, lockstep_now(p));
    const struct sched_item *item = sched_dispatch(p->s, p->now_ns);

    if (item == NULL) {
        lockstep_check_nothing(p);
        return false;
    }
    const int number = (int)(item - p->items);
    lockstep_check_choice(p, expected, number);
    oracle_send(&p->oracle, number, lockstep_by_reservation(p, item, number));
    lockstep_check_vtime(p);
    if (p->oracle.arithmetic.exact)
        property_check(p->seed, item->start == property_fixed(p->virtual_start,
                                                              p->oracle.items[number].start));
    return true;
}

static inline void lockstep_complete(struct lockstep *p, int number, uint64_t true_cost)
{
    oracle_advance(&p->oracle, p->now_ns);
    oracle_complete(&p->oracle, number, true_cost);
    sched_complete(p->s, &p->items[number], true_cost, p->now_ns);
}

static inline void lockstep_cancel(struct lockstep *p, int number)
{
    oracle_advance(&p->oracle, p->now_ns);
    oracle_cancel(&p->oracle, number);
    sched_cancel(p->s, &p->items[number], p->now_ns);
}

static inline void lockstep_requeue(struct lockstep *p, int number)
{
    oracle_requeue(&p->oracle, number);
    sched_requeue_front(p->s, &p->items[number]);
}

static inline void lockstep_set_depth(struct lockstep *p, enum sched_depth_unit unit,
                                      uint64_t depth)
{
    p->oracle.unit = unit;
    p->oracle.depth = depth;
    property_check(p->seed, sched_set_depth(p->s, depth) == 0);
    property_check(p->seed, sched_set_depth_unit(p->s, unit) == 0);
}

static inline void lockstep_set_weight(struct lockstep *p, int flow, uint32_t weight)
{
    p->oracle.flows[flow].weight = weight;
    property_check(p->seed, sched_flow_set_weight(p->s, &p->flows[flow], weight) == 0);
}

/* The next flow that may be forgotten is, or is kept. */
static inline void lockstep_retire(struct lockstep *p)
{
    struct sched_flow *flow = sched_retire_next(p->s);

    if (flow == NULL)
        return;
    const int number = (int)(flow - p->flows);
    property_check(p->seed, sched_flow_idle(p->s, flow));
    property_check(p->seed, !p->oracle.flows[number].pinned);
    property_check(p->seed, !p->oracle.arithmetic.exact || !p->exact_times ||
                                oracle_idle(&p->oracle, number));
    if (property_chance(&p->random, 50)) {
        property_check(p->seed, sched_flow_detach(p->s, flow) == 0);
        memset(flow, 0xa5, sizeof(*flow));
        lockstep_attach(p, number);
    }
}

#endif
