/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing HTTP/1.1: pieces of heads and chunk framing appended to a bounded buffer.
 *
 * A writer never writes past its end: the first piece that does not fit sets `overflow`, and from
 * then on nothing more is written. Check `overflow` once, when all is said.
 */
#ifndef SPILLWAY_PROTOCOLS_HTTP_HTTP1_WRITE_H
#define SPILLWAY_PROTOCOLS_HTTP_HTTP1_WRITE_H

#include <string.h>

#include "protocols/http/http1.h"

struct http1_writer {
    char *start;
    char *p; /* where the next byte goes */
    char *end;
    bool overflow;
};

static inline void http1_writer_init(struct http1_writer *w, char *buf, size_t room)
{
    *w = (struct http1_writer){.start = buf, .p = buf, .end = buf + room};
}

static inline size_t http1_writer_len(const struct http1_writer *w)
{
    return (size_t)(w->p - w->start);
}

/* Appends n bytes as they are. */
static inline void http1_write(struct http1_writer *w, const char *bytes, size_t n)
{
    if ((size_t)(w->end - w->p) < n || w->overflow) {
        w->overflow = true;
        return;
    }
    memcpy(w->p, bytes, n);
    w->p += n;
}

static inline void http1_write_slice(struct http1_writer *w, struct http1_slice slice)
{
    if (slice.len)
        http1_write(w, slice.ptr, slice.len);
}

/* Appends a string literal. */
#define http1_write_literal(w, literal) http1_write((w), (literal), sizeof(literal) - 1)

/* Decimal, without leading zeros. */
void http1_write_decimal(struct http1_writer *w, uint64_t number);

/* "METHOD target HTTP/1.1\r\n". The caller vouches for both being valid. */
void http1_write_request_line(struct http1_writer *w, struct http1_slice method,
                              struct http1_slice target);

/* "HTTP/1.1 status reason\r\n"; reason empty: the registered phrase, if there is one. */
void http1_write_status_line(struct http1_writer *w, unsigned status, struct http1_slice reason);

/* "name: value\r\n". The caller vouches for both being valid. */
void http1_write_field(struct http1_writer *w, struct http1_slice name, struct http1_slice value);

/* The empty line that ends a head. */
static inline void http1_write_end(struct http1_writer *w)
{
    http1_write_literal(w, "\r\n");
}

/*
 * Chunk framing (RFC 9112 §7.1): before n > 0 bytes of payload http1_write_chunk_header, after
 * them HTTP1_CHUNK_END, and once at the end http1_write_last_chunk with the trailer lines kept
 * (http1_body.trailers; empty slice for none).
 */
void http1_write_chunk_header(struct http1_writer *w, uint64_t payload_bytes);
void http1_write_last_chunk(struct http1_writer *w, struct http1_slice trailers);
#define HTTP1_CHUNK_END        "\r\n"
#define HTTP1_CHUNK_HEADER_MAX 18 /* 16 hex digits and CRLF */
#define HTTP1_LAST_CHUNK       "0\r\n\r\n"

/*
 * "Spillway-Mark: 12\r\n", nothing for 0: more comes than the service can answer, so for 12
 * milliseconds from the request's arrival on, the next one on this connection will not be looked
 * at; a client that knows this may as well wait. Ours alone, and of this connection alone: what a
 * peer says in this field is not passed on.
 */
void http1_write_mark(struct http1_writer *w, uint32_t mark_ms);

/* The registered reason phrase, "" for a status without one. Static. */
const char *http1_reason_phrase(unsigned status);

/*
 * A whole reply of our own with a short text body: what happened, in a sentence a person can act
 * on. `explanation` is static or vouched-for text; nothing a peer sent belongs in it.
 * retry_after_s, mark_ms: 0 for none. close: "Connection: close" (always so after a parse error).
 * client_minor: 0 echoes "Connection: keep-alive" when not closing. head_request: the body is
 * left out, its length said.
 */
struct http1_error_reply {
    uint16_t status;
    uint8_t client_minor;
    bool close;
    bool head_request;
    uint32_t retry_after_s;
    uint32_t mark_ms;
    const char *explanation;
};
void http1_write_error_reply(struct http1_writer *w, const struct http1_error_reply *reply);

#endif
