/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_feedback.c: the feedback loop's decisions, one rule per test, on samples made up for it. How
 * it behaves on a service is in tests/property/sched/test_feedback.c.
 */
#include "sched/feedback/feedback.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS_NS UINT64_C(1000000)

/* A flow with a target of 100 ms, and one without that takes the rest. */
struct fixture {
    struct sched_feedback loop;
    struct sched_feedback_flow flow;
    struct sched_feedback_flow other;
};

static const struct sched_feedback_terms flow_terms = {
    .target_ns = 100 * MS_NS, .weight = 1000, .weight_min = 500, .weight_max = 4000};
static const struct sched_feedback_terms other_terms = {.weight = 3000};

static void fixture_init(struct fixture *fx)
{
    const struct sched_feedback_params defaults = {0};

    assert_int_equal(sched_feedback_init(&fx->loop, &defaults), 0);
    assert_int_equal(sched_feedback_add(&fx->loop, &fx->flow, &flow_terms), 0);
    assert_int_equal(sched_feedback_add(&fx->loop, &fx->other, &other_terms), 0);
}

static struct sched_feedback_sample sample_of(uint64_t completions, uint64_t response_ms)
{
    return (struct sched_feedback_sample){.completions = completions,
                                          .response_ns = response_ms * MS_NS,
                                          .wait_ns = response_ms * MS_NS,
                                          .active = 1};
}

/* Periods in which the flow's requests take so long, 1000 each. */
static void periods(struct fixture *fx, unsigned count, uint64_t response_ms)
{
    for (unsigned i = 0; i < count; i++) {
        fx->flow.sample = sample_of(1000, response_ms);
        fx->other.sample = sample_of(1000, 5000);
        sched_feedback_step(&fx->loop);
    }
}

static void test_nothing_is_known_at_first(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_UNKNOWN);
    assert_int_equal(fx.other.state, SCHED_FEEDBACK_NO_TARGET);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(sched_feedback_step(&fx.loop), 0);
    assert_int_equal(fx.flow.weight, 1000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_UNKNOWN);
}

static void test_a_single_miss_changes_nothing(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (int i = 0; i < 100; i++) {
        periods(&fx, 1, 300);
        periods(&fx, 3, 90);
    }
    assert_int_equal(fx.flow.weight, 1000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_MET);
}

/* One step of a quarter per decision; the period after each is not looked at. */
static void test_a_missed_target_raises_the_weight(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    periods(&fx, 1, 300);
    assert_int_equal(fx.flow.weight, 1000);
    periods(&fx, 1, 300);
    assert_int_equal(fx.flow.weight, 1250);
    assert_true(fx.flow.moved);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_RAISING);
    periods(&fx, 1, 300);
    assert_int_equal(fx.flow.weight, 1250);
    assert_false(fx.flow.moved);
    periods(&fx, 1, 300);
    assert_int_equal(fx.flow.weight, 1562);
    assert_int_equal(fx.other.weight, 3000);
}

static void test_it_waits_while_the_response_falls(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (uint64_t response_ms = 3000; response_ms > 110; response_ms -= response_ms / 6)
        periods(&fx, 1, response_ms);
    assert_int_equal(fx.flow.weight, 1000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_RAISING);
}

static void test_the_limit_is_reached_and_not_passed(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    periods(&fx, 16, 300);
    assert_int_equal(fx.flow.weight, 4000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_AT_LIMIT);
    periods(&fx, 10, 300);
    assert_int_equal(fx.flow.weight, 4000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_INFEASIBLE);
    assert_int_equal(sched_feedback_infeasible(&fx.loop), 1);
    periods(&fx, 3, 80);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_INFEASIBLE);
    periods(&fx, 1, 80);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_MET);
    assert_int_equal(sched_feedback_infeasible(&fx.loop), 0);
    assert_int_equal(fx.flow.weight, 4000);
}

