/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: input, output under back-pressure, ends and failures, each told once. */
#include "tests/unit/proxy/io/fixture.h"

#include <netinet/in.h>
#include <sys/un.h>

static void send_to(struct recorder *recorder, const void *bytes, size_t length)
{
    assert_int_equal(send(recorder->peer, bytes, length, MSG_NOSIGNAL), length);
}

static void what_comes_is_read(void **state)
{
    struct recorder recorder;

    recorder_open(&recorder, *state, false);
    turn(*state);
    assert_int_equal(recorder.reads, 0);
    send_to(&recorder, "hello", 5);
    turn(*state);
    assert_int_equal(recorder.length, 5);
    assert_memory_equal(recorder.bytes, "hello", 5);
    send_to(&recorder, " again", 6);
    turn(*state);
    assert_int_equal(recorder.reads, 2);
    assert_memory_equal(recorder.bytes, "hello again", 11);
    assert_int_equal(recorder.conn.received_bytes, 11);
    recorder_fini(&recorder);
}

static void what_a_turn_sends_comes_as_one_piece(void **state)
{
    struct recorder recorder;
    static const char text[] = "one two three four five six";
    char got[64];

    recorder_open(&recorder, *state, false);
    for (size_t i = 0; text[i] != '\0'; i += 3)
        conn_send(&recorder.conn, text + i, 3);
    assert_int_equal(conn_backlog(&recorder.conn), strlen(text));
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), -1);
    turn(*state);
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), strlen(text));
    assert_memory_equal(got, text, strlen(text));
    assert_int_equal(conn_backlog(&recorder.conn), 0);
    recorder_fini(&recorder);
}

/* One send per peer and turn: a datagram-like socket keeps the sends apart, so count them. */
static void a_turn_sends_once_per_peer(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder = {.peer = -1};
    int fds[2];
    char pieces[50];
    char got[64];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(conn_open(&recorder.conn, loop, fds[0], &recorder_ops), 0);
    recorder.peer = fds[1];
    for (int round = 1; round <= 3; round++) {
        for (size_t i = 0; i < sizeof(pieces); i++) {
            pieces[i] = (char)('a' + (i + (size_t)round) % 26);
            /* Every other byte, so that no two neighbours join to one reference. */
            conn_send(&recorder.conn, &pieces[i / 2 + (i % 2) * 25], 1);
        }
        turn(loop);
        assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), sizeof(pieces));
        assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), -1);
    }
    recorder_fini(&recorder);
}

static void more_pieces_than_references_keep_their_order(void **state)
{
    struct recorder recorder;
    enum { PIECES = 5 * CONN_REFERENCES + 3, GAP = 2 };
    static uint8_t bytes[PIECES * GAP];
    uint8_t got[PIECES + 1];

    recorder_open(&recorder, *state, false);
    for (size_t i = 0; i < PIECES; i++) {
        bytes[i * GAP] = stream_byte(i);
        conn_send(&recorder.conn, &bytes[i * GAP], 1);
    }
    assert_int_equal(conn_backlog(&recorder.conn), PIECES);
    turn(*state);
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), PIECES);
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(got[i], stream_byte(i));
    recorder_fini(&recorder);
}

/* The peer takes nothing for a while; the caller's memory is overwritten after each turn. */
static void output_that_is_not_taken_is_kept_in_order(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;
    static uint8_t bytes[30000];
    size_t sent = 0;
    size_t taken = 0;

    recorder_open(&recorder, loop, true);
    for (int i = 0; i < 40; i++) {
        size_t length = 1000 + (size_t)i * 613 % 29000;
        fill_stream(bytes, length, sent);
        conn_send(&recorder.conn, bytes, length / 2);
        conn_send(&recorder.conn, bytes + length / 2, length - length / 2);
        sent += length;
        turn(loop);
        memset(bytes, 0xff, sizeof(bytes));
        assert_true(conn_backlog(&recorder.conn) <= sent - taken);
    }
    assert_int_equal(recorder.blocks, 1);
    assert_int_equal(recorder.drains, 0);
    for (unsigned i = 0; i < TURNS_MAX && taken < sent; i++) {
        take_stream(recorder.peer, &taken);
        turn(loop);
    }
    assert_int_equal(taken, sent);
    assert_int_equal(recorder.drains, 1);
    assert_int_equal(recorder.conn.sent_bytes, sent);
    assert_int_equal(conn_backlog(&recorder.conn), 0);
    recorder_fini(&recorder);
}

