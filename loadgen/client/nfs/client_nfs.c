/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NFSv3 transport of flows: a few TCP connections, many calls in flight on each.
 *
 * Stages of a connection
 *   DOWN -> CONNECTING -> MOUNT (MNT on the same port) -> LOOKUP (the file) -> GETATTR (its size)
 * -> READY From any stage back to DOWN when it breaks; DOWN tries again after a while. Calls in
 * flight on a connection that breaks fail with OUTCOME_CONNECTION: whether they were carried out is
 * not known.
 *
 * A call's xid is its slot with the slot's use count above it, so that a late reply to a call that
 * was given up finds nobody.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/pattern.h"
#include "loadgen/net/stream.h"
#include "loadgen/client/flow.h"
#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3_client.h"
#include "protocols/rpc/rpc_record.h"

#define RETRY_NS 200000000ULL
/* Enough of a reply to know all about it; READ data behind is only counted. */
#define HEAD_BYTES 512
#define SLOT_BITS  16
#define SLOT_MASK  ((1U << SLOT_BITS) - 1)
#define ALL_ACCESS 0x3fU

enum stage {
    STAGE_DOWN,
    STAGE_CONNECTING,
    STAGE_MOUNT,
    STAGE_LOOKUP,
    STAGE_GETATTR,
    STAGE_READY,
};

static const char *const stage_names[] = {
    [STAGE_DOWN] = "connecting",
    [STAGE_CONNECTING] = "connecting",
    [STAGE_MOUNT] = "mounting",
    [STAGE_LOOKUP] = "looking up the file",
    [STAGE_GETATTR] = "reading attributes",
    [STAGE_READY] = "running",
};

struct nfs_slot {
    bool busy;
    uint32_t uses;
    uint32_t next_free;
    struct flow_request request;
};

struct nfs_connection {
    struct stream stream;
    struct flow *flow;
    enum stage stage;
    struct loop_timer retry;
    struct rpc_record_decoder decoder;
    uint8_t head[HEAD_BYTES];
    size_t head_bytes;
    uint32_t setup_xid;
    struct nfs_slot *slots;
    uint32_t slots_count;
    uint32_t slots_free;
    uint32_t in_flight;
    uint8_t handle[NFS3_HANDLE_MAX_BYTES];
    uint32_t handle_bytes;
    uint8_t directory[NFS3_HANDLE_MAX_BYTES];
    uint32_t directory_bytes;
};

#define NO_SLOT UINT32_MAX

struct nfs_wire {
    struct nfs3_client client;
    uint64_t blocks;
    uint64_t next_block;
    bool complained;
    uint32_t count;
    struct nfs_connection connections[];
};

static struct nfs_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct nfs_connection, stream));
}

static struct nfs_wire *wire_of(const struct nfs_connection *connection)
{
    return connection->flow->wire;
}

static const struct stream_handler nfs_handler;

/* ---------------------------------------------------------------- setting up */

/* Says once per flow why it does not get on, then lets the connection try again later. */
static void setup_failed(struct nfs_connection *connection, const char *why, unsigned long code)
{
    struct nfs_wire *wire = wire_of(connection);

    if (!wire->complained)
        fprintf(stderr, "spillload: flow %s: %s: %s %lu\n", connection->flow->spec.name,
                stage_names[connection->stage], why, code);
    wire->complained = true;
    stream_close(&connection->stream, 0);
}

static void setup_call(struct nfs_connection *connection, enum stage stage)
{
    const struct flow *flow = connection->flow;
    const struct nfs3_client *client = &wire_of(connection)->client;
    uint8_t *to = stream_reserve(&connection->stream, MOUNT3_CALL_MAX_BYTES);
    struct rpc_slice directory = {connection->directory, connection->directory_bytes};
    struct rpc_slice file = {connection->handle, connection->handle_bytes};
    uint32_t xid = ++connection->setup_xid;
    size_t length;

    connection->stage = stage;
    if (stage == STAGE_MOUNT)
        length = mount3_write_mnt_call(to, MOUNT3_CALL_MAX_BYTES, xid, &client->identity,
                                       flow->spec.nfs.export_path);
    else if (stage == STAGE_LOOKUP)
        length = nfs3_call_lookup(to, MOUNT3_CALL_MAX_BYTES, client, xid, directory,
                                  flow->spec.nfs.file);
    else
        length = nfs3_call_getattr(to, MOUNT3_CALL_MAX_BYTES, client, xid, file);
    stream_commit(&connection->stream, length);
}

static void setup_done(struct nfs_connection *connection, uint64_t size_bytes)
{
    struct flow *flow = connection->flow;
    struct nfs_wire *wire = flow->wire;

    wire->blocks =
        size_bytes / flow->spec.nfs.transfer.mean ? size_bytes / flow->spec.nfs.transfer.mean : 1;
    connection->stage = STAGE_READY;
    flow_pump(flow);
}

