/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and the flow's own calls as NFSv3 calls, and what their replies say. */
#include <errno.h>

#include "loadgen/base/pattern.h"
#include "loadgen/client/nfs3/nfs3_wire.h"

#define ALL_ACCESS     0x3fU
#define DIRECTORY_MODE 0755U

static const uint8_t zeros[4];

/* ---------------------------------------------------------------- writing */

void nfs3_put_call(struct nfs3_connection *connection, uint32_t xid, const struct nfs_call *call)
{
    struct stream *stream = &connection->stream;
    const struct nfs3_client *client = &connection->wire->client;
    struct rpc_slice handle = nfs_handle_slice(&call->handle);
    uint8_t *to = stream_reserve(stream, NFS3_CALL_MAX_BYTES);
    size_t room = NFS3_CALL_MAX_BYTES;
    size_t length = 0;

    switch (call->kind) {
    case NFS_CALL_LOOKUP:
        length = nfs3_call_lookup(to, room, client, xid, handle, call->name);
        break;
    case NFS_CALL_GETATTR:
        length = nfs3_call_getattr(to, room, client, xid, handle);
        break;
    case NFS_CALL_MKDIR:
        length = nfs3_call_mkdir(to, room, client, xid, handle, call->name, DIRECTORY_MODE);
        break;
    case NFS_CALL_CREATE:
        length = nfs3_call_create(to, room, client, xid, handle, call->name, NFS_WORK_MODE, true);
        break;
    case NFS_CALL_REMOVE:
        length = nfs3_call_remove(to, room, client, xid, handle, call->name);
        break;
    case NFS_CALL_READ:
        length = nfs3_call_read(to, room, client, xid, handle, call->offset, call->bytes);
        break;
    case NFS_CALL_WRITE:
        length = nfs3_call_write(to, room, client, xid, handle, call->offset, call->bytes,
                                 NFS3_FILE_SYNC);
        break;
    }
    stream_commit(stream, length);
    if (call->kind == NFS_CALL_WRITE) {
        stream_put(stream, call->payload, call->bytes);
        stream_put(stream, zeros, (size_t)(rpc_padded(call->bytes) - call->bytes));
    }
}

static void put_write(struct nfs3_connection *connection, uint32_t xid, const struct nfs_task *task,
                      struct rpc_slice handle)
{
    struct nfs3_wire *wire = connection->wire;
    struct stream *stream = &connection->stream;
    uint32_t bytes = task->data.bytes;
    size_t data = wire->setup ? bytes : 0;
    uint8_t *to = stream_reserve(stream, NFS3_CALL_MAX_BYTES + data);
    size_t length =
        nfs3_call_write(to, NFS3_CALL_MAX_BYTES, &wire->client, xid, handle, task->data.offset,
                        bytes, wire->flow->spec.nfs.unstable ? NFS3_UNSTABLE : NFS3_FILE_SYNC);

    if (wire->setup)
        nfs_work_fill(&wire->work, task, to + length);
    stream_commit(stream, length + data);
    if (!wire->setup)
        stream_put_repeated(stream, pattern_bytes(), PATTERN_BYTES, bytes);
    stream_put(stream, zeros, (size_t)(rpc_padded(bytes) - bytes));
}

void nfs3_put_task(struct nfs3_connection *connection, uint32_t xid, const struct nfs_task *task,
                   struct rpc_slice handle)
{
    struct stream *stream = &connection->stream;
    const struct nfs3_client *client = &connection->wire->client;
    uint8_t *to = stream_reserve(stream, NFS3_CALL_MAX_BYTES);
    size_t room = NFS3_CALL_MAX_BYTES;
    size_t length = 0;
    char name[256];

    if (task->operation == FLOW_LOOKUP || task->operation == FLOW_CREATE ||
        task->operation == FLOW_REMOVE)
        nfs_work_name(&connection->wire->work, task, name);
    switch (task->operation) {
    case FLOW_WRITE:
        put_write(connection, xid, task, handle);
        return;
    case FLOW_GETATTR:
        length = nfs3_call_getattr(to, room, client, xid, handle);
        break;
    case FLOW_LOOKUP:
        length = nfs3_call_lookup(to, room, client, xid, handle, name);
        break;
    case FLOW_ACCESS:
        length = nfs3_call_access(to, room, client, xid, handle, ALL_ACCESS);
        break;
    case FLOW_SETATTR:
        length = nfs3_call_setattr(to, room, client, xid, handle, NFS_WORK_MODE);
        break;
    case FLOW_READDIR:
        length = nfs3_call_readdir(to, room, client, xid, handle, 0, 0, NFS_WORK_READDIR_BYTES);
        break;
    case FLOW_CREATE:
        length = nfs3_call_create(to, room, client, xid, handle, name, NFS_WORK_MODE, true);
        break;
    case FLOW_REMOVE:
        length = nfs3_call_remove(to, room, client, xid, handle, name);
        break;
    case FLOW_COMMIT:
        length = nfs3_call_commit(to, room, client, xid, handle, 0, 0);
        break;
    case FLOW_FSSTAT:
        length = nfs3_call_fsstat(to, room, client, xid, handle);
        break;
    case FLOW_READ:
    default:
        length = nfs3_call_read(to, room, client, xid, handle, task->data.offset, task->data.bytes);
        break;
    }
    stream_commit(stream, length);
}

