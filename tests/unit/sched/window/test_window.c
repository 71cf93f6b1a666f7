/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_window.c: decentralised windows, one behaviour per test, in exact counts and times.
 */
#include "sched/window/window.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Depth 4, weights 3 and 7, one proxy: n = 1.2. */
static const struct sched_window_terms three_tenths_of_four = {
    .depth = 4, .weight = 3, .weights_sum = 10, .share_num = 1, .share_den = 1};

static struct sched_window window_of(uint64_t depth, uint32_t weight, uint64_t weights_sum,
                                     uint32_t share_num, uint32_t share_den)
{
    struct sched_window window;
    const struct sched_window_terms terms = {.depth = depth,
                                             .weight = weight,
                                             .weights_sum = weights_sum,
                                             .share_num = share_num,
                                             .share_den = share_den};

    assert_int_equal(sched_window_init(&window, &terms, 0), 0);
    return window;
}

/* Issues requests of this cost until the window refuses one; how many. */
static int fill(struct sched_window *window, uint64_t cost, uint64_t now_ns)
{
    int count = 0;

    for (; sched_window_may_issue(window, cost, now_ns); count++)
        sched_window_issue(window, cost, now_ns);
    return count;
}

static void test_a_whole_window_holds_exactly_its_size(void **state)
{
    struct sched_window window = window_of(12, 3, 9, 1, 1);

    (void)state;
    assert_int_equal(fill(&window, 1, 0), 4);
    assert_int_equal(window.outstanding, 4);
    for (uint64_t now_ns = 10; now_ns < 1000; now_ns += 10) {
        sched_window_complete(&window, 1, now_ns);
        assert_int_equal(fill(&window, 1, now_ns), 1);
    }
    assert_int_equal(sched_window_wake_ns(&window), SCHED_WINDOW_NEVER_NS);
}

/* n = 1.2: the second request runs up 0.8 per ns, one alone pays back 0.2 per ns. */
static void test_a_fraction_is_kept_on_average(void **state)
{
    struct sched_window window;

    (void)state;
    assert_int_equal(sched_window_init(&window, &three_tenths_of_four, 1000), 0);
    assert_int_equal(sched_window_size_milli(&window), 1200);
    assert_int_equal(fill(&window, 1, 1000), 2);
    sched_window_complete(&window, 1, 1100);
    assert_false(sched_window_may_issue(&window, 1, 1100));
    assert_false(sched_window_may_issue(&window, 1, 1499));
    assert_in_range(sched_window_wake_ns(&window), 1500, 1501);
    assert_true(sched_window_may_issue(&window, 1, 1501));
}

/* n = 0.6: after 100 ns with one outstanding, 0.4 * 100 / 0.6 ns without. */
static void test_a_window_below_one_pauses(void **state)
{
    struct sched_window window = window_of(4, 3, 10, 1, 2);

    (void)state;
    assert_int_equal(fill(&window, 1, 0), 1);
    assert_int_equal(sched_window_wake_ns(&window), SCHED_WINDOW_NEVER_NS);
    sched_window_complete(&window, 1, 100);
    assert_false(sched_window_may_issue(&window, 1, 166));
    assert_int_equal(sched_window_wake_ns(&window), 167);
    assert_true(sched_window_may_issue(&window, 1, 167));
}

static void test_a_request_larger_than_the_window_goes_and_pays(void **state)
{
    struct sched_window window = window_of(10, 1, 2, 1, 1);

    (void)state;
    assert_int_equal(fill(&window, 20, 0), 1);
    assert_false(sched_window_may_issue(&window, 1, 0));
    sched_window_complete(&window, 20, 100);
    assert_int_equal(sched_window_wake_ns(&window), 400);
    assert_false(sched_window_may_issue(&window, 20, 399));
    assert_true(sched_window_may_issue(&window, 20, 400));
}

/* What fits wholly need not wait for the debt, and slows down its paying back. */
static void test_debt_does_not_hold_back_what_fits(void **state)
{
    struct sched_window window = window_of(10, 1, 2, 1, 1);

    (void)state;
    assert_int_equal(fill(&window, 20, 0), 1);
    sched_window_complete(&window, 20, 100);
    assert_int_equal(fill(&window, 1, 100), 5);
    sched_window_complete(&window, 1, 100);
    assert_int_equal(sched_window_wake_ns(&window), 1600);
    assert_false(sched_window_may_issue(&window, 2, 1599));
    assert_true(sched_window_may_issue(&window, 2, 1600));
}

static void test_no_credit_is_saved_while_away(void **state)
{
    struct sched_window window;

    (void)state;
    assert_int_equal(sched_window_init(&window, &three_tenths_of_four, 0), 0);
    assert_int_equal(fill(&window, 1, 1000000000), 2);
}

static void test_debt_of_a_hanging_request_is_bounded(void **state)
{
    struct sched_window window = window_of(4, 3, 10, 1, 2);
    const uint64_t end_ns = UINT64_C(86400000000000);

    (void)state;
    assert_int_equal(fill(&window, 1, 0), 1);
    sched_window_complete(&window, 1, end_ns);
    assert_in_range(sched_window_wake_ns(&window), end_ns + SCHED_WINDOW_HOLD_MAX_NS,
                    end_ns + SCHED_WINDOW_HOLD_MAX_NS + 1);
}

