/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Body bytes from one side to the other, by reference, framed anew.
 *
 * What one receive brought goes out as one chunk, however it was cut when it came: small pieces are
 * moved together in the receive buffer (the bytes between them are spent chunk framing), so that a
 * peer which sends one-byte chunks can't make us queue three references a byte.
 */
#include "proxy/http/internal.h"

#include <string.h>

#define GATHER_PIECES 32
#define MOVE_BYTES    1024 /* a piece shorter than this is moved up to the one before */

struct gathered {
    unsigned count;
    size_t bytes;
    struct http1_slice pieces[GATHER_PIECES];
};

static void send_gathered(struct loop *loop, struct conn *to, struct gathered *gathered,
                          enum http1_framing framing)
{
    if (gathered->count == 0)
        return;
    if (framing == HTTP1_FRAMING_CHUNKED) {
        struct http1_writer writer;
        char *line = loop_scratch(loop, HTTP1_CHUNK_HEADER_MAX);
        http1_writer_init(&writer, line, HTTP1_CHUNK_HEADER_MAX);
        http1_write_chunk_header(&writer, gathered->bytes);
        conn_send(to, line, http1_writer_len(&writer));
    }
    for (unsigned i = 0; i < gathered->count; i++)
        conn_send(to, gathered->pieces[i].ptr, gathered->pieces[i].len);
    if (framing == HTTP1_FRAMING_CHUNKED)
        conn_send(to, HTTP1_CHUNK_END, strlen(HTTP1_CHUNK_END));
    gathered->count = 0;
    gathered->bytes = 0;
}

/* False when there is no room for another piece. */
static bool gather(struct gathered *gathered, uint8_t *base, struct http1_slice piece)
{
    struct http1_slice *last = gathered->count > 0 ? &gathered->pieces[gathered->count - 1] : NULL;

    if (last != NULL && (piece.len < MOVE_BYTES || last->ptr + last->len == piece.ptr)) {
        uint8_t *end = base + (last->ptr - (const char *)base) + last->len;
        memmove(end, piece.ptr, piece.len);
        last->len += piece.len;
    } else {
        if (gathered->count == GATHER_PIECES)
            return false;
        gathered->pieces[gathered->count++] = piece;
    }
    gathered->bytes += piece.len;
    return true;
}

void http_relay_end(struct loop *loop, struct conn *to, const struct http1_body *body,
                    enum http1_framing framing)
{
    if (framing != HTTP1_FRAMING_CHUNKED)
        return;
    if (body->trailers_bytes == 0) {
        conn_send(to, HTTP1_LAST_CHUNK, strlen(HTTP1_LAST_CHUNK));
        return;
    }
    struct http1_writer writer;
    size_t room = body->trailers_bytes + sizeof(HTTP1_LAST_CHUNK);
    char *end = loop_scratch(loop, room);
    http1_writer_init(&writer, end, room);
    http1_write_last_chunk(&writer, (struct http1_slice){body->trailers, body->trailers_bytes});
    conn_send(to, end, http1_writer_len(&writer));
}

enum http1_body_result http_relay(struct loop *loop, struct conn *to, struct http1_body *body,
                                  enum http1_framing framing, uint8_t *bytes, size_t length,
                                  size_t *used)
{
    struct gathered gathered = {0};
    struct http1_slice piece;
    enum http1_body_result result;
    size_t offset = 0;
    size_t consumed = 0;

    while ((result = http1_body_next(body, (char *)bytes + offset, length - offset, &consumed,
                                     &piece)) == HTTP1_BODY_DATA) {
        if (!gather(&gathered, bytes, piece)) {
            send_gathered(loop, to, &gathered, framing);
            gather(&gathered, bytes, piece);
        }
        offset += consumed;
    }
    offset += consumed;
    send_gathered(loop, to, &gathered, framing);
    if (result == HTTP1_BODY_DONE)
        http_relay_end(loop, to, body, framing);
    *used = offset;
    return result;
}
