/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded XDR cursor and writer (RFC 4506) that every file of this folder reads and writes
 * with.
 *
 * Reading. A rpc_reader walks [at, end). Every read either succeeds and moves `at`, or fails,
 * leaves `at` where it was and says in `missing` how many more bytes that read would have needed.
 * Nothing before `at` or at and after `end` is ever touched. Nothing is copied: opaque data comes
 * back as a slice into the caller's buffer, valid as long as that buffer is.
 *
 * Writing. A rpc_writer fills a caller's buffer behind room for a record mark. Once something did
 * not fit, `overflow` is set and later writes do nothing; rpc_writer_finish then returns 0.
 */
#ifndef SPILLWAY_PROTOCOLS_RPC_RPC_XDR_H
#define SPILLWAY_PROTOCOLS_RPC_RPC_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What a parser says. NEED_MORE: the bytes so far are well-formed but end too early. A caller that
 * holds the whole record treats NEED_MORE as GARBAGE; one that holds a prefix feeds a longer one.
 * The last four are named after the RFC 5531 reply they call for (rpc_parse_error_of). */
enum rpc_parse {
    RPC_PARSE_OK = 0,
    RPC_PARSE_NEED_MORE,
    RPC_PARSE_NOT_EXPECTED, /* a reply where a call was expected, or the reverse: close */
    RPC_PARSE_VERSION,      /* rpcvers is not 2: MSG_DENIED, RPC_MISMATCH */
    RPC_PARSE_BAD_CRED,     /* credential over 400 bytes or ill-formed: AUTH_ERROR, AUTH_BADCRED */
    RPC_PARSE_BAD_VERF,     /* verifier over 400 bytes: AUTH_ERROR, AUTH_BADVERF */
    RPC_PARSE_GARBAGE,      /* arguments break their definition: GARBAGE_ARGS */
};

/* Bytes inside a caller's buffer; {NULL, 0} when absent. */
struct rpc_slice {
    const uint8_t *data;
    uint32_t len;
};

struct rpc_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t missing; /* bytes that the first failed read lacked; 0 while none failed */
};

static inline uint32_t rpc_load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}

static inline uint64_t rpc_load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}

static inline void rpc_store_u32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}

static inline void rpc_store_u64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the loads above swap unconditionally");

/* `len` rounded up to XDR's unit of 4 bytes; 64 bits wide so that no length can wrap. */
static inline uint64_t rpc_padded(uint64_t len)
{
    return (len + 3) & ~(uint64_t)3;
}

static inline void rpc_reader_init(struct rpc_reader *r, const uint8_t *buf, size_t len)
{
    r->at = buf;
    r->end = buf + len;
    r->missing = 0;
}

static inline size_t rpc_reader_left(const struct rpc_reader *r)
{
    return (size_t)(r->end - r->at);
}

/* Whether `bytes` more are there; else records what is missing. */
static inline bool rpc_reader_has(struct rpc_reader *r, uint64_t bytes)
{
    if (__builtin_expect(bytes <= rpc_reader_left(r), 1))
        return true;
    if (r->missing == 0)
        r->missing = bytes - rpc_reader_left(r);
    return false;
}

static inline bool rpc_read_u32(struct rpc_reader *r, uint32_t *out)
{
    if (!rpc_reader_has(r, 4))
        return false;
    *out = rpc_load_u32(r->at);
    r->at += 4;
    return true;
}

static inline bool rpc_read_u64(struct rpc_reader *r, uint64_t *out)
{
    if (!rpc_reader_has(r, 8))
        return false;
    *out = rpc_load_u64(r->at);
    r->at += 8;
    return true;
}

static inline bool rpc_skip(struct rpc_reader *r, uint64_t bytes)
{
    if (!rpc_reader_has(r, bytes))
        return false;
    r->at += bytes;
    return true;
}

/* opaque<max> or string<max>: GARBAGE when longer than `max`, NEED_MORE when data or padding is
 * cut. Padding is skipped whatever its value, as libtirpc and the kernel do. */
static inline enum rpc_parse rpc_read_opaque(struct rpc_reader *r, uint32_t max,
                                             struct rpc_slice *out)
{
    if (!rpc_reader_has(r, 4))
        return RPC_PARSE_NEED_MORE;
    uint32_t len = rpc_load_u32(r->at);
    if (len > max)
        return RPC_PARSE_GARBAGE;
    if (!rpc_reader_has(r, 4 + rpc_padded(len)))
        return RPC_PARSE_NEED_MORE;
    out->data = r->at + 4;
    out->len = len;
    r->at += 4 + rpc_padded(len);
    return RPC_PARSE_OK;
}

#define RPC_RECORD_MARK_BYTES 4

struct rpc_writer {
    uint8_t *start;
    uint8_t *at;
    uint8_t *end;
    bool overflow;
};

/* Starts a record in `buf`: the first 4 bytes are kept for the mark. */
static inline void rpc_writer_init(struct rpc_writer *w, uint8_t *buf, size_t size)
{
    w->start = buf;
    w->end = buf + size;
    w->overflow = size < RPC_RECORD_MARK_BYTES;
    w->at = w->overflow ? buf : buf + RPC_RECORD_MARK_BYTES;
}

static inline bool rpc_writer_room(struct rpc_writer *w, uint64_t bytes)
{
    if (w->overflow || bytes > (uint64_t)(w->end - w->at)) {
        w->overflow = true;
        return false;
    }
    return true;
}

static inline void rpc_put_u32(struct rpc_writer *w, uint32_t v)
{
    if (!rpc_writer_room(w, 4))
        return;
    rpc_store_u32(w->at, v);
    w->at += 4;
}

static inline void rpc_put_u64(struct rpc_writer *w, uint64_t v)
{
    if (!rpc_writer_room(w, 8))
        return;
    rpc_store_u64(w->at, v);
    w->at += 8;
}

/* `len` bytes of fixed-length opaque data and zero padding, no length word. */
static inline void rpc_put_fixed(struct rpc_writer *w, const void *data, uint32_t len)
{
    uint64_t padded = rpc_padded(len);
    if (!rpc_writer_room(w, padded) || padded == 0)
        return;
    memset(w->at + padded - 4, 0, 4);
    if (len > 0)
        memcpy(w->at, data, len);
    w->at += padded;
}

/* Length word, data, padding. */
static inline void rpc_put_opaque(struct rpc_writer *w, const void *data, uint32_t len)
{
    rpc_put_u32(w, len);
    rpc_put_fixed(w, data, len);
}

/* Ends the record: stores its mark (one, last fragment) and returns the bytes in the buffer, mark
 * included; 0 when something did not fit. `trailing_bytes` is data that the caller sends itself
 * right behind the buffer (READ and WRITE data, padded): the mark counts it. */
static inline size_t rpc_writer_finish(struct rpc_writer *w, uint64_t trailing_bytes)
{
    if (w->overflow)
        return 0;
    size_t bytes = (size_t)(w->at - w->start);
    uint64_t payload = bytes - RPC_RECORD_MARK_BYTES + trailing_bytes;
    if (payload > 0x7fffffffu)
        return 0;
    rpc_store_u32(w->start, 0x80000000u | (uint32_t)payload);
    return bytes;
}

#endif
