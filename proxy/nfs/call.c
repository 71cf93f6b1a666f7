/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call's way through the proxy: read, classified, submitted, dispatched, done. See internal.h for
 * the road and for when an exchange is freed.
 *
 *   in_gate  conn   table   where it is
 *     no     no      yes    held: no room in the queue
 *     yes    no      yes    waits in the gate
 *     yes    yes     yes    is being sent or answered
 *     yes    any     no     done, or given up; the gate will release it
 *     no     any     no     done; the rest of its record is still passed on, or dropped
 */
#include "proxy/nfs/internal.h"

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/nfs4_compound.h"
#include "proxy/control/log.h"
#include "proxy/io/memory.h"
#include "proxy/nfs/exports.h"

#include <stdio.h>

/* ------------------------------------------------------------------ in a session, in a table, or
 * not */

void nfs_call_wait_bytes(struct nfs_exchange *e, int64_t added)
{
    struct nfs_session *s = e->session;

    e->waiting_bytes += (uint64_t)added;
    if (s == NULL)
        return;
    s->waiting_bytes += (uint64_t)added;
    if (s->waiting_bytes > s->read_ahead_bytes)
        nfs_session_pause(s, NFS_PAUSE_READ_AHEAD);
    else if (s->waiting_bytes <= s->read_ahead_bytes / 2)
        nfs_session_resume(s, NFS_PAUSE_READ_AHEAD);
}

void nfs_call_enter_session(struct nfs_exchange *e, struct nfs_session *s)
{
    e->session = s;
    s->waiting_bytes += e->waiting_bytes;
    TAILQ_INSERT_TAIL(&s->calls, e, session_link);
}

void nfs_call_leave_session(struct nfs_exchange *e)
{
    struct nfs_session *s = e->session;

    if (s == NULL)
        return;
    TAILQ_REMOVE(&s->calls, e, session_link);
    if (e->held)
        TAILQ_REMOVE(&s->held, e, conn_link);
    e->held = false;
    e->session = NULL;
    s->waiting_bytes -= e->waiting_bytes;
    if (s->waiting_bytes <= s->read_ahead_bytes / 2)
        nfs_session_resume(s, NFS_PAUSE_READ_AHEAD);
}

void nfs_call_forget(struct nfs_exchange *e)
{
    nfs_call_leave_session(e);
    if (e->binding != NULL)
        nfs_xid_remove(&e->binding->calls, &e->entry);
    e->binding = NULL;
}

void nfs_call_settle(struct nfs_exchange *e)
{
    if (!e->in_gate && !e->receiving && e->conn == NULL && e->binding == NULL)
        nfs_exchange_give(e->nfs, e);
}

/* ------------------------------------------------------------------ what a call is about */

/* The operation that a compound is about: the first that does more than name files. */
static const char *compound_operation(const struct nfs4_compound *compound)
{
    uint32_t count = compound->ops_seen < NFS4_OPS_KEPT ? compound->ops_seen : NFS4_OPS_KEPT;

    for (uint32_t i = 0; i < count; i++) {
        switch (compound->ops[i]) {
        case NFS4_OP_SEQUENCE:
        case NFS4_OP_PUTFH:
        case NFS4_OP_PUTROOTFH:
        case NFS4_OP_PUTPUBFH:
        case NFS4_OP_SAVEFH:
            break;
        default:
            return nfs4_op_name(compound->ops[i]);
        }
    }
    return count > 0 ? nfs4_op_name(compound->ops[count - 1]) : "COMPOUND";
}

static enum config_procedure_class class_of(enum nfs_class class)
{
    switch (class) {
    case NFS_CLASS_READ:
        return CONFIG_CLASS_READ;
    case NFS_CLASS_WRITE:
        return CONFIG_CLASS_WRITE;
    case NFS_CLASS_METADATA:
        break;
    }
    return CONFIG_CLASS_METADATA;
}

