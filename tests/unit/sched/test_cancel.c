/* SPDX-License-Identifier: Apache-2.0 */
/* test_cancel.c: requests that leave the queue, and requests that come back to it. */
#include "tests/unit/sched/fixture.h"

static const uint32_t equal[] = {1, 1, 0};

static void test_cancelled_request_is_charged_nothing(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    int served[2] = {0};
    fixture_add(fx, 0, 100, 1);
    for (int i = 0; i < 50; i++)
        sched_cancel(fx->s, &fx->items[i], 0);
    fixture_add(fx, 1, 100, 1);
    fixture_serve(fx, 100, served);
    assert_int_equal(served[0], 50);
    assert_int_equal(served[1], 50);
    fixture_destroy(fx);
}

static void test_cancelled_head_passes_its_place_on(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 3, 10); /* 0 1 2 */
    fixture_add(fx, 1, 3, 10); /* 3 4 5 */
    sched_cancel(fx->s, &fx->items[0], 0);
    assert_int_equal(fx->flows[0].queued, 2);
    assert_int_equal(fx->flows[0].queued_cost, 20);
    /* Both heads start at 0; 1 arrived before 3. */
    fixture_expect(fx, (const int[]){1, 3, 2, 4, 5, -1});
    fixture_destroy(fx);
}

static void test_cancel_in_the_middle_keeps_the_order(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 5, 1);
    sched_cancel(fx->s, &fx->items[2], 0);
    sched_cancel(fx->s, &fx->items[4], 0);
    fixture_expect(fx, (const int[]){0, 1, 3, -1});
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

static void test_last_cancel_leaves_the_flow_idle(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 1, 1000);
    assert_false(sched_flow_idle(fx->s, &fx->flows[0]));
    sched_cancel(fx->s, &fx->items[0], 0);
    assert_true(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_int_equal(sched_queued(fx->s), 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_virtual_time(fx->s), 0);
    fixture_destroy(fx);
}

static void test_cancelled_item_may_be_queued_again(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 2, 1);
    sched_cancel(fx->s, &fx->items[0], 0);
    assert_int_equal(sched_enqueue(fx->s, &fx->flows[1], &fx->items[0], 1, 0), SCHED_OK);
    fixture_expect(fx, (const int[]){1, 0, -1});
    fixture_destroy(fx);
}

static void test_item_sent_back_has_its_tags_again(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 8, equal);
    fixture_add(fx, 0, 3, 10); /* 0 1 2 */
    fixture_add(fx, 1, 3, 10); /* 3 4 5 */
    assert_int_equal(fixture_send(fx), 0);
    sched_requeue_front(fx->s, &fx->items[0]);
    assert_int_equal(sched_outstanding(fx->s), 0);
    assert_int_equal(fx->flows[0].queued, 3);
    assert_int_equal(fx->flows[0].outstanding, 0);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fx->items[0].start, 0);
    assert_int_equal(fx->items[0].finish, 10 * FIXTURE_UNIT);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fx->items[1].start, 10 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

/* Only what was sent counts: failures in between change no share, and v does not go back. */
static void test_sending_back_does_not_change_the_shares(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 4, (const uint32_t[]){2, 1, 0});
    int served[2] = {0};
    uint64_t before = 0;
    fixture_add(fx, 0, 1000, 3);
    fixture_add(fx, 1, 1000, 3);
    for (int i = 0; i < 900; i++) {
        struct sched_item *first = sched_dispatch(fx->s, 0);
        struct sched_item *second = sched_dispatch(fx->s, 0);
        assert_true(sched_virtual_time(fx->s) >= before);
        before = sched_virtual_time(fx->s);
        sched_requeue_front(fx->s, second);
        assert_int_equal(sched_virtual_time(fx->s), before);
        served[fixture_flow(fx, first)]++;
        sched_complete(fx->s, first, 3, 0);
    }
    assert_int_equal(served[0], 600);
    assert_int_equal(served[1], 300);
    fixture_destroy(fx);
}

static void test_several_sent_back_keep_their_order(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 3, equal);
    fixture_add(fx, 0, 5, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fx), i);
    for (int i = 2; i >= 0; i--)
        sched_requeue_front(fx->s, &fx->items[i]);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(fixture_send(fx), i);
        assert_int_equal(fx->items[i].start, (uint64_t)i * FIXTURE_UNIT);
        fixture_finish(fx, i);
    }
    fixture_destroy(fx);
}

static void test_item_sent_back_may_be_cancelled(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 1, 7);
    assert_int_equal(fixture_send(fx), 0);
    sched_requeue_front(fx->s, &fx->items[0]);
    sched_cancel(fx->s, &fx->items[0], 0);
    assert_true(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelled_request_is_charged_nothing),
        cmocka_unit_test(test_cancelled_head_passes_its_place_on),
        cmocka_unit_test(test_cancel_in_the_middle_keeps_the_order),
        cmocka_unit_test(test_last_cancel_leaves_the_flow_idle),
        cmocka_unit_test(test_cancelled_item_may_be_queued_again),
        cmocka_unit_test(test_item_sent_back_has_its_tags_again),
        cmocka_unit_test(test_sending_back_does_not_change_the_shares),
        cmocka_unit_test(test_several_sent_back_keep_their_order),
        cmocka_unit_test(test_item_sent_back_may_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
