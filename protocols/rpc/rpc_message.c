/* SPDX-License-Identifier: Apache-2.0 */
/* RPC message headers: see rpc_message.h. The call parser is the proxy's hottest code: one pass, no
 * loop but over nothing longer than a credential, fixed-size groups checked once. */
#include "protocols/rpc/rpc_message.h"

#define MACHINE_NAME_MAX_BYTES 255 /* RFC 5531 appendix A */
#define AUX_GIDS_MAX           16
#define GSS_VERSION            1 /* RFC 2203 section 5 */
#define GSS_HANDLE_WORDS       4 /* version, procedure, sequence, service */

/* ---------------------------------------------------------------------------------- parsing calls
 */

/* AUTH_SYS: stamp, machine name, uid, gid, aux gids; bytes behind them are let pass, as servers do.
 */
static bool parse_auth_sys(struct rpc_call *call)
{
    struct rpc_reader r;
    struct rpc_slice machine;
    uint32_t gids;

    rpc_reader_init(&r, call->cred.data, call->cred.len);
    if (!rpc_skip(&r, 4) || rpc_read_opaque(&r, MACHINE_NAME_MAX_BYTES, &machine) != RPC_PARSE_OK)
        return false;
    if (!rpc_reader_has(&r, 12))
        return false;
    gids = rpc_load_u32(r.at + 8);
    if (gids > AUX_GIDS_MAX || rpc_reader_left(&r) < 12 + gids * 4)
        return false;
    call->uid = rpc_load_u32(r.at);
    call->gid = rpc_load_u32(r.at + 4);
    call->has_ids = true;
    return true;
}

/* RPCSEC_GSS: version, procedure, sequence number, service, context handle. */
static void parse_gss(struct rpc_call *call)
{
    struct rpc_reader r;

    call->args_visible = false;
    rpc_reader_init(&r, call->cred.data, call->cred.len);
    if (!rpc_reader_has(&r, GSS_HANDLE_WORDS * 4) || rpc_load_u32(r.at) != GSS_VERSION)
        return;
    const uint8_t *words = r.at;
    r.at += GSS_HANDLE_WORDS * 4;
    if (rpc_read_opaque(&r, RPC_AUTH_MAX_BYTES, &call->gss_handle) != RPC_PARSE_OK)
        return;
    call->has_gss = true;
    call->gss_proc = rpc_load_u32(words + 4);
    call->gss_seq = rpc_load_u32(words + 8);
    call->gss_service = rpc_load_u32(words + 12);
}

/* Where a GSS call's arguments are, once the verifier's end is known. */
static void place_gss_args(struct rpc_call *call)
{
    if (!call->has_gss || call->gss_proc != RPC_GSS_PROC_DATA)
        return;
    if (call->gss_service == RPC_GSS_SERVICE_NONE) {
        call->args_visible = true;
    } else if (call->gss_service == RPC_GSS_SERVICE_INTEGRITY) {
        call->args_visible = true;
        call->body_offset += 8;
    }
}

static enum rpc_parse read_authenticator(struct rpc_reader *r, uint32_t *flavour,
                                         struct rpc_slice *body, enum rpc_parse too_long)
{
    if (!rpc_read_u32(r, flavour))
        return RPC_PARSE_NEED_MORE;
    enum rpc_parse result = rpc_read_opaque(r, RPC_AUTH_MAX_BYTES, body);
    return result == RPC_PARSE_GARBAGE ? too_long : result;
}

/* The first words of a call that is cut short or wrong: as many as there are. */
static enum rpc_parse parse_call_start(struct rpc_reader *r, struct rpc_call *out)
{
    uint32_t type;

    if (!rpc_read_u32(r, &out->xid) || !rpc_read_u32(r, &type))
        return RPC_PARSE_NEED_MORE;
    if (type != RPC_TYPE_CALL)
        return RPC_PARSE_NOT_EXPECTED;
    if (!rpc_read_u32(r, &out->rpcvers))
        return RPC_PARSE_NEED_MORE;
    if (out->rpcvers != RPC_VERSION)
        return RPC_PARSE_VERSION;
    if (!rpc_read_u32(r, &out->prog) || !rpc_read_u32(r, &out->vers) ||
        !rpc_read_u32(r, &out->proc))
        return RPC_PARSE_NEED_MORE;
    return RPC_PARSE_OK;
}

