/* SPDX-License-Identifier: Apache-2.0 */
/* test_flows.c: flows come, go idle, are retired at the right moment and cost nothing after. */
#include "tests/unit/sched/fixture.h"

#include <errno.h>

static const uint32_t equal[] = {1, 1, 1, 0};

static void test_attach_and_detach(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    assert_int_equal(sched_flows(fx->s), 3);
    assert_int_equal(sched_flow_attach(fx->s, &fx->flows[0]), -EBUSY);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(sched_flow_detach(fx->s, &fx->flows[0]), -EBUSY);
    assert_int_equal(fixture_send(fx), 0);
    assert_int_equal(sched_flow_detach(fx->s, &fx->flows[0]), -EBUSY);
    fixture_finish(fx, 0);
    assert_int_equal(sched_flow_detach(fx->s, &fx->flows[0]), 0);
    assert_int_equal(sched_flows(fx->s), 2);
    assert_int_equal(sched_flow_attach(fx->s, &fx->flows[0]), 0);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_send(fx), 1);
    fixture_finish(fx, 1);
    fixture_destroy(fx);
}

static void test_every_attached_flow_is_listed_once(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    int seen[3] = {0};
    sched_flow_detach(fx->s, &fx->flows[1]);
    for (struct sched_flow *f = sched_flow_next(fx->s, NULL); f != NULL;
         f = sched_flow_next(fx->s, f))
        seen[f - fx->flows]++;
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 0);
    assert_int_equal(seen[2], 1);
    fixture_destroy(fx);
}

/* Flow 0 is done at 10; it may be forgotten when v gets there, not before. */
static void test_retired_when_virtual_time_reaches_its_finish(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 1, 10);
    fixture_add(fx, 1, 30, 1);
    assert_int_equal(fixture_send(fx), 0);
    assert_null(sched_retire_next(fx->s));
    fixture_finish(fx, 0);
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(fixture_send(fx), i);
        assert_false(sched_flow_idle(fx->s, &fx->flows[0]));
        assert_null(sched_retire_next(fx->s));
        fixture_finish(fx, i);
    }
    assert_int_equal(fixture_send(fx), 11);
    assert_int_equal(sched_virtual_time(fx->s), 10 * FIXTURE_UNIT);
    assert_true(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_ptr_equal(sched_retire_next(fx->s), &fx->flows[0]);
    assert_null(sched_retire_next(fx->s));
    fixture_destroy(fx);
}

static void test_new_request_calls_a_flow_back(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_send(fx), 0);
    fixture_finish(fx, 0);
    assert_true(sched_flow_idle(fx->s, &fx->flows[0]));
    fixture_add(fx, 0, 1, 1);
    assert_false(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_null(sched_retire_next(fx->s));
    assert_int_equal(fixture_send(fx), 1);
    fixture_finish(fx, 1);
    assert_ptr_equal(sched_retire_next(fx->s), &fx->flows[0]);
    /* Kept by the caller, it is named again after it was active again. */
    fixture_add(fx, 0, 1, 1);
    assert_int_equal(fixture_send(fx), 2);
    fixture_finish(fx, 2);
    assert_ptr_equal(sched_retire_next(fx->s), &fx->flows[0]);
    fixture_destroy(fx);
}

static void test_end_of_busy_period_retires_all(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 8, equal);
    for (int i = 0; i < 3; i++)
        fixture_add(fx, i, 1, 100 * (uint64_t)(i + 1));
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fx), i);
    fixture_finish(fx, 2);
    fixture_finish(fx, 0);
    assert_null(sched_retire_next(fx->s));
    /* The last one costs more than thought; that too is over with the busy period. */
    sched_complete(fx->s, &fx->items[1], 100000, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(sched_flow_idle(fx->s, &fx->flows[i]));
        assert_non_null(sched_retire_next(fx->s));
    }
    assert_null(sched_retire_next(fx->s));
    fixture_destroy(fx);
}

static void test_pinned_flow_is_never_named(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    sched_flow_detach(fx->s, &fx->flows[0]);
    sched_flow_pin(&fx->flows[0]);
    sched_flow_attach(fx->s, &fx->flows[0]);
    fixture_add(fx, 0, 1, 1);
    fixture_add(fx, 1, 1, 1);
    fixture_expect(fx, (const int[]){0, 1, -1});
    assert_true(sched_flow_idle(fx->s, &fx->flows[0]));
    assert_ptr_equal(sched_retire_next(fx->s), &fx->flows[1]);
    assert_null(sched_retire_next(fx->s));
    fixture_destroy(fx);
}

