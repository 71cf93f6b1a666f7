/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups through their file systems. */
#include "loadgen/faults/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_US       10000
#define MOST_PERIOD_US  1000000
#define LEAST_QUOTA_US  1000 /* the kernel takes no less */
#define DISSOLVE_ROUNDS 200
#define DISSOLVE_GAP_NS 5000000L

/* Whether a comma- or space-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *p = list; (p = strstr(p, word)) != NULL; p += length) {
        bool begins = p == list || p[-1] == ',' || p[-1] == ' ';

        if (begins && strchr(", \n", p[length]))
            return true;
    }
    return false;
}

static int path_join(char out[PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(out, PATH_MAX, "%s/%s", folder, name);

    return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int write_file(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];

    if (path_join(path, folder, name) != 0)
        return -ENAMETOOLONG;
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    ssize_t written = write(fd, text, strlen(text));
    int error = written < 0 ? -errno : 0;

    close(fd);
    return error;
}

static int read_file(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];

    if (path_join(path, folder, name) != 0)
        return -ENAMETOOLONG;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    ssize_t length = read(fd, out, size - 1);
    int error = length < 0 ? -errno : 0;

    close(fd);
    out[length > 0 ? length : 0] = '\0';
    return error;
}

/* ---------------------------------------------------------------- where it can be made */

struct mount {
    char root[PATH_MAX];
    char point[PATH_MAX];
};

/* The mount of a version's hierarchy that has the cpu controller (of version 2: any). */
static bool find_mount(int version, struct mount *out)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[2 * PATH_MAX + 512];
    bool found = false;

    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        char *tail = strstr(line, " - ");
        char type[32];
        char options[512];

        if (!tail || sscanf(tail, " - %31s %*s %511s", type, options) != 2)
            continue;
        if (sscanf(line, "%*s %*s %*s %4095s %4095s", out->root, out->point) != 2)
            continue;
        found = version == 2 ? strcmp(type, "cgroup2") == 0
                             : strcmp(type, "cgroup") == 0 && has_word(options, "cpu");
    }
    fclose(file);
    return found;
}

/* The process's path in the hierarchy, as /proc/PID/cgroup has it. */
static bool find_path(pid_t pid, int version, char out[PATH_MAX])
{
    char path[40];
    char line[PATH_MAX + 256];
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        char *controllers = strchr(line, ':');
        char *where = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!where)
            continue;
        *where++ = '\0';
        where[strcspn(where, "\n")] = '\0';
        found = version == 2 ? strncmp(line, "0:", 2) == 0 && controllers[1] == '\0'
                             : has_word(controllers + 1, "cpu");
        if (found)
            snprintf(out, PATH_MAX, "%s", where);
    }
    fclose(file);
    return found;
}

static int find_origin(pid_t pid, int version, struct mount *mount, char out[PATH_MAX])
{
    char path[PATH_MAX];
    const char *below = path;
    size_t root;

    if (!find_mount(version, mount) || !find_path(pid, version, path))
        return -ENOTSUP;
    /* Where only a part of the hierarchy is mounted, paths are still told from its top. */
    root = strlen(mount->root);
    if (root > 1 && strncmp(path, mount->root, root) == 0)
        below = path + root;
    while (*below == '/')
        below++;
    if (*below == '\0')
        snprintf(out, PATH_MAX, "%s", mount->point);
    else if (path_join(out, mount->point, below) != 0)
        return -ENAMETOOLONG;
    return access(out, F_OK) == 0 ? 0 : -ENOTSUP;
}

static int name_it(struct cgroup *cgroup, const char *parent, pid_t pid)
{
    char name[64];

    snprintf(name, sizeof(name), "spillload-%d-%d", getpid(), pid);
    return path_join(cgroup->folder, parent, name);
}

static int plan_v2(pid_t pid, struct cgroup *out)
{
    struct mount mount;
    char parent[PATH_MAX];
    char controllers[1024];
    int error = find_origin(pid, 2, &mount, out->origin);

    if (error)
        return error;
    snprintf(parent, sizeof(parent), "%s", out->origin);
    if (strcmp(parent, mount.point) != 0)
        *strrchr(parent, '/') = '\0';
    if (read_file(parent, "cgroup.subtree_control", controllers, sizeof(controllers)) != 0 ||
        !has_word(controllers, "cpu"))
        return -ENOTSUP;
    out->version = 2;
    return name_it(out, parent, pid);
}

