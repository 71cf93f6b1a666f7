/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual clock over the load generator's heap of deadlines. */
#include "bench/sim/events.h"

#include <stddef.h>

void events_fini(struct events *events)
{
    timer_heap_fini(&events->heap);
}

void events_at(struct events *events, struct event *event, uint64_t time_ns)
{
    timer_heap_set(&events->heap, &event->entry,
                   time_ns > events->now_ns ? time_ns : events->now_ns);
}

void events_cancel(struct events *events, struct event *event)
{
    timer_heap_remove(&events->heap, &event->entry);
}

void events_run_until(struct events *events, uint64_t until_ns)
{
    struct timer_entry *first;

    while ((first = timer_heap_first(&events->heap)) && first->deadline_ns <= until_ns) {
        struct event *event = (void *)((char *)first - offsetof(struct event, entry));

        timer_heap_remove(&events->heap, first);
        events->now_ns = first->deadline_ns;
        events->fired++;
        event->fire(event);
    }
    if (events->now_ns < until_ns)
        events->now_ns = until_ns;
}
