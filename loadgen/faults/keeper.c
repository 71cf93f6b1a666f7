/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a fork that waits. */
#include "loadgen/faults/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* True when the pipe has ended, false when the limit came first. */
static bool wait_for_end(int pipe, uint64_t until_ns)
{
    for (;;) {
        struct pollfd end = {.fd = pipe, .events = POLLIN};
        uint64_t now_ns = clock_ns();

        if (now_ns >= until_ns)
            return false;
        uint64_t left_ms = (until_ns - now_ns) / NS_PER_MS + 1;

        if (poll(&end, 1, left_ms > 3600000 ? 3600000 : (int)left_ms) > 0)
            return true;
    }
}

static _Noreturn void keep(struct journal *journal, int pipe, int doer, uint64_t limit_ns)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    uint64_t until_ns = clock_ns() + limit_ns;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    prctl(PR_SET_NAME, "spillload-keep");
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &ignore, NULL);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (!wait_for_end(pipe, until_ns)) {
        fprintf(stderr, "spillload fault: still there after its limit, so it is ended\n");
        syscall(SYS_pidfd_send_signal, doer, SIGKILL, NULL, 0U);
        wait_for_end(doer, clock_ns() + 5 * NS_PER_S);
    }
    int owed = journal_settle(journal, NULL);

    if (owed)
        fprintf(stderr,
                "spillload fault: not everything could be undone; try again with spillload fault "
                "--undo (journal %s)\n",
                journal->path);
    journal_close(journal, owed);
    _exit(owed ? 1 : 0);
}

int keeper_start(struct keeper *keeper, struct journal *journal, uint64_t limit_ns)
{
    int ends[2] = {-1, -1};
    int doer = (int)syscall(SYS_pidfd_open, getpid(), 0U);
    int error = 0;

    *keeper = (struct keeper){.pid = -1, .pidfd = -1, .pipe = -1};
    fflush(NULL);
    if (doer < 0 || pipe2(ends, O_CLOEXEC) != 0 || (keeper->pid = fork()) < 0)
        error = -errno;
    if (keeper->pid == 0) {
        close(ends[1]);
        keep(journal, ends[0], doer, limit_ns);
    }
    if (doer >= 0)
        close(doer);
    if (ends[0] >= 0)
        close(ends[0]);
    keeper->pipe = ends[1];
    if (!error && (keeper->pidfd = (int)syscall(SYS_pidfd_open, keeper->pid, 0U)) < 0)
        error = -errno;
    if (error)
        fprintf(stderr,
                "spillload fault: the keeper can't be started: %s; without it nothing is done\n",
                strerror(-error));
    return error;
}

int keeper_end(struct keeper *keeper)
{
    int status = 0;

    if (keeper->pipe >= 0)
        close(keeper->pipe);
    if (keeper->pidfd >= 0)
        close(keeper->pidfd);
    keeper->pipe = keeper->pidfd = -1;
    if (keeper->pid <= 0)
        return 1;
    while (waitpid(keeper->pid, &status, 0) < 0) {
        if (errno != EINTR)
            return 1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
