/* SPDX-License-Identifier: Apache-2.0 */
/* Handles and walks. A place in the table: the key and 1 (0: empty), the handle's length, the
 * handle.
 */
#include "loadgen/client/nfs/nfs_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"

struct place {
    uint64_t key_and_1;
    uint32_t length;
    uint8_t bytes[];
};

void nfs_tree_init(struct nfs_tree *tree, const struct fileset *set, uint32_t handle_bytes)
{
    uint64_t keys = set->directories + set->spec.files;

    memset(tree, 0, sizeof(*tree));
    tree->set = set;
    tree->stride = (offsetof(struct place, bytes) + handle_bytes + 7) & ~(size_t)7;
    tree->capacity = NFS_TREE_BYTES / tree->stride;
    if (keys < tree->capacity)
        tree->capacity = keys;
    tree->places = memory_zeroed(tree->capacity, tree->stride);
}

void nfs_tree_fini(struct nfs_tree *tree)
{
    free(tree->places);
    tree->places = NULL;
}

bool nfs_tree_holds_all(const struct nfs_tree *tree)
{
    return tree->capacity == tree->set->directories + tree->set->spec.files;
}

static struct place *place_of(const struct nfs_tree *tree, uint64_t key)
{
    return (void *)(tree->places + key % tree->capacity * tree->stride);
}

bool nfs_tree_get(const struct nfs_tree *tree, uint64_t key, struct rpc_slice *out)
{
    if (key == NFS_TREE_ROOT) {
        *out = nfs_handle_slice(&tree->root);
        return tree->root.length > 0;
    }
    const struct place *place = place_of(tree, key);

    if (place->key_and_1 != key + 1)
        return false;
    *out = (struct rpc_slice){place->bytes, place->length};
    return true;
}

void nfs_tree_put(struct nfs_tree *tree, uint64_t key, struct rpc_slice handle)
{
    if (key == NFS_TREE_ROOT) {
        nfs_handle_keep(&tree->root, handle);
        return;
    }
    struct place *place = place_of(tree, key);

    if (handle.len == 0 || offsetof(struct place, bytes) + handle.len > tree->stride)
        return;
    place->key_and_1 = key + 1;
    place->length = handle.len;
    memcpy(place->bytes, handle.data, handle.len);
}

void nfs_tree_forget(struct nfs_tree *tree, uint64_t key)
{
    for (; key != NFS_TREE_ROOT; key = nfs_tree_parent(tree, key)) {
        struct place *place = place_of(tree, key);

        if (place->key_and_1 == key + 1)
            place->key_and_1 = 0;
    }
    tree->root.length = 0;
}

uint64_t nfs_tree_parent(const struct nfs_tree *tree, uint64_t key)
{
    if (key >= tree->set->directories)
        return fileset_file_directory(tree->set, key - tree->set->directories);
    return fileset_directory_parent(tree->set, key);
}

void nfs_tree_name(const struct nfs_tree *tree, uint64_t key, char name[256])
{
    char path[FILESET_PATH_BYTES];

    if (key >= tree->set->directories)
        fileset_file_path(tree->set, key - tree->set->directories, path);
    else
        fileset_directory_path(tree->set, key, path);
    const char *slash = strrchr(path, '/');

    snprintf(name, 256, "%s", slash ? slash + 1 : path);
}

/* ---------------------------------------------------------------- walks */

/* The key between `from` (an ancestor of `to`, or the root) and `to` that is next to `from`. */
static uint64_t next_below(const struct nfs_tree *tree, uint64_t from, uint64_t to)
{
    uint64_t parent;

    while ((parent = nfs_tree_parent(tree, to)) != from)
        to = parent;
    return to;
}

/* Issues the call for walk->step; below the root by its name there, to the root by root_offset. */
static void look_up(struct nfs_walk *walk, struct rpc_slice directory)
{
    const char *root = walk->tree->set->spec.root + walk->root_offset;

    walk->call.kind = NFS_CALL_LOOKUP;
    nfs_handle_keep(&walk->call.handle, directory);
    if (walk->step == NFS_TREE_ROOT)
        snprintf(walk->call.name, sizeof(walk->call.name), "%.*s", (int)strcspn(root, "/"), root);
    else
        nfs_tree_name(walk->tree, walk->step, walk->call.name);
    walk->tree->lookups++;
    walk->caller->issue(walk->caller, &walk->call);
}

static void looked_up(struct nfs_call *call)
{
    struct nfs_walk *walk = (void *)((char *)call - offsetof(struct nfs_walk, call));
    struct nfs_tree *tree = walk->tree;
    struct rpc_slice found = nfs_handle_slice(&call->found);

    if (call->error) {
        walk->done(walk, call->error);
        return;
    }
    if (walk->step == NFS_TREE_ROOT) {
        const char *root = tree->set->spec.root + walk->root_offset;
        size_t name = strcspn(root, "/");

        if (root[name]) {
            walk->root_offset += name + 1;
            look_up(walk, found);
            return;
        }
    }
    nfs_tree_put(tree, walk->step, found);
    if (walk->step == walk->key) {
        walk->done(walk, 0);
        return;
    }
    walk->step = next_below(tree, walk->step, walk->key);
    look_up(walk, found);
}

void nfs_tree_walk(struct nfs_tree *tree, struct nfs_caller *caller, uint64_t key,
                   struct nfs_walk *walk, void (*done)(struct nfs_walk *walk, int error))
{
    struct rpc_slice handle = nfs_handle_slice(&tree->export);
    uint64_t known = key;

    walk->tree = tree;
    walk->caller = caller;
    walk->key = key;
    walk->root_offset = 0;
    walk->done = done;
    walk->call.done = looked_up;
    /* Up to the deepest directory that is known; what is asked for is looked up in any case. */
    do {
        walk->step = known;
        if (known == NFS_TREE_ROOT)
            break;
        known = nfs_tree_parent(tree, known);
    } while (!nfs_tree_get(tree, known, &handle));
    if (walk->step == NFS_TREE_ROOT)
        handle = nfs_handle_slice(&tree->export);
    look_up(walk, handle);
}
