/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories and files of a set, many at once. A unit:
 *
 *   parent's handle (walk) -> MKDIR -----------------> next unit     a directory that is there:
 * LOOKUP
 *                          -> CREATE -> WRITE ... ---> next unit
 *                          -> LOOKUP ----------------> next unit     when nothing is to be made
 */
#include "loadgen/client/nfs/nfs_setup_private.h"

#include <errno.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"

static void begin(struct nfs_setup_unit *unit);
static void fill(struct nfs_setup *setup);

static bool is_file(const struct nfs_setup_unit *unit)
{
    return unit->key >= unit->setup->set.directories;
}

static void finished(struct nfs_setup_unit *unit)
{
    unit->busy = false;
    unit->setup->finished++;
    unit->setup->moved = true;
    fill(unit->setup);
}

static void failed(struct nfs_setup_unit *unit, const char *what, int error, uint32_t status)
{
    char path[FILESET_PATH_BYTES];
    char problem[NFS_CALL_PROBLEM_BYTES];
    const struct fileset *set = &unit->setup->set;

    if (nfs_setup_may_mend(error)) {
        if (error == -ESTALE)
            nfs_tree_forget(&unit->setup->tree, unit->key);
        unit->again = true;
        nfs_setup_again_later(unit->setup);
        return;
    }
    if (is_file(unit))
        fileset_file_path(set, unit->key - set->directories, path);
    else
        fileset_directory_path(set, unit->key, path);
    nfs_setup_fail(unit->setup, "%s of %s/%s: %s%s", what, set->spec.root, path,
                   nfs_call_problem(status, problem),
                   error == -ENOENT && !unit->setup->make
                       ? ": the set is damaged; remove its marker " FILESET_MARKER_NAME
                         " to have it made anew"
                       : "");
}

/* ---------------------------------------------------------------- one unit */

static void issue(struct nfs_setup_unit *unit, enum nfs_call_kind kind)
{
    unit->call.kind = kind;
    unit->setup->caller->issue(unit->setup->caller, &unit->call);
}

static void write_next(struct nfs_setup_unit *unit)
{
    struct nfs_setup *setup = unit->setup;
    uint64_t file = unit->key - setup->set.directories;
    uint64_t left = fileset_size_bytes(&setup->set, file) - unit->offset;

    if (left == 0) {
        finished(unit);
        return;
    }
    if (!unit->buffer)
        unit->buffer = memory_zeroed(1, setup->write_most);
    unit->call.offset = unit->offset;
    unit->call.bytes = left < setup->write_most ? (uint32_t)left : setup->write_most;
    unit->call.payload = unit->buffer;
    fileset_content(&setup->set, file, 0, unit->offset, unit->buffer, unit->call.bytes);
    issue(unit, NFS_CALL_WRITE);
}

/* Its handle has come. */
static void found(struct nfs_setup_unit *unit)
{
    struct nfs_call *call = &unit->call;

    nfs_tree_put(&unit->setup->tree, unit->key, nfs_handle_slice(&call->found));
    if (!unit->setup->make || !is_file(unit)) {
        finished(unit);
        return;
    }
    call->handle = call->found;
    unit->offset = 0;
    write_next(unit);
}

static void called(struct nfs_call *call)
{
    struct nfs_setup_unit *unit = (void *)((char *)call - offsetof(struct nfs_setup_unit, call));
    static const char *const names[] = {
        [NFS_CALL_LOOKUP] = "LOOKUP",
        [NFS_CALL_MKDIR] = "MKDIR",
        [NFS_CALL_CREATE] = "CREATE",
        [NFS_CALL_WRITE] = "WRITE",
    };

    if (unit->setup->state == NFS_SETUP_FAILED)
        return;
    if (call->error && !(call->kind == NFS_CALL_MKDIR && call->error == -EEXIST)) {
        failed(unit, names[call->kind], call->error, call->status);
    } else if (call->kind == NFS_CALL_WRITE) {
        if (call->count == 0) {
            failed(unit, "WRITE", -EREMOTEIO, call->status);
            return;
        }
        unit->offset += call->count < call->bytes ? call->count : call->bytes;
        unit->setup->moved = true;
        write_next(unit);
    } else if (call->error == -EEXIST || call->found.length == 0) {
        issue(unit, NFS_CALL_LOOKUP);
    } else {
        found(unit);
    }
}

static void walked(struct nfs_walk *walk, int error)
{
    struct nfs_setup_unit *unit = (void *)((char *)walk - offsetof(struct nfs_setup_unit, walk));

    if (unit->setup->state == NFS_SETUP_FAILED)
        return;
    if (error)
        failed(unit, "LOOKUP of the way", error, walk->call.status);
    else
        begin(unit);
}

static void begin(struct nfs_setup_unit *unit)
{
    struct nfs_setup *setup = unit->setup;
    uint64_t parent = nfs_tree_parent(&setup->tree, unit->key);
    struct rpc_slice handle;

    unit->again = false;
    if (!nfs_tree_get(&setup->tree, parent, &handle)) {
        nfs_tree_walk(&setup->tree, setup->caller, parent, &unit->walk, walked);
        return;
    }
    nfs_handle_keep(&unit->call.handle, handle);
    nfs_tree_name(&setup->tree, unit->key, unit->call.name);
    if (!setup->make)
        issue(unit, NFS_CALL_LOOKUP);
    else
        issue(unit, is_file(unit) ? NFS_CALL_CREATE : NFS_CALL_MKDIR);
}

/* ---------------------------------------------------------------- all of them */

static bool skipped(const struct nfs_setup *setup, uint64_t key)
{
    struct rpc_slice handle;

    return !setup->make && nfs_tree_get(&setup->tree, key, &handle);
}

/* Gives keys to units that have none, and tells when all are done. */
static void fill(struct nfs_setup *setup)
{
    bool busy = false;

    for (uint32_t i = 0; i < NFS_SETUP_CALLS; i++) {
        struct nfs_setup_unit *unit = &setup->units[i];

        while (!unit->busy && setup->next_key < setup->end_key) {
            unit->key = setup->next_key++;
            if (skipped(setup, unit->key)) {
                setup->finished++;
                continue;
            }
            unit->busy = true;
            begin(unit);
        }
        busy |= unit->busy;
    }
    if (!busy)
        nfs_setup_range_over(setup);
}

void nfs_setup_run_units(struct nfs_setup *setup, uint64_t first, uint64_t end, bool make)
{
    setup->first_key = setup->next_key = first;
    setup->end_key = end;
    setup->finished = 0;
    setup->make = make;
    fill(setup);
}

void nfs_setup_units_again(struct nfs_setup *setup)
{
    for (uint32_t i = 0; i < NFS_SETUP_CALLS; i++) {
        if (setup->units[i].again)
            begin(&setup->units[i]);
    }
}

void nfs_setup_units_init(struct nfs_setup *setup)
{
    setup->write_most = NFS_SETUP_WRITE_BYTES;
    setup->units = memory_zeroed(NFS_SETUP_CALLS, sizeof(*setup->units));
    for (uint32_t i = 0; i < NFS_SETUP_CALLS; i++) {
        setup->units[i].setup = setup;
        setup->units[i].call.done = called;
    }
}

void nfs_setup_units_fini(struct nfs_setup *setup)
{
    for (uint32_t i = 0; i < NFS_SETUP_CALLS; i++)
        free(setup->units[i].buffer);
    free(setup->units);
}
