/* SPDX-License-Identifier: Apache-2.0 */
/* Response targets of a pool's flows: see pool_feedback.h. */
#include "proxy/core/pool/pool_feedback.h"

#include "proxy/control/log.h"
#include "proxy/core/container_of.h"
#include "proxy/core/gate.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <stdlib.h>

/* What is to be said of a class when the lock is free again. */
struct remark {
    const char *flow; /* names live as long as the process */
    enum sched_feedback_state before, after;
    uint32_t weight_before, weight_after;
    uint64_t measured_ns, target_ns;
};

/* ------------------------------------------------------------------ samples */

static void begin_period(struct flow_class *class)
{
    struct class_feedback *feedback = &class->feedback;

    feedback->waits = class->meters.wait.count;
    feedback->waits_ns = class->meters.wait.sum_ns;
    feedback->services = class->meters.service.count;
    feedback->services_ns = class->meters.service.sum_ns;
}

static void take_sample(struct flow_class *class, uint64_t now_ns)
{
    struct class_feedback *feedback = &class->feedback;
    struct sched_feedback_sample *sample = &feedback->flow.sample;
    uint64_t waits = class->meters.wait.count - feedback->waits;
    uint64_t services = class->meters.service.count - feedback->services;
    bool active = services > 0 || class->queued + class->outstanding > 0;

    *sample = (struct sched_feedback_sample){.completions = services};
    if (services > 0 && waits > 0) {
        sample->wait_ns = (class->meters.wait.sum_ns - feedback->waits_ns) / waits;
        sample->response_ns =
            sample->wait_ns + (class->meters.service.sum_ns - feedback->services_ns) / services;
    }
    if (class->queued > 0 && now_ns > feedback->waiting_since_ns)
        sample->oldest_wait_ns = now_ns - feedback->waiting_since_ns;
    if (active)
        sample->active = class->keyed && class->instances > 1 ? class->instances : 1;
    begin_period(class);
}

/* ------------------------------------------------------------------ a step */

static void say(const struct pool *pool, const struct remark *remark)
{
    double measured_ms = (double)remark->measured_ns / 1e6;
    double target_ms = (double)remark->target_ns / 1e6;

    if (remark->weight_after != remark->weight_before)
        log_info("pool %s: flow %s: weight %u -> %u for a response of %.3g ms (target %.3g ms)",
                 pool->name, remark->flow, remark->weight_before, remark->weight_after, measured_ms,
                 target_ms);
    if (remark->after == remark->before)
        return;
    if (remark->after == SCHED_FEEDBACK_INFEASIBLE)
        log_warning("pool %s: flow %s: infeasible: no weight in its range brings its response of "
                    "%.3g ms to its target of %.3g ms",
                    pool->name, remark->flow, measured_ms, target_ms);
    else if (remark->before == SCHED_FEEDBACK_INFEASIBLE)
        log_notice("pool %s: flow %s: no longer infeasible: its response is %.3g ms (target %.3g "
                   "ms)",
                   pool->name, remark->flow, measured_ms, target_ms);
}

/* Returns how many remarks there are, at most one per class. */
static size_t step(struct pool *pool, struct remark *remarks, uint64_t now_ns)
{
    struct flow_class *class;
    size_t count = 0;

    TAILQ_FOREACH(class, &pool->classes, link)
    {
        struct class_feedback *feedback = &class->feedback;
        if (!feedback->in_loop)
            continue;
        take_sample(class, now_ns);
        remarks[count++] = (struct remark){.flow = class->name,
                                           .before = feedback->flow.state,
                                           .weight_before = class->weight,
                                           .target_ns = feedback->terms.target_ns};
    }
    sched_feedback_step(&pool->feedback.loop);
    count = 0;
    TAILQ_FOREACH(class, &pool->classes, link)
    {
        struct class_feedback *feedback = &class->feedback;
        if (!feedback->in_loop)
            continue;
        if (feedback->flow.moved)
            pool_set_class_weight(class, feedback->flow.weight);
        remarks[count].after = feedback->flow.state;
        remarks[count].measured_ns = feedback->flow.measured_ns;
        remarks[count++].weight_after = class->weight;
    }
    return count;
}

