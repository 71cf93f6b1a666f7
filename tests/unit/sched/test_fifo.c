/* SPDX-License-Identifier: Apache-2.0 */
/* test_fifo.c: FIFO keeps arrival order over all flows and at most D outstanding. */
#include "tests/unit/sched/fixture.h"

static const uint32_t weights[] = {1, 1000, 0};

static void test_arrival_order_whatever_the_weights(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 1, weights);
    for (int i = 0; i < 100; i++)
        fixture_add(fx, i % 3 == 0 ? 1 : 0, 1, 1 + (uint64_t)i);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(fixture_send(fx), i);
        assert_int_equal(fixture_send(fx), -1);
        fixture_finish(fx, i);
    }
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

static void test_depth_is_the_number_outstanding(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 3, weights);
    fixture_add(fx, 0, 5, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), 2);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_outstanding(fx->s), 3);
    assert_int_equal(sched_queued(fx->s), 2);
    fixture_finish(fx, 1);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

static void test_cancelled_item_leaves_the_middle(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 1, weights);
    fixture_add(fx, 0, 2, 1);
    fixture_add(fx, 1, 2, 1);
    sched_cancel(fx->s, &fx->items[1], 0);
    sched_cancel(fx->s, &fx->items[3], 0);
    assert_int_equal(fx->items[1].state, SCHED_ITEM_IDLE);
    fixture_expect(fx, (const int[]){0, 2, -1});
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

static void test_item_sent_back_goes_first(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 2, weights);
    fixture_add(fx, 0, 2, 1);
    fixture_add(fx, 1, 2, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    sched_requeue_front(fx->s, &fx->items[1]);
    sched_requeue_front(fx->s, &fx->items[0]);
    assert_int_equal(sched_outstanding(fx->s), 0);
    fixture_expect(fx, (const int[]){0, 1, 2, 3, -1});
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrival_order_whatever_the_weights),
        cmocka_unit_test(test_depth_is_the_number_outstanding),
        cmocka_unit_test(test_cancelled_item_leaves_the_middle),
        cmocka_unit_test(test_item_sent_back_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
