/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies on their way: payload slices out of framed bytes (RFC 9112 §6, §7.1).
 *
 * The chunked decoder is one state per byte position that the input may be cut at:
 *
 *      SIZE ─► EXTENSION ─► SIZE_LF ─► DATA ─► DATA_CR ─► DATA_LF ─► SIZE ...
 *                              │ size 0
 *                              ▼
 *           TRAILER_START ─► TRAILER_NAME ─► TRAILER_BLANK ─► TRAILER_VALUE ─► TRAILER_LF ─┐
 *                 ▲  │                                                                     │
 *                 │  └─ CR ─► END_LF ─► DONE                                               │
 *                 └────────────────────────────────────────────────────────────────────────┘
 *
 * Invariants: overhead_bytes counts the bytes of the chunk line or trailer section being read and
 * never exceeds its limit; a trailer line is in trailers[trailers_bytes..+line_bytes) while it is
 * being read and joins trailers_bytes only when whole and allowed.
 */
#include "protocols/http/http1_internal.h"

#include <assert.h>

enum body_state {
    RAW, /* none, length, until-close */
    SIZE,
    SIZE_BLANK, /* spaces before an extension's ';' */
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_START,
    TRAILER_NAME,
    TRAILER_BLANK,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    DONE,
    BROKEN,
};

enum {
    MAX_SIZE_DIGITS = 15, /* leading zeros count: a size below 2^60 */
};

static void init(struct http1_body *body, enum http1_framing framing, enum body_state state)
{
    *body = (struct http1_body){.framing = (uint8_t)framing, .state = (uint8_t)state};
}

void http1_body_init_none(struct http1_body *body)
{
    init(body, HTTP1_FRAMING_NONE, DONE);
}

void http1_body_init_length(struct http1_body *body, uint64_t length)
{
    init(body, HTTP1_FRAMING_LENGTH, length ? RAW : DONE);
    body->left_bytes = length;
}

void http1_body_init_chunked(struct http1_body *body)
{
    init(body, HTTP1_FRAMING_CHUNKED, SIZE);
}

void http1_body_init_until_close(struct http1_body *body)
{
    init(body, HTTP1_FRAMING_UNTIL_CLOSE, RAW);
    body->left_bytes = UINT64_MAX;
}

void http1_body_init(struct http1_body *body, const struct http1_head *head)
{
    switch ((enum http1_framing)head->framing) {
    case HTTP1_FRAMING_NONE:
        http1_body_init_none(body);
        break;
    case HTTP1_FRAMING_LENGTH:
        http1_body_init_length(body, head->content_length);
        break;
    case HTTP1_FRAMING_CHUNKED:
        http1_body_init_chunked(body);
        break;
    case HTTP1_FRAMING_UNTIL_CLOSE:
        http1_body_init_until_close(body);
        break;
    }
}

void http1_body_keep_trailers(struct http1_body *body, char *buf, uint32_t room)
{
    assert(room >= HTTP1_MAX_TRAILER_BYTES);
    body->trailers = buf;
    body->trailers_max_bytes = room;
}

bool http1_body_is_done(const struct http1_body *body)
{
    return body->state == DONE;
}

static enum http1_body_result fail(struct http1_body *body, const char *reason)
{
    body->state = BROKEN;
    body->error_reason = reason;
    return HTTP1_BODY_ERROR;
}

/* Up to left_bytes of the input as payload. */
static struct http1_slice take_payload(struct http1_body *body, const char *p, size_t room)
{
    const size_t n = room < body->left_bytes ? room : (size_t)body->left_bytes;

    body->payload_bytes += n;
    if (body->framing != HTTP1_FRAMING_UNTIL_CLOSE)
        body->left_bytes -= n;
    return (struct http1_slice){p, n};
}

