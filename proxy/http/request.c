/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: from a parsed head to an exchange in the gate, its body on the way to the server, its
 * end. */
#include "proxy/http/internal.h"

#include "protocols/http/http1_uri.h"
#include "proxy/control/access_log.h"

#include <string.h>

#define HEAD_ROOM_BYTES   768 /* for the fields we add */
#define RETRY_AFTER_S     1   /* where nothing better is known */
#define RETRY_AFTER_MAX_S 60  /* what is known is an estimate */
#define SECOND_NS         UINT64_C(1000000000)

/* ------------------------------------------------------------------ beginning */

static struct http_exchange *create(struct http_session *session, const struct http1_head *head)
{
    struct loop *loop = loop_of(session);
    size_t capacity;
    struct http_exchange *exchange = block_alloc(&loop->buffers, sizeof(*exchange), &capacity);

    memset(exchange, 0, sizeof(*exchange));
    exchange_init(&exchange->base, loop, &http_exchange_ops,
                  session->phase == HTTP_PHASE_HEAD ? session->head_began_ns : loop_now_ns(loop));
    exchange->session = session;
    exchange->method = head->method;
    exchange->minor = head->minor;
    exchange->keep_alive = head->keep_alive;
    exchange->wants_upgrade = head->upgrade;
    exchange->base.bytes_in = head->head_bytes;
    http1_body_init(&exchange->request_body, head);
    exchange->request_done = http1_body_is_done(&exchange->request_body);
    return exchange;
}

static void destroy(struct http_exchange *exchange)
{
    struct loop *loop = exchange->base.loop;

    /* The server's output may still refer to the head in this turn. */
    loop_release_block(loop, exchange->head, exchange->head_capacity);
    block_free(&loop->buffers, exchange->trailers, exchange->trailers_capacity);
    block_free(&loop->buffers, exchange, sizeof(*exchange));
}

static void write_head(struct http_session *session, struct http_exchange *exchange,
                       const struct http1_head *head, const struct plan_pool *pool)
{
    struct buffer_cache *cache = &loop_of(session)->buffers;
    const char *default_host = pool->config->servers[0].address.text;
    struct http1_forward_request how = {
        .client_address = {session->address_length > 0 ? session->address : NULL,
                           session->address_length},
        .default_host = {default_host, strlen(default_host)},
        .scheme = HTTP1_SLICE("http"),
        .via = {pool->config->http.via, strlen(pool->config->http.via)},
        .trust_client = session->trusted,
        .pass_upgrade = true,
    };
    size_t room = head->head_bytes + HEAD_ROOM_BYTES;
    struct http1_writer writer;

    for (;;) {
        exchange->head = block_alloc(cache, room, &exchange->head_capacity);
        http1_writer_init(&writer, exchange->head, exchange->head_capacity);
        http1_write_forward_request(&writer, head, &how);
        if (!writer.overflow)
            break;
        /* Every field of ours repeats what the head has, so this ends. */
        block_free(cache, exchange->head, exchange->head_capacity);
        room = exchange->head_capacity * 2;
    }
    exchange->head_length = http1_writer_len(&writer);
    exchange->method_length =
        (uint8_t)(head->method_name.len < UINT8_MAX ? head->method_name.len : UINT8_MAX);
    exchange->target_offset = (uint32_t)head->method_name.len + 1;
    const char *target = exchange->head + exchange->target_offset;
    const char *space = memchr(target, ' ', exchange->head_length - exchange->target_offset);
    exchange->target_length = space != NULL ? (uint32_t)(space - target) : 0;
}

static void fill_names(struct http_session *session, const struct http1_head *head,
                       struct http_facts *facts, bool *malformed)
{
    struct http_worker *http = http_of(session);
    const struct plan *plan = session->base.worker->plan;
    struct http1_slice scheme = HTTP1_SLICE("http");

    if (plan->needs_host && head->host.len > 0) {
        ssize_t length = http1_normalise_host(head->host, scheme, http->host, sizeof(http->host));
        *malformed |= length < 0;
        if (length > 0) {
            /* Rules name hosts, not ports; a colon inside brackets belongs to an IPv6 address. */
            const char *end = memrchr(http->host, ']', (size_t)length);
            size_t from = end != NULL ? (size_t)(end - http->host) : 0;
            const char *colon = memchr(http->host + from, ':', (size_t)length - from);
            facts->host = (struct http1_slice){
                http->host, colon != NULL ? (size_t)(colon - http->host) : (size_t)length};
        }
    }
    if (plan->needs_path) {
        ssize_t length = http1_normalise_path(head->path, http->path, sizeof(http->path));
        *malformed |= length < 0;
        if (length > 0)
            facts->path = (struct http1_slice){http->path, (size_t)length};
    }
}

/* Answers a request for which there is no exchange. */
static void answer(struct http_session *session, const struct http1_head *head, unsigned status,
                   const char *text)
{
    struct http1_error_reply like = {.client_minor = head->minor,
                                     .head_request = head->method == HTTP1_METHOD_HEAD};
    bool keep = head->keep_alive && head->framing == HTTP1_FRAMING_NONE;

    http_session_error(session, status, text, keep, &like);
}

