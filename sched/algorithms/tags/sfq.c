/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sfq.c: start-time fair queueing, SFQ (Goyal, Vin, Cheng, "Start-time Fair Queueing", 1997),
 * SFQ(D) (Jin, Chase, Kaur, "Interposed Proportional Sharing", SIGMETRICS 2004), and, with the same
 * order and a v that stands still, Virtual Clock (Zhang, "VirtualClock", SIGCOMM 1990).
 *
 * v is the start tag of the request dispatched last. SFQ is the case D = 1, where that is also the
 * request in service. Dispatch is in ascending order of start tags, so v goes up by itself, but
 * for a request that was taken back and is sent again: v stays then.
 */
#include "sched/algorithms/tags/start_tags.h"

static void sfq_take(struct sched *s, struct sched_item *item)
{
    start_tags_take(s, item);
    queue_push_back(&s->out, item);
    s->vtime = vtime_later(s->vtime, item->start);
}

static void virtual_clock_take(struct sched *s, struct sched_item *item)
{
    start_tags_take(s, item);
    queue_push_back(&s->out, item);
}

const struct sched_ops sched_sfq_ops = {
    .name = "sfq",
    .serial = true,
    .enter = start_tags_enter,
    .leave = start_tags_leave,
    .queue = start_tags_queue,
    .peek = start_tags_peek,
    .take = sfq_take,
    .put_back = start_tags_put_back,
    .remove = start_tags_remove,
    .done = start_tags_done,
};

const struct sched_ops sched_virtual_clock_ops = {
    .name = "virtual-clock",
    .enter = start_tags_enter,
    .leave = start_tags_leave,
    .queue = start_tags_queue,
    .peek = start_tags_peek,
    .take = virtual_clock_take,
    .put_back = start_tags_put_back,
    .remove = start_tags_remove,
    .done = start_tags_done,
};

const struct sched_ops sched_sfqd_ops = {
    .name = "sfqd",
    .enter = start_tags_enter,
    .leave = start_tags_leave,
    .queue = start_tags_queue,
    .peek = start_tags_peek,
    .take = sfq_take,
    .put_back = start_tags_put_back,
    .remove = start_tags_remove,
    .done = start_tags_done,
};
