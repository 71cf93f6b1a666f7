/* SPDX-License-Identifier: Apache-2.0 */
/* What nghttp2 is told and what it tells: requests as fields and bodies, replies as outcomes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/http/http2.h"
#include "loadgen/client/http/http_reply.h"

#define WINDOW_BYTES ((1U << 30) - 1)

void http2_out_of_memory(void)
{
    fprintf(stderr, "spillload: out of memory for HTTP/2: use fewer connections or streams\n");
    exit(3);
}

/* ---------------------------------------------------------------- requests */

static ssize_t upload(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                      uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct http2_request *request = source->ptr;
    const struct http2_connection *connection = user;
    uint64_t left = request->draw.values.body_bytes - request->uploaded;
    size_t part = left < room ? (size_t)left : room;

    (void)session;
    (void)id;
    http_plan_body(http2_wire_of(connection)->plan, &request->draw, request->uploaded, out, part);
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

void http2_session_submit(struct http2_connection *connection, struct http2_request *request)
{
    struct http2_wire *wire = http2_wire_of(connection);
    bool has_body = wire->plan->kinds[request->draw.kind].has_body;
    nghttp2_data_provider body = {.source.ptr = request, .read_callback = upload};
    size_t count = fields_of(wire, &request->draw, wire->endpoint.tls != NULL);
    int32_t id = nghttp2_submit_request(connection->session, NULL, wire->fields, count,
                                        has_body ? &body : NULL, request);

    if (id < 0)
        http2_out_of_memory();
    request->connection = connection;
    request->id = id;
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
    if (http2_wire_of(connection)->plan->kinds[request->draw.kind].has_body &&
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
            connection->settings_seen = http2_wire_of(connection)->spoken = true;
            http2_ring_update(connection);
        }
        break;
    case NGHTTP2_GOAWAY:
        http2_retire(connection);
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
    http2_ring_update(connection);
    if (request->ended && request->status) {
        connection->used = true;
        http2_complete(flow, request, http_reply_outcome(request->status));
    } else if (error == NGHTTP2_REFUSED_STREAM || !request->sent) {
        if (request->tries < HTTP2_MAX_TRIES)
            http2_queue_again(flow->wire, request);
        else
            http2_complete(flow, request, OUTCOME_REFUSED);
    } else {
        http2_complete(flow, request, request->reset ? OUTCOME_CONNECTION : OUTCOME_MALFORMED);
    }
    return 0;
}

/* ---------------------------------------------------------------- life */

nghttp2_session *http2_session_create(struct http2_connection *connection)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
    };
    nghttp2_session *session;

    if (nghttp2_session_client_new(&session, http2_wire_of(connection)->callbacks, connection) !=
            0 ||
        nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2) != 0 ||
        nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)WINDOW_BYTES) != 0)
        http2_out_of_memory();
    return session;
}

nghttp2_session_callbacks *http2_callbacks_create(void)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        http2_out_of_memory();
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    return callbacks;
}
