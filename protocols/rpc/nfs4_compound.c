/* SPDX-License-Identifier: Apache-2.0 */
/* COMPOUND calls: see nfs4_compound.h.
 *
 * Each operation's arguments are described in one string (`shape`), one letter per element; what
 * can't be said with a fixed layout has a capital letter and a function of its own:
 *
 *     w  4 bytes (integer, bool, enum)       o  opaque or string, length first
 *     d  8 bytes (hyper, clientid, verifier) m  array of words (bitmap4 and the like)
 *     t  12 bytes (nfstime4)                 S  array of stateids
 *     s  16 bytes (stateid, sessionid,       E  array of device_error4
 *        deviceid)                           X  bool, then d when true;  Z  bool, then t when true
 *
 * Definitions: RFC 7531 (3 to 39), RFC 5662 (40 to 58), RFC 7863 (59 to 71), RFC 8276 (72 to 75).
 */
#include "protocols/rpc/nfs4_compound.h"
#include "protocols/rpc/rpc_message.h"

/* Properties of an operation. */
#define READS    0x01 /* moves data to the client */
#define WRITES   0x02 /* moves data to the server, or makes it move there */
#define SEQID    0x04 /* advances an owner's sequence (minor version 0) */
#define ONCE     0x08 /* executing it twice is not the same as once */
#define NO_DELAY 0x10 /* minor version 0: a client is not prepared for DELAY around it */
#define MOVES_FH 0x20 /* makes something else the current file handle */

