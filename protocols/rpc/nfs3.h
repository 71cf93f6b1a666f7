/* SPDX-License-Identifier: Apache-2.0 */
/* NFS version 3 (RFC 1813) as a proxy sees it: what a call is about (which file, how many bytes,
 * read or write, repeatable or not), what a reply says, and the protocol's word for "later".
 * Arguments are peeked at, not validated: what the proxy doesn't need is the server's to judge. */
#ifndef SPILLWAY_PROTOCOLS_RPC_NFS3_H
#define SPILLWAY_PROTOCOLS_RPC_NFS3_H

#include "protocols/rpc/rpc_xdr.h"

#define NFS_PROG              100003
#define NFS3_VERS             3
#define NFS3_HANDLE_MAX_BYTES 64
#define NFS3_NAME_MAX_BYTES   255
#define NFS3_PROCS            22

/* Arguments of this many bytes are never NEED_MORE in nfs3_parse_call: a handle, a name, a few
 * words. */
#define NFS3_ARGS_PEEK_MAX_BYTES 400

enum nfs3_proc {
    NFS3_PROC_NULL = 0,
    NFS3_PROC_GETATTR = 1,
    NFS3_PROC_SETATTR = 2,
    NFS3_PROC_LOOKUP = 3,
    NFS3_PROC_ACCESS = 4,
    NFS3_PROC_READLINK = 5,
    NFS3_PROC_READ = 6,
    NFS3_PROC_WRITE = 7,
    NFS3_PROC_CREATE = 8,
    NFS3_PROC_MKDIR = 9,
    NFS3_PROC_SYMLINK = 10,
    NFS3_PROC_MKNOD = 11,
    NFS3_PROC_REMOVE = 12,
    NFS3_PROC_RMDIR = 13,
    NFS3_PROC_RENAME = 14,
    NFS3_PROC_LINK = 15,
    NFS3_PROC_READDIR = 16,
    NFS3_PROC_READDIRPLUS = 17,
    NFS3_PROC_FSSTAT = 18,
    NFS3_PROC_FSINFO = 19,
    NFS3_PROC_PATHCONF = 20,
    NFS3_PROC_COMMIT = 21,
};

/* What a request does, for flows and costs, the same for every version: moves data to the client
 * (READ), to the server (WRITE, COMMIT), or anything else. */
enum nfs_class { NFS_CLASS_METADATA = 0, NFS_CLASS_READ = 1, NFS_CLASS_WRITE = 2 };

/* "metadata", "read", "write". */
const char *nfs_class_name(enum nfs_class class);

/* Status values used here, out of RFC 1813 section 2.6. */
enum nfs3_status {
    NFS3_STATUS_OK = 0,
    NFS3_STATUS_PERM = 1,
    NFS3_STATUS_NOENT = 2,
    NFS3_STATUS_IO = 5,
    NFS3_STATUS_ACCES = 13,
    NFS3_STATUS_EXIST = 17,
    NFS3_STATUS_NOTDIR = 20,
    NFS3_STATUS_ISDIR = 21,
    NFS3_STATUS_INVAL = 22,
    NFS3_STATUS_FBIG = 27,
    NFS3_STATUS_NOSPC = 28,
    NFS3_STATUS_ROFS = 30,
    NFS3_STATUS_STALE = 70,
    NFS3_STATUS_BADHANDLE = 10001,
    NFS3_STATUS_NOTSUPP = 10004,
    NFS3_STATUS_TOOSMALL = 10005,
    NFS3_STATUS_SERVERFAULT = 10006,
    NFS3_STATUS_JUKEBOX = 10008,
};

/* Each takes any number; a procedure that isn't one of NFSv3's has the name NULL, the class
 * metadata and is not idempotent.
 *
 * Idempotent: the server may execute it twice with the same result and effect. WRITE and COMMIT
 * are; SETATTR (its guard) and all that make or remove names are not. */
const char *nfs3_proc_name(uint32_t proc);
enum nfs_class nfs3_proc_class(uint32_t proc);
bool nfs3_proc_idempotent(uint32_t proc);

/* What the arguments say; fields that the procedure has not are 0. */
struct nfs3_call {
    uint32_t proc;
    struct rpc_slice handle; /* the (first) file handle; absent for NULL */
    struct rpc_slice name; /* LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME (from) */
    uint64_t offset;       /* READ, WRITE, COMMIT; READDIR(PLUS): the cookie */
    uint32_t count;        /* READ, WRITE, COMMIT: bytes; READDIR: count; READDIRPLUS: maxcount */
    uint32_t dircount;     /* READDIRPLUS */
    uint32_t stable;       /* WRITE: 0 unstable, 1 data, 2 file */
    uint32_t access;       /* ACCESS: the bits asked for */
    uint32_t data_offset;  /* WRITE: where the data starts, from the arguments' first byte */
    uint32_t data_bytes;   /* WRITE: the data's length word */
    uint64_t cost_bytes;   /* bytes to move: READ count, WRITE data, READDIR(PLUS) count; else 0 */
};

/* Peeks at args[0..len), the arguments of `proc` (the payload from body_offset on). WRITE is OK as
 * soon as its data's length word is there; with the whole record in hand a caller can check
 * data_offset + rpc_padded(data_bytes) against it. Results: OK, NEED_MORE, GARBAGE (a handle over
 * 64 bytes, a name over NFS3_NAME_MAX_BYTES, a procedure number that NFSv3 hasn't: the caller
 * answers PROC_UNAVAIL before). RFC 1813 sets names no limit; servers answer NAMETOOLONG past
 * theirs, so a caller may forward that case as well as answer it. */
enum rpc_parse nfs3_parse_call(uint32_t proc, const uint8_t *args, size_t len,
                               struct nfs3_call *out);

struct nfs3_reply {
    uint32_t status;
    uint32_t count;           /* READ, WRITE: bytes done */
    bool eof;                 /* READ */
    uint32_t data_offset;     /* READ: where the data starts, from the results' first byte */
    uint32_t data_bytes;      /* READ: the data's length word */
    struct rpc_slice handle;  /* LOOKUP; CREATE, MKDIR, SYMLINK, MKNOD when it is given */
    uint32_t read_max_bytes;  /* FSINFO: rtmax */
    uint32_t write_max_bytes; /* FSINFO: wtmax */
    uint32_t access;          /* ACCESS: the bits granted */
    uint64_t size_bytes;      /* GETATTR, LOOKUP when attributes are there: the file's size */
};

/* Peeks at the results of a reply to `proc` (from the reply's body_offset on). READ is OK as soon
 * as its data's length word is there. Results: OK, NEED_MORE, GARBAGE. */
enum rpc_parse nfs3_parse_reply(uint32_t proc, const uint8_t *results, size_t len,
                                struct nfs3_reply *out);

/* Any failure of any NFSv3 procedure in its result shape (RFC 1813 section 3.3), attributes absent:
 * one whole record, mark included. Returns its bytes; 0 for NULL (which can't fail), an unknown
 * procedure, NFS3_STATUS_OK, or a buffer under NFS3_FAILURE_MAX_BYTES. */
#define NFS3_FAILURE_MAX_BYTES 64
size_t nfs3_write_failure(uint8_t *buf, size_t size, uint32_t xid, uint32_t proc,
                          enum nfs3_status status);

/* The protocol's word for "later": nfs3_write_failure with JUKEBOX. */
static inline size_t nfs3_write_jukebox(uint8_t *buf, size_t size, uint32_t xid, uint32_t proc)
{
    return nfs3_write_failure(buf, size, xid, proc, NFS3_STATUS_JUKEBOX);
}

#endif
