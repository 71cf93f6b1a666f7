/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFSv3 (RFC 1813) on the origin's files, and MOUNT version 3 beside it.
 *
 * One directory, the export, holds all files. Everybody may do everything. What is written is
 * stable at once (FILE_SYNC), so COMMIT has nothing to do. A file handle is 16 bytes: a constant,
 * the file's slot plus one (0 is the directory), the slot's generation.
 */
#include "loadgen/origin/origin_nfs3.h"

#include <errno.h>
#include <string.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/nfs3_server.h"
#include "protocols/rpc/rpc_message.h"

#define HANDLE_BYTES 16
#define HANDLE_MAGIC 0x5350494c4c4f5247ULL
#define FILE_SYSTEM  0x51ULL
#define ROOT_FILEID  2ULL
/* "." and "..", then the files. */
#define DOT_ENTRIES 2
#define ALL_ACCESS  0x3fU
/* stable_how FILE_SYNC; createmode3 UNCHECKED and EXCLUSIVE. */
#define WRITTEN_FILE_SYNC 2U
#define CREATE_UNCHECKED  0U
#define CREATE_EXCLUSIVE  2U

/* One call on its way through. */
struct call {
    struct origin *origin;
    struct origin_port *port;
    uint32_t xid;
    const uint8_t *args;
    size_t args_bytes;
    struct nfs3_call nfs;
    struct origin_file *file; /* NULL: the directory */
    uint64_t now_ns;
    uint8_t *buffer;
    struct origin_nfs3_reply *reply;
};

/* ---------------------------------------------------------------- handles and attributes */

static struct rpc_slice make_handle(const struct origin *origin, const struct origin_file *file,
                                    uint8_t *out)
{
    rpc_store_u64(out, HANDLE_MAGIC);
    rpc_store_u32(out + 8, file ? (uint32_t)(file - origin->files.files) + 1 : 0);
    rpc_store_u32(out + 12, file ? file->generation : 0);
    return (struct rpc_slice){out, HANDLE_BYTES};
}

/* The file of a handle; NULL with OK is the directory. */
static enum nfs3_status resolve(struct origin *origin, struct rpc_slice handle,
                                struct origin_file **file)
{
    *file = NULL;
    if (handle.len != HANDLE_BYTES || rpc_load_u64(handle.data) != HANDLE_MAGIC)
        return NFS3_STATUS_BADHANDLE;
    uint32_t slot = rpc_load_u32(handle.data + 8);

    if (slot == 0)
        return NFS3_STATUS_OK;
    if (slot > ORIGIN_FILES)
        return NFS3_STATUS_BADHANDLE;
    *file = &origin->files.files[slot - 1];
    if (!(*file)->used || (*file)->generation != rpc_load_u32(handle.data + 12))
        return NFS3_STATUS_STALE;
    return NFS3_STATUS_OK;
}

static struct nfs3_attributes attributes_of(const struct origin *origin,
                                            const struct origin_file *file)
{
    if (!file)
        return (struct nfs3_attributes){.type = NFS3_TYPE_DIR,
                                        .mode = 0777,
                                        .nlink = 2,
                                        .size_bytes = 4096,
                                        .fsid = FILE_SYSTEM,
                                        .fileid = ROOT_FILEID,
                                        .time_ns = origin->files.changed_ns};
    return (struct nfs3_attributes){.type = NFS3_TYPE_REG,
                                    .mode = file->mode,
                                    .nlink = 1,
                                    .size_bytes = file->size_bytes,
                                    .fsid = FILE_SYSTEM,
                                    .fileid =
                                        ROOT_FILEID + 1 + (uint64_t)(file - origin->files.files),
                                    .time_ns = file->changed_ns};
}

/* ---------------------------------------------------------------- operations
 * Each writes its own success reply, or returns the status to fail with. */

static enum nfs3_status do_getattr(struct call *call)
{
    struct nfs3_attributes attributes = attributes_of(call->origin, call->file);

    call->reply->head_bytes =
        nfs3_reply_getattr(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &attributes);
    return NFS3_STATUS_OK;
}