static const struct op_entry {
    const char *name;
    const char *shape;
    uint8_t flags;
} ops[NFS4_OP_END] = {
    [NFS4_OP_ACCESS] = {"ACCESS", "w", 0},
    [NFS4_OP_CLOSE] = {"CLOSE", "ws", SEQID | ONCE},
    [NFS4_OP_COMMIT] = {"COMMIT", "dw", WRITES},
    [NFS4_OP_CREATE] = {"CREATE", "Tomo", ONCE | MOVES_FH},
    [NFS4_OP_DELEGPURGE] = {"DELEGPURGE", "d", ONCE},
    [NFS4_OP_DELEGRETURN] = {"DELEGRETURN", "s", ONCE},
    [NFS4_OP_GETATTR] = {"GETATTR", "m", 0},
    [NFS4_OP_GETFH] = {"GETFH", "", 0},
    [NFS4_OP_LINK] = {"LINK", "o", ONCE},
    [NFS4_OP_LOCK] = {"LOCK", "wwddL", SEQID | ONCE},
    [NFS4_OP_LOCKT] = {"LOCKT", "wdddo", 0},
    [NFS4_OP_LOCKU] = {"LOCKU", "wwsdd", SEQID | ONCE},
    [NFS4_OP_LOOKUP] = {"LOOKUP", "o", MOVES_FH},
    [NFS4_OP_LOOKUPP] = {"LOOKUPP", "", MOVES_FH},
    [NFS4_OP_NVERIFY] = {"NVERIFY", "mo", 0},
    [NFS4_OP_OPEN] = {"OPEN", "wwwdoOC", SEQID | ONCE | MOVES_FH},
    [NFS4_OP_OPENATTR] = {"OPENATTR", "w", ONCE | MOVES_FH},
    [NFS4_OP_OPEN_CONFIRM] = {"OPEN_CONFIRM", "sw", SEQID | ONCE},
    [NFS4_OP_OPEN_DOWNGRADE] = {"OPEN_DOWNGRADE", "swww", SEQID | ONCE},
    [NFS4_OP_PUTFH] = {"PUTFH", "o", 0},
    [NFS4_OP_PUTPUBFH] = {"PUTPUBFH", "", 0},
    [NFS4_OP_PUTROOTFH] = {"PUTROOTFH", "", 0},
    [NFS4_OP_READ] = {"READ", "sdw", READS},
    [NFS4_OP_READDIR] = {"READDIR", "ddwwm", 0},
    [NFS4_OP_READLINK] = {"READLINK", "", 0},
    [NFS4_OP_REMOVE] = {"REMOVE", "o", ONCE},
    [NFS4_OP_RENAME] = {"RENAME", "oo", ONCE},
    [NFS4_OP_RENEW] = {"RENEW", "d", NO_DELAY},
    [NFS4_OP_RESTOREFH] = {"RESTOREFH", "", 0},
    [NFS4_OP_SAVEFH] = {"SAVEFH", "", 0},
    [NFS4_OP_SECINFO] = {"SECINFO", "o", MOVES_FH},
    [NFS4_OP_SETATTR] = {"SETATTR", "smo", ONCE},
    [NFS4_OP_SETCLIENTID] = {"SETCLIENTID", "dowoow", ONCE | NO_DELAY},
    [NFS4_OP_SETCLIENTID_CONFIRM] = {"SETCLIENTID_CONFIRM", "dd", ONCE | NO_DELAY},
    [NFS4_OP_VERIFY] = {"VERIFY", "mo", 0},
    [NFS4_OP_WRITE] = {"WRITE", "sdwo", WRITES},
    [NFS4_OP_RELEASE_LOCKOWNER] = {"RELEASE_LOCKOWNER", "do", ONCE | NO_DELAY},
    [NFS4_OP_BACKCHANNEL_CTL] = {"BACKCHANNEL_CTL", "wK", ONCE},
    [NFS4_OP_BIND_CONN_TO_SESSION] = {"BIND_CONN_TO_SESSION", "sww", ONCE},
    [NFS4_OP_EXCHANGE_ID] = {"EXCHANGE_ID", "dowPI", ONCE},
    [NFS4_OP_CREATE_SESSION] = {"CREATE_SESSION", "dwwwwwwwwmwwwwwwmwK", ONCE},
    [NFS4_OP_DESTROY_SESSION] = {"DESTROY_SESSION", "s", ONCE},
    [NFS4_OP_FREE_STATEID] = {"FREE_STATEID", "s", ONCE},
    [NFS4_OP_GET_DIR_DELEGATION] = {"GET_DIR_DELEGATION", "wmttmm", ONCE},
    [NFS4_OP_GETDEVICEINFO] = {"GETDEVICEINFO", "swwm", 0},
    [NFS4_OP_GETDEVICELIST] = {"GETDEVICELIST", "wwdd", 0},
    [NFS4_OP_LAYOUTCOMMIT] = {"LAYOUTCOMMIT", "ddwsXZwo", ONCE},
    [NFS4_OP_LAYOUTGET] = {"LAYOUTGET", "wwwdddsw", ONCE},
    [NFS4_OP_LAYOUTRETURN] = {"LAYOUTRETURN", "wwwR", ONCE},
    [NFS4_OP_SECINFO_NO_NAME] = {"SECINFO_NO_NAME", "w", MOVES_FH},
    [NFS4_OP_SEQUENCE] = {"SEQUENCE", "swwww", 0},
    [NFS4_OP_SET_SSV] = {"SET_SSV", "oo", ONCE},
    [NFS4_OP_TEST_STATEID] = {"TEST_STATEID", "S", 0},
    [NFS4_OP_WANT_DELEGATION] = {"WANT_DELEGATION", "wD", ONCE},
    [NFS4_OP_DESTROY_CLIENTID] = {"DESTROY_CLIENTID", "d", ONCE},
    [NFS4_OP_RECLAIM_COMPLETE] = {"RECLAIM_COMPLETE", "w", ONCE},
    [NFS4_OP_ALLOCATE] = {"ALLOCATE", "sdd", WRITES},
    [NFS4_OP_COPY] = {"COPY", "ssdddwwA", WRITES | ONCE},
    [NFS4_OP_COPY_NOTIFY] = {"COPY_NOTIFY", "sN", ONCE},
    [NFS4_OP_DEALLOCATE] = {"DEALLOCATE", "sdd", WRITES},
    [NFS4_OP_IO_ADVISE] = {"IO_ADVISE", "sddm", 0},
    [NFS4_OP_LAYOUTERROR] = {"LAYOUTERROR", "ddsE", ONCE},
    [NFS4_OP_LAYOUTSTATS] = {"LAYOUTSTATS", "ddsddddswo", ONCE},
    [NFS4_OP_OFFLOAD_CANCEL] = {"OFFLOAD_CANCEL", "s", ONCE},
    [NFS4_OP_OFFLOAD_STATUS] = {"OFFLOAD_STATUS", "s", 0},
    [NFS4_OP_READ_PLUS] = {"READ_PLUS", "sdw", READS},
    [NFS4_OP_SEEK] = {"SEEK", "sdw", 0},
    [NFS4_OP_WRITE_SAME] = {"WRITE_SAME", "swddddwdo", WRITES},
    [NFS4_OP_CLONE] = {"CLONE", "ssddd", WRITES | ONCE},
    [NFS4_OP_GETXATTR] = {"GETXATTR", "o", 0},
    [NFS4_OP_SETXATTR] = {"SETXATTR", "woo", ONCE},
    [NFS4_OP_LISTXATTRS] = {"LISTXATTRS", "dw", 0},
    [NFS4_OP_REMOVEXATTR] = {"REMOVEXATTR", "o", ONCE},
};

