/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 replies for a simple server (the embedded origin): each writes one whole record, mark
 * included, and returns its bytes in the buffer, 0 when `size` is too small.
 * NFS3_REPLY_MAX_BYTES is enough for all but the directory listings. Calls are read with
 * rpc_parse_call and nfs3_parse_call; failures are nfs3_write_failure. */
#ifndef SPILLWAY_PROTOCOLS_RPC_NFS3_SERVER_H
#define SPILLWAY_PROTOCOLS_RPC_NFS3_SERVER_H

#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/rpc_message.h"

#define NFS3_REPLY_MAX_BYTES 512

enum nfs3_type { NFS3_TYPE_REG = 1, NFS3_TYPE_DIR = 2 };

struct nfs3_attributes {
    enum nfs3_type type;
    uint32_t mode; /* permission bits */
    uint32_t nlink;
    uint32_t uid;
    uint32_t gid;
    uint64_t size_bytes;
    uint64_t fsid;
    uint64_t fileid;
    uint64_t time_ns; /* since 1970: access, modification and change time */
};

/* FSINFO, FSSTAT and PATHCONF answers in one. */
struct nfs3_service {
    uint32_t read_max_bytes;
    uint32_t write_max_bytes;
    uint32_t directory_bytes; /* preferred READDIR size */
    uint64_t file_max_bytes;
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t total_files;
    uint64_t free_files;
};

size_t nfs3_reply_null(uint8_t *buf, size_t size, uint32_t xid);
size_t nfs3_reply_getattr(uint8_t *buf, size_t size, uint32_t xid,
                          const struct nfs3_attributes *attributes);
/* SETATTR, REMOVE, RMDIR, and any other whose success is only wcc_data: `proc` must be one of them.
 */
size_t nfs3_reply_wcc(uint8_t *buf, size_t size, uint32_t xid, const struct nfs3_attributes *after);
/* `directory` may be NULL: its attributes are left out. */
size_t nfs3_reply_lookup(uint8_t *buf, size_t size, uint32_t xid, struct rpc_slice handle,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_attributes *directory);
size_t nfs3_reply_access(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *attributes, uint32_t granted);
/* Header only, up to and including the data's length word: the caller sends `count` bytes and zeros
 * up to rpc_padded(count) right behind it; the mark counts them. */
size_t nfs3_reply_read(uint8_t *buf, size_t size, uint32_t xid,
                       const struct nfs3_attributes *attributes, uint32_t count, bool eof);
size_t nfs3_reply_write(uint8_t *buf, size_t size, uint32_t xid,
                        const struct nfs3_attributes *after, uint32_t count, uint32_t committed,
                        uint64_t verifier);
/* CREATE and MKDIR. */
size_t nfs3_reply_create(uint8_t *buf, size_t size, uint32_t xid, struct rpc_slice handle,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_attributes *directory);
size_t nfs3_reply_commit(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *after, uint64_t verifier);
size_t nfs3_reply_fsinfo(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_service *service);
size_t nfs3_reply_fsstat(uint8_t *buf, size_t size, uint32_t xid,
                         const struct nfs3_attributes *attributes,
                         const struct nfs3_service *service);
size_t nfs3_reply_pathconf(uint8_t *buf, size_t size, uint32_t xid,
                           const struct nfs3_attributes *attributes);

struct nfs3_entry {
    const char *name;
    uint64_t cookie; /* of this entry: a listing that goes on starts behind it */
    struct rpc_slice handle;
    struct nfs3_attributes attributes; /* fileid is used by both forms */
};

/* READDIR (`plus` false) and READDIRPLUS: the entries whose cookie is > `cookie`, as many as the
 * call's size (`count` / `maxcount` bytes of results) and the buffer hold; `eof` is written when
 * all fitted. Entries must be in ascending order of cookie. When not even one entry fits: the
 * failure TOOSMALL. */
size_t nfs3_reply_readdir(uint8_t *buf, size_t size, uint32_t xid, bool plus,
                          const struct nfs3_attributes *directory, const struct nfs3_entry *entries,
                          size_t entries_count, uint64_t cookie, uint32_t count);

#endif
