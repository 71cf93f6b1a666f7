/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to an NFSv3 server: mounting, slots, records, and breaking. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/nfs3/nfs3_wire.h"
#include "protocols/rpc/mount3.h"

#define RETRY_NS  200000000ULL
#define SLOT_BITS 16
#define SLOT_MASK ((1U << SLOT_BITS) - 1)

static const char *const stage_names[] = {
    [NFS3_STAGE_DOWN] = "connecting", [NFS3_STAGE_CONNECTING] = "connecting",
    [NFS3_STAGE_MOUNT] = "mounting",  [NFS3_STAGE_LIMITS] = "asking for limits",
    [NFS3_STAGE_READY] = "running",
};

static const struct stream_handler handler;

static struct nfs3_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct nfs3_connection, stream));
}

/* ---------------------------------------------------------------- slots */

struct nfs3_connection *nfs3_best_connection(struct nfs3_wire *wire)
{
    struct nfs3_connection *best = NULL;

    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs3_connection *connection = &wire->connections[i];

        if (connection->stage == NFS3_STAGE_READY && connection->stream.state == STREAM_OPEN &&
            connection->slots_free != NFS3_NO_SLOT &&
            (!best || connection->in_flight < best->in_flight))
            best = connection;
    }
    return best;
}

struct nfs3_slot *nfs3_slot_take(struct nfs3_connection *connection, uint32_t *xid)
{
    uint32_t index = connection->slots_free;
    struct nfs3_slot *slot = &connection->slots[index];

    connection->slots_free = slot->next_free;
    connection->in_flight++;
    slot->busy = true;
    slot->uses++;
    slot->call = NULL;
    *xid = slot->uses << SLOT_BITS | index;
    return slot;
}

void nfs3_slot_free(struct nfs3_connection *connection, struct nfs3_slot *slot)
{
    slot->busy = false;
    slot->next_free = connection->slots_free;
    connection->slots_free = (uint32_t)(slot - connection->slots);
    connection->in_flight--;
}

void nfs3_send_waiting(struct nfs3_wire *wire)
{
    struct nfs3_connection *connection;
    uint32_t xid;

    while (wire->waiting && (connection = nfs3_best_connection(wire)) != NULL) {
        struct nfs_call *call = wire->waiting;

        wire->waiting = call->next;
        if (!wire->waiting)
            wire->waiting_tail = &wire->waiting;
        nfs3_slot_take(connection, &xid)->call = call;
        nfs3_put_call(connection, xid, call);
    }
}

void nfs3_issue(struct nfs_caller *caller, struct nfs_call *call)
{
    struct nfs3_wire *wire = (void *)((char *)caller - offsetof(struct nfs3_wire, caller));

    call->next = NULL;
    *wire->waiting_tail = call;
    wire->waiting_tail = &call->next;
    nfs3_send_waiting(wire);
}

/* ---------------------------------------------------------------- getting ready */

/* Says once per flow why it does not get on, then lets the connection try again later. */
static void setup_failed(struct nfs3_connection *connection, const char *why, unsigned long code)
{
    struct nfs3_wire *wire = connection->wire;

    if (!wire->complained)
        fprintf(stderr, "spillload: flow %s: %s: %s %lu\n", wire->flow->spec.name,
                stage_names[connection->stage], why, code);
    wire->complained = true;
    stream_close(&connection->stream, 0);
}

static void setup_call(struct nfs3_connection *connection, enum nfs3_stage stage)
{
    struct nfs3_wire *wire = connection->wire;
    uint8_t *to = stream_reserve(&connection->stream, MOUNT3_CALL_MAX_BYTES);
    uint32_t xid = ++connection->setup_xid;
    size_t length;

    connection->stage = stage;
    if (stage == NFS3_STAGE_MOUNT)
        length = mount3_write_mnt_call(to, MOUNT3_CALL_MAX_BYTES, xid, &wire->client.identity,
                                       wire->flow->spec.nfs.export_path);
    else
        length = nfs3_call_fsinfo(to, MOUNT3_CALL_MAX_BYTES, &wire->client, xid,
                                  nfs_handle_slice(&wire->export));
    stream_commit(&connection->stream, length);
}

