/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault at work: prepared before the load, begun and ended by the clock, undone.
 *
 *              at              for
 *   PREPARED ──────► (begin) ACTIVE ──────► (end) RESTING ──┐
 *                        ▲            every                 │
 *                        └──────────────────────────────────┤
 *                                    times, target gone     ▼
 *                                    or fault_stop()      OVER
 *
 * Invariants
 *   - Nothing is done before its remedy is in the journal; a remedy is struck only after it worked.
 *   - In RESTING nothing hinders the target (a control group with no limit may stay until OVER).
 *   - In OVER nothing of the fault is left, or the journal still says what is.
 *
 * What the kinds do at begin and end is one table (fault_kinds.h).
 */
#ifndef LOADGEN_FAULTS_FAULT_H
#define LOADGEN_FAULTS_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/faults/cgroup.h"
#include "loadgen/faults/events.h"
#include "loadgen/faults/fault_spec.h"
#include "loadgen/faults/journal.h"
#include "loadgen/faults/streaming.h"
#include "loadgen/faults/target.h"
#include "loadgen/net/loop.h"

#define FAULT_MAX_HELD 256

/* What the faults of one command share. */
struct fault_context {
    struct fault *faults;
    size_t count;
    struct loop *loop;
    struct journal *journal;
    struct events *events;
    bool force;
    size_t left; /* faults that are not over */
    bool failed; /* something could not be done or undone; told on stderr */
    void (*over)(struct fault_context *context); /* the last one is over, or one failed */
};

enum fault_state {
    FAULT_PREPARED,
    FAULT_ACTIVE,
    FAULT_RESTING,
    FAULT_OVER,
};

struct fault_owed {
    int entry;
    struct remedy remedy;
};

struct fault {
    struct fault_spec spec;
    size_t index;
    struct fault_context *context;
    enum fault_state state;
    struct loop_timer timer;
    uint64_t start_ns;
    uint64_t due_ns; /* when it was to begin this time */
    uint64_t times_done;
    struct fault_owed *owed;
    size_t owed_count;

    struct target target;
    struct target held[FAULT_MAX_HELD]; /* the processes it is done to this time */
    size_t held_count;
    pid_t trial; /* kill: the shell of restart=, while it is on trial */
    uint64_t trial_until_ns;
    bool grouped; /* cpu: our control group is there */
    bool moved;   /* and the processes are in it */
    struct cgroup cgroup;
    uint64_t counted_before; /* throttled, or bytes streamed, when this time began */
    struct loop_timer duty_timer;
    bool duty_stopped;
    struct streaming *streaming;
};

/* Checks that it can be done here and to that target, and makes what it needs. The spec is the
 * fault's from now on. 0, or -1 after a message on stderr; fault_stop() in both cases. */
int fault_prepare(struct fault *fault, struct fault_context *context, size_t index,
                  const struct fault_spec *spec);

/* In words, how it will be done: "cgroup v1", "stop and continue"; "" when there is one way only.
 */
const char *fault_how(const struct fault *fault);

/* The clock of the faults begins. */
void fault_start(struct fault *fault, uint64_t start_ns);

/* Ends and undoes it, whatever state it is in. */
void fault_stop(struct fault *fault);

#endif
