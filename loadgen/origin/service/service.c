/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and a FIFO in front of them; states and invariants are in the header. */
#include "loadgen/origin/service/service.h"

#include <stddef.h>
#include <string.h>

void service_init(struct service *service, uint32_t slots, const struct distribution *time,
                  uint64_t seed)
{
    memset(service, 0, sizeof(*service));
    service->slots = slots;
    service->time = *time;
    service->time_factor = 1.0;
    service->waiting_tail = &service->waiting;
    rng_init(&service->rng, seed, 0);
}

void service_fini(struct service *service)
{
    timer_heap_fini(&service->running);
}

static uint64_t draw_ns(struct service *service)
{
    uint64_t time_ns = distribution_draw(&service->time, &service->rng);

    return service->time_factor == 1.0 ? time_ns
                                       : (uint64_t)((double)time_ns * service->time_factor);
}

static void start(struct service *service, struct service_job *job, uint64_t now_ns)
{
    uint64_t start_ns = job->submitted_ns > now_ns ? job->submitted_ns : now_ns;

    service->running_count++;
    service->counters.wait_ns += start_ns - job->submitted_ns;
    if (start_ns < service->stalled_ns)
        start_ns = service->stalled_ns;
    job->started_ns = start_ns;
    if (!job->work) {
        uint64_t time_ns = draw_ns(service);

        if (!service->burn || time_ns == 0) {
            service->counters.busy_ns += time_ns;
            timer_heap_set(&service->running, &job->running, start_ns + time_ns);
            return;
        }
        job->burn_ns = time_ns;
    }
    service->hand_over(service, job);
}

static void start_waiting(struct service *service, uint64_t now_ns)
{
    while (service->waiting && service->running_count < service->slots) {
        struct service_job *job = service->waiting;

        service->waiting = job->next;
        if (!service->waiting)
            service->waiting_tail = &service->waiting;
        service->waiting_count--;
        start(service, job, now_ns);
    }
}

bool service_submit(struct service *service, struct service_job *job, uint64_t now_ns)
{
    service->counters.submitted++;
    if (!job->work && service_is_immediate(service, now_ns)) {
        service->counters.completed++;
        return true;
    }
    job->submitted_ns = now_ns;
    if (service->running_count < service->slots) {
        start(service, job, now_ns);
        return false;
    }
    job->next = NULL;
    *service->waiting_tail = job;
    service->waiting_tail = &job->next;
    service->waiting_count++;
    if (service->waiting_count > service->counters.waiting_peak)
        service->counters.waiting_peak = service->waiting_count;
    return false;
}

uint64_t service_next_ns(const struct service *service)
{
    const struct timer_entry *first = timer_heap_first(&service->running);

    return first ? first->deadline_ns : UINT64_MAX;
}

static void end(struct service *service, struct service_job *job, uint64_t end_ns)
{
    service->running_count--;
    service->counters.completed++;
    start_waiting(service, end_ns);
    job->done(job);
}

void service_advance(struct service *service, uint64_t now_ns)
{
    struct timer_entry *first;

    while ((first = timer_heap_first(&service->running)) && first->deadline_ns <= now_ns) {
        struct service_job *job = (void *)((char *)first - offsetof(struct service_job, running));
        uint64_t end_ns = first->deadline_ns;

        timer_heap_remove(&service->running, first);
        end(service, job, end_ns);
    }
}

void service_finish(struct service *service, struct service_job *job, uint64_t now_ns)
{
    if (now_ns > job->started_ns)
        service->counters.busy_ns += now_ns - job->started_ns;
    if (now_ns < service->stalled_ns)
        timer_heap_set(&service->running, &job->running, service->stalled_ns);
    else
        end(service, job, now_ns);
}

void service_set_slots(struct service *service, uint32_t slots, uint64_t now_ns)
{
    service->slots = slots;
    start_waiting(service, now_ns);
}

void service_set_time(struct service *service, const struct distribution *time)
{
    service->time = *time;
}

void service_stall(struct service *service, uint64_t until_ns, uint64_t now_ns)
{
    uint64_t from_ns = service->stalled_ns > now_ns ? service->stalled_ns : now_ns;

    if (until_ns <= from_ns)
        return;
    /* All by the same: their order in the heap stays. */
    for (size_t i = 1; i <= service->running.count; i++)
        service->running.entries[i]->deadline_ns += until_ns - from_ns;
    service->stalled_ns = until_ns;
}
