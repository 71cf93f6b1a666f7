/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/1.1 transport of flows: one request at a time per connection, connections kept alive or
 * one for each request.
 *
 * States of a connection
 *   IDLE     in the idle list, last used first; a server may close it here without harm
 *   BUSY     carries `request`: connecting, sending, or reading the reply
 *   RETIRED  closing by our own will; counts no more as one of those the flow may have
 * A request on a connection that was used before and closes before the first byte of a reply is
 * sent once more on another connection: the server's closing and our sending may have crossed (RFC
 * 9110 9.2.2 lets only idempotent ones be repeated, so others fail).
 *
 * Uploads: the pattern is sent from where it lies; a file's content is made UPLOAD_BYTES at a time,
 * the next when the stream has sent those before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/pattern.h"
#include "loadgen/client/flow.h"
#include "loadgen/client/http/http_endpoint.h"
#include "loadgen/client/http/http_plan.h"
#include "loadgen/client/http/http_reply.h"
#include "loadgen/net/stream.h"
#include "protocols/http/http1.h"

#define MAX_FIELDS   100
#define UPLOAD_BYTES (64U * 1024)

struct http_connection {
    struct stream stream;
    struct flow *flow;
    struct http_connection *next; /* idle or spare list */
    struct http_connection *previous;
    struct http_connection *next_made;
    bool busy;
    bool retired;
    bool connected;
    bool used;  /* had a reply before */
    bool fresh; /* no byte of the reply so far */
    bool retried;
    bool timed_out;
    bool in_body;
    bool keep_alive;
    unsigned status;
    uint64_t retry_after_ns;
    uint64_t uploaded; /* of a body that is made piece by piece */
    struct flow_request request;
    struct http_draw draw;
    struct http1_scan scan;
    struct http1_body body;
};

struct http_wire {
    struct http_endpoint endpoint;
    struct http_plan *plan;
    struct http_connection *made;
    struct http_connection *idle;
    struct http_connection *spare; /* closed */
    uint32_t open_count;
    uint32_t open_max;
};

static struct http_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct http_connection, stream));
}

static struct http_wire *wire_of(const struct http_connection *connection)
{
    return connection->flow->wire;
}

static const struct http_kind *kind_of(const struct http_connection *connection)
{
    return &wire_of(connection)->plan->kinds[connection->draw.kind];
}

static void idle_add(struct http_wire *wire, struct http_connection *connection)
{
    connection->previous = NULL;
    connection->next = wire->idle;
    if (wire->idle)
        wire->idle->previous = connection;
    wire->idle = connection;
}

static void idle_remove(struct http_wire *wire, const struct http_connection *connection)
{
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        wire->idle = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
}

/* Makes room for another connection at once; `closed` comes at the end of the turn. */
static void retire(struct http_connection *connection)
{
    connection->retired = true;
    wire_of(connection)->open_count--;
    stream_close(&connection->stream, 0);
}

/* ---------------------------------------------------------------- requests */

static void put_file_piece(struct http_connection *connection)
{
    uint64_t left = connection->draw.values.body_bytes - connection->uploaded;
    size_t part = left < UPLOAD_BYTES ? (size_t)left : UPLOAD_BYTES;

    if (part == 0)
        return;
    http_plan_body(wire_of(connection)->plan, &connection->draw, connection->uploaded,
                   stream_reserve(&connection->stream, part), part);
    connection->uploaded += part;
    stream_commit(&connection->stream, part);
}

static void put_request(struct http_connection *connection)
{
    struct stream *stream = &connection->stream;
    const struct http_kind *kind = kind_of(connection);
    uint8_t *head = stream_reserve(stream, kind->head.most_bytes);

    connection->scan = (struct http1_scan){0};
    connection->in_body = false;
    connection->fresh = true;
    connection->uploaded = 0;
    connection->retry_after_ns = 0;
    stream_commit(stream, http_template_fill(&kind->head, &connection->draw.values, (char *)head));
    if (kind->sends_file)
        put_file_piece(connection);
    else
        stream_put_repeated(stream, pattern_bytes(), PATTERN_BYTES,
                            connection->draw.values.body_bytes);
}

