/* SPDX-License-Identifier: Apache-2.0 */
/* Views and changes for the control plane: see admin_ops.h. */
#include "proxy/core/admin_ops.h"

#include "proxy/core/gate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ views */

static void add_histogram(struct histogram *sum, const struct histogram *one)
{
    sum->count += one->count;
    sum->sum_ns += one->sum_ns;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += one->buckets[i];
}

/* A pool has no meters of its own: it is what its flows, present and past, are together. */
static void add_meters(struct flow_meters *sum, const struct flow_meters *one)
{
    sum->requests += one->requests;
    sum->cost += one->cost;
    sum->bytes_in += one->bytes_in;
    sum->bytes_out += one->bytes_out;
    sum->errors += one->errors;
    sum->refused += one->refused;
    sum->no_server += one->no_server;
    sum->queue_timeouts += one->queue_timeouts;
    sum->cancelled += one->cancelled;
    add_histogram(&sum->wait, &one->wait);
    add_histogram(&sum->service, &one->service);
}

static void view_pool(struct pool *pool, struct pool_view *view)
{
    struct flow_class *class;
    struct lane *lane;

    *view = (struct pool_view){.name = pool->name, .protocol = pool->nfs ? "nfs" : "http"};
    pthread_mutex_lock(&pool->lock);
    view->algorithm = sched_algorithm_name(pool->algorithm);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        view->depth += sched_depth(lane->sched);
        view->queued += sched_queued(lane->sched);
        view->outstanding += sched_outstanding(lane->sched);
    }
    if (pool->depth != 0 && view->depth > pool->depth)
        view->depth = pool->depth;
    TAILQ_FOREACH(class, &pool->classes, link)
    {
        add_meters(&view->meters, &class->meters);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* The lock keeps reloads from adding pools meanwhile. */
void admin_each_pool(struct runtime *runtime,
                     void (*each)(const struct pool_view *view, void *argument), void *argument)
{
    struct pool *pool;

    pthread_mutex_lock(&runtime->lock);
    TAILQ_FOREACH(pool, &runtime->pools, link)
    {
        struct pool_view view;
        view_pool(pool, &view);
        each(&view, argument);
    }
    pthread_mutex_unlock(&runtime->lock);
}

static bool is_active(const struct flow_class *class)
{
    return class->queued + class->outstanding > 0;
}

static uint64_t class_weight(const struct flow_class *class)
{
    uint32_t instances = class->keyed && class->instances > 1 ? class->instances : 1;

    return (uint64_t) class->weight * instances;
}

static void view_flow(struct flow_class *class, struct flow_view *view)
{
    struct pool *pool = class->pool;
    struct flow_class *other;
    uint64_t weights = 0;

    pthread_mutex_lock(&pool->lock);
    TAILQ_FOREACH(other, &pool->classes, link)
    {
        weights += is_active(other) ? class_weight(other) : 0;
    }
    *view = (struct flow_view){
        .pool = pool->name,
        .name = class->name,
        .weight = class->weight,
        .keyed = class->keyed,
        .instances = class->keyed ? class->instances : 1,
        .share = is_active(class) ? (double)class_weight(class) / (double)weights : 0,
        .queued = class->queued,
        .outstanding = class->outstanding,
        .meters = class->meters,
    };
    pthread_mutex_unlock(&pool->lock);
}

void admin_each_flow(struct runtime *runtime,
                     void (*each)(const struct flow_view *view, void *argument), void *argument)
{
    struct pool *pool;
    struct flow_class *class;

    pthread_mutex_lock(&runtime->lock);
    TAILQ_FOREACH(pool, &runtime->pools, link)
    {
        TAILQ_FOREACH(class, &pool->classes, link)
        {
            struct flow_view view;
            if (class->removed)
                continue;
            view_flow(class, &view);
            each(&view, argument);
        }
    }
    pthread_mutex_unlock(&runtime->lock);
}

static const char *server_state_name(enum server_state state)
{
    switch (state) {
    case SERVER_READY:
        return "ready";
    case SERVER_DEAD:
        return "dead";
    case SERVER_DRAIN:
        return "drain";
    }
    return "?";
}

static void view_server(struct server *server, struct server_view *view)
{
    pthread_mutex_lock(&server->pool->lock);
    *view = (struct server_view){
        .pool = server->pool->name,
        .name = server->name,
        .address = server->address_text,
        .state = server_state_name(server->state),
        .depth = server->depth,
        .outstanding = server->outstanding,
        .meters = server->meters,
    };
    pthread_mutex_unlock(&server->pool->lock);
}

void admin_each_server(struct runtime *runtime,
                       void (*each)(const struct server_view *view, void *argument), void *argument)
{
    struct pool *pool;
    struct lane *lane;
    struct server *server;

    pthread_mutex_lock(&runtime->lock);
    TAILQ_FOREACH(pool, &runtime->pools, link)
    {
        TAILQ_FOREACH(lane, &pool->lanes, link)
        {
            TAILQ_FOREACH(server, &lane->servers, link)
            {
                struct server_view view;
                if (server->removed)
                    continue;
                view_server(server, &view);
                each(&view, argument);
            }
        }
    }
    pthread_mutex_unlock(&runtime->lock);
}

void admin_each_listener(struct runtime *runtime,
                         void (*each)(const struct listener_view *view, void *argument),
                         void *argument)
{
    pthread_mutex_lock(&runtime->lock);
    const struct config *config = runtime->plan->config;
    for (size_t i = 0; i < config->listener_count; i++) {
        struct listener_view view = {.name = config->listeners[i].name,
                                     .protocol =
                                         config_protocol_name(config->listeners[i].protocol)};
        for (unsigned w = 0; w < runtime->worker_count; w++) {
            struct listener_meters *meters = &runtime->workers[w].listeners[i];
            view.connections += atomic_load_explicit(&meters->connections, memory_order_relaxed);
            view.open += atomic_load_explicit(&meters->open, memory_order_relaxed);
            view.rejected += atomic_load_explicit(&meters->rejected, memory_order_relaxed);
            view.malformed += atomic_load_explicit(&meters->malformed, memory_order_relaxed);
            view.not_found += atomic_load_explicit(&meters->not_found, memory_order_relaxed);
        }
        each(&view, argument);
    }
    pthread_mutex_unlock(&runtime->lock);
}

void admin_status(struct runtime *runtime, struct status_view *view)
{
    *view = (struct status_view){
        .uptime_ns = loop_clock_ns() - runtime->started_ns,
        .workers = runtime->worker_count,
        .sessions = atomic_load(&runtime->sessions),
        .reloads_done = atomic_load(&runtime->reloads_done),
        .reloads_failed = atomic_load(&runtime->reloads_failed),
        .draining = atomic_load(&runtime->draining),
    };
}

/* ------------------------------------------------------------------ changes */

static struct pool *find_pool(struct runtime *runtime, const char *name, char *why, size_t size)
{
    struct pool *pool;
    int used = snprintf(why, size, "no pool '%s'; there are:", name);

    TAILQ_FOREACH(pool, &runtime->pools, link)
    {
        if (strcmp(pool->name, name) == 0)
            return pool;
        if (used > 0 && (size_t)used < size)
            used += snprintf(why + used, size - (size_t)used, " %s", pool->name);
    }
    return NULL;
}

static struct server *find_server(struct pool *pool, const char *name, char *why, size_t size)
{
    struct server *server = pool_find_server(pool, name);
    struct lane *lane;
    int used;

    if (server != NULL)
        return server;
    used = snprintf(why, size, "pool %s has no server '%s'; there are:", pool->name, name);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        TAILQ_FOREACH(server, &lane->servers, link)
        {
            if (!server->removed && used > 0 && (size_t)used < size)
                used += snprintf(why + used, size - (size_t)used, " %s", server->name);
        }
    }
    return NULL;
}

