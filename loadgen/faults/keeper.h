/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that puts everything right when the one that does the faults can't any more.
 *
 *   the doer ──────── pipe, write end ────────► keeper, in a session of its own
 *      │ does, notes, strikes                      │ waits for the end of the pipe, or the limit
 *      └──────────────► journal ◄──────────────────┘ then settles what the journal owes
 *
 * The pipe ends however the doer ends, by SIGKILL too. A doer that is still there after the limit
 * (it may have been stopped) is killed first. Terminal signals don't reach the keeper, and it
 * ignores those that are sent to end it in good order.
 */
#ifndef LOADGEN_FAULTS_KEEPER_H
#define LOADGEN_FAULTS_KEEPER_H

#include <stdint.h>
#include <sys/types.h>

#include "loadgen/faults/journal.h"

struct keeper {
    pid_t pid;
    int pidfd; /* readable when it has ended */
    int pipe;
};

/* Before threads are started. 0, or negative errno after a message on stderr. */
int keeper_start(struct keeper *keeper, struct journal *journal, uint64_t limit_ns);

/* Closes the pipe and waits. 0 when nothing is left; 1 when the keeper failed or had been killed:
 * then the caller settles the journal itself. */
int keeper_end(struct keeper *keeper);

#endif
