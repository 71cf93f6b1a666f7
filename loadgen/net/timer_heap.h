/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines in order: a binary min-heap of pointers to entries that live inside their owners.
 *
 * Order is (deadline, sequence of insertion): equal deadlines leave in the order they came. An
 * entry is in at most one heap; `index` is 0 while it is in none (slot 0 of the array is never
 * used). Growing the array is the only allocation; running out of memory ends the program (see
 * memory.h).
 */
#ifndef LOADGEN_NET_TIMER_HEAP_H
#define LOADGEN_NET_TIMER_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer_entry {
    uint64_t deadline_ns;
    uint64_t sequence;
    size_t index;
};

struct timer_heap {
    struct timer_entry **entries;
    size_t count;
    size_t capacity;
    uint64_t sequence;
};

/* A zeroed struct is an empty heap. Frees the array only, entries are their owners'. */
void timer_heap_fini(struct timer_heap *heap);

static inline bool timer_entry_armed(const struct timer_entry *entry)
{
    return entry->index != 0;
}

/* The entry with the least deadline, or NULL. */
static inline struct timer_entry *timer_heap_first(const struct timer_heap *heap)
{
    return heap->count ? heap->entries[1] : NULL;
}

/* Puts the entry in, or moves it when it is in already. */
void timer_heap_set(struct timer_heap *heap, struct timer_entry *entry, uint64_t deadline_ns);

/* Takes the entry out; nothing happens when it is not in. */
void timer_heap_remove(struct timer_heap *heap, struct timer_entry *entry);

#endif