static struct flow_class *find_class(struct pool *pool, const char *name, char *why, size_t size)
{
    struct flow_class *class = pool_find_class(pool, name);
    int used;

    if (class != NULL)
        return class;
    used = snprintf(why, size, "pool %s has no flow '%s'; there are:", pool->name, name);
    TAILQ_FOREACH(class, &pool->classes, link)
    {
        if (!class->removed && used > 0 && (size_t)used < size)
            used += snprintf(why + used, size - (size_t)used, " %s", class->name);
    }
    return NULL;
}

/* Every change: find the pool, lock it, do it, pump. */
typedef int change_fn(struct pool *pool, const char *name, uint64_t value, char *why, size_t size);

static int change(struct runtime *runtime, const char *pool_name, const char *name, uint64_t value,
                  change_fn *apply, char *why, size_t size)
{
    int error = -ENOENT;

    pthread_mutex_lock(&runtime->lock);
    struct pool *pool = find_pool(runtime, pool_name, why, size);
    if (pool != NULL) {
        pthread_mutex_lock(&pool->lock);
        error = apply(pool, name, value, why, size);
        pthread_mutex_unlock(&pool->lock);
        if (error == 0)
            gate_kick(pool);
    }
    pthread_mutex_unlock(&runtime->lock);
    return error;
}

