/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_retire.c: with many flows, sched_retire_next names exactly those that may be forgotten.
 *
 * Thousands of keyed flows come and go under random load. Each time the list is emptied, a scan
 * over all flows must find that every flow that served requests and is idle was named, once, and
 * no other. Half of the flows named are detached, freed in effect, and attached again as new when
 * their key comes back. Under mclock and leaky-bucket reservations and limits, which take time to
 * be as if nothing had been sent, are part of it.
 */
#include "tests/property/sched/property.h"

#include <malloc.h>
#include <string.h>

#define KEYS  5000
#define ITEMS 600

struct crowd {
    uint64_t seed;
    struct property_random random;
    struct property_arithmetic arithmetic;
    struct sched_terms terms;
    uint64_t now_ns;
    struct sched *s;
    struct sched_flow flows[KEYS];
    bool attached[KEYS];
    bool used[KEYS]; /* has had a request since it was attached or last named */
    struct sched_item items[ITEMS];
    struct sched_item *idle[ITEMS];
    int idle_count;
    struct sched_item *sent[ITEMS];
    int sent_count;
};

static void crowd_arrive(struct crowd *c)
{
    /* A few keys are busy, most are seen now and then. */
    int key = (int)property_between(&c->random, 0, property_chance(&c->random, 30) ? 9 : KEYS - 1);

    if (c->idle_count == 0)
        return;
    if (!c->attached[key]) {
        memset(&c->flows[key], 0xa5, sizeof(c->flows[key]));
        assert_int_equal(
            sched_flow_init(&c->flows[key], property_weight(&c->random, &c->arithmetic)), 0);
        if (key % 2 == 0)
            assert_int_equal(sched_flow_set_terms(&c->flows[key], &c->terms), 0);
        assert_int_equal(sched_flow_attach(c->s, &c->flows[key]), 0);
        c->attached[key] = true;
    }
    c->used[key] = true;
    struct sched_item *item = c->idle[--c->idle_count];
    assert_int_equal(sched_enqueue(c->s, &c->flows[key], item,
                                   property_cost(&c->random, &c->arithmetic), c->now_ns),
                     SCHED_OK);
}

static void crowd_finish_one(struct crowd *c)
{
    if (c->sent_count == 0)
        return;
    int which = (int)property_between(&c->random, 0, (uint64_t)c->sent_count - 1);
    struct sched_item *item = c->sent[which];
    c->sent[which] = c->sent[--c->sent_count];
    sched_complete(c->s, item, property_cost(&c->random, &c->arithmetic), c->now_ns);
    c->idle[c->idle_count++] = item;
}

static void crowd_dispatch(struct crowd *c)
{
    for (struct sched_item *item; (item = sched_dispatch(c->s, c->now_ns)) != NULL;)
        c->sent[c->sent_count++] = item;
}

static void crowd_retire(struct crowd *c)
{
    for (struct sched_flow *flow; (flow = sched_retire_next(c->s)) != NULL;) {
        int key = (int)(flow - c->flows);
        property_check(c->seed, c->used[key] && sched_flow_idle(c->s, flow));
        c->used[key] = false;
        if (property_chance(&c->random, 50)) {
            assert_int_equal(sched_flow_detach(c->s, flow), 0);
            c->attached[key] = false;
        }
    }
    for (int key = 0; key < KEYS; key++)
        if (c->attached[key] && c->used[key])
            property_check(c->seed, !sched_flow_idle(c->s, &c->flows[key]));
}

static void case_of_seed(uint64_t seed)
{
    struct crowd *c = test_calloc(1, sizeof(*c));

    c->seed = seed;
    c->random.state = seed;
    c->arithmetic = property_arithmetic_draw(&c->random, false);
    c->terms.reservation_per_s = property_between(&c->random, 1, 50) * c->arithmetic.largest_cost;
    c->terms.limit_per_s = property_between(&c->random, 10, 200) * c->arithmetic.largest_cost;
    c->terms.burst = property_between(&c->random, 0, 4) * c->arithmetic.largest_cost;
    const struct sched_params params = {
        .options.capacity_per_s = property_between(&c->random, 0, 9) * c->arithmetic.largest_cost,
        .algorithm = property_algorithm(&c->random),
        .depth = property_between(&c->random, 1, 200),
        .virtual_start = property_virtual_start(&c->random)};
    c->s = sched_create(&params);
    for (int i = 0; i < ITEMS; i++) {
        sched_item_init(&c->items[i]);
        c->idle[c->idle_count++] = &c->items[i];
    }
    for (int step = 0; step < 20000; step++) {
        if (property_chance(&c->random, 50))
            crowd_arrive(c);
        else
            crowd_finish_one(c);
        c->now_ns += property_chance(&c->random, 20) ? property_between(&c->random, 0, 1000000) : 0;
        crowd_dispatch(c);
        if (step % 500 == 0)
            crowd_retire(c);
    }
    while (c->sent_count > 0 || sched_queued(c->s) > 0) {
        if (c->sent_count == 0)
            c->now_ns = sched_wake_ns(c->s);
        crowd_finish_one(c);
        crowd_dispatch(c);
    }
    c->now_ns += UINT64_C(1) << 60;
    crowd_dispatch(c);
    /* Nothing is left to do, so nothing is owed: all that were used are named. */
    crowd_retire(c);
    for (int key = 0; key < KEYS; key++)
        property_check(seed, !c->attached[key] || !c->used[key]);
    sched_destroy(c->s);
    test_free(c);
}