static void http_sent(struct stream *stream)
{
    struct http_connection *connection = connection_of(stream);

    if (connection->busy && kind_of(connection)->sends_file)
        put_file_piece(connection);
}

static const struct stream_handler http_handler;

static struct http_connection *connection_take(struct flow *flow)
{
    struct http_wire *wire = flow->wire;
    struct http_connection *connection = wire->spare;
    struct http_connection *next_made;

    if (connection) {
        wire->spare = connection->next;
        next_made = connection->next_made;
    } else {
        connection = memory_zeroed(1, sizeof(*connection));
        next_made = wire->made;
        wire->made = connection;
    }
    *connection = (struct http_connection){.flow = flow, .next_made = next_made, .fresh = true};
    return connection;
}

static bool http_send_try(struct flow *flow, const struct flow_request *request, bool retried)
{
    struct http_wire *wire = flow->wire;
    struct http_connection *connection = wire->idle;
    bool idle = connection != NULL;
    struct rng rng;

    if (!idle && wire->open_count >= wire->open_max)
        return false;
    if (idle)
        idle_remove(wire, connection);
    else
        connection = connection_take(flow);
    connection->busy = true;
    connection->retried = retried;
    connection->request = *request;
    if (!http_plan_is_fixed(wire->plan))
        flow_request_rng(flow, request, &rng);
    http_plan_draw(wire->plan, &rng, request->number, &connection->draw);
    if (idle) {
        put_request(connection);
    } else {
        wire->open_count++;
        http_endpoint_connect(&wire->endpoint, &connection->stream, &http_handler);
    }
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
    if (connection->busy)
        put_request(connection);
}

/* ---------------------------------------------------------------- replies */

static struct flow_result result_of(const struct http_connection *connection)
{
    return (struct flow_result){.outcome = http_reply_outcome(connection->status),
                                .kind = connection->draw.kind,
                                .bytes_in = connection->body.payload_bytes,
                                .bytes_out = connection->draw.values.body_bytes,
                                .retry_after_ns = connection->retry_after_ns};
}

/* The reply is complete: the connection is free before the flow asks for the next send. */
static void finish(struct http_connection *connection)
{
    struct http_wire *wire = wire_of(connection);
    struct flow_request request = connection->request;
    struct flow_result result = result_of(connection);
    bool all_sent = connection->stream.segment_count == 0 &&
                    (!kind_of(connection)->sends_file || connection->uploaded == result.bytes_out);

    connection->busy = false;
    connection->used = true;
    if (connection->keep_alive && !connection->flow->spec.http.close_each && all_sent &&
        connection->stream.state == STREAM_OPEN)
        idle_add(wire, connection);
    else
        retire(connection);
    flow_completed(connection->flow, &request, &result);
}

static void fail(struct http_connection *connection, enum outcome outcome)
{
    struct flow_request request = connection->request;
    struct flow_result result = {.outcome = outcome, .kind = connection->draw.kind};

    connection->busy = false;
    retire(connection);
    flow_completed(connection->flow, &request, &result);
}

static void note_head(struct http_connection *connection, const struct http1_head *head)
{
    connection->status = head->status;
    connection->keep_alive = head->keep_alive && head->framing != HTTP1_FRAMING_UNTIL_CLOSE;
    http1_body_init(&connection->body, head);
    connection->in_body = true;
    if (http1_head_has(head, HTTP1_FIELD_RETRY_AFTER)) {
        struct http1_slice value = http1_head_find(head, HTTP1_FIELD_RETRY_AFTER)->value;

        connection->retry_after_ns = http_reply_retry_after_ns(value.ptr, value.len, time(NULL));
    }
}

