/* SPDX-License-Identifier: Apache-2.0 */
/* libtirpc's decoding of a call header, as the oracle for rpc_parse_call: used by the unit tests
 * and by the fuzz target. */
#ifndef SPILLWAY_TESTS_UNIT_PROTOCOLS_RPC_ORACLE_H
#define SPILLWAY_TESTS_UNIT_PROTOCOLS_RPC_ORACLE_H

#include <rpc/rpc.h>
#include <rpc/rpc_msg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocols/rpc/rpc_message.h"

struct rpc_oracle {
    struct rpc_msg msg;
    uint8_t cred[MAX_AUTH_BYTES];
    uint8_t verf[MAX_AUTH_BYTES];
    uint32_t position; /* bytes decoded */
    bool has_ids;
    uint32_t uid;
    uint32_t gid;
};

/* AUTH_SYS body; false when it isn't one. */
static inline bool rpc_oracle_auth_sys(struct rpc_oracle *o)
{
    struct authunix_parms parms;
    XDR xdrs;
    bool ok;

    memset(&parms, 0, sizeof parms);
    xdrmem_create(&xdrs, (char *)o->cred, o->msg.rm_call.cb_cred.oa_length, XDR_DECODE);
    ok = xdr_authunix_parms(&xdrs, &parms);
    if (ok) {
        o->has_ids = true;
        o->uid = parms.aup_uid;
        o->gid = parms.aup_gid;
    }
    xdr_destroy(&xdrs);
    xdrs.x_op = XDR_FREE;
    xdr_authunix_parms(&xdrs, &parms);
    return ok;
}

/* Whether libtirpc takes payload[0..len) for a call with a credential it can read. */
static inline bool rpc_oracle_call(const uint8_t *payload, size_t len, struct rpc_oracle *o)
{
    XDR xdrs;
    bool ok;

    memset(o, 0, sizeof *o);
    o->msg.rm_call.cb_cred.oa_base = (caddr_t)o->cred;
    o->msg.rm_call.cb_verf.oa_base = (caddr_t)o->verf;
    xdrmem_create(&xdrs, (char *)(uintptr_t)payload, (u_int)len, XDR_DECODE);
    ok = xdr_callmsg(&xdrs, &o->msg);
    o->position = xdr_getpos(&xdrs);
    xdr_destroy(&xdrs);
    if (ok && o->msg.rm_call.cb_cred.oa_flavor == AUTH_SYS)
        ok = rpc_oracle_auth_sys(o);
    return ok;
}

/* Where the two disagree, in words; NULL when they agree. */
static inline const char *rpc_oracle_disagrees(const uint8_t *payload, size_t len)
{
    struct rpc_oracle o;
    struct rpc_call call;
    bool theirs = rpc_oracle_call(payload, len, &o);
    bool ours = rpc_parse_call(payload, len, &call) == RPC_PARSE_OK;
    const struct call_body *body = &o.msg.rm_call;

    if (theirs != ours)
        return ours ? "only we take it" : "only libtirpc takes it";
    if (!ours)
        return NULL;
    if (call.xid != o.msg.rm_xid || call.rpcvers != body->cb_rpcvers)
        return "xid or rpcvers";
    if (call.prog != body->cb_prog || call.vers != body->cb_vers || call.proc != body->cb_proc)
        return "program, version or procedure";
    if (call.cred_flavour != (uint32_t)body->cb_cred.oa_flavor ||
        call.verf_flavour != (uint32_t)body->cb_verf.oa_flavor)
        return "flavours";
    if (call.cred.len != body->cb_cred.oa_length || call.verf.len != body->cb_verf.oa_length)
        return "lengths";
    if (memcmp(call.cred.data, o.cred, call.cred.len) != 0 ||
        memcmp(call.verf.data, o.verf, call.verf.len) != 0)
        return "credential or verifier";
    if (call.has_ids != o.has_ids || call.uid != o.uid || call.gid != o.gid)
        return "uid or gid";
    uint32_t body_offset = call.body_offset;
    if (call.has_gss && call.args_visible && call.gss_service == RPC_GSS_SERVICE_INTEGRITY)
        body_offset -= 8;
    return body_offset == o.position ? NULL : "where the arguments start";
}

#endif
