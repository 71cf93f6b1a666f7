/* SPDX-License-Identifier: Apache-2.0 */
/* test_2dfq.c: which slot takes which size of request under 2DFQ, in exact counts. */
#include "tests/unit/sched/fixture.h"

static const uint32_t three[] = {1, 1, 1, 0};

/* Flow 2 is small, 0 and 1 are large; all heads have S = 0. */
static void test_slots_choose_among_what_is_eligible(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_2DFQ, 2, three);
    fixture_add(fx, 0, 2, 100); /* 0 1 */
    fixture_add(fx, 1, 2, 100); /* 2 3 */
    fixture_add(fx, 2, 9, 1);   /* 4 to 12 */
    /* Slot 0: the smallest F. sfqd would take 0, the first to arrive. */
    assert_int_equal(fixture_send(fx), 4);
    /* Slot 1: the small one's S = 1 is not within 1/2 of its size of 0; of the large the first. */
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    /* Slot 0 is free: 1/3 of progress is not 1 yet, so the other large one has to go. */
    fixture_finish(fx, 4);
    assert_int_equal(fixture_send(fx), 2);
    /* 101 units done by three flows: the small ones may go, until the large are due. */
    fixture_finish(fx, 0);
    for (int i = 5; i <= 12; i++) {
        assert_int_equal(fixture_send(fx), i);
        fixture_finish(fx, i);
    }
    fixture_destroy(fx);
}

/* Three requests of flow 0 are out, the last from S = 16 on; flow 1 comes with S = 16, F = 80. */
static struct fixture *create_with_three_out(uint64_t last_cost)
{
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_2DFQ, 4, (const uint32_t[]){1, 1, 0});
    fixture_add(fx, 0, 2, 8);         /* 0 1 */
    fixture_add(fx, 0, 1, last_cost); /* 2 */
    fixture_add(fx, 0, 1, 8);         /* 3 */
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fx), i);
    fixture_add(fx, 1, 1, 64); /* 4 */
    return fx;
}

/* Slot 3 of 4 takes a request before its time by up to 3/4 of its size: at 16, up to S = 22. */
static void test_high_slots_take_requests_early(void **state)
{
    (void)state;
    struct fixture *fx = create_with_three_out(4);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fx->items[3].start, 20 * FIXTURE_UNIT);
    fixture_destroy(fx);

    fx = create_with_three_out(8);
    assert_int_equal(fixture_send(fx), 4);
    assert_int_equal(fx->items[4].start, 16 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

static void test_shares_are_the_weights_over_the_costs(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_2DFQ, 4, three);
    struct sched_item *ring[4];
    int served[3] = {0};
    fixture_add(fx, 0, 3000, 1);
    fixture_add(fx, 1, 3000, 4);
    fixture_add(fx, 2, 3000, 16);
    for (int i = 0; i < 4; i++)
        ring[i] = sched_dispatch(fx->s, 0);
    for (int i = 0; i < 2100; i++) {
        served[fixture_flow(fx, ring[i % 4])]++;
        sched_complete(fx->s, ring[i % 4], ring[i % 4]->cost, 0);
        ring[i % 4] = sched_dispatch(fx->s, 0);
        assert_non_null(ring[i % 4]);
    }
    assert_in_range(served[0], 1600 - 16, 1600 + 16);
    assert_in_range(served[1], 400 - 4, 400 + 4);
    assert_in_range(served[2], 100 - 2, 100 + 2);
    fixture_destroy(fx);
}

/* Lowered, the depth leaves requests in slots that are no more; they are left to end. */
static void test_depth_changes_while_slots_are_taken(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_2DFQ, 4, three);
    fixture_add(fx, 0, 20, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fixture_send(fx), i);
    sched_set_depth(fx->s, 2);
    fixture_finish(fx, 0);
    fixture_finish(fx, 1);
    assert_int_equal(fixture_send(fx), -1);
    fixture_finish(fx, 2);
    assert_int_equal(fixture_send(fx), 4);
    sched_requeue_front(fx->s, &fx->items[4]);
    assert_int_equal(fixture_send(fx), 4);
    sched_set_depth(fx->s, 6);
    for (int i = 5; i <= 8; i++)
        assert_int_equal(fixture_send(fx), i);
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_choose_among_what_is_eligible),
        cmocka_unit_test(test_high_slots_take_requests_early),
        cmocka_unit_test(test_shares_are_the_weights_over_the_costs),
        cmocka_unit_test(test_depth_changes_while_slots_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
