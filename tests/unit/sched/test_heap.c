/* SPDX-License-Identifier: Apache-2.0 */
/* test_heap.c: the heap of flows and the arithmetic of virtual time. */
#include "sched/engine/heap.h"
#include "sched/engine/vtime.h"

#include "tests/unit/sched/fixture.h"

#include <errno.h>

#define COUNT 200

/* Flows with a head each, whose arrival number is the flow's own. */
struct herd {
    struct heap heap;
    struct sched_flow flows[COUNT];
    struct sched_item heads[COUNT];
};

/* Tags come four times, and the same tag and `low` twice. */
static void herd_init(struct herd *herd, uint64_t base)
{
    heap_init(&herd->heap, offsetof(struct sched_flow, heap_place));
    assert_int_equal(heap_reserve(&herd->heap, COUNT), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(sched_flow_init(&herd->flows[i], 1), 0);
        sched_item_init(&herd->heads[i]);
        herd->heads[i].sequence = i;
        herd->flows[i].queue.head = &herd->heads[i];
        heap_push(&herd->heap, &herd->flows[i], base + i * 67 % 50, i / 100);
    }
}

/* Takes everything out and asserts ascending (tag, low, arrival) and that places were right. */
static uint32_t drain(struct herd *herd, uint64_t base)
{
    struct heap *heap = &herd->heap;
    uint32_t taken = 0;
    struct heap_entry last = {0};

    for (uint32_t i = 0; i < heap->count; i++)
        assert_int_equal(heap->entries[i].flow->heap_place, i);
    while (heap->count > 0) {
        struct heap_entry first = heap->entries[0];
        first.tag -= base;
        if (taken > 0) {
            assert_true(first.tag >= last.tag);
            if (first.tag == last.tag)
                assert_true(first.low > last.low ||
                            (first.low == last.low &&
                             first.flow->queue.head->sequence > last.flow->queue.head->sequence));
        }
        last = first;
        heap_remove(heap, first.flow);
        assert_false(heap_has(heap, first.flow));
        taken++;
    }
    return taken;
}

static void test_heap_sorts_by_tag_then_low_then_arrival(void **state)
{
    (void)state;
    struct herd herd;
    herd_init(&herd, 0);
    assert_int_equal(drain(&herd, 0), COUNT);
    heap_fini(&herd.heap);
}

static void test_heap_sorts_across_the_wrap(void **state)
{
    (void)state;
    struct herd herd;
    const uint64_t bases[] = {UINT64_MAX - 25, INT64_MAX - 25};
    for (int i = 0; i < 2; i++) {
        herd_init(&herd, bases[i]);
        assert_int_equal(drain(&herd, bases[i]), COUNT);
        heap_fini(&herd.heap);
    }
}

static void test_heap_removes_and_rekeys_anywhere(void **state)
{
    (void)state;
    struct herd herd;
    herd_init(&herd, 0);
    for (uint32_t i = 0; i < COUNT; i += 3)
        heap_remove(&herd.heap, &herd.flows[i]);
    for (uint32_t i = 1; i < COUNT; i += 3)
        heap_rekey(&herd.heap, &herd.flows[i], (i * 31) % 90, i);
    assert_int_equal(drain(&herd, 0), COUNT - (COUNT + 2) / 3);
    heap_fini(&herd.heap);
}

static void test_a_flow_is_in_the_heap_that_it_was_put_into(void **state)
{
    (void)state;
    struct herd herd;
    struct heap other;
    heap_init(&other, offsetof(struct sched_flow, heap_place));
    assert_int_equal(heap_reserve(&other, COUNT), 0);
    herd_init(&herd, 0);
    assert_false(heap_has(&other, &herd.flows[5]));
    heap_remove(&herd.heap, &herd.flows[5]);
    heap_push(&other, &herd.flows[5], 0, 0);
    assert_true(heap_has(&other, &herd.flows[5]));
    assert_false(heap_has(&herd.heap, &herd.flows[5]));
    heap_clear(&other);
    assert_false(heap_has(&other, &herd.flows[5]));
    assert_int_equal(drain(&herd, 0), COUNT - 1);
    heap_fini(&other);
    heap_fini(&herd.heap);
}

static void test_heap_gives_memory_back(void **state)
{
    (void)state;
    struct heap heap = {0};
    assert_int_equal(heap_reserve(&heap, 100000), 0);
    assert_in_range(heap.capacity, 100000, 200000);
    assert_int_equal(heap_reserve(&heap, 50000), 0);
    assert_in_range(heap.capacity, 100000, 200000);
    assert_int_equal(heap_reserve(&heap, 10), 0);
    assert_in_range(heap.capacity, 10, 64);
    assert_int_equal(heap_reserve(&heap, UINT64_MAX), -ENOMEM);
    heap_fini(&heap);
    assert_null(heap.entries);
}

static void test_charges_do_not_lose_their_rests(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 3, 7, 999, 65536, 999983, SCHED_WEIGHT_MAX};
    for (int i = 0; i < 7; i++) {
        struct sched_flow flow;
        int64_t sum = 0;
        assert_int_equal(sched_flow_init(&flow, weights[i]), 0);
        for (uint32_t n = 0; n < weights[i]; n++)
            sum += vtime_charge(&flow, 3);
        /* weight times 3 / weight is 3, less one in the last place at most. */
        assert_in_range(sum, 3 * FIXTURE_UNIT - 1, 3 * FIXTURE_UNIT);
    }
}

static void test_refund_undoes_a_charge_exactly(void **state)
{
    (void)state;
    struct sched_flow flow;
    assert_int_equal(sched_flow_init(&flow, 999983), 0);
    int64_t sum = vtime_charge(&flow, 12345);
    sum += vtime_charge(&flow, (int64_t)SCHED_COST_MAX);
    sum += vtime_charge(&flow, -(int64_t)SCHED_COST_MAX);
    sum += vtime_charge(&flow, -12345);
    assert_int_equal(sum, 0);
    assert_int_equal(flow.tag_rest, 0);
}

static void test_largest_charge_stays_in_the_window(void **state)
{
    (void)state;
    struct sched_flow flow;
    assert_int_equal(sched_flow_init(&flow, 1), 0);
    assert_int_equal(vtime_charge(&flow, (int64_t)SCHED_COST_MAX),
                     (int64_t)(SCHED_COST_MAX << VTIME_SHIFT));
    assert_true((SCHED_COST_MAX << VTIME_SHIFT) < VTIME_LAG);
}

static void test_comparison_across_the_wrap(void **state)
{
    (void)state;
    assert_true(vtime_before(UINT64_MAX, 0));
    assert_false(vtime_before(0, UINT64_MAX));
    assert_false(vtime_before(5, 5));
    assert_int_equal(vtime_later(UINT64_MAX - 1, 3), 3);
    assert_int_equal(vtime_later(3, UINT64_MAX - 1), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap_sorts_by_tag_then_low_then_arrival),
        cmocka_unit_test(test_heap_sorts_across_the_wrap),
        cmocka_unit_test(test_heap_removes_and_rekeys_anywhere),
        cmocka_unit_test(test_a_flow_is_in_the_heap_that_it_was_put_into),
        cmocka_unit_test(test_heap_gives_memory_back),
        cmocka_unit_test(test_charges_do_not_lose_their_rests),
        cmocka_unit_test(test_refund_undoes_a_charge_exactly),
        cmocka_unit_test(test_largest_charge_stays_in_the_window),
        cmocka_unit_test(test_comparison_across_the_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
