/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_equal.c: two schedulers that must do the same, given the same calls.
 *
 * Pairs of algorithms that coincide by their definitions:
 *     hybrid, slack 0    = rw             hybrid, slack >= depth  = sfqd
 *     sfqd, depth 1      = sfq            mclock without promises = sfqd
 *     edf without target = fifo           leaky-bucket, no limit  = fifo
 *     fsfq               = sfqd, while every flow keeps a queue
 * and every algorithm with itself, where virtual time begins elsewhere (so that tags wrap) and the
 * clock shows another time. Costs, weights, corrections, cancels, and completion order are random.
 */
#include "tests/property/sched/property.h"

#define FLOWS 7
#define ITEMS 160

struct side {
    enum sched_algorithm algorithm;
    uint64_t slack;
    uint64_t virtual_start;
    uint64_t epoch_ns;
    struct sched *s;
    struct sched_flow flows[FLOWS];
    struct sched_item items[ITEMS];
};

struct twins {
    uint64_t seed;
    struct property_random random;
    struct property_arithmetic arithmetic;
    struct sched_terms terms[FLOWS];
    struct side sides[2];
    uint64_t now_ns;
    bool promises;   /* flows have targets, reservations and limits */
    bool backlogged; /* no flow's queue runs empty */
    bool requeues;
};

static void twins_create(struct twins *t, uint64_t depth)
{
    const uint64_t largest = t->arithmetic.largest_cost;

    for (int f = 0; f < FLOWS; f++) {
        const uint32_t weight = property_weight(&t->random, &t->arithmetic);
        t->terms[f] = (struct sched_terms){
            .target_ns = property_between(&t->random, 0, 100000),
            .reservation_per_s = largest * property_between(&t->random, 0, 20000),
            .limit_per_s = largest * property_between(&t->random, 0, 100000),
            .burst = property_between(&t->random, 0, 2 * largest)};
        for (int i = 0; i < 2; i++)
            assert_int_equal(sched_flow_init(&t->sides[i].flows[f], weight), 0);
    }
    for (int i = 0; i < 2; i++) {
        struct side *side = &t->sides[i];
        const struct sched_params params = {.algorithm = side->algorithm,
                                            .depth = depth,
                                            .options.slack = side->slack,
                                            .options.capacity_per_s = largest * 20000,
                                            .options.ageing_ns = 1000,
                                            .virtual_start = side->virtual_start};
        side->s = sched_create(&params);
        assert_non_null(side->s);
        for (int f = 0; f < FLOWS; f++) {
            if (t->promises)
                assert_int_equal(sched_flow_set_terms(&side->flows[f], &t->terms[f]), 0);
            assert_int_equal(sched_flow_attach(side->s, &side->flows[f]), 0);
        }
        for (int k = 0; k < ITEMS; k++)
            sched_item_init(&side->items[k]);
    }
}

/* A random item in that state, or -1. */
static int draw_item(struct twins *t, enum sched_item_state state)
{
    int found = -1;
    uint64_t seen = 0;

    for (int k = 0; k < ITEMS; k++)
        if (t->sides[0].items[k].state == (uint8_t)state &&
            property_between(&t->random, 0, seen++) == 0)
            found = k;
    return found;
}

static void arrive(struct twins *t, int flow)
{
    const int k = draw_item(t, SCHED_ITEM_IDLE);
    const uint64_t cost = property_cost(&t->random, &t->arithmetic);

    for (int i = 0; i < 2 && k >= 0; i++) {
        struct side *side = &t->sides[i];
        property_check(t->seed, sched_enqueue(side->s, &side->flows[flow], &side->items[k], cost,
                                              side->epoch_ns + t->now_ns) == SCHED_OK);
    }
}

static void keep_backlogged(struct twins *t)
{
    for (int f = 0; t->backlogged && f < FLOWS; f++)
        while (t->sides[0].flows[f].queued < 3)
            arrive(t, f);
}

static void dispatch(struct twins *t)
{
    for (;;) {
        int chosen[2];
        for (int i = 0; i < 2; i++) {
            struct side *side = &t->sides[i];
            struct sched_item *item = sched_dispatch(side->s, side->epoch_ns + t->now_ns);
            chosen[i] = item == NULL ? -1 : (int)(item - side->items);
        }
        property_check(t->seed, chosen[0] == chosen[1]);
        if (chosen[0] < 0)
            return;
        keep_backlogged(t);
    }
}

static void complete(struct twins *t, int k, uint64_t true_cost)
{
    for (int i = 0; i < 2; i++)
        sched_complete(t->sides[i].s, &t->sides[i].items[k], true_cost,
                       t->sides[i].epoch_ns + t->now_ns);
}

