/* SPDX-License-Identifier: Apache-2.0 */
/* Remedies: their text form, and their application. */
#include "loadgen/faults/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/faults/cgroup.h"
#include "loadgen/faults/network.h"
#include "loadgen/faults/target.h"

#define END_LIMIT_MS 2000

static const char *const names[REMEDY_KINDS] = {
    [REMEDY_CONTINUE] = "continue",
    [REMEDY_DISSOLVE] = "dissolve",
    [REMEDY_NETWORK] = "network",
    [REMEDY_RESTART] = "restart",
};

int remedy_format(const struct remedy *remedy, char out[REMEDY_TEXT_BYTES])
{
    const char *name = names[remedy->kind];
    unsigned long long start = remedy->start_ticks;

    if (strpbrk(remedy->first, "\n") || strpbrk(remedy->second, "\n\t") ||
        (remedy->kind != REMEDY_RESTART && strchr(remedy->first, '\t')))
        return -EINVAL;
    switch (remedy->kind) {
    case REMEDY_CONTINUE:
        snprintf(out, REMEDY_TEXT_BYTES, "%s %d %llu", name, remedy->pid, start);
        return 0;
    case REMEDY_RESTART:
        snprintf(out, REMEDY_TEXT_BYTES, "%s %d %llu %s", name, remedy->pid, start, remedy->first);
        return 0;
    default:
        snprintf(out, REMEDY_TEXT_BYTES, "%s %s\t%s", name, remedy->first, remedy->second);
        return 0;
    }
}

/* "PID START" and, of a restart, " COMMAND". */
static int parse_process(const char *text, struct remedy *out)
{
    char *end;
    long pid = strtol(text, &end, 10);

    if (end == text || *end != ' ' || pid <= 0 || pid > INT32_MAX)
        return -EINVAL;
    text = end + 1;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    out->pid = (pid_t)pid;
    out->start_ticks = strtoull(text, &end, 10);
    if (out->kind == REMEDY_CONTINUE)
        return *end == '\0' ? 0 : -EINVAL;
    if (*end != ' ' || !end[1] || strlen(end + 1) >= sizeof(out->first))
        return -EINVAL;
    snprintf(out->first, sizeof(out->first), "%s", end + 1);
    return 0;
}

/* "FIRST<tab>SECOND", both absolute or names, neither empty. */
static int parse_pair(const char *text, struct remedy *out)
{
    const char *tab = strchr(text, '\t');

    if (!tab || tab == text || !tab[1] || (size_t)(tab - text) >= sizeof(out->first) ||
        strlen(tab + 1) >= sizeof(out->second) || strchr(tab + 1, '\t'))
        return -EINVAL;
    memcpy(out->first, text, (size_t)(tab - text));
    snprintf(out->second, sizeof(out->second), "%s", tab + 1);
    return 0;
}

int remedy_parse(const char *text, struct remedy *out)
{
    *out = (struct remedy){.kind = REMEDY_CONTINUE};
    for (; out->kind < REMEDY_KINDS; out->kind++) {
        size_t length = strlen(names[out->kind]);

        if (strncmp(text, names[out->kind], length) != 0 || text[length] != ' ')
            continue;
        text += length + 1;
        return out->kind == REMEDY_CONTINUE || out->kind == REMEDY_RESTART
                   ? parse_process(text, out)
                   : parse_pair(text, out);
    }
    return -EINVAL;
}

/* ---------------------------------------------------------------- applying */

static int go_on(const struct remedy *remedy)
{
    struct target target;
    int error = target_reopen(remedy->pid, remedy->start_ticks, &target);

    if (!error) {
        error = target_signal(&target, SIGCONT);
        target_close(&target);
    }
    if (error && error != -ESRCH) {
        fprintf(stderr, "spillload fault: process %d can't be continued: %s; try kill -CONT %d\n",
                remedy->pid, strerror(-error), remedy->pid);
        return error;
    }
    return 0;
}

/* Whether the process has ended, or does so soon. */
static bool ended(const struct remedy *remedy)
{
    struct target target;
    bool gone = true;

    if (target_reopen(remedy->pid, remedy->start_ticks, &target) == 0) {
        struct pollfd end = {.fd = target.pidfd, .events = POLLIN};

        gone = poll(&end, 1, END_LIMIT_MS) == 1;
        target_close(&target);
    }
    return gone;
}

/* A shell of its own session that keeps nothing of ours open: it outlives us. */
static int restart(const struct remedy *remedy, pid_t *started)
{
    if (!ended(remedy)) {
        fprintf(stderr, "spillload fault: process %d did not end, so it is not started again\n",
                remedy->pid);
        return 0;
    }
    pid_t child = fork();

    if (child < 0)
        return -errno;
    if (child == 0) {
        sigset_t none;
        int null = open("/dev/null", O_RDWR);

        setsid();
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        closefrom(3);
        execl("/bin/sh", "sh", "-c", remedy->first, (char *)NULL);
        _exit(127);
    }
    if (started)
        *started = child;
    return 0;
}

int remedy_apply(const struct remedy *remedy, pid_t *started)
{
    int error = 0;

    if (started)
        *started = 0;
    switch (remedy->kind) {
    case REMEDY_CONTINUE:
        return go_on(remedy);
    case REMEDY_NETWORK:
        return network_remove(remedy->first, remedy->second);
    case REMEDY_RESTART:
        error = restart(remedy, started);
        if (error)
            fprintf(stderr, "spillload fault: '%s' can't be started: %s\n", remedy->first,
                    strerror(-error));
        return error;
    default:
        error = cgroup_dissolve(remedy->first, remedy->second);
        if (error)
            fprintf(stderr,
                    "spillload fault: control group %s can't be removed: %s; move its processes "
                    "to %s and rmdir it\n",
                    remedy->first, strerror(-error), remedy->second);
        return error;
    }
}
