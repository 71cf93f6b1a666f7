/* SPDX-License-Identifier: Apache-2.0 */
/* Changes for the control plane: see ../admin_ops.h. */
#include "proxy/core/admin_ops.h"

#include "proxy/core/gate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ finding what to change */

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
struct change {
    const char *name; /* flow, server or setting; NULL: the pool's own */
    const char *key;  /* a flow's setting */
    const char *text;
    uint64_t value;
};
typedef int change_fn(struct pool *pool, const struct change *change, char *why, size_t size);

static int change(struct runtime *runtime, const char *pool_name, const struct change *what,
                  change_fn *apply, char *why, size_t size)
{
    int error = -ENOENT;

    pthread_mutex_lock(&runtime->lock);
    struct pool *pool = find_pool(runtime, pool_name, why, size);
    if (pool != NULL) {
        if (size > 0)
            why[0] = '\0';
        pthread_mutex_lock(&pool->lock);
        error = apply(pool, what, why, size);
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

/* ------------------------------------------------------------------ flows */

static int set_weight(struct pool *pool, const struct change *change, char *why, size_t size)
{
    struct flow_class *class = find_class(pool, change->name, why, size);

    if (class == NULL)
        return -ENOENT;
    if (change->value < SCHED_WEIGHT_MIN || change->value > SCHED_WEIGHT_MAX)
        return refuse(why, size, "a weight is a whole number from 1 to 1000000");
    if (pool_feedback_set(class, class->feedback.terms.target_ns, (uint32_t)change->value) < 0)
        return refuse(why, size,
                      "the flow has a response-target, and its weight-range leaves that out");
    pool_set_class_weight(class, (uint32_t)change->value);
    return 0;
}

/* Said after a change that was made. */
static void note_unread(const struct pool *pool, const char *key, char *why, size_t size)
{
    const char *readers = config_setting_readers(key, pool->algorithm);

    if (readers != NULL)
        snprintf(why, size, "%s has no effect under algorithm %s; it is for %s", key,
                 sched_algorithm_name(pool->algorithm), readers);
}

static uint64_t sum_of_reservations(const struct pool *pool)
{
    const struct flow_class *class;
    uint64_t sum = 0;

    TAILQ_FOREACH(class, &pool->classes, link)
    {
        sum += class->removed ? 0 : pool_class_terms(class)->reservation_per_s;
    }
    return sum;
}

static int set_flow_setting(struct pool *pool, const struct change *change, char *why, size_t size)
{
    struct flow_class *class = find_class(pool, change->name, why, size);

    if (class == NULL)
        return -ENOENT;
    struct config_flow flow = {.terms = *pool_class_terms(class),
                               .burst_is_auto = class->burst_is_auto,
                               .queue_limit = class->queue_limit,
                               .response_target_ns = class->feedback.terms.target_ns};
    int error = config_set_flow(&flow, change->key, change->text, why, size);
    if (error != 0)
        return error;
    if (flow.terms.limit_per_s != 0 && flow.terms.limit_per_s < flow.terms.reservation_per_s)
        return refuse(why, size, "the limit would be below the reservation");
    if (pool->options.capacity_per_s != 0 && sum_of_reservations(pool) -
                                                     pool_class_terms(class)->reservation_per_s +
                                                     flow.terms.reservation_per_s >
                                                 pool->options.capacity_per_s)
        return refuse(why, size, "the flows' reservations would add up to more than the capacity");
    if (pool_feedback_set(class, flow.response_target_ns, class->feedback.terms.weight) < 0)
        return refuse(why, size, "the flow's weight-range leaves its weight out");
    class->burst_is_auto = flow.burst_is_auto;
    pool_set_class_queue_limit(class, flow.queue_limit);
    pool_set_class_terms(class, &flow.terms);
    note_unread(pool, change->key, why, size);
    return 0;
}

/* ------------------------------------------------------------------ depths and servers */

static void update_depths(struct pool *pool)
{
    struct lane *lane;

    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        gate_update_depth(lane, loop_clock_ns());
    }
}

/* Servers that name no depth have their part of the pool's. */
static void share_out_depth(struct pool *pool)
{
    struct lane *lane;
    struct server *server;
    uint64_t servers = 0;

    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        TAILQ_FOREACH(server, &lane->servers, link)
        {
            servers += !server->removed;
        }
    }
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        TAILQ_FOREACH(server, &lane->servers, link)
        {
            if (!server->removed && server->depth_is_auto)
                server->depth = config_server_depth(pool->depth, servers);
        }
    }
}

static int set_pool_depth(struct pool *pool, const struct change *change, char *why, size_t size)
{
    if (change->value > UINT32_MAX)
        return refuse(
            why, size,
            "a depth is a whole number below 4294967296; 0 stands for the servers' depths");
    pool->depth = change->value;
    share_out_depth(pool);
    update_depths(pool);
    return 0;
}

