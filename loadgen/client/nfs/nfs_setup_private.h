/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the set-up tell each other; for no one else. */
#ifndef LOADGEN_CLIENT_NFS_NFS_SETUP_PRIVATE_H
#define LOADGEN_CLIENT_NFS_NFS_SETUP_PRIVATE_H

#include "loadgen/client/nfs/nfs_setup.h"
#include "loadgen/client/nfs/nfs_share.h"

/* Longest WRITE of populating. */
#define NFS_SETUP_WRITE_BYTES (256U << 10)

enum nfs_setup_state {
    NFS_SETUP_MOUNTING,
    NFS_SETUP_WAITING,
    NFS_SETUP_ROOT,
    NFS_SETUP_MARKER,
    NFS_SETUP_DIRECTORIES,
    NFS_SETUP_FILES,
    NFS_SETUP_MARK,
    NFS_SETUP_HANDLES,
    NFS_SETUP_DONE,
    NFS_SETUP_FAILED,
};

/* One directory or file that is being made or looked up. */
struct nfs_setup_unit {
    struct nfs_call call;
    struct nfs_walk walk;
    struct nfs_setup *setup;
    uint64_t key;
    uint64_t offset; /* of a file: written so far */
    bool busy;
    bool again; /* waits for the timer, to begin anew */
    uint8_t *buffer;
};

struct nfs_setup {
    struct flow *flow;
    struct nfs_caller *caller;
    struct nfs_share *share;
    struct fileset set;
    struct nfs_tree tree;
    enum nfs_setup_state state;
    bool makes; /* this flow is the share's maker */
    bool moved; /* since it was last asked */
    uint32_t write_most;
    struct nfs_call call;
    size_t root_offset;
    char marker[FILESET_MARKER_BYTES];
    struct loop_timer timer;

    uint64_t level_count; /* directories of the level at work */
    uint64_t first_key;
    uint64_t next_key;
    uint64_t end_key;
    uint64_t finished;
    bool make;
    struct nfs_setup_unit *units;
};

void nfs_setup_units_init(struct nfs_setup *setup);
void nfs_setup_units_fini(struct nfs_setup *setup);
/* Makes or looks up the keys of [first, end); then comes nfs_setup_range_over(). */
void nfs_setup_run_units(struct nfs_setup *setup, uint64_t first, uint64_t end, bool make);
/* The timer came: what could be mended begins anew. */
void nfs_setup_units_again(struct nfs_setup *setup);

void nfs_setup_range_over(struct nfs_setup *setup);
void nfs_setup_again_later(struct nfs_setup *setup);
/* Whether trying again may help. */
bool nfs_setup_may_mend(int error);
/* Says so, and that the run can't begin. */
void nfs_setup_fail(struct nfs_setup *setup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
