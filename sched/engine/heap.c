/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c: the 4-ary heap of heap.h.
 *
 * Invariant between calls: entries[i].flow->heap_index == i for every i < count, and no entry is
 * before its parent. Entries move through a hole instead of being swapped.
 */
#include "sched/engine/heap.h"

#include "sched/engine/vtime.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define ARITY            4U
#define SMALLEST         16U
#define LARGEST_CAPACITY (UINT64_C(1) << 31)

static inline bool entry_before(const struct heap_entry *a, const struct heap_entry *b)
{
    return vtime_before(a->tag, b->tag) || (a->tag == b->tag && a->sequence < b->sequence);
}

static inline void place(struct heap *heap, uint32_t index, const struct heap_entry *entry)
{
    heap->entries[index] = *entry;
    entry->flow->heap_index = index;
}

static void sift_up(struct heap *heap, uint32_t hole, const struct heap_entry *entry)
{
    while (hole > 0) {
        uint32_t parent = (hole - 1) / ARITY;
        if (!entry_before(entry, &heap->entries[parent]))
            break;
        place(heap, hole, &heap->entries[parent]);
        hole = parent;
    }
    place(heap, hole, entry);
}

static void sift_down(struct heap *heap, uint32_t hole, const struct heap_entry *entry)
{
    const struct heap_entry *entries = heap->entries;

    for (;;) {
        uint64_t first = (uint64_t)hole * ARITY + 1;
        if (first >= heap->count)
            break;
        uint64_t end = first + ARITY < heap->count ? first + ARITY : heap->count;
        uint32_t least = (uint32_t)first;
        for (uint64_t child = first + 1; child < end; child++)
            if (entry_before(&entries[child], &entries[least]))
                least = (uint32_t)child;
        if (!entry_before(&entries[least], entry))
            break;
        place(heap, hole, &entries[least]);
        hole = least;
    }
    place(heap, hole, entry);
}

static void settle(struct heap *heap, uint32_t hole, const struct heap_entry *entry)
{
    if (hole > 0 && entry_before(entry, &heap->entries[(hole - 1) / ARITY]))
        sift_up(heap, hole, entry);
    else
        sift_down(heap, hole, entry);
}

int heap_reserve(struct heap *heap, uint64_t count)
{
    uint64_t capacity = heap->capacity;

    if (count > LARGEST_CAPACITY)
        return -ENOMEM;
    while (capacity < count)
        capacity = capacity == 0 ? SMALLEST : capacity * 2;
    while (capacity > SMALLEST && count * ARITY <= capacity)
        capacity /= 2;
    if (capacity == heap->capacity)
        return 0;
    struct heap_entry *entries = realloc(heap->entries, capacity * sizeof(*entries));
    if (entries == NULL)
        return -ENOMEM;
    heap->entries = entries;
    heap->capacity = (uint32_t)capacity;
    return 0;
}

void heap_fini(struct heap *heap)
{
    free(heap->entries);
    *heap = (struct heap){0};
}

void heap_push(struct heap *heap, struct sched_flow *flow, uint64_t tag, uint64_t sequence)
{
    const struct heap_entry entry = {.tag = tag, .sequence = sequence, .flow = flow};

    assert(heap->count < heap->capacity && flow->heap_index == HEAP_NONE);
    sift_up(heap, heap->count++, &entry);
}

void heap_rekey(struct heap *heap, uint32_t index, uint64_t tag, uint64_t sequence)
{
    assert(index < heap->count);
    const struct heap_entry entry = {
        .tag = tag, .sequence = sequence, .flow = heap->entries[index].flow};
    settle(heap, index, &entry);
}

void heap_remove(struct heap *heap, uint32_t index)
{
    assert(index < heap->count);
    heap->entries[index].flow->heap_index = HEAP_NONE;
    const struct heap_entry last = heap->entries[--heap->count];
    if (index < heap->count)
        settle(heap, index, &last);
}
