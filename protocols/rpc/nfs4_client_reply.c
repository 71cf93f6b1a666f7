/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv4 replies to a client: see nfs4_client.h. Result layouts are RFC 7531 (minor version 0) and
 * RFC 5662 (1). */
#include "protocols/rpc/nfs4_client.h"

#define BITMAP_WORDS_MAX   8U
#define SCOPE_MAX_BYTES    1024U
#define EXCHANGE_CONFIRMED 0x80000000U
#define OPEN_CONFIRM_DUE   2U

static enum rpc_parse more_unless(bool there)
{
    return there ? RPC_PARSE_OK : RPC_PARSE_NEED_MORE;
}

static bool read_stateid(struct rpc_reader *r, struct nfs4_stateid *out)
{
    if (!rpc_reader_has(r, 4 + NFS4_STATE_OTHER_BYTES))
        return false;
    out->seqid = rpc_load_u32(r->at);
    memcpy(out->other, r->at + 4, NFS4_STATE_OTHER_BYTES);
    r->at += 4 + NFS4_STATE_OTHER_BYTES;
    return true;
}

static enum rpc_parse read_bool(struct rpc_reader *r, bool *out)
{
    uint32_t word;

    if (!rpc_read_u32(r, &word))
        return RPC_PARSE_NEED_MORE;
    *out = word == 1;
    return word <= 1 ? RPC_PARSE_OK : RPC_PARSE_GARBAGE;
}

/* bitmap4; bits past the 64th are GARBAGE: nobody asked for them. */
static enum rpc_parse read_bitmap(struct rpc_reader *r, uint64_t *bits)
{
    uint32_t words;

    *bits = 0;
    if (!rpc_read_u32(r, &words))
        return RPC_PARSE_NEED_MORE;
    if (words > BITMAP_WORDS_MAX)
        return RPC_PARSE_GARBAGE;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t word;

        if (!rpc_read_u32(r, &word))
            return RPC_PARSE_NEED_MORE;
        if (i < 2)
            *bits |= (uint64_t)word << (32 * i);
        else if (word != 0)
            return RPC_PARSE_GARBAGE;
    }
    return RPC_PARSE_OK;
}

/* ---------------------------------------------------------------------------- attributes */

/* Words of 4 bytes of each attribute that can be asked for. */
static uint32_t attribute_words(unsigned attribute)
{
    switch (attribute) {
    case NFS4_ATTR_TYPE:
    case NFS4_ATTR_LEASE_TIME:
    case NFS4_ATTR_RDATTR_ERROR:
    case NFS4_ATTR_MODE:
    case NFS4_ATTR_NUMLINKS:
        return 1;
    case NFS4_ATTR_CHANGE:
    case NFS4_ATTR_SIZE:
    case NFS4_ATTR_FILEID:
    case NFS4_ATTR_FILES_AVAIL:
    case NFS4_ATTR_FILES_FREE:
    case NFS4_ATTR_FILES_TOTAL:
    case NFS4_ATTR_MAXREAD:
    case NFS4_ATTR_MAXWRITE:
    case NFS4_ATTR_SPACE_AVAIL:
    case NFS4_ATTR_SPACE_FREE:
    case NFS4_ATTR_SPACE_TOTAL:
    case NFS4_ATTR_SPACE_USED:
        return 2;
    case NFS4_ATTR_TIME_ACCESS:
    case NFS4_ATTR_TIME_METADATA:
    case NFS4_ATTR_TIME_MODIFY:
        return 3;
    default:
        return 0;
    }
}

/* fattr4: its values lie in the order of their numbers and fill it exactly. */
static enum rpc_parse read_attributes(struct rpc_reader *r, struct nfs4_attributes *out)
{
    struct rpc_slice values;
    enum rpc_parse result = read_bitmap(r, &out->present);
    uint64_t bits = out->present;

