/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wrap.c: virtual time that runs all the way around, past tags that stood still.
 *
 * One request of the largest cost at weight 1 moves virtual time by 2^60, so 16 of them go around
 * once. Whatever stands still meanwhile must neither come to look as if it were ahead, nor gain.
 */
#include "tests/unit/sched/fixture.h"

#define AROUND 40 /* 2.5 times around */

static const uint32_t equal[] = {1, 1, 1, 0};

/* Flow 0 is served `count` largest requests, one after the other. */
static void run_ahead(struct fixture *fx, int count)
{
    for (int i = 0; i < count; i++) {
        fixture_add(fx, 0, 1, SCHED_COST_MAX);
        struct sched_item *item;
        while (fixture_flow(fx, item = sched_dispatch(fx->s, 0)) != 0)
            assert_non_null(item);
        sched_complete(fx->s, item, item->cost, 0);
    }
}

/*
 * Flow 1 has had one request at the service all the time. It and flow 2, which is new, then share
 * the service evenly, and flow 0, which is 2^60 ahead, waits.
 */
static void share_after(enum sched_algorithm algorithm, int ahead)
{
    struct fixture *fx = fixture_create(algorithm, 2, equal);
    int served[3] = {0};

    fixture_add(fx, 1, 1, 1);
    assert_int_equal(fixture_send(fx), 0);
    run_ahead(fx, ahead);
    for (int flow = 0; flow < 3; flow++)
        fixture_add(fx, flow, 60, 1000);
    fixture_serve(fx, 40, served);
    assert_int_equal(served[0], 0);
    assert_in_range(served[1], 19, 21);
    assert_in_range(served[2], 19, 21);
    fixture_destroy(fx);
}

static void test_flow_stuck_at_the_service_keeps_its_share(void **state)
{
    (void)state;
    for (int ahead = 1; ahead <= AROUND; ahead++) {
        share_after(SCHED_ALGORITHM_SFQD, ahead);
        share_after(SCHED_ALGORITHM_MINSFQD, ahead);
    }
}

/* A correction to a request from long ago is settled by the time that has passed since. */
static void test_old_debt_is_paid_by_time(void **state)
{
    (void)state;
    for (int ahead = 3; ahead <= AROUND; ahead++) {
        struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 2, equal);
        fixture_add(fx, 1, 1, 1);
        assert_int_equal(fixture_send(fx), 0);
        run_ahead(fx, ahead);
        fixture_add(fx, 0, 1, 1);
        fixture_add(fx, 0, 1, 1);
        assert_int_equal(fixture_send(fx), ahead + 1);
        sched_complete(fx->s, &fx->items[0], SCHED_COST_MAX / 2, 0);
        const uint64_t v = sched_virtual_time(fx->s);
        fixture_add(fx, 1, 1, 1);
        assert_int_equal(fixture_send(fx), ahead + 3);
        assert_int_equal(fx->items[ahead + 3].start, v);
        fixture_destroy(fx);
    }
}

/* Many flows go idle at once, more than the next dispatches look at. */
static void test_crowd_gone_idle_starts_at_virtual_time(void **state)
{
    (void)state;
    enum { CROWD = 200 };
    static struct sched_flow crowd[CROWD];
    for (int ahead = 1; ahead <= AROUND; ahead += 3) {
        struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, CROWD + 1, equal);
        for (int i = 0; i < CROWD; i++) {
            assert_int_equal(sched_flow_init(&crowd[i], 1), 0);
            assert_int_equal(sched_flow_attach(fx->s, &crowd[i]), 0);
            sched_enqueue(fx->s, &crowd[i], &fx->items[fx->used++], 1 + (uint64_t)i, 0);
            assert_int_equal(fixture_send(fx), i);
        }
        fixture_add(fx, 0, 1, SCHED_COST_MAX);
        assert_int_equal(fixture_send(fx), CROWD);
        for (int i = 0; i < CROWD; i++)
            fixture_finish(fx, i);
        run_ahead(fx, ahead);
        for (int i = 0; i < CROWD; i++) {
            struct sched_item *item = &fx->items[fx->used++];
            const uint64_t v = sched_virtual_time(fx->s);
            sched_enqueue(fx->s, &crowd[i], item, 1, 0);
            assert_ptr_equal(sched_dispatch(fx->s, 0), item);
            assert_int_equal(item->start, v);
        }
        sched_destroy(fx->s);
        test_free(fx->items);
        test_free(fx);
    }
}

