/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: heads written anew for the client, bodies relayed, and what a server may do wrong. */
#include "proxy/http/internal.h"

#include "proxy/control/log.h"

#include <string.h>

#define HEAD_ROOM_BYTES 512 /* for the fields we add */

#define INTERIMS_MAX 1000 /* 1xx before the final reply; they are a courtesy, not a stream */

static const struct http1_limits reply_limits = {.request_line_bytes = 16 << 10,
                                                 .head_bytes = 128 << 10};

static void bad_reply(struct http_upstream *upstream, const char *reason)
{
    static struct log_limit limit;

    log_limited(&limit, loop_now_ns(upstream->conn.loop), CONFIG_LOG_WARNING,
                "pool %s: server %s: bad reply: %s", upstream->server->pool->name,
                upstream->server->name, reason);
    http_exchange_fail(upstream->exchange, 502, "The server's answer was not valid HTTP.",
                       "bad-reply");
}

static struct http1_reply_plan write_head(struct http_upstream *upstream,
                                          const struct http1_head *head,
                                          const struct http1_forward_reply *how)
{
    struct http_exchange *exchange = upstream->exchange;
    struct loop *loop = upstream->conn.loop;
    size_t room = head->head_bytes + HEAD_ROOM_BYTES + how->via.len;
    struct http1_writer writer;

    for (;;) {
        char *text = loop_scratch(loop, room);
        http1_writer_init(&writer, text, room);
        struct http1_reply_plan plan = http1_write_forward_reply(&writer, head, how);
        loop_scratch_trim(loop, text, room, writer.overflow ? 0 : http1_writer_len(&writer));
        if (!writer.overflow) {
            conn_send(&exchange->session->base.conn, text, http1_writer_len(&writer));
            return plan;
        }
        room *= 2;
    }
}

static struct http1_forward_reply how_to(const struct http_exchange *exchange)
{
    const char *via = exchange->base.pool->config->http.via;

    return (struct http1_forward_reply){
        .via = {via, strlen(via)},
        .client_minor = exchange->minor,
        .keep_alive = exchange->keep_alive && exchange->request_done &&
                      !exchange->session->base.worker->draining,
        .mark_ms = exchange->mark_ms,
    };
}

/* After a 101 both sides are a pipe; its slot is free again, for the server's work on the request
 * is done. */
static void begin_tunnel(struct http_upstream *upstream)
{
    struct http_exchange *exchange = upstream->exchange;
    struct http_session *session = exchange->session;

    exchange->upstream = NULL;
    upstream->exchange = NULL;
    upstream->tunnel = session;
    session->tunnel = upstream;
    timer_clear(&upstream->timer);
    http_exchange_end(exchange, OUTCOME_ANSWERED, "upgraded");
    session->phase = HTTP_PHASE_TUNNEL;
    http_session_arm(session);
    http_session_continue(session);
}

static void interim(struct http_upstream *upstream, const struct http1_head *head)
{
    struct http_exchange *exchange = upstream->exchange;
    struct http1_forward_reply how = how_to(exchange);

    if (++exchange->interims > INTERIMS_MAX) {
        bad_reply(upstream, "interim replies without end");
        return;
    }
    if (head->status == 101) {
        if (!exchange->wants_upgrade || !exchange->request_done) {
            bad_reply(upstream, "101 without having been asked to upgrade");
            return;
        }
        exchange->status = 101;
        cost_read_reply(&exchange->base, head);
        write_head(upstream, head, &how);
        begin_tunnel(upstream);
        return;
    }
    if (exchange->minor >= 1)
        write_head(upstream, head, &how);
}

static void keep_trailers(struct http_exchange *exchange)
{
    if (exchange->reply_body.framing != HTTP1_FRAMING_CHUNKED ||
        exchange->reply_framing != HTTP1_FRAMING_CHUNKED)
        return;
    /* The request's, if it had any, have been sent; after an early reply they will not be. */
    if (exchange->trailers == NULL)
        exchange->trailers = block_alloc(&exchange->base.loop->buffers, HTTP1_MAX_TRAILER_BYTES,
                                         &exchange->trailers_capacity);
    if (exchange->request_done)
        http1_body_keep_trailers(&exchange->reply_body, exchange->trailers,
                                 HTTP1_MAX_TRAILER_BYTES);
}

static void begin_reply(struct http_upstream *upstream, const struct http1_head *head)
{
    struct http_exchange *exchange = upstream->exchange;
    struct http1_forward_reply how = how_to(exchange);
    struct http1_reply_plan plan = write_head(upstream, head, &how);

    cost_read_reply(&exchange->base, head);
    exchange->status = head->status;
    exchange->reply_begun = true;
    exchange->reply_framing = (uint8_t)plan.framing;
    exchange->reply_keep = plan.keep_alive;
    /* An early reply leaves the server with half a request: its connection can't be used again. */
    exchange->server_keep = head->keep_alive && exchange->request_done;
    http1_body_init(&exchange->reply_body, head);
    keep_trailers(exchange);
}

