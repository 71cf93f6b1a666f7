/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 calls and replies, peeked at: see nfs3.h. One table says of every procedure what it is
 * called, what it does, and which words stand in front of what is needed. */
#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/rpc_message.h"

#define FATTR3_BYTES       84 /* RFC 1813 section 2.6, fattr3 */
#define FATTR3_SIZE_OFFSET 20 /* type, mode, nlink, uid, gid, then size */
#define WCC_ATTR_BYTES     24

/* What follows the status of a failed reply (RFC 1813 section 3.3). */
enum failure_shape {
    FAILS_NEVER,
    FAILS_VOID,
    FAILS_ATTR,     /* post_op_attr */
    FAILS_WCC,      /* wcc_data */
    FAILS_WCC_WCC,  /* RENAME: of both directories */
    FAILS_ATTR_WCC, /* LINK: of the file and the directory */
};

static const struct proc_entry {
    const char *name;
    enum nfs_class class;
    bool idempotent;
    bool has_name; /* a name follows the handle */
    enum failure_shape failure;
} procs[NFS3_PROCS] = {
    [NFS3_PROC_NULL] = {"NULL", NFS_CLASS_METADATA, true, false, FAILS_NEVER},
    [NFS3_PROC_GETATTR] = {"GETATTR", NFS_CLASS_METADATA, true, false, FAILS_VOID},
    [NFS3_PROC_SETATTR] = {"SETATTR", NFS_CLASS_METADATA, false, false, FAILS_WCC},
    [NFS3_PROC_LOOKUP] = {"LOOKUP", NFS_CLASS_METADATA, true, true, FAILS_ATTR},
    [NFS3_PROC_ACCESS] = {"ACCESS", NFS_CLASS_METADATA, true, false, FAILS_ATTR},
    [NFS3_PROC_READLINK] = {"READLINK", NFS_CLASS_METADATA, true, false, FAILS_ATTR},
    [NFS3_PROC_READ] = {"READ", NFS_CLASS_READ, true, false, FAILS_ATTR},
    [NFS3_PROC_WRITE] = {"WRITE", NFS_CLASS_WRITE, true, false, FAILS_WCC},
    [NFS3_PROC_CREATE] = {"CREATE", NFS_CLASS_METADATA, false, true, FAILS_WCC},
    [NFS3_PROC_MKDIR] = {"MKDIR", NFS_CLASS_METADATA, false, true, FAILS_WCC},
    [NFS3_PROC_SYMLINK] = {"SYMLINK", NFS_CLASS_METADATA, false, true, FAILS_WCC},
    [NFS3_PROC_MKNOD] = {"MKNOD", NFS_CLASS_METADATA, false, true, FAILS_WCC},
    [NFS3_PROC_REMOVE] = {"REMOVE", NFS_CLASS_METADATA, false, true, FAILS_WCC},
    [NFS3_PROC_RMDIR] = {"RMDIR", NFS_CLASS_METADATA, false, true, FAILS_WCC},
    [NFS3_PROC_RENAME] = {"RENAME", NFS_CLASS_METADATA, false, true, FAILS_WCC_WCC},
    [NFS3_PROC_LINK] = {"LINK", NFS_CLASS_METADATA, false, false, FAILS_ATTR_WCC},
    [NFS3_PROC_READDIR] = {"READDIR", NFS_CLASS_METADATA, true, false, FAILS_ATTR},
    [NFS3_PROC_READDIRPLUS] = {"READDIRPLUS", NFS_CLASS_METADATA, true, false, FAILS_ATTR},
    [NFS3_PROC_FSSTAT] = {"FSSTAT", NFS_CLASS_METADATA, true, false, FAILS_ATTR},
    [NFS3_PROC_FSINFO] = {"FSINFO", NFS_CLASS_METADATA, true, false, FAILS_ATTR},
    [NFS3_PROC_PATHCONF] = {"PATHCONF", NFS_CLASS_METADATA, true, false, FAILS_ATTR},
    [NFS3_PROC_COMMIT] = {"COMMIT", NFS_CLASS_WRITE, true, false, FAILS_WCC},
};

const char *nfs_class_name(enum nfs_class class)
{
    static const char *const names[] = {"metadata", "read", "write"};

    return names[class];
}

const char *nfs3_proc_name(uint32_t proc)
{
    return proc < NFS3_PROCS ? procs[proc].name : NULL;
}

enum nfs_class nfs3_proc_class(uint32_t proc)
{
    return proc < NFS3_PROCS ? procs[proc].class : NFS_CLASS_METADATA;
}

bool nfs3_proc_idempotent(uint32_t proc)
{
    return proc < NFS3_PROCS && procs[proc].idempotent;
}

