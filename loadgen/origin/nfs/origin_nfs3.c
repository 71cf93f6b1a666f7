/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFSv3 (RFC 1813) on the origin's files, and MOUNT version 3 beside it.
 *
 * The export is the root of the origin's files. Everybody may do everything. What is written is
 * stable at once (FILE_SYNC), so COMMIT has nothing to do. A file handle is 16 bytes: a constant,
 * the node's number and generation.
 */
#include "loadgen/origin/nfs/origin_nfs3.h"

#include <errno.h>
#include <string.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/nfs3_server.h"
#include "protocols/rpc/rpc_message.h"

#define HANDLE_BYTES 16
#define HANDLE_MAGIC 0x5350494c4c4f5247ULL
#define FILE_SYSTEM  0x51ULL
/* The root's; others have theirs behind it, by generation. */
#define ROOT_FILEID 2ULL
#define ALL_ACCESS  0x3fU
/* "." and ".." and more entries than a listing has room for. */
#define LISTED_MAX 1200
/* RFC 1813 section 2.6; the proxy has no use for it. */
#define STATUS_NOTEMPTY ((enum nfs3_status)66)
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
    struct origin_node *node; /* the one that the call's handle names */
    uint64_t now_ns;
    uint8_t *buffer;
    struct origin_nfs3_reply *reply;
};

/* ---------------------------------------------------------------- handles and attributes */

static struct rpc_slice make_handle(const struct origin_node *node, uint8_t *out)
{
    rpc_store_u64(out, HANDLE_MAGIC);
    rpc_store_u32(out + 8, node->number);
    rpc_store_u32(out + 12, node->generation);
    return (struct rpc_slice){out, HANDLE_BYTES};
}

static enum nfs3_status resolve(struct origin *origin, struct rpc_slice handle,
                                struct origin_node **node)
{
    if (handle.len != HANDLE_BYTES || rpc_load_u64(handle.data) != HANDLE_MAGIC)
        return NFS3_STATUS_BADHANDLE;
    *node = origin_files_node(&origin->files, rpc_load_u32(handle.data + 8),
                              rpc_load_u32(handle.data + 12));
    return *node ? NFS3_STATUS_OK : NFS3_STATUS_STALE;
}

static struct nfs3_attributes attributes_of(const struct origin_node *node)
{
    return (struct nfs3_attributes){.type = node->directory ? NFS3_TYPE_DIR : NFS3_TYPE_REG,
                                    .mode = node->mode,
                                    .nlink = node->directory ? 2 + node->child_directories : 1,
                                    .size_bytes = node->directory ? 4096 : node->size_bytes,
                                    .fsid = FILE_SYSTEM,
                                    .fileid = ROOT_FILEID + node->generation,
                                    .time_ns = node->changed_ns};
}

static enum nfs3_status status_of(int error)
{
    switch (error) {
    case 0:
        return NFS3_STATUS_OK;
    case -EINVAL:
        return NFS3_STATUS_INVAL;
    case -EFBIG:
        return NFS3_STATUS_FBIG;
    default:
        return NFS3_STATUS_NOSPC;
    }
}

/* ---------------------------------------------------------------- operations
 * Each writes its own success reply, or returns the status to fail with. */

static enum nfs3_status do_getattr(struct call *call)
{
    struct nfs3_attributes attributes = attributes_of(call->node);

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

static enum nfs3_status put_wcc(struct call *call, const struct origin_node *node)
{
    struct nfs3_attributes after = attributes_of(node);

    call->reply->head_bytes =
        nfs3_reply_wcc(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &after);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_setattr(struct call *call)
{
    struct rpc_reader reader;
    struct rpc_slice handle;
    uint32_t mode = call->node->mode;
    uint64_t size = 0;
    bool has_size;

    rpc_reader_init(&reader, call->args, call->args_bytes);
    if (rpc_read_opaque(&reader, NFS3_HANDLE_MAX_BYTES, &handle) != RPC_PARSE_OK ||
        !read_sattr(&reader, &mode, &has_size, &size))
        return NFS3_STATUS_INVAL;
    if (has_size && call->node->directory)
        return NFS3_STATUS_ISDIR;
    if (has_size) {
        int error = origin_files_resize(&call->origin->files, call->node, size, call->now_ns);

        if (error)
            return status_of(error);
    }
    call->node->mode = mode & 0777;
    call->node->changed_ns = call->now_ns;
    return put_wcc(call, call->node);
}

/* The child that a call names, "." and ".." included; NULL when there is none. */
static struct origin_node *named_child(const struct call *call)
{
    struct rpc_slice name = call->nfs.name;

    if (name.len == 1 && name.data[0] == '.')
        return call->node;
    if (name.len == 2 && memcmp(name.data, "..", 2) == 0)
        return call->node->parent;
    return origin_files_find(&call->origin->files, call->node, (const char *)name.data, name.len);
}

static enum nfs3_status do_lookup(struct call *call)
{
    uint8_t handle[HANDLE_BYTES];

