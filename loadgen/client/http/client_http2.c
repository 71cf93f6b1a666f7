/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/2 transport of flows: up to `streams` requests at once per connection; nghttp2 does the
 * frames. Over TLS (ALPN h2) or plain with prior knowledge.
 *
 * States of a connection
 *   OPEN     connecting or connected; in the ring when it has room for another request. The ring's
 *            first takes the next request and goes to its end, so that all get alike
 *   RETIRED  takes no more: the server said GOAWAY, its stream numbers are used up, or it broke;
 *            counts no more as one of those the flow may have; closes when its last request ends
 *
 * A request is in one place: `active` with a connection and a stream number, or in the queue
 * `again`. There go those that the server certainly did not begin (REFUSED_STREAM, or above the
 * last stream of a GOAWAY: RFC 9113 8.7), and idempotent ones whose connection had served others
 * and ended before their reply began. They are sent again at most MAX_TRIES times, unseen by the
 * flow.
 *
 * Output is made at the end of the turn (stream_produce), so that all requests of a turn leave with
 * one system call; uploads go on when the stream has sent what it had.
 */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/flow.h"
#include "loadgen/client/http/http_endpoint.h"
#include "loadgen/client/http/http_plan.h"
#include "loadgen/client/http/http_reply.h"
#include "loadgen/net/stream.h"

/* Until the server's settings are there: what RFC 9113 6.5.2 advises servers to allow at least. */
#define STREAMS_AT_FIRST 100U
#define MAX_TRIES        4U
#define WINDOW_BYTES     ((1U << 30) - 1)
/* Output beyond which no more is made before it is sent. */
#define OUTPUT_BYTES (256U * 1024)
/* Pseudo fields, content-length. */
#define EXTRA_FIELDS 5

struct http2_request {
    struct http2_connection *connection; /* NULL: in the queue, or free */
    struct http2_request *next;          /* free list, queue */
    struct http2_request *next_made;
    struct flow_request request;
    struct http_draw draw;
    int32_t id;
    uint32_t tries;
    unsigned status; /* of the final reply's head; 0: not there */
    bool waiting;    /* in the queue */
    bool sent;       /* its head went to the server */
    bool ended;      /* the reply is complete */
    bool reset;      /* by the server */
    uint64_t retry_after_ns;
    uint64_t bytes_in;
    uint64_t uploaded;
};

struct http2_connection {
    struct stream stream;
    struct flow *flow;
    nghttp2_session *session;
    struct http2_connection *next; /* ring, spare list */
    struct http2_connection *previous;
    struct http2_connection *next_made;
    uint32_t active;
    bool in_ring;
    bool connected;
    bool retired;
    bool settings_seen;
    bool used;   /* had a reply */
    bool broken; /* the server's bytes are no HTTP/2 */
};

struct http2_wire {
    struct http_endpoint endpoint;
    struct http_plan *plan;
    nghttp2_session_callbacks *callbacks;
    nghttp2_nv *fields; /* room for one request's */
    char *values;       /* and their values */
    struct http2_connection *made;
    struct http2_connection *spare;
    struct http2_connection *ring_first;
    struct http2_connection *ring_last;
    struct http2_request *requests_made;
    struct http2_request *requests_free;
    struct http2_request *again_first;
    struct http2_request *again_last;
    uint32_t open_count;
    uint32_t open_max;
};

static struct http2_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct http2_connection, stream));
}

static struct http2_wire *wire_of(const struct http2_connection *connection)
{
    return connection->flow->wire;
}

static void out_of_memory(void)
{
    fprintf(stderr, "spillload: out of memory for HTTP/2: use fewer connections or streams\n");
    exit(3);
}

/* ---------------------------------------------------------------- the ring and the queue */

static void ring_remove(struct http2_wire *wire, struct http2_connection *connection)
{
    if (!connection->in_ring)
        return;
    connection->in_ring = false;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        wire->ring_first = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    else
        wire->ring_last = connection->previous;
}

static void ring_append(struct http2_wire *wire, struct http2_connection *connection)
{
    connection->in_ring = true;
    connection->next = NULL;
    connection->previous = wire->ring_last;
    if (wire->ring_last)
        wire->ring_last->next = connection;
    else
        wire->ring_first = connection;
    wire->ring_last = connection;
}

