/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv4 calls of a client: see nfs4_client.h. Argument layouts are RFC 7531 (minor version 0) and
 * RFC 5662 (1). */
#include "protocols/rpc/nfs4_client.h"

#define NO_CALLBACKS      0 /* as a program number: nobody serves it */
#define SHARE_WRITE       2
#define SHARE_NO_DELEG    0x0400 /* minor version 1 */
#define TYPE_DIRECTORY    2
#define EXCHANGE_NON_PNFS 0x00010000
#define BACK_BYTES        4096

const struct nfs4_stateid nfs4_anonymous_stateid = {.seqid = 0};
const struct nfs4_stateid nfs4_current_stateid = {.seqid = 1};

void nfs4_call_begin(struct nfs4_call *call, uint8_t *buf, size_t size,
                     const struct rpc_identity *identity, uint32_t xid, uint32_t minorversion)
{
    *call = (struct nfs4_call){.minorversion = minorversion};
    rpc_writer_init(&call->w, buf, size);
    rpc_write_call(&call->w, xid, NFS_PROG, NFS4_VERS, NFS4_PROC_COMPOUND, identity);
    rpc_put_u32(&call->w, 0); /* an empty tag */
    rpc_put_u32(&call->w, minorversion);
    call->count_at = (size_t)(call->w.at - call->w.start);
    rpc_put_u32(&call->w, 0);
}

size_t nfs4_call_end(struct nfs4_call *call)
{
    if (!call->w.overflow)
        rpc_store_u32(call->w.start + call->count_at, call->ops);
    return rpc_writer_finish(&call->w, call->trailing_bytes);
}

static struct rpc_writer *put_op(struct nfs4_call *call, enum nfs4_op op)
{
    /* Data that the caller sends follows the record: nothing can come behind it. */
    if (call->trailing_bytes > 0)
        call->w.overflow = true;
    call->ops++;
    rpc_put_u32(&call->w, op);
    return &call->w;
}

static void put_text(struct rpc_writer *w, const char *text, size_t bytes, size_t most)
{
    if (bytes > most)
        w->overflow = true;
    rpc_put_opaque(w, text, (uint32_t)bytes);
}

static void put_name(struct rpc_writer *w, const char *name)
{
    put_text(w, name, strnlen(name, NFS4_NAME_MAX_BYTES + 1), NFS4_NAME_MAX_BYTES);
}

static void put_stateid(struct rpc_writer *w, const struct nfs4_stateid *stateid)
{
    rpc_put_u32(w, stateid->seqid);
    rpc_put_fixed(w, stateid->other, sizeof(stateid->other));
}

static void put_bitmap(struct rpc_writer *w, uint64_t bits)
{
    rpc_put_u32(w, 2);
    rpc_put_u32(w, (uint32_t)bits);
    rpc_put_u32(w, (uint32_t)(bits >> 32));
}

/* fattr4: the mode and, when `truncate`, size 0. */
static void put_mode(struct rpc_writer *w, uint32_t mode, bool truncate)
{
    put_bitmap(w, NFS4_ATTRIBUTE(NFS4_ATTR_MODE) | (truncate ? NFS4_ATTRIBUTE(NFS4_ATTR_SIZE) : 0));
    rpc_put_u32(w, truncate ? 12 : 4);
    if (truncate)
        rpc_put_u64(w, 0);
    rpc_put_u32(w, mode);
}

/* ------------------------------------------------------------------------- files and names */

void nfs4_put_root(struct nfs4_call *call)
{
    put_op(call, NFS4_OP_PUTROOTFH);
}

void nfs4_put_handle(struct nfs4_call *call, struct rpc_slice handle)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_PUTFH);

    if (handle.len > NFS4_HANDLE_MAX_BYTES)
        w->overflow = true;
    rpc_put_opaque(w, handle.data, handle.len);
}

void nfs4_put_getfh(struct nfs4_call *call)
{
    put_op(call, NFS4_OP_GETFH);
}

void nfs4_put_lookup(struct nfs4_call *call, const char *name)
{
    put_name(put_op(call, NFS4_OP_LOOKUP), name);
}

