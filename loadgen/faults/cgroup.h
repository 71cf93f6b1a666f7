/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control group of our own that limits the processor time of processes: version 2 (cpu.max)
 * where the cpu controller is there, version 1 (cpu.cfs_quota_us) where that is mounted.
 *
 *   version 1   made within the process's own group: what that one limits stays limited
 *   version 2   made beside the process's own group, for a group with processes can't have groups
 *               with controllers within
 *
 * Made with no limit; a burst sets the limit and takes it away again. cgroup_dissolve() moves every
 * process in it back to where the first one came from, and removes it.
 */
#ifndef LOADGEN_FAULTS_CGROUP_H
#define LOADGEN_FAULTS_CGROUP_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup {
    int version;
    char origin[PATH_MAX]; /* the folder of the group that the process is in */
    char folder[PATH_MAX]; /* of our group */
};

/*
 * Finds out where a group for the process can be made, and what it is to be called: nothing is
 * made. 0; -ENOTSUP when no cpu controller is within reach; negative errno.
 */
int cgroup_plan(pid_t pid, struct cgroup *out);

/* Makes it, with no limit. 0 or negative errno (-EACCES, -EROFS: not ours to make). */
int cgroup_make(const struct cgroup *cgroup);

/* `quota` of one processor: 0.1 is 10 %; 0 is no limit. 0 or negative errno. */
int cgroup_limit(const struct cgroup *cgroup, double quota);

/* Moves a process, all its threads, into our group. 0 or negative errno. */
int cgroup_move(const struct cgroup *cgroup, pid_t pid);

/* Whether the process is in the same group as the first one was. */
int cgroup_same_origin(const struct cgroup *cgroup, pid_t pid);

/* How often the group was held back since it was made; 0 when that can't be read. */
uint64_t cgroup_throttled(const struct cgroup *cgroup);

/* Moves everything back and removes the group. 0, also when it is not there; negative errno. */
int cgroup_dissolve(const char *folder, const char *origin);

#endif
