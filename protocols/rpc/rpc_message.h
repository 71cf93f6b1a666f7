/* SPDX-License-Identifier: Apache-2.0 */
/* ONC RPC version 2 messages (RFC 5531): headers of calls and replies, and the replies a proxy
 * gives in its own name. Payloads here never include the record mark unless said so; written
 * messages always do. No allocation, no I/O; slices point into the caller's buffer. */
#ifndef SPILLWAY_PROTOCOLS_RPC_RPC_MESSAGE_H
#define SPILLWAY_PROTOCOLS_RPC_RPC_MESSAGE_H

#include "protocols/rpc/rpc_xdr.h"

#define RPC_VERSION        2
#define RPC_AUTH_MAX_BYTES 400 /* RFC 5531 section 8.2: body of a credential or verifier */

/* A call's header is at most this long: 6 words, then two authenticators. A prefix of a streamed
 * record that has this many bytes is never NEED_MORE. */
#define RPC_CALL_HEADER_MAX_BYTES (6 * 4 + 2 * (8 + RPC_AUTH_MAX_BYTES))

enum rpc_type { RPC_TYPE_CALL = 0, RPC_TYPE_REPLY = 1 };

enum rpc_flavour {
    RPC_FLAVOUR_NONE = 0,
    RPC_FLAVOUR_SYS = 1,
    RPC_FLAVOUR_SHORT = 2,
    RPC_FLAVOUR_GSS = 6, /* RFC 2203 */
    RPC_FLAVOUR_TLS = 7, /* RFC 9289: a probe, never to be forwarded */
};

enum rpc_gss_proc {
    RPC_GSS_PROC_DATA = 0,
    RPC_GSS_PROC_INIT = 1,
    RPC_GSS_PROC_CONTINUE = 2,
    RPC_GSS_PROC_DESTROY = 3,
};

enum rpc_gss_service {
    RPC_GSS_SERVICE_NONE = 1,
    RPC_GSS_SERVICE_INTEGRITY = 2,
    RPC_GSS_SERVICE_PRIVACY = 3,
};

/* A call's header. Fields up to the one that stopped the parser are set, whatever the result, and
 * all others are 0: an error reply can always use `xid` (0 bytes seen: xid 0). */
struct rpc_call {
    uint32_t xid;
    uint32_t rpcvers;
    uint32_t prog;
    uint32_t vers;
    uint32_t proc;
    uint32_t cred_flavour;
    uint32_t verf_flavour;
    struct rpc_slice cred;
    struct rpc_slice verf;
    uint32_t body_offset; /* where the procedure's arguments start, from the payload's first byte.
                             With GSS integrity: past the wrapper's length and sequence number */
    bool args_visible;    /* false: the body can't be read (GSS privacy, GSS context calls) */
    bool has_ids;         /* uid and gid are set: AUTH_SYS */
    uint32_t uid;
    uint32_t gid;
    bool has_gss; /* the following are set: a well-formed RPCSEC_GSS version 1 credential */
    uint32_t gss_proc;
    uint32_t gss_seq;
    uint32_t gss_service;
    struct rpc_slice gss_handle;
};

/* Reads a call's header from payload[0..len). Results: OK, NEED_MORE, NOT_EXPECTED, VERSION,
 * BAD_CRED (over 400 bytes; an AUTH_SYS body that isn't one: machine name > 255, gids > 16, cut),
 * BAD_VERF. An ill-formed GSS credential is OK with has_gss and args_visible false: judging it is
 * the server's. */
enum rpc_parse rpc_parse_call(const uint8_t *payload, size_t len, struct rpc_call *out);

/* The first two words; false with fewer than 8 bytes or a type that is neither. */
static inline bool rpc_peek(const uint8_t *payload, size_t len, uint32_t *xid, enum rpc_type *type)
{
    if (len < 8 || rpc_load_u32(payload + 4) > RPC_TYPE_REPLY)
        return false;
    *xid = rpc_load_u32(payload);
    *type = (enum rpc_type)rpc_load_u32(payload + 4);
    return true;
}

/* Rewrites the xid of a payload of >= 4 bytes in place. */
static inline void rpc_set_xid(uint8_t *payload, uint32_t xid)
{
    rpc_store_u32(payload, xid);
}

