/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin's file system: one directory of at most ORIGIN_FILES files, all in memory.
 *
 * A file's bytes never move: each has its address range for life (reserved, not allocated: pages
 * come with the first write). So replies may point into a file while they wait to be sent; a file
 * that is removed meanwhile reads as zeros.
 */
#ifndef LOADGEN_ORIGIN_ORIGIN_FILES_H
#define LOADGEN_ORIGIN_ORIGIN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORIGIN_FILES          64
#define ORIGIN_FILE_MAX_BYTES (1ULL << 30)
#define ORIGIN_NAME_BYTES     64

struct origin_file {
    bool used;
    char name[ORIGIN_NAME_BYTES];
    uint32_t generation; /* of the slot: handles of removed files are stale */
    uint32_t mode;
    uint64_t size_bytes;
    uint64_t changed_ns; /* since 1970 */
    uint8_t *data;       /* ORIGIN_FILE_MAX_BYTES of address space */
};

struct origin_files {
    struct origin_file files[ORIGIN_FILES];
    uint64_t changed_ns;
};

/*
 * Makes the files named, "name=size" each, filled with the pattern. 0, -EINVAL (not in that form,
 * or named twice), -EFBIG, -ENOSPC (too many), -ENOMEM.
 */
int origin_files_init(struct origin_files *files, const char *const *specs, size_t count,
                      const uint8_t *pattern, size_t pattern_bytes, uint64_t now_ns);
void origin_files_fini(struct origin_files *files);

/* By name (length bytes, not terminated); NULL when there is none. */
struct origin_file *origin_files_find(struct origin_files *files, const char *name, size_t length);

/* A new, empty file; there must be none of that name. NULL with *error -EINVAL (name), -ENOSPC or
 * -ENOMEM. */
struct origin_file *origin_files_create(struct origin_files *files, const char *name, size_t length,
                                        uint64_t now_ns, int *error);
void origin_files_remove(struct origin_files *files, struct origin_file *file, uint64_t now_ns);

/* Grows with zeros or cuts. -EFBIG past ORIGIN_FILE_MAX_BYTES. */
int origin_files_resize(struct origin_file *file, uint64_t size_bytes, uint64_t now_ns);

/* Writes, growing the file when needed. -EFBIG past ORIGIN_FILE_MAX_BYTES. */
int origin_files_write(struct origin_file *file, uint64_t offset, const uint8_t *data,
                       size_t length, uint64_t now_ns);

#endif
