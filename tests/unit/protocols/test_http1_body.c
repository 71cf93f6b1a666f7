/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies: payload of every framing, at every cut of the input; malformed chunks, one row each;
 * trailers kept and dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocols/http/http1_write.h"

struct decoded {
    char payload[4096];
    size_t payload_len;
    size_t consumed;
    enum http1_body_result result;
};

/* Feeds bytes in pieces of `piece` (0: all at once), each in a block of its own size. */
static void decode(struct http1_body *body, const char *bytes, size_t len, size_t piece,
                   struct decoded *out)
{
    memset(out, 0, sizeof(*out));
    out->result = HTTP1_BODY_MORE;
    for (size_t at = 0; at < len && out->result == HTTP1_BODY_MORE;) {
        size_t n = piece && piece < len - at ? piece : len - at;
        char *copy = malloc(n);
        memcpy(copy, bytes + at, n);
        for (size_t used = 0;;) {
            size_t step;
            struct http1_slice slice;
            out->result = http1_body_next(body, copy + used, n - used, &step, &slice);
            used += step;
            out->consumed += step;
            if (out->result != HTTP1_BODY_DATA)
                break;
            assert_true(slice.len > 0 && slice.ptr >= copy && slice.ptr + slice.len <= copy + used);
            memcpy(out->payload + out->payload_len, slice.ptr, slice.len);
            out->payload_len += slice.len;
        }
        at += n;
        free(copy);
    }
}

static void expect_payload(const struct decoded *decoded, const char *text)
{
    assert_int_equal(decoded->payload_len, strlen(text));
    assert_memory_equal(decoded->payload, text, decoded->payload_len);
}

static void test_length(void **state)
{
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    for (size_t piece = 0; piece < 12; piece++) {
        http1_body_init_length(&body, 10);
        decode(&body, "0123456789next", 14, piece, &decoded);
        assert_int_equal(decoded.result, HTTP1_BODY_DONE);
        expect_payload(&decoded, "0123456789");
        assert_int_equal(decoded.consumed, 10);
        assert_int_equal(body.payload_bytes, 10);
    }
    http1_body_init_length(&body, 0);
    assert_true(http1_body_is_done(&body));

    http1_body_init_length(&body, 10);
    decode(&body, "01234", 5, 0, &decoded);
    assert_int_equal(decoded.result, HTTP1_BODY_MORE);
    assert_int_equal(http1_body_eof(&body), HTTP1_BODY_ERROR);
    assert_non_null(body.error_reason);
}

static void test_none(void **state)
{
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    http1_body_init_none(&body);
    assert_true(http1_body_is_done(&body));
    decode(&body, "next", 4, 0, &decoded);
    assert_int_equal(decoded.result, HTTP1_BODY_DONE);
    assert_int_equal(decoded.consumed, 0);
    assert_int_equal(http1_body_eof(&body), HTTP1_BODY_DONE);
}

static void test_until_close(void **state)
{
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    http1_body_init_until_close(&body);
    decode(&body, "everything", 10, 3, &decoded);
    assert_int_equal(decoded.result, HTTP1_BODY_MORE);
    expect_payload(&decoded, "everything");
    assert_false(http1_body_is_done(&body));
    assert_int_equal(http1_body_eof(&body), HTTP1_BODY_DONE);
    assert_int_equal(body.payload_bytes, 10);
}

static void test_from_head(void **state)
{
    struct http1_head head = {.framing = HTTP1_FRAMING_LENGTH, .content_length = 4};
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    http1_body_init(&body, &head);
    decode(&body, "abcdef", 6, 0, &decoded);
    expect_payload(&decoded, "abcd");
    head.framing = HTTP1_FRAMING_CHUNKED;
    http1_body_init(&body, &head);
    decode(&body, "2\r\nab\r\n0\r\n\r\n", 12, 0, &decoded);
    expect_payload(&decoded, "ab");
    head.framing = HTTP1_FRAMING_UNTIL_CLOSE;
    http1_body_init(&body, &head);
    decode(&body, "abc", 3, 0, &decoded);
    expect_payload(&decoded, "abc");
    head.framing = HTTP1_FRAMING_NONE;
    http1_body_init(&body, &head);
    assert_true(http1_body_is_done(&body));
}