static void describe_v3(struct nfs_exchange *e, const uint8_t *args, size_t length,
                        struct nfs_facts *facts, struct rpc_slice *handle)
{
    struct nfs3_call call;

    facts->procedure_class = class_of(nfs3_proc_class(e->proc));
    if (e->proc < NFS3_PROCS)
        facts->nfs3_procedure = (int)e->proc;
    /* What can't be read is the server's to judge: whatever was seen counts. */
    if (e->args_visible && nfs3_parse_call(e->proc, args, length, &call) == RPC_PARSE_OK) {
        facts->bytes = call.cost_bytes;
        *handle = call.handle;
    }
}

static void describe_v4(struct nfs_exchange *e, const uint8_t *args, size_t length,
                        struct nfs_facts *facts, struct rpc_slice *handle)
{
    struct nfs4_compound compound;

    if (e->proc != NFS4_PROC_COMPOUND || !e->args_visible)
        return;
    if (nfs4_parse_compound(args, length, &compound) == RPC_PARSE_GARBAGE)
        return;
    e->minor = compound.minorversion;
    e->operation = compound_operation(&compound);
    facts->procedure_class = class_of(compound.class);
    facts->bytes = compound.read_bytes + compound.write_bytes;
    *handle = compound.handle;
}

static void describe_mount(struct nfs_exchange *e, const uint8_t *args, size_t length)
{
    struct rpc_slice path;

    if ((e->proc != MOUNT3_PROC_MNT && e->proc != MOUNT3_PROC_UMNT) || !e->args_visible)
        return;
    if (mount3_parse_path(args, length, &path) != RPC_PARSE_OK ||
        memchr(path.data, 0, path.len) != NULL)
        return;
    e->mount_path = memory_alloc((size_t)path.len + 1, "a path to mount");
    memcpy(e->mount_path, path.data, path.len);
    e->mount_path[path.len] = '\0';
}

static bool looks_at_exports(const struct plan_pool *pool)
{
    if (pool->only_class != NULL)
        return false;
    for (size_t i = 0; i < pool->rule_count; i++) {
        if (pool->rules[i].config->match.export_path != NULL)
            return true;
    }
    return false;
}

static void classify(struct nfs_exchange *e, struct nfs_session *s, const struct rpc_call *call,
                     const uint8_t *payload, size_t length)
{
    const struct plan_pool *pool = session_listener(&s->session)->pool;
    const uint8_t *args = payload + call->body_offset;
    size_t args_bytes = length > call->body_offset ? length - call->body_offset : 0;
    struct rpc_slice handle = {NULL, 0};
    struct nfs_facts facts = {
        .client = nfs_session_client(s),
        .uid = call->uid,
        .has_uid = call->has_ids,
        .procedure_class = CONFIG_CLASS_METADATA,
        .nfs3_procedure = -1,
    };

    e->prog = call->prog;
    e->vers = call->vers;
    e->proc = call->proc;
    e->body_offset = call->body_offset;
    e->args_visible = call->args_visible;
    e->gss = call->cred_flavour == RPC_FLAVOUR_GSS;
    if (e->prog == NFS_PROG && e->vers == NFS3_VERS)
        describe_v3(e, args, args_bytes, &facts, &handle);
    else if (e->prog == NFS_PROG && e->vers == NFS4_VERS)
        describe_v4(e, args, args_bytes, &facts, &handle);
    else if (e->prog == MOUNT_PROG)
        describe_mount(e, args, args_bytes);
    if (looks_at_exports(pool))
        facts.export_path =
            nfs_exports_find(s->nfs->exports, pool->pool, facts.client, handle.data, handle.len);
    plan_hold(pool, s->session.worker->index);
    e->exchange.lane = nfs_binding_lane(s->binding, pool->pool);
    plan_classify_nfs(pool, &facts, &e->exchange);
}

/* ------------------------------------------------------------------ records from the client */

