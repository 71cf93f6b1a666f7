/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c: the 4-ary heap of heap.h.
 *
 * Invariant between calls: the flow of entries[i] has place i for every i < count, and no entry is
 * before its parent. Entries move through a hole instead of being swapped.
 */
#include "sched/engine/heap.h"

#include "sched/engine/vtime.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define ARITY            4U
#define SMALLEST         16U
#define LARGEST_CAPACITY (UINT64_C(1) << 31)
#define LINE_BYTES       64U
/* So many at the top are taken to stay in the cache. */
#define CACHED_ENTRIES 2048U

static bool heads_in_order(const struct heap_entry *a, const struct heap_entry *b)
{
    const struct sched_item *head_a = a->flow->queue.head;
    const struct sched_item *head_b = b->flow->queue.head;

    return head_a != NULL && head_b != NULL && head_a->sequence < head_b->sequence;
}

/*
 * Without branches where keys differ, because which of two heads is first can't be predicted: the
 * difference of the keys as one 128-bit number, of which the sign counts. The tag's part wraps.
 */
static inline bool entry_before(const struct heap_entry *a, const struct heap_entry *b)
{
    const unsigned __int128 x = (unsigned __int128)a->tag << 64 | a->low;
    const unsigned __int128 y = (unsigned __int128)b->tag << 64 | b->low;

    if (__builtin_expect(x == y, 0))
        return heads_in_order(a, b);
    return (__int128)(x - y) < 0;
}

static inline void place(struct heap *heap, uint32_t index, const struct heap_entry *entry)
{
    heap->entries[index] = *entry;
    *heap_place_of(heap, entry->flow) = index;
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

/*
 * The children of the four that begin at `first` are 16 entries in a row. Fetching them all, before
 * it is known whose will be needed, lets the misses of one level overlap with those of the next.
 */
static inline void fetch_below(const struct heap *heap, uint64_t first)
{
    const uint64_t below = first * ARITY + 1;

    if (below < CACHED_ENTRIES || below >= heap->count)
        return;
    const char *row = (const char *)&heap->entries[below];
    for (size_t byte = 0; byte < ARITY * ARITY * sizeof(struct heap_entry); byte += LINE_BYTES)
        __builtin_prefetch(row + byte);
}

/* The smallest of the four children that begin at `first`. */
static inline uint64_t least_of_four(const struct heap_entry *entries, uint64_t first)
{
    uint64_t low = first + entry_before(&entries[first + 1], &entries[first]);
    uint64_t high = first + 2 + entry_before(&entries[first + 3], &entries[first + 2]);

    return low + (high - low) * entry_before(&entries[high], &entries[low]);
}

static void sift_down(struct heap *heap, uint32_t hole, const struct heap_entry *entry)
{
    const struct heap_entry *entries = heap->entries;

    for (;;) {
        uint64_t first = (uint64_t)hole * ARITY + 1;
        uint64_t least = first;
        fetch_below(heap, first);
        if (first + ARITY <= heap->count) {
            least = least_of_four(entries, first);
        } else {
            if (first >= heap->count)
                break;
            for (uint64_t child = first + 1; child < heap->count; child++)
                if (entry_before(&entries[child], &entries[least]))
                    least = child;
        }
        if (!entry_before(&entries[least], entry))
            break;
        place(heap, hole, &entries[least]);
        hole = (uint32_t)least;
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
    heap_init(heap, heap->place_offset);
}

void heap_push(struct heap *heap, struct sched_flow *flow, uint64_t tag, uint64_t low)
{
    const struct heap_entry entry = {.tag = tag, .low = low, .flow = flow};

    assert(heap->count < heap->capacity && !heap_has(heap, flow));
    sift_up(heap, heap->count++, &entry);
}

void heap_rekey(struct heap *heap, struct sched_flow *flow, uint64_t tag, uint64_t low)
{
    const struct heap_entry entry = {.tag = tag, .low = low, .flow = flow};

    assert(heap_has(heap, flow));
    settle(heap, *heap_place_of(heap, flow), &entry);
}

void heap_remove(struct heap *heap, struct sched_flow *flow)
{
    assert(heap_has(heap, flow));
    const uint32_t index = *heap_place_of(heap, flow);
    const struct heap_entry last = heap->entries[--heap->count];
    if (index < heap->count)
        settle(heap, index, &last);
}
