/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing the files that a flow made and did not remove: after the run, over the same wire, many
 * at once. A file that is not there any more is as good as removed.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_CLEANUP_H
#define LOADGEN_CLIENT_NFS_NFS_CLEANUP_H

#include "loadgen/client/nfs/nfs_names.h"
#include "loadgen/client/nfs/nfs_tree.h"
#include "loadgen/net/loop.h"

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

/*
 * The last part of a flow's life: a loop of its own, since the run's has stopped, in which a wire
 * connects once more and the cleaning runs, for NFS_LEFTOVERS_LIMIT_NS at most.
 *
 *     struct nfs_leftovers *left = nfs_leftovers_create(names, tree, caller);
 *     if (left) { connect on left->loop; nfs_leftovers_run(left); disconnect }
 *     nfs_leftovers_destroy(left, flow_name, names);
 *
 * When the connection is ready it calls nfs_leftovers_ready() with its loop.
 */
#define NFS_LEFTOVERS_LIMIT_NS 10000000000ULL

struct nfs_leftovers {
    struct loop loop;
    struct loop_timer limit;
    struct nfs_cleanup cleanup;
    bool began;
    bool over;
};

/* NULL when there can be no loop. */
struct nfs_leftovers *nfs_leftovers_create(struct nfs_names *names, struct nfs_tree *tree,
                                           struct nfs_caller *caller);

/* May come again, after a connection was lost: only the first time counts. */
void nfs_leftovers_ready(struct loop *loop, const struct nfs_handle *directory);

void nfs_leftovers_run(struct nfs_leftovers *left);

/* Says it on stderr when files remain. NULL is accepted. */
void nfs_leftovers_destroy(struct nfs_leftovers *left, const char *flow_name,
                           const struct nfs_names *names);

#endif
