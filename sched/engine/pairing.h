/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairing.h: a pairing heap of flows by (flow->tag, sequence of the head), linked through the
 * flows. Private to sched/.
 *
 * Unlike heap.h it needs no room of its own, so there may be many of them. A flow in one is ACTIVE,
 * so its place_next and place_prev are free to link it to its brothers:
 *
 *     root --child--> a <-place_prev/next-> b <-> c      a->place_prev == root
 *
 * Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap", 1986. Push O(1), remove O(log n)
 * amortised.
 */
#ifndef SPILLWAY_SCHED_ENGINE_PAIRING_H
#define SPILLWAY_SCHED_ENGINE_PAIRING_H

#include "sched/engine/vtime.h"
#include "sched/sched.h"

#include <stddef.h>

static inline bool pairing_before(const struct sched_flow *a, const struct sched_flow *b)
{
    if (a->tag != b->tag)
        return vtime_before(a->tag, b->tag);
    return a->queue.head->sequence < b->queue.head->sequence;
}

/* One heap of two; both may be NULL. */
static inline struct sched_flow *pairing_merge(struct sched_flow *a, struct sched_flow *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    struct sched_flow *root = pairing_before(b, a) ? b : a;
    struct sched_flow *other = root == a ? b : a;
    other->place_prev = root;
    other->place_next = root->child;
    if (root->child != NULL)
        root->child->place_prev = other;
    root->child = other;
    return root;
}

/* Adds a flow that has a head and is in no heap. */
static inline void pairing_push(struct sched_flow **root, struct sched_flow *flow)
{
    flow->child = NULL;
    flow->place_next = NULL;
    flow->place_prev = NULL;
    *root = pairing_merge(*root, flow);
}

/* One heap of a row of brothers: in pairs from the left, then all from the right. */
static inline struct sched_flow *pairing_join(struct sched_flow *brothers)
{
    struct sched_flow *pairs = NULL;
    struct sched_flow *root = NULL;

    while (brothers != NULL) {
        struct sched_flow *a = brothers;
        struct sched_flow *b = a->place_next;
        brothers = b != NULL ? b->place_next : NULL;
        a->place_next = NULL;
        if (b != NULL)
            b->place_next = NULL;
        struct sched_flow *pair = pairing_merge(a, b);
        pair->place_next = pairs;
        pairs = pair;
    }
    while (pairs != NULL) {
        struct sched_flow *pair = pairs;
        pairs = pair->place_next;
        pair->place_next = NULL;
        root = pairing_merge(root, pair);
    }
    if (root != NULL)
        root->place_prev = NULL;
    return root;
}

/*
 * Takes out a flow. Its key is not looked at, so it may have changed since it was pushed, as long
 * as it was not compared meanwhile.
 */
static inline void pairing_remove(struct sched_flow **root, struct sched_flow *flow)
{
    struct sched_flow *children = pairing_join(flow->child);

    if (*root == flow) {
        *root = children;
    } else {
        if (flow->place_prev->child == flow)
            flow->place_prev->child = flow->place_next;
        else
            flow->place_prev->place_next = flow->place_next;
        if (flow->place_next != NULL)
            flow->place_next->place_prev = flow->place_prev;
        *root = pairing_merge(*root, children);
    }
    flow->child = NULL;
    flow->place_next = NULL;
    flow->place_prev = NULL;
}

#endif
