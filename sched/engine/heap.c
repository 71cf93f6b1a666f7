/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c: the 4-ary heap of heap.h.
 *
 * Invariant between calls: position[entries[i].slot] == i for every i < count, every other position
 * is HEAP_NONE, and no entry is before its parent. Entries move through a hole instead of being
 * swapped.
 */
#include "sched/engine/heap.h"

#include "sched/engine/vtime.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARITY            4U
#define SMALLEST         16U
#define LARGEST_CAPACITY (UINT64_C(1) << 31)
#define LINE_BYTES       64U
/* So many at the top are taken to stay in the cache. */
#define CACHED_ENTRIES 4096U

/*
 * Without branches, because which of two heads is first can't be predicted: the difference of the
 * keys as one 192-bit number, of which the sign counts. The tag's part wraps; below it the two
 * others give a borrow.
 */
static inline bool entry_before(const struct heap_entry *a, const struct heap_entry *b)
{
    unsigned __int128 low_a = (unsigned __int128)a->tie << 64 | a->sequence;
    unsigned __int128 low_b = (unsigned __int128)b->tie << 64 | b->sequence;

    return (int64_t)(a->tag - b->tag - (low_a < low_b)) < 0;
}

static inline void place(struct heap *heap, uint32_t index, const struct heap_entry *entry)
{
    heap->entries[index] = *entry;
    heap->position[entry->slot] = index;
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

/* The smallest of the four children that begin at `first`. */
static inline uint64_t least_of_four(const struct heap_entry *entries, uint64_t first)
{
    uint64_t low = first + entry_before(&entries[first + 1], &entries[first]);
    uint64_t high = first + 2 + entry_before(&entries[first + 3], &entries[first + 2]);

    return low + (high - low) * entry_before(&entries[high], &entries[low]);
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
    for (uint64_t i = 0; i < ARITY * ARITY; i += LINE_BYTES / sizeof(struct heap_entry))
        __builtin_prefetch(&heap->entries[below + i]);
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

/* The entries move to a new block, so that [1] begins a cache line there. */
static int resize(struct heap *heap, uint32_t capacity)
{
    const size_t bytes = capacity * sizeof(*heap->entries);
    char *memory = malloc(bytes + LINE_BYTES + sizeof(*heap->entries));

    if (memory == NULL)
        return -ENOMEM;
    uint32_t *position = realloc(heap->position, capacity * sizeof(*position));
    if (position == NULL) {
        free(memory);
        return -ENOMEM;
    }
    heap->position = position;
    uintptr_t second = ((uintptr_t)memory + sizeof(*heap->entries) + LINE_BYTES - 1) &
                       ~(uintptr_t)(LINE_BYTES - 1);
    struct heap_entry *entries =
        (struct heap_entry *)(memory + (second - sizeof(*heap->entries) - (uintptr_t)memory));
    if (heap->count > 0)
        memcpy(entries, heap->entries, heap->count * sizeof(*entries));
    for (uint32_t slot = heap->capacity; slot < capacity; slot++)
        position[slot] = HEAP_NONE;
    free(heap->memory);
    heap->memory = memory;
    heap->entries = entries;
    heap->capacity = capacity;
    return 0;
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
    return capacity == heap->capacity ? 0 : resize(heap, (uint32_t)capacity);
}

void heap_fini(struct heap *heap)
{
    free(heap->memory);
    free(heap->position);
    *heap = (struct heap){0};
}

void heap_clear(struct heap *heap)
{
    for (uint32_t i = 0; i < heap->count; i++)
        heap->position[heap->entries[i].slot] = HEAP_NONE;
    heap->count = 0;
}

void heap_push(struct heap *heap, uint32_t slot, uint64_t tag, uint64_t tie, uint64_t sequence)
{
    const struct heap_entry entry = {.tag = tag, .tie = tie, .sequence = sequence, .slot = slot};

    assert(slot < heap->capacity && !heap_has(heap, slot));
    sift_up(heap, heap->count++, &entry);
}

void heap_rekey(struct heap *heap, uint32_t slot, uint64_t tag, uint64_t tie, uint64_t sequence)
{
    const struct heap_entry entry = {.tag = tag, .tie = tie, .sequence = sequence, .slot = slot};

    assert(heap_has(heap, slot));
    settle(heap, heap->position[slot], &entry);
}

void heap_remove(struct heap *heap, uint32_t slot)
{
    assert(heap_has(heap, slot));
    const uint32_t index = heap->position[slot];
    heap->position[slot] = HEAP_NONE;
    const struct heap_entry last = heap->entries[--heap->count];
    if (index < heap->count)
        settle(heap, index, &last);
}

void heap_rename(struct heap *heap, uint32_t from, uint32_t to)
{
    if (heap->count == 0)
        return;
    assert(!heap_has(heap, to));
    const uint32_t index = heap->position[from];
    if (index == HEAP_NONE)
        return;
    heap->position[from] = HEAP_NONE;
    heap->position[to] = index;
    heap->entries[index].slot = to;
}