    if (result == RPC_PARSE_OK)
        result = rpc_read_opaque(r, UINT32_MAX, &values);
    if (result != RPC_PARSE_OK)
        return result;
    const uint8_t *at = values.data;
    uint32_t left = values.len;

    for (; bits; bits &= bits - 1) {
        unsigned attribute = (unsigned)__builtin_ctzll(bits);
        uint32_t words = attribute_words(attribute);

        if (words == 0 || left < 4 * words)
            return RPC_PARSE_GARBAGE;
        out->values[attribute] = words == 1 ? rpc_load_u32(at) : rpc_load_u64(at);
        at += (size_t)4 * words;
        left -= 4 * words;
    }
    return left == 0 ? RPC_PARSE_OK : RPC_PARSE_GARBAGE;
}

/* ------------------------------------------------------------------------- files and names */

static enum rpc_parse read_access(struct rpc_reader *r, struct nfs4_result *out)
{
    return more_unless(rpc_read_u32(r, &out->supported) && rpc_read_u32(r, &out->access));
}

/* The data may go on behind the buffer, where it has to end with the reply. */
static enum rpc_parse read_read(struct nfs4_results *results, struct nfs4_result *out)
{
    struct rpc_reader *r = &results->r;
    enum rpc_parse result = read_bool(r, &out->eof);

    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_read_u32(r, &out->data_bytes))
        return RPC_PARSE_NEED_MORE;
    uint64_t padded = rpc_padded(out->data_bytes);
    size_t left = rpc_reader_left(r);

    out->data = r->at;
    out->data_there = out->data_bytes;
    if (padded <= left)
        return more_unless(rpc_skip(r, padded));
    if (padded > left + results->beyond_bytes)
        return RPC_PARSE_NEED_MORE;
    if (padded < left + results->beyond_bytes || results->left > 0)
        return RPC_PARSE_GARBAGE;
    out->data_there = left < out->data_bytes ? (uint32_t)left : out->data_bytes;
    r->at = r->end;
    results->cut = true;
    return RPC_PARSE_OK;
}

static enum rpc_parse read_write(struct rpc_reader *r, struct nfs4_result *out)
{
    if (!rpc_read_u32(r, &out->count) || !rpc_read_u32(r, &out->committed) ||
        !rpc_read_u64(r, &out->verifier))
        return RPC_PARSE_NEED_MORE;
    return out->committed <= 2 ? RPC_PARSE_OK : RPC_PARSE_GARBAGE;
}

static enum rpc_parse read_entry(struct rpc_reader *r, uint64_t *cookie, struct rpc_slice *name,
                                 struct nfs4_attributes *attributes)
{
    enum rpc_parse result;

    if (!rpc_read_u64(r, cookie))
        return RPC_PARSE_NEED_MORE;
    result = rpc_read_opaque(r, UINT32_MAX, name);
    return result == RPC_PARSE_OK ? read_attributes(r, attributes) : result;
}

static enum rpc_parse read_readdir(struct rpc_reader *r, struct nfs4_result *out)
{
    struct rpc_slice name;
    struct nfs4_attributes attributes;
    enum rpc_parse result;
    bool follows;

    if (!rpc_read_u64(r, &out->verifier))
        return RPC_PARSE_NEED_MORE;
    out->entries = *r;
    while ((result = read_bool(r, &follows)) == RPC_PARSE_OK && follows) {
        result = read_entry(r, &out->cookie, &name, &attributes);
        if (result != RPC_PARSE_OK)
            return result;
        out->count++;
    }
    return result == RPC_PARSE_OK ? read_bool(r, &out->eof) : result;
}

bool nfs4_entry_next(struct nfs4_result *directory, struct rpc_slice *name,
                     struct nfs4_attributes *attributes)
{
    uint64_t cookie;
    bool follows;

    return read_bool(&directory->entries, &follows) == RPC_PARSE_OK && follows &&
           read_entry(&directory->entries, &cookie, name, attributes) == RPC_PARSE_OK;
}

