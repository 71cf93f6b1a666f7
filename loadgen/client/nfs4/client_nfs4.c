/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NFSv4 transport of flows: a few connections (nfs4_connection.h), each a client of its own to
 * the server, and many calls in flight on each. What a request does is nfs_work's business, what it
 * looks like nfs4_operations'. A file whose handle is not known is looked up in the request's own
 * compound.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/pattern.h"
#include "loadgen/client/flow.h"
#include "loadgen/client/nfs/nfs_cleanup.h"
#include "loadgen/client/nfs/nfs_setup.h"
#include "loadgen/client/nfs/nfs_work.h"
#include "loadgen/client/nfs4/nfs4_calls.h"
#include "loadgen/client/nfs4/nfs4_connection.h"

#define PATH_BYTES (FILESET_ROOT_BYTES + FILESET_PATH_BYTES + 2)
/* Enough for every transfer that is asked for: the server's own limits come on top. */
#define LARGEST_DATA_BYTES (64U << 20)
#define LEAVE_NS           200000000ULL /* for the last words to all servers */

struct nfs4_wire {
    struct flow *flow;
    struct nfs_work work;
    struct nfs_setup *setup; /* NULL: one file */
    struct nfs4_calls calls;
    uint64_t verifier; /* of this run */
    bool complained;
    bool began;            /* to make the set */
    bool noted;            /* how many slots there are */
    bool ending;           /* no request is taken any more */
    char path[PATH_BYTES]; /* of the object that is looked up; for the call being written */
    char name[256];        /* likewise */
    uint32_t count;
    struct nfs4_connection *connections;
};

static struct nfs4_wire *wire_of(const struct nfs4_slot *slot)
{
    return slot->connection->flow->wire;
}

/* ---------------------------------------------------------------- what a request works on */

/* The key of the object in the tree of handles; NFS_TREE_ROOT for the set's root. */
static uint64_t key_of(const struct nfs_tree *tree, const struct nfs_task *work)
{
    switch (work->operation) {
    case FLOW_LOOKUP:
    case FLOW_READDIR:
    case FLOW_CREATE:
    case FLOW_REMOVE:
        return work->directory;
    case FLOW_FSSTAT:
        return NFS_TREE_ROOT;
    default:
        return nfs_tree_file_key(tree, work->data.file);
    }
}

static void path_of(const struct fileset *set, uint64_t key, char *out)
{
    size_t length = (size_t)snprintf(out, PATH_BYTES, "%s/", set->spec.root);

    if (key == NFS_TREE_ROOT)
        return;
    if (key < set->directories)
        fileset_directory_path(set, key, out + length);
    else
        fileset_file_path(set, key - set->directories, out + length);
}

static void object_of_set(struct nfs4_wire *wire, struct nfs4_slot *slot)
{
    struct nfs_tree *tree = nfs_setup_tree(wire->setup);
    uint64_t key = key_of(tree, &slot->work);

    if (nfs_tree_get(tree, key, &slot->task.object))
        return;
    slot->task.object = (struct rpc_slice){NULL, 0};
    slot->task.base = nfs_handle_slice(&slot->connection->root);
    path_of(nfs_setup_set(wire->setup), key, wire->path);
    slot->task.path = wire->path;
}

static void object_of_export(struct nfs4_slot *slot)
{
    const struct nfs4_connection *connection = slot->connection;

    switch (slot->work.operation) {
    case FLOW_LOOKUP:
    case FLOW_READDIR:
    case FLOW_CREATE:
    case FLOW_REMOVE:
    case FLOW_FSSTAT:
        slot->task.object = nfs_handle_slice(&connection->root);
        break;
    default:
        slot->task.object = nfs_handle_slice(&connection->file);
        break;
    }
}

/* ---------------------------------------------------------------- requests */