static void on_period(struct timer *timer, uint64_t now_ns)
{
    struct pool *pool = container_of(timer, struct pool, feedback.timer);
    struct remark *remarks = NULL;
    size_t count = 0;

    pthread_mutex_lock(&pool->lock);
    if (pool->feedback.period_ns != 0) {
        remarks = memory_zalloc(pool->class_count * sizeof(*remarks), "a feedback loop's remarks");
        count = step(pool, remarks, now_ns);
    }
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < count; i++)
        say(pool, &remarks[i]);
    free(remarks);
    pool_feedback_arm(pool, now_ns);
    loop_add_pump(pool->sides[0].loop, &pool->sides[0].hook);
}

void pool_feedback_arm(struct pool *pool, uint64_t now_ns)
{
    struct timer *timer = &pool->feedback.timer;

    pthread_mutex_lock(&pool->lock);
    uint64_t period_ns = pool->feedback.period_ns;
    pthread_mutex_unlock(&pool->lock);
    if (period_ns == 0)
        timer_clear(timer);
    else if (timer->deadline_ns == 0 || timer->deadline_ns > now_ns + period_ns)
        timer_set(&pool->sides[0].loop->wheel, timer, now_ns + period_ns);
}

/* ------------------------------------------------------------------ what is wanted */

void pool_feedback_init(struct pool *pool)
{
    static const struct sched_feedback_params params = {0};

    sched_feedback_init(&pool->feedback.loop, &params);
    timer_init(&pool->feedback.timer, on_period);
}

static void leave_loop(struct flow_class *class)
{
    if (class->feedback.in_loop)
        sched_feedback_remove(&class->pool->feedback.loop, &class->feedback.flow);
    class->feedback.in_loop = false;
}

/* 0, or -EINVAL: the old terms stay. */
static int join_loop(struct flow_class *class, const struct sched_feedback_terms *terms)
{
    struct class_feedback *feedback = &class->feedback;
    int error;

    if (feedback->in_loop) {
        error = sched_feedback_set_terms(&feedback->flow, terms);
    } else {
        error = sched_feedback_add(&class->pool->feedback.loop, &feedback->flow, terms);
        begin_period(class);
    }
    if (error != 0)
        return error;
    feedback->in_loop = true;
    feedback->terms = *terms;
    if (class->weight != feedback->flow.weight)
        pool_set_class_weight(class, feedback->flow.weight);
    return 0;
}

/* A loop is for pools with a target. */
static void settle_loop(struct pool *pool)
{
    struct flow_class *class;
    bool wanted = false;

    TAILQ_FOREACH(class, &pool->classes, link)
    {
        wanted |= !class->removed && class->feedback.terms.target_ns != 0;
    }
    TAILQ_FOREACH(class, &pool->classes, link)
    {
        if (class->removed || !wanted)
            leave_loop(class);
        else if (!class->feedback.in_loop)
            join_loop(class, &class->feedback.terms);
    }
    pool->feedback.period_ns = wanted ? pool->feedback.configured_ns : 0;
}

void pool_feedback_configure(struct pool *pool, const struct config_pool *config)
{
    pool->feedback.configured_ns = config->feedback_period_ns;
    for (size_t i = 0; i < config->flow_count; i++) {
        const struct config_flow *flow = &config->flows[i];
        struct flow_class *class = pool_find_class(pool, flow->name);
        const struct sched_feedback_terms terms = {.target_ns = flow->response_target_ns,
                                                   .weight = flow->weight,
                                                   .weight_min = flow->weight_min,
                                                   .weight_max = flow->weight_max};
        if (class->feedback.in_loop)
            join_loop(class, &terms);
        class->feedback.terms = terms;
    }
    settle_loop(pool);
}

int pool_feedback_set(struct flow_class *class, uint64_t target_ns, uint32_t weight)
{
    struct class_feedback *feedback = &class->feedback;
    struct sched_feedback_terms terms = feedback->terms;

    terms.target_ns = target_ns;
    terms.weight = weight;
    if (target_ns != 0 && (weight < terms.weight_min || weight > terms.weight_max))
        return -EINVAL;
    if (feedback->in_loop && join_loop(class, &terms) != 0)
        return -EINVAL;
    feedback->terms = terms;
    settle_loop(class->pool);
    return 0;
}
