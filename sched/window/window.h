/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h: decentralised request windows: proportional sharing without shared state.
 *
 * Several proxies in front of one service cannot keep one queue between them. Instead each holds,
 * for each flow, a window: how much of that flow's work it may have outstanding at the service.
 * Nothing is said between the proxies; each knows the depth, the flow's weight, the sum of all
 * weights and which part of the flow's traffic is its own:
 *
 *     n = depth * weight / weights_sum * share_num / share_den
 *
 *     proxy 1   flow f [n = 0.6]--.          depth 4, weights 3 and 7,
 *               flow g [n = 1.4]--+--> service       two proxies, half of each flow at each
 *     proxy 2   flow f [n = 0.6]--+
 *               flow g [n = 1.4]--'          all windows together: 4
 *
 * Source: RW(D) of Jin, Chase, Kaur, "Interposed Proportional Sharing for a Storage Service
 * Utility", SIGMETRICS 2004, which leaves windows that are not whole numbers open. Rounding them is
 * wrong: in the picture, 0.6 and 1.4 rounded up send 1 + 1 and 2 + 2, shares of .333 and .667
 * instead of .3 and .7. Here n is the average over time:
 *
 *     A request of cost c may be issued, with k outstanding, iff
 *         k + c <= n                    it fits, or
 *         k < n and the debt is 0       it does not fit wholly, and the last excess is paid back.
 *     While k > n the debt grows at k - n per ns, while k < n it shrinks at n - k, to 0 at least.
 *
 * States of a window, by k (what is outstanding) and the debt:
 *
 *                 issue, does not fit                 complete, k < n
 *        OPEN ----------------------------> OVER ----------------------> PAYING
 *     debt 0, k < n                       k > n, debt grows           k < n, debt shrinks
 *         ^                                                               |
 *         +---------------------- debt reaches 0 (wake_ns) ---------------+
 *
 * What follows from the rule
 *   - A flow that always has a request waiting has exactly n outstanding on average. With a service
 *     that treats all alike (first come, first served) flows therefore get throughput in proportion
 *     to their windows, as far as their requests find it equally full (Little's law). Simulated
 * with 1 to 4 servers, depth 4 to 16, weights 3 and 7, the share of .3 came out as follows: service
 * times uniform or exponential, n >= 1     .290 to .305 all exactly even, requests may fall in step
 * .285 to .340 depth 4, two proxies, so n = 0.6: even, exponential times, one server   .297, .279
 *     So an n of at least 1 is advised: fewer proxies, a larger depth, or costs in smaller units.
 *   - Never more than n + c is outstanding. Whole windows and unit costs: never more than n, no
 * debt at all, and the paper's bound holds: two flows that always have a request waiting are never
 *     more than 2 * depth apart in completed work per share.
 *   - A request larger than its window goes too, once nothing is owed; the flow then pays for it.
 *   - No credit is saved: a flow that was away comes back to an empty window and no more.
 *   - Not work-conserving: what a flow leaves of its window stays unused.
 *   - Debt that nothing at the service would take longer than SCHED_WINDOW_HOLD_MAX_NS to pay back
 * is forgiven beyond that, so that one hanging request does not silence a flow for hours. So
 *     fairness ends where single requests hold the service for that long.
 *
 * Memory and threads: a window is a plain value in the caller's object, nothing is allocated and
 * nothing has to be undone. Calls on one window are to be serialised by the caller. Time is passed
 * in, monotonic, in ns; a time before the last one given counts as that one. Queueing is the
 * caller's: it asks for the head of its flow's queue. Every call is O(1). This header stands alone:
 * it needs nothing else of sched/.
 */
#ifndef SPILLWAY_SCHED_WINDOW_WINDOW_H
#define SPILLWAY_SCHED_WINDOW_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCHED_WINDOW_DEPTH_MAX  ((UINT64_C(1) << 40) - 1)
#define SCHED_WINDOW_WEIGHT_MAX UINT32_C(1000000)
#define SCHED_WINDOW_SUM_MAX    ((UINT64_C(1) << 40) - 1)
#define SCHED_WINDOW_PARTS_MAX  UINT32_C(65536)

/* Largest cost of one request; a larger one counts as this much, 0 counts as 1. */
#define SCHED_WINDOW_COST_MAX ((UINT64_C(1) << 40) - 1)

/* The longest a window with nothing outstanding stays shut: 10 s. */
#define SCHED_WINDOW_HOLD_MAX_NS UINT64_C(10000000000)

/* Returned by sched_window_wake_ns: only a completion, or new terms, can open the window. */
#define SCHED_WINDOW_NEVER_NS UINT64_MAX

/* What a window is made of; every proxy is given the same, but for its share. */
struct sched_window_terms {
    uint64_t depth;       /* of the service, all proxies together, in the unit of the costs; 0 shuts
                             the window; at most SCHED_WINDOW_DEPTH_MAX */
    uint32_t weight;      /* of the flow, 1..SCHED_WINDOW_WEIGHT_MAX */
    uint64_t weights_sum; /* of all flows, this one included, at most SCHED_WINDOW_SUM_MAX */
    uint32_t share_num;   /* this proxy's part of the flow: share_num / share_den, */
    uint32_t share_den;   /* 1 <= share_num <= share_den <= SCHED_WINDOW_PARTS_MAX */
};

/* Private, but for `outstanding` and `outstanding_cost`, which may be read. */
struct sched_window {
    uint64_t outstanding;      /* requests */
    uint64_t outstanding_cost; /* and their cost: k */

    unsigned __int128 numerator;   /* n = numerator / denominator, exact */
    unsigned __int128 denominator; /* weights_sum * share_den */
    unsigned __int128 size;        /* n in 2^-32, for the debt alone */
    unsigned __int128 debt;        /* in 2^-32 cost units * ns, as of updated_ns */
    uint64_t updated_ns;
};

/* Makes an empty window without debt. 0, or -EINVAL when a term is out of range. */
int sched_window_init(struct sched_window *window, const struct sched_window_terms *terms,
                      uint64_t now_ns);

/*
 * Changes the terms while running; what is outstanding stays, and so does the debt. 0, or -EINVAL
 * when one is out of range (the old ones stay).
 */
int sched_window_set(struct sched_window *window, const struct sched_window_terms *terms,
                     uint64_t now_ns);

/* Whether a request of this cost may be issued now. Changes nothing. */
bool sched_window_may_issue(const struct sched_window *window, uint64_t cost, uint64_t now_ns);

/* The request is sent: it counts as outstanding. Only after sched_window_may_issue said so. */
void sched_window_issue(struct sched_window *window, uint64_t cost, uint64_t now_ns);

/* An outstanding request has ended, well or badly. `cost` is the one given when it was issued. */
void sched_window_complete(struct sched_window *window, uint64_t cost, uint64_t now_ns);

/*
 * When the window opens by the passing of time alone: the first moment at which k < n and nothing
 * is owed, if nothing is issued or completed until then (a moment already past when that is so
 * now). To be asked when sched_window_may_issue said no. SCHED_WINDOW_NEVER_NS while k >= n.
 */
uint64_t sched_window_wake_ns(const struct sched_window *window);

/* n in thousandths of a cost unit, rounded down; for display. */
uint64_t sched_window_size_milli(const struct sched_window *window);

#ifdef __cplusplus
}
#endif

#endif
