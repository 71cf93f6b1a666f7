/* SPDX-License-Identifier: Apache-2.0 */
/* MOUNT version 3 (RFC 1813 appendix I), and what there is to know of NFSACL: enough to learn which
 * file handle an export has, and to ask for or give one. */
#ifndef SPILLWAY_PROTOCOLS_RPC_MOUNT3_H
#define SPILLWAY_PROTOCOLS_RPC_MOUNT3_H

#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/rpc_message.h"

#define MOUNT_PROG           100005
#define MOUNT3_VERS          3
#define MOUNT_PATH_MAX_BYTES 1024
#define MOUNT_NAME_MAX_BYTES 255

enum mount3_proc {
    MOUNT3_PROC_NULL = 0,
    MOUNT3_PROC_MNT = 1,
    MOUNT3_PROC_DUMP = 2,
    MOUNT3_PROC_UMNT = 3,
    MOUNT3_PROC_UMNTALL = 4,
    MOUNT3_PROC_EXPORT = 5,
};
#define MOUNT3_PROCS 6

enum mount3_status {
    MOUNT3_STATUS_OK = 0,
    MOUNT3_STATUS_PERM = 1,
    MOUNT3_STATUS_NOENT = 2,
    MOUNT3_STATUS_ACCES = 13,
    MOUNT3_STATUS_NOTDIR = 20,
    MOUNT3_STATUS_SERVERFAULT = 10006,
};

/* NULL when it isn't a procedure of MOUNT version 3. Versions 1 and 2 have the same numbers. */
const char *mount3_proc_name(uint32_t proc);

/* The directory path of MNT and UMNT arguments (no terminating 0). OK, NEED_MORE, GARBAGE. */
enum rpc_parse mount3_parse_path(const uint8_t *args, size_t len, struct rpc_slice *path);

struct mount3_reply {
    uint32_t status;
    struct rpc_slice handle;
    uint32_t flavours[8]; /* the first ones the server lists */
    uint32_t flavours_count;
};

/* The results of MNT. OK, NEED_MORE, GARBAGE. */
enum rpc_parse mount3_parse_mnt_reply(const uint8_t *results, size_t len, struct mount3_reply *out);

/* Whole calls, mark included; 0 when the path is too long or the buffer too small.
 * MOUNT3_CALL_MAX_BYTES is always enough. */
#define MOUNT3_CALL_MAX_BYTES                                                                      \
    (RPC_RECORD_MARK_BYTES + RPC_CALL_HEADER_MAX_BYTES + 4 + MOUNT_PATH_MAX_BYTES)
size_t mount3_write_mnt_call(uint8_t *buf, size_t size, uint32_t xid,
                             const struct rpc_identity *identity, const char *path);
size_t mount3_write_umnt_call(uint8_t *buf, size_t size, uint32_t xid,
                              const struct rpc_identity *identity, const char *path);

size_t mount3_write_export_call(uint8_t *buf, size_t size, uint32_t xid,
                                const struct rpc_identity *identity);

/* The paths in the results of EXPORT, one after the other from a reader that starts at the first
 * byte; who may mount them is skipped. OK; NOT_EXPECTED after the last; NEED_MORE, GARBAGE. */
enum rpc_parse mount3_next_export(struct rpc_reader *r, struct rpc_slice *path);

/* Whole replies, mark included; 0 when the buffer is too small. MNT: on MOUNT3_STATUS_OK the handle
 * and the flavours AUTH_SYS and AUTH_NONE. */
size_t mount3_write_mnt_reply(uint8_t *buf, size_t size, uint32_t xid, enum mount3_status status,
                              struct rpc_slice handle);
/* NULL, UMNT, UMNTALL: void. */
size_t mount3_write_void_reply(uint8_t *buf, size_t size, uint32_t xid);
/* EXPORT: each path open to everyone (no groups). DUMP: an empty list. */
size_t mount3_write_export_reply(uint8_t *buf, size_t size, uint32_t xid, const char *const *paths,
                                 size_t count);
size_t mount3_write_dump_reply(uint8_t *buf, size_t size, uint32_t xid);

/* NFSACL, a side protocol of Linux and Solaris on the NFS port: versions 2 and 3. */
#define NFSACL_PROG 100227
/* NULL when it isn't a procedure of that version. */
const char *nfsacl_proc_name(uint32_t vers, uint32_t proc);
/* All of NFSACL is class metadata; all but SETACL only reads. */
bool nfsacl_proc_reads(uint32_t vers, uint32_t proc);

#endif
