/* SPDX-License-Identifier: Apache-2.0 */
/* Between fault.c, which knows when, and the kinds, which know what; for no one else. */
#ifndef LOADGEN_FAULTS_FAULT_KINDS_H
#define LOADGEN_FAULTS_FAULT_KINDS_H

#include "loadgen/faults/fault.h"

/* What begin says: done; not this time (told); the target has ended; failed (told on stderr). */
enum fault_begun {
    FAULT_BEGUN,
    FAULT_SKIPPED,
    FAULT_TARGET_GONE,
    FAULT_FAILED,
};

struct fault_kind_actions {
    int (*prepare)(struct fault *fault); /* 0, or -1 after a message on stderr */
    enum fault_begun (*begin)(struct fault *fault);
    /* True when it has ended; false: ask again, `again_ns` later. */
    bool (*end)(struct fault *fault, uint64_t *again_ns);
    void (*finish)(struct fault *fault); /* once, before it is over; may be NULL */
};

extern const struct fault_kind_actions fault_cpu_actions;
extern const struct fault_kind_actions fault_memory_actions;
extern const struct fault_kind_actions fault_pause_actions;
extern const struct fault_kind_actions fault_kill_actions;
extern const struct fault_kind_actions fault_network_actions;

/* Notes the remedy in the journal. 0, or -1 after a message. */
int fault_owe(struct fault *fault, const struct remedy *remedy);

/* Applies what this fault owes, the latest first; what fails stays in the journal. The process that
 * a restart made, or 0. */
pid_t fault_pay(struct fault *fault);

/* Opens pid= and checks that we may. 0, or -1 after a message. */
int fault_open_target(struct fault *fault);

/* Fills `held` with the target and, with children=yes, its descendants that we may touch. */
void fault_hold(struct fault *fault);
void fault_release(struct fault *fault);

/* SIGSTOP to what is held, each noted before. False when it failed. */
bool fault_note_held(struct fault *fault);
void fault_signal_held(struct fault *fault, int signal);

void fault_tell(struct fault *fault, const char *name, const char *why);
void fault_tell_count(struct fault *fault, const char *name, const char *unit, uint64_t count);

#endif