/* How many requests it may carry. */
static uint32_t room_of(const struct http2_connection *connection)
{
    uint32_t most = connection->flow->spec.http.streams;
    uint32_t allowed = STREAMS_AT_FIRST;

    if (connection->settings_seen)
        allowed = nghttp2_session_get_remote_settings(connection->session,
                                                      NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return most < allowed ? most : allowed;
}

/* Puts it in the ring, or takes it out, as there is room. */
static void ring_update(struct http2_connection *connection)
{
    bool room = !connection->retired && connection->active < room_of(connection);

    if (room && !connection->in_ring)
        ring_append(wire_of(connection), connection);
    else if (!room)
        ring_remove(wire_of(connection), connection);
}

static void queue_again(struct http2_wire *wire, struct http2_request *request)
{
    request->connection = NULL;
    request->waiting = true;
    request->next = NULL;
    if (wire->again_last)
        wire->again_last->next = request;
    else
        wire->again_first = request;
    wire->again_last = request;
}

static struct http2_request *request_take(struct http2_wire *wire)
{
    struct http2_request *request = wire->requests_free;
    struct http2_request *next_made = wire->requests_made;

    if (request) {
        wire->requests_free = request->next;
        next_made = request->next_made;
    } else {
        request = memory_zeroed(1, sizeof(*request));
        wire->requests_made = request;
    }
    *request = (struct http2_request){.next_made = next_made};
    return request;
}

/* The request ends; the memory is free for the next before the flow is told. */
static void complete(struct flow *flow, struct http2_request *request, enum outcome outcome)
{
    struct http2_wire *wire = flow->wire;
    struct flow_request ended = request->request;
    bool replied = request->ended && request->status != 0;
    struct flow_result result = {.outcome = outcome,
                                 .kind = request->draw.kind,
                                 .bytes_in = replied ? request->bytes_in : 0,
                                 .bytes_out = replied ? request->uploaded : 0,
                                 .retry_after_ns = request->retry_after_ns};

    request->connection = NULL;
    request->waiting = false;
    request->next = wire->requests_free;
    wire->requests_free = request;
    flow_completed(flow, &ended, &result);
}

/* ---------------------------------------------------------------- connections */

static void retire(struct http2_connection *connection)
{
    if (connection->retired)
        return;
    connection->retired = true;
    ring_remove(wire_of(connection), connection);
    wire_of(connection)->open_count--;
}

/* After frames were taken or made: closes what has nothing left to do. */
static void close_if_over(struct http2_connection *connection)
{
    nghttp2_session *session = connection->session;
    bool over = !nghttp2_session_want_read(session) && !nghttp2_session_want_write(session);

    if (over)
        retire(connection);
    if (over || (connection->retired && connection->active == 0 &&
                 connection->stream.output_bytes == 0 && !nghttp2_session_want_write(session)))
        stream_close(&connection->stream, 0);
}

static void http2_produce(struct stream *stream)
{
    struct http2_connection *connection = connection_of(stream);
    const uint8_t *frames;
    ssize_t length = 0;

    while (stream->output_bytes < OUTPUT_BYTES &&
           (length = nghttp2_session_mem_send(connection->session, &frames)) > 0)
        stream_put(stream, frames, (size_t)length);
    if (length < 0) {
        retire(connection);
        stream_close(stream, EPROTO);
        return;
    }
    if (stream->output_bytes == 0)
        close_if_over(connection);
}

static void http2_sent(struct stream *stream)
{
    if (nghttp2_session_want_write(connection_of(stream)->session))
        stream_produce(stream);
    else
        close_if_over(connection_of(stream));
}

static const struct stream_handler http2_handler;
static nghttp2_session *session_create(struct http2_connection *connection);

static struct http2_connection *connection_open(struct flow *flow)
{
    struct http2_wire *wire = flow->wire;
    struct http2_connection *connection = wire->spare;
    struct http2_connection *next_made = wire->made;

    if (connection) {
        wire->spare = connection->next;
        next_made = connection->next_made;
    } else {
        connection = memory_zeroed(1, sizeof(*connection));
        wire->made = connection;
    }
    *connection = (struct http2_connection){.flow = flow, .next_made = next_made};
    connection->session = session_create(connection);
    wire->open_count++;
    http_endpoint_connect(&wire->endpoint, &connection->stream, &http2_handler);
    ring_append(wire, connection);
    return connection;
}

static void http2_connected(struct stream *stream)
{
    connection_of(stream)->connected = true;
    stream_produce(stream);
}

/* ---------------------------------------------------------------- sending */

static ssize_t upload(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                      uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct http2_request *request = source->ptr;
    const struct http2_connection *connection = user;
    uint64_t left = request->draw.values.body_bytes - request->uploaded;
    size_t part = left < room ? (size_t)left : room;

    (void)session;
    (void)id;
    http_plan_body(wire_of(connection)->plan, &request->draw, request->uploaded, out, part);
    request->uploaded += part;
    if (part == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part;
}

static nghttp2_nv *put_field(nghttp2_nv *to, const char *name, size_t name_bytes, const char *value,
                             size_t value_bytes)
{
    /* nghttp2_nv has no const; submitting copies. */
    *to = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                       .value = (uint8_t *)(uintptr_t)value,
                       .namelen = name_bytes,
                       .valuelen = value_bytes};
    return to + 1;
}

/* Fills in wire->fields; returns how many. */
static size_t fields_of(struct http2_wire *wire, const struct http_draw *draw, bool tls)
{
    const struct http_plan *plan = wire->plan;
    const struct http_kind *kind = &plan->kinds[draw->kind];
    const char *scheme = tls ? "https" : "http";
    nghttp2_nv *to = wire->fields;
    char *values = wire->values;
    size_t length = http_template_fill(&kind->path, &draw->values, values);

    to = put_field(to, ":method", 7, kind->method_name, strlen(kind->method_name));
    to = put_field(to, ":scheme", 7, scheme, strlen(scheme));
    to = put_field(to, ":authority", 10, plan->authority, strlen(plan->authority));
    to = put_field(to, ":path", 5, values, length);
    values += length;
    for (size_t i = 0; i < plan->fields_count; i++) {
        const struct http_plan_field *field = &plan->fields[i];

        length = http_template_fill(&field->value, &draw->values, values);
        to = put_field(to, field->name, field->name_bytes, values, length);
        values += length;
    }
    if (kind->has_body) {
        length = (size_t)snprintf(values, 24, "%llu", (unsigned long long)draw->values.body_bytes);
        to = put_field(to, "content-length", 14, values, length);
    }
    return (size_t)(to - wire->fields);
}

/* A connection for the next request: an idle one, a new one, any with room; NULL when none has. */
static struct http2_connection *connection_for_next(struct flow *flow)
{
    struct http2_wire *wire = flow->wire;
    struct http2_connection *first = wire->ring_first;

    if ((!first || first->active > 0) && wire->open_count < wire->open_max)
        return connection_open(flow);
    return first;
}

/* False when there is no room now. */
static bool start(struct flow *flow, struct http2_request *request)
{
    struct http2_wire *wire = flow->wire;
    bool has_body = wire->plan->kinds[request->draw.kind].has_body;
    nghttp2_data_provider body = {.source.ptr = request, .read_callback = upload};
    struct http2_connection *connection;

    while ((connection = connection_for_next(flow))) {
        size_t count;
        int32_t id;

        /* GOAWAY is here, or its numbers are used up. */
        if (!nghttp2_session_check_request_allowed(connection->session)) {
            retire(connection);
            stream_produce(&connection->stream);
            continue;
        }
        count = fields_of(wire, &request->draw, wire->endpoint.tls != NULL);
        id = nghttp2_submit_request(connection->session, NULL, wire->fields, count,
                                    has_body ? &body : NULL, request);
        if (id < 0)
            out_of_memory();
        request->connection = connection;
        request->id = id;
        request->sent = false;
        request->tries++;
        connection->active++;
        ring_remove(wire, connection);
        ring_update(connection);
        stream_produce(&connection->stream);
        return true;
    }
    return false;
}

/* Sends what waits in the queue, then what waits in the flow. */
static void pump(struct flow *flow)
{
    struct http2_wire *wire = flow->wire;

    while (wire->again_first) {
        struct http2_request *request = wire->again_first;

        /* Out of the queue only when it is sent: start() may find no room. */
        if (!start(flow, request))
            return;
        wire->again_first = request->next;
        if (!wire->again_first)
            wire->again_last = NULL;
        request->waiting = false;
    }
    flow_pump(flow);
}

static bool http2_send(struct flow *flow, const struct flow_request *flow_request)
{
    struct http2_wire *wire = flow->wire;
    struct http2_request *request;
    struct rng rng;

    if (wire->again_first || (!wire->ring_first && wire->open_count >= wire->open_max))
        return false;
    request = request_take(wire);
    request->request = *flow_request;
    if (!http_plan_is_fixed(wire->plan))
        flow_request_rng(flow, flow_request, &rng);
    http_plan_draw(wire->plan, &rng, flow_request->number, &request->draw);
    if (start(flow, request))
        return true;
    request->next = wire->requests_free;
    wire->requests_free = request;
    return false;
}

/* ---------------------------------------------------------------- replies */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *user)
{
    struct http2_request *request =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)flags;
    (void)user;
    if (!request)
        return 0;
    /* Three digits: nghttp2 has seen to it. Interim replies are overwritten by the final one. */
    if (name_bytes == 7 && memcmp(name, ":status", 7) == 0)
        request->status =
            (unsigned)((value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0'));
    else if (name_bytes == 11 && memcmp(name, "retry-after", 11) == 0)
        request->retry_after_ns =
            http_reply_retry_after_ns((const char *)value, value_bytes, time(NULL));
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t length, void *user)
{
    struct http2_request *request = nghttp2_session_get_stream_user_data(session, id);

    (void)flags;
    (void)data;
    (void)user;
    if (request)
        request->bytes_in += length;
    return 0;
}

/* The stream closes when the request is complete too; a body that nobody wants any more is cut. */
static void reply_ended(nghttp2_session *session, const struct http2_connection *connection,
                        struct http2_request *request)
{
    request->ended = true;
    if (wire_of(connection)->plan->kinds[request->draw.kind].has_body &&
        request->uploaded < request->draw.values.body_bytes)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, request->id, NGHTTP2_CANCEL);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_connection *connection = user;
    struct http2_request *request =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
            connection->settings_seen = true;
            ring_update(connection);
        }
        break;
    case NGHTTP2_GOAWAY:
        retire(connection);
        break;
    case NGHTTP2_RST_STREAM:
        if (request)
            request->reset = true;
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        if (request && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
            reply_ended(session, connection, request);
        break;
    default:
        break;
    }
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_connection *connection = user;
    struct http2_request *request;

    if (frame->hd.type == NGHTTP2_HEADERS) {
        request = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (request)
            request->sent = true;
    } else if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
        /* nghttp2's verdict on the connection as a whole. */
        connection->broken = true;
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    struct http2_connection *connection = user;
    struct flow *flow = connection->flow;
    struct http2_request *request = nghttp2_session_get_stream_user_data(session, id);

    if (!request)
        return 0;
    connection->active--;
    ring_update(connection);
    if (request->ended && request->status) {
        connection->used = true;
        complete(flow, request, http_reply_outcome(request->status));
    } else if (error == NGHTTP2_REFUSED_STREAM || !request->sent) {
        if (request->tries < MAX_TRIES)
            queue_again(flow->wire, request);
        else
            complete(flow, request, OUTCOME_REFUSED);
    } else {
        complete(flow, request, request->reset ? OUTCOME_CONNECTION : OUTCOME_MALFORMED);
    }
    return 0;
}

