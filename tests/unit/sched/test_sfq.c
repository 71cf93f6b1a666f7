/* SPDX-License-Identifier: Apache-2.0 */
/* test_sfq.c: shares, order and virtual time of SFQ and SFQ(D), in exact counts. */
#include "tests/unit/sched/fixture.h"

/* Every flow is backlogged throughout: in one round of sum(weights) each gets its weight. */
static void test_equal_costs_give_counts_equal_to_weights(void **state)
{
    (void)state;
    struct fixture *fx =
        fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){256, 128, 32, 1, 0});
    int served[4] = {0};
    fixture_add(fx, 0, 25700, 1);
    fixture_add(fx, 1, 12900, 1);
    fixture_add(fx, 2, 3300, 1);
    fixture_add(fx, 3, 101, 1);
    fixture_serve(fx, 417 * 100, served);
    assert_int_equal(served[0], 25600);
    assert_int_equal(served[1], 12800);
    assert_int_equal(served[2], 3200);
    assert_int_equal(served[3], 100);
    fixture_destroy(fx);
}

static void test_costs_divide_the_counts(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1, 1, 0});
    int served[2] = {0};
    fixture_add(fx, 0, 900, 1);
    fixture_add(fx, 1, 300, 8);
    fixture_serve(fx, 900, served);
    assert_int_equal(served[0], 800);
    assert_int_equal(served[1], 100);
    fixture_destroy(fx);
}

/* 2^40 - 1 at weight 1 against 1 at weight 10^6: neither overflows, both keep their share. */
static void test_extremes_of_cost_and_weight(void **state)
{
    (void)state;
    struct fixture *fx =
        fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1, SCHED_WEIGHT_MAX, 0});
    int served[2] = {0};
    fixture_add(fx, 0, 30, UINT64_MAX);
    fixture_add(fx, 1, 30000, SCHED_COST_MAX / 1000);
    assert_int_equal(fx->items[0].cost, SCHED_COST_MAX);
    fixture_serve(fx, 1, served);
    assert_int_equal(served[0], 1);
    fixture_serve(fx, 29999, served);
    assert_int_equal(served[0], 1);
    fixture_destroy(fx);

    /* Both charges are 1.0 and 1.5 units in the last place; the rests must add up. */
    fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1000000, 700000, 0});
    served[0] = 0;
    served[1] = 0;
    fixture_add(fx, 0, 30000, 1);
    fixture_add(fx, 1, 30000, 1);
    fixture_serve(fx, 34000, served);
    assert_in_range(served[0], 19998, 20002);
    assert_int_equal(served[0] + served[1], 34000);
    fixture_destroy(fx);
}

static void test_cost_of_nothing_counts_as_one(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1, 0});
    fixture_add(fx, 0, 1, 0);
    assert_int_equal(fx->items[0].cost, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fx->items[0].finish, FIXTURE_UNIT);
    fixture_destroy(fx);
}

static void test_equal_tags_go_by_arrival(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){3, 3, 3, 0});
    fixture_add(fx, 2, 1, 5);
    fixture_add(fx, 0, 1, 5);
    fixture_add(fx, 1, 1, 5);
    fixture_add(fx, 1, 1, 5);
    fixture_add(fx, 0, 1, 5);
    fixture_add(fx, 2, 1, 5);
    fixture_expect(fx, (const int[]){0, 1, 2, 3, 4, 5, -1});
    fixture_destroy(fx);
}

static void test_tags_follow_the_equations(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 4, (const uint32_t[]){2, 1, 0});
    fixture_add(fx, 0, 3, 6);
    fixture_add(fx, 1, 1, 4);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 3);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fx->items[0].start, 0);
    assert_int_equal(fx->items[0].finish, 3 * FIXTURE_UNIT);
    assert_int_equal(fx->items[3].start, 0);
    assert_int_equal(fx->items[3].finish, 4 * FIXTURE_UNIT);
    assert_int_equal(fx->items[1].start, 3 * FIXTURE_UNIT);
    assert_int_equal(sched_virtual_time(fx->s), 3 * FIXTURE_UNIT);
    /* The second flow was done at 4: its next starts there, not at v. */
    fixture_add(fx, 1, 1, 1);
    assert_int_equal(fixture_send(fx), 4);
    assert_int_equal(fx->items[4].start, 4 * FIXTURE_UNIT);
    fixture_destroy(fx);
}