static void request_prepare(struct nfs4_slot *slot)
{
    struct nfs4_wire *wire = wire_of(slot);
    const struct nfs_task *work = &slot->work;
    bool commit = work->operation == FLOW_COMMIT;

    slot->task = (struct nfs4_task){.operation = work->operation,
                                    .name = wire->name,
                                    .offset = commit ? 0 : work->data.offset,
                                    .length = commit ? 0 : work->data.bytes,
                                    .unstable = wire->flow->spec.nfs.unstable};
    slot->whole_reply = wire->work.versions != NULL;
    if (work->operation == FLOW_LOOKUP || work->operation == FLOW_CREATE ||
        work->operation == FLOW_REMOVE)
        nfs_work_name(&wire->work, work, wire->name);
    if (wire->setup)
        object_of_set(wire, slot);
    else
        object_of_export(slot);
}

static void request_put_data(struct nfs4_slot *slot, struct stream *stream)
{
    static const uint8_t zeros[4];
    struct nfs4_wire *wire = wire_of(slot);
    uint32_t bytes = slot->task.length;

    if (wire->setup) {
        nfs_work_fill(&wire->work, &slot->work, stream_reserve(stream, bytes));
        stream_commit(stream, bytes);
    } else {
        stream_put_repeated(stream, pattern_bytes(), PATTERN_BYTES, bytes);
    }
    stream_put(stream, zeros, (size_t)(rpc_padded(bytes) - bytes));
}

/* A handle that the server does not know any more: looks it up again, once. */
static bool stale(struct nfs4_slot *slot, uint32_t status)
{
    struct nfs4_wire *wire = wire_of(slot);

    if ((status != NFS4_STATUS_STALE && status != NFS4_STATUS_FHEXPIRED &&
         status != NFS4_STATUS_BADHANDLE) ||
        !wire->setup || slot->work.again)
        return false;
    struct nfs_tree *tree = nfs_setup_tree(wire->setup);

    nfs_tree_forget(tree, key_of(tree, &slot->work));
    slot->work.again = true;
    return true;
}

static enum outcome outcome_of(enum nfs4_end how, const struct nfs4_done *done)
{
    switch (how) {
    case NFS4_END_RPC_ERROR:
        return OUTCOME_RPC_ERROR;
    case NFS4_END_MALFORMED:
        return OUTCOME_MALFORMED;
    case NFS4_END_LOST:
        return OUTCOME_CONNECTION;
    case NFS4_END_REPLY:
    default:
        break;
    }
    if (done->status == NFS4_STATUS_DELAY)
        return OUTCOME_REFUSED;
    return done->status == NFS4_STATUS_OK ? OUTCOME_OK : OUTCOME_NFS_ERROR;
}

static bool request_ended(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done)
{
    struct nfs4_wire *wire = wire_of(slot);
    struct nfs_ending ending = {.outcome = outcome_of(how, done)};
    struct flow_request request = slot->request;

    if (done && stale(slot, done->status))
        return true;
    if (done) {
        ending.count = slot->work.operation == FLOW_READ ? done->data_bytes : done->count;
        ending.data = done->data;
        ending.eof = done->eof;
        if (done->object.len > 0 && wire->setup)
            nfs_tree_put(nfs_setup_tree(wire->setup),
                         key_of(nfs_setup_tree(wire->setup), &slot->work), done->object);
    }
    struct flow_result result = nfs_work_ended(&wire->work, &request, &slot->work, &ending);

    nfs4_slot_release(slot);
    flow_completed(wire->flow, &request, &result);
    return false;
}

static const struct nfs4_job request_job = {
    .prepare = request_prepare,
    .put_data = request_put_data,
    .ended = request_ended,
};

static bool transport_send(struct flow *flow, const struct flow_request *request)
{
    struct nfs4_wire *wire = flow->wire;
    struct nfs4_connection *best = nfs4_calls_connection(&wire->calls);

    if (!best || wire->ending)
        return false;
    struct nfs4_slot *slot = nfs4_slot_take(best);

    slot->job = &request_job;
    slot->request = *request;
    nfs_work_choose(&wire->work, request, &slot->work);
    nfs4_slot_send(slot);
    return true;
}

