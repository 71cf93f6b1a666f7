/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop of the load tools: edge-triggered epoll, nanosecond timers, work put off to the
 * end of the turn. One thread, one loop.
 *
 * A turn:  wait -> ready descriptors -> timers that are due -> deferred work (sends happen here)
 *
 * Invariants
 *   - A descriptor is registered once for everything (in, out, hang-up) and never re-armed.
 *   - After loop_remove() its io is never called again, not even for an event of the same turn.
 *   - Deferred work added while deferred work runs waits for the next turn, which does not sleep.
 *   - Timers are late by the length of one turn plus the kernel's wake-up, never early.
 *
 * The wait is epoll_pwait2(2) with the timer slack turned down; where the kernel lacks it the loop
 * sleeps to the millisecond before and spins for the rest.
 *
 * The loop tells how much of the time it worked: everything but the waits, and those waits that did
 * not sleep because something was ready at once. A loop that works all the time is behind.
 */
#ifndef LOADGEN_NET_LOOP_H
#define LOADGEN_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "loadgen/net/timer_heap.h"

#define LOOP_EVENTS 256

struct loop_io {
    int fd;
    void (*ready)(struct loop_io *io, uint32_t events);
};

/* Zero it, set `fire`; the owner embeds it and keeps it alive while it is armed. */
struct loop_timer {
    struct timer_entry entry;
    void (*fire)(struct loop_timer *timer);
};

/* Zero it, set `run`; the owner embeds it and keeps it alive while it is queued. */
struct loop_deferred {
    struct loop_deferred *next;
    bool queued;
    void (*run)(struct loop_deferred *deferred);
};

struct loop {
    int epoll_fd;
    bool stopped;
    bool no_pwait2;
    uint64_t now_ns;
    uint64_t work_since_ns; /* 0: it does not run */
    uint64_t worked_ns;     /* up to then */
    struct timer_heap timers;
    struct loop_deferred *deferred;
    struct loop_deferred **deferred_tail;
    int batch_next;
    int batch_count;
    struct epoll_event batch[LOOP_EVENTS];
};

/* 0 or negative errno. */
int loop_init(struct loop *loop);
void loop_fini(struct loop *loop);

/* 0 or negative errno. The io's descriptor must be non-blocking. */
int loop_add(struct loop *loop, struct loop_io *io);
void loop_remove(struct loop *loop, struct loop_io *io);

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t deadline_ns);
void loop_timer_cancel(struct loop *loop, struct loop_timer *timer);

/* Runs it at the end of this turn; once, however often it is asked for before. */
void loop_defer(struct loop *loop, struct loop_deferred *deferred);

/* Turns until loop_stop(). 0, or negative errno when waiting failed. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Nanoseconds of work since loop_init(), up to now; the difference of two readings over the time
 * between them is the loop's share of a core. */
uint64_t loop_busy_ns(const struct loop *loop);

/* The monotonic clock, now. loop->now_ns is the same clock, read once after each wait. */
uint64_t loop_clock_ns(void);

#endif
