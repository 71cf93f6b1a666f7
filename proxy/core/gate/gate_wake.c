/* SPDX-License-Identifier: Apache-2.0 */
/* Wake-ups for requests that become due by the passing of time: see gate_internal.h. */
#include "proxy/core/container_of.h"
#include "proxy/core/gate/gate_internal.h"

uint64_t gate_advance_clock(struct pool *pool, uint64_t now_ns)
{
    if (now_ns > pool->clock_ns)
        pool->clock_ns = now_ns;
    return pool->clock_ns;
}

void gate_wake_clear(struct pool *pool, uint64_t now_ns)
{
    if (now_ns >= pool->wake_ns)
        pool->wake_ns = SCHED_NEVER_NS;
}

uint64_t gate_wake_needed(struct pool *pool, uint64_t now_ns)
{
    uint64_t due_ns = SCHED_NEVER_NS;
    struct lane *lane;

    if (!gate_pool_has_room(pool))
        return SCHED_NEVER_NS;
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        uint64_t lane_ns = sched_wake_ns(lane->sched);
        if (lane_ns < due_ns && gate_choose_server(lane, NULL, now_ns) != NULL)
            due_ns = lane_ns;
    }
    if (due_ns >= pool->wake_ns)
        return SCHED_NEVER_NS;
    pool->wake_ns = due_ns;
    return due_ns;
}

/* ------------------------------------------------------------------ a side's alarm */

static void on_alarm(struct alarm *alarm, uint64_t now_ns)
{
    struct gate_side *side = container_of(alarm, struct gate_side, wake);

    (void)now_ns;
    loop_add_pump(side->loop, &side->hook);
}

void gate_wake_arm(struct gate_side *side, uint64_t wake_ns)
{
    if (wake_ns != SCHED_NEVER_NS)
        alarm_set(side->loop, &side->wake, wake_ns);
}

void gate_wake_init(struct gate_side *side)
{
    alarm_init(&side->wake, on_alarm);
}
