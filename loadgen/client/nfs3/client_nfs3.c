/* SPDX-License-Identifier: Apache-2.0 */
/* The NFSv3 transport of flows: requests, what they wait for, how they end; see nfs3_wire.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/nfs3/nfs3_wire.h"
#include "loadgen/client/nfs/nfs_cleanup.h"
#include "protocols/rpc/rpc_message.h"

#define FILE_AGAIN_NS 200000000ULL
/* Slots beyond those of requests, for the flow's own calls. */
#define OWN_SLOTS NFS_SETUP_CALLS

/* ---------------------------------------------------------------- the one file */

static void file_call(struct nfs3_wire *wire, enum nfs_call_kind kind,
                      const struct nfs_handle *handle)
{
    wire->file_call.kind = kind;
    wire->file_call.handle = *handle;
    snprintf(wire->file_call.name, sizeof(wire->file_call.name), "%s", wire->flow->spec.nfs.file);
    nfs3_issue(&wire->caller, &wire->file_call);
}

static void seek_file(struct nfs3_wire *wire)
{
    wire->file_sought = true;
    file_call(wire, NFS_CALL_LOOKUP, &wire->export);
}

static void file_timer_fired(struct loop_timer *timer)
{
    seek_file((void *)((char *)timer - offsetof(struct nfs3_wire, file_timer)));
}

static void file_called(struct nfs_call *call)
{
    struct nfs3_wire *wire = (void *)((char *)call - offsetof(struct nfs3_wire, file_call));
    struct flow *flow = wire->flow;
    char problem[NFS_CALL_PROBLEM_BYTES];

    if (wire->ending)
        return;
    if (call->error) {
        if (!wire->complained && call->error != -ECONNRESET)
            fprintf(stderr, "spillload: flow %s: looking up the file %s: %s\n", flow->spec.name,
                    flow->spec.nfs.file, nfs_call_problem(call->status, problem));
        wire->complained |= call->error != -ECONNRESET;
        loop_timer_set(wire->loop, &wire->file_timer, loop_clock_ns() + FILE_AGAIN_NS);
        return;
    }
    if (call->kind == NFS_CALL_LOOKUP) {
        wire->file = call->found;
        file_call(wire, NFS_CALL_GETATTR, &wire->file);
        return;
    }
    wire->work.file_bytes = call->size_bytes;
    wire->file_known = true;
    wire->moved = true;
    flow_pump(flow);
}

/* A connection got ready: the first one finds the files. */
static void connection_ready(struct nfs3_wire *wire)
{
    wire->mounted = true;
    if (!wire->setup) {
        if (!wire->file_sought)
            seek_file(wire);
    } else {
        wire->tree->export = wire->export;
        nfs_setup_begin(wire->setup, wire->work.write_most);
    }
    flow_pump(wire->flow);
}

static bool files_known(const struct nfs3_wire *wire)
{
    return wire->setup ? nfs_setup_done(wire->setup) : wire->file_known;
}

/* ---------------------------------------------------------------- sending */

/* Which of the tree's keys the task is about. */
static uint64_t key_of(const struct nfs3_wire *wire, const struct nfs_task *task)
{
    switch (task->operation) {
    case FLOW_FSSTAT:
        return NFS_TREE_ROOT;
    case FLOW_LOOKUP:
    case FLOW_READDIR:
    case FLOW_CREATE:
    case FLOW_REMOVE:
        return task->directory;
    default:
        return nfs_tree_file_key(wire->tree, task->data.file);
    }
}

static bool handle_of(const struct nfs3_wire *wire, const struct nfs_task *task,
                      struct rpc_slice *out)
{
    if (wire->setup)
        return nfs_tree_get(wire->tree, key_of(wire, task), out);
    switch (task->operation) {
    case FLOW_FSSTAT:
    case FLOW_LOOKUP:
    case FLOW_READDIR:
    case FLOW_CREATE:
    case FLOW_REMOVE:
        *out = nfs_handle_slice(&wire->export);
        break;
    default:
        *out = nfs_handle_slice(&wire->file);
        break;
    }
    return true;
}

static void send_task(struct nfs3_connection *connection, const struct flow_request *request,
                      const struct nfs_task *task, struct rpc_slice handle)
{
    uint32_t xid;
    struct nfs3_slot *slot = nfs3_slot_take(connection, &xid);

    slot->request = *request;
    slot->task = *task;
    nfs3_put_task(connection, xid, task, handle);
}

static void end_request(struct nfs3_wire *wire, const struct flow_request *request,
                        const struct nfs_task *task, const struct nfs_ending *ending)
{
    struct flow_result result = nfs_work_ended(&wire->work, request, task, ending);

    flow_completed(wire->flow, request, &result);
}

static void pending_free(struct nfs3_pending *pending)
{
    *pending->link = pending->next;
    if (pending->next)
        pending->next->link = pending->link;
    free(pending);
}

