/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/1.1 transport of flows: one request at a time per connection, connections kept alive.
 *
 * States of a connection
 *   IDLE   in the idle list, last used first; a server may close it here without harm
 *   BUSY   carries `request`: connecting, sending, or reading the reply
 * A request on a connection that was used before and closes before the first byte of a reply is
 * sent once more on another connection: the server's closing and our sending may have crossed (RFC
 * 9110 9.2.2 lets only idempotent ones be repeated, so others fail).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/pattern.h"
#include "loadgen/net/stream.h"
#include "loadgen/client/flow.h"
#include "protocols/http/http1.h"

#define MAX_FIELDS    100
#define REQUEST_BYTES 4096

struct http_connection {
    struct stream stream;
    struct flow *flow;
    struct http_connection *next; /* idle or spare list */
    struct http_connection *next_made;
    bool busy;
    bool connected;
    bool used;  /* had a reply before */
    bool fresh; /* no byte of the reply so far */
    bool retried;
    bool timed_out;
    bool in_body;
    struct flow_request request;
    struct http1_scan scan;
    struct http1_body body;
    unsigned status;
    bool keep_alive;
};

struct http_wire {
    struct http_connection *made;
    struct http_connection *idle;
    struct http_connection *spare; /* closed */
    uint32_t open_count;
    uint32_t open_max;
    enum http1_method method;
    size_t request_bytes;
    char request[REQUEST_BYTES];
};

static struct http_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct http_connection, stream));
}

static struct http_wire *wire_of(const struct http_connection *connection)
{
    return connection->flow->wire;
}

static void idle_remove(struct http_wire *wire, const struct http_connection *connection)
{
    struct http_connection **link = &wire->idle;

    while (*link && *link != connection)
        link = &(*link)->next;
    if (*link)
        *link = connection->next;
}

/* ---------------------------------------------------------------- requests */

static void put_request(struct http_connection *connection)
{
    struct http_wire *wire = wire_of(connection);
    struct stream *stream = &connection->stream;

    connection->scan = (struct http1_scan){0};
    connection->in_body = false;
    connection->fresh = true;
    stream_put(stream, wire->request, wire->request_bytes);
    stream_put_repeated(stream, pattern_bytes(), PATTERN_BYTES,
                        connection->flow->spec.http.requests[0].body.mean);
}

static const struct stream_handler http_handler;

static bool http_send_try(struct flow *flow, const struct flow_request *request, bool retried)
{
    struct http_wire *wire = flow->wire;
    struct http_connection *connection = wire->idle;

    if (connection) {
        wire->idle = connection->next;
        connection->busy = true;
        connection->request = *request;
        connection->retried = retried;
        put_request(connection);
        return true;
    }
    if (wire->open_count >= wire->open_max)
        return false;
    connection = wire->spare;
    if (connection) {
        wire->spare = connection->next;
    } else {
        connection = memory_zeroed(1, sizeof(*connection));
        connection->next_made = wire->made;
        wire->made = connection;
    }
    *connection = (struct http_connection){.flow = flow,
                                           .next_made = connection->next_made,
                                           .busy = true,
                                           .fresh = true,
                                           .retried = retried,
                                           .request = *request};
    wire->open_count++;
    stream_connect(&connection->stream, flow->loop, (const void *)&flow->spec.target.address,
                   flow->spec.target.length, &http_handler);
    return true;
}

static bool http_send(struct flow *flow, const struct flow_request *request)
{
    return http_send_try(flow, request, false);
}

static void http_connected(struct stream *stream)
{
    struct http_connection *connection = connection_of(stream);

    connection->connected = true;
    put_request(connection);
}

/* ---------------------------------------------------------------- replies */

static enum outcome outcome_of(unsigned status)
{
    if (status == 503 || status == 429)
        return OUTCOME_REFUSED;
    if (status >= 500)
        return OUTCOME_HTTP_5XX;
    return status >= 400 ? OUTCOME_HTTP_4XX : OUTCOME_OK;
}

/* The reply is complete: the connection is free before the flow asks for the next send. */
static void finish(struct http_connection *connection)
{
    struct http_wire *wire = wire_of(connection);
    struct flow_request request = connection->request;

    connection->busy = false;
    connection->used = true;
    if (connection->keep_alive && connection->stream.state == STREAM_OPEN &&
        connection->stream.segment_count == 0) {
        connection->next = wire->idle;
        wire->idle = connection;
    } else {
        stream_close(&connection->stream, 0);
    }
    flow_completed(
        connection->flow, &request,
        &(struct flow_result){.outcome = outcome_of(connection->status),
                              .bytes_in = connection->body.payload_bytes,
                              .bytes_out = connection->flow->spec.http.requests[0].body.mean});
}

static void fail(struct http_connection *connection, enum outcome outcome)
{
    struct flow_request request = connection->request;

    connection->busy = false;
    stream_close(&connection->stream, 0);
    flow_completed(connection->flow, &request,
                   &(struct flow_result){.outcome = outcome, .bytes_in = 0, .bytes_out = 0});
}

/* Bytes of a reply's head used; 0 when more must come. */
static size_t take_head(struct http_connection *connection, const char *data, size_t length)
{
    struct http1_field fields[MAX_FIELDS];
    struct http1_head head;

    http1_head_init(&head, fields, MAX_FIELDS);
    switch (http1_parse_reply_head(data, length, &connection->scan, &http1_default_limits,
                                   wire_of(connection)->method, &head)) {
    case HTTP1_OK:
        connection->scan = (struct http1_scan){0};
        if (head.status < 200)
            return head.head_bytes;
        connection->status = head.status;
        connection->keep_alive = head.keep_alive && head.framing != HTTP1_FRAMING_UNTIL_CLOSE;
        http1_body_init(&connection->body, &head);
        connection->in_body = true;
        return head.head_bytes;
    case HTTP1_NEED_MORE:
        return 0;
    case HTTP1_ERROR:
    default:
        fail(connection, OUTCOME_MALFORMED);
        return length;
    }
}