static void finish(struct http_upstream *upstream, bool leftover)
{
    struct http_exchange *exchange = upstream->exchange;
    struct http_session *session = exchange->session;
    bool keep = exchange->reply_keep && exchange->request_done;
    bool reusable = exchange->server_keep && !leftover &&
                    exchange->reply_body.framing != HTTP1_FRAMING_UNTIL_CLOSE;

    if (leftover) {
        static struct log_limit limit;
        log_limited(&limit, loop_now_ns(upstream->conn.loop), CONFIG_LOG_WARNING,
                    "pool %s: server %s: bytes after the end of a reply; its connection is closed",
                    upstream->server->pool->name, upstream->server->name);
    }
    http_upstream_detach(upstream, reusable);
    http_exchange_end(exchange, OUTCOME_ANSWERED, "done");
    http_session_next(session, keep);
}

/* Passes on body bytes; true when the reply is whole. */
static bool relay_body(struct http_upstream *upstream, uint8_t *bytes, size_t length, size_t *used)
{
    struct http_exchange *exchange = upstream->exchange;
    struct conn *client = &exchange->session->base.conn;
    enum http1_body_result result =
        http_relay(upstream->conn.loop, client, &exchange->reply_body,
                   (enum http1_framing)exchange->reply_framing, bytes, length, used);

    exchange->base.bytes_out += *used;
    if (result == HTTP1_BODY_ERROR) {
        bad_reply(upstream, exchange->reply_body.error_reason);
        return false;
    }
    if (result == HTTP1_BODY_DONE)
        return true;
    if (conn_backlog(client) > HTTP_BACKLOG_BYTES) {
        conn_pause(&upstream->conn);
        http_session_arm(exchange->session);
    }
    http_upstream_arm(upstream);
    return false;
}

/* One step over the bytes: a head, or body. Returns how many were used; 0: more are needed. */
static size_t step(struct http_upstream *upstream, uint8_t *bytes, size_t length)
{
    struct http_exchange *exchange = upstream->exchange;
    struct http_worker *http = upstream->http;
    struct http1_head *head = &http->head;
    size_t used = 0;

    if (!exchange->reply_begun) {
        http1_head_init(head, http->fields, HTTP_FIELDS_MAX);
        switch (http1_parse_reply_head((char *)bytes, length, &upstream->scan, &reply_limits,
                                       (enum http1_method)exchange->method, head)) {
        case HTTP1_NEED_MORE:
            return 0;
        case HTTP1_ERROR:
            bad_reply(upstream, head->error_reason);
            return length;
        case HTTP1_OK:
            break;
        }
        upstream->scan = (struct http1_scan){0};
        exchange->base.bytes_out += head->head_bytes;
        used = head->head_bytes;
        if (head->status < 200) {
            interim(upstream, head);
            return used;
        }
        begin_reply(upstream, head);
        if (!http1_body_is_done(&exchange->reply_body) && used == length) {
            http_upstream_arm(upstream);
            return used;
        }
    }
    size_t body = 0;
    if (relay_body(upstream, bytes + used, length - used, &body))
        finish(upstream, used + body < length);
    return used + body > 0 ? used + body : length;
}

static size_t work_off(struct http_upstream *upstream, uint8_t *bytes, size_t length)
{
    size_t used = 0;

    while (used < length && conn_is_open(&upstream->conn)) {
        size_t taken = 0;
        if (upstream->exchange != NULL) {
            taken = step(upstream, bytes + used, length - used);
        } else if (upstream->tunnel != NULL) {
            struct conn *client = &upstream->tunnel->base.conn;
            conn_send(client, bytes + used, length - used);
            if (conn_backlog(client) > HTTP_BACKLOG_BYTES)
                conn_pause(&upstream->conn);
            return length;
        } else {
            /* Unsolicited bytes (RFC 9112 §9.2): whatever they are, they answer nobody. */
            http_upstream_close(upstream);
            return length;
        }
        if (taken == 0)
            break;
        used += taken;
    }
    return used;
}

void http_reply_readable(struct http_upstream *upstream, uint8_t *bytes, size_t length)
{
    struct loop *loop = upstream->conn.loop;

    upstream->reply_bytes = true;
    if (buffer_length(&upstream->input) == 0) {
        size_t used = work_off(upstream, bytes, length);
        if (used < length && conn_is_open(&upstream->conn))
            buffer_append(&loop->buffers, &upstream->input, bytes + used, length - used);
        return;
    }
    buffer_append(&loop->buffers, &upstream->input, bytes, length);
    struct buffer input = upstream->input;
    upstream->input = (struct buffer){0};
    size_t used = work_off(upstream, buffer_bytes(&input), buffer_length(&input));
    if (used < buffer_length(&input) && conn_is_open(&upstream->conn))
        buffer_append(&loop->buffers, &upstream->input, buffer_bytes(&input) + used,
                      buffer_length(&input) - used);
    loop_release_block(loop, input.data, input.capacity);
}

void http_reply_end_of_stream(struct http_upstream *upstream)
{
    struct http_exchange *exchange = upstream->exchange;

    if (upstream->tunnel != NULL) {
        struct http_session *session = upstream->tunnel;
        session->tunnel = NULL;
        upstream->tunnel = NULL;
        http_upstream_close(upstream);
        http_session_next(session, false);
        return;
    }
    if (exchange != NULL && exchange->reply_begun &&
        http1_body_eof(&exchange->reply_body) == HTTP1_BODY_DONE) {
        http_relay_end(upstream->conn.loop, &exchange->session->base.conn, &exchange->reply_body,
                       (enum http1_framing)exchange->reply_framing);
        finish(upstream, false);
        return;
    }
    http_upstream_broken(upstream, 502, "server-closed");
}
