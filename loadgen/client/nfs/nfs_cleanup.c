/* SPDX-License-Identifier: Apache-2.0 */
/* Removing what is left at the end. */
#include "loadgen/client/nfs/nfs_cleanup.h"

#include <errno.h>

static void next(struct nfs_cleanup_unit *unit);

static void ended(struct nfs_cleanup_unit *unit, int error)
{
    unit->cleanup->failed += error && error != -ENOENT;
    next(unit);
}

static void called(struct nfs_call *call)
{
    ended((void *)((char *)call - offsetof(struct nfs_cleanup_unit, call)), call->error);
}

static void issue(struct nfs_cleanup_unit *unit, struct rpc_slice directory)
{
    struct nfs_cleanup *cleanup = unit->cleanup;

    nfs_handle_keep(&unit->call.handle, directory);
    nfs_names_text(cleanup->names, unit->name.number, unit->call.name);
    unit->call.kind = NFS_CALL_REMOVE;
    unit->call.done = called;
    cleanup->caller->issue(cleanup->caller, &unit->call);
}

static void walked(struct nfs_walk *walk, int error)
{
    struct nfs_cleanup_unit *unit =
        (void *)((char *)walk - offsetof(struct nfs_cleanup_unit, walk));
    struct rpc_slice directory;

    if (error || !nfs_tree_get(unit->cleanup->tree, unit->name.directory, &directory))
        ended(unit, error ? error : -ESTALE);
    else
        issue(unit, directory);
}

static void next(struct nfs_cleanup_unit *unit)
{
    struct nfs_cleanup *cleanup = unit->cleanup;
    struct rpc_slice directory = nfs_handle_slice(&cleanup->directory);

    if (!nfs_names_next_leftover(cleanup->names, &unit->name)) {
        if (--cleanup->busy == 0)
            cleanup->done(cleanup);
        return;
    }
    if (cleanup->tree && !nfs_tree_get(cleanup->tree, unit->name.directory, &directory))
        nfs_tree_walk(cleanup->tree, cleanup->caller, unit->name.directory, &unit->walk, walked);
    else
        issue(unit, directory);
}

void nfs_cleanup_begin(struct nfs_cleanup *cleanup)
{
    cleanup->busy = NFS_CLEANUP_CALLS;
    for (uint32_t i = 0; i < NFS_CLEANUP_CALLS; i++) {
        cleanup->units[i].cleanup = cleanup;
        next(&cleanup->units[i]);
    }
}
