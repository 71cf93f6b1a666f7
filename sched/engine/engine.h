/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h: what the engine and the algorithms share. Private to sched/.
 *
 * The engine (engine.c, flows.c) keeps counters, limits, depth, item states and the lives of
 * flows. An algorithm (algorithms/) decides the order, through one table of functions. The engine
 * calls them with the item already in the right state, and s->now_ns the latest time it was told:
 *
 *   admit      may refuse an item before anything of it is known; NULL: never does
 *   elapse     s->now_ns is about to move on by so much; NULL: time means nothing
 *   queue      a QUEUED item joins behind its flow's others
 *   peek       the item that would go next, or NULL when none may go now; called only while
 *              something is queued
 *   take       that item leaves its queue, gets its tags and joins s->out
 *   put_back   an item taken out of s->out by the engine returns to the head of its flow
 *   remove     a QUEUED item leaves its queue
 *   done       an item taken out of s->out by the engine has ended, its true cost is known
 *   changed    the flow's weight or terms are others now; flow == NULL: the options or the unit of
 *              depth; NULL: all that is looked at when needed
 *   wake_ns    when time alone makes something due; NULL: never
 *   leave      the algorithm is given up: bring everything to the neutral form, which is: every
 *              queued item in its flow's queue, every heap but `owing` and `cooling` empty, and
 *              s->arrivals empty
 *   enter      the algorithm takes over from the neutral form
 *
 * Every attached flow has a slot: s->slots[flow->slot] == flow, for slots below s->flows. When a
 * flow is detached the last one takes over its slot.
 *
 * Life of an attached flow (`place`); only flows.c writes it:
 *
 *        sched_flow_attach                     nothing queued or outstanding
 *   ---> CLEAN ------ wake ------> ACTIVE --------------- rest ---------------> RESTING
 *          ^                        ^ ^                                            |
 *          |                        | |                                            | settle
 *          | sched_retire_next      | +-- wake -- COOLING <- time tag after now ---+
 *          |                        | |              | now reaches it              |
 *          |                        | |              v                             |
 *          |                        | +-- wake --- OWING <--- F after horizon -----+
 *          |                        |                | horizon reaches F           |
 *          |                        |                v                             |
 *          +------ RETIRED -- wake -+             (retire) <-----------------------+
 *                     ^                              |
 *                     +------------------------------+   (a pinned flow becomes CLEAN)
 *
 *   CLEAN    its tags mean nothing: its next request starts at v. In no list.
 *   ACTIVE   has queued or outstanding requests.
 *   RESTING  has just become empty; in s->resting. Exists so that completion is O(1).
 *   COOLING  empty, but a time tag (mclock, leaky-bucket) is after now; in s->cooling.
 *   OWING    empty, but its last finish tag is after the horizon; in s->owing, ordered by that tag.
 *   RETIRED  as CLEAN, waiting in s->retired to be named by sched_retire_next.
 *
 * The horizon is v, or under fsfq v': a flow whose last finish tag is not after it may be
 * forgotten.
 */
#ifndef SPILLWAY_SCHED_ENGINE_ENGINE_H
#define SPILLWAY_SCHED_ENGINE_ENGINE_H

#include "sched/engine/heap.h"
#include "sched/engine/queue.h"
#include "sched/engine/vtime.h"
#include "sched/sched.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum flow_place { FLOW_CLEAN, FLOW_ACTIVE, FLOW_RESTING, FLOW_COOLING, FLOW_OWING, FLOW_RETIRED };

/* Which heaps an algorithm works with; ready is always there. */
enum sched_heaps {
    SCHED_HEAPS_PARKED = 1,
    SCHED_HEAPS_RESERVE = 2,
    SCHED_HEAPS_COOLING = 4,
};