static size_t take_body(struct http_connection *connection, const char *data, size_t length)
{
    struct http1_slice piece;
    size_t used;
    size_t total = 0;
    enum http1_body_result result;

    do {
        result = http1_body_next(&connection->body, data + total, length - total, &used, &piece);
        total += used;
    } while (result == HTTP1_BODY_DATA);
    if (result == HTTP1_BODY_DONE)
        finish(connection);
    else if (result == HTTP1_BODY_ERROR)
        fail(connection, OUTCOME_MALFORMED);
    return total;
}

static size_t http_data(struct stream *stream, const uint8_t *bytes, size_t length)
{
    struct http_connection *connection = connection_of(stream);
    const char *data = (const char *)bytes;
    size_t used = 0;

    /* Nobody asked for this: a server that gives an idle client up says so. */
    if (!connection->busy) {
        idle_remove(wire_of(connection), connection);
        stream_close(stream, 0);
        return length;
    }
    connection->fresh = false;
    while (connection->busy && stream->state == STREAM_OPEN) {
        bool was_in_body = connection->in_body;
        size_t took;

        if (!was_in_body && used == length)
            break;
        took = was_in_body ? take_body(connection, data + used, length - used)
                           : take_head(connection, data + used, length - used);
        used += took;
        if (took == 0 && was_in_body == connection->in_body)
            break;
    }
    return used;
}

static void http_closed(struct stream *stream, int error)
{
    struct http_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;
    struct http_wire *wire = flow->wire;
    struct http_connection last = *connection;

    idle_remove(wire, connection);
    stream_fini(stream);
    wire->open_count--;
    connection->busy = false;
    connection->next = wire->spare;
    wire->spare = connection;
    if (!last.busy) {
        flow_pump(flow);
        return;
    }
    if (last.timed_out) {
        flow_completed(
            flow, &last.request,
            &(struct flow_result){.outcome = OUTCOME_TIMEOUT, .bytes_in = 0, .bytes_out = 0});
        return;
    }
    if (error == 0 && last.in_body && http1_body_eof(&last.body) == HTTP1_BODY_DONE) {
        flow_completed(flow, &last.request,
                       &(struct flow_result){.outcome = outcome_of(last.status),
                                             .bytes_in = last.body.payload_bytes,
                                             .bytes_out = flow->spec.http.requests[0].body.mean});
        return;
    }
    if (last.used && last.fresh && !last.retried && http1_method_is_idempotent(wire->method)) {
        flow->reconnects++;
        if (http_send_try(flow, &last.request, true))
            return;
    }
    flow_completed(
        flow, &last.request,
        &(struct flow_result){.outcome = last.connected ? OUTCOME_CONNECTION : OUTCOME_CONNECT,
                              .bytes_in = 0,
                              .bytes_out = 0});
}

static const struct stream_handler http_handler = {
    .connected = http_connected,
    .data = http_data,
    .closed = http_closed,
};

/* ---------------------------------------------------------------- life */

static enum http1_method method_of(const char *name)
{
    for (int i = 1; i < HTTP1_METHOD_COUNT; i++) {
        if (strcmp(http1_method_name((enum http1_method)i), name) == 0)
            return (enum http1_method)i;
    }
    return HTTP1_METHOD_OTHER;
}

static int http_open(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    struct http_wire *wire = memory_zeroed(1, sizeof(*wire));
    char host[sizeof(spec->authority) + 16] = "";
    char length[48] = "";

    flow->wire = wire;
    wire->open_max = spec->connections ? spec->connections : spec->concurrency;
    wire->method = method_of(spec->http.requests[0].method);
    if (!spec->http.has_host)
        snprintf(host, sizeof(host), "Host: %s\r\n", spec->authority);
    if (spec->http.requests[0].body.mean)
        snprintf(length, sizeof(length), "Content-Length: %llu\r\n",
                 (unsigned long long)spec->http.requests[0].body.mean);
    wire->request_bytes = (size_t)snprintf(
        wire->request, sizeof(wire->request),
        "%s %s HTTP/1.1\r\n%sUser-Agent: spillload\r\n%s%s\r\n", spec->http.requests[0].method,
        spec->http.requests[0].path, host, spec->http.headers, length);
    return 0;
}

static bool http_ready(const struct flow *flow)
{
    (void)flow;
    return true;
}

static void http_expire(struct flow *flow, uint64_t sent_before_ns)
{
    struct http_wire *wire = flow->wire;

    for (struct http_connection *c = wire->made; c; c = c->next_made) {
        if (c->busy && c->request.sent_ns < sent_before_ns && c->stream.state != STREAM_CLOSED) {
            c->timed_out = true;
            stream_close(&c->stream, 0);
        }
    }
}

static void http_close(struct flow *flow)
{
    struct http_wire *wire = flow->wire;

    while (wire->made) {
        struct http_connection *connection = wire->made;

        wire->made = connection->next_made;
        stream_fini(&connection->stream);
        free(connection);
    }
    free(wire);
    flow->wire = NULL;
}

static const char *http_kind_name(const struct flow *flow, uint32_t kind)
{
    return kind == 0 ? flow->spec.http.requests[0].method : NULL;
}

const struct flow_transport client_http_transport = {
    .kind_name = http_kind_name,
    .open = http_open,
    .ready = http_ready,
    .send = http_send,
    .expire = http_expire,
    .close = http_close,
};
