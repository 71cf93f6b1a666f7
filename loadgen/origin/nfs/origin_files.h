/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin's file system: directories and files in memory, as much of it as `memory_bytes`
 * allows.
 *
 * A node is found by its number and generation (which is what a file handle holds: of a node that
 * is removed, they fit no other), or by its name in a directory. A directory's children are in the
 * order in which they were made; each has a cookie, larger than all before it, at which a listing
 * goes on.
 *
 * Data. Files made at start ("name=size") are filled with a pattern and do not count as memory.
 * Their bytes never move: each has its address range for life (reserved, not allocated: pages come
 * with the first write), so replies may point into it while they wait to be sent; when it is
 * removed meanwhile, they read as zeros. Files that clients make take memory from their first byte
 * to their last, and their bytes move as they grow: whoever keeps them copies them.
 */
#ifndef LOADGEN_ORIGIN_NFS_ORIGIN_FILES_H
#define LOADGEN_ORIGIN_NFS_ORIGIN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files made at start. */
#define ORIGIN_FILES          64
#define ORIGIN_FILE_MAX_BYTES (1ULL << 30)
#define ORIGIN_NAME_MAX_BYTES 255
/* Before the first child's: "." and "..". */
#define ORIGIN_FIRST_COOKIE 3

struct origin_node {
    uint32_t number;
    uint32_t generation; /* 0: the root */
    bool directory;
    uint32_t mode;
    uint64_t size_bytes;
    uint64_t changed_ns; /* since 1970 */

    uint8_t *data;
    uint64_t capacity_bytes;
    bool fixed; /* made at start */

    struct origin_node *parent; /* the root's is itself */
    struct origin_node *first_child, *last_child;
    struct origin_node *before, *after; /* in the parent */
    uint64_t cookie;
    uint64_t last_cookie; /* of its children */
    uint32_t children;
    uint32_t child_directories;

    struct origin_node *next_of_hash;
    uint32_t hash;
    uint32_t name_bytes;
    char name[]; /* with its NUL */
};

struct origin_files {
    struct origin_node *root;
    struct origin_node **nodes; /* by number */
    uint32_t nodes_count;
    uint32_t nodes_capacity;
    uint32_t nodes_used;
    uint32_t *free_numbers;
    uint32_t free_count;
    uint32_t last_generation;
    struct origin_node **table; /* by hash */
    uint32_t table_size;        /* a power of 2 */
    uint64_t used_bytes;
    uint64_t memory_bytes;
    uint8_t *ranges[ORIGIN_FILES];
    size_t ranges_count;
};

/*
 * Makes the root and in it the files named, "name=size" each, filled with the pattern. 0, -EINVAL
 * (not in that form, or named twice), -EFBIG, -ENOSPC (too many), -ENOMEM.
 */
int origin_files_init(struct origin_files *files, uint64_t memory_bytes, const char *const *specs,
                      size_t count, const uint8_t *pattern, size_t pattern_bytes, uint64_t now_ns);
void origin_files_fini(struct origin_files *files);

/* NULL when there is no such node any more. */
struct origin_node *origin_files_node(const struct origin_files *files, uint32_t number,
                                      uint32_t generation);

/* By name (length bytes, not terminated); NULL when there is none. */
struct origin_node *origin_files_find(const struct origin_files *files,
                                      const struct origin_node *directory, const char *name,
                                      size_t length);

/* The first child whose cookie is above this one; NULL when there is none. */
struct origin_node *origin_files_child(const struct origin_node *directory, uint64_t cookie);

/* A new, empty file or directory; there must be none of that name. NULL with *error -EINVAL (name),
 * or -ENOSPC. */
struct origin_node *origin_files_create(struct origin_files *files, struct origin_node *directory,
                                        const char *name, size_t length, bool is_directory,
                                        uint64_t now_ns, int *error);

/* Frees it. Not the root, nor a directory with children. */
void origin_files_remove(struct origin_files *files, struct origin_node *node, uint64_t now_ns);

/* Grows with zeros or cuts. -EFBIG past ORIGIN_FILE_MAX_BYTES, -ENOSPC. */
int origin_files_resize(struct origin_files *files, struct origin_node *file, uint64_t size_bytes,
                        uint64_t now_ns);

/* Writes, growing the file when needed. -EFBIG past ORIGIN_FILE_MAX_BYTES, -ENOSPC. */
int origin_files_write(struct origin_files *files, struct origin_node *file, uint64_t offset,
                       const uint8_t *data, size_t length, uint64_t now_ns);

#endif
