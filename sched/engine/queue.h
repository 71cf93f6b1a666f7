/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h: lists of items linked through the items themselves.
 *
 * An item is in at most one list at a time: its flow's queue or FIFO's queue while QUEUED, the
 * outstanding list while OUTSTANDING. All operations are O(1) except queue_insert_by_start.
 */
#ifndef SPILLWAY_SCHED_ENGINE_QUEUE_H
#define SPILLWAY_SCHED_ENGINE_QUEUE_H

#include "sched/engine/vtime.h"
#include "sched/sched.h"

#include <stddef.h>

/* Inserts `item` behind `before`; NULL: in front of all. */
static inline void queue_insert_after(struct sched_queue *queue, struct sched_item *before,
                                      struct sched_item *item)
{
    struct sched_item *behind = before != NULL ? before->next : queue->head;

    item->prev = before;
    item->next = behind;
    if (before != NULL)
        before->next = item;
    else
        queue->head = item;
    if (behind != NULL)
        behind->prev = item;
    else
        queue->tail = item;
}

static inline void queue_push_back(struct sched_queue *queue, struct sched_item *item)
{
    queue_insert_after(queue, queue->tail, item);
}

static inline void queue_push_front(struct sched_queue *queue, struct sched_item *item)
{
    queue_insert_after(queue, NULL, item);
}

static inline void queue_remove(struct sched_queue *queue, struct sched_item *item)
{
    if (item->prev != NULL)
        item->prev->next = item->next;
    else
        queue->head = item->next;
    if (item->next != NULL)
        item->next->prev = item->prev;
    else
        queue->tail = item->prev;
    item->next = NULL;
    item->prev = NULL;
}

/* The head of a list that is not empty leaves it. */
static inline void queue_pop_front(struct sched_queue *queue)
{
    struct sched_item *item = queue->head;

    queue->head = item->next;
    if (item->next != NULL)
        item->next->prev = NULL;
    else
        queue->tail = NULL;
    item->next = NULL;
}

/*
 * Keeps a list sorted by start tag, equal tags in order of insertion. Searches from the tail: O(1)
 * for items that come in ascending order.
 */
static inline void queue_insert_by_start(struct sched_queue *queue, struct sched_item *item)
{
    struct sched_item *before = queue->tail;

    while (before != NULL && vtime_before(item->start, before->start))
        before = before->prev;
    queue_insert_after(queue, before, item);
}

/* Sorts a list that may be in any order. O(n^2) at worst, O(n) when it is sorted. */
static inline void queue_sort_by_start(struct sched_queue *queue)
{
    struct sched_item *item = queue->head;

    *queue = (struct sched_queue){0};
    while (item != NULL) {
        struct sched_item *next = item->next;
        queue_insert_by_start(queue, item);
        item = next;
    }
}

#endif
