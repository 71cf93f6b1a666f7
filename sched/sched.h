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
 *   - Memory is asked for only in sched_create, sched_flow_attach and sched_set_algorithm.
 *   - Dispatch order is total and repeatable: by tag, then by arrival sequence.
 *
 * Cost of a call, F = backlogged flows: enqueue to a backlogged flow O(1), to an idle one
 * O(log F), never a scan; dispatch O(log F); complete O(1), but O(log F) under rw, hybrid, mclock
 * and, when the cost is corrected, leaky-bucket; cancel O(1), or O(log F) for the head of a flow.
 * FIFO: all O(1). min-sfqd: dispatch also O(D) at worst. 2dfq: dispatch also O(64), its log F
 * amortised. A change of options or of the depth's unit: O(F log F) where it changes the order.
 * With tags: a pause of O(N + F log F) every 2^40 units of virtual time keeps the tags of N queued
 * requests comparable.
 *
 * docs/scheduling.md explains the algorithms at more length, with examples of when to use which.
 */
#ifndef SPILLWAY_SCHED_SCHED_H
#define SPILLWAY_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Largest rate (cost units per second) and longest time in sched_terms and sched_options. */
#define SCHED_RATE_MAX    ((UINT64_C(1) << 40) - 1)
#define SCHED_TIME_NS_MAX (UINT64_C(1) << 62)

/* Returned by sched_wake_ns: nothing will become due by the passing of time alone. */
#define SCHED_NEVER_NS UINT64_MAX