enum rpc_parse rpc_parse_call(const uint8_t *payload, size_t len, struct rpc_call *out)
{
    struct rpc_reader r;
    enum rpc_parse result;

    memset(out, 0, sizeof *out);
    rpc_reader_init(&r, payload, len);
    result = parse_call_start(&r, out);
    if (result != RPC_PARSE_OK)
        return result;
    result = read_authenticator(&r, &out->cred_flavour, &out->cred, RPC_PARSE_BAD_CRED);
    if (result != RPC_PARSE_OK)
        return result;
    out->args_visible = true;
    if (out->cred_flavour == RPC_FLAVOUR_SYS) {
        if (!parse_auth_sys(out))
            return RPC_PARSE_BAD_CRED;
    } else if (out->cred_flavour == RPC_FLAVOUR_GSS) {
        parse_gss(out);
    }
    result = read_authenticator(&r, &out->verf_flavour, &out->verf, RPC_PARSE_BAD_VERF);
    if (result != RPC_PARSE_OK)
        return result;
    out->body_offset = (uint32_t)(r.at - payload);
    if (out->has_gss)
        place_gss_args(out);
    return RPC_PARSE_OK;
}

/* -------------------------------------------------------------------------------- parsing replies
 */

static enum rpc_parse parse_denied(struct rpc_reader *r, struct rpc_reply *out)
{
    out->denied = true;
    if (!rpc_read_u32(r, &out->reject))
        return RPC_PARSE_NEED_MORE;
    if (out->reject == RPC_REJECT_AUTH_ERROR)
        return rpc_read_u32(r, &out->auth_status) ? RPC_PARSE_OK : RPC_PARSE_NEED_MORE;
    if (out->reject != RPC_REJECT_MISMATCH)
        return RPC_PARSE_GARBAGE;
    if (!rpc_read_u32(r, &out->low) || !rpc_read_u32(r, &out->high))
        return RPC_PARSE_NEED_MORE;
    return RPC_PARSE_OK;
}

static enum rpc_parse parse_accepted(struct rpc_reader *r, struct rpc_reply *out)
{
    enum rpc_parse result =
        read_authenticator(r, &out->verf_flavour, &out->verf, RPC_PARSE_GARBAGE);

    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_read_u32(r, &out->accept))
        return RPC_PARSE_NEED_MORE;
    if (out->accept > RPC_ACCEPT_SYSTEM_ERR)
        return RPC_PARSE_GARBAGE;
    if (out->accept == RPC_ACCEPT_PROG_MISMATCH &&
        (!rpc_read_u32(r, &out->low) || !rpc_read_u32(r, &out->high)))
        return RPC_PARSE_NEED_MORE;
    return RPC_PARSE_OK;
}

enum rpc_parse rpc_parse_reply(const uint8_t *payload, size_t len, struct rpc_reply *out)
{
    struct rpc_reader r;
    enum rpc_parse result;
    uint32_t word;

    memset(out, 0, sizeof *out);
    rpc_reader_init(&r, payload, len);
    if (!rpc_read_u32(&r, &out->xid) || !rpc_read_u32(&r, &word))
        return RPC_PARSE_NEED_MORE;
    if (word != RPC_TYPE_REPLY)
        return RPC_PARSE_NOT_EXPECTED;
    if (!rpc_read_u32(&r, &word))
        return RPC_PARSE_NEED_MORE;
    if (word > 1)
        return RPC_PARSE_GARBAGE;
    result = word == 0 ? parse_accepted(&r, out) : parse_denied(&r, out);
    if (result == RPC_PARSE_OK)
        out->body_offset = (uint32_t)(r.at - payload);
    return result;
}

/* ------------------------------------------------------------------------------- replies of our
 * own */

static void put_accepted(struct rpc_writer *w, uint32_t xid, enum rpc_accept status)
{
    rpc_put_u32(w, xid);
    rpc_put_u32(w, RPC_TYPE_REPLY);
    rpc_put_u32(w, 0); /* MSG_ACCEPTED */
    rpc_put_u32(w, RPC_FLAVOUR_NONE);
    rpc_put_u32(w, 0);
    rpc_put_u32(w, status);
}

