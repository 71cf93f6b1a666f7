/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 replies of a simple server: see nfs3_server.h. Result layouts are RFC 1813 section 3.3. */
#include "protocols/rpc/nfs3_server.h"

#define FATTR3_BYTES        84
#define NS_PER_S            1000000000u
#define LINK_MAX            32000
#define FSF3_HOMOGENEOUS    0x0008 /* PATHCONF is the same for every file */
#define FSF3_CANSETTIME     0x0010
#define DIRECTORY_END_BYTES 8                          /* "no more entries", eof */
#define RESULTS_BEFORE_LIST (4 + 4 + FATTR3_BYTES + 8) /* status, attributes, verifier */

static void start(struct rpc_writer *w, uint8_t *buf, size_t size, uint32_t xid)
{
    rpc_writer_init(w, buf, size);
    rpc_write_success(w, xid);
    rpc_put_u32(w, NFS3_STATUS_OK);
}

static void put_time(struct rpc_writer *w, uint64_t time_ns)
{
    rpc_put_u32(w, (uint32_t)(time_ns / NS_PER_S));
    rpc_put_u32(w, (uint32_t)(time_ns % NS_PER_S));
}

static void put_attributes(struct rpc_writer *w, const struct nfs3_attributes *a)
{
    rpc_put_u32(w, a->type);
    rpc_put_u32(w, a->mode);
    rpc_put_u32(w, a->nlink);
    rpc_put_u32(w, a->uid);
    rpc_put_u32(w, a->gid);
    rpc_put_u64(w, a->size_bytes);
    rpc_put_u64(w, a->size_bytes); /* used */
    rpc_put_u64(w, 0);             /* rdev */
    rpc_put_u64(w, a->fsid);
    rpc_put_u64(w, a->fileid);
    put_time(w, a->time_ns);
    put_time(w, a->time_ns);
    put_time(w, a->time_ns);
}

static void put_post_op(struct rpc_writer *w, const struct nfs3_attributes *a)
{
    rpc_put_u32(w, a != NULL);
    if (a)
        put_attributes(w, a);
}

/* wcc_data without the attributes from before. */
static void put_wcc(struct rpc_writer *w, const struct nfs3_attributes *after)
{
    rpc_put_u32(w, 0);
    put_post_op(w, after);
}

static void put_post_op_handle(struct rpc_writer *w, struct rpc_slice handle)
{
    rpc_put_u32(w, handle.data != NULL);
    if (handle.data)
        rpc_put_opaque(w, handle.data, handle.len);
}

size_t nfs3_reply_null(uint8_t *buf, size_t size, uint32_t xid)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_getattr(uint8_t *buf, size_t size, uint32_t xid,
                          const struct nfs3_attributes *attributes)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_attributes(&w, attributes);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_wcc(uint8_t *buf, size_t size, uint32_t xid, const struct nfs3_attributes *after)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_wcc(&w, after);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_lookup(uint8_t *buf, size_t size, uint32_t xid, struct rpc_slice handle,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_attributes *directory)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    rpc_put_opaque(&w, handle.data, handle.len);
    put_post_op(&w, attributes);
    put_post_op(&w, directory);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_access(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *attributes, uint32_t granted)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_post_op(&w, attributes);
    rpc_put_u32(&w, granted);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_read(uint8_t *buf, size_t size, uint32_t xid,
                       const struct nfs3_attributes *attributes, uint32_t count, bool eof)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_post_op(&w, attributes);
    rpc_put_u32(&w, count);
    rpc_put_u32(&w, eof);
    rpc_put_u32(&w, count);
    return rpc_writer_finish(&w, rpc_padded(count));
}

