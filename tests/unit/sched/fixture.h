/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h: a scheduler with a few flows and a pocketful of items, for the unit tests of sched/.
 *
 * Items are numbered in the order in which they are enqueued, over all flows. The fixture's
 * destroy checks that the counters of the scheduler are the sums over its flows.
 */
#ifndef SPILLWAY_TESTS_UNIT_SCHED_FIXTURE_H
#define SPILLWAY_TESTS_UNIT_SCHED_FIXTURE_H

#include "sched/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define FIXTURE_FLOWS 8
#define FIXTURE_ITEMS 65536

/* One unit of cost at weight 1, in virtual time. */
#define FIXTURE_UNIT (UINT64_C(1) << 20)

struct fixture {
    struct sched *s;
    struct sched_flow flows[FIXTURE_FLOWS];
    struct sched_terms terms[FIXTURE_FLOWS];
    struct sched_item *items;
    uint64_t now_ns; /* passed in every call */
    int flow_count;
    int used;
};

/* `weights` ends with 0. */
static inline struct fixture *fixture_create_with(const struct sched_params *params,
                                                  const uint32_t *weights)
{
    struct fixture *fx = test_calloc(1, sizeof(*fx));

    fx->s = sched_create(params);
    assert_non_null(fx->s);
    fx->items = test_calloc(FIXTURE_ITEMS, sizeof(*fx->items));
    for (int i = 0; i < FIXTURE_ITEMS; i++)
        sched_item_init(&fx->items[i]);
    for (; weights[fx->flow_count] != 0; fx->flow_count++) {
        assert_int_equal(sched_flow_init(&fx->flows[fx->flow_count], weights[fx->flow_count]), 0);
        assert_int_equal(sched_flow_attach(fx->s, &fx->flows[fx->flow_count]), 0);
    }
    return fx;
}

static inline struct fixture *fixture_create(enum sched_algorithm algorithm, uint64_t depth,
                                             const uint32_t *weights)
{
    const struct sched_params params = {.algorithm = algorithm, .depth = depth};
    return fixture_create_with(&params, weights);
}

static inline void fixture_promise(struct fixture *fx, int flow, struct sched_terms terms)
{
    fx->terms[flow] = terms;
    assert_int_equal(sched_flow_set_terms(&fx->flows[flow], &fx->terms[flow]), 0);
}

static inline void fixture_destroy(struct fixture *fx)
{
    uint64_t queued = 0;
    uint64_t outstanding = 0;
    uint64_t queued_cost = 0;
    uint64_t outstanding_cost = 0;

    for (int i = 0; i < fx->flow_count; i++) {
        queued += fx->flows[i].queued;
        outstanding += fx->flows[i].outstanding;
        queued_cost += fx->flows[i].queued_cost;
        outstanding_cost += fx->flows[i].outstanding_cost;
    }
    assert_int_equal(sched_queued(fx->s), queued);
    assert_int_equal(sched_outstanding(fx->s), outstanding);
    assert_int_equal(sched_queued_cost(fx->s), queued_cost);
    assert_int_equal(sched_outstanding_cost(fx->s), outstanding_cost);
    sched_destroy(fx->s);
    test_free(fx->items);
    test_free(fx);
}

static inline enum sched_verdict fixture_try(struct fixture *fx, int flow, uint64_t cost)
{
    assert_true(fx->used < FIXTURE_ITEMS);
    enum sched_verdict verdict =
        sched_enqueue(fx->s, &fx->flows[flow], &fx->items[fx->used], cost, fx->now_ns);
    fx->used += verdict == SCHED_OK;
    return verdict;
}

/* Queues `count` requests of one cost. */
static inline void fixture_add(struct fixture *fx, int flow, int count, uint64_t cost)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(fixture_try(fx, flow, cost), SCHED_OK);
}

static inline int fixture_number(const struct fixture *fx, const struct sched_item *item)
{
    return item == NULL ? -1 : (int)(item - fx->items);
}

static inline int fixture_flow(const struct fixture *fx, const struct sched_item *item)
{
    return item == NULL ? -1 : (int)(item->flow - fx->flows);
}

/* The number of the item dispatched, -1 for none. */
static inline int fixture_send(struct fixture *fx)
{
    return fixture_number(fx, sched_dispatch(fx->s, fx->now_ns));
}

static inline void fixture_finish(struct fixture *fx, int number)
{
    sched_complete(fx->s, &fx->items[number], fx->items[number].cost, fx->now_ns);
}

/* Dispatches and completes `count` requests one after the other, counting them per flow. */
static inline void fixture_serve(struct fixture *fx, int count, int *per_flow)
{
    for (int i = 0; i < count; i++) {
        struct sched_item *item = sched_dispatch(fx->s, fx->now_ns);
        assert_non_null(item);
        per_flow[fixture_flow(fx, item)]++;
        sched_complete(fx->s, item, item->cost, fx->now_ns);
    }
}

/* Asserts that the next requests served one after the other are these; the list ends with -1. */
static inline void fixture_expect(struct fixture *fx, const int *numbers)
{
    for (int i = 0; numbers[i] >= 0; i++) {
        assert_int_equal(fixture_send(fx), numbers[i]);
        fixture_finish(fx, numbers[i]);
    }
}

#endif