static size_t http2_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct http2_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;
    ssize_t used = nghttp2_session_mem_recv(connection->session, data, length);

    if (used < 0) {
        connection->broken = true;
        retire(connection);
        stream_close(stream, EPROTO);
        return length;
    }
    pump(flow);
    if (nghttp2_session_want_write(connection->session))
        stream_produce(stream);
    else
        close_if_over(connection);
    return length;
}

/* ---------------------------------------------------------------- ends */

/* The connection of this request ended before the reply did. */
static void lost(struct flow *flow, struct http2_request *request,
                 const struct http2_connection *last)
{
    struct http2_wire *wire = flow->wire;

    if (!last->connected)
        complete(flow, request, OUTCOME_CONNECT);
    else if (!request->sent && request->tries < MAX_TRIES)
        queue_again(wire, request);
    else if (last->broken)
        complete(flow, request, OUTCOME_MALFORMED);
    else if (last->used && request->status == 0 && request->tries < 2 &&
             http1_method_is_idempotent(wire->plan->kinds[request->draw.kind].method))
        queue_again(wire, request);
    else
        complete(flow, request, OUTCOME_CONNECTION);
}

static void http2_closed(struct stream *stream, int error)
{
    struct http2_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;
    struct http2_wire *wire = flow->wire;
    struct http2_connection last = *connection;

    retire(connection);
    if (last.active > 0 && !last.connected)
        http_endpoint_explain(&wire->endpoint, stream, error);
    else if (last.active > 0 && !last.settings_seen)
        http_endpoint_tell(&wire->endpoint, "the server does not answer in HTTP/2; is it enabled "
                                            "there, and meant to be with or without TLS?");
    nghttp2_session_del(connection->session);
    connection->session = NULL;
    stream_fini(stream);
    for (struct http2_request *r = wire->requests_made; r && last.active > 0; r = r->next_made) {
        if (r->connection == connection)
            lost(flow, r, &last);
    }
    connection->next = wire->spare;
    wire->spare = connection;
    if (wire->again_first)
        flow->reconnects++;
    pump(flow);
}

