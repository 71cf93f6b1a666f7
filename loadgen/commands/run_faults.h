/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults of a run: one `spillload fault --hold` as a child, which says on its standard output
 * when all is prepared and what begins and ends, starts its clock with a line on its standard
 * input, and undoes everything at that input's end: even that which comes from our death.
 *
 * States   NONE -> PREPARING -> READY -> RUNNING -> ENDED (from any of them)
 */
#ifndef LOADGEN_COMMANDS_RUN_FAULTS_H
#define LOADGEN_COMMANDS_RUN_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loadgen/net/loop.h"

enum run_faults_state {
    RUN_FAULTS_NONE, /* there are none */
    RUN_FAULTS_PREPARING,
    RUN_FAULTS_READY,
    RUN_FAULTS_RUNNING,
    RUN_FAULTS_ENDED,
};

struct run_faults {
    struct loop_io output; /* of the child */
    struct loop *loop;
    enum run_faults_state state;
    pid_t child;
    int input; /* of the child; -1: closed */
    char line[1024];
    size_t length;
    char *const *texts;
    size_t count;
    uint64_t heard; /* a bit per fault, of the first 64: it began, or why it did not was said */
    bool quiet;     /* says nothing of what begins and ends */
    /* Fault `number` of the command line begins or ends, so long after run_faults_go(). */
    void (*mark)(struct run_faults *faults, uint64_t number, bool begins, double at_s,
                 const char *kind);
};

/* Zero it; `quiet` and `mark` are the caller's. Starts the child. 0 or negative errno. */
int run_faults_start(struct run_faults *faults, char *const *texts, size_t count,
                     uint64_t limit_ns);

/* Listens to the child. 0 or negative errno. */
int run_faults_listen(struct run_faults *faults, struct loop *loop);

/* The load may begin, as far as faults are concerned. */
bool run_faults_ready(const struct run_faults *faults);

/* The times of the faults count from now. */
void run_faults_go(struct run_faults *faults);

/* Undoes everything, waits for that; tells which faults were due too late to begin. The exit status
 * of the child, 0 when there is none. */
int run_faults_end(struct run_faults *faults);

#endif
