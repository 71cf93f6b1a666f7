/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of proxy/io share: a loop that takes one turn at a time, and pairs of sockets of
 * which one end is the loop's and the other the test's.
 *
 * turn() does not wait: what a peer in this process wrote is readable at once. turn_until() waits
 * for events, for what the kernel does in its own time, and gives up after TURNS_MAX turns.
 */
#ifndef SPILLWAY_TESTS_UNIT_PROXY_IO_FIXTURE_H
#define SPILLWAY_TESTS_UNIT_PROXY_IO_FIXTURE_H

#include "proxy/core/container_of.h"
#include "proxy/io/conn.h"
#include "proxy/io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TURNS_MAX   10000
#define PATIENCE_NS UINT64_C(10000000)

static inline void stop_after_this_turn(struct loop *loop, struct loop_message *message)
{
    (void)message;
    atomic_store(&loop->stopping, true);
}

/* One turn of the loop, without waiting. */
static inline void turn(struct loop *loop)
{
    struct loop_message message = {.run = stop_after_this_turn};

    atomic_store(&loop->stopping, false);
    loop_post(loop, &message, &message);
    loop_run(loop);
}

static inline void stop_in_hook(struct loop *loop, struct turn_hook *hook)
{
    (void)hook;
    atomic_store(&loop->stopping, true);
}

static inline void do_nothing(struct timer *timer, uint64_t now_ns)
{
    (void)timer;
    (void)now_ns;
}

/* Turns, each of which waits for an event but not for ever, until the number is at least `wanted`.
 */
static inline void turn_until(struct loop *loop, const unsigned *number, unsigned wanted)
{
    for (unsigned i = 0; i < TURNS_MAX && *number < wanted; i++) {
        struct turn_hook stop = {.run = stop_in_hook};
        struct timer patience;
        timer_init(&patience, do_nothing);
        timer_set(&loop->wheel, &patience, loop_clock_ns() + PATIENCE_NS);
        atomic_store(&loop->stopping, false);
        /* Settling comes behind the events that woke the loop. */
        loop_add_pump(loop, &stop);
        loop_run(loop);
        timer_unlink(&patience);
    }
    assert_true(*number >= wanted);
}

/* Both non-blocking; small buffers where `small` so that back-pressure comes soon. */
static inline void make_pair(int fds[2], bool small)
{
    int bytes = 4096;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; small && i < 2; i++)
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
}

/* A connection whose callbacks write down what happened. */
struct recorder {
    struct conn conn;
    int peer; /* the test's end */
    uint8_t *bytes;
    size_t length, capacity;
    unsigned reads, ends, failures, blocks, drains, connects;
    int error;
    bool close_in_callback;
    bool pause_in_readable;
    size_t largest_read;
};

static inline struct recorder *recorder_of(struct conn *conn)
{
    return container_of(conn, struct recorder, conn);
}

static inline void maybe_close(struct recorder *recorder)
{
    if (recorder->close_in_callback)
        conn_close(&recorder->conn);
}

static inline void record_readable(struct conn *conn, uint8_t *bytes, size_t length)
{
    struct recorder *recorder = recorder_of(conn);

    recorder->reads++;
    if (length > recorder->largest_read)
        recorder->largest_read = length;
    if (recorder->length + length > recorder->capacity) {
        recorder->capacity = (recorder->length + length) * 2;
        recorder->bytes = realloc(recorder->bytes, recorder->capacity);
        assert_non_null(recorder->bytes);
    }
    memcpy(recorder->bytes + recorder->length, bytes, length);
    recorder->length += length;
    if (recorder->pause_in_readable)
        conn_pause(conn);
    maybe_close(recorder);
}

static inline void record_end(struct conn *conn)
{
    recorder_of(conn)->ends++;
    maybe_close(recorder_of(conn));
}

static inline void record_failed(struct conn *conn, int error)
{
    recorder_of(conn)->failures++;
    recorder_of(conn)->error = error;
    maybe_close(recorder_of(conn));
}

static inline void record_blocked(struct conn *conn)
{
    recorder_of(conn)->blocks++;
    maybe_close(recorder_of(conn));
}

static inline void record_drained(struct conn *conn)
{
    recorder_of(conn)->drains++;
    maybe_close(recorder_of(conn));
}

static inline void record_connected(struct conn *conn)
{
    recorder_of(conn)->connects++;
    maybe_close(recorder_of(conn));
}

static const struct conn_ops recorder_ops = {
    .readable = record_readable,
    .end_of_stream = record_end,
    .failed = record_failed,
    .blocked = record_blocked,
    .drained = record_drained,
    .connected = record_connected,
};

static inline void recorder_open(struct recorder *recorder, struct loop *loop, bool small)
{
    int fds[2];

    memset(recorder, 0, sizeof(*recorder));
    make_pair(fds, small);
    recorder->peer = fds[1];
    assert_int_equal(conn_open(&recorder->conn, loop, fds[0], &recorder_ops), 0);
}

static inline void recorder_fini(struct recorder *recorder)
{
    conn_close(&recorder->conn);
    if (recorder->peer >= 0)
        close(recorder->peer);
    free(recorder->bytes);
}

/* A byte for each place in a stream; its period divides no buffer size. */
static inline uint8_t stream_byte(size_t place)
{
    return (uint8_t)(place % 251);
}

static inline void fill_stream(uint8_t *bytes, size_t length, size_t place)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = stream_byte(place + i);
}

/* Reads what there is from the test's end and checks it to be the stream from *place on. */
static inline size_t take_stream(int fd, size_t *place)
{
    static uint8_t bytes[1 << 16];
    size_t taken = 0;
    ssize_t got;

    while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
        for (ssize_t i = 0; i < got; i++)
            assert_int_equal(bytes[i], stream_byte(*place + (size_t)i));
        *place += (size_t)got;
        taken += (size_t)got;
    }
    return taken;
}

/* Setup and teardown: a loop as the test's state. */
static inline int loop_setup(void **state)
{
    struct loop *loop = malloc(sizeof(*loop));

    *state = loop;
    return loop == NULL || loop_init(loop, 0) < 0;
}

static inline int loop_teardown(void **state)
{
    struct loop *loop = *state;

    loop_wind_up(loop);
    loop_fini(loop);
    free(loop);
    return 0;
}

#define loop_test(name) cmocka_unit_test_setup_teardown(name, loop_setup, loop_teardown)

#endif