static int refuse(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return -EINVAL;
}

static int set_weight(struct pool *pool, const char *name, uint64_t weight, char *why, size_t size)
{
    struct flow_class *class = find_class(pool, name, why, size);

    if (class == NULL)
        return -ENOENT;
    if (weight < SCHED_WEIGHT_MIN || weight > SCHED_WEIGHT_MAX)
        return refuse(why, size, "a weight is a whole number from 1 to 1000000");
    pool_set_class_weight(class, (uint32_t)weight);
    return 0;
}

static void update_depths(struct pool *pool)
{
    struct lane *lane;

    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        gate_update_depth(lane, loop_clock_ns());
    }
}

static int set_pool_depth(struct pool *pool, const char *name, uint64_t depth, char *why,
                          size_t size)
{
    (void)name;
    if (depth > UINT32_MAX)
        return refuse(
            why, size,
            "a depth is a whole number below 4294967296; 0 stands for the servers' depths");
    pool->depth = depth;
    update_depths(pool);
    return 0;
}

static int set_server_depth(struct pool *pool, const char *name, uint64_t depth, char *why,
                            size_t size)
{
    struct server *server = find_server(pool, name, why, size);

    if (server == NULL)
        return -ENOENT;
    if (depth < 1 || depth > UINT32_MAX)
        return refuse(why, size, "a server's depth is a whole number from 1 to 4294967295");
    server->depth = depth;
    update_depths(pool);
    return 0;
}

static int set_algorithm(struct pool *pool, const char *name, uint64_t value, char *why,
                         size_t size)
{
    enum config_algorithm algorithm;
    struct lane *lane;

    (void)value;
    if (config_algorithm_from_name(name, &algorithm) < 0) {
        int used = snprintf(why, size, "no algorithm '%s'; there are:", name);
        for (int i = 0; i < SCHED_ALGORITHMS && used > 0 && (size_t)used < size; i++)
            used += snprintf(why + used, size - (size_t)used, " %s",
                             sched_algorithm_name((enum sched_algorithm)i));
        return -EINVAL;
    }
    pool->algorithm = pool_algorithm(algorithm);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        sched_set_algorithm(lane->sched, pool->algorithm);
    }
    return 0;
}

static int set_server_state(struct pool *pool, const char *name, uint64_t drain, char *why,
                            size_t size)
{
    struct server *server = find_server(pool, name, why, size);

    if (server == NULL)
        return -ENOENT;
    server->state = drain != 0 ? SERVER_DRAIN : SERVER_READY;
    server->failures = 0;
    update_depths(pool);
    return 0;
}

int admin_set_weight(struct runtime *runtime, const char *pool, const char *flow, uint64_t weight,
                     char *why, size_t size)
{
    return change(runtime, pool, flow, weight, set_weight, why, size);
}

int admin_set_pool_depth(struct runtime *runtime, const char *pool, uint64_t depth, char *why,
                         size_t size)
{
    return change(runtime, pool, "", depth, set_pool_depth, why, size);
}

int admin_set_server_depth(struct runtime *runtime, const char *pool, const char *server,
                           uint64_t depth, char *why, size_t size)
{
    return change(runtime, pool, server, depth, set_server_depth, why, size);
}

int admin_set_algorithm(struct runtime *runtime, const char *pool, const char *algorithm, char *why,
                        size_t size)
{
    return change(runtime, pool, algorithm, 0, set_algorithm, why, size);
}

int admin_set_server_state(struct runtime *runtime, const char *pool, const char *server,
                           const char *state, char *why, size_t size)
{
    if (strcmp(state, "drain") != 0 && strcmp(state, "ready") != 0)
        return refuse(why, size, "a server's state is set to 'drain' or 'ready'");
    return change(runtime, pool, server, strcmp(state, "drain") == 0, set_server_state, why, size);
}
