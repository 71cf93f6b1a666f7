/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of NFSv4 flows: see nfs4_connection.h. */
#include "loadgen/client/nfs4/nfs4_connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loadgen/base/memory.h"

#define RETRY_NS   200000000ULL
#define RENEWAL_NS 20000000000ULL /* until the server has told its lease */
#define SECOND_NS  1000000000ULL
#define RENEWALS   3 /* in one lease */
/* Enough of a reply to know all about it; READ data behind is only counted. */
#define HEAD_BYTES        512
#define SLOT_BITS         16
#define SLOT_MASK         ((1U << SLOT_BITS) - 1)
#define SLOT_OF_SETUP     SLOT_MASK
#define NO_SLOT           UINT32_MAX
#define OPERATIONS_NEEDED 8

static const struct stream_handler handler;

static struct nfs4_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct nfs4_connection, stream));
}

const char *nfs4_connection_stage(const struct nfs4_connection *connection)
{
    switch (connection->stage) {
    case NFS4_STAGE_SESSION:
        return nfs4_session_step_name(&connection->session);
    case NFS4_STAGE_ROOT:
        return "looking up export and file";
    case NFS4_STAGE_READY:
        return "running";
    case NFS4_STAGE_DOWN:
    case NFS4_STAGE_CONNECTING:
    default:
        return "connecting";
    }
}

/* Once per flow. */
static void complain(struct nfs4_connection *connection, const char *why)
{
    if (!*connection->complained)
        fprintf(stderr, "spillload: flow %s: %s: %s\n", connection->flow->spec.name,
                nfs4_connection_stage(connection), why);
    *connection->complained = true;
}

static void complain_status(struct nfs4_connection *connection, uint32_t status)
{
    const char *name = nfs4_status_name(status);
    char why[64];

    snprintf(why, sizeof(why), "the server says NFS4ERR_%s (%u)", name ? name : "?", status);
    complain(connection, why);
}

/* ---------------------------------------------------------------- slots */

static void slot_free(struct nfs4_slot *slot)
{
    struct nfs4_connection *connection = slot->connection;
    uint32_t index = (uint32_t)(slot - connection->slots);

    connection->in_use--;
    connection->abandoned -= slot->state == NFS4_SLOT_ABANDONED;
    slot->state = NFS4_SLOT_FREE;
    if (index >= connection->slots_usable)
        return;
    slot->next_free = connection->slots_free;
    connection->slots_free = index;
}

/* The server grants so many slots now; lower ones are taken first. */
static void slots_limit(struct nfs4_connection *connection, uint32_t usable)
{
    connection->slots_usable = usable;
    connection->slots_free = NO_SLOT;
    for (uint32_t i = usable; i-- > 0;) {
        struct nfs4_slot *slot = &connection->slots[i];

        if (slot->state != NFS4_SLOT_FREE)
            continue;
        slot->next_free = connection->slots_free;
        connection->slots_free = i;
    }
}

bool nfs4_connection_can_send(const struct nfs4_connection *connection)
{
    return connection->stage == NFS4_STAGE_READY && connection->stream.state == STREAM_OPEN &&
           connection->slots_free != NO_SLOT;
}

struct nfs4_slot *nfs4_slot_take(struct nfs4_connection *connection)
{
    struct nfs4_slot *slot = &connection->slots[connection->slots_free];

    connection->slots_free = slot->next_free;
    connection->in_use++;
    slot->uses++;
    slot->phase = NFS4_PHASE_WHOLE;
    slot->whole_reply = false;
    return slot;
}

static struct nfs4_context context_of(struct nfs4_slot *slot)
{
    const struct nfs4_connection *connection = slot->connection;

    return (struct nfs4_context){.minorversion = connection->session.minorversion,
                                 .client_id = connection->session.client_id,
                                 .slot = (uint32_t)(slot - connection->slots),
                                 .phase = slot->phase,
                                 .opener = &slot->opener};
}

static void slot_waits(struct nfs4_slot *slot)
{
    struct nfs4_connection *connection = slot->connection;

    slot->state = NFS4_SLOT_WAITING;
    if (connection->stage == NFS4_STAGE_READY)
        loop_timer_set(connection->flow->loop, &connection->again,
                       connection->flow->loop->now_ns + RETRY_NS);
}

