/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the HTTP/1 parser share among themselves: character classes, list walking and
 * the table of known fields. Not for use outside protocols/http.
 */
#ifndef SPILLWAY_PROTOCOLS_HTTP_HTTP1_INTERNAL_H
#define SPILLWAY_PROTOCOLS_HTTP_HTTP1_INTERNAL_H

#include "protocols/http/http1.h"

/* Classes of one byte; a byte may be in several. */
enum {
    HTTP1_CHAR_TOKEN = 1,      /* tchar, RFC 9110 §5.6.2 */
    HTTP1_CHAR_VALUE = 2,      /* field-vchar, SP, HTAB, obs-text, RFC 9110 §5.5 */
    HTTP1_CHAR_HOST = 4,       /* reg-name without ',' and '%', RFC 3986 §3.2.2 */
    HTTP1_CHAR_UNRESERVED = 8, /* RFC 3986 §2.3 */
    HTTP1_CHAR_DIGIT = 16,
};
extern const uint8_t http1_char_class[256];

static inline bool http1_char_is(char c, unsigned classes)
{
    return (http1_char_class[(uint8_t)c] & classes) != 0;
}

static inline char http1_lower(char c)
{
    return (c >= 'A' && c <= 'Z') ? (char)(c | 0x20) : c;
}

static inline bool http1_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* -1 if c is not a hexadecimal digit. */
static inline int http1_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return (c >= 'a' && c <= 'f') ? c - 'a' + 10 : -1;
}

/* The first byte in [p, end) outside `HTTP1_CHAR_VALUE`, HTAB excluded too; `end` if none. */
const char *http1_find_control(const char *p, const char *end);
/* The first byte in [p, end) that a request target may not hold; `end` if none. */
const char *http1_find_target_end(const char *p, const char *end);

/* Equality without regard to ASCII case. */
bool http1_slices_match(struct http1_slice a, struct http1_slice b);

/* `name` is a valid token. */
enum http1_field_id http1_field_lookup(struct http1_slice name);
/* HTTP1_FLAG_ bits that the name alone decides. */
uint8_t http1_field_flags(enum http1_field_id id, struct http1_slice name);
/* RFC 9110 §6.5.1: whether a trailer section may not carry this field on. */
bool http1_field_forbidden_in_trailer(enum http1_field_id id, struct http1_slice name);

/*
 * The next non-empty element of a comma-separated list (RFC 9110 §5.6.1) without the white space
 * around it; *rest moves behind it. False at the end. Quotes are not looked at.
 */
bool http1_next_element(struct http1_slice *rest, struct http1_slice *element);

/* Digits only, up to 19 of them and INT64_MAX; false for anything else. */
bool http1_parse_number(struct http1_slice text, uint64_t *number);

/* Records the error in the head. Returns HTTP1_ERROR. */
enum http1_result http1_head_fail(struct http1_head *head, unsigned status, const char *reason);

/*
 * What the fields of a head mean for it (http1_meaning.c): framing, connection, host. All fields
 * are parsed; on HTTP1_ERROR the error is recorded.
 */
enum http1_result http1_request_meaning(struct http1_head *head);
enum http1_result http1_reply_meaning(struct http1_head *head);

#endif