struct sched_ops {
    const char *name;
    unsigned heaps;      /* of enum sched_heaps */
    bool serial;         /* one outstanding request, whatever the depth */
    bool second_clock;   /* s->adjusted_vtime is the horizon */
    bool stamps_arrival; /* item->aside of a queued item is a virtual time */
    uint64_t (*head_key)(const struct sched *s, const struct sched_flow *flow); /* of heads.h */
    void (*place)(struct sched *s, struct sched_flow *flow);                    /* of stamped.h */
    void (*elapse)(struct sched *s, uint64_t passed_ns);
    enum sched_verdict (*admit)(struct sched *s, struct sched_flow *flow, uint64_t cost);
    void (*enter)(struct sched *s);
    void (*leave)(struct sched *s);
    void (*queue)(struct sched *s, struct sched_item *item);
    struct sched_item *(*peek)(struct sched *s);
    void (*take)(struct sched *s, struct sched_item *item);
    void (*put_back)(struct sched *s, struct sched_item *item);
    void (*remove)(struct sched *s, struct sched_item *item);
    void (*done)(struct sched *s, struct sched_item *item, uint64_t true_cost);
    void (*changed)(struct sched *s, struct sched_flow *flow);
    uint64_t (*wake_ns)(const struct sched *s);
};

extern const struct sched_ops sched_fifo_ops;
extern const struct sched_ops sched_sfq_ops;
extern const struct sched_ops sched_sfqd_ops;
extern const struct sched_ops sched_minsfqd_ops;
extern const struct sched_ops sched_fsfq_ops;
extern const struct sched_ops sched_rw_ops;
extern const struct sched_ops sched_hybrid_ops;
extern const struct sched_ops sched_virtual_clock_ops;
extern const struct sched_ops sched_wfq_ops;
extern const struct sched_ops sched_edf_ops;
extern const struct sched_ops sched_scf_ops;
extern const struct sched_ops sched_leaky_bucket_ops;
extern const struct sched_ops sched_mclock_ops;
extern const struct sched_ops sched_2dfq_ops;

/* Flows in order of insertion, linked through place_next and place_prev. */
struct flow_list {
    struct sched_flow *head;
    struct sched_flow *tail;
};

/* wfq, 2dfq: what the service gets done, as far as that has been seen. See algorithms/tags/fluid.h.
 */
struct sched_speed {
    uint64_t clock_rest;        /* what the clock leaves out, in 2^-32 of its last place */
    uint64_t slot_ns;           /* time that slots were held */
    uint64_t done_cost;         /* cost completed in it */
    uint64_t backlogged_weight; /* of the flows that have requests queued */
};

/* 2dfq: heads by size, and the numbers of the slots in use. See algorithms/tags/twodfq.c. */
#define SCHED_GROUPS     64
#define SCHED_SLOT_WORDS 64
#define SCHED_SLOT_NONE  UINT64_MAX
struct sched_spread {
    uint64_t progress; /* how far the service has come, in virtual time */
    uint64_t rest;     /* work that progress leaves out, in 2^-20 units of cost */
    uint64_t ahead;    /* what of it is work at requests still outstanding */
    uint64_t occupied; /* a bit per group */
    struct sched_flow *root[SCHED_GROUPS]; /* a pairing heap each */
    uint64_t slots_used[SCHED_SLOT_WORDS]; /* a bit per slot */
};

struct sched {
    const struct sched_ops *ops;
    uint64_t depth;
    uint64_t flow_queue_limit; /* 0: none */
    uint64_t total_queue_limit;
    enum sched_depth_unit depth_unit;
    enum sched_algorithm algorithm;

    uint64_t queued;
    uint64_t queued_cost;
    uint64_t outstanding;
    uint64_t outstanding_cost;
    uint64_t sequence; /* of the next arrival */
    uint64_t now_ns;   /* the latest time passed in */

    uint64_t vtime;          /* v; never goes back */
    uint64_t adjusted_vtime; /* fsfq: v', never after v; never goes back */
    uint64_t max_finish;     /* largest finish tag given since the busy period began */
    uint64_t front;          /* largest start tag dispatched */
    uint64_t rebased;        /* `front` when the tags were last looked over */

    struct heap ready;           /* backlogged flows that may send */
    struct sched_queue arrivals; /* FIFO's one queue */
    struct sched_queue out;      /* outstanding items in order of dispatch, or of start tag */