/* --------------------------------------------------------------------------------------------
 * calls */

static enum rpc_parse parse_io(struct rpc_reader *r, const uint8_t *args, struct nfs3_call *out)
{
    bool writes = out->proc == NFS3_PROC_WRITE;

    if (!rpc_reader_has(r, writes ? 20 : 12))
        return RPC_PARSE_NEED_MORE;
    out->offset = rpc_load_u64(r->at);
    out->count = rpc_load_u32(r->at + 8);
    if (out->proc == NFS3_PROC_READ)
        out->cost_bytes = out->count;
    if (writes) {
        out->stable = rpc_load_u32(r->at + 12);
        out->data_bytes = rpc_load_u32(r->at + 16);
        out->data_offset = (uint32_t)(r->at + 20 - args);
        out->cost_bytes = out->data_bytes; /* what is really sent, whatever `count` claims */
    }
    return RPC_PARSE_OK;
}

static enum rpc_parse parse_readdir(struct rpc_reader *r, struct nfs3_call *out)
{
    bool plus = out->proc == NFS3_PROC_READDIRPLUS;

    if (!rpc_reader_has(r, plus ? 24 : 20))
        return RPC_PARSE_NEED_MORE;
    out->offset = rpc_load_u64(r->at);
    if (plus) {
        out->dircount = rpc_load_u32(r->at + 16);
        out->count = rpc_load_u32(r->at + 20);
    } else {
        out->count = rpc_load_u32(r->at + 16);
    }
    out->cost_bytes = out->count;
    return RPC_PARSE_OK;
}

enum rpc_parse nfs3_parse_call(uint32_t proc, const uint8_t *args, size_t len,
                               struct nfs3_call *out)
{
    struct rpc_reader r;
    enum rpc_parse result;

    memset(out, 0, sizeof *out);
    out->proc = proc;
    if (proc >= NFS3_PROCS)
        return RPC_PARSE_GARBAGE;
    if (proc == NFS3_PROC_NULL)
        return RPC_PARSE_OK;
    rpc_reader_init(&r, args, len);
    result = rpc_read_opaque(&r, NFS3_HANDLE_MAX_BYTES, &out->handle);
    if (result != RPC_PARSE_OK)
        return result;
    switch (proc) {
    case NFS3_PROC_READ:
    case NFS3_PROC_WRITE:
    case NFS3_PROC_COMMIT:
        return parse_io(&r, args, out);
    case NFS3_PROC_READDIR:
    case NFS3_PROC_READDIRPLUS:
        return parse_readdir(&r, out);
    case NFS3_PROC_ACCESS:
        return rpc_read_u32(&r, &out->access) ? RPC_PARSE_OK : RPC_PARSE_NEED_MORE;
    default:
        break;
    }
    if (procs[proc].has_name)
        return rpc_read_opaque(&r, NFS3_NAME_MAX_BYTES, &out->name);
    return RPC_PARSE_OK;
}

/* ------------------------------------------------------------------------------------------
 * replies */

/* post_op_attr; *size gets the file's size when the attributes are there. */
static enum rpc_parse skip_attributes(struct rpc_reader *r, uint64_t *size)
{
    uint32_t present;

    if (!rpc_read_u32(r, &present))
        return RPC_PARSE_NEED_MORE;
    if (present > 1)
        return RPC_PARSE_GARBAGE;
    if (!present)
        return RPC_PARSE_OK;
    if (!rpc_reader_has(r, FATTR3_BYTES))
        return RPC_PARSE_NEED_MORE;
    *size = rpc_load_u64(r->at + FATTR3_SIZE_OFFSET);
    r->at += FATTR3_BYTES;
    return RPC_PARSE_OK;
}

static enum rpc_parse skip_wcc(struct rpc_reader *r, uint64_t *size)
{
    uint32_t present;

    if (!rpc_read_u32(r, &present))
        return RPC_PARSE_NEED_MORE;
    if (present > 1)
        return RPC_PARSE_GARBAGE;
    if (present && !rpc_skip(r, WCC_ATTR_BYTES))
        return RPC_PARSE_NEED_MORE;
    return skip_attributes(r, size);
}

static enum rpc_parse parse_read_results(struct rpc_reader *r, const uint8_t *results,
                                         struct nfs3_reply *out)
{
    enum rpc_parse result = skip_attributes(r, &out->size_bytes);
    uint32_t eof;

    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_read_u32(r, &out->count) || !rpc_read_u32(r, &eof) ||
        !rpc_read_u32(r, &out->data_bytes))
        return RPC_PARSE_NEED_MORE;
    out->eof = eof != 0;
    out->data_offset = (uint32_t)(r->at - results);
    return RPC_PARSE_OK;
}