/* 16 corrections of 2^60 each would come to nothing if their sum wrapped. */
static void test_sum_of_corrections_does_not_wrap(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 16, equal);
    int served[3] = {0};
    fixture_add(fx, 1, 16, 1);
    for (int i = 0; i < 16; i++)
        assert_int_equal(fixture_send(fx), i);
    for (int i = 0; i < 15; i++)
        sched_complete(fx->s, &fx->items[i], UINT64_MAX, 0);
    fixture_add(fx, 1, 100, 1);
    fixture_add(fx, 2, 100, 1);
    sched_complete(fx->s, &fx->items[15], UINT64_MAX, 0);
    fixture_serve(fx, 100, served);
    assert_int_equal(served[1], 0);
    assert_int_equal(served[2], 100);
    fixture_destroy(fx);
}

static void test_sum_of_refunds_does_not_wrap(void **state)
{
    (void)state;
    struct fixture *fx = fixture_create(SCHED_ALGORITHM_SFQD, 16, equal);
    fixture_add(fx, 1, 16, SCHED_COST_MAX);
    fixture_add(fx, 1, 10, 1);
    for (int i = 0; i < 16; i++)
        assert_int_equal(fixture_send(fx), i);
    for (int i = 0; i < 16; i++)
        sched_complete(fx->s, &fx->items[i], 0, 0);
    /* The first has its tag; the credit makes the others free. */
    for (int i = 16; i < 26; i++) {
        assert_int_equal(fixture_send(fx), i);
        assert_int_equal(fx->items[i].start, fx->items[16].start);
    }
    fixture_destroy(fx);
}

/* Twelve of the largest requests are sent and all taken back, more than the tags' range in one go.
 */
static void test_largest_requests_taken_back_go_first_all_the_same(void **state)
{
    (void)state;
    const enum sched_algorithm algorithms[] = {SCHED_ALGORITHM_SFQD,   SCHED_ALGORITHM_MINSFQD,
                                               SCHED_ALGORITHM_FSFQ,   SCHED_ALGORITHM_HYBRID,
                                               SCHED_ALGORITHM_MCLOCK, SCHED_ALGORITHM_2DFQ};
    for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++) {
        struct fixture *fx = fixture_create(algorithms[a], 12, equal);
        const struct sched_options options = {.slack = 12};
        struct sched_item *sent[12];
        assert_int_equal(sched_set_options(fx->s, &options), 0);
        fixture_add(fx, 0, 12, SCHED_COST_MAX);
        for (int i = 0; i < 12; i++)
            assert_non_null(sent[i] = sched_dispatch(fx->s, 0));
        for (int i = 12; i > 0; i--)
            sched_requeue_front(fx->s, sent[i - 1]);
        fixture_add(fx, 1, 3, 1);
        assert_ptr_equal(sched_dispatch(fx->s, 0), sent[0]);
        int rest = 0;
        while (sched_dispatch(fx->s, 0) != NULL)
            rest++;
        assert_int_equal(rest, 11);
        fixture_destroy(fx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow_stuck_at_the_service_keeps_its_share),
        cmocka_unit_test(test_old_debt_is_paid_by_time),
        cmocka_unit_test(test_crowd_gone_idle_starts_at_virtual_time),
        cmocka_unit_test(test_sum_of_corrections_does_not_wrap),
        cmocka_unit_test(test_sum_of_refunds_does_not_wrap),
        cmocka_unit_test(test_largest_requests_taken_back_go_first_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
