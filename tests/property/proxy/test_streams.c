/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections under random circumstances: two of them, back to back through the loop, pass a
 * stream on by reference, as the proxy does. The producer writes pieces of any size when it likes,
 * the consumer reads when it likes, the relay pauses its source while the backlog is high and goes
 * on when drained. Whatever the order: every byte arrives once, in order, the end behind the last
 * one, and the backlog stays bounded.
 */
#include "tests/property/sched/property.h"
#include "tests/unit/proxy/io/fixture.h"

#define STREAM_BYTES    3000000
#define WATERMARK_BYTES (2 * CONN_BACKLOG_BYTES)

struct relay {
    struct recorder source;
    struct recorder sink;
    struct property_random random;
    bool ended;
};

static void pass_on(struct conn *conn, uint8_t *bytes, size_t length)
{
    struct relay *relay = container_of(conn, struct relay, source.conn);

    /* In pieces, as heads and bodies are. */
    while (length > 0) {
        size_t piece = property_between(
            &relay->random, 1, property_chance(&relay->random, 20) ? length : 1 + length / 8);
        conn_send(&relay->sink.conn, bytes, piece);
        bytes += piece;
        length -= piece;
    }
    if (conn_backlog(&relay->sink.conn) > WATERMARK_BYTES)
        conn_pause(conn);
}

static void pass_end_on(struct conn *conn)
{
    struct relay *relay = container_of(conn, struct relay, source.conn);

    assert_false(relay->ended);
    relay->ended = true;
    conn_shutdown(&relay->sink.conn);
}

static void go_on(struct conn *conn)
{
    struct relay *relay = container_of(conn, struct relay, sink.conn);

    conn_resume(&relay->source.conn);
}

static const struct conn_ops source_ops = {
    .readable = pass_on,
    .end_of_stream = pass_end_on,
    .failed = record_failed,
};

static const struct conn_ops sink_ops = {
    .readable = record_readable,
    .end_of_stream = record_end,
    .failed = record_failed,
    .drained = go_on,
};

static size_t produce(struct relay *relay, size_t place)
{
    static uint8_t bytes[1 << 17];
    size_t length = property_between(&relay->random, 1, sizeof(bytes));

    if (length > STREAM_BYTES - place)
        length = STREAM_BYTES - place;
    fill_stream(bytes, length, place);
    ssize_t sent = send(relay->source.peer, bytes, length, MSG_NOSIGNAL);
    place += sent > 0 ? (size_t)sent : 0;
    if (place == STREAM_BYTES)
        shutdown(relay->source.peer, SHUT_WR);
    return place;
}

static void a_random_stream(uint64_t seed)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    struct loop loop;
    size_t produced = 0;
    size_t consumed = 0;
    char byte;

    assert_non_null(relay);
    assert_int_equal(loop_init(&loop, 0), 0);
    relay->random.state = seed;
    recorder_open(&relay->source, &loop, property_chance(&relay->random, 50));
    recorder_open(&relay->sink, &loop, property_chance(&relay->random, 50));
    relay->source.conn.ops = &source_ops;
    relay->sink.conn.ops = &sink_ops;
    unsigned eagerness = (unsigned)property_between(&relay->random, 5, 95);
    for (unsigned i = 0; i < 20 * TURNS_MAX && consumed < STREAM_BYTES; i++) {
        if (produced < STREAM_BYTES && property_chance(&relay->random, eagerness))
            produced = produce(relay, produced);
        if (property_chance(&relay->random, 100 - eagerness))
            take_stream(relay->sink.peer, &consumed);
        if (property_chance(&relay->random, 5))
            conn_pause(&relay->source.conn);
        else if (conn_backlog(&relay->sink.conn) <= WATERMARK_BYTES)
            conn_resume(&relay->source.conn);
        turn(&loop);
        property_check(seed,
                       conn_backlog(&relay->sink.conn) <= WATERMARK_BYTES + LOOP_RECEIVE_BYTES);
    }
    property_check(seed, consumed == STREAM_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        conn_resume(&relay->source.conn);
        turn(&loop);
    }
    property_check(seed, relay->ended);
    property_check(seed, recv(relay->sink.peer, &byte, 1, 0) == 0);
    property_check(seed, relay->source.failures + relay->sink.failures == 0);
    recorder_fini(&relay->source);
    recorder_fini(&relay->sink);
    loop_wind_up(&loop);
    loop_fini(&loop);
    free(relay);
}

static void streams_arrive_whole_and_in_order(void **state)
{
    (void)state;
    property_run("streams", 12, a_random_stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams_arrive_whole_and_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
