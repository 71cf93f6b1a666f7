/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h: decides which request goes to the service next.
 *
 * A scheduler (struct sched) stands in front of one service. Requests (struct sched_item) belong
 * to flows (struct sched_flow); each flow has a weight and its own first-in-first-out queue. The
 * scheduler lets at most `depth` requests (or units of cost) be outstanding at the service and,
 * whenever there is room, names the request to send. Under a fair algorithm every flow that keeps
 * a queue gets work done in proportion to its weight; a flow that sends nothing loses nothing to
 * others and earns nothing for later.
 *
 *        sched_enqueue            sched_dispatch             sched_complete
 *   IDLE -------------> QUEUED ----------------> OUTSTANDING ---------------> IDLE
 *                         |  ^                        |
 *           sched_cancel  |  +------------------------+
 *   IDLE <----------------+     sched_requeue_front
 *
 * Use, by an event loop:
 *
 *     verdict = sched_enqueue(s, &client->flow, &exchange->item, cost, now_ns);
 *     if (verdict != SCHED_OK)
 *         refuse(exchange);
 *     ...after any enqueue, complete, cancel or change of depth:
 *     while ((item = sched_dispatch(s, now_ns)) != NULL)
 *         send(container_of(item, struct exchange, item));
 *     while ((flow = sched_retire_next(s)) != NULL)    (only where flows are made per key)
 *         sched_flow_detach(s, flow), free it;
 *
 * Rules for the caller
 *   - Memory: items and flows are the caller's, embedded in its own objects. The scheduler links
 *     them and never allocates or frees them. An item must stay where it is while QUEUED or
 *     OUTSTANDING, a flow while attached.
 *   - No locks, clock or I/O in here: calls on one scheduler are to be serialised by the caller,
 *     and time is passed in (`now_ns`, monotonic nanoseconds, never going back).
 *   - Allocation happens only in sched_create and sched_flow_attach.
 *   - Dispatch order is total and repeatable: by tag, then by arrival sequence.
 *
 * Cost of a call, F = backlogged flows: enqueue to a backlogged flow O(1), to an idle one
 * O(log F), never a scan; dispatch O(log F); complete O(1); cancel O(1), or O(log F) for the head
 * of a flow. FIFO: all O(1). Min-SFQ(D): dispatch also O(D) at worst. Every tag algorithm: a
 * pause of O(F) every 2^40 units of virtual time keeps the tags comparable.
 *
 * The algorithms, equations and sources are described in docs/scheduling.md.
 */
#ifndef SPILLWAY_SCHED_SCHED_H
#define SPILLWAY_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct sched;
struct sched_flow;

/* Weights are whole numbers in this range. Only their ratios matter. */
#define SCHED_WEIGHT_MIN 1U
#define SCHED_WEIGHT_MAX 1000000U

/*
 * Largest cost of one request, in whatever unit the caller counts (requests, bytes, microseconds):
 * 2^40 - 1, i.e. 1 TiB when counting bytes. A larger cost counts as this much.
 */
#define SCHED_COST_MAX ((UINT64_C(1) << 40) - 1)

/* The long names keep clear of SCHED_FIFO, a macro of <sched.h> that <pthread.h> brings along. */
enum sched_algorithm {
    SCHED_ALGORITHM_FIFO,   /* arrival order over all flows; weights are ignored */
    SCHED_ALGORITHM_SFQ,    /* start-time fair queueing: SFQ(D) with D = 1, whatever the depth */
    SCHED_ALGORITHM_SFQD,   /* SFQ(D): v = start tag of the request dispatched last */
    SCHED_ALGORITHM_MINSFQD /* Min-SFQ(D): v = smallest outstanding start tag; known unfair */
};
#define SCHED_ALGORITHMS 4

/* What `depth` counts. */
enum sched_depth_unit {
    SCHED_DEPTH_REQUESTS, /* outstanding requests <= depth */
    SCHED_DEPTH_COST      /* outstanding cost + cost of the next <= depth, or nothing outstanding */
};

/* Answer of sched_enqueue. The flow's own limit is tested before the shared one. */
enum sched_verdict {
    SCHED_OK = 0,
    SCHED_FLOW_FULL = -1, /* this flow already has its limit of queued requests */
    SCHED_TOTAL_FULL = -2 /* all flows together have the scheduler's limit */
};

enum sched_item_state { SCHED_ITEM_IDLE, SCHED_ITEM_QUEUED, SCHED_ITEM_OUTSTANDING };

/*
 * One request, embedded in the caller's object. Every field is written by the scheduler only;
 * callers may read `flow`, `cost`, `state`, `arrival_ns` and, once dispatched, the tags.
 */
