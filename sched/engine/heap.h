/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h: a 4-ary heap of flows ordered by (tag, low), smallest first.
 *
 *   entries:  [0] the smallest; the children of [i] are [4i+1] .. [4i+4], none smaller than [i]
 *
 * Keys stand in the array, so that a comparison touches no flow; each flow knows its place, so that
 * it can leave from anywhere. Four children make the heap half as deep as a binary one and keep
 * siblings together. An entry is 24 bytes on purpose: with 32 the same heap was slower at every
 * size.
 *
 * Tags are compared wrap-safely (vtime.h), `low` as it is: the arrival number of the flow's head,
 * or what the algorithm makes of it. Where both are equal the arrival numbers of the heads decide,
 * if there are heads.
 *
 * A flow may be in several heaps that keep its place in different fields, and in one at a time of
 * those that share a field.
 */
#ifndef SPILLWAY_SCHED_ENGINE_HEAP_H
#define SPILLWAY_SCHED_ENGINE_HEAP_H

#include "sched/sched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_entry {
    uint64_t tag;
    uint64_t low;
    struct sched_flow *flow;
};

struct heap {
    struct heap_entry *entries;
    uint32_t count;
    uint32_t capacity;
    size_t place_offset; /* in struct sched_flow: where a flow's place, a uint32_t, is kept */
};

/* An empty heap without room. */
static inline void heap_init(struct heap *heap, size_t place_offset)
{
    *heap = (struct heap){.place_offset = place_offset};
}

/*
 * Makes room for `count` entries (and gives memory back when far more is held): doubling and
 * halving, so O(1) amortised. 0 or -ENOMEM, the heap unchanged then.
 */
int heap_reserve(struct heap *heap, uint64_t count);

/* Frees the array. */
void heap_fini(struct heap *heap);

/* Takes out everything. O(1). */
static inline void heap_clear(struct heap *heap)
{
    heap->count = 0;
}

static inline uint32_t *heap_place_of(const struct heap *heap, struct sched_flow *flow)
{
    return (uint32_t *)(void *)((char *)flow + heap->place_offset);
}

/* Whether the flow is in this heap. O(1). */
static inline bool heap_has(const struct heap *heap, struct sched_flow *flow)
{
    const uint32_t place = *heap_place_of(heap, flow);

    return place < heap->count && heap->entries[place].flow == flow;
}

/* Adds a flow that is not in the heap. There must be room. O(log n). */
void heap_push(struct heap *heap, struct sched_flow *flow, uint64_t tag, uint64_t low);

/* Gives a flow that is in the heap another key. O(log n). */
void heap_rekey(struct heap *heap, struct sched_flow *flow, uint64_t tag, uint64_t low);

/* Takes out a flow that is in the heap. O(log n). */
void heap_remove(struct heap *heap, struct sched_flow *flow);

#endif