const char *nfs4_op_name(uint32_t op)
{
    return op < NFS4_OP_END ? ops[op].name : NULL;
}

/* -------------------------------------------------------------------------- stepping over
 * arguments */

#define STATEID_BYTES      16
#define DEVICE_ERROR_BYTES 24 /* deviceid, status, operation */

struct walk {
    struct rpc_reader r;
    struct rpc_slice current; /* the current file handle, data NULL when unknown */
    struct rpc_slice saved;
    bool current_exact; /* `current` is the handle itself, not one above it */
    bool saved_exact;
    bool current_root;
    bool saved_root;
    bool open_keeps_handle; /* the OPEN being stepped over has a claim on the current handle */
    bool data_seen;         /* an operation that moves data was seen */
};

static enum rpc_parse step_shape(struct walk *w, const char *shape);

static enum rpc_parse step_array(struct walk *w, uint32_t element_bytes)
{
    if (!rpc_reader_has(&w->r, 4))
        return RPC_PARSE_NEED_MORE;
    uint64_t bytes = 4 + (uint64_t)rpc_load_u32(w->r.at) * element_bytes;
    return rpc_skip(&w->r, bytes) ? RPC_PARSE_OK : RPC_PARSE_NEED_MORE;
}

static enum rpc_parse step_opaque(struct walk *w)
{
    struct rpc_slice ignored;

    return rpc_read_opaque(&w->r, UINT32_MAX, &ignored);
}

/* An array of elements of one shape, each at least 4 bytes long. */
static enum rpc_parse step_shapes(struct walk *w, const char *shape)
{
    uint32_t count;

    if (!rpc_read_u32(&w->r, &count))
        return RPC_PARSE_NEED_MORE;
    for (uint32_t i = 0; i < count; i++) {
        enum rpc_parse result = step_shape(w, shape);
        if (result != RPC_PARSE_OK)
            return result;
    }
    return RPC_PARSE_OK;
}

/* A union: its discriminant picks the arm's shape; NULL is an undefined arm. */
static enum rpc_parse step_union(struct walk *w, const char *const *arms, uint32_t arms_count)
{
    uint32_t arm;

    if (!rpc_read_u32(&w->r, &arm))
        return RPC_PARSE_NEED_MORE;
    if (arm >= arms_count || !arms[arm])
        return RPC_PARSE_GARBAGE;
    return step_shape(w, arms[arm]);
}

