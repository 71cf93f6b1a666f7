/* SPDX-License-Identifier: Apache-2.0 */
/* NFS version 4 COMPOUND calls (RFC 7530/7531, 8881/5662, 7862/7863, 8276), read as far as flow and
 * cost need, and the words for "later" that are safe.
 *
 * Operations have no length prefix, so each is stepped over by its definition; operations 3 to 75
 * are known. At an unknown one the walk stops: what was seen stays valid, `partial` says so, and
 * the call is to be forwarded unchanged. The same struct is filled as far as possible from a prefix
 * of a streamed record: NEED_MORE with need_bytes, e.g. inside a WRITE's data, when all that
 * matters was mostly seen already and waiting for more is the caller's choice. */
#ifndef SPILLWAY_PROTOCOLS_RPC_NFS4_COMPOUND_H
#define SPILLWAY_PROTOCOLS_RPC_NFS4_COMPOUND_H

#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/rpc_xdr.h"

#define NFS4_VERS             4
#define NFS4_PROC_NULL        0
#define NFS4_PROC_COMPOUND    1
#define NFS4_HANDLE_MAX_BYTES 128
#define NFS4_TAG_MAX_BYTES    1024 /* the protocol has no limit; ours for reading and echoing it */
#define NFS4_OPS_MAX          4096 /* operations in one compound; more is GARBAGE */
#define NFS4_OPS_KEPT         16   /* whose numbers are kept in the summary */

enum nfs4_op {
    NFS4_OP_ACCESS = 3,
    NFS4_OP_CLOSE,
    NFS4_OP_COMMIT,
    NFS4_OP_CREATE,
    NFS4_OP_DELEGPURGE,
    NFS4_OP_DELEGRETURN,
    NFS4_OP_GETATTR,
    NFS4_OP_GETFH,
    NFS4_OP_LINK,
    NFS4_OP_LOCK,
    NFS4_OP_LOCKT,
    NFS4_OP_LOCKU,
    NFS4_OP_LOOKUP,
    NFS4_OP_LOOKUPP,
    NFS4_OP_NVERIFY,
    NFS4_OP_OPEN,
    NFS4_OP_OPENATTR,
    NFS4_OP_OPEN_CONFIRM,
    NFS4_OP_OPEN_DOWNGRADE,
    NFS4_OP_PUTFH,
    NFS4_OP_PUTPUBFH,
    NFS4_OP_PUTROOTFH,
    NFS4_OP_READ,
    NFS4_OP_READDIR,
    NFS4_OP_READLINK,
    NFS4_OP_REMOVE,
    NFS4_OP_RENAME,
    NFS4_OP_RENEW,
    NFS4_OP_RESTOREFH,
    NFS4_OP_SAVEFH,
    NFS4_OP_SECINFO,
    NFS4_OP_SETATTR,
    NFS4_OP_SETCLIENTID,
    NFS4_OP_SETCLIENTID_CONFIRM,
    NFS4_OP_VERIFY,
    NFS4_OP_WRITE,
    NFS4_OP_RELEASE_LOCKOWNER,
    /* minor version 1 */
    NFS4_OP_BACKCHANNEL_CTL = 40,
    NFS4_OP_BIND_CONN_TO_SESSION,
    NFS4_OP_EXCHANGE_ID,
    NFS4_OP_CREATE_SESSION,
    NFS4_OP_DESTROY_SESSION,
    NFS4_OP_FREE_STATEID,
    NFS4_OP_GET_DIR_DELEGATION,
    NFS4_OP_GETDEVICEINFO,
    NFS4_OP_GETDEVICELIST,
    NFS4_OP_LAYOUTCOMMIT,
    NFS4_OP_LAYOUTGET,
    NFS4_OP_LAYOUTRETURN,
    NFS4_OP_SECINFO_NO_NAME,
    NFS4_OP_SEQUENCE,
    NFS4_OP_SET_SSV,
    NFS4_OP_TEST_STATEID,
    NFS4_OP_WANT_DELEGATION,
    NFS4_OP_DESTROY_CLIENTID,
    NFS4_OP_RECLAIM_COMPLETE,
    /* minor version 2 */
    NFS4_OP_ALLOCATE = 59,
    NFS4_OP_COPY,
    NFS4_OP_COPY_NOTIFY,
    NFS4_OP_DEALLOCATE,
    NFS4_OP_IO_ADVISE,
    NFS4_OP_LAYOUTERROR,
    NFS4_OP_LAYOUTSTATS,
    NFS4_OP_OFFLOAD_CANCEL,
    NFS4_OP_OFFLOAD_STATUS,
    NFS4_OP_READ_PLUS,
    NFS4_OP_SEEK,
    NFS4_OP_WRITE_SAME,
    NFS4_OP_CLONE,
    /* extended attributes, RFC 8276 */
    NFS4_OP_GETXATTR = 72,
    NFS4_OP_SETXATTR,
    NFS4_OP_LISTXATTRS,
    NFS4_OP_REMOVEXATTR,
    NFS4_OP_END, /* one past the last known */
};

