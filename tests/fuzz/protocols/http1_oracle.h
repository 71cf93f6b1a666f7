/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the HTTP/1 fuzz targets share: a second opinion from http-parser, whole messages decoded in
 * one piece or in many, and the comparison of the two.
 *
 * Our parser is the stricter one: what it accepts, http-parser must accept too and read the same
 * way; the reverse does not hold. Known differences are stated where they are allowed for.
 */
#ifndef SPILLWAY_TESTS_FUZZ_HTTP1_ORACLE_H
#define SPILLWAY_TESTS_FUZZ_HTTP1_ORACLE_H

#include <http_parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocols/http/http1.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum {
    FUZZ_FIELDS_MAX = 64,
    FUZZ_INPUT_MAX = 16384,
};

/* A message as far as it could be read: head, then the body in one string. */
struct fuzz_message {
    struct http1_field fields[FUZZ_FIELDS_MAX];
    struct http1_head head;
    enum http1_result result;
    enum http1_body_result body_result; /* meaningful after HTTP1_OK */
    size_t body_consumed;
    size_t payload_len;
    char payload[FUZZ_INPUT_MAX];
    uint32_t trailers_len;
    char trailers[HTTP1_MAX_TRAILER_BYTES];
};

/* Parses one head: a request's, or the reply's to `method`. */
struct fuzz_kind {
    bool reply;
    enum http1_method method;
};

static const struct http1_limits fuzz_limits = {.request_line_bytes = 2048, .head_bytes = 8192};

static inline enum http1_result fuzz_parse(const struct fuzz_kind *kind, const char *bytes,
                                           size_t len, struct http1_scan *scan,
                                           struct http1_head *head)
{
    if (kind->reply)
        return http1_parse_reply_head(bytes, len, scan, &fuzz_limits, kind->method, head);
    return http1_parse_request_head(bytes, len, scan, &fuzz_limits, head);
}

static inline uint32_t fuzz_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Decodes the body in pieces of random length; seed 0: in one piece. */
static inline void fuzz_read_body(struct fuzz_message *m, const char *bytes, size_t len,
                                  uint32_t seed)
{
    struct http1_body body;

    http1_body_init(&body, &m->head);
    if (m->head.framing == HTTP1_FRAMING_CHUNKED)
        http1_body_keep_trailers(&body, m->trailers, sizeof(m->trailers));
    m->body_result = http1_body_is_done(&body) ? HTTP1_BODY_DONE : HTTP1_BODY_MORE;
    while (m->body_result == HTTP1_BODY_MORE && m->body_consumed < len) {
        const size_t rest = len - m->body_consumed;
        size_t n = seed ? 1 + fuzz_random(&seed) % 9 : rest;
        if (n > rest)
            n = rest;
        /* a block of its own, so that ASan sees a read beyond the piece */
        char *piece = malloc(n);
        REQUIRE(piece);
        memcpy(piece, bytes + m->body_consumed, n);
        size_t used = 0;
        do {
            size_t step;
            struct http1_slice slice;
            m->body_result = http1_body_next(&body, piece + used, n - used, &step, &slice);
            used += step;
            REQUIRE(used <= n);
            if (m->body_result == HTTP1_BODY_DATA) {
                REQUIRE(slice.len > 0 && slice.ptr + slice.len == piece + used);
                memcpy(m->payload + m->payload_len, slice.ptr, slice.len);
                m->payload_len += slice.len;
            }
        } while (m->body_result == HTTP1_BODY_DATA);
        REQUIRE(m->body_result != HTTP1_BODY_MORE || used == n);
        m->body_consumed += used;
        free(piece);
    }
    REQUIRE(body.payload_bytes == m->payload_len);
    m->trailers_len = body.trailers_bytes;
}

/* Reads a whole message at once; its slices point into `bytes`. */
static inline void fuzz_read(const struct fuzz_kind *kind, const char *bytes, size_t len,
                             struct fuzz_message *m)
{
    struct http1_scan scan = {0};

    m->body_consumed = m->payload_len = 0;
    m->trailers_len = 0;
    http1_head_init(&m->head, m->fields, FUZZ_FIELDS_MAX);
    m->result = fuzz_parse(kind, bytes, len, &scan, &m->head);
    if (m->result == HTTP1_OK) {
        REQUIRE(m->head.head_bytes <= len);
        fuzz_read_body(m, bytes + m->head.head_bytes, len - m->head.head_bytes, 0);
    }
}

