/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stamped.h: start tags where v may pass the start tag of a waiting head. Private to sched/.
 *
 * Each item keeps v as its arrival found it (item->aside) until it becomes its flow's head and gets
 * its start tag (start_tags.h). Where a flow stands is the algorithm's business, in one function,
 *
 *     ops->place    the flow may have another head, or none, or other terms: put it where it
 * belongs
 *
 * which these functions call whenever that may be so.
 */
#ifndef SPILLWAY_SCHED_ALGORITHMS_TAGS_STAMPED_H
#define SPILLWAY_SCHED_ALGORITHMS_TAGS_STAMPED_H

#include "sched/algorithms/tags/start_tags.h"

/* The functions of the same name of struct sched_ops. stamped_take leaves v alone. */
void stamped_enter(struct sched *s);
void stamped_queue(struct sched *s, struct sched_item *item);
void stamped_take(struct sched *s, struct sched_item *item);
void stamped_put_back(struct sched *s, struct sched_item *item);
void stamped_remove(struct sched *s, struct sched_item *item);
void stamped_done(struct sched *s, struct sched_item *item, uint64_t true_cost);
void stamped_changed(struct sched *s, struct sched_flow *flow);

#endif