static void put_denied(struct rpc_writer *w, uint32_t xid, enum rpc_reject reject)
{
    rpc_put_u32(w, xid);
    rpc_put_u32(w, RPC_TYPE_REPLY);
    rpc_put_u32(w, 1); /* MSG_DENIED */
    rpc_put_u32(w, reject);
}

size_t rpc_write_accept_error(uint8_t *buf, size_t size, uint32_t xid, enum rpc_accept status)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    put_accepted(&w, xid, status);
    return rpc_writer_finish(&w, 0);
}

size_t rpc_write_prog_mismatch(uint8_t *buf, size_t size, uint32_t xid, uint32_t low, uint32_t high)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    put_accepted(&w, xid, RPC_ACCEPT_PROG_MISMATCH);
    rpc_put_u32(&w, low);
    rpc_put_u32(&w, high);
    return rpc_writer_finish(&w, 0);
}

size_t rpc_write_rpc_mismatch(uint8_t *buf, size_t size, uint32_t xid)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    put_denied(&w, xid, RPC_REJECT_MISMATCH);
    rpc_put_u32(&w, RPC_VERSION);
    rpc_put_u32(&w, RPC_VERSION);
    return rpc_writer_finish(&w, 0);
}

size_t rpc_write_auth_error(uint8_t *buf, size_t size, uint32_t xid, enum rpc_auth_status status)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    put_denied(&w, xid, RPC_REJECT_AUTH_ERROR);
    rpc_put_u32(&w, status);
    return rpc_writer_finish(&w, 0);
}

size_t rpc_write_parse_error(uint8_t *buf, size_t size, uint32_t xid, enum rpc_parse result)
{
    switch (result) {
    case RPC_PARSE_OK:
    case RPC_PARSE_NOT_EXPECTED:
        return 0;
    case RPC_PARSE_VERSION:
        return rpc_write_rpc_mismatch(buf, size, xid);
    case RPC_PARSE_BAD_CRED:
        return rpc_write_auth_error(buf, size, xid, RPC_AUTH_STATUS_BADCRED);
    case RPC_PARSE_BAD_VERF:
        return rpc_write_auth_error(buf, size, xid, RPC_AUTH_STATUS_BADVERF);
    case RPC_PARSE_NEED_MORE:
    case RPC_PARSE_GARBAGE:
        break;
    }
    return rpc_write_accept_error(buf, size, xid, RPC_ACCEPT_GARBAGE_ARGS);
}

/* ------------------------------------------------------------------ headers for clients and
 * servers */

static void put_auth_sys(struct rpc_writer *w, const struct rpc_identity *identity)
{
    const char *machine = identity->machine ? identity->machine : "";
    uint32_t machine_bytes = (uint32_t)strnlen(machine, MACHINE_NAME_MAX_BYTES);

    rpc_put_u32(w, RPC_FLAVOUR_SYS);
    rpc_put_u32(w, 5 * 4 + (uint32_t)rpc_padded(machine_bytes));
    rpc_put_u32(w, 0); /* stamp: any number serves */
    rpc_put_opaque(w, machine, machine_bytes);
    rpc_put_u32(w, identity->uid);
    rpc_put_u32(w, identity->gid);
    rpc_put_u32(w, 0); /* no aux gids */
}

void rpc_write_call(struct rpc_writer *w, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc,
                    const struct rpc_identity *identity)
{
    rpc_put_u32(w, xid);
    rpc_put_u32(w, RPC_TYPE_CALL);
    rpc_put_u32(w, RPC_VERSION);
    rpc_put_u32(w, prog);
    rpc_put_u32(w, vers);
    rpc_put_u32(w, proc);
    if (identity && identity->sys) {
        put_auth_sys(w, identity);
    } else {
        rpc_put_u32(w, RPC_FLAVOUR_NONE);
        rpc_put_u32(w, 0);
    }
    rpc_put_u32(w, RPC_FLAVOUR_NONE);
    rpc_put_u32(w, 0);
}

void rpc_write_success(struct rpc_writer *w, uint32_t xid)
{
    put_accepted(w, xid, RPC_ACCEPT_SUCCESS);
}
