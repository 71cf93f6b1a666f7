/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock of the test's own under the loop: time goes on only while the loop sleeps, and by what
 * the test says that work takes. Include it in one file of a program; it stands in front of libc.
 */
#ifndef TESTS_UNIT_LOADGEN_CLIENT_VIRTUAL_CLOCK_H
#define TESTS_UNIT_LOADGEN_CLIENT_VIRTUAL_CLOCK_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#define CLOCK_START_NS 1000000000000ULL

static uint64_t virtual_now_ns = CLOCK_START_NS;

/* Names of their own in C, those of libc for the linker. */
int virtual_clock_gettime(clockid_t clock_id, struct timespec *out) __asm__("clock_gettime");
int virtual_epoll_pwait2(int epoll_fd, struct epoll_event *events, int max_events,
                         const struct timespec *timeout,
                         const sigset_t *signals) __asm__("epoll_pwait2");

int virtual_clock_gettime(clockid_t clock_id, struct timespec *out)
{
    (void)clock_id;
    out->tv_sec = (time_t)(virtual_now_ns / 1000000000);
    out->tv_nsec = (long)(virtual_now_ns % 1000000000);
    return 0;
}

/* Nothing ever becomes ready: there are timers alone, and a wait without one would never end. */
int virtual_epoll_pwait2(int epoll_fd, struct epoll_event *events, int max_events,
                         const struct timespec *timeout, const sigset_t *signals)
{
    (void)epoll_fd;
    (void)events;
    (void)max_events;
    (void)signals;
    if (!timeout)
        abort();
    virtual_now_ns += (uint64_t)timeout->tv_sec * 1000000000 + (uint64_t)timeout->tv_nsec;
    return 0;
}

#endif