static void keep_handle(uint8_t *to, uint32_t *length, struct rpc_slice handle)
{
    *length = handle.len;
    memcpy(to, handle.data, handle.len);
}

static void setup_reply(struct nfs_connection *connection, const uint8_t *results, size_t length)
{
    struct mount3_reply mount;
    struct nfs3_reply nfs;
    bool lookup = connection->stage == STAGE_LOOKUP;

    if (connection->stage == STAGE_MOUNT) {
        if (mount3_parse_mnt_reply(results, length, &mount) != RPC_PARSE_OK)
            setup_failed(connection, "malformed reply, bytes", length);
        else if (mount.status != MOUNT3_STATUS_OK || mount.handle.len > NFS3_HANDLE_MAX_BYTES)
            setup_failed(connection, "MOUNT status", mount.status);
        else {
            keep_handle(connection->directory, &connection->directory_bytes, mount.handle);
            setup_call(connection, STAGE_LOOKUP);
        }
        return;
    }
    if (nfs3_parse_reply(lookup ? NFS3_PROC_LOOKUP : NFS3_PROC_GETATTR, results, length, &nfs) !=
        RPC_PARSE_OK) {
        setup_failed(connection, "malformed reply, bytes", length);
    } else if (nfs.status != NFS3_STATUS_OK) {
        setup_failed(connection, "NFS status", nfs.status);
    } else if (lookup) {
        keep_handle(connection->handle, &connection->handle_bytes, nfs.handle);
        setup_call(connection, STAGE_GETATTR);
    } else {
        setup_done(connection, nfs.size_bytes);
    }
}

static void nfs_connected(struct stream *stream)
{
    struct nfs_connection *connection = connection_of(stream);

    rpc_record_init(&connection->decoder, NULL);
    setup_call(connection, STAGE_MOUNT);
}

static void connect_again(struct loop_timer *timer)
{
    struct nfs_connection *connection =
        (void *)((char *)timer - offsetof(struct nfs_connection, retry));
    const struct units_address *target = &connection->flow->spec.target;

    connection->stage = STAGE_CONNECTING;
    stream_connect(&connection->stream, connection->flow->loop, (const void *)&target->address,
                   target->length, &nfs_handler);
}

/* ---------------------------------------------------------------- calls */

/* The first of the mix. */
static enum flow_operation only_operation(const struct flow *flow)
{
    int operation = 0;

    while (operation < FLOW_OPERATIONS - 1 && flow->spec.nfs.mix[operation] == 0)
        operation++;
    return (enum flow_operation)operation;
}

static uint32_t procedure_of(enum flow_operation operation)
{
    static const uint32_t procedures[FLOW_OPERATIONS] = {
        [FLOW_READ] = NFS3_PROC_READ,       [FLOW_WRITE] = NFS3_PROC_WRITE,
        [FLOW_GETATTR] = NFS3_PROC_GETATTR, [FLOW_LOOKUP] = NFS3_PROC_LOOKUP,
        [FLOW_ACCESS] = NFS3_PROC_ACCESS,
    };

    return procedures[operation];
}

static uint64_t next_offset(struct flow *flow)
{
    struct nfs_wire *wire = flow->wire;
    uint64_t block = flow->spec.nfs.sequential ? wire->next_block++ % wire->blocks
                                               : rng_below(&flow->rng, wire->blocks);

    return block * flow->spec.nfs.transfer.mean;
}

static void put_write_data(struct stream *stream, uint32_t bytes)
{
    static const uint8_t zeros[4];

    stream_put_repeated(stream, pattern_bytes(), PATTERN_BYTES, bytes);
    stream_put(stream, zeros, (size_t)(rpc_padded(bytes) - bytes));
}

static void put_call(struct nfs_connection *connection, uint32_t xid)
{
    struct flow *flow = connection->flow;
    const struct flow_spec *spec = &flow->spec;
    const struct nfs3_client *client = &wire_of(connection)->client;
    struct stream *stream = &connection->stream;
    struct rpc_slice file = {connection->handle, connection->handle_bytes};
    struct rpc_slice directory = {connection->directory, connection->directory_bytes};
    uint8_t *to = stream_reserve(stream, NFS3_CALL_MAX_BYTES);
    size_t room = NFS3_CALL_MAX_BYTES;

    switch (only_operation(flow)) {
    case FLOW_WRITE:
        stream_commit(stream, nfs3_call_write(to, room, client, xid, file, next_offset(flow),
                                              (uint32_t)spec->nfs.transfer.mean, NFS3_FILE_SYNC));
        put_write_data(stream, (uint32_t)spec->nfs.transfer.mean);
        break;
    case FLOW_GETATTR:
        stream_commit(stream, nfs3_call_getattr(to, room, client, xid, file));
        break;
    case FLOW_LOOKUP:
        stream_commit(stream, nfs3_call_lookup(to, room, client, xid, directory, spec->nfs.file));
        break;
    case FLOW_ACCESS:
        stream_commit(stream, nfs3_call_access(to, room, client, xid, file, ALL_ACCESS));
        break;
    case FLOW_READ:
    default:
        stream_commit(stream, nfs3_call_read(to, room, client, xid, file, next_offset(flow),
                                             (uint32_t)spec->nfs.transfer.mean));
        break;
    }
}

