/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers of one event loop: a hashed wheel with lazy deadlines.
 *
 * A connection moves its deadline on every request, but almost never reaches it. So moving a
 * deadline later only writes a number: the timer stays where it is linked, and when its slot comes
 * round and the deadline turns out to lie ahead it is linked again. Moving it earlier relinks it.
 * Both are O(1).
 *
 * Invariants: a linked timer sits in the slot of the first tick at or after its deadline, or in an
 * earlier one; `slot_ns` is that slot's time. Granularity is WHEEL_TICK_NS: a timer fires at most
 * two ticks late, never early. Only the thread of the loop that owns the wheel may touch it or its
 * timers.
 */
#ifndef SPILLWAY_IO_TIMER_H
#define SPILLWAY_IO_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define WHEEL_TICK_SHIFT 23 /* 2^23 ns = 8.4 ms */
#define WHEEL_TICK_NS    (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define WHEEL_SLOTS                                                                                \
    2048 /* a horizon of 17 s; later deadlines are linked at the horizon and again there */

struct timer;
typedef void timer_fire_fn(struct timer *timer, uint64_t now_ns);

struct timer {
    LIST_ENTRY(timer) link;
    timer_fire_fn *fire;
    uint64_t deadline_ns; /* 0: not set */
    uint64_t slot_ns;     /* 0: not linked */
};

struct timer_wheel {
    LIST_HEAD(timer_slot, timer) slots[WHEEL_SLOTS];
    uint64_t occupied[WHEEL_SLOTS / 64]; /* a superset of the slots that hold timers */
    uint64_t tick;                       /* every slot up to and including this one has been run */
};

void timer_wheel_init(struct timer_wheel *wheel, uint64_t now_ns);

static inline void timer_init(struct timer *timer, timer_fire_fn *fire)
{
    timer->fire = fire;
    timer->deadline_ns = 0;
    timer->slot_ns = 0;
}

/* Links the timer for a deadline; use timer_set(), which avoids it where nothing has to move. */
void timer_link(struct timer_wheel *wheel, struct timer *timer);

/* Sets or moves the deadline. `fire` is called once, from timer_wheel_run(), and may set the timer
 * again. */
static inline void timer_set(struct timer_wheel *wheel, struct timer *timer, uint64_t deadline_ns)
{
    timer->deadline_ns = deadline_ns;
    if (timer->slot_ns == 0 || timer->slot_ns > deadline_ns)
        timer_link(wheel, timer);
}

/* Forgets the deadline; the timer may stay linked, so use timer_unlink() before freeing its memory.
 */
static inline void timer_clear(struct timer *timer)
{
    timer->deadline_ns = 0;
}

static inline void timer_unlink(struct timer *timer)
{
    if (timer->slot_ns != 0)
        LIST_REMOVE(timer, link);
    timer->slot_ns = 0;
    timer->deadline_ns = 0;
}

/* Fires what is due at now_ns. */
void timer_wheel_run(struct timer_wheel *wheel, uint64_t now_ns);

/* The time at which timer_wheel_run() should be called next, or UINT64_MAX when no timer is linked.
 */
uint64_t timer_wheel_next_ns(struct timer_wheel *wheel);

#endif
