/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of proxy/core share: a runtime from configuration text whose loops do not run by
 * themselves, and requests that write down what the gate does with them.
 *
 * One thread drives every loop: settle() is the end of a loop's turn, at a time the test sets
 * (clock_ns), with the timers and alarms that are due by then. So every run is repeatable.
 */
#ifndef SPILLWAY_TESTS_UNIT_PROXY_CORE_FIXTURE_H
#define SPILLWAY_TESTS_UNIT_PROXY_CORE_FIXTURE_H

#include "proxy/core/admin_ops.h"
#include "proxy/core/container_of.h"
#include "proxy/core/gate.h"
#include "proxy/core/pool/plan.h"
#include "proxy/core/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS      UINT64_C(1000000000)

static inline struct config *load_config(const char *text)
{
    struct config_errors errors;
    struct config *config = NULL;

    config_errors_init(&errors);
    if (config_load_text("test.yaml", text, strlen(text), CONFIG_NO_LOOKUP, &config, &errors) != 0)
        config_errors_print(&errors, stderr);
    assert_non_null(config);
    config_errors_fini(&errors);
    return config;
}

struct world {
    struct runtime *runtime;
    uint64_t clock_ns;
};

/* The configuration's first pool. */
static inline struct plan_pool *plan_pool_of(const struct world *world)
{
    return &world->runtime->plan->pools[0];
}

static inline struct pool *pool_of(const struct world *world)
{
    return plan_pool_of(world)->pool;
}

static inline void set_clock(struct world *world, uint64_t now_ns)
{
    world->clock_ns = now_ns;
    for (unsigned i = 0; i < world->runtime->worker_count; i++) {
        world->runtime->workers[i].loop.now_ns = now_ns;
        world->runtime->workers[i].loop.now_is_old = false;
    }
}

static inline struct world world_open(const char *text)
{
    struct world world = {.runtime = runtime_create(load_config(text), "test.yaml")};

    assert_non_null(world.runtime);
    set_clock(&world, loop_clock_ns());
    return world;
}

static inline void world_close(struct world *world)
{
    runtime_destroy(world->runtime);
}

/* As a reload does it, on workers that hold nothing of the old plan. */
static inline void world_reload(struct world *world, const char *text)
{
    struct plan *old = world->runtime->plan;

    world->runtime->plan = plan_build(world->runtime, load_config(text));
    for (unsigned i = 0; i < world->runtime->worker_count; i++)
        world->runtime->workers[i].plan = world->runtime->plan;
    plan_free(old);
}

/* The end of one loop's turn. */
static inline void settle(struct world *world, unsigned worker)
{
    struct loop *loop = &world->runtime->workers[worker].loop;

    timer_wheel_run(&loop->wheel, world->clock_ns);
    alarms_run(loop, world->clock_ns);
    loop_wind_up(loop);
}

/* Every loop, until messages between them have come. */
static inline void settle_all(struct world *world)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < world->runtime->worker_count; i++)
            settle(world, i);
    }
}

static inline void pass_time(struct world *world, uint64_t duration_ns)
{
    set_clock(world, world->clock_ns + duration_ns);
    settle_all(world);
}

static inline void keep_first_view(const struct pool_view *view, void *argument)
{
    struct pool_view *first = argument;

    if (first->name == NULL)
        *first = *view;
}

/* What the control plane shows of the first pool. */
static inline struct pool_view view_of(const struct world *world)
{
    struct pool_view view = {.name = NULL};

    admin_each_pool(world->runtime, keep_first_view, &view);
    return view;
}

/* ------------------------------------------------------------------ requests */

struct request {
    struct exchange exchange;
    unsigned number; /* the test's own */
    unsigned dispatched, refused, released, marked;
    enum refusal refusal;
    unsigned order; /* of its latest dispatch, counted from 1 */
};

static unsigned dispatch_count;