/* change_info4: whether it is atomic, before, after. */
static enum rpc_parse skip_change(struct rpc_reader *r)
{
    bool atomic;
    enum rpc_parse result = read_bool(r, &atomic);

    return result == RPC_PARSE_OK ? more_unless(rpc_skip(r, 16)) : result;
}

static enum rpc_parse read_create(struct rpc_reader *r)
{
    uint64_t set;
    enum rpc_parse result = skip_change(r);

    return result == RPC_PARSE_OK ? read_bitmap(r, &set) : result;
}

/* -------------------------------------------------------------------------------- open files */

/* nfsace4: three words and a name. */
static enum rpc_parse skip_ace(struct rpc_reader *r)
{
    struct rpc_slice who;

    if (!rpc_skip(r, 12))
        return RPC_PARSE_NEED_MORE;
    return rpc_read_opaque(r, UINT32_MAX, &who);
}

/* nfs_space_limit4: both arms are as long. */
static enum rpc_parse skip_space_limit(struct rpc_reader *r)
{
    uint32_t how;

    if (!rpc_read_u32(r, &how))
        return RPC_PARSE_NEED_MORE;
    if (how != 1 && how != 2)
        return RPC_PARSE_GARBAGE;
    return more_unless(rpc_skip(r, 8));
}

static enum rpc_parse read_delegation(struct rpc_reader *r, struct nfs4_result *out)
{
    enum { NONE, READ, WRITE, NONE_EXT };
    struct nfs4_stateid ignored;
    enum rpc_parse result;
    uint32_t kind;
    uint32_t why;
    bool flag;

    if (!rpc_read_u32(r, &kind))
        return RPC_PARSE_NEED_MORE;
    if (kind == NONE || kind > NONE_EXT)
        return kind == NONE ? RPC_PARSE_OK : RPC_PARSE_GARBAGE;
    if (kind == NONE_EXT) {
        if (!rpc_read_u32(r, &why))
            return RPC_PARSE_NEED_MORE;
        /* Contention and want of resources tell whether the server will come back to it. */
        return why == 1 || why == 2 ? read_bool(r, &flag) : RPC_PARSE_OK;
    }
    out->delegated = true;
    if (!read_stateid(r, &ignored))
        return RPC_PARSE_NEED_MORE;
    result = read_bool(r, &flag);
    if (result == RPC_PARSE_OK && kind == WRITE)
        result = skip_space_limit(r);
    return result == RPC_PARSE_OK ? skip_ace(r) : result;
}

static enum rpc_parse read_open(struct rpc_reader *r, struct nfs4_result *out)
{
    uint64_t set;
    uint32_t flags;
    enum rpc_parse result;

    if (!read_stateid(r, &out->stateid))
        return RPC_PARSE_NEED_MORE;
    result = skip_change(r);
    if (result == RPC_PARSE_OK)
        result = more_unless(rpc_read_u32(r, &flags));
    if (result == RPC_PARSE_OK)
        result = read_bitmap(r, &set);
    if (result != RPC_PARSE_OK)
        return result;
    out->confirm = flags & OPEN_CONFIRM_DUE;
    return read_delegation(r, out);
}

/* ------------------------------------------------------------------------------------ clients */

/* nfs_impl_id4<1> */
static enum rpc_parse skip_implementation(struct rpc_reader *r)
{
    struct rpc_slice ignored;
    uint32_t count;
    enum rpc_parse result;

    if (!rpc_read_u32(r, &count))
        return RPC_PARSE_NEED_MORE;
    if (count != 1)
        return count == 0 ? RPC_PARSE_OK : RPC_PARSE_GARBAGE;
    result = rpc_read_opaque(r, SCOPE_MAX_BYTES, &ignored);
    if (result == RPC_PARSE_OK)
        result = rpc_read_opaque(r, SCOPE_MAX_BYTES, &ignored);
    return result == RPC_PARSE_OK ? more_unless(rpc_skip(r, 12)) : result;
}

