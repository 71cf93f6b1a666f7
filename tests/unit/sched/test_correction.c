/* SPDX-License-Identifier: Apache-2.0 */
/* test_correction.c: the true cost, known at completion, is what decides the shares. */
#include "tests/unit/sched/fixture.h"

static const uint32_t equal[] = {1, 1, 0};

/*
 * Both flows always backlogged, D = `depth`, completed in order. Flow 0 is charged `estimate` and
 * turns out to cost `truth`; flow 1 costs 10. Fills in the number served of each.
 */
static void serve_misjudged(uint64_t depth, uint64_t estimate, uint64_t truth, int count,
                            int *served)
{
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, depth, equal);
    struct sched_item *ring[64] = {NULL};
    uint64_t head = 0;
    uint64_t tail = 0;

    fixture_add(fx, 0, 20000, estimate);
    fixture_add(fx, 1, 20000, 10);
    for (int done = 0; done < count; done++) {
        struct sched_item *item;
        while ((item = sched_dispatch(fx->s, 0)) != NULL)
            ring[tail++ % 64] = item;
        item = ring[head++ % 64];
        assert_non_null(item);
        int flow = fixture_flow(fx, item);
        served[flow]++;
        sched_complete(fx->s, item, flow == 0 ? truth : 10, 0);
    }
    fixture_destroy(fx);
}

/* Each flow is to get half the work, so counts are as the inverse of the true costs. */
static void test_shares_follow_the_true_cost(void **state)
{
    (void)state;
    const uint64_t depths[] = {1, 2, 8, 32};
    for (int i = 0; i < 4; i++) {
        int cheaper[2] = {0};
        int dearer[2] = {0};
        serve_misjudged(depths[i], 50, 5, 6000, cheaper);
        assert_in_range(cheaper[0], 4000 - 70, 4000 + 70);
        serve_misjudged(depths[i], 5, 50, 6000, dearer);
        assert_in_range(dearer[0], 1000 - 70, 1000 + 70);
    }
}

static void test_exact_tags_of_charge_and_refund(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){2, 0});
    fixture_add(fx, 0, 4, 10);
    assert_int_equal(fixture_send(fx), 0);
    /* 14 more than thought, at weight 2: 7. The head has its tag (5) already, so the next pays. */
    sched_complete(fx->s, &fx->items[0], 24, 0);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fx->items[1].start, 5 * FIXTURE_UNIT);
    sched_complete(fx->s, &fx->items[1], 10, 0);
    assert_int_equal(fixture_send(fx), 2);
    assert_int_equal(fx->items[2].start, 17 * FIXTURE_UNIT);
    /* All of it refunded: the last one still starts at 22, and the refund is dropped with it. */
    sched_complete(fx->s, &fx->items[2], 0, 0);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fx->items[3].start, 22 * FIXTURE_UNIT);
    sched_complete(fx->s, &fx->items[3], 10, 0);
    fixture_destroy(fx);
}

static void test_debt_outlives_an_empty_queue(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 2, equal);
    fixture_add(fx, 1, 100, 1);
    fixture_add(fx, 0, 1, 1); /* 100 */
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 100);
    sched_complete(fx->s, &fx->items[100], 30, 0);
    assert_false(sched_flow_idle(fx->s, &fx->flows[0]));
    fixture_add(fx, 0, 1, 1); /* 101, starts at 30 */
    for (int i = 1; i <= 30; i++) {
        assert_int_equal(fixture_send(fx), i);
        fixture_finish(fx, i);
    }
    assert_int_equal(fixture_send(fx), 101);
    assert_int_equal(fx->items[101].start, 30 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

/* A flow whose requests always cost less than thought gathers no right to a burst. */
static void test_refunds_are_not_hoarded(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 2, equal);
    int served[2] = {0};
    fixture_add(fx, 1, 5000, 1);
    for (int i = 0; i < 500; i++) {
        /* One at a time and rarely: flow 1 is served 4 in between. */
        fixture_serve(fx, 4, served);
        fixture_add(fx, 0, 1, 3);
        struct sched_item *item;
        while (fixture_flow(fx, item = sched_dispatch(fx->s, 0)) != 0)
            sched_complete(fx->s, item, 1, 0);
        sched_complete(fx->s, item, 1, 0);
    }
    served[0] = 0;
    served[1] = 0;
    fixture_add(fx, 0, 1000, 1);
    fixture_serve(fx, 100, served);
    assert_in_range(served[0], 48, 52);
    fixture_destroy(fx);
}

static void test_enormous_corrections_stay_in_range(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 8, equal);
    fixture_add(fx, 0, 40, 1);
    fixture_add(fx, 1, 40, SCHED_COST_MAX);
    for (int i = 0; i < 80; i++) {
        struct sched_item *item = sched_dispatch(fx->s, 0);
        assert_non_null(item);
        sched_complete(fx->s, item, fixture_flow(fx, item) == 0 ? UINT64_MAX : 0, 0);
    }
    assert_int_equal(sched_queued(fx->s), 0);
    assert_true(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_true(sched_flow_idle(fx->s, &fx->flows[1]));
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_follow_the_true_cost),
        cmocka_unit_test(test_exact_tags_of_charge_and_refund),
        cmocka_unit_test(test_debt_outlives_an_empty_queue),
        cmocka_unit_test(test_refunds_are_not_hoarded),
        cmocka_unit_test(test_enormous_corrections_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
