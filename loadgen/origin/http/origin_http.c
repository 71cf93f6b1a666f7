/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin's HTTP/1.1 side: keep-alive, any path, bodies of any size both ways. Requests are read
 * here; a connection's states are in origin_http.h, replies in origin_http_reply.c.
 */
#include "loadgen/origin/http/origin_http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "protocols/http/http1_write.h"

#define MAX_FIELDS       100
#define ADMIN_TEXT_BYTES 8192
#define FACTOR_PATH      "/factor"

static struct origin_http_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct origin_http_connection, stream));
}

static void release(struct origin_http_connection *connection)
{
    struct origin *origin = connection->port->origin;

    origin_http_drop_request(connection);
    stream_fini(&connection->stream);
    connection->next_free = origin->http_free;
    origin->http_free = connection;
}

static void job_done(struct service_job *job)
{
    struct origin_http_connection *connection =
        (void *)((char *)job - offsetof(struct origin_http_connection, job));

    if (connection->gone) {
        release(connection);
        return;
    }
    if (connection->factor)
        origin_http_put_factors(connection);
    origin_http_reply(connection);
    origin_http_go_on(connection);
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
    char query[1200];
    size_t prefix_length = sizeof(prefix) - 1;

    if (head->path.len < prefix_length || memcmp(head->path.ptr, prefix, prefix_length) != 0)
        return false;
    copy_slice(
        path, sizeof(path),
        (struct http1_slice){head->path.ptr + prefix_length, head->path.len - prefix_length});
    copy_slice(query, sizeof(query), head->query);
    connection->text = memory_zeroed(1, ADMIN_TEXT_BYTES);
    connection->status =
        origin_admin(connection->port->origin,
                     head->method != HTTP1_METHOD_GET && head->method != HTTP1_METHOD_HEAD, path,
                     query, connection->text, ADMIN_TEXT_BYTES);
    connection->reply_bytes = strlen(connection->text);
    return true;
}

/* A request that costs a slot, or fails instead. False: the connection was reset. */
static bool begin_service(struct origin_http_connection *connection, const struct http1_head *head)
{
    struct origin_port *port = connection->port;
    const struct origin_error *error = origin_injects(port);

    port->counters.requests++;
    if (error && error->reset) {
        origin_reset(&connection->stream);
        return false;
    }
    if (error) {
        connection->status = error->status[ORIGIN_HTTP];
        connection->text = memory_string("{\"error\": \"this one was to fail\"}\n");
        connection->reply_bytes = strlen(connection->text);
        return true;
    }
    if (head->path.len == sizeof(FACTOR_PATH) - 1 &&
        memcmp(head->path.ptr, FACTOR_PATH, sizeof(FACTOR_PATH) - 1) == 0)
        origin_http_take_factor(connection, head->query);
    else
        connection->reply_bytes = wanted_bytes(port->origin, head->query);
    return true;
}

static void begin_request(struct origin_http_connection *connection, const struct http1_head *head)
{
    connection->keep_alive = head->keep_alive;
    connection->head_only = head->method == HTTP1_METHOD_HEAD;
    connection->minor = head->minor;
    connection->status = 200;
    connection->job.work = NULL;
    if (!answer_admin(connection, head) && !begin_service(connection, head))
        return;
    http1_body_init(&connection->body, head);
    connection->state = ORIGIN_HTTP_BODY;
    if (head->expect_continue && !http1_body_is_done(&connection->body))
        stream_put(&connection->stream, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

static void submit(struct origin_http_connection *connection)
{
    connection->state = ORIGIN_HTTP_SERVICE;
    if (connection->text || origin_submit(connection->port, &connection->job))
        origin_http_reply(connection);
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
           connection->state < ORIGIN_HTTP_SERVICE && !stream_output_full(stream)) {
        enum origin_http_state before = connection->state;

        if (before == ORIGIN_HTTP_HEAD && used == length)
            break;
        size_t took = before == ORIGIN_HTTP_HEAD
                          ? take_head(connection, data + used, length - used)
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
    loop_timer_cancel(connection->port->origin->loop, &connection->pace);
    if (connection->state == ORIGIN_HTTP_SERVICE)
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
        loop_timer_cancel(origin->loop, &connection->pace);
        origin_http_drop_request(connection);
        stream_fini(&connection->stream);
        free(connection);
    }
}