/* clang-format off */
/* ---- the algorithms -----------------------------------------------------------------------
 *
 * Notation. Request j of flow f arrives at time A_j with cost c_j; w is the flow's weight; D the
 * depth; v(t) the virtual time at t; F_0 of a flow that is new or was forgotten lies so far back
 * that it decides nothing. Requests of one flow are always served in the order they came (FIFO
 * within the flow), under every algorithm; what differs is which flow's head is next. Each order
 * below is total: equal keys go by arrival sequence.
 *
 *     start-time tags:   S_j = max(v(A_j), F_{j-1})     F_j = S_j + c_j / w
 *
 * name           order of heads      what else decides                            outstanding
 * -------------  ------------------  -------------------------------------------  -----------
 * fifo           arrival                                                          D
 * sfq            S                   v = S of the request dispatched last         1
 * sfqd           S                   v = S of the request dispatched last         D
 * min-sfqd       S                   v = smallest S outstanding                   D
 * fsfq           S, then S'          v as in sfqd, and a second clock, see below  D
 * rw             S                   v as in sfqd; a window n_f per flow          D, n_f
 * hybrid         S                   v as in sfqd; a window n_f + slack           D, n_f + slack
 * virtual-clock  S                   v stands still within a busy period          D
 * wfq            F                   v runs with time, see below                  D
 * edf            A_j + target                                                     D
 * scf            A_j + c_j * ageing                                               D
 * leaky-bucket   when it conforms    only flows whose bucket has room             D
 * mclock         R, then P           reservation first, then weight within limit  D
 * 2dfq           see below           v = smallest S among the heads, and progress D
 *
 * Busy period: from the first request to the moment nothing is queued and nothing outstanding. At
 * its end v becomes the largest finish tag given (under fsfq both clocks do), which makes every
 * flow equal again. v never goes back.
 *
 * Sources: fifo to hybrid: Jin, Chase, Kaur, "Interposed Proportional Sharing for a Storage Service
 * Utility", SIGMETRICS 2004 (SFQ: Goyal, Vin, Cheng 1997; Virtual Clock: Zhang 1990; WFQ: Demers,
 * Keshav, Shenker 1989; EDF as in Facade, Lumb et al. 2003; leaky bucket as in SLEDS, Chambliss et
 * al. 2003). mclock: Gulati, Merchant, Varman, OSDI 2010. 2dfq: Mace et al., SIGCOMM 2016.
 *
 * virtual-clock. As the 2004 paper's table has it: what a flow did counts until the busy period ends.
 *   Zhang's own takes the later of F_{j-1} and real time, for weights that are rates.
 *
 * wfq. C is the service's speed in cost units per second: options.capacity_per_s, with the sum over
 *   the flows that have requests queued or outstanding. Where it is 0 (not known) C is estimated as
 *   outstanding / (mean time a unit of cost holds a slot), with the sum over the flows that have
 *   requests queued (those with any, when none are queued); v stands until the first completion.
 *
 * fsfq. v' is the smallest S among the outstanding requests (v when there are none); S', F' are the
 *   adjusted tags. On arrival:
 *       S'_j = max(v'(A_j), F_{j-1})  if F_{j-1} < v(A_j),   else  max(v'(A_j), F'_{j-1})
 *       S_j  = max(v(A_j), S'_j)      F_j = S_j + c_j / w    F'_j = S'_j + c_j / w
 *   Heads go by S, then S', then sequence. A flow that wakes up gets several requests at the same
 *   S = v, with a credit of at most v - v'.
 *
 * rw, hybrid. n_f = D * w / (sum of the weights of all flows that are pinned or active). A flow may
 *   issue iff what it has outstanding < n_f (+ slack), counted as the depth is; n_f is never
 *   rounded. So a share of D is kept free for a declared flow that sends nothing: neither is
 *   work-conserving, rw least, hybrid with slack >= D is sfqd.
 *
 * 2dfq. The D slots are numbered 0 to D-1; a request takes the lowest free one (where the depth
 *   counts cost: i / D is outstanding cost / depth). v is the smallest S among the heads when a
 *   request is dispatched; progress is the work done / the weights of the flows with requests, and
 *   not before v. For slot i the head with the smallest F goes among those with
 *   S - (i / D) * c / w <= progress. So high slots take requests before their time, by up to their
 *   own length, and stay busy with small ones; large ones get the low slots one after another instead
 *   of all slots at once. Heads are grouped by size (powers of two of c / w), and only the one with
 *   the smallest S of each group is looked at. Work-conserving: the smallest S of all may always go.
 *
 * scf. Smallest cost first, with ageing: options.ageing_ns is the wait that makes up for one unit of
 *   cost, so the head of a flow is never passed by a request that came c * ageing_ns after it.
 *
 * leaky-bucket. T_f is when the flow's next request conforms: a dispatch at time t sets
 *   T_f := max(T_f, t) + c / limit. A head conforms from T_f - burst / limit on; not
 *   work-conserving. Without a limit a flow always conforms (T_f = its arrival).
 *
 * mclock. Tags in time: R_j = max(A_j, R_{j-1} + c_{j-1} / reservation), L likewise by the limit
 *   (with the burst as in leaky-bucket). If the smallest R <= now, that head goes. Else, among the
 *   heads whose L allows it now, the one with the smallest start tag P = S as in sfqd goes, and its
 *   R is not charged, so that reservations are not paid for by shares. A flow without a reservation
 *   has no R. With options.refuse_at_limit the limit is policed when a request arrives
 *   (SCHED_AT_LIMIT) instead of making it wait.
 */
/* clang-format on */

/* The long names keep clear of SCHED_FIFO, a macro of <sched.h> that <pthread.h> brings along. */
enum sched_algorithm {
    SCHED_ALGORITHM_FIFO,
    SCHED_ALGORITHM_SFQ,
    SCHED_ALGORITHM_SFQD,
    SCHED_ALGORITHM_MINSFQD,
    SCHED_ALGORITHM_FSFQ,
    SCHED_ALGORITHM_RW,
    SCHED_ALGORITHM_HYBRID,
    SCHED_ALGORITHM_VIRTUAL_CLOCK,
    SCHED_ALGORITHM_WFQ,
    SCHED_ALGORITHM_EDF,
    SCHED_ALGORITHM_SCF,
    SCHED_ALGORITHM_LEAKY_BUCKET,
    SCHED_ALGORITHM_MCLOCK,
    SCHED_ALGORITHM_2DFQ
};
#define SCHED_ALGORITHMS 14