static void test_within_the_band_the_weight_rests(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    periods(&fx, 4, 300);
    assert_int_equal(fx.flow.weight, 1562);
    for (int i = 0; i < 1000; i++) {
        periods(&fx, 1, 50);
        periods(&fx, 1, 100);
    }
    assert_int_equal(fx.flow.weight, 1562);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_MET);
}

static void test_much_room_brings_the_weight_back(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    periods(&fx, 4, 300);
    periods(&fx, 6, 10);
    assert_int_equal(fx.flow.weight, 1562);
    periods(&fx, 1, 10);
    assert_int_equal(fx.flow.weight, 1562 - 1562 / 8);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_LOWERING);
    periods(&fx, 100, 10);
    assert_int_equal(fx.flow.weight, 1000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_MET);
    assert_int_equal(fx.flow.reversals, 1);
}

/* From 10 to 40 ms there is much room all the time, but less and less. */
static void test_it_does_not_go_down_while_the_response_rises(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    periods(&fx, 4, 300);
    for (uint64_t response_ms = 10; response_ms < 45; response_ms += response_ms / 7 + 1)
        periods(&fx, 1, response_ms);
    assert_int_equal(fx.flow.weight, 1562);
}

/* A reversal halves the step, eight steps up double it. */
static void test_steps_grow_again_on_a_long_way_up(void **state)
{
    struct fixture fx;
    struct sched_feedback_terms terms = flow_terms;

    (void)state;
    fixture_init(&fx);
    terms.weight = 1024;
    terms.weight_max = 100000;
    assert_int_equal(sched_feedback_set_terms(&fx.flow, &terms), 0);
    periods(&fx, 2, 300);
    assert_int_equal(fx.flow.weight, 1280);
    periods(&fx, 7, 10);
    assert_int_equal(fx.flow.weight, 1120);
    periods(&fx, 3, 300);
    assert_int_equal(fx.flow.weight, 1120 + 1120 / 16);
    for (int i = 2; i <= 9; i++) {
        const uint32_t before = fx.flow.weight;
        periods(&fx, 2, 300);
        assert_int_equal(fx.flow.weight, before + before / (i < 9 ? 16 : 8));
    }
}

/* A service on which any step down from 1500 misses, and any step up from there has much room. */
static void test_a_cliff_does_not_make_it_swing(void **state)
{
    struct fixture fx;
    uint32_t before = 0;

    (void)state;
    fixture_init(&fx);
    for (unsigned period = 0; period < 20000; period++) {
        periods(&fx, 1, fx.flow.weight < 1500 ? 1000 : 20);
        if (period % 1000 != 999)
            continue;
        assert_true(fx.flow.reversals - before <= 2);
        before = fx.flow.reversals;
    }
    assert_in_range(fx.flow.weight, 1500, 1600);
    /* One attempt at the beginning, then after 1024, 2048, 4096, 8192 periods more. */
    assert_int_equal(fx.flow.reversals, 10);
}

/* After a way down that failed, a response of less than half of what it was then reopens it. */
static void test_a_load_that_goes_down_cuts_the_rest_short(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (unsigned period = 0; period < 60; period++)
        periods(&fx, 1, fx.flow.weight < 1500 ? 1000 : 40);
    const uint32_t rested = fx.flow.weight;
    assert_int_equal(fx.flow.reversals, 2);
    periods(&fx, 50, 40);
    periods(&fx, 50, 21);
    assert_int_equal(fx.flow.weight, rested);
    periods(&fx, 100, 15);
    assert_true(fx.flow.weight < rested);
    periods(&fx, 400, 15);
    assert_int_equal(fx.flow.weight, 1000);
}

/* Of 300 ms, 150 are spent at the service. */
static void test_no_weight_shortens_the_service(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (int i = 0; i < 100; i++) {
        fx.flow.sample = sample_of(1000, 300);
        fx.flow.sample.wait_ns = 150 * MS_NS;
        fx.other.sample = sample_of(1000, 300);
        sched_feedback_step(&fx.loop);
    }
    assert_int_equal(fx.flow.weight, 1000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_INFEASIBLE);
}

