/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edf.c: earliest deadline first, as Facade does it (Lumb, Merchant, Alvarez, FAST 2003).
 *
 * deadline = arrival + the flow's target. Weights play no part: a flow that sends more than the
 * service can bear makes everybody late.
 */
#include "sched/algorithms/heads/heads.h"

static uint64_t deadline_ns(const struct sched *s, const struct sched_flow *flow)
{
    (void)s;
    return sched_flow_head(flow)->arrival_ns + heads_terms(flow)->target_ns;
}

const struct sched_ops sched_edf_ops = {
    .name = "edf",
    .head_key = deadline_ns,
    .enter = heads_enter,
    .leave = heads_leave,
    .queue = heads_queue,
    .peek = heads_peek,
    .take = heads_take,
    .put_back = heads_put_back,
    .remove = heads_remove,
    .done = heads_done,
    .changed = heads_changed,
};
