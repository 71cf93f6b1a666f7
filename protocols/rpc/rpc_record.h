/* SPDX-License-Identifier: Apache-2.0 */
/* Record marking (RFC 5531 section 11): a TCP byte stream into records, zero-copy and incremental.
 *
 *     stream:  mark(len, last?) payload  mark(len, last?) payload ...
 *              `--- fragment ---------'  `--- last fragment ---'
 *
 * A record is the chain of fragments up to and including a last one.
 *
 * The decoder is fed whatever a receive returned and hands out events, each with a slice of that
 * very buffer. It keeps no bytes but an unfinished 4-byte mark, allocates nothing, and looks at
 * each mark once and at no payload byte at all: the work is proportional to fragments + feeds.
 *
 * - WHOLE: a record of one fragment that lies complete in the buffer, mark and all. `data` includes
 *   the mark, so it can be forwarded as it is, and neighbouring WHOLE records are contiguous. The
 *   payload is at data + 4.
 * - BEGIN, then DATA any number of times, then END: every other record, as slices without marks.
 * - MORE: the buffer is used up; the whole of it was consumed.
 * - ERROR: a cap was passed; the stream can't be resynchronised: close it.
 *
 *     do {
 *         size_t used = rpc_record_next(&decoder, buf, len, &e);
 *         buf += used; len -= used;
 *         switch (e.type) { ... }
 *     } while (e.type != RPC_RECORD_MORE && e.type != RPC_RECORD_ERROR);
 *
 * (Not `while (len > 0)`: END comes out of a call of its own that consumes nothing.)
 *
 * Sending a record on: one that was collected whole goes out as one fragment (rpc_record_mark). One
 * that is streamed while it arrives goes out as one fragment too when its length is known up front,
 * i.e. when its first fragment is its last one (`known_bytes` at BEGIN). Otherwise the length is
 * unknown until the last fragment's mark: send what has been collected as fragments of any size,
 * not last, and once `known_bytes` is set (at the latest in END) send one last fragment of the
 * bytes still unsent, known_bytes - sent. After an empty last fragment that is 0, and an empty
 * fragment goes out. Receivers don't see fragment borders.
 */
#ifndef SPILLWAY_PROTOCOLS_RPC_RPC_RECORD_H
#define SPILLWAY_PROTOCOLS_RPC_RPC_RECORD_H

#include "protocols/rpc/rpc_xdr.h"

#define RPC_RECORD_UNKNOWN       UINT64_MAX
#define RPC_RECORD_MAX_BYTES     0x7fffffffu /* a mark has 31 bits of length */
#define RPC_RECORD_DEFAULT_BYTES (68u << 20) /* a 64 MiB WRITE, headers, and room to spare */

struct rpc_record_limits {
    uint32_t record_bytes; /* payload of one record, marks not counted; <= RPC_RECORD_MAX_BYTES */
    uint32_t fragments;    /* fragments of one record, empty ones included */
    uint32_t empty_fragments; /* zero-length fragments of one record */
};

/* 68 MiB, 65,536 fragments (64 MiB in 2 KiB pieces is 32,769), 64 empty fragments. */
extern const struct rpc_record_limits rpc_record_default_limits;

enum rpc_record_event_type {
    RPC_RECORD_MORE = 0,
    RPC_RECORD_WHOLE,
    RPC_RECORD_BEGIN,
    RPC_RECORD_DATA,
    RPC_RECORD_END,
    RPC_RECORD_ERROR,
};

enum rpc_record_error {
    RPC_RECORD_FINE = 0,
    RPC_RECORD_TOO_LONG,
    RPC_RECORD_TOO_MANY_FRAGMENTS,
    RPC_RECORD_TOO_MANY_EMPTY,
};

struct rpc_record_event {
    enum rpc_record_event_type type;
    const uint8_t *data;  /* WHOLE: mark + payload; DATA: payload; else NULL */
    size_t len;           /* bytes at data */
    uint64_t total_bytes; /* payload bytes of this record handed out so far, this event included */
    uint64_t known_bytes; /* payload bytes of the whole record, or RPC_RECORD_UNKNOWN */
};

/* All fields are readable; only rpc_record.c writes them. */
struct rpc_record_decoder {
    struct rpc_record_limits limits;
    uint64_t total_bytes;        /* payload handed out of the record in progress */
    uint32_t fragment_remaining; /* payload bytes of the current fragment still to come */
    uint32_t fragments;          /* marks seen of the record in progress */
    uint32_t empty_fragments;
    uint8_t mark[RPC_RECORD_MARK_BYTES];
    uint8_t mark_bytes;          /* bytes of an unfinished mark kept in `mark` */
    bool in_record;              /* BEGIN was handed out, END not yet */
    bool last_fragment;          /* the current fragment is the record's last */
    enum rpc_record_error error; /* sticky */
};

/* `limits` NULL: the defaults. It is copied. */
void rpc_record_init(struct rpc_record_decoder *d, const struct rpc_record_limits *limits);

/* The next event of buf[0..len); buf is never NULL, len may be 0. Returns the bytes consumed, <=
 * len; they need not be kept. Consumes nothing after ERROR. */
size_t rpc_record_next(struct rpc_record_decoder *d, const uint8_t *buf, size_t len,
                       struct rpc_record_event *event);

/* Between two records, with no byte of a next one seen: here a peer may close without losing one.
 */
static inline bool rpc_record_idle(const struct rpc_record_decoder *d)
{
    return !d->in_record && d->mark_bytes == 0;
}

/* Length of the record in progress when its last mark was seen, else RPC_RECORD_UNKNOWN. */
static inline uint64_t rpc_record_known_bytes(const struct rpc_record_decoder *d)
{
    return d->in_record && d->last_fragment ? d->total_bytes + d->fragment_remaining
                                            : RPC_RECORD_UNKNOWN;
}

/* Writes the mark of a fragment of `bytes` (<= RPC_RECORD_MAX_BYTES) to 4 bytes at `out`. */
static inline void rpc_record_mark(uint8_t *out, uint32_t bytes, bool last)
{
    rpc_store_u32(out, (last ? 0x80000000u : 0) | (bytes & 0x7fffffffu));
}

/* A static sentence for the log. */
const char *rpc_record_error_text(enum rpc_record_error error);

#endif
