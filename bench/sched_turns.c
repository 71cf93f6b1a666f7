/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_turns.c: builds a scheduler's steady state and runs the turns of sched_turns.h.
 *
 * The loops are written once and compiled twice, for the library and for the bare list, by a
 * constant argument: what decides between the two costs nothing inside them.
 */
#include "bench/sched_turns.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS      1000
#define WEIGHT_LIMIT 100
#define COST_LIMIT   16
#define ALWAYS       static inline __attribute__((always_inline))

static int ring_init(struct turns_ring *ring, uint64_t places)
{
    uint64_t size = 1;

    while (size < places)
        size *= 2;
    ring->mask = size - 1;
    ring->places = calloc(size, sizeof(*ring->places));
    return ring->places != NULL ? 0 : -ENOMEM;
}

ALWAYS uint64_t ring_count(const struct turns_ring *ring)
{
    return ring->tail - ring->head;
}

ALWAYS void ring_push(struct turns_ring *ring, void *thing)
{
    ring->places[ring->tail++ & ring->mask] = thing;
}

ALWAYS void *ring_pop(struct turns_ring *ring)
{
    return ring->places[ring->head++ & ring->mask];
}

/* ---- the three operations, of the library or of the bare list ------------------------------ */

ALWAYS bool turn_enqueue(struct turns *t, struct sched_flow *flow, struct sched_item *item,
                         bool bare)
{
    if (!bare)
        return sched_enqueue(t->sched, flow, item, item->cost, t->now_ns) == SCHED_OK;
    item->flow = flow;
    item->next = NULL;
    if (t->list.head == NULL)
        t->list.head = item;
    else
        t->list.tail->next = item;
    t->list.tail = item;
    return true;
}

ALWAYS struct sched_item *turn_dispatch(struct turns *t, bool bare)
{
    if (!bare)
        return sched_dispatch(t->sched, t->now_ns);
    struct sched_item *item = t->list.head;
    if (item != NULL)
        t->list.head = item->next;
    return item;
}

ALWAYS void turn_complete(struct turns *t, struct sched_item *item, bool bare)
{
    if (!bare)
        sched_complete(t->sched, item, item->cost, t->now_ns);
}

/* ---- the loops ------------------------------------------------------------------------------ */

ALWAYS uint64_t run_steady(struct turns *t, uint64_t count, bool bare)
{
    for (uint64_t i = 0; i < count; i++) {
        t->now_ns += TURN_NS;
        struct sched_item *done = ring_pop(&t->outstanding);
        turn_complete(t, done, bare);
        struct sched_item *next = turn_dispatch(t, bare);
        if (next == NULL || !turn_enqueue(t, next->flow, done, bare))
            return 0;
        ring_push(&t->outstanding, next);
    }
    return count;
}

ALWAYS uint64_t run_churn(struct turns *t, uint64_t count, bool bare)
{
    for (uint64_t i = 0; i < count; i++) {
        t->now_ns += TURN_NS;
        if (!turn_enqueue(t, ring_pop(&t->idle), t->spare, bare))
            return 0;
        struct sched_item *next = turn_dispatch(t, bare);
        if (next == NULL)
            return 0;
        ring_push(&t->outstanding, next);
        struct sched_item *done = ring_pop(&t->outstanding);
        ring_push(&t->idle, done->flow);
        turn_complete(t, done, bare);
        t->spare = done;
    }
    return count;
}

/* One wave; the order in which flows are retired is the order of the next wave. */
static bool run_wave(struct turns *t)
{
    const uint64_t flows = t->plan.flows;
    struct sched_flow *flow;

    for (uint64_t i = 0; i < flows; i++) {
        flow = ring_pop(&t->idle);
        (void)sched_flow_init(flow, 1);
        if (sched_flow_attach(t->sched, flow) != 0 || !turn_enqueue(t, flow, &t->items[i], false))
            return false;
    }
    for (uint64_t served = 0; served < flows; served++) {
        t->now_ns += TURN_NS;
        struct sched_item *item = turn_dispatch(t, false);
        if (item == NULL)
            return false;
        turn_complete(t, item, false);
    }
    while ((flow = sched_retire_next(t->sched)) != NULL) {
        if (sched_flow_detach(t->sched, flow) != 0)
            return false;
        ring_push(&t->idle, flow);
    }
    return ring_count(&t->idle) == flows;
}

static uint64_t run_life(struct turns *t, uint64_t count)
{
    uint64_t turns = 0;

    while (turns < count) {
        if (!run_wave(t))
            return 0;
        turns += t->plan.flows;
    }
    return turns;
}

uint64_t turns_run(struct turns *turns, uint64_t count)
{
    if (turns->plan.mode == TURNS_LIFE)
        return run_life(turns, count);
    if (turns->plan.mode == TURNS_CHURN)
        return turns->plan.bare_list ? run_churn(turns, count, true)
                                     : run_churn(turns, count, false);
    return turns->plan.bare_list ? run_steady(turns, count, true) : run_steady(turns, count, false);
}

/* ---- building the steady state -------------------------------------------------------------- */

static size_t heap_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void shuffle(struct rng *rng, uint64_t *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = i;
    for (uint64_t i = count; i > 1; i--) {
        uint64_t other = rng_below(rng, i);
        uint64_t moved = numbers[i - 1];

        numbers[i - 1] = numbers[other];
        numbers[other] = moved;
    }
}