/* What an algorithm may be told besides depth and weights; all 0 is a valid set. */
struct sched_options {
    uint64_t slack;          /* hybrid: added to every window, in the unit of the depth */
    uint64_t capacity_per_s; /* wfq: C, in cost units per second; 0: estimated */
    uint64_t ageing_ns;      /* scf: wait that makes up for one unit of cost, so choose it for the
                                unit in use; 0: 1 ms */
    bool refuse_at_limit;    /* mclock: refuse on arrival what is over the limit, else hold it */
};

/*
 * What a flow was promised besides its weight. Owned by the caller; one may serve many flows (those
 * made per key from one declaration). A change goes through sched_flow_set_terms.
 */
struct sched_terms {
    uint64_t target_ns; /* edf: deadline = arrival + this; for the order alone */
    uint64_t
        reservation_per_s; /* mclock: cost units per second it gets before all shares; 0: none */
    uint64_t limit_per_s;  /* mclock, leaky-bucket: cost units per second at most; 0: no limit */
    uint64_t burst;        /* and how much of it may come at once beyond one request */
};

/* What `depth` counts. */
enum sched_depth_unit {
    SCHED_DEPTH_REQUESTS, /* outstanding requests <= depth */
    SCHED_DEPTH_COST      /* outstanding cost + cost of the next <= depth, or nothing outstanding */
};

/* Answer of sched_enqueue. The flow's own limit is tested before the shared one. */
enum sched_verdict {
    SCHED_OK = 0,
    SCHED_FLOW_FULL = -1,  /* this flow already has its limit of queued requests */
    SCHED_TOTAL_FULL = -2, /* all flows together have the scheduler's limit */
    SCHED_AT_LIMIT = -3 /* mclock with refuse_at_limit: the flow's rate limit does not allow it */
};

enum sched_item_state { SCHED_ITEM_IDLE, SCHED_ITEM_QUEUED, SCHED_ITEM_OUTSTANDING };

/* sched_item.charged: which time tags of its flow a request was charged to. */
#define SCHED_CHARGED_RESERVATION 1U /* mclock: it was dispatched for the reservation */
#define SCHED_CHARGED_LIMIT       2U /* mclock, leaky-bucket: when dispatched, or on arrival */

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
    uint64_t start;      /* start tag, valid from dispatch on */
    uint64_t finish;     /* finish tag: start + cost / weight */
    uint64_t aside;      /* queued: v (fsfq: v') on arrival; dispatched: fsfq S', 2dfq the slot */
    uint64_t arrival_ns; /* `now_ns` of its sched_enqueue */
    uint8_t state;       /* enum sched_item_state */
    uint8_t charged;     /* of SCHED_CHARGED_... */
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
    /* Private to sched/, first because each dispatch needs them. */
    struct sched_queue queue; /* what waits, oldest first (empty under FIFO, which has one queue) */
    uint64_t tag;             /* backlogged: start tag of the head; else: last finish tag */
    uint64_t tag_rest;        /* what `tag` leaves out, in 2^-43 of its last place */
    uint64_t reciprocal;      /* 2^63 / weight */
    int64_t owed;             /* corrections not yet part of a tag */
    uint32_t heap_place;      /* in the one heap that it is in, see sched/engine/heap.h */
    uint32_t backlog_place;   /* likewise, in that of backlogs */
    uint8_t place;            /* where the flow stands, see sched/engine/engine.h */
    bool pinned;

    uint32_t weight;
    uint32_t slot;             /* private: its number in the scheduler */
    uint64_t queued;           /* requests waiting */
    uint64_t queued_cost;      /* and their cost */
    uint64_t outstanding;      /* requests at the service */
    uint64_t outstanding_cost; /* and their cost as charged at enqueue */

    /* Private to sched/ again. */
    struct sched *sched;             /* attached to; NULL when not */
    const struct sched_terms *terms; /* NULL: none */
    uint32_t queue_limit; /* own limit of queued requests; 0: the scheduler's flow_queue_limit */
    union {
        uint32_t group;         /* 2dfq: size of the head */
        uint32_t reserve_place; /* mclock: as heap_place, among the reservations */
    };
    struct sched_flow *place_next; /* resting or retired list; 2dfq: brothers in the group's heap */
    struct sched_flow *place_prev;
    struct sched_flow *child; /* 2dfq: in the group's heap */
    uint64_t adjusted;        /* fsfq: as `tag`, of the adjusted tags */
    uint64_t share_tag;       /* see sched/engine/backlogs.h */
    /* Time tags, ns; see the algorithms that use them. */
    uint64_t reserve_ns;   /* mclock: R of the head, or of the request to come */
    uint64_t limit_ns;     /* mclock: L, leaky-bucket: T, the same */
    uint64_t reserve_rest; /* what they leave out, in 1/rate ns */
    uint64_t limit_rest;
};

