/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a service's capacity in the course of time: a schedule of capacities, and stalls
 * that come again and again. It drives the service: every change takes place between the ends of
 * jobs before it and after it, at its very moment, however late the caller is.
 *
 * A schedule as text: steps in order, blank or comma between them, each "CAPACITY:TIME"; the last
 * one may leave out its time, and stays; "repeat" at the end starts over.
 *
 *   100%:10s 50%:10s 20%:10s 50%:10s 100%     of the slots, to the nearest whole number; a share
 *                                             above 0 leaves one slot at least
 *   8:1m 2:1m repeat                          slots
 *   400/s:30s 100/s:30s repeat                all slots, the service times multiplied so that
 *                                             slots / mean is this rate
 *
 * Without "repeat" the last step stays whether or not it has a time. "none" is no schedule. A step
 * lasts 1 ms at least, and stalls are as far apart.
 *
 * Stalls as text: "every=10s,for=500ms": the first one begins 10 s from when it was set; "none".
 */
#ifndef LOADGEN_ORIGIN_SERVICE_TIMELINE_H
#define LOADGEN_ORIGIN_SERVICE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/origin/service/service.h"

#define SCHEDULE_STEPS 64

enum capacity_kind {
    CAPACITY_SHARE,
    CAPACITY_SLOTS,
    CAPACITY_RATE,
};

struct schedule_step {
    enum capacity_kind kind;
    double value;       /* of one (a share), slots, or per second */
    uint64_t length_ns; /* UINT64_MAX: for ever */
};

struct schedule {
    struct schedule_step steps[SCHEDULE_STEPS];
    size_t count; /* 0: none */
    bool repeat;
};

struct stalls {
    uint64_t every_ns; /* 0: none */
    uint64_t length_ns;
};

/* 0 or -EINVAL. */
int schedule_read(const char *text, struct schedule *out);
int stalls_read(const char *text, struct stalls *out);

/* Embedded beside its service. */
struct timeline {
    struct service *service;
    uint32_t slots; /* of which schedules take a share */
    struct schedule schedule;
    struct stalls stalls;
    size_t step;
    uint64_t change_ns; /* the next step; UINT64_MAX: none */
    uint64_t stall_ns;  /* the next stall; UINT64_MAX: none */
};

void timeline_init(struct timeline *timeline, struct service *service);

/* When timeline_advance() has something to do next, jobs included; UINT64_MAX when nothing. */
uint64_t timeline_next_ns(const struct timeline *timeline);

/* Whether a change of capacity or a stall is due: advance before a job is submitted. */
static inline bool timeline_is_due(const struct timeline *timeline, uint64_t now_ns)
{
    return timeline->change_ns <= now_ns || timeline->stall_ns <= now_ns;
}

/* Carries out all that is due by now, in order: jobs' ends, changes of capacity, stalls. */
void timeline_advance(struct timeline *timeline, uint64_t now_ns);

/* The slots that are all, and the service times. The step that is on is applied to them. */
void timeline_set_slots(struct timeline *timeline, uint32_t slots, uint64_t now_ns);
void timeline_set_time(struct timeline *timeline, const struct distribution *time, uint64_t now_ns);

/* Begins now, in place of what was before. */
void timeline_set_schedule(struct timeline *timeline, const struct schedule *schedule,
                           uint64_t now_ns);
void timeline_set_stalls(struct timeline *timeline, const struct stalls *stalls, uint64_t now_ns);

#endif