static enum rpc_parse read_exchange_id(struct rpc_reader *r, struct nfs4_result *out)
{
    struct rpc_slice ignored;
    uint32_t flags;
    uint32_t protect;
    enum rpc_parse result;

    if (!rpc_read_u64(r, &out->client_id) || !rpc_read_u32(r, &out->sequence) ||
        !rpc_read_u32(r, &flags) || !rpc_read_u32(r, &protect))
        return RPC_PARSE_NEED_MORE;
    if (protect != 0) /* SP4_NONE, as it was asked for */
        return RPC_PARSE_GARBAGE;
    out->confirmed = flags & EXCHANGE_CONFIRMED;
    if (!rpc_skip(r, 8)) /* the server owner's minor id */
        return RPC_PARSE_NEED_MORE;
    result = rpc_read_opaque(r, SCOPE_MAX_BYTES, &ignored); /* its major id */
    if (result == RPC_PARSE_OK)
        result = rpc_read_opaque(r, SCOPE_MAX_BYTES, &ignored); /* the server's scope */
    return result == RPC_PARSE_OK ? skip_implementation(r) : result;
}

static enum rpc_parse read_channel(struct rpc_reader *r, struct nfs4_channel *out)
{
    uint32_t rdma;

    if (!rpc_skip(r, 4) || !rpc_read_u32(r, &out->max_request_bytes) ||
        !rpc_read_u32(r, &out->max_response_bytes) || !rpc_read_u32(r, &out->max_cached_bytes) ||
        !rpc_read_u32(r, &out->max_operations) || !rpc_read_u32(r, &out->max_requests) ||
        !rpc_read_u32(r, &rdma))
        return RPC_PARSE_NEED_MORE;
    if (rdma > 1)
        return RPC_PARSE_GARBAGE;
    return more_unless(rpc_skip(r, (uint64_t)4 * rdma));
}

static bool read_session(struct rpc_reader *r, uint8_t session[NFS4_SESSION_ID_BYTES])
{
    if (!rpc_reader_has(r, NFS4_SESSION_ID_BYTES))
        return false;
    memcpy(session, r->at, NFS4_SESSION_ID_BYTES);
    r->at += NFS4_SESSION_ID_BYTES;
    return true;
}

static enum rpc_parse read_create_session(struct rpc_reader *r, struct nfs4_result *out)
{
    struct nfs4_channel back;
    enum rpc_parse result;

    if (!read_session(r, out->session) || !rpc_read_u32(r, &out->sequence) || !rpc_skip(r, 4))
        return RPC_PARSE_NEED_MORE;
    result = read_channel(r, &out->fore);
    return result == RPC_PARSE_OK ? read_channel(r, &back) : result;
}

static enum rpc_parse read_sequence(struct rpc_reader *r, struct nfs4_result *out)
{
    uint32_t highest;

    if (!read_session(r, out->session) || !rpc_read_u32(r, &out->sequence) ||
        !rpc_read_u32(r, &out->slot) || !rpc_read_u32(r, &highest) ||
        !rpc_read_u32(r, &out->highest_slot) || !rpc_read_u32(r, &out->flags))
        return RPC_PARSE_NEED_MORE;
    return RPC_PARSE_OK;
}

static enum rpc_parse read_setclientid(struct rpc_reader *r, struct nfs4_result *out)
{
    return more_unless(rpc_read_u64(r, &out->client_id) && rpc_read_u64(r, &out->verifier));
}

/* -------------------------------------------------------------------------------- the compound */

/* What follows the status of an operation that failed. */
static enum rpc_parse read_failure(struct rpc_reader *r, uint32_t op, uint32_t status)
{
    struct rpc_slice ignored;
    uint64_t set;
    enum rpc_parse result;

    if (op == NFS4_OP_SETATTR)
        return read_bitmap(r, &set);
    if (op != NFS4_OP_SETCLIENTID || status != NFS4_STATUS_CLID_INUSE)
        return RPC_PARSE_OK;
    result = rpc_read_opaque(r, UINT32_MAX, &ignored); /* who uses it: network and address */
    return result == RPC_PARSE_OK ? rpc_read_opaque(r, UINT32_MAX, &ignored) : result;
}

