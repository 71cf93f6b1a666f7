/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: matched by xid, looked at as far as the log and the exports need, and passed on.
 *
 * A whole record goes to the client as it is. A longer one goes piece by piece as it comes, and
 * until its end no other byte may go to that client: what other connections have for it waits
 * (STREAM, COLLECT). Calls from the server (the NFSv4.1 backchannel) are passed on like replies. A
 * record that nobody waits for is dropped: its client has gone, or the server is confused; a client
 * must never get a reply to what it did not ask on this connection.
 */
#include "proxy/nfs/internal.h"

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3.h"
#include "proxy/control/log.h"
#include "proxy/nfs/exports.h"

static struct nfs_server_conn *of_conn(struct conn *conn)
{
    return container_of(conn, struct nfs_server_conn, conn);
}

/* ------------------------------------------------------------------ whose it is */

static struct nfs_exchange *match(struct nfs_server_conn *c, uint32_t xid)
{
    struct nfs_xid_entry *entry = nfs_xid_first(&c->binding->calls, xid);

    for (; entry != NULL; entry = nfs_xid_next(entry)) {
        struct nfs_exchange *e = container_of(entry, struct nfs_exchange, entry);
        if (e->conn == c && e->begun)
            return e;
    }
    return NULL;
}

static void log_unknown(struct nfs_server_conn *c, uint32_t xid)
{
    static struct log_limit limit;

    log_limited(&limit, loop_now_ns(c->binding->nfs->loop), CONFIG_LOG_WARNING,
                "pool %s: server %s: a reply to no call (xid %08x); dropped", c->server->pool->name,
                c->server->name, xid);
}

/* ------------------------------------------------------------------ what it says */

static void learn_mount(struct nfs_exchange *e, const uint8_t *results, size_t length)
{
    struct nfs_exports *exports = e->nfs->exports;
    const struct pool *pool = e->exchange.pool->pool;
    const struct sockaddr *client = (const struct sockaddr *)&e->binding->client;
    struct mount3_reply reply;

    if (e->proc == MOUNT3_PROC_MNT && e->vers == MOUNT3_VERS && e->mount_path != NULL &&
        mount3_parse_mnt_reply(results, length, &reply) == RPC_PARSE_OK &&
        reply.status == MOUNT3_STATUS_OK)
        nfs_exports_mounted(exports, pool, client, e->mount_path, reply.handle.data,
                            reply.handle.len);
    else if (e->proc == MOUNT3_PROC_UMNT && e->mount_path != NULL)
        nfs_exports_unmounted(exports, pool, client, e->mount_path);
    else if (e->proc == MOUNT3_PROC_UMNTALL)
        nfs_exports_unmounted(exports, pool, client, NULL);
}

/* Every result but that of NULL procedures begins with a status. */
static void look_at(struct nfs_exchange *e, const uint8_t *payload, size_t length)
{
    struct rpc_reply reply;

    if (e->prog != MOUNT_PROG && !access_log_enabled())
        return;
    if (rpc_parse_reply(payload, length, &reply) != RPC_PARSE_OK || reply.denied ||
        reply.accept != RPC_ACCEPT_SUCCESS)
        return;
    const uint8_t *results = payload + reply.body_offset;
    size_t results_bytes = length - reply.body_offset;
    if (e->proc != 0 && e->args_visible && results_bytes >= 4)
        e->status = rpc_load_u32(results);
    if (e->prog == MOUNT_PROG)
        learn_mount(e, results, results_bytes);
}

/* ------------------------------------------------------------------ its end */

static void answered(struct nfs_server_conn *c, struct nfs_exchange *e, uint64_t bytes)
{
    struct nfs_session *s = e->session;

    e->exchange.bytes_out = bytes;
    nfs_call_done(e, OUTCOME_ANSWERED, "done");
    if (s != NULL)
        nfs_session_call_left(s);
    nfs_binding_settle(c->binding);
}

static void nonsense(struct nfs_server_conn *c, const char *what)
{
    static struct log_limit limit;

    log_limited(&limit, loop_now_ns(c->binding->nfs->loop), CONFIG_LOG_WARNING,
                "pool %s: server %s: %s; closed", c->server->pool->name, c->server->name, what);
    nfs_server_conn_lost(c, OUTCOME_FAILED, what);
}

/* The client does not keep up: its server connection is not read from until it has. */
static void throttle(struct nfs_server_conn *c, struct nfs_session *s)
{
    if (c->paused_for == NULL && nfs_conn_is_stalled(&s->session.conn, NFS_CLIENT_BACKLOG_BYTES)) {
        c->paused_for = s;
        conn_pause(&c->conn);
    }
}

static void watch_progress(struct nfs_server_conn *c)
{
    struct loop *loop = c->binding->nfs->loop;

    if (nfs_incoming_is_idle(&c->incoming) || c->paused_for != NULL)
        timer_clear(&c->timer);
    else
        timer_set(&loop->wheel, &c->timer, loop_now_ns(loop) + c->idle_ns);
}

/* ------------------------------------------------------------------ whole records */

static void send_whole(struct nfs_server_conn *c, struct nfs_session *s, const uint8_t *record,
                       size_t length)
{
    nfs_session_send(s, record, length);
    throttle(c, s);
}