#define STEP_UNION(w, ...)                                                                         \
    step_union((w), (const char *const[]){__VA_ARGS__},                                            \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* createtype4: links carry their text, devices their numbers, all others nothing. */
static enum rpc_parse step_createtype(struct walk *w)
{
    uint32_t type;

    if (!rpc_read_u32(&w->r, &type))
        return RPC_PARSE_NEED_MORE;
    if (type == 5)
        return step_opaque(w);
    if (type == 3 || type == 4)
        return rpc_skip(&w->r, 8) ? RPC_PARSE_OK : RPC_PARSE_NEED_MORE;
    return RPC_PARSE_OK;
}

/* openflag4: nothing, or how to create. */
static enum rpc_parse step_openflag(struct walk *w)
{
    uint32_t creates;

    if (!rpc_read_u32(&w->r, &creates))
        return RPC_PARSE_NEED_MORE;
    if (creates != 1)
        return RPC_PARSE_OK;
    return STEP_UNION(w, "mo", "mo", "d", "dmo");
}

/* open_claim4; the claims without a name are on the current file handle. */
static enum rpc_parse step_claim(struct walk *w)
{
    if (rpc_reader_has(&w->r, 4)) {
        uint32_t claim = rpc_load_u32(w->r.at);
        w->open_keeps_handle = claim == 1 || claim >= 4;
    }
    return STEP_UNION(w, "o", "w", "so", "o", "", "s", "");
}

/* callback_sec_parms4: by flavour NONE, SYS (stamp, machine, uid, gid, gids), RPCSEC_GSS. */
static enum rpc_parse step_callback_security(struct walk *w)
{
    uint32_t count;
    enum rpc_parse result = RPC_PARSE_OK;

    if (!rpc_read_u32(&w->r, &count))
        return RPC_PARSE_NEED_MORE;
    for (uint32_t i = 0; i < count && result == RPC_PARSE_OK; i++)
        result = STEP_UNION(w, "", "wowwm", NULL, NULL, NULL, NULL, "woo");
    return result;
}

/* state_protect4_a: none, machine credential (two op bitmaps), SSV. */
static enum rpc_parse step_state_protect(struct walk *w)
{
    uint32_t how;
    enum rpc_parse result;

    if (!rpc_read_u32(&w->r, &how))
        return RPC_PARSE_NEED_MORE;
    if (how > 2)
        return RPC_PARSE_GARBAGE;
    if (how == 0)
        return RPC_PARSE_OK;
    result = step_shape(w, "mm");
    if (result != RPC_PARSE_OK || how == 1)
        return result;
    result = step_shapes(w, "o"); /* hash algorithms */
    if (result == RPC_PARSE_OK)
        result = step_shapes(w, "o"); /* encryption algorithms */
    return result == RPC_PARSE_OK ? step_shape(w, "ww") : result;
}

static enum rpc_parse step_optional(struct walk *w, const char *shape)
{
    uint32_t present;

    if (!rpc_read_u32(&w->r, &present))
        return RPC_PARSE_NEED_MORE;
    return present ? step_shape(w, shape) : RPC_PARSE_OK;
}

static enum rpc_parse step_special(struct walk *w, char element)
{
    switch (element) {
    case 'T':
        return step_createtype(w);
    case 'L': /* locker4: an existing lock owner or a new one */
        return STEP_UNION(w, "sw", "wswdo");
    case 'O':
        return step_openflag(w);
    case 'C':
        return step_claim(w);
    case 'K':
        return step_callback_security(w);
    case 'P':
        return step_state_protect(w);
    case 'I': /* nfs_impl_id4<1>: domain, name, date */
        return step_shapes(w, "oot");
    case 'R': /* layoutreturn4: FILE carries a range, the others nothing */
        return STEP_UNION(w, NULL, "ddso", "", "");
    case 'D': /* deleg_claim4: PREVIOUS, FH, DELEG_PREV_FH */
        return STEP_UNION(w, NULL, "w", NULL, NULL, "", NULL, "");
    case 'N': /* netloc4: name, URL, network address */
        return STEP_UNION(w, NULL, "o", "o", "oo");
    case 'A':
        return step_shapes(w, "N");
    case 'S':
        return step_array(w, STATEID_BYTES);
    case 'E':
        return step_array(w, DEVICE_ERROR_BYTES);
    case 'X':
        return step_optional(w, "d");
    case 'Z':
        return step_optional(w, "t");
    default:
        __builtin_unreachable(); /* the table above has no other letter; a test walks it all */
    }
}

static enum rpc_parse step_shape(struct walk *w, const char *shape)
{
    for (; *shape; shape++) {
        enum rpc_parse result = RPC_PARSE_OK;
        uint32_t fixed = 0;

        switch (*shape) {
        case 'w':
            fixed = 4;
            break;
        case 'd':
            fixed = 8;
            break;
        case 't':
            fixed = 12;
            break;
        case 's':
            fixed = 16;
            break;
        case 'o':
            result = step_opaque(w);
            break;
        case 'm':
            result = step_array(w, 4);
            break;
        default:
            result = step_special(w, *shape);
            break;
        }
        if (fixed > 0 && !rpc_skip(&w->r, fixed))
            return RPC_PARSE_NEED_MORE;
        if (result != RPC_PARSE_OK)
            return result;
    }
    return RPC_PARSE_OK;
}

/* ------------------------------------------------------------------------------ what they amount
 * to */

static void set_current(struct walk *w, struct rpc_slice handle, bool root)
{
    w->current = handle;
    w->current_exact = true;
    w->current_root = root;
}

static void track_handle(struct walk *w, uint32_t op, struct rpc_slice handle)
{
    switch (op) {
    case NFS4_OP_PUTFH:
        set_current(w, handle, false);
        break;
    case NFS4_OP_PUTROOTFH:
        set_current(w, (struct rpc_slice){NULL, 0}, true);
        break;
    case NFS4_OP_PUTPUBFH:
        set_current(w, (struct rpc_slice){NULL, 0}, false);
        break;
    case NFS4_OP_SAVEFH:
        w->saved = w->current;
        w->saved_exact = w->current_exact;
        w->saved_root = w->current_root;
        break;
    case NFS4_OP_RESTOREFH:
        w->current = w->saved;
        w->current_exact = w->saved_exact;
        w->current_root = w->saved_root;
        break;
    default:
        if ((ops[op].flags & MOVES_FH) && !(op == NFS4_OP_OPEN && w->open_keeps_handle))
            w->current_exact = false;
        break;
    }
}

static void show_handle(const struct walk *w, struct nfs4_compound *out)
{
    out->handle = w->current;
    out->handle_exact = w->current_exact && w->current.data != NULL;
    out->root = w->current_root;
}

/* An operation that moves data at `args`, whose first `fixed` bytes are there. */
static void charge_data(struct walk *w, uint32_t op, const uint8_t *args, struct nfs4_compound *out)
{
    if (!w->data_seen) {
        w->data_seen = true;
        out->class = (ops[op].flags & READS) ? NFS_CLASS_READ : NFS_CLASS_WRITE;
        show_handle(w, out);
        if (op == NFS4_OP_READ || op == NFS4_OP_READ_PLUS || op == NFS4_OP_WRITE)
            out->offset = rpc_load_u64(args + STATEID_BYTES);
    }
}

/* Bytes asked for, where the arguments say so; false while the words that say it are not there. */
static bool charge_op(struct walk *w, uint32_t op, const uint8_t *args, size_t left,
                      struct nfs4_compound *out)
{
    switch (op) {
    case NFS4_OP_READ:
    case NFS4_OP_READ_PLUS:
        if (left < STATEID_BYTES + 12)
            return false;
        out->read_bytes += rpc_load_u32(args + STATEID_BYTES + 8);
        break;
    case NFS4_OP_WRITE:
        if (left < STATEID_BYTES + 16)
            return false;
        out->write_bytes += rpc_load_u32(args + STATEID_BYTES + 12);
        break;
    case NFS4_OP_READDIR: /* maxcount */
        if (left < 24)
            return false;
        out->read_bytes += rpc_load_u32(args + 20);
        break;
    case NFS4_OP_LISTXATTRS: /* maxcount */
        if (left < 12)
            return false;
        out->read_bytes += rpc_load_u32(args + 8);
        break;
    case NFS4_OP_WRITE_SAME: /* the pattern's length */
        if (left < STATEID_BYTES + 52)
            return false;
        out->write_bytes += rpc_load_u32(args + STATEID_BYTES + 48);
        break;
    default:
        return false;
    }
    if (ops[op].flags & (READS | WRITES))
        charge_data(w, op, args, out);
    return true;
}

static void note_op(struct nfs4_compound *out, uint32_t op)
{
    if (out->ops_seen < NFS4_OPS_KEPT)
        out->ops[out->ops_seen] = (uint8_t)op;
    if (out->ops_seen == 0)
        out->leading_sequence = op == NFS4_OP_SEQUENCE;
    out->ops_seen++;
    if (ops[op].flags & SEQID)
        out->has_seqid = true;
    if (ops[op].flags & ONCE)
        out->idempotent = false;
    if (ops[op].flags & NO_DELAY)
        out->no_delay = true;
}

/* One operation: its number is read, what follows is at the reader. */
static enum rpc_parse walk_op(struct walk *w, uint32_t op, struct nfs4_compound *out)
{
    const uint8_t *args = w->r.at;
    struct rpc_slice handle = {NULL, 0};
    enum rpc_parse result;
    bool charged = charge_op(w, op, args, rpc_reader_left(&w->r), out);

    if (op == NFS4_OP_PUTFH)
        result = rpc_read_opaque(&w->r, NFS4_HANDLE_MAX_BYTES, &handle);
    else
        result = step_shape(w, ops[op].shape);
    if (result == RPC_PARSE_OK || (result == RPC_PARSE_NEED_MORE && charged))
        note_op(out, op);
    if (result != RPC_PARSE_OK)
        return result;
    if (!charged && (ops[op].flags & (READS | WRITES)))
        charge_data(w, op, args, out);
    if (op == NFS4_OP_SETXATTR) {
        uint32_t key_bytes = rpc_load_u32(args + 4);
        out->write_bytes += rpc_load_u32(args + 8 + rpc_padded(key_bytes));
    }
    track_handle(w, op, handle);
    return RPC_PARSE_OK;
}

static enum rpc_parse read_compound_header(struct rpc_reader *r, struct nfs4_compound *out)
{
    enum rpc_parse result = rpc_read_opaque(r, NFS4_TAG_MAX_BYTES, &out->tag);

    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_read_u32(r, &out->minorversion) || !rpc_read_u32(r, &out->ops_claimed))
        return RPC_PARSE_NEED_MORE;
    return out->ops_claimed > NFS4_OPS_MAX ? RPC_PARSE_GARBAGE : RPC_PARSE_OK;
}

