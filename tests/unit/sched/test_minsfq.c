/* SPDX-License-Identifier: Apache-2.0 */
/* test_minsfq.c: the virtual time of Min-SFQ(D), and why it is only a baseline. */
#include "tests/unit/sched/fixture.h"

static void test_virtual_time_is_the_smallest_outstanding_start(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MINSFQD, 3, (const uint32_t[]){1, 1, 0});
    fixture_add(fx, 0, 4, 5);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fx), i);
    assert_int_equal(sched_virtual_time(fx->s), 0);
    fixture_finish(fx, 1);
    assert_int_equal(sched_virtual_time(fx->s), 0);
    assert_int_equal(fixture_send(fx), 3);
    fixture_finish(fx, 0);
    assert_int_equal(sched_virtual_time(fx->s), 10 * FIXTURE_UNIT);
    fixture_finish(fx, 2);
    assert_int_equal(sched_virtual_time(fx->s), 15 * FIXTURE_UNIT);
    fixture_finish(fx, 3);
    assert_int_equal(sched_virtual_time(fx->s), 20 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

/* A later request with an earlier tag becomes the one that holds v. */
static void test_outstanding_need_not_be_in_order_of_tags(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MINSFQD, 4, (const uint32_t[]){1, 1, 0});
    fixture_add(fx, 0, 3, 10);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), 2);
    fixture_add(fx, 1, 1, 10);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fx->items[3].start, 0);
    fixture_finish(fx, 0);
    assert_int_equal(sched_virtual_time(fx->s), 0);
    fixture_finish(fx, 3);
    assert_int_equal(sched_virtual_time(fx->s), 10 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

/*
 * One request of flow 1 stays at the service while flow 0 is served 1000 times; then flow 1 comes
 * with a burst and the next 100 free slots are counted. D = 4, unit costs, equal weights.
 */
static void serve_burst_after_a_lag(enum sched_algorithm algorithm, int *served)
{
    struct fixture *fx = fixture_create(algorithm, 4, (const uint32_t[]){1, 1, 0});
    fixture_add(fx, 1, 1, 1);
    assert_int_equal(fixture_send(fx), 0);
    fixture_add(fx, 0, 2000, 1);
    int ignored[2] = {0};
    fixture_serve(fx, 1000, ignored);
    assert_int_equal(ignored[0], 1000);
    fixture_add(fx, 1, 1000, 1);
    fixture_serve(fx, 100, served);
    fixture_destroy(fx);
}

static void test_lagging_flow_starves_the_others(void **state)
{
    (void)state;
    int served[2] = {0};
    serve_burst_after_a_lag(SCHED_ALGORITHM_MINSFQD, served);
    assert_int_equal(served[0], 0);
    assert_int_equal(served[1], 100);
}

static void test_sfqd_does_not_starve_in_the_same_case(void **state)
{
    (void)state;
    int served[2] = {0};
    serve_burst_after_a_lag(SCHED_ALGORITHM_SFQD, served);
    assert_int_equal(served[0], 50);
    assert_int_equal(served[1], 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_virtual_time_is_the_smallest_outstanding_start),
        cmocka_unit_test(test_outstanding_need_not_be_in_order_of_tags),
        cmocka_unit_test(test_lagging_flow_starves_the_others),
        cmocka_unit_test(test_sfqd_does_not_starve_in_the_same_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
