/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_victim.c: whom sched_victim names, against a model of the share tags of
 * sched/engine/backlogs.h in 128-bit numbers that do not wrap.
 *
 * Random lives under every algorithm: requests come, are dispatched, put back, cancelled, finished;
 * weights, the algorithm and the watch change; flows leave and come back. After every step, for a
 * random flow and cost: the one named is the newest of a flow with the latest tag, never of one
 * that is not beyond the asking flow's own; and sched_within_share is what its formula says.
 * Weights are powers of two, so that the fixed point of sched/ is exact; some lives are long,
 * and their costs so large that tags left behind are lifted.
 */
#include "tests/property/sched/property.h"

#include <string.h>

#define FLOWS  8
#define ITEMS  200
#define STEPS  3000
#define LONG   20000
#define CREDIT 64
#define BURST  32

struct model_flow {
    struct sched_flow flow; /* first */
    exact_t tag;            /* in 2^-20 */
    struct sched_item *queue[ITEMS];
    unsigned queued;
    bool attached;
};

struct life {
    uint64_t seed;
    struct property_random random;
    struct sched *s;
    bool watching;
    bool by_cost;
    exact_t clock;
    uint64_t now_ns;
    uint64_t largest_cost;
    unsigned largest_weight_shift;
    struct model_flow flows[FLOWS];
    struct sched_item items[ITEMS];
    struct sched_item *out[ITEMS];
    unsigned out_count;
};

static struct model_flow *model_of(struct sched_flow *flow)
{
    return (struct model_flow *)(void *)flow;
}

static exact_t in_time(const struct model_flow *f, exact_t cost)
{
    return cost * (exact_t)ULPS_PER_UNIT / f->flow.weight;
}

static exact_t later(exact_t a, exact_t b)
{
    return a > b ? a : b;
}

static exact_t queued_cost(const struct model_flow *f)
{
    exact_t sum = 0;

    for (unsigned i = 0; i < f->queued; i++)
        sum += (exact_t)f->queue[i]->cost;
    return sum;
}

/* With one of `cost` more; 0: as it is. */
static exact_t newest_tag(const struct life *life, const struct model_flow *f, uint64_t cost)
{
    exact_t before = queued_cost(f);

    if (f->queued == 0)
        return later(life->clock - in_time(f, (exact_t)cost * CREDIT), f->tag);
    if (cost == 0)
        before -= before / f->queued;
    return f->tag + in_time(f, before);
}

static void check_victim(struct life *life, struct model_flow *asking, uint64_t cost)
{
    struct sched_item *named = sched_victim(life->s, &asking->flow, cost);
    exact_t latest = 0;
    bool any = false;

    for (unsigned i = 0; i < FLOWS; i++) {
        struct model_flow *f = &life->flows[i];
        if (!f->attached || f->queued == 0)
            continue;
        latest = any ? later(latest, newest_tag(life, f, 0)) : newest_tag(life, f, 0);
        any = true;
    }
    bool expected = life->watching && any && latest > newest_tag(life, asking, cost);
    if (named == NULL) {
        /* FIFO looks so far and no further. */
        bool far =
            sched_algorithm_of(life->s) == SCHED_ALGORITHM_FIFO && sched_queued(life->s) > 64;
        property_check(life->seed, !expected || far);
        return;
    }
    struct model_flow *f = model_of(named->flow);
    property_check(life->seed, expected && f != asking);
    property_check(life->seed, newest_tag(life, f, 0) == latest);
    property_check(life->seed, named == f->queue[f->queued - 1]);
}

static void check_share(struct life *life, const struct model_flow *f, uint64_t slots)
{
    exact_t weights = 0;
    exact_t mean = f->queued > 0 ? queued_cost(f) / f->queued : 1;
    exact_t burst = BURST;
    exact_t has = life->by_cost ? (exact_t)(f->flow.queued_cost + f->flow.outstanding_cost)
                                : (exact_t)(f->flow.queued + f->flow.outstanding);
    exact_t queue = life->by_cost ? sched_queued_cost(life->s) : sched_queued(life->s);

    for (unsigned i = 0; i < FLOWS; i++) {
        const struct sched_flow *one = &life->flows[i].flow;
        if (life->flows[i].attached && one->queued + one->outstanding > 0)
            weights += one->weight;
    }
    if (life->by_cost && sched_queued(life->s) > 0)
        burst *= (exact_t)(sched_queued_cost(life->s) / sched_queued(life->s));
    bool credit = newest_tag(life, f, 0) + in_time(f, mean * CREDIT) / 2 < life->clock;
    bool within =
        has * weights <= (exact_t)slots * f->flow.weight ||
        (life->watching && weights > f->flow.weight && queue <= later(slots, burst) && credit);
    property_check(life->seed, sched_within_share(life->s, &f->flow, slots) == within);
}

/* ------------------------------------------------------------------ steps */

static struct model_flow *some_flow(struct life *life)
{
    return &life->flows[property_between(&life->random, 0, FLOWS - 1)];
}

static void attach(struct life *life, struct model_flow *f)
{
    memset(&f->flow, 0xa5, sizeof(f->flow));
    assert_int_equal(sched_flow_init(&f->flow, UINT32_C(1) << property_between(
                                                   &life->random, 0, life->largest_weight_shift)),
                     0);
    if (property_chance(&life->random, 50))
        sched_flow_pin(&f->flow);
    assert_int_equal(sched_flow_attach(life->s, &f->flow), 0);
    f->attached = true;
    f->tag = life->clock;
}

