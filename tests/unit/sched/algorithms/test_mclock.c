/* SPDX-License-Identifier: Apache-2.0 */
/* test_mclock.c: reservation, limit and share of mClock, in exact counts and times. */
#include "tests/unit/sched/fixture.h"

#define MS UINT64_C(1000000)

static bool by_reservation(const struct fixture *fx, int number)
{
    return (fx->items[number].charged & SCHED_CHARGED_RESERVATION) != 0;
}

/* 100 per second are reserved for flow 0, whose share is 1 to 8. */
static void test_reservation_first_then_shares(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MCLOCK, 1, (const uint32_t[]){1, 8, 0});
    fixture_promise(fx, 0, (struct sched_terms){.reservation_per_s = 100});
    fixture_add(fx, 0, 5, 1);  /* 0 to 4 */
    fixture_add(fx, 1, 30, 1); /* 5 to 34 */
    assert_int_equal(fixture_send(fx), 0);
    assert_true(by_reservation(fx, 0));
    fixture_finish(fx, 0);
    /* R = 10 ms now, and P = 1 for flow 0: it was charged to its share as well. */
    fixture_expect(fx, (const int[]){5, 6, 7, 8, 9, 10, 11, 12, -1});
    /* Level at P = 1: by arrival, and for the share, so that R stays where it is. */
    assert_int_equal(fixture_send(fx), 1);
    assert_false(by_reservation(fx, 1));
    fixture_finish(fx, 1);
    fixture_expect(fx, (const int[]){13, -1});
    fx->now_ns = 10 * MS;
    assert_int_equal(fixture_send(fx), 2);
    assert_true(by_reservation(fx, 2));
    fixture_finish(fx, 2);
    fixture_destroy(fx);
}

/* At one request per millisecond: 300 reserved per second, the rest by weight. */
static void test_counts_of_a_second(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MCLOCK, 1, (const uint32_t[]){1, 1, 6, 0});
    int served[3] = {0};
    fixture_promise(fx, 0, (struct sched_terms){.reservation_per_s = 300});
    fixture_promise(fx, 2, (struct sched_terms){.limit_per_s = 400});
    for (int f = 0; f < 3; f++)
        fixture_add(fx, f, 1500, 1);
    for (int i = 0; i < 1000; i++) {
        fixture_serve(fx, 1, served);
        fx->now_ns += MS;
    }
    /* Flow 2 would get 700 * 6 / 7 but for its limit; flow 0 has more than its share already. */
    assert_in_range(served[0], 300, 301);
    assert_in_range(served[2], 400, 401);
    assert_int_equal(served[0] + served[1] + served[2], 1000);
    fixture_destroy(fx);
}

static void test_limit_holds_and_names_its_time(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MCLOCK, 8, (const uint32_t[]){1, 0});
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 100, .burst = 1});
    fixture_add(fx, 0, 4, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 10 * MS);
    fx->now_ns = 10 * MS;
    assert_int_equal(fixture_send(fx), 2);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 20 * MS);
    fixture_destroy(fx);
}

/* The reservation is met even beyond the limit, which is charged all the same. */
static void test_a_reservation_goes_before_the_limit(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MCLOCK, 8, (const uint32_t[]){1, 0});
    fixture_promise(fx, 0, (struct sched_terms){.reservation_per_s = 200, .limit_per_s = 50});
    fixture_add(fx, 0, 3, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 5 * MS);
    fx->now_ns = 5 * MS;
    assert_int_equal(fixture_send(fx), 1);
    assert_true(by_reservation(fx, 1));
    assert_int_equal(fx->flows[0].limit_ns, 40 * MS);
    fixture_destroy(fx);
}

/* What was charged at a limit that was too low does not hold up what comes under the next one. */
static void test_new_terms_begin_anew(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MCLOCK, 8, (const uint32_t[]){1, 0});
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 1});
    fixture_add(fx, 0, 1, 1000000);
    fixture_add(fx, 0, 2, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(fixture_send(fx), -1);
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 100});
    assert_int_equal(fixture_send(fx), 1);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 10 * MS);
    fixture_destroy(fx);
}