/* ---------------------------------------------------------------- reading */

static bool is_stale(uint32_t status)
{
    return status == NFS3_STATUS_STALE || status == NFS3_STATUS_BADHANDLE;
}

static int error_of(uint32_t status)
{
    if (is_stale(status))
        return -ESTALE;
    switch (status) {
    case NFS3_STATUS_OK:
        return 0;
    case NFS3_STATUS_NOENT:
        return -ENOENT;
    case NFS3_STATUS_EXIST:
        return -EEXIST;
    case NFS3_STATUS_JUKEBOX:
        return -EAGAIN;
    default:
        return -EREMOTEIO;
    }
}

void nfs3_read_call(struct nfs_call *call, const struct rpc_reply *rpc, const uint8_t *payload,
                    size_t length)
{
    static const uint32_t procedures[] = {
        [NFS_CALL_LOOKUP] = NFS3_PROC_LOOKUP, [NFS_CALL_GETATTR] = NFS3_PROC_GETATTR,
        [NFS_CALL_MKDIR] = NFS3_PROC_MKDIR,   [NFS_CALL_CREATE] = NFS3_PROC_CREATE,
        [NFS_CALL_REMOVE] = NFS3_PROC_REMOVE, [NFS_CALL_READ] = NFS3_PROC_READ,
        [NFS_CALL_WRITE] = NFS3_PROC_WRITE,
    };
    const uint8_t *results = payload + rpc->body_offset;
    struct nfs3_reply nfs;

    call->found.length = 0;
    call->count = 0;
    call->status = 0;
    call->error = -EREMOTEIO;
    if (rpc->denied || rpc->accept != RPC_ACCEPT_SUCCESS ||
        nfs3_parse_reply(procedures[call->kind], results, length - rpc->body_offset, &nfs) !=
            RPC_PARSE_OK)
        return;
    call->status = nfs.status;
    if (call->kind == NFS_CALL_READ && nfs.status == NFS3_STATUS_OK) {
        if (nfs.count != nfs.data_bytes || nfs.count > length - rpc->body_offset - nfs.data_offset)
            return;
        call->data = results + nfs.data_offset;
    }
    call->error = error_of(nfs.status);
    call->count = nfs.count;
    call->size_bytes = nfs.size_bytes;
    nfs_handle_keep(&call->found, nfs.handle);
    if (call->kind == NFS_CALL_LOOKUP && !call->error && call->found.length == 0)
        call->error = -EREMOTEIO;
}

void nfs3_read_task(const struct nfs3_wire *wire, const struct nfs_task *task,
                    const struct rpc_reply *rpc, const uint8_t *payload, size_t length,
                    struct nfs_ending *ending, bool *stale)
{
    static const uint32_t procedures[FLOW_OPERATIONS] = {
        [FLOW_READ] = NFS3_PROC_READ,       [FLOW_WRITE] = NFS3_PROC_WRITE,
        [FLOW_GETATTR] = NFS3_PROC_GETATTR, [FLOW_LOOKUP] = NFS3_PROC_LOOKUP,
        [FLOW_ACCESS] = NFS3_PROC_ACCESS,   [FLOW_SETATTR] = NFS3_PROC_SETATTR,
        [FLOW_READDIR] = NFS3_PROC_READDIR, [FLOW_CREATE] = NFS3_PROC_CREATE,
        [FLOW_REMOVE] = NFS3_PROC_REMOVE,   [FLOW_COMMIT] = NFS3_PROC_COMMIT,
        [FLOW_FSSTAT] = NFS3_PROC_FSSTAT,
    };
    const uint8_t *results = payload + rpc->body_offset;
    size_t results_bytes = length - rpc->body_offset;
    struct nfs3_reply nfs;

    *ending = (struct nfs_ending){.outcome = OUTCOME_RPC_ERROR};
    *stale = false;
    if (rpc->denied || rpc->accept != RPC_ACCEPT_SUCCESS)
        return;
    ending->outcome = OUTCOME_MALFORMED;
    if (nfs3_parse_reply(procedures[task->operation], results, results_bytes, &nfs) != RPC_PARSE_OK)
        return;
    if (task->operation == FLOW_READ && nfs.status == NFS3_STATUS_OK) {
        if (nfs.count != nfs.data_bytes || nfs.count > task->data.bytes ||
            (wire->collects && nfs.count > results_bytes - nfs.data_offset))
            return;
        ending->data = results + nfs.data_offset;
    }
    ending->count = nfs.count;
    ending->eof = nfs.eof;
    *stale = is_stale(nfs.status);
    if (nfs.status == NFS3_STATUS_OK)
        ending->outcome = OUTCOME_OK;
    else
        ending->outcome = nfs.status == NFS3_STATUS_JUKEBOX ? OUTCOME_REFUSED : OUTCOME_NFS_ERROR;
}
