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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_exactly_when_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