static int set_server_depth(struct pool *pool, const struct change *change, char *why, size_t size)
{
    struct server *server = find_server(pool, change->name, why, size);

    if (server == NULL)
        return -ENOENT;
    if (change->value < 1 || change->value > UINT32_MAX)
        return refuse(why, size, "a server's depth is a whole number from 1 to 4294967295");
    server->depth = change->value;
    server->depth_is_auto = false;
    update_depths(pool);
    return 0;
}

static int set_server_state(struct pool *pool, const struct change *change, char *why, size_t size)
{
    struct server *server = find_server(pool, change->name, why, size);

    if (server == NULL)
        return -ENOENT;
    server->state = change->value != 0 ? SERVER_DRAIN : SERVER_READY;
    server->failures = 0;
    update_depths(pool);
    return 0;
}

/* ------------------------------------------------------------------ the scheduler */

static int set_algorithm(struct pool *pool, const struct change *change, char *why, size_t size)
{
    int algorithm = sched_algorithm_from_name(change->text);
    struct lane *lane;

    if (algorithm < 0) {
        int used = snprintf(why, size, "no algorithm '%s'; there are:", change->text);
        for (int i = 0; i < SCHED_ALGORITHMS && used > 0 && (size_t)used < size; i++)
            used += snprintf(why + used, size - (size_t)used, " %s",
                             sched_algorithm_name((enum sched_algorithm)i));
        return -EINVAL;
    }
    pool->algorithm = (enum sched_algorithm)algorithm;
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        pool_switch_algorithm(lane, pool->algorithm);
    }
    return 0;
}

static int set_pool_setting(struct pool *pool, const struct change *change, char *why, size_t size)
{
    struct config_pool scratch = {.options = pool->options};
    int error = config_set_pool(&scratch, change->key, change->text, why, size);
    struct lane *lane;

    if (error != 0)
        return error;
    if (scratch.options.capacity_per_s != 0 &&
        sum_of_reservations(pool) > scratch.options.capacity_per_s)
        return refuse(why, size, "the flows' reservations add up to more than that capacity");
    pool->options = scratch.options;
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        sched_set_options(lane->sched, &pool->options);
    }
    note_unread(pool, change->key, why, size);
    return 0;
}

/* ------------------------------------------------------------------ admission */

static int set_admission(struct pool *pool, const struct change *change, char *why, size_t size)
{
    struct config_admission admission = pool->admission;
    int error = config_set_admission(&admission, pool->nfs, change->key, change->text, why, size);

    if (error != 0)
        return error;
    pool_set_admission(pool, &admission);
    const char *readers = config_admission_readers(change->key, admission.algorithm);
    if (readers != NULL)
        snprintf(why, size, "%s has no effect under admission %s; it is for %s", change->key,
                 admit_policy_name(admission.algorithm), readers);
    return 0;
}

/* ------------------------------------------------------------------ the calls */

int admin_set_weight(struct runtime *runtime, const char *pool, const char *flow, uint64_t weight,
                     char *why, size_t size)
{
    const struct change what = {.name = flow, .value = weight};

    return change(runtime, pool, &what, set_weight, why, size);
}

int admin_set_flow(struct runtime *runtime, const char *pool, const char *flow, const char *key,
                   const char *text, char *why, size_t size)
{
    const struct change what = {.name = flow, .key = key, .text = text};

    return change(runtime, pool, &what, set_flow_setting, why, size);
}

int admin_set_pool(struct runtime *runtime, const char *pool, const char *key, const char *text,
                   char *why, size_t size)
{
    const struct change what = {.key = key, .text = text};
    bool admission = strncmp(key, "admission", strlen("admission")) == 0;

    return change(runtime, pool, &what, admission ? set_admission : set_pool_setting, why, size);
}

int admin_set_pool_depth(struct runtime *runtime, const char *pool, uint64_t depth, char *why,
                         size_t size)
{
    const struct change what = {.value = depth};

    return change(runtime, pool, &what, set_pool_depth, why, size);
}

int admin_set_server_depth(struct runtime *runtime, const char *pool, const char *server,
                           uint64_t depth, char *why, size_t size)
{
    const struct change what = {.name = server, .value = depth};

    return change(runtime, pool, &what, set_server_depth, why, size);
}

int admin_set_algorithm(struct runtime *runtime, const char *pool, const char *algorithm, char *why,
                        size_t size)
{
    const struct change what = {.text = algorithm};

    return change(runtime, pool, &what, set_algorithm, why, size);
}

int admin_set_server_state(struct runtime *runtime, const char *pool, const char *server,
                           const char *state, char *why, size_t size)
{
    const struct change what = {.name = server, .value = strcmp(state, "drain") == 0};

    if (what.value == 0 && strcmp(state, "ready") != 0)
        return refuse(why, size, "a server's state is set to 'drain' or 'ready'");
    return change(runtime, pool, &what, set_server_state, why, size);
}
