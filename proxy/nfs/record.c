/* SPDX-License-Identifier: Apache-2.0 */
/* Records in flight: see record.h. */
#include "proxy/nfs/record.h"

void nfs_incoming_init(struct nfs_incoming *incoming, struct loop *loop,
                       const struct rpc_record_limits *limits)
{
    rpc_record_init(&incoming->decoder, limits);
    incoming->loop = loop;
    incoming->head = (struct buffer){0};
    incoming->begun = false;
    incoming->left = NULL;
    incoming->left_bytes = 0;
    incoming->left_last = false;
}

void nfs_incoming_fini(struct nfs_incoming *incoming)
{
    buffer_clear(&incoming->loop->buffers, &incoming->head);
    incoming->left = NULL;
}

/* What one look at the buffer found of one record: payload joined in place. */
struct found {
    uint8_t *start;
    size_t length;
    bool ended;
    bool marked; /* four bytes in front of `start` are this record's and may be written to */
};

/* Runs the decoder up to the record's end or the buffer's. */
static enum nfs_record_event gather(struct nfs_incoming *incoming, uint8_t *bytes, size_t length,
                                    size_t *used, struct found *found, struct nfs_piece *piece)
{
    struct rpc_record_event event;

    *used = 0;
    *found = (struct found){NULL, 0, false, false};
    for (;;) {
        *used += rpc_record_next(&incoming->decoder, bytes + *used, length - *used, &event);
        switch (event.type) {
        case RPC_RECORD_WHOLE:
            /* Only between records, so nothing was found before it in this call. */
            piece->bytes = bytes + *used - event.len;
            piece->length = event.len;
            return NFS_RECORD_WHOLE;
        case RPC_RECORD_BEGIN:
            break;
        case RPC_RECORD_DATA: {
            uint8_t *data = bytes + *used - event.len;
            if (found->start == NULL) {
                found->start = data;
                found->marked = data - bytes >= RPC_RECORD_MARK_BYTES;
            } else {
                memmove(found->start + found->length, data, event.len);
            }
            found->length += event.len;
            break;
        }
        case RPC_RECORD_END:
            found->ended = true;
            return NFS_RECORD_PIECE;
        case RPC_RECORD_MORE:
            return found->start != NULL ? NFS_RECORD_PIECE : NFS_RECORD_MORE;
        case RPC_RECORD_ERROR:
            return NFS_RECORD_ERROR;
        }
    }
}

static void hand_out(struct nfs_incoming *incoming, struct nfs_piece *piece, uint8_t *bytes,
                     size_t length, bool last)
{
    piece->type = NFS_RECORD_PIECE;
    piece->bytes = bytes;
    piece->length = length;
    piece->first = !incoming->begun;
    piece->last = last;
    piece->known_bytes =
        last ? incoming->decoder.total_bytes : rpc_record_known_bytes(&incoming->decoder);
    incoming->begun = !last;
}

static void hand_out_whole(struct nfs_piece *piece, uint8_t *payload, size_t length)
{
    rpc_record_mark(payload - RPC_RECORD_MARK_BYTES, (uint32_t)length, true);
    piece->type = NFS_RECORD_WHOLE;
    piece->bytes = payload - RPC_RECORD_MARK_BYTES;
    piece->length = RPC_RECORD_MARK_BYTES + length;
}

/* The head that was kept and as much of what was found as makes it a head, in one place. */
static void hand_out_head(struct nfs_incoming *incoming, const struct found *found,
                          struct nfs_piece *piece)
{
    size_t held = buffer_length(&incoming->head);
    size_t take = found->length < NFS_HEAD_BYTES - held ? found->length : NFS_HEAD_BYTES - held;
    uint8_t *scratch = loop_scratch(incoming->loop, RPC_RECORD_MARK_BYTES + held + take);
    uint8_t *payload = scratch + RPC_RECORD_MARK_BYTES;

    if (held > 0)
        memcpy(payload, buffer_bytes(&incoming->head), held);
    if (take > 0)
        memcpy(payload + held, found->start, take);
    buffer_clear(&incoming->loop->buffers, &incoming->head);
    if (found->ended && take == found->length) {
        hand_out_whole(piece, payload, held + take);
        return;
    }
    hand_out(incoming, piece, payload, held + take, false);
    incoming->left = found->start + take;
    incoming->left_bytes = found->length - take;
    incoming->left_last = found->ended;
}

/* The beginning of a record: whole, long enough to go on, or to be kept until it is. */
static void begin(struct nfs_incoming *incoming, const struct found *found, struct nfs_piece *piece)
{
    size_t held = buffer_length(&incoming->head);

    if (!found->ended && held + found->length < NFS_HEAD_BYTES) {
        buffer_append(&incoming->loop->buffers, &incoming->head, found->start, found->length);
        piece->type = NFS_RECORD_MORE;
    } else if (held == 0 && found->ended && found->marked) {
        hand_out_whole(piece, found->start, found->length);
    } else if (held > 0 || found->length < NFS_HEAD_BYTES) {
        hand_out_head(incoming, found, piece);
    } else {
        hand_out(incoming, piece, found->start, found->length, found->ended);
    }
}

size_t nfs_incoming_next(struct nfs_incoming *incoming, uint8_t *bytes, size_t length,
                         struct nfs_piece *piece)
{
    struct found found;
    size_t used;

    if (incoming->left != NULL) {
        hand_out(incoming, piece, incoming->left, incoming->left_bytes, incoming->left_last);
        incoming->left = NULL;
        return 0;
    }
    piece->type = gather(incoming, bytes, length, &used, &found, piece);
    if (piece->type == NFS_RECORD_PIECE) {
        if (incoming->begun)
            hand_out(incoming, piece, found.start, found.length, found.ended);
        else
            begin(incoming, &found, piece);
    }
    return used;
}

void nfs_framing_send(struct nfs_framing *framing, struct conn *conn, uint64_t known_bytes,
                      const uint8_t *bytes, size_t length)
{
    if (!framing->closed && (known_bytes != RPC_RECORD_UNKNOWN || length > 0)) {
        uint8_t *mark = loop_scratch(conn->loop, RPC_RECORD_MARK_BYTES);
        framing->closed = known_bytes != RPC_RECORD_UNKNOWN;
        rpc_record_mark(mark,
                        (uint32_t)(framing->closed ? known_bytes - framing->sent_bytes : length),
                        framing->closed);
        conn_send(conn, mark, RPC_RECORD_MARK_BYTES);
    }
    conn_send(conn, bytes, length);
    framing->sent_bytes += length;
}