static void pass_whole(struct nfs_server_conn *c, const uint8_t *record, size_t length)
{
    const uint8_t *payload = record + RPC_RECORD_MARK_BYTES;
    size_t payload_bytes = length - RPC_RECORD_MARK_BYTES;
    enum rpc_type type;
    uint32_t xid;

    if (!rpc_peek(payload, payload_bytes, &xid, &type)) {
        nonsense(c, "a record that is no RPC message");
        return;
    }
    if (type == RPC_TYPE_CALL) {
        if (c->binding->session != NULL)
            send_whole(c, c->binding->session, record, length);
        return;
    }
    struct nfs_exchange *e = match(c, xid);
    if (e == NULL) {
        log_unknown(c, xid);
        return;
    }
    look_at(e, payload, payload_bytes);
    if (e->session != NULL)
        send_whole(c, e->session, record, length);
    answered(c, e, payload_bytes);
}

/* ------------------------------------------------------------------ pieces */

/* False: nonsense, the connection is gone. */
static bool begin_reply(struct nfs_server_conn *c, const struct nfs_piece *piece)
{
    struct nfs_session *target = NULL;
    enum rpc_type type;
    uint32_t xid;

    c->replying = NULL;
    c->reply_bytes = 0;
    c->reply_framing = (struct nfs_framing){0};
    if (!rpc_peek(piece->bytes, piece->length, &xid, &type)) {
        nonsense(c, "a record that is no RPC message");
        return false;
    }
    if (type == RPC_TYPE_CALL) {
        target = c->binding->session;
    } else {
        struct nfs_exchange *e = match(c, xid);
        if (e == NULL) {
            log_unknown(c, xid);
        } else {
            look_at(e, piece->bytes, piece->length);
            e->replying = true;
            c->replying = e;
            target = e->session;
        }
    }
    c->reply_session = target;
    if (target == NULL)
        c->reply_mode = NFS_REPLY_DISCARD;
    else
        c->reply_mode = nfs_session_begin_stream(target, c) ? NFS_REPLY_STREAM : NFS_REPLY_COLLECT;
    return true;
}

static void deliver_collected(struct nfs_server_conn *c)
{
    struct nfs_session *s = c->reply_session;
    struct nfs_worker *nfs = c->binding->nfs;
    uint8_t mark[RPC_RECORD_MARK_BYTES];

    rpc_record_mark(mark, (uint32_t)c->reply_bytes, true);
    nfs_blocks_append(nfs, &s->after_stream, mark, sizeof(mark));
    TAILQ_CONCAT(&s->after_stream, &c->collected, link);
    if (s->streaming == NULL)
        nfs_session_end_stream(s);
    nfs_session_watch(s);
}

static void end_reply(struct nfs_server_conn *c)
{
    struct nfs_exchange *e = c->replying;

    if (c->reply_mode == NFS_REPLY_STREAM)
        nfs_session_end_stream(c->reply_session);
    else if (c->reply_mode == NFS_REPLY_COLLECT)
        deliver_collected(c);
    c->reply_mode = NFS_REPLY_NONE;
    c->reply_session = NULL;
    c->replying = NULL;
    if (e != NULL)
        answered(c, e, c->reply_bytes);
}

static void stream_piece(struct nfs_server_conn *c, const struct nfs_piece *piece)
{
    struct nfs_session *s = c->reply_session;

    nfs_framing_send(&c->reply_framing, &s->session.conn, piece->known_bytes, piece->bytes,
                     piece->length);
    nfs_session_watch(s);
    throttle(c, s);
}

static void pass_piece(struct nfs_server_conn *c, const struct nfs_piece *piece)
{
    if (piece->first && !begin_reply(c, piece))
        return;
    c->reply_bytes += piece->length;
    if (c->reply_mode == NFS_REPLY_STREAM)
        stream_piece(c, piece);
    else if (c->reply_mode == NFS_REPLY_COLLECT)
        nfs_blocks_append(c->binding->nfs, &c->collected, piece->bytes, piece->length);
    if (piece->last)
        end_reply(c);
}

void nfs_reply_resume(struct nfs_server_conn *c, struct nfs_session *s)
{
    if (c->paused_for != s)
        return;
    c->paused_for = NULL;
    conn_resume(&c->conn);
    watch_progress(c);
}

void nfs_reply_forget_session(struct nfs_server_conn *c, struct nfs_session *s)
{
    nfs_reply_resume(c, s);
    if (c->reply_session != s)
        return;
    c->reply_session = NULL;
    c->reply_mode = NFS_REPLY_DISCARD;
    nfs_blocks_clear(c->binding->nfs, &c->collected);
}

/* ------------------------------------------------------------------ bytes */

void nfs_reply_readable(struct conn *conn, uint8_t *bytes, size_t length)
{
    struct nfs_server_conn *c = of_conn(conn);
    struct nfs_piece piece;

    while (c->state == NFS_CONN_OPEN) {
        size_t used = nfs_incoming_next(&c->incoming, bytes, length, &piece);
        bytes += used;
        length -= used;
        switch (piece.type) {
        case NFS_RECORD_WHOLE:
            pass_whole(c, piece.bytes, piece.length);
            break;
        case NFS_RECORD_PIECE:
            pass_piece(c, &piece);
            break;
        case NFS_RECORD_ERROR:
            nonsense(c, rpc_record_error_text(c->incoming.decoder.error));
            return;
        case NFS_RECORD_MORE:
            watch_progress(c);
            return;
        }
    }
}
