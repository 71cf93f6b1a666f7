/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: replies. The first byte chooses the method of the request answered and how the
 * rest, a reply with its body, is cut.
 *
 * Properties: any cut gives the same outcome as one piece; what is accepted, http-parser reads the
 * same way; what is forwarded is one reply, framed as the plan says.
 */
#include "protocols/http/http1_forward.h"
#include "tests/fuzz/protocols/http1_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_forwarded(const struct http1_head *head, uint8_t client_minor, bool keep_alive)
{
    static char out[FUZZ_INPUT_MAX * 4];
    const struct http1_forward_reply how = {
        .via = HTTP1_SLICE("spillway"),
        .client_minor = client_minor,
        .keep_alive = keep_alive,
    };
    const struct http1_limits limits = {.request_line_bytes = 8192, .head_bytes = sizeof(out)};
    struct http1_field fields[FUZZ_FIELDS_MAX + 8];
    struct http1_head again;
    struct http1_scan scan = {0};
    struct http1_writer w;

    http1_writer_init(&w, out, sizeof(out));
    const struct http1_reply_plan plan = http1_write_forward_reply(&w, head, &how);
    REQUIRE(!w.overflow);
    http1_head_init(&again, fields, FUZZ_FIELDS_MAX + 8);
    REQUIRE(http1_parse_reply_head(out, http1_writer_len(&w), &scan, &limits,
                                   (enum http1_method)head->method, &again) == HTTP1_OK);
    REQUIRE(again.head_bytes == http1_writer_len(&w) && again.status == head->status);
    REQUIRE(again.framing == plan.framing);
    REQUIRE(plan.framing != HTTP1_FRAMING_UNTIL_CLOSE || !plan.keep_alive);
    REQUIRE(client_minor == 1 || plan.framing != HTTP1_FRAMING_CHUNKED);
    REQUIRE(again.status < 200 || again.keep_alive == plan.keep_alive);
    if (again.framing == HTTP1_FRAMING_LENGTH)
        REQUIRE(again.content_length == head->content_length);
    if (head->status < 200 || head->status == 204)
        REQUIRE(!again.has_content_length &&
                !http1_head_has(&again, HTTP1_FIELD_TRANSFER_ENCODING));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum http1_method methods[] = {HTTP1_METHOD_GET, HTTP1_METHOD_POST,
                                                HTTP1_METHOD_HEAD, HTTP1_METHOD_CONNECT};
    static struct fuzz_message whole;
    static struct fuzz_message pieces;

    if (size < 1 || size > FUZZ_INPUT_MAX)
        return 0;
    const char *bytes = (const char *)data + 1;
    const size_t len = size - 1;
    const uint32_t seed = data[0] * 2654435761U + 1;
    const struct fuzz_kind kind = {.reply = true, .method = methods[data[0] % 4]};

    fuzz_read(&kind, bytes, len, &whole);
    fuzz_read_in_pieces(&kind, bytes, len, seed, &pieces);
    fuzz_compare_cuts(bytes, len, &whole, &pieces);
    if (whole.result == HTTP1_OK) {
        fuzz_compare_with_oracle(&kind, &whole, bytes);
        check_forwarded(&whole.head, 1, true);
        check_forwarded(&whole.head, 1, false);
        check_forwarded(&whole.head, 0, true);
    }
    return 0;
}