/* "READ", ...; NULL for an unknown number. */
const char *nfs4_op_name(uint32_t op);

struct nfs4_compound {
    struct rpc_slice tag;
    uint32_t minorversion;
    uint32_t ops_claimed;       /* the array's length word */
    uint32_t ops_seen;          /* stepped over completely, or far enough to be charged */
    uint8_t ops[NFS4_OPS_KEPT]; /* numbers of the first operations seen */
    uint64_t read_bytes;        /* asked for by READ, READ_PLUS, READDIR, LISTXATTRS */
    uint64_t write_bytes;       /* WRITE data, WRITE_SAME pattern, SETXATTR value */
    uint64_t offset;            /* of the first READ or WRITE */
    struct rpc_slice handle;    /* the file handle put last before the first operation that moves
                                   data, or before the end; absent when none was put */
    bool handle_exact;          /* that operation acts on `handle` itself, not on something that was
                                   looked up beneath it or on a handle the proxy can't see */
    bool root;                  /* `handle` is absent because PUTROOTFH was put */
    enum nfs_class class;       /* of the first operation that moves data, else metadata */
    bool leading_sequence;      /* the first operation is SEQUENCE */
    bool has_seqid;             /* an operation seen advances an owner's sequence in v4.0: OPEN,
                                   OPEN_CONFIRM, OPEN_DOWNGRADE, CLOSE, LOCK, LOCKU */
    bool no_delay;              /* one seen must not meet DELAY in v4.0: RENEW, SETCLIENTID,
                                   SETCLIENTID_CONFIRM, RELEASE_LOCKOWNER */
    bool idempotent;            /* all was seen, and all of it can be executed twice */
    bool partial;               /* stopped at an unknown operation, or for want of bytes */
    uint32_t stopped_op;        /* the number of the operation it stopped at, when partial */
    uint64_t need_bytes;        /* NEED_MORE: length of args that would let the walk go on */
};

/* Reads args[0..len), the arguments of COMPOUND. Results: OK (possibly partial), NEED_MORE (what
 * was seen is in *out), GARBAGE (handle > 128 bytes, > NFS4_OPS_MAX operations, tag >
 * NFS4_TAG_MAX_BYTES, a union with an undefined arm). GARBAGE too is the server's to answer:
 * forward it unchanged. */
enum rpc_parse nfs4_parse_compound(const uint8_t *args, size_t len, struct nfs4_compound *out);

struct nfs4_reply {
    uint32_t status;   /* of the compound: that of its last operation */
    uint32_t ops;      /* results in the array */
    uint32_t first_op; /* when ops > 0 */
    uint32_t first_status;
};

#define NFS4_STATUS_OK    0
#define NFS4_STATUS_DELAY 10008

/* Peeks at the results of COMPOUND. OK, NEED_MORE, GARBAGE. */
enum rpc_parse nfs4_parse_reply(const uint8_t *results, size_t len, struct nfs4_reply *out);

/* NFS4ERR_DELAY for a compound, one whole record, mark included, where the protocol makes it safe:
 * - minor version >= 1: as the status of the leading SEQUENCE, so that the slot's sequence stays;
 * - minor version 0: as the status of the first PUTFH, PUTROOTFH or PUTPUBFH of a compound that was
 *   seen completely and has no operation with a seqid (the client would advance it and the server
 *   not), nor RENEW, RELEASE_LOCKOWNER or SETCLIENTID*.
 *
 * Returns its bytes; 0 when there is no safe word (slow the call instead) or the buffer is too
 * small: NFS4_DELAY_MAX_BYTES is always enough. call->tag must still be valid. */
#define NFS4_DELAY_MAX_BYTES (64 + NFS4_TAG_MAX_BYTES)
size_t nfs4_write_delay(uint8_t *buf, size_t size, uint32_t xid, const struct nfs4_compound *call);

#endif