struct sched_params {
    enum sched_algorithm algorithm;
    enum sched_depth_unit depth_unit;
    uint64_t depth;             /* 0 holds everything back */
    uint64_t flow_queue_limit;  /* queued requests per flow; 0: none */
    uint64_t total_queue_limit; /* queued requests of all flows; 0: none */
    uint64_t virtual_start; /* where virtual time begins; any value is as good as 0 (for tests) */
    struct sched_options options;
};

/* ---- the scheduler ------------------------------------------------------------------------ */

/*
 * A scheduler without flows. NULL and errno = EINVAL for an unknown algorithm or unit or an option
 * out of range, ENOMEM when out of memory. The caller owns it.
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

/* Changes the options while running. 0, or -EINVAL when one is out of range. */
int sched_set_options(struct sched *s, const struct sched_options *options);

/*
 * Changes the algorithm while running. Every queued request stays queued, in its place within its
 * flow; outstanding ones stay outstanding. Between the
 * algorithms that work with start tags all tags are kept; going through another one (fifo, edf,
 * scf, leaky-bucket) every flow starts again without debts. O((N + F) log F) for N queued requests
 * of F attached flows. 0, -EINVAL for an unknown algorithm, or -ENOMEM (the old
 * one stays).
 */
int sched_set_algorithm(struct sched *s, enum sched_algorithm algorithm);

/* The name in the table above. NULL for a number that is not an algorithm. */
const char *sched_algorithm_name(enum sched_algorithm algorithm);

/* The algorithm of that name (exact, lower case), or -EINVAL, also for NULL. */
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
 * Changes a weight while running: for every request not dispatched yet, also those queued. O(1), or
 * O(log F) under wfq, rw, hybrid, mclock and 2dfq.
 * 0, or -EINVAL when out of range (the old weight stays).
 */
int sched_flow_set_weight(struct sched *s, struct sched_flow *flow, uint32_t weight);

/*
 * What the flow was promised; NULL: nothing (no limit, no reservation, deadline = arrival). The
 * terms must stay in place while the flow is attached. To be called again whenever their contents
 * change, before any other call. Reservation and limit begin anew then, so that what was charged at
 * a limit that was too low holds nobody back at the next. The flow need not be attached. 0, or
 * -EINVAL when a value is out of range (the old terms stay).
 */
int sched_flow_set_terms(struct sched_flow *flow, const struct sched_terms *terms);

/*
 * True when the flow may be forgotten without any effect on what follows: attached, nothing queued
 * or outstanding, its last finish tag not after the virtual time (fsfq: v'), and its reservation
 * and rate limit as if it had never sent anything.
 */
