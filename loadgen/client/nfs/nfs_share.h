/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File sets that flows of this process have in common, found by target, export and root: who makes
 * the set, and, for verifying flows, the versions of its blocks. One thread uses all of them.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_SHARE_H
#define LOADGEN_CLIENT_NFS_NFS_SHARE_H

#include "loadgen/client/flow_spec.h"
#include "loadgen/client/nfs/nfs_versions.h"

enum nfs_share_state {
    NFS_SHARE_UNSEEN, /* nobody has looked yet */
    NFS_SHARE_MAKING, /* one flow looks, and makes it */
    NFS_SHARE_THERE,
};

struct nfs_share {
    struct nfs_share *next;
    uint32_t users;
    struct flow_spec spec; /* of the flow that came first */
    struct fileset set;
    enum nfs_share_state state;
    bool verified;
    bool overwritten;              /* a flow that does not verify writes to it */
    struct nfs_versions *versions; /* with the first flow that verifies */
};

/* Takes part in the set of a flow's spec. NULL and a sentence in `problem` when that does not go
 * with what the others do. */
struct nfs_share *nfs_share_join(const struct flow_spec *spec, char problem[FILESET_PROBLEM_BYTES]);
void nfs_share_leave(struct nfs_share *share);

#endif
