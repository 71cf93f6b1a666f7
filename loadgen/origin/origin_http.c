/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin's HTTP/1.1 side: keep-alive, any path, bodies of any size both ways.
 *
 * States of a connection
 *   HEAD     a request head is awaited
 *   BODY     its body is read and dropped
 *   SERVICE  its job is in the service; what else arrives waits
 * One request at a time per connection, answered before the next one is looked at. A connection
 * that closes in SERVICE is `gone`: its job keeps its slot to the end, as work in a real server
 * does, and only then the connection is freed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/pattern.h"
#include "loadgen/origin/origin.h"
#include "protocols/http/http1.h"
#include "protocols/http/http1_write.h"

#define MAX_FIELDS 100
/* Bodies up to this size are copied behind their head, which makes one send of one piece. */
#define COPY_BYTES 4096

enum state {
    STATE_HEAD,
    STATE_BODY,
    STATE_SERVICE,
};

struct origin_http_connection {
    struct stream stream;
    struct service_job job;
    struct origin_port *port;
    struct origin_http_connection *next_free;
    struct origin_http_connection *next_made;
    enum state state;
    bool gone;
    struct http1_scan scan;
    struct http1_body body;

    /* Of the request in progress. */
    bool keep_alive;
    bool head_only;
    uint8_t minor;
    unsigned status;
    uint64_t reply_bytes;
    /* An answer of the admin paths; NULL for the pattern. */
    char *text;
};

static struct origin_http_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct origin_http_connection, stream));
}

static void release(struct origin_http_connection *connection)
{
    struct origin *origin = connection->port->origin;

    free(connection->text);
    connection->text = NULL;
    stream_fini(&connection->stream);
    connection->next_free = origin->http_free;
    origin->http_free = connection;
}

/* ---------------------------------------------------------------- replies */

static void put_reply_head(struct origin_http_connection *connection)
{
    char head[256];
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
    int length = snprintf(head, sizeof(head),
                          "HTTP/1.1 %u %s\r\nServer: spillorigin\r\nContent-Type: %s\r\n"
                          "Content-Length: %llu\r\n%s\r\n",
                          connection->status, http1_reason_phrase(connection->status),
                          connection->text ? "application/json" : "application/octet-stream",
                          (unsigned long long)connection->reply_bytes, kept);

    stream_put(&connection->stream, head, (size_t)length);
    if (plain) {
        memcpy(origin->http_head, head, (size_t)length);
        origin->http_head_bytes = (size_t)length;
    }
}

/* Answers the request in progress; the connection is ready for the next one, or finishing. */
static void reply(struct origin_http_connection *connection)
{
    struct stream *stream = &connection->stream;

    put_reply_head(connection);
    if (!connection->head_only) {
        if (connection->text)
            stream_put(stream, connection->text, (size_t)connection->reply_bytes);
        else if (connection->reply_bytes <= COPY_BYTES)
            stream_put(stream, pattern_bytes(), (size_t)connection->reply_bytes);
        else
            stream_put_repeated(stream, pattern_bytes(), PATTERN_BYTES, connection->reply_bytes);
        if (!connection->text)
            connection->port->counters.bytes_out += connection->reply_bytes;
    }
    free(connection->text);
    connection->text = NULL;
    connection->state = STATE_HEAD;
    connection->scan = (struct http1_scan){0};
    if (!connection->keep_alive)
        stream_finish(stream);
}

static void job_done(struct service_job *job)
{
    struct origin_http_connection *connection =
        (void *)((char *)job - offsetof(struct origin_http_connection, job));

    if (connection->gone) {
        release(connection);
        return;
    }
    reply(connection);
    /* The next request may be there already. */
    if (connection->stream.input_length)
        stream_resume(&connection->stream);
}

/* ---------------------------------------------------------------- requests */

