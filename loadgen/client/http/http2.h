/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/2 transport of flows, for its own parts alone: up to `streams` requests at once per
 * connection; nghttp2 does the frames. Over TLS (ALPN h2) or plain with prior knowledge.
 *
 *   client_http2.c      requests: drawn, sent, sent again, given up     flow ─► request
 *   http2_connection.c  connections: which takes the next, how they end        ─► connection
 *   http2_session.c     nghttp2: frames out, and what those that come mean     ─► stream
 *
 * States of a connection
 *   OPEN     connecting or connected; in the ring when it has room for another request. The ring's
 *            first takes the next request and goes to its end, so that all get alike
 *   RETIRED  takes no more: the server said GOAWAY, its stream numbers are used up, or it broke;
 *            counts no more as one of those the flow may have; closes when its last request ends
 *
 * A request is in one place: with a connection under a stream number, or in the queue `again`.
 * There go those that the server certainly did not begin (REFUSED_STREAM, or above the last stream
 * of a GOAWAY: RFC 9113 8.7; or not sent at all), and idempotent ones whose connection had served
 * others and ended before their reply began. They are sent again at most HTTP2_MAX_TRIES times,
 * unseen by the flow.
 *
 * Output is made at the end of the turn (stream_produce), so that all requests of a turn leave with
 * one system call; uploads go on when the stream has sent what it had.
 */
#ifndef LOADGEN_CLIENT_HTTP_HTTP2_H
#define LOADGEN_CLIENT_HTTP_HTTP2_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/client/flow.h"
#include "loadgen/client/http/http_endpoint.h"
#include "loadgen/client/http/http_plan.h"
#include "loadgen/net/stream.h"

#define HTTP2_MAX_TRIES 4U

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
    bool spoken; /* the server has answered in HTTP/2 */
};

static inline struct http2_wire *http2_wire_of(const struct http2_connection *connection)
{
    return connection->flow->wire;
}

/* The one out-of-memory policy, for what nghttp2 could not allocate. */
void http2_out_of_memory(void);

/* ---------------------------------------------------------------- requests (client_http2.c) */

/* The request ends, here and for the flow. */
void http2_complete(struct flow *flow, struct http2_request *request, enum outcome outcome);
/* It has no connection any more; http2_pump() gives it another. */
void http2_queue_again(struct http2_wire *wire, struct http2_request *request);
/* Sends what waits in the queue, then what waits in the flow. */
void http2_pump(struct flow *flow);

/* ---------------------------------------------------------------- http2_connection.c */

/* For the next request: an idle connection, a new one, any with room; NULL when none has. */
struct http2_connection *http2_connection_for_next(struct flow *flow);
/* After `active`, `retired` or the server's limit changed. */
void http2_ring_update(struct http2_connection *connection);
/* It took another request: the others come first now. */
void http2_ring_rotate(struct http2_connection *connection);
void http2_retire(struct http2_connection *connection);

/* ---------------------------------------------------------------- http2_session.c */

nghttp2_session_callbacks *http2_callbacks_create(void);
/* With its settings and windows submitted. */
nghttp2_session *http2_session_create(struct http2_connection *connection);
/* Submits the request under its draw; sets its id and connection. The session must allow it. */
void http2_session_submit(struct http2_connection *connection, struct http2_request *request);

#endif
