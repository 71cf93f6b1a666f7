/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_oracle.c: every call of sched.h in random order, side by side with the oracle.
 *
 * After each call: same item dispatched, same verdict, same counters, same flows idle and, with
 * binary weights, the same virtual time and tags to the last bit. The oracle never retires a flow
 * and never wraps, so agreement also shows that retiring, detaching and attaching an idle flow
 * again, and tags that wrap, change nothing.
 */
#include "tests/property/sched/oracle.h"

struct pair {
    uint64_t seed;
    struct property_random random;
    struct oracle oracle;
    struct sched *s;
    struct sched_flow flows[ORACLE_FLOWS];
    struct sched_item items[ORACLE_ITEMS];
    uint64_t virtual_start;
    uint64_t last_vtime;
    uint64_t steps;
    bool corrections;
    bool switching;
};

static uint64_t draw(struct pair *p, uint64_t low, uint64_t high)
{
    return property_between(&p->random, low, high);
}

/* A random item in that state, or -1. */
static int draw_item(struct pair *p, enum sched_item_state state)
{
    int found = -1;
    uint64_t seen = 0;

    for (int i = 0; i < ORACLE_ITEMS; i++)
        if (p->oracle.items[i].state == state && draw(p, 0, seen++) == 0)
            found = i;
    return found;
}

static void do_enqueue(struct pair *p)
{
    int number = draw_item(p, SCHED_ITEM_IDLE);
    /* Some flows come often, some seldom. */
    int flow = (int)draw(p, 0, draw(p, 0, ORACLE_FLOWS - 1));
    uint64_t cost = property_cost(&p->random, &p->oracle.arithmetic);

    if (number < 0)
        return;
    enum sched_verdict expected = oracle_enqueue(&p->oracle, flow, number, cost);
    property_check(p->seed,
                   sched_enqueue(p->s, &p->flows[flow], &p->items[number], cost, 0) == expected);
}

static void check_choice(const struct pair *p, int expected, int number)
{
    const struct oracle *o = &p->oracle;
    const struct oracle_flow *f = &o->flows[o->items[number].flow];

    property_check(p->seed, f->queued > 0 && f->queue[0] == number);
    property_check(p->seed, oracle_room(o, o->items[number].cost));
    if (number == expected)
        return;
    int best = oracle_best_flow(o);
    property_check(p->seed, o->algorithm != SCHED_ALGORITHM_FIFO);
    property_check(p->seed, property_near(&o->arithmetic, f->tag, o->flows[best].tag, p->steps));
}

/* After every step of v: a dispatch moves it by less than half the range of the tags. */
static void check_vtime(struct pair *p)
{
    uint64_t vtime = sched_virtual_time(p->s);

    property_check(p->seed, (int64_t)(vtime - p->last_vtime) >= 0);
    if (p->oracle.arithmetic.binary)
        property_check(p->seed, vtime == property_fixed(p->virtual_start, p->oracle.v));
    p->last_vtime = vtime;
}

static bool do_dispatch(struct pair *p)
{
    int expected = oracle_best(&p->oracle);
    const struct sched_item *item = sched_dispatch(p->s, 0);

    if (item == NULL) {
        if (p->oracle.arithmetic.binary || p->oracle.unit == SCHED_DEPTH_REQUESTS)
            property_check(p->seed, expected < 0);
        return false;
    }
    int number = (int)(item - p->items);
    check_choice(p, expected, number);
    oracle_send(&p->oracle, number);
    check_vtime(p);
    if (p->oracle.arithmetic.binary)
        property_check(p->seed, item->start == property_fixed(p->virtual_start,
                                                              p->oracle.items[number].start));
    return true;
}

static void do_complete(struct pair *p)
{
    int number = draw_item(p, SCHED_ITEM_OUTSTANDING);

    if (number < 0)
        return;
    uint64_t true_cost = p->oracle.items[number].cost;
    if (p->corrections && property_chance(&p->random, 50))
        true_cost = draw(p, 0, 2 * p->oracle.arithmetic.largest_cost);
    oracle_complete(&p->oracle, number, true_cost);
    sched_complete(p->s, &p->items[number], true_cost, 0);
}

static void do_cancel(struct pair *p)
{
    int number = draw_item(p, SCHED_ITEM_QUEUED);

    if (number < 0)
        return;
    oracle_cancel(&p->oracle, number);
    sched_cancel(p->s, &p->items[number], 0);
}

static void do_requeue(struct pair *p)
{
    int number = draw_item(p, SCHED_ITEM_OUTSTANDING);

    if (number < 0)
        return;
    /* Tags so old have been lifted (engine/vtime.h): sent back, it would start later than exactly.
     */
    if (p->oracle.v - p->oracle.items[number].start > (exact_t)1 << 58)
        return;
    oracle_requeue(&p->oracle, number);
    sched_requeue_front(p->s, &p->items[number]);
}

static void do_weight(struct pair *p)
{
    int flow = (int)draw(p, 0, ORACLE_FLOWS - 1);
    uint32_t weight = property_weight(&p->random, &p->oracle.arithmetic);

    p->oracle.flows[flow].weight = weight;
    property_check(p->seed, sched_flow_set_weight(p->s, &p->flows[flow], weight) == 0);
}

static void do_depth(struct pair *p)
{
    p->oracle.unit = (enum sched_depth_unit)draw(p, 0, 1);
    p->oracle.depth = draw(p, 0, 10);
    if (p->oracle.unit == SCHED_DEPTH_COST)
        p->oracle.depth *= p->oracle.arithmetic.largest_cost / 2;
    sched_set_depth(p->s, p->oracle.depth);
    sched_set_depth_unit(p->s, p->oracle.unit);
}

