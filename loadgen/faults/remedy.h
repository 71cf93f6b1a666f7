/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What puts one thing right again, as data: so that it can be written down before the thing is
 * done, and be applied by whoever is still alive.
 *
 *   continue PID START                   SIGCONT to that process
 *   dissolve FOLDER<tab>ORIGIN           a control group's processes back, the group removed
 *   network NAMESPACE<tab>DEVICE         our netem removed
 *   restart PID START COMMAND            the command run, once that process has ended
 *
 * Applying one is harmless when the thing had not been done yet, or was put right already.
 */
#ifndef LOADGEN_FAULTS_REMEDY_H
#define LOADGEN_FAULTS_REMEDY_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

enum remedy_kind {
    REMEDY_CONTINUE,
    REMEDY_DISSOLVE,
    REMEDY_NETWORK,
    REMEDY_RESTART,
    REMEDY_KINDS,
};

#define REMEDY_TEXT_BYTES (2 * PATH_MAX + 64)

struct remedy {
    enum remedy_kind kind;
    pid_t pid;
    uint64_t start_ticks;
    char first[PATH_MAX]; /* folder, namespace, command */
    char second[PATH_MAX];
};

/* Into a line without its end. 0, or -EINVAL when the texts can't be held in a line. */
int remedy_format(const struct remedy *remedy, char out[REMEDY_TEXT_BYTES]);

/* 0 or -EINVAL. */
int remedy_parse(const char *text, struct remedy *out);

/*
 * Puts it right. 0, or negative errno after a message on stderr. `started` (may be NULL) is the
 * process that a restart made, else 0.
 */
int remedy_apply(const struct remedy *remedy, pid_t *started);

#endif
