/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first two calls of an NFSv3 client, made once and blocking: MNT for an export's handle,
 * LOOKUP for a file's in it.
 */
#ifndef BENCH_TOOLS_NFS_LOOKUP_H
#define BENCH_TOOLS_NFS_LOOKUP_H

#include "loadgen/base/units.h"
#include "protocols/rpc/nfs3.h"

struct nfs_lookup_handle {
    uint32_t bytes;
    uint8_t data[NFS3_HANDLE_MAX_BYTES];
};

/*
 * Asks the MOUNT service at `mount` for `export_path` and the NFS service at `nfs` for `file` in
 * its root. Returns 0 and the handle, or a negative errno after a message to stderr; each answer
 * is waited for at most 5 seconds.
 */
int nfs_lookup(const struct units_address *mount, const struct units_address *nfs,
               const char *export_path, const char *file, struct nfs_lookup_handle *handle);

#endif
