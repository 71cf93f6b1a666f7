/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing the files that a flow made and did not remove: after the run, over the same wire, many
 * at once. A file that is not there any more is as good as removed.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_CLEANUP_H
#define LOADGEN_CLIENT_NFS_NFS_CLEANUP_H

#include "loadgen/client/nfs/nfs_names.h"
#include "loadgen/client/nfs/nfs_tree.h"

#define NFS_CLEANUP_CALLS 32

struct nfs_cleanup;

struct nfs_cleanup_unit {
    struct nfs_call call;
    struct nfs_walk walk;
    struct nfs_cleanup *cleanup;
    struct nfs_name name;
};

struct nfs_cleanup {
    struct nfs_names *names;
    struct nfs_tree *tree; /* NULL: all names are in `directory` */
    struct nfs_handle directory;
    struct nfs_caller *caller;
    void (*done)(struct nfs_cleanup *cleanup);
    uint64_t failed; /* could not be removed */
    uint32_t busy;   /* units */
    struct nfs_cleanup_unit units[NFS_CLEANUP_CALLS];
};

/* The fields up to `done` are set, the rest is zero. done() comes once, maybe before this returns.
 */
void nfs_cleanup_begin(struct nfs_cleanup *cleanup);

#endif
