/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of NFSv4 flows: see nfs4_connection.h. */
#include "loadgen/client/nfs4/nfs4_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loadgen/base/memory.h"

#define RENEWAL_NS     20000000000ULL /* until the server has told its lease */
#define NO_SLOT        UINT32_MAX
#define MILLISECOND_NS 1000000ULL

static const struct stream_handler handler;

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
void nfs4_complain(struct nfs4_connection *connection, const char *why)
{
    if (!*connection->complained)
        fprintf(stderr, "spillload: flow %s: %s: %s\n", connection->flow->spec.name,
                nfs4_connection_stage(connection), why);
    *connection->complained = true;
}

void nfs4_complain_status(struct nfs4_connection *connection, uint32_t status)
{
    const char *name = nfs4_status_name(status);
    char why[64];

    snprintf(why, sizeof(why), "the server says NFS4ERR_%s (%u)", name ? name : "?", status);
    nfs4_complain(connection, why);
}

/* ---------------------------------------------------------------- slots */

void nfs4_slot_release(struct nfs4_slot *slot)
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
void nfs4_slots_limit(struct nfs4_connection *connection, uint32_t usable)
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

struct nfs4_context nfs4_slot_context(struct nfs4_slot *slot)
{
    const struct nfs4_connection *connection = slot->connection;

    return (struct nfs4_context){.minorversion = connection->session.minorversion,
                                 .client_id = connection->session.client_id,
                                 .slot = (uint32_t)(slot - connection->slots),
                                 .phase = slot->phase,
                                 .opener = &slot->opener};
}

void nfs4_slot_waits(struct nfs4_slot *slot)
{
    struct nfs4_connection *connection = slot->connection;

    slot->state = NFS4_SLOT_WAITING;
    if (connection->stage == NFS4_STAGE_READY)
        loop_timer_set(connection->loop, &connection->again,
                       connection->loop->now_ns + NFS4_RETRY_NS);
}

void nfs4_slot_send(struct nfs4_slot *slot)
{
    struct nfs4_connection *connection = slot->connection;
    struct stream *stream = &connection->stream;
    struct nfs4_context context = nfs4_slot_context(slot);
    struct nfs4_call call;

    if (connection->stage != NFS4_STAGE_READY || stream->state != STREAM_OPEN) {
        nfs4_slot_waits(slot);
        return;
    }
    slot->state = NFS4_SLOT_SENT;
    slot->epoch = connection->epoch;
    connection->idle = false;
    if (slot->job->prepare)
        slot->job->prepare(slot);
    nfs4_call_begin(&call, stream_reserve(stream, NFS4_CALL_MAX_BYTES), NFS4_CALL_MAX_BYTES,
                    &connection->identity, slot->uses << NFS4_SLOT_BITS | context.slot,
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

void nfs4_slots_send_waiting(struct nfs4_connection *connection)
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
        nfs4_slot_release(slot);
        return;
    }
    slot->state = NFS4_SLOT_ABANDONED;
    connection->abandoned++;
    /* A session all of whose slots wait for nothing is of no use any more. */
    if (connection->abandoned >= connection->slots_usable)
        stream_close(&connection->stream, ETIMEDOUT);
}

void nfs4_slot_ended(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done)
{
    if (!slot->job->ended(slot, how, done))
        return;
    slot->phase = NFS4_PHASE_WHOLE;
    nfs4_slot_send(slot);
}

/* ---------------------------------------------------------------- life */

static void connected(struct stream *stream)
{
    struct nfs4_connection *connection = nfs4_connection_of(stream);

    rpc_record_init(&connection->decoder, NULL);
    connection->setup_xid = 0;
    nfs4_setup_begin(connection);
}

static void connect_again(struct loop_timer *timer)
{
    struct nfs4_connection *connection =
        (void *)((char *)timer - offsetof(struct nfs4_connection, retry));
    const struct units_address *target = &connection->flow->spec.target;

    connection->stage = NFS4_STAGE_CONNECTING;
    stream_connect(&connection->stream, connection->loop, (const void *)&target->address,
                   target->length, &handler);
}

static void send_again(struct loop_timer *timer)
{
    struct nfs4_connection *connection =
        (void *)((char *)timer - offsetof(struct nfs4_connection, again));

    if (connection->stream.state != STREAM_OPEN)
        return;
    if (connection->stage == NFS4_STAGE_READY)
        nfs4_slots_send_waiting(connection);
    else if (!connection->setup_xid)
        nfs4_setup_call(connection);
}

static bool renewal_ended(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done)
{
    (void)how;
    (void)done;
    nfs4_slot_release(slot);
    slot->connection->slot_freed(slot->connection);
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
    loop_timer_set(connection->loop, timer, connection->loop->now_ns + connection->renewal_ns);
}

