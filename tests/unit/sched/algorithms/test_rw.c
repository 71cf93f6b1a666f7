/* SPDX-License-Identifier: Apache-2.0 */
/* test_rw.c: the windows of RW(D) and of its hybrid with SFQ(D), in exact counts. */
#include "tests/unit/sched/fixture.h"

/* Sends until nothing may go; counts per flow. */
static void send_all(struct fixture *fx, int *per_flow)
{
    for (struct sched_item *item; (item = sched_dispatch(fx->s, fx->now_ns)) != NULL;)
        per_flow[fixture_flow(fx, item)]++;
}

static void test_windows_are_the_shares_of_the_depth(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_RW, 8, (const uint32_t[]){5, 2, 1, 0});
    int sent[3] = {0};
    for (int f = 0; f < 3; f++)
        fixture_add(fx, f, 20, 1);
    send_all(fx, sent);
    assert_int_equal(sent[0], 5);
    assert_int_equal(sent[1], 2);
    assert_int_equal(sent[2], 1);
    fixture_destroy(fx);
}

/* A flow alone has all of the depth: the sum is over the flows that are active. */
static void test_flows_that_send_nothing_have_no_window(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_RW, 6, (const uint32_t[]){1, 1, 0});
    int sent[2] = {0};
    fixture_add(fx, 0, 20, 1);
    send_all(fx, sent);
    assert_int_equal(sent[0], 6);
    /* The other comes: its window of 3 is kept as the first's requests end. */
    fixture_add(fx, 1, 20, 1);
    for (int i = 0; i < 3; i++)
        fixture_finish(fx, i);
    send_all(fx, sent);
    assert_int_equal(sent[0], 6);
    assert_int_equal(sent[1], 3);
    fixture_destroy(fx);
}

/* Pinned flows keep their window while they are away. */
static void test_pinned_flows_keep_their_window(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_RW, 6, (const uint32_t[]){1, 0});
    struct sched_flow away;
    int sent[1] = {0};
    assert_int_equal(sched_flow_init(&away, 2), 0);
    sched_flow_pin(&away);
    assert_int_equal(sched_flow_attach(fx->s, &away), 0);
    fixture_add(fx, 0, 20, 1);
    send_all(fx, sent);
    assert_int_equal(sent[0], 2);
    assert_int_equal(sched_queued(fx->s), 18);
    assert_int_equal(sched_wake_ns(fx->s), SCHED_NEVER_NS);
    /* Gone altogether, it leaves everything to the other. */
    assert_int_equal(sched_flow_detach(fx->s, &away), 0);
    send_all(fx, sent);
    assert_int_equal(sent[0], 6);
    fixture_destroy(fx);
}

/* n = 1.2 and 2.8: a flow may issue while it has less than that. */
static void test_windows_are_not_rounded(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_RW, 4, (const uint32_t[]){3, 7, 0});
    int sent[2] = {0};
    int served[2] = {0};
    fixture_add(fx, 0, 8000, 1);
    fixture_add(fx, 1, 8000, 1);
    struct sched_item *ring[4];
    for (int i = 0; i < 4; i++) {
        ring[i] = sched_dispatch(fx->s, 0);
        sent[fixture_flow(fx, ring[i])]++;
    }
    assert_int_equal(sent[0] + sent[1], 4);
    assert_in_range(sent[0], 1, 2);
    for (int i = 0; i < 10000; i++) {
        served[fixture_flow(fx, ring[i % 4])]++;
        sched_complete(fx->s, ring[i % 4], 1, 0);
        ring[i % 4] = sched_dispatch(fx->s, 0);
        assert_non_null(ring[i % 4]);
    }
    assert_in_range(served[0], 2998, 3002);
    fixture_destroy(fx);
}

static void test_windows_count_cost_when_the_depth_does(void **state)
{
    (void)state;
    const struct sched_params params = {
        .algorithm = SCHED_ALGORITHM_RW, .depth_unit = SCHED_DEPTH_COST, .depth = 100};
    struct fixture *fx = fixture_create_with(&params, (const uint32_t[]){3, 1, 0});
    int sent[2] = {0};
    fixture_add(fx, 0, 20, 30);
    fixture_add(fx, 1, 20, 10);
    send_all(fx, sent);
    /* n = 75 and 25: 30 + 30 < 75 lets a third go, 10 + 10 < 25 too, but 90 + 20 is over 100. */
    assert_in_range(sent[0] * 30 + sent[1] * 10, 80, 100);
    assert_in_range(sent[1], 1, 3);
    fixture_destroy(fx);
}

static void test_hybrid_adds_its_slack_to_every_window(void **state)
{
    (void)state;
    struct sched_params params = {.algorithm = SCHED_ALGORITHM_HYBRID, .depth = 8};
    const int expected[] = {2, 3, 4, 8, 8};
    const uint64_t slack[] = {0, 1, 2, 6, 8};
    for (int i = 0; i < 5; i++) {
        params.options.slack = slack[i];
        struct fixture *fx = fixture_create_with(&params, (const uint32_t[]){1, 0});
        struct sched_flow away;
        int sent[1] = {0};
        assert_int_equal(sched_flow_init(&away, 3), 0);
        sched_flow_pin(&away);
        assert_int_equal(sched_flow_attach(fx->s, &away), 0);
        fixture_add(fx, 0, 20, 1);
        send_all(fx, sent);
        assert_int_equal(sent[0], expected[i]);
        fixture_destroy(fx);
    }
}

static void test_slack_changes_while_running(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_HYBRID, 8, (const uint32_t[]){1, 1, 0});
    const struct sched_options loose = {.slack = 2};
    int sent[2] = {0};
    fixture_add(fx, 0, 20, 1);
    fixture_add(fx, 1, 1, 1);
    send_all(fx, sent);
    assert_int_equal(sent[0], 4);
    assert_int_equal(sent[1], 1);
    assert_int_equal(sched_set_options(fx->s, &loose), 0);
    send_all(fx, sent);
    assert_int_equal(sent[0], 6);
    /* And a heavier weight opens the window further: 8 * 3 / 4 + 2. */
    assert_int_equal(sched_flow_set_weight(fx->s, &fx->flows[0], 3), 0);
    send_all(fx, sent);
    assert_int_equal(sent[0], 7);
    assert_int_equal(sched_outstanding(fx->s), 8);
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_are_the_shares_of_the_depth),
        cmocka_unit_test(test_flows_that_send_nothing_have_no_window),
        cmocka_unit_test(test_pinned_flows_keep_their_window),
        cmocka_unit_test(test_windows_are_not_rounded),
        cmocka_unit_test(test_windows_count_cost_when_the_depth_does),
        cmocka_unit_test(test_hybrid_adds_its_slack_to_every_window),
        cmocka_unit_test(test_slack_changes_while_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
