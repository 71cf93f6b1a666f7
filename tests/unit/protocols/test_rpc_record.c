/* SPDX-License-Identifier: Apache-2.0 */
/* Record marking: any cut of a stream into receives gives the same records; caps; linear work. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "protocols/rpc/rpc_record.h"
#include "tests/unit/protocols/rpc_test.h"

#define LAST 0x80000000u

/* What came out of a decoder: payloads one behind the other, and each record's length. */
struct collected {
    uint8_t payload[1 << 18];
    size_t payload_bytes;
    size_t record_bytes[512];
    size_t records;
    size_t wholes;
    size_t calls;
    size_t consumed;
    bool open;
    enum rpc_record_error error;
};

static struct collected *collected_new(void)
{
    struct collected *c = calloc(1, sizeof *c);

    assert_non_null(c);
    return c;
}

static void collect_bytes(struct collected *c, const uint8_t *data, size_t len)
{
    assert_true(c->payload_bytes + len <= sizeof c->payload);
    memcpy(c->payload + c->payload_bytes, data, len);
    c->payload_bytes += len;
    c->record_bytes[c->records] += len;
}

static void collect_event(struct collected *c, const struct rpc_record_event *e)
{
    switch (e->type) {
    case RPC_RECORD_WHOLE:
        assert_false(c->open);
        assert_int_equal(test_word_at(e->data), LAST | (e->len - 4));
        collect_bytes(c, e->data + 4, e->len - 4);
        assert_int_equal(e->total_bytes, e->len - 4);
        assert_int_equal(e->known_bytes, e->len - 4);
        c->records++;
        c->wholes++;
        break;
    case RPC_RECORD_BEGIN:
        assert_false(c->open);
        assert_int_equal(e->total_bytes, 0);
        c->open = true;
        break;
    case RPC_RECORD_DATA:
        assert_true(c->open);
        assert_true(e->len > 0);
        collect_bytes(c, e->data, e->len);
        assert_int_equal(e->total_bytes, c->record_bytes[c->records]);
        break;
    case RPC_RECORD_END:
        assert_true(c->open);
        assert_int_equal(e->total_bytes, c->record_bytes[c->records]);
        assert_int_equal(e->known_bytes, e->total_bytes);
        c->open = false;
        c->records++;
        break;
    case RPC_RECORD_MORE:
    case RPC_RECORD_ERROR:
        break;
    }
}

/* One receive: a block of exactly `len` bytes, gone afterwards. */
static void feed(struct rpc_record_decoder *d, struct collected *c, const uint8_t *data, size_t len)
{
    uint8_t *block = test_exact_copy(data, len);
    const uint8_t *at = block;
    struct rpc_record_event e;

    do {
        size_t used = rpc_record_next(d, at, len, &e);
        c->calls++;
        assert_true(used <= len);
        c->consumed += used;
        at += used;
        len -= used;
        collect_event(c, &e);
    } while (e.type != RPC_RECORD_MORE && e.type != RPC_RECORD_ERROR);
    if (e.type == RPC_RECORD_MORE)
        assert_int_equal(len, 0);
    c->error = d->error;
    free(block);
}

static void build_fragment(struct build *b, uint32_t len, bool last, uint8_t fill)
{
    build_word(b, len | (last ? LAST : 0));
    for (uint32_t i = 0; i < len; i++, fill++)
        build_raw(b, &fill, 1);
}

static void whole_records_are_contiguous_slices(void **state)
{
    (void)state;
    struct build b = {.len = 0};
    struct rpc_record_decoder d;
    struct rpc_record_event e;
    size_t at = 0;

    build_fragment(&b, 40, true, 1);
    build_fragment(&b, 1, true, 2);
    build_fragment(&b, 200, true, 3);
    rpc_record_init(&d, NULL);
    static const size_t lens[] = {44, 5, 204};
    for (size_t i = 0; i < 3; i++) {
        size_t used = rpc_record_next(&d, b.bytes + at, b.len - at, &e);
        assert_int_equal(e.type, RPC_RECORD_WHOLE);
        assert_ptr_equal(e.data, b.bytes + at);
        assert_int_equal(e.len, lens[i]);
        assert_int_equal(used, lens[i]);
        at += used;
    }
    assert_int_equal(rpc_record_next(&d, b.bytes + at, 0, &e), 0);
    assert_int_equal(e.type, RPC_RECORD_MORE);
    assert_true(rpc_record_idle(&d));
}

