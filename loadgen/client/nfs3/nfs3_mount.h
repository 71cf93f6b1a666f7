/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounting where MOUNT is not served at the NFS port: the port is asked of the host's portmapper,
 * then MNT is called there. One at a time; each ends with done().
 *
 *   IDLE -> PORTMAP (GETPORT at port 111) -> MOUNT (MNT at the port it said) -> IDLE
 */
#ifndef LOADGEN_CLIENT_NFS3_NFS3_MOUNT_H
#define LOADGEN_CLIENT_NFS3_NFS3_MOUNT_H

#include "loadgen/base/units.h"
#include "loadgen/client/nfs/nfs_calls.h"
#include "loadgen/net/stream.h"
#include "protocols/rpc/rpc_message.h"
#include "protocols/rpc/rpc_record.h"

enum nfs3_mount_stage {
    NFS3_MOUNT_IDLE,
    NFS3_MOUNT_PORTMAP,
    NFS3_MOUNT_MOUNT,
};

struct nfs3_mount {
    struct stream stream;
    struct loop *loop;
    enum nfs3_mount_stage stage;
    struct rpc_record_decoder decoder;
    uint8_t reply[512];
    size_t reply_bytes;
    struct units_address target; /* of NFS; the host counts */
    uint16_t port;
    const char *export_path;
    struct rpc_identity identity;
    uint32_t xid;

    /* The result: a handle, or its length is 0 and `problem` a sentence. */
    struct nfs_handle handle;
    char problem[128];
    void (*done)(struct nfs3_mount *mount);
};

/* Idle; loop, target, export_path, identity and done are set. done() never comes before this
 * returns. */
void nfs3_mount_begin(struct nfs3_mount *mount);
/* Ends it without done(). */
void nfs3_mount_fini(struct nfs3_mount *mount);

#endif