static enum rpc_parse walk_ops(struct walk *w, struct nfs4_compound *out)
{
    for (uint32_t i = 0; i < out->ops_claimed; i++) {
        uint32_t op;
        if (!rpc_read_u32(&w->r, &op))
            return RPC_PARSE_NEED_MORE;
        if (op >= NFS4_OP_END || !ops[op].shape) {
            out->partial = true;
            out->stopped_op = op;
            return RPC_PARSE_OK;
        }
        enum rpc_parse result = walk_op(w, op, out);
        if (result != RPC_PARSE_OK) {
            out->stopped_op = op;
            return result;
        }
    }
    return RPC_PARSE_OK;
}

enum rpc_parse nfs4_parse_compound(const uint8_t *args, size_t len, struct nfs4_compound *out)
{
    struct walk w;
    enum rpc_parse result;

    memset(out, 0, sizeof *out);
    memset(&w, 0, sizeof w);
    out->idempotent = true;
    rpc_reader_init(&w.r, args, len);
    result = read_compound_header(&w.r, out);
    if (result == RPC_PARSE_OK)
        result = walk_ops(&w, out);
    if (result != RPC_PARSE_OK)
        out->partial = true;
    if (result == RPC_PARSE_NEED_MORE)
        out->need_bytes = len + w.r.missing;
    if (out->partial)
        out->idempotent = false;
    if (!w.data_seen)
        show_handle(&w, out);
    return result;
}