static void test_fifo_retires_at_once(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 1, equal);
    fixture_add(fx, 0, 1, 1000);
    fixture_add(fx, 1, 1, 1);
    assert_int_equal(fixture_send(fx), 0);
    fixture_finish(fx, 0);
    assert_ptr_equal(sched_retire_next(fx->s), &fx->flows[0]);
    assert_null(sched_retire_next(fx->s));
    fixture_destroy(fx);
}

static void test_destroy_lets_flows_go(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, equal);
    fixture_add(fx, 0, 3, 1);
    assert_int_equal(fixture_send(fx), 0);
    sched_destroy(fx->s);
    for (int i = 0; i < 3; i++)
        assert_null(fx->flows[i].sched);
    test_free(fx->items);
    test_free(fx);
}

/*
 * A million client addresses, each with two requests, 64 at a time beside one flow that never
 * stops: as many flows are attached as are active or have a debt, and none is forgotten early.
 */
static void test_a_million_keyed_flows(void **state)
{
    (void)state;
    enum { KEYS = 1000000, WINDOW = 64 };
    struct keyed {
        struct sched_flow flow;
        struct sched_item items[2];
    };
    const struct sched_params params = {.algorithm = SCHED_ALGORITHM_SFQD, .depth = WINDOW * 2};
    struct sched *s = sched_create(&params);
    struct sched_flow steady;
    struct sched_item steady_items[WINDOW];
    uint64_t most = 0;
    int freed = 0;

    assert_int_equal(sched_flow_init(&steady, 1), 0);
    assert_int_equal(sched_flow_attach(s, &steady), 0);
    for (int i = 0; i < WINDOW; i++) {
        sched_item_init(&steady_items[i]);
        assert_int_equal(sched_enqueue(s, &steady, &steady_items[i], 1, 0), SCHED_OK);
    }
    for (int key = 0; key < KEYS; key++) {
        struct keyed *k = calloc(1, sizeof(*k));
        assert_int_equal(sched_flow_init(&k->flow, 1), 0);
        assert_int_equal(sched_flow_attach(s, &k->flow), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(sched_enqueue(s, &k->flow, &k->items[i], 1, 0), SCHED_OK);
        most = sched_flows(s) > most ? sched_flows(s) : most;
        for (int i = 0; i < 3; i++) {
            struct sched_item *item = sched_dispatch(s, 0);
            if (item == NULL)
                break;
            struct sched_flow *flow = item->flow;
            sched_complete(s, item, 1, 0);
            if (flow == &steady)
                assert_int_equal(sched_enqueue(s, &steady, item, 1, 0), SCHED_OK);
        }
        for (struct sched_flow *flow; (flow = sched_retire_next(s)) != NULL; freed++) {
            assert_true(flow != &steady && sched_flow_idle(s, flow));
            assert_int_equal(sched_flow_detach(s, flow), 0);
            free(flow); /* the first member of its struct keyed */
        }
    }
    assert_in_range(most, 2, 4);
    assert_in_range(freed, KEYS - 4, KEYS);
    for (struct sched_flow *flow; (flow = sched_flow_next(s, NULL)) != &steady;) {
        while (flow->queued > 0)
            sched_complete(s, sched_dispatch(s, 0), 1, 0);
        assert_int_equal(sched_flow_detach(s, flow), 0);
        free(flow);
    }
    sched_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attach_and_detach),
        cmocka_unit_test(test_every_attached_flow_is_listed_once),
        cmocka_unit_test(test_retired_when_virtual_time_reaches_its_finish),
        cmocka_unit_test(test_new_request_calls_a_flow_back),
        cmocka_unit_test(test_end_of_busy_period_retires_all),
        cmocka_unit_test(test_pinned_flow_is_never_named),
        cmocka_unit_test(test_fifo_retires_at_once),
        cmocka_unit_test(test_destroy_lets_flows_go),
        cmocka_unit_test(test_a_million_keyed_flows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
