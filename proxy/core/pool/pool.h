/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool: servers, the flows that share them, and the gate in front.
 *
 *      pool ── lock
 *        ├── classes: the declared flows, with their weights and meters
 *        └── lanes, each a scheduler with its servers and its flows (instances of the classes)
 *
 * HTTP has one lane over all servers: any server may take the next request. An NFS client's
 * connection stays with one server, so each NFS server has a lane of its own and shares hold at
 * each server.
 *
 * Everything in here but names and addresses changes under `lock` alone, and no system call is made
 * under it. Pools, servers and classes live until the process ends: a server or class that a reload
 * takes out is marked `removed` and used again when it comes back. So threads may keep pointers.
 */
#ifndef SPILLWAY_CORE_POOL_POOL_H
#define SPILLWAY_CORE_POOL_POOL_H

#include "proxy/config/config.h"
#include "proxy/control/meters.h"
#include "proxy/core/pool/cost.h"
#include "proxy/core/pool/exchange.h"
#include "proxy/core/pool/pool_feedback.h"
#include "proxy/io/alarm.h"

#include <pthread.h>
#include <uthash.h>

struct pool;

enum server_state {
    SERVER_READY,
    SERVER_DEAD,  /* failed `dead_after` times in a row; tried again at dead_until_ns */
    SERVER_DRAIN, /* by the operator: finishes what it has, gets nothing new */
};

struct server {
    struct pool *pool;
    struct lane *lane;
    TAILQ_ENTRY(server) link; /* in its lane */
    char *name;
    char *address_text;
    struct config_endpoint *endpoints; /* tried in turn */
    size_t endpoint_count;
    uint32_t mount_port; /* as in config_server */
    unsigned index;      /* unique in the process: of the workers' idle lists */
    atomic_uint endpoint_turn;

    enum server_state state;
    bool removed; /* not in the configuration any more */
    uint64_t depth;
    bool depth_is_auto; /* its part of the pool's, and changes with that */
    uint64_t outstanding;
    uint64_t outstanding_cost;
    uint32_t failures; /* in a row */
    uint64_t dead_until_ns;
    struct server_meters meters;
};

/* A declared flow. */
struct flow_class {
    struct pool *pool;
    TAILQ_ENTRY(flow_class) link;
    char *name;
    uint32_t weight;
    struct class_feedback feedback;
    uint32_t queue_limit; /* of each instance; 0: the pool's flow_limit */
    /* What each instance is promised. The scheduler looks at one set while the other one is
     * written: pool_set_class_terms(). */
    struct sched_terms terms[2];
    unsigned terms_in_use;
    bool burst_is_auto; /* the burst follows from the limit */
    bool keyed;         /* its instances are made by key and retired when idle */
    bool reserves;      /* declared and without keys: it is there while it has no requests */
    bool removed;
    uint32_t key_limit;
    struct flow **lane_flows; /* by lane index: the instance without a key; of keyed ones NULL
                                 until needed */
    unsigned lane_flow_count;
    uint32_t instances;           /* keyed ones, over all lanes */
    uint64_t queued, outstanding; /* requests, over all lanes and instances */
    struct flow_meters meters;
    struct cost_history service_times_ns, said_costs; /* any thread, no lock: see cost.h */
};

/* An instance of a class in a lane: what the scheduler knows as a flow. */
struct flow {
    struct sched_flow sched;
    struct flow_class *class;
    UT_hash_handle hash; /* by `id` */
    struct flow_id {
        struct flow_class *class;
        uint8_t length;
        uint8_t key[EXCHANGE_KEY_BYTES];
    } id;
};

struct lane {
    struct pool *pool;
    TAILQ_ENTRY(lane) link;
    unsigned index; /* in the pool */
    struct sched *sched;
    struct admit admit; /* who may join the scheduler's queue; in the unit of the depth */
    TAILQ_HEAD(server_list, server) servers;
    bool unsettled; /* some server is not simply ready: the depth has to be looked at again */
    struct server *cursor; /* round robin: the server chosen last */
    struct flow *flows;    /* uthash, by flow.id */
};

