/* SPDX-License-Identifier: Apache-2.0 */
/* Records in flight: whatever the fragments and the receives, the payload comes out as it went in,
 * in the promised shapes; and what framing sends is the same record again. */
#include "proxy/nfs/record.h"

#include "proxy/io/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RECORD_MAX 9000
#define STREAM_MAX (RECORD_MAX * 6)

static uint64_t random_state;

static uint32_t random_number(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static int set_up(void **state)
{
    const char *wanted = getenv("SPILLWAY_SEED");
    struct loop *loop = memory_zalloc(sizeof(*loop), "a loop");

    random_state = wanted != NULL ? strtoull(wanted, NULL, 0) : 20261130;
    printf("SPILLWAY_SEED=%llu\n", (unsigned long long)random_state);
    assert_int_equal(loop_init(loop, 0), 0);
    *state = loop;
    return 0;
}

static int tear_down(void **state)
{
    loop_fini(*state);
    free(*state);
    return 0;
}

/* Settling, as far as scratch is concerned. */
static void settle(struct loop *loop)
{
    size_t room;

    loop->arena_used = LOOP_ARENA_BYTES;
    (void)loop_receive_room(loop, &room);
}

static void fill(uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)random_number(256);
}

/* Cuts a payload into fragments, empty ones among them; returns the bytes written to `out`. */
static size_t cut(uint8_t *out, const uint8_t *payload, size_t length, uint32_t fragment_max)
{
    size_t at = 0;
    size_t written = 0;
    bool last;

    do {
        size_t take = fragment_max == 0 ? length : random_number(fragment_max + 1);
        if (take > length - at)
            take = length - at;
        last = at + take == length && (fragment_max == 0 || random_number(2) == 0);
        rpc_record_mark(out + written, (uint32_t)take, last);
        memcpy(out + written + 4, payload + at, take);
        written += 4 + take;
        at += take;
    } while (!last);
    return written;
}

struct collected {
    uint8_t payload[RECORD_MAX];
    size_t length;
    bool whole, ended;
    unsigned pieces;
};

static void take(struct collected *got, const struct nfs_piece *piece)
{
    assert_false(got->ended);
    if (piece->type == NFS_RECORD_WHOLE) {
        assert_int_equal(got->pieces, 0);
        assert_int_equal(rpc_load_u32(piece->bytes), 0x80000000u | (piece->length - 4));
        memcpy(got->payload, piece->bytes + 4, piece->length - 4);
        got->length = piece->length - 4;
        got->whole = got->ended = true;
        return;
    }
    assert_int_equal(piece->first, got->pieces == 0);
    if (piece->first)
        assert_true(piece->length >= NFS_HEAD_BYTES);
    if (piece->length > 0)
        memcpy(got->payload + got->length, piece->bytes, piece->length);
    got->length += piece->length;
    got->ended = piece->last;
    got->pieces++;
    if (piece->known_bytes != RPC_RECORD_UNKNOWN)
        assert_true(piece->known_bytes >= got->length);
    if (piece->last)
        assert_int_equal(piece->known_bytes, got->length);
}

static void feed(struct nfs_incoming *incoming, const uint8_t *bytes, size_t length,
                 struct collected *got, unsigned *records)
{
    /* Writable, and of the exact size. */
    uint8_t *copy = test_malloc(length + 1);
    uint8_t *at = copy;
    struct nfs_piece piece;

    memcpy(copy, bytes, length);
    do {
        size_t used = nfs_incoming_next(incoming, at, length, &piece);
        at += used;
        length -= used;
        assert_int_not_equal(piece.type, NFS_RECORD_ERROR);
        if (piece.type == NFS_RECORD_MORE)
            break;
        take(&got[*records], &piece);
        *records += got[*records].ended;
    } while (true);
    assert_int_equal(length, 0);
    test_free(copy);
}

static void test_every_cutting_gives_the_same_records(void **state)
{
    static uint8_t payloads[4][RECORD_MAX];
    static uint8_t stream[STREAM_MAX];
    static struct collected got[5];
    static const uint32_t fragments[] = {0, 3000, 200};
    static const uint32_t feeds[] = {20000, 3000, 1500, 40};
    struct rpc_record_limits limits = {1 << 20, 100000, 100000};
    struct loop *loop = *state;

    for (unsigned round = 0; round < 600; round++) {
        struct nfs_incoming incoming;
        size_t lengths[4];
        size_t stream_bytes = 0;
        unsigned records = 0;

        nfs_incoming_init(&incoming, loop, &limits);
        memset(got, 0, sizeof(got));
        for (unsigned i = 0; i < 4; i++) {
            lengths[i] = random_number(random_number(2) ? RECORD_MAX : 300) + 1;
            fill(payloads[i], lengths[i]);
            stream_bytes +=
                cut(stream + stream_bytes, payloads[i], lengths[i], fragments[round % 3]);
        }
        for (size_t at = 0; at < stream_bytes;) {
            size_t part = random_number(feeds[round % 4]) + 1;
            if (part > stream_bytes - at)
                part = stream_bytes - at;
            feed(&incoming, stream + at, part, got, &records);
            at += part;
            settle(loop);
        }
        assert_int_equal(records, 4);
        assert_true(nfs_incoming_is_idle(&incoming));
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(got[i].length, lengths[i]);
            assert_memory_equal(got[i].payload, payloads[i], lengths[i]);
            if (lengths[i] < NFS_HEAD_BYTES)
                assert_true(got[i].whole);
        }
        nfs_incoming_fini(&incoming);
    }
}

