/* SPDX-License-Identifier: Apache-2.0 */
/* Wake-ups for requests that become due by the passing of time: see gate_internal.h. */
#include "proxy/control/log.h"
#include "proxy/core/container_of.h"
#include "proxy/core/gate/gate_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

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

/* ------------------------------------------------------------------ a side's timer */

static void pump_again(struct gate_side *side)
{
    timer_clear(&side->wake_timer);
    loop_add_pump(side->loop, &side->hook);
}

static void on_wheel(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    pump_again(container_of(timer, struct gate_side, wake_timer));
}

static void on_timerfd(evutil_socket_t fd, short what, void *argument)
{
    uint64_t expirations;

    (void)what;
    if (read(fd, &expirations, sizeof(expirations)) == (ssize_t)sizeof(expirations))
        pump_again(argument);
}

/* False when there is none to be had. */
static bool open_timerfd(struct gate_side *side)
{
    static struct log_limit limit;

    if (side->wake_fd >= 0)
        return true;
    side->wake_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (side->wake_fd < 0) {
        log_limited(&limit, loop_now_ns(side->loop), CONFIG_LOG_WARNING,
                    "pool %s: no precise timer for rates and limits: %s", side->pool->name,
                    strerror(errno));
        return false;
    }
    event_assign(&side->wake_event, side->loop->base, side->wake_fd, EV_READ | EV_PERSIST,
                 on_timerfd, side);
    event_add(&side->wake_event, NULL);
    return true;
}

/*
 * The wheel's ticks are too coarse for hundreds of requests per second, so a descriptor's timer
 * does the work; the wheel's is what is left when there are no descriptors.
 */
void gate_wake_arm(struct gate_side *side, uint64_t wake_ns)
{
    if (wake_ns == SCHED_NEVER_NS)
        return;
    timer_set(&side->loop->wheel, &side->wake_timer, wake_ns);
    if (!open_timerfd(side))
        return;
    const struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(wake_ns / SECOND_NS),
                     .tv_nsec = (long)(wake_ns % SECOND_NS)},
    };
    timerfd_settime(side->wake_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void gate_wake_init(struct gate_side *side)
{
    side->wake_fd = -1;
    timer_init(&side->wake_timer, on_wheel);
}

void gate_wake_fini(struct gate_side *side)
{
    if (side->wake_fd >= 0)
        close(side->wake_fd);
}