static void closed(struct stream *stream, int error)
{
    struct nfs4_connection *connection = nfs4_connection_of(stream);
    struct flow *flow = connection->flow;

    if (error && !connection->was_ready)
        nfs4_complain(connection, strerror(error));
    if (connection->was_ready)
        flow->reconnects++;
    if (connection->stage == NFS4_STAGE_READY)
        connection->broke(connection);
    connection->was_ready = false;
    connection->stage = NFS4_STAGE_DOWN;
    connection->setup_xid = 0;
    stream_fini(stream);
    loop_timer_cancel(connection->loop, &connection->again);
    loop_timer_cancel(connection->loop, &connection->renewal);
    loop_timer_set(connection->loop, &connection->retry, connection->loop->now_ns + NFS4_RETRY_NS);
    for (uint32_t i = 0; i < connection->slots_count; i++) {
        struct nfs4_slot *slot = &connection->slots[i];

        if (slot->state == NFS4_SLOT_ABANDONED)
            nfs4_slot_release(slot);
        if (slot->state != NFS4_SLOT_SENT)
            continue;
        nfs4_opener_renew(&slot->opener);
        nfs4_slot_ended(slot, NFS4_END_LOST, NULL);
    }
}

static const struct stream_handler handler = {
    .connected = connected,
    .data = nfs4_took_data,
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
    connection->head_room = NFS4_HEAD_BYTES;
    connection->head = memory_zeroed(1, NFS4_HEAD_BYTES);
    connection->slots_count = slots;
    connection->slots = memory_zeroed(slots, sizeof(*connection->slots));
    for (uint32_t i = 0; i < slots; i++)
        connection->slots[i].connection = connection;
    connection->slots_free = NO_SLOT;
    nfs4_session_init(&connection->session, spec->nfs.version == FLOW_NFS_4_1, owner, verifier,
                      slots, data_bytes);
    connect_again(&connection->retry);
}

/* Whether the reply to `xid` came in time; other replies have nobody to go to any more. */
static bool await_reply(struct nfs4_connection *connection, uint32_t xid, uint64_t deadline_ns)
{
    struct pollfd waiting = {.fd = connection->stream.io.fd, .events = POLLIN};
    uint8_t buffer[4096];

    for (uint64_t now_ns = loop_clock_ns(); now_ns < deadline_ns; now_ns = loop_clock_ns()) {
        struct rpc_record_event event = {.type = RPC_RECORD_BEGIN};
        enum rpc_type type;
        uint32_t found;

        if (poll(&waiting, 1, (int)((deadline_ns - now_ns) / MILLISECOND_NS) + 1) <= 0)
            continue;
        ssize_t received = recv(waiting.fd, buffer, sizeof(buffer), MSG_DONTWAIT);
        size_t used = 0;

        if (received <= 0)
            return false;
        while (event.type != RPC_RECORD_MORE && event.type != RPC_RECORD_ERROR) {
            used += rpc_record_next(&connection->decoder, buffer + used, (size_t)received - used,
                                    &event);
            if (event.type == RPC_RECORD_WHOLE &&
                rpc_peek(event.data + RPC_RECORD_MARK_BYTES, event.len - RPC_RECORD_MARK_BYTES,
                         &found, &type) &&
                found == xid)
                return true;
        }
    }
    return false;
}

/* Ends session and client, so that the server need not keep them until their lease is over. */
static void take_leave(struct nfs4_connection *connection, uint64_t deadline_ns)
{
    uint8_t buffer[NFS4_CALL_MAX_BYTES];
    const struct nfs4_session *session = &connection->session;

    if (connection->stream.state != STREAM_OPEN || connection->stream.output_bytes > 0 ||
        !session->has_id)
        return;
    for (int step = 0; step < 2; step++) {
        uint32_t xid = ++connection->setup_uses << NFS4_SLOT_BITS | NFS4_SLOT_OF_SETUP;
        struct nfs4_call call;

        nfs4_call_begin(&call, buffer, sizeof(buffer), &connection->identity, xid,
                        session->minorversion);
        if (step == 0)
            nfs4_put_destroy_session(&call, session->id);
        else
            nfs4_put_destroy_clientid(&call, session->client_id);
        size_t bytes = nfs4_call_end(&call);

        if (send(connection->stream.io.fd, buffer, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) !=
                (ssize_t)bytes ||
            !await_reply(connection, xid, deadline_ns))
            return;
    }
}

void nfs4_connection_close(struct nfs4_connection *connection, uint64_t deadline_ns)
{
    struct loop *loop = connection->loop;

    loop_timer_cancel(loop, &connection->retry);
    loop_timer_cancel(loop, &connection->again);
    loop_timer_cancel(loop, &connection->renewal);
    take_leave(connection, deadline_ns);
    stream_fini(&connection->stream);
    nfs4_session_fini(&connection->session);
    free(connection->slots);
    free(connection->head);
}
