/* SPDX-License-Identifier: Apache-2.0 */
/* Alarms, one descriptor for all of a loop's: see alarm.h for what they are for. */
#include "proxy/io/alarm.h"

#include "proxy/core/container_of.h"
#include "proxy/io/loop.h"

#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

static void on_timerfd(evutil_socket_t fd, short what, void *argument);

static bool open_timerfd(struct loop *loop, struct alarms *alarms)
{
    if (alarms->fd >= 0)
        return true;
    alarms->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarms->fd < 0)
        return false;
    event_assign(&alarms->event, loop->base, alarms->fd, EV_READ | EV_PERSIST, on_timerfd, loop);
    event_add(&alarms->event, NULL);
    return true;
}

/* For the first alarm, unless something will come by then anyhow. */
static void arm(struct loop *loop)
{
    struct alarms *alarms = &loop->alarms;
    const struct alarm *first = TAILQ_FIRST(&alarms->list);

    if (first == NULL || (alarms->armed_ns != 0 && alarms->armed_ns <= first->deadline_ns))
        return;
    alarms->armed_ns = first->deadline_ns;
    if (!open_timerfd(loop, alarms)) {
        timer_set(&loop->wheel, &alarms->late, first->deadline_ns);
        return;
    }
    const struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(first->deadline_ns / SECOND_NS),
                     .tv_nsec = (long)(first->deadline_ns % SECOND_NS)},
    };
    timerfd_settime(alarms->fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Ends, since what is set meanwhile is set for later than now: see alarm_set(). */
void alarms_run(struct loop *loop, uint64_t now_ns)
{
    struct alarms *alarms = &loop->alarms;
    struct alarm *alarm;

    alarms->armed_ns = 0;
    while ((alarm = TAILQ_FIRST(&alarms->list)) != NULL && alarm->deadline_ns <= now_ns) {
        alarm_clear(loop, alarm);
        alarm->fire(alarm, now_ns);
    }
    arm(loop);
}

static void on_timerfd(evutil_socket_t fd, short what, void *argument)
{
    struct loop *loop = argument;
    uint64_t expirations;

    (void)what;
    if (read(fd, &expirations, sizeof(expirations)) == (ssize_t)sizeof(expirations))
        alarms_run(loop, loop_now_ns(loop));
}

static void on_wheel(struct timer *timer, uint64_t now_ns)
{
    alarms_run(container_of(timer, struct loop, alarms.late), now_ns);
}

static void enlist(struct loop *loop, struct alarm *alarm)
{
    struct alarms *alarms = &loop->alarms;
    struct alarm *before;

    TAILQ_FOREACH_REVERSE(before, &alarms->list, alarm_list, link)
    {
        if (before->deadline_ns <= alarm->deadline_ns)
            break;
    }
    if (before != NULL)
        TAILQ_INSERT_AFTER(&alarms->list, before, alarm, link);
    else
        TAILQ_INSERT_HEAD(&alarms->list, alarm, link);
    arm(loop);
}

static void on_soon(struct timer *timer, uint64_t now_ns)
{
    struct alarm *alarm = container_of(timer, struct alarm, far);

    (void)now_ns;
    enlist(alarm->loop, alarm);
}

void alarm_init(struct alarm *alarm, alarm_fire_fn *fire)
{
    *alarm = (struct alarm){.fire = fire};
    timer_init(&alarm->far, on_soon);
}

void alarm_set(struct loop *loop, struct alarm *alarm, uint64_t deadline_ns)
{
    uint64_t now_ns = loop_now_ns(loop);

    alarm_clear(loop, alarm);
    alarm->loop = loop;
    alarm->deadline_ns = deadline_ns > now_ns ? deadline_ns : now_ns + 1;
    if (deadline_ns > now_ns + ALARM_SOON_NS)
        timer_set(&loop->wheel, &alarm->far, deadline_ns - ALARM_SOON_NS);
    else
        enlist(loop, alarm);
}

void alarm_clear(struct loop *loop, struct alarm *alarm)
{
    if (alarm->deadline_ns == 0)
        return;
    if (alarm->far.slot_ns != 0)
        timer_unlink(&alarm->far);
    else
        TAILQ_REMOVE(&loop->alarms.list, alarm, link);
    alarm->deadline_ns = 0;
}

void alarms_init(struct alarms *alarms)
{
    *alarms = (struct alarms){.fd = -1};
    TAILQ_INIT(&alarms->list);
    timer_init(&alarms->late, on_wheel);
}

void alarms_fini(struct alarms *alarms)
{
    if (alarms->fd < 0)
        return;
    event_del(&alarms->event);
    close(alarms->fd);
    alarms->fd = -1;
}