static inline struct request *request_of(struct exchange *exchange)
{
    return container_of(exchange, struct request, exchange);
}

static inline void note_dispatched(struct exchange *exchange)
{
    request_of(exchange)->dispatched++;
    request_of(exchange)->order = ++dispatch_count;
}

static inline void note_refused(struct exchange *exchange, enum refusal refusal)
{
    request_of(exchange)->refused++;
    request_of(exchange)->refusal = refusal;
}

static inline void note_released(struct exchange *exchange)
{
    request_of(exchange)->released++;
}

static inline void note_marked(struct exchange *exchange)
{
    request_of(exchange)->marked++;
    assert_int_equal(request_of(exchange)->dispatched, 0);
}

static const struct exchange_ops request_ops = {
    .dispatched = note_dispatched,
    .refused = note_refused,
    .released = note_released,
    .marked = note_marked,
};

/* A request of the class of that name, on a worker, with a key where the class has them. */
static inline void request_init(struct request *request, struct world *world, unsigned worker,
                                const char *class, const char *key)
{
    struct loop *loop = &world->runtime->workers[worker].loop;
    struct pool *pool = pool_of(world);

    memset(request, 0, sizeof(*request));
    exchange_init(&request->exchange, loop, &request_ops, loop_now_ns(loop));
    request->exchange.pool = plan_pool_of(world);
    request->exchange.lane = TAILQ_FIRST(&pool->lanes);
    request->exchange.class = pool_find_class(pool, class);
    assert_non_null(request->exchange.class);
    if (key != NULL) {
        request->exchange.key_length = (uint8_t)strlen(key);
        memcpy(request->exchange.key, key, strlen(key));
    }
}

static inline void submit(struct request *request, struct world *world, const char *class)
{
    request_init(request, world, 0, class, NULL);
    gate_submit(&request->exchange);
}

static inline void finish(struct request *request, enum outcome outcome)
{
    gate_finish(&request->exchange, outcome, request->exchange.cost);
}

/* How many of the requests hold a slot. */
static inline unsigned count_dispatched(const struct request *requests, unsigned count)
{
    unsigned dispatched = 0;

    for (unsigned i = 0; i < count; i++)
        dispatched += requests[i].dispatched > requests[i].released;
    return dispatched;
}

/* The request dispatched longest ago that was not finished yet, or NULL. */
static inline struct request *oldest_dispatched(struct request *requests, unsigned count)
{
    struct request *oldest = NULL;

    for (unsigned i = 0; i < count; i++) {
        if (requests[i].dispatched > requests[i].released &&
            requests[i].exchange.state == EXCHANGE_DISPATCHED &&
            (oldest == NULL || requests[i].order < oldest->order))
            oldest = &requests[i];
    }
    return oldest;
}

/* Finishes whatever is dispatched until nothing is left. */
static inline void finish_all(struct request *requests, unsigned count, struct world *world)
{
    struct request *request;

    while ((request = oldest_dispatched(requests, count)) != NULL) {
        finish(request, OUTCOME_ANSWERED);
        settle_all(world);
    }
}

/* After everything has ended: nothing queued, nothing outstanding, in any counter. */
static inline void assert_pool_at_rest(const struct pool *pool)
{
    struct lane *lane;
    struct server *server;
    struct flow_class *class;

    assert_int_equal(pool->outstanding, 0);
    assert_int_equal(pool->outstanding_cost, 0);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        assert_int_equal(sched_queued(lane->sched), 0);
        assert_int_equal(sched_outstanding(lane->sched), 0);
        TAILQ_FOREACH(server, &lane->servers, link)
        {
            assert_int_equal(server->outstanding, 0);
            assert_int_equal(server->outstanding_cost, 0);
        }
    }
    TAILQ_FOREACH(class, &pool->classes, link)
    {
        assert_int_equal(class->queued, 0);
        assert_int_equal(class->outstanding, 0);
    }
}

#endif
