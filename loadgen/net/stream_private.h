/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the stream module tell each other; for no one else. */
#ifndef LOADGEN_NET_STREAM_PRIVATE_H
#define LOADGEN_NET_STREAM_PRIVATE_H

#include <sys/types.h>
#include <sys/uio.h>

#include "loadgen/net/stream.h"

void stream_ready(struct loop_io *io, uint32_t events);
void stream_turn_end(struct loop_deferred *deferred);
/* The first event of a connecting stream: it becomes linked, and OPEN without TLS, or CLOSED. */
void stream_connect_result(struct stream *stream, uint32_t events);

/* Room that a receive needs at least. */
#define STREAM_TLS_ROOM_BYTES (64U * 1024)

/*
 * As recv() and sendmsg() of plain bytes, and as them these set stream->readable and ->writable to
 * false where the socket has, or takes, no more. Receiving goes on with the handshake;
 * sending with `bytes` 0 sends what is left of older records.
 */
ssize_t stream_tls_receive(struct stream *stream, uint8_t *to, size_t room);
ssize_t stream_tls_send(struct stream *stream, const struct iovec *vectors, size_t count,
                        size_t bytes);
/* The socket is connected: begins the handshake. */
void stream_tls_start(struct stream *stream);
/* Whether the handshake is over and its result is what was wanted; closes the stream if not that.
 */
bool stream_tls_established(struct stream *stream);
/* Whether records wait for the socket. */
bool stream_tls_unsent(const struct stream *stream);
/* Says goodbye, if that is still possible, before the descriptor is closed. */
void stream_tls_goodbye(struct stream *stream);
void stream_tls_fini(struct stream *stream);

#endif