static void a_large_backlog_that_goes_out_at_once_is_told(void **state)
{
    struct recorder recorder;
    static uint8_t bytes[CONN_BACKLOG_BYTES + 1];
    size_t taken = 0;

    recorder_open(&recorder, *state, false);
    fill_stream(bytes, sizeof(bytes), 0);
    conn_send(&recorder.conn, bytes, sizeof(bytes));
    turn(*state);
    assert_int_equal(recorder.blocks, 0);
    assert_int_equal(recorder.drains, 1);
    take_stream(recorder.peer, &taken);
    assert_int_equal(taken, sizeof(bytes));
    recorder_fini(&recorder);
}

static void pausing_loses_nothing(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;
    uint8_t bytes[700];
    size_t sent = 0;

    recorder_open(&recorder, loop, false);
    for (int round = 0; round < 50; round++) {
        if (round % 3 == 0)
            conn_pause(&recorder.conn);
        unsigned reads = recorder.reads;
        fill_stream(bytes, sizeof(bytes), sent);
        send_to(&recorder, bytes, sizeof(bytes));
        sent += sizeof(bytes);
        turn(loop);
        if (round % 3 != 2)
            assert_int_equal(recorder.reads, reads);
        if (round % 3 == 1)
            conn_resume(&recorder.conn);
    }
    conn_resume(&recorder.conn);
    turn(loop);
    assert_int_equal(recorder.length, sent);
    for (size_t i = 0; i < sent; i++)
        assert_int_equal(recorder.bytes[i], stream_byte(i));
    recorder_fini(&recorder);
}

static void pausing_in_readable_stops_at_once(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;
    static uint8_t bytes[100000];
    size_t sent = 0;

    recorder_open(&recorder, loop, false);
    recorder.pause_in_readable = true;
    for (unsigned i = 0; i < TURNS_MAX && recorder.length < 1000000; i++) {
        if (sent < 1000000) {
            fill_stream(bytes, sizeof(bytes), sent);
            ssize_t taken = send(recorder.peer, bytes, sizeof(bytes), MSG_NOSIGNAL);
            sent += taken > 0 ? (size_t)taken : 0;
        }
        unsigned reads = recorder.reads;
        conn_resume(&recorder.conn);
        turn(loop);
        assert_in_range(recorder.reads, reads, reads + 1);
    }
    assert_int_equal(recorder.length, sent);
    for (size_t i = 0; i < sent; i++)
        assert_int_equal(recorder.bytes[i], stream_byte(i));
    recorder_fini(&recorder);
}

/* The end of the stream is told once, whatever else happens to the socket afterwards. */
static void the_peers_end_is_told_once(void **state)
{
    struct recorder recorder;
    char got[8];

    recorder_open(&recorder, *state, false);
    send_to(&recorder, "last", 4);
    shutdown(recorder.peer, SHUT_WR);
    turn(*state);
    turn(*state);
    assert_int_equal(recorder.length, 4);
    assert_int_equal(recorder.ends, 1);
    conn_send(&recorder.conn, "answer", 6);
    turn(*state);
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), 6);
    conn_shutdown(&recorder.conn);
    turn(*state);
    turn(*state);
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), 0);
    close(recorder.peer);
    recorder.peer = -1;
    turn(*state);
    turn(*state);
    assert_int_equal(recorder.ends, 1);
    recorder_fini(&recorder);
}

static void an_end_behind_a_pause_is_told_after_the_bytes(void **state)
{
    struct recorder recorder;

    recorder_open(&recorder, *state, false);
    conn_pause(&recorder.conn);
    send_to(&recorder, "bytes", 5);
    shutdown(recorder.peer, SHUT_WR);
    turn(*state);
    assert_int_equal(recorder.reads + recorder.ends, 0);
    conn_resume(&recorder.conn);
    turn(*state);
    assert_int_equal(recorder.length, 5);
    assert_int_equal(recorder.ends, 1);
    recorder_fini(&recorder);
}

static void shutting_down_comes_behind_what_was_sent(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;
    static uint8_t bytes[200000];
    size_t taken = 0;
    char got[8];

    recorder_open(&recorder, loop, true);
    fill_stream(bytes, sizeof(bytes), 0);
    conn_send(&recorder.conn, bytes, sizeof(bytes));
    conn_shutdown(&recorder.conn);
    turn(loop);
    assert_int_equal(recorder.drains, 0);
    for (unsigned i = 0; i < TURNS_MAX && taken < sizeof(bytes); i++) {
        take_stream(recorder.peer, &taken);
        turn(loop);
    }
    assert_int_equal(taken, sizeof(bytes));
    turn(loop);
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), 0);
    assert_int_equal(recorder.drains, 1);
    /* The other direction is still open. */
    send_to(&recorder, "more", 4);
    turn(loop);
    assert_int_equal(recorder.length, 4);
    recorder_fini(&recorder);
}

