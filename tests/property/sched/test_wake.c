/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wake.c: sched_wake_ns names the first nanosecond at which something may go, at any rates.
 *
 * Whenever sched_dispatch returns NULL: just before the time named it still does, at that time it
 * does not. SCHED_NEVER_NS is right when a completion must come first. Over long runs the limit of
 * a flow is kept: what was dispatched within any time is within limit * time, the burst and one
 * request. With refuse_at_limit the same holds for what was accepted.
 */
#include "tests/property/sched/property.h"

#define FLOWS 5
#define ITEMS 200

struct toll {
    uint64_t seed;
    struct property_random random;
    struct sched *s;
    struct sched_flow flows[FLOWS];
    struct sched_terms terms[FLOWS];
    struct sched_item items[ITEMS];
    uint64_t passed[FLOWS]; /* cost let through */
    uint64_t largest_cost;
    uint64_t depth;
    uint64_t now_ns;
    uint64_t start_ns;
    bool refuse;
};

static int toll_item(struct toll *t, enum sched_item_state state)
{
    const uint64_t first = property_between(&t->random, 0, ITEMS - 1);

    for (uint64_t i = 0; i < ITEMS; i++)
        if (t->items[(first + i) % ITEMS].state == (uint8_t)state)
            return (int)((first + i) % ITEMS);
    return -1;
}

/* limit * time + burst + one request, in cost; the last place of the time may be lost. */
static void toll_check_limit(const struct toll *t, int f)
{
    const struct sched_terms *terms = &t->terms[f];
    const exact_t passed_ns = (exact_t)(t->now_ns - t->start_ns) + 1;

    if (terms->limit_per_s != 0)
        property_check(t->seed,
                       ((exact_t)t->passed[f] - (exact_t)terms->burst - (exact_t)t->largest_cost) *
                               1000000000 <=
                           (exact_t)terms->limit_per_s * passed_ns);
}

static void toll_pass(struct toll *t, const struct sched_item *item)
{
    const int f = (int)(item->flow - t->flows);

    t->passed[f] += item->cost;
    toll_check_limit(t, f);
}

static void toll_arrive(struct toll *t)
{
    const int k = toll_item(t, SCHED_ITEM_IDLE);
    const uint64_t f = property_between(&t->random, 0, FLOWS - 1);

    if (k < 0)
        return;
    const enum sched_verdict verdict =
        sched_enqueue(t->s, &t->flows[f], &t->items[k],
                      property_between(&t->random, 1, t->largest_cost), t->now_ns);
    property_check(t->seed, verdict == SCHED_OK || (t->refuse && verdict == SCHED_AT_LIMIT));
    if (t->refuse && verdict == SCHED_OK)
        toll_pass(t, &t->items[k]);
}

static void toll_dispatch(struct toll *t)
{
    for (const struct sched_item *item; (item = sched_dispatch(t->s, t->now_ns)) != NULL;)
        if (!t->refuse)
            toll_pass(t, item);
}

/* Nothing may go now: tries the nanosecond before the time named, and the time itself. */
static void toll_wake(struct toll *t)
{
    const uint64_t wake_ns = sched_wake_ns(t->s);

    if (wake_ns == SCHED_NEVER_NS) {
        property_check(t->seed, sched_queued(t->s) == 0 || sched_outstanding(t->s) == t->depth);
        return;
    }
    property_check(t->seed, wake_ns > t->now_ns && sched_outstanding(t->s) < t->depth);
    if (property_chance(&t->random, 50))
        return;
    t->now_ns = wake_ns - 1;
    property_check(t->seed, sched_dispatch(t->s, t->now_ns) == NULL);
    property_check(t->seed, sched_wake_ns(t->s) == wake_ns);
    t->now_ns = wake_ns;
    const struct sched_item *item = sched_dispatch(t->s, t->now_ns);
    property_check(t->seed, item != NULL);
    if (!t->refuse)
        toll_pass(t, item);
    toll_dispatch(t);
}

/* Reservations let requests pass beside the limit, so a flow has one or the other. */
static void toll_draw_terms(struct toll *t, int f)
{
    const uint64_t rate = t->largest_cost * property_between(&t->random, 1, 3000) +
                          property_between(&t->random, 0, 1000);
    struct sched_terms *terms = &t->terms[f];

    if (property_chance(&t->random, 70))
        terms->limit_per_s = rate;
    else
        terms->reservation_per_s = rate;
    if (property_chance(&t->random, 50))
        terms->burst = property_between(&t->random, 0, 5 * t->largest_cost);
    assert_int_equal(sched_flow_set_terms(&t->flows[f], terms), 0);
}

static void case_of_seed(uint64_t seed)
{
    struct toll *t = test_calloc(1, sizeof(*t));

    t->seed = seed;
    t->random.state = seed;
    t->largest_cost = property_chance(&t->random, 50) ? 1 : property_between(&t->random, 2, 1000);
    t->depth = property_between(&t->random, 1, 20);
    t->now_ns = property_between(&t->random, 0, UINT64_C(1) << 60);
    t->start_ns = t->now_ns;
    t->refuse = seed % 3 == 0;
    const struct sched_params params = {.algorithm = seed % 3 == 1 ? SCHED_ALGORITHM_LEAKY_BUCKET
                                                                   : SCHED_ALGORITHM_MCLOCK,
                                        .depth = t->depth,
                                        .options.refuse_at_limit = t->refuse};
    t->s = sched_create(&params);
    for (int f = 0; f < FLOWS; f++) {
        assert_int_equal(
            sched_flow_init(&t->flows[f], (uint32_t)property_between(&t->random, 1, 9)), 0);
        toll_draw_terms(t, f);
        assert_int_equal(sched_flow_attach(t->s, &t->flows[f]), 0);
    }
    for (int k = 0; k < ITEMS; k++)
        sched_item_init(&t->items[k]);
    for (int step = 0; step < 3000; step++) {
        t->now_ns += property_chance(&t->random, 30) ? property_between(&t->random, 0, 400000) : 0;
        if (property_chance(&t->random, 55))
            toll_arrive(t);
        const int k = toll_item(t, SCHED_ITEM_OUTSTANDING);
        if (k >= 0 && property_chance(&t->random, 60))
            sched_complete(t->s, &t->items[k], t->items[k].cost, t->now_ns);
        toll_dispatch(t);
        toll_wake(t);
    }
    sched_destroy(t->s);
    test_free(t);
}

static void test_named_time_is_the_first(void **state)
{
    (void)state;
    property_run("wake", 300, case_of_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_time_is_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
