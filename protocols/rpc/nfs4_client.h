/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv4.0 and 4.1 for a client (load generator): COMPOUND calls put together operation by
 * operation, and replies read back in the same order (RFC 7530, 7531, 8881, 5662).
 *
 *     nfs4_call_begin(&call, buf, size, &identity, xid, 1);
 *     nfs4_put_sequence(&call, ...);
 *     nfs4_put_handle(&call, directory);
 *     nfs4_put_lookup(&call, "name");
 *     nfs4_put_getfh(&call);
 *     bytes = nfs4_call_end(&call);
 *
 *     nfs4_results_begin(&results, reply, available, whole);
 *     nfs4_results_next(&results, NFS4_OP_SEQUENCE, &result);    one by one, until one fails
 *     ...
 *     nfs4_results_end(&results);
 *
 * Calls are one whole record each, mark included. Replies are read strictly: every truncation,
 * every byte too many, every operation out of turn and every union arm that is not one is an error.
 * No allocation; slices point into the caller's buffer. */
#ifndef SPILLWAY_PROTOCOLS_RPC_NFS4_CLIENT_H
#define SPILLWAY_PROTOCOLS_RPC_NFS4_CLIENT_H

#include "protocols/rpc/nfs4_compound.h"
#include "protocols/rpc/rpc_message.h"

/* Enough for every compound whose names and owners are no longer than 2 KiB together. */
#define NFS4_CALL_MAX_BYTES    4096
#define NFS4_NAME_MAX_BYTES    255
#define NFS4_OWNER_MAX_BYTES   1024
#define NFS4_SESSION_ID_BYTES  16
#define NFS4_STATE_OTHER_BYTES 12

enum nfs4_status {
    NFS4_STATUS_NOENT = 2,
    NFS4_STATUS_IO = 5,
    NFS4_STATUS_ACCESS = 13,
    NFS4_STATUS_EXIST = 17,
    NFS4_STATUS_NOTDIR = 20,
    NFS4_STATUS_ISDIR = 21,
    NFS4_STATUS_INVAL = 22,
    NFS4_STATUS_NOSPC = 28,
    NFS4_STATUS_ROFS = 30,
    NFS4_STATUS_STALE = 70,
    NFS4_STATUS_BADHANDLE = 10001,
    NFS4_STATUS_NOTSUPP = 10004,
    NFS4_STATUS_TOOSMALL = 10005,
    NFS4_STATUS_SERVERFAULT = 10006,
    NFS4_STATUS_EXPIRED = 10011,
    NFS4_STATUS_LOCKED = 10012,
    NFS4_STATUS_GRACE = 10013,
    NFS4_STATUS_FHEXPIRED = 10014,
    NFS4_STATUS_WRONGSEC = 10016,
    NFS4_STATUS_CLID_INUSE = 10017,
    NFS4_STATUS_RESOURCE = 10018,
    NFS4_STATUS_MOVED = 10019,
    NFS4_STATUS_NOFILEHANDLE = 10020,
    NFS4_STATUS_MINOR_VERS_MISMATCH = 10021,
    NFS4_STATUS_STALE_CLIENTID = 10022,
    NFS4_STATUS_STALE_STATEID = 10023,
    NFS4_STATUS_OLD_STATEID = 10024,
    NFS4_STATUS_BAD_STATEID = 10025,
    NFS4_STATUS_BAD_SEQID = 10026,
    NFS4_STATUS_BADXDR = 10036,
    NFS4_STATUS_OP_ILLEGAL = 10044,
    NFS4_STATUS_BADSESSION = 10052,
    NFS4_STATUS_BADSLOT = 10053,
    NFS4_STATUS_COMPLETE_ALREADY = 10054,
    NFS4_STATUS_CONN_NOT_BOUND_TO_SESSION = 10055,
    NFS4_STATUS_SEQ_MISORDERED = 10063,
    NFS4_STATUS_REQ_TOO_BIG = 10065,
    NFS4_STATUS_REP_TOO_BIG = 10066,
    NFS4_STATUS_RETRY_UNCACHED_REP = 10068,
    NFS4_STATUS_TOO_MANY_OPS = 10070,
    NFS4_STATUS_DEADSESSION = 10078,
};