uint32_t nfs4_put_lookups(struct nfs4_call *call, const char *path)
{
    uint32_t parts = 0;

    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        size_t bytes = strcspn(path, "/");

        put_text(put_op(call, NFS4_OP_LOOKUP), path, bytes, NFS4_NAME_MAX_BYTES);
        path += bytes;
        parts++;
    }
    return parts;
}

void nfs4_put_access(struct nfs4_call *call, uint32_t bits)
{
    rpc_put_u32(put_op(call, NFS4_OP_ACCESS), bits);
}

void nfs4_put_read(struct nfs4_call *call, const struct nfs4_stateid *stateid, uint64_t offset,
                   uint32_t count)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_READ);

    put_stateid(w, stateid);
    rpc_put_u64(w, offset);
    rpc_put_u32(w, count);
}

void nfs4_put_write(struct nfs4_call *call, const struct nfs4_stateid *stateid, uint64_t offset,
                    uint32_t count, uint32_t stable)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_WRITE);

    put_stateid(w, stateid);
    rpc_put_u64(w, offset);
    rpc_put_u32(w, stable);
    rpc_put_u32(w, count);
    call->trailing_bytes = rpc_padded(count);
}

void nfs4_put_commit(struct nfs4_call *call, uint64_t offset, uint32_t count)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_COMMIT);

    rpc_put_u64(w, offset);
    rpc_put_u32(w, count);
}

void nfs4_put_getattr(struct nfs4_call *call, uint64_t wanted)
{
    put_bitmap(put_op(call, NFS4_OP_GETATTR), wanted);
}

void nfs4_put_setattr_mode(struct nfs4_call *call, const struct nfs4_stateid *stateid,
                           uint32_t mode)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_SETATTR);

    put_stateid(w, stateid);
    put_mode(w, mode, false);
}

void nfs4_put_readdir(struct nfs4_call *call, uint64_t cookie, uint64_t verifier, uint32_t dircount,
                      uint32_t maxcount, uint64_t wanted)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_READDIR);

    rpc_put_u64(w, cookie);
    rpc_put_u64(w, verifier);
    rpc_put_u32(w, dircount);
    rpc_put_u32(w, maxcount);
    put_bitmap(w, wanted);
}

void nfs4_put_remove(struct nfs4_call *call, const char *name)
{
    put_name(put_op(call, NFS4_OP_REMOVE), name);
}

void nfs4_put_create_directory(struct nfs4_call *call, const char *name, uint32_t mode)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_CREATE);

    rpc_put_u32(w, TYPE_DIRECTORY);
    put_name(w, name);
    put_mode(w, mode, false);
}

/* -------------------------------------------------------------------------------- open files */

static void put_owner(struct rpc_writer *w, struct rpc_slice owner)
{
    if (owner.len > NFS4_OWNER_MAX_BYTES)
        w->overflow = true;
    rpc_put_opaque(w, owner.data, owner.len);
}

void nfs4_put_open_create(struct nfs4_call *call, const struct nfs4_open *open)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_OPEN);

    rpc_put_u32(w, open->seqid);
    rpc_put_u32(w, SHARE_WRITE | (call->minorversion > 0 ? SHARE_NO_DELEG : 0));
    rpc_put_u32(w, 0); /* deny nobody */
    rpc_put_u64(w, open->client_id);
    put_owner(w, open->owner);
    rpc_put_u32(w, 1); /* create */
    rpc_put_u32(w, 0); /* UNCHECKED */
    put_mode(w, open->mode, open->truncate);
    rpc_put_u32(w, 0); /* CLAIM_NULL: by name */
    put_name(w, open->name);
}

void nfs4_put_open_confirm(struct nfs4_call *call, const struct nfs4_stateid *stateid,
                           uint32_t seqid)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_OPEN_CONFIRM);

    put_stateid(w, stateid);
    rpc_put_u32(w, seqid);
}

void nfs4_put_close(struct nfs4_call *call, const struct nfs4_stateid *stateid, uint32_t seqid)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_CLOSE);

    rpc_put_u32(w, seqid);
    put_stateid(w, stateid);
}

