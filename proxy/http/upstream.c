/* SPDX-License-Identifier: Apache-2.0 */
/* Server connections of HTTP: making, keeping, using again, losing. See internal.h. */
#include "proxy/http/internal.h"

#include "proxy/control/log.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct conn_ops server_ops;

/* ------------------------------------------------------------------ time limits */

void http_upstream_arm(struct http_upstream *upstream)
{
    struct loop *loop = upstream->conn.loop;
    struct http_exchange *exchange = upstream->exchange;
    uint64_t limit_ns = 0;

    if (exchange != NULL) {
        const struct config_server_timeouts *limits = &exchange->base.pool->config->timeouts;
        if (upstream->conn.connecting)
            limit_ns = limits->connect_ns;
        else if (exchange->reply_begun || (upstream->conn.blocked && !exchange->request_done))
            limit_ns = limits->idle_ns;
        else if (exchange->request_done)
            limit_ns = limits->first_byte_ns;
        /* Else it is the client's turn to send; the session watches that. */
    }
    if (limit_ns != 0)
        timer_set(&loop->wheel, &upstream->timer, loop_now_ns(loop) + limit_ns);
    else
        timer_clear(&upstream->timer);
}

static void on_timeout(struct timer *timer, uint64_t now_ns)
{
    struct http_upstream *upstream = container_of(timer, struct http_upstream, timer);

    (void)now_ns;
    if (upstream->is_idle)
        http_upstream_close(upstream);
    else if (upstream->conn.paused)
        http_upstream_arm(upstream); /* it is the client that does not take the reply */
    else if (upstream->conn.connecting)
        http_upstream_broken(upstream, 504, "connect-timeout");
    else if (upstream->exchange != NULL)
        http_exchange_fail(upstream->exchange, 504, "The server did not answer in time.",
                           upstream->exchange->reply_begun ? "server-idle-timeout"
                                                           : "first-byte-timeout");
}

/* ------------------------------------------------------------------ idle ones */

static void grow_idle(struct http_worker *http, unsigned count)
{
    struct http_idle *old = http->idle;

    http->idle = memory_zalloc(count * sizeof(*http->idle), "idle server connections");
    for (unsigned i = 0; i < count; i++) {
        TAILQ_INIT(&http->idle[i].list);
        if (i < http->idle_count) {
            /* A list's head is part of its links, so the list moves as a whole. */
            TAILQ_CONCAT(&http->idle[i].list, &old[i].list, idle);
            http->idle[i].count = old[i].count;
        }
    }
    http->idle_count = count;
    free(old);
}

/* A reload may have added the server while this worker still had the plan before. */
static struct http_idle *idle_of(struct http_worker *http, const struct server *server)
{
    if (server->index >= http->idle_count)
        grow_idle(http, server->index + 8);
    return &http->idle[server->index];
}

/* ------------------------------------------------------------------ ends */

static void release(struct deferred *deferred)
{
    struct http_upstream *upstream = container_of(deferred, struct http_upstream, deferred);

    block_free(&upstream->conn.loop->buffers, upstream, sizeof(*upstream));
}

static void leave_idle(struct http_upstream *upstream)
{
    struct http_idle *idle = idle_of(upstream->http, upstream->server);

    TAILQ_REMOVE(&idle->list, upstream, idle);
    idle->count--;
    upstream->is_idle = false;
}

void http_upstream_close(struct http_upstream *upstream)
{
    struct loop *loop = upstream->conn.loop;

    if (upstream->is_idle)
        leave_idle(upstream);
    timer_unlink(&upstream->timer);
    conn_close(&upstream->conn);
    loop_release_block(loop, upstream->input.data, upstream->input.capacity);
    upstream->input = (struct buffer){0};
    TAILQ_REMOVE(&upstream->http->upstreams, upstream, link);
    loop_defer_free(loop, &upstream->deferred, release);
}

static bool may_idle(const struct http_upstream *upstream)
{
    return !upstream->http->worker->draining && buffer_length(&upstream->input) == 0 &&
           conn_backlog(&upstream->conn) == 0 && !upstream->conn.peer_closed &&
           !upstream->conn.failed;
}

