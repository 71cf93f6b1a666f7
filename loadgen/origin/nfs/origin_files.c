/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of files and directories; what files hold is in origin_file_data.c. */
#include "loadgen/origin/nfs/origin_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define FIRST_TABLE 256

/* ---------------------------------------------------------------- names */

/* FNV-1a over the name, begun with the directory's generation. */
static uint32_t hash_of(const struct origin_node *directory, const char *name, size_t length)
{
    uint32_t hash = 2166136261U ^ directory->generation * 2654435761U;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)name[i]) * 16777619U;
    return hash ^ hash >> 15;
}

struct origin_node *origin_files_find(const struct origin_files *files,
                                      const struct origin_node *directory, const char *name,
                                      size_t length)
{
    uint32_t hash = hash_of(directory, name, length);
    struct origin_node *node = files->table[hash & (files->table_size - 1)];

    while (node && (node->hash != hash || node->parent != directory || node->name_bytes != length ||
                    memcmp(node->name, name, length) != 0))
        node = node->next_of_hash;
    return node;
}

static void table_put(struct origin_files *files, struct origin_node *node)
{
    struct origin_node **place = &files->table[node->hash & (files->table_size - 1)];

    node->next_of_hash = *place;
    *place = node;
}

static void table_take(struct origin_files *files, const struct origin_node *node)
{
    struct origin_node **place = &files->table[node->hash & (files->table_size - 1)];

    while (*place != node)
        place = &(*place)->next_of_hash;
    *place = node->next_of_hash;
}

static void table_grow(struct origin_files *files)
{
    free((void *)files->table);
    files->table_size *= 2;
    files->table = memory_zeroed(files->table_size, sizeof(*files->table));
    for (uint32_t i = 0; i < files->nodes_count; i++) {
        if (files->nodes[i] && files->nodes[i] != files->root)
            table_put(files, files->nodes[i]);
    }
}

