/* SPDX-License-Identifier: Apache-2.0 */
/* test_leaky_bucket.c: rates, bursts and waking up of the leaky bucket, to the nanosecond. */
#include "tests/unit/sched/fixture.h"

#define MS UINT64_C(1000000)

static const uint32_t two[] = {1, 1, 0};

/* 100 units per second: one every 10 ms. */
static struct fixture *create_limited(uint64_t burst)
{
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_LEAKY_BUCKET, 8, two);
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 100, .burst = burst});
    return fx;
}

static void test_one_at_a_time_at_the_rate(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(0);
    fixture_add(fx, 0, 3, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 10 * MS);
    fx->now_ns = 10 * MS - 1;
    assert_int_equal(fixture_send(fx), -1);
    fx->now_ns = 10 * MS;
    assert_int_equal(fixture_send(fx), 1);
    /* Late by 5 ms, the next is due 10 ms after that: what was missed is not caught up with. */
    fx->now_ns = 25 * MS;
    assert_int_equal(fixture_send(fx), 2);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 35 * MS);
    fixture_destroy(fx);
}

static void test_a_burst_goes_beyond_one_request(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(2);
    fixture_add(fx, 0, 5, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fx), i);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 10 * MS);
    fixture_destroy(fx);
}

/* The other flow has no limit and goes on; the heads go by when they conformed. */
static void test_a_flow_without_limit_is_not_held(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(0);
    fixture_add(fx, 0, 2, 1); /* 0 1 */
    assert_int_equal(fixture_send(fx), 0);
    fx->now_ns = 5 * MS;
    fixture_add(fx, 1, 1, 1); /* 2 */
    assert_int_equal(fixture_send(fx), 2);
    fx->now_ns = 12 * MS;
    fixture_add(fx, 1, 1, 1); /* 3 arrives at 12 ms, 1 conforms from 10 ms on */
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(sched_wake_ns(fx->s), SCHED_NEVER_NS);
    fixture_destroy(fx);
}

static void test_cost_counts_and_is_corrected(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(0);
    fixture_add(fx, 0, 3, 5);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 50 * MS);
    sched_complete(fx->s, &fx->items[0], 2, 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 20 * MS);
    fx->now_ns = 20 * MS;
    assert_int_equal(fixture_send(fx), 1);
    sched_complete(fx->s, &fx->items[1], 9, fx->now_ns);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 110 * MS);
    fixture_destroy(fx);
}

static void test_sent_back_and_cancelled_are_not_charged(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(0);
    fixture_add(fx, 0, 3, 1);
    assert_int_equal(fixture_send(fx), 0);
    sched_requeue_front(fx->s, &fx->items[0]);
    assert_int_equal(fixture_send(fx), 0);
    sched_cancel(fx->s, &fx->items[1], 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 10 * MS);
    fixture_destroy(fx);
}

static void test_new_limits_hold_for_what_waits(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(0);
    fixture_add(fx, 0, 3, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 200});
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 5 * MS);
    fixture_promise(fx, 0, (struct sched_terms){0});
    assert_int_equal(fixture_send(fx), 2);
    fixture_destroy(fx);
}

/* A flow whose bucket is not level again is not forgotten. */
static void test_a_limit_is_not_forgotten(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(0);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_send(fx), 0);
    fixture_finish(fx, 0);
    assert_false(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_null(sched_retire_next(fx->s));
    fx->now_ns = 10 * MS;
    assert_int_equal(fixture_send(fx), -1);
    assert_true(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_ptr_equal(sched_retire_next(fx->s), &fx->flows[0]);
    fixture_destroy(fx);
}

static void test_nothing_is_due_while_no_slot_is_free(void **state)
{
    (void)state;
    struct fixture *fx = create_limited(0);
    sched_set_depth(fx->s, 1);
    fixture_add(fx, 0, 2, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), SCHED_NEVER_NS);
    fixture_finish(fx, 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 10 * MS);
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time_at_the_rate),
        cmocka_unit_test(test_a_burst_goes_beyond_one_request),
        cmocka_unit_test(test_a_flow_without_limit_is_not_held),
        cmocka_unit_test(test_cost_counts_and_is_corrected),
        cmocka_unit_test(test_sent_back_and_cancelled_are_not_charged),
        cmocka_unit_test(test_new_limits_hold_for_what_waits),
        cmocka_unit_test(test_a_limit_is_not_forgotten),
        cmocka_unit_test(test_nothing_is_due_while_no_slot_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
