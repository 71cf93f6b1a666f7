/* SPDX-License-Identifier: Apache-2.0 */
/* A flow's own calls: see nfs4_calls.h. */
#include "loadgen/client/nfs4/nfs4_calls.h"

#include <errno.h>

static void call_prepare(struct nfs4_slot *slot)
{
    static const enum flow_operation operations[] = {
        [NFS_CALL_LOOKUP] = FLOW_LOOKUP, [NFS_CALL_MKDIR] = FLOW_CREATE,
        [NFS_CALL_CREATE] = FLOW_CREATE, [NFS_CALL_REMOVE] = FLOW_REMOVE,
        [NFS_CALL_READ] = FLOW_READ,     [NFS_CALL_WRITE] = FLOW_WRITE,
    };
    const struct nfs_call *call = slot->call;

    slot->task = (struct nfs4_task){.operation = operations[call->kind],
                                    .object = nfs_handle_slice(&call->handle),
                                    .name = call->name,
                                    .offset = call->offset,
                                    .length = call->bytes,
                                    .truncate = true,
                                    .directory = call->kind == NFS_CALL_MKDIR};
    slot->whole_reply = true;
}

static void call_put_data(struct nfs4_slot *slot, struct stream *stream)
{
    static const uint8_t zeros[4];
    const struct nfs_call *call = slot->call;

    stream_put(stream, call->payload, call->bytes);
    stream_put(stream, zeros, (size_t)(rpc_padded(call->bytes) - call->bytes));
}

static int error_of(enum nfs4_end how, const struct nfs4_done *done)
{
    if (how == NFS4_END_LOST)
        return -ECONNRESET;
    if (how != NFS4_END_REPLY)
        return -EREMOTEIO;
    switch (done->status) {
    case NFS4_STATUS_OK:
        return 0;
    case NFS4_STATUS_NOENT:
        return -ENOENT;
    case NFS4_STATUS_EXIST:
        return -EEXIST;
    case NFS4_STATUS_STALE:
    case NFS4_STATUS_FHEXPIRED:
    case NFS4_STATUS_BADHANDLE:
        return -ESTALE;
    case NFS4_STATUS_DELAY:
        return -EAGAIN;
    default:
        return -EREMOTEIO;
    }
}

static bool call_ended(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done)
{
    struct nfs_call *call = slot->call;

    call->error = error_of(how, done);
    call->status = done ? done->status : 0;
    call->found.length = 0;
    if (done) {
        nfs_handle_keep(&call->found, done->found);
        call->size_bytes = done->size_bytes;
        call->count = call->kind == NFS_CALL_READ ? done->data_bytes : done->count;
        call->data = done->data;
    }
    struct nfs4_connection *connection = slot->connection;

    nfs4_slot_release(slot);
    call->done(call);
    connection->slot_freed(connection);
    return false;
}

static const struct nfs4_job call_job = {
    .prepare = call_prepare,
    .put_data = call_put_data,
    .ended = call_ended,
};

struct nfs4_connection *nfs4_calls_connection(const struct nfs4_calls *calls)
{
    struct nfs4_connection *best = NULL;

    for (uint32_t i = 0; i < calls->count; i++) {
        struct nfs4_connection *connection = &calls->connections[i];

        if (nfs4_connection_can_send(connection) && (!best || connection->in_use < best->in_use))
            best = connection;
    }
    return best;
}

void nfs4_calls_pump(struct nfs4_calls *calls)
{
    struct nfs4_connection *connection;

    while (calls->first && (connection = nfs4_calls_connection(calls))) {
        struct nfs_call *call = calls->first;
        struct nfs4_slot *slot = nfs4_slot_take(connection);

        calls->first = call->next;
        if (!calls->first)
            calls->last = &calls->first;
        slot->job = &call_job;
        slot->call = call;
        nfs4_slot_send(slot);
    }
}

static void issue(struct nfs_caller *caller, struct nfs_call *call)
{
    struct nfs4_calls *calls = (void *)((char *)caller - offsetof(struct nfs4_calls, caller));

    call->next = NULL;
    *calls->last = call;
    calls->last = &call->next;
    nfs4_calls_pump(calls);
}

void nfs4_calls_init(struct nfs4_calls *calls, struct nfs4_connection *connections, uint32_t count)
{
    calls->caller.issue = issue;
    calls->connections = connections;
    calls->count = count;
    calls->first = NULL;
    calls->last = &calls->first;
}