/* A loop's share of a gate: what it has to say when it settles. */
struct gate_side {
    struct turn_hook hook;
    struct loop *loop;
    struct pool *pool;
    struct exchange_list submitted;
    struct exchange_list finished;
    struct alarm wake; /* for requests that become due: see gate/gate_internal.h */
    struct gate_batch {
        struct loop_message *first, *last;
    } * batches; /* by loop: dispatches on their way there, while the pump runs */
};

struct pool {
    pthread_mutex_t lock;
    char *name;
    TAILQ_ENTRY(pool) link;
    bool nfs;
    enum sched_algorithm algorithm;
    struct sched_options options;
    enum config_balance balance;
    enum config_depth_unit depth_unit;
    uint64_t depth; /* total over the lanes; 0: the servers' depths alone */
    uint64_t outstanding, outstanding_cost;
    uint64_t queue_limit, flow_limit, queue_timeout_ns;
    struct config_admission admission;
    uint32_t dead_after;
    uint64_t dead_for_ns;
    TAILQ_HEAD(lane_list, lane) lanes;
    unsigned lane_count;
    uint64_t clock_ns;      /* latest time that the schedulers were told */
    uint64_t wake_ns;       /* some side's timer is set for it; SCHED_NEVER_NS: none */
    struct lane *next_lane; /* whose turn it is to dispatch; NULL: the first's */
    TAILQ_HEAD(flow_class_list, flow_class) classes;
    unsigned class_count; /* of them, those removed too */
    struct pool_feedback feedback;
    struct gate_side *sides; /* by loop index */
    unsigned side_count;
    struct loop_message kick; /* to the first loop: pump without having anything to say */
    atomic_bool kicked;
};

TAILQ_HEAD(pool_list, pool);

/* An empty pool for these loops. */
struct pool *pool_create(const char *name, bool nfs, struct loop **loops, unsigned loop_count);

/*
 * Takes over what the configuration says: limits, servers, classes. Servers are recognised by name
 * and addresses, classes by name. *next_index is the next unused server index. Takes the lock.
 */
void pool_configure(struct pool *pool, const struct config_pool *config, unsigned *next_index);

/* The server or class of that name that is not removed, or NULL. Under the lock, or while only
 * reloads change them. */
struct server *pool_find_server(struct pool *pool, const char *name);
struct flow_class *pool_find_class(struct pool *pool, const char *name);

/* Changes of a class and all its instances. Under the lock. */
void pool_set_class_weight(struct flow_class *class, uint32_t weight);
void pool_set_class_queue_limit(struct flow_class *class, uint32_t limit);
/* The terms are copied; their values are in the scheduler's ranges. */
void pool_set_class_terms(struct flow_class *class, const struct sched_terms *terms);
static inline const struct sched_terms *pool_class_terms(const struct flow_class *class)
{
    return &class->terms[class->terms_in_use];
}

/* The lane's scheduler works by that algorithm from now on; out of memory ends the process. Under
 * the lock. */
void pool_switch_algorithm(struct lane *lane, enum sched_algorithm algorithm);

/* Another admission policy or action from now on, in every lane. Under the lock. */
void pool_set_admission(struct pool *pool, const struct config_admission *admission);

/* The instance an exchange belongs to, made if need be. Under the lock. */
struct flow *pool_flow_for(struct exchange *exchange);

/* A request has left the lane's scheduler: an instance of a class that was removed meanwhile goes
 * with its last one. Under the lock. */
void pool_flow_ended(struct exchange *exchange);

/* Forgets up to `budget` idle keyed instances; true when there may be more. Under the lock. */
bool pool_retire_flows(struct lane *lane, unsigned budget, uint64_t now_ns);

/* The exchange was not queued: forgets its instance when that was made for it alone, since nothing
 * would retire it. Under the lock. */
void pool_drop_flow(struct exchange *exchange);

/* Only when no thread uses it any more. */
void pool_destroy(struct pool *pool);

#endif