static void test_depth_zero_shuts_the_window(void **state)
{
    struct sched_window window = window_of(0, 3, 10, 1, 1);

    (void)state;
    assert_false(sched_window_may_issue(&window, 1, UINT64_C(1) << 60));
    assert_int_equal(sched_window_wake_ns(&window), SCHED_WINDOW_NEVER_NS);
    assert_int_equal(sched_window_set(&window, &three_tenths_of_four, 5), 0);
    assert_true(sched_window_may_issue(&window, 1, 5));
}

static void test_new_terms_hold_for_what_is_outstanding(void **state)
{
    struct sched_window window = window_of(8, 1, 2, 1, 1);
    struct sched_window_terms terms = {
        .depth = 4, .weight = 1, .weights_sum = 2, .share_num = 1, .share_den = 1};

    (void)state;
    assert_int_equal(fill(&window, 1, 0), 4);
    assert_int_equal(sched_window_set(&window, &terms, 0), 0);
    sched_window_complete(&window, 1, 100);
    sched_window_complete(&window, 1, 100);
    assert_int_equal(fill(&window, 1, 100), 0);
    sched_window_complete(&window, 1, 100);
    assert_int_equal(fill(&window, 1, 100), 1);
    terms.depth = 6;
    assert_int_equal(sched_window_set(&window, &terms, 100), 0);
    assert_int_equal(fill(&window, 1, 100), 1);
}

static void test_terms_out_of_range_change_nothing(void **state)
{
    struct sched_window window = window_of(4, 3, 10, 1, 1);
    const struct sched_window_terms wrong[] = {
        {SCHED_WINDOW_DEPTH_MAX + 1, 3, 10, 1, 1},
        {4, 0, 10, 1, 1},
        {4, SCHED_WINDOW_WEIGHT_MAX + 1, SCHED_WINDOW_SUM_MAX, 1, 1},
        {4, 3, 2, 1, 1},
        {4, 3, SCHED_WINDOW_SUM_MAX + 1, 1, 1},
        {4, 3, 10, 0, 1},
        {4, 3, 10, 2, 1},
        {4, 3, 10, 1, SCHED_WINDOW_PARTS_MAX + 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(sched_window_set(&window, &wrong[i], 0), -EINVAL);
        assert_int_equal(sched_window_init(&window, &wrong[i], 0), -EINVAL);
    }
    assert_int_equal(sched_window_size_milli(&window), 1200);
}

/* The largest terms: 2^40 - 1 outstanding fits to the unit, one more does not fit. */
static void test_extremes_do_not_overflow(void **state)
{
    struct sched_window window =
        window_of(SCHED_WINDOW_DEPTH_MAX, SCHED_WINDOW_WEIGHT_MAX, SCHED_WINDOW_WEIGHT_MAX,
                  SCHED_WINDOW_PARTS_MAX, SCHED_WINDOW_PARTS_MAX);

    (void)state;
    sched_window_issue(&window, SCHED_WINDOW_COST_MAX - 1, 0);
    assert_true(sched_window_may_issue(&window, 1, 0));
    sched_window_issue(&window, UINT64_MAX, UINT64_MAX / 2);
    assert_false(sched_window_may_issue(&window, 1, UINT64_MAX));
    sched_window_complete(&window, UINT64_MAX, UINT64_MAX - 5);
    assert_int_equal(sched_window_wake_ns(&window), SCHED_WINDOW_NEVER_NS);

    struct sched_window tiny = window_of(1, 1, SCHED_WINDOW_SUM_MAX, 1, SCHED_WINDOW_PARTS_MAX);
    assert_int_equal(fill(&tiny, 1, 0), 1);
    sched_window_complete(&tiny, 1, 1000);
    assert_in_range(sched_window_wake_ns(&tiny), SCHED_WINDOW_HOLD_MAX_NS + 1000,
                    SCHED_WINDOW_HOLD_MAX_NS + 1002);
}

static void test_a_time_before_the_last_counts_as_the_last(void **state)
{
    struct sched_window window = window_of(4, 3, 10, 1, 2);

    (void)state;
    assert_int_equal(fill(&window, 1, 1000), 1);
    sched_window_complete(&window, 1, 1100);
    assert_false(sched_window_may_issue(&window, 1, 0));
    assert_int_equal(sched_window_wake_ns(&window), 1167);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_window_holds_exactly_its_size),
        cmocka_unit_test(test_a_fraction_is_kept_on_average),
        cmocka_unit_test(test_a_window_below_one_pauses),
        cmocka_unit_test(test_a_request_larger_than_the_window_goes_and_pays),
        cmocka_unit_test(test_debt_does_not_hold_back_what_fits),
        cmocka_unit_test(test_no_credit_is_saved_while_away),
        cmocka_unit_test(test_debt_of_a_hanging_request_is_bounded),
        cmocka_unit_test(test_depth_zero_shuts_the_window),
        cmocka_unit_test(test_new_terms_hold_for_what_is_outstanding),
        cmocka_unit_test(test_terms_out_of_range_change_nothing),
        cmocka_unit_test(test_extremes_do_not_overflow),
        cmocka_unit_test(test_a_time_before_the_last_counts_as_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