bool sched_flow_idle(const struct sched *s, const struct sched_flow *flow);

/*
 * The next flow that has served requests and for which sched_flow_idle() has become true, or NULL.
 * It is still attached: detach and free it, or keep it (it will be named again after it has been
 * active again). Pinned flows are not named. O(log F) amortised over completions, so the caller
 * may take one or two per event; flows wait for it without cost.
 */
struct sched_flow *sched_retire_next(struct sched *s);

/*
 * Every attached flow, in no particular order: pass NULL for the first; NULL after the last. The
 * one just named may be detached once the next is known.
 */
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
 * When time alone makes a request due: sched_dispatch, having returned NULL at some time, would
 * return one at this (ns, of the same clock) if nothing else happened until then. SCHED_NEVER_NS
 * under the algorithms that are work-conserving, and whenever a completion must come first. With a
 * depth in cost, what becomes due may turn out not to fit; then dispatch returns NULL again. O(1).
 */
uint64_t sched_wake_ns(const struct sched *s);

/*
 * Takes back an OUTSTANDING item that could not be sent: it becomes QUEUED at the head of its flow,
 * its charge undone, and requests behind it keep their tags. Queue limits do not apply. To put
 * several back in order, hand them in latest first. The virtual time does not go back. Of what is
 * taken back at a time, no more than 2^40 of cost / weight keeps its turn.
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

/*
 * Backlogs. Who may have to put a request out of the queue (an admission policy, a full queue)
 * takes it from the flow that exceeds its share the most: the one whose newest request fair service
 * by weight would come to last, whatever the algorithm (sched/engine/backlogs.h). Without costs and
 * histories that is the flow with the largest queue / weight. From sched_watch_backlogs(s, true) on
 * the scheduler keeps its backlogged flows in that order; until then it costs nothing. 0, or
 * -ENOMEM (nothing has changed). O(F log F) for F attached flows, later O(log F) an event.
 */
int sched_watch_backlogs(struct sched *s, bool on);

/*
 * Whom to put out so that a request of `cost` can join `flow` (0: so that the newest that is in it
 * can stay): the newest queued request of the flow that exceeds its share the most, as above, if
 * `flow` would not exceed its own as much; NULL if it would, when that flow is `flow` itself, or
 * when backlogs are not watched. Nothing changes: the caller cancels it. `flow` is attached. O(1),
 * but for fifo, whose one queue is searched from its end, 64 requests far at most (NULL if the flow
 * has none there).
 */
struct sched_item *sched_victim(const struct sched *s, const struct sched_flow *flow,
                                uint64_t cost);

/*
 * Whether the flow is within its share of `slots`, which are counted as the depth is: what it has
 * queued and outstanding is, (queued + outstanding) / slots <= weight / weights of the flows with
 * requests; or it has taken clearly less than its share of late (it has half of its credit left,
 * see backlogs.h) beside others, while no more than `slots`, or 32 requests, are queued. So what is
 * let in for its sake is bounded. A share below one request is no share. O(1).
 */
bool sched_within_share(const struct sched *s, const struct sched_flow *flow, uint64_t slots);

/* ---- inspection, O(1) --------------------------------------------------------------------- */

enum sched_algorithm sched_algorithm_of(const struct sched *s);
uint64_t sched_depth(const struct sched *s);
uint64_t sched_queued(const struct sched *s);           /* requests waiting */
uint64_t sched_queued_cost(const struct sched *s);      /* and their cost */
uint64_t sched_outstanding(const struct sched *s);      /* requests at the service */
uint64_t sched_outstanding_cost(const struct sched *s); /* and their cost as charged */
uint64_t sched_flows(const struct sched *s);            /* attached flows */
uint64_t sched_virtual_time(const struct sched *s);     /* in 2^-20 cost units at weight 1; wraps */

#ifdef __cplusplus
}
#endif

#endif