/* Bytes of a reply's head used; 0 when more must come. */
static size_t take_head(struct http_connection *connection, const char *data, size_t length)
{
    struct http1_field fields[MAX_FIELDS];
    struct http1_head head;

    http1_head_init(&head, fields, MAX_FIELDS);
    switch (http1_parse_reply_head(data, length, &connection->scan, &http1_default_limits,
                                   kind_of(connection)->method, &head)) {
    case HTTP1_OK:
        connection->scan = (struct http1_scan){0};
        /* An interim reply; but nobody asked for another protocol. */
        if (head.status < 200 && head.status != 101)
            return head.head_bytes;
        if (head.status == 101) {
            fail(connection, OUTCOME_MALFORMED);
            return length;
        }
        note_head(connection, &head);
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
    if (result == HTTP1_BODY_DONE) {
        /* What follows the reply answers nothing. It must not pass for the reply to a request that
         * is sent only now, so this connection gets none. */
        if (total < length)
            connection->keep_alive = false;
        finish(connection);
    } else if (result == HTTP1_BODY_ERROR) {
        fail(connection, OUTCOME_MALFORMED);
    }
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
        retire(connection);
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

/* ---------------------------------------------------------------- ends */

/* What became of the request of a connection that ended; the connection is spare already. */
static void lost(struct flow *flow, const struct http_connection *last, int error)
{
    struct http_wire *wire = flow->wire;
    struct flow_result result = {.outcome = last->connected ? OUTCOME_CONNECTION : OUTCOME_CONNECT,
                                 .kind = last->draw.kind};
    struct http1_body body = last->body;

    if (last->timed_out) {
        result.outcome = OUTCOME_TIMEOUT;
    } else if (error == 0 && last->in_body && http1_body_eof(&body) == HTTP1_BODY_DONE) {
        result = result_of(last);
    } else if (last->used && last->fresh && !last->retried &&
               http1_method_is_idempotent(wire->plan->kinds[last->draw.kind].method)) {
        flow->reconnects++;
        if (http_send_try(flow, &last->request, true))
            return;
    }
    flow_completed(flow, &last->request, &result);
}

static void http_closed(struct stream *stream, int error)
{
    struct http_connection *connection = connection_of(stream);
    struct flow *flow = connection->flow;
    struct http_wire *wire = flow->wire;
    struct http_connection last = *connection;

    if (!last.busy && !last.retired)
        idle_remove(wire, connection);
    if (!last.retired)
        wire->open_count--;
    if (!last.connected && last.busy && !last.timed_out)
        http_endpoint_explain(&wire->endpoint, stream, error);
    stream_fini(stream);
    connection->busy = false;
    connection->next = wire->spare;
    wire->spare = connection;
    if (last.busy)
        lost(flow, &last, error);
    else if (!last.retired)
        flow_pump(flow);
}

static const struct stream_handler http_handler = {
    .connected = http_connected,
    .data = http_data,
    .sent = http_sent,
    .closed = http_closed,
};

/* ---------------------------------------------------------------- life */

static int http_open(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    struct http_wire *wire = memory_zeroed(1, sizeof(*wire));
    char problem[HTTP_PLAN_PROBLEM_BYTES];

    flow->wire = wire;
    wire->open_max = spec->connections ? spec->connections : spec->concurrency;
    wire->plan = http_plan_create(spec, problem);
    if (!wire->plan) {
        fprintf(stderr, "spillload: flow %s: %s\n", spec->name, problem);
        return -EINVAL;
    }
    return http_endpoint_init(&wire->endpoint, flow);
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
            stream_close(&c->stream, ETIMEDOUT);
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
    http_endpoint_fini(&wire->endpoint);
    http_plan_destroy(wire->plan);
    free(wire);
    flow->wire = NULL;
}

static const char *http_kind_name(const struct flow *flow, uint32_t kind)
{
    const struct http_wire *wire = flow->wire;

    return kind < wire->plan->kinds_count ? wire->plan->kinds[kind].name : NULL;
}

const struct flow_transport client_http_transport = {
    .kind_name = http_kind_name,
    .open = http_open,
    .ready = http_ready,
    .send = http_send,
    .expire = http_expire,
    .close = http_close,
};