/* The same in pieces; the head's slices are moved to `bytes` at the end. */
static inline void fuzz_read_in_pieces(const struct fuzz_kind *kind, const char *bytes, size_t len,
                                       uint32_t seed, struct fuzz_message *m)
{
    struct http1_scan scan = {0};
    size_t have = 0;

    m->body_consumed = m->payload_len = 0;
    m->trailers_len = 0;
    m->result = HTTP1_NEED_MORE;
    http1_head_init(&m->head, m->fields, FUZZ_FIELDS_MAX);
    while (m->result == HTTP1_NEED_MORE && have < len) {
        have += 1 + fuzz_random(&seed) % (1 + have);
        if (have > len)
            have = len;
        char *prefix = malloc(have);
        REQUIRE(prefix);
        memcpy(prefix, bytes, have);
        m->result = fuzz_parse(kind, prefix, have, &scan, &m->head);
        if (m->result == HTTP1_OK)
            http1_head_rebase(&m->head, prefix, bytes);
        free(prefix);
    }
    if (m->result == HTTP1_OK)
        fuzz_read_body(m, bytes + m->head.head_bytes, len - m->head.head_bytes, seed);
}

static inline bool fuzz_same(struct http1_slice a, struct http1_slice b)
{
    return a.ptr == b.ptr && a.len == b.len;
}

static inline void fuzz_compare_heads(const struct http1_head *a, const struct http1_head *b)
{
    REQUIRE(a->head_bytes == b->head_bytes && a->minor == b->minor && a->method == b->method);
    REQUIRE(a->form == b->form && a->framing == b->framing && a->status == b->status);
    REQUIRE(a->keep_alive == b->keep_alive && a->expect_continue == b->expect_continue);
    REQUIRE(a->upgrade == b->upgrade && a->content_length == b->content_length);
    REQUIRE(a->present == b->present && a->fields_count == b->fields_count);
    REQUIRE(fuzz_same(a->method_name, b->method_name) && fuzz_same(a->target, b->target));
    REQUIRE(fuzz_same(a->path, b->path) && fuzz_same(a->query, b->query));
    REQUIRE(fuzz_same(a->host, b->host) && fuzz_same(a->reason, b->reason));
    for (size_t i = 0; i < a->fields_count; i++) {
        REQUIRE(fuzz_same(a->fields[i].name, b->fields[i].name));
        REQUIRE(fuzz_same(a->fields[i].value, b->fields[i].value));
        REQUIRE(a->fields[i].id == b->fields[i].id && a->fields[i].flags == b->fields[i].flags);
    }
}

/* However the bytes came, the outcome is one. */
static inline void fuzz_compare_cuts(const char *bytes, size_t len, const struct fuzz_message *a,
                                     const struct fuzz_message *b)
{
    if (b->result == HTTP1_NEED_MORE && a->result == HTTP1_ERROR) {
        /* a wrong line in pieces may wait for its end */
        REQUIRE(len == 0 || bytes[len - 1] != '\n');
        return;
    }
    REQUIRE(a->result == b->result);
    if (a->result == HTTP1_ERROR)
        REQUIRE(a->head.error_status == b->head.error_status);
    if (a->result != HTTP1_OK)
        return;
    fuzz_compare_heads(&a->head, &b->head);
    REQUIRE(a->body_result == b->body_result && a->body_consumed == b->body_consumed);
    REQUIRE(a->payload_len == b->payload_len);
    REQUIRE(memcmp(a->payload, b->payload, a->payload_len) == 0);
    REQUIRE(a->trailers_len == b->trailers_len);
    REQUIRE(memcmp(a->trailers, b->trailers, a->trailers_len) == 0);
}

/* ------------------------------------------------------------------ http-parser's reading */

struct oracle {
    const struct fuzz_message *ours;
    const struct fuzz_kind *kind;
    char target[FUZZ_INPUT_MAX];
    size_t target_len;
    char payload[FUZZ_INPUT_MAX];
    size_t payload_len;
    char value[FUZZ_INPUT_MAX];
    size_t value_len;
    char name[FUZZ_INPUT_MAX];
    size_t name_len;
    size_t fields; /* compared with ours so far */
    bool in_value;
    bool head_done;
    bool complete;
};

static inline void oracle_end_field(struct oracle *o)
{
    if (!o->in_value || o->head_done)
        return;
    REQUIRE(o->fields < o->ours->head.fields_count);
    const struct http1_field *field = &o->ours->head.fields[o->fields++];
    while (o->value_len &&
           (o->value[o->value_len - 1] == ' ' || o->value[o->value_len - 1] == '\t'))
        o->value_len--;
    REQUIRE(field->name.len == o->name_len && field->value.len == o->value_len);
    REQUIRE(memcmp(field->name.ptr, o->name, o->name_len) == 0);
    REQUIRE(memcmp(field->value.ptr, o->value, o->value_len) == 0);
    o->name_len = o->value_len = 0;
    o->in_value = false;
}

static inline int oracle_on_target(http_parser *parser, const char *at, size_t len)
{
    struct oracle *o = parser->data;

    memcpy(o->target + o->target_len, at, len);
    o->target_len += len;
    return 0;
}

static inline int oracle_on_name(http_parser *parser, const char *at, size_t len)
{
    struct oracle *o = parser->data;

    if (o->head_done)
        return 0;
    oracle_end_field(o);
    memcpy(o->name + o->name_len, at, len);
    o->name_len += len;
    return 0;
}