/* ------------------------------------------------------------------------------------------
 * replies */

enum rpc_parse nfs4_parse_reply(const uint8_t *results, size_t len, struct nfs4_reply *out)
{
    struct rpc_reader r;
    struct rpc_slice tag;
    enum rpc_parse result;

    memset(out, 0, sizeof *out);
    rpc_reader_init(&r, results, len);
    if (!rpc_read_u32(&r, &out->status))
        return RPC_PARSE_NEED_MORE;
    result = rpc_read_opaque(&r, NFS4_TAG_MAX_BYTES, &tag);
    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_read_u32(&r, &out->ops))
        return RPC_PARSE_NEED_MORE;
    if (out->ops > 0 &&
        (!rpc_read_u32(&r, &out->first_op) || !rpc_read_u32(&r, &out->first_status)))
        return RPC_PARSE_NEED_MORE;
    return RPC_PARSE_OK;
}

static bool delay_is_safe(const struct nfs4_compound *call)
{
    if (call->ops_seen == 0)
        return false;
    if (call->minorversion >= 1)
        return call->leading_sequence;
    if (call->partial || call->has_seqid || call->no_delay)
        return false;
    return call->ops[0] == NFS4_OP_PUTFH || call->ops[0] == NFS4_OP_PUTROOTFH ||
           call->ops[0] == NFS4_OP_PUTPUBFH;
}

size_t nfs4_write_delay(uint8_t *buf, size_t size, uint32_t xid, const struct nfs4_compound *call)
{
    struct rpc_writer w;

    if (!delay_is_safe(call))
        return 0;
    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    rpc_put_u32(&w, NFS4_STATUS_DELAY);
    rpc_put_opaque(&w, call->tag.data, call->tag.len);
    rpc_put_u32(&w, 1);
    rpc_put_u32(&w, call->ops[0]);
    rpc_put_u32(&w, NFS4_STATUS_DELAY);
    return rpc_writer_finish(&w, 0);
}