/* "GRACE", ...; NULL for a number that is not among the above. */
const char *nfs4_status_name(uint32_t status);

struct nfs4_stateid {
    uint32_t seqid;
    uint8_t other[NFS4_STATE_OTHER_BYTES];
};

/* READ, WRITE and SETATTR without an OPEN. */
extern const struct nfs4_stateid nfs4_anonymous_stateid;
/* Minor version 1: the stateid that the operation before in the same compound gave. */
extern const struct nfs4_stateid nfs4_current_stateid;

/* ----------------------------------------------------------------------------- writing a call */

struct nfs4_call {
    struct rpc_writer w;
    size_t count_at; /* where the number of operations belongs, from the writer's start */
    uint32_t ops;
    uint32_t minorversion;
    uint64_t trailing_bytes;
};

void nfs4_call_begin(struct nfs4_call *call, uint8_t *buf, size_t size,
                     const struct rpc_identity *identity, uint32_t xid, uint32_t minorversion);
/* The record's bytes in the buffer, 0 when something did not fit or was too long. */
size_t nfs4_call_end(struct nfs4_call *call);

void nfs4_put_root(struct nfs4_call *call); /* PUTROOTFH */
void nfs4_put_handle(struct nfs4_call *call, struct rpc_slice handle);
void nfs4_put_getfh(struct nfs4_call *call);
void nfs4_put_lookup(struct nfs4_call *call, const char *name);
/* A LOOKUP for each part of a path, empty parts left out; returns how many. */
uint32_t nfs4_put_lookups(struct nfs4_call *call, const char *path);
/* `bits`: as in NFSv3: READ 1, LOOKUP 2, MODIFY 4, EXTEND 8, DELETE 16, EXECUTE 32. */
void nfs4_put_access(struct nfs4_call *call, uint32_t bits);
void nfs4_put_read(struct nfs4_call *call, const struct nfs4_stateid *stateid, uint64_t offset,
                   uint32_t count);
/* The last of its compound: up to and including the data's length word. The caller sends `count`
 * bytes and zeros up to rpc_padded(count) right behind the record; the mark counts them. `stable`:
 * enum nfs3_stable, the same numbers. */
void nfs4_put_write(struct nfs4_call *call, const struct nfs4_stateid *stateid, uint64_t offset,
                    uint32_t count, uint32_t stable);
/* `count` 0: to the end of the file. */
void nfs4_put_commit(struct nfs4_call *call, uint64_t offset, uint32_t count);
/* `wanted`: NFS4_ATTRIBUTE() bits of those below. */
void nfs4_put_getattr(struct nfs4_call *call, uint64_t wanted);
void nfs4_put_setattr_mode(struct nfs4_call *call, const struct nfs4_stateid *stateid,
                           uint32_t mode);
void nfs4_put_readdir(struct nfs4_call *call, uint64_t cookie, uint64_t verifier, uint32_t dircount,
                      uint32_t maxcount, uint64_t wanted);
void nfs4_put_remove(struct nfs4_call *call, const char *name);
void nfs4_put_create_directory(struct nfs4_call *call, const char *name, uint32_t mode);

struct nfs4_open {
    uint32_t seqid; /* minor version 0; else 0 */
    uint64_t client_id;
    struct rpc_slice owner;
    const char *name; /* in the current directory */
    uint32_t mode;
    bool truncate; /* an existing file is emptied */
};

/* OPEN for writing, the file made unless it is there (UNCHECKED). */
void nfs4_put_open_create(struct nfs4_call *call, const struct nfs4_open *open);
void nfs4_put_open_confirm(struct nfs4_call *call, const struct nfs4_stateid *stateid,
                           uint32_t seqid);
void nfs4_put_close(struct nfs4_call *call, const struct nfs4_stateid *stateid, uint32_t seqid);

