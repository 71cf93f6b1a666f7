/* SPDX-License-Identifier: Apache-2.0 */
/* test_fsfq.c: the two clocks of FSFQ(D), in exact numbers. */
#include "tests/unit/sched/fixture.h"

static const uint32_t equal[] = {1, 1, 0};

/* S, S' of the paper, step by step: D = 2, equal weights, costs of 1. */
static void test_tags_follow_the_equations(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FSFQ, 2, equal);
    fixture_add(fx, 0, 6, 1); /* 0 to 5 */
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    /* 0 stays; 1, 2, 3 are served beside it: v = 4 once 4 is sent, v' = 0. */
    for (int i = 1; i <= 3; i++) {
        fixture_finish(fx, i);
        assert_int_equal(fixture_send(fx), i + 1);
    }
    assert_int_equal(sched_virtual_time(fx->s), 4 * FIXTURE_UNIT);
    /* Flow 1 wakes up at S = 4, S' = 0, 1, 2, ...: five requests at S = 4 with rising S'. */
    fixture_add(fx, 1, 7, 1); /* 6 to 12 */
    fixture_finish(fx, 4);
    for (int i = 6; i <= 10; i++) {
        assert_int_equal(fixture_send(fx), i);
        assert_int_equal(fx->items[i].start, 4 * FIXTURE_UNIT);
        fixture_finish(fx, i);
    }
    /* The sixth has S' = 5 = S, as flow 0 has: by arrival from here on. */
    assert_int_equal(fixture_send(fx), 5);
    assert_int_equal(fx->items[5].start, 5 * FIXTURE_UNIT);
    fixture_finish(fx, 5);
    assert_int_equal(fixture_send(fx), 11);
    assert_int_equal(fx->items[11].start, 5 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

/* Under sfqd the same case gives flow 1 its turn only: nothing is made up for. */
static void test_sfqd_gives_no_credit_in_the_same_case(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 2, equal);
    fixture_add(fx, 0, 6, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    for (int i = 1; i <= 3; i++) {
        fixture_finish(fx, i);
        assert_int_equal(fixture_send(fx), i + 1);
    }
    fixture_add(fx, 1, 7, 1);
    fixture_finish(fx, 4);
    fixture_expect(fx, (const int[]){6, 5, 7, 8, -1});
    fixture_destroy(fx);
}

/* With D = 1 there is never anything outstanding when a flow wakes up between two requests. */
static void test_no_credit_when_nothing_is_outstanding(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FSFQ, 1, equal);
    int served[2] = {0};
    fixture_add(fx, 0, 2000, 1);
    fixture_serve(fx, 1000, served);
    fixture_add(fx, 1, 1000, 1);
    served[0] = 0;
    fixture_serve(fx, 200, served);
    assert_int_equal(served[0], 100);
    assert_int_equal(served[1], 100);
    fixture_destroy(fx);
}

static void test_shares_are_the_weights(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FSFQ, 4, (const uint32_t[]){5, 2, 1, 0});
    int served[3] = {0};
    for (int f = 0; f < 3; f++)
        fixture_add(fx, f, 1000, 1);
    fixture_serve(fx, 800, served);
    assert_int_equal(served[0], 500);
    assert_int_equal(served[1], 200);
    assert_int_equal(served[2], 100);
    fixture_destroy(fx);
}

/* F <= v' makes a flow one to forget, F <= v does not yet. */
static void test_a_flow_is_forgotten_by_the_second_clock(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FSFQ, 3, (const uint32_t[]){1, 1, 1, 0});
    fixture_add(fx, 0, 1, 1); /* 0 */
    fixture_add(fx, 1, 1, 2); /* 1: F = 2 */
    fixture_add(fx, 2, 9, 1); /* 2 to 10 */
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fx), i);
    fixture_finish(fx, 1);
    for (int i = 2; i <= 5; i++) {
        assert_int_equal(fixture_send(fx), i + 1);
        fixture_finish(fx, i);
    }
    assert_int_equal(sched_virtual_time(fx->s), 4 * FIXTURE_UNIT);
    assert_false(sched_flow_idle(fx->s, &fx->flows[1]));
    /* 0 has held v' at 0; now it is 4. */
    fixture_finish(fx, 0);
    assert_true(sched_flow_idle(fx->s, &fx->flows[1]));
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags_follow_the_equations),
        cmocka_unit_test(test_sfqd_gives_no_credit_in_the_same_case),
        cmocka_unit_test(test_no_credit_when_nothing_is_outstanding),
        cmocka_unit_test(test_shares_are_the_weights),
        cmocka_unit_test(test_a_flow_is_forgotten_by_the_second_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