size_t nfs3_reply_write(uint8_t *buf, size_t size, uint32_t xid,
                        const struct nfs3_attributes *after, uint32_t count, uint32_t committed,
                        uint64_t verifier)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_wcc(&w, after);
    rpc_put_u32(&w, count);
    rpc_put_u32(&w, committed);
    rpc_put_u64(&w, verifier);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_create(uint8_t *buf, size_t size, uint32_t xid, struct rpc_slice handle,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_attributes *directory)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_post_op_handle(&w, handle);
    put_post_op(&w, attributes);
    put_wcc(&w, directory);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_commit(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *after, uint64_t verifier)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_wcc(&w, after);
    rpc_put_u64(&w, verifier);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_fsinfo(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_service *service)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_post_op(&w, attributes);
    rpc_put_u32(&w, service->read_max_bytes);
    rpc_put_u32(&w, service->read_max_bytes); /* preferred */
    rpc_put_u32(&w, 1);                       /* any multiple */
    rpc_put_u32(&w, service->write_max_bytes);
    rpc_put_u32(&w, service->write_max_bytes);
    rpc_put_u32(&w, 1);
    rpc_put_u32(&w, service->directory_bytes);
    rpc_put_u64(&w, service->file_max_bytes);
    put_time(&w, 1); /* times are kept to 1 ns */
    rpc_put_u32(&w, FSF3_HOMOGENEOUS | FSF3_CANSETTIME);
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_fsstat(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_service *service)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_post_op(&w, attributes);
    rpc_put_u64(&w, service->total_bytes);
    rpc_put_u64(&w, service->free_bytes);
    rpc_put_u64(&w, service->free_bytes); /* available to this user */
    rpc_put_u64(&w, service->total_files);
    rpc_put_u64(&w, service->free_files);
    rpc_put_u64(&w, service->free_files);
    rpc_put_u32(&w, 0); /* may change at any time */
    return rpc_writer_finish(&w, 0);
}

size_t nfs3_reply_pathconf(uint8_t *buf, size_t size, uint32_t xid,
                           const struct nfs3_attributes *attributes)
{
    struct rpc_writer w;

    start(&w, buf, size, xid);
    put_post_op(&w, attributes);
    rpc_put_u32(&w, LINK_MAX);
    rpc_put_u32(&w, NFS3_NAME_MAX_BYTES);
    rpc_put_u32(&w, 1); /* no_trunc */
    rpc_put_u32(&w, 1); /* chown_restricted */
    rpc_put_u32(&w, 0); /* case_insensitive */
    rpc_put_u32(&w, 1); /* case_preserving */
    return rpc_writer_finish(&w, 0);
}

/* --------------------------------------------------------------------------------- directory
 * listings */

static uint64_t entry_bytes(const struct nfs3_entry *e, bool plus)
{
    uint64_t bytes = 4 + 8 + 4 + rpc_padded(strlen(e->name)) + 8;

    if (plus)
        bytes += 4 + FATTR3_BYTES + 4 + (e->handle.data ? 4 + rpc_padded(e->handle.len) : 0);
    return bytes;
}

static void put_entry(struct rpc_writer *w, const struct nfs3_entry *e, bool plus)
{
    rpc_put_u32(w, 1); /* one more entry */
    rpc_put_u64(w, e->attributes.fileid);
    rpc_put_opaque(w, e->name, (uint32_t)strlen(e->name));
    rpc_put_u64(w, e->cookie);
    if (plus) {
        put_post_op(w, &e->attributes);
        put_post_op_handle(w, e->handle);
    }
}

size_t nfs3_reply_readdir(uint8_t *buf, size_t size, uint32_t xid, bool plus,
                          const struct nfs3_attributes *directory, const struct nfs3_entry *entries,
                          size_t entries_count, uint64_t cookie, uint32_t count)
{
    struct rpc_writer w;
    uint64_t used = RESULTS_BEFORE_LIST + DIRECTORY_END_BYTES;
    size_t i = 0;
    bool any = false;

    start(&w, buf, size, xid);
    put_post_op(&w, directory);
    rpc_put_u64(&w, 0); /* cookie verifier: cookies never go stale */
    while (i < entries_count && entries[i].cookie <= cookie)
        i++;
    for (; i < entries_count; i++) {
        uint64_t bytes = entry_bytes(&entries[i], plus);
        if (used + bytes > count || w.overflow ||
            bytes + DIRECTORY_END_BYTES > (uint64_t)(w.end - w.at))
            break;
        put_entry(&w, &entries[i], plus);
        used += bytes;
        any = true;
    }
    if (!any && i < entries_count)
        return nfs3_write_failure(buf, size, xid, plus ? NFS3_PROC_READDIRPLUS : NFS3_PROC_READDIR,
                                  NFS3_STATUS_TOOSMALL);
    rpc_put_u32(&w, 0);
    rpc_put_u32(&w, i == entries_count);
    return rpc_writer_finish(&w, 0);
}
