/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a connection know of each other:
 *
 *   nfs4_connection.c  life, slots, sending
 *   nfs4_setup.c       from CONNECTING to READY, and back to SESSION when the server forgot
 *   nfs4_replies.c     from received bytes to the calls they end
 */
#ifndef LOADGEN_CLIENT_NFS4_NFS4_PRIVATE_H
#define LOADGEN_CLIENT_NFS4_NFS4_PRIVATE_H

#include "loadgen/client/nfs4/nfs4_connection.h"

#define NFS4_RETRY_NS 200000000ULL
/* Enough of a reply to know all about it; READ data behind is only counted. */
#define NFS4_HEAD_BYTES    512
#define NFS4_SLOT_BITS     16
#define NFS4_SLOT_MASK     ((1U << NFS4_SLOT_BITS) - 1)
#define NFS4_SLOT_OF_SETUP NFS4_SLOT_MASK

static inline struct nfs4_connection *nfs4_connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct nfs4_connection, stream));
}

/* On stderr, with the flow's name and the stage; once per flow. */
void nfs4_complain(struct nfs4_connection *connection, const char *why);
void nfs4_complain_status(struct nfs4_connection *connection, uint32_t status);

/* The server grants so many slots now. */
void nfs4_slots_limit(struct nfs4_connection *connection, uint32_t usable);
void nfs4_slots_send_waiting(struct nfs4_connection *connection);
struct nfs4_context nfs4_slot_context(struct nfs4_slot *slot);
/* Its call was not carried out: it is sent again, after a while or once the session is set up. */
void nfs4_slot_waits(struct nfs4_slot *slot);
void nfs4_slot_ended(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done);

/* The server does not know the session (any more), or there is none yet. */
void nfs4_setup_begin(struct nfs4_connection *connection);
/* Sends the call that is due (again). */
void nfs4_setup_call(struct nfs4_connection *connection);
void nfs4_setup_reply(struct nfs4_connection *connection, struct nfs4_results *results);

/* Input of the stream. */
size_t nfs4_took_data(struct stream *stream, const uint8_t *data, size_t length);

#endif