static void test_named_exactly_when_idle(void **state)
{
    (void)state;
    property_run("retire", 56, case_of_seed);
}

#define PASSERS   1000000
#define PASS_ROOM 256 /* flows that may exist at once */
#define PASS_OUT  24  /* requests at the service */

/*
 * A million flows, each new, with one request, and a flow that stays and always has a queue: v
 * moves on with it (where all flows are new and the service never rests, v stands still).
 */
struct passage {
    struct sched *s;
    struct sched_flow stays;
    struct sched_item stays_items[2 * PASS_OUT];
    struct sched_flow flows[PASS_ROOM];
    struct sched_flow *unused[PASS_ROOM];
    int unused_count;
    struct sched_item items[PASS_ROOM];
    struct sched_item *sent[PASS_OUT];
    int sent_count;
    uint64_t now_ns;
    struct property_random random;
};

static void pass_arrive(struct passage *p, const struct sched_terms *terms)
{
    assert_true(p->unused_count > 0);
    struct sched_flow *flow = p->unused[--p->unused_count];
    struct sched_item *item = &p->items[flow - p->flows];

    memset(flow, 0xa5, sizeof(*flow));
    assert_int_equal(sched_flow_init(flow, (uint32_t)property_between(&p->random, 1, 9)), 0);
    assert_int_equal(sched_flow_set_terms(flow, terms), 0);
    assert_int_equal(sched_flow_attach(p->s, flow), 0);
    sched_item_init(item);
    assert_int_equal(
        sched_enqueue(p->s, flow, item, property_between(&p->random, 1, 20), p->now_ns), SCHED_OK);
    for (int i = 0; i < 2 * PASS_OUT && p->stays.queued < 2; i++)
        if (p->stays_items[i].state == SCHED_ITEM_IDLE)
            assert_int_equal(sched_enqueue(p->s, &p->stays, &p->stays_items[i], 5, p->now_ns),
                             SCHED_OK);
}

/* As much is served as arrives and keeps the flow that stays going. */
static void pass_serve(struct passage *p)
{
    for (int served = 0; served < 3; served++) {
        for (struct sched_item *next; (next = sched_dispatch(p->s, p->now_ns)) != NULL;)
            p->sent[p->sent_count++] = next;
        if (p->sent_count == 0)
            break;
        const uint64_t which = property_between(&p->random, 0, (uint64_t)p->sent_count - 1);
        struct sched_item *done = p->sent[which];
        p->sent[which] = p->sent[--p->sent_count];
        sched_complete(p->s, done, done->cost, p->now_ns);
    }
    for (struct sched_flow *gone; (gone = sched_retire_next(p->s)) != NULL;) {
        assert_int_equal(sched_flow_detach(p->s, gone), 0);
        p->unused[p->unused_count++] = gone;
    }
}

/* Whoever comes is forgotten in time: there is never need for more than PASS_ROOM flows. */
static void pass_a_million(enum sched_algorithm algorithm)
{
    static const struct sched_terms terms = {.reservation_per_s = 40000000,
                                             .limit_per_s = 50000000};
    const struct sched_params params = {.algorithm = algorithm, .depth = PASS_OUT};
    struct passage *p = test_calloc(1, sizeof(*p));

    p->random.state = 1;
    p->s = sched_create(&params);
    while (p->unused_count < PASS_ROOM) {
        p->unused[p->unused_count] = &p->flows[p->unused_count];
        p->unused_count++;
    }
    assert_int_equal(sched_flow_init(&p->stays, 5), 0);
    sched_flow_pin(&p->stays);
    assert_int_equal(sched_flow_attach(p->s, &p->stays), 0);
    for (int i = 0; i < 2 * PASS_OUT; i++)
        sched_item_init(&p->stays_items[i]);
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < PASSERS; i++) {
        p->now_ns += 1000;
        pass_arrive(p, &terms);
        pass_serve(p);
    }
    /* The sanitizers' allocators report 0 and 0. */
    assert_true(mallinfo2().uordblks <= before + PASS_ROOM * (size_t)256);
    assert_true(sched_flows(p->s) <= PASS_ROOM);
    sched_destroy(p->s);
    test_free(p);
}

static void test_a_million_flows_in_bounded_memory(void **state)
{
    (void)state;
    pass_a_million(SCHED_ALGORITHM_SFQD);
    pass_a_million(SCHED_ALGORITHM_FSFQ);
    pass_a_million(SCHED_ALGORITHM_RW);
    pass_a_million(SCHED_ALGORITHM_MCLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_exactly_when_idle),
        cmocka_unit_test(test_a_million_flows_in_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
