/* SPDX-License-Identifier: Apache-2.0 */
/* Client connections of HTTP: phases, input, time limits, closing. See internal.h for the picture.
 */
#include "proxy/http/internal.h"

#include "proxy/control/log.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

static const struct conn_ops client_ops;

/* ------------------------------------------------------------------ time limits */

/* Output stands, or would if we did not hold back the server. */
static bool waits_for_client(const struct http_session *session)
{
    const struct http_exchange *exchange = session->exchange;

    return session->base.conn.blocked ||
           (exchange != NULL && exchange->upstream != NULL && exchange->upstream->conn.paused);
}

static uint64_t next_look_ns(const struct http_session *session, uint64_t now_ns)
{
    uint64_t look_ns = now_ns + HTTP_LOOK_NS;

    return look_ns < session->body_deadline_ns ? look_ns : session->body_deadline_ns;
}

void http_session_arm(struct http_session *session)
{
    struct loop *loop = loop_of(session);
    uint64_t now_ns = loop_now_ns(loop);
    const struct config_client_timeouts *limits =
        &session_listener(&session->base)->config->timeouts;
    uint64_t deadline_ns = 0;

    if (waits_for_client(session) && session->phase != HTTP_PHASE_LINGER) {
        deadline_ns = now_ns + limits->client_idle_ns;
        session->sent_mark = session->base.conn.sent_bytes;
    } else {
        switch ((enum http_phase)session->phase) {
        case HTTP_PHASE_IDLE:
            if (!http_is_paused(session))
                deadline_ns = now_ns + limits->keep_alive_ns;
            break;
        case HTTP_PHASE_HEAD:
            deadline_ns = session->head_began_ns + limits->header_ns;
            break;
        case HTTP_PHASE_EXCHANGE:
            if (session->exchange != NULL && !session->exchange->request_done &&
                session->exchange->upstream != NULL) {
                session->body_deadline_ns = now_ns + limits->body_idle_ns;
                deadline_ns = next_look_ns(session, now_ns);
            }
            break;
        case HTTP_PHASE_TUNNEL:
            break;
        case HTTP_PHASE_LINGER:
            deadline_ns = now_ns + HTTP_LINGER_NS;
            break;
        }
    }
    if (deadline_ns != 0)
        timer_set(&loop->wheel, &session->timer, deadline_ns);
    else
        timer_clear(&session->timer);
}

static void on_timeout(struct timer *timer, uint64_t now_ns)
{
    struct http_session *session = container_of(timer, struct http_session, timer);

    if (waits_for_client(session) && session->phase != HTTP_PHASE_LINGER) {
        if (session->base.conn.sent_bytes != session->sent_mark) {
            http_session_arm(session);
            return;
        }
        if (session->exchange != NULL)
            http_exchange_abandon(session, "client-timeout");
        http_session_close(session, true);
        return;
    }
    switch ((enum http_phase)session->phase) {
    case HTTP_PHASE_HEAD:
        http_session_error(session, 408, "The request did not arrive in time.", false, NULL);
        break;
    case HTTP_PHASE_EXCHANGE:
        if (now_ns < session->body_deadline_ns) {
            if (!conn_was_reset(&session->base.conn))
                timer_set(&loop_of(session)->wheel, timer, next_look_ns(session, now_ns));
        } else if (session->exchange->reply_begun) {
            http_exchange_abandon(session, "body-timeout");
            http_session_close(session, true);
        } else {
            http_exchange_fail(session->exchange, 408, "The request's body did not arrive in time.",
                               "body-timeout");
        }
        break;
    case HTTP_PHASE_IDLE:
    case HTTP_PHASE_TUNNEL:
    case HTTP_PHASE_LINGER:
        http_session_close(session, false);
        break;
    }
}

/* ------------------------------------------------------------------ ends */

static void release(struct deferred *deferred)
{
    struct http_session *session = container_of(deferred, struct http_session, base.deferred);

    block_free(&loop_of(session)->buffers, session, sizeof(*session));
}

