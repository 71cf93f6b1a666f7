/* SPDX-License-Identifier: Apache-2.0 */
/* Setting connections up: the session's steps, then the export and what there is to know of it. */
#include <string.h>

#include "loadgen/client/nfs4/nfs4_private.h"

#define SECOND_NS         1000000000ULL
#define RENEWALS          3 /* in one lease */
#define OPERATIONS_NEEDED 8

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

void nfs4_setup_call(struct nfs4_connection *connection)
{
    struct stream *stream = &connection->stream;
    struct nfs4_call call;

    connection->setup_xid = ++connection->setup_uses << NFS4_SLOT_BITS | NFS4_SLOT_OF_SETUP;
    nfs4_call_begin(&call, stream_reserve(stream, NFS4_CALL_MAX_BYTES), NFS4_CALL_MAX_BYTES,
                    &connection->identity, connection->setup_xid, connection->session.minorversion);
    if (connection->stage == NFS4_STAGE_SESSION)
        nfs4_session_put_step(&connection->session, &call);
    else
        put_root(connection, &call);
    stream_commit(stream, nfs4_call_end(&call));
}

/* The server does not know the session (any more), or there is none yet. */
void nfs4_setup_begin(struct nfs4_connection *connection)
{
    if (connection->stage == NFS4_STAGE_SESSION && connection->setup_xid)
        return;
    if (connection->stage == NFS4_STAGE_READY)
        connection->broke(connection);
    connection->stage = NFS4_STAGE_SESSION;
    connection->epoch++;
    nfs4_session_begin(&connection->session);
    nfs4_setup_call(connection);
}

static void setup_done(struct nfs4_connection *connection)
{
    struct loop *loop = connection->loop;

    connection->stage = NFS4_STAGE_READY;
    connection->was_ready = true;
    for (uint32_t i = 0; i < connection->slots_count; i++) {
        if (connection->slots[i].state == NFS4_SLOT_ABANDONED)
            nfs4_slot_release(&connection->slots[i]);
    }
    nfs4_slots_limit(connection, nfs4_session_slots(&connection->session));
    loop_timer_set(loop, &connection->renewal, loop->now_ns + connection->renewal_ns);
    nfs4_slots_send_waiting(connection);
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
    nfs4_complain(connection, "the server grants a session of too small calls; try version=4.0");
    return false;
}

static void setup_later(struct nfs4_connection *connection)
{
    loop_timer_set(connection->loop, &connection->again, connection->loop->now_ns + NFS4_RETRY_NS);
}

void nfs4_setup_reply(struct nfs4_connection *connection, struct nfs4_results *results)
{
    bool session = connection->stage == NFS4_STAGE_SESSION;
    uint32_t status = NFS4_STATUS_OK;
    enum rpc_parse parse = session ? nfs4_session_take_step(&connection->session, results, &status)
                                   : take_root(connection, results, &status);

    connection->setup_xid = 0;
    if (parse != RPC_PARSE_OK) {
        nfs4_complain(connection, "malformed reply");
        stream_close(&connection->stream, 0);
    } else if (status == NFS4_STATUS_DELAY || status == NFS4_STATUS_GRACE) {
        setup_later(connection);
    } else if (status != NFS4_STATUS_OK) {
        nfs4_complain_status(connection, status);
        stream_close(&connection->stream, 0);
    } else if (!session) {
        setup_done(connection);
    } else if (connection->session.step != NFS4_STEP_DONE) {
        nfs4_setup_call(connection);
    } else if (!session_suffices(connection)) {
        stream_close(&connection->stream, 0);
    } else {
        connection->stage = NFS4_STAGE_ROOT;
        nfs4_setup_call(connection);
    }
}