/* A byte in the size part of a chunk line. */
static const char *size_byte(struct http1_body *body, char c)
{
    const int value = http1_hex_value(c);

    if (value >= 0) {
        if (body->digits == MAX_SIZE_DIGITS)
            return "chunk size too large";
        body->digits++;
        body->left_bytes = body->left_bytes << 4 | (unsigned)value;
        return NULL;
    }
    if (body->digits == 0)
        return "chunk without a size";
    switch (c) {
    case '\r':
        body->state = SIZE_LF;
        return NULL;
    case ';':
        body->state = EXTENSION;
        return NULL;
    case ' ':
        body->state = SIZE_BLANK;
        return NULL;
    default:
        return "malformed chunk size";
    }
}

static const char *size_blank_byte(struct http1_body *body, char c)
{
    if (c == ';')
        body->state = EXTENSION;
    else if (c != ' ')
        return "malformed chunk size";
    return NULL;
}

static const char *extension_byte(struct http1_body *body, char c)
{
    if (c == '\r')
        body->state = SIZE_LF;
    else if (!http1_char_is(c, HTTP1_CHAR_VALUE))
        return "control character in a chunk extension";
    return NULL;
}

static const char *size_end_byte(struct http1_body *body, char c)
{
    if (c != '\n')
        return "bare CR in a chunk line";
    body->state = body->left_bytes ? DATA : TRAILER_START;
    body->digits = 0;
    body->overhead_bytes = 0;
    return NULL;
}

/* Appends to the trailer line being collected, if lines are kept and this one is not dropped. */
static bool collect(struct http1_body *body, char c)
{
    if (!body->trailers)
        return true;
    if (body->trailers_bytes + body->line_bytes >= body->trailers_max_bytes)
        return false;
    body->trailers[body->trailers_bytes + body->line_bytes++] = c;
    return true;
}

/* The colon: decides whether the line is kept. name_bytes stays 0 for a line that is dropped. */
static bool end_trailer_name(struct http1_body *body)
{
    if (!body->trailers)
        return true;
    const struct http1_slice name = {body->trailers + body->trailers_bytes, body->line_bytes};
    if (http1_field_forbidden_in_trailer(http1_field_lookup(name), name)) {
        body->line_bytes = 0;
        return true;
    }
    body->name_bytes = body->line_bytes;
    return collect(body, ':') && collect(body, ' ');
}

static bool end_trailer_line(struct http1_body *body)
{
    if (!body->name_bytes)
        return true;
    const char *line = body->trailers + body->trailers_bytes;
    while (body->line_bytes > body->name_bytes + 2 && http1_is_blank(line[body->line_bytes - 1]))
        body->line_bytes--;
    if (!collect(body, '\r') || !collect(body, '\n'))
        return false;
    body->trailers_bytes += body->line_bytes;
    return true;
}

static const char *trailer_start_byte(struct http1_body *body, char c)
{
    if (c == '\r') {
        body->state = END_LF;
        return NULL;
    }
    if (!http1_char_is(c, HTTP1_CHAR_TOKEN))
        return http1_is_blank(c) ? "line folding in a trailer" : "malformed trailer name";
    body->state = TRAILER_NAME;
    body->line_bytes = 0;
    body->name_bytes = 0;
    return collect(body, c) ? NULL : "trailers too large";
}

static const char *trailer_name_byte(struct http1_body *body, char c)
{
    if (c == ':') {
        body->state = TRAILER_BLANK;
        return end_trailer_name(body) ? NULL : "trailers too large";
    }
    if (!http1_char_is(c, HTTP1_CHAR_TOKEN))
        return "malformed trailer name";
    return collect(body, c) ? NULL : "trailers too large";
}

static const char *trailer_value_byte(struct http1_body *body, char c)
{
    if (c == '\r') {
        body->state = TRAILER_LF;
        return NULL;
    }
    if (!http1_char_is(c, HTTP1_CHAR_VALUE))
        return "control character in a trailer";
    if (body->state == TRAILER_BLANK && http1_is_blank(c))
        return NULL;
    body->state = TRAILER_VALUE;
    if (body->name_bytes && !collect(body, c))
        return "trailers too large";
    return NULL;
}

