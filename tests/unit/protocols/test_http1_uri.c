/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts and paths in their normal form, their limits, and escaping for logs and metrics.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "protocols/http/http1_uri.h"

static struct http1_slice slice_of(const char *text)
{
    return (struct http1_slice){text, strlen(text)};
}

static void test_host_validity(void **state)
{
    static const char *const valid[] = {
        "a",     "A-b_c.example.", "192.0.2.1", "192.0.2.1:80",      "a:",
        "a:0",   "a:65535",        "[::1]",     "[2001:DB8::1]:443", "[::ffff:192.0.2.1]",
        "x%20y", "a!$&'()*+;=~",   "[::1]:",
    };
    static const char *const invalid[] = {
        "",      ":80", "a:65536", "a:123456", "a:8x",  "a b",    "a,b",    "a@b", "a/b",
        "a?b",   "a#b", "a\"b",    "[",        "[]",    "[::1",   "[::1]x", "::1", "[fe80::1%1]",
        "[1.2]", "x%2", "x%zz",    "a\xe9",    "a:1:2", "[v1.a]", "a\\b",   "<a>",
    };
    char longest[HTTP1_MAX_HOST_BYTES + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
        if (!http1_host_is_valid(slice_of(valid[i])))
            fail_msg("%s is refused", valid[i]);
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        if (http1_host_is_valid(slice_of(invalid[i])))
            fail_msg("%s is accepted", invalid[i]);
    memset(longest, 'a', sizeof(longest));
    assert_true(http1_host_is_valid((struct http1_slice){longest, HTTP1_MAX_HOST_BYTES}));
    assert_false(http1_host_is_valid((struct http1_slice){longest, HTTP1_MAX_HOST_BYTES + 1}));
    assert_false(http1_host_is_valid(HTTP1_SLICE("[::1\0]")));
}

static void expect_host(const char *host, const char *scheme, const char *normal)
{
    char buf[HTTP1_MAX_HOST_BYTES];
    ssize_t len = http1_normalise_host(slice_of(host), slice_of(scheme), buf, sizeof(buf));

    if (len != (ssize_t)strlen(normal) || memcmp(buf, normal, (size_t)len) != 0)
        fail_msg("%s: %.*s instead of %s", host, (int)len, buf, normal);
}

static void test_host_normal_form(void **state)
{
    char buf[4];

    (void)state;
    expect_host("Example.COM", "http", "example.com");
    expect_host("a:80", "http", "a");
    expect_host("a:080", "http", "a");
    expect_host("a:80", "https", "a:80");
    expect_host("a:443", "HTTPS", "a");
    expect_host("a:443", "http", "a:443");
    expect_host("a:", "http", "a");
    expect_host("[2001:DB8::80]", "http", "[2001:db8::80]");
    expect_host("[2001:DB8::1]:80", "http", "[2001:db8::1]");
    assert_int_equal(http1_normalise_host(slice_of("abcde"), slice_of("http"), buf, sizeof(buf)),
                     -ENAMETOOLONG);
}

static void test_path_normal_form(void **state)
{
    static const char *const rows[][2] = {
        {"", "/"},
        {"/", "/"},
        {"*", "*"},
        {"/a/b", "/a/b"},
        {"/a/./b", "/a/b"},
        {"/a/../b", "/b"},
        {"/a/b/../../c", "/c"},
        {"/../../a", "/a"},
        {"/a/..", "/"},
        {"/a/b/..", "/a/"},
        {"/a/.", "/a/"},
        {"/.", "/"},
        {"/..", "/"},
        {"/a//b", "/a//b"},
        {"//a", "//a"},
        {"/a//../b", "/a/b"},
        {"/...", "/..."},
        {"/.a/..b", "/.a/..b"},
        {"/%41%7e", "/A~"},
        {"/%2e%2E/x", "/x"},
        {"/a/%2e%2e/x", "/x"},
        {"/a%2fb", "/a%2Fb"},
        {"/a%2F..%2fb", "/a%2F..%2Fb"},
        {"/%c3%a9", "/%C3%A9"},
        {"/%252e", "/%252e"},
        {"/a;x=%3b", "/a;x=%3B"},
    };
    char buf[64];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ssize_t len = http1_normalise_path(slice_of(rows[i][0]), buf, sizeof(buf));
        if (len != (ssize_t)strlen(rows[i][1]) || memcmp(buf, rows[i][1], (size_t)len) != 0)
            fail_msg("%s: %.*s (%zd) instead of %s", rows[i][0], len > 0 ? (int)len : 0, buf, len,
                     rows[i][1]);
        /* a normal form is its own normal form */
        char again[64];
        ssize_t same =
            http1_normalise_path((struct http1_slice){buf, (size_t)len}, again, sizeof(again));
        assert_int_equal(same, len);
        assert_memory_equal(again, buf, (size_t)len);
    }
}

static void test_path_errors(void **state)
{
    static const char *const malformed[] = {"/%", "/%4", "/%4g", "/%g4", "/%00", "/a%2"};
    char buf[8];

    (void)state;
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        assert_int_equal(http1_normalise_path(slice_of(malformed[i]), buf, sizeof(buf)), -EINVAL);
    assert_int_equal(http1_normalise_path(slice_of("/1234567"), buf, sizeof(buf)), 8);
    assert_int_equal(http1_normalise_path(slice_of("/12345678"), buf, sizeof(buf)), -ENAMETOOLONG);
    assert_int_equal(http1_normalise_path(slice_of("/12345%2f"), buf, sizeof(buf)), -ENAMETOOLONG);
    assert_int_equal(http1_normalise_path(slice_of("/"), buf, 0), -ENAMETOOLONG);
}

static void expect_escaped(enum http1_escape style, struct http1_slice text, const char *escaped)
{
    char buf[128];
    size_t len = http1_escape(style, text, buf, sizeof(buf));

    assert_int_equal(len, strlen(escaped));
    assert_memory_equal(buf, escaped, len);
}

static void test_escape(void **state)
{
    const struct http1_slice nasty = HTTP1_SLICE("a\"b\\c\nd\x1b[0m\0\x7f\xe9");
    char buf[6];

    (void)state;
    expect_escaped(HTTP1_ESCAPE_TEXT, nasty, "a\\\"b\\\\c\\x0ad\\x1b[0m\\x00\\x7f\\xe9");
    expect_escaped(HTTP1_ESCAPE_JSON, nasty, "a\\\"b\\\\c\\u000ad\\u001b[0m\\u0000\\u007f\\u00e9");
    expect_escaped(HTTP1_ESCAPE_LABEL, nasty, "a\\\"b\\\\c\\nd?[0m???");
    /* whole escapes only */
    assert_int_equal(http1_escape(HTTP1_ESCAPE_TEXT, HTTP1_SLICE("abc\ndef"), buf, sizeof(buf)), 3);
    assert_int_equal(http1_escape(HTTP1_ESCAPE_TEXT, HTTP1_SLICE("ab\ndef"), buf, sizeof(buf)), 6);
    assert_memory_equal(buf, "ab\\x0a", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_validity),    cmocka_unit_test(test_host_normal_form),
        cmocka_unit_test(test_path_normal_form), cmocka_unit_test(test_path_errors),
        cmocka_unit_test(test_escape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