static void test_chunked_at_every_cut(void **state)
{
    static const char text[] = "5\r\nhello\r\n00b;name=value;x=\"q\"\r\n, the world\r\n"
                               "1 ;e\r\n!\r\n0;last\r\nX-Sum: 1\r\nExpires: x\r\n\r\nGET /";
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    for (size_t piece = 0; piece < sizeof(text); piece++) {
        http1_body_init_chunked(&body);
        decode(&body, text, sizeof(text) - 1, piece, &decoded);
        assert_int_equal(decoded.result, HTTP1_BODY_DONE);
        expect_payload(&decoded, "hello, the world!");
        assert_int_equal(decoded.consumed, sizeof(text) - 1 - 5);
        assert_true(http1_body_is_done(&body));
    }
}

static void test_chunk_size_bounds(void **state)
{
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    http1_body_init_chunked(&body);
    decode(&body, "FFFffffffffffff\r\nab", 19, 0, &decoded);
    assert_int_equal(decoded.result, HTTP1_BODY_MORE);
    assert_true(body.left_bytes == (UINT64_C(1) << 60) - 1 - 2);
    assert_int_equal(http1_body_eof(&body), HTTP1_BODY_ERROR);
}

static void test_malformed_chunks(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t len;
    } rows[] = {
#define ROW(what, text) {what, text, sizeof(text) - 1}
        ROW("no size", "\r\nab"),
        ROW("extension without a size", ";x\r\n"),
        ROW("later chunk without a size", "1\r\na\r\n\r\n"),
        ROW("sign", "+1\r\na\r\n"),
        ROW("minus", "-1\r\n"),
        ROW("0x", "0x1\r\na\r\n"),
        ROW("not hexadecimal", "g\r\n"),
        ROW("junk behind the size", "1g\r\na\r\n"),
        ROW("sixteen digits", "0000000000000001\r\na\r\n"),
        ROW("leading space", " 1\r\na\r\n"),
        ROW("space before the line end", "1 \r\na\r\n"),
        ROW("space, then a digit", "1 2\r\n"),
        ROW("tab before the extension", "1\t;x\r\na\r\n"),
        ROW("bare LF after the size", "1\na\r\n"),
        ROW("bare CR after the size", "1\ra\r\n"),
        ROW("bare LF in an extension", "1;x\na\r\n"),
        ROW("NUL in an extension", "1;\0\r\na\r\n"),
        ROW("bare LF after the data", "1\r\na\n1\r\n"),
        ROW("data longer than its size", "1\r\nab\r\n"),
        ROW("bare CR after the data", "1\r\na\rx"),
        ROW("bare LF ends the trailers", "0\r\n\n"),
        ROW("bare CR ends the trailers", "0\r\n\rx"),
        ROW("trailer without a colon", "0\r\nab\r\n\r\n"),
        ROW("trailer with an empty name", "0\r\n: b\r\n\r\n"),
        ROW("space before a trailer's colon", "0\r\na : b\r\n\r\n"),
        ROW("folded trailer", "0\r\na: b\r\n c\r\n\r\n"),
        ROW("trailer with a bare LF", "0\r\na: b\n\r\n"),
        ROW("trailer with a bare CR", "0\r\na: b\rc\r\n\r\n"),
        ROW("trailer with NUL", "0\r\na: \0\r\n\r\n"),
        ROW("trailer with a control", "0\r\na: b\x1b\r\n\r\n"),
#undef ROW
    };
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t piece = 0; piece < 2; piece++) {
            http1_body_init_chunked(&body);
            decode(&body, rows[i].bytes, rows[i].len, piece, &decoded);
            if (decoded.result != HTTP1_BODY_ERROR)
                fail_msg("%s: result %d", rows[i].what, decoded.result);
            assert_non_null(body.error_reason);
            /* and it stays broken */
            size_t step;
            struct http1_slice slice;
            assert_int_equal(http1_body_next(&body, "0\r\n\r\n", 5, &step, &slice),
                             HTTP1_BODY_ERROR);
            assert_int_equal(step, 0);
        }
    }
}