/* Alone, or beside flows that hold next to nothing. */
static void test_nothing_to_take_from(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (int i = 0; i < 100; i++) {
        fx.flow.sample = sample_of(1000, 300);
        sched_feedback_step(&fx.loop);
    }
    assert_int_equal(fx.flow.weight, 1000);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_INFEASIBLE);
    periods(&fx, 4, 300);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_RAISING);
}

/* A class of 100 flows of weight 1000 each, beside one flow of 3000. */
static void test_flows_made_per_key_count_each(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (int i = 0; i < 10; i++) {
        fx.flow.sample = sample_of(1000, 300);
        fx.flow.sample.active = 100;
        fx.other.sample = sample_of(1000, 300);
        sched_feedback_step(&fx.loop);
    }
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_INFEASIBLE);
}

static void test_few_samples_are_collected_first(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (int period = 1; period <= 16; period++) {
        fx.flow.sample = sample_of(4, 300);
        fx.other.sample = sample_of(4, 300);
        sched_feedback_step(&fx.loop);
        assert_int_equal(fx.flow.measured_ns, period < 8 ? 0 : 300 * MS_NS);
        assert_int_equal(fx.flow.weight, period < 16 ? 1000 : 1250);
    }
}

static void test_what_is_collected_counts_by_completions(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    fx.flow.sample = sample_of(30, 10);
    sched_feedback_step(&fx.loop);
    fx.flow.sample = sample_of(10, 90);
    sched_feedback_step(&fx.loop);
    assert_int_equal(fx.flow.measured_ns, 30 * MS_NS);
}

static void test_a_flow_that_gets_nothing_is_off_its_target(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (uint64_t second = 1; second <= 2; second++) {
        fx.flow.sample =
            (struct sched_feedback_sample){.oldest_wait_ns = second * 1000 * MS_NS, .active = 1};
        fx.other.sample = sample_of(1000, 300);
        sched_feedback_step(&fx.loop);
    }
    assert_int_equal(fx.flow.weight, 1250);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_RAISING);
}

static void test_an_idle_flow_is_forgotten(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    periods(&fx, 40, 300);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_INFEASIBLE);
    for (int i = 0; i < 20; i++)
        sched_feedback_step(&fx.loop);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_UNKNOWN);
    assert_int_equal(fx.flow.measured_ns, 0);
}

/* The second flow has a target as well and much room: it gives down to its weight_min, and takes
 * that back when nobody is off target. */
static void test_room_is_given_to_one_that_cannot_help_itself(void **state)
{
    struct fixture fx;
    const struct sched_feedback_terms roomy = {
        .target_ns = 1000 * MS_NS, .weight = 3000, .weight_min = 1500, .weight_max = 3000};

    (void)state;
    fixture_init(&fx);
    assert_int_equal(sched_feedback_set_terms(&fx.other, &roomy), 0);
    for (int i = 0; i < 200; i++) {
        fx.flow.sample = sample_of(1000, 300);
        fx.other.sample = sample_of(1000, 30);
        sched_feedback_step(&fx.loop);
        assert_true(fx.flow.weight == 4000 || fx.other.weight == 3000);
    }
    assert_int_equal(fx.other.weight, 1500);
    for (int i = 0; i < 200; i++) {
        fx.flow.sample = sample_of(1000, 90);
        fx.other.sample = sample_of(1000, 30);
        sched_feedback_step(&fx.loop);
    }
    assert_int_equal(fx.other.weight, 3000);
}