    if (!call->node->directory)
        return NFS3_STATUS_NOTDIR;
    const struct origin_node *found = named_child(call);

    if (!found)
        return NFS3_STATUS_NOENT;
    struct nfs3_attributes attributes = attributes_of(found);
    struct nfs3_attributes directory = attributes_of(call->node);

    call->reply->head_bytes =
        nfs3_reply_lookup(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid,
                          make_handle(found, handle), &attributes, &directory);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_access(struct call *call)
{
    struct nfs3_attributes attributes = attributes_of(call->node);

    call->reply->head_bytes = nfs3_reply_access(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid,
                                                &attributes, call->nfs.access & ALL_ACCESS);
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_read(struct call *call)
{
    const struct origin_node *file = call->node;

    if (file->directory)
        return NFS3_STATUS_ISDIR;
    uint64_t offset = call->nfs.offset;
    uint64_t left = offset < file->size_bytes ? file->size_bytes - offset : 0;
    uint64_t count =
        call->nfs.count < ORIGIN_NFS3_IO_BYTES ? call->nfs.count : ORIGIN_NFS3_IO_BYTES;
    struct nfs3_attributes attributes = attributes_of(file);

    if (count > left)
        count = left;
    call->reply->head_bytes =
        nfs3_reply_read(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &attributes,
                        (uint32_t)count, offset + count >= file->size_bytes);
    call->reply->data = count > 0 ? file->data + offset : NULL;
    call->reply->data_bytes = (uint32_t)count;
    call->reply->stays = file->fixed;
    call->port->counters.bytes_out += count;
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_write(struct call *call)
{
    const struct nfs3_call *nfs = &call->nfs;
    uint32_t count = nfs->count < nfs->data_bytes ? nfs->count : nfs->data_bytes;

    if (call->node->directory)
        return NFS3_STATUS_ISDIR;
    if ((uint64_t)nfs->data_offset + nfs->data_bytes > call->args_bytes)
        return NFS3_STATUS_INVAL;
    int error = origin_files_write(&call->origin->files, call->node, nfs->offset,
                                   call->args + nfs->data_offset, count, call->now_ns);

    if (error)
        return status_of(error);
    struct nfs3_attributes after = attributes_of(call->node);

    call->port->counters.bytes_in += count;
    call->reply->head_bytes =
        nfs3_reply_write(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid, &after, count,
                         WRITTEN_FILE_SYNC, call->origin->wall_offset_ns);
    return NFS3_STATUS_OK;
}

static enum nfs3_status put_created(struct call *call, const struct origin_node *node)
{
    uint8_t handle[HANDLE_BYTES];
    struct nfs3_attributes attributes = attributes_of(node);
    struct nfs3_attributes directory = attributes_of(call->node);

    call->reply->head_bytes = nfs3_reply_create(call->buffer, ORIGIN_NFS3_REPLY_BYTES, call->xid,
                                                make_handle(node, handle), &attributes, &directory);
    return NFS3_STATUS_OK;
}

/* CREATE and MKDIR: attributes come behind directory and name, CREATE's with a word before. */
struct create_args {
    uint32_t how;
    uint32_t mode;
    bool has_size;
    uint64_t size;
};

static bool read_create_args(const struct call *call, bool is_directory, struct create_args *args)
{
    struct rpc_reader reader;
    struct rpc_slice ignored;

    *args = (struct create_args){.mode = is_directory ? 0777 : 0666};
    rpc_reader_init(&reader, call->args, call->args_bytes);
    return rpc_read_opaque(&reader, NFS3_HANDLE_MAX_BYTES, &ignored) == RPC_PARSE_OK &&
           rpc_read_opaque(&reader, NFS3_NAME_MAX_BYTES, &ignored) == RPC_PARSE_OK &&
           (is_directory || rpc_read_u32(&reader, &args->how)) &&
           (args->how >= CREATE_EXCLUSIVE ||
            read_sattr(&reader, &args->mode, &args->has_size, &args->size));
}

static enum nfs3_status do_create(struct call *call)
{
    bool is_directory = call->nfs.proc == NFS3_PROC_MKDIR;
    struct origin_files *files = &call->origin->files;
    struct create_args args;
    int error = 0;

    if (!call->node->directory)
        return NFS3_STATUS_NOTDIR;
    if (!read_create_args(call, is_directory, &args))
        return NFS3_STATUS_INVAL;
    struct origin_node *node = named_child(call);

    if (node && (is_directory || node->directory || args.how != CREATE_UNCHECKED))
        return NFS3_STATUS_EXIST;
    bool is_new = !node;

    if (is_new)
        node = origin_files_create(files, call->node, (const char *)call->nfs.name.data,
                                   call->nfs.name.len, is_directory, call->now_ns, &error);
    if (!node)
        return status_of(error);
    /* A CREATE of a file that is there sets its size alone, as servers do. */
    if (is_new)
        node->mode = args.mode & 0777;
    if (args.has_size && !is_directory)
        error = origin_files_resize(files, node, args.size, call->now_ns);
    return error ? status_of(error) : put_created(call, node);
}

static enum nfs3_status do_remove(struct call *call)
{
    bool is_directory = call->nfs.proc == NFS3_PROC_RMDIR;

    if (!call->node->directory)
        return NFS3_STATUS_NOTDIR;
    struct origin_node *node = named_child(call);

    if (!node)
        return NFS3_STATUS_NOENT;
    if (node == call->node || node == call->node->parent)
        return NFS3_STATUS_INVAL;
    if (is_directory != node->directory)
        return is_directory ? NFS3_STATUS_NOTDIR : NFS3_STATUS_ISDIR;
    if (node->children > 0)
        return STATUS_NOTEMPTY;
    origin_files_remove(&call->origin->files, node, call->now_ns);
    return put_wcc(call, call->node);
}

static enum nfs3_status do_readdir(struct call *call)
{
    static struct nfs3_entry entries[LISTED_MAX];
    static uint8_t handles[LISTED_MAX][HANDLE_BYTES];
    static uint8_t listing[ORIGIN_NFS3_DIRECTORY_BYTES];
    const struct origin_node *directory = call->node;
    size_t count = 0;

    if (!directory->directory)
        return NFS3_STATUS_NOTDIR;
    struct nfs3_attributes attributes = attributes_of(directory);

    for (uint64_t cookie = call->nfs.offset + 1; cookie < ORIGIN_FIRST_COOKIE; cookie++) {
        const struct origin_node *node = cookie == 1 ? directory : directory->parent;

        entries[count] =
            (struct nfs3_entry){cookie == 1 ? "." : "..", cookie, make_handle(node, handles[count]),
                                attributes_of(node)};
        count++;
    }
    /* One more than has room: so the writer sees whether that is all. */
    for (const struct origin_node *node = origin_files_child(directory, call->nfs.offset);
         node && count < LISTED_MAX; node = node->after) {
        entries[count] = (struct nfs3_entry){
            node->name, node->cookie, make_handle(node, handles[count]), attributes_of(node)};
        count++;
    }
    call->reply->data_bytes = (uint32_t)nfs3_reply_readdir(
        listing, sizeof(listing), call->xid, call->nfs.proc == NFS3_PROC_READDIRPLUS, &attributes,
        entries, count, call->nfs.offset, call->nfs.count);
    call->reply->data = listing;
    return NFS3_STATUS_OK;
}

static enum nfs3_status do_file_system(struct call *call)
{
    const struct origin_files *files = &call->origin->files;
    uint64_t free_bytes =
        files->memory_bytes > files->used_bytes ? files->memory_bytes - files->used_bytes : 0;
    uint64_t free_files = free_bytes / sizeof(struct origin_node);
    const struct nfs3_service service = {.read_max_bytes = ORIGIN_NFS3_IO_BYTES,
                                         .write_max_bytes = ORIGIN_NFS3_IO_BYTES,
                                         .directory_bytes = ORIGIN_NFS3_DIRECTORY_BYTES / 4,
                                         .file_max_bytes = ORIGIN_FILE_MAX_BYTES,
                                         .total_bytes = files->memory_bytes,
                                         .free_bytes = free_bytes,
                                         .total_files = free_files + files->nodes_used,
                                         .free_files = free_files};
    struct nfs3_attributes attributes = attributes_of(call->node);
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
    struct nfs3_attributes after = attributes_of(call->node);

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
    [NFS3_PROC_MKDIR] = do_create,
    [NFS3_PROC_REMOVE] = do_remove,
    [NFS3_PROC_RMDIR] = do_remove,
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
    const struct origin_error *error = origin_injects(call->port);

    if (error) {
        call->reply->reset = error->reset;
        return error->reset ? 0
                            : nfs3_write_failure(buffer, size, rpc->xid, rpc->proc,
                                                 (enum nfs3_status)error->status[ORIGIN_NFS]);
    }
    call->reply->served = true;
    enum nfs3_status status = operations[rpc->proc] ? NFS3_STATUS_OK : NFS3_STATUS_NOTSUPP;

    if (status == NFS3_STATUS_OK)
        status = resolve(call->origin, call->nfs.handle, &call->node);
    if (status == NFS3_STATUS_OK)
        status = operations[rpc->proc](call);
    if (status == NFS3_STATUS_OK && call->reply->head_bytes == 0 && call->reply->data_bytes == 0)
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
                                      make_handle(call->origin->files.root, handle));
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
    return reply->head_bytes > 0 || reply->data_bytes > 0 || reply->reset;
}