static inline int oracle_on_value(http_parser *parser, const char *at, size_t len)
{
    struct oracle *o = parser->data;

    if (o->head_done)
        return 0;
    o->in_value = true;
    memcpy(o->value + o->value_len, at, len);
    o->value_len += len;
    return 0;
}

static inline int oracle_on_head(http_parser *parser)
{
    struct oracle *o = parser->data;

    oracle_end_field(o);
    o->head_done = true;
    REQUIRE(o->fields == o->ours->head.fields_count);
    /* http-parser knows neither the request's method nor that 204 never has a body */
    return o->kind->reply && o->ours->head.framing == HTTP1_FRAMING_NONE ? 1 : 0;
}

static inline int oracle_on_payload(http_parser *parser, const char *at, size_t len)
{
    struct oracle *o = parser->data;

    memcpy(o->payload + o->payload_len, at, len);
    o->payload_len += len;
    return 0;
}

static inline int oracle_on_end(http_parser *parser)
{
    struct oracle *o = parser->data;

    o->complete = true;
    http_parser_pause(parser, 1);
    return 0;
}

/* A method http-parser has heard of; it refuses all others. */
static inline bool oracle_knows_method(struct http1_slice name)
{
    for (unsigned m = HTTP_DELETE; m <= HTTP_SOURCE; m++) {
        const char *known = http_method_str((enum http_method)m);
        if (strlen(known) == name.len && memcmp(known, name.ptr, name.len) == 0)
            return true;
    }
    return false;
}

/*
 * Two faults of http-parser's own, so it is not asked about such heads: it takes any name that
 * begins with Transfer-Encoding for that field when it looks for framing, and it refuses a tab
 * behind the value of a framing field, which RFC 9110 §5.5 has recipients ignore.
 */
static inline bool oracle_misreads(const struct http1_head *head)
{
    static const char name[] = "transfer-encoding";

    for (size_t i = 0; i < head->fields_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->name.len > sizeof(name) - 1 &&
            strncasecmp(field->name.ptr, name, sizeof(name) - 1) == 0)
            return true;
        if (field->id != HTTP1_FIELD_TRANSFER_ENCODING && field->id != HTTP1_FIELD_CONTENT_LENGTH)
            continue;
        for (const char *p = field->value.ptr + field->value.len; *p != '\r'; p++)
            if (*p == '\t')
                return true;
    }
    return false;
}

/* Checks an accepted message against http-parser's reading of the same bytes. */
static inline void fuzz_compare_with_oracle(const struct fuzz_kind *kind,
                                            const struct fuzz_message *ours, const char *bytes)
{
    static const http_parser_settings settings = {
        .on_url = oracle_on_target,
        .on_header_field = oracle_on_name,
        .on_header_value = oracle_on_value,
        .on_headers_complete = oracle_on_head,
        .on_body = oracle_on_payload,
        .on_message_complete = oracle_on_end,
    };
    static struct oracle o;
    const struct http1_head *head = &ours->head;
    http_parser parser;

    if (oracle_misreads(head) || (!kind->reply && !oracle_knows_method(head->method_name)))
        return;
    o.ours = ours;
    o.kind = kind;
    o.target_len = o.payload_len = o.value_len = o.name_len = o.fields = 0;
    o.in_value = o.head_done = o.complete = false;
    http_parser_init(&parser, kind->reply ? HTTP_RESPONSE : HTTP_REQUEST);
    parser.data = &o;
    const size_t len =
        head->head_bytes + (ours->body_result == HTTP1_BODY_ERROR ? 0 : ours->body_consumed);
    http_parser_execute(&parser, &settings, bytes, len);

    const enum http_errno error = HTTP_PARSER_ERRNO(&parser);
    /* it reads framing fields even in trailers, where we drop them unread */
    if (error != HPE_OK && error != HPE_PAUSED && o.head_done && (parser.flags & F_TRAILING))
        return;
    if (error != HPE_OK && error != HPE_PAUSED)
        fprintf(stderr, "http-parser: %s\n", http_errno_name(error));
    REQUIRE(error == HPE_OK || error == HPE_PAUSED);
    REQUIRE(o.head_done);
    REQUIRE((parser.http_minor ? 1 : 0) == head->minor);
    if (kind->reply) {
        REQUIRE(parser.status_code == head->status);
    } else {
        const char *method = http_method_str((enum http_method)parser.method);
        REQUIRE(strlen(method) == head->method_name.len &&
                memcmp(method, head->method_name.ptr, head->method_name.len) == 0);
        REQUIRE(o.target_len == head->target.len);
        REQUIRE(memcmp(o.target, head->target.ptr, o.target_len) == 0);
    }
    if (ours->body_result == HTTP1_BODY_ERROR)
        return;
    REQUIRE(o.payload_len == ours->payload_len);
    REQUIRE(memcmp(o.payload, ours->payload, o.payload_len) == 0);
    REQUIRE(o.complete == (ours->body_result == HTTP1_BODY_DONE));
}

#endif
