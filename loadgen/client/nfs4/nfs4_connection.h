/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP connection of an NFSv4 flow: its session with the server, its slots, its replies.
 *
 * Stages of a connection
 *   DOWN -> CONNECTING -> SESSION (nfs4_session.h) -> ROOT (handle of the export, limits) -> READY
 *   From any stage back to DOWN when it breaks; DOWN tries again after a while. A server that does
 *   not know the session any more takes a connection from READY back to SESSION.
 *
 * States of a slot
 *   FREE -> SENT -> FREE                 a call is out, its reply ends the request
 *   SENT -> WAITING -> SENT              not executed, and to be sent again: the server is in its
 *                                        grace period, or has lost the session
 *   SENT -> ABANDONED -> FREE            the request timed out; in 4.1 a slot takes no other call
 *                                        before the reply to the last one
 *
 * Calls in flight on a connection that breaks fail with OUTCOME_CONNECTION: whether they were
 * carried out is not known. Those that wait are sent on the next one.
 *
 * A call's xid is its slot with the slot's use count above it, so that a late reply to a call that
 * was given up finds nobody; calls that set up have a slot number that no slot has.
 */
#ifndef LOADGEN_CLIENT_NFS4_NFS4_CONNECTION_H
#define LOADGEN_CLIENT_NFS4_NFS4_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/client/flow.h"
#include "loadgen/client/nfs/nfs_calls.h"
#include "loadgen/client/nfs/nfs_work.h"
#include "loadgen/client/nfs4/nfs4_operations.h"
#include "loadgen/client/nfs4/nfs4_session.h"
#include "loadgen/net/stream.h"
#include "protocols/rpc/rpc_record.h"

enum nfs4_stage {
    NFS4_STAGE_DOWN,
    NFS4_STAGE_CONNECTING,
    NFS4_STAGE_SESSION,
    NFS4_STAGE_ROOT,
    NFS4_STAGE_READY,
};

enum nfs4_slot_state {
    NFS4_SLOT_FREE,
    NFS4_SLOT_SENT,
    NFS4_SLOT_WAITING,
    NFS4_SLOT_ABANDONED,
};

/* How a call ended. */
enum nfs4_end {
    NFS4_END_REPLY,     /* `done` says what the server did */
    NFS4_END_RPC_ERROR, /* denied, or not accepted */
    NFS4_END_MALFORMED,
    NFS4_END_LOST, /* the connection ended before the reply did */
};

struct nfs4_connection;
struct nfs4_slot;

/* What a slot's call is for. */
struct nfs4_job {
    /* Before each sending: fills in slot->task, whose handles and names may have changed since.
     * NULL: a renewal of the lease. */
    void (*prepare)(struct nfs4_slot *slot);
    /* WRITE: adds the data, and zeros up to rpc_padded(task.length). */
    void (*put_data)(struct nfs4_slot *slot, struct stream *stream);
    /* The last callback; it releases the slot, or says true: to be sent again (after another
     * prepare()). Not called for a job that was abandoned. `done` is NULL but for NFS4_END_REPLY.
     */
    bool (*ended)(struct nfs4_slot *slot, enum nfs4_end how, const struct nfs4_done *done);
};

struct nfs4_slot {
    enum nfs4_slot_state state;
    uint32_t uses;
    uint32_t next_free;
    uint32_t epoch; /* of the session that the call was sent in */
    struct nfs4_connection *connection;
    struct nfs4_task task;
    enum nfs4_phase phase;
    struct nfs4_opener opener;
    bool whole_reply; /* READ: its data is wanted, not only counted */

    /* The user's. */
    const struct nfs4_job *job;
    struct flow_request request;
    struct nfs_task work;
    struct nfs_call *call; /* in place of a request: a call of the flow's own */
};

struct nfs4_connection {
    struct stream stream;
    struct flow *flow;
    struct loop *loop;
    /* Calls can be sent (again). */
    void (*became_ready)(struct nfs4_connection *connection);
    /* A slot is free that was none of the flow's requests. */
    void (*slot_freed)(struct nfs4_connection *connection);
    /* It was ready and is not any more: the server may have restarted. */
    void (*broke)(struct nfs4_connection *connection);
    enum nfs4_stage stage;
    bool was_ready;   /* since the TCP connection was made */
    bool *complained; /* of the flow: one message is enough */
    struct loop_timer retry;
    struct loop_timer again; /* what waits is sent again */
    struct loop_timer renewal;
    uint64_t renewal_ns; /* between two of them */
    bool idle;           /* nothing was sent since the last one */
    struct rpc_identity identity;
    struct nfs4_session session;
    uint32_t epoch; /* sessions begun */
    uint32_t setup_uses;
    uint32_t setup_xid; /* of the set-up call in flight; 0: none */

    struct rpc_record_decoder decoder;
    uint8_t *head; /* of a reply in pieces */
    size_t head_bytes;
    size_t head_room;
    uint64_t reply_bytes;
    bool head_judged; /* keep_whole is what it says */
    bool keep_whole;

    struct nfs4_slot *slots;
    uint32_t slots_count;
    uint32_t slots_usable; /* as the server grants */
    uint32_t slots_free;
    uint32_t in_use; /* slots that are not free */
    uint32_t abandoned;

    struct nfs_handle root; /* of the export */
    struct nfs_handle file; /* of the one file, when the flow has no set */
    uint64_t file_size_bytes;
    uint32_t read_most; /* bytes of one READ, as the server says */
    uint32_t write_most;
};

/* Starts to connect; flow, loop, became_ready, slot_freed, broke and complained are set. `owner` as
 * in nfs4_session.h. */
void nfs4_connection_open(struct nfs4_connection *connection, const char *owner, uint64_t verifier,
                          uint32_t slots, uint32_t data_bytes);

/* Frees all, its calls in flight end nowhere. Takes leave of the server first, waiting for it until
 * the deadline at most. */
void nfs4_connection_close(struct nfs4_connection *connection, uint64_t deadline_ns);

/* What it is at, for the user. */
const char *nfs4_connection_stage(const struct nfs4_connection *connection);

/* Whether a call can be sent now. */
bool nfs4_connection_can_send(const struct nfs4_connection *connection);

/* Needs nfs4_connection_can_send(). The caller sets the slot's `job` and its own fields, then calls
 * nfs4_slot_send(). */
struct nfs4_slot *nfs4_slot_take(struct nfs4_connection *connection);
void nfs4_slot_send(struct nfs4_slot *slot);

/* Within job->ended(): the slot is free for another call from here on. */
void nfs4_slot_release(struct nfs4_slot *slot);

/* The caller does not wait for the reply any more, and gets none. */
void nfs4_slot_abandon(struct nfs4_slot *slot);

#endif