static enum rpc_parse read_success(struct nfs4_results *results, uint32_t op,
                                   struct nfs4_result *out)
{
    struct rpc_reader *r = &results->r;
    uint64_t set;

    switch (op) {
    case NFS4_OP_GETFH:
        return rpc_read_opaque(r, NFS4_HANDLE_MAX_BYTES, &out->handle);
    case NFS4_OP_GETATTR:
        return read_attributes(r, &out->attributes);
    case NFS4_OP_ACCESS:
        return read_access(r, out);
    case NFS4_OP_READ:
        return read_read(results, out);
    case NFS4_OP_WRITE:
        return read_write(r, out);
    case NFS4_OP_COMMIT:
        return more_unless(rpc_read_u64(r, &out->verifier));
    case NFS4_OP_READDIR:
        return read_readdir(r, out);
    case NFS4_OP_REMOVE:
        return skip_change(r);
    case NFS4_OP_CREATE:
        return read_create(r);
    case NFS4_OP_SETATTR:
        return read_bitmap(r, &set);
    case NFS4_OP_OPEN:
        return read_open(r, out);
    case NFS4_OP_OPEN_CONFIRM:
    case NFS4_OP_CLOSE:
        return more_unless(read_stateid(r, &out->stateid));
    case NFS4_OP_SETCLIENTID:
        return read_setclientid(r, out);
    case NFS4_OP_EXCHANGE_ID:
        return read_exchange_id(r, out);
    case NFS4_OP_CREATE_SESSION:
        return read_create_session(r, out);
    case NFS4_OP_SEQUENCE:
        return read_sequence(r, out);
    default: /* the status is all there is */
        return RPC_PARSE_OK;
    }
}

enum rpc_parse nfs4_results_begin(struct nfs4_results *results, const uint8_t *reply,
                                  size_t available, uint64_t whole)
{
    struct rpc_slice tag;
    enum rpc_parse result;

    *results = (struct nfs4_results){.beyond_bytes = whole - available};
    rpc_reader_init(&results->r, reply, available);
    if (!rpc_read_u32(&results->r, &results->status))
        return RPC_PARSE_NEED_MORE;
    result = rpc_read_opaque(&results->r, NFS4_TAG_MAX_BYTES, &tag);
    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_read_u32(&results->r, &results->left))
        return RPC_PARSE_NEED_MORE;
    return results->left <= NFS4_OPS_MAX ? RPC_PARSE_OK : RPC_PARSE_GARBAGE;
}

enum rpc_parse nfs4_results_next(struct nfs4_results *results, uint32_t op, struct nfs4_result *out)
{
    uint32_t found;

    memset(out, 0, offsetof(struct nfs4_result, attributes));
    out->attributes.present = 0;
    if (results->left == 0)
        return RPC_PARSE_NOT_EXPECTED;
    if (results->failed || results->cut) /* nothing comes behind these */
        return RPC_PARSE_GARBAGE;
    if (!rpc_read_u32(&results->r, &found) || !rpc_read_u32(&results->r, &out->status))
        return RPC_PARSE_NEED_MORE;
    results->left--;
    results->failed = out->status != NFS4_STATUS_OK;
    if (results->failed && out->status != results->status) /* a compound fails as its last one */
        return RPC_PARSE_GARBAGE;
    if (found == NFS4_STATUS_OP_ILLEGAL && out->status == NFS4_STATUS_OP_ILLEGAL)
        return RPC_PARSE_OK;
    if (found != op)
        return RPC_PARSE_GARBAGE;
    if (results->failed)
        return read_failure(&results->r, op, out->status);
    return read_success(results, op, out);
}

