/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NFSv3 transport's inside: a few TCP connections, many calls in flight on each.
 *
 * Stages of a connection
 *   DOWN -> CONNECTING -> MOUNT (MNT on the same port) -> LIMITS (FSINFO) -> READY
 * Where MOUNT is not served at that port connections wait in MOUNT for nfs3_mount.h, which is done
 * once. From any stage back to DOWN when it breaks; DOWN tries again after a while. Calls in flight
 * on a connection that breaks end with OUTCOME_CONNECTION: whether they were carried out is not
 * known.
 *
 * Once one connection is ready the flow's files are found (nfs_setup.h, or the one file); then the
 * flow is. Requests whose handle is not known wait in `pending` while it is looked up.
 *
 *   client_nfs3.c       the transport: requests and how they end
 *   nfs3_calls.c        tasks and calls as NFSv3, both ways
 *   nfs3_connection.c   connections, slots, records
 *
 * A call's xid is its slot with the slot's use count above it, so that a late reply to a call that
 * was given up finds nobody. Of replies longer than RECORD_HEAD_BYTES only the head is kept, unless
 * the flow verifies.
 */
#ifndef LOADGEN_CLIENT_NFS3_NFS3_WIRE_H
#define LOADGEN_CLIENT_NFS3_NFS3_WIRE_H

#include "loadgen/client/flow.h"
#include "loadgen/client/nfs3/nfs3_mount.h"
#include "loadgen/client/nfs/nfs_setup.h"
#include "loadgen/client/nfs/nfs_work.h"
#include "loadgen/net/stream.h"
#include "protocols/rpc/nfs3_client.h"
#include "protocols/rpc/rpc_record.h"

#define NFS3_RECORD_HEAD_BYTES 2048U
#define NFS3_NO_SLOT           UINT32_MAX

enum nfs3_stage {
    NFS3_STAGE_DOWN,
    NFS3_STAGE_CONNECTING,
    NFS3_STAGE_MOUNT,
    NFS3_STAGE_LIMITS,
    NFS3_STAGE_READY,
};

struct nfs3_slot {
    bool busy;
    uint32_t uses;
    uint32_t next_free;
    struct nfs_call *call; /* NULL: a request */
    struct flow_request request;
    struct nfs_task task;
};

struct nfs3_connection {
    struct stream stream;
    struct nfs3_wire *wire;
    enum nfs3_stage stage;
    struct loop_timer retry;
    struct rpc_record_decoder decoder;
    uint8_t *record; /* of a reply in pieces: what is kept of it */
    size_t record_bytes;
    size_t record_capacity;
    uint32_t setup_xid;
    struct nfs3_slot *slots;
    uint32_t slots_count;
    uint32_t slots_free;
    uint32_t in_flight;
};

/* A request that waits for its handle. */
struct nfs3_pending {
    struct nfs3_pending *next;
    struct nfs3_pending **link;
    struct nfs3_wire *wire;
    bool given_up; /* its request has ended; it goes when the walk does */
    struct flow_request request;
    struct nfs_task task;
    struct nfs_walk walk;
};

struct nfs3_wire {
    struct flow *flow;
    struct loop *loop; /* the flow's; at the end one of its own */
    struct nfs3_client client;
    struct nfs_caller caller;
    struct nfs_call *waiting; /* for a connection; first come, first sent */
    struct nfs_call **waiting_tail;
    struct nfs_setup *setup; /* NULL: one file */
    struct nfs_tree *tree;   /* of setup */
    struct nfs_work work;
    struct nfs3_mount mount;
    bool mounts_elsewhere; /* MOUNT is not served at the NFS port */
    struct nfs_handle export;
    struct nfs_handle file; /* without a set */
    struct nfs_call file_call;
    struct loop_timer file_timer;
    bool file_known;
    bool file_sought;
    bool mounted; /* once */
    bool collects;
    bool complained;
    bool moved; /* since progress was last asked for */
    bool ending;
    struct nfs3_pending *pending;
    void (*ready)(struct nfs3_wire *wire); /* a connection got ready */
    uint32_t count;
    struct nfs3_connection connections[];
};

/* ---------------------------------------------------------------- nfs3_connection.c */

void nfs3_connection_init(struct nfs3_connection *connection, struct nfs3_wire *wire,
                          uint32_t slots);
void nfs3_connection_open(struct nfs3_connection *connection);
/* Frees it; nothing is told about calls in flight. */
void nfs3_connection_fini(struct nfs3_connection *connection);

/* mount.done: connections that wait for it go on, or break. */
void nfs3_mounted_elsewhere(struct nfs3_mount *mount);

/* The ready connection with the fewest calls in flight that has a slot free; NULL: none. */
struct nfs3_connection *nfs3_best_connection(struct nfs3_wire *wire);
struct nfs3_slot *nfs3_slot_take(struct nfs3_connection *connection, uint32_t *xid);
void nfs3_slot_free(struct nfs3_connection *connection, struct nfs3_slot *slot);

/* caller.issue: at once, or when a connection is ready. */
void nfs3_issue(struct nfs_caller *caller, struct nfs_call *call);
void nfs3_send_waiting(struct nfs3_wire *wire);

/* ---------------------------------------------------------------- nfs3_calls.c */

void nfs3_put_call(struct nfs3_connection *connection, uint32_t xid, const struct nfs_call *call);
/* `handle`: of the file or directory that the task is about. */
void nfs3_put_task(struct nfs3_connection *connection, uint32_t xid, const struct nfs_task *task,
                   struct rpc_slice handle);

struct rpc_reply;
/* Reads a reply's results into the call; done() is the caller's to call. */
void nfs3_read_call(struct nfs_call *call, const struct rpc_reply *rpc, const uint8_t *payload,
                    size_t length);
/* Likewise for a task; `stale`: its handle must be looked up again. */
void nfs3_read_task(const struct nfs3_wire *wire, const struct nfs_task *task,
                    const struct rpc_reply *rpc, const uint8_t *payload, size_t length,
                    struct nfs_ending *ending, bool *stale);

/* ---------------------------------------------------------------- client_nfs3.c */

/* A slot's call has ended, with a reply (rpc) or without; frees the slot. */
void nfs3_request_reply(struct nfs3_connection *connection, struct nfs3_slot *slot,
                        const struct rpc_reply *rpc, const uint8_t *payload, size_t length);
void nfs3_request_ended(struct nfs3_connection *connection, struct nfs3_slot *slot,
                        enum outcome outcome);

#endif