/* A pair over TCP whose test's end breaks the connection with a reset when closed. */
static void open_breakable(struct recorder *recorder, struct loop *loop)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memset(recorder, 0, sizeof(*recorder));
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(conn_connect(&recorder->conn, loop, (struct sockaddr *)&address, length, 0,
                                  false, &recorder_ops),
                     0);
    recorder->peer = accept(listener, NULL, NULL);
    assert_true(recorder->peer >= 0);
    assert_int_equal(setsockopt(recorder->peer, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    close(listener);
    turn_until(loop, &recorder->connects, 1);
}

static void break_peer(struct recorder *recorder)
{
    close(recorder->peer);
    recorder->peer = -1;
}

static void a_failure_is_told_once(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;

    open_breakable(&recorder, loop);
    break_peer(&recorder);
    turn_until(loop, &recorder.failures, 1);
    assert_int_equal(recorder.error, ECONNRESET);
    conn_send(&recorder.conn, "into the void", 13);
    conn_resume(&recorder.conn);
    turn(loop);
    turn(loop);
    assert_int_equal(recorder.failures, 1);
    assert_int_equal(conn_backlog(&recorder.conn), 0);
    recorder_fini(&recorder);
}

/* Output is queued already when reading finds the socket broken: still one report. */
static void a_failure_with_output_queued_is_told_once(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;

    open_breakable(&recorder, loop);
    break_peer(&recorder);
    conn_send(&recorder.conn, "too late", 8);
    turn_until(loop, &recorder.failures, 1);
    turn(loop);
    turn(loop);
    assert_int_equal(recorder.failures, 1);
    recorder_fini(&recorder);
}

static void a_broken_peer_is_told_to_an_owner_that_does_not_read(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;

    open_breakable(&recorder, loop);
    conn_pause(&recorder.conn);
    break_peer(&recorder);
    turn_until(loop, &recorder.failures, 1);
    assert_int_equal(recorder.reads + recorder.ends, 0);
    recorder_fini(&recorder);
}

static void writing_to_a_closed_peer_fails_once(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;

    recorder_open(&recorder, loop, false);
    conn_pause(&recorder.conn);
    close(recorder.peer);
    recorder.peer = -1;
    conn_send(&recorder.conn, "abc", 3);
    turn(loop);
    turn(loop);
    assert_int_equal(recorder.failures, 1);
    assert_int_equal(recorder.error, EPIPE);
    recorder_fini(&recorder);
}

static void connecting_sends_what_was_queued_before(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char got[8];

    memset(&recorder, 0, sizeof(recorder));
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(conn_connect(&recorder.conn, loop, (struct sockaddr *)&address, length, 0,
                                  false, &recorder_ops),
                     0);
    conn_send(&recorder.conn, "early", 5);
    turn_until(loop, &recorder.connects, 1);
    recorder.peer = accept(listener, NULL, NULL);
    turn(loop);
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), 5);
    assert_int_equal(recorder.connects, 1);
    assert_int_not_equal(conn_local_port(&recorder.conn), 0);
    close(listener);
    recorder_fini(&recorder);
}

static void a_refused_connection_fails(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* Bound, but nobody listens: the port is refused and nobody else gets it meanwhile. */
    memset(&recorder, 0, sizeof(recorder));
    recorder.peer = -1;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    int error = conn_connect(&recorder.conn, loop, (struct sockaddr *)&address, length, 0, false,
                             &recorder_ops);
    if (error == 0) {
        conn_send(&recorder.conn, "abc", 3);
        turn_until(loop, &recorder.failures, 1);
        turn(loop);
        assert_int_equal(recorder.failures, 1);
        error = -recorder.error;
    }
    assert_int_equal(error, -ECONNREFUSED);
    assert_int_equal(recorder.connects, 0);
    close(listener);
    recorder_fini(&recorder);
}

static void connecting_to_nowhere_says_so_at_once(void **state)
{
    struct recorder recorder;
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};

    memset(&recorder, 0, sizeof(recorder));
    assert_int_equal(conn_connect(&recorder.conn, *state, (struct sockaddr *)&address,
                                  sizeof(address), 0, false, &recorder_ops),
                     -ENOENT);
    assert_false(conn_is_open(&recorder.conn));
    conn_close(&recorder.conn);
}

