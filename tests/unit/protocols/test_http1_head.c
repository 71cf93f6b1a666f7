/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request and reply heads: every refusal with its status, one row each; what is accepted and what
 * it means; heads that arrive in pieces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocols/http/http1_write.h"

enum { FIELDS_MAX = 32 };

struct parsed {
    struct http1_field fields[FIELDS_MAX];
    struct http1_head head;
    enum http1_result result;
};

static void parse_request(struct parsed *out, const char *bytes, size_t len)
{
    struct http1_scan scan = {0};

    http1_head_init(&out->head, out->fields, FIELDS_MAX);
    out->result = http1_parse_request_head(bytes, len, &scan, &http1_default_limits, &out->head);
}

static void parse_reply(struct parsed *out, enum http1_method method, const char *bytes, size_t len)
{
    struct http1_scan scan = {0};

    http1_head_init(&out->head, out->fields, FIELDS_MAX);
    out->result =
        http1_parse_reply_head(bytes, len, &scan, &http1_default_limits, method, &out->head);
}

static void expect_slice(struct http1_slice slice, const char *text)
{
    assert_int_equal(slice.len, strlen(text));
    assert_memory_equal(slice.ptr, text, slice.len);
}

/* ------------------------------------------------------------------ refusals */

struct refusal {
    const char *what;
    const char *bytes;
    size_t len;
    unsigned status;
};
#define REFUSE(status, what, text)                                                                 \
    {                                                                                              \
        what, text, sizeof(text) - 1, status                                                       \
    }
/* the head around one or more field lines */
#define GET(fields)    "GET / HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define POST(fields)   "POST / HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define POST10(fields) "POST / HTTP/1.0\r\nHost: a\r\n" fields "\r\n"

