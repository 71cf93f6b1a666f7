/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and the loop on real sockets: order of output whatever it is made of, back-pressure both
 * ways, what is left unconsumed, timers in order, removal in the middle of a turn.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "loadgen/net/loop.h"
#include "loadgen/net/stream.h"

#define NS_PER_S 1000000000ULL

/* One end of a pair of streams: checks that what comes is what `expected` says, then stops the
 * loop. */
struct end {
    struct stream stream;
    const uint8_t *expected;
    size_t expected_bytes;
    size_t got;
    size_t bite;    /* takes this many bytes at a time; 0: all */
    size_t stop_at; /* stops the loop when it has got that many too */
    bool closed;
    int closed_error;
    int drained;
};

static struct loop loop;
static struct end left;
static struct end right;
static struct loop_timer guard;

static struct end *end_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct end, stream));
}

static size_t check_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct end *end = end_of(stream);
    size_t take = end->bite && end->bite < length ? end->bite : length;

    assert_true(take <= end->expected_bytes - end->got);
    assert_memory_equal(data, end->expected + end->got, take);
    end->got += take;
    if (end->got == end->expected_bytes || (end->stop_at && end->got >= end->stop_at))
        loop_stop(&loop);
    return take;
}

static void note_drained(struct stream *stream)
{
    end_of(stream)->drained++;
}

static void note_closed(struct stream *stream, int error)
{
    end_of(stream)->closed = true;
    end_of(stream)->closed_error = error;
    loop_stop(&loop);
}

static const struct stream_handler handler = {
    .data = check_data,
    .drained = note_drained,
    .closed = note_closed,
};

static void took_too_long(struct loop_timer *timer)
{
    (void)timer;
    fail_msg("the loop did not come to its end");
}

static int open_pair(void **state)
{
    int fds[2];

    (void)state;
    memset(&left, 0, sizeof(left));
    memset(&right, 0, sizeof(right));
    memset(&guard, 0, sizeof(guard));
    assert_int_equal(loop_init(&loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(stream_open(&left.stream, &loop, fds[0], &handler), 0);
    assert_int_equal(stream_open(&right.stream, &loop, fds[1], &handler), 0);
    guard.fire = took_too_long;
    loop_timer_set(&loop, &guard, loop_clock_ns() + 60 * NS_PER_S);
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    stream_fini(&left.stream);
    stream_fini(&right.stream);
    loop_fini(&loop);
    return 0;
}

static void output_of_all_kinds_arrives_in_order(void **state)
{
    enum { PERIOD = 1000, TOTAL = 3 * 1024 * 1024 };
    static uint8_t period[PERIOD];
    uint8_t *expected = malloc(2 * TOTAL);
    size_t length = 0;

    (void)state;
    for (int i = 0; i < PERIOD; i++)
        period[i] = (uint8_t)(i * 7 + 1);
    /* Copied bytes and repeated memory in turns, from a byte to a megabyte. */
    for (size_t size = 1; length + 2 * size < TOTAL; size = size * 3 + 1) {
        for (size_t i = 0; i < size; i++)
            expected[length + i] = (uint8_t)(size + i);
        stream_put(&left.stream, expected + length, size);
        length += size;
        stream_put_repeated(&left.stream, period, PERIOD, size);
        for (size_t i = 0; i < size; i++)
            expected[length + i] = period[i % PERIOD];
        length += size;
    }
    for (int i = 0; i < 300; i++) {
        stream_put_repeated(&left.stream, period, 3, 3);
        stream_put(&left.stream, "x", 1);
        memcpy(expected + length, period, 3);
        expected[length + 3] = 'x';
        length += 4;
    }
    right.expected = expected;
    right.expected_bytes = length;
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(right.got, length);
    assert_int_equal(left.stream.output_bytes, 0);
    free(expected);
}

static void what_is_not_taken_is_offered_again(void **state)
{
    static uint8_t bytes[700000];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31);
    right.expected = bytes;
    right.expected_bytes = sizeof(bytes);
    right.bite = 997;
    stream_put(&left.stream, bytes, sizeof(bytes));
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(right.got, sizeof(bytes));
}

static void output_grows_behind_what_was_sent_in_part(void **state)
{
    static uint8_t bytes[1500000];
    size_t first = 1000000;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31 + (i >> 9));
    right.expected = bytes;
    right.expected_bytes = sizeof(bytes);
    right.stop_at = 600000;
    stream_put(&left.stream, bytes, first);
    assert_int_equal(loop_run(&loop), 0);
    /* More than half is gone, and what comes now does not fit behind the rest: the rest moves. */
    assert_true(left.stream.output_start > first / 2 && left.stream.output_bytes > 0);
    stream_put(&left.stream, bytes + first, sizeof(bytes) - first);
    assert_true(left.stream.output_start == 0);
    right.stop_at = 0;
    loop.stopped = false;
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(right.got, sizeof(bytes));
}

static size_t refuse_data(struct stream *stream, const uint8_t *data, size_t length)
{
    (void)data;
    end_of(stream)->got = length;
    return 0;
}

static const struct stream_handler refusing = {.data = refuse_data, .closed = note_closed};

static void stop_loop(struct loop_timer *timer)
{
    (void)timer;
    loop_stop(&loop);
}

