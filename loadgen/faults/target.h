/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that a fault is done to: which one it is beyond doubt, whether we may, and signals.
 *
 * A number alone may mean another process a moment later. A target is the number together with the
 * time at which the process started (in the kernel's clock ticks since boot) and holds a pidfd, so
 * that a signal never reaches a successor.
 */
#ifndef LOADGEN_FAULTS_TARGET_H
#define LOADGEN_FAULTS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TARGET_WHY_BYTES 256

struct target {
    pid_t pid;
    uint64_t start_ticks;
    int pidfd; /* -1: not open */
};

/* The process that has the number now. 0, or -ESRCH when there is none, or negative errno. */
int target_open(pid_t pid, struct target *out);

/* The process of that number if it is the one that started then; -ESRCH when it is not. */
int target_reopen(pid_t pid, uint64_t start_ticks, struct target *out);

void target_close(struct target *target);

/* Whether it has ended (a zombie has). */
bool target_gone(const struct target *target);

/* Whether it is stopped by a signal. */
bool target_stopped(const struct target *target);

/* 0, -ESRCH, -EPERM. */
int target_signal(const struct target *target, int signal);

/*
 * Whether we may do something to it: never to process 1, to ourselves, to what we descend from or
 * to a kernel thread; to another user's only as root with `force`. False: `why` says it.
 */
bool target_allowed(const struct target *target, bool force, char why[TARGET_WHY_BYTES]);

/*
 * The descendants of a process, as targets; at most `most`. Returns how many; the caller closes
 * them. What is forked meanwhile may be missed.
 */
size_t target_descendants(pid_t pid, struct target *out, size_t most);

#endif