/* The number after "bytes=" in a query string; the origin's own size when there is none. */
static uint64_t wanted_bytes(const struct origin *origin, struct http1_slice query)
{
    static const char name[] = "bytes=";
    const char *p = query.ptr;
    const char *end = query.ptr + query.len;

    while (p && (size_t)(end - p) >= sizeof(name) - 1) {
        if (memcmp(p, name, sizeof(name) - 1) == 0) {
            uint64_t bytes = 0;

            for (p += sizeof(name) - 1; p < end && *p >= '0' && *p <= '9'; p++) {
                if (bytes < INT64_MAX / 16)
                    bytes = bytes * 10 + (uint64_t)(*p - '0');
            }
            return bytes;
        }
        p = memchr(p, '&', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    return origin->options.reply_bytes;
}

static void copy_slice(char *out, size_t size, struct http1_slice slice)
{
    size_t length = slice.len < size ? slice.len : size - 1;

    if (length)
        memcpy(out, slice.ptr, length);
    out[length] = '\0';
}

static bool answer_admin(struct origin_http_connection *connection, const struct http1_head *head)
{
    static const char prefix[] = "/_origin/";
    char path[32];
    char query[128];
    size_t prefix_length = sizeof(prefix) - 1;

    if (head->path.len < prefix_length || memcmp(head->path.ptr, prefix, prefix_length) != 0)
        return false;
    copy_slice(
        path, sizeof(path),
        (struct http1_slice){head->path.ptr + prefix_length, head->path.len - prefix_length});
    copy_slice(query, sizeof(query), head->query);
    connection->text = memory_zeroed(1, 2048);
    connection->status =
        origin_admin(connection->port->origin,
                     head->method != HTTP1_METHOD_GET && head->method != HTTP1_METHOD_HEAD, path,
                     query, connection->text, 2048);
    connection->reply_bytes = strlen(connection->text);
    return true;
}

static void begin_request(struct origin_http_connection *connection, const struct http1_head *head)
{
    connection->keep_alive = head->keep_alive;
    connection->head_only = head->method == HTTP1_METHOD_HEAD;
    connection->minor = head->minor;
    connection->status = 200;
    if (!answer_admin(connection, head)) {
        connection->port->counters.requests++;
        connection->reply_bytes = wanted_bytes(connection->port->origin, head->query);
    }
    http1_body_init(&connection->body, head);
    connection->state = STATE_BODY;
    if (head->expect_continue && !http1_body_is_done(&connection->body))
        stream_put(&connection->stream, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

static void submit(struct origin_http_connection *connection)
{
    connection->state = STATE_SERVICE;
    if (connection->text || origin_submit(connection->port, &connection->job))
        reply(connection);
}

static void refuse(struct origin_http_connection *connection, unsigned status, const char *reason)
{
    char text[512];
    struct http1_writer writer;
    struct http1_error_reply error = {
        .status = (uint16_t)status, .client_minor = 1, .close = true, .explanation = reason};

    connection->port->counters.errors++;
    http1_writer_init(&writer, text, sizeof(text));
    http1_write_error_reply(&writer, &error);
    if (!writer.overflow)
        stream_put(&connection->stream, text, http1_writer_len(&writer));
    stream_finish(&connection->stream);
}

/* Each returns the bytes it used; 0 means that more must come first. */
static size_t take_head(struct origin_http_connection *connection, const char *data, size_t length)
{
    struct http1_field fields[MAX_FIELDS];
    struct http1_head head;

    http1_head_init(&head, fields, MAX_FIELDS);
    switch (
        http1_parse_request_head(data, length, &connection->scan, &http1_default_limits, &head)) {
    case HTTP1_OK:
        begin_request(connection, &head);
        return head.head_bytes;
    case HTTP1_NEED_MORE:
        return 0;
    case HTTP1_ERROR:
    default:
        refuse(connection, head.error_status, head.error_reason);
        return length;
    }
}

static size_t take_body(struct origin_http_connection *connection, const char *data, size_t length)
{
    struct http1_slice piece;
    size_t used;
    size_t total = 0;

    for (;;) {
        enum http1_body_result result =
            http1_body_next(&connection->body, data + total, length - total, &used, &piece);

        total += used;
        if (result == HTTP1_BODY_DATA) {
            connection->port->counters.bytes_in += piece.len;
            continue;
        }
        if (result == HTTP1_BODY_DONE)
            submit(connection);
        else if (result == HTTP1_BODY_ERROR)
            refuse(connection, 400, connection->body.error_reason);
        return result == HTTP1_BODY_ERROR ? length : total;
    }
}

static size_t http_data(struct stream *stream, const uint8_t *bytes, size_t length)
{
    struct origin_http_connection *connection = connection_of(stream);
    const char *data = (const char *)bytes;
    size_t used = 0;

    while (stream->state == STREAM_OPEN && !stream->close_when_sent &&
           connection->state != STATE_SERVICE && !stream_output_full(stream)) {
        enum state before = connection->state;

        if (before == STATE_HEAD && used == length)
            break;
        size_t took = before == STATE_HEAD ? take_head(connection, data + used, length - used)
                                           : take_body(connection, data + used, length - used);

        used += took;
        /* A request without a body takes no bytes as its body, yet moves on. */
        if (took == 0 && connection->state == before)
            break;
    }
    return used;
}

static void http_drained(struct stream *stream)
{
    stream_resume(stream);
}

static void http_closed(struct stream *stream, int error)
{
    struct origin_http_connection *connection = connection_of(stream);

    (void)error;
    if (connection->state == STATE_SERVICE)
        connection->gone = true;
    else
        release(connection);
}

static const struct stream_handler http_handler = {
    .data = http_data,
    .drained = http_drained,
    .closed = http_closed,
};

void origin_http_accept(struct origin_port *port, int fd)
{
    struct origin *origin = port->origin;
    struct origin_http_connection *connection = origin->http_free;

    if (connection) {
        origin->http_free = connection->next_free;
    } else {
        connection = memory_zeroed(1, sizeof(*connection));
        connection->next_made = origin->http_made;
        origin->http_made = connection;
    }
    *connection = (struct origin_http_connection){
        .port = port, .next_made = connection->next_made, .job.done = job_done};
    if (stream_open(&connection->stream, origin->loop, fd, &http_handler) != 0)
        release(connection);
}

void origin_http_fini(struct origin *origin)
{
    while (origin->http_made) {
        struct origin_http_connection *connection = origin->http_made;

        origin->http_made = connection->next_made;
        stream_fini(&connection->stream);
        free(connection->text);
        free(connection);
    }
}