enum { IN_READABLE, IN_END, IN_FAILED, IN_BLOCKED, IN_DRAINED, CALLBACKS };

/* Brings one callback about; each closes the connection. */
static void provoke(struct recorder *recorder, struct loop *loop, int which)
{
    static uint8_t bytes[300000];
    size_t taken = 0;

    memset(bytes, 0, sizeof(bytes));
    switch (which) {
    case IN_READABLE:
        send_to(recorder, "abc", 3);
        conn_send(&recorder->conn, "x", 1);
        break;
    case IN_END:
        shutdown(recorder->peer, SHUT_WR);
        conn_send(&recorder->conn, "x", 1);
        break;
    case IN_FAILED:
        shutdown(recorder->peer, SHUT_RD);
        conn_send(&recorder->conn, "x", 1);
        break;
    case IN_BLOCKED:
        conn_send(&recorder->conn, bytes, sizeof(bytes));
        break;
    case IN_DRAINED:
        recorder->close_in_callback = false;
        fill_stream(bytes, sizeof(bytes), 0);
        conn_send(&recorder->conn, bytes, sizeof(bytes));
        turn(loop);
        recorder->close_in_callback = true;
        for (unsigned i = 0; i < TURNS_MAX && conn_is_open(&recorder->conn); i++) {
            take_stream(recorder->peer, &taken);
            turn(loop);
        }
        break;
    default:
        break;
    }
    turn(loop);
    turn(loop);
}

static void closing_in_any_callback_is_safe(void **state)
{
    for (int which = 0; which < CALLBACKS; which++) {
        struct recorder recorder;
        recorder_open(&recorder, *state, true);
        recorder.close_in_callback = true;
        provoke(&recorder, *state, which);
        assert_false(conn_is_open(&recorder.conn));
        assert_int_equal(recorder.reads, which == IN_READABLE);
        assert_int_equal(recorder.ends, which == IN_END);
        assert_int_equal(recorder.failures, which == IN_FAILED);
        assert_int_equal(recorder.drains, which == IN_DRAINED);
        /* All of these are allowed on a closed connection and do nothing. */
        conn_send(&recorder.conn, "x", 1);
        conn_pause(&recorder.conn);
        conn_resume(&recorder.conn);
        conn_close(&recorder.conn);
        assert_int_equal(conn_backlog(&recorder.conn), 0);
        assert_int_equal(conn_local_port(&recorder.conn), 0);
        turn(*state);
        recorder_fini(&recorder);
    }
}

static void reserved_and_source_ports_are_asked_for(void **state)
{
    struct loop *loop = *state;
    struct recorder first;
    struct recorder second;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    first.peer = second.peer = -1;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 2), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    int error = conn_connect(&first.conn, loop, (struct sockaddr *)&address, length, 0, true,
                             &recorder_ops);
    if (error == 0)
        assert_in_range(conn_local_port(&first.conn), 600, 1023);
    else
        assert_int_equal(error, -EACCES);
    /* The listener's own port is taken: any other will do. */
    assert_int_equal(conn_connect(&second.conn, loop, (struct sockaddr *)&address, length,
                                  ntohs(address.sin_port), false, &recorder_ops),
                     0);
    assert_int_not_equal(conn_local_port(&second.conn), 0);
    turn_until(loop, &second.connects, 1);
    close(listener);
    recorder_fini(&first);
    recorder_fini(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(what_comes_is_read),
        loop_test(what_a_turn_sends_comes_as_one_piece),
        loop_test(a_turn_sends_once_per_peer),
        loop_test(more_pieces_than_references_keep_their_order),
        loop_test(output_that_is_not_taken_is_kept_in_order),
        loop_test(a_large_backlog_that_goes_out_at_once_is_told),
        loop_test(pausing_loses_nothing),
        loop_test(pausing_in_readable_stops_at_once),
        loop_test(the_peers_end_is_told_once),
        loop_test(an_end_behind_a_pause_is_told_after_the_bytes),
        loop_test(shutting_down_comes_behind_what_was_sent),
        loop_test(a_failure_is_told_once),
        loop_test(a_failure_with_output_queued_is_told_once),
        loop_test(a_broken_peer_is_told_to_an_owner_that_does_not_read),
        loop_test(writing_to_a_closed_peer_fails_once),
        loop_test(connecting_sends_what_was_queued_before),
        loop_test(a_refused_connection_fails),
        loop_test(connecting_to_nowhere_says_so_at_once),
        loop_test(closing_in_any_callback_is_safe),
        loop_test(reserved_and_source_ports_are_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
