/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records in flight: from what was received to whole records or pieces, and from pieces to
 * fragments.
 *
 * Coming in. A record that lies in the buffer (whatever its fragments) or is shorter than
 * NFS_HEAD_BYTES is handed out WHOLE: one last fragment, its mark in front. Any other comes as
 * PIECEs without marks, the first of which holds at least NFS_HEAD_BYTES, so that its headers can
 * be read at once; a piece is handed on, never kept here.
 *
 *     do {
 *         size_t used = nfs_incoming_next(&incoming, bytes, length, &piece);
 *         bytes += used; length -= used;
 *         ...
 *     } while (piece.type != NFS_RECORD_MORE && piece.type != NFS_RECORD_ERROR);
 *
 * Bytes handed out are good until the loop settles. Fragments are joined where they lie: the
 * received bytes are written to.
 *
 * Going out. A piece that is sent on before the record's end is known becomes a fragment; once the
 * length is known, the rest is one last fragment (RFC 5531 section 11: where the borders are has no
 * meaning).
 */
#ifndef SPILLWAY_NFS_RECORD_H
#define SPILLWAY_NFS_RECORD_H

#include "protocols/rpc/rpc_record.h"
#include "proxy/io/conn.h"

/* Holds an RPC header of any length (RPC_CALL_HEADER_MAX_BYTES) and the arguments that matter. */
#define NFS_HEAD_BYTES 2048

enum nfs_record_event {
    NFS_RECORD_MORE,  /* everything was used up */
    NFS_RECORD_WHOLE, /* bytes: mark and payload */
    NFS_RECORD_PIECE, /* bytes: payload */
    NFS_RECORD_ERROR, /* a limit was passed; see decoder.error */
};

struct nfs_piece {
    enum nfs_record_event type;
    uint8_t *bytes;
    size_t length;        /* 0 is possible for the last piece */
    bool first, last;     /* of its record */
    uint64_t known_bytes; /* payload of the whole record, or RPC_RECORD_UNKNOWN */
};

struct nfs_incoming {
    struct rpc_record_decoder decoder;
    struct loop *loop;
    struct buffer head; /* the beginning of a record of which less than NFS_HEAD_BYTES have come */
    bool begun;         /* pieces of the record in progress were handed out */
    uint8_t *left;      /* found, but to be handed out by the next call; NULL: nothing */
    size_t left_bytes;
    bool left_last;
};

/* `limits` is copied; NULL: the decoder's defaults. */
void nfs_incoming_init(struct nfs_incoming *incoming, struct loop *loop,
                       const struct rpc_record_limits *limits);
void nfs_incoming_fini(struct nfs_incoming *incoming);

/* Returns the bytes used. Call it until it says MORE or ERROR, or the owner lost interest. */
size_t nfs_incoming_next(struct nfs_incoming *incoming, uint8_t *bytes, size_t length,
                         struct nfs_piece *piece);

/* Between two records: nothing of a next one has come. */
static inline bool nfs_incoming_is_idle(const struct nfs_incoming *incoming)
{
    return rpc_record_idle(&incoming->decoder);
}

struct nfs_framing {
    uint64_t sent_bytes; /* payload */
    bool closed;         /* the last fragment's mark was sent */
};

/* Sends `length` payload bytes of a record, by reference, with the marks they need. */
void nfs_framing_send(struct nfs_framing *framing, struct conn *conn, uint64_t known_bytes,
                      const uint8_t *bytes, size_t length);

#endif
