/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which export a file handle belongs to, learnt from the MOUNT calls that pass.
 *
 * A successful MNT shows an export's path and its root handle. File handles are opaque, but servers
 * put what identifies the export in front; where that format is known the same bytes are found in
 * every handle of the export: Linux nfsd      version 1: the fsid that follows the four type bytes,
 * its length given by the fsid type nfs-ganesha     version 0x43: the export id in bytes 2 and 3
 *   any other       only the root handle itself is known
 * For a handle that says nothing, the client address decides: if it has mounted exactly one export
 * (kernel clients mount on a connection of their own), its calls belong there. NFSv4 clients don't
 * use MOUNT; their handles are recognised once a v3 client has mounted the export.
 *
 * One table for all pools and threads, under its own lock; what is kept is bounded. When a table is
 * full the oldest entry makes room; NFS_EXPORT_PATHS different paths are remembered, later ones are
 * not learnt.
 */
#ifndef SPILLWAY_NFS_EXPORTS_H
#define SPILLWAY_NFS_EXPORTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define NFS_EXPORT_PATHS      4096
#define NFS_EXPORT_HANDLES    4096
#define NFS_EXPORT_CLIENTS    16384
#define NFS_EXPORT_KEY_BYTES  64
#define NFS_EXPORT_PER_CLIENT 4 /* mounts remembered of a client */

struct nfs_exports;

struct nfs_exports *nfs_exports_create(void);
void nfs_exports_destroy(struct nfs_exports *exports);

/* The table of the process, made by the first and freed by the last user. */
struct nfs_exports *nfs_exports_acquire(void);
void nfs_exports_release(struct nfs_exports *exports);

/* `pool` is only compared. `client` mounted `path` and got `handle`. */
void nfs_exports_mounted(struct nfs_exports *exports, const void *pool,
                         const struct sockaddr *client, const char *path, const uint8_t *handle,
                         size_t length);
/* The client unmounted `path`; NULL: everything. */
void nfs_exports_unmounted(struct nfs_exports *exports, const void *pool,
                           const struct sockaddr *client_address, const char *path);

/* The export's path, good as long as the table; NULL: not known. `length` 0: no handle, the client
 * alone decides. */
const char *nfs_exports_find(struct nfs_exports *exports, const void *pool,
                             const struct sockaddr *client_address, const uint8_t *handle,
                             size_t length);

/* The bytes that all handles of an export share, or the handle itself where its format is not
 * known. Returns their number, 0 for an empty handle. */
size_t nfs_exports_handle_key(const uint8_t *handle, size_t length,
                              uint8_t key[NFS_EXPORT_KEY_BYTES]);

#endif