static void test_a_record_in_the_buffer_is_whole_whatever_its_fragments(void **state)
{
    static uint8_t payload[RECORD_MAX], stream[STREAM_MAX];
    static struct collected got[2];
    struct nfs_incoming incoming;

    fill(payload, RECORD_MAX);
    for (uint32_t fragment = 0; fragment <= 2048; fragment += 1024) {
        unsigned records = 0;
        memset(got, 0, sizeof(got));
        nfs_incoming_init(&incoming, *state, NULL);
        size_t length = cut(stream, payload, RECORD_MAX, fragment);
        feed(&incoming, stream, length, got, &records);
        assert_int_equal(records, 1);
        assert_true(got[0].whole);
        assert_memory_equal(got[0].payload, payload, RECORD_MAX);
        nfs_incoming_fini(&incoming);
    }
}

static void test_an_empty_record_is_whole(void **state)
{
    uint8_t stream[8] = {0, 0, 0, 0, 0x80, 0, 0, 0};
    struct nfs_incoming incoming;
    struct nfs_piece piece;

    nfs_incoming_init(&incoming, *state, NULL);
    assert_int_equal(nfs_incoming_next(&incoming, stream, sizeof(stream), &piece), sizeof(stream));
    assert_int_equal(piece.type, NFS_RECORD_WHOLE);
    assert_int_equal(piece.length, 4);
    nfs_incoming_fini(&incoming);
}

static void test_a_limit_passed_is_an_error(void **state)
{
    struct rpc_record_limits limits = {100, 10, 10};
    uint8_t stream[8] = {0x80, 0, 0, 101, 1, 2, 3, 4};
    struct nfs_incoming incoming;
    struct nfs_piece piece;

    nfs_incoming_init(&incoming, *state, &limits);
    (void)nfs_incoming_next(&incoming, stream, sizeof(stream), &piece);
    assert_int_equal(piece.type, NFS_RECORD_ERROR);
    nfs_incoming_fini(&incoming);
}

static void unexpected(struct conn *conn, int error)
{
    (void)conn;
    (void)error;
    fail();
}

static void ignore_end(struct conn *conn)
{
    (void)conn;
}

static void ignore_bytes(struct conn *conn, uint8_t *bytes, size_t length)
{
    (void)conn;
    (void)bytes;
    (void)length;
}

/* What was sent decodes to the payload; `known_at`: how much is sent when the length becomes known.
 */
static void send_framed(struct loop *loop, const uint8_t *payload, size_t length, size_t known_at)
{
    static const struct conn_ops ops = {
        .readable = ignore_bytes, .end_of_stream = ignore_end, .failed = unexpected};
    static uint8_t stream[STREAM_MAX];
    static struct collected got[2];
    struct nfs_framing framing = {0};
    struct nfs_incoming incoming;
    struct conn conn;
    size_t received = 0;
    unsigned records = 0;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(conn_open(&conn, loop, ends[0], &ops), 0);
    for (size_t at = 0; at <= length;) {
        size_t part = at == length ? 0 : random_number((uint32_t)(length - at)) + 1;
        nfs_framing_send(&framing, &conn, at >= known_at ? length : RPC_RECORD_UNKNOWN,
                         payload + at, part);
        settle(loop);
        at += part;
        if (at == length) {
            if (!framing.closed)
                nfs_framing_send(&framing, &conn, length, NULL, 0);
            break;
        }
    }
    settle(loop);
    for (ssize_t some; (some = read(ends[1], stream + received, sizeof(stream) - received)) > 0;)
        received += (size_t)some;
    nfs_incoming_init(&incoming, loop, NULL);
    memset(got, 0, sizeof(got));
    feed(&incoming, stream, received, got, &records);
    assert_int_equal(records, 1);
    assert_int_equal(got[0].length, length);
    assert_memory_equal(got[0].payload, payload, length);
    nfs_incoming_fini(&incoming);
    conn_close(&conn);
    close(ends[1]);
}

static void test_framing_sends_the_record_again(void **state)
{
    static uint8_t payload[RECORD_MAX];

    fill(payload, sizeof(payload));
    for (unsigned round = 0; round < 100; round++) {
        size_t length = random_number(RECORD_MAX) + 1;
        size_t known_at = round % 4 == 0   ? 0
                          : round % 4 == 1 ? length + 1
                                           : random_number((uint32_t)length);
        send_framed(*state, payload, length, known_at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cutting_gives_the_same_records),
        cmocka_unit_test(test_a_record_in_the_buffer_is_whole_whatever_its_fragments),
        cmocka_unit_test(test_an_empty_record_is_whole),
        cmocka_unit_test(test_a_limit_passed_is_an_error),
        cmocka_unit_test(test_framing_sends_the_record_again),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
