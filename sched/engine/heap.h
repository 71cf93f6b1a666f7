/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h: a 4-ary heap of flows ordered by (tag, sequence), smallest first.
 *
 *   entries:  [0] the smallest; the children of [i] are [4i+1] .. [4i+4], none smaller than [i]
 *
 * Keys stand in the array, so that a comparison touches no flow; each flow knows its place
 * (heap_index), so that it can leave from anywhere. A flow is in at most one heap. Four children
 * make the heap half as deep as a binary one and keep siblings on two cache lines.
 *
 * Tags are compared wrap-safely (vtime.h); the sequence breaks ties and must not wrap.
 */
#ifndef SPILLWAY_SCHED_ENGINE_HEAP_H
#define SPILLWAY_SCHED_ENGINE_HEAP_H

#include "sched/sched.h"

#include <stdint.h>

#define HEAP_NONE UINT32_MAX /* heap_index of a flow that is in no heap */

struct heap_entry {
    uint64_t tag;
    uint64_t sequence;
    struct sched_flow *flow;
};

struct heap {
    struct heap_entry *entries;
    uint32_t count;
    uint32_t capacity;
};

/*
 * Makes room for `count` entries (and gives memory back when far more is held): doubling and
 * halving, so O(1) amortised. 0 or -ENOMEM, the heap unchanged then.
 */
int heap_reserve(struct heap *heap, uint64_t count);

/* Frees the array. */
void heap_fini(struct heap *heap);

/* Adds a flow that is in no heap. There must be room. O(log n). */
void heap_push(struct heap *heap, struct sched_flow *flow, uint64_t tag, uint64_t sequence);

/* Gives the flow at `index` another key. O(log n). */
void heap_rekey(struct heap *heap, uint32_t index, uint64_t tag, uint64_t sequence);

/* Takes out the flow at `index`. O(log n). */
void heap_remove(struct heap *heap, uint32_t index);

#endif