void nfs4_slot_send(struct nfs4_slot *slot)
{
    struct nfs4_connection *connection = slot->connection;
    struct stream *stream = &connection->stream;
    struct nfs4_context context = context_of(slot);
    struct nfs4_call call;

    if (connection->stage != NFS4_STAGE_READY || stream->state != STREAM_OPEN) {
        slot_waits(slot);
        return;
    }
    slot->state = NFS4_SLOT_SENT;
    slot->epoch = connection->epoch;
    connection->idle = false;
    if (slot->job->prepare)
        slot->job->prepare(slot);
    nfs4_call_begin(&call, stream_reserve(stream, NFS4_CALL_MAX_BYTES), NFS4_CALL_MAX_BYTES,
                    &connection->identity, slot->uses << SLOT_BITS | context.slot,
                    connection->session.minorversion);
    nfs4_session_put_sequence(&connection->session, &call, context.slot,
                              slot->job->prepare && nfs4_task_once(&slot->task));
    if (slot->job->prepare)
        nfs4_task_put(&call, &slot->task, &context);
    else
        nfs4_session_put_renewal(&connection->session, &call);
    stream_commit(stream, nfs4_call_end(&call));
    if (call.trailing_bytes > 0)
        slot->job->put_data(slot, stream);
}

static void slots_send_waiting(struct nfs4_connection *connection)
{
    for (uint32_t i = 0; i < connection->slots_usable; i++) {
        if (connection->slots[i].state == NFS4_SLOT_WAITING)
            nfs4_slot_send(&connection->slots[i]);
    }
}

void nfs4_slot_abandon(struct nfs4_slot *slot)
{
    struct nfs4_connection *connection = slot->connection;
    bool reply_due = slot->state == NFS4_SLOT_SENT;

    if (reply_due && slot->job->prepare && slot->task.operation == FLOW_CREATE)
        nfs4_opener_renew(&slot->opener);
    if (!reply_due || connection->session.minorversion == 0) {
        slot_free(slot);
        return;
    }
    slot->state = NFS4_SLOT_ABANDONED;
    connection->abandoned++;
    /* A session all of whose slots wait for nothing is of no use any more. */
    if (connection->abandoned >= connection->slots_usable)
        stream_close(&connection->stream, ETIMEDOUT);
}

static void slot_ended(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done)
{
    if (!slot->job->ended(slot, how, done))
        return;
    slot->phase = NFS4_PHASE_WHOLE;
    nfs4_slot_send(slot);
}

void nfs4_slot_release(struct nfs4_slot *slot)
{
    slot_free(slot);
}

/* ---------------------------------------------------------------- setting up */

static void put_root(struct nfs4_connection *connection, struct nfs4_call *call)
{
    const struct flow_spec *spec = &connection->flow->spec;

    nfs4_session_put_sequence(&connection->session, call, 0, false);
    nfs4_put_root(call);
    nfs4_put_lookups(call, spec->nfs.export_path);
    nfs4_put_getfh(call);
    nfs4_put_getattr(call, NFS4_ATTRIBUTE(NFS4_ATTR_LEASE_TIME) |
                               NFS4_ATTRIBUTE(NFS4_ATTR_MAXREAD) |
                               NFS4_ATTRIBUTE(NFS4_ATTR_MAXWRITE));
    if (spec->set.files > 0)
        return;
    nfs4_put_lookup(call, spec->nfs.file);
    nfs4_put_getfh(call);
    nfs4_put_getattr(call, NFS4_ATTRIBUTES_OF_FILE);
}

static void setup_call(struct nfs4_connection *connection)
{
    struct stream *stream = &connection->stream;
    struct nfs4_call call;

    connection->setup_xid = ++connection->setup_uses << SLOT_BITS | SLOT_OF_SETUP;
    nfs4_call_begin(&call, stream_reserve(stream, NFS4_CALL_MAX_BYTES), NFS4_CALL_MAX_BYTES,
                    &connection->identity, connection->setup_xid, connection->session.minorversion);
    if (connection->stage == NFS4_STAGE_SESSION)
        nfs4_session_put_step(&connection->session, &call);
    else
        put_root(connection, &call);
    stream_commit(stream, nfs4_call_end(&call));
}

/* The server does not know the session (any more), or there is none yet. */
static void session_begin(struct nfs4_connection *connection)
{
    if (connection->stage == NFS4_STAGE_SESSION && connection->setup_xid)
        return;
    if (connection->stage == NFS4_STAGE_READY)
        connection->broke(connection);
    connection->stage = NFS4_STAGE_SESSION;
    connection->epoch++;
    nfs4_session_begin(&connection->session);
    setup_call(connection);
}

