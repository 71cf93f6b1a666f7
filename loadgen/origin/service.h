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
 * Invariants: running <= slots, except right after the slots were cut (what runs is never stopped);
 * something waits only while running >= slots; jobs start in the order of submission.
 */
#ifndef LOADGEN_ORIGIN_SERVICE_H
#define LOADGEN_ORIGIN_SERVICE_H

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
    void (*done)(struct service_job *job);
};

struct service_counters {
    uint64_t submitted;
    uint64_t completed;
    uint64_t busy_ns; /* service time of all jobs started */
    uint64_t wait_ns; /* time in the FIFO of all jobs started */
    uint32_t waiting_peak;
};

struct service {
    uint32_t slots;
    uint32_t running_count;
    uint32_t waiting_count;
    struct distribution time;
    struct rng rng;
    struct timer_heap running;
    struct service_job *waiting;
    struct service_job **waiting_tail;
    struct service_counters counters;
};

void service_init(struct service *service, uint32_t slots, const struct distribution *time,
                  uint64_t seed);
void service_fini(struct service *service);

/*
 * True: the job is done already, `done` will not be called (the mean service time is 0). Else it is
 * running or waiting, and the caller must keep it until `done`.
 */
bool service_submit(struct service *service, struct service_job *job, uint64_t now_ns);

/* When service_advance() has something to do next; UINT64_MAX when nothing runs. */
uint64_t service_next_ns(const struct service *service);

/* Ends every job whose time is over by now, in the order of their ends, and starts those that wait.
 */
void service_advance(struct service *service, uint64_t now_ns);

/* Takes effect at once; jobs that run go on to their end. `slots` may be 0: everything waits. */
void service_set_slots(struct service *service, uint32_t slots, uint64_t now_ns);

/* For the jobs that start from now on. */
void service_set_time(struct service *service, const struct distribution *time);

#endif
