/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: requests. The first byte chooses how the rest, a request with its body, is cut.
 *
 * Properties: any cut gives the same outcome as one piece; what is accepted, http-parser reads the
 * same way; what is forwarded is one request that reads the same again, whatever the fields said;
 * normal forms are stable.
 */
#include "protocols/http/http1_forward.h"
#include "protocols/http/http1_uri.h"
#include "tests/fuzz/protocols/http1_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_kind kind = {.reply = false};

static void check_normal_forms(const struct http1_head *head)
{
    static char once[FUZZ_INPUT_MAX];
    static char twice[FUZZ_INPUT_MAX];

    ssize_t len = http1_normalise_path(head->path, once, sizeof(once));
    if (len >= 0) {
        const struct http1_slice path = {once, (size_t)len};
        REQUIRE(len > 0);
        REQUIRE(http1_normalise_path(path, twice, sizeof(twice)) == len);
        REQUIRE(memcmp(once, twice, (size_t)len) == 0);
        REQUIRE(once[0] == '*' || (once[0] == '/' && !memmem(once, (size_t)len, "/../", 4)));
    }
    if (head->host.ptr) {
        len = http1_normalise_host(head->host, HTTP1_SLICE("http"), once, sizeof(once));
        const struct http1_slice host = {once, (size_t)len};
        REQUIRE(len > 0 && http1_host_is_valid(host));
        REQUIRE(http1_normalise_host(host, HTTP1_SLICE("http"), twice, sizeof(twice)) == len);
        REQUIRE(memcmp(once, twice, (size_t)len) == 0);
    }
}

/* No escaped text holds a byte that ends a quoted string or a line. */
static void check_escapes(struct http1_slice text)
{
    static char escaped[FUZZ_INPUT_MAX * 6];

    for (int style = HTTP1_ESCAPE_TEXT; style <= HTTP1_ESCAPE_LABEL; style++) {
        size_t len = http1_escape((enum http1_escape)style, text, escaped, sizeof(escaped));
        for (size_t i = 0; i < len; i++) {
            REQUIRE(escaped[i] >= 0x20 && escaped[i] != 0x7f);
            if (escaped[i] == '\\')
                i++;
            else
                REQUIRE(escaped[i] != '"');
        }
    }
}

static void check_forwarded(const struct http1_head *head, bool trust)
{
    static char out[FUZZ_INPUT_MAX * 4];
    const struct http1_forward_request how = {
        .client_address = HTTP1_SLICE("2001:db8::1"),
        .scheme = HTTP1_SLICE("http"),
        .default_host = HTTP1_SLICE("origin"),
        .via = HTTP1_SLICE("spillway"),
        .trust_client = trust,
        .pass_upgrade = true,
    };
    const struct http1_limits limits = {.request_line_bytes = 8192, .head_bytes = sizeof(out)};
    struct http1_field fields[FUZZ_FIELDS_MAX + 8];
    struct http1_head again;
    struct http1_scan scan = {0};
    struct http1_writer w;

    http1_writer_init(&w, out, sizeof(out));
    http1_write_forward_request(&w, head, &how);
    REQUIRE(!w.overflow);
    /* counted down to 0 it is right to send, and right for us to refuse */
    if (http1_head_has(head, HTTP1_FIELD_MAX_FORWARDS))
        return;
    http1_head_init(&again, fields, FUZZ_FIELDS_MAX + 8);
    REQUIRE(http1_parse_request_head(out, http1_writer_len(&w), &scan, &limits, &again) ==
            HTTP1_OK);
    REQUIRE(again.head_bytes == http1_writer_len(&w));
    REQUIRE(again.method == head->method && again.framing == head->framing);
    REQUIRE(again.content_length == head->content_length);
    REQUIRE(again.minor == 1 && again.keep_alive && again.upgrade == head->upgrade);
    REQUIRE(again.form == HTTP1_FORM_ORIGIN || again.form == HTTP1_FORM_ASTERISK);
    REQUIRE(!again.has_nominated);
    if (head->host.ptr)
        REQUIRE(http1_head_find(&again, HTTP1_FIELD_HOST)->value.len == head->host.len);
    const struct http1_field *client = http1_head_find(&again, HTTP1_FIELD_X_FORWARDED_FOR);
    REQUIRE(client && !http1_head_find_name(&again, "x-forwarded-for", 15, client));
    if (!trust)
        REQUIRE(http1_slice_is(client->value, "2001:db8::1"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_message whole;
    static struct fuzz_message pieces;

    if (size < 1 || size > FUZZ_INPUT_MAX)
        return 0;
    const char *bytes = (const char *)data + 1;
    const size_t len = size - 1;
    const uint32_t seed = data[0] * 2654435761U + 1;

    fuzz_read(&kind, bytes, len, &whole);
    fuzz_read_in_pieces(&kind, bytes, len, seed, &pieces);
    fuzz_compare_cuts(bytes, len, &whole, &pieces);
    check_escapes((struct http1_slice){bytes, len});
    if (whole.result == HTTP1_OK) {
        fuzz_compare_with_oracle(&kind, &whole, bytes);
        check_forwarded(&whole.head, false);
        check_forwarded(&whole.head, true);
        check_normal_forms(&whole.head);
    }
    return 0;
}
