/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: reading and sending; connecting, accepting and closing are in stream_lifecycle.c, TLS in
 * stream_tls.c.
 *
 * `turn_end` is the one deferred item of a stream: at the end of a turn it flushes, goes on reading
 * where reading was cut short, and, once closed, tells the owner.
 */
#include "loadgen/net/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "loadgen/base/memory.h"
#include "loadgen/net/stream_private.h"

/* Vectors in one sendmsg(); more segments than that take another call. */
#define SEND_VECTORS 128
/* Per turn and stream, so that one fast peer does not starve the others. */
#define SENDS_PER_TURN    4
#define RECEIVES_PER_TURN 8
/* A repeated segment is offered to the socket at most this much at a time. */
#define SEND_BYTES (1U << 20)

static uint8_t receive_buffer[STREAM_RECEIVE_BYTES];

static void defer(struct stream *stream)
{
    loop_defer(stream->loop, &stream->turn_end);
}

static void output_added(struct stream *stream, uint64_t length)
{
    stream->output_bytes += length;
    if (stream->output_bytes > STREAM_OUTPUT_LIMIT)
        stream->over_limit = true;
    stream->flush_wanted = true;
    defer(stream);
}

/* ---------------------------------------------------------------- input */

/* Keeps what the handler left; `data` may lie in the kept input itself. */
static void keep_input(struct stream *stream, const uint8_t *data, size_t length)
{
    stream->input_length = length;
    if (length == 0)
        return;
    bool own =
        stream->input && data >= stream->input && data <= stream->input + stream->input_capacity;
    size_t offset = own ? (size_t)(data - stream->input) : 0;

    if (!stream->input || length > stream->input_capacity) {
        stream->input_capacity = length < 4096 ? 4096 : length;
        stream->input = memory_grow(stream->input, stream->input_capacity);
    }
    memmove(stream->input, own ? stream->input + offset : data, length);
}

/* Hands data to the handler until it takes no more; what is left becomes the stream's input. */
static void deliver(struct stream *stream, const uint8_t *data, size_t length)
{
    while (length > 0 && !stream->close_when_sent) {
        size_t used = stream->handler->data(stream, data, length);

        if (stream->state != STREAM_OPEN)
            return;
        data += used;
        length -= used;
        if (used == 0)
            break;
    }
    if (stream->close_when_sent)
        length = 0;
    keep_input(stream, data, length);
    stream->paused = stream->input_length >= STREAM_INPUT_LIMIT;
}

/* Where the next receive goes: behind kept input, else into the shared buffer. */
static uint8_t *receive_room(struct stream *stream, size_t *room)
{
    if (stream->input_length == 0) {
        *room = sizeof(receive_buffer);
        return receive_buffer;
    }
    size_t wanted = stream->input_length + (stream->tls ? STREAM_TLS_ROOM_BYTES : 16384);

    if (wanted > stream->input_capacity) {
        stream->input_capacity = wanted;
        stream->input = memory_grow(stream->input, wanted);
    }
    *room = stream->input_capacity - stream->input_length;
    return stream->input + stream->input_length;
}

static ssize_t receive(struct stream *stream, uint8_t *to, size_t room)
{
    if (stream->tls)
        return stream_tls_receive(stream, to, room);
    ssize_t got = recv(stream->io.fd, to, room, 0);

    /* A short read emptied the socket: the next arrival is a new edge. After a hang-up there will
     * be none, so the end of the stream is read for. */
    if (got < 0 ? errno != EINTR : (size_t)got < room && !stream->hung_up)
        stream->readable = false;
    return got;
}

/* True when the handshake, if there is one, is over. */
static bool established(struct stream *stream)
{
    if (stream->state == STREAM_OPEN)
        return true;
    if (!stream_tls_established(stream))
        return false;
    stream->state = STREAM_OPEN;
    if (stream->segment_count)
        output_added(stream, 0);
    if (stream->handler->connected)
        stream->handler->connected(stream);
    return stream->state == STREAM_OPEN;
}

static void read_some(struct stream *stream)
{
    for (int i = 0; i < RECEIVES_PER_TURN && stream->readable && !stream->paused; i++) {
        size_t room;
        uint8_t *to = receive_room(stream, &room);
        ssize_t got = receive(stream, to, room);
        int error = got < 0 ? errno : 0;

        if (got == 0 || (error && error != EAGAIN && error != EINTR)) {
            stream_close(stream, error);
            return;
        }
        if (!established(stream)) {
            if (stream->state == STREAM_CLOSED)
                return;
            continue;
        }
        if (error)
            continue;
        if (to == receive_buffer)
            deliver(stream, to, (size_t)got);
        else
            deliver(stream, stream->input, stream->input_length + (size_t)got);
        if (stream->state != STREAM_OPEN)
            return;
    }
    if (stream->readable && !stream->paused)
        defer(stream);
}

