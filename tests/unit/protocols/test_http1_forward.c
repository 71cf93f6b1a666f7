/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads written for the other side, compared byte by byte, and the writers they are made of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "protocols/http/http1_forward.h"

enum { FIELDS_MAX = 32 };

static struct http1_field fields[FIELDS_MAX];
static struct http1_head head;
static char out[4096];
static struct http1_writer writer;

static const struct http1_forward_request plain = {
    .client_address = HTTP1_SLICE("192.0.2.1"),
    .scheme = HTTP1_SLICE("http"),
    .default_host = HTTP1_SLICE("10.0.0.1:80"),
    .via = HTTP1_SLICE("spillway"),
};

static void expect_text(const char *text)
{
    assert_false(writer.overflow);
    size_t len = http1_writer_len(&writer);
    if (len != strlen(text) || memcmp(out, text, len) != 0)
        fail_msg("wrote:\n%.*s\ninstead of:\n%s", (int)len, out, text);
}

static void expect_request(const char *request, const struct http1_forward_request *how,
                           const char *forwarded)
{
    struct http1_scan scan = {0};

    http1_head_init(&head, fields, FIELDS_MAX);
    if (http1_parse_request_head(request, strlen(request), &scan, &http1_default_limits, &head) !=
        HTTP1_OK)
        fail_msg("not parsed: %s", head.error_reason);
    http1_writer_init(&writer, out, sizeof(out));
    http1_write_forward_request(&writer, &head, how);
    expect_text(forwarded);
    /* what we write we would accept ourselves, with the same framing */
    const enum http1_framing framing = head.framing;
    memset(&scan, 0, sizeof(scan));
    assert_int_equal(http1_parse_request_head(out, http1_writer_len(&writer), &scan,
                                              &http1_default_limits, &head),
                     HTTP1_OK);
    assert_int_equal(head.framing, framing);
}

#define OURS(host)                                                                                 \
    "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: " host             \
    "\r\nForwarded: for=192.0.2.1;host=" host ";proto=http\r\nVia: 1.1 spillway\r\n"

static void test_plain_request(void **state)
{
    (void)state;
    expect_request("GET /a?b HTTP/1.1\r\nAccept:  */* \r\nHost: www.Example\r\nX-Empty:\r\n\r\n",
                   &plain,
                   "GET /a?b HTTP/1.1\r\nHost: www.Example\r\nAccept: */*\r\nX-Empty: \r\n" OURS(
                       "www.Example") "\r\n");
}

static void test_hop_by_hop_fields_dropped(void **state)
{
    (void)state;
    expect_request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x-one, via, x-forwarded-for\r\n"
                   "X-One: 1\r\nX-Two: 2\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\n"
                   "TE: trailers\r\nTrailer: X\r\nUpgrade: websocket\r\nHTTP2-Settings: x\r\n"
                   "Proxy-Authorization: x\r\nProxy-Authenticate: x\r\nVia: 1.0 evil\r\n"
                   "x-ONE: again\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
                   &plain, "GET / HTTP/1.1\r\nHost: a\r\nX-Two: 2\r\n" OURS("a") "\r\n");
}

static void test_untrusted_origin_replaced(void **state)
{
    (void)state;
    expect_request("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\n"
                   "Forwarded: for=6.6.6.6\r\nX-Forwarded-Proto: https\r\n"
                   "X-Forwarded-Host: evil\r\nX-Forwarded-Port: 1\r\nX_Forwarded_For: 6.6.6.6\r\n"
                   "\r\n",
                   &plain, "GET / HTTP/1.1\r\nHost: a\r\n" OURS("a") "\r\n");
}

static void test_trusted_origin_continued(void **state)
{
    struct http1_forward_request how = plain;

    (void)state;
    how.trust_client = true;
    expect_request(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\n"
        "X-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\nX-Forwarded-For: 7.7.7.7\r\n"
        "X-Forwarded-Port: 1\r\nVia: 1.1 front\r\nX-Forwarded-For:\r\n\r\n",
        &how,
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 1\r\n"
        "X-Forwarded-For: 6.6.6.6, 7.7.7.7, 192.0.2.1\r\nX-Forwarded-Host: a\r\n"
        "Forwarded: for=6.6.6.6, for=192.0.2.1;host=a;proto=http\r\n"
        "Via: 1.1 front, 1.1 spillway\r\n\r\n");
    /* nominated ones end here, trusted or not */
    expect_request("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\n"
                   "X-Forwarded-Proto: https\r\n"
                   "Connection: X-Forwarded-For, X-Forwarded-Proto\r\n\r\n",
                   &how, "GET / HTTP/1.1\r\nHost: a\r\n" OURS("a") "\r\n");
}