static const struct refusal request_refusals[] = {
    /* framing */
    REFUSE(400, "TE with CL", POST("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n")),
    REFUSE(400, "CL with TE", POST("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")),
    REFUSE(400, "TE in 1.0", POST10("Transfer-Encoding: chunked\r\n")),
    REFUSE(400, "TE twice", POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
    REFUSE(400, "TE twice, second hidden by case",
           POST("Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n")),
    REFUSE(400, "TE gzip", POST("Transfer-Encoding: gzip\r\n")),
    REFUSE(400, "TE gzip, chunked", POST("Transfer-Encoding: gzip, chunked\r\n")),
    REFUSE(400, "TE chunked, gzip", POST("Transfer-Encoding: chunked, gzip\r\n")),
    REFUSE(400, "TE chunked twice in one", POST("Transfer-Encoding: chunked, chunked\r\n")),
    REFUSE(400, "TE identity", POST("Transfer-Encoding: identity\r\n")),
    REFUSE(400, "TE xchunked", POST("Transfer-Encoding: xchunked\r\n")),
    REFUSE(400, "TE chunked;q", POST("Transfer-Encoding: chunked;q=1\r\n")),
    REFUSE(400, "TE with a comma", POST("Transfer-Encoding: chunked,\r\n")),
    REFUSE(400, "TE quoted", POST("Transfer-Encoding: \"chunked\"\r\n")),
    REFUSE(400, "TE with a vertical tab", POST("Transfer-Encoding: \vchunked\r\n")),
    REFUSE(400, "TE empty", POST("Transfer-Encoding:\r\n")),
    REFUSE(400, "CL list", POST("Content-Length: 3, 3\r\n")),
    REFUSE(400, "CL differing", POST("Content-Length: 3\r\nContent-Length: 4\r\n")),
    REFUSE(400, "CL repeated", POST("Content-Length: 3\r\nContent-Length: 3\r\n")),
    REFUSE(400, "CL plus sign", POST("Content-Length: +3\r\n")),
    REFUSE(400, "CL minus sign", POST("Content-Length: -3\r\n")),
    REFUSE(400, "CL hexadecimal", POST("Content-Length: 0x3\r\n")),
    REFUSE(400, "CL with a point", POST("Content-Length: 3.0\r\n")),
    REFUSE(400, "CL with inner space", POST("Content-Length: 3 3\r\n")),
    REFUSE(400, "CL empty", POST("Content-Length: \r\n")),
    REFUSE(400, "CL beyond 63 bits", POST("Content-Length: 9223372036854775808\r\n")),
    REFUSE(400, "CL beyond 64 bits", POST("Content-Length: 18446744073709551617\r\n")),
    REFUSE(400, "CL non-ASCII digit", POST("Content-Length: \xb2\r\n")),
    /* field syntax */
    REFUSE(400, "space before colon", GET("X : y\r\n")),
    REFUSE(400, "space before colon of CL", POST("Content-Length : 3\r\n")),
    REFUSE(400, "space before colon of TE", POST("Transfer-Encoding : chunked\r\n")),
    REFUSE(400, "tab before colon", GET("X\t: y\r\n")),
    REFUSE(400, "space inside a name", GET("X Y: z\r\n")),
    REFUSE(400, "obs-fold with space", GET("X: y\r\n z\r\n")),
    REFUSE(400, "obs-fold with tab", GET("X: y\r\n\tz\r\n")),
    REFUSE(400, "white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    REFUSE(400, "bare LF after a field", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"),
    REFUSE(400, "bare LF ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\n"),
    REFUSE(400, "bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"),
    REFUSE(400, "bare LF before the request", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "bare CR in a value", GET("X: y\rz\r\n")),
    REFUSE(400, "CR CR LF", GET("X: y\r\r\n")),
    REFUSE(400, "bare CR ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\rX"),
    REFUSE(400, "bare CR in a name", GET("X\rY: z\r\n")),
    REFUSE(400, "NUL in a value", GET("X: y\0z\r\n")),
    REFUSE(400, "NUL in a name", GET("X\0: y\r\n")),
    REFUSE(400, "NUL in the CL", POST("Content-Length: 3\0\r\n")),
    REFUSE(400, "control in a value", GET("X: y\x01z\r\n")),
    REFUSE(400, "delete in a value", GET("X: y\x7fz\r\n")),
    REFUSE(400, "control late in a long value", GET("X: 0123456789abcdef0123456789\x1f\r\n")),
    REFUSE(400, "control in a name", GET("X\x01: y\r\n")),
    REFUSE(400, "high byte in a name", GET("X\xe9: y\r\n")),
    REFUSE(400, "separator in a name", GET("X(: y\r\n")),
    REFUSE(400, "empty name", GET(": y\r\n")),
    REFUSE(400, "no colon", GET("XY\r\n")),
    /* Host */
    REFUSE(400, "missing Host", "GET / HTTP/1.1\r\nX: y\r\n\r\n"),
    REFUSE(400, "missing Host, no fields", "GET / HTTP/1.1\r\n\r\n"),
    REFUSE(400, "missing Host, absolute target", "GET http://a/ HTTP/1.1\r\n\r\n"),
    REFUSE(400, "two Hosts", GET("Host: b\r\n")),
    REFUSE(400, "two equal Hosts", GET("Host: a\r\n")),
    REFUSE(400, "two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
    REFUSE(400, "empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    REFUSE(400, "Host with userinfo", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    REFUSE(400, "Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    REFUSE(400, "Host list", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
    REFUSE(400, "Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    REFUSE(400, "Host with a bad port", "GET / HTTP/1.1\r\nHost: a:8o\r\n\r\n"),
    REFUSE(400, "Host with port 65536", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"),
    REFUSE(400, "Host a port only", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n"),
    REFUSE(400, "Host unclosed bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    REFUSE(400, "Host bad bracket", "GET / HTTP/1.1\r\nHost: [::zz]\r\n\r\n"),
    REFUSE(400, "Host junk after bracket", "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"),
    REFUSE(400, "bad Host beside an absolute target",
           "GET http://a/ HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    /* request line */
    REFUSE(400, "no version", "GET /\r\n\r\n"),
    REFUSE(400, "no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "two spaces after the method", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "two spaces before the version", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "tab after the method", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "tab before the version", "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "space after the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
    REFUSE(400, "space before the method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "separator in the method", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "control in the target", "GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "NUL in the target", "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "delete in the target", "GET /a\x7f HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "high byte in the target", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "high byte in a long target",
           "GET /0123456789abcdef/\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "relative target", "GET a/b HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "* with GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "authority with GET", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "other scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "absolute without host", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "absolute with userinfo", "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "version without a minor", "GET / HTTP/1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "version with two minor digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
    REFUSE(400, "version with a sign", "GET / HTTP/+1.1\r\nHost: a\r\n\r\n"),
    REFUSE(400, "a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    REFUSE(400, "five empty lines", "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    REFUSE(505, "HTTP/2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    REFUSE(505, "HTTP/0.9", "GET / HTTP/0.9\r\n\r\n"),
    REFUSE(505, "the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    REFUSE(501, "CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"),
    REFUSE(501, "the last permitted TRACE",
           "TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n"),
    REFUSE(417, "unknown expectation", POST("Content-Length: 1\r\nExpect: 200-ok\r\n")),
    REFUSE(
        400, "many connection options",
        GET("Connection: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,1,2,3,4,5,6,7\r\n")),
};

static const struct refusal reply_refusals[] = {
    REFUSE(502, "not HTTP", "SSH-2.0-OpenSSH\r\n"),
    REFUSE(502, "no status", "HTTP/1.1\r\n\r\n"),
    REFUSE(502, "two digits", "HTTP/1.1 20 OK\r\n\r\n"),
    REFUSE(502, "four digits", "HTTP/1.1 2000 OK\r\n\r\n"),
    REFUSE(502, "status 099", "HTTP/1.1 099 Low\r\n\r\n"),
    REFUSE(502, "HTTP/2", "HTTP/2.0 200 OK\r\n\r\n"),
    REFUSE(502, "empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n"),
    REFUSE(502, "bare LF", "HTTP/1.1 200 OK\n\n"),
    REFUSE(502, "control in the reason", "HTTP/1.1 200 O\x01K\r\n\r\n"),
    REFUSE(502, "TE with CL",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"),
    REFUSE(502, "TE other", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
    REFUSE(502, "TE in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    REFUSE(502, "CL differing",
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    REFUSE(502, "CL list", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n"),
    REFUSE(502, "bad CL on 304", "HTTP/1.1 304 Same\r\nContent-Length: x\r\n\r\n"),
    REFUSE(502, "obs-fold", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"),
    REFUSE(502, "space before colon", "HTTP/1.1 200 OK\r\nX : y\r\n\r\n"),
};

static void expect_refusal(const struct parsed *parsed, const struct refusal *row)
{
    if (parsed->result != HTTP1_ERROR)
        fail_msg("%s: result %d instead of an error", row->what, parsed->result);
    if (parsed->head.error_status != row->status)
        fail_msg("%s: %u (%s) instead of %u", row->what, parsed->head.error_status,
                 parsed->head.error_reason, row->status);
    assert_non_null(parsed->head.error_reason);
}

static void test_requests_refused(void **state)
{
    struct parsed parsed;

    (void)state;
    for (size_t i = 0; i < sizeof(request_refusals) / sizeof(request_refusals[0]); i++) {
        const struct refusal *row = &request_refusals[i];
        /* an exact copy, so that a sanitizer sees a read past the end */
        char *copy = malloc(row->len);
        memcpy(copy, row->bytes, row->len);
        parse_request(&parsed, copy, row->len);
        expect_refusal(&parsed, row);
        free(copy);
    }
}

static void test_replies_refused(void **state)
{
    struct parsed parsed;

    (void)state;
    for (size_t i = 0; i < sizeof(reply_refusals) / sizeof(reply_refusals[0]); i++) {
        parse_reply(&parsed, HTTP1_METHOD_GET, reply_refusals[i].bytes, reply_refusals[i].len);
        expect_refusal(&parsed, &reply_refusals[i]);
    }
}

/* ------------------------------------------------------------------ limits */

/* A request of before, `filler` times 'x', after. */
static void parse_long(struct parsed *out, const char *before, size_t filler, const char *after,
                       const struct http1_limits *limits)
{
    struct http1_scan scan = {0};
    const size_t len = strlen(before) + filler + strlen(after);
    char *bytes = malloc(len);
    struct http1_writer w;

    http1_writer_init(&w, bytes, len);
    http1_write(&w, before, strlen(before));
    for (size_t i = 0; i < filler; i++)
        http1_write_literal(&w, "x");
    http1_write(&w, after, strlen(after));
    http1_head_init(&out->head, out->fields, FIELDS_MAX);
    out->result = http1_parse_request_head(bytes, len, &scan, limits, &out->head);
    free(bytes);
}

static void test_limits(void **state)
{
    const struct http1_limits limits = {.request_line_bytes = 100, .head_bytes = 200};
    struct parsed parsed;

    (void)state;
    /* "GET /" and " HTTP/1.1" are 14 bytes of the line */
    parse_long(&parsed, "GET /", 86, " HTTP/1.1\r\nHost: a\r\n\r\n", &limits);
    assert_int_equal(parsed.result, HTTP1_OK);
    parse_long(&parsed, "GET /", 87, " HTTP/1.1\r\nHost: a\r\n\r\n", &limits);
    assert_int_equal(parsed.result, HTTP1_ERROR);
    assert_int_equal(parsed.head.error_status, 414);
    /* found before the line ends */
    parse_long(&parsed, "GET /", 97, "", &limits);
    assert_int_equal(parsed.head.error_status, 414);
    parse_long(&parsed, "", 150, "", &limits);
    assert_int_equal(parsed.head.error_status, 414);

    /* 29 bytes before the filler, 4 behind it */
    parse_long(&parsed, "GET / HTTP/1.1\r\nHost: a\r\nX: x", 167, "\r\n\r\n", &limits);
    assert_int_equal(parsed.result, HTTP1_OK);
    assert_int_equal(parsed.head.head_bytes, 200);
    parse_long(&parsed, "GET / HTTP/1.1\r\nHost: a\r\nX: x", 168, "\r\n\r\n", &limits);
    assert_int_equal(parsed.result, HTTP1_ERROR);
    assert_int_equal(parsed.head.error_status, 431);
    parse_long(&parsed, "GET / HTTP/1.1\r\nHost: a\r\nX: x", 300, "", &limits);
    assert_int_equal(parsed.head.error_status, 431);
}

static void parse_many_fields(struct parsed *out, int fields)
{
    char bytes[4096];
    struct http1_writer w;

    http1_writer_init(&w, bytes, sizeof(bytes));
    http1_write_literal(&w, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 1; i < fields; i++)
        http1_write_literal(&w, "A: b\r\n");
    http1_write_end(&w);
    parse_request(out, bytes, http1_writer_len(&w));
}

static void test_too_many_fields(void **state)
{
    struct parsed parsed;

    (void)state;
    parse_many_fields(&parsed, FIELDS_MAX);
    assert_int_equal(parsed.result, HTTP1_OK);
    assert_int_equal(parsed.head.fields_count, FIELDS_MAX);
    parse_many_fields(&parsed, FIELDS_MAX + 1);
    assert_int_equal(parsed.result, HTTP1_ERROR);
    assert_int_equal(parsed.head.error_status, 431);
}

/* ------------------------------------------------------------------ meaning */

#define REQUEST(parsed, text)                                                                      \
    do {                                                                                           \
        parse_request((parsed), (text), sizeof(text) - 1);                                         \
        if ((parsed)->result != HTTP1_OK)                                                          \
            fail_msg("line %d: result %d, %s", __LINE__, (parsed)->result,                         \
                     (parsed)->head.error_reason ? (parsed)->head.error_reason : "none");          \
    } while (0)
#define REPLY(parsed, method, text)                                                                \
    do {                                                                                           \
        parse_reply((parsed), (method), (text), sizeof(text) - 1);                                 \
        if ((parsed)->result != HTTP1_OK)                                                          \
            fail_msg("line %d: result %d, %s", __LINE__, (parsed)->result,                         \
                     (parsed)->head.error_reason ? (parsed)->head.error_reason : "none");          \
    } while (0)

static void test_plain_request(void **state)
{
    static const char text[] =
        "\r\n\r\nGET /a/b?c=d?e HTTP/1.1\r\nHost: Example.com:8080\r\n"
        "X-Empty:\r\nX-Blank: \t \r\nX-Text: \t two  words \xe9 \r\n\r\nrest";
    struct parsed parsed;

    (void)state;
    REQUEST(&parsed, text);
    const struct http1_head *head = &parsed.head;
    assert_int_equal(head->head_bytes, sizeof(text) - 1 - 4);
    assert_int_equal(head->method, HTTP1_METHOD_GET);
    assert_int_equal(head->minor, 1);
    assert_int_equal(head->form, HTTP1_FORM_ORIGIN);
    assert_int_equal(head->framing, HTTP1_FRAMING_NONE);
    assert_true(head->keep_alive);
    assert_false(head->upgrade || head->expect_continue || head->has_content_length);
    expect_slice(head->method_name, "GET");
    expect_slice(head->target, "/a/b?c=d?e");
    expect_slice(head->path, "/a/b");
    expect_slice(head->query, "c=d?e");
    expect_slice(head->host, "Example.com:8080");
    assert_int_equal(head->fields_count, 4);
    expect_slice(head->fields[0].name, "Host");
    assert_int_equal(head->fields[1].value.len, 0);
    assert_int_equal(head->fields[2].value.len, 0);
    expect_slice(head->fields[3].value, "two  words \xe9");

    const struct http1_field *found = http1_head_find_name(head, "x-text", 6, NULL);
    assert_ptr_equal(found, &head->fields[3]);
    assert_null(http1_head_find_name(head, "x-text", 6, found));
    assert_null(http1_head_find(head, HTTP1_FIELD_COOKIE));
    assert_ptr_equal(http1_head_find(head, HTTP1_FIELD_HOST), &head->fields[0]);
}

static void test_methods(void **state)
{
    static const struct {
        const char *name;
        bool idempotent;
    } methods[] = {{"GET", true},       {"HEAD", true},  {"POST", false},  {"PUT", true},
                   {"DELETE", true},    {"TRACE", true}, {"PATCH", false}, {"OPTIONS", true},
                   {"PROPFIND", false}, {"get", false}};
    struct parsed parsed;
    char bytes[128];

    (void)state;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        int len =
            snprintf(bytes, sizeof(bytes), "%s / HTTP/1.1\r\nHost: a\r\n\r\n", methods[i].name);
        parse_request(&parsed, bytes, (size_t)len);
        assert_int_equal(parsed.result, HTTP1_OK);
        expect_slice(parsed.head.method_name, methods[i].name);
        if (i < 8)
            assert_string_equal(http1_method_name(parsed.head.method), methods[i].name);
        else
            assert_int_equal(parsed.head.method, HTTP1_METHOD_OTHER);
        assert_int_equal(http1_method_is_idempotent(parsed.head.method), methods[i].idempotent);
    }
}

static void test_target_forms(void **state)
{
    struct http1_limits limits = http1_default_limits;
    struct http1_scan scan = {0};
    struct parsed parsed;

    (void)state;
    REQUEST(&parsed, "GET hTTp://B.example:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(parsed.head.form, HTTP1_FORM_ABSOLUTE);
    expect_slice(parsed.head.host, "B.example:81");
    expect_slice(parsed.head.path, "/x");
    expect_slice(parsed.head.query, "y");
    REQUEST(&parsed, "GET https://[::1]?y HTTP/1.1\r\nHost: a\r\n\r\n");
    expect_slice(parsed.head.host, "[::1]");
    assert_int_equal(parsed.head.path.len, 0);
    expect_slice(parsed.head.query, "y");
    REQUEST(&parsed, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(parsed.head.form, HTTP1_FORM_ASTERISK);
    expect_slice(parsed.head.host, "a");
    REQUEST(&parsed, "GET / HTTP/1.0\r\n\r\n");
    assert_null(parsed.head.host.ptr);
    assert_null(parsed.head.query.ptr);
    REQUEST(&parsed, "GET /? HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_non_null(parsed.head.query.ptr);
    assert_int_equal(parsed.head.query.len, 0);

    static const char connect[] = "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n";
    limits.allow_connect = true;
    http1_head_init(&parsed.head, parsed.fields, FIELDS_MAX);
    assert_int_equal(
        http1_parse_request_head(connect, sizeof(connect) - 1, &scan, &limits, &parsed.head),
        HTTP1_OK);
    assert_int_equal(parsed.head.form, HTTP1_FORM_AUTHORITY);
    expect_slice(parsed.head.host, "a:443");
}

static void test_request_framing(void **state)
{
    struct parsed parsed;

    (void)state;
    REQUEST(&parsed, POST("Content-Length: 9223372036854775807\r\n"));
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_LENGTH);
    assert_true(parsed.head.content_length == INT64_MAX);
    REQUEST(&parsed, POST("Content-Length: 007\r\n"));
    assert_int_equal(parsed.head.content_length, 7);
    REQUEST(&parsed, POST("Content-Length: 0\r\n"));
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_LENGTH);
    REQUEST(&parsed, POST("Transfer-Encoding: \t Chunked \t\r\n"));
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_CHUNKED);
    assert_false(parsed.head.has_content_length);
    REQUEST(&parsed, POST(""));
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_NONE);
    REQUEST(&parsed, POST("Content-Length: 1\r\nExpect: 100-Continue\r\n"));
    assert_true(parsed.head.expect_continue);
    REQUEST(&parsed, POST10("Content-Length: 1\r\nExpect: 100-continue\r\n"));
    assert_false(parsed.head.expect_continue);
}

static void test_connection(void **state)
{
    struct parsed parsed;

    (void)state;
    REQUEST(&parsed, GET("Connection: close\r\n"));
    assert_false(parsed.head.keep_alive);
    REQUEST(&parsed, GET("Connection: Keep-Alive,, CLOSE\r\n"));
    assert_false(parsed.head.keep_alive);
    REQUEST(&parsed, "GET / HTTP/1.0\r\n\r\n");
    assert_false(parsed.head.keep_alive);
    REQUEST(&parsed, "GET / HTTP/1.0\r\nConnection: x\r\nConnection: Keep-Alive\r\n\r\n");
    assert_true(parsed.head.keep_alive);
    REQUEST(&parsed, "GET / HTTP/1.7\r\nHost: a\r\n\r\n");
    assert_int_equal(parsed.head.minor, 1);
    assert_true(parsed.head.keep_alive);

    REQUEST(&parsed,
            GET("X-One: 1\r\nx-two: 2\r\nX-One: 3\r\nConnection: x-one , , (x, keep-alive\r\n"
                "X-Three: 4\r\nConnection: x-three\r\n"));
    assert_true(parsed.head.has_nominated);
    assert_true(parsed.head.fields[1].flags & HTTP1_FLAG_NOMINATED);
    assert_false(parsed.head.fields[2].flags & HTTP1_FLAG_NOMINATED);
    assert_true(parsed.head.fields[3].flags & HTTP1_FLAG_NOMINATED);
    assert_true(parsed.head.fields[5].flags & HTTP1_FLAG_NOMINATED);
    assert_true(parsed.head.keep_alive);
}

static void test_upgrade(void **state)
{
    struct parsed parsed;

    (void)state;
    REQUEST(&parsed, GET("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    assert_true(parsed.head.upgrade);
    REQUEST(&parsed, GET("Upgrade: websocket\r\n"));
    assert_false(parsed.head.upgrade);
    REQUEST(&parsed, GET("Connection: upgrade\r\n"));
    assert_false(parsed.head.upgrade);
    REQUEST(&parsed, GET("Connection: upgrade\r\nUpgrade: \r\n"));
    assert_false(parsed.head.upgrade);
    REQUEST(&parsed, GET("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"));
    assert_false(parsed.head.upgrade);
    REQUEST(&parsed, GET("Connection: upgrade\r\nUpgrade: websocket, H2C/x\r\n"));
    assert_false(parsed.head.upgrade);
    REQUEST(&parsed, POST("Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 1\r\n"));
    assert_false(parsed.head.upgrade);
    REQUEST(&parsed, "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    assert_false(parsed.head.upgrade);

    REPLY(&parsed, HTTP1_METHOD_GET,
          "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_true(parsed.head.upgrade);
    REPLY(&parsed, HTTP1_METHOD_GET, "HTTP/1.1 101 Go\r\n\r\n");
    assert_false(parsed.head.upgrade);
    REPLY(&parsed, HTTP1_METHOD_GET,
          "HTTP/1.1 200 OK\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_false(parsed.head.upgrade);
}

static void test_known_fields(void **state)
{
    static const struct {
        const char *name;
        enum http1_field_id id;
        unsigned flags;
    } known[] = {
        {"Age", HTTP1_FIELD_AGE, 0},
        {"Authorization", HTTP1_FIELD_AUTHORIZATION, 0},
        {"Cache-Control", HTTP1_FIELD_CACHE_CONTROL, 0},
        {"Content-Encoding", HTTP1_FIELD_CONTENT_ENCODING, 0},
        {"Content-Range", HTTP1_FIELD_CONTENT_RANGE, 0},
        {"Content-Type", HTTP1_FIELD_CONTENT_TYPE, 0},
        {"COOKIE", HTTP1_FIELD_COOKIE, 0},
        {"Date", HTTP1_FIELD_DATE, 0},
        {"Expires", HTTP1_FIELD_EXPIRES, 0},
        {"Forwarded", HTTP1_FIELD_FORWARDED, HTTP1_FLAG_ORIGIN},
        {"HTTP2-Settings", HTTP1_FIELD_HTTP2_SETTINGS, HTTP1_FLAG_HOP},
        {"Keep-Alive", HTTP1_FIELD_KEEP_ALIVE, HTTP1_FLAG_HOP},
        {"Location", HTTP1_FIELD_LOCATION, 0},
        {"Max-Forwards", HTTP1_FIELD_MAX_FORWARDS, 0},
        {"Proxy-Authenticate", HTTP1_FIELD_PROXY_AUTHENTICATE, HTTP1_FLAG_HOP},
        {"Proxy-Authorization", HTTP1_FIELD_PROXY_AUTHORIZATION, HTTP1_FLAG_HOP},
        {"Proxy-Connection", HTTP1_FIELD_PROXY_CONNECTION, HTTP1_FLAG_HOP},
        {"Range", HTTP1_FIELD_RANGE, 0},
        {"Retry-After", HTTP1_FIELD_RETRY_AFTER, 0},
        {"Server", HTTP1_FIELD_SERVER, 0},
        {"Set-Cookie", HTTP1_FIELD_SET_COOKIE, 0},
        {"tE", HTTP1_FIELD_TE, HTTP1_FLAG_HOP},
        {"traceparent", HTTP1_FIELD_TRACEPARENT, 0},
        {"Trailer", HTTP1_FIELD_TRAILER, HTTP1_FLAG_HOP},
        {"Upgrade", HTTP1_FIELD_UPGRADE, HTTP1_FLAG_HOP},
        {"User-Agent", HTTP1_FIELD_USER_AGENT, 0},
        {"Vary", HTTP1_FIELD_VARY, 0},
        {"Via", HTTP1_FIELD_VIA, HTTP1_FLAG_REWRITTEN},
        {"WWW-Authenticate", HTTP1_FIELD_WWW_AUTHENTICATE, 0},
        {"X-Forwarded-For", HTTP1_FIELD_X_FORWARDED_FOR, HTTP1_FLAG_ORIGIN},
        {"X-Forwarded-Host", HTTP1_FIELD_X_FORWARDED_HOST, HTTP1_FLAG_ORIGIN},
        {"x-forwarded-proto", HTTP1_FIELD_X_FORWARDED_PROTO, HTTP1_FLAG_ORIGIN},
        {"X-Forwarded-Port", HTTP1_FIELD_OTHER, HTTP1_FLAG_ORIGIN},
        {"X_Forwarded_For", HTTP1_FIELD_OTHER, HTTP1_FLAG_ORIGIN},
        {"X-Forwarde-For", HTTP1_FIELD_OTHER, 0},
        {"Content_Length", HTTP1_FIELD_OTHER, 0},
        {"Datf", HTTP1_FIELD_OTHER, 0},
        {"D", HTTP1_FIELD_OTHER, 0},
    };
    struct parsed parsed;
    char bytes[128];

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int len = snprintf(bytes, sizeof(bytes), "GET / HTTP/1.1\r\nHost: a\r\n%s: x\r\n\r\n",
                           known[i].name);
        parse_request(&parsed, bytes, (size_t)len);
        assert_int_equal(parsed.result, HTTP1_OK);
        if (parsed.head.fields[1].id != known[i].id ||
            parsed.head.fields[1].flags != known[i].flags)
            fail_msg("%s: id %u flags %u", known[i].name, parsed.head.fields[1].id,
                     parsed.head.fields[1].flags);
        assert_true(http1_head_has(&parsed.head, known[i].id));
    }
}

static void test_reply_framing(void **state)
{
    struct parsed parsed;

    (void)state;
    REPLY(&parsed, HTTP1_METHOD_GET, "HTTP/1.1 200 All is well\r\nContent-Length: 5\r\n\r\nhello");
    assert_int_equal(parsed.head.status, 200);
    expect_slice(parsed.head.reason, "All is well");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_LENGTH);
    assert_int_equal(parsed.head.content_length, 5);
    assert_true(parsed.head.keep_alive);
    REPLY(&parsed, HTTP1_METHOD_GET, "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_CHUNKED);
    assert_int_equal(parsed.head.reason.len, 0);
    REPLY(&parsed, HTTP1_METHOD_GET, "HTTP/1.1 200 OK\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_UNTIL_CLOSE);
    assert_false(parsed.head.keep_alive);
    REPLY(&parsed, HTTP1_METHOD_GET,
          "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n");
    assert_true(parsed.head.keep_alive);

    REPLY(&parsed, HTTP1_METHOD_HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_NONE);
    assert_true(parsed.head.has_content_length && parsed.head.keep_alive);
    REPLY(&parsed, HTTP1_METHOD_HEAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_NONE);
    REPLY(&parsed, HTTP1_METHOD_GET, "HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_NONE);
    REPLY(&parsed, HTTP1_METHOD_GET, "HTTP/1.1 204 None\r\nContent-Length: 5\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_NONE);
    REPLY(&parsed, HTTP1_METHOD_GET, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_NONE);
    REPLY(&parsed, HTTP1_METHOD_CONNECT, "HTTP/1.1 200 OK\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_NONE);
    REPLY(&parsed, HTTP1_METHOD_CONNECT, "HTTP/1.1 400 No\r\n\r\n");
    assert_int_equal(parsed.head.framing, HTTP1_FRAMING_UNTIL_CLOSE);
}

/* ------------------------------------------------------------------ arriving in pieces */

static void test_byte_by_byte(void **state)
{
    static const char text[] =
        "\r\nPOST /where?to HTTP/1.1\r\nHost: a\r\nX-Long: 0123456789abcdefg\r\n"
        "Content-Length: 12\r\n\r\nbody";
    const size_t head_len = sizeof(text) - 1 - 4;
    struct http1_scan scan = {0};
    struct parsed parsed;

    (void)state;
    http1_head_init(&parsed.head, parsed.fields, FIELDS_MAX);
    for (size_t len = 1; len <= head_len; len++) {
        char *copy = malloc(len);
        memcpy(copy, text, len);
        enum http1_result result =
            http1_parse_request_head(copy, len, &scan, &http1_default_limits, &parsed.head);
        assert_int_equal(result, len < head_len ? HTTP1_NEED_MORE : HTTP1_OK);
        if (result == HTTP1_OK) {
            assert_int_equal(parsed.head.head_bytes, head_len);
            expect_slice(parsed.head.query, "to");
            http1_head_rebase(&parsed.head, copy, text);
        }
        free(copy);
    }
    expect_slice(parsed.head.path, "/where");
    expect_slice(parsed.head.fields[1].value, "0123456789abcdefg");
    assert_ptr_equal(parsed.head.host.ptr, strstr(text, "Host: ") + 6);
}

static void test_reply_in_two_pieces(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
    struct parsed parsed;

    (void)state;
    for (size_t cut = 1; cut < sizeof(text) - 5; cut++) {
        struct http1_scan scan = {0};
        http1_head_init(&parsed.head, parsed.fields, FIELDS_MAX);
        assert_int_equal(http1_parse_reply_head(text, cut, &scan, &http1_default_limits,
                                                HTTP1_METHOD_GET, &parsed.head),
                         HTTP1_NEED_MORE);
        assert_int_equal(http1_parse_reply_head(text, sizeof(text) - 1, &scan,
                                                &http1_default_limits, HTTP1_METHOD_GET,
                                                &parsed.head),
                         HTTP1_OK);
        assert_int_equal(parsed.head.content_length, 4);
    }
}

/* A line that is wrong is refused as soon as its end is there, however it arrived. */
static void test_refusals_byte_by_byte(void **state)
{
    struct parsed parsed;

    (void)state;
    for (size_t i = 0; i < sizeof(request_refusals) / sizeof(request_refusals[0]); i++) {
        const struct refusal *row = &request_refusals[i];
        struct http1_scan scan = {0};
        http1_head_init(&parsed.head, parsed.fields, FIELDS_MAX);
        parsed.result = HTTP1_NEED_MORE;
        for (size_t len = 1; len <= row->len && parsed.result == HTTP1_NEED_MORE; len++)
            parsed.result = http1_parse_request_head(row->bytes, len, &scan, &http1_default_limits,
                                                     &parsed.head);
        if (parsed.result == HTTP1_NEED_MORE && row->bytes[row->len - 1] != '\n')
            continue;
        expect_refusal(&parsed, row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_refused),
        cmocka_unit_test(test_replies_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_too_many_fields),
        cmocka_unit_test(test_plain_request),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_target_forms),
        cmocka_unit_test(test_request_framing),
        cmocka_unit_test(test_connection),
        cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_known_fields),
        cmocka_unit_test(test_reply_framing),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_reply_in_two_pieces),
        cmocka_unit_test(test_refusals_byte_by_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