static const struct stream_handler http2_handler = {
    .connected = http2_connected,
    .data = http2_data,
    .produce = http2_produce,
    .sent = http2_sent,
    .closed = http2_closed,
};

static void expire_waiting(struct flow *flow, uint64_t sent_before_ns)
{
    struct http2_wire *wire = flow->wire;
    struct http2_request *request = wire->again_first;

    wire->again_first = wire->again_last = NULL;
    while (request) {
        struct http2_request *next = request->next;

        if (request->request.sent_ns < sent_before_ns)
            complete(flow, request, OUTCOME_TIMEOUT);
        else
            queue_again(wire, request);
        request = next;
    }
}

static void http2_expire(struct flow *flow, uint64_t sent_before_ns)
{
    struct http2_wire *wire = flow->wire;

    expire_waiting(flow, sent_before_ns);
    for (struct http2_request *r = wire->requests_made; r; r = r->next_made) {
        struct http2_connection *connection = r->connection;

        if (!connection || r->request.sent_ns >= sent_before_ns || !connection->session)
            continue;
        nghttp2_session_set_stream_user_data(connection->session, r->id, NULL);
        nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE, r->id, NGHTTP2_CANCEL);
        connection->active--;
        ring_update(connection);
        /* One that does not even connect is given up with its last request. */
        if (connection->connected)
            stream_produce(&connection->stream);
        else if (connection->active == 0)
            stream_close(&connection->stream, ETIMEDOUT);
        complete(flow, r, OUTCOME_TIMEOUT);
    }
}

