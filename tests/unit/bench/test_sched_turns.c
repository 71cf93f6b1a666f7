/* SPDX-License-Identifier: Apache-2.0 */
/* The loads of schedbench are the steady states that sched_turns.h promises, for every algorithm.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/sched_turns.h"

#define FLOWS  40
#define QUEUED 4
#define DEPTH  6
#define TURNS  10000

static struct turns_plan plan_of(enum turns_mode mode, int algorithm)
{
    return (struct turns_plan){
        .algorithm = (enum sched_algorithm)algorithm,
        .mode = mode,
        .flows = FLOWS,
        .queued = QUEUED,
        .depth = DEPTH,
        .seed = 7,
    };
}

static bool exists(int algorithm)
{
    return sched_algorithm_name((enum sched_algorithm)algorithm) != NULL;
}

static uint64_t depth_under(int algorithm)
{
    return algorithm == SCHED_ALGORITHM_SFQ ? 1 : DEPTH;
}

static void check_steady(const struct turns *turns, int algorithm)
{
    for (uint64_t i = 0; i < FLOWS; i++)
        assert_int_equal(turns->flows[i].queued, QUEUED);
    assert_int_equal(sched_queued(turns->sched), FLOWS * QUEUED);
    assert_int_equal(sched_outstanding(turns->sched), depth_under(algorithm));
}

static void test_steady_stays_steady(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < SCHED_ALGORITHMS; algorithm++) {
        if (!exists(algorithm))
            continue;
        struct turns_plan plan = plan_of(TURNS_STEADY, algorithm);
        plan.random_weights = algorithm % 2 == 0;
        plan.random_costs = plan.random_weights;
        struct turns turns;
        assert_int_equal(turns_init(&turns, &plan), 0);
        check_steady(&turns, algorithm);
        assert_int_equal(turns_run(&turns, TURNS), TURNS);
        check_steady(&turns, algorithm);
        turns_fini(&turns);
    }
}

/* Each flow has at most one request, and those with none are the ones in the idle ring. */
static void check_churn(const struct turns *turns)
{
    uint64_t idle = 0;

    for (uint64_t i = 0; i < FLOWS; i++) {
        const struct sched_flow *flow = &turns->flows[i];
        assert_true(flow->queued + flow->outstanding <= 1);
        idle += flow->queued + flow->outstanding == 0;
    }
    assert_int_equal(sched_queued(turns->sched), FLOWS / 2);
    assert_int_equal(turns->idle.tail - turns->idle.head, idle);
    assert_int_equal(idle, FLOWS / 2 - sched_outstanding(turns->sched));
}

static void test_churn_wakes_an_idle_flow_each_time(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < SCHED_ALGORITHMS; algorithm++) {
        if (!exists(algorithm))
            continue;
        const struct turns_plan plan = plan_of(TURNS_CHURN, algorithm);
        struct turns turns;
        assert_int_equal(turns_init(&turns, &plan), 0);
        check_churn(&turns);
        for (int i = 0; i < TURNS; i++) {
            const struct sched_flow *woken = turns.idle.places[turns.idle.head & turns.idle.mask];
            assert_int_equal(woken->queued + woken->outstanding, 0);
            assert_int_equal(turns_run(&turns, 1), 1);
        }
        check_churn(&turns);
        turns_fini(&turns);
    }
}

static void test_one_flow(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < SCHED_ALGORITHMS; algorithm++) {
        if (!exists(algorithm))
            continue;
        for (int mode = TURNS_STEADY; mode <= TURNS_LIFE; mode++) {
            struct turns_plan plan = plan_of((enum turns_mode)mode, algorithm);
            struct turns turns;
            plan.flows = 1;
            assert_int_equal(turns_init(&turns, &plan), 0);
            assert_int_equal(turns_run(&turns, TURNS), TURNS);
            turns_fini(&turns);
        }
    }
}

static void test_life_ends_with_nothing_attached(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < SCHED_ALGORITHMS; algorithm++) {
        if (!exists(algorithm))
            continue;
        const struct turns_plan plan = plan_of(TURNS_LIFE, algorithm);
        struct turns turns;
        assert_int_equal(turns_init(&turns, &plan), 0);
        assert_int_equal(turns_run(&turns, FLOWS + 1), 2 * FLOWS);
        assert_int_equal(sched_flows(turns.sched), 0);
        turns_fini(&turns);
    }
}

static void test_bare_list_is_first_in_first_out(void **state)
{
    (void)state;
    struct turns_plan plan = plan_of(TURNS_STEADY, 0);
    struct turns turns;

    plan.bare_list = true;
    assert_int_equal(turns_init(&turns, &plan), 0);
    const struct sched_item *first = turns.list.head;
    assert_int_equal(turns_run(&turns, 1), 1);
    assert_ptr_equal(
        turns.outstanding.places[(turns.outstanding.tail - 1) & turns.outstanding.mask], first);
    assert_int_equal(turns_run(&turns, TURNS), TURNS);
    turns_fini(&turns);

    plan.mode = TURNS_LIFE;
    assert_int_equal(turns_init(&turns, &plan), -ENOTSUP);
    turns_fini(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_stays_steady),
        cmocka_unit_test(test_churn_wakes_an_idle_flow_each_time),
        cmocka_unit_test(test_one_flow),
        cmocka_unit_test(test_life_ends_with_nothing_attached),
        cmocka_unit_test(test_bare_list_is_first_in_first_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