static void come(struct life *life)
{
    struct sched_item *item = &life->items[property_between(&life->random, 0, ITEMS - 1)];
    struct model_flow *f = some_flow(life);
    uint64_t cost = property_between(&life->random, 1, life->largest_cost);

    if (item->state != SCHED_ITEM_IDLE)
        return;
    if (!f->attached)
        attach(life, f);
    assert_int_equal(sched_enqueue(life->s, &f->flow, item, cost, life->now_ns), SCHED_OK);
    if (f->queued == 0 && life->watching)
        f->tag = later(life->clock - in_time(f, (exact_t)cost * CREDIT), f->tag);
    f->queue[f->queued++] = item;
}

static void leave_queue(struct model_flow *f, unsigned place)
{
    f->queued--;
    memmove(&f->queue[place], &f->queue[place + 1], (f->queued - place) * sizeof(f->queue[0]));
}

static void dispatch(struct life *life)
{
    struct sched_item *item = sched_dispatch(life->s, life->now_ns);

    if (item == NULL)
        return;
    struct model_flow *f = model_of(item->flow);
    property_check(life->seed, f->queue[0] == item);
    leave_queue(f, 0);
    if (life->watching) {
        life->clock = later(life->clock, f->tag);
        f->tag += in_time(f, (exact_t)item->cost);
    }
    life->out[life->out_count++] = item;
}

static struct sched_item *take_out(struct life *life)
{
    unsigned which = (unsigned)property_between(&life->random, 0, life->out_count - 1);
    struct sched_item *item = life->out[which];

    life->out[which] = life->out[--life->out_count];
    return item;
}

static void finish(struct life *life)
{
    if (life->out_count > 0)
        sched_complete(life->s, take_out(life),
                       property_between(&life->random, 0, life->largest_cost), life->now_ns);
}

static void put_back(struct life *life)
{
    if (life->out_count == 0)
        return;
    struct sched_item *item = take_out(life);
    struct model_flow *f = model_of(item->flow);
    sched_requeue_front(life->s, item);
    memmove(&f->queue[1], &f->queue[0], f->queued * sizeof(f->queue[0]));
    f->queue[0] = item;
    f->queued++;
    if (life->watching)
        f->tag -= in_time(f, (exact_t)item->cost);
}

static void cancel(struct life *life)
{
    struct model_flow *f = some_flow(life);

    if (f->queued == 0)
        return;
    unsigned place = (unsigned)property_between(&life->random, 0, f->queued - 1);
    sched_cancel(life->s, f->queue[place], life->now_ns);
    leave_queue(f, place);
}

static void watch(struct life *life, bool on)
{
    assert_int_equal(sched_watch_backlogs(life->s, on), 0);
    for (unsigned i = 0; on && !life->watching && i < FLOWS; i++)
        life->flows[i].tag = life->clock;
    life->watching = on;
}

static void change(struct life *life)
{
    struct model_flow *f = some_flow(life);

    switch (property_between(&life->random, 0, 3)) {
    case 0:
        if (f->attached)
            sched_flow_set_weight(
                life->s, &f->flow,
                UINT32_C(1) << property_between(&life->random, 0, life->largest_weight_shift));
        break;
    case 1:
        sched_set_algorithm(life->s, property_algorithm(&life->random));
        break;
    case 2:
        if (f->attached && sched_flow_detach(life->s, &f->flow) == 0)
            f->attached = false;
        break;
    default:
        watch(life, property_chance(&life->random, 80));
        break;
    }
}

static void step(struct life *life)
{
    uint64_t what = property_between(&life->random, 0, 99);

    life->now_ns += property_between(&life->random, 0, 1000000);
    if (what < 45)
        come(life);
    else if (what < 70)
        dispatch(life);
    else if (what < 85)
        finish(life);
    else if (what < 89)
        put_back(life);
    else if (what < 96)
        cancel(life);
    else
        change(life);
    struct model_flow *asking = some_flow(life);
    if (!asking->attached)
        return;
    check_victim(life, asking,
                 property_chance(&life->random, 50)
                     ? 0
                     : property_between(&life->random, 1, life->largest_cost));
    check_share(life, asking, property_between(&life->random, 1, 20));
}

static void a_life(uint64_t seed)
{
    static const uint64_t largest_costs[] = {1, 50, UINT64_C(1) << 33};
    struct life *life = test_calloc(1, sizeof(*life));

    life->seed = seed;
    life->random.state = seed;
    bool is_long = property_chance(&life->random, 20);
    life->largest_cost = largest_costs[is_long ? 2 : property_between(&life->random, 0, 1)];
    life->largest_weight_shift = is_long ? 1 : 4;
    life->by_cost = property_chance(&life->random, 30);
    const struct sched_params params = {
        .algorithm = property_algorithm(&life->random),
        .depth_unit = life->by_cost ? SCHED_DEPTH_COST : SCHED_DEPTH_REQUESTS,
        .depth = property_between(&life->random, 1, 20) * (life->by_cost ? life->largest_cost : 1),
        .virtual_start = property_virtual_start(&life->random)};
    life->s = sched_create(&params);
    for (unsigned i = 0; i < ITEMS; i++)
        sched_item_init(&life->items[i]);
    watch(life, true);
    for (unsigned i = 0; i < (is_long ? LONG : STEPS); i++)
        step(life);
    sched_destroy(life->s);
    test_free(life);
}

static void the_flow_that_exceeds_its_share_the_most_is_named(void **state)
{
    (void)state;
    property_run("victim", 150, a_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_flow_that_exceeds_its_share_the_most_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