static enum rpc_parse parse_write_results(struct rpc_reader *r, struct nfs3_reply *out)
{
    enum rpc_parse result = skip_wcc(r, &out->size_bytes);

    if (result != RPC_PARSE_OK)
        return result;
    return rpc_read_u32(r, &out->count) ? RPC_PARSE_OK : RPC_PARSE_NEED_MORE;
}

static enum rpc_parse parse_access_results(struct rpc_reader *r, struct nfs3_reply *out)
{
    enum rpc_parse result = skip_attributes(r, &out->size_bytes);

    if (result != RPC_PARSE_OK)
        return result;
    return rpc_read_u32(r, &out->access) ? RPC_PARSE_OK : RPC_PARSE_NEED_MORE;
}

/* post_op_attr, rtmax, rtpref, rtmult, wtmax, ... */
static enum rpc_parse parse_fsinfo_results(struct rpc_reader *r, struct nfs3_reply *out)
{
    enum rpc_parse result = skip_attributes(r, &out->size_bytes);

    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_reader_has(r, 16))
        return RPC_PARSE_NEED_MORE;
    out->read_max_bytes = rpc_load_u32(r->at);
    out->write_max_bytes = rpc_load_u32(r->at + 12);
    return RPC_PARSE_OK;
}

static enum rpc_parse parse_lookup_results(struct rpc_reader *r, struct nfs3_reply *out)
{
    enum rpc_parse result = rpc_read_opaque(r, NFS3_HANDLE_MAX_BYTES, &out->handle);

    return result == RPC_PARSE_OK ? skip_attributes(r, &out->size_bytes) : result;
}

/* post_op_fh3, post_op_attr */
static enum rpc_parse parse_create_results(struct rpc_reader *r, struct nfs3_reply *out)
{
    uint32_t present;

    if (!rpc_read_u32(r, &present))
        return RPC_PARSE_NEED_MORE;
    if (present > 1)
        return RPC_PARSE_GARBAGE;
    if (present)
        return parse_lookup_results(r, out);
    return skip_attributes(r, &out->size_bytes);
}

enum rpc_parse nfs3_parse_reply(uint32_t proc, const uint8_t *results, size_t len,
                                struct nfs3_reply *out)
{
    struct rpc_reader r;

    memset(out, 0, sizeof *out);
    if (proc >= NFS3_PROCS)
        return RPC_PARSE_GARBAGE;
    if (proc == NFS3_PROC_NULL)
        return RPC_PARSE_OK;
    rpc_reader_init(&r, results, len);
    if (!rpc_read_u32(&r, &out->status))
        return RPC_PARSE_NEED_MORE;
    if (out->status != NFS3_STATUS_OK)
        return RPC_PARSE_OK;
    switch (proc) {
    case NFS3_PROC_GETATTR:
        if (!rpc_reader_has(&r, FATTR3_BYTES))
            return RPC_PARSE_NEED_MORE;
        out->size_bytes = rpc_load_u64(r.at + FATTR3_SIZE_OFFSET);
        return RPC_PARSE_OK;
    case NFS3_PROC_READ:
        return parse_read_results(&r, results, out);
    case NFS3_PROC_WRITE:
        return parse_write_results(&r, out);
    case NFS3_PROC_LOOKUP:
        return parse_lookup_results(&r, out);
    case NFS3_PROC_ACCESS:
        return parse_access_results(&r, out);
    case NFS3_PROC_FSINFO:
        return parse_fsinfo_results(&r, out);
    case NFS3_PROC_CREATE:
    case NFS3_PROC_MKDIR:
    case NFS3_PROC_SYMLINK:
    case NFS3_PROC_MKNOD:
        return parse_create_results(&r, out);
    default:
        return RPC_PARSE_OK;
    }
}

/* -----------------------------------------------------------------------------------------
 * failures */

size_t nfs3_write_failure(uint8_t *buf, size_t size, uint32_t xid, uint32_t proc,
                          enum nfs3_status status)
{
    /* Words that say "absent": 1 for a post_op_attr, 2 for a wcc_data. */
    static const uint8_t absent_words[] = {
        [FAILS_NEVER] = 0, [FAILS_VOID] = 0,    [FAILS_ATTR] = 1,
        [FAILS_WCC] = 2,   [FAILS_WCC_WCC] = 4, [FAILS_ATTR_WCC] = 3,
    };
    struct rpc_writer w;

    if (proc >= NFS3_PROCS || procs[proc].failure == FAILS_NEVER || status == NFS3_STATUS_OK)
        return 0;
    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    rpc_put_u32(&w, status);
    for (unsigned i = 0; i < absent_words[procs[proc].failure]; i++)
        rpc_put_u32(&w, 0);
    return rpc_writer_finish(&w, 0);
}
