/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a connection: from bytes to records, from records to the calls they end. */
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/nfs4/nfs4_private.h"

/* The results behind SEQUENCE's; true when the slot's call has ended. */
static void take_results(struct nfs4_slot *slot, struct nfs4_results *results)
{
    struct nfs4_context context = nfs4_slot_context(slot);
    struct nfs4_done done = {.status = NFS4_STATUS_OK};
    enum rpc_parse parse =
        slot->job->prepare ? nfs4_task_take(results, &slot->task, &context, &done) : RPC_PARSE_OK;

    if (!slot->job->prepare)
        done.status = results->status;
    if (parse != RPC_PARSE_OK) {
        nfs4_opener_renew(&slot->opener);
        nfs4_slot_ended(slot, NFS4_END_MALFORMED, NULL);
        return;
    }
    if (nfs4_session_lost(done.status)) {
        slot->phase = NFS4_PHASE_WHOLE;
        nfs4_setup_begin(slot->connection);
        nfs4_slot_waits(slot);
    } else if (done.status == NFS4_STATUS_GRACE || done.status == NFS4_STATUS_BAD_SEQID ||
               (done.status == NFS4_STATUS_DELAY && slot->phase != NFS4_PHASE_WHOLE)) {
        if (done.status == NFS4_STATUS_BAD_SEQID)
            slot->phase = NFS4_PHASE_WHOLE;
        nfs4_slot_waits(slot);
    } else if (done.status == NFS4_STATUS_OK && done.phase != NFS4_PHASE_WHOLE) {
        slot->phase = done.phase;
        nfs4_slot_send(slot);
    } else {
        nfs4_slot_ended(slot, NFS4_END_REPLY, &done);
    }
}

/* 4.1: reads SEQUENCE; false when the call ended with it. */
static bool take_sequence(struct nfs4_slot *slot, struct nfs4_results *results)
{
    struct nfs4_connection *connection = slot->connection;
    struct nfs4_result result;
    enum rpc_parse parse = nfs4_results_next(results, NFS4_OP_SEQUENCE, &result);
    uint32_t status = parse == RPC_PARSE_NOT_EXPECTED ? results->status : result.status;

    if ((parse != RPC_PARSE_OK && parse != RPC_PARSE_NOT_EXPECTED) ||
        (parse == RPC_PARSE_NOT_EXPECTED && status == NFS4_STATUS_OK)) {
        nfs4_slot_ended(slot, NFS4_END_MALFORMED, NULL);
        /* Where the slot's sequence is now, nobody can say. */
        stream_close(&connection->stream, 0);
        return false;
    }
    if (status == NFS4_STATUS_OK) {
        if (slot->epoch == connection->epoch)
            nfs4_session_advance(&connection->session, (uint32_t)(slot - connection->slots));
        return true;
    }
    if (nfs4_session_lost(status)) {
        if (slot->epoch == connection->epoch)
            nfs4_setup_begin(connection);
        nfs4_slot_waits(slot);
        return false;
    }
    nfs4_slot_ended(slot, NFS4_END_REPLY,
                    &(struct nfs4_done){.status = status, .failed_op = NFS4_OP_SEQUENCE});
    return false;
}

/* A late reply, which nobody waits for: the slot can be used again. */
static void take_late(struct nfs4_slot *slot, struct nfs4_results *results)
{
    struct nfs4_connection *connection = slot->connection;
    struct nfs4_result result;

    if (slot->epoch == connection->epoch &&
        nfs4_results_next(results, NFS4_OP_SEQUENCE, &result) == RPC_PARSE_OK &&
        result.status == NFS4_STATUS_OK)
        nfs4_session_advance(&connection->session, (uint32_t)(slot - connection->slots));
    nfs4_slot_release(slot);
    connection->slot_freed(connection);
}

static struct nfs4_slot *slot_of(struct nfs4_connection *connection, uint32_t xid)
{
    uint32_t index = xid & NFS4_SLOT_MASK;

    if (index >= connection->slots_count)
        return NULL;
    struct nfs4_slot *slot = &connection->slots[index];

    if ((slot->state != NFS4_SLOT_SENT && slot->state != NFS4_SLOT_ABANDONED) ||
        (slot->uses << NFS4_SLOT_BITS | index) != xid)
        return NULL;
    return slot;
}