static void a_reader_that_takes_nothing_is_read_no_further(void **state)
{
    static const uint8_t bytes[1000] = {1, 2, 3};
    struct loop_timer stop = {.fire = stop_loop};
    uint64_t total = 64ULL << 20;

    (void)state;
    right.stream.handler = &refusing;
    stream_put_repeated(&left.stream, bytes, sizeof(bytes), total);
    assert_true(stream_output_full(&left.stream));
    /* Long enough for the writer to fill the socket; a longer time can't change the outcome. */
    loop_timer_set(&loop, &stop, loop_clock_ns() + NS_PER_S / 10);
    assert_int_equal(loop_run(&loop), 0);
    assert_true(right.stream.input_length <= STREAM_INPUT_LIMIT + STREAM_RECEIVE_BYTES);
    assert_true(left.stream.output_bytes > total - (8U << 20));
    assert_int_equal(left.drained, 0);
    /* Once it takes all, everything comes through and the writer hears that it may go on. */
    uint8_t *expected = malloc(total);

    for (uint64_t i = 0; i < total; i++)
        expected[i] = bytes[i % sizeof(bytes)];
    right.stream.handler = &handler;
    right.expected = expected;
    right.expected_bytes = total;
    right.got = 0;
    loop.stopped = false;
    stream_resume(&right.stream);
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(right.got, total);
    assert_int_equal(left.drained, 1);
    free(expected);
}

static void finish_sends_everything_before_it_closes(void **state)
{
    static const uint8_t bytes[3000000] = {9};

    (void)state;
    right.expected = bytes;
    right.expected_bytes = sizeof(bytes) + 1; /* the loop stops at the close, not before */
    stream_put_repeated(&left.stream, bytes, sizeof(bytes), sizeof(bytes));
    stream_finish(&left.stream);
    while (!right.closed) {
        loop.stopped = false;
        assert_int_equal(loop_run(&loop), 0);
    }
    assert_int_equal(right.got, sizeof(bytes));
    assert_int_equal(right.closed_error, 0);
    assert_true(left.closed);
}

static void a_refused_connection_is_told_after_the_call(void **state)
{
    struct end client = {0};
    struct stream_listener listener = {0};
    struct sockaddr_storage address = {.ss_family = AF_INET};
    socklen_t length = sizeof(address);

    (void)state;
    ((uint8_t *)&address)[4] = 127;
    ((uint8_t *)&address)[7] = 1;
    assert_int_equal(stream_listen(&listener, &loop, (void *)&address, 16), 0);
    assert_int_equal(getsockname(listener.io.fd, (void *)&address, &length), 0);
    stream_listener_fini(&listener);
    stream_connect(&client.stream, &loop, (void *)&address, length, &handler);
    assert_false(client.closed);
    assert_int_equal(loop_run(&loop), 0);
    assert_true(client.closed);
    assert_int_equal(client.closed_error, ECONNREFUSED);
    stream_fini(&client.stream);
}

static int fired[4];
static int fired_count;
static struct loop_timer timers[4];

static void note_fired(struct loop_timer *timer)
{
    fired[fired_count++] = (int)(timer - timers);
    if (fired_count == 3)
        loop_stop(&loop);
}

static void timers_fire_in_order_and_not_when_cancelled(void **state)
{
    uint64_t now = loop_clock_ns();

    (void)state;
    fired_count = 0;
    memset(timers, 0, sizeof(timers));
    for (int i = 0; i < 4; i++)
        timers[i].fire = note_fired;
    loop_timer_set(&loop, &timers[0], now + 3000000);
    loop_timer_set(&loop, &timers[1], now + 1000000);
    loop_timer_set(&loop, &timers[2], now + 2000000);
    loop_timer_set(&loop, &timers[3], now + 1000000);
    loop_timer_set(&loop, &timers[0], now + 500000); /* moved to the front */
    loop_timer_cancel(&loop, &timers[2]);
    assert_int_equal(loop_run(&loop), 0);
    assert_true(loop_clock_ns() >= now + 1000000);
    assert_int_equal(fired[0], 0);
    assert_int_equal(fired[1], 1);
    assert_int_equal(fired[2], 3);
    assert_false(timer_entry_armed(&timers[0].entry));
}

static struct loop_io sockets[2];
static int ready_calls;

static void remove_both(struct loop_io *io, uint32_t events)
{
    (void)io;
    (void)events;
    ready_calls++;
    loop_remove(&loop, &sockets[0]);
    loop_remove(&loop, &sockets[1]);
    loop_stop(&loop);
}

static void what_is_removed_gets_no_event_of_the_same_turn(void **state)
{
    int fds[2];

    (void)state;
    ready_calls = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    for (int i = 0; i < 2; i++) {
        /* Both can be written to, so both are ready in the first turn. */
        sockets[i] = (struct loop_io){.fd = fds[i], .ready = remove_both};
        assert_int_equal(loop_add(&loop, &sockets[i]), 0);
    }
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(ready_calls, 1);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(output_of_all_kinds_arrives_in_order, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(what_is_not_taken_is_offered_again, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(output_grows_behind_what_was_sent_in_part, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(a_reader_that_takes_nothing_is_read_no_further, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(finish_sends_everything_before_it_closes, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(a_refused_connection_is_told_after_the_call, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(timers_fire_in_order_and_not_when_cancelled, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(what_is_removed_gets_no_event_of_the_same_turn, open_pair,
                                        close_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