static bool nfs_send(struct flow *flow, const struct flow_request *request)
{
    struct nfs_wire *wire = flow->wire;
    struct nfs_connection *best = NULL;

    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs_connection *connection = &wire->connections[i];

        if (connection->stage == STAGE_READY && connection->stream.state == STREAM_OPEN &&
            connection->slots_free != NO_SLOT && (!best || connection->in_flight < best->in_flight))
            best = connection;
    }
    if (!best)
        return false;
    uint32_t index = best->slots_free;
    struct nfs_slot *slot = &best->slots[index];

    best->slots_free = slot->next_free;
    best->in_flight++;
    slot->busy = true;
    slot->uses++;
    slot->request = *request;
    put_call(best, slot->uses << SLOT_BITS | index);
    return true;
}

static void slot_free(struct nfs_connection *connection, struct nfs_slot *slot)
{
    slot->busy = false;
    slot->next_free = connection->slots_free;
    connection->slots_free = (uint32_t)(slot - connection->slots);
    connection->in_flight--;
}

/* ---------------------------------------------------------------- replies */

static enum outcome outcome_of(const struct flow *flow, const struct rpc_reply *rpc,
                               const uint8_t *results, size_t length, struct nfs3_reply *nfs)
{
    if (rpc->denied || rpc->accept != RPC_ACCEPT_SUCCESS)
        return OUTCOME_RPC_ERROR;
    if (nfs3_parse_reply(procedure_of(only_operation(flow)), results, length, nfs) != RPC_PARSE_OK)
        return OUTCOME_MALFORMED;
    if (nfs->status == NFS3_STATUS_JUKEBOX)
        return OUTCOME_REFUSED;
    return nfs->status == NFS3_STATUS_OK ? OUTCOME_OK : OUTCOME_NFS_ERROR;
}

static void call_reply(struct nfs_connection *connection, const struct rpc_reply *rpc,
                       const uint8_t *payload, size_t length)
{
    struct flow *flow = connection->flow;
    uint32_t index = rpc->xid & SLOT_MASK;
    struct nfs3_reply nfs = {0};

    if (index >= connection->slots_count)
        return;
    struct nfs_slot *slot = &connection->slots[index];

    if (!slot->busy || (slot->uses << SLOT_BITS | index) != rpc->xid)
        return;
    enum outcome outcome =
        outcome_of(flow, rpc, payload + rpc->body_offset, length - rpc->body_offset, &nfs);
    struct flow_request request = slot->request;
    bool read = only_operation(flow) == FLOW_READ;
    bool write = only_operation(flow) == FLOW_WRITE;

    slot_free(connection, slot);
    flow_completed(flow, &request,
                   &(struct flow_result){.outcome = outcome,
                                         .bytes_in = read ? nfs.data_bytes : 0,
                                         .bytes_out = write ? nfs.count : 0});
}

/* A whole reply, or the first HEAD_BYTES of a longer one. */
static void take_reply(struct nfs_connection *connection, const uint8_t *payload, size_t length)
{
    struct rpc_reply rpc;

    if (rpc_parse_reply(payload, length, &rpc) != RPC_PARSE_OK) {
        stream_close(&connection->stream, 0);
        return;
    }
    if (connection->stage == STAGE_READY)
        call_reply(connection, &rpc, payload, length);
    else if (rpc.xid != connection->setup_xid)
        return;
    else if (rpc.denied || rpc.accept != RPC_ACCEPT_SUCCESS)
        setup_failed(connection, "RPC error", rpc.denied ? rpc.reject : rpc.accept);
    else
        setup_reply(connection, payload + rpc.body_offset, length - rpc.body_offset);
}