struct sched_item {
    struct sched_flow *flow;
    struct sched_item *next; /* in the flow's queue, FIFO's queue, or the outstanding list */
    struct sched_item *prev;
    uint64_t cost;       /* as charged at enqueue, at most SCHED_COST_MAX */
    uint64_t sequence;   /* arrival number, unique in the scheduler */
    uint64_t arrival_ns; /* `now_ns` of its sched_enqueue */
    uint64_t start;      /* start tag, valid from dispatch on */
    uint64_t finish;     /* finish tag: start + cost / weight */
    uint8_t state;       /* enum sched_item_state */
};

/* Items in order, linked both ways. */
struct sched_queue {
    struct sched_item *head;
    struct sched_item *tail;
};

/*
 * One flow. Read-only for the caller except through the functions below. The counters hold at any
 * moment between calls.
 */
struct sched_flow {
    uint64_t queued;           /* requests waiting */
    uint64_t queued_cost;      /* and their cost */
    uint64_t outstanding;      /* requests at the service */
    uint64_t outstanding_cost; /* and their cost as charged at enqueue */
    uint32_t weight;
    uint32_t queue_limit; /* own limit of queued requests; 0: the scheduler's flow_queue_limit */

    /* Private to sched/. */
    struct sched *sched;      /* attached to; NULL when not */
    struct sched_queue queue; /* what waits, oldest first (empty under FIFO, which has one queue) */
    uint64_t reciprocal;      /* 2^63 / weight */
    uint64_t tag;             /* backlogged: start tag of the head; else: last finish tag */
    uint64_t tag_rest;        /* what `tag` leaves out, in 2^-43 of its last place */
    int64_t owed;             /* corrections not yet part of a tag */
    uint32_t heap_index;
    uint8_t place; /* where the flow stands, see sched/engine/engine.h */
    bool pinned;
    struct sched_flow *place_next; /* resting or retired list */
    struct sched_flow *place_prev;
    struct sched_flow *all_next; /* every attached flow */
    struct sched_flow *all_prev;
};

struct sched_params {
    enum sched_algorithm algorithm;
    enum sched_depth_unit depth_unit;
    uint64_t depth;             /* 0 holds everything back */
    uint64_t flow_queue_limit;  /* queued requests per flow; 0: none */
    uint64_t total_queue_limit; /* queued requests of all flows; 0: none */
    uint64_t virtual_start; /* where virtual time begins; any value is as good as 0 (for tests) */
};

/* ---- the scheduler ------------------------------------------------------------------------ */

/*
 * A scheduler without flows. NULL and errno = EINVAL for an unknown algorithm or unit, ENOMEM when
 * out of memory. The caller owns it.
 */
struct sched *sched_create(const struct sched_params *params);

/*
 * Frees the scheduler; NULL is accepted. Flows still attached become detached; items still queued
 * or outstanding are forgotten (their memory is the caller's; init them before another use).
 */
void sched_destroy(struct sched *s);

/*
 * Changes the depth while running. Lowering it below what is outstanding stops dispatch until
 * enough has completed; nothing is recalled. 0 holds everything back. Always returns 0.
 */
int sched_set_depth(struct sched *s, uint64_t depth);

/* Changes what the depth counts. 0, or -EINVAL for an unknown unit. */
int sched_set_depth_unit(struct sched *s, enum sched_depth_unit unit);

/*
 * Changes the queue limits (0: none). Requests already queued beyond a new limit stay. Always
 * returns 0.
 */
int sched_set_limits(struct sched *s, uint64_t flow_queue_limit, uint64_t total_queue_limit);

/*
 * Own limit of one flow, in queued requests; 0: the scheduler's. The flow need not be attached.
 */
void sched_flow_set_limit(struct sched_flow *flow, uint32_t queue_limit);

/*
 * Changes the algorithm while running. Every queued request stays queued, in its place within its
 * flow; outstanding ones stay outstanding. Between the tag algorithms all tags are kept; going
 * through FIFO every flow starts again without debts. O((N + F) log F) for N queued requests of F
 * attached flows. 0, or -EINVAL for an unknown algorithm.
 */
int sched_set_algorithm(struct sched *s, enum sched_algorithm algorithm);

/* "fifo", "sfq", "sfqd", "min-sfqd". NULL for a number that is not an algorithm. */
const char *sched_algorithm_name(enum sched_algorithm algorithm);

/* The algorithm of that name (exact, lower case), or -EINVAL. */
int sched_algorithm_from_name(const char *name);

/* ---- flows -------------------------------------------------------------------------------- */

/*
 * Makes a flow ready to be attached. 0, or -EINVAL when the weight is out of range. Nothing to
 * undo: a detached flow may be freed or initialised again.
 */