void http_request_begin(struct http_session *session, const struct http1_head *head)
{
    const struct plan_listener *listener = session_listener(&session->base);
    struct http_facts facts = {.head = head,
                               .client = (const struct sockaddr *)&session->base.client};
    bool malformed = false;

    fill_names(session, head, &facts, &malformed);
    if (malformed) {
        meter_add(&session_meters(&session->base)->malformed, 1);
        http_session_error(session, 400,
                           "The request's target is malformed or too long to be routed.", false,
                           NULL);
        return;
    }
    const struct plan_pool *pool = plan_route_http(listener, &facts);
    if (pool == NULL) {
        meter_add(&session_meters(&session->base)->not_found, 1);
        answer(session, head, 404, "No service answers to this host and path here.");
        return;
    }
    if (head->has_content_length && head->content_length > listener->config->limits.body_bytes) {
        answer(session, head, 413, "The request's body is larger than this service takes.");
        return;
    }
    struct http_exchange *exchange = create(session, head);
    write_head(session, exchange, head, pool);
    plan_classify_http(pool, &facts, &exchange->base);
    plan_hold(pool, session->base.worker->index);
    session->exchange = exchange;
    session->phase = HTTP_PHASE_EXCHANGE;
    gate_submit(&exchange->base);
    http_session_arm(session);
}

/* ------------------------------------------------------------------ the gate's callbacks */

static void on_dispatched(struct exchange *base)
{
    struct http_exchange *exchange = container_of(base, struct http_exchange, base);

    http_upstream_attach(exchange);
}

static const char *refusal_text(enum refusal refusal)
{
    switch (refusal) {
    case REFUSAL_FLOW_FULL:
        return "Too many requests of this kind are waiting; try again later.";
    case REFUSAL_POOL_FULL:
        return "Too many requests are waiting for this service; try again later.";
    case REFUSAL_TIMEOUT:
        return "The request waited too long for its turn; try again later.";
    case REFUSAL_NO_SERVER:
        return "No server of this service can be reached at the moment; try again later.";
    case REFUSAL_AT_LIMIT:
        return "Requests of this kind come faster than their limit allows; try again later.";
    case REFUSAL_ADMISSION:
        return "More requests come than the service can answer; try again later.";
    }
    return "The service is not available; try again later.";
}

static const char *refusal_end(enum refusal refusal)
{
    switch (refusal) {
    case REFUSAL_FLOW_FULL:
    case REFUSAL_POOL_FULL:
        return "queue-full";
    case REFUSAL_TIMEOUT:
        return "queue-timeout";
    case REFUSAL_NO_SERVER:
        return "no-server";
    case REFUSAL_AT_LIMIT:
        return "at-limit";
    case REFUSAL_ADMISSION:
        return "admission";
    }
    return "refused";
}

static void write_access(struct http_exchange *exchange, const struct sockaddr *client,
                         struct worker *worker, const char *listener, const char *why)
{
    struct exchange *base = &exchange->base;
    uint64_t now_ns = loop_now_ns(base->loop);

    if (!access_log_enabled())
        return;
    struct access_record record = {
        .client = client,
        .listener = listener,
        .pool = base->pool->pool->name,
        .flow = base->class->name,
        .server = base->server != NULL ? base->server->name : NULL,
        .protocol = exchange->minor == 0 ? "HTTP/1.0" : "HTTP/1.1",
        .operation = exchange->head,
        .operation_length = exchange->method_length,
        .target = exchange->head + exchange->target_offset,
        .target_length = exchange->target_length,
        .status = exchange->status,
        .bytes_in = base->bytes_in,
        .bytes_out = base->bytes_out,
        .wait_ns = exchange_wait_ns(base, now_ns),
        .service_ns = exchange_service_ns(base, now_ns),
        .total_ns = now_ns - base->arrived_ns,
        .end = why,
    };
    access_log_write(worker->access, &record, now_ns);
}

static void note_access(struct http_exchange *exchange, struct http_session *session,
                        const char *why)
{
    write_access(exchange, (const struct sockaddr *)&session->base.client, session->base.worker,
                 session_listener(&session->base)->config->name, why);
}

static struct http1_error_reply reply_like(const struct http_exchange *exchange)
{
    return (struct http1_error_reply){.client_minor = exchange->minor,
                                      .head_request = exchange->method == HTTP1_METHOD_HEAD,
                                      .mark_ms = exchange->mark_ms};
}

/*
 * Retry-After of a refusal: the time in which the pool works off its queue, in whole seconds,
 * rounded up. A limit of rate and a pool without servers have nothing to do with a queue.
 */
static uint32_t retry_after_s(enum refusal refusal, uint64_t retry_after_ns)
{
    if (refusal == REFUSAL_AT_LIMIT || refusal == REFUSAL_NO_SERVER || retry_after_ns == 0)
        return RETRY_AFTER_S;
    if (retry_after_ns >= RETRY_AFTER_MAX_S * SECOND_NS)
        return RETRY_AFTER_MAX_S;
    return (uint32_t)((retry_after_ns + SECOND_NS - 1) / SECOND_NS);
}