/* Minor version 0. No callbacks: the server is told of no place where they would be taken. */
void nfs4_put_setclientid(struct nfs4_call *call, uint64_t verifier, struct rpc_slice owner);
void nfs4_put_setclientid_confirm(struct nfs4_call *call, uint64_t client_id, uint64_t confirm);
void nfs4_put_renew(struct nfs4_call *call, uint64_t client_id);

/* Minor version 1. */
struct nfs4_channel {
    uint32_t max_request_bytes;
    uint32_t max_response_bytes;
    uint32_t max_cached_bytes;
    uint32_t max_operations;
    uint32_t max_requests; /* slots */
};

void nfs4_put_exchange_id(struct nfs4_call *call, uint64_t verifier, struct rpc_slice owner);
void nfs4_put_create_session(struct nfs4_call *call, uint64_t client_id, uint32_t sequence,
                             const struct nfs4_channel *fore);
void nfs4_put_sequence(struct nfs4_call *call, const uint8_t session[NFS4_SESSION_ID_BYTES],
                       uint32_t sequence, uint32_t slot, uint32_t highest_slot, bool cache);
void nfs4_put_reclaim_complete(struct nfs4_call *call);
void nfs4_put_destroy_session(struct nfs4_call *call, const uint8_t session[NFS4_SESSION_ID_BYTES]);
void nfs4_put_destroy_clientid(struct nfs4_call *call, uint64_t client_id);

/* -------------------------------------------------------------------------------- attributes */

#define NFS4_ATTRIBUTE(number) (1ULL << (number))

/* Those that can be asked for: their numbers in the protocol. */
enum nfs4_attribute {
    NFS4_ATTR_TYPE = 1,
    NFS4_ATTR_CHANGE = 3,
    NFS4_ATTR_SIZE = 4,
    NFS4_ATTR_LEASE_TIME = 10,
    NFS4_ATTR_RDATTR_ERROR = 11,
    NFS4_ATTR_FILEID = 20,
    NFS4_ATTR_FILES_AVAIL = 21,
    NFS4_ATTR_FILES_FREE = 22,
    NFS4_ATTR_FILES_TOTAL = 23,
    NFS4_ATTR_MAXREAD = 30,
    NFS4_ATTR_MAXWRITE = 31,
    NFS4_ATTR_MODE = 33,
    NFS4_ATTR_NUMLINKS = 35,
    NFS4_ATTR_SPACE_AVAIL = 42,
    NFS4_ATTR_SPACE_FREE = 43,
    NFS4_ATTR_SPACE_TOTAL = 44,
    NFS4_ATTR_SPACE_USED = 45,
    NFS4_ATTR_TIME_ACCESS = 47,
    NFS4_ATTR_TIME_METADATA = 52,
    NFS4_ATTR_TIME_MODIFY = 53,
};

/* What stat(2) tells, but for owner and group, whose names some servers have to look up. */
#define NFS4_ATTRIBUTES_OF_FILE                                                                    \
    (NFS4_ATTRIBUTE(NFS4_ATTR_TYPE) | NFS4_ATTRIBUTE(NFS4_ATTR_CHANGE) |                           \
     NFS4_ATTRIBUTE(NFS4_ATTR_SIZE) | NFS4_ATTRIBUTE(NFS4_ATTR_FILEID) |                           \
     NFS4_ATTRIBUTE(NFS4_ATTR_MODE) | NFS4_ATTRIBUTE(NFS4_ATTR_NUMLINKS) |                         \
     NFS4_ATTRIBUTE(NFS4_ATTR_SPACE_USED) | NFS4_ATTRIBUTE(NFS4_ATTR_TIME_ACCESS) |                \
     NFS4_ATTRIBUTE(NFS4_ATTR_TIME_METADATA) | NFS4_ATTRIBUTE(NFS4_ATTR_TIME_MODIFY))