static const char *trailer_end_byte(struct http1_body *body, char c)
{
    if (c != '\n')
        return "bare CR in a trailer";
    body->state = TRAILER_START;
    return end_trailer_line(body) ? NULL : "trailers too large";
}

/* One byte of chunk framing: returns what is wrong with it, NULL if nothing. */
static const char *framing_byte(struct http1_body *body, char c)
{
    switch ((enum body_state)body->state) {
    case SIZE:
        return size_byte(body, c);
    case SIZE_BLANK:
        return size_blank_byte(body, c);
    case EXTENSION:
        return extension_byte(body, c);
    case SIZE_LF:
        return size_end_byte(body, c);
    case DATA_CR:
        body->state = DATA_LF;
        return c == '\r' ? NULL : "chunk longer than its size";
    case DATA_LF:
        body->state = SIZE;
        body->overhead_bytes = 0;
        return c == '\n' ? NULL : "bare CR after a chunk";
    case TRAILER_START:
        return trailer_start_byte(body, c);
    case TRAILER_NAME:
        return trailer_name_byte(body, c);
    case TRAILER_BLANK:
    case TRAILER_VALUE:
        return trailer_value_byte(body, c);
    case TRAILER_LF:
        return trailer_end_byte(body, c);
    case END_LF:
        body->state = DONE;
        return c == '\n' ? NULL : "bare CR in a trailer";
    case RAW:
    case DATA:
    case DONE:
    case BROKEN:
        break;
    }
    return "body used after its end";
}

static const char *overhead_error(const struct http1_body *body)
{
    if (body->state >= TRAILER_START)
        return body->overhead_bytes > HTTP1_MAX_TRAILER_BYTES ? "trailers too large" : NULL;
    return body->overhead_bytes > HTTP1_MAX_CHUNK_LINE_BYTES ? "chunk line too long" : NULL;
}

static enum http1_body_result next_chunked(struct http1_body *body, const char *buf, size_t len,
                                           size_t *consumed, struct http1_slice *payload)
{
    const char *p = buf;
    const char *end = buf + len;

    while (p < end && body->state != DONE) {
        if (body->state == DATA) {
            *payload = take_payload(body, p, (size_t)(end - p));
            if (body->left_bytes == 0)
                body->state = DATA_CR;
            *consumed = (size_t)(p - buf) + payload->len;
            return HTTP1_BODY_DATA;
        }
        body->overhead_bytes++;
        const char *error = overhead_error(body);
        if (!error)
            error = framing_byte(body, *p);
        if (error) {
            *consumed = (size_t)(p - buf);
            return fail(body, error);
        }
        p++;
    }
    *consumed = (size_t)(p - buf);
    return body->state == DONE ? HTTP1_BODY_DONE : HTTP1_BODY_MORE;
}

enum http1_body_result http1_body_next(struct http1_body *body, const char *buf, size_t len,
                                       size_t *consumed, struct http1_slice *payload)
{
    *consumed = 0;
    if (body->state == BROKEN)
        return HTTP1_BODY_ERROR;
    if (body->framing == HTTP1_FRAMING_CHUNKED)
        return next_chunked(body, buf, len, consumed, payload);
    if (body->state == DONE)
        return HTTP1_BODY_DONE;
    if (len == 0)
        return HTTP1_BODY_MORE;
    *payload = take_payload(body, buf, len);
    *consumed = payload->len;
    if (body->left_bytes == 0)
        body->state = DONE;
    return HTTP1_BODY_DATA;
}

enum http1_body_result http1_body_eof(struct http1_body *body)
{
    if (body->state == BROKEN)
        return HTTP1_BODY_ERROR;
    if (body->framing == HTTP1_FRAMING_UNTIL_CLOSE)
        body->state = DONE;
    return body->state == DONE ? HTTP1_BODY_DONE : fail(body, "closed before the body's end");
}