static void count_malformed(struct nfs_session *s)
{
    meter_add(&session_meters(&s->session)->malformed, 1);
}

static void close_malformed(struct nfs_session *s, const char *why)
{
    static struct log_limit limit;
    char text[NFS_ADDRESS_TEXT_BYTES];

    count_malformed(s);
    log_limited(&limit, loop_now_ns(s->nfs->loop), CONFIG_LOG_WARNING,
                "listener %s: client %s: %s; closed", session_listener(&s->session)->config->name,
                nfs_address_text(nfs_session_client(s), text), why);
    nfs_session_close(s);
}

/* A record that is no call which could be forwarded: answered as RFC 5531 says, or the connection's
 * end. */
static void answer_malformed(struct nfs_session *s, const struct rpc_call *call,
                             enum rpc_parse result)
{
    uint8_t reply[RPC_ERROR_MAX_BYTES];
    size_t size;

    if (result == RPC_PARSE_OK) /* AUTH_TLS (RFC 9289 section 4.1): not offered here */
        size = rpc_write_auth_error(reply, sizeof(reply), call->xid, RPC_AUTH_STATUS_REJECTEDCRED);
    else
        size = rpc_write_parse_error(reply, sizeof(reply), call->xid, result);
    if (result != RPC_PARSE_OK)
        count_malformed(s);
    nfs_session_send_copy(s, reply, size);
}

/* What a listener is for: NFS, MOUNT and NFSACL. True when the call was answered because it is for
 * another program or version. */
static bool answer_unserved(struct nfs_session *s, const struct rpc_call *call)
{
    uint8_t reply[RPC_ERROR_MAX_BYTES];
    size_t size;

    if (call->prog == MOUNT_PROG || call->prog == NFSACL_PROG)
        return false;
    if (call->prog != NFS_PROG)
        size = rpc_write_accept_error(reply, sizeof(reply), call->xid, RPC_ACCEPT_PROG_UNAVAIL);
    else if (call->vers < NFS3_VERS || call->vers > NFS4_VERS)
        size = rpc_write_prog_mismatch(reply, sizeof(reply), call->xid, NFS3_VERS, NFS4_VERS);
    else
        return false;
    nfs_session_send_copy(s, reply, size);
    return true;
}

static struct nfs_exchange *begin_backchannel(struct nfs_session *s)
{
    struct nfs_exchange *e = nfs_exchange_take(s->nfs, loop_now_ns(s->nfs->loop));

    e->backchannel = true;
    return e;
}

/* The exchange for a record that begins like this; NULL: it needs none, or the session has ended.
 */
static struct nfs_exchange *begin(struct nfs_session *s, const uint8_t *payload, size_t length)
{
    struct rpc_call call;
    enum rpc_parse result = rpc_parse_call(payload, length, &call);

    if (result == RPC_PARSE_NOT_EXPECTED && rpc_load_u32(payload + 4) == RPC_TYPE_REPLY)
        return begin_backchannel(s);
    if (result == RPC_PARSE_NOT_EXPECTED || length < 8) {
        close_malformed(s, "a record that is no RPC message");
        return NULL;
    }
    if (result != RPC_PARSE_OK || call.cred_flavour == RPC_FLAVOUR_TLS) {
        answer_malformed(s, &call, result);
        return NULL;
    }
    if (answer_unserved(s, &call))
        return NULL;
    uint64_t checksum = nfs_xid_checksum(payload, length);
    switch (nfs_binding_find_duplicate(s, call.xid, checksum)) {
    case NFS_DUPLICATE_ATTACHED:
        return NULL;
    case NFS_DUPLICATE_EXCESS:
        close_malformed(s, "too many calls in flight with the same xid");
        return NULL;
    case NFS_DUPLICATE_NONE:
        break;
    }
    struct nfs_exchange *e = nfs_exchange_take(s->nfs, loop_now_ns(s->nfs->loop));
    e->entry.xid = call.xid;
    e->entry.checksum = checksum;
    classify(e, s, &call, payload, length);
    e->binding = s->binding;
    nfs_xid_insert(&s->binding->calls, &e->entry);
    nfs_call_enter_session(e, s);
    return e;
}