void stream_produce(struct stream *stream)
{
    if (stream->state != STREAM_OPEN)
        return;
    stream->produce_wanted = true;
    defer(stream);
}

void stream_resume(struct stream *stream)
{
    stream->resume_wanted = true;
    defer(stream);
}

/* ---------------------------------------------------------------- output */

/* Makes room behind the last segment: moves them to the front when half is unused, else grows. */
static void segment_room(struct stream *stream)
{
    if (stream->segments && stream->segment_first > stream->segment_capacity / 2) {
        memmove(stream->segments, stream->segments + stream->segment_first,
                stream->segment_count * sizeof(*stream->segments));
        stream->segment_first = 0;
        return;
    }
    stream->segment_capacity = stream->segment_capacity ? 2 * stream->segment_capacity : 8;
    stream->segments =
        memory_grow(stream->segments, stream->segment_capacity * sizeof(*stream->segments));
}

static struct stream_segment *segment_append(struct stream *stream)
{
    if (!stream->segments ||
        stream->segment_first + stream->segment_count == stream->segment_capacity)
        segment_room(stream);
    struct stream_segment *segment =
        &stream->segments[stream->segment_first + stream->segment_count++];

    *segment = (struct stream_segment){0};
    return segment;
}

uint8_t *stream_reserve(struct stream *stream, size_t length)
{
    if (stream->output_start == stream->output_length)
        stream->output_start = stream->output_length = 0;
    if (stream->output_length + length > stream->output_capacity) {
        size_t held = stream->output_length - stream->output_start;

        if (stream->output_start >= held && stream->output_start > 0) {
            memmove(stream->output, stream->output + stream->output_start, held);
            stream->output_start = 0;
            stream->output_length = held;
        }
        if (stream->output_length + length > stream->output_capacity) {
            size_t capacity = stream->output_capacity ? stream->output_capacity : 2048;

            while (capacity < stream->output_length + length)
                capacity *= 2;
            stream->output = memory_grow(stream->output, capacity);
            stream->output_capacity = capacity;
        }
    }
    return stream->output + stream->output_length;
}

void stream_commit(struct stream *stream, size_t length)
{
    if (stream->state == STREAM_CLOSED || length == 0)
        return;
    stream->output_length += length;
    struct stream_segment *last =
        stream->segment_count ? &stream->segments[stream->segment_first + stream->segment_count - 1]
                              : NULL;

    if (!last || last->base)
        last = segment_append(stream);
    last->length += length;
    output_added(stream, length);
}

void stream_put(struct stream *stream, const void *data, size_t length)
{
    if (stream->state == STREAM_CLOSED || length == 0)
        return;
    memcpy(stream_reserve(stream, length), data, length);
    stream_commit(stream, length);
}

void stream_put_repeated(struct stream *stream, const uint8_t *base, size_t period, uint64_t total)
{
    if (stream->state == STREAM_CLOSED || total == 0)
        return;
    struct stream_segment *segment = segment_append(stream);

    segment->base = base;
    segment->period = period;
    segment->length = total;
    output_added(stream, total);
}

bool stream_output_full(const struct stream *stream)
{
    return stream->over_limit;
}

/* Describes queued output from its start; returns the number of vectors and the bytes in them. */
static size_t gather(const struct stream *stream, struct iovec *vectors, size_t *bytes)
{
    size_t own = stream->output_start;
    size_t count = 0;

    *bytes = 0;
    for (size_t i = 0; i < stream->segment_count && count < SEND_VECTORS; i++) {
        const struct stream_segment *segment = &stream->segments[stream->segment_first + i];

        if (!segment->base) {
            vectors[count++] = (struct iovec){stream->output + own, (size_t)segment->length};
            own += (size_t)segment->length;
            *bytes += (size_t)segment->length;
            continue;
        }
        uint64_t left = segment->length;
        size_t position = segment->position;

        while (left > 0 && count < SEND_VECTORS && *bytes < SEND_BYTES) {
            size_t piece = segment->period - position;

            piece = left < piece ? (size_t)left : piece;
            /* iovec has no const; sendmsg() only reads. */
            vectors[count++] = (struct iovec){(void *)(uintptr_t)(segment->base + position), piece};
            position = 0;
            left -= piece;
            *bytes += piece;
        }
        if (left > 0)
            break;
    }
    return count;
}

