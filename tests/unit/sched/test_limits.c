/* SPDX-License-Identifier: Apache-2.0 */
/* test_limits.c: depth in requests and in cost, and the limits of the queues. */
#include "tests/unit/sched/fixture.h"

#include <errno.h>

static const uint32_t weights[] = {1, 1, 0};

static void test_flow_limit_comes_before_the_shared_one(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, weights);
    sched_set_limits(fx->s, 3, 5);
    fixture_add(fx, 0, 3, 1);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_FLOW_FULL);
    fixture_add(fx, 1, 2, 1);
    assert_int_equal(fixture_try(fx, 1, 1), SCHED_TOTAL_FULL);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_FLOW_FULL);
    /* A dispatch makes room, for the flow and for all. */
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_OK);
    assert_int_equal(fixture_try(fx, 1, 1), SCHED_TOTAL_FULL);
    assert_int_equal(sched_queued(fx->s), 5);
    fixture_destroy(fx);
}

static void test_refused_item_is_untouched(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 1, weights);
    sched_set_limits(fx->s, 0, 1);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_try(fx, 1, 1), SCHED_TOTAL_FULL);
    assert_int_equal(fx->items[1].state, SCHED_ITEM_IDLE);
    assert_int_equal(fx->flows[1].queued, 0);
    assert_true(sched_flow_idle(fx->s, &fx->flows[1]));
    fixture_destroy(fx);
}

static void test_own_limit_of_a_flow_overrides(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, weights);
    sched_set_limits(fx->s, 2, 0);
    sched_flow_set_limit(&fx->flows[0], 4);
    fixture_add(fx, 0, 4, 1);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_FLOW_FULL);
    fixture_add(fx, 1, 2, 1);
    assert_int_equal(fixture_try(fx, 1, 1), SCHED_FLOW_FULL);
    fixture_destroy(fx);
}

static void test_zero_is_no_limit(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, weights);
    fixture_add(fx, 0, 30000, 1);
    assert_int_equal(sched_queued(fx->s), 30000);
    sched_set_limits(fx->s, 1, 1);
    assert_int_equal(sched_queued(fx->s), 30000);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_FLOW_FULL);
    fixture_destroy(fx);
}

static void test_depth_changes_while_running(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 0, weights);
    fixture_add(fx, 0, 8, 1);
    assert_int_equal(fixture_send(fx), -1);
    sched_set_depth(fx->s, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fx), i);
    assert_int_equal(fixture_send(fx), -1);
    sched_set_depth(fx->s, 1);
    fixture_finish(fx, 0);
    fixture_finish(fx, 1);
    assert_int_equal(fixture_send(fx), -1);
    fixture_finish(fx, 2);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_depth(fx->s), 1);
    fixture_destroy(fx);
}

static void test_depth_in_cost_units(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 100, weights);
    assert_int_equal(sched_set_depth_unit(fx->s, SCHED_DEPTH_COST), 0);
    fixture_add(fx, 0, 3, 40);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_outstanding_cost(fx->s), 80);
    /* A small request does not overtake the one whose turn it is. */
    fixture_add(fx, 0, 1, 20);
    assert_int_equal(fixture_send(fx), -1);
    fixture_finish(fx, 1);
    assert_int_equal(fixture_send(fx), 2);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(sched_outstanding_cost(fx->s), 100);
    fixture_destroy(fx);
}

static void test_request_larger_than_the_depth_goes_alone(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 100, weights);
    sched_set_depth_unit(fx->s, SCHED_DEPTH_COST);
    fixture_add(fx, 0, 1, 1);
    fixture_add(fx, 0, 1, 5000);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    fixture_finish(fx, 0);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), -1);
    fixture_finish(fx, 1);
    assert_int_equal(fixture_send(fx), 2);
    sched_set_depth(fx->s, 0);
    fixture_finish(fx, 2);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

static void test_unknown_choices_are_refused(void **state)
{
    (void)state;
    const struct sched_params bad_algorithm = {.algorithm = (enum sched_algorithm)77, .depth = 1};
    const struct sched_params bad_unit = {.depth_unit = (enum sched_depth_unit)77, .depth = 1};
    errno = 0;
    assert_null(sched_create(&bad_algorithm));
    assert_int_equal(errno, EINVAL);
    assert_null(sched_create(&bad_unit));
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, weights);
    assert_int_equal(sched_set_depth_unit(fx->s, (enum sched_depth_unit)77), -EINVAL);
    assert_int_equal(sched_set_algorithm(fx->s, (enum sched_algorithm)77), -EINVAL);
    assert_int_equal(sched_algorithm_of(fx->s), SCHED_ALGORITHM_SFQD);
    fixture_destroy(fx);
    sched_destroy(NULL);
}

static void test_names_go_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < SCHED_ALGORITHMS; i++)
        assert_int_equal(sched_algorithm_from_name(sched_algorithm_name((enum sched_algorithm)i)),
                         i);
    assert_int_equal(sched_algorithm_from_name("fifo"), SCHED_ALGORITHM_FIFO);
    assert_int_equal(sched_algorithm_from_name("sfq"), SCHED_ALGORITHM_SFQ);
    assert_int_equal(sched_algorithm_from_name("sfqd"), SCHED_ALGORITHM_SFQD);
    assert_int_equal(sched_algorithm_from_name("min-sfqd"), SCHED_ALGORITHM_MINSFQD);
    assert_int_equal(sched_algorithm_from_name("SFQD"), -EINVAL);
    assert_int_equal(sched_algorithm_from_name(""), -EINVAL);
    assert_null(sched_algorithm_name((enum sched_algorithm)SCHED_ALGORITHMS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow_limit_comes_before_the_shared_one),
        cmocka_unit_test(test_refused_item_is_untouched),
        cmocka_unit_test(test_own_limit_of_a_flow_overrides),
        cmocka_unit_test(test_zero_is_no_limit),
        cmocka_unit_test(test_depth_changes_while_running),
        cmocka_unit_test(test_depth_in_cost_units),
        cmocka_unit_test(test_request_larger_than_the_depth_goes_alone),
        cmocka_unit_test(test_unknown_choices_are_refused),
        cmocka_unit_test(test_names_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