static void renewal_due(struct loop_timer *timer);

static void setup_done(struct nfs4_connection *connection)
{
    struct loop *loop = connection->flow->loop;

    connection->stage = NFS4_STAGE_READY;
    connection->was_ready = true;
    for (uint32_t i = 0; i < connection->slots_count; i++) {
        if (connection->slots[i].state == NFS4_SLOT_ABANDONED)
            slot_free(&connection->slots[i]);
    }
    slots_limit(connection, nfs4_session_slots(&connection->session));
    loop_timer_set(loop, &connection->renewal, loop->now_ns + connection->renewal_ns);
    slots_send_waiting(connection);
    connection->became_ready(connection);
}

static uint32_t at_most(uint64_t value, uint32_t most)
{
    return value < most ? (uint32_t)value : most;
}

/* How much one READ or WRITE may move: what the server says of its files, and of the session. */
static void keep_limits(struct nfs4_connection *connection,
                        const struct nfs4_attributes *attributes)
{
    const uint64_t *values = attributes->values;
    const struct nfs4_channel *fore = &connection->session.fore;
    bool session = connection->session.minorversion > 0;

    connection->read_most =
        session ? fore->max_response_bytes - NFS4_AROUND_DATA_BYTES : UINT32_MAX;
    connection->write_most =
        session ? fore->max_request_bytes - NFS4_AROUND_DATA_BYTES : UINT32_MAX;
    if (attributes->present & NFS4_ATTRIBUTE(NFS4_ATTR_MAXREAD))
        connection->read_most = at_most(values[NFS4_ATTR_MAXREAD], connection->read_most);
    if (attributes->present & NFS4_ATTRIBUTE(NFS4_ATTR_MAXWRITE))
        connection->write_most = at_most(values[NFS4_ATTR_MAXWRITE], connection->write_most);
    if ((attributes->present & NFS4_ATTRIBUTE(NFS4_ATTR_LEASE_TIME)) &&
        values[NFS4_ATTR_LEASE_TIME] > 0)
        connection->renewal_ns = values[NFS4_ATTR_LEASE_TIME] * SECOND_NS / RENEWALS;
}

/* The next result of put_root()'s compound; false when the walk ends, with the reason. */
static bool root_next(struct nfs4_results *results, uint32_t op, struct nfs4_result *result,
                      enum rpc_parse *parse, uint32_t *status)
{
    *parse = nfs4_results_next(results, op, result);
    *status = result->status;
    if (*parse == RPC_PARSE_NOT_EXPECTED && results->status != NFS4_STATUS_OK) {
        *parse = RPC_PARSE_OK;
        *status = results->status;
    }
    return *parse == RPC_PARSE_OK && *status == NFS4_STATUS_OK;
}

static uint32_t parts_of(const char *path)
{
    uint32_t parts = 0;

    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        path += strcspn(path, "/");
        parts++;
    }
    return parts;
}

static enum rpc_parse take_root(struct nfs4_connection *connection, struct nfs4_results *results,
                                uint32_t *status)
{
    const struct flow_spec *spec = &connection->flow->spec;
    struct nfs4_result result;
    enum rpc_parse parse;

    if (connection->session.minorversion > 0) {
        if (!root_next(results, NFS4_OP_SEQUENCE, &result, &parse, status))
            return parse;
        nfs4_session_advance(&connection->session, 0);
    }
    if (!root_next(results, NFS4_OP_PUTROOTFH, &result, &parse, status))
        return parse;
    for (uint32_t i = parts_of(spec->nfs.export_path); i > 0; i--) {
        if (!root_next(results, NFS4_OP_LOOKUP, &result, &parse, status))
            return parse;
    }
    if (!root_next(results, NFS4_OP_GETFH, &result, &parse, status))
        return parse;
    nfs_handle_keep(&connection->root, result.handle);
    if (!root_next(results, NFS4_OP_GETATTR, &result, &parse, status))
        return parse;
    keep_limits(connection, &result.attributes);
    if (spec->set.files > 0)
        return nfs4_results_end(results);
    if (!root_next(results, NFS4_OP_LOOKUP, &result, &parse, status) ||
        !root_next(results, NFS4_OP_GETFH, &result, &parse, status))
        return parse;
    nfs_handle_keep(&connection->file, result.handle);
    if (!root_next(results, NFS4_OP_GETATTR, &result, &parse, status))
        return parse;
    connection->file_size_bytes = result.attributes.present & NFS4_ATTRIBUTE(NFS4_ATTR_SIZE)
                                      ? result.attributes.values[NFS4_ATTR_SIZE]
                                      : 0;
    return nfs4_results_end(results);
}