static void a_cut_record_is_streamed_with_its_length_known(void **state)
{
    (void)state;
    struct build b = {.len = 0};
    struct rpc_record_decoder d;
    struct rpc_record_event e;

    build_fragment(&b, 100, true, 7);
    rpc_record_init(&d, NULL);
    assert_int_equal(rpc_record_next(&d, b.bytes, 3, &e), 3);
    assert_int_equal(e.type, RPC_RECORD_MORE);
    assert_false(rpc_record_idle(&d));
    assert_int_equal(rpc_record_next(&d, b.bytes + 3, 11, &e), 1);
    assert_int_equal(e.type, RPC_RECORD_BEGIN);
    assert_int_equal(e.known_bytes, 100);
    assert_int_equal(rpc_record_known_bytes(&d), 100);
    assert_int_equal(rpc_record_next(&d, b.bytes + 4, 10, &e), 10);
    assert_int_equal(e.type, RPC_RECORD_DATA);
    assert_ptr_equal(e.data, b.bytes + 4);
    assert_int_equal(e.len, 10);
    assert_int_equal(d.fragment_remaining, 90);
    assert_true(d.last_fragment);
    assert_int_equal(rpc_record_next(&d, b.bytes + 14, 90, &e), 90);
    assert_int_equal(e.type, RPC_RECORD_DATA);
    assert_int_equal(rpc_record_next(&d, b.bytes + 104, 0, &e), 0);
    assert_int_equal(e.type, RPC_RECORD_END);
    assert_true(rpc_record_idle(&d));
}

static void length_is_unknown_until_the_last_mark(void **state)
{
    (void)state;
    struct build b = {.len = 0};
    struct rpc_record_decoder d;
    struct rpc_record_event e;

    build_fragment(&b, 8, false, 1);
    build_fragment(&b, 12, true, 1);
    rpc_record_init(&d, NULL);
    assert_int_equal(rpc_record_next(&d, b.bytes, b.len, &e), 4);
    assert_int_equal(e.type, RPC_RECORD_BEGIN);
    assert_true(e.known_bytes == RPC_RECORD_UNKNOWN);
    assert_int_equal(rpc_record_next(&d, b.bytes + 4, b.len - 4, &e), 8);
    assert_int_equal(e.type, RPC_RECORD_DATA);
    assert_true(e.known_bytes == RPC_RECORD_UNKNOWN);
    assert_int_equal(rpc_record_next(&d, b.bytes + 12, b.len - 12, &e), 16);
    assert_int_equal(e.type, RPC_RECORD_DATA);
    assert_ptr_equal(e.data, b.bytes + 16);
    assert_int_equal(e.known_bytes, 20);
}

/* Random records in random fragments, as a stream; *expected gets what must come out. */
static void random_stream(struct test_random *random, struct build *stream,
                          struct collected *expected)
{
    uint32_t records = 1 + test_random_below(random, 6);

    for (uint32_t r = 0; r < records; r++) {
        uint32_t fragments = 1 + test_random_below(random, 5);
        for (uint32_t f = 0; f < fragments; f++) {
            uint32_t len = test_random_below(random, 4) ? test_random_below(random, 100) : 0;
            size_t mark = stream->len;
            build_fragment(stream, len, f + 1 == fragments, (uint8_t)test_random_next(random));
            collect_bytes(expected, stream->bytes + mark + 4, len);
        }
        expected->records++;
    }
}

static void same_records(const struct collected *got, const struct collected *want)
{
    assert_int_equal(got->error, RPC_RECORD_FINE);
    assert_false(got->open);
    assert_int_equal(got->records, want->records);
    assert_memory_equal(got->record_bytes, want->record_bytes, sizeof want->record_bytes);
    assert_int_equal(got->payload_bytes, want->payload_bytes);
    assert_memory_equal(got->payload, want->payload, want->payload_bytes);
}

static void any_cut_gives_the_same_records(void **state)
{
    (void)state;
    struct test_random random;

    test_random_init(&random, __func__);
    for (int round = 0; round < 300; round++) {
        struct build stream = {.len = 0};
        struct collected *want = collected_new();
        struct collected *got = collected_new();
        struct rpc_record_decoder d;
        uint32_t cut = round % 3 == 0   ? 1
                       : round % 3 == 1 ? BUILD_MAX_BYTES
                                        : 1 + test_random_below(&random, 200);

        random_stream(&random, &stream, want);
        rpc_record_init(&d, NULL);
        for (size_t at = 0; at < stream.len;) {
            size_t len = round % 3 == 2 ? 1 + test_random_below(&random, cut) : cut;
            if (len > stream.len - at)
                len = stream.len - at;
            feed(&d, got, stream.bytes + at, len);
            at += len;
        }
        same_records(got, want);
        assert_true(rpc_record_idle(&d));
        assert_int_equal(got->consumed, stream.len);
        free(want);
        free(got);
    }
}