void http_session_close(struct http_session *session, bool reset)
{
    struct loop *loop = loop_of(session);

    if (reset && conn_is_open(&session->base.conn)) {
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        setsockopt(session->base.conn.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
    if (session->tunnel != NULL) {
        session->tunnel->tunnel = NULL;
        http_upstream_close(session->tunnel);
        session->tunnel = NULL;
    }
    timer_unlink(&session->timer);
    alarm_clear(loop, &session->pause);
    loop_release_block(loop, session->input.data, session->input.capacity);
    session->input = (struct buffer){0};
    session_close(&session->base, release);
}

static void linger(struct http_session *session)
{
    struct loop *loop = loop_of(session);

    session->phase = HTTP_PHASE_LINGER;
    loop_release_block(loop, session->input.data, session->input.capacity);
    session->input = (struct buffer){0};
    conn_shutdown(&session->base.conn);
    if (session->client_done) {
        /* Nothing is left to read; the timer closes if the client does not take the rest. */
        session->base.conn.paused = true;
    } else {
        conn_resume(&session->base.conn);
    }
    http_session_arm(session);
}

void http_session_next(struct http_session *session, bool keep)
{
    session->exchange = NULL;
    if (!keep || session->base.worker->draining) {
        linger(session);
        return;
    }
    session->phase = HTTP_PHASE_IDLE;
    session->scan = (struct http1_scan){0};
    if (http_pause_begin(session))
        return;
    conn_resume(&session->base.conn);
    if (buffer_length(&session->input) > 0)
        http_session_continue(session);
    else if (http_has_said_all(session))
        linger(session);
    else
        http_session_arm(session);
}

void http_session_error(struct http_session *session, unsigned status, const char *explanation,
                        bool keep, const struct http1_error_reply *like)
{
    struct loop *loop = loop_of(session);
    struct http1_writer writer;
    struct http1_error_reply reply =
        like != NULL ? *like : (struct http1_error_reply){.client_minor = 1};
    size_t room = 1024;
    char *text = loop_scratch(loop, room);

    reply.status = (uint16_t)status;
    reply.close = !keep;
    reply.explanation = explanation;
    http1_writer_init(&writer, text, room);
    http1_write_error_reply(&writer, &reply);
    conn_send(&session->base.conn, text, http1_writer_len(&writer));
    http_session_next(session, keep);
}

/* ------------------------------------------------------------------ input */

static void reject(struct http_session *session, const struct http1_head *head)
{
    static struct log_limit limit;

    meter_add(&session_meters(&session->base)->malformed, 1);
    log_limited(&limit, loop_now_ns(loop_of(session)), CONFIG_LOG_INFO,
                "listener %s: client %s: %u: %s", session_listener(&session->base)->config->name,
                session->address, head->error_status, head->error_reason);
    http_session_error(session, head->error_status, head->error_reason, false, NULL);
}

/* Returns the bytes used: 0 when the head is not whole yet. */
static size_t parse_head(struct http_session *session, uint8_t *bytes, size_t length)
{
    struct http_worker *http = http_of(session);
    const struct config_limits *limits = &session_listener(&session->base)->config->limits;
    struct http1_limits parser_limits = {.request_line_bytes = limits->request_line_bytes,
                                         .head_bytes = limits->header_bytes};
    uint32_t fields =
        limits->header_fields < HTTP_FIELDS_MAX ? limits->header_fields : HTTP_FIELDS_MAX;

    http1_head_init(&http->head, http->fields, (uint16_t)fields);
    switch (http1_parse_request_head((char *)bytes, length, &session->scan, &parser_limits,
                                     &http->head)) {
    case HTTP1_OK:
        session->scan = (struct http1_scan){0};
        http_request_begin(session, &http->head);
        return http->head.head_bytes;
    case HTTP1_ERROR:
        reject(session, &http->head);
        return length;
    case HTTP1_NEED_MORE:
        break;
    }
    if (session->phase == HTTP_PHASE_IDLE) {
        session->phase = HTTP_PHASE_HEAD;
        session->head_began_ns = loop_now_ns(loop_of(session));
        http_session_arm(session);
    }
    return 0;
}

/* Works off what it can of the bytes; returns how many that were. */
static size_t work_off(struct http_session *session, uint8_t *bytes, size_t length)
{
    size_t used = 0;

    session->working = true;
    while (used < length && !http_is_paused(session)) {
        size_t step = 0;
        if (session->phase == HTTP_PHASE_IDLE || session->phase == HTTP_PHASE_HEAD) {
            step = parse_head(session, bytes + used, length - used);
        } else if (session->phase == HTTP_PHASE_TUNNEL) {
            conn_send(&session->tunnel->conn, bytes + used, length - used);
            if (conn_backlog(&session->tunnel->conn) > HTTP_BACKLOG_BYTES)
                conn_pause(&session->base.conn);
            step = length - used;
        } else if (session->phase == HTTP_PHASE_LINGER) {
            step = length - used;
        } else if (!session->exchange->request_done && session->exchange->upstream != NULL &&
                   !session->exchange->upstream->conn.connecting) {
            step = http_request_body(session->exchange, bytes + used, length - used);
        }
        if (step == 0)
            break;
        used += step;
    }
    session->working = false;
    return used;
}

/* What may stand in `input` while it can't be worked off: the longest head, and as much of a body.
 */
static bool input_is_full(const struct http_session *session)
{
    return buffer_length(&session->input) >=
           session_listener(&session->base)->config->limits.header_bytes;
}

void http_session_continue(struct http_session *session)
{
    struct loop *loop = loop_of(session);
    struct buffer input = session->input;

    if (http_is_paused(session))
        return;
    if (buffer_length(&input) > 0) {
        /* Queued output may refer to these bytes, so what is left moves to a buffer of its own. */
        session->input = (struct buffer){0};
        size_t used = work_off(session, buffer_bytes(&input), buffer_length(&input));
        if (conn_is_open(&session->base.conn) && session->phase != HTTP_PHASE_LINGER)
            buffer_append(&loop->buffers, &session->input, buffer_bytes(&input) + used,
                          buffer_length(&input) - used);
        loop_release_block(loop, input.data, input.capacity);
    }
    if (!conn_is_open(&session->base.conn) || http_is_paused(session))
        return;
    if (input_is_full(session) && session->phase == HTTP_PHASE_EXCHANGE)
        conn_pause(&session->base.conn);
    else if (session->exchange == NULL || session->exchange->upstream == NULL ||
             conn_backlog(&session->exchange->upstream->conn) <= HTTP_BACKLOG_BYTES)
        conn_resume(&session->base.conn);
    if (session->client_done && session->phase != HTTP_PHASE_LINGER && session->exchange == NULL &&
        session->tunnel == NULL)
        linger(session);
}

static void on_readable(struct conn *conn, uint8_t *bytes, size_t length)
{
    struct http_session *session = (struct http_session *)conn;
    struct loop *loop = conn->loop;

    if (buffer_length(&session->input) > 0) {
        buffer_append(&loop->buffers, &session->input, bytes, length);
        if (session->phase != HTTP_PHASE_EXCHANGE ||
            (!session->exchange->request_done && session->exchange->upstream != NULL))
            http_session_continue(session);
    } else {
        size_t used = work_off(session, bytes, length);
        if (!conn_is_open(conn) || session->phase == HTTP_PHASE_LINGER)
            return;
        buffer_append(&loop->buffers, &session->input, bytes + used, length - used);
    }
    if (conn_is_open(conn) && session->phase == HTTP_PHASE_EXCHANGE && input_is_full(session))
        conn_pause(conn);
}

static void on_end_of_stream(struct conn *conn)
{
    struct http_session *session = (struct http_session *)conn;

    session->client_done = true;
    switch ((enum http_phase)session->phase) {
    case HTTP_PHASE_IDLE:
    case HTTP_PHASE_HEAD:
        if (conn_backlog(conn) > 0)
            linger(session);
        else
            http_session_close(session, false);
        break;
    case HTTP_PHASE_EXCHANGE:
        /* A half-closed client still waits for its answer, unless its request will never be whole.
         */
        if (session_listener(&session->base)->config->abort_on_close ||
            (!session->exchange->request_done && buffer_length(&session->input) == 0)) {
            http_exchange_abandon(session, "client-gone");
            http_session_close(session, false);
        }
        break;
    case HTTP_PHASE_TUNNEL:
        conn_shutdown(&session->tunnel->conn);
        break;
    case HTTP_PHASE_LINGER:
        if (conn_backlog(conn) == 0)
            http_session_close(session, false);
        break;
    }
}

static void on_failed(struct conn *conn, int error)
{
    struct http_session *session = (struct http_session *)conn;

    (void)error;
    if (session->exchange != NULL)
        http_exchange_abandon(session, "client-gone");
    http_session_close(session, false);
}

static void on_blocked(struct conn *conn)
{
    http_session_arm((struct http_session *)conn);
}

static void on_drained(struct conn *conn)
{
    struct http_session *session = (struct http_session *)conn;

    if (session->phase == HTTP_PHASE_LINGER && session->client_done) {
        http_session_close(session, false);
        return;
    }
    if (session->exchange != NULL && session->exchange->upstream != NULL)
        conn_resume(&session->exchange->upstream->conn);
    if (session->tunnel != NULL)
        conn_resume(&session->tunnel->conn);
    http_session_arm(session);
}

static const struct conn_ops client_ops = {
    .readable = on_readable,
    .end_of_stream = on_end_of_stream,
    .failed = on_failed,
    .blocked = on_blocked,
    .drained = on_drained,
};

/* ------------------------------------------------------------------ beginning, draining */

static void drain(struct session *base)
{
    struct http_session *session = (struct http_session *)base;

    if (http_is_paused(session))
        http_pause_end(session);
    /* Who is in the middle of something gets `Connection: close` with the answer. */
    if (session->phase == HTTP_PHASE_IDLE && !base->conn.unread)
        http_session_close(session, false);
    else if (session->phase == HTTP_PHASE_TUNNEL)
        http_session_close(session, false);
}

static void abort_session(struct session *base)
{
    struct http_session *session = (struct http_session *)base;

    if (session->exchange != NULL)
        http_exchange_abandon(session, "shutdown");
    http_session_close(session, true);
}

static const struct session_ops ops = {.drain = drain, .abort = abort_session};

static void note_address(struct http_session *session)
{
    const struct sockaddr_storage *client = &session->base.client;

    session->address[0] = '\0';
    if (client->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)client)->sin_addr, session->address,
                  sizeof(session->address));
    else if (client->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)client)->sin6_addr, session->address,
                  sizeof(session->address));
    session->address_length = (uint8_t)strlen(session->address);
}

static bool is_trusted(const struct http_session *session)
{
    const struct config_listener *config = session_listener(&session->base)->config;

    for (size_t i = 0; i < config->trusted_proxy_count; i++) {
        if (config_prefix_match(&config->trusted_proxies[i],
                                (const struct sockaddr *)&session->base.client))
            return true;
    }
    return false;
}

void http_session_start(struct worker *worker, unsigned listener, int fd,
                        const struct sockaddr_storage *client)
{
    size_t capacity;
    struct http_session *session = block_alloc(&worker->loop.buffers, sizeof(*session), &capacity);

    memset(session, 0, sizeof(*session));
    session->base.worker = worker;
    session->base.listener = listener;
    session->base.client = *client;
    note_address(session);
    session->trusted = is_trusted(session);
    timer_init(&session->timer, on_timeout);
    http_pause_init(session);
    if (conn_open(&session->base.conn, &worker->loop, fd, &client_ops) < 0) {
        close(fd);
        block_free(&worker->loop.buffers, session, sizeof(*session));
        return;
    }
    session_open(&session->base, &ops);
    http_session_arm(session);
    /* Most clients send at once: a receive now saves a turn. */
    session->base.conn.unread = true;
    conn_read(&session->base.conn);
}
