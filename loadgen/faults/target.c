/* SPDX-License-Identifier: Apache-2.0 */
/* Processes beyond doubt: /proc/PID/stat and pidfds. */
#include "loadgen/faults/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_THREAD 0x00200000U /* PF_KTHREAD, among the flags of /proc/PID/stat */
#define MAX_DEPTH     256

struct stat_line {
    char state;
    pid_t parent;
    unsigned flags;
    uint64_t start_ticks;
};

static int read_stat(pid_t pid, struct stat_line *out)
{
    char path[32];
    char text[1024];

    *out = (struct stat_line){.state = '?'};
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    int error = errno;

    close(fd);
    if (length < 0)
        return -error;
    text[length] = '\0';
    /* The name, in brackets, may hold brackets and spaces itself: what follows the last counts. */
    const char *fields = strrchr(text, ')');
    unsigned long long start;

    if (!fields || sscanf(fields,
                          ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                          "%*d %llu",
                          &out->state, &out->parent, &out->flags, &start) != 4)
        return -EIO;
    out->start_ticks = start;
    return 0;
}

int target_open(pid_t pid, struct target *out)
{
    struct stat_line line;

    *out = (struct target){.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0U)};
    if (out->pidfd < 0)
        return errno == EINVAL ? -ESRCH : -errno;
    int error = read_stat(pid, &line);

    if (!error && (line.state == 'Z' || line.state == 'X' || target_gone(out)))
        error = -ESRCH;
    if (error) {
        target_close(out);
        return error;
    }
    out->start_ticks = line.start_ticks;
    return 0;
}

int target_reopen(pid_t pid, uint64_t start_ticks, struct target *out)
{
    int error = target_open(pid, out);

    if (error)
        return error;
    if (out->start_ticks != start_ticks) {
        target_close(out);
        return -ESRCH;
    }
    return 0;
}

void target_close(struct target *target)
{
    if (target->pidfd >= 0)
        close(target->pidfd);
    target->pidfd = -1;
}

bool target_gone(const struct target *target)
{
    struct pollfd poll_for = {.fd = target->pidfd, .events = POLLIN};

    return target->pidfd < 0 || (poll(&poll_for, 1, 0) == 1 && (poll_for.revents & POLLIN));
}

bool target_stopped(const struct target *target)
{
    struct stat_line line;

    return read_stat(target->pid, &line) == 0 && line.start_ticks == target->start_ticks &&
           line.state == 'T';
}

int target_signal(const struct target *target, int signal)
{
    if (syscall(SYS_pidfd_send_signal, target->pidfd, signal, NULL, 0U) != 0)
        return -errno;
    return 0;
}

/* ---------------------------------------------------------------- may we */

static bool descend_from(pid_t pid)
{
    pid_t one = getpid();

    for (int depth = 0; depth < MAX_DEPTH && one > 0; depth++) {
        struct stat_line line;

        if (one == pid)
            return true;
        if (read_stat(one, &line) != 0)
            return false;
        one = line.parent;
    }
    return false;
}

/* Real, effective and saved user of a process all ours? False when that can't be read. */
static bool ours(pid_t pid, unsigned *owner)
{
    char path[32];
    char line[256];
    unsigned ids[3] = {0, 0, 0};
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file))
        found = sscanf(line, "Uid: %u %u %u", &ids[0], &ids[1], &ids[2]) == 3;
    fclose(file);
    *owner = ids[0];
    return found && ids[0] == getuid() && ids[1] == getuid() && ids[2] == getuid();
}

bool target_allowed(const struct target *target, bool force, char why[TARGET_WHY_BYTES])
{
    struct stat_line line;
    unsigned owner = 0;

    if (target->pid == 1)
        snprintf(why, TARGET_WHY_BYTES, "process 1 is what everything depends on; name a server");
    else if (target->pid == getpid() || descend_from(target->pid))
        snprintf(why, TARGET_WHY_BYTES, "spillload itself was started by process %d; name a server",
                 target->pid);
    else if (read_stat(target->pid, &line) != 0)
        snprintf(why, TARGET_WHY_BYTES, "process %d has ended", target->pid);
    else if (line.flags & KERNEL_THREAD)
        snprintf(why, TARGET_WHY_BYTES, "process %d is a thread of the kernel; name a server",
                 target->pid);
    else if (!ours(target->pid, &owner) && !(force && geteuid() == 0))
        snprintf(why, TARGET_WHY_BYTES,
                 "process %d belongs to user %u, not to us; as root, --force allows it",
                 target->pid, owner);
    else
        return true;
    return false;
}

/* ---------------------------------------------------------------- descendants */

static bool among(pid_t parent, pid_t pid, const struct target *found, size_t count)
{
    if (parent == pid)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (found[i].pid == parent)
            return true;
    }
    return false;
}

/* One pass over /proc: adds the children of what is known; returns the new count. */
static size_t add_children(pid_t pid, struct target *out, size_t count, size_t most)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;

    if (!folder)
        return count;
    while (count < most && (entry = readdir(folder)) != NULL) {
        struct stat_line line;
        pid_t one = (pid_t)strtol(entry->d_name, NULL, 10);

        if (one <= 0 || read_stat(one, &line) != 0 || !among(line.parent, pid, out, count) ||
            among(one, pid, out, count))
            continue;
        if (target_open(one, &out[count]) == 0)
            count++;
    }
    closedir(folder);
    return count;
}

size_t target_descendants(pid_t pid, struct target *out, size_t most)
{
    size_t count = 0;
    size_t before;

    do {
        before = count;
        count = add_children(pid, out, count, most);
    } while (count > before && count < most);
    return count;
}