/* Sends a record on while it arrives, the way rpc_record.h says. */
struct restream {
    struct build out;
    uint64_t sent;
    bool last_mark_sent;
};

static void restream_event(struct restream *r, const struct rpc_record_event *e)
{
    uint8_t mark[4];

    if (!r->last_mark_sent) {
        bool last = e->known_bytes != RPC_RECORD_UNKNOWN;
        rpc_record_mark(mark, last ? (uint32_t)(e->known_bytes - r->sent) : (uint32_t)e->len, last);
        build_raw(&r->out, mark, 4);
        r->last_mark_sent = last;
    }
    if (e->type == RPC_RECORD_DATA)
        build_raw(&r->out, e->data, e->len);
    r->sent += e->len;
}

static void restreamed_records_are_the_same(void **state)
{
    (void)state;
    struct test_random random;

    test_random_init(&random, __func__);
    for (int round = 0; round < 200; round++) {
        struct build stream = {.len = 0};
        struct collected *want = collected_new();
        struct collected *got = collected_new();
        struct restream re = {.sent = 0};
        struct rpc_record_decoder d;
        struct rpc_record_event e;

        for (int f = 0; f < 4; f++) {
            uint32_t len = test_random_below(&random, 4) ? test_random_below(&random, 90) : 0;
            size_t mark = stream.len;
            build_fragment(&stream, len, f == 3, (uint8_t)f);
            collect_bytes(want, stream.bytes + mark + 4, len);
        }
        want->records = 1;
        rpc_record_init(&d, NULL);
        for (size_t at = 0; at < stream.len;) {
            size_t left = 1 + test_random_below(&random, 60);
            left = left < stream.len - at ? left : stream.len - at;
            do {
                size_t used = rpc_record_next(&d, stream.bytes + at, left, &e);
                at += used;
                left -= used;
                if (e.type == RPC_RECORD_DATA || e.type == RPC_RECORD_END)
                    restream_event(&re, &e);
            } while (e.type != RPC_RECORD_MORE);
        }
        rpc_record_init(&d, NULL);
        feed(&d, got, re.out.bytes, re.out.len);
        same_records(got, want);
        free(want);
        free(got);
    }
}

static enum rpc_record_error error_of(const struct rpc_record_limits *limits,
                                      const struct build *stream, size_t cut)
{
    struct collected *got = collected_new();
    struct rpc_record_decoder d;
    enum rpc_record_error error;

    rpc_record_init(&d, limits);
    for (size_t at = 0; at < stream->len && got->error == RPC_RECORD_FINE; at += cut)
        feed(&d, got, stream->bytes + at, cut < stream->len - at ? cut : stream->len - at);
    error = got->error;
    if (error != RPC_RECORD_FINE) { /* sticky, consumes nothing */
        struct rpc_record_event e;
        assert_int_equal(rpc_record_next(&d, stream->bytes, stream->len, &e), 0);
        assert_int_equal(e.type, RPC_RECORD_ERROR);
        assert_true(strlen(rpc_record_error_text(error)) > 10);
    } else {
        assert_true(rpc_record_idle(&d));
    }
    free(got);
    return error;
}

