/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that carry out work, so that the event loop stays free to answer.
 *
 *   workers_give() ─► queue ─► a thread: job->work(), or burning ─► done list ─► `finished`, in
 *   the loop's thread
 *
 * Threads come when a job finds none idle, up to WORKERS_MAX of them, and stay; jobs beyond wait in
 * order. The queue and the done list are the only things shared; both lie under one lock. A job
 * belongs to its thread between workers_give() and `finished`: nobody else touches it.
 */
#ifndef LOADGEN_ORIGIN_SERVICE_WORKERS_H
#define LOADGEN_ORIGIN_SERVICE_WORKERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "loadgen/net/loop.h"
#include "loadgen/origin/service/service.h"

#define WORKERS_MAX 256

struct workers {
    struct loop_io io; /* an eventfd: there is something on the done list */
    struct loop *loop;
    void (*finished)(struct workers *workers, struct service_job *job);
    pthread_mutex_t lock;
    pthread_cond_t given;
    struct service_job *queue;
    struct service_job **queue_tail;
    struct service_job *done;
    struct service_job **done_tail;
    unsigned idle;
    unsigned queued;
    atomic_bool stopping;
    pthread_t threads[WORKERS_MAX];
    unsigned threads_count;
};

/* 0 or negative errno. No thread is started yet. workers_fini() is due after an error too. */
int workers_init(struct workers *workers, struct loop *loop,
                 void (*finished)(struct workers *workers, struct service_job *job));

/* Cuts short what is being burned, waits for functions to return, ends the threads. */
void workers_fini(struct workers *workers);

/* 0, or negative errno when there is no thread and none can be made; the job is not taken then. */
int workers_give(struct workers *workers, struct service_job *job);

#endif
