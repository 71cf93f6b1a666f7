/* SPDX-License-Identifier: Apache-2.0 */
/* test_switch.c: changing weights and the algorithm while requests wait and are outstanding. */
#include "tests/unit/sched/fixture.h"

#include <errno.h>

static void test_new_weight_holds_for_what_is_queued(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1, 1, 0});
    int served[2] = {0};
    fixture_add(fx, 0, 1000, 1);
    fixture_add(fx, 1, 1000, 1);
    fixture_serve(fx, 100, served);
    assert_int_equal(served[0], 50);
    assert_int_equal(sched_flow_set_weight(fx->s, &fx->flows[0], 3), 0);
    assert_int_equal(fx->flows[0].weight, 3);
    served[0] = 0;
    served[1] = 0;
    fixture_serve(fx, 400, served);
    assert_int_equal(served[0], 300);
    assert_int_equal(served[1], 100);
    fixture_destroy(fx);
}

static void test_weights_out_of_range_are_refused(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){5, 0});
    struct sched_flow flow;
    assert_int_equal(sched_flow_init(&flow, 0), -EINVAL);
    assert_int_equal(sched_flow_init(&flow, SCHED_WEIGHT_MAX + 1), -EINVAL);
    assert_int_equal(sched_flow_init(&flow, SCHED_WEIGHT_MAX), 0);
    assert_int_equal(sched_flow_set_weight(fx->s, &fx->flows[0], 0), -EINVAL);
    assert_int_equal(sched_flow_set_weight(fx->s, &fx->flows[0], SCHED_WEIGHT_MAX + 1), -EINVAL);
    assert_int_equal(fx->flows[0].weight, 5);
    fixture_destroy(fx);
}

static void test_from_fair_to_fifo_goes_back_to_arrival(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){1, 8, 0});
    fixture_add(fx, 0, 2, 1); /* 0 1 */
    fixture_add(fx, 1, 2, 1); /* 2 3 */
    fixture_add(fx, 0, 1, 1); /* 4 */
    assert_int_equal(sched_set_algorithm(fx->s, SCHED_ALGORITHM_FIFO), 0);
    assert_int_equal(sched_queued(fx->s), 5);
    fixture_expect(fx, (const int[]){0, 1, 2, 3, 4, -1});
    fixture_destroy(fx);
}

static void test_from_fifo_to_fair_starts_level(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_FIFO, 1, (const uint32_t[]){1, 1, 0});
    int served[2] = {0};
    fixture_add(fx, 0, 1000, 1);
    fixture_add(fx, 1, 1000, 1);
    fixture_serve(fx, 500, served);
    assert_int_equal(served[0], 500);
    assert_int_equal(sched_set_algorithm(fx->s, SCHED_ALGORITHM_SFQD), 0);
    served[0] = 0;
    fixture_serve(fx, 100, served);
    assert_int_equal(served[0], 50);
    assert_int_equal(served[1], 50);
    fixture_destroy(fx);
}

static void test_tag_algorithms_hand_their_tags_over(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 1, (const uint32_t[]){3, 1, 0});
    const enum sched_algorithm order[] = {SCHED_ALGORITHM_MINSFQD, SCHED_ALGORITHM_SFQ,
                                          SCHED_ALGORITHM_SFQD};
    int served[2] = {0};
    fixture_add(fx, 0, 1000, 1);
    fixture_add(fx, 1, 1000, 1);
    for (int i = 0; i < 800; i++) {
        assert_int_equal(sched_set_algorithm(fx->s, order[i % 3]), 0);
        fixture_serve(fx, 1, served);
    }
    assert_int_equal(served[0], 600);
    assert_int_equal(served[1], 200);
    fixture_destroy(fx);
}

static void test_outstanding_survives_every_change(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 4, (const uint32_t[]){1, 2, 0});
    for (int from = 0; from < SCHED_ALGORITHMS; from++) {
        for (int to = 0; to < SCHED_ALGORITHMS; to++) {
            fixture_add(fx, 0, 1, 7);
            fixture_add(fx, 1, 1, 7);
            assert_int_equal(sched_set_algorithm(fx->s, (enum sched_algorithm)from), 0);
            struct sched_item *first = sched_dispatch(fx->s, 0);
            struct sched_item *second = sched_dispatch(fx->s, 0);
            sched_set_algorithm(fx->s, (enum sched_algorithm)to);
            assert_int_equal(sched_algorithm_of(fx->s), to);
            assert_int_equal(sched_outstanding(fx->s), second == NULL ? 1 : 2);
            if (second != NULL)
                sched_requeue_front(fx->s, second);
            sched_complete(fx->s, first, 7, 0);
            assert_int_equal(sched_outstanding(fx->s), 0);
            assert_int_equal(sched_queued(fx->s), 1);
            sched_complete(fx->s, sched_dispatch(fx->s, 0), 7, 0);
            assert_int_equal(sched_queued(fx->s), 0);
        }
    }
    fixture_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_weight_holds_for_what_is_queued),
        cmocka_unit_test(test_weights_out_of_range_are_refused),
        cmocka_unit_test(test_from_fair_to_fifo_goes_back_to_arrival),
        cmocka_unit_test(test_from_fifo_to_fair_starts_level),
        cmocka_unit_test(test_tag_algorithms_hand_their_tags_over),
        cmocka_unit_test(test_outstanding_survives_every_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
