/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backlogs.h: which flow exceeds its share the most. Private to sched/.
 *
 * Once watched, s->backlogs is a heap of the flows that have requests queued, by their normalised
 * backlog: (queued cost + outstanding cost) / weight. What is at the service counts, too: a flow
 * that holds every slot and has one request queued exceeds its share more than one that has two
 * queued and nothing else.
 */
#ifndef SPILLWAY_SCHED_ENGINE_BACKLOGS_H
#define SPILLWAY_SCHED_ENGINE_BACKLOGS_H

#include "sched/engine/engine.h"

void sched_backlog_rekey(struct sched *s, struct sched_flow *flow);

/* The flow's queue, its outstanding cost or its weight is another now. */
static inline void sched_backlog_changed(struct sched *s, struct sched_flow *flow)
{
    if (s->watching)
        sched_backlog_rekey(s, flow);
}

#endif
