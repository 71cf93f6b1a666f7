/* SPDX-License-Identifier: Apache-2.0 */
/* Binary heap over 1-based slots: the parent of slot i is i / 2. */
#include "loadgen/net/timer_heap.h"

#include <stdlib.h>

#include "loadgen/base/memory.h"

void timer_heap_fini(struct timer_heap *heap)
{
    free((void *)heap->entries);
    *heap = (struct timer_heap){0};
}

static bool before(const struct timer_entry *a, const struct timer_entry *b)
{
    if (a->deadline_ns != b->deadline_ns)
        return a->deadline_ns < b->deadline_ns;
    return a->sequence < b->sequence;
}

static void place(struct timer_heap *heap, struct timer_entry *entry, size_t index)
{
    heap->entries[index] = entry;
    entry->index = index;
}

static void sift_up(struct timer_heap *heap, struct timer_entry *entry, size_t index)
{
    while (index > 1 && before(entry, heap->entries[index / 2])) {
        place(heap, heap->entries[index / 2], index);
        index /= 2;
    }
    place(heap, entry, index);
}

static void sift_down(struct timer_heap *heap, struct timer_entry *entry, size_t index)
{
    for (;;) {
        size_t child = 2 * index;

        if (child > heap->count)
            break;
        if (child < heap->count && before(heap->entries[child + 1], heap->entries[child]))
            child++;
        if (!before(heap->entries[child], entry))
            break;
        place(heap, heap->entries[child], index);
        index = child;
    }
    place(heap, entry, index);
}

void timer_heap_remove(struct timer_heap *heap, struct timer_entry *entry)
{
    size_t index = entry->index;

    if (index == 0)
        return;
    struct timer_entry *last = heap->entries[heap->count--];

    entry->index = 0;
    if (last == entry)
        return;
    if (index > 1 && before(last, heap->entries[index / 2]))
        sift_up(heap, last, index);
    else
        sift_down(heap, last, index);
}

void timer_heap_set(struct timer_heap *heap, struct timer_entry *entry, uint64_t deadline_ns)
{
    timer_heap_remove(heap, entry);
    if (heap->count + 1 >= heap->capacity) {
        heap->capacity = heap->capacity ? 2 * heap->capacity : 64;
        heap->entries = (struct timer_entry **)memory_grow(
            (void *)heap->entries, heap->capacity * sizeof(struct timer_entry *));
    }
    entry->deadline_ns = deadline_ns;
    entry->sequence = heap->sequence++;
    heap->count++;
    sift_up(heap, entry, heap->count);
}