static void go(struct nfs_session *s, struct nfs_exchange *e)
{
    if (e->backchannel) {
        nfs_server_conn_send_backchannel(s->binding, e);
        return;
    }
    e->in_gate = true;
    gate_submit(&e->exchange);
}

void nfs_call_whole(struct nfs_session *s, uint8_t *record, size_t length)
{
    size_t payload_bytes = length - RPC_RECORD_MARK_BYTES;
    struct nfs_exchange *e = begin(s, record + RPC_RECORD_MARK_BYTES, payload_bytes);

    if (e == NULL)
        return;
    e->marked = true;
    e->complete = true;
    e->known_bytes = payload_bytes;
    e->exchange.bytes_in = payload_bytes;
    nfs_arena_enter(s->nfs, e, record, length);
    nfs_call_wait_bytes(e, (int64_t)length);
    go(s, e);
}

void nfs_call_first_piece(struct nfs_session *s, const struct nfs_piece *piece)
{
    struct nfs_exchange *e = begin(s, piece->bytes, piece->length);

    if (e == NULL)
        return;
    e->complete = piece->last;
    e->receiving = !piece->last;
    e->known_bytes = piece->known_bytes;
    e->exchange.bytes_in = piece->length;
    if (e->receiving)
        s->receiving = e;
    nfs_arena_enter(s->nfs, e, piece->bytes, piece->length);
    nfs_call_wait_bytes(e, (int64_t)piece->length);
    go(s, e);
}

/* Behind what waits of the exchange already. */
static void keep_piece(struct nfs_exchange *e, const struct nfs_piece *piece)
{
    if (e->arena != NULL && e->arena + e->arena_bytes == piece->bytes) {
        e->arena_bytes += piece->length;
    } else {
        if (e->arena != NULL)
            nfs_arena_copy(e->nfs, e);
        nfs_blocks_append(e->nfs, &e->blocks, piece->bytes, piece->length);
    }
    nfs_call_wait_bytes(e, (int64_t)piece->length);
}

void nfs_call_next_piece(struct nfs_session *s, const struct nfs_piece *piece)
{
    struct nfs_exchange *e = s->receiving;

    if (e == NULL)
        return;
    e->known_bytes = piece->known_bytes;
    e->exchange.bytes_in += piece->length;
    if (piece->last) {
        e->complete = true;
        e->receiving = false;
        s->receiving = NULL;
    }
    /* Of a call that was refused the rest is dropped; one that the server has begun to get must get
     * all of it. */
    bool wanted = !e->done || e->conn != NULL;
    if (wanted &&
        (e->conn == NULL || !nfs_server_conn_pass(e->conn, e, piece->bytes, piece->length)))
        keep_piece(e, piece);
    if (e->conn != NULL)
        nfs_server_conn_pump(e->conn);
    else
        nfs_call_settle(e);
}

/* ------------------------------------------------------------------ the gate's word */

void nfs_call_dispatched(struct exchange *exchange)
{
    struct nfs_exchange *e = container_of(exchange, struct nfs_exchange, exchange);

    nfs_server_conn_send(e->binding, e);
}

void nfs_call_released(struct exchange *exchange)
{
    struct nfs_exchange *e = container_of(exchange, struct nfs_exchange, exchange);

    e->in_gate = false;
    nfs_call_settle(e);
}

/* ------------------------------------------------------------------ its end */

static uint64_t true_cost(const struct nfs_exchange *e, enum outcome outcome)
{
    const struct config_cost *cost = &e->exchange.pool->config->cost;

    if (outcome == OUTCOME_ANSWERED)
        return cost_settle(&e->exchange, outcome);
    if (!e->begun)
        return 0;
    /* What moved says little about a call without a reply: the server may have done all of it. The
     * time it took is known. */
    return cost->by == CONFIG_COST_SERVICE_TIME ? cost_settle(&e->exchange, outcome)
                                                : e->exchange.cost;
}