static int attach_flows(struct turns *t, struct rng *rng, const uint64_t *order)
{
    const size_t before = heap_in_use();

    for (uint64_t i = 0; i < t->plan.flows; i++) {
        struct sched_flow *flow = &t->flows[order[i]];
        uint32_t weight = t->plan.random_weights ? 1 + (uint32_t)rng_below(rng, WEIGHT_LIMIT) : 1;
        int error = sched_flow_init(flow, weight);

        if (error == 0 && t->plan.pinned)
            sched_flow_pin(flow);
        if (error == 0 && t->sched != NULL && t->plan.mode != TURNS_LIFE)
            error = sched_flow_attach(t->sched, flow);
        if (error != 0)
            return error;
    }
    t->heap_bytes = heap_in_use() - before;
    return 0;
}

static bool enqueue_one(struct turns *t, struct sched_flow *flow, struct sched_item *item)
{
    return t->plan.bare_list ? turn_enqueue(t, flow, item, true)
                             : turn_enqueue(t, flow, item, false);
}

static bool dispatch_one(struct turns *t)
{
    struct sched_item *item = t->plan.bare_list ? turn_dispatch(t, true) : turn_dispatch(t, false);

    if (item != NULL)
        ring_push(&t->outstanding, item);
    return item != NULL;
}

/* `outstanding` requests beyond the queued ones are dispatched, each replaced at its own flow. */
static int fill_steady(struct turns *t, const uint64_t *flow_order, const uint64_t *item_order)
{
    const uint64_t flows = t->plan.flows;
    uint64_t item = 0;

    for (uint64_t round = 0; round < t->plan.queued; round++)
        for (uint64_t i = 0; i < flows; i++)
            if (!enqueue_one(t, &t->flows[flow_order[i]], &t->items[item_order[item++]]))
                return -EIO;
    while (ring_count(&t->outstanding) < t->plan.depth && dispatch_one(t)) {
        const struct sched_item *newest =
            t->outstanding.places[(t->outstanding.tail - 1) & t->outstanding.mask];
        if (!enqueue_one(t, newest->flow, &t->items[item_order[item++]]))
            return -EIO;
    }
    return ring_count(&t->outstanding) > 0 ? 0 : -EIO;
}

/* Between turns half of the flows wait and up to depth - 1, at most a quarter, are outstanding. */
static int fill_churn(struct turns *t, const uint64_t *flow_order, const uint64_t *item_order)
{
    const uint64_t flows = t->plan.flows;
    const uint64_t waiting = flows / 2;
    const uint64_t sent = t->plan.depth - 1 < flows / 4 ? t->plan.depth - 1 : flows / 4;
    uint64_t used = 0;

    for (; used < waiting + sent; used++)
        if (!enqueue_one(t, &t->flows[flow_order[used]], &t->items[item_order[used]]))
            return -EIO;
    while (ring_count(&t->outstanding) < sent)
        if (!dispatch_one(t))
            return -EIO;
    for (uint64_t i = used; i < flows; i++)
        ring_push(&t->idle, &t->flows[flow_order[i]]);
    t->spare = &t->items[item_order[used]];
    return 0;
}

static int fill(struct turns *t, struct rng *rng)
{
    const uint64_t flows = t->plan.flows;
    const uint64_t items = flows * t->plan.queued + t->plan.depth;
    uint64_t *flow_order = calloc(flows, sizeof(*flow_order));
    uint64_t *item_order = calloc(items, sizeof(*item_order));
    int error = -ENOMEM;

    if (flow_order == NULL || item_order == NULL)
        goto out;
    shuffle(rng, flow_order, flows);
    shuffle(rng, item_order, items);
    for (uint64_t i = 0; i < items; i++) {
        sched_item_init(&t->items[i]);
        t->items[i].cost = t->plan.random_costs ? 1 + rng_below(rng, COST_LIMIT) : 1;
    }
    error = attach_flows(t, rng, flow_order);
    if (error != 0)
        goto out;
    if (t->plan.mode == TURNS_STEADY) {
        error = fill_steady(t, flow_order, item_order);
    } else if (t->plan.mode == TURNS_CHURN) {
        error = fill_churn(t, flow_order, item_order);
    } else {
        for (uint64_t i = 0; i < flows; i++)
            ring_push(&t->idle, &t->flows[flow_order[i]]);
    }
out:
    free(flow_order);
    free(item_order);
    return error;
}

int turns_init(struct turns *turns, const struct turns_plan *plan)
{
    *turns = (struct turns){.plan = *plan};
    if (plan->mode != TURNS_STEADY)
        turns->plan.queued = 1;
    if (plan->bare_list && plan->mode == TURNS_LIFE)
        return -ENOTSUP;
    if (!plan->bare_list) {
        const struct sched_params params = {.algorithm = plan->algorithm, .depth = plan->depth};

        turns->sched = sched_create(&params);
        if (turns->sched == NULL)
            return -errno;
        /* The serial algorithm has one outstanding request, whatever the depth. */
        if (plan->algorithm == SCHED_ALGORITHM_SFQ)
            turns->plan.depth = 1;
    }
    turns->flows = calloc(plan->flows, sizeof(*turns->flows));
    turns->items = calloc(plan->flows * turns->plan.queued + plan->depth, sizeof(*turns->items));
    if (turns->flows == NULL || turns->items == NULL ||
        ring_init(&turns->outstanding, plan->depth + 1) != 0 ||
        ring_init(&turns->idle, plan->flows) != 0)
        return -ENOMEM;

    struct rng rng;
    rng_init(&rng, plan->seed, 0);
    return fill(turns, &rng);
}

void turns_fini(struct turns *turns)
{
    sched_destroy(turns->sched);
    free(turns->flows);
    free(turns->items);
    free(turns->outstanding.places);
    free(turns->idle.places);
    *turns = (struct turns){0};
}