static void mount_reply(struct nfs3_connection *connection, const uint8_t *results, size_t length)
{
    struct nfs3_wire *wire = connection->wire;
    struct mount3_reply mount;

    if (mount3_parse_mnt_reply(results, length, &mount) != RPC_PARSE_OK)
        setup_failed(connection, "malformed reply, bytes", length);
    else if (mount.status != MOUNT3_STATUS_OK || mount.handle.len > NFS3_HANDLE_MAX_BYTES ||
             !nfs_handle_keep(&wire->export, mount.handle))
        setup_failed(connection, "MOUNT status", mount.status);
    else
        setup_call(connection, NFS3_STAGE_LIMITS);
}

/* A server that does not tell its limits has none that we know of. */
static void limits_reply(struct nfs3_connection *connection, const uint8_t *results, size_t length)
{
    struct nfs3_wire *wire = connection->wire;
    struct nfs3_reply nfs = {0};

    if (nfs3_parse_reply(NFS3_PROC_FSINFO, results, length, &nfs) == RPC_PARSE_OK &&
        nfs.status == NFS3_STATUS_OK)
        nfs_work_limits(&wire->work, nfs.read_max_bytes, nfs.write_max_bytes);
    connection->stage = NFS3_STAGE_READY;
    wire->moved = true;
    nfs3_send_waiting(wire);
    wire->ready(wire);
}

/* Where MOUNT is: handles stay as they are when a server starts again, so once is enough. */
static void mount_elsewhere(struct nfs3_connection *connection)
{
    struct nfs3_wire *wire = connection->wire;

    wire->mounts_elsewhere = true;
    connection->stage = NFS3_STAGE_MOUNT;
    if (wire->mount.handle.length)
        setup_call(connection, NFS3_STAGE_LIMITS);
    else if (wire->mount.stage == NFS3_MOUNT_IDLE) {
        wire->mount.loop = wire->loop;
        nfs3_mount_begin(&wire->mount);
    }
}

void nfs3_mounted_elsewhere(struct nfs3_mount *mount)
{
    struct nfs3_wire *wire = (void *)((char *)mount - offsetof(struct nfs3_wire, mount));

    wire->export = mount->handle;
    if (mount->problem[0] && !wire->complained) {
        fprintf(stderr, "spillload: flow %s: mounting: %s\n", wire->flow->spec.name,
                mount->problem);
        wire->complained = true;
    }
    for (uint32_t i = 0; i < wire->count; i++) {
        struct nfs3_connection *connection = &wire->connections[i];

        if (connection->stage != NFS3_STAGE_MOUNT || connection->stream.state != STREAM_OPEN)
            continue;
        if (mount->handle.length)
            setup_call(connection, NFS3_STAGE_LIMITS);
        else
            stream_close(&connection->stream, 0);
    }
}

static void connected(struct stream *stream)
{
    struct nfs3_connection *connection = connection_of(stream);

    rpc_record_init(&connection->decoder, NULL);
    if (connection->wire->mounts_elsewhere)
        mount_elsewhere(connection);
    else
        setup_call(connection, NFS3_STAGE_MOUNT);
}

/* ---------------------------------------------------------------- replies */

static void slot_reply(struct nfs3_connection *connection, const struct rpc_reply *rpc,
                       const uint8_t *payload, size_t length)
{
    uint32_t index = rpc->xid & SLOT_MASK;

    if (index >= connection->slots_count)
        return;
    struct nfs3_slot *slot = &connection->slots[index];

    if (!slot->busy || (slot->uses << SLOT_BITS | index) != rpc->xid)
        return;
    if (slot->call) {
        struct nfs_call *call = slot->call;

        nfs3_slot_free(connection, slot);
        nfs3_read_call(call, rpc, payload, length);
        call->done(call);
    } else {
        nfs3_request_reply(connection, slot, rpc, payload, length);
    }
    if (connection->wire->waiting)
        nfs3_send_waiting(connection->wire);
}

