/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that a flow makes for itself: to find its files, to make and recognise its file set. They
 * are no requests of the flow and are metered nowhere. The versions of the protocol implement
 * `issue`; nfs_tree and nfs_setup are written on top of it once for all of them.
 *
 * A call is its owner's memory from issue() until done(), which never comes before issue() returns.
 * The wire keeps it until it can be sent, and sends it whenever it likes; a connection that breaks
 * ends its calls with -ECONNRESET, and whether they were carried out is not known.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_CALLS_H
#define LOADGEN_CLIENT_NFS_NFS_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "protocols/rpc/rpc_xdr.h"

#define NFS_HANDLE_BYTES 128U /* NFSv4's; 64 of them are NFSv3's */

struct nfs_handle {
    uint32_t length; /* 0: none */
    uint8_t bytes[NFS_HANDLE_BYTES];
};

static inline struct rpc_slice nfs_handle_slice(const struct nfs_handle *handle)
{
    return (struct rpc_slice){handle->bytes, handle->length};
}

/* False, and nothing kept, when it is empty or too long. */
static inline bool nfs_handle_keep(struct nfs_handle *handle, struct rpc_slice from)
{
    if (from.len == 0 || from.len > NFS_HANDLE_BYTES)
        return false;
    handle->length = from.len;
    memcpy(handle->bytes, from.data, from.len);
    return true;
}

enum nfs_call_kind {
    NFS_CALL_LOOKUP,  /* handle: the directory; gives `found` */
    NFS_CALL_GETATTR, /* handle: the file; gives `size_bytes` */
    NFS_CALL_MKDIR,   /* handle: the directory; `found` may stay empty: look it up */
    NFS_CALL_CREATE,  /* likewise; unchecked, truncates */
    NFS_CALL_REMOVE,  /* handle: the directory */
    NFS_CALL_READ,    /* handle: the file; gives `data`, valid within done(), and `count` */
    NFS_CALL_WRITE,   /* handle: the file; file-sync; gives `count` */
};

struct nfs_call {
    enum nfs_call_kind kind;
    struct nfs_handle handle;
    char name[256];
    uint64_t offset;
    uint32_t bytes;
    const uint8_t *payload; /* WRITE: must stay until done() */
    void (*done)(struct nfs_call *call);

    /* The results. `error` is 0, -ENOENT, -EEXIST, -ESTALE, -EAGAIN ("come back later"),
     * -ECONNRESET, or -EREMOTEIO, for anything else; `status` is the protocol's own. */
    int error;
    uint32_t status;
    struct nfs_handle found;
    uint64_t size_bytes;
    uint32_t count;
    const uint8_t *data;

    struct nfs_call *next; /* the wire's */
};

struct nfs_caller {
    void (*issue)(struct nfs_caller *caller, struct nfs_call *call);
};

#define NFS_CALL_PROBLEM_BYTES 64

/* What went wrong with a call that failed for good; status 0: it brought no readable reply. */
const char *nfs_call_problem(uint32_t status, char text[NFS_CALL_PROBLEM_BYTES]);

#endif