void nfs_call_done(struct nfs_exchange *e, enum outcome outcome, const char *end)
{
    struct nfs_server_conn *c = e->conn;

    gate_finish(&e->exchange, outcome, true_cost(e, outcome));
    nfs_call_log(e, end);
    nfs_call_forget(e);
    e->done = true;
    if (c != NULL && (!e->begun || e != c->unsent))
        nfs_server_conn_remove(c, e);
}

void nfs_call_abandon(struct nfs_exchange *e)
{
    struct nfs_server_conn *c = e->conn;
    bool cut = e->receiving;

    if (e->receiving)
        e->session->receiving = NULL;
    e->receiving = false;
    if (c == NULL) {
        if (e->in_gate && gate_cancel(&e->exchange))
            e->in_gate = false;
        nfs_call_log(e, "client-gone");
        nfs_call_forget(e);
        e->done = true;
        nfs_call_settle(e);
    } else if (!e->begun) {
        nfs_call_done(e, OUTCOME_ABORTED, "client-gone");
    } else {
        nfs_call_leave_session(e);
        if (cut)
            nfs_server_conn_lost(c, OUTCOME_ABORTED,
                                 "the client went away in the middle of a call");
    }
}

/* ------------------------------------------------------------------ the access log */

static const char *protocol_text(const struct nfs_exchange *e, char *text, size_t size)
{
    if (e->prog == NFS_PROG && e->vers == NFS4_VERS)
        snprintf(text, size, "NFSv4.%u", e->minor);
    else
        snprintf(text, size, "%sv%u",
                 e->prog == NFS_PROG     ? "NFS"
                 : e->prog == MOUNT_PROG ? "MOUNT"
                                         : "NFSACL",
                 e->vers);
    return text;
}

static const char *operation_name(const struct nfs_exchange *e)
{
    if (e->operation != NULL)
        return e->operation;
    if (e->prog == NFS_PROG && e->vers == NFS3_VERS)
        return nfs3_proc_name(e->proc);
    if (e->prog == NFS_PROG && e->vers == NFS4_VERS)
        return e->proc == NFS4_PROC_NULL ? "NULL" : "COMPOUND";
    if (e->prog == MOUNT_PROG)
        return mount3_proc_name(e->proc);
    if (e->prog == NFSACL_PROG)
        return nfsacl_proc_name(e->vers, e->proc);
    return NULL;
}

void nfs_call_log(const struct nfs_exchange *e, const char *end)
{
    const struct exchange *exchange = &e->exchange;
    struct worker *worker = e->nfs->worker;
    uint64_t now_ns = loop_now_ns(e->nfs->loop);
    bool sent = exchange->dispatched_ns != 0;
    char protocol[24];

    if (!access_log_enabled() || worker->access == NULL || e->binding == NULL)
        return;
    const char *operation = operation_name(e);
    struct access_record record = {
        .client = (const struct sockaddr *)&e->binding->client,
        .listener = worker->plan->listeners[e->binding->listener].config->name,
        .pool = exchange->pool->pool->name,
        .flow = exchange->class->name,
        .server = sent && exchange->server != NULL ? exchange->server->name : NULL,
        .protocol = protocol_text(e, protocol, sizeof(protocol)),
        .operation = operation,
        .operation_length = operation != NULL ? strlen(operation) : 0,
        .status = e->status,
        .bytes_in = exchange->bytes_in,
        .bytes_out = exchange->bytes_out,
        .wait_ns = exchange_wait_ns(exchange, now_ns),
        .service_ns = exchange_service_ns(exchange, now_ns),
        .total_ns = now_ns - exchange->arrived_ns,
        .end = end,
    };
    access_log_write(worker->access, &record, now_ns);
}