/* A whole reply, or what is kept of a longer one. */
static void take_reply(struct nfs3_connection *connection, const uint8_t *payload, size_t length)
{
    struct rpc_reply rpc;

    if (rpc_parse_reply(payload, length, &rpc) != RPC_PARSE_OK) {
        stream_close(&connection->stream, 0);
        return;
    }
    if (connection->stage == NFS3_STAGE_READY)
        slot_reply(connection, &rpc, payload, length);
    else if (rpc.xid != connection->setup_xid)
        return;
    else if (connection->stage == NFS3_STAGE_MOUNT && !rpc.denied &&
             rpc.accept == RPC_ACCEPT_PROG_UNAVAIL)
        mount_elsewhere(connection);
    else if (rpc.denied ||
             (rpc.accept != RPC_ACCEPT_SUCCESS && connection->stage == NFS3_STAGE_MOUNT))
        setup_failed(connection, "RPC error", rpc.denied ? rpc.reject : rpc.accept);
    else if (connection->stage == NFS3_STAGE_MOUNT)
        mount_reply(connection, payload + rpc.body_offset, length - rpc.body_offset);
    else
        limits_reply(connection, payload + rpc.body_offset,
                     rpc.accept == RPC_ACCEPT_SUCCESS ? length - rpc.body_offset : 0);
}

static void collect(struct nfs3_connection *connection, const uint8_t *data, size_t length)
{
    size_t room = NFS3_RECORD_HEAD_BYTES - connection->record_bytes;

    if (!connection->wire->collects)
        length = length < room ? length : room;
    if (connection->record_bytes + length > connection->record_capacity) {
        connection->record_capacity = 2 * (connection->record_bytes + length);
        connection->record = memory_grow(connection->record, connection->record_capacity);
    }
    memcpy(connection->record + connection->record_bytes, data, length);
    connection->record_bytes += length;
}

static size_t take_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct nfs3_connection *connection = connection_of(stream);
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
            connection->record_bytes = 0;
            break;
        case RPC_RECORD_DATA:
            if (connection->wire->collects || connection->record_bytes < NFS3_RECORD_HEAD_BYTES)
                collect(connection, event.data, event.len);
            break;
        case RPC_RECORD_END:
            take_reply(connection, connection->record, connection->record_bytes);
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

/* ---------------------------------------------------------------- breaking */

static void closed(struct stream *stream, int error)
{
    struct nfs3_connection *connection = connection_of(stream);
    struct nfs3_wire *wire = connection->wire;

    if (error && connection->stage < NFS3_STAGE_READY && !wire->complained && !wire->ending) {
        fprintf(stderr, "spillload: flow %s: %s: %s\n", wire->flow->spec.name,
                stage_names[connection->stage], strerror(error));
        wire->complained = true;
    }
    if (connection->stage == NFS3_STAGE_READY) {
        wire->flow->reconnects++;
        nfs_work_server_lost(&wire->work);
    }
    connection->stage = NFS3_STAGE_DOWN;
    stream_fini(stream);
    loop_timer_set(wire->loop, &connection->retry, wire->loop->now_ns + RETRY_NS);
    for (uint32_t i = 0; i < connection->slots_count; i++) {
        struct nfs3_slot *slot = &connection->slots[i];

        if (!slot->busy)
            continue;
        if (slot->call) {
            struct nfs_call *call = slot->call;

            nfs3_slot_free(connection, slot);
            call->error = -ECONNRESET;
            call->status = 0;
            call->done(call);
        } else {
            nfs3_request_ended(connection, slot, OUTCOME_CONNECTION);
        }
    }
}

static const struct stream_handler handler = {
    .connected = connected,
    .data = take_data,
    .closed = closed,
};

/* ---------------------------------------------------------------- life */

static void connect_again(struct loop_timer *timer)
{
    nfs3_connection_open((void *)((char *)timer - offsetof(struct nfs3_connection, retry)));
}

void nfs3_connection_open(struct nfs3_connection *connection)
{
    const struct units_address *target = &connection->wire->flow->spec.target;

    connection->stage = NFS3_STAGE_CONNECTING;
    stream_connect(&connection->stream, connection->wire->loop, (const void *)&target->address,
                   target->length, &handler);
}

void nfs3_connection_init(struct nfs3_connection *connection, struct nfs3_wire *wire,
                          uint32_t slots)
{
    connection->wire = wire;
    connection->retry.fire = connect_again;
    connection->slots_count = slots;
    connection->slots = memory_zeroed(slots, sizeof(*connection->slots));
    connection->slots_free = NFS3_NO_SLOT;
    for (uint32_t slot = slots; slot-- > 0;) {
        connection->slots[slot].next_free = connection->slots_free;
        connection->slots_free = slot;
    }
}

void nfs3_connection_fini(struct nfs3_connection *connection)
{
    loop_timer_cancel(connection->wire->loop, &connection->retry);
    stream_fini(&connection->stream);
    free(connection->slots);
    free(connection->record);
}
