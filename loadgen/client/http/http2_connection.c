/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of HTTP/2: the ring of those with room, output at the end of a turn, and ends. */
#include "loadgen/client/http/http2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

/* Until the server's settings are there: what RFC 9113 6.5.2 advises servers to allow at least. */
#define STREAMS_AT_FIRST 100U
/* Output beyond which no more is made before it is sent. */
#define OUTPUT_BYTES (256U * 1024)

static struct http2_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct http2_connection, stream));
}

/* ---------------------------------------------------------------- the ring */

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
void http2_ring_update(struct http2_connection *connection)
{
    bool room = !connection->retired && connection->active < room_of(connection);

    if (room && !connection->in_ring)
        ring_append(http2_wire_of(connection), connection);
    else if (!room)
        ring_remove(http2_wire_of(connection), connection);
}

void http2_ring_rotate(struct http2_connection *connection)
{
    ring_remove(http2_wire_of(connection), connection);
    http2_ring_update(connection);
}

/* ---------------------------------------------------------------- life */

void http2_retire(struct http2_connection *connection)
{
    if (connection->retired)
        return;
    connection->retired = true;
    ring_remove(http2_wire_of(connection), connection);
    http2_wire_of(connection)->open_count--;
}

/* After frames were taken or made: closes what has nothing left to do. */
static void close_if_over(struct http2_connection *connection)
{
    nghttp2_session *session = connection->session;
    bool over = !nghttp2_session_want_read(session) && !nghttp2_session_want_write(session);

    if (over)
        http2_retire(connection);
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
        http2_retire(connection);
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
    connection->session = http2_session_create(connection);
    wire->open_count++;
    http_endpoint_connect(&wire->endpoint, &connection->stream, &http2_handler);
    ring_append(wire, connection);
    return connection;
}

struct http2_connection *http2_connection_for_next(struct flow *flow)
{
    struct http2_wire *wire = flow->wire;
    struct http2_connection *first = wire->ring_first;

    if ((!first || first->active > 0) && wire->open_count < wire->open_max)
        return connection_open(flow);
    return first;
}

static void http2_connected(struct stream *stream)
{
    connection_of(stream)->connected = true;
    stream_produce(stream);
}

static size_t http2_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct http2_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;
    ssize_t used = nghttp2_session_mem_recv(connection->session, data, length);

    if (used < 0) {
        connection->broken = true;
        http2_retire(connection);
        stream_close(stream, EPROTO);
        return length;
    }
    http2_pump(flow);
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
        http2_complete(flow, request, OUTCOME_CONNECT);
    else if (!request->sent && request->tries < HTTP2_MAX_TRIES)
        http2_queue_again(wire, request);
    else if (last->broken)
        http2_complete(flow, request, OUTCOME_MALFORMED);
    else if (last->used && request->status == 0 && request->tries < 2 &&
             http1_method_is_idempotent(wire->plan->kinds[request->draw.kind].method))
        http2_queue_again(wire, request);
    else
        http2_complete(flow, request, OUTCOME_CONNECTION);
}

static void http2_closed(struct stream *stream, int error)
{
    struct http2_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;
    struct http2_wire *wire = flow->wire;
    struct http2_connection last = *connection;

    http2_retire(connection);
    if (last.active > 0 && !last.connected)
        http_endpoint_explain(&wire->endpoint, stream, error);
    else if (last.active > 0 && !wire->spoken)
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
    http2_pump(flow);
}

static const struct stream_handler http2_handler = {
    .connected = http2_connected,
    .data = http2_data,
    .produce = http2_produce,
    .sent = http2_sent,
    .closed = http2_closed,
};