static void caps_hold_exactly(void **state)
{
    (void)state;
    const struct rpc_record_limits limits = {
        .record_bytes = 100, .fragments = 4, .empty_fragments = 2};

    for (size_t cut = 1; cut < 300; cut += 149) {
        struct build fits = {.len = 0};
        build_fragment(&fits, 100, true, 0);
        assert_int_equal(error_of(&limits, &fits, cut), RPC_RECORD_FINE);

        struct build long_one = {.len = 0};
        build_fragment(&long_one, 101, true, 0);
        assert_int_equal(error_of(&limits, &long_one, cut), RPC_RECORD_TOO_LONG);

        struct build long_sum = {.len = 0};
        build_fragment(&long_sum, 60, false, 0);
        build_fragment(&long_sum, 41, true, 0);
        assert_int_equal(error_of(&limits, &long_sum, cut), RPC_RECORD_TOO_LONG);

        struct build four = {.len = 0};
        for (int i = 0; i < 4; i++)
            build_fragment(&four, 5, i == 3, 0);
        assert_int_equal(error_of(&limits, &four, cut), RPC_RECORD_FINE);

        struct build five = {.len = 0};
        for (int i = 0; i < 5; i++)
            build_fragment(&five, 5, i == 4, 0);
        assert_int_equal(error_of(&limits, &five, cut), RPC_RECORD_TOO_MANY_FRAGMENTS);

        struct build empties = {.len = 0};
        build_fragment(&empties, 0, false, 0);
        build_fragment(&empties, 9, false, 0);
        build_fragment(&empties, 0, true, 0);
        build_fragment(&empties, 0, false, 0); /* a next record counts anew */
        build_fragment(&empties, 0, true, 0);
        assert_int_equal(error_of(&limits, &empties, cut), RPC_RECORD_FINE);

        struct build three_empties = {.len = 0};
        for (int i = 0; i < 3; i++)
            build_fragment(&three_empties, 0, false, 0);
        assert_int_equal(error_of(&limits, &three_empties, cut), RPC_RECORD_TOO_MANY_EMPTY);
    }
}

static void an_oversized_mark_is_refused_before_its_data(void **state)
{
    (void)state;
    struct rpc_record_decoder d;
    struct rpc_record_event e;
    uint8_t mark[4] = {0xff, 0xff, 0xff, 0xff};

    rpc_record_init(&d, NULL);
    rpc_record_next(&d, mark, 4, &e);
    assert_int_equal(e.type, RPC_RECORD_ERROR);
    assert_int_equal(d.error, RPC_RECORD_TOO_LONG);
}

static void work_is_linear_in_a_64_mib_record(void **state)
{
    (void)state;
    enum { FRAGMENT = 2048, FRAGMENTS = 32769, LAST_BYTES = 120, RECEIVE = 100000 };
    struct rpc_record_decoder d;
    struct rpc_record_event e;
    uint64_t calls = 0, consumed = 0, payload = 0, receives = 0, at = 0;
    const uint64_t stream =
        (uint64_t)(FRAGMENTS - 1) * (FRAGMENT + 4) + RPC_RECORD_MARK_BYTES + LAST_BYTES;
    uint8_t *receive = calloc(1, RECEIVE);

    assert_non_null(receive);
    rpc_record_init(&d, NULL);
    do {
        size_t len = stream - at < RECEIVE ? (size_t)(stream - at) : RECEIVE;
        memset(receive, 0, len);
        for (uint64_t i = at; i < at + len; i++) { /* the bytes of marks that lie in this receive */
            uint64_t fragment = i / (FRAGMENT + 4), byte = i % (FRAGMENT + 4);
            uint32_t mark = fragment == FRAGMENTS - 1 ? LAST | LAST_BYTES : FRAGMENT;
            if (byte < 4)
                receive[i - at] = (uint8_t)(mark >> (24 - 8 * byte));
            else
                i += FRAGMENT + 4 - byte - 1;
        }
        receives++;
        const uint8_t *p = receive;
        at += len;
        do {
            size_t used = rpc_record_next(&d, p, len, &e);
            p += used;
            len -= used;
            calls++;
            consumed += used;
            assert_int_not_equal(e.type, RPC_RECORD_ERROR);
            if (e.type == RPC_RECORD_DATA)
                payload += e.len;
        } while (e.type != RPC_RECORD_MORE);
    } while (at < stream);
    free(receive);
    assert_true(rpc_record_idle(&d));
    assert_int_equal(consumed, stream); /* every byte is passed over once */
    assert_int_equal(payload, 64 * 1048576 + LAST_BYTES);
    /* and every slice is handed out once: one per fragment, one more where a receive cuts one,
     * one MORE per receive, BEGIN and END */
    assert_true(calls <= FRAGMENTS + 2 * receives + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_records_are_contiguous_slices),
        cmocka_unit_test(a_cut_record_is_streamed_with_its_length_known),
        cmocka_unit_test(length_is_unknown_until_the_last_mark),
        cmocka_unit_test(any_cut_gives_the_same_records),
        cmocka_unit_test(restreamed_records_are_the_same),
        cmocka_unit_test(caps_hold_exactly),
        cmocka_unit_test(an_oversized_mark_is_refused_before_its_data),
        cmocka_unit_test(work_is_linear_in_a_64_mib_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