/* The other flow misses whenever this one has been raised: the third time it stands back. */
static void test_one_that_harms_another_stands_back(void **state)
{
    struct fixture fx;
    const struct sched_feedback_terms fragile = {
        .target_ns = 100 * MS_NS, .weight = 3000, .weight_min = 3000, .weight_max = 3000};
    struct sched_feedback_flow third;
    struct sched_feedback_terms unlimited = flow_terms;
    uint32_t weight_at_30 = 0;

    (void)state;
    fixture_init(&fx);
    unlimited.weight_max = SCHED_FEEDBACK_WEIGHT_MAX;
    assert_int_equal(sched_feedback_set_terms(&fx.flow, &unlimited), 0);
    assert_int_equal(sched_feedback_add(&fx.loop, &third, &other_terms), 0);
    assert_int_equal(sched_feedback_set_terms(&fx.other, &fragile), 0);
    for (int i = 0; i < 90; i++) {
        fx.flow.sample = sample_of(1000, 300);
        fx.other.sample = sample_of(1000, i % 10 >= 8 ? 300 : 60);
        third.sample = sample_of(1000, 300);
        sched_feedback_step(&fx.loop);
        if (i == 30)
            weight_at_30 = fx.flow.weight;
    }
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_INFEASIBLE);
    assert_int_equal(fx.flow.weight, weight_at_30);
}

/* Two that were never on target have driven nobody off. */
static void test_flows_that_start_off_target_are_not_blamed(void **state)
{
    struct fixture fx;
    struct sched_feedback_flow third;

    (void)state;
    fixture_init(&fx);
    assert_int_equal(sched_feedback_add(&fx.loop, &third, &flow_terms), 0);
    for (int i = 0; i < 18; i++) {
        third.sample = sample_of(1000, 300);
        periods(&fx, 1, 300);
    }
    assert_int_equal(fx.flow.weight, 4000);
    assert_int_equal(third.weight, 4000);
}

static void test_new_terms_start_again(void **state)
{
    struct fixture fx;
    struct sched_feedback_terms terms = flow_terms;

    (void)state;
    fixture_init(&fx);
    periods(&fx, 2, 300);
    assert_int_equal(sched_feedback_set_terms(&fx.flow, &terms), 0);
    assert_int_equal(fx.flow.weight, 1250);
    terms.weight = 700;
    assert_int_equal(sched_feedback_set_terms(&fx.flow, &terms), 0);
    assert_int_equal(fx.flow.weight, 700);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_UNKNOWN);
    terms.target_ns = 0;
    assert_int_equal(sched_feedback_set_terms(&fx.flow, &terms), 0);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_NO_TARGET);
    periods(&fx, 10, 300);
    assert_int_equal(fx.flow.weight, 700);
}

static void test_terms_out_of_range_change_nothing(void **state)
{
    struct fixture fx;
    struct sched_feedback_flow flow;
    const struct sched_feedback_terms wrong[] = {
        {.target_ns = 1, .weight = 0, .weight_min = 0, .weight_max = 10},
        {.target_ns = 1, .weight = 5, .weight_min = 0, .weight_max = 10},
        {.target_ns = 1, .weight = 5, .weight_min = 6, .weight_max = 10},
        {.target_ns = 1, .weight = 5, .weight_min = 1, .weight_max = 4},
        {.target_ns = 1, .weight = 5, .weight_min = 1, .weight_max = 1000001},
        {.target_ns = SCHED_FEEDBACK_TIME_NS_MAX + 1,
         .weight = 5,
         .weight_min = 1,
         .weight_max = 10},
        {.weight = 1000001},
    };
    const struct sched_feedback_params no_room = {.room_percent = 9};
    const struct sched_feedback_params all_room = {.room_percent = 91};

    (void)state;
    fixture_init(&fx);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(sched_feedback_add(&fx.loop, &flow, &wrong[i]), -EINVAL);
        assert_int_equal(sched_feedback_set_terms(&fx.flow, &wrong[i]), -EINVAL);
    }
    assert_int_equal(fx.flow.weight, 1000);
    assert_int_equal(sched_feedback_init(&fx.loop, &no_room), -EINVAL);
    assert_int_equal(sched_feedback_init(&fx.loop, &all_room), -EINVAL);
}

