/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory; each lives in an address range reserved for it. */
#include "loadgen/origin/origin_files.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "loadgen/base/units.h"

struct origin_file *origin_files_find(struct origin_files *files, const char *name, size_t length)
{
    for (size_t i = 0; i < ORIGIN_FILES; i++) {
        struct origin_file *file = &files->files[i];

        if (file->used && strlen(file->name) == length && memcmp(file->name, name, length) == 0)
            return file;
    }
    return NULL;
}

static bool name_is_fine(const char *name, size_t length)
{
    if (length == 0 || length >= ORIGIN_NAME_BYTES || memchr(name, '/', length) ||
        memchr(name, '\0', length))
        return false;
    return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

struct origin_file *origin_files_create(struct origin_files *files, const char *name, size_t length,
                                        uint64_t now_ns, int *error)
{
    struct origin_file *file = files->files;

    *error = name_is_fine(name, length) ? 0 : -EINVAL;
    if (*error)
        return NULL;
    while (file < files->files + ORIGIN_FILES && file->used)
        file++;
    *error = -ENOSPC;
    if (file == files->files + ORIGIN_FILES)
        return NULL;
    if (!file->data) {
        void *data = mmap(NULL, ORIGIN_FILE_MAX_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        *error = -ENOMEM;
        if (data == MAP_FAILED)
            return NULL;
        file->data = data;
    }
    *error = 0;
    file->used = true;
    file->generation++;
    file->mode = 0666;
    file->size_bytes = 0;
    memcpy(file->name, name, length);
    file->name[length] = '\0';
    file->changed_ns = files->changed_ns = now_ns;
    return file;
}

void origin_files_remove(struct origin_files *files, struct origin_file *file, uint64_t now_ns)
{
    origin_files_resize(file, 0, now_ns);
    file->used = false;
    files->changed_ns = now_ns;
}

int origin_files_resize(struct origin_file *file, uint64_t size_bytes, uint64_t now_ns)
{
    uint64_t page = 4096;

    if (size_bytes > ORIGIN_FILE_MAX_BYTES)
        return -EFBIG;
    if (size_bytes < file->size_bytes) {
        /* What is cut must read as zeros when the file grows again. */
        uint64_t whole = (size_bytes + page - 1) / page * page;

        memset(file->data + size_bytes, 0, whole - size_bytes);
        if (whole < ORIGIN_FILE_MAX_BYTES)
            madvise(file->data + whole, ORIGIN_FILE_MAX_BYTES - whole, MADV_DONTNEED);
    }
    file->size_bytes = size_bytes;
    file->changed_ns = now_ns;
    return 0;
}

int origin_files_write(struct origin_file *file, uint64_t offset, const uint8_t *data,
                       size_t length, uint64_t now_ns)
{
    if (offset > ORIGIN_FILE_MAX_BYTES || length > ORIGIN_FILE_MAX_BYTES - offset)
        return -EFBIG;
    if (length > 0)
        memcpy(file->data + offset, data, length);
    if (offset + length > file->size_bytes)
        file->size_bytes = offset + length;
    file->changed_ns = now_ns;
    return 0;
}

static int add_file(struct origin_files *files, const char *spec, const uint8_t *pattern,
                    size_t pattern_bytes, uint64_t now_ns)
{
    const char *equals = strchr(spec, '=');
    uint64_t size;
    int error;

    if (!equals || units_parse_bytes(equals + 1, &size) != 0 ||
        origin_files_find(files, spec, (size_t)(equals - spec)))
        return -EINVAL;
    struct origin_file *file =
        origin_files_create(files, spec, (size_t)(equals - spec), now_ns, &error);

    for (uint64_t offset = 0; !error && offset < size; offset += pattern_bytes) {
        uint64_t left = size - offset;

        error = origin_files_write(file, offset, pattern,
                                   left < pattern_bytes ? (size_t)left : pattern_bytes, now_ns);
    }
    return error;
}

int origin_files_init(struct origin_files *files, const char *const *specs, size_t count,
                      const uint8_t *pattern, size_t pattern_bytes, uint64_t now_ns)
{
    int error = 0;

    memset(files, 0, sizeof(*files));
    files->changed_ns = now_ns;
    for (size_t i = 0; i < count && !error; i++)
        error = add_file(files, specs[i], pattern, pattern_bytes, now_ns);
    return error;
}

void origin_files_fini(struct origin_files *files)
{
    for (size_t i = 0; i < ORIGIN_FILES; i++) {
        if (files->files[i].data)
            munmap(files->files[i].data, ORIGIN_FILE_MAX_BYTES);
        files->files[i].data = NULL;
    }
}