static void test_addresses(void **state)
{
    struct http1_forward_request how = plain;

    (void)state;
    how.client_address = HTTP1_SLICE("2001:db8::1");
    how.scheme = HTTP1_SLICE("https");
    expect_request("GET / HTTP/1.1\r\nHost: a:8443\r\n\r\n", &how,
                   "GET / HTTP/1.1\r\nHost: a:8443\r\nX-Forwarded-For: 2001:db8::1\r\n"
                   "X-Forwarded-Proto: https\r\nX-Forwarded-Host: a:8443\r\n"
                   "Forwarded: for=\"[2001:db8::1]\";host=\"a:8443\";proto=https\r\n"
                   "Via: 1.1 spillway\r\n\r\n");
    how.client_address = (struct http1_slice){NULL, 0};
    expect_request("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &how,
                   "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: unknown\r\n"
                   "X-Forwarded-Proto: https\r\nX-Forwarded-Host: a\r\n"
                   "Forwarded: for=unknown;host=a;proto=https\r\nVia: 1.1 spillway\r\n\r\n");
}

static void test_targets(void **state)
{
    (void)state;
    expect_request("GET http://b/x?y HTTP/1.1\r\nHost: a\r\n\r\n", &plain,
                   "GET /x?y HTTP/1.1\r\nHost: b\r\n" OURS("b") "\r\n");
    expect_request("GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", &plain,
                   "GET / HTTP/1.1\r\nHost: b\r\n" OURS("b") "\r\n");
    expect_request("GET http://b?y HTTP/1.1\r\nHost: a\r\n\r\n", &plain,
                   "GET /?y HTTP/1.1\r\nHost: b\r\n" OURS("b") "\r\n");
    expect_request("OPTIONS http://b HTTP/1.1\r\nHost: a\r\n\r\n", &plain,
                   "OPTIONS * HTTP/1.1\r\nHost: b\r\n" OURS("b") "\r\n");
    expect_request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &plain,
                   "OPTIONS * HTTP/1.1\r\nHost: a\r\n" OURS("a") "\r\n");
}

static void test_max_forwards(void **state)
{
    (void)state;
    expect_request("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 10\r\n\r\n", &plain,
                   "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 9\r\n" OURS("a") "\r\n");
    expect_request("GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", &plain,
                   "GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n" OURS("a") "\r\n");
    expect_request("TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: many\r\n\r\n", &plain,
                   "TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: many\r\n" OURS("a") "\r\n");
}

static void test_old_client(void **state)
{
    (void)state;
    expect_request("POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", &plain,
                   "POST / HTTP/1.1\r\nHost: 10.0.0.1:80\r\nX-Forwarded-For: 192.0.2.1\r\n"
                   "X-Forwarded-Proto: http\r\nForwarded: for=192.0.2.1;proto=http\r\n"
                   "Via: 1.0 spillway\r\nContent-Length: 2\r\n\r\n");
}

static void test_request_bodies(void **state)
{
    (void)state;
    expect_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0007\r\n"
                   "Expect: 100-continue\r\nConnection: Content-Length\r\n\r\n",
                   &plain,
                   "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" OURS(
                       "a") "Content-Length: 7\r\n\r\n");
    expect_request(
        "PURGE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n"
        "Connection: transfer-encoding\r\n\r\n",
        &plain, "PURGE / HTTP/1.1\r\nHost: a\r\n" OURS("a") "Transfer-Encoding: chunked\r\n\r\n");
}

static void test_upgrade_request(void **state)
{
    static const char request[] =
        "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";
    struct http1_forward_request how = plain;

    (void)state;
    expect_request(request, &how,
                   "GET /chat HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: k\r\n" OURS("a") "\r\n");
    how.pass_upgrade = true;
    expect_request(request, &how,
                   "GET /chat HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: k\r\n" OURS(
                       "a") "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n");
}

/* ------------------------------------------------------------------ replies */

static const struct http1_forward_reply to_new = {
    .via = HTTP1_SLICE("spillway"), .client_minor = 1, .keep_alive = true};
static const struct http1_forward_reply to_old = {
    .via = HTTP1_SLICE("spillway"), .client_minor = 0, .keep_alive = true};
static const struct http1_forward_reply closing = {
    .via = HTTP1_SLICE("spillway"), .client_minor = 1, .keep_alive = false};

static void expect_reply(const char *reply, enum http1_method method,
                         const struct http1_forward_reply *how, enum http1_framing framing,
                         bool keep_alive, const char *forwarded)
{
    struct http1_scan scan = {0};

    http1_head_init(&head, fields, FIELDS_MAX);
    if (http1_parse_reply_head(reply, strlen(reply), &scan, &http1_default_limits, method, &head) !=
        HTTP1_OK)
        fail_msg("not parsed: %s", head.error_reason);
    http1_writer_init(&writer, out, sizeof(out));
    struct http1_reply_plan plan = http1_write_forward_reply(&writer, &head, how);
    expect_text(forwarded);
    assert_int_equal(plan.framing, framing);
    assert_int_equal(plan.keep_alive, keep_alive);
}