/* ---------------------------------------------------------------- life */

static nghttp2_session *session_create(struct http2_connection *connection)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
    };
    nghttp2_session *session;

    if (nghttp2_session_client_new(&session, wire_of(connection)->callbacks, connection) != 0 ||
        nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2) != 0 ||
        nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)WINDOW_BYTES) != 0)
        out_of_memory();
    return session;
}

static void callbacks_create(struct http2_wire *wire)
{
    if (nghttp2_session_callbacks_new(&wire->callbacks) != 0)
        out_of_memory();
    nghttp2_session_callbacks_set_on_header_callback(wire->callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(wire->callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(wire->callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(wire->callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(wire->callbacks, on_stream_close);
}

/* Room for the fields of the largest request. */
static void prepare_fields(struct http2_wire *wire)
{
    size_t path_bytes = 0;

    for (size_t i = 0; i < wire->plan->kinds_count; i++) {
        if (wire->plan->kinds[i].path.most_bytes > path_bytes)
            path_bytes = wire->plan->kinds[i].path.most_bytes;
    }
    wire->values = memory_zeroed(1, path_bytes + wire->plan->fields_most_bytes + 24);
    wire->fields = memory_zeroed(wire->plan->fields_count + EXTRA_FIELDS, sizeof(*wire->fields));
}

static int http2_open(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    struct http2_wire *wire = memory_zeroed(1, sizeof(*wire));
    uint32_t streams = spec->http.streams ? spec->http.streams : 1;
    char problem[HTTP_PLAN_PROBLEM_BYTES];

    flow->wire = wire;
    flow->spec.http.streams = streams;
    wire->open_max =
        spec->connections ? spec->connections : (spec->concurrency + streams - 1) / streams;
    wire->plan = http_plan_create(spec, problem);
    if (!wire->plan) {
        fprintf(stderr, "spillload: flow %s: %s\n", spec->name, problem);
        return -EINVAL;
    }
    prepare_fields(wire);
    callbacks_create(wire);
    return http_endpoint_init(&wire->endpoint, flow);
}

static bool http2_ready(const struct flow *flow)
{
    (void)flow;
    return true;
}

static void http2_close(struct flow *flow)
{
    struct http2_wire *wire = flow->wire;

    while (wire->made) {
        struct http2_connection *connection = wire->made;

        wire->made = connection->next_made;
        nghttp2_session_del(connection->session);
        stream_fini(&connection->stream);
        free(connection);
    }
    while (wire->requests_made) {
        struct http2_request *request = wire->requests_made;

        wire->requests_made = request->next_made;
        free(request);
    }
    nghttp2_session_callbacks_del(wire->callbacks);
    http_endpoint_fini(&wire->endpoint);
    http_plan_destroy(wire->plan);
    free(wire->fields);
    free(wire->values);
    free(wire);
    flow->wire = NULL;
}

static const char *http2_kind_name(const struct flow *flow, uint32_t kind)
{
    const struct http2_wire *wire = flow->wire;

    return kind < wire->plan->kinds_count ? wire->plan->kinds[kind].name : NULL;
}

const struct flow_transport client_http2_transport = {
    .kind_name = http2_kind_name,
    .open = http2_open,
    .ready = http2_ready,
    .send = http2_send,
    .expire = http2_expire,
    .close = http2_close,
};
