/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 calls of a client: see nfs3_client.h. Argument layouts are RFC 1813 section 3.3. */
#include "protocols/rpc/nfs3_client.h"

static void start(struct rpc_writer *w, uint8_t *buf, size_t size, const struct nfs3_client *c,
                  uint32_t xid, enum nfs3_proc proc)
{
    rpc_writer_init(w, buf, size);
    rpc_write_call(w, xid, NFS_PROG, NFS3_VERS, proc, &c->identity);
}

static void put_handle(struct rpc_writer *w, struct rpc_slice handle)
{
    if (handle.len > NFS3_HANDLE_MAX_BYTES)
        w->overflow = true;
    rpc_put_opaque(w, handle.data, handle.len);
}

static void put_name(struct rpc_writer *w, const char *name)
{
    size_t bytes = strnlen(name, NFS3_NAME_MAX_BYTES + 1);

    if (bytes > NFS3_NAME_MAX_BYTES)
        w->overflow = true;
    rpc_put_opaque(w, name, (uint32_t)bytes);
}

/* A call whose only argument is a handle, or none when `handle` is NULL. */
static size_t simple_call(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                          enum nfs3_proc proc, const struct rpc_slice *handle)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, proc);
    if (handle)
        put_handle(&w, *handle);
    return rpc_writer_finish(&w, 0);
}

static size_t name_call(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        enum nfs3_proc proc, struct rpc_slice directory, const char *name)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, proc);
    put_handle(&w, directory);
    put_name(&w, name);
    return rpc_writer_finish(&w, 0);
}

/* READ and COMMIT: handle, offset, count. */
static size_t range_call(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         enum nfs3_proc proc, struct rpc_slice handle, uint64_t offset,
                         uint32_t count)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, proc);
    put_handle(&w, handle);
    rpc_put_u64(&w, offset);
    rpc_put_u32(&w, count);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_null(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid)
{
    return simple_call(buf, size, c, xid, NFS3_PROC_NULL, NULL);
}

size_t nfs3_call_getattr(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice handle)
{
    return simple_call(buf, size, c, xid, NFS3_PROC_GETATTR, &handle);
}

size_t nfs3_call_fsinfo(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle)
{
    return simple_call(buf, size, c, xid, NFS3_PROC_FSINFO, &handle);
}

size_t nfs3_call_lookup(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *name)
{
    return name_call(buf, size, c, xid, NFS3_PROC_LOOKUP, directory, name);
}

size_t nfs3_call_remove(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *name)
{
    return name_call(buf, size, c, xid, NFS3_PROC_REMOVE, directory, name);
}

size_t nfs3_call_access(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle, uint32_t bits)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_ACCESS);
    put_handle(&w, handle);
    rpc_put_u32(&w, bits);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_read(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                      struct rpc_slice handle, uint64_t offset, uint32_t count)
{
    return range_call(buf, size, c, xid, NFS3_PROC_READ, handle, offset, count);
}

size_t nfs3_call_commit(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle, uint64_t offset, uint32_t count)
{
    return range_call(buf, size, c, xid, NFS3_PROC_COMMIT, handle, offset, count);
}

size_t nfs3_call_write(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                       struct rpc_slice handle, uint64_t offset, uint32_t count,
                       enum nfs3_stable stable)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_WRITE);
    put_handle(&w, handle);
    rpc_put_u64(&w, offset);
    rpc_put_u32(&w, count);
    rpc_put_u32(&w, stable);
    rpc_put_u32(&w, count);
    return rpc_writer_finish(&w, rpc_padded(count));
}

size_t nfs3_call_create(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *name, uint32_t mode, bool truncate)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_CREATE);
    put_handle(&w, directory);
    put_name(&w, name);
    rpc_put_u32(&w, 0); /* UNCHECKED */
    rpc_put_u32(&w, 1); /* mode is set */
    rpc_put_u32(&w, mode);
    rpc_put_u32(&w, 0); /* uid, gid: the server's choice */
    rpc_put_u32(&w, 0);
    rpc_put_u32(&w, truncate);
    if (truncate)
        rpc_put_u64(&w, 0);
    rpc_put_u32(&w, 0); /* atime, mtime: don't change */
    rpc_put_u32(&w, 0);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_readdirplus(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                             struct rpc_slice directory, uint64_t cookie, uint64_t verifier,
                             uint32_t dircount, uint32_t maxcount)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_READDIRPLUS);
    put_handle(&w, directory);
    rpc_put_u64(&w, cookie);
    rpc_put_u64(&w, verifier);
    rpc_put_u32(&w, dircount);
    rpc_put_u32(&w, maxcount);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_fsstat(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle)
{
    return simple_call(buf, size, c, xid, NFS3_PROC_FSSTAT, &handle);
}

