/* SPDX-License-Identifier: Apache-2.0 */
/* test_deadlines.c: EDF and smallest cost first, which order heads by a point in time. */
#include "tests/unit/sched/fixture.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static const uint32_t two[] = {1, 1, 0};

static void add_at(struct fixture *fx, uint64_t now_ns, int flow, uint64_t cost)
{
    fx->now_ns = now_ns;
    fixture_add(fx, flow, 1, cost);
}

/* Deadlines 100, 60 and 105 ms. */
static void test_edf_goes_by_arrival_plus_target(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_EDF, 1, two);
    fixture_promise(fx, 0, (struct sched_terms){.target_ns = 100 * MS});
    fixture_promise(fx, 1, (struct sched_terms){.target_ns = 10 * MS});
    add_at(fx, 0, 0, 1);
    add_at(fx, 50 * MS, 1, 1);
    add_at(fx, 95 * MS, 1, 1);
    fixture_expect(fx, (const int[]){1, 0, 2, -1});
    fixture_destroy(fx);
}

static void test_edf_breaks_ties_by_arrival_and_keeps_flows_in_order(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_EDF, 1, two);
    fixture_promise(fx, 0, (struct sched_terms){.target_ns = 50 * MS});
    add_at(fx, 0, 0, 1);
    add_at(fx, 50 * MS, 1, 1); /* no promise: due on arrival, at 50 ms as well */
    add_at(fx, 50 * MS, 0, 1);
    add_at(fx, 51 * MS, 1, 1);
    fixture_expect(fx, (const int[]){0, 1, 3, 2, -1});
    fixture_destroy(fx);
}

static void test_edf_follows_a_change_of_target(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_EDF, 1, two);
    fixture_promise(fx, 0, (struct sched_terms){.target_ns = 10 * MS});
    fixture_promise(fx, 1, (struct sched_terms){.target_ns = 20 * MS});
    fixture_add(fx, 0, 2, 1); /* 0 1 */
    fixture_add(fx, 1, 2, 1); /* 2 3 */
    assert_int_equal(fixture_send(fx), 0);
    fixture_promise(fx, 0, (struct sched_terms){.target_ns = 30 * MS});
    fixture_finish(fx, 0);
    fixture_expect(fx, (const int[]){2, 3, 1, -1});
    fixture_destroy(fx);
}

static void test_promises_out_of_range_are_refused(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_EDF, 1, two);
    const struct sched_terms late = {.target_ns = SCHED_TIME_NS_MAX + 1};
    const struct sched_terms fast = {.reservation_per_s = SCHED_RATE_MAX + 1};
    const struct sched_terms wide = {.limit_per_s = SCHED_RATE_MAX + 1};
    const struct sched_options often = {.capacity_per_s = SCHED_RATE_MAX + 1};
    assert_int_equal(sched_flow_set_terms(&fx->flows[0], &late), -EINVAL);
    assert_int_equal(sched_flow_set_terms(&fx->flows[0], &fast), -EINVAL);
    assert_int_equal(sched_flow_set_terms(&fx->flows[0], &wide), -EINVAL);
    assert_int_equal(sched_flow_set_terms(&fx->flows[0], NULL), 0);
    assert_int_equal(sched_set_options(fx->s, &often), -EINVAL);
    const struct sched_params params = {.depth = 1, .options = often};
    assert_null(sched_create(&params));
    fixture_destroy(fx);
}

/* Keys 100, 60 and 105 ms at 1 ms per unit of cost. */
static void test_scf_lets_the_smaller_pass_until_the_larger_has_aged(void **state)
{
    (void)state;
    const struct sched_params params = {
        .algorithm = SCHED_ALGORITHM_SCF, .depth = 1, .options.ageing_ns = MS};
    struct fixture *fx = fixture_create_with(&params, two);
    add_at(fx, 0, 0, 100);
    add_at(fx, 50 * MS, 1, 10);
    add_at(fx, 95 * MS, 1, 10);
    fixture_expect(fx, (const int[]){1, 0, 2, -1});
    fixture_destroy(fx);
}

/* The first of a flow stands before the others, however small these are. */
static void test_scf_keeps_flows_in_order(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SCF, 1, two);
    fixture_add(fx, 0, 1, 50); /* 0 */
    fixture_add(fx, 0, 1, 1);  /* 1 */
    fixture_add(fx, 1, 1, 20); /* 2 */
    fixture_add(fx, 1, 1, 60); /* 3 */
    fixture_expect(fx, (const int[]){2, 0, 1, 3, -1});
    fixture_destroy(fx);
}

static void test_scf_follows_a_change_of_ageing(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SCF, 1, two);
    const struct sched_options quick = {.ageing_ns = 1};
    add_at(fx, 0, 0, 100);
    add_at(fx, 10 * MS, 1, 1);
    /* By default 1 ms per unit: 100 and 11 ms; now 100 ns and 10 ms. */
    assert_int_equal(sched_set_options(fx->s, &quick), 0);
    fixture_expect(fx, (const int[]){0, 1, -1});
    fixture_destroy(fx);
}

static void test_scf_keys_beyond_all_time_are_last(void **state)
{
    (void)state;
    const struct sched_params params = {
        .algorithm = SCHED_ALGORITHM_SCF, .depth = 1, .options.ageing_ns = UINT64_C(1) << 40};
    struct fixture *fx = fixture_create_with(&params, two);
    add_at(fx, 1, 0, SCHED_COST_MAX);
    add_at(fx, 2, 1, 1);
    fixture_expect(fx, (const int[]){1, 0, -1});
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edf_goes_by_arrival_plus_target),
        cmocka_unit_test(test_edf_breaks_ties_by_arrival_and_keeps_flows_in_order),
        cmocka_unit_test(test_edf_follows_a_change_of_target),
        cmocka_unit_test(test_promises_out_of_range_are_refused),
        cmocka_unit_test(test_scf_lets_the_smaller_pass_until_the_larger_has_aged),
        cmocka_unit_test(test_scf_keeps_flows_in_order),
        cmocka_unit_test(test_scf_follows_a_change_of_ageing),
        cmocka_unit_test(test_scf_keys_beyond_all_time_are_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