/* Feeds before, then `filler` times 'x', then after. */
static enum http1_body_result decode_long(const char *before, size_t filler, const char *after,
                                          char *keep, uint32_t room)
{
    const size_t len = strlen(before) + filler + strlen(after);
    char *bytes = malloc(len);
    struct http1_writer w;
    struct http1_body body;
    struct decoded decoded;

    http1_writer_init(&w, bytes, len);
    http1_write(&w, before, strlen(before));
    for (size_t i = 0; i < filler; i++)
        http1_write_literal(&w, "x");
    http1_write(&w, after, strlen(after));
    http1_body_init_chunked(&body);
    if (keep)
        http1_body_keep_trailers(&body, keep, room);
    decode(&body, bytes, len, 0, &decoded);
    free(bytes);
    return decoded.result;
}

static void test_overhead_limits(void **state)
{
    static char keep[HTTP1_MAX_TRAILER_BYTES];

    (void)state;
    assert_int_equal(decode_long("0;", HTTP1_MAX_CHUNK_LINE_BYTES - 4, "\r\n\r\n", NULL, 0),
                     HTTP1_BODY_DONE);
    assert_int_equal(decode_long("0;", HTTP1_MAX_CHUNK_LINE_BYTES - 3, "\r\n\r\n", NULL, 0),
                     HTTP1_BODY_ERROR);
    /* "a: " and two line ends are 7 bytes of the section */
    assert_int_equal(decode_long("0\r\na: ", HTTP1_MAX_TRAILER_BYTES - 7, "\r\n\r\n", NULL, 0),
                     HTTP1_BODY_DONE);
    assert_int_equal(decode_long("0\r\na: ", HTTP1_MAX_TRAILER_BYTES - 6, "\r\n\r\n", NULL, 0),
                     HTTP1_BODY_ERROR);
    assert_int_equal(
        decode_long("0\r\na: ", HTTP1_MAX_TRAILER_BYTES - 7, "\r\n\r\n", keep, sizeof(keep)),
        HTTP1_BODY_DONE);
    /* kept lines have a space behind the colon that these did not have: no room for it */
    assert_int_equal(decode_long("0\r\na:\r\nb:\r\nc:", HTTP1_MAX_TRAILER_BYTES - 14, "\r\n\r\n",
                                 keep, sizeof(keep)),
                     HTTP1_BODY_ERROR);
}

static void test_trailers_kept(void **state)
{
    static const char text[] =
        "1\r\na\r\n0\r\n"
        "X-Sum:abc\t \r\nContent-Length: 5\r\ntransfer-encoding: chunked\r\nhost: b\r\n"
        "Server-Timing: \t db;dur=5 \r\nAuthorization: x\r\nX-Forwarded-For: 1\r\n"
        "x_forwarded_host: e\r\nIf-Match: *\r\nSet-Cookie: a=b\r\nConnection: close\r\nempty:\r\n"
        "\r\n";
    static const char kept[] = "X-Sum: abc\r\nServer-Timing: db;dur=5\r\nempty: \r\n";
    static char keep[HTTP1_MAX_TRAILER_BYTES];
    struct http1_body body;
    struct decoded decoded;

    (void)state;
    for (size_t piece = 0; piece < 3; piece++) {
        http1_body_init_chunked(&body);
        http1_body_keep_trailers(&body, keep, sizeof(keep));
        decode(&body, text, sizeof(text) - 1, piece, &decoded);
        assert_int_equal(decoded.result, HTTP1_BODY_DONE);
        assert_int_equal(body.trailers_bytes, sizeof(kept) - 1);
        assert_memory_equal(keep, kept, sizeof(kept) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_until_close),
        cmocka_unit_test(test_from_head),
        cmocka_unit_test(test_chunked_at_every_cut),
        cmocka_unit_test(test_chunk_size_bounds),
        cmocka_unit_test(test_malformed_chunks),
        cmocka_unit_test(test_overhead_limits),
        cmocka_unit_test(test_trailers_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