static void consume_output(struct stream *stream, size_t sent)
{
    stream->output_bytes -= sent;
    while (sent > 0) {
        struct stream_segment *segment = &stream->segments[stream->segment_first];
        size_t part = segment->length < sent ? (size_t)segment->length : sent;

        if (segment->base)
            segment->position = (segment->position + part) % segment->period;
        else
            stream->output_start += part;
        segment->length -= part;
        sent -= part;
        if (segment->length == 0) {
            stream->segment_first++;
            stream->segment_count--;
        }
    }
    if (stream->segment_count == 0)
        stream->segment_first = 0;
}

/* As sendmsg(). */
static ssize_t transmit(struct stream *stream, struct iovec *vectors, size_t count, size_t bytes)
{
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};

    if (stream->tls)
        return stream_tls_send(stream, vectors, count, bytes);
    ssize_t sent = count == 1 ? send(stream->io.fd, vectors[0].iov_base, bytes, MSG_NOSIGNAL)
                              : sendmsg(stream->io.fd, &message, MSG_NOSIGNAL);

    if (sent < 0 ? errno != EINTR : (size_t)sent < bytes)
        stream->writable = false;
    return sent;
}

static bool unsent(const struct stream *stream)
{
    return stream->segment_count > 0 || (stream->tls && stream_tls_unsent(stream));
}

/* Nothing is left to be sent. */
static void all_sent(struct stream *stream, bool had_output)
{
    if (stream->close_when_sent) {
        stream_close(stream, 0);
        return;
    }
    if (stream->over_limit) {
        stream->over_limit = false;
        if (stream->handler->drained)
            stream->handler->drained(stream);
    }
    if (had_output && stream->handler->sent && stream->state == STREAM_OPEN)
        stream->handler->sent(stream);
}

static void flush(struct stream *stream)
{
    struct iovec vectors[SEND_VECTORS];
    bool had_output = unsent(stream);

    stream->flush_wanted = false;
    for (int i = 0; unsent(stream) && stream->writable; i++) {
        size_t bytes;
        size_t count = gather(stream, vectors, &bytes);

        if (i == SENDS_PER_TURN) {
            stream->flush_wanted = true;
            defer(stream);
            return;
        }
        ssize_t sent = transmit(stream, vectors, count, bytes);

        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN)
                stream_close(stream, errno);
            return;
        }
        consume_output(stream, (size_t)sent);
    }
    if (!unsent(stream))
        all_sent(stream, had_output);
}

/* Output that was asked for is made and sent. */
static void produce_and_flush(struct stream *stream)
{
    if (stream->state == STREAM_OPEN && stream->produce_wanted) {
        stream->produce_wanted = false;
        stream->handler->produce(stream);
    }
    if (stream->state != STREAM_CLOSED && stream->flush_wanted)
        flush(stream);
}

/* ---------------------------------------------------------------- the loop's two ways in */

void stream_turn_end(struct loop_deferred *deferred)
{
    struct stream *stream = (void *)((char *)deferred - offsetof(struct stream, turn_end));

    if (stream->state == STREAM_CLOSED) {
        stream->handler->closed(stream, stream->error);
        return;
    }
    if (!stream->linked)
        return;
    if (stream->resume_wanted && stream->state == STREAM_OPEN) {
        stream->resume_wanted = false;
        stream->paused = false;
        if (stream->input_length)
            deliver(stream, stream->input, stream->input_length);
    }
    produce_and_flush(stream);
    if (stream->state != STREAM_CLOSED)
        read_some(stream);
    /* A reply made by what was read just now leaves in this turn too. */
    produce_and_flush(stream);
}

void stream_ready(struct loop_io *io, uint32_t events)
{
    struct stream *stream = (void *)((char *)io - offsetof(struct stream, io));

    if (!stream->linked) {
        stream_connect_result(stream, events);
        if (!stream->linked || stream->state == STREAM_CLOSED)
            return;
    }
    if (events & EPOLLOUT) {
        stream->writable = true;
        if (unsent(stream)) {
            stream->flush_wanted = true;
            defer(stream);
        }
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        stream->hung_up = true;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        stream->readable = true;
        read_some(stream);
    }
}
