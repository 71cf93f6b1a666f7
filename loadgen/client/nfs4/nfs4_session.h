/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an NFSv4 server knows of one connection: a client of its own, and in minor version 1 a
 * session with it. Setting it up is a chain of calls, each of which waits for the reply before:
 *
 *   4.0   SETCLIENTID -> SETCLIENTID_CONFIRM
 *   4.1   EXCHANGE_ID -> CREATE_SESSION -> RECLAIM_COMPLETE -> DESTROY_SESSION (of the one before)
 *
 * The chain is the same for a new connection, for one that broke, and for a server that has
 * restarted and knows nothing any more: owner and verifier stay, so that a server that still knows
 * the client gives it the same id, and its open files stay. A session is never used again after its
 * connection broke: how far its slots had got is not known.
 *
 * Invariant (4.1): sequences[i] is the sequence of the next call on slot i; only
 * nfs4_session_advance() moves it, when the reply's SEQUENCE was OK.
 */
#ifndef LOADGEN_CLIENT_NFS4_NFS4_SESSION_H
#define LOADGEN_CLIENT_NFS4_NFS4_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "protocols/rpc/nfs4_client.h"

#define NFS4_SESSION_OWNER_BYTES 96
/* Headers, handles, names and attributes of a call or reply, beside its data. */
#define NFS4_AROUND_DATA_BYTES 16384U

enum nfs4_session_step {
    NFS4_STEP_SETCLIENTID,
    NFS4_STEP_SETCLIENTID_CONFIRM,
    NFS4_STEP_EXCHANGE_ID,
    NFS4_STEP_CREATE_SESSION,
    NFS4_STEP_RECLAIM_COMPLETE,
    NFS4_STEP_DESTROY_SESSION,
    NFS4_STEP_DONE,
};

struct nfs4_session {
    uint32_t minorversion;
    uint64_t verifier;
    char owner[NFS4_SESSION_OWNER_BYTES];
    struct nfs4_channel wanted;
    enum nfs4_session_step step;
    uint64_t client_id;
    uint64_t confirm;  /* 4.0 */
    uint32_t sequence; /* of the next CREATE_SESSION */
    bool has_id;       /* 4.1: `id` is a session's */
    bool has_old;      /* 4.1: `old` is one that is to be destroyed */
    uint8_t id[NFS4_SESSION_ID_BYTES];
    uint8_t old[NFS4_SESSION_ID_BYTES];
    struct nfs4_channel fore; /* what the server granted */
    uint32_t *sequences;
    uint32_t slots;
};

/* `slots`: the most calls at once; `data_bytes`: the largest READ or WRITE. `owner` names the
 * client to the server, and no other client in the world must have the same. */
void nfs4_session_init(struct nfs4_session *session, uint32_t minorversion, const char *owner,
                       uint64_t verifier, uint32_t slots, uint32_t data_bytes);
void nfs4_session_fini(struct nfs4_session *session);

/* From the start, on a new connection or after the server forgot. */
void nfs4_session_begin(struct nfs4_session *session);

/* What the step is called in messages, as "EXCHANGE_ID". */
const char *nfs4_session_step_name(const struct nfs4_session *session);

/* Writes the operations of the step that is due. */
void nfs4_session_put_step(const struct nfs4_session *session, struct nfs4_call *call);

/*
 * Reads the results of the step, and moves on when it is good. Not OK: the reply is none.
 * Otherwise `status` is NFS4_STATUS_OK, or says why the step failed.
 */
enum rpc_parse nfs4_session_take_step(struct nfs4_session *session, struct nfs4_results *results,
                                      uint32_t *status);

/* 4.1: calls that may be in flight at once. 4.0: as many as were asked for. */
uint32_t nfs4_session_slots(const struct nfs4_session *session);

/* 4.1: the leading SEQUENCE of a call on a slot; 4.0: nothing. */
void nfs4_session_put_sequence(const struct nfs4_session *session, struct nfs4_call *call,
                               uint32_t slot, bool cache);
void nfs4_session_advance(struct nfs4_session *session, uint32_t slot);

/* Whether a status says that the server does not know this client or session (any more). */
bool nfs4_session_lost(uint32_t status);

/* What keeps the lease when nothing else does: RENEW; in 4.1 SEQUENCE alone does. */
void nfs4_session_put_renewal(const struct nfs4_session *session, struct nfs4_call *call);

#endif
