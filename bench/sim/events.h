/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop in virtual time: nothing happens between two events, so the clock jumps from one to
 * the next. Events live inside their owners; a run with the same events in the same order is the
 * same run.
 *
 *     struct disk { struct event done; ... };
 *
 *     events_at(&events, &disk->done, events.now_ns + service_ns);
 *     events_run_until(&events, end_ns);     (calls disk->done.fire(&disk->done) on the way)
 *
 * Order: by time, then in the order in which events_at() was called. An event is armed at most
 * once; when it fires it is no longer armed, so its function may arm it again.
 */
#ifndef BENCH_SIM_EVENTS_H
#define BENCH_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/net/timer_heap.h"

/* The owner zeroes it and sets `fire`. */
struct event {
    struct timer_entry entry;
    void (*fire)(struct event *event);
};

/* A zeroed struct is an empty loop at time 0. */
struct events {
    struct timer_heap heap;
    uint64_t now_ns; /* of the event that is being fired, else of the end of the last run */
    uint64_t fired;  /* events so far */
};

/* Frees what the loop allocated; events are their owners'. */
void events_fini(struct events *events);

/* Arms the event, or moves it. A time that has passed counts as now. */
void events_at(struct events *events, struct event *event, uint64_t time_ns);

/* The event will not fire; nothing happens when it is not armed. */
void events_cancel(struct events *events, struct event *event);

static inline bool event_armed(const struct event *event)
{
    return timer_entry_armed(&event->entry);
}

/* When an armed event will fire. */
static inline uint64_t event_time_ns(const struct event *event)
{
    return event->entry.deadline_ns;
}

/*
 * Fires every event up to `until_ns`, that time and the events made on the way included, then sets
 * the clock to it.
 */
void events_run_until(struct events *events, uint64_t until_ns);

#endif