void http_upstream_detach(struct http_upstream *upstream, bool reusable)
{
    struct http_exchange *exchange = upstream->exchange;
    const struct config_pool *config = exchange->base.pool->config;
    struct http_idle *idle = idle_of(upstream->http, upstream->server);
    struct loop *loop = upstream->conn.loop;

    exchange->upstream = NULL;
    upstream->exchange = NULL;
    if (!reusable || !may_idle(upstream) || idle->count >= config->idle_connections) {
        http_upstream_close(upstream);
        return;
    }
    upstream->reused = true;
    upstream->is_idle = true;
    upstream->scan = (struct http1_scan){0};
    conn_resume(&upstream->conn);
    TAILQ_INSERT_HEAD(&idle->list, upstream, idle);
    idle->count++;
    timer_set(&loop->wheel, &upstream->timer, loop_now_ns(loop) + config->timeouts.keep_alive_ns);
}

/* ------------------------------------------------------------------ beginnings */

/* The next endpoint that can be tried: 0, or -errno of the last one when there is none. */
static int connect_to(struct http_upstream *upstream, struct loop *loop)
{
    static struct log_limit limit;
    struct server *server = upstream->server;
    int error = -ECONNREFUSED;

    while (upstream->endpoints_tried < server->endpoint_count) {
        const struct config_endpoint *endpoint = &server->endpoints[upstream->endpoint];
        upstream->endpoint = (uint16_t)((upstream->endpoint + 1) % server->endpoint_count);
        upstream->endpoints_tried++;
        error = conn_connect(&upstream->conn, loop, (const struct sockaddr *)&endpoint->addr,
                             endpoint->len, 0, false, &server_ops);
        if (error == 0)
            return 0;
        if (conn_error_is_local(error)) {
            log_limited(&limit, loop_now_ns(loop), CONFIG_LOG_ERROR,
                        "pool %s: server %s: can't make a connection here: %s", server->pool->name,
                        server->name, strerror(-error));
            return error;
        }
    }
    return error;
}

static struct http_upstream *take_idle(struct http_worker *http, const struct server *server)
{
    struct http_upstream *upstream = TAILQ_FIRST(&idle_of(http, server)->list);

    if (upstream != NULL)
        leave_idle(upstream);
    return upstream;
}

static struct http_upstream *create(struct http_worker *http, struct server *server)
{
    struct loop *loop = &http->worker->loop;
    size_t capacity;
    struct http_upstream *upstream = block_alloc(&loop->buffers, sizeof(*upstream), &capacity);

    memset(upstream, 0, sizeof(*upstream));
    upstream->http = http;
    upstream->server = server;
    upstream->conn.fd = -1;
    upstream->conn.loop = loop;
    upstream->endpoint =
        (uint16_t)(atomic_fetch_add(&server->endpoint_turn, 1) % server->endpoint_count);
    timer_init(&upstream->timer, on_timeout);
    TAILQ_INSERT_TAIL(&http->upstreams, upstream, link);
    return upstream;
}

static void send_request(struct http_upstream *upstream)
{
    struct http_exchange *exchange = upstream->exchange;

    conn_send(&upstream->conn, exchange->head, exchange->head_length);
    http_upstream_arm(upstream);
    if (!exchange->request_done && !upstream->conn.connecting)
        http_session_continue(exchange->session);
}

static void failed_to_connect(struct http_exchange *exchange, struct server *server, int error,
                              const char *why);

static void attach_fresh(struct http_exchange *exchange)
{
    struct worker *worker = exchange->base.loop->context;
    struct server *server = exchange->base.server;
    struct http_upstream *upstream = create(worker->http, server);

    int error = connect_to(upstream, exchange->base.loop);
    if (error < 0) {
        http_upstream_close(upstream);
        failed_to_connect(exchange, server, error, "connect-failed");
        return;
    }
    exchange->upstream = upstream;
    upstream->exchange = exchange;
    send_request(upstream);
}

void http_upstream_attach(struct http_exchange *exchange)
{
    struct worker *worker = exchange->base.loop->context;
    struct http_upstream *upstream = take_idle(worker->http, exchange->base.server);

    exchange->tries++;
    if (upstream == NULL) {
        attach_fresh(exchange);
        return;
    }
    exchange->upstream = upstream;
    upstream->exchange = exchange;
    upstream->reply_bytes = false;
    send_request(upstream);
}

