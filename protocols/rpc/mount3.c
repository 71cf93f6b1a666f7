/* SPDX-License-Identifier: Apache-2.0 */
/* MOUNT version 3 and NFSACL: see mount3.h. Layouts are RFC 1813 section 5. */
#include "protocols/rpc/mount3.h"

const char *mount3_proc_name(uint32_t proc)
{
    static const char *const names[MOUNT3_PROCS] = {"NULL", "MNT",     "DUMP",
                                                    "UMNT", "UMNTALL", "EXPORT"};

    return proc < MOUNT3_PROCS ? names[proc] : NULL;
}

enum rpc_parse mount3_parse_path(const uint8_t *args, size_t len, struct rpc_slice *path)
{
    struct rpc_reader r;

    *path = (struct rpc_slice){NULL, 0};
    rpc_reader_init(&r, args, len);
    return rpc_read_opaque(&r, MOUNT_PATH_MAX_BYTES, path);
}

enum rpc_parse mount3_parse_mnt_reply(const uint8_t *results, size_t len, struct mount3_reply *out)
{
    struct rpc_reader r;
    enum rpc_parse result;
    uint32_t count;

    memset(out, 0, sizeof *out);
    rpc_reader_init(&r, results, len);
    if (!rpc_read_u32(&r, &out->status))
        return RPC_PARSE_NEED_MORE;
    if (out->status != MOUNT3_STATUS_OK)
        return RPC_PARSE_OK;
    result = rpc_read_opaque(&r, NFS3_HANDLE_MAX_BYTES, &out->handle);
    if (result != RPC_PARSE_OK)
        return result;
    if (!rpc_read_u32(&r, &count) || !rpc_reader_has(&r, (uint64_t)count * 4))
        return RPC_PARSE_NEED_MORE;
    size_t kept = sizeof out->flavours / sizeof out->flavours[0];
    if (count < kept)
        kept = count;
    for (size_t i = 0; i < kept; i++)
        out->flavours[i] = rpc_load_u32(r.at + 4 * i);
    out->flavours_count = (uint32_t)kept;
    return RPC_PARSE_OK;
}

static size_t path_call(uint8_t *buf, size_t size, uint32_t xid,
                        const struct rpc_identity *identity, enum mount3_proc proc,
                        const char *path)
{
    struct rpc_writer w;
    size_t bytes = strnlen(path, MOUNT_PATH_MAX_BYTES + 1);

    if (bytes > MOUNT_PATH_MAX_BYTES)
        return 0;
    rpc_writer_init(&w, buf, size);
    rpc_write_call(&w, xid, MOUNT_PROG, MOUNT3_VERS, proc, identity);
    rpc_put_opaque(&w, path, (uint32_t)bytes);
    return rpc_writer_finish(&w, 0);
}

size_t mount3_write_mnt_call(uint8_t *buf, size_t size, uint32_t xid,
                             const struct rpc_identity *identity, const char *path)
{
    return path_call(buf, size, xid, identity, MOUNT3_PROC_MNT, path);
}

size_t mount3_write_umnt_call(uint8_t *buf, size_t size, uint32_t xid,
                              const struct rpc_identity *identity, const char *path)
{
    return path_call(buf, size, xid, identity, MOUNT3_PROC_UMNT, path);
}

size_t mount3_write_export_call(uint8_t *buf, size_t size, uint32_t xid,
                                const struct rpc_identity *identity)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_call(&w, xid, MOUNT_PROG, MOUNT3_VERS, MOUNT3_PROC_EXPORT, identity);
    return rpc_writer_finish(&w, 0);
}

/* The word before each element of a list: 1 one more, 0 none. */
static enum rpc_parse read_follows(struct rpc_reader *r, bool *follows)
{
    uint32_t word;

    if (!rpc_read_u32(r, &word))
        return RPC_PARSE_NEED_MORE;
    *follows = word == 1;
    return word > 1 ? RPC_PARSE_GARBAGE : RPC_PARSE_OK;
}

enum rpc_parse mount3_next_export(struct rpc_reader *r, struct rpc_slice *path)
{
    struct rpc_slice group;
    bool follows;
    enum rpc_parse result = read_follows(r, &follows);

    if (result == RPC_PARSE_OK && !follows)
        result = RPC_PARSE_NOT_EXPECTED;
    if (result == RPC_PARSE_OK)
        result = rpc_read_opaque(r, MOUNT_PATH_MAX_BYTES, path);
    while (result == RPC_PARSE_OK) {
        result = read_follows(r, &follows);
        if (result != RPC_PARSE_OK || !follows)
            break;
        result = rpc_read_opaque(r, MOUNT_NAME_MAX_BYTES, &group);
    }
    return result;
}

size_t mount3_write_mnt_reply(uint8_t *buf, size_t size, uint32_t xid, enum mount3_status status,
                              struct rpc_slice handle)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    rpc_put_u32(&w, status);
    if (status == MOUNT3_STATUS_OK) {
        rpc_put_opaque(&w, handle.data, handle.len);
        rpc_put_u32(&w, 2);
        rpc_put_u32(&w, RPC_FLAVOUR_SYS);
        rpc_put_u32(&w, RPC_FLAVOUR_NONE);
    }
    return rpc_writer_finish(&w, 0);
}

size_t mount3_write_void_reply(uint8_t *buf, size_t size, uint32_t xid)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    return rpc_writer_finish(&w, 0);
}

size_t mount3_write_export_reply(uint8_t *buf, size_t size, uint32_t xid, const char *const *paths,
                                 size_t count)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    for (size_t i = 0; i < count; i++) {
        rpc_put_u32(&w, 1); /* one more export */
        rpc_put_opaque(&w, paths[i], (uint32_t)strnlen(paths[i], MOUNT_PATH_MAX_BYTES));
        rpc_put_u32(&w, 0); /* no groups: open to everyone */
    }
    rpc_put_u32(&w, 0);
    return rpc_writer_finish(&w, 0);
}

size_t mount3_write_dump_reply(uint8_t *buf, size_t size, uint32_t xid)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    rpc_put_u32(&w, 0);
    return rpc_writer_finish(&w, 0);
}

const char *nfsacl_proc_name(uint32_t vers, uint32_t proc)
{
    static const char *const names[] = {"NULL", "GETACL", "SETACL", "GETATTR", "ACCESS"};
    uint32_t procs = vers == 2 ? 5 : vers == 3 ? 3 : 0;

    return proc < procs ? names[proc] : NULL;
}

bool nfsacl_proc_reads(uint32_t vers, uint32_t proc)
{
    return nfsacl_proc_name(vers, proc) != NULL && proc != 2;
}