static enum outcome outcome_of_walk(int error)
{
    if (error == -EAGAIN)
        return OUTCOME_REFUSED;
    return error == -ECONNRESET ? OUTCOME_CONNECTION : OUTCOME_NFS_ERROR;
}

static void walked(struct nfs_walk *walk, int error)
{
    struct nfs3_pending *pending = (void *)((char *)walk - offsetof(struct nfs3_pending, walk));
    struct nfs3_wire *wire = pending->wire;
    struct flow_request request = pending->request;
    struct nfs_task task = pending->task;
    bool given_up = pending->given_up;
    struct nfs3_connection *connection = nfs3_best_connection(wire);
    struct rpc_slice handle;

    pending_free(pending);
    if (given_up)
        return;
    if (!error && connection && handle_of(wire, &task, &handle)) {
        send_task(connection, &request, &task, handle);
        return;
    }
    /* Without a walk's error it was a connection, or a place in the table that others took. */
    end_request(
        wire, &request, &task,
        &(struct nfs_ending){.outcome = error ? outcome_of_walk(error) : OUTCOME_CONNECTION});
}

static void look_up(struct nfs3_wire *wire, const struct flow_request *request,
                    const struct nfs_task *task)
{
    struct nfs3_pending *pending = memory_zeroed(1, sizeof(*pending));

    pending->wire = wire;
    pending->request = *request;
    pending->task = *task;
    pending->next = wire->pending;
    pending->link = &wire->pending;
    if (pending->next)
        pending->next->link = &pending->next;
    wire->pending = pending;
    nfs_tree_walk(wire->tree, &wire->caller, key_of(wire, task), &pending->walk, walked);
}

static bool nfs_send(struct flow *flow, const struct flow_request *request)
{
    struct nfs3_wire *wire = flow->wire;
    struct nfs3_connection *connection = nfs3_best_connection(wire);
    struct nfs_task task;
    struct rpc_slice handle;

    if (!connection || !files_known(wire))
        return false;
    nfs_work_choose(&wire->work, request, &task);
    if (handle_of(wire, &task, &handle))
        send_task(connection, request, &task, handle);
    else
        look_up(wire, request, &task);
    return true;
}

/* ---------------------------------------------------------------- replies */

void nfs3_request_ended(struct nfs3_connection *connection, struct nfs3_slot *slot,
                        enum outcome outcome)
{
    struct flow_request request = slot->request;
    struct nfs_task task = slot->task;

    nfs3_slot_free(connection, slot);
    end_request(connection->wire, &request, &task, &(struct nfs_ending){.outcome = outcome});
}

void nfs3_request_reply(struct nfs3_connection *connection, struct nfs3_slot *slot,
                        const struct rpc_reply *rpc, const uint8_t *payload, size_t length)
{
    struct nfs3_wire *wire = connection->wire;
    struct flow_request request = slot->request;
    struct nfs_task task = slot->task;
    struct nfs_ending ending;
    bool stale;

    nfs3_read_task(wire, &task, rpc, payload, length, &ending, &stale);
    nfs3_slot_free(connection, slot);
    if (stale && wire->setup && !task.again) {
        task.again = true;
        nfs_tree_forget(wire->tree, key_of(wire, &task));
        look_up(wire, &request, &task);
        return;
    }
    if (stale && !wire->setup && wire->file_known) {
        wire->file_known = false;
        seek_file(wire);
    }
    end_request(wire, &request, &task, &ending);
}

static void nfs_expire(struct flow *flow, uint64_t sent_before_ns)
{
    struct nfs3_wire *wire = flow->wire;
    const struct nfs_ending timeout = {.outcome = OUTCOME_TIMEOUT};

    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs3_connection *connection = &wire->connections[i];

        for (uint32_t s = 0; s < connection->slots_count; s++) {
            struct nfs3_slot *slot = &connection->slots[s];

            if (slot->busy && !slot->call && slot->request.sent_ns < sent_before_ns)
                nfs3_request_ended(connection, slot, OUTCOME_TIMEOUT);
        }
    }
    for (struct nfs3_pending *pending = wire->pending; pending; pending = pending->next) {
        if (pending->given_up || pending->request.sent_ns >= sent_before_ns)
            continue;
        pending->given_up = true;
        end_request(wire, &pending->request, &pending->task, &timeout);
    }
}

/* ---------------------------------------------------------------- the end */

/* What is in flight when the run ends has no outcome. */
static void abandon_requests(struct nfs3_wire *wire)
{
    const struct nfs_ending unknown = {.outcome = OUTCOME_CONNECTION};

    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs3_connection *connection = &wire->connections[i];

        for (uint32_t s = 0; s < connection->slots_count; s++) {
            struct nfs3_slot *slot = &connection->slots[s];

            if (slot->busy && !slot->call)
                (void)nfs_work_ended(&wire->work, &slot->request, &slot->task, &unknown);
        }
        nfs3_connection_fini(connection);
    }
    for (struct nfs3_pending *pending = wire->pending, *next; pending; pending = next) {
        next = pending->next;
        if (!pending->given_up)
            (void)nfs_work_ended(&wire->work, &pending->request, &pending->task, &unknown);
        free(pending);
    }
    wire->pending = NULL;
    nfs_work_stop(&wire->work);
    wire->waiting = NULL;
    wire->waiting_tail = &wire->waiting;
}

