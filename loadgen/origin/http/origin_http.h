/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of the origin's HTTP side; for the files of this folder alone.
 *
 * States
 *   HEAD     a request head is awaited
 *   BODY     its body is read and dropped
 *   SERVICE  its job is in the service; what else arrives waits
 *   REPLY    its reply is on its way, slower than it could be (first-byte, slow-body); likewise
 * One request at a time per connection, answered before the next one is looked at. A connection
 * that closes in SERVICE is `gone`: its job keeps its slot to the end, as work in a real server
 * does, and only then the connection is freed.
 */
#ifndef LOADGEN_ORIGIN_HTTP_ORIGIN_HTTP_H
#define LOADGEN_ORIGIN_HTTP_ORIGIN_HTTP_H

#include "loadgen/origin/origin.h"
#include "loadgen/origin/service/factor.h"
#include "protocols/http/http1.h"

enum origin_http_state {
    ORIGIN_HTTP_HEAD,
    ORIGIN_HTTP_BODY,
    ORIGIN_HTTP_SERVICE,
    ORIGIN_HTTP_REPLY,
};

/* Work of one request: the thread that has the job owns it. */
struct origin_http_factor {
    uint64_t n;
    uint64_t cpu_ns;
    size_t count;
    uint64_t factors[FACTOR_MAX];
};

struct origin_http_connection {
    struct stream stream;
    struct service_job job;
    struct origin_port *port;
    struct origin_http_connection *next_free;
    struct origin_http_connection *next_made;
    enum origin_http_state state;
    bool gone;
    struct http1_scan scan;
    struct http1_body body;

    /* Of the request in progress. */
    bool keep_alive;
    bool head_only;
    uint8_t minor;
    unsigned status;
    uint64_t reply_bytes;
    /* A body of its own, JSON; NULL for the pattern. */
    char *text;
    struct origin_http_factor *factor;

    /* In REPLY. */
    struct loop_timer pace;
    bool head_sent;
    uint64_t pace_start_ns;
    uint64_t pace_bytes; /* of the body, handed to the stream */
};

/* Answers the request in progress, now or bit by bit; the connection is then in HEAD, REPLY or
 * finishing. */
void origin_http_reply(struct origin_http_connection *connection);

/* The reply on its way in REPLY was answered to the end: what waits may go on. */
static inline void origin_http_go_on(struct origin_http_connection *connection)
{
    if (connection->state == ORIGIN_HTTP_HEAD && connection->stream.input_length)
        stream_resume(&connection->stream);
}

/* Frees what the request in progress has of its own. */
void origin_http_drop_request(struct origin_http_connection *connection);

/* GET /factor: gives the job its work, or the reply its complaint. */
void origin_http_take_factor(struct origin_http_connection *connection, struct http1_slice query);

/* Makes the reply's text of the work's result. */
void origin_http_put_factors(struct origin_http_connection *connection);

#endif
