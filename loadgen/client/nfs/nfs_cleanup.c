/* SPDX-License-Identifier: Apache-2.0 */
/* Removing what is left at the end. */
#include "loadgen/client/nfs/nfs_cleanup.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"

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

/* ---------------------------------------------------------------- after the run */

static void cleaned(struct nfs_cleanup *cleanup)
{
    struct nfs_leftovers *left =
        (void *)((char *)cleanup - offsetof(struct nfs_leftovers, cleanup));

    left->over = true;
    loop_stop(&left->loop);
}

static void limit_reached(struct loop_timer *timer)
{
    struct nfs_leftovers *left = (void *)((char *)timer - offsetof(struct nfs_leftovers, limit));

    loop_stop(&left->loop);
}

struct nfs_leftovers *nfs_leftovers_create(struct nfs_names *names, struct nfs_tree *tree,
                                           struct nfs_caller *caller)
{
    struct nfs_leftovers *left = memory_zeroed(1, sizeof(*left));

    if (loop_init(&left->loop) != 0) {
        free(left);
        return NULL;
    }
    left->limit.fire = limit_reached;
    left->cleanup.names = names;
    left->cleanup.tree = tree;
    left->cleanup.caller = caller;
    left->cleanup.done = cleaned;
    return left;
}

void nfs_leftovers_ready(struct loop *loop, const struct nfs_handle *directory)
{
    struct nfs_leftovers *left = (void *)((char *)loop - offsetof(struct nfs_leftovers, loop));

    if (left->began)
        return;
    left->began = true;
    left->cleanup.directory = *directory;
    nfs_cleanup_begin(&left->cleanup);
}

void nfs_leftovers_run(struct nfs_leftovers *left)
{
    loop_timer_set(&left->loop, &left->limit, loop_clock_ns() + NFS_LEFTOVERS_LIMIT_NS);
    (void)loop_run(&left->loop);
}

void nfs_leftovers_destroy(struct nfs_leftovers *left, const char *flow_name,
                           const struct nfs_names *names)
{
    if (!left || !left->over || left->cleanup.failed)
        fprintf(stderr,
                "spillload: flow %s: files that it made could not all be removed; their names "
                "begin with %s\n",
                flow_name, names->prefix);
    if (left)
        loop_fini(&left->loop);
    free(left);
}
