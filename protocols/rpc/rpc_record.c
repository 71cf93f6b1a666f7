/* SPDX-License-Identifier: Apache-2.0 */
/* Record marking: see rpc_record.h.
 *
 * States, told by the fields (rpc_record_next is the only writer):
 *     idle        !in_record                                     -> mark
 *     mark        0 < mark_bytes < 4, in or between records      -> data, end
 *     data        in_record, fragment_remaining > 0              -> mark, end
 *     end         in_record, fragment_remaining == 0, last_fragment -> idle
 * Invariant: total_bytes + fragment_remaining <= limits.record_bytes.
 */
#include "protocols/rpc/rpc_record.h"

#define LAST_FRAGMENT 0x80000000u

const struct rpc_record_limits rpc_record_default_limits = {
    .record_bytes = RPC_RECORD_DEFAULT_BYTES,
    .fragments = 65536,
    .empty_fragments = 64,
};

void rpc_record_init(struct rpc_record_decoder *d, const struct rpc_record_limits *limits)
{
    memset(d, 0, sizeof *d);
    d->limits = limits ? *limits : rpc_record_default_limits;
    if (d->limits.record_bytes > RPC_RECORD_MAX_BYTES)
        d->limits.record_bytes = RPC_RECORD_MAX_BYTES;
}

static size_t emit(struct rpc_record_decoder *d, struct rpc_record_event *event,
                   enum rpc_record_event_type type, size_t used)
{
    event->type = type;
    event->data = NULL;
    event->len = 0;
    event->total_bytes = d->total_bytes;
    event->known_bytes = rpc_record_known_bytes(d);
    return used;
}

/* Takes a mark into the state; false (error set) when it passes a cap. */
static bool accept_mark(struct rpc_record_decoder *d, uint32_t mark)
{
    uint32_t bytes = mark & ~LAST_FRAGMENT;

    if (!d->in_record) {
        d->total_bytes = 0;
        d->fragments = 0;
        d->empty_fragments = 0;
    }
    if (d->total_bytes + bytes > d->limits.record_bytes)
        d->error = RPC_RECORD_TOO_LONG;
    else if (++d->fragments > d->limits.fragments)
        d->error = RPC_RECORD_TOO_MANY_FRAGMENTS;
    else if (bytes == 0 && ++d->empty_fragments > d->limits.empty_fragments)
        d->error = RPC_RECORD_TOO_MANY_EMPTY;
    if (d->error != RPC_RECORD_FINE)
        return false;
    d->fragment_remaining = bytes;
    d->last_fragment = (mark & LAST_FRAGMENT) != 0;
    return true;
}

/* Collects a mark that may be split over feeds. Returns the bytes consumed; `complete` when it is.
 */
static size_t collect_mark(struct rpc_record_decoder *d, const uint8_t *buf, size_t len,
                           bool *complete)
{
    size_t want = RPC_RECORD_MARK_BYTES - d->mark_bytes;
    size_t take = len < want ? len : want;

    memcpy(d->mark + d->mark_bytes, buf, take);
    d->mark_bytes += (uint8_t)take;
    *complete = d->mark_bytes == RPC_RECORD_MARK_BYTES;
    if (*complete)
        d->mark_bytes = 0;
    return take;
}

/* The record at buf in one piece, if that is what is there: no state is touched but on success. */
static bool take_whole(struct rpc_record_decoder *d, const uint8_t *buf, size_t len,
                       struct rpc_record_event *event)
{
    if (len < RPC_RECORD_MARK_BYTES)
        return false;
    uint32_t mark = rpc_load_u32(buf);
    uint32_t bytes = mark & ~LAST_FRAGMENT;
    if (!(mark & LAST_FRAGMENT) || bytes == 0 || bytes > d->limits.record_bytes ||
        bytes > len - RPC_RECORD_MARK_BYTES || d->limits.fragments == 0)
        return false;
    event->type = RPC_RECORD_WHOLE;
    event->data = buf;
    event->len = RPC_RECORD_MARK_BYTES + (size_t)bytes;
    event->total_bytes = bytes;
    event->known_bytes = bytes;
    return true;
}

static size_t emit_data(struct rpc_record_decoder *d, const uint8_t *buf, size_t len, size_t used,
                        struct rpc_record_event *event)
{
    size_t take = len - used;

    if (take > d->fragment_remaining)
        take = d->fragment_remaining;
    d->fragment_remaining -= (uint32_t)take;
    d->total_bytes += take;
    emit(d, event, RPC_RECORD_DATA, used);
    event->data = buf + used;
    event->len = take;
    return used + take;
}

size_t rpc_record_next(struct rpc_record_decoder *d, const uint8_t *buf, size_t len,
                       struct rpc_record_event *event)
{
    size_t used = 0;

    if (d->error != RPC_RECORD_FINE)
        return emit(d, event, RPC_RECORD_ERROR, 0);
    if (!d->in_record && d->mark_bytes == 0 && take_whole(d, buf, len, event))
        return event->len;
    for (;;) {
        if (d->in_record && d->fragment_remaining > 0) {
            if (used == len)
                return emit(d, event, RPC_RECORD_MORE, used);
            return emit_data(d, buf, len, used, event);
        }
        if (d->in_record && d->last_fragment) {
            emit(d, event, RPC_RECORD_END, used);
            d->in_record = false;
            return used;
        }
        bool complete;
        used += collect_mark(d, buf + used, len - used, &complete);
        if (!complete)
            return emit(d, event, RPC_RECORD_MORE, used);
        if (!accept_mark(d, rpc_load_u32(d->mark)))
            return emit(d, event, RPC_RECORD_ERROR, used);
        if (!d->in_record) {
            d->in_record = true;
            return emit(d, event, RPC_RECORD_BEGIN, used);
        }
    }
}

const char *rpc_record_error_text(enum rpc_record_error error)
{
    switch (error) {
    case RPC_RECORD_FINE:
        return "no error";
    case RPC_RECORD_TOO_LONG:
        return "the record is longer than the limit";
    case RPC_RECORD_TOO_MANY_FRAGMENTS:
        return "the record has more fragments than the limit";
    case RPC_RECORD_TOO_MANY_EMPTY:
        return "the record has more empty fragments than the limit";
    }
    return "unknown error";
}