static bool name_is_fine(const char *name, size_t length)
{
    if (length == 0 || length > ORIGIN_NAME_MAX_BYTES || memchr(name, '/', length) ||
        memchr(name, '\0', length))
        return false;
    return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

/* ---------------------------------------------------------------- nodes */

struct origin_node *origin_files_node(const struct origin_files *files, uint32_t number,
                                      uint32_t generation)
{
    struct origin_node *node = number < files->nodes_count ? files->nodes[number] : NULL;

    return node && node->generation == generation ? node : NULL;
}

struct origin_node *origin_files_child(const struct origin_node *directory, uint64_t cookie)
{
    struct origin_node *node = directory->first_child;

    while (node && node->cookie <= cookie)
        node = node->after;
    return node;
}

static uint32_t take_number(struct origin_files *files)
{
    if (files->free_count > 0)
        return files->free_numbers[--files->free_count];
    if (files->nodes_count == files->nodes_capacity) {
        uint32_t capacity = files->nodes_capacity ? 2 * files->nodes_capacity : FIRST_TABLE;

        files->nodes = memory_grow((void *)files->nodes, capacity * sizeof(*files->nodes));
        files->free_numbers =
            memory_grow(files->free_numbers, capacity * sizeof(*files->free_numbers));
        files->nodes_capacity = capacity;
    }
    return files->nodes_count++;
}

static size_t node_bytes(size_t name_bytes)
{
    return sizeof(struct origin_node) + name_bytes + 1;
}

static struct origin_node *node_make(struct origin_files *files, const char *name, size_t length,
                                     bool is_directory)
{
    struct origin_node *node = memory_zeroed(1, node_bytes(length));

    memcpy(node->name, name, length);
    node->name_bytes = (uint32_t)length;
    node->number = take_number(files);
    node->directory = is_directory;
    node->mode = is_directory ? 0777 : 0666;
    node->last_cookie = ORIGIN_FIRST_COOKIE - 1;
    files->nodes[node->number] = node;
    files->nodes_used++;
    return node;
}

static void link_child(struct origin_node *directory, struct origin_node *node)
{
    node->parent = directory;
    node->cookie = ++directory->last_cookie;
    node->before = directory->last_child;
    if (node->before)
        node->before->after = node;
    else
        directory->first_child = node;
    directory->last_child = node;
    directory->children++;
    directory->child_directories += node->directory;
}

static void unlink_child(struct origin_node *directory, struct origin_node *node)
{
    if (node->before)
        node->before->after = node->after;
    else
        directory->first_child = node->after;
    if (node->after)
        node->after->before = node->before;
    else
        directory->last_child = node->before;
    directory->children--;
    directory->child_directories -= node->directory;
}

struct origin_node *origin_files_create(struct origin_files *files, struct origin_node *directory,
                                        const char *name, size_t length, bool is_directory,
                                        uint64_t now_ns, int *error)
{
    *error = name_is_fine(name, length) ? 0 : -EINVAL;
    if (*error)
        return NULL;
    if (files->used_bytes + node_bytes(length) > files->memory_bytes) {
        *error = -ENOSPC;
        return NULL;
    }
    struct origin_node *node = node_make(files, name, length, is_directory);

    files->used_bytes += node_bytes(length);
    node->generation = ++files->last_generation;
    node->hash = hash_of(directory, name, length);
    link_child(directory, node);
    table_put(files, node);
    if (files->nodes_used > files->table_size)
        table_grow(files);
    node->changed_ns = directory->changed_ns = now_ns;
    return node;
}

void origin_files_remove(struct origin_files *files, struct origin_node *node, uint64_t now_ns)
{
    /* Of a file made at start this zeroes the range, which stays. */
    origin_files_resize(files, node, 0, now_ns);
    if (!node->fixed) {
        files->used_bytes -= node->capacity_bytes;
        free(node->data);
    }
    files->used_bytes -= node_bytes(node->name_bytes);
    table_take(files, node);
    unlink_child(node->parent, node);
    node->parent->changed_ns = now_ns;
    files->nodes[node->number] = NULL;
    files->free_numbers[files->free_count++] = node->number;
    files->nodes_used--;
    free(node);
}

/* ---------------------------------------------------------------- the whole */

static int add_file(struct origin_files *files, const char *spec, const uint8_t *pattern,
                    size_t pattern_bytes, uint64_t now_ns)
{
    const char *equals = strchr(spec, '=');
    uint64_t size;
    int error;

    if (!equals || units_parse_bytes(equals + 1, &size) != 0 ||
        origin_files_find(files, files->root, spec, (size_t)(equals - spec)))
        return -EINVAL;
    if (files->ranges_count == ORIGIN_FILES)
        return -ENOSPC;
    struct origin_node *file = origin_files_create(files, files->root, spec,
                                                   (size_t)(equals - spec), false, now_ns, &error);

    if (!file)
        return error;
    void *range = mmap(NULL, ORIGIN_FILE_MAX_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (range == MAP_FAILED)
        return -ENOMEM;
    files->ranges[files->ranges_count++] = range;
    file->data = range;
    file->capacity_bytes = ORIGIN_FILE_MAX_BYTES;
    file->fixed = true;
    for (uint64_t offset = 0; !error && offset < size; offset += pattern_bytes) {
        uint64_t left = size - offset;

        error = origin_files_write(files, file, offset, pattern,
                                   left < pattern_bytes ? (size_t)left : pattern_bytes, now_ns);
    }
    return error;
}

int origin_files_init(struct origin_files *files, uint64_t memory_bytes, const char *const *specs,
                      size_t count, const uint8_t *pattern, size_t pattern_bytes, uint64_t now_ns)
{
    int error = 0;

    memset(files, 0, sizeof(*files));
    files->memory_bytes = memory_bytes;
    files->table_size = FIRST_TABLE;
    files->table = memory_zeroed(files->table_size, sizeof(*files->table));
    files->root = node_make(files, "", 0, true);
    files->root->parent = files->root;
    files->root->changed_ns = now_ns;
    for (size_t i = 0; i < count && !error; i++)
        error = add_file(files, specs[i], pattern, pattern_bytes, now_ns);
    return error;
}

void origin_files_fini(struct origin_files *files)
{
    for (uint32_t i = 0; i < files->nodes_count; i++) {
        if (files->nodes[i] && !files->nodes[i]->fixed)
            free(files->nodes[i]->data);
        free(files->nodes[i]);
    }
    for (size_t i = 0; i < files->ranges_count; i++)
        munmap(files->ranges[i], ORIGIN_FILE_MAX_BYTES);
    free((void *)files->nodes);
    free(files->free_numbers);
    free((void *)files->table);
    memset(files, 0, sizeof(*files));
}
