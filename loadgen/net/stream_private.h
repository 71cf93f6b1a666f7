/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the stream module tell each other; for no one else. */
#ifndef LOADGEN_NET_STREAM_PRIVATE_H
#define LOADGEN_NET_STREAM_PRIVATE_H

#include "loadgen/net/stream.h"

void stream_ready(struct loop_io *io, uint32_t events);
void stream_turn_end(struct loop_deferred *deferred);
/* The first event of a connecting stream: it becomes OPEN or CLOSED. */
void stream_connect_result(struct stream *stream, uint32_t events);

#endif
