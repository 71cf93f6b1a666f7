/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the control plane may see and do. Every function may be called from any thread; views are
 * copies taken under the pool's lock, and the callbacks run without it. Strings in views live as
 * long as the process.
 */
#ifndef SPILLWAY_CORE_ADMIN_OPS_H
#define SPILLWAY_CORE_ADMIN_OPS_H

#include "proxy/core/worker.h"

struct pool_view {
    const char *name;
    const char *protocol; /* "http", "nfs" */
    const char *algorithm;
    const char *at_limit;    /* "wait", "refuse" */
    uint64_t slack;          /* its options, whether the algorithm reads them or not */
    uint64_t capacity_per_s; /* 0: not known */
    double ageing_s;
    const char *admission;        /* the policy: "none", "duk", ... */
    const char *admission_action; /* "refuse", "mark" */
    uint64_t admission_limit;
    double admission_target_s, admission_interval_s; /* as set; 0: the published ones */
    /* What the policy knows. Of several lanes: rates and allowances are added up, of shares and
     * lengths it is the largest. */
    double admission_capacity_per_s; /* C; 0: not measured yet */
    double admission_share;          /* p: of what comes, how much is refused or marked, 0 to 1 */
    double admission_allowed;        /* k*: what may wait */
    double admission_most;       /* the most that may wait while there is an overload; 0: none */
    double admission_surplus;    /* above 1 an overload is evident */
    double admission_measured_s; /* the interval that ended last */
    uint64_t depth;              /* what the servers in service and the total allow together */
    uint64_t queued, outstanding;
    struct flow_meters meters;
};

struct flow_view {
    const char *pool;
    const char *name;
    uint32_t weight;
    double target_s; /* 0: none; likewise the others */
    uint64_t reservation_per_s, limit_per_s, burst;
    uint64_t queue_limit;
    double response_target_s, response_s; /* the latter as last measured for the target */
    const char *feedback;                 /* state of the loop that moves the weight; "no-target" */
    uint64_t infeasible;                  /* 1 while no weight reaches the target */
    bool keyed;
    uint32_t instances; /* flows that exist now; 1 for one without a key */
    double share; /* of the pool, by weight, among the flows that have requests; 0 for one that has
                     none */
    uint64_t queued, outstanding;
    struct flow_meters meters;
};

struct server_view {
    const char *pool;
    const char *name;
    const char *address;
    const char *state; /* "ready", "dead", "drain" */
    uint64_t depth, outstanding;
    struct server_meters meters;
};

struct listener_view {
    const char *name;
    const char *protocol;
    uint64_t connections, open, rejected, malformed, not_found;
};

struct status_view {
    uint64_t uptime_ns;
    unsigned workers;
    uint64_t sessions;
    uint64_t reloads_done, reloads_failed;
    bool draining;
};

void admin_each_pool(struct runtime *runtime,
                     void (*each)(const struct pool_view *view, void *argument), void *argument);
void admin_each_flow(struct runtime *runtime,
                     void (*each)(const struct flow_view *view, void *argument), void *argument);
void admin_each_server(struct runtime *runtime,
                       void (*each)(const struct server_view *view, void *argument),
                       void *argument);
void admin_each_listener(struct runtime *runtime,
                         void (*each)(const struct listener_view *view, void *argument),
                         void *argument);
void admin_status(struct runtime *runtime, struct status_view *view);

/*
 * Changes. 0; -ENOENT when a name is unknown, -EINVAL when a value is out of range. They last until
 * the next reload, which sets what the file says. `why` (of `size` bytes) receives a sentence when
 * they fail.
 */
int admin_set_weight(struct runtime *runtime, const char *pool, const char *flow, uint64_t weight,
                     char *why, size_t size);
int admin_set_pool_depth(struct runtime *runtime, const char *pool, uint64_t depth, char *why,
                         size_t size);
int admin_set_server_depth(struct runtime *runtime, const char *pool, const char *server,
                           uint64_t depth, char *why, size_t size);
int admin_set_algorithm(struct runtime *runtime, const char *pool, const char *algorithm, char *why,
                        size_t size);
/* A setting of config_flow_settings, or of config_pool_settings or config_admission_settings, in
 * the file's notation. -ENOENT also for another setting, and `why` stays as it is then. `why`
 * receives a remark when the setting has no effect under the pool's algorithm or policy. */
int admin_set_flow(struct runtime *runtime, const char *pool, const char *flow, const char *key,
                   const char *text, char *why, size_t size);
int admin_set_pool(struct runtime *runtime, const char *pool, const char *key, const char *text,
                   char *why, size_t size);
int admin_set_server_state(struct runtime *runtime, const char *pool, const char *server,
                           const char *state, char *why, size_t size); /* "drain" or "ready" */

/*
 * Loads the configuration file again and takes it over in place. On failure the old one keeps
 * running and `why` receives every error, a line each. Blocks (file, names): never on a loop's
 * thread.
 */
int admin_reload(struct runtime *runtime, char *why, size_t size);

#endif
