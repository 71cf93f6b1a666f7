/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange: one request and its reply. The one object a request is, from its first parsed byte
 * to its last answered one; protocols embed it in theirs (http_exchange, nfs_exchange).
 *
 *      READING ──gate_submit──> SUBMITTED ──> QUEUED ──> DISPATCHED ──gate_finish──> FINISHED ──>
 * released │            │            │ └── refused ─┴─ cancelled ┘ (READING again: the owner
 * answers and frees it)
 *
 *   READING     the owner's alone
 *   SUBMITTED   on its loop's list; the gate looks at it when the loop settles
 *   QUEUED      in the scheduler, under the gate's lock; any thread may dispatch it
 *   DISPATCHED  holds a slot of `server`; the owner's again once `ops->dispatched` was called
 *   FINISHED    on its loop's list; the slot is freed when the loop settles, then `ops->released`
 * is called
 *
 * An exchange never leaves its loop: every callback comes on the thread of `loop`. Its memory must
 * stay until `released`, or until the owner has it back in READING.
 */
#ifndef SPILLWAY_CORE_POOL_EXCHANGE_H
#define SPILLWAY_CORE_POOL_EXCHANGE_H

#include "proxy/io/loop.h"
#include "sched/sched.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define EXCHANGE_KEY_BYTES                                                                         \
    64 /* of a flow's key (header value, address, uid); longer ones are cut */

struct exchange;
struct flow;
struct flow_class;
struct lane;
struct plan_pool;
struct server;

enum exchange_state {
    EXCHANGE_READING,
    EXCHANGE_SUBMITTED,
    EXCHANGE_QUEUED,
    EXCHANGE_DISPATCHED,
    EXCHANGE_FINISHED,
};

enum refusal {
    REFUSAL_FLOW_FULL, /* the flow's queue limit */
    REFUSAL_POOL_FULL, /* the pool's queue limit */
    REFUSAL_TIMEOUT,   /* waited too long */
    REFUSAL_NO_SERVER, /* no server of the pool is in service */
    REFUSAL_AT_LIMIT,  /* the flow's rate limit, where it refuses rather than lets wait */
    REFUSAL_ADMISSION, /* the admission policy: it would only have made the queue longer */
};

/* How it ended at the server; for the meters. */
enum outcome {
    OUTCOME_ANSWERED, /* a whole reply came */
    OUTCOME_FAILED,   /* the server's fault: connect, reset, nonsense, time-out */
    OUTCOME_ABORTED,  /* the client went away in the middle */
};

/* On the way to `marked`. */
enum exchange_mark {
    EXCHANGE_UNMARKED,
    EXCHANGE_TO_MARK, /* its own thread has not heard of it yet */
    EXCHANGE_MARKED,
};

struct exchange_ops {
    /* Its turn has come and it holds a slot of exchange->server: send it. */
    void (*dispatched)(struct exchange *exchange);
    /* It will not be served; the exchange is the owner's again. exchange->retry_after_ns is when
     * the client may try again, as far as the gate knows. */
    void (*refused)(struct exchange *exchange, enum refusal refusal);
    /* It waits for its turn (or has just got it: `dispatched` follows at once), but its client is
     * to be slowed: not to be read from for exchange->mark_ns from now on. At most once for an
     * exchange, before `dispatched`. NULL: such owners can't. */
    void (*marked)(struct exchange *exchange);
    /* The gate is done with it: free it. */
    void (*released)(struct exchange *exchange);
};

struct exchange {
    struct sched_item item;
    struct loop_message message;        /* hand-over of a dispatch to its loop */
    STAILQ_ENTRY(exchange) submit_link; /* the gate's submitted list */
    STAILQ_ENTRY(exchange) link;        /* the gate's other lists */
    const struct exchange_ops *ops;
    struct loop *loop;
    const struct plan_pool *pool; /* its plan is held from gate_submit's caller on: see plan.h */
    struct lane *lane;
    struct flow_class *class; /* the declared flow it belongs to */
    struct flow *flow;        /* the instance, from QUEUED on */
    struct server *server;    /* from DISPATCHED on */
    struct timer queue_timer;

    uint8_t state;     /* enum exchange_state; QUEUED <-> others only under the gate's lock */
    uint8_t outcome;   /* enum outcome, set by gate_finish */
    uint8_t refusal;   /* enum refusal, on the way to `refused` */
    uint8_t mark;      /* enum exchange_mark */
    bool abandoned;    /* nobody waits for it any more, but it is on its way to `dispatched` */
    bool insists;      /* its protocol has no word for "later": admission may slow its client, not
                          refuse it */
    bool owner_counts; /* refusals are counted by gate_count_refusal(): the owner may try again
                          instead */
    uint8_t key_length;
    uint8_t key[EXCHANGE_KEY_BYTES];

    uint64_t cost;          /* as charged */
    uint64_t true_cost;     /* set by gate_finish */
    uint32_t cost_base;     /* with cost_per_size: its operation's rate, where costs go by table */
    uint32_t cost_per_size; /* all four are cost.c's own */
    uint32_t said_cost;     /* in the reply's header; 0: nothing */
    uint8_t operation;      /* whose running mean it belongs to */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t arrived_ns;
    uint64_t queued_ns;
    uint64_t dispatched_ns;
    uint64_t finished_ns;
    uint64_t retry_after_ns; /* of a refused one: see `refused`; 0: not known */
    uint64_t mark_ns;        /* of a marked one: how long its client is to be left alone */
};

STAILQ_HEAD(exchange_list, exchange);

/*
 * How long it waited, and was at the server so far, for a log at now_ns. Loops read their clocks at
 * different moments, so a time of the gate's may lie a little after the loop's own: then 0.
 */
static inline uint64_t exchange_wait_ns(const struct exchange *exchange, uint64_t now_ns)
{
    uint64_t end_ns = exchange->dispatched_ns != 0 ? exchange->dispatched_ns : now_ns;

    return exchange->queued_ns != 0 && end_ns > exchange->queued_ns ? end_ns - exchange->queued_ns
                                                                    : 0;
}

static inline uint64_t exchange_service_ns(const struct exchange *exchange, uint64_t now_ns)
{
    return exchange->dispatched_ns != 0 && now_ns > exchange->dispatched_ns
               ? now_ns - exchange->dispatched_ns
               : 0;
}

/* Readies the core part; the rest is set by classify (plan.h) and the owner. */
void exchange_init(struct exchange *exchange, struct loop *loop, const struct exchange_ops *ops,
                   uint64_t arrived_ns);

#endif