static int plan_v1(pid_t pid, struct cgroup *out)
{
    struct mount mount;
    int error = find_origin(pid, 1, &mount, out->origin);

    if (error)
        return error;
    out->version = 1;
    return name_it(out, out->origin, pid);
}

int cgroup_plan(pid_t pid, struct cgroup *out)
{
    int error = plan_v2(pid, out);

    return error ? plan_v1(pid, out) : 0;
}

int cgroup_same_origin(const struct cgroup *cgroup, pid_t pid)
{
    struct mount mount;
    char origin[PATH_MAX];

    return find_origin(pid, cgroup->version, &mount, origin) == 0 &&
           (strcmp(origin, cgroup->origin) == 0 || strcmp(origin, cgroup->folder) == 0);
}

/* ---------------------------------------------------------------- its life */

int cgroup_make(const struct cgroup *cgroup)
{
    if (mkdir(cgroup->folder, 0755) != 0)
        return -errno;
    int error = cgroup_limit(cgroup, 0);

    if (error)
        rmdir(cgroup->folder);
    return error;
}

int cgroup_limit(const struct cgroup *cgroup, double quota)
{
    char text[64];
    long period_us = PERIOD_US;
    long quota_us = -1;

    if (quota > 0) {
        while (period_us < MOST_PERIOD_US && quota * (double)period_us < LEAST_QUOTA_US)
            period_us *= 10;
        quota_us = (long)(quota * (double)period_us + 0.5);
        if (quota_us < LEAST_QUOTA_US)
            quota_us = LEAST_QUOTA_US;
    }
    if (cgroup->version == 2) {
        if (quota_us < 0)
            snprintf(text, sizeof(text), "max %ld", period_us);
        else
            snprintf(text, sizeof(text), "%ld %ld", quota_us, period_us);
        return write_file(cgroup->folder, "cpu.max", text);
    }
    snprintf(text, sizeof(text), "%ld", period_us);
    int error = write_file(cgroup->folder, "cpu.cfs_period_us", text);

    if (error)
        return error;
    snprintf(text, sizeof(text), "%ld", quota_us);
    return write_file(cgroup->folder, "cpu.cfs_quota_us", text);
}

static int move_to(const char *folder, pid_t pid)
{
    char text[32];

    snprintf(text, sizeof(text), "%d", pid);
    return write_file(folder, "cgroup.procs", text);
}

int cgroup_move(const struct cgroup *cgroup, pid_t pid)
{
    return move_to(cgroup->folder, pid);
}

uint64_t cgroup_throttled(const struct cgroup *cgroup)
{
    char text[1024];
    const char *found;

    if (read_file(cgroup->folder, "cpu.stat", text, sizeof(text)) != 0)
        return 0;
    found = strstr(text, "nr_throttled ");
    return found ? strtoull(found + strlen("nr_throttled "), NULL, 10) : 0;
}

/* Moves what is in the group now. What ended meanwhile needs no move. */
static int move_back(const char *folder, const char *origin)
{
    char path[PATH_MAX];
    int pid;
    int worst = 0;

    if (path_join(path, folder, "cgroup.procs") != 0)
        return -ENAMETOOLONG;
    FILE *file = fopen(path, "re");

    if (!file)
        return -errno;
    while (fscanf(file, "%d", &pid) == 1) {
        int error = move_to(origin, pid);

        if (error && error != -ESRCH)
            worst = error;
    }
    fclose(file);
    return worst;
}

int cgroup_dissolve(const char *folder, const char *origin)
{
    int moved = 0;

    /* Processes may fork, and ending ones linger, while they are moved. */
    for (int round = 0; round < DISSOLVE_ROUNDS; round++) {
        struct timespec gap = {.tv_nsec = DISSOLVE_GAP_NS};

        if (access(folder, F_OK) != 0)
            return errno == ENOENT ? 0 : -errno;
        moved = move_back(folder, origin);
        if (rmdir(folder) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            return -errno;
        nanosleep(&gap, NULL);
    }
    return moved ? moved : -EBUSY;
}