static void expire_slot(struct nfs4_slot *slot, uint64_t sent_before_ns)
{
    struct nfs4_wire *wire = wire_of(slot);
    struct flow_request request = slot->request;
    struct nfs_ending ending = {.outcome = OUTCOME_TIMEOUT};

    if ((slot->state != NFS4_SLOT_SENT && slot->state != NFS4_SLOT_WAITING) ||
        slot->job != &request_job || request.sent_ns >= sent_before_ns)
        return;
    struct flow_result result = nfs_work_ended(&wire->work, &request, &slot->work, &ending);

    nfs4_slot_abandon(slot);
    flow_completed(wire->flow, &request, &result);
}

static void transport_expire(struct flow *flow, uint64_t sent_before_ns)
{
    struct nfs4_wire *wire = flow->wire;

    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs4_connection *connection = &wire->connections[i];

        for (uint32_t s = 0; s < connection->slots_count; s++)
            expire_slot(&connection->slots[s], sent_before_ns);
    }
}

/* ---------------------------------------------------------------- connections */

static void slot_freed(struct nfs4_connection *connection)
{
    struct nfs4_wire *wire = connection->flow->wire;

    nfs4_calls_pump(&wire->calls);
    if (!wire->ending)
        flow_pump(wire->flow);
}

static void broke(struct nfs4_connection *connection)
{
    struct nfs4_wire *wire = connection->flow->wire;

    nfs_work_server_lost(&wire->work);
}

/* What no other client in the world has: machine, process and time are in it. */
static void owner_of(const struct flow *flow, uint32_t number, uint64_t verifier,
                     char out[NFS4_SESSION_OWNER_BYTES])
{
    char host[32] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(out, NFS4_SESSION_OWNER_BYTES, "spillload/%.31s/%d/%" PRIx64 "/%" PRIx64 "/%u", host,
             (int)getpid(), verifier, flow->request_seed, number);
}

static void connection_init(struct nfs4_wire *wire, uint32_t number, struct loop *loop,
                            void (*ready)(struct nfs4_connection *connection), uint32_t slots)
{
    struct nfs4_connection *connection = &wire->connections[number];
    char owner[NFS4_SESSION_OWNER_BYTES];

    memset(connection, 0, sizeof(*connection));
    connection->flow = wire->flow;
    connection->loop = loop;
    connection->became_ready = ready;
    connection->slot_freed = slot_freed;
    connection->broke = broke;
    connection->complained = &wire->complained;
    owner_of(wire->flow, number, wire->verifier, owner);
    nfs4_connection_open(connection, owner, wire->verifier, slots, LARGEST_DATA_BYTES);
}

/* ---------------------------------------------------------------- the end */

static void ending_ready(struct nfs4_connection *connection)
{
    struct nfs4_wire *wire = connection->flow->wire;

    if (wire->setup)
        nfs_setup_tree(wire->setup)->export = connection->root;
    nfs_leftovers_ready(connection->loop, &connection->root);
    nfs4_calls_pump(&wire->calls);
}

static void remove_left_over(struct nfs4_wire *wire)
{
    struct nfs4_connection *connection = &wire->connections[0];
    struct nfs_names *names = &wire->work.names;
    struct nfs_leftovers *left = nfs_leftovers_create(
        names, wire->setup ? nfs_setup_tree(wire->setup) : NULL, &wire->calls.caller);

    if (left) {
        nfs4_calls_init(&wire->calls, connection, 1);
        connection_init(wire, 0, &left->loop, ending_ready, NFS_CLEANUP_CALLS);
        nfs_leftovers_run(left);
        nfs4_connection_close(connection, loop_clock_ns() + LEAVE_NS);
    }
    nfs_leftovers_destroy(left, wire->flow->spec.name, names);
}

/* Requests in flight end for nobody but the books of names and versions. */
static void abandon_requests(struct nfs4_wire *wire)
{
    static const struct nfs_ending unknown = {.outcome = OUTCOME_CONNECTION};

    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs4_connection *connection = &wire->connections[i];

        for (uint32_t s = 0; s < connection->slots_count; s++) {
            struct nfs4_slot *slot = &connection->slots[s];

            if (slot->job == &request_job &&
                (slot->state == NFS4_SLOT_SENT || slot->state == NFS4_SLOT_WAITING))
                (void)nfs_work_ended(&wire->work, &slot->request, &slot->work, &unknown);
        }
    }
    nfs_work_stop(&wire->work);
}