/* The exchange is back in READING, in nobody's list. */
static void forget(struct http_exchange *exchange)
{
    struct worker *worker = exchange->base.loop->context;

    plan_release(exchange->base.pool, worker);
    destroy(exchange);
}

static void on_refused(struct exchange *base, enum refusal refusal)
{
    struct http_exchange *exchange = container_of(base, struct http_exchange, base);
    struct http_session *session = exchange->session;
    struct http1_error_reply like = reply_like(exchange);
    bool keep = exchange->keep_alive && exchange->request_done;

    /* RFC 6585 §4: it is this client's rate, not the service. */
    uint16_t status = refusal == REFUSAL_AT_LIMIT ? 429 : 503;

    like.retry_after_s = retry_after_s(refusal, base->retry_after_ns);
    exchange->status = status;
    note_access(exchange, session, refusal_end(refusal));
    session->exchange = NULL;
    forget(exchange);
    http_session_error(session, status, refusal_text(refusal), keep, &like);
}

static void on_marked(struct exchange *base)
{
    http_pause_ask(container_of(base, struct http_exchange, base), base->mark_ns);
}

static void on_released(struct exchange *base)
{
    forget(container_of(base, struct http_exchange, base));
}

const struct exchange_ops http_exchange_ops = {
    .dispatched = on_dispatched,
    .refused = on_refused,
    .marked = on_marked,
    .released = on_released,
};

/* ------------------------------------------------------------------ the body */

static void keep_trailers(struct http_exchange *exchange)
{
    if (exchange->request_body.framing != HTTP1_FRAMING_CHUNKED || exchange->trailers != NULL)
        return;
    exchange->trailers = block_alloc(&exchange->base.loop->buffers, HTTP1_MAX_TRAILER_BYTES,
                                     &exchange->trailers_capacity);
    http1_body_keep_trailers(&exchange->request_body, exchange->trailers, HTTP1_MAX_TRAILER_BYTES);
}

size_t http_request_body(struct http_exchange *exchange, uint8_t *bytes, size_t length)
{
    struct http_session *session = exchange->session;
    struct conn *to = &exchange->upstream->conn;
    uint64_t limit = session_listener(&session->base)->config->limits.body_bytes;
    size_t used = 0;

    keep_trailers(exchange);
    exchange->body_started = true;
    enum http1_body_result result =
        http_relay(exchange->base.loop, to, &exchange->request_body,
                   (enum http1_framing)exchange->request_body.framing, bytes, length, &used);
    exchange->base.bytes_in += used;
    if (result == HTTP1_BODY_ERROR) {
        meter_add(&session_meters(&session->base)->malformed, 1);
        http_exchange_fail(exchange, 400, "The request's body is malformed.", "bad-request");
        return length;
    }
    if (exchange->request_body.payload_bytes > limit) {
        http_exchange_fail(exchange, 413, "The request's body is larger than this service takes.",
                           "body-limit");
        return length;
    }
    if (result == HTTP1_BODY_DONE) {
        exchange->request_done = true;
        http_upstream_arm(exchange->upstream);
    } else if (conn_backlog(to) > HTTP_BACKLOG_BYTES) {
        conn_pause(&session->base.conn);
        http_upstream_arm(exchange->upstream);
    }
    http_session_arm(session);
    return used;
}

/* ------------------------------------------------------------------ ends */

void http_exchange_end(struct http_exchange *exchange, enum outcome outcome, const char *why)
{
    if (exchange->session != NULL) {
        note_access(exchange, exchange->session, why);
        exchange->session->exchange = NULL;
        exchange->session = NULL;
    }
    gate_finish(&exchange->base, outcome, cost_settle(&exchange->base, outcome));
}

void http_exchange_abandon(struct http_session *session, const char *why)
{
    struct http_exchange *exchange = session->exchange;

    if (exchange->upstream != NULL) {
        http_upstream_detach(exchange->upstream, false);
        http_exchange_end(exchange, OUTCOME_ABORTED, why);
        return;
    }
    /* First of all, since until then another thread may be dispatching it. */
    bool left = gate_cancel(&exchange->base);
    note_access(exchange, session, why);
    session->exchange = NULL;
    exchange->session = NULL;
    if (left)
        forget(exchange);
}

void http_exchange_fail(struct http_exchange *exchange, unsigned status, const char *explanation,
                        const char *why)
{
    struct http_session *session = exchange->session;
    struct http1_error_reply like = reply_like(exchange);
    bool begun = exchange->reply_begun;
    bool keep = exchange->keep_alive && exchange->request_done;
    enum outcome outcome = status >= 500 ? OUTCOME_FAILED : OUTCOME_ABORTED;

    if (!begun)
        exchange->status = (uint16_t)status;
    if (status == 503)
        like.retry_after_s = RETRY_AFTER_S;
    if (exchange->upstream != NULL)
        http_upstream_detach(exchange->upstream, false);
    http_exchange_end(exchange, outcome, why);
    if (begun)
        http_session_close(session, true);
    else
        http_session_error(session, status, explanation, keep && status >= 500, &like);
}
