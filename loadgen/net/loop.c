/* SPDX-License-Identifier: Apache-2.0 */
/* Edge-triggered event loop; the order within a turn and the invariants are in the header. */
#include "loadgen/net/loop.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL
/* A wait that found events sooner than this did not sleep: to sleep and wake up takes longer. */
#define NO_SLEEP_NS 2000ULL

uint64_t loop_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int loop_init(struct loop *loop)
{
    memset(loop, 0, sizeof(*loop));
    loop->deferred_tail = &loop->deferred;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return -errno;
    /* The default slack lets the kernel wake a sleeper 50 us late to save power. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    loop->now_ns = loop_clock_ns();
    return 0;
}

void loop_fini(struct loop *loop)
{
    timer_heap_fini(&loop->timers);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    loop->epoll_fd = -1;
}

int loop_add(struct loop *loop, struct loop_io *io)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = io};

    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, io->fd, &event) < 0 ? -errno : 0;
}

void loop_remove(struct loop *loop, struct loop_io *io)
{
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
    for (int i = loop->batch_next; i < loop->batch_count; i++) {
        if (loop->batch[i].data.ptr == io)
            loop->batch[i].data.ptr = NULL;
    }
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t deadline_ns)
{
    timer_heap_set(&loop->timers, &timer->entry, deadline_ns);
}

void loop_timer_cancel(struct loop *loop, struct loop_timer *timer)
{
    timer_heap_remove(&loop->timers, &timer->entry);
}

void loop_defer(struct loop *loop, struct loop_deferred *deferred)
{
    if (deferred->queued)
        return;
    deferred->queued = true;
    deferred->next = NULL;
    *loop->deferred_tail = deferred;
    loop->deferred_tail = &deferred->next;
}

void loop_stop(struct loop *loop)
{
    loop->stopped = true;
}

/* Nanoseconds to sleep, or UINT64_MAX for "until something happens". */
static uint64_t time_to_sleep(const struct loop *loop, uint64_t now_ns)
{
    const struct timer_entry *first = timer_heap_first(&loop->timers);

    if (loop->deferred)
        return 0;
    if (!first)
        return UINT64_MAX;
    return first->deadline_ns > now_ns ? first->deadline_ns - now_ns : 0;
}

static int sleep_for(struct loop *loop, uint64_t sleep_ns)
{
    if (!loop->no_pwait2) {
        struct timespec timeout = {.tv_sec = (time_t)(sleep_ns / NS_PER_S),
                                   .tv_nsec = (long)(sleep_ns % NS_PER_S)};
        int count = epoll_pwait2(loop->epoll_fd, loop->batch, LOOP_EVENTS,
                                 sleep_ns == UINT64_MAX ? NULL : &timeout, NULL);

        if (count >= 0 || errno != ENOSYS)
            return count;
        loop->no_pwait2 = true;
    }
    int timeout_ms = sleep_ns == UINT64_MAX             ? -1
                     : sleep_ns / NS_PER_MS > 1000 * 60 ? 1000 * 60
                                                        : (int)(sleep_ns / NS_PER_MS);

    return epoll_wait(loop->epoll_fd, loop->batch, LOOP_EVENTS, timeout_ms);
}

/* epoll's count, or -1 and errno; now_ns is the time after it. */
static int wait_for_events(struct loop *loop)
{
    uint64_t before_ns = loop_clock_ns();
    uint64_t sleep_ns = time_to_sleep(loop, before_ns);
    int count = sleep_for(loop, sleep_ns);
    int error = errno;

    loop->now_ns = loop_clock_ns();
    if (sleep_ns == 0 || (count > 0 && loop->now_ns - before_ns < NO_SLEEP_NS))
        before_ns = loop->now_ns;
    loop->worked_ns += before_ns - loop->work_since_ns;
    loop->work_since_ns = loop->now_ns;
    errno = error;
    return count;
}

uint64_t loop_busy_ns(const struct loop *loop)
{
    uint64_t since_ns = loop->work_since_ns;

    return loop->worked_ns + (since_ns ? loop_clock_ns() - since_ns : 0);
}

static void run_timers(struct loop *loop)
{
    struct timer_entry *first;

    while ((first = timer_heap_first(&loop->timers)) && first->deadline_ns <= loop->now_ns) {
        struct loop_timer *timer = (void *)((char *)first - offsetof(struct loop_timer, entry));

        timer_heap_remove(&loop->timers, first);
        timer->fire(timer);
    }
}

static void run_deferred(struct loop *loop)
{
    struct loop_deferred *list = loop->deferred;

    loop->deferred = NULL;
    loop->deferred_tail = &loop->deferred;
    while (list) {
        struct loop_deferred *deferred = list;

        list = deferred->next;
        deferred->queued = false;
        deferred->run(deferred);
    }
}

int loop_run(struct loop *loop)
{
    int error = 0;

    loop->work_since_ns = loop_clock_ns();
    while (!loop->stopped) {
        int count = wait_for_events(loop);

        if (count < 0 && errno != EINTR) {
            error = -errno;
            break;
        }
        loop->batch_count = count < 0 ? 0 : count;
        for (loop->batch_next = 0; loop->batch_next < loop->batch_count;) {
            struct epoll_event *event = &loop->batch[loop->batch_next++];
            struct loop_io *io = event->data.ptr;

            if (io)
                io->ready(io, event->events);
        }
        loop->batch_count = 0;
        run_timers(loop);
        run_deferred(loop);
    }
    loop->worked_ns = loop_busy_ns(loop);
    loop->work_since_ns = 0;
    return error;
}