static void do_limits(struct pair *p)
{
    p->oracle.flow_limit = draw(p, 0, 20);
    p->oracle.total_limit = draw(p, 0, 60);
    sched_set_limits(p->s, p->oracle.flow_limit, p->oracle.total_limit);
}

static void do_switch(struct pair *p)
{
    enum sched_algorithm algorithm = (enum sched_algorithm)draw(p, 0, ORACLE_ALGORITHMS - 1);

    if (!p->switching)
        return;
    oracle_set_algorithm(&p->oracle, algorithm);
    property_check(p->seed, sched_set_algorithm(p->s, algorithm) == 0);
}

/* Flows that may be forgotten are, now and then: detached, wiped and attached as new. */
static void do_retire(struct pair *p)
{
    struct sched_flow *flow = sched_retire_next(p->s);

    if (flow == NULL)
        return;
    int number = (int)(flow - p->flows);
    property_check(p->seed, sched_flow_idle(p->s, flow));
    property_check(p->seed, !p->oracle.arithmetic.binary || oracle_idle(&p->oracle, number));
    if (property_chance(&p->random, 50)) {
        property_check(p->seed, sched_flow_detach(p->s, flow) == 0);
        memset(flow, 0xa5, sizeof(*flow));
        property_check(p->seed, sched_flow_init(flow, p->oracle.flows[number].weight) == 0);
        property_check(p->seed, sched_flow_attach(p->s, flow) == 0);
    }
}

static void do_something(struct pair *p)
{
    uint64_t what = draw(p, 0, 999);

    if (what < 400)
        do_enqueue(p);
    else if (what < 680)
        for (uint64_t most = draw(p, 1, 12); most > 0 && do_dispatch(p); most--)
            ;
    else if (what < 890)
        do_complete(p);
    else if (what < 920)
        do_cancel(p);
    else if (what < 940)
        do_requeue(p);
    else if (what < 950)
        do_weight(p);
    else if (what < 960)
        do_depth(p);
    else if (what < 963)
        do_limits(p);
    else if (what < 970)
        do_switch(p);
    else
        do_retire(p);
}

static void check_same(struct pair *p)
{
    const struct oracle *o = &p->oracle;

    property_check(p->seed, sched_queued(p->s) == (uint64_t)o->queued);
    property_check(p->seed, sched_outstanding(p->s) == (uint64_t)o->outstanding);
    property_check(p->seed, sched_outstanding_cost(p->s) == o->outstanding_cost);
    check_vtime(p);
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        property_check(p->seed, p->flows[f].queued == (uint64_t)o->flows[f].queued);
        property_check(p->seed, p->flows[f].outstanding == (uint64_t)o->flows[f].outstanding);
        if (o->arithmetic.binary)
            property_check(p->seed, sched_flow_idle(p->s, &p->flows[f]) == oracle_idle(o, f));
    }
    for (int i = 0; i < ORACLE_ITEMS; i++)
        property_check(p->seed, p->items[i].state == (uint8_t)o->items[i].state);
}

static void finish(struct pair *p)
{
    p->oracle.depth = 1000;
    p->oracle.unit = SCHED_DEPTH_REQUESTS;
    sched_set_depth(p->s, 1000);
    sched_set_depth_unit(p->s, SCHED_DEPTH_REQUESTS);
    while (p->oracle.queued > 0 || p->oracle.outstanding > 0) {
        while (do_dispatch(p))
            ;
        do_complete(p);
        check_same(p);
    }
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        property_check(p->seed, sched_flow_idle(p->s, &p->flows[f]));
        property_check(p->seed, sched_flow_detach(p->s, &p->flows[f]) == 0);
    }
}

static void case_of_seed(uint64_t seed)
{
    struct pair *p = test_calloc(1, sizeof(*p));

    p->seed = seed;
    p->random.state = seed;
    p->corrections = property_chance(&p->random, 50);
    p->switching = property_chance(&p->random, 50);
    /* Corrections and v of Min-SFQ(D) are held within a window that the largest costs reach. */
    const bool huge = !p->corrections && !p->switching;
    p->oracle.algorithm = (enum sched_algorithm)draw(p, 0, huge ? 2 : ORACLE_ALGORITHMS - 1);
    p->oracle.arithmetic = property_arithmetic_draw(&p->random, huge);
    p->oracle.depth = draw(p, 1, 12);
    p->virtual_start = property_virtual_start(&p->random);
    p->last_vtime = p->virtual_start;
    const struct sched_params params = {.algorithm = p->oracle.algorithm,
                                        .depth_unit = p->oracle.unit,
                                        .depth = p->oracle.depth,
                                        .virtual_start = p->virtual_start};
    p->s = sched_create(&params);
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        p->oracle.flows[f].weight = property_weight(&p->random, &p->oracle.arithmetic);
        assert_int_equal(sched_flow_init(&p->flows[f], p->oracle.flows[f].weight), 0);
        assert_int_equal(sched_flow_attach(p->s, &p->flows[f]), 0);
    }
    for (int i = 0; i < ORACLE_ITEMS; i++)
        sched_item_init(&p->items[i]);
    for (p->steps = 0; p->steps < 3000; p->steps++) {
        do_something(p);
        check_same(p);
    }
    finish(p);
    sched_destroy(p->s);
    test_free(p);
}

static void test_agrees_with_the_oracle(void **state)
{
    (void)state;
    property_run("oracle", 100, case_of_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