/* Whether anything can be done with what the server grants; else says so. */
static bool session_suffices(struct nfs4_connection *connection)
{
    const struct nfs4_channel *fore = &connection->session.fore;

    if (connection->session.minorversion == 0 ||
        (fore->max_requests > 0 && fore->max_operations >= OPERATIONS_NEEDED &&
         fore->max_request_bytes >= 2 * NFS4_AROUND_DATA_BYTES &&
         fore->max_response_bytes >= 2 * NFS4_AROUND_DATA_BYTES))
        return true;
    complain(connection, "the server grants a session of too small calls; try version=4.0");
    return false;
}

static void setup_later(struct nfs4_connection *connection)
{
    loop_timer_set(connection->flow->loop, &connection->again,
                   connection->flow->loop->now_ns + RETRY_NS);
}

static void setup_reply(struct nfs4_connection *connection, struct nfs4_results *results)
{
    bool session = connection->stage == NFS4_STAGE_SESSION;
    uint32_t status = NFS4_STATUS_OK;
    enum rpc_parse parse = session ? nfs4_session_take_step(&connection->session, results, &status)
                                   : take_root(connection, results, &status);

    connection->setup_xid = 0;
    if (parse != RPC_PARSE_OK) {
        complain(connection, "malformed reply");
        stream_close(&connection->stream, 0);
    } else if (status == NFS4_STATUS_DELAY || status == NFS4_STATUS_GRACE) {
        setup_later(connection);
    } else if (status != NFS4_STATUS_OK) {
        complain_status(connection, status);
        stream_close(&connection->stream, 0);
    } else if (!session) {
        setup_done(connection);
    } else if (connection->session.step != NFS4_STEP_DONE) {
        setup_call(connection);
    } else if (!session_suffices(connection)) {
        stream_close(&connection->stream, 0);
    } else {
        connection->stage = NFS4_STAGE_ROOT;
        setup_call(connection);
    }
}

/* ---------------------------------------------------------------- replies */