static void transport_close(struct flow *flow)
{
    struct nfs4_wire *wire = flow->wire;
    uint64_t deadline_ns = loop_clock_ns() + LEAVE_NS;

    wire->ending = true;
    abandon_requests(wire);
    for (uint32_t i = 0; i < wire->count; i++)
        nfs4_connection_close(&wire->connections[i], deadline_ns);
    if (wire->work.names.live.count + wire->work.names.left_over.count > 0)
        remove_left_over(wire);
    nfs_work_fini(&wire->work);
    nfs_setup_destroy(wire->setup);
    free(wire->connections);
    free(wire);
    flow->wire = NULL;
}

/* ---------------------------------------------------------------- life */

/* Says once when the server lets fewer requests in than the flow would have in flight. */
static void note_slots(struct nfs4_wire *wire, const struct nfs4_connection *connection)
{
    if (wire->noted || connection->slots_usable >= connection->slots_count)
        return;
    wire->noted = true;
    fprintf(stderr,
            "spillload: flow %s: the server takes %u requests at once on a connection where %u are "
            "to be in flight; the rest waits: raise connections\n",
            wire->flow->spec.name, connection->slots_usable, connection->slots_count);
}

static void became_ready(struct nfs4_connection *connection)
{
    struct nfs4_wire *wire = connection->flow->wire;

    note_slots(wire, connection);
    wire->work.file_bytes = connection->file_size_bytes;
    nfs_work_limits(&wire->work, connection->read_most, connection->write_most);
    if (wire->setup)
        nfs_setup_tree(wire->setup)->export = connection->root;
    if (wire->setup && !wire->began) {
        wire->began = true;
        nfs_setup_begin(wire->setup, connection->write_most);
    }
    nfs4_calls_pump(&wire->calls);
    flow_pump(wire->flow);
}

static int transport_open(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    struct nfs4_wire *wire = memory_zeroed(1, sizeof(*wire));

    flow->wire = wire;
    wire->flow = flow;
    wire->verifier = loop_clock_ns();
    wire->count = spec->connections;
    wire->connections = memory_zeroed(wire->count, sizeof(*wire->connections));
    nfs4_calls_init(&wire->calls, wire->connections, wire->count);
    if (spec->set.files > 0) {
        wire->setup = nfs_setup_create(flow, &wire->calls.caller, NFS4_HANDLE_MAX_BYTES);
        if (!wire->setup) {
            wire->count = 0;
            return -EINVAL;
        }
    }
    nfs_work_init(&wire->work, flow, wire->setup ? nfs_setup_set(wire->setup) : NULL,
                  wire->setup ? nfs_setup_versions(wire->setup) : NULL);
    for (uint32_t i = 0; i < wire->count; i++)
        connection_init(wire, i, flow->loop, became_ready,
                        (spec->concurrency + wire->count - 1) / wire->count);
    return 0;
}

static bool transport_ready(const struct flow *flow)
{
    const struct nfs4_wire *wire = flow->wire;

    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->connections[i].stage != NFS4_STAGE_READY)
            return false;
    }
    return !wire->setup || nfs_setup_done(wire->setup);
}

static bool transport_progress(struct flow *flow, char *text, size_t size)
{
    struct nfs4_wire *wire = flow->wire;

    if (wire->setup && wire->began)
        return nfs_setup_progress(wire->setup, text, size);
    snprintf(text, size, "%s", nfs4_connection_stage(&wire->connections[0]));
    return false;
}

static const char *transport_kind_name(const struct flow *flow, uint32_t kind)
{
    (void)flow;
    return kind < FLOW_OPERATIONS ? flow_operation_name((enum flow_operation)kind) : NULL;
}

const struct flow_transport client_nfs4_transport = {
    .open = transport_open,
    .ready = transport_ready,
    .progress = transport_progress,
    .send = transport_send,
    .expire = transport_expire,
    .kind_name = transport_kind_name,
    .close = transport_close,
};