static size_t nfs_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct nfs_connection *connection = connection_of(stream);
    struct rpc_record_event event = {.type = RPC_RECORD_BEGIN};
    size_t used = 0;

    while (event.type != RPC_RECORD_MORE && stream->state == STREAM_OPEN) {
        used += rpc_record_next(&connection->decoder, data + used, length - used, &event);
        switch (event.type) {
        case RPC_RECORD_WHOLE:
            take_reply(connection, event.data + RPC_RECORD_MARK_BYTES,
                       event.len - RPC_RECORD_MARK_BYTES);
            break;
        case RPC_RECORD_BEGIN:
            connection->head_bytes = 0;
            break;
        case RPC_RECORD_DATA: {
            size_t room = HEAD_BYTES - connection->head_bytes;
            size_t part = event.len < room ? event.len : room;

            memcpy(connection->head + connection->head_bytes, event.data, part);
            connection->head_bytes += part;
            break;
        }
        case RPC_RECORD_END:
            take_reply(connection, connection->head, connection->head_bytes);
            break;
        case RPC_RECORD_ERROR:
            stream_close(stream, 0);
            break;
        case RPC_RECORD_MORE:
        default:
            break;
        }
    }
    return used;
}

static void nfs_closed(struct stream *stream, int error)
{
    struct nfs_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;
    struct nfs_wire *wire = flow->wire;

    if (error && connection->stage < STAGE_READY && !wire->complained) {
        fprintf(stderr, "spillload: flow %s: %s: %s\n", flow->spec.name,
                stage_names[connection->stage], strerror(error));
        wire->complained = true;
    }
    if (connection->stage == STAGE_READY)
        flow->reconnects++;
    connection->stage = STAGE_DOWN;
    stream_fini(stream);
    loop_timer_set(flow->loop, &connection->retry, flow->loop->now_ns + RETRY_NS);
    for (uint32_t i = 0; i < connection->slots_count; i++) {
        struct nfs_slot *slot = &connection->slots[i];
        struct flow_request request = slot->request;

        if (!slot->busy)
            continue;
        slot_free(connection, slot);
        flow_completed(
            flow, &request,
            &(struct flow_result){.outcome = OUTCOME_CONNECTION, .bytes_in = 0, .bytes_out = 0});
    }
}

static const struct stream_handler nfs_handler = {
    .connected = nfs_connected,
    .data = nfs_data,
    .closed = nfs_closed,
};

/* ---------------------------------------------------------------- life */

static int nfs_open(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    struct nfs_wire *wire =
        memory_zeroed(1, sizeof(*wire) + spec->connections * sizeof(wire->connections[0]));

    flow->wire = wire;
    wire->count = spec->connections;
    wire->client.identity = (struct rpc_identity){
        .sys = true, .uid = spec->nfs.uid, .gid = spec->nfs.gid, .machine = "spillload"};
    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs_connection *connection = &wire->connections[i];

        connection->flow = flow;
        connection->retry.fire = connect_again;
        connection->slots_count = (spec->concurrency + wire->count - 1) / wire->count;
        connection->slots = memory_zeroed(connection->slots_count, sizeof(struct nfs_slot));
        connection->slots_free = NO_SLOT;
        for (uint32_t slot = connection->slots_count; slot-- > 0;) {
            connection->slots[slot].next_free = connection->slots_free;
            connection->slots_free = slot;
        }
        connect_again(&connection->retry);
    }
    return 0;
}

static bool nfs_ready(const struct flow *flow)
{
    const struct nfs_wire *wire = flow->wire;

    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->connections[i].stage != STAGE_READY)
            return false;
    }
    return true;
}

static void nfs_expire(struct flow *flow, uint64_t sent_before_ns)
{
    struct nfs_wire *wire = flow->wire;

    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs_connection *connection = &wire->connections[i];

        for (uint32_t s = 0; s < connection->slots_count; s++) {
            struct nfs_slot *slot = &connection->slots[s];
            struct flow_request request = slot->request;

            if (!slot->busy || request.sent_ns >= sent_before_ns)
                continue;
            slot_free(connection, slot);
            flow_completed(
                flow, &request,
                &(struct flow_result){.outcome = OUTCOME_TIMEOUT, .bytes_in = 0, .bytes_out = 0});
        }
    }
}

static void nfs_close(struct flow *flow)
{
    struct nfs_wire *wire = flow->wire;

    for (uint32_t i = 0; i < wire->count; i++) {
        loop_timer_cancel(flow->loop, &wire->connections[i].retry);
        stream_fini(&wire->connections[i].stream);
        free(wire->connections[i].slots);
    }
    free(wire);
    flow->wire = NULL;
}

static const char *nfs_kind_name(const struct flow *flow, uint32_t kind)
{
    return kind == 0 ? flow_operation_name(only_operation(flow)) : NULL;
}

const struct flow_transport client_nfs_transport = {
    .kind_name = nfs_kind_name,
    .open = nfs_open,
    .ready = nfs_ready,
    .send = nfs_send,
    .expire = nfs_expire,
    .close = nfs_close,
};
