/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a mix as NFSv4 compounds: what is sent for each, and what its reply says. One
 * compound does one operation, behind the SEQUENCE that the session asks for:
 *
 *   read, write   PUTFH, READ or WRITE with the anonymous stateid: no OPEN is needed
 *   getattr ...   PUTFH, GETATTR | ACCESS | SETATTR | READDIR | COMMIT
 *   lookup        PUTFH (the directory), LOOKUP, GETFH, GETATTR
 *   remove        PUTFH (the directory), REMOVE
 *   fsstat        PUTFH, GETATTR of what the file system has room for
 *   create        4.1: PUTFH (the directory), OPEN, GETFH, CLOSE of the stateid that OPEN gave
 *                 4.0: two compounds, since CLOSE has to name that stateid; the first one of an
 *                 open owner asks for a third between them:
 *                      PUTFH, OPEN, GETFH | PUTFH, OPEN_CONFIRM | PUTFH, CLOSE
 *
 * An object whose handle is not known yet is looked up in the same compound: PUTFH of the export,
 * a LOOKUP for each part of its path, GETFH.
 *
 * An open owner of 4.0 does one thing at a time, numbered: each slot has one of its own. Where it
 * is not known how far the server got (a call whose reply never came), the owner is given up and
 * the next one takes its place; what it had open ends with the lease.
 */
#ifndef LOADGEN_CLIENT_NFS4_NFS4_OPERATIONS_H
#define LOADGEN_CLIENT_NFS4_NFS4_OPERATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/client/flow_spec.h"
#include "protocols/rpc/nfs4_client.h"

/* What is asked for. */
struct nfs4_task {
    enum flow_operation operation;
    struct rpc_slice object; /* of CREATE, REMOVE, LOOKUP the directory; absent: see path */
    struct rpc_slice base;   /* where path begins */
    const char *path;        /* of the object when its handle is not known */
    const char *name;        /* CREATE, REMOVE, LOOKUP */
    uint64_t offset;         /* READ, WRITE, COMMIT */
    uint32_t length;         /* READ, WRITE, COMMIT */
    bool unstable;           /* WRITE */
    bool truncate;           /* CREATE */
    bool directory;          /* CREATE: of a directory, which takes no OPEN: CREATE, GETFH */
    bool looked_up;          /* written by nfs4_task_put(): the object's handle comes back... */
    uint32_t lookups;        /* ...behind so many LOOKUPs */
};

enum nfs4_phase {
    NFS4_PHASE_WHOLE, /* the one compound, or the OPEN of a CREATE */
    NFS4_PHASE_CONFIRM,
    NFS4_PHASE_CLOSE,
};

/* An open owner (4.0) and what it has open between two compounds. */
struct nfs4_opener {
    uint32_t generation; /* owners given up before it */
    uint32_t seqid;      /* of its next operation */
    struct nfs4_stateid stateid;
    uint8_t handle[NFS4_HANDLE_MAX_BYTES];
    uint32_t handle_bytes;
};

struct nfs4_context {
    uint32_t minorversion;
    uint64_t client_id;
    uint32_t slot;
    enum nfs4_phase phase;
    struct nfs4_opener *opener;
};

/* What a reply said. Slices are of the reply. */
struct nfs4_done {
    uint32_t status;
    uint32_t failed_op;      /* when status is not OK */
    struct rpc_slice object; /* the handle of task->object, when it was looked up */
    struct rpc_slice found;  /* LOOKUP, CREATE: the handle of task->name */
    const uint8_t *data;     /* READ */
    uint32_t data_bytes;     /* READ */
    uint32_t data_there;     /* READ: in the buffer */
    bool eof;                /* READ */
    uint32_t count;          /* WRITE */
    uint64_t size_bytes;     /* LOOKUP, GETATTR */
    enum nfs4_phase phase;   /* what is to be sent next; WHOLE: it is done */
};

/* Whether executing it twice is not the same as once: such replies are worth caching. */
bool nfs4_task_once(const struct nfs4_task *task);

/* Writes the operations (not SEQUENCE). The data of a WRITE is the caller's. Names and handles are
 * not needed any more after it. */
void nfs4_task_put(struct nfs4_call *call, struct nfs4_task *task,
                   const struct nfs4_context *context);

/* Reads the results behind those of SEQUENCE. Not OK: the reply is none. */
enum rpc_parse nfs4_task_take(struct nfs4_results *results, const struct nfs4_task *task,
                              const struct nfs4_context *context, struct nfs4_done *done);

/* The owner's place is not known any more: another one takes over. */
void nfs4_opener_renew(struct nfs4_opener *opener);

#endif
