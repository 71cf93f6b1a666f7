/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file handles of a flow: of the export, of the set's root, and of the set's directories and
 * files as far as memory goes.
 *
 *   key    0 .. directories - 1   |  directories .. directories + files - 1
 *          directory of that      |  file of that number
 *          number
 *
 * Handles lie in a table of NFS_TREE_BYTES at most. When all fit, each key has a place of its own;
 * else keys share places and the later one drives out the earlier one, which is looked up again at
 * its next use. A walk looks up what is missing on the way to a key, from the deepest directory
 * that is known.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_TREE_H
#define LOADGEN_CLIENT_NFS_NFS_TREE_H

#include "loadgen/client/nfs/nfs_calls.h"
#include "loadgen/fileset/fileset.h"

#define NFS_TREE_BYTES (128U << 20)
#define NFS_TREE_ROOT  UINT64_MAX /* in place of a key: the set's root */

struct nfs_tree {
    const struct fileset *set;
    struct nfs_handle export; /* set by the wire, once it has mounted */
    struct nfs_handle root;   /* found by walking */
    uint64_t capacity;        /* places */
    size_t stride;
    uint8_t *places;
    uint64_t lookups; /* calls made by walks */
};

/* `handle_bytes`: the longest of the protocol. The set must outlive the tree. */
void nfs_tree_init(struct nfs_tree *tree, const struct fileset *set, uint32_t handle_bytes);
void nfs_tree_fini(struct nfs_tree *tree);

static inline uint64_t nfs_tree_file_key(const struct nfs_tree *tree, uint64_t file)
{
    return tree->set->directories + file;
}

/* Whether every handle of the set has a place of its own. */
bool nfs_tree_holds_all(const struct nfs_tree *tree);

/* A handle, valid until the next put; false when it is not known. */
bool nfs_tree_get(const struct nfs_tree *tree, uint64_t key, struct rpc_slice *out);
void nfs_tree_put(struct nfs_tree *tree, uint64_t key, struct rpc_slice handle);

/* The server called the key's handle stale: forgets it and all above it, the root's too. */
void nfs_tree_forget(struct nfs_tree *tree, uint64_t key);

/* The name of a key in its directory, and that directory's key (NFS_TREE_ROOT for the root). */
void nfs_tree_name(const struct nfs_tree *tree, uint64_t key, char name[256]);
uint64_t nfs_tree_parent(const struct nfs_tree *tree, uint64_t key);

/* A walk under way; its owner's memory until done(). */
struct nfs_walk {
    struct nfs_call call;
    struct nfs_caller *caller;
    struct nfs_tree *tree;
    uint64_t key;       /* where to */
    uint64_t step;      /* what is being looked up */
    size_t root_offset; /* in the set's root path: behind what is known of it */
    void (*done)(struct nfs_walk *walk, int error);
};

/* Looks up what is missing, so that nfs_tree_get(key) works; done() says 0 or the error of the
 * call that failed, never before this returns. The export's handle must be known. */
void nfs_tree_walk(struct nfs_tree *tree, struct nfs_caller *caller, uint64_t key,
                   struct nfs_walk *walk, void (*done)(struct nfs_walk *walk, int error));

#endif
