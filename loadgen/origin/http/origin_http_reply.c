/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the origin's HTTP side: heads, bodies at once or at a pace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/pattern.h"
#include "loadgen/origin/http/origin_http.h"
#include "protocols/http/http1_write.h"

/* Bodies up to this size are copied behind their head, which makes one send of one piece. */
#define COPY_BYTES 4096
/* A slow body grows this often, or by the byte when it is slower than that. */
#define PACE_NS  10000000ULL
#define NS_PER_S 1000000000ULL

void origin_http_drop_request(struct origin_http_connection *connection)
{
    free(connection->text);
    free(connection->factor);
    connection->text = NULL;
    connection->factor = NULL;
}

static void put_head(struct origin_http_connection *connection)
{
    char head[320];
    char retry[48] = "";
    struct origin *origin = connection->port->origin;
    bool plain = connection->keep_alive && connection->minor == 1 && connection->status == 200 &&
                 !connection->text && connection->reply_bytes == origin->options.reply_bytes;

    if (plain && origin->http_head_bytes) {
        stream_put(&connection->stream, origin->http_head, origin->http_head_bytes);
        return;
    }
    const char *kept = connection->keep_alive
                           ? (connection->minor == 0 ? "Connection: keep-alive\r\n" : "")
                           : "Connection: close\r\n";
    uint32_t retry_after_s = connection->port->settings.retry_after_s;

    if (connection->status == ORIGIN_ERROR_HTTP_LATER && retry_after_s > 0)
        snprintf(retry, sizeof(retry), "Retry-After: %u\r\n", retry_after_s);
    int length = snprintf(head, sizeof(head),
                          "HTTP/1.1 %u %s\r\nServer: spillorigin\r\nContent-Type: %s\r\n"
                          "Content-Length: %llu\r\n%s%s\r\n",
                          connection->status, http1_reason_phrase(connection->status),
                          connection->text ? "application/json" : "application/octet-stream",
                          (unsigned long long)connection->reply_bytes, retry, kept);

    stream_put(&connection->stream, head, (size_t)length);
    if (plain) {
        memcpy(origin->http_head, head, (size_t)length);
        origin->http_head_bytes = (size_t)length;
    }
}

static void finish(struct origin_http_connection *connection)
{
    origin_http_drop_request(connection);
    connection->state = ORIGIN_HTTP_HEAD;
    connection->scan = (struct http1_scan){0};
    if (!connection->keep_alive)
        stream_finish(&connection->stream);
}

/* ---------------------------------------------------------------- at a pace */

/* How much of the body may be out by now. */
static uint64_t due_bytes(const struct origin_http_connection *connection, uint64_t now_ns)
{
    uint64_t rate = connection->port->settings.slow_body_bytes_per_s;
    unsigned __int128 bytes =
        (unsigned __int128)(now_ns - connection->pace_start_ns) * rate / NS_PER_S;

    return rate == 0 || bytes > connection->reply_bytes ? connection->reply_bytes : (uint64_t)bytes;
}

static void put_due(struct origin_http_connection *connection, uint64_t now_ns)
{
    uint64_t due = due_bytes(connection, now_ns);

    while (connection->pace_bytes < due && !stream_output_full(&connection->stream)) {
        size_t position = (size_t)(connection->pace_bytes % PATTERN_BYTES);
        uint64_t piece = due - connection->pace_bytes;

        if (piece > PATTERN_BYTES - position)
            piece = PATTERN_BYTES - position;
        stream_put_repeated(&connection->stream, pattern_bytes() + position, (size_t)piece, piece);
        connection->pace_bytes += piece;
        connection->port->counters.bytes_out += piece;
    }
}

static void pace_on(struct origin_http_connection *connection, uint64_t now_ns)
{
    uint64_t rate = connection->port->settings.slow_body_bytes_per_s;
    uint64_t step_ns = rate > 0 && NS_PER_S / rate > PACE_NS ? NS_PER_S / rate : PACE_NS;

    put_due(connection, now_ns);
    if (connection->pace_bytes < connection->reply_bytes)
        loop_timer_set(connection->port->origin->loop, &connection->pace, now_ns + step_ns);
    else
        finish(connection);
}

/* ---------------------------------------------------------------- at once */

static void put_body(struct origin_http_connection *connection)
{
    struct stream *stream = &connection->stream;

    if (connection->head_only)
        return;
    if (connection->text) {
        stream_put(stream, connection->text, (size_t)connection->reply_bytes);
        return;
    }
    if (connection->reply_bytes <= COPY_BYTES)
        stream_put(stream, pattern_bytes(), (size_t)connection->reply_bytes);
    else
        stream_put_repeated(stream, pattern_bytes(), PATTERN_BYTES, connection->reply_bytes);
    connection->port->counters.bytes_out += connection->reply_bytes;
}

static void pace_fire(struct loop_timer *timer);

static void begin(struct origin_http_connection *connection, uint64_t now_ns)
{
    put_head(connection);
    connection->head_sent = true;
    if (connection->port->settings.slow_body_bytes_per_s > 0 && !connection->text &&
        !connection->head_only) {
        connection->state = ORIGIN_HTTP_REPLY;
        connection->pace.fire = pace_fire;
        connection->pace_start_ns = now_ns;
        connection->pace_bytes = 0;
        pace_on(connection, now_ns);
        return;
    }
    put_body(connection);
    finish(connection);
}

static void pace_fire(struct loop_timer *timer)
{
    struct origin_http_connection *connection =
        (void *)((char *)timer - offsetof(struct origin_http_connection, pace));
    uint64_t now_ns = connection->port->origin->loop->now_ns;

    if (connection->head_sent)
        pace_on(connection, now_ns);
    else
        begin(connection, now_ns);
    origin_http_go_on(connection);
}

void origin_http_reply(struct origin_http_connection *connection)
{
    uint64_t wait_ns = connection->port->settings.first_byte_ns;
    struct loop *loop = connection->port->origin->loop;

    if (wait_ns == 0 || connection->text) {
        begin(connection, loop->now_ns);
        return;
    }
    connection->state = ORIGIN_HTTP_REPLY;
    connection->head_sent = false;
    connection->pace.fire = pace_fire;
    loop_timer_set(loop, &connection->pace, loop->now_ns + wait_ns);
}