static void test_refusing_at_the_limit(void **state)
{
    (void)state;
    const struct sched_params params = {
        .algorithm = SCHED_ALGORITHM_MCLOCK, .depth = 1, .options.refuse_at_limit = true};
    struct fixture *fx = fixture_create_with(&params, (const uint32_t[]){1, 1, 0});
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 100});
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_OK);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_AT_LIMIT);
    assert_int_equal(fx->flows[0].queued, 1);
    assert_int_equal(fixture_try(fx, 1, 1), SCHED_OK);
    /* What leaves the queue was not charged, so that another may come instead. */
    sched_cancel(fx->s, &fx->items[0], 0);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_OK);
    fx->now_ns = 10 * MS - 1;
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_AT_LIMIT);
    fx->now_ns = 10 * MS;
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_OK);
    /* Let in is let in: nothing waits for the limit again. */
    fixture_expect(fx, (const int[]){1, 2, 3, -1});
    assert_int_equal(sched_wake_ns(fx->s), SCHED_NEVER_NS);
    fixture_destroy(fx);
}

static void test_queue_limits_are_tested_before_the_rate(void **state)
{
    (void)state;
    const struct sched_params params = {.algorithm = SCHED_ALGORITHM_MCLOCK,
                                        .depth = 1,
                                        .total_queue_limit = 1,
                                        .options.refuse_at_limit = true};
    struct fixture *fx = fixture_create_with(&params, (const uint32_t[]){1, 0});
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 1});
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_OK);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_TOTAL_FULL);
    sched_flow_set_limit(&fx->flows[0], 1);
    assert_int_equal(fixture_try(fx, 0, 1), SCHED_FLOW_FULL);
    fixture_destroy(fx);
}

/* Served by its reservation alone, flow 0 runs far ahead in P; a newcomer does not start there. */
static void test_reservations_do_not_carry_the_clock_away(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MCLOCK, 1, (const uint32_t[]){1, 1, 1, 0});
    fixture_promise(fx, 0, (struct sched_terms){.reservation_per_s = 1000});
    fixture_add(fx, 0, 200, 1); /* 0 to 199 */
    fixture_add(fx, 1, 200, 1); /* 200 to 399 */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(fixture_send(fx), i);
        fixture_finish(fx, i);
        fx->now_ns += MS;
    }
    assert_int_equal(sched_virtual_time(fx->s), 0);
    fixture_add(fx, 2, 10, 1); /* 400 to 409 */
    sched_flow_set_terms(&fx->flows[0], NULL);
    fixture_expect(fx, (const int[]){200, 400, 201, 401, 202, 402, -1});
    fixture_destroy(fx);
}

static void test_corrections_move_what_was_charged(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_MCLOCK, 1, (const uint32_t[]){1, 0});
    fixture_promise(fx, 0, (struct sched_terms){.limit_per_s = 100});
    fixture_add(fx, 0, 2, 4);
    assert_int_equal(fixture_send(fx), 0);
    sched_complete(fx->s, &fx->items[0], 1, 0);
    assert_int_equal(fixture_send(fx), -1);
    assert_int_equal(sched_wake_ns(fx->s), 10 * MS);
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reservation_first_then_shares),
        cmocka_unit_test(test_counts_of_a_second),
        cmocka_unit_test(test_limit_holds_and_names_its_time),
        cmocka_unit_test(test_a_reservation_goes_before_the_limit),
        cmocka_unit_test(test_new_terms_begin_anew),
        cmocka_unit_test(test_refusing_at_the_limit),
        cmocka_unit_test(test_queue_limits_are_tested_before_the_rate),
        cmocka_unit_test(test_reservations_do_not_carry_the_clock_away),
        cmocka_unit_test(test_corrections_move_what_was_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