enum rpc_parse nfs4_results_end(const struct nfs4_results *results)
{
    if (results->left > 0 || rpc_reader_left(&results->r) > 0 ||
        (results->beyond_bytes > 0 && !results->cut))
        return RPC_PARSE_GARBAGE;
    /* Only a compound that was refused as a whole fails without a result that did. */
    return results->failed || results->status == NFS4_STATUS_OK ? RPC_PARSE_OK
                                                                : RPC_PARSE_NOT_EXPECTED;
}

/* -------------------------------------------------------------------------------------- names */

const char *nfs4_status_name(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *name;
    } names[] = {
        {NFS4_STATUS_OK, "OK"},
        {NFS4_STATUS_NOENT, "NOENT"},
        {NFS4_STATUS_IO, "IO"},
        {NFS4_STATUS_ACCESS, "ACCESS"},
        {NFS4_STATUS_EXIST, "EXIST"},
        {NFS4_STATUS_NOTDIR, "NOTDIR"},
        {NFS4_STATUS_ISDIR, "ISDIR"},
        {NFS4_STATUS_INVAL, "INVAL"},
        {NFS4_STATUS_NOSPC, "NOSPC"},
        {NFS4_STATUS_ROFS, "ROFS"},
        {NFS4_STATUS_STALE, "STALE"},
        {NFS4_STATUS_BADHANDLE, "BADHANDLE"},
        {NFS4_STATUS_NOTSUPP, "NOTSUPP"},
        {NFS4_STATUS_TOOSMALL, "TOOSMALL"},
        {NFS4_STATUS_SERVERFAULT, "SERVERFAULT"},
        {NFS4_STATUS_DELAY, "DELAY"},
        {NFS4_STATUS_EXPIRED, "EXPIRED"},
        {NFS4_STATUS_LOCKED, "LOCKED"},
        {NFS4_STATUS_GRACE, "GRACE"},
        {NFS4_STATUS_FHEXPIRED, "FHEXPIRED"},
        {NFS4_STATUS_WRONGSEC, "WRONGSEC"},
        {NFS4_STATUS_CLID_INUSE, "CLID_INUSE"},
        {NFS4_STATUS_RESOURCE, "RESOURCE"},
        {NFS4_STATUS_MOVED, "MOVED"},
        {NFS4_STATUS_NOFILEHANDLE, "NOFILEHANDLE"},
        {NFS4_STATUS_MINOR_VERS_MISMATCH, "MINOR_VERS_MISMATCH"},
        {NFS4_STATUS_STALE_CLIENTID, "STALE_CLIENTID"},
        {NFS4_STATUS_STALE_STATEID, "STALE_STATEID"},
        {NFS4_STATUS_OLD_STATEID, "OLD_STATEID"},
        {NFS4_STATUS_BAD_STATEID, "BAD_STATEID"},
        {NFS4_STATUS_BAD_SEQID, "BAD_SEQID"},
        {NFS4_STATUS_BADXDR, "BADXDR"},
        {NFS4_STATUS_OP_ILLEGAL, "OP_ILLEGAL"},
        {NFS4_STATUS_BADSESSION, "BADSESSION"},
        {NFS4_STATUS_BADSLOT, "BADSLOT"},
        {NFS4_STATUS_COMPLETE_ALREADY, "COMPLETE_ALREADY"},
        {NFS4_STATUS_CONN_NOT_BOUND_TO_SESSION, "CONN_NOT_BOUND_TO_SESSION"},
        {NFS4_STATUS_SEQ_MISORDERED, "SEQ_MISORDERED"},
        {NFS4_STATUS_REQ_TOO_BIG, "REQ_TOO_BIG"},
        {NFS4_STATUS_REP_TOO_BIG, "REP_TOO_BIG"},
        {NFS4_STATUS_RETRY_UNCACHED_REP, "RETRY_UNCACHED_REP"},
        {NFS4_STATUS_TOO_MANY_OPS, "TOO_MANY_OPS"},
        {NFS4_STATUS_DEADSESSION, "DEADSESSION"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].status == status)
            return names[i].name;
    }
    return NULL;
}