/* Another try, or the answer that it failed. The exchange has no upstream. */
static void failed_to_connect(struct http_exchange *exchange, struct server *server, int error,
                              const char *why)
{
    if (conn_error_is_local(error)) {
        http_exchange_fail(exchange, 503,
                           "The proxy has no connection to spare at the moment; try again later.",
                           "no-descriptors");
        return;
    }
    gate_server_failed(server, loop_now_ns(exchange->base.loop));
    if (exchange->tries < exchange->base.pool->config->retry.attempts) {
        switch (gate_move(&exchange->base)) {
        case GATE_MOVED:
            http_upstream_attach(exchange);
            return;
        case GATE_QUEUED:
            return;
        case GATE_NOWHERE:
            break;
        }
    }
    http_exchange_fail(exchange, 503, "The server can't be reached at the moment; try again later.",
                       why);
}

/* ------------------------------------------------------------------ losses */

static bool may_repeat(const struct http_upstream *upstream)
{
    const struct http_exchange *exchange = upstream->exchange;

    /* RFC 9110 §9.2.2; a connection that had served before was probably closed before it saw the
     * request. */
    return upstream->reused && !upstream->reply_bytes && !exchange->body_started &&
           http1_method_is_idempotent((enum http1_method)exchange->method);
}

void http_upstream_broken(struct http_upstream *upstream, unsigned status, const char *why)
{
    struct http_exchange *exchange = upstream->exchange;
    struct server *server = upstream->server;
    struct loop *loop = upstream->conn.loop;

    if (exchange == NULL) {
        http_upstream_close(upstream);
        return;
    }
    if (upstream->conn.connecting) {
        conn_close(&upstream->conn);
        int error = connect_to(upstream, loop);
        if (error == 0) {
            send_request(upstream);
            return;
        }
        http_upstream_detach(upstream, false);
        failed_to_connect(exchange, server, error, why);
    } else if (may_repeat(upstream)) {
        http_upstream_detach(upstream, false);
        gate_count_retry(server);
        attach_fresh(exchange);
    } else {
        http_exchange_fail(exchange, status,
                           "The server closed the connection without a whole answer.", why);
    }
}

/* ------------------------------------------------------------------ events */

static void on_readable(struct conn *conn, uint8_t *bytes, size_t length)
{
    http_reply_readable((struct http_upstream *)conn, bytes, length);
}

static void on_end_of_stream(struct conn *conn)
{
    http_reply_end_of_stream((struct http_upstream *)conn);
}

static void on_failed(struct conn *conn, int error)
{
    struct http_upstream *upstream = (struct http_upstream *)conn;

    (void)error;
    if (upstream->tunnel != NULL)
        http_session_close(upstream->tunnel, true);
    else
        http_upstream_broken(upstream, 502, conn->connecting ? "connect-failed" : "server-reset");
}

static void on_drained(struct conn *conn)
{
    struct http_upstream *upstream = (struct http_upstream *)conn;

    if (upstream->exchange != NULL) {
        http_upstream_arm(upstream);
        if (!upstream->exchange->request_done)
            http_session_continue(upstream->exchange->session);
    } else if (upstream->tunnel != NULL) {
        conn_resume(&upstream->tunnel->base.conn);
    }
}

static void on_connected(struct conn *conn)
{
    struct http_upstream *upstream = (struct http_upstream *)conn;

    gate_server_connected(upstream->server);
    if (upstream->exchange == NULL)
        return;
    http_upstream_arm(upstream);
    if (!upstream->exchange->request_done)
        http_session_continue(upstream->exchange->session);
}

static const struct conn_ops server_ops = {
    .readable = on_readable,
    .end_of_stream = on_end_of_stream,
    .failed = on_failed,
    .drained = on_drained,
    .connected = on_connected,
};

/* ------------------------------------------------------------------ the worker's part */

struct http_worker *http_worker_create(struct worker *worker)
{
    struct http_worker *http = memory_zalloc(sizeof(*http), "a worker's HTTP state");

    http->worker = worker;
    TAILQ_INIT(&http->upstreams);
    return http;
}

void http_worker_destroy(struct http_worker *http)
{
    struct http_upstream *upstream;

    if (http == NULL)
        return;
    while ((upstream = TAILQ_FIRST(&http->upstreams)) != NULL)
        http_upstream_close(upstream);
    loop_wind_up(&http->worker->loop);
    free(http->idle);
    free(http);
}