static void test_a_flow_may_leave(void **state)
{
    struct fixture fx;
    struct sched_feedback_flow third;

    (void)state;
    fixture_init(&fx);
    assert_int_equal(sched_feedback_add(&fx.loop, &third, &flow_terms), 0);
    assert_int_equal(sched_feedback_set_terms(&fx.flow, &other_terms), 0);
    assert_int_equal(sched_feedback_set_terms(&fx.other, &flow_terms), 0);
    sched_feedback_remove(&fx.loop, &fx.flow);
    memset(&fx.flow, 0xff, sizeof(fx.flow));
    assert_int_equal(sched_feedback_step(&fx.loop), 0);
    sched_feedback_remove(&fx.loop, &third);
    sched_feedback_remove(&fx.loop, &fx.other);
    assert_null(fx.loop.flows);
}

static void test_the_smallest_weight_moves_by_one(void **state)
{
    struct fixture fx;
    const struct sched_feedback_terms small = {
        .target_ns = 100 * MS_NS, .weight = 1, .weight_min = 1, .weight_max = 3};

    (void)state;
    fixture_init(&fx);
    assert_int_equal(sched_feedback_set_terms(&fx.flow, &small), 0);
    periods(&fx, 2, 300);
    assert_int_equal(fx.flow.weight, 2);
    periods(&fx, 2, 300);
    assert_int_equal(fx.flow.weight, 3);
    periods(&fx, 2, 300);
    assert_int_equal(fx.flow.weight, 3);
}

static void test_extreme_samples_do_not_overflow(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    for (int i = 0; i < 10; i++) {
        const struct sched_feedback_sample extreme = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                                      UINT64_MAX, UINT32_MAX};
        fx.flow.sample = extreme;
        fx.other.sample = extreme;
        sched_feedback_step(&fx.loop);
    }
    assert_int_equal(fx.flow.measured_ns, SCHED_FEEDBACK_TIME_NS_MAX);
    assert_int_equal(fx.flow.state, SCHED_FEEDBACK_RAISING);
}

static void test_every_state_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < SCHED_FEEDBACK_STATES; i++)
        assert_non_null(sched_feedback_state_name((enum sched_feedback_state)i));
    assert_string_equal(sched_feedback_state_name(SCHED_FEEDBACK_INFEASIBLE), "infeasible");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_at_first),
        cmocka_unit_test(test_a_single_miss_changes_nothing),
        cmocka_unit_test(test_a_missed_target_raises_the_weight),
        cmocka_unit_test(test_it_waits_while_the_response_falls),
        cmocka_unit_test(test_the_limit_is_reached_and_not_passed),
        cmocka_unit_test(test_within_the_band_the_weight_rests),
        cmocka_unit_test(test_much_room_brings_the_weight_back),
        cmocka_unit_test(test_it_does_not_go_down_while_the_response_rises),
        cmocka_unit_test(test_a_cliff_does_not_make_it_swing),
        cmocka_unit_test(test_steps_grow_again_on_a_long_way_up),
        cmocka_unit_test(test_a_load_that_goes_down_cuts_the_rest_short),
        cmocka_unit_test(test_no_weight_shortens_the_service),
        cmocka_unit_test(test_nothing_to_take_from),
        cmocka_unit_test(test_flows_made_per_key_count_each),
        cmocka_unit_test(test_few_samples_are_collected_first),
        cmocka_unit_test(test_what_is_collected_counts_by_completions),
        cmocka_unit_test(test_a_flow_that_gets_nothing_is_off_its_target),
        cmocka_unit_test(test_an_idle_flow_is_forgotten),
        cmocka_unit_test(test_room_is_given_to_one_that_cannot_help_itself),
        cmocka_unit_test(test_one_that_harms_another_stands_back),
        cmocka_unit_test(test_flows_that_start_off_target_are_not_blamed),
        cmocka_unit_test(test_new_terms_start_again),
        cmocka_unit_test(test_terms_out_of_range_change_nothing),
        cmocka_unit_test(test_a_flow_may_leave),
        cmocka_unit_test(test_the_smallest_weight_moves_by_one),
        cmocka_unit_test(test_extreme_samples_do_not_overflow),
        cmocka_unit_test(test_every_state_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
