/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission.h: who may join the queue. Six policies behind one interface.
 *
 * Scheduling decides whose turn it is; it can't shorten a queue that more joins than leaves. An
 * admission policy looks at the queue of one pool and says of each request whether it joins it or
 * not. What "not" means is the caller's: refuse it (503), or mark its client (slow it down).
 *
 *      offered ──admit_offer──► queued ──admit_dispatch──► at the servers ──admit_complete──► done
 *                   │             │           │
 *                   ▼             ▼           ▼
 *                  not       admit_leave     not          (codel looks at what leaves the queue)
 *
 * Use:
 *     if (admit_offer(&a, cost, now)) { queue it } else { refuse or mark }
 *     at dispatch:   if (!admit_dispatch(&a, cost, now - arrived, now)) { refuse it; take another }
 *     at its end:    admit_complete(&a, cost, now)
 *     cancelled, or put out of the queue in another's favour:   admit_leave(&a, cost, now)
 *
 * Every admitted request leaves by exactly one of admit_dispatch and admit_leave; every dispatched
 * one ends by exactly one admit_complete, with the same cost (a corrected cost is the scheduler's
 * business). A request that is put back into the queue after its dispatch: admit_requeue.
 *
 * Costs are 1 each (the request form) or amounts of work of any unit (the cost form). In the cost
 * form everything is in those units, and what is a count of requests in a formula (a variance) is
 * the sum of squared costs.
 *
 * The policies
 *
 *   none          all join.
 *
 *   tail          not, when the queue holds `limit` already.
 *
 *   codel         "Controlling Queue Delay", Nichols and Jacobson, ACM Queue 10(5), 2012; RFC 8289.
 *                 Once every request that left the queue in 100 ms had waited for 5 ms or more, one
 *                 that leaves is put out, the next one 100 ms / sqrt(count) later, until one has
 *                 waited less.
 *
 *   pie           "PIE: a lightweight control scheme to address the bufferbloat problem", Pan et
 *                 al., HPSR 2013; RFC 8033. Every 30 ms p += 0.125 (d - 20 ms) + 1.25 (d - d_old),
 *                 d the queue over the rate at which it is served; scaled down while p is small; a
 *                 burst of 100 ms passes after an idle time. Draws are random, seeded.
 *
 *   duk-literal   equation 2.9, algorithms 2 and 3 of Novak and Kasera, "Auto-Tuning Active
 *                 Queue Management", COMSNETS 2017, and Novak's dissertation (2019), chapter
 *                 2: keep the pool at the knee of the delay-utilisation curve, dD/dU = 1:
 *
 *                   p = 1 - (C/A) ((U_i - U_(i-1)) (1 + dt) / (dt (2 + dt - dD/dU)) + U_i)
 *
 *                 The interval dt is that of algorithm 3, a line through the shortest interval
 *                 seen to keep the throughput at each level of congestion. Kept to compare:
 *                 since C U is the service rate, p holds the growth of the queue at 0 and
 *                 never drains what stands.
 *
 *   duk           the same knee for requests, the default. Over an interval in which every
 *                 slot turned over (and 20 requests' worth at least: fewer tell little) and
 *                 all that stood at its start has left: C the service rate, n = C T what it
 *                 can serve, a what was offered, k the queue now. A queue of k* = sqrt(n) is
 *                 the noise of n itself; what stands above it is to be gone after another
 *                 interval:
 *
 *                   p = 1 - (n - (k - k*)) / (a - sqrt(a))
 *
 *                 A request that finds more than k* before it is put out with p, evenly
 *                 spaced; but for six rules of our own, found by simulation.
 *
 * A request's worth is 1, in the cost form the sum of squared costs over the sum of costs, of the
 * last 16 intervals mostly: one interval holds too few of the large ones (with the worth of one
 * interval the 99th percentile of the wait was twice as long).
 *
 * The rules of duk that are ours (what they come to: docs/admission.md, tests/unit/bench/gate)
 *
 *   evidence      S = max(0, S + cost at each arrival - C dt), the excess of the offer over
 *                 the capacity (a CUSUM: Page, "Continuous inspection schemes", Biometrika
 *                 1954). Nothing is put out while S <= h, 20 requests' worth. S is held at
 *                 5 h: an overload is remembered for a while, and forgotten.
 *   age           nor before S has been above 0 for two intervals' length, that is since the
 *                 overload began (the last 0 of a CUSUM says when), unless S is at 5 h. A
 *                 burst that ends within them passes whole; one with no end adds 100
 *                 requests' worth at most. Of bursts of 50 ms at 5 times the capacity 60 % were
 *                 put out without this rule, 4 % with it; steady loads don't see it, because
 *                 they hardly ever bring S from 0 to h that fast.
 *   threshold     in an overload with rho = (a - sqrt(a)) / n > 1: not, when
 *                 k >= ln(100) / ln(rho). A queue with that many waiting runs empty about 1 %
 *                 of the time; more is wait alone.
 *   standing      in an overload: not, when k >= 16 requests' worth, whatever the slots. p is
 *                 that of the interval before, and a crowd that comes within one would join as
 *                 a whole. With the slots as the limit, 64 slots had twice the 99th percentile
 *                 of the wait at load 1.2 and served no more; 12 instead of 16 serve less.
 *   capacity      an interval with the queue never empty ends as soon as what was done falls
 *                 short of C T by three times its noise: the capacity fell. S was reckoned with
 *                 the one that is gone, so it becomes the queue where that is more, and is of
 *                 age. When the capacity fell to a fifth at load 0.8 the 99th percentile of the
 *                 wait was 300 ms without this, 76 with it (pie 163).
 *
 * What is left of its limits, measured: near a load of 1 it puts out 1 % (0.9) to 4.5 % (1.0),
 * where pie has 0.1 to 3 %, for half of its wait. A burst of more than 100 requests' worth above
 * the capacity is not absorbed. It knows how costs vary but not how service times do: where one in
 * ten takes eleven times as long, it puts out 2 % at load 0.9. A single slot is idle 3 % of the
 * time at load 1.2, as with pie.
 *
 * Time is an argument: monotonic nanoseconds; a time before the last one counts as that one.
 * No allocation, no clock, and no floating point but in admit_look(), which is for people. A
 * struct admit is a plain value, to be serialised by the caller; intervals end inside the calls.
 */
#ifndef SPILLWAY_SCHED_ADMISSION_ADMISSION_H
#define SPILLWAY_SCHED_ADMISSION_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

enum admit_policy {
    ADMIT_NONE,
    ADMIT_TAIL,
    ADMIT_CODEL,
    ADMIT_PIE,
    ADMIT_DUK_LITERAL,
    ADMIT_DUK,
    ADMIT_POLICIES,
};

#define ADMIT_COST_MAX (1ULL << 40)
#define ADMIT_NEVER    UINT64_MAX
#define ADMIT_ONE_Q32  (1ULL << 32) /* a probability of 1 */

struct admit_options {
    enum admit_policy policy;
    uint64_t slots; /* what the servers work on at a time: depth, in units of cost; 0 counts as 1 */
    uint64_t limit; /* tail: units of cost in the queue; at least 1 */
    uint64_t seed;  /* pie */
    uint64_t target_ns;   /* codel, pie: 0 for the published 5 ms, 20 ms */
    uint64_t interval_ns; /* codel: 0 for 100 ms; duk-literal: 0 for algorithm 3 */
};

/* What a policy knows of the pool; amounts in units of cost. */
struct admit_view {
    uint64_t queue;        /* admitted and not dispatched */
    uint64_t offered;      /* requests, of all time */
    uint64_t admitted;     /* requests that joined */
    uint64_t refused;      /* requests put out, at the offer or at the dispatch */
    double capacity_per_s; /* C; 0: not measured yet */
    double refuse_share;   /* p */
    double queue_allowed;  /* duk: k*; tail: the limit */
    double queue_most;     /* duk: L, when there is an overload; else 0 */
    double surplus;        /* duk: S / h, above 1 an overload is evident */
    uint64_t interval_ns;  /* the last one that ended */
};

/* ---- state: the caller's memory, nobody else's to read ------------------------------------- */

struct admit_codel {
    uint64_t above_since_ns; /* ADMIT_NEVER: below the target */
    uint64_t next_ns;
    uint32_t count;
    uint32_t last_count;
    bool dropping;
};

struct admit_pie {
    uint64_t update_ns;
    uint64_t delay_old_ns;
    uint64_t burst_ns; /* what is left of the burst allowance */
    uint64_t refuse_q32;
    uint64_t random;
};

#define ADMIT_LEVELS 101

struct admit_literal {
    uint64_t began_ns;
    uint64_t interval_ns;
    uint64_t offered_cost;
    uint64_t done_cost;
    uint64_t mark_ns;      /* algorithm 2: when the last queued item was marked */
    uint64_t mark_pending; /* what must complete until it has left; 0: no mark */
    uint64_t mark_done;
    uint64_t rate_q40; /* C, cost per ns */
    uint64_t used_q32; /* U of the interval before */
    uint64_t refuse_q32;
    uint64_t credit_q32;
    uint64_t level_interval_ns[ADMIT_LEVELS]; /* algorithm 3; 0: not seen */
    uint64_t level_rate_q40[ADMIT_LEVELS];
};

/* What happened since the interval began, and what the ones before told; kept for every policy. */
struct admit_interval {
    uint64_t began_ns;
    uint64_t last_ns; /* length of the one before */
    uint64_t offered_cost;
    unsigned __int128 offered_squares;
    uint64_t done_cost;
    unsigned __int128 done_squares;
    uint64_t queue_at_start;
    bool backlogged;     /* the queue was never empty */
    bool fell;           /* C did at the last end, by more than its noise */
    uint64_t rate_q40;   /* C, cost per ns; 0: unknown */
    uint64_t grain;      /* a request's worth: sum of squared costs over sum of costs */
    uint64_t grain_cost; /* the two sums, those of the last 16 intervals mostly */
    unsigned __int128 grain_squares;
};

struct admit_duk {
    uint64_t allowed_q8; /* k* */
    uint64_t free;       /* with so much waiting all join: k*, or less than a request's worth */
    uint64_t most;       /* L; ADMIT_NEVER: none */
    uint64_t refuse_q32; /* p */
    uint64_t credit_q32; /* spaces what is put out evenly */
    uint64_t surplus_q8; /* S */
    uint64_t surplus_ns; /* when S was brought up to date */
    uint64_t quiet_ns;   /* when S was 0 last */
};

struct admit {
    struct admit_options options;
    uint64_t now_ns;
    uint64_t queue;       /* cost */
    uint64_t outstanding; /* cost dispatched and not complete */
    uint64_t offered;
    uint64_t admitted;
    uint64_t refused;
    struct admit_interval interval;
    union {
        struct admit_codel codel;
        struct admit_pie pie;
        struct admit_literal literal;
        struct admit_duk duk;
    } state;
};

/* "duk", "duk-literal"...; by name 0, or -EINVAL. */
const char *admit_policy_name(enum admit_policy policy);
int admit_policy_parse(const char *name, enum admit_policy *out);

/* An empty pool at that time. Options out of range are brought into it. */
void admit_init(struct admit *admit, const struct admit_options *options, uint64_t now_ns);

/*
 * Another policy, limit, target or number of slots, now. The queue stays as it is; what the old
 * policy had learnt is forgotten unless the policy is the same.
 */
void admit_change(struct admit *admit, const struct admit_options *options, uint64_t now_ns);

/* Servers came or went: the rest is kept. */
void admit_set_slots(struct admit *admit, uint64_t slots, uint64_t now_ns);

/* A request has come. True: it joins the queue. False: it does not. Costs are 1 to ADMIT_COST_MAX.
 */
bool admit_offer(struct admit *admit, uint64_t cost, uint64_t now_ns);

/* An admitted request leaves the queue for a server, having waited. False (codel): it is put out
 * instead; it is in no count of the queue any more. */
bool admit_dispatch(struct admit *admit, uint64_t cost, uint64_t waited_ns, uint64_t now_ns);

/* An admitted request leaves the queue for good, with no service. */
void admit_leave(struct admit *admit, uint64_t cost, uint64_t now_ns);

/*
 * The request that was just put out by admit_offer joins all the same: its client is told to slow
 * down instead (a mark), or its flow is within its share. It stays in the count of those put out.
 */
void admit_mark(struct admit *admit, uint64_t cost, uint64_t now_ns);

/*
 * The request that was just put out by admit_offer, of cost `joins`, joins in the place of one in
 * the queue, of cost `leaves`, which is put out instead (fairness between flows is the caller's).
 */
void admit_swap(struct admit *admit, uint64_t joins, uint64_t leaves, uint64_t now_ns);

/* The request that was just put out by admit_dispatch goes to its server all the same, likewise. */
void admit_keep(struct admit *admit, uint64_t cost, uint64_t now_ns);

/* For how long a marked client is to be left alone: the last interval, within 100 us and 1 s. */
uint64_t admit_mark_ns(const struct admit *admit);

/* A dispatched request is back in the queue. */
void admit_requeue(struct admit *admit, uint64_t cost, uint64_t now_ns);

/* A dispatched request has ended. */
void admit_complete(struct admit *admit, uint64_t cost, uint64_t now_ns);

struct admit_view admit_look(const struct admit *admit);

/*
 * When a client that is put out now may come back: what stands in the queue over the rate at which
 * it is served, in ns; 0 when the rate is not known. Whatever the policy.
 */
uint64_t admit_retry_after_ns(const struct admit *admit);

#endif
