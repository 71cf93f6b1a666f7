/* SPDX-License-Identifier: Apache-2.0 */
/* test_wfq.c: order by finish tags and the running clock of WFQ, and Virtual Clock beside it. */
#include "tests/unit/sched/fixture.h"

#define MS UINT64_C(1000000)

static const uint32_t equal[] = {1, 1, 0};

static struct fixture *create_with_capacity(uint64_t capacity_per_s, uint64_t depth)
{
    const struct sched_params params = {
        .algorithm = SCHED_ALGORITHM_WFQ, .depth = depth, .options.capacity_per_s = capacity_per_s};
    return fixture_create_with(&params, equal);
}

/* F = 10, 20, 30 and 25; sfqd would go by S: 0, 10, 20 and 0. */
static void test_smallest_finish_tag_goes_first(void **state)
{
    (void)state;
    struct fixture *fx = create_with_capacity(1000, 1);
    fixture_add(fx, 0, 3, 10);
    fixture_add(fx, 1, 1, 25);
    fixture_expect(fx, (const int[]){0, 1, 3, 2, -1});
    fixture_destroy(fx);
}

static void test_clock_runs_at_the_capacity_over_the_active_weights(void **state)
{
    (void)state;
    struct fixture *fx = create_with_capacity(1000, 1);
    fixture_add(fx, 0, 2, 100);
    assert_int_equal(fixture_send(fx), 0);
    fx->now_ns = 10 * MS;
    fixture_add(fx, 1, 1, 5); /* 2 */
    assert_int_equal(sched_virtual_time(fx->s), 10 * FIXTURE_UNIT);
    fx->now_ns = 30 * MS;
    fixture_add(fx, 1, 1, 5); /* 3 */
    assert_int_equal(sched_virtual_time(fx->s), 20 * FIXTURE_UNIT);
    assert_int_equal(sched_flow_set_weight(fx->s, &fx->flows[0], 4), 0);
    fx->now_ns = 40 * MS;
    fixture_finish(fx, 0);
    assert_int_equal(sched_virtual_time(fx->s), 22 * FIXTURE_UNIT);
    /* S of 2 is v at its arrival, S of 3 is v at its own, which is later than F of 2. */
    assert_int_equal(fixture_send(fx), 2);
    assert_int_equal(fx->items[2].start, 10 * FIXTURE_UNIT);
    fixture_finish(fx, 2);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fx->items[3].start, 20 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

/* 10 units hold the only slot for 20 ms, so C = 500 units per second. */
static void test_unknown_capacity_is_estimated(void **state)
{
    (void)state;
    struct fixture *fx = create_with_capacity(0, 1);
    fixture_add(fx, 0, 2, 10);
    assert_int_equal(fixture_send(fx), 0);
    fx->now_ns = 20 * MS;
    fixture_finish(fx, 0);
    assert_int_equal(sched_virtual_time(fx->s), 0);
    assert_int_equal(fixture_send(fx), 1);
    fx->now_ns = 40 * MS;
    fixture_add(fx, 1, 1, 1);
    assert_int_equal(sched_virtual_time(fx->s), 10 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

static void test_clock_stands_while_nothing_is_active(void **state)
{
    (void)state;
    struct fixture *fx = create_with_capacity(1000, 1);
    fixture_add(fx, 0, 1, 10);
    assert_int_equal(fixture_send(fx), 0);
    fx->now_ns = 5 * MS;
    fixture_finish(fx, 0);
    /* The busy period ends at the largest finish tag. */
    assert_int_equal(sched_virtual_time(fx->s), 10 * FIXTURE_UNIT);
    fx->now_ns = 500 * MS;
    fixture_add(fx, 1, 1, 1);
    assert_int_equal(sched_virtual_time(fx->s), 10 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

static void test_wfq_shares_are_the_weights(void **state)
{
    (void)state;
    const struct sched_params params = {
        .algorithm = SCHED_ALGORITHM_WFQ, .depth = 1, .options.capacity_per_s = 1000};
    struct fixture *fx = fixture_create_with(&params, (const uint32_t[]){4, 2, 1, 0});
    int served[3] = {0};
    for (int f = 0; f < 3; f++)
        fixture_add(fx, f, 1000, 1);
    for (int i = 0; i < 700; i++) {
        fx->now_ns += MS;
        fixture_serve(fx, 1, served);
    }
    assert_int_equal(served[0], 400);
    assert_int_equal(served[1], 200);
    assert_int_equal(served[2], 100);
    fixture_destroy(fx);
}

/* What a flow got while it was alone is held against it, until the busy period ends. */
static void test_virtual_clock_punishes_for_idle_capacity(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_VIRTUAL_CLOCK, 1, equal);
    int served[2] = {0};
    fixture_add(fx, 0, 100, 1);
    fixture_serve(fx, 40, served);
    assert_int_equal(sched_virtual_time(fx->s), 0);
    fixture_add(fx, 1, 100, 1);
    fixture_serve(fx, 40, served);
    assert_int_equal(served[0], 40);
    assert_int_equal(served[1], 40);
    fixture_serve(fx, 20, served);
    assert_int_equal(served[0], 50);
    assert_int_equal(served[1], 50);
    fixture_destroy(fx);
}

static void test_virtual_clock_begins_anew_after_a_busy_period(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_VIRTUAL_CLOCK, 1, equal);
    int served[2] = {0};
    fixture_add(fx, 0, 40, 1);
    fixture_serve(fx, 40, served);
    assert_int_equal(sched_virtual_time(fx->s), 40 * FIXTURE_UNIT);
    fixture_add(fx, 0, 100, 1);
    fixture_add(fx, 1, 100, 1);
    served[0] = 0;
    fixture_serve(fx, 40, served);
    assert_int_equal(served[0], 20);
    assert_int_equal(served[1], 20);
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest_finish_tag_goes_first),
        cmocka_unit_test(test_clock_runs_at_the_capacity_over_the_active_weights),
        cmocka_unit_test(test_unknown_capacity_is_estimated),
        cmocka_unit_test(test_clock_stands_while_nothing_is_active),
        cmocka_unit_test(test_wfq_shares_are_the_weights),
        cmocka_unit_test(test_virtual_clock_punishes_for_idle_capacity),
        cmocka_unit_test(test_virtual_clock_begins_anew_after_a_busy_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