static void test_replies(void **state)
{
    static const char chunked[] = "HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n";
    static const char lasting[] = "HTTP/1.0 200 OK\r\nX: y\r\n\r\n";
    static const char sized[] = "HTTP/1.1 404\r\nContent-Length: 05\r\nX: y\r\n"
                                "Connection: close, x-hop\r\nX-Hop: 1\r\nKeep-Alive: 3\r\n"
                                "Via: 1.1 inner\r\nX-Forwarded-For: z\r\n\r\n";

    (void)state;
    expect_reply(chunked, HTTP1_METHOD_GET, &to_new, HTTP1_FRAMING_CHUNKED, true,
                 "HTTP/1.1 200 Fine\r\nX: y\r\nVia: 1.1 spillway\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n");
    expect_reply(chunked, HTTP1_METHOD_GET, &to_old, HTTP1_FRAMING_UNTIL_CLOSE, false,
                 "HTTP/1.1 200 Fine\r\nX: y\r\nVia: 1.1 spillway\r\nConnection: close\r\n\r\n");
    expect_reply(lasting, HTTP1_METHOD_GET, &to_new, HTTP1_FRAMING_CHUNKED, true,
                 "HTTP/1.1 200 OK\r\nX: y\r\nVia: 1.0 spillway\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n");
    expect_reply(lasting, HTTP1_METHOD_GET, &closing, HTTP1_FRAMING_CHUNKED, false,
                 "HTTP/1.1 200 OK\r\nX: y\r\nVia: 1.0 spillway\r\n"
                 "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    expect_reply(sized, HTTP1_METHOD_GET, &to_new, HTTP1_FRAMING_LENGTH, true,
                 "HTTP/1.1 404 Not Found\r\nX: y\r\nX-Forwarded-For: z\r\n"
                 "Via: 1.1 inner, 1.1 spillway\r\nContent-Length: 5\r\n\r\n");
    expect_reply(sized, HTTP1_METHOD_GET, &to_old, HTTP1_FRAMING_LENGTH, true,
                 "HTTP/1.1 404 Not Found\r\nX: y\r\nX-Forwarded-For: z\r\n"
                 "Via: 1.1 inner, 1.1 spillway\r\nContent-Length: 5\r\n"
                 "Connection: keep-alive\r\n\r\n");
}

static void test_mark(void **state)
{
    static const struct http1_forward_reply marked = {
        .via = HTTP1_SLICE("spillway"), .client_minor = 1, .keep_alive = true, .mark_ms = 12};

    (void)state;
    expect_reply("HTTP/1.1 200 OK\r\nSpillway-Mark: 999\r\nContent-Length: 5\r\n\r\n",
                 HTTP1_METHOD_GET, &marked, HTTP1_FRAMING_LENGTH, true,
                 "HTTP/1.1 200 OK\r\nVia: 1.1 spillway\r\nContent-Length: 5\r\n"
                 "Spillway-Mark: 12\r\n\r\n");
    expect_reply("HTTP/1.1 200 OK\r\nSPILLWAY-mark: 999\r\nContent-Length: 5\r\n\r\n",
                 HTTP1_METHOD_GET, &to_new, HTTP1_FRAMING_LENGTH, true,
                 "HTTP/1.1 200 OK\r\nVia: 1.1 spillway\r\nContent-Length: 5\r\n\r\n");
    expect_reply("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", HTTP1_METHOD_GET, &marked,
                 HTTP1_FRAMING_NONE, true,
                 "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.1 spillway\r\n\r\n");
}

static void test_bodiless_replies(void **state)
{
    (void)state;
    expect_reply("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP1_METHOD_HEAD, &to_new,
                 HTTP1_FRAMING_NONE, true,
                 "HTTP/1.1 200 OK\r\nVia: 1.1 spillway\r\nContent-Length: 5\r\n\r\n");
    expect_reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_METHOD_HEAD,
                 &to_old, HTTP1_FRAMING_NONE, true,
                 "HTTP/1.1 200 OK\r\nVia: 1.1 spillway\r\nConnection: keep-alive\r\n\r\n");
    expect_reply("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", HTTP1_METHOD_GET,
                 &to_new, HTTP1_FRAMING_NONE, true,
                 "HTTP/1.1 304 Not Modified\r\nVia: 1.1 spillway\r\nContent-Length: 5\r\n\r\n");
    expect_reply("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", HTTP1_METHOD_GET, &to_new,
                 HTTP1_FRAMING_NONE, true, "HTTP/1.1 204 No Content\r\nVia: 1.1 spillway\r\n\r\n");
    expect_reply("HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_METHOD_POST,
                 &closing, HTTP1_FRAMING_NONE, false,
                 "HTTP/1.1 100 Continue\r\nVia: 1.1 spillway\r\n\r\n");
    expect_reply("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                 "Upgrade: websocket\r\nSec-WebSocket-Accept: k\r\n\r\n",
                 HTTP1_METHOD_GET, &to_new, HTTP1_FRAMING_NONE, true,
                 "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: k\r\n"
                 "Via: 1.1 spillway\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
}

