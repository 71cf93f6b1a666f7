/* SPDX-License-Identifier: Apache-2.0 */
/* Views for the control plane: see ../admin_ops.h. */
#include "proxy/core/admin_ops.h"

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
    sum->offered += one->offered;
    sum->admitted += one->admitted;
    sum->admission_refused += one->admission_refused;
    sum->marked += one->marked;
    sum->requests += one->requests;
    sum->cost += one->cost;
    sum->bytes_in += one->bytes_in;
    sum->bytes_out += one->bytes_out;
    sum->errors += one->errors;
    sum->refused += one->refused;
    sum->no_server += one->no_server;
    sum->at_limit += one->at_limit;
    sum->queue_timeouts += one->queue_timeouts;
    sum->cancelled += one->cancelled;
    add_histogram(&sum->wait, &one->wait);
    add_histogram(&sum->service, &one->service);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void view_admission(const struct pool *pool, struct pool_view *view)
{
    const struct config_admission *admission = &pool->admission;
    struct lane *lane;

    view->admission = admit_policy_name(admission->algorithm);
    view->admission_action = admission->action == CONFIG_ADMISSION_MARK ? "mark" : "refuse";
    view->admission_limit = admission->limit;
    view->admission_target_s = seconds(admission->target_ns);
    view->admission_interval_s = seconds(admission->interval_ns);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        const struct admit_view one = admit_look(&lane->admit);
        view->admission_capacity_per_s += one.capacity_per_s;
        view->admission_allowed += one.queue_allowed;
        view->admission_most += one.queue_most;
        view->admission_share = larger(view->admission_share, one.refuse_share);
        view->admission_surplus = larger(view->admission_surplus, one.surplus);
        view->admission_measured_s = larger(view->admission_measured_s, seconds(one.interval_ns));
    }
}

static void view_pool(struct pool *pool, struct pool_view *view)
{
    struct flow_class *class;
    struct lane *lane;

    *view = (struct pool_view){.name = pool->name, .protocol = pool->nfs ? "nfs" : "http"};
    pthread_mutex_lock(&pool->lock);
    view->algorithm = sched_algorithm_name(pool->algorithm);
    view->at_limit = pool->options.refuse_at_limit ? "refuse" : "wait";
    view->slack = pool->options.slack;
    view->capacity_per_s = pool->options.capacity_per_s;
    view->ageing_s = seconds(pool->options.ageing_ns);
    view_admission(pool, view);
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
    const struct sched_terms *terms;
    uint64_t weights = 0;

    pthread_mutex_lock(&pool->lock);
    TAILQ_FOREACH(other, &pool->classes, link)
    {
        weights += is_active(other) ? class_weight(other) : 0;
    }
    terms = pool_class_terms(class);
    *view = (struct flow_view){
        .pool = pool->name,
        .name = class->name,
        .weight = class->weight,
        .target_s = seconds(terms->target_ns),
        .reservation_per_s = terms->reservation_per_s,
        .limit_per_s = terms->limit_per_s,
        .burst = terms->burst,
        .response_target_s = seconds(class->feedback.terms.target_ns),
        .response_s = seconds(class->feedback.in_loop ? class->feedback.flow.measured_ns : 0),
        .feedback = class_feedback_state(&class->feedback),
        .infeasible =
            class->feedback.in_loop && class->feedback.flow.state == SCHED_FEEDBACK_INFEASIBLE,
        .queue_limit = class->queue_limit != 0 ? class->queue_limit : pool->flow_limit,
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