/* ------------------------------------------------------------------------------------ clients */

void nfs4_put_setclientid(struct nfs4_call *call, uint64_t verifier, struct rpc_slice owner)
{
    static const char network[] = "tcp";
    static const char address[] = "0.0.0.0.0.0";
    struct rpc_writer *w = put_op(call, NFS4_OP_SETCLIENTID);

    rpc_put_u64(w, verifier);
    put_owner(w, owner);
    rpc_put_u32(w, NO_CALLBACKS);
    rpc_put_opaque(w, network, sizeof(network) - 1);
    rpc_put_opaque(w, address, sizeof(address) - 1);
    rpc_put_u32(w, 0); /* callback_ident */
}

void nfs4_put_setclientid_confirm(struct nfs4_call *call, uint64_t client_id, uint64_t confirm)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_SETCLIENTID_CONFIRM);

    rpc_put_u64(w, client_id);
    rpc_put_u64(w, confirm);
}

void nfs4_put_renew(struct nfs4_call *call, uint64_t client_id)
{
    rpc_put_u64(put_op(call, NFS4_OP_RENEW), client_id);
}

void nfs4_put_exchange_id(struct nfs4_call *call, uint64_t verifier, struct rpc_slice owner)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_EXCHANGE_ID);

    rpc_put_u64(w, verifier);
    put_owner(w, owner);
    rpc_put_u32(w, EXCHANGE_NON_PNFS);
    rpc_put_u32(w, 0); /* SP4_NONE */
    rpc_put_u32(w, 0); /* no implementation id */
}

static void put_channel(struct rpc_writer *w, const struct nfs4_channel *channel)
{
    rpc_put_u32(w, 0); /* header padding */
    rpc_put_u32(w, channel->max_request_bytes);
    rpc_put_u32(w, channel->max_response_bytes);
    rpc_put_u32(w, channel->max_cached_bytes);
    rpc_put_u32(w, channel->max_operations);
    rpc_put_u32(w, channel->max_requests);
    rpc_put_u32(w, 0); /* no RDMA */
}

void nfs4_put_create_session(struct nfs4_call *call, uint64_t client_id, uint32_t sequence,
                             const struct nfs4_channel *fore)
{
    static const struct nfs4_channel back = {BACK_BYTES, BACK_BYTES, 0, 2, 1};
    struct rpc_writer *w = put_op(call, NFS4_OP_CREATE_SESSION);

    rpc_put_u64(w, client_id);
    rpc_put_u32(w, sequence);
    rpc_put_u32(w, 0); /* neither persistent nor a back channel */
    put_channel(w, fore);
    put_channel(w, &back);
    rpc_put_u32(w, NO_CALLBACKS);
    rpc_put_u32(w, 1); /* one way of securing callbacks: */
    rpc_put_u32(w, RPC_FLAVOUR_NONE);
}

void nfs4_put_sequence(struct nfs4_call *call, const uint8_t session[NFS4_SESSION_ID_BYTES],
                       uint32_t sequence, uint32_t slot, uint32_t highest_slot, bool cache)
{
    struct rpc_writer *w = put_op(call, NFS4_OP_SEQUENCE);

    rpc_put_fixed(w, session, NFS4_SESSION_ID_BYTES);
    rpc_put_u32(w, sequence);
    rpc_put_u32(w, slot);
    rpc_put_u32(w, highest_slot);
    rpc_put_u32(w, cache);
}

void nfs4_put_reclaim_complete(struct nfs4_call *call)
{
    rpc_put_u32(put_op(call, NFS4_OP_RECLAIM_COMPLETE), 0); /* of every file system */
}

void nfs4_put_destroy_session(struct nfs4_call *call, const uint8_t session[NFS4_SESSION_ID_BYTES])
{
    rpc_put_fixed(put_op(call, NFS4_OP_DESTROY_SESSION), session, NFS4_SESSION_ID_BYTES);
}

void nfs4_put_destroy_clientid(struct nfs4_call *call, uint64_t client_id)
{
    rpc_put_u64(put_op(call, NFS4_OP_DESTROY_CLIENTID), client_id);
}