    struct heap owing;
    struct flow_list resting;
    struct flow_list retired;
    struct sched_flow **slots; /* every attached flow */
    uint64_t flows;
    uint64_t slots_capacity;

    struct heap parked;  /* backlogged flows that may not send now */
    struct heap reserve; /* mclock: backlogged flows by R */
    struct heap cooling;
    struct heap backlogs;   /* while `watching`: see backlogs.h */
    uint64_t share_clock;   /* V */
    uint64_t shares_lifted; /* V when the tags were last looked over */
    bool watching;
    uint64_t active_weight;      /* of the flows that have requests */
    uint64_t idle_pinned_weight; /* of the pinned flows that have none */
    struct sched_options options;
    struct sched_speed speed;
    struct sched_spread spread;
};

static inline uint64_t sched_horizon(const struct sched *s)
{
    return s->ops->second_clock ? s->adjusted_vtime : s->vtime;
}

/* The head of a flow that has one. */
static inline struct sched_item *sched_flow_head(const struct sched_flow *flow)
{
    assert(flow->queue.head != NULL);
    return flow->queue.head;
}

/* What the flow has outstanding, counted as the depth is. */
static inline uint64_t sched_flow_in_use(const struct sched *s, const struct sched_flow *flow)
{
    return s->depth_unit == SCHED_DEPTH_COST ? flow->outstanding_cost : flow->outstanding;
}

/*
 * With many flows each dispatch meets memory that has not been touched for long: the flow, then its
 * head, then the request behind that. The flows that may be next are known before: the top of
 * `ready` and its four children. So their memory is asked for one or two calls ahead: the
 * children's flows and the top's head at a dispatch, the request behind that head at a completion.
 */
#define SCHED_FETCH_FROM 1024U

static inline void sched_fetch_flows(const struct sched *s)
{
    if (s->ready.count < SCHED_FETCH_FROM)
        return;
    for (unsigned i = 1; i <= 4; i++) {
        const struct sched_flow *flow = s->ready.entries[i].flow;
        __builtin_prefetch(flow, 1);
        __builtin_prefetch(&flow->outstanding_cost, 1);
    }
    const struct sched_item *head = s->ready.entries[0].flow->queue.head;
    __builtin_prefetch(head, 1);
    __builtin_prefetch(&head->state, 1);
    __builtin_prefetch(&s->ready.entries[0].flow->queue.tail->next, 1);
}

static inline void sched_fetch_second(const struct sched *s)
{
    if (s->ready.count < SCHED_FETCH_FROM)
        return;
    const struct sched_item *head = s->ready.entries[0].flow->queue.head;
    __builtin_prefetch(head->next, 1);
}

/* Makes room in every heap that `ops` needs for `count` flows. 0 or -ENOMEM. */
int sched_flows_reserve(struct sched *s, const struct sched_ops *ops, uint64_t count);

/* The flow is about to get a request: make it ACTIVE, with usable tags. */
void sched_flow_wake(struct sched *s, struct sched_flow *flow);

/* The flow has nothing queued or outstanding any more: ACTIVE to RESTING. O(1). */
void sched_flow_rest(struct sched *s, struct sched_flow *flow);

/* After v may have moved: passes on a bounded number of resting, cooling and owing flows. */
void sched_flows_settle(struct sched *s);

/* Whether sched_flows_settle has anything to do. */
static inline bool sched_flows_unsettled(const struct sched *s)
{
    return s->resting.head != NULL || s->owing.count > 0 || s->cooling.count > 0 ||
           s->front - s->rebased >= VTIME_LAG;
}

/* Every attached flow forgets its tags and debts: the next start tag of each is v. O(F log F). */
void sched_flows_forget(struct sched *s);

/*
 * For an algorithm that has just been chosen: v', every adjusted tag and every queued item's v on
 * arrival are as if there had been no second clock and all had arrived now, time tags are
 * forgotten, and what is outstanding holds no numbered slot. O(N + F log F).
 */
void sched_flows_start_over(struct sched *s);

#endif