static void test_absent_flow_earns_nothing(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1, 1, 0});
    int served[2] = {0};
    fixture_add(fx, 0, 2000, 1);
    fixture_serve(fx, 1000, served);
    fixture_add(fx, 1, 1000, 1);
    fixture_serve(fx, 200, served);
    assert_int_equal(served[0], 1100);
    assert_int_equal(served[1], 100);
    fixture_destroy(fx);
}

/* A flow that used the service alone is not punished for it afterwards. */
static void test_lone_flow_owes_nothing(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1, 1, 0});
    int served[2] = {0};
    fixture_add(fx, 0, 1000, 100);
    fixture_serve(fx, 900, served);
    fixture_add(fx, 1, 1000, 100);
    fixture_serve(fx, 100, served);
    assert_in_range(served[1], 50, 51);
    fixture_destroy(fx);
}

static void test_busy_period_ends_at_the_largest_finish_tag(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 8, (const uint32_t[]){1, 1, 0});
    fixture_add(fx, 0, 1, 70);
    fixture_add(fx, 1, 1, 3);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    fixture_finish(fx, 0);
    assert_int_equal(sched_virtual_time(fx->s), 0);
    fixture_finish(fx, 1);
    assert_int_equal(sched_virtual_time(fx->s), 70 * FIXTURE_UNIT);
    /* Both begin the next busy period level, so arrival decides. */
    fixture_add(fx, 1, 1, 1);
    fixture_add(fx, 0, 1, 1);
    fixture_expect(fx, (const int[]){2, 3, -1});
    fixture_destroy(fx);
}

static void test_sfq_has_one_outstanding_at_any_depth(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQ, 32, (const uint32_t[]){2, 1, 0});
    int served[2] = {0};
    fixture_add(fx, 0, 300, 1);
    fixture_add(fx, 1, 300, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    fixture_finish(fx, 0);
    fixture_serve(fx, 299, served);
    assert_int_equal(served[0], 199);
    assert_int_equal(served[1], 100);
    sched_set_depth(fx->s, 0);
    assert_int_equal(fixture_send(fx), -1);
    fixture_destroy(fx);
}

/* Shares hold while requests complete in reverse, D = 8. */
static void test_shares_hold_with_many_outstanding(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 8, (const uint32_t[]){3, 1, 0});
    struct sched_item *sent[8];
    int served[2] = {0};
    fixture_add(fx, 0, 4000, 1);
    fixture_add(fx, 1, 4000, 1);
    for (int round = 0; round < 500; round++) {
        for (int i = 0; i < 8; i++) {
            sent[i] = sched_dispatch(fx->s, 0);
            served[fixture_flow(fx, sent[i])]++;
        }
        assert_null(sched_dispatch(fx->s, 0));
        for (int i = 7; i >= 0; i--)
            sched_complete(fx->s, sent[i], 1, 0);
    }
    assert_int_equal(served[0], 3000);
    assert_int_equal(served[1], 1000);
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_costs_give_counts_equal_to_weights),
        cmocka_unit_test(test_costs_divide_the_counts),
        cmocka_unit_test(test_extremes_of_cost_and_weight),
        cmocka_unit_test(test_cost_of_nothing_counts_as_one),
        cmocka_unit_test(test_equal_tags_go_by_arrival),
        cmocka_unit_test(test_tags_follow_the_equations),
        cmocka_unit_test(test_absent_flow_earns_nothing),
        cmocka_unit_test(test_lone_flow_owes_nothing),
        cmocka_unit_test(test_busy_period_ends_at_the_largest_finish_tag),
        cmocka_unit_test(test_sfq_has_one_outstanding_at_any_depth),
        cmocka_unit_test(test_shares_hold_with_many_outstanding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
