/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duk-literal: DUK as it was published (the equation is in admission.h), a clock tick being 1 ms.
 *
 * Capacity (algorithm 2): at the start of a measurement the last item of the queue is marked, and
 * completions are counted until it has been served. If more has come by then and the interval goes
 * on, the mark moves to the new last one; else C = what was counted / the time. Completions, not
 * dispatches: filling idle slots is no capacity.
 *
 * Interval (algorithm 3): the level of congestion is P = 100 (M - C) / M, M what came in and C what
 * went out. For each level the shortest interval is kept at which the service rate did not fall;
 * a level not seen yet gets its interval from the line fitted through those that were.
 */
#include "sched/admission/admission_internal.h"

#define TICK_NS           1000000ULL
#define FIRST_INTERVAL_NS 10000000ULL
#define LONGEST_NS        1000000000LL

static void literal_init(struct admit *admit)
{
    uint64_t fixed_ns = admit->options.interval_ns;

    admit->state.literal = (struct admit_literal){
        .began_ns = admit->now_ns,
        .interval_ns = fixed_ns ? fixed_ns : FIRST_INTERVAL_NS,
        .used_q32 = ADMIT_ONE_Q32,
    };
}

/* ---------------------------------------------------------------- algorithm 2 */

static void mark(struct admit *admit)
{
    struct admit_literal *literal = &admit->state.literal;

    literal->mark_ns = admit->now_ns;
    literal->mark_done = 0;
    literal->mark_pending = admit->queue ? admit->queue + admit->outstanding : 0;
}

static void count_capacity(struct admit *admit, uint64_t cost)
{
    struct admit_literal *literal = &admit->state.literal;

    if (literal->mark_pending == 0)
        return;
    literal->mark_done += cost;
    if (literal->mark_done < literal->mark_pending)
        return;
    if (admit->queue && admit->now_ns - literal->mark_ns < literal->interval_ns) {
        literal->mark_pending = literal->mark_done + admit->queue + admit->outstanding;
        return;
    }
    if (admit->now_ns > literal->mark_ns)
        literal->rate_q40 = admit_rate_q40(literal->mark_done, admit->now_ns - literal->mark_ns);
    literal->mark_pending = 0;
}

/* ---------------------------------------------------------------- algorithm 3 */

/* Least squares of interval on level, at `level`; the level's own when only one was seen. */
static uint64_t fitted_ns(const struct admit_literal *literal, int level)
{
    __int128 n = 0;
    __int128 x = 0;
    __int128 y = 0;
    __int128 xx = 0;
    __int128 xy = 0;

    for (int i = 0; i < ADMIT_LEVELS; i++) {
        __int128 length_ns = (__int128)literal->level_interval_ns[i];

        if (length_ns == 0)
            continue;
        n++;
        x += i;
        y += length_ns;
        xx += i * i;
        xy += i * length_ns;
    }
    __int128 spread = n * xx - x * x;

    if (spread == 0)
        return literal->interval_ns;
    __int128 result = (y * xx - x * xy + (n * xy - x * y) * level) / spread;

    if (result < (__int128)TICK_NS)
        return TICK_NS;
    return result > LONGEST_NS ? LONGEST_NS : (uint64_t)result;
}

static void choose_interval(struct admit *admit, uint64_t length_ns)
{
    struct admit_literal *literal = &admit->state.literal;
    uint64_t in = literal->offered_cost;
    uint64_t out = literal->done_cost;
    int level = in > out ? (int)admit_scale(100, in - out, in) : 0;
    uint64_t rate_q40 = admit_rate_q40(out, length_ns);
    uint64_t *best_ns = &literal->level_interval_ns[level];

    if (*best_ns == 0 ||
        (literal->interval_ns < *best_ns && rate_q40 >= literal->level_rate_q40[level])) {
        bool seen = *best_ns != 0;

        if (!seen)
            literal->interval_ns = fitted_ns(literal, level);
        *best_ns = literal->interval_ns;
        literal->level_rate_q40[level] = rate_q40;
    }
    literal->interval_ns = *best_ns;
}

/* ---------------------------------------------------------------- equation 2.9 */

static void set_share(struct admit_literal *literal, uint64_t could, uint64_t length_ns)
{
    uint64_t used_q32 = admit_scale(literal->done_cost, ADMIT_ONE_Q32, could);
    int64_t ticks = length_ns > TICK_NS ? (int64_t)(length_ns / TICK_NS) : 1;
    /* With dD/dU = 1 the first term's (1 + dt) cancels (2 + dt - 1). */
    int64_t bracket_q32 =
        (int64_t)used_q32 + ((int64_t)used_q32 - (int64_t)literal->used_q32) / ticks;

    literal->used_q32 = used_q32;
    if (bracket_q32 < 0)
        bracket_q32 = 0;
    uint64_t admitted_q32 = admit_scale((uint64_t)bracket_q32, could, literal->offered_cost);

    literal->refuse_q32 = admitted_q32 < ADMIT_ONE_Q32 ? ADMIT_ONE_Q32 - admitted_q32 : 0;
}

static void check(struct admit *admit)
{
    struct admit_literal *literal = &admit->state.literal;
    uint64_t length_ns = admit->now_ns - literal->began_ns;

    if (length_ns < literal->interval_ns)
        return;
    uint64_t could = admit_served(literal->rate_q40, length_ns);

    if (literal->offered_cost == 0 || could == 0 || admit->queue == 0)
        literal->refuse_q32 = 0;
    else
        set_share(literal, could, length_ns);
    if (admit->options.interval_ns == 0)
        choose_interval(admit, length_ns);
    literal->began_ns = admit->now_ns;
    literal->offered_cost = 0;
    literal->done_cost = 0;
    if (literal->mark_pending == 0)
        mark(admit);
}

/* ---------------------------------------------------------------- the policy */

static bool literal_offer(struct admit *admit, uint64_t cost)
{
    struct admit_literal *literal = &admit->state.literal;

    literal->offered_cost += cost;
    check(admit);
    if (admit->queue == 0) {
        literal->credit_q32 = 0;
        return true;
    }
    return !admit_spaced(&literal->credit_q32, literal->refuse_q32);
}

static void literal_complete(struct admit *admit, uint64_t cost)
{
    admit->state.literal.done_cost += cost;
    count_capacity(admit, cost);
    check(admit);
}

static void literal_look(const struct admit *admit, struct admit_view *view)
{
    const struct admit_literal *literal = &admit->state.literal;

    view->refuse_share = (double)literal->refuse_q32 / (double)ADMIT_ONE_Q32;
    view->interval_ns = literal->interval_ns;
    if (literal->rate_q40)
        view->capacity_per_s = (double)literal->rate_q40 * 1e9 / (double)(1ULL << ADMIT_RATE_BITS);
}

const struct admit_policy_ops admit_literal_ops = {
    .name = "duk-literal",
    .init = literal_init,
    .offer = literal_offer,
    .complete = literal_complete,
    .look = literal_look,
};
