/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: one generation of the configuration, bound to the objects that outlive it.
 *
 * Loops read the plan without a lock: it never changes. A reload builds a new plan over the same
 * pools, servers and classes, and every worker takes it over between two turns. An exchange holds
 * the plan it was classified with (plan_hold) until it is done; the last holder of an old plan
 * frees it.
 */
#ifndef SPILLWAY_CORE_POOL_PLAN_H
#define SPILLWAY_CORE_POOL_PLAN_H

#include "protocols/http/http1.h"
#include "proxy/config/config.h"
#include "proxy/core/pool/pool.h"

struct worker;

struct plan_rule {
    const struct config_flow *config;
    struct flow_class *class;
};

struct plan_pool {
    const struct config_pool *config;
    struct plan *plan;
    struct pool *pool;
    struct plan_rule *rules; /* in matching order; the last matches everything */
    size_t rule_count;
    struct flow_class *only_class; /* when there is nothing to match: a single rule without key */
    struct config_cost_rate method_rate[HTTP1_METHOD_COUNT]; /* by the table */
};

struct plan_route {
    const struct config_match *match;
    const struct plan_pool *pool;
};

struct plan_listener {
    const struct config_listener *config;
    struct plan *plan;
    const struct plan_pool *pool; /* NULL: what no route takes is not found */
    struct plan_route *routes;
    size_t route_count;
};

struct plan {
    struct config *config; /* owned */
    struct runtime *runtime;
    bool needs_host, needs_path;     /* some route or flow looks at them: worth normalising */
    struct plan_listener *listeners; /* by listener index, which a reload never changes */
    struct plan_pool *pools;
    atomic_uint workers; /* that have this plan or exchanges holding it */
    unsigned *held;      /* by worker: exchanges and sessions holding it; each worker's own */
};

static inline void plan_hold(const struct plan_pool *pool, unsigned worker)
{
    pool->plan->held[worker]++;
}

/* Gives back; frees the plan when it is an old one and nobody is left. */
void plan_release(const struct plan_pool *pool, struct worker *worker);

/* The worker has taken over a newer plan; frees this one when nobody is left. */
void plan_leave(struct plan *plan, struct worker *worker);

/* What matching and keys look at. Slices may point into the arena; absent ones have ptr NULL. */
struct http_facts {
    const struct http1_head *head;
    const struct sockaddr *client;
    struct http1_slice host; /* normalised, without port */
    struct http1_slice path; /* normalised */
};

struct nfs_facts {
    const struct sockaddr *client;
    const char *export_path; /* NULL: not known */
    uint32_t uid;
    bool has_uid;
    enum config_procedure_class procedure_class;
    int nfs3_procedure; /* -1: not NFSv3 */
    uint64_t bytes;     /* to be read or written, as asked for */
};

/* The pool that serves the request, or NULL: not found. */
const struct plan_pool *plan_route_http(const struct plan_listener *listener,
                                        const struct http_facts *facts);

/* Sets the exchange's pool, lane (HTTP), class, key and cost. For NFS the caller has set the lane.
 */
void plan_classify_http(const struct plan_pool *pool, const struct http_facts *facts,
                        struct exchange *exchange);
void plan_classify_nfs(const struct plan_pool *pool, const struct nfs_facts *facts,
                       struct exchange *exchange);

/*
 * Builds a plan from a configuration (taken over), making or updating pools, servers and classes of
 * the runtime in place. `workers` is the number of loops.
 */
struct runtime;
struct plan *plan_build(struct runtime *runtime, struct config *config);
void plan_free(struct plan *plan);

#endif
