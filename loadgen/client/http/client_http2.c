/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 transport of flows: its requests. States and parts are in the header. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/http/http2.h"

/* :method, :scheme, :authority, :path, content-length */
#define EXTRA_FIELDS 5
/* Of content-length. */
#define DECIMAL_BYTES 24

/* ---------------------------------------------------------------- requests */

void http2_queue_again(struct http2_wire *wire, struct http2_request *request)
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

/* The memory is free for the next before the flow is told. */
void http2_complete(struct flow *flow, struct http2_request *request, enum outcome outcome)
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

/* False when there is no room now. */
static bool start(struct flow *flow, struct http2_request *request)
{
    struct http2_connection *connection;

    while ((connection = http2_connection_for_next(flow))) {
        /* GOAWAY is here, or its numbers are used up. */
        if (!nghttp2_session_check_request_allowed(connection->session)) {
            http2_retire(connection);
            stream_produce(&connection->stream);
            continue;
        }
        http2_session_submit(connection, request);
        request->sent = false;
        request->tries++;
        connection->active++;
        http2_ring_rotate(connection);
        stream_produce(&connection->stream);
        return true;
    }
    return false;
}

void http2_pump(struct flow *flow)
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

/* ---------------------------------------------------------------- time-outs */

static void expire_waiting(struct flow *flow, uint64_t sent_before_ns)
{
    struct http2_wire *wire = flow->wire;
    struct http2_request *request = wire->again_first;

    wire->again_first = wire->again_last = NULL;
    while (request) {
        struct http2_request *next = request->next;

        if (request->request.sent_ns < sent_before_ns)
            http2_complete(flow, request, OUTCOME_TIMEOUT);
        else
            http2_queue_again(wire, request);
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
        http2_ring_update(connection);
        /* One that does not even connect is given up with its last request. */
        if (connection->connected)
            stream_produce(&connection->stream);
        else if (connection->active == 0)
            stream_close(&connection->stream, ETIMEDOUT);
        http2_complete(flow, r, OUTCOME_TIMEOUT);
    }
}

/* ---------------------------------------------------------------- life */

/* Room for the fields of the largest request. */
static void prepare_fields(struct http2_wire *wire)
{
    size_t path_bytes = 0;

    for (size_t i = 0; i < wire->plan->kinds_count; i++) {
        if (wire->plan->kinds[i].path.most_bytes > path_bytes)
            path_bytes = wire->plan->kinds[i].path.most_bytes;
    }
    wire->values = memory_zeroed(1, path_bytes + wire->plan->fields_most_bytes + DECIMAL_BYTES);
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
    wire->callbacks = http2_callbacks_create();
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