static void ending_ready(struct nfs3_wire *wire)
{
    if (wire->tree)
        wire->tree->export = wire->export;
    nfs_leftovers_ready(wire->loop, &wire->export);
}

static void remove_left_over(struct nfs3_wire *wire)
{
    struct nfs_names *names = &wire->work.names;
    struct nfs_leftovers *left = nfs_leftovers_create(names, wire->tree, &wire->caller);

    if (left) {
        wire->loop = &left->loop;
        wire->ready = ending_ready;
        memset(&wire->connections[0], 0, sizeof(wire->connections[0]));
        nfs3_connection_init(&wire->connections[0], wire, OWN_SLOTS);
        wire->count = 1;
        nfs3_connection_open(&wire->connections[0]);
        nfs_leftovers_run(left);
        nfs3_mount_fini(&wire->mount);
        nfs3_connection_fini(&wire->connections[0]);
    }
    nfs_leftovers_destroy(left, wire->flow->spec.name, names);
}

static void nfs_close(struct flow *flow)
{
    struct nfs3_wire *wire = flow->wire;

    wire->ending = true;
    loop_timer_cancel(flow->loop, &wire->file_timer);
    nfs3_mount_fini(&wire->mount);
    abandon_requests(wire);
    if (wire->work.names.live.count + wire->work.names.left_over.count > 0)
        remove_left_over(wire);
    nfs_work_fini(&wire->work);
    nfs_setup_destroy(wire->setup);
    free(wire);
    flow->wire = NULL;
}

/* ---------------------------------------------------------------- life */

static int nfs_open(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    struct nfs3_wire *wire =
        memory_zeroed(1, sizeof(*wire) + spec->connections * sizeof(wire->connections[0]));

    flow->wire = wire;
    wire->flow = flow;
    wire->loop = flow->loop;
    wire->caller.issue = nfs3_issue;
    wire->waiting_tail = &wire->waiting;
    wire->ready = connection_ready;
    wire->file_call.done = file_called;
    wire->file_timer.fire = file_timer_fired;
    wire->collects = spec->nfs.verify;
    wire->client.identity = (struct rpc_identity){
        .sys = true, .uid = spec->nfs.uid, .gid = spec->nfs.gid, .machine = "spillload"};
    wire->mount.target = spec->target;
    wire->mount.export_path = flow->spec.nfs.export_path;
    wire->mount.identity = wire->client.identity;
    wire->mount.done = nfs3_mounted_elsewhere;
    if (spec->set.files > 0) {
        wire->setup = nfs_setup_create(flow, &wire->caller, NFS3_HANDLE_MAX_BYTES);
        if (!wire->setup)
            return -EINVAL;
        wire->tree = nfs_setup_tree(wire->setup);
    }
    nfs_work_init(&wire->work, flow, wire->setup ? nfs_setup_set(wire->setup) : NULL,
                  wire->setup ? nfs_setup_versions(wire->setup) : NULL);
    wire->count = spec->connections;
    for (uint32_t i = 0; i < wire->count; i++) {
        nfs3_connection_init(&wire->connections[i], wire,
                             (spec->concurrency + wire->count - 1) / wire->count + OWN_SLOTS);
        nfs3_connection_open(&wire->connections[i]);
    }
    return 0;
}

static bool nfs_ready(const struct flow *flow)
{
    const struct nfs3_wire *wire = flow->wire;

    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->connections[i].stage != NFS3_STAGE_READY)
            return false;
    }
    return files_known(wire);
}

static bool nfs_progress(struct flow *flow, char *text, size_t size)
{
    struct nfs3_wire *wire = flow->wire;
    bool moved = wire->moved;

    wire->moved = false;
    if (wire->setup && wire->mounted)
        return nfs_setup_progress(wire->setup, text, size) || moved;
    snprintf(text, size, "%s", wire->mounted ? "looking up the file" : "mounting");
    return moved;
}

static const char *nfs_kind_name(const struct flow *flow, uint32_t kind)
{
    (void)flow;
    return kind < FLOW_OPERATIONS ? flow_operation_name((enum flow_operation)kind) : NULL;
}

const struct flow_transport client_nfs_transport = {
    .open = nfs_open,
    .ready = nfs_ready,
    .progress = nfs_progress,
    .send = nfs_send,
    .expire = nfs_expire,
    .kind_name = nfs_kind_name,
    .close = nfs_close,
};
