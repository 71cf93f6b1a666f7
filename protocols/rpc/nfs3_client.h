/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 calls for a client (load generator, calibration): each writes one whole record, mark
 * included, and returns its bytes in the buffer, 0 when `size` is too small or a handle or name is
 * too long. NFS3_CALL_MAX_BYTES is always enough. Replies are read with rpc_parse_reply,
 * nfs3_parse_reply, nfs3_entries_begin, mount3_parse_mnt_reply; MNT calls are in mount3.h. */
#ifndef SPILLWAY_PROTOCOLS_RPC_NFS3_CLIENT_H
#define SPILLWAY_PROTOCOLS_RPC_NFS3_CLIENT_H

#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/rpc_message.h"

#define NFS3_CALL_MAX_BYTES 1280

enum nfs3_stable { NFS3_UNSTABLE = 0, NFS3_DATA_SYNC = 1, NFS3_FILE_SYNC = 2 };

/* What every call of one client has in common. */
struct nfs3_client {
    struct rpc_identity identity;
};

size_t nfs3_call_null(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid);
size_t nfs3_call_getattr(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice handle);
size_t nfs3_call_lookup(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *name);
/* `bits`: ACCESS3_READ 1, LOOKUP 2, MODIFY 4, EXTEND 8, DELETE 16, EXECUTE 32. */
size_t nfs3_call_access(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle, uint32_t bits);
size_t nfs3_call_read(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                      struct rpc_slice handle, uint64_t offset, uint32_t count);
/* Header only, up to and including the data's length word: the caller sends `count` bytes and zeros
 * up to rpc_padded(count) right behind it; the mark counts them. */
size_t nfs3_call_write(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                       struct rpc_slice handle, uint64_t offset, uint32_t count,
                       enum nfs3_stable stable);
/* An unchecked CREATE with the mode bits given and, when `truncate`, size 0. */
size_t nfs3_call_create(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *name, uint32_t mode, bool truncate);
size_t nfs3_call_remove(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *name);
size_t nfs3_call_readdirplus(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                             struct rpc_slice directory, uint64_t cookie, uint64_t verifier,
                             uint32_t dircount, uint32_t maxcount);
size_t nfs3_call_fsinfo(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle);
size_t nfs3_call_fsstat(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle);
size_t nfs3_call_pathconf(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                          struct rpc_slice handle);
size_t nfs3_call_readlink(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                          struct rpc_slice handle);
/* A SETATTR of the mode bits alone, without a guard. */
size_t nfs3_call_setattr(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice handle, uint32_t mode);
size_t nfs3_call_mkdir(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                       struct rpc_slice directory, const char *name, uint32_t mode);
size_t nfs3_call_rmdir(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                       struct rpc_slice directory, const char *name);
/* `target`: what the link says, at most NFS3_NAME_MAX_BYTES. */
size_t nfs3_call_symlink(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice directory, const char *name, const char *target);
size_t nfs3_call_link(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                      struct rpc_slice file, struct rpc_slice directory, const char *name);
/* Within one directory. */
size_t nfs3_call_rename(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice directory, const char *from, const char *to);
size_t nfs3_call_readdir(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                         struct rpc_slice directory, uint64_t cookie, uint64_t verifier,
                         uint32_t count);
/* `count` 0: to the end of the file. */
size_t nfs3_call_commit(uint8_t *buf, size_t size, const struct nfs3_client *c, uint32_t xid,
                        struct rpc_slice handle, uint64_t offset, uint32_t count);

/* The entries of a READDIR's results, in order. */
struct nfs3_entries {
    struct rpc_reader reader;
    uint64_t cookie;   /* of the entry found last, to go on behind it */
    uint64_t verifier; /* likewise, for the next call */
};

/* OK, NEED_MORE, GARBAGE. The results are those of a call with status OK; they must stay. */
enum rpc_parse nfs3_entries_begin(struct nfs3_entries *entries, const uint8_t *results, size_t len);
/* The next entry's name. OK; NOT_EXPECTED when there is none any more; NEED_MORE, GARBAGE. */
enum rpc_parse nfs3_entries_next(struct nfs3_entries *entries, struct rpc_slice *name);

#endif