/* The results behind SEQUENCE's; true when the slot's call has ended. */
static void take_results(struct nfs4_slot *slot, struct nfs4_results *results)
{
    struct nfs4_context context = context_of(slot);
    struct nfs4_done done = {.status = NFS4_STATUS_OK};
    enum rpc_parse parse =
        slot->job->prepare ? nfs4_task_take(results, &slot->task, &context, &done) : RPC_PARSE_OK;

    if (!slot->job->prepare)
        done.status = results->status;
    if (parse != RPC_PARSE_OK) {
        nfs4_opener_renew(&slot->opener);
        slot_ended(slot, NFS4_END_MALFORMED, NULL);
        return;
    }
    if (nfs4_session_lost(done.status)) {
        slot->phase = NFS4_PHASE_WHOLE;
        session_begin(slot->connection);
        slot_waits(slot);
    } else if (done.status == NFS4_STATUS_GRACE || done.status == NFS4_STATUS_BAD_SEQID ||
               (done.status == NFS4_STATUS_DELAY && slot->phase != NFS4_PHASE_WHOLE)) {
        if (done.status == NFS4_STATUS_BAD_SEQID)
            slot->phase = NFS4_PHASE_WHOLE;
        slot_waits(slot);
    } else if (done.status == NFS4_STATUS_OK && done.phase != NFS4_PHASE_WHOLE) {
        slot->phase = done.phase;
        nfs4_slot_send(slot);
    } else {
        slot_ended(slot, NFS4_END_REPLY, &done);
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
        slot_ended(slot, NFS4_END_MALFORMED, NULL);
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
            session_begin(connection);
        slot_waits(slot);
        return false;
    }
    slot_ended(slot, NFS4_END_REPLY,
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
    slot_free(slot);
    flow_pump(connection->flow);
}

static struct nfs4_slot *slot_of(struct nfs4_connection *connection, uint32_t xid)
{
    uint32_t index = xid & SLOT_MASK;

    if (index >= connection->slots_count)
        return NULL;
    struct nfs4_slot *slot = &connection->slots[index];

    if ((slot->state != NFS4_SLOT_SENT && slot->state != NFS4_SLOT_ABANDONED) ||
        (slot->uses << SLOT_BITS | index) != xid)
        return NULL;
    return slot;
}

static void call_reply(struct nfs4_slot *slot, const struct rpc_reply *rpc,
                       struct nfs4_results *results, enum rpc_parse parse)
{
    if (slot->state == NFS4_SLOT_ABANDONED) {
        take_late(slot, results);
    } else if (rpc->denied || rpc->accept != RPC_ACCEPT_SUCCESS) {
        slot_ended(slot, NFS4_END_RPC_ERROR, NULL);
    } else if (parse != RPC_PARSE_OK) {
        slot_ended(slot, NFS4_END_MALFORMED, NULL);
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
        complain(connection, "malformed RPC reply");
        stream_close(&connection->stream, 0);
        return;
    }
    if (!rpc.denied && rpc.accept == RPC_ACCEPT_SUCCESS)
        parse = nfs4_results_begin(&results, payload + rpc.body_offset, available - rpc.body_offset,
                                   whole - rpc.body_offset);
    if (connection->setup_xid && rpc.xid == connection->setup_xid) {
        if (parse == RPC_PARSE_OK) {
            setup_reply(connection, &results);
        } else {
            complain(connection, rpc.denied ? "the server denies the call"
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

static void keep_piece(struct nfs4_connection *connection, const uint8_t *data, size_t length)
{
    size_t wanted = connection->head_bytes + length;

    if (connection->head_bytes >= HEAD_BYTES && !connection->keep_whole)
        return;
    if (!connection->keep_whole && wanted > HEAD_BYTES) {
        size_t part = HEAD_BYTES - connection->head_bytes;

        memcpy(connection->head + connection->head_bytes, data, part);
        connection->head_bytes += part;
        connection->keep_whole = wants_whole(connection);
        if (!connection->keep_whole)
            return;
        data += part;
        length -= part;
    }
    if (wanted > connection->head_room) {
        connection->head_room = 2 * wanted;
        connection->head = memory_grow(connection->head, connection->head_room);
    }
    memcpy(connection->head + connection->head_bytes, data, length);
    connection->head_bytes += length;
}

static size_t took_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct nfs4_connection *connection = connection_of(stream);
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
            break;
        case RPC_RECORD_DATA:
            keep_piece(connection, event.data, event.len);
            break;
        case RPC_RECORD_END:
            take_reply(connection, connection->head, connection->head_bytes, event.total_bytes);
            break;
        case RPC_RECORD_ERROR:
            complain(connection, rpc_record_error_text(connection->decoder.error));
            stream_close(stream, 0);
            break;
        case RPC_RECORD_MORE:
        default:
            break;
        }
    }
    return used;
}

/* ---------------------------------------------------------------- life */

static void connected(struct stream *stream)
{
    struct nfs4_connection *connection = connection_of(stream);

    rpc_record_init(&connection->decoder, NULL);
    connection->setup_xid = 0;
    session_begin(connection);
}

static void connect_again(struct loop_timer *timer)
{
    struct nfs4_connection *connection =
        (void *)((char *)timer - offsetof(struct nfs4_connection, retry));
    const struct units_address *target = &connection->flow->spec.target;

    connection->stage = NFS4_STAGE_CONNECTING;
    stream_connect(&connection->stream, connection->flow->loop, (const void *)&target->address,
                   target->length, &handler);
}

static void send_again(struct loop_timer *timer)
{
    struct nfs4_connection *connection =
        (void *)((char *)timer - offsetof(struct nfs4_connection, again));

    if (connection->stream.state != STREAM_OPEN)
        return;
    if (connection->stage == NFS4_STAGE_READY)
        slots_send_waiting(connection);
    else if (!connection->setup_xid)
        setup_call(connection);
}

static bool renewal_ended(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done)
{
    (void)how;
    (void)done;
    slot_free(slot);
    flow_pump(slot->connection->flow);
    return false;
}

static const struct nfs4_job renewal_job = {.ended = renewal_ended};

static void renewal_due(struct loop_timer *timer)
{
    struct nfs4_connection *connection =
        (void *)((char *)timer - offsetof(struct nfs4_connection, renewal));
    /* In 4.1 every call renews; in 4.0 those with an anonymous stateid do not. */
    bool due = connection->session.minorversion == 0 || connection->idle;

    if (due && nfs4_connection_can_send(connection)) {
        struct nfs4_slot *slot = nfs4_slot_take(connection);

        slot->job = &renewal_job;
        nfs4_slot_send(slot);
    }
    connection->idle = true;
    loop_timer_set(connection->flow->loop, timer,
                   connection->flow->loop->now_ns + connection->renewal_ns);
}

static void closed(struct stream *stream, int error)
{
    struct nfs4_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;

    if (error && !connection->was_ready)
        complain(connection, strerror(error));
    if (connection->was_ready)
        flow->reconnects++;
    if (connection->stage == NFS4_STAGE_READY)
        connection->broke(connection);
    connection->was_ready = false;
    connection->stage = NFS4_STAGE_DOWN;
    connection->setup_xid = 0;
    stream_fini(stream);
    loop_timer_cancel(flow->loop, &connection->again);
    loop_timer_cancel(flow->loop, &connection->renewal);
    loop_timer_set(flow->loop, &connection->retry, flow->loop->now_ns + RETRY_NS);
    for (uint32_t i = 0; i < connection->slots_count; i++) {
        struct nfs4_slot *slot = &connection->slots[i];

        if (slot->state == NFS4_SLOT_ABANDONED)
            slot_free(slot);
        if (slot->state != NFS4_SLOT_SENT)
            continue;
        nfs4_opener_renew(&slot->opener);
        slot_ended(slot, NFS4_END_LOST, NULL);
    }
}

static const struct stream_handler handler = {
    .connected = connected,
    .data = took_data,
    .closed = closed,
};

void nfs4_connection_open(struct nfs4_connection *connection, const char *owner, uint64_t verifier,
                          uint32_t slots, uint32_t data_bytes)
{
    const struct flow_spec *spec = &connection->flow->spec;

    connection->retry.fire = connect_again;
    connection->again.fire = send_again;
    connection->renewal.fire = renewal_due;
    connection->renewal_ns = RENEWAL_NS;
    connection->identity = (struct rpc_identity){
        .sys = true, .uid = spec->nfs.uid, .gid = spec->nfs.gid, .machine = "spillload"};
    connection->head_room = HEAD_BYTES;
    connection->head = memory_zeroed(1, HEAD_BYTES);
    connection->slots_count = slots;
    connection->slots = memory_zeroed(slots, sizeof(*connection->slots));
    for (uint32_t i = 0; i < slots; i++)
        connection->slots[i].connection = connection;
    connection->slots_free = NO_SLOT;
    nfs4_session_init(&connection->session, spec->nfs.version == FLOW_NFS_4_1, owner, verifier,
                      slots, data_bytes);
    connect_again(&connection->retry);
}

/* Without waiting for an answer: what is not sent now, or not heard, ends with the lease. */
static void take_leave(struct nfs4_connection *connection)
{
    uint8_t buffer[2 * NFS4_CALL_MAX_BYTES];
    const struct nfs4_session *session = &connection->session;
    struct nfs4_call call;
    size_t bytes;

    if (connection->stream.state != STREAM_OPEN || connection->stream.output_bytes > 0 ||
        !session->has_id)
        return;
    nfs4_call_begin(&call, buffer, NFS4_CALL_MAX_BYTES, &connection->identity, SLOT_OF_SETUP,
                    session->minorversion);
    nfs4_put_destroy_session(&call, session->id);
    bytes = nfs4_call_end(&call);
    nfs4_call_begin(&call, buffer + bytes, NFS4_CALL_MAX_BYTES, &connection->identity,
                    1U << SLOT_BITS | SLOT_OF_SETUP, session->minorversion);
    nfs4_put_destroy_clientid(&call, session->client_id);
    bytes += nfs4_call_end(&call);
    (void)send(connection->stream.io.fd, buffer, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void nfs4_connection_close(struct nfs4_connection *connection)
{
    struct loop *loop = connection->flow->loop;

    loop_timer_cancel(loop, &connection->retry);
    loop_timer_cancel(loop, &connection->again);
    loop_timer_cancel(loop, &connection->renewal);
    take_leave(connection);
    stream_fini(&connection->stream);
    nfs4_session_fini(&connection->session);
    free(connection->slots);
    free(connection->head);
}
