/* SPDX-License-Identifier: Apache-2.0 */
/* The process and its host: see process.h. */
#include "proxy/core/process.h"

#include "proxy/control/log.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char pid_path[PATH_MAX];

void process_raise_open_files(uint64_t wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    rlim_t target = wanted != 0 ? (rlim_t)wanted : limit.rlim_max;
    /* Root may also raise the hard limit. */
    struct rlimit raised = {.rlim_cur = target,
                            .rlim_max = target > limit.rlim_max ? target : limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return;
    raised = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
    log_warning("open-files: %llu descriptors were asked for, %llu are allowed (raise the hard "
                "limit of the process)",
                (unsigned long long)target, (unsigned long long)limit.rlim_max);
}

unsigned process_session_limit(unsigned workers)
{
    struct rlimit limit;
    rlim_t other = 16 + (rlim_t)workers * 4; /* logs, control plane, event queues, listeners */

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT_MAX;
    rlim_t sessions = limit.rlim_cur > other + 2 ? (limit.rlim_cur - other) / 2 : 1;
    return sessions < UINT_MAX ? (unsigned)sessions : UINT_MAX;
}

static int check_old_pid_file(const char *path)
{
    struct stat status;
    int pid = 0;

    /* Opening a FIFO would wait for its other end, with every signal blocked. */
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        log_error("pid-file %s: is not a regular file", path);
        return -EINVAL;
    }
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &pid) != 1)
        pid = 0;
    fclose(file);
    if (pid > 0 && pid != getpid() && (kill(pid, 0) == 0 || errno == EPERM)) {
        log_error("pid-file %s: process %d is alive; is another Spillway running? (remove the file "
                  "if it is not one)",
                  path, pid);
        return -EEXIST;
    }
    return 0;
}

int process_write_pid_file(const char *path)
{
    if (path == NULL)
        return 0;
    int error = check_old_pid_file(path);
    if (error < 0)
        return error;
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        error = -errno;
        log_error("pid-file %s: %s", path, strerror(errno));
        return error;
    }
    bool written = fprintf(file, "%d\n", (int)getpid()) > 0;
    if (fclose(file) != 0 || !written) {
        error = -errno;
        log_error("pid-file %s: can't be written: %s", path, strerror(errno));
        unlink(path);
        return error < 0 ? error : -EIO;
    }
    snprintf(pid_path, sizeof(pid_path), "%s", path);
    return 0;
}

void process_remove_pid_file(void)
{
    if (pid_path[0] == '\0')
        return;
    /* Without the right to remove it (the user was changed), emptying it says as much. */
    if (unlink(pid_path) < 0 && truncate(pid_path, 0) < 0)
        log_info("pid-file %s stays behind: %s", pid_path, strerror(errno));
}

int process_drop_privileges(const struct config *config)
{
    if (!config->has_user && !config->has_group)
        return 0;
    gid_t gid = config->has_group || config->has_user ? config->gid : getgid();
    bool is_root = geteuid() == 0;
    if (is_root && config->has_user && initgroups(config->user, gid) < 0)
        goto fail;
    if (getegid() != gid && setgid(gid) < 0)
        goto fail;
    if (config->has_user && geteuid() != config->uid && setuid(config->uid) < 0)
        goto fail;
    return 0;
fail:;
    int error = -errno;
    log_error("can't become user %s, group %s: %s",
              config->user != NULL ? config->user : "(unchanged)",
              config->group != NULL ? config->group : "(the user's)", strerror(errno));
    return error;
}