/* ------------------------------------------------------------------ writers */

static void test_error_reply(void **state)
{
    struct http1_error_reply reply = {
        .status = 503,
        .client_minor = 1,
        .retry_after_s = 7,
        .explanation = "the queue is full, try again later",
    };

    (void)state;
    http1_writer_init(&writer, out, sizeof(out));
    http1_write_error_reply(&writer, &reply);
    expect_text("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
                "Content-Length: 60\r\nCache-Control: no-store\r\nRetry-After: 7\r\n\r\n"
                "503 Service Unavailable: the queue is full, try again later\n");
    reply = (struct http1_error_reply){
        .status = 599, .client_minor = 0, .head_request = true, .explanation = "odd"};
    http1_writer_init(&writer, out, sizeof(out));
    http1_write_error_reply(&writer, &reply);
    expect_text("HTTP/1.1 599 \r\nContent-Type: text/plain; charset=utf-8\r\n"
                "Content-Length: 10\r\nCache-Control: no-store\r\nConnection: keep-alive\r\n\r\n");
    reply.close = true;
    reply.mark_ms = 1000;
    reply.status = 400;
    http1_writer_init(&writer, out, sizeof(out));
    http1_write_error_reply(&writer, &reply);
    expect_text("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
                "Content-Length: 21\r\nCache-Control: no-store\r\nSpillway-Mark: 1000\r\n"
                "Connection: close\r\n\r\n");
}

static void test_numbers_and_chunks(void **state)
{
    (void)state;
    http1_writer_init(&writer, out, sizeof(out));
    http1_write_decimal(&writer, 0);
    http1_write_literal(&writer, " ");
    http1_write_decimal(&writer, UINT64_MAX);
    http1_write_literal(&writer, " ");
    http1_write_chunk_header(&writer, 1);
    http1_write_chunk_header(&writer, 0xabc0);
    http1_write_chunk_header(&writer, UINT64_MAX);
    http1_write_last_chunk(&writer, HTTP1_SLICE("a: b\r\n"));
    expect_text("0 18446744073709551615 1\r\nabc0\r\nffffffffffffffff\r\n0\r\na: b\r\n\r\n");
    http1_writer_init(&writer, out, sizeof(out));
    http1_write_request_line(&writer, HTTP1_SLICE("GET"), HTTP1_SLICE("/"));
    expect_text("GET / HTTP/1.1\r\n");
}

/* At every size of buffer: all of it, or overflow and nothing beyond the end. */
static void test_overflow(void **state)
{
    static const char request[] =
        "POST /a HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 3\r\n\r\n";
    struct http1_scan scan = {0};

    (void)state;
    http1_head_init(&head, fields, FIELDS_MAX);
    assert_int_equal(
        http1_parse_request_head(request, sizeof(request) - 1, &scan, &http1_default_limits, &head),
        HTTP1_OK);
    http1_writer_init(&writer, out, sizeof(out));
    http1_write_forward_request(&writer, &head, &plain);
    const size_t whole = http1_writer_len(&writer);
    for (size_t room = 0; room <= whole; room++) {
        memset(out, '#', sizeof(out));
        http1_writer_init(&writer, out, room);
        http1_write_forward_request(&writer, &head, &plain);
        assert_int_equal(writer.overflow, room < whole);
        assert_true(http1_writer_len(&writer) <= room);
        assert_int_equal(out[room], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_request),
        cmocka_unit_test(test_hop_by_hop_fields_dropped),
        cmocka_unit_test(test_untrusted_origin_replaced),
        cmocka_unit_test(test_trusted_origin_continued),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_max_forwards),
        cmocka_unit_test(test_old_client),
        cmocka_unit_test(test_request_bodies),
        cmocka_unit_test(test_upgrade_request),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_bodiless_replies),
        cmocka_unit_test(test_mark),
        cmocka_unit_test(test_error_reply),
        cmocka_unit_test(test_numbers_and_chunks),
        cmocka_unit_test(test_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