/* What FSSTAT of NFSv3 tells. */
#define NFS4_ATTRIBUTES_OF_SPACE                                                                   \
    (NFS4_ATTRIBUTE(NFS4_ATTR_FILES_AVAIL) | NFS4_ATTRIBUTE(NFS4_ATTR_FILES_FREE) |                \
     NFS4_ATTRIBUTE(NFS4_ATTR_FILES_TOTAL) | NFS4_ATTRIBUTE(NFS4_ATTR_SPACE_AVAIL) |               \
     NFS4_ATTRIBUTE(NFS4_ATTR_SPACE_FREE) | NFS4_ATTRIBUTE(NFS4_ATTR_SPACE_TOTAL))

struct nfs4_attributes {
    uint64_t present;    /* NFS4_ATTRIBUTE() bits */
    uint64_t values[64]; /* by number; of a time its whole seconds */
};

/* -------------------------------------------------------------------------- reading a reply */

struct nfs4_results {
    struct rpc_reader r;
    uint64_t beyond_bytes; /* of the reply, behind what is in the buffer */
    uint32_t status;       /* of the compound */
    uint32_t left;         /* operations not read yet */
    bool failed;           /* one read was not OK: it has to be the last */
    bool cut;              /* READ's data goes on behind the buffer */
};

/* What one operation says. Fields that the operation has not are 0. */
struct nfs4_result {
    uint32_t status;
    struct rpc_slice handle;                /* GETFH */
    uint32_t supported;                     /* ACCESS: the bits that mean something */
    uint32_t access;                        /* ACCESS: the bits granted */
    const uint8_t *data;                    /* READ: where its data begins */
    uint32_t data_bytes;                    /* READ: all of the data */
    uint32_t data_there;                    /* READ: of those, in the buffer */
    bool eof;                               /* READ, READDIR */
    uint32_t count;                         /* WRITE: bytes written; READDIR: entries */
    uint32_t committed;                     /* WRITE: enum nfs3_stable */
    uint64_t verifier;                      /* WRITE, COMMIT, READDIR, SETCLIENTID */
    uint64_t cookie;                        /* READDIR: of the last entry */
    struct rpc_reader entries;              /* READDIR: for nfs4_entry_next */
    struct nfs4_stateid stateid;            /* OPEN, OPEN_CONFIRM, CLOSE */
    bool confirm;                           /* OPEN: OPEN_CONFIRM is due */
    bool delegated;                         /* OPEN: a delegation came with it */
    uint64_t client_id;                     /* SETCLIENTID, EXCHANGE_ID */
    bool confirmed;                         /* EXCHANGE_ID: the server knew the client already */
    uint32_t sequence;                      /* EXCHANGE_ID, CREATE_SESSION, SEQUENCE */
    uint8_t session[NFS4_SESSION_ID_BYTES]; /* CREATE_SESSION, SEQUENCE */
    struct nfs4_channel fore;               /* CREATE_SESSION */
    uint32_t slot;                          /* SEQUENCE */
    uint32_t highest_slot;                  /* SEQUENCE: the highest one that may be used */
    uint32_t flags;                         /* SEQUENCE: sr_status_flags */
    struct nfs4_attributes attributes;      /* GETATTR; values that are not present are anything */
};

/*
 * The results of COMPOUND, from the RPC reply's body_offset on: `available` bytes of `whole` are in
 * the buffer, which is all of them but for a READ, whose data may go on behind it.
 *
 * All three: OK, or NEED_MORE (the reply ends too early), or GARBAGE. _next says NOT_EXPECTED when
 * there is no result left, which is right only behind one that failed, or where the compound failed
 * as a whole (results->status, nothing executed).
 */
enum rpc_parse nfs4_results_begin(struct nfs4_results *results, const uint8_t *reply,
                                  size_t available, uint64_t whole);
/* The next result, which has to be of operation `op`. One whose status is not OK is OK to read. */
enum rpc_parse nfs4_results_next(struct nfs4_results *results, uint32_t op,
                                 struct nfs4_result *out);
/* That the reply ended where it said, with the status it said. */
enum rpc_parse nfs4_results_end(const struct nfs4_results *results);

/* READDIR's entries in order, of a result that was OK: false at their end. */
bool nfs4_entry_next(struct nfs4_result *directory, struct rpc_slice *name,
                     struct nfs4_attributes *attributes);

#endif