size_t nfs3_call_pathconf(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                          struct rpc_slice handle)
{
    return simple_call(buf, size, c, xid, NFS3_PROC_PATHCONF, &handle);
}

size_t nfs3_call_readlink(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                          struct rpc_slice handle)
{
    return simple_call(buf, size, c, xid, NFS3_PROC_READLINK, &handle);
}

/* sattr3 that sets the mode alone. */
static void put_mode(struct rpc_writer *w, uint32_t mode)
{
    rpc_put_u32(w, 1);
    rpc_put_u32(w, mode);
    for (int unset = 0; unset < 5; unset++) /* uid, gid, size, atime, mtime */
        rpc_put_u32(w, 0);
}

size_t nfs3_call_setattr(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice handle, uint32_t mode)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_SETATTR);
    put_handle(&w, handle);
    put_mode(&w, mode);
    rpc_put_u32(&w, 0); /* no guard */
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_mkdir(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                       struct rpc_slice directory, const char *name, uint32_t mode)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_MKDIR);
    put_handle(&w, directory);
    put_name(&w, name);
    put_mode(&w, mode);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_rmdir(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                       struct rpc_slice directory, const char *name)
{
    return name_call(buf, size, c, xid, NFS3_PROC_RMDIR, directory, name);
}

size_t nfs3_call_symlink(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice directory, const char *name, const char *target)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_SYMLINK);
    put_handle(&w, directory);
    put_name(&w, name);
    put_mode(&w, 0777);
    put_name(&w, target);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_link(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                      struct rpc_slice file, struct rpc_slice directory, const char *name)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_LINK);
    put_handle(&w, file);
    put_handle(&w, directory);
    put_name(&w, name);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_rename(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *from, const char *to)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_RENAME);
    put_handle(&w, directory);
    put_name(&w, from);
    put_handle(&w, directory);
    put_name(&w, to);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_call_readdir(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice directory, uint64_t cookie, uint64_t verifier,
                         uint32_t count)
{
    struct rpc_writer w;

    start(&w, buf, size, c, xid, NFS3_PROC_READDIR);
    put_handle(&w, directory);
    rpc_put_u64(&w, cookie);
    rpc_put_u64(&w, verifier);
    rpc_put_u32(&w, count);
    return rpc_writer_finish(&w, 0);
}

/* ------------------------------------------------------------------ what READDIR says */

#define ATTRIBUTES_BYTES 84 /* fattr3 */

enum rpc_parse nfs3_entries_begin(struct nfs3_entries *entries, const uint8_t *results, size_t len)
{
    struct rpc_reader *r = &entries->reader;
    uint32_t status;
    uint32_t given;

    rpc_reader_init(r, results, len);
    entries->cookie = 0;
    if (!rpc_read_u32(r, &status) || !rpc_read_u32(r, &given))
        return RPC_PARSE_NEED_MORE;
    if (status != NFS3_STATUS_OK || given > 1)
        return RPC_PARSE_GARBAGE;
    if (!rpc_skip(r, given ? ATTRIBUTES_BYTES : 0) || !rpc_read_u64(r, &entries->verifier))
        return RPC_PARSE_NEED_MORE;
    return RPC_PARSE_OK;
}

enum rpc_parse nfs3_entries_next(struct nfs3_entries *entries, struct rpc_slice *name)
{
    struct rpc_reader *r = &entries->reader;
    enum rpc_parse result;
    uint32_t follows;

    if (!rpc_read_u32(r, &follows))
        return RPC_PARSE_NEED_MORE;
    if (follows != 1)
        return follows == 0 ? RPC_PARSE_NOT_EXPECTED : RPC_PARSE_GARBAGE;
    if (!rpc_skip(r, 8)) /* the file's number */
        return RPC_PARSE_NEED_MORE;
    result = rpc_read_opaque(r, NFS3_NAME_MAX_BYTES, name);
    if (result == RPC_PARSE_OK && !rpc_read_u64(r, &entries->cookie))
        result = RPC_PARSE_NEED_MORE;
    return result;
}
