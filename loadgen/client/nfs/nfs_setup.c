/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting a file set ready. ROOT, MARKER and MARK are single calls one after the other;
 * DIRECTORIES, FILES and HANDLES run over a range of the tree's keys with many units at once
 * (nfs_setup_units.c), directories one level after the other, since a level's parents must be
 * there.
 */
#include "loadgen/client/nfs/nfs_setup_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"

#define AGAIN_NS 100000000ULL
#define WAIT_NS  5000000ULL

static void run(struct nfs_setup *setup);

void nfs_setup_fail(struct nfs_setup *setup, const char *format, ...)
{
    va_list arguments;

    if (setup->state == NFS_SETUP_FAILED)
        return;
    setup->state = NFS_SETUP_FAILED;
    fprintf(stderr, "spillload: flow %s: ", setup->flow->spec.name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    loop_stop(setup->flow->loop);
}

bool nfs_setup_may_mend(int error)
{
    return error == -ECONNRESET || error == -EAGAIN || error == -ESTALE;
}

/* ---------------------------------------------------------------- single calls */

static void issue(struct nfs_setup *setup, enum nfs_call_kind kind, const struct nfs_handle *handle,
                  const char *name, size_t name_bytes)
{
    setup->call.kind = kind;
    setup->call.handle = *handle;
    snprintf(setup->call.name, sizeof(setup->call.name), "%.*s", (int)name_bytes, name);
    setup->caller->issue(setup->caller, &setup->call);
}

static void again_later(struct nfs_setup *setup)
{
    loop_timer_set(setup->flow->loop, &setup->timer, loop_clock_ns() + AGAIN_NS);
}

static void go(struct nfs_setup *setup, enum nfs_setup_state state)
{
    setup->state = state;
    setup->moved = true;
    run(setup);
}

static void no_set(struct nfs_setup *setup)
{
    nfs_setup_fail(
        setup,
        "%s:%s has no whole file set at %s: let the flow make it (populate=yes), or name "
        "the right root (set=)",
        setup->flow->spec.authority, setup->flow->spec.nfs.export_path, setup->set.spec.root);
}

/* ROOT: one component after the other, made where it is missing. */
static void root_called(struct nfs_setup *setup)
{
    struct nfs_call *call = &setup->call;
    char problem[NFS_CALL_PROBLEM_BYTES];
    const char *root = setup->set.spec.root + setup->root_offset;
    size_t name = strcspn(root, "/");
    struct nfs_handle directory = call->handle;

    if (call->error == -ENOENT && call->kind == NFS_CALL_LOOKUP) {
        if (setup->flow->spec.nfs.populate)
            issue(setup, NFS_CALL_MKDIR, &directory, root, name);
        else
            no_set(setup);
    } else if (call->error && call->error != -EEXIST) {
        nfs_setup_fail(setup, "%s of %s: %s", call->kind == NFS_CALL_MKDIR ? "MKDIR" : "LOOKUP",
                       setup->set.spec.root, nfs_call_problem(call->status, problem));
    } else if (call->error == -EEXIST || call->found.length == 0) {
        issue(setup, NFS_CALL_LOOKUP, &directory, root, name);
    } else if (root[name]) {
        struct nfs_handle found = call->found;

        setup->root_offset += name + 1;
        root += name + 1;
        issue(setup, NFS_CALL_LOOKUP, &found, root, strcspn(root, "/"));
    } else {
        setup->tree.root = call->found;
        go(setup, NFS_SETUP_MARKER);
    }
}

/* MARKER: LOOKUP, then READ. */
static void marker_called(struct nfs_setup *setup)
{
    struct nfs_call *call = &setup->call;
    char problem[NFS_CALL_PROBLEM_BYTES];
    char differs[FILESET_PROBLEM_BYTES];

    if (call->error == -ENOENT) {
        if (setup->flow->spec.nfs.populate)
            go(setup, NFS_SETUP_DIRECTORIES);
        else
            no_set(setup);
    } else if (call->error) {
        nfs_setup_fail(setup, "%s of %s/%s: %s", call->kind == NFS_CALL_READ ? "READ" : "LOOKUP",
                       setup->set.spec.root, FILESET_MARKER_NAME,
                       nfs_call_problem(call->status, problem));
    } else if (call->kind == NFS_CALL_LOOKUP) {
        struct nfs_handle found = call->found;

        call->offset = 0;
        call->bytes = FILESET_MARKER_BYTES;
        issue(setup, NFS_CALL_READ, &found, "", 0);
    } else if (fileset_marker_matches(&setup->set, (const char *)call->data, call->count,
                                      differs)) {
        setup->share->state = NFS_SHARE_THERE;
        go(setup, NFS_SETUP_HANDLES);
    } else if (call->count == 0 && setup->flow->spec.nfs.populate) {
        /* One who made it was stopped between the marker's CREATE and its WRITE. */
        go(setup, NFS_SETUP_DIRECTORIES);
    } else {
        nfs_setup_fail(setup,
                       "%s:%s holds another set at %s (%s): name another root (set=), or remove it",
                       setup->flow->spec.authority, setup->flow->spec.nfs.export_path,
                       setup->set.spec.root, differs);
    }
}

/* MARK: CREATE, then WRITE. */
static void mark_called(struct nfs_setup *setup)
{
    struct nfs_call *call = &setup->call;
    char problem[NFS_CALL_PROBLEM_BYTES];

    if (call->error || (call->kind == NFS_CALL_WRITE && call->count != call->bytes)) {
        nfs_setup_fail(setup, "%s of %s/%s: %s", call->kind == NFS_CALL_WRITE ? "WRITE" : "CREATE",
                       setup->set.spec.root, FILESET_MARKER_NAME,
                       nfs_call_problem(call->status, problem));
    } else if (call->kind == NFS_CALL_WRITE) {
        setup->share->state = NFS_SHARE_THERE;
        if (setup->share->versions)
            nfs_versions_fresh(setup->share->versions);
        go(setup, NFS_SETUP_HANDLES);
    } else if (call->found.length == 0) {
        struct nfs_handle root = setup->tree.root;

        issue(setup, NFS_CALL_LOOKUP, &root, FILESET_MARKER_NAME, strlen(FILESET_MARKER_NAME));
    } else {
        struct nfs_handle found = call->found;

        call->offset = 0;
        call->bytes = (uint32_t)fileset_marker(&setup->set, setup->marker);
        call->payload = (const uint8_t *)setup->marker;
        issue(setup, NFS_CALL_WRITE, &found, "", 0);
    }
}

static void called(struct nfs_call *call)
{
    struct nfs_setup *setup = (void *)((char *)call - offsetof(struct nfs_setup, call));

    setup->moved = true;
    if (nfs_setup_may_mend(call->error))
        again_later(setup);
    else if (setup->state == NFS_SETUP_ROOT)
        root_called(setup);
    else if (setup->state == NFS_SETUP_MARKER)
        marker_called(setup);
    else if (setup->state == NFS_SETUP_MARK)
        mark_called(setup);
}

/* ---------------------------------------------------------------- the course */

/* The keys of the directories of the level that begins at `first`; none when it is past the last.
 */
static void run_level(struct nfs_setup *setup, uint64_t first, uint64_t count)
{
    setup->level_count = count;
    nfs_setup_run_units(setup, first, first + count, setup->state == NFS_SETUP_DIRECTORIES);
}

void nfs_setup_range_over(struct nfs_setup *setup)
{
    uint64_t next = setup->end_key;
    bool making = setup->state != NFS_SETUP_HANDLES;

    if (next < setup->set.directories) {
        run_level(setup, next, setup->level_count * setup->set.spec.width);
        return;
    }
    if (next == setup->set.directories) {
        if (making)
            setup->state = NFS_SETUP_FILES;
        nfs_setup_run_units(setup, next, next + setup->set.spec.files, making);
        return;
    }
    go(setup, making ? NFS_SETUP_MARK : NFS_SETUP_DONE);
}

/* Begins the state, from its first call on. */
static void run(struct nfs_setup *setup)
{
    switch (setup->state) {
    case NFS_SETUP_WAITING:
        if (setup->share->state == NFS_SHARE_MAKING) {
            loop_timer_set(setup->flow->loop, &setup->timer, loop_clock_ns() + WAIT_NS);
            break;
        }
        setup->makes = setup->share->state == NFS_SHARE_UNSEEN;
        if (setup->makes)
            setup->share->state = NFS_SHARE_MAKING;
        setup->state = NFS_SETUP_ROOT;
        run(setup);
        break;
    case NFS_SETUP_ROOT:
        setup->root_offset = 0;
        issue(setup, NFS_CALL_LOOKUP, &setup->tree.export, setup->set.spec.root,
              strcspn(setup->set.spec.root, "/"));
        break;
    case NFS_SETUP_MARKER:
        issue(setup, NFS_CALL_LOOKUP, &setup->tree.root, FILESET_MARKER_NAME,
              strlen(FILESET_MARKER_NAME));
        break;
    case NFS_SETUP_MARK:
        issue(setup, NFS_CALL_CREATE, &setup->tree.root, FILESET_MARKER_NAME,
              strlen(FILESET_MARKER_NAME));
        break;
    case NFS_SETUP_HANDLES:
        if (!nfs_tree_holds_all(&setup->tree)) {
            go(setup, NFS_SETUP_DONE);
            break;
        }
        /* fall through */
    case NFS_SETUP_DIRECTORIES:
        if (setup->set.directories > 0) {
            run_level(setup, 0, setup->set.spec.width);
        } else {
            setup->end_key = 0;
            nfs_setup_range_over(setup);
        }
        break;
    default:
        break;
    }
}

static void timer_fired(struct loop_timer *timer)
{
    struct nfs_setup *setup = (void *)((char *)timer - offsetof(struct nfs_setup, timer));

    if (setup->state == NFS_SETUP_DIRECTORIES || setup->state == NFS_SETUP_FILES ||
        setup->state == NFS_SETUP_HANDLES)
        nfs_setup_units_again(setup);
    else
        run(setup);
}

void nfs_setup_again_later(struct nfs_setup *setup)
{
    if (!timer_entry_armed(&setup->timer.entry))
        again_later(setup);
}

/* ---------------------------------------------------------------- life */

struct nfs_setup *nfs_setup_create(struct flow *flow, struct nfs_caller *caller,
                                   uint32_t handle_bytes)
{
    char problem[FILESET_PROBLEM_BYTES];
    struct nfs_share *share = nfs_share_join(&flow->spec, problem);

    if (!share) {
        fprintf(stderr, "spillload: flow %s: %s\n", flow->spec.name, problem);
        return NULL;
    }
    struct nfs_setup *setup = memory_zeroed(1, sizeof(*setup));

    setup->flow = flow;
    setup->caller = caller;
    setup->share = share;
    setup->call.done = called;
    setup->timer.fire = timer_fired;
    (void)fileset_init(&setup->set, &flow->spec.set, problem);
    nfs_tree_init(&setup->tree, &setup->set, handle_bytes);
    nfs_setup_units_init(setup);
    return setup;
}

void nfs_setup_destroy(struct nfs_setup *setup)
{
    if (!setup)
        return;
    if (setup->makes && setup->share->state == NFS_SHARE_MAKING)
        setup->share->state = NFS_SHARE_UNSEEN;
    loop_timer_cancel(setup->flow->loop, &setup->timer);
    nfs_setup_units_fini(setup);
    nfs_tree_fini(&setup->tree);
    nfs_share_leave(setup->share);
    free(setup);
}

const struct fileset *nfs_setup_set(const struct nfs_setup *setup)
{
    return &setup->set;
}

struct nfs_tree *nfs_setup_tree(struct nfs_setup *setup)
{
    return &setup->tree;
}

struct nfs_versions *nfs_setup_versions(struct nfs_setup *setup)
{
    return setup->flow->spec.nfs.verify ? setup->share->versions : NULL;
}

void nfs_setup_begin(struct nfs_setup *setup, uint32_t write_most)
{
    if (setup->state != NFS_SETUP_MOUNTING)
        return;
    if (write_most && write_most < setup->write_most)
        setup->write_most = write_most;
    go(setup, NFS_SETUP_WAITING);
}

bool nfs_setup_done(const struct nfs_setup *setup)
{
    return setup->state == NFS_SETUP_DONE;
}

bool nfs_setup_failed(const struct nfs_setup *setup)
{
    return setup->state == NFS_SETUP_FAILED;
}

bool nfs_setup_progress(struct nfs_setup *setup, char *text, size_t size)
{
    static const char *const texts[] = {
        [NFS_SETUP_MOUNTING] = "mounting",
        [NFS_SETUP_WAITING] = "waiting for the flow that makes the set",
        [NFS_SETUP_ROOT] = "looking for the set",
        [NFS_SETUP_MARKER] = "looking for the set",
        [NFS_SETUP_DIRECTORIES] = "making directories",
        [NFS_SETUP_FILES] = "making files",
        [NFS_SETUP_MARK] = "making the marker",
        [NFS_SETUP_HANDLES] = "looking up",
        [NFS_SETUP_DONE] = "ready",
        [NFS_SETUP_FAILED] = "failed",
    };
    bool counts = setup->state == NFS_SETUP_DIRECTORIES || setup->state == NFS_SETUP_FILES ||
                  setup->state == NFS_SETUP_HANDLES;
    bool moved = setup->moved;

    setup->moved = false;
    if (counts)
        snprintf(text, size, "%s, %" PRIu64 " of %" PRIu64, texts[setup->state], setup->finished,
                 setup->end_key - setup->first_key);
    else
        snprintf(text, size, "%s", texts[setup->state]);
    return moved || (setup->state == NFS_SETUP_WAITING && setup->share->state == NFS_SHARE_MAKING);
}
