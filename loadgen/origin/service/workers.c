/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads behind one queue. */
#include "loadgen/origin/service/workers.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Steps between looks at the clock: some 20 us, below which a service time is not told apart. */
#define BURN_STEPS 8192

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* Spends processor time, not wall time: with fewer cores than slots it takes longer, as work does.
 */
static void burn(struct workers *workers, uint64_t burn_ns)
{
    uint64_t end_ns = thread_cpu_ns() + burn_ns;
    uint64_t x = end_ns | 1;

    while (thread_cpu_ns() < end_ns && !atomic_load(&workers->stopping)) {
        for (int i = 0; i < BURN_STEPS; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        /* Keeps the compiler from leaving out what nobody reads. */
        __asm__ volatile("" : "+r"(x));
    }
}

static void *thread_main(void *argument)
{
    struct workers *workers = argument;

    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->queue && !atomic_load(&workers->stopping)) {
            workers->idle++;
            pthread_cond_wait(&workers->given, &workers->lock);
            workers->idle--;
        }
        if (atomic_load(&workers->stopping))
            break;
        struct service_job *job = workers->queue;

        workers->queue = job->next;
        workers->queued--;
        if (!workers->queue)
            workers->queue_tail = &workers->queue;
        pthread_mutex_unlock(&workers->lock);
        if (job->work)
            job->work(job);
        else
            burn(workers, job->burn_ns);
        pthread_mutex_lock(&workers->lock);
        bool first = !workers->done;

        job->next = NULL;
        *workers->done_tail = job;
        workers->done_tail = &job->next;
        if (first)
            eventfd_write(workers->io.fd, 1);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static void done_ready(struct loop_io *io, uint32_t events)
{
    struct workers *workers = (void *)((char *)io - offsetof(struct workers, io));
    eventfd_t ignored;

    if (!(events & EPOLLIN))
        return;
    eventfd_read(io->fd, &ignored);
    pthread_mutex_lock(&workers->lock);
    struct service_job *list = workers->done;

    workers->done = NULL;
    workers->done_tail = &workers->done;
    pthread_mutex_unlock(&workers->lock);
    while (list) {
        struct service_job *job = list;

        list = job->next;
        workers->finished(workers, job);
    }
}

int workers_init(struct workers *workers, struct loop *loop,
                 void (*finished)(struct workers *workers, struct service_job *job))
{
    memset(workers, 0, sizeof(*workers));
    workers->loop = loop;
    workers->finished = finished;
    workers->queue_tail = &workers->queue;
    workers->done_tail = &workers->done;
    workers->io.ready = done_ready;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->given, NULL);
    workers->io.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (workers->io.fd < 0)
        return -errno;
    return loop_add(loop, &workers->io);
}

void workers_fini(struct workers *workers)
{
    if (!workers->finished)
        return;
    pthread_mutex_lock(&workers->lock);
    atomic_store(&workers->stopping, true);
    pthread_cond_broadcast(&workers->given);
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->threads_count; i++)
        pthread_join(workers->threads[i], NULL);
    if (workers->io.fd >= 0) {
        loop_remove(workers->loop, &workers->io);
        close(workers->io.fd);
    }
    pthread_cond_destroy(&workers->given);
    pthread_mutex_destroy(&workers->lock);
    workers->finished = NULL;
}

/* Under the lock: one more thread, if one is wanted and allowed. */
static int add_thread(struct workers *workers)
{
    if (workers->idle > workers->queued || workers->threads_count == WORKERS_MAX)
        return 0;
    int error =
        pthread_create(&workers->threads[workers->threads_count], NULL, thread_main, workers);

    if (error)
        return workers->threads_count > 0 ? 0 : -error;
    workers->threads_count++;
    return 0;
}

int workers_give(struct workers *workers, struct service_job *job)
{
    pthread_mutex_lock(&workers->lock);
    int error = add_thread(workers);

    if (!error) {
        job->next = NULL;
        *workers->queue_tail = job;
        workers->queue_tail = &job->next;
        workers->queued++;
        pthread_cond_signal(&workers->given);
    }
    pthread_mutex_unlock(&workers->lock);
    return error;
}
