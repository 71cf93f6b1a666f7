/* SPDX-License-Identifier: Apache-2.0 */
/* What files hold: fixed ranges of those made at start, memory that grows of all others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loadgen/base/memory.h"
#include "loadgen/origin/nfs/origin_files.h"

#define PAGE_BYTES 4096
/* Memory of a file grows by doubling up to this, then by half. */
#define DOUBLING_BYTES (1U << 20)

/* What a file that needs this much is given. */
static uint64_t wanted_capacity(uint64_t capacity, uint64_t needed)
{
    uint64_t wanted = capacity < DOUBLING_BYTES ? 2 * capacity : capacity + capacity / 2;

    return wanted > needed ? wanted : needed;
}

/* Memory up to `needed` bytes, what is new of it zeroed. */
static int reserve(struct origin_files *files, struct origin_node *file, uint64_t needed)
{
    if (needed > ORIGIN_FILE_MAX_BYTES)
        return -EFBIG;
    if (needed <= file->capacity_bytes)
        return 0;
    uint64_t free_bytes =
        files->memory_bytes > files->used_bytes ? files->memory_bytes - files->used_bytes : 0;
    uint64_t capacity = wanted_capacity(file->capacity_bytes, needed);

    if (capacity - file->capacity_bytes > free_bytes)
        capacity = needed;
    if (capacity - file->capacity_bytes > free_bytes)
        return -ENOSPC;
    file->data = memory_grow(file->data, capacity);
    memset(file->data + file->capacity_bytes, 0, capacity - file->capacity_bytes);
    files->used_bytes += capacity - file->capacity_bytes;
    file->capacity_bytes = capacity;
    return 0;
}

/* What is cut must read as zeros when the file grows again. */
static void cut(struct origin_files *files, struct origin_node *file, uint64_t size_bytes)
{
    if (file->fixed) {
        uint64_t whole = (size_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

        memset(file->data + size_bytes, 0, whole - size_bytes);
        if (whole < ORIGIN_FILE_MAX_BYTES)
            madvise(file->data + whole, ORIGIN_FILE_MAX_BYTES - whole, MADV_DONTNEED);
    } else if (size_bytes == 0) {
        files->used_bytes -= file->capacity_bytes;
        free(file->data);
        file->data = NULL;
        file->capacity_bytes = 0;
    } else {
        memset(file->data + size_bytes, 0, file->size_bytes - size_bytes);
    }
}

int origin_files_resize(struct origin_files *files, struct origin_node *file, uint64_t size_bytes,
                        uint64_t now_ns)
{
    int error = reserve(files, file, size_bytes);

    if (error)
        return error;
    if (size_bytes < file->size_bytes)
        cut(files, file, size_bytes);
    file->size_bytes = size_bytes;
    file->changed_ns = now_ns;
    return 0;
}

int origin_files_write(struct origin_files *files, struct origin_node *file, uint64_t offset,
                       const uint8_t *data, size_t length, uint64_t now_ns)
{
    if (offset > ORIGIN_FILE_MAX_BYTES)
        return -EFBIG;
    int error = length > 0 ? reserve(files, file, offset + length) : 0;

    if (error)
        return error;
    if (length > 0)
        memcpy(file->data + offset, data, length);
    if (length > 0 && offset + length > file->size_bytes)
        file->size_bytes = offset + length;
    file->changed_ns = now_ns;
    return 0;
}
