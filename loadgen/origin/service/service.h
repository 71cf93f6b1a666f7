/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service behind the origin: a number of slots that work at the same time, and one FIFO of jobs
 * that wait for a slot, as in a disk array or a pool of application threads.
 *
 *   submit ──slot free──────────────► running ──its time is over──► done
 *      └────no slot──► waiting ──a slot frees──┘
 *
 * Time is an argument; this is virtual time as good as real. A waiting job starts at the very
 * moment the job before it ends, not when somebody gets round to calling service_advance(): the
 * capacity is slots / mean whatever the caller's timers are worth.
 *
 * A job that is work (a function of its own, or any job while `burn` is set) has no end that is
 * known beforehand: when it starts, `hand_over` passes it to a thread, and it ends with
 * service_finish().
 *
 * A stall freezes the service: nothing ends and nothing starts before it is over, and what ran has
 * as much left to do as it had.
 *
 * Invariants: running <= slots, except right after the slots were cut (what runs is never stopped);
 * something waits only while running >= slots; jobs start in the order of submission.
 */
#ifndef LOADGEN_ORIGIN_SERVICE_SERVICE_H
#define LOADGEN_ORIGIN_SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/base/distribution.h"
#include "loadgen/base/rng.h"
#include "loadgen/net/timer_heap.h"

/* Embedded in whatever the job is for; zero it and set `done`. */
struct service_job {
    struct timer_entry running;
    struct service_job *next;
    uint64_t submitted_ns;
    uint64_t started_ns;
    /* What a thread has to do: this function, or, without one, to burn `burn_ns` of its
     * processor's time. */
    void (*work)(struct service_job *job);
    uint64_t burn_ns;
    void (*done)(struct service_job *job);
};

struct service_counters {
    uint64_t submitted;
    uint64_t completed;
    uint64_t busy_ns; /* service time of all jobs started; of work, when it ended */
    uint64_t wait_ns; /* time in the FIFO of all jobs started */
    uint32_t waiting_peak;
};

struct service {
    uint32_t slots;
    uint32_t running_count;
    uint32_t waiting_count;
    bool burn;           /* the times drawn are processor time to burn */
    double time_factor;  /* every time drawn is multiplied by it; 1 at first */
    uint64_t stalled_ns; /* the end of the last stall */
    struct distribution time;
    struct rng rng;
    struct timer_heap running;
    struct service_job *waiting;
    struct service_job **waiting_tail;
    /* Passes a job that is work to a thread. Needed before such a job is submitted. */
    void (*hand_over)(struct service *service, struct service_job *job);
    struct service_counters counters;
};

void service_init(struct service *service, uint32_t slots, const struct distribution *time,
                  uint64_t seed);
void service_fini(struct service *service);

/* Whether a job without work of its own would be done at once: no time, no queue, no stall. */
static inline bool service_is_immediate(const struct service *service, uint64_t now_ns)
{
    return service->time.mean == 0 && service->waiting_count == 0 && service->slots > 0 &&
           now_ns >= service->stalled_ns;
}

/*
 * True: the job is done already, `done` will not be called. Else it is running or waiting, and the
 * caller must keep it until `done`.
 */
bool service_submit(struct service *service, struct service_job *job, uint64_t now_ns);

/* When service_advance() has something to do next; UINT64_MAX when nothing with a known end runs.
 */
uint64_t service_next_ns(const struct service *service);

/* Ends every job whose time is over by now, in the order of their ends, and starts those that wait.
 */
void service_advance(struct service *service, uint64_t now_ns);

/* A job that was handed over is through. It ends now, or with the stall that is on. */
void service_finish(struct service *service, struct service_job *job, uint64_t now_ns);

/* Takes effect at once; jobs that run go on to their end. `slots` may be 0: everything waits. */
void service_set_slots(struct service *service, uint32_t slots, uint64_t now_ns);

/* For the jobs that start from now on. */
void service_set_time(struct service *service, const struct distribution *time);

/* Stalls from now until `until_ns`, in the future; a stall that is on is made longer. Advance the
 * service to now before. */
void service_stall(struct service *service, uint64_t until_ns, uint64_t now_ns);

#endif
