/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens, told on stdout: lines for people, or one JSON object per line for a program:
 *
 *   {"event": "ready"}                                     everything was checked
 *   {"event": "begin", "fault": 0, "kind": "cpu", "at_s": 2.0003, "pid": 4711, "how": "cgroup v1"}
 *   {"event": "end", "fault": 0, "kind": "cpu", "at_s": 2.5002, "throttled": 41}
 *   {"event": "skipped", ... "why": "..."}                 this time nothing was done
 *   {"event": "gone", ...}                                 the target has ended, so has the fault
 *   {"event": "done"}                                      everything was undone
 *
 * `fault` counts from 0 in the order of the command line; `at_s` is since the start. A reader that
 * went away is not an error: faults are undone by plan, not because of a pipe.
 */
#ifndef LOADGEN_FAULTS_EVENTS_H
#define LOADGEN_FAULTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct events {
    bool json;
    uint64_t start_ns;
};

/* What an event says beside its name; zeroed fields are left out. */
struct event {
    const char *name;
    size_t fault;
    const char *kind;
    int pid;
    const char *how;
    const char *why;
    bool counted; /* `count` is told, under `unit` */
    const char *unit;
    uint64_t count;
};

/* An event of the whole: "ready", "done". */
void events_whole(const struct events *events, const char *name);

void events_tell(const struct events *events, const struct event *event, uint64_t now_ns);

#endif