int sched_flow_init(struct sched_flow *flow, uint32_t weight);

/*
 * Marks a flow as one that is never to be retired (a declared flow, not one made per key):
 * sched_retire_next will not report it. Call it before sched_flow_attach.
 */
void sched_flow_pin(struct sched_flow *flow);

/*
 * Joins a flow to a scheduler; its first request starts at the current virtual time. Makes room in
 * the heaps, so that no later call allocates. 0, -EBUSY when the flow is attached already, -ENOMEM.
 */
int sched_flow_attach(struct sched *s, struct sched_flow *flow);

/*
 * Takes a flow out. 0, or -EBUSY while it has queued or outstanding requests. A flow taken out
 * while sched_flow_idle() is false loses the record of what it is ahead of its share.
 */
int sched_flow_detach(struct sched *s, struct sched_flow *flow);

/*
 * Changes a weight while running: for every request not dispatched yet, also those queued. O(1).
 * 0, or -EINVAL when out of range (the old weight stays).
 */
int sched_flow_set_weight(struct sched *s, struct sched_flow *flow, uint32_t weight);

/*
 * True when the flow may be forgotten without any effect on what follows: attached, nothing queued
 * or outstanding, and its last finish tag is not after the virtual time.
 */
bool sched_flow_idle(const struct sched *s, const struct sched_flow *flow);

/*
 * The next flow that has served requests and for which sched_flow_idle() has become true, or NULL.
 * It is still attached: detach and free it, or keep it (it will be named again after it has been
 * active again). Pinned flows are not named. O(log F) amortised over completions, so the caller
 * may take one or two per event; flows wait for it without cost.
 */
struct sched_flow *sched_retire_next(struct sched *s);

/* Every attached flow, in no particular order: pass NULL for the first; NULL after the last. */
struct sched_flow *sched_flow_next(const struct sched *s, const struct sched_flow *after);

/* ---- requests ----------------------------------------------------------------------------- */

/* Makes an item ready for use. */
void sched_item_init(struct sched_item *item);

/*
 * Queues an IDLE item at the tail of an attached flow. `cost` is the best knowledge of the work in
 * it, at least 1 (0 counts as 1); the true cost may be given at completion. On SCHED_OK the item is
 * QUEUED; otherwise nothing has changed.
 */
enum sched_verdict sched_enqueue(struct sched *s, struct sched_flow *flow, struct sched_item *item,
                                 uint64_t cost, uint64_t now_ns);

/*
 * The request to send now, which becomes OUTSTANDING; NULL when nothing is queued or the depth is
 * reached. With a depth in units of cost, a request that does not fit waits and so do those behind
 * it in the order, but one is always sent when nothing is outstanding. Call it until NULL.
 */
struct sched_item *sched_dispatch(struct sched *s, uint64_t now_ns);

/*
 * Takes back an OUTSTANDING item that could not be sent: it becomes QUEUED at the head of its flow,
 * its charge undone, and requests behind it keep their tags. Queue limits do not apply. To put
 * several back in order, hand them in latest first. The virtual time does not go back.
 */
void sched_requeue_front(struct sched *s, struct sched_item *item);

/*
 * An OUTSTANDING request has ended, well or badly; it becomes IDLE. `true_cost` is the work it
 * turned out to be (pass item->cost when no better is known; 0 is accepted). The difference to the
 * cost charged goes to the flow's next tags at its present weight. A refund larger than the next
 * charges is kept for as long as the flow stays backlogged, then dropped, so that no credit is
 * hoarded. O(1).
 */
void sched_complete(struct sched *s, struct sched_item *item, uint64_t true_cost, uint64_t now_ns);

/*
 * A QUEUED request leaves at once and becomes IDLE (its client went away, its queue timeout came).
 * Charge policy: nothing is charged, wherever in the queue it stood; the flow goes on as if the
 * request had never arrived.
 */
void sched_cancel(struct sched *s, struct sched_item *item, uint64_t now_ns);

/* ---- inspection, O(1) --------------------------------------------------------------------- */

enum sched_algorithm sched_algorithm_of(const struct sched *s);
uint64_t sched_depth(const struct sched *s);
uint64_t sched_queued(const struct sched *s);           /* requests waiting */
uint64_t sched_queued_cost(const struct sched *s);      /* and their cost */
uint64_t sched_outstanding(const struct sched *s);      /* requests at the service */
uint64_t sched_outstanding_cost(const struct sched *s); /* and their cost as charged */
uint64_t sched_flows(const struct sched *s);            /* attached flows */
uint64_t sched_virtual_time(const struct sched *s);     /* in 2^-20 cost units at weight 1; wraps */

#endif
