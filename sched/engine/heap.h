/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h: a 4-ary heap of flows ordered by (tag, tie, sequence), smallest first.
 *
 *   entries:   [0] the smallest; the children of [i] are [4i+1] .. [4i+4], none smaller than [i]
 *   position:  by the flow's slot, where its entry is, or HEAP_NONE
 *
 * Keys stand in the array and places in another, so that sifting touches no flow: a flow is the
 * caller's memory, one cache miss each. Four children make the heap half as deep as a binary one,
 * and they share two cache lines (entries are 32 bytes and [1] begins a line).
 *
 * Tags are compared wrap-safely (vtime.h), ties and sequences as they are.
 */
#ifndef SPILLWAY_SCHED_ENGINE_HEAP_H
#define SPILLWAY_SCHED_ENGINE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_NONE UINT32_MAX

struct heap_entry {
    uint64_t tag;
    uint64_t tie;
    uint64_t sequence;
    uint32_t slot;
};

struct heap {
    struct heap_entry *entries;
    uint32_t *position;
    uint32_t count;
    uint32_t capacity;
    void *memory; /* of the entries, before they were aligned */
};

/*
 * Makes room for slots 0 .. count-1 (and gives memory back when far more is held): doubling and
 * halving, so O(1) amortised. All slots in use must be below `count`. 0 or -ENOMEM, the heap
 * unchanged then.
 */
int heap_reserve(struct heap *heap, uint64_t count);

/* Frees the arrays. */
void heap_fini(struct heap *heap);

/* Takes out everything. O(n). */
void heap_clear(struct heap *heap);

static inline bool heap_has(const struct heap *heap, uint32_t slot)
{
    return heap->position[slot] != HEAP_NONE;
}

/* Adds a slot that is not in the heap. There must be room. O(log n). */
void heap_push(struct heap *heap, uint32_t slot, uint64_t tag, uint64_t tie, uint64_t sequence);

/* Gives a slot that is in the heap another key. O(log n). */
void heap_rekey(struct heap *heap, uint32_t slot, uint64_t tag, uint64_t tie, uint64_t sequence);

/* Takes out a slot that is in the heap. O(log n). */
void heap_remove(struct heap *heap, uint32_t slot);

/* What was known as slot `from` is `to` from now on, which is not in the heap. O(1). */
void heap_rename(struct heap *heap, uint32_t from, uint32_t to);

#endif
