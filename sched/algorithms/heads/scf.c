/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scf.c: smallest cost first, with ageing.
 *
 * Mean waiting time is least when the smallest request goes first; ageing keeps the large ones from
 * waiting for ever: a wait of options.ageing_ns makes up for one unit of cost. The order by
 * cost * ageing - wait is at any time the order by arrival + cost * ageing, which stands still.
 */
#include "sched/algorithms/heads/heads.h"

#define DEFAULT_AGEING_NS UINT64_C(1000000)

static uint64_t aged_ns(const struct sched *s, const struct sched_flow *flow)
{
    const struct sched_item *head = sched_flow_head(flow);
    uint64_t ageing_ns = s->options.ageing_ns != 0 ? s->options.ageing_ns : DEFAULT_AGEING_NS;
    unsigned __int128 worth = (unsigned __int128)head->cost * ageing_ns;

    return head->arrival_ns + (worth < SCHED_TIME_NS_MAX ? (uint64_t)worth : SCHED_TIME_NS_MAX);
}

const struct sched_ops sched_scf_ops = {
    .name = "scf",
    .head_key = aged_ns,
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