/* Reads a sattr3 (RFC 1813 section 2.6); of all it may set, mode and size are kept. */
static bool read_sattr(struct rpc_reader *reader, uint32_t *mode, bool *has_size, uint64_t *size)
{
    uint32_t set;
    uint32_t ignored;

    if (!rpc_read_u32(reader, &set) || (set && !rpc_read_u32(reader, mode)))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!rpc_read_u32(reader, &set) || (set && !rpc_read_u32(reader, &ignored)))
            return false;
    }
    if (!rpc_read_u32(reader, &set) || (set && !rpc_read_u64(reader, size)))
        return false;
    *has_size = set != 0;
    return true;
}

static enum nfs3_status do_setattr(struct call *call)
{
    struct rpc_reader reader;
    struct rpc_slice handle;
    uint32_t mode = call->file ? call->file->mode : 0;
    uint64_t size = 0;
    bool has_size;

    rpc_reader_init(&reader, call->args, call->args_bytes);
    if (rpc_read_opaque(&reader, NFS3_HANDLE_MAX_BYTES, &handle) != RPC_PARSE_OK ||
        !read_sattr(&reader, &mode, &has_size, &size))
        return NFS3_STATUS_INVAL;
    if (has_size && !call->file)
        return NFS3_STATUS_ISDIR;
    if (has_size && origin_files_resize(call->file, size, call->now_ns) != 0)
        return NFS3_STATUS_FBIG;
    if (call->file)
        call->file->mode = mode & 0777;
    struct nfs3_attributes after = attributes_of(call->origin, call->file);

    call->reply->head_bytes =
        nfs3_reply_wcc(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &after);
    return NFS3_STATUS_OK;
}

static bool name_is(struct rpc_slice name, const char *text)
{
    return name.len == strlen(text) && memcmp(name.data, text, name.len) == 0;
}

static enum nfs3_status do_lookup(struct call *call)
{
    uint8_t handle[HANDLE_BYTES];
    struct origin_file *found = NULL;

    if (call->file)
        return NFS3_STATUS_NOTDIR;
    if (!name_is(call->nfs.name, ".") && !name_is(call->nfs.name, "..")) {
        found = origin_files_find(&call->origin->files, (const char *)call->nfs.name.data,
                                  call->nfs.name.len);
        if (!found)
            return NFS3_STATUS_NOENT;
    }
    struct nfs3_attributes attributes = attributes_of(call->origin, found);
    struct nfs3_attributes directory = attributes_of(call->origin, NULL);