static void call_reply(struct nfs4_slot *slot, const struct rpc_reply *rpc,
                       struct nfs4_results *results, enum rpc_parse parse)
{
    if (slot->state == NFS4_SLOT_ABANDONED) {
        take_late(slot, results);
    } else if (rpc->denied || rpc->accept != RPC_ACCEPT_SUCCESS) {
        nfs4_slot_ended(slot, NFS4_END_RPC_ERROR, NULL);
    } else if (parse != RPC_PARSE_OK) {
        nfs4_slot_ended(slot, NFS4_END_MALFORMED, NULL);
        stream_close(&slot->connection->stream, 0);
    } else if (slot->connection->session.minorversion == 0 || take_sequence(slot, results)) {
        take_results(slot, results);
    }
}

/* `available` bytes of a reply of `whole`. */
static void take_reply(struct nfs4_connection *connection, const uint8_t *payload, size_t available,
                       uint64_t whole)
{
    struct rpc_reply rpc;
    struct nfs4_results results = {0};
    enum rpc_parse parse = RPC_PARSE_GARBAGE;

    if (rpc_parse_reply(payload, available, &rpc) != RPC_PARSE_OK) {
        nfs4_complain(connection, "malformed RPC reply");
        stream_close(&connection->stream, 0);
        return;
    }
    if (!rpc.denied && rpc.accept == RPC_ACCEPT_SUCCESS)
        parse = nfs4_results_begin(&results, payload + rpc.body_offset, available - rpc.body_offset,
                                   whole - rpc.body_offset);
    if (connection->setup_xid && rpc.xid == connection->setup_xid) {
        if (parse == RPC_PARSE_OK) {
            nfs4_setup_reply(connection, &results);
        } else {
            nfs4_complain(connection, rpc.denied ? "the server denies the call"
                                                 : "the server does not take the call");
            stream_close(&connection->stream, 0);
        }
        return;
    }
    struct nfs4_slot *slot = slot_of(connection, rpc.xid);

    if (slot)
        call_reply(slot, &rpc, &results, parse);
}

/* Whether more than the head of this reply is wanted. */
static bool wants_whole(struct nfs4_connection *connection)
{
    uint32_t xid = rpc_load_u32(connection->head);
    const struct nfs4_slot *slot = slot_of(connection, xid);

    if (connection->setup_xid && xid == connection->setup_xid)
        return true;
    return slot && slot->job->prepare && slot->state == NFS4_SLOT_SENT &&
           (slot->whole_reply || slot->task.operation != FLOW_READ);
}

/* The head of the reply, and all of it where that is wanted: the head tells. */
static void keep_piece(struct nfs4_connection *connection, const uint8_t *data, size_t length)
{
    if (!connection->keep_whole) {
        size_t room = NFS4_HEAD_BYTES - connection->head_bytes;
        size_t part = length < room ? length : room;

        memcpy(connection->head + connection->head_bytes, data, part);
        connection->head_bytes += part;
        if (part == length || connection->head_judged)
            return;
        data += part;
        length -= part;
        connection->head_judged = true;
        connection->keep_whole = wants_whole(connection);
        if (!connection->keep_whole)
            return;
    }
    if (connection->head_bytes + length > connection->head_room) {
        connection->head_room = 2 * (connection->head_bytes + length);
        connection->head = memory_grow(connection->head, connection->head_room);
    }
    memcpy(connection->head + connection->head_bytes, data, length);
    connection->head_bytes += length;
}

size_t nfs4_took_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct nfs4_connection *connection = nfs4_connection_of(stream);
    struct rpc_record_event event = {.type = RPC_RECORD_BEGIN};
    size_t used = 0;

    while (event.type != RPC_RECORD_MORE && stream->state == STREAM_OPEN) {
        used += rpc_record_next(&connection->decoder, data + used, length - used, &event);
        switch (event.type) {
        case RPC_RECORD_WHOLE:
            take_reply(connection, event.data + RPC_RECORD_MARK_BYTES,
                       event.len - RPC_RECORD_MARK_BYTES, event.len - RPC_RECORD_MARK_BYTES);
            break;
        case RPC_RECORD_BEGIN:
            connection->head_bytes = 0;
            connection->keep_whole = false;
            connection->head_judged = false;
            break;
        case RPC_RECORD_DATA:
            keep_piece(connection, event.data, event.len);
            break;
        case RPC_RECORD_END:
            take_reply(connection, connection->head, connection->head_bytes, event.total_bytes);
            break;
        case RPC_RECORD_ERROR:
            nfs4_complain(connection, rpc_record_error_text(connection->decoder.error));
            stream_close(stream, 0);
            break;
        case RPC_RECORD_MORE:
        default:
            break;
        }
    }
    return used;
}
