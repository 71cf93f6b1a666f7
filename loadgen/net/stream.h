/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A non-blocking TCP connection with output that is sent once per loop turn.
 *
 * States   CONNECTING -> OPEN -> CLOSED (either may go to CLOSED at once)
 *
 * Input: one receive buffer, shared by all streams, takes what arrives; `data` gets it together
 * with what it left unconsumed before. What it leaves is kept in a buffer of the stream's own; when
 * that holds STREAM_INPUT_LIMIT bytes reading stops, and the peer feels it, until stream_resume().
 *
 * Output: segments in order: bytes copied into the stream, or memory of the caller that must stay
 * as it is until sent, or such memory repeated to any length (a 10 GB body costs one segment). Sent
 * at the end of the turn with one system call when the socket takes it all.
 *
 * Who makes output piece by piece as it is wanted: stream_produce() asks for `produce` at the end
 * of the turn, just before sending; `sent` tells that all of it is with the kernel.
 *
 * Callbacks may call any function here, stream_close() included. `closed` is the last callback: it
 * comes at the end of the turn, then the stream may be freed.
 *
 * The bytes may travel inside TLS: stream_tls.h.
 */
#ifndef LOADGEN_NET_STREAM_H
#define LOADGEN_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "loadgen/net/loop.h"

/* 256 KiB: large enough for many small messages in one system call. */
#define STREAM_RECEIVE_BYTES (256U * 1024)
#define STREAM_INPUT_LIMIT   (256U * 1024)
/* Output beyond which a server should stop taking work from this connection. */
#define STREAM_OUTPUT_LIMIT (4U * 1024 * 1024)

enum stream_state {
    STREAM_CONNECTING,
    STREAM_OPEN,
    STREAM_CLOSED,
};

struct stream;
struct stream_tls;

struct stream_handler {
    /* The connection attempt succeeded. Optional for accepted streams. */
    void (*connected)(struct stream *stream);
    /* Returns how many of the bytes it used up. Not called after stream_close(). */
    size_t (*data)(struct stream *stream, const uint8_t *data, size_t length);
    /* Output fell from above STREAM_OUTPUT_LIMIT to nothing. Optional. */
    void (*drained)(struct stream *stream);
    /* The turn ends after stream_produce(): the last chance to add output to it. Optional. */
    void (*produce)(struct stream *stream);
    /* Output there was is sent, none is left. Optional. */
    void (*sent)(struct stream *stream);
    /* `error` is 0 after an orderly end, else a positive errno. */
    void (*closed)(struct stream *stream, int error);
};

struct stream_segment {
    /* NULL: the next `length` bytes of the stream's own output buffer. */
    const uint8_t *base;
    /* Memory at base, after which it starts over. */
    size_t period;
    /* Where in the period the next byte is. */
    size_t position;
    uint64_t length;
};

struct stream {
    struct loop_io io;
    struct loop_deferred turn_end;
    struct loop *loop;
    const struct stream_handler *handler;
    struct stream_tls *tls; /* NULL: plain */
    enum stream_state state;
    int error;
    bool linked; /* the socket is connected; TLS may still be shaking hands */
    bool readable;
    bool hung_up;
    bool resume_wanted;
    bool paused;
    bool flush_wanted;
    bool produce_wanted;
    bool writable;
    bool over_limit;
    bool close_when_sent;

    uint8_t *input;
    size_t input_length;
    size_t input_capacity;

    uint8_t *output;
    size_t output_start;
    size_t output_length;
    size_t output_capacity;
    struct stream_segment *segments;
    size_t segment_first;
    size_t segment_count;
    size_t segment_capacity;
    uint64_t output_bytes;
};

/* Takes over an accepted or otherwise connected descriptor. On errors (negative errno) closes it.
 */
int stream_open(struct stream *stream, struct loop *loop, int fd,
                const struct stream_handler *handler);

/* Starts to connect. `connected` or `closed` follows, never before this returns. */
void stream_connect(struct stream *stream, struct loop *loop, const struct sockaddr *address,
                    socklen_t length, const struct stream_handler *handler);

/* Drops what was not sent, closes; `closed` follows at the end of the turn. May be called again. */
void stream_close(struct stream *stream, int error);

/* Sends what is queued, then closes. Input is ignored from now on. */
void stream_finish(struct stream *stream);

/* Frees the buffers. The stream must be closed, or its loop not be run any more. */
void stream_fini(struct stream *stream);

/* Room for `length` bytes at the end of the output; follow with stream_commit() of at most as many.
 */
uint8_t *stream_reserve(struct stream *stream, size_t length);
void stream_commit(struct stream *stream, size_t length);

void stream_put(struct stream *stream, const void *data, size_t length);
/* `total` bytes: memory at base over and over. The memory is not copied. */
void stream_put_repeated(struct stream *stream, const uint8_t *base, size_t period, uint64_t total);

/* Asks for handler->produce at the end of this turn. */
void stream_produce(struct stream *stream);

/* True when the peer does not keep up with what it asked for. */
bool stream_output_full(const struct stream *stream);

/* Hands out what `data` left (at the end of the turn) and reads on. */
void stream_resume(struct stream *stream);

struct stream_listener {
    struct loop_io io;
    struct loop_timer retry;
    struct loop *loop;
    /* Gets each new descriptor, non-blocking, TCP_NODELAY set. */
    void (*accepted)(struct stream_listener *listener, int fd);
};

/* 0 or negative errno. `accepted` must be set. Port 0 takes any free port. */
int stream_listen(struct stream_listener *listener, struct loop *loop,
                  const struct sockaddr *address, socklen_t length);
void stream_listener_fini(struct stream_listener *listener);

#endif
