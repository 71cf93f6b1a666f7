/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c: a window per flow and proxy, averaged over time. The rule and its reasons are in
 * window.h.
 *
 * Whether something fits is decided by exact fractions, in 128 bits: with the ranges of window.h
 * the numerator has at most 77 bits, the denominator 57, and the outstanding cost 63. The debt is
 * an integral over time and kept in fixed point, with an error of 2^-32 of a cost unit in n.
 */
#include "sched/window/window.h"

#include <assert.h>
#include <errno.h>

typedef unsigned __int128 wide_t;

#define DEBT_SHIFT 32

static bool terms_valid(const struct sched_window_terms *terms)
{
    return terms->depth <= SCHED_WINDOW_DEPTH_MAX && terms->weight >= 1 &&
           terms->weight <= SCHED_WINDOW_WEIGHT_MAX && terms->weights_sum >= terms->weight &&
           terms->weights_sum <= SCHED_WINDOW_SUM_MAX && terms->share_num >= 1 &&
           terms->share_num <= terms->share_den && terms->share_den <= SCHED_WINDOW_PARTS_MAX;
}

static void set_size(struct sched_window *window, const struct sched_window_terms *terms)
{
    window->numerator = (wide_t)terms->depth * terms->weight * terms->share_num;
    window->denominator = (wide_t)terms->weights_sum * terms->share_den;
    window->size = (window->numerator << DEBT_SHIFT) / window->denominator;
    /* A window that is open at all must be able to pay. */
    if (window->size == 0 && window->numerator > 0)
        window->size = 1;
}

static wide_t outstanding_fixed(const struct sched_window *window)
{
    return (wide_t)window->outstanding_cost << DEBT_SHIFT;
}

static bool is_below_size(const struct sched_window *window)
{
    return window->outstanding_cost * window->denominator < window->numerator;
}

static uint64_t charged_cost(uint64_t cost)
{
    if (cost > SCHED_WINDOW_COST_MAX)
        return SCHED_WINDOW_COST_MAX;
    return cost != 0 ? cost : 1;
}

static wide_t debt_most(const struct sched_window *window)
{
    return window->size * SCHED_WINDOW_HOLD_MAX_NS;
}

/* Products are compared by dividing: they may have more than 128 bits. */
static wide_t debt_at(const struct sched_window *window, uint64_t now_ns)
{
    const uint64_t passed_ns = now_ns > window->updated_ns ? now_ns - window->updated_ns : 0;
    const wide_t outstanding = outstanding_fixed(window);

    if (outstanding > window->size) {
        const wide_t excess = outstanding - window->size;
        const wide_t most = debt_most(window);
        if (window->debt >= most || passed_ns > (most - window->debt) / excess)
            return most;
        return window->debt + excess * passed_ns;
    }
    const wide_t room = window->size - outstanding;
    if (room == 0 || window->debt == 0)
        return window->debt;
    return passed_ns > window->debt / room ? 0 : window->debt - room * passed_ns;
}

static void update(struct sched_window *window, uint64_t now_ns)
{
    window->debt = debt_at(window, now_ns);
    if (now_ns > window->updated_ns)
        window->updated_ns = now_ns;
}

int sched_window_init(struct sched_window *window, const struct sched_window_terms *terms,
                      uint64_t now_ns)
{
    if (!terms_valid(terms))
        return -EINVAL;
    *window = (struct sched_window){.updated_ns = now_ns};
    set_size(window, terms);
    return 0;
}

int sched_window_set(struct sched_window *window, const struct sched_window_terms *terms,
                     uint64_t now_ns)
{
    if (!terms_valid(terms))
        return -EINVAL;
    update(window, now_ns);
    set_size(window, terms);
    if (window->debt > debt_most(window))
        window->debt = debt_most(window);
    return 0;
}

bool sched_window_may_issue(const struct sched_window *window, uint64_t cost, uint64_t now_ns)
{
    const wide_t after = (wide_t)window->outstanding_cost + charged_cost(cost);

    if (after * window->denominator <= window->numerator)
        return true;
    return is_below_size(window) && debt_at(window, now_ns) == 0;
}

void sched_window_issue(struct sched_window *window, uint64_t cost, uint64_t now_ns)
{
    assert(sched_window_may_issue(window, cost, now_ns));
    update(window, now_ns);
    window->outstanding++;
    window->outstanding_cost += charged_cost(cost);
}

void sched_window_complete(struct sched_window *window, uint64_t cost, uint64_t now_ns)
{
    assert(window->outstanding > 0 && window->outstanding_cost >= charged_cost(cost));
    update(window, now_ns);
    window->outstanding--;
    window->outstanding_cost -= charged_cost(cost);
}

uint64_t sched_window_wake_ns(const struct sched_window *window)
{
    const wide_t outstanding = outstanding_fixed(window);

    if (!is_below_size(window))
        return SCHED_WINDOW_NEVER_NS;
    if (window->debt == 0)
        return window->updated_ns;
    if (outstanding >= window->size)
        return SCHED_WINDOW_NEVER_NS;
    const wide_t room = window->size - outstanding;
    const wide_t wait_ns = window->debt / room + (window->debt % room != 0);
    return wait_ns < SCHED_WINDOW_NEVER_NS - window->updated_ns
               ? window->updated_ns + (uint64_t)wait_ns
               : SCHED_WINDOW_NEVER_NS;
}

uint64_t sched_window_size_milli(const struct sched_window *window)
{
    return (uint64_t)(window->numerator * 1000 / window->denominator);
}
