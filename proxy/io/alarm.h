/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alarms: timers of one event loop that fire within the clock's own precision, for the few times
 * that are shorter than the wheel's tick of 8 ms (timer.h): a client that is not read from for a
 * millisecond, a request that becomes due.
 *
 *      alarm_set ──> in loop->alarms, in the order of their times ──timerfd──> fire, on the loop
 *          └─ not soon ─> on the wheel, until it is soon ──┘
 *
 * and alarm_clear takes it out from either.
 *
 * A loop has one timerfd, made at its first alarm and set for the earliest one. Without descriptors
 * the wheel does it, late but never early, until a descriptor can be had. Clearing the earliest
 * leaves the timerfd as it is: a wake-up for nothing is cheaper than a system call each time.
 * Setting is O(1) for what is not soon or comes in order, else O(n) of those that are soon. Only
 * the loop's own thread may touch its alarms. One that is set must be cleared before its memory
 * goes.
 *
 * Invariant: the list is ordered by deadline, those of one time in the order of their setting;
 * where it is not empty, `armed_ns` is not 0 and not behind the first one's deadline.
 */
#ifndef SPILLWAY_IO_ALARM_H
#define SPILLWAY_IO_ALARM_H

#include "proxy/io/timer.h"

#include <event2/event_struct.h>
#include <stdint.h>
#include <sys/queue.h>

/* Less ahead is soon. The wheel hands over at that time less its own lateness, so with time left.
 */
#define ALARM_SOON_NS (4 * WHEEL_TICK_NS)

struct alarm;
struct loop;
typedef void alarm_fire_fn(struct alarm *alarm, uint64_t now_ns);

struct alarm {
    TAILQ_ENTRY(alarm) link;
    struct timer far; /* linked: on the wheel, not in the list */
    struct loop *loop;
    alarm_fire_fn *fire;
    uint64_t deadline_ns; /* 0: not set */
};

/* Of a loop. */
struct alarms {
    TAILQ_HEAD(alarm_list, alarm) list;
    struct timer late; /* the wheel's, where there is no descriptor */
    struct event event;
    int fd;            /* -1: not needed so far, or none to be had */
    uint64_t armed_ns; /* when one of the two will come; 0: neither */
};

void alarm_init(struct alarm *alarm, alarm_fire_fn *fire);

/* Fires once, at that time of the loop's clock or in the next turn if it is past; `fire` may set it
 * again, and set or clear others. One that is set is set anew. */
void alarm_set(struct loop *loop, struct alarm *alarm, uint64_t deadline_ns);

/* It will not fire; nothing if it was not set. */
void alarm_clear(struct loop *loop, struct alarm *alarm);

/* By the loop itself; alarms_run() fires what is due. */
void alarms_run(struct loop *loop, uint64_t now_ns);
void alarms_init(struct alarms *alarms);
void alarms_fini(struct alarms *alarms);

#endif