    call->reply->head_bytes =
        nfs3_reply_lookup(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid,
                          make_handle(call->origin, found, handle), &attributes, &directory);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_access(struct call *call)
{
    struct nfs3_attributes attributes = attributes_of(call->origin, call->file);

    call->reply->head_bytes = nfs3_reply_access(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid,
                                                &attributes, call->nfs.access & ALL_ACCESS);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_read(struct call *call)
{
    const struct origin_file *file = call->file;

    if (!file)
        return NFS3_STATUS_ISDIR;
    uint64_t offset = call->nfs.offset;
    uint64_t left = offset < file->size_bytes ? file->size_bytes - offset : 0;
    uint64_t count =
        call->nfs.count < ORIGIN_NFS3_IO_BYTES ? call->nfs.count : ORIGIN_NFS3_IO_BYTES;
    struct nfs3_attributes attributes = attributes_of(call->origin, file);

    if (count > left)
        count = left;
    call->reply->head_bytes =
        nfs3_reply_read(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &attributes,
                        (uint32_t)count, offset + count >= file->size_bytes);
    call->reply->data = file->data + (count ? offset : 0);
    call->reply->data_bytes = (uint32_t)count;
    call->port->counters.bytes_out += count;
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_write(struct call *call)
{
    const struct nfs3_call *nfs = &call->nfs;
    uint32_t count = nfs->count < nfs->data_bytes ? nfs->count : nfs->data_bytes;

    if (!call->file)
        return NFS3_STATUS_ISDIR;
    if ((uint64_t)nfs->data_offset + nfs->data_bytes > call->args_bytes)
        return NFS3_STATUS_INVAL;
    if (origin_files_write(call->file, nfs->offset, call->args + nfs->data_offset, count,
                           call->now_ns) != 0)
        return NFS3_STATUS_FBIG;
    struct nfs3_attributes after = attributes_of(call->origin, call->file);

    call->port->counters.bytes_in += count;
    call->reply->head_bytes =
        nfs3_reply_write(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &after, count,
                         WRITTEN_FILE_SYNC, call->origin->wall_offset_ns);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_create(struct call *call)
{
    uint8_t handle[HANDLE_BYTES];
    struct rpc_reader reader;
    struct rpc_slice ignored;
    struct rpc_slice name;
    uint32_t how;
    uint32_t mode = 0666;
    bool has_size = false;
    uint64_t size = 0;
    int error;

    if (call->file)
        return NFS3_STATUS_NOTDIR;
    rpc_reader_init(&reader, call->args, call->args_bytes);
    if (rpc_read_opaque(&reader, NFS3_HANDLE_MAX_BYTES, &ignored) != RPC_PARSE_OK ||
        rpc_read_opaque(&reader, NFS3_NAME_MAX_BYTES, &name) != RPC_PARSE_OK ||
        !rpc_read_u32(&reader, &how) ||
        (how < CREATE_EXCLUSIVE && !read_sattr(&reader, &mode, &has_size, &size)))
        return NFS3_STATUS_INVAL;
    struct origin_file *file =
        origin_files_find(&call->origin->files, (const char *)name.data, name.len);

    if (file && how != CREATE_UNCHECKED)
        return NFS3_STATUS_EXIST;
    if (!file)
        file = origin_files_create(&call->origin->files, (const char *)name.data, name.len,
                                   call->now_ns, &error);
    if (!file)
        return error == -EINVAL ? NFS3_STATUS_INVAL : NFS3_STATUS_NOSPC;
    file->mode = mode & 0777;
    if (has_size && origin_files_resize(file, size, call->now_ns) != 0)
        return NFS3_STATUS_FBIG;
    struct nfs3_attributes attributes = attributes_of(call->origin, file);
    struct nfs3_attributes directory = attributes_of(call->origin, NULL);

    call->reply->head_bytes =
        nfs3_reply_create(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid,
                          make_handle(call->origin, file, handle), &attributes, &directory);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_remove(struct call *call)
{
    if (call->file)
        return NFS3_STATUS_NOTDIR;
    struct origin_file *file = origin_files_find(
        &call->origin->files, (const char *)call->nfs.name.data, call->nfs.name.len);

    if (!file)
        return NFS3_STATUS_NOENT;
    origin_files_remove(&call->origin->files, file, call->now_ns);
    struct nfs3_attributes after = attributes_of(call->origin, NULL);

    call->reply->head_bytes =
        nfs3_reply_wcc(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &after);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_readdir(struct call *call)
{
    struct nfs3_entry entries[ORIGIN_FILES + DOT_ENTRIES];
    uint8_t handles[ORIGIN_FILES + 1][HANDLE_BYTES];
    struct nfs3_attributes directory = attributes_of(call->origin, NULL);
    struct rpc_slice root = make_handle(call->origin, NULL, handles[ORIGIN_FILES]);
    size_t count = DOT_ENTRIES;

    if (call->file)
        return NFS3_STATUS_NOTDIR;
    entries[0] = (struct nfs3_entry){".", 1, root, directory};
    entries[1] = (struct nfs3_entry){"..", 2, root, directory};
    for (size_t i = 0; i < ORIGIN_FILES; i++) {
        const struct origin_file *file = &call->origin->files.files[i];

        if (file->used)
            entries[count++] = (struct nfs3_entry){file->name, i + 1 + DOT_ENTRIES,
                                                   make_handle(call->origin, file, handles[i]),
                                                   attributes_of(call->origin, file)};
    }
    call->reply->head_bytes = nfs3_reply_readdir(
        call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, call->nfs.proc == NFS3_PROC_READDIRPLUS,
        &directory, entries, count, call->nfs.offset, call->nfs.count);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_file_system(struct call *call)
{
    const struct nfs3_service service = {.read_max_bytes = ORIGIN_NFS3_IO_BYTES,
                                         .write_max_bytes = ORIGIN_NFS3_IO_BYTES,
                                         .directory_bytes = ORIGIN_NFS3_REPLY_BYTES,
                                         .file_max_bytes = ORIGIN_FILE_MAX_BYTES,
                                         .total_bytes = ORIGIN_FILES * ORIGIN_FILE_MAX_BYTES,
                                         .free_bytes = ORIGIN_FILES * ORIGIN_FILE_MAX_BYTES,
                                         .total_files = ORIGIN_FILES,
                                         .free_files = ORIGIN_FILES};
    struct nfs3_attributes attributes = attributes_of(call->origin, call->file);
    uint8_t *buffer = call->buffer;
    size_t size = ORIGIN_NFS3_REPLY_BYTES;

    switch (call->nfs.proc) {
    case NFS3_PROC_FSINFO:
        call->reply->head_bytes = nfs3_reply_fsinfo(buffer, size, call->xid, &attributes, &service);
        break;
    case NFS3_PROC_FSSTAT:
        call->reply->head_bytes = nfs3_reply_fsstat(buffer, size, call->xid, &attributes, &service);
        break;
    default:
        call->reply->head_bytes = nfs3_reply_pathconf(buffer, size, call->xid, &attributes);
        break;
    }
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_commit(struct call *call)
{
    struct nfs3_attributes after = attributes_of(call->origin, call->file);

    call->reply->head_bytes = nfs3_reply_commit(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid,
                                                &after, call->origin->wall_offset_ns);
    return NFS3_STATUS_OK;
}

static enum nfs3_status (*const operations[NFS3_PROCS])(struct call *) = {
    [NFS3_PROC_GETATTR] = do_getattr,
    [NFS3_PROC_SETATTR] = do_setattr,
    [NFS3_PROC_LOOKUP] = do_lookup,
    [NFS3_PROC_ACCESS] = do_access,
    [NFS3_PROC_READ] = do_read,
    [NFS3_PROC_WRITE] = do_write,
    [NFS3_PROC_CREATE] = do_create,
    [NFS3_PROC_REMOVE] = do_remove,
    [NFS3_PROC_READDIR] = do_readdir,
    [NFS3_PROC_READDIRPLUS] = do_readdir,
    [NFS3_PROC_FSSTAT] = do_file_system,
    [NFS3_PROC_FSINFO] = do_file_system,
    [NFS3_PROC_PATHCONF] = do_file_system,
    [NFS3_PROC_COMMIT] = do_commit,
};

/* ---------------------------------------------------------------- programs */

static size_t nfs_call(struct call *call, const struct rpc_call *rpc)
{
    uint8_t *buffer = call->buffer;
    size_t size = ORIGIN_NFS3_REPLY_BYTES;

    if (rpc->vers != NFS3_VERS)
        return rpc_write_prog_mismatch(buffer, size, rpc->xid, NFS3_VERS, NFS3_VERS);
    if (rpc->proc >= NFS3_PROCS)
        return rpc_write_accept_error(buffer, size, rpc->xid, RPC_ACCEPT_PROC_UNAVAIL);
    if (rpc->proc == NFS3_PROC_NULL)
        return nfs3_reply_null(buffer, size, rpc->xid);
    if (nfs3_parse_call(rpc->proc, call->args, call->args_bytes, &call->nfs) != RPC_PARSE_OK)
        return rpc_write_accept_error(buffer, size, rpc->xid, RPC_ACCEPT_GARBAGE_ARGS);
    call->port->counters.requests++;
    call->reply->served = true;
    enum nfs3_status status = operations[rpc->proc] ? NFS3_STATUS_OK : NFS3_STATUS_NOTSUPP;

    if (status == NFS3_STATUS_OK)
        status = resolve(call->origin, call->nfs.handle, &call->file);
    if (status == NFS3_STATUS_OK)
        status = operations[rpc->proc](call);
    if (status == NFS3_STATUS_OK && call->reply->head_bytes == 0)
        status = NFS3_STATUS_SERVERFAULT;
    return status == NFS3_STATUS_OK ? call->reply->head_bytes
                                    : nfs3_write_failure(buffer, size, rpc->xid, rpc->proc, status);
}

/* Whether a mount path is the export: equal but for slashes at its end. */
static bool is_export(const struct origin *origin, struct rpc_slice path)
{
    const char *export_path = origin->options.export_path;
    size_t length = path.len;

    while (length > 1 && path.data[length - 1] == '/')
        length--;
    return length == strlen(export_path) && memcmp(path.data, export_path, length) == 0;
}

static size_t mount_call(struct call *call, const struct rpc_call *rpc)
{
    uint8_t *buffer = call->buffer;
    size_t size = ORIGIN_NFS3_REPLY_BYTES;
    uint8_t handle[HANDLE_BYTES];
    struct rpc_slice path;

    if (rpc->vers != MOUNT3_VERS)
        return rpc_write_prog_mismatch(buffer, size, rpc->xid, MOUNT3_VERS, MOUNT3_VERS);
    switch (rpc->proc) {
    case MOUNT3_PROC_MNT:
        if (mount3_parse_path(call->args, call->args_bytes, &path) != RPC_PARSE_OK)
            return rpc_write_accept_error(buffer, size, rpc->xid, RPC_ACCEPT_GARBAGE_ARGS);
        return mount3_write_mnt_reply(buffer, size, rpc->xid,
                                      is_export(call->origin, path) ? MOUNT3_STATUS_OK
                                                                    : MOUNT3_STATUS_NOENT,
                                      make_handle(call->origin, NULL, handle));
    case MOUNT3_PROC_EXPORT:
        return mount3_write_export_reply(buffer, size, rpc->xid, &call->origin->options.export_path,
                                         1);
    case MOUNT3_PROC_DUMP:
        return mount3_write_dump_reply(buffer, size, rpc->xid);
    case MOUNT3_PROC_NULL:
    case MOUNT3_PROC_UMNT:
    case MOUNT3_PROC_UMNTALL:
        return mount3_write_void_reply(buffer, size, rpc->xid);
    default:
        return rpc_write_accept_error(buffer, size, rpc->xid, RPC_ACCEPT_PROC_UNAVAIL);
    }
}

bool origin_nfs3_execute(struct origin_port *port, const uint8_t *payload, size_t length,
                         uint8_t *buffer, struct origin_nfs3_reply *reply)
{
    struct rpc_call rpc;
    enum rpc_parse result = rpc_parse_call(payload, length, &rpc);
    size_t size = ORIGIN_NFS3_REPLY_BYTES;

    *reply = (struct origin_nfs3_reply){0};
    if (result != RPC_PARSE_OK) {
        if (length < 8)
            return false;
        reply->head_bytes = rpc_write_parse_error(buffer, size, rpc.xid, result);
        return reply->head_bytes > 0;
    }
    if (!rpc.args_visible) {
        reply->head_bytes =
            rpc_write_auth_error(buffer, size, rpc.xid, RPC_AUTH_STATUS_REJECTEDCRED);
        return true;
    }
    struct call call = {.origin = port->origin,
                        .port = port,
                        .xid = rpc.xid,
                        .args = payload + rpc.body_offset,
                        .args_bytes = length - rpc.body_offset,
                        .now_ns = port->origin->wall_offset_ns + port->origin->loop->now_ns,
                        .buffer = buffer,
                        .reply = reply};

    if (rpc.prog == NFS_PROG)
        reply->head_bytes = nfs_call(&call, &rpc);
    else if (rpc.prog == MOUNT_PROG)
        reply->head_bytes = mount_call(&call, &rpc);
    else
        reply->head_bytes = rpc_write_accept_error(buffer, size, rpc.xid, RPC_ACCEPT_PROG_UNAVAIL);
    return reply->head_bytes > 0;
}
