/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting a flow's file set ready over the wire, before its first request:
 *
 *   ROOT (look it up; make it) -> MARKER (read it) -> there? ---------------> HANDLES -> DONE
 *                                       | none              ^
 *                                       v                   |
 *                                  DIRECTORIES -> FILES -> MARK
 *
 * HANDLES looks up all of the set when it fits into the tree's table, else nothing. A marker of
 * another set, or none and spec.nfs.populate false, is FAILED, after a message on stderr. What
 * fails for want of a connection or because the server is busy is done again.
 *
 * Sets are shared by the flows of a process: the first flow of a set (same target, export and root)
 * makes it, the others wait for that; verifying flows share its versions.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_SETUP_H
#define LOADGEN_CLIENT_NFS_NFS_SETUP_H

#include "loadgen/client/flow.h"
#include "loadgen/client/nfs/nfs_tree.h"
#include "loadgen/client/nfs/nfs_versions.h"

/* Calls in flight at once. */
#define NFS_SETUP_CALLS 64

struct nfs_setup;

/*
 * `flow` has a set. NULL after a message on stderr when another flow of the process uses the same
 * root in a way that does not go together: another description, or writing without verifying what
 * another one verifies.
 */
struct nfs_setup *nfs_setup_create(struct flow *flow, struct nfs_caller *caller,
                                   uint32_t handle_bytes);
void nfs_setup_destroy(struct nfs_setup *setup);

const struct fileset *nfs_setup_set(const struct nfs_setup *setup);
struct nfs_tree *nfs_setup_tree(struct nfs_setup *setup);
/* NULL when the flow does not verify. */
struct nfs_versions *nfs_setup_versions(struct nfs_setup *setup);

/* The tree's export handle is known: begins, once. `write_most`: bytes in one WRITE. */
void nfs_setup_begin(struct nfs_setup *setup, uint32_t write_most);
bool nfs_setup_done(const struct nfs_setup *setup);
bool nfs_setup_failed(const struct nfs_setup *setup);
/* As flow_transport.progress. */
bool nfs_setup_progress(struct nfs_setup *setup, char *text, size_t size);

#endif