static void complete_one(struct twins *t)
{
    const int k = draw_item(t, SCHED_ITEM_OUTSTANDING);

    if (k < 0)
        return;
    if (t->requeues && property_chance(&t->random, 5))
        for (int i = 0; i < 2; i++)
            sched_requeue_front(t->sides[i].s, &t->sides[i].items[k]);
    else if (property_chance(&t->random, 30))
        complete(t, k, property_between(&t->random, 0, t->arithmetic.largest_cost));
    else
        complete(t, k, t->sides[0].items[k].cost);
}

static void change_something(struct twins *t)
{
    const int k = draw_item(t, SCHED_ITEM_QUEUED);
    const int flow = (int)property_between(&t->random, 0, FLOWS - 1);
    const uint32_t weight = property_weight(&t->random, &t->arithmetic);
    const bool cancel = property_chance(&t->random, 70) && !t->backlogged;

    for (int i = 0; i < 2; i++) {
        struct side *side = &t->sides[i];
        if (cancel && k >= 0)
            sched_cancel(side->s, &side->items[k], side->epoch_ns + t->now_ns);
        else if (!cancel)
            sched_flow_set_weight(side->s, &side->flows[flow], weight);
    }
}

static void twins_run(struct twins *t, int steps)
{
    for (int step = 0; step < steps; step++) {
        const uint64_t what = property_between(&t->random, 0, 99);
        t->now_ns += property_chance(&t->random, 50) ? property_between(&t->random, 0, 50000) : 0;
        keep_backlogged(t);
        if (what < 45)
            arrive(t, (int)property_between(&t->random, 0, FLOWS - 1));
        else if (what < 55)
            change_something(t);
        else
            complete_one(t);
        dispatch(t);
    }
    for (int i = 0; i < 2; i++)
        sched_destroy(t->sides[i].s);
    test_free(t);
}

static struct twins *twins_draw(uint64_t seed)
{
    struct twins *t = test_calloc(1, sizeof(*t));

    t->seed = seed;
    t->random.state = seed;
    t->arithmetic = property_arithmetic_draw(&t->random, false);
    return t;
}

static void pair_of_seed(uint64_t seed)
{
    static const struct {
        enum sched_algorithm one;
        enum sched_algorithm other;
    } pairs[] = {{SCHED_ALGORITHM_HYBRID, SCHED_ALGORITHM_RW},
                 {SCHED_ALGORITHM_HYBRID, SCHED_ALGORITHM_SFQD},
                 {SCHED_ALGORITHM_SFQD, SCHED_ALGORITHM_SFQ},
                 {SCHED_ALGORITHM_MCLOCK, SCHED_ALGORITHM_SFQD},
                 {SCHED_ALGORITHM_EDF, SCHED_ALGORITHM_FIFO},
                 {SCHED_ALGORITHM_LEAKY_BUCKET, SCHED_ALGORITHM_FIFO},
                 {SCHED_ALGORITHM_FSFQ, SCHED_ALGORITHM_SFQD}};
    struct twins *t = twins_draw(seed);
    const size_t pair = seed % (sizeof(pairs) / sizeof(pairs[0]));
    uint64_t depth = property_between(&t->random, 1, 12);

    t->sides[0].algorithm = pairs[pair].one;
    t->sides[1].algorithm = pairs[pair].other;
    if (pairs[pair].other == SCHED_ALGORITHM_SFQ)
        depth = 1;
    if (pairs[pair].one == SCHED_ALGORITHM_HYBRID && pairs[pair].other == SCHED_ALGORITHM_SFQD)
        t->sides[0].slack = depth + property_between(&t->random, 0, 3);
    t->backlogged = pairs[pair].one == SCHED_ALGORITHM_FSFQ;
    twins_create(t, depth);
    twins_run(t, 1500);
}

static void test_algorithms_that_coincide(void **state)
{
    (void)state;
    property_run("pairs", 210, pair_of_seed);
}

static void shifted_of_seed(uint64_t seed)
{
    struct twins *t = twins_draw(seed);

    t->sides[0].algorithm = (enum sched_algorithm)(seed % SCHED_ALGORITHMS);
    t->sides[1].algorithm = t->sides[0].algorithm;
    t->sides[1].virtual_start = property_virtual_start(&t->random);
    t->sides[1].epoch_ns = property_between(&t->random, 0, UINT64_C(1) << 61);
    t->sides[0].slack = property_between(&t->random, 0, 3);
    t->sides[1].slack = t->sides[0].slack;
    t->promises = true;
    t->requeues = true;
    twins_create(t, property_between(&t->random, 1, 12));
    twins_run(t, 1500);
}

static void test_where_the_clocks_begin_does_not_matter(void **state)
{
    (void)state;
    property_run("shifted", 20 * SCHED_ALGORITHMS, shifted_of_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_algorithms_that_coincide),
        cmocka_unit_test(test_where_the_clocks_begin_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