enum rpc_accept {
    RPC_ACCEPT_SUCCESS = 0,
    RPC_ACCEPT_PROG_UNAVAIL = 1,
    RPC_ACCEPT_PROG_MISMATCH = 2,
    RPC_ACCEPT_PROC_UNAVAIL = 3,
    RPC_ACCEPT_GARBAGE_ARGS = 4,
    RPC_ACCEPT_SYSTEM_ERR = 5,
};

enum rpc_reject { RPC_REJECT_MISMATCH = 0, RPC_REJECT_AUTH_ERROR = 1 };

enum rpc_auth_status {
    RPC_AUTH_STATUS_BADCRED = 1,
    RPC_AUTH_STATUS_REJECTEDCRED = 2,
    RPC_AUTH_STATUS_BADVERF = 3,
    RPC_AUTH_STATUS_REJECTEDVERF = 4,
    RPC_AUTH_STATUS_TOOWEAK = 5,
    RPC_AUTH_STATUS_INVALIDRESP = 6,
    RPC_AUTH_STATUS_FAILED = 7,
};

struct rpc_reply {
    uint32_t xid;
    bool denied;
    uint32_t accept;       /* enum rpc_accept, when not denied */
    uint32_t reject;       /* enum rpc_reject, when denied */
    uint32_t auth_status;  /* enum rpc_auth_status, when denied with RPC_REJECT_AUTH_ERROR */
    uint32_t low, high;    /* versions of either kind of mismatch */
    uint32_t verf_flavour; /* when accepted */
    struct rpc_slice verf;
    uint32_t body_offset; /* where the results start, when accept is RPC_ACCEPT_SUCCESS */
};

/* Results: OK, NEED_MORE, NOT_EXPECTED (a call), GARBAGE (values RFC 5531 doesn't define, verifier
 * over 400 bytes). */
enum rpc_parse rpc_parse_reply(const uint8_t *payload, size_t len, struct rpc_reply *out);

/* ------------------------------------------------------------------------------ replies of our own
 * Each writes one whole record (mark included) to buf and returns its bytes, 0 when `size` is too
 * small. RPC_ERROR_MAX_BYTES is always enough. The bytes equal libtirpc's xdr_replymsg. */
#define RPC_ERROR_MAX_BYTES 36

/* Accepted, AUTH_NONE verifier, status PROG_UNAVAIL, PROC_UNAVAIL, GARBAGE_ARGS or SYSTEM_ERR. */
size_t rpc_write_accept_error(uint8_t *buf, size_t size, uint32_t xid, enum rpc_accept status);
/* Accepted, PROG_MISMATCH with the versions that are served. */
size_t rpc_write_prog_mismatch(uint8_t *buf, size_t size, uint32_t xid, uint32_t low,
                               uint32_t high);
/* Denied, RPC_MISMATCH, low = high = 2. */
size_t rpc_write_rpc_mismatch(uint8_t *buf, size_t size, uint32_t xid);
/* Denied, AUTH_ERROR. */
size_t rpc_write_auth_error(uint8_t *buf, size_t size, uint32_t xid, enum rpc_auth_status status);
/* The reply that `result` of a parser calls for: VERSION, BAD_CRED, BAD_VERF, GARBAGE; NEED_MORE
 * (of a whole record) is answered as GARBAGE. 0 for OK and NOT_EXPECTED. */
size_t rpc_write_parse_error(uint8_t *buf, size_t size, uint32_t xid, enum rpc_parse result);

/* ------------------------------------------------------------------- headers for clients and
 * servers Both start a record in `w` (rpc_writer_init first, rpc_writer_finish last). */

struct rpc_identity {
    bool sys; /* AUTH_SYS with the fields below, else AUTH_NONE */
    uint32_t uid;
    uint32_t gid;
    const char *machine; /* NULL: empty; at most 255 bytes are sent */
};

/* A call header with an AUTH_NONE verifier; the arguments follow. `identity` NULL is AUTH_NONE. */
void rpc_write_call(struct rpc_writer *w, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc,
                    const struct rpc_identity *identity);
/* An accepted reply's header, SUCCESS, AUTH_NONE verifier; the results follow. */
void rpc_write_success(struct rpc_writer *w, uint32_t xid);

#endif
