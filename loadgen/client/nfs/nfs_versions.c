/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of blocks. Files are found by an open-addressing table; a file's blocks come into being
 * at its first use. Every WRITE's begin and end advances its file's clock: a READ compares its own
 * begin with the clock of each block's last change.
 */
#include "loadgen/client/nfs/nfs_versions.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loadgen/base/memory.h"

#define NS_PER_S     1000000000ULL
#define FIRST_PLACES 1024U

struct nfs_block {
    uint32_t low; /* the range; of a block that is known */
    uint32_t high;
    uint32_t committed; /* what a lost server can go back to */
    uint32_t issued;    /* the highest version of any WRITE of ours */
    uint32_t changed_at;
    uint32_t doubt_until_s;
    uint16_t in_flight;
    bool known;
    bool committed_known;
    bool overlap;       /* WRITEs were in flight together since it was quiet */
    bool overlap_ended; /* and one of them is done */
    bool torn;          /* a WRITE ended inside it: no version at all until the next one */
};

struct nfs_file {
    uint64_t number;
    uint32_t clock;
    uint64_t count;
    struct nfs_block blocks[];
};

struct nfs_versions {
    const struct fileset *set;
    bool fresh;
    uint32_t
        base; /* versions of blocks whose own is not known begin above: later runs' are higher */
    struct nfs_file **places;
    size_t capacity;
    size_t files;
};

struct nfs_versions *nfs_versions_create(const struct fileset *set)
{
    struct nfs_versions *versions = memory_zeroed(1, sizeof(*versions));

    versions->set = set;
    versions->base = (uint32_t)time(NULL);
    versions->capacity = FIRST_PLACES;
    versions->places = memory_zeroed(FIRST_PLACES, sizeof(struct nfs_file *));
    return versions;
}

void nfs_versions_destroy(struct nfs_versions *versions)
{
    if (!versions)
        return;
    for (size_t i = 0; i < versions->capacity; i++)
        free(versions->places[i]);
    free(versions->places);
    free(versions);
}

void nfs_versions_fresh(struct nfs_versions *versions)
{
    versions->fresh = true;
}

/* ---------------------------------------------------------------- finding files */

/* Where the file is, or would be put. */
static size_t place_of(struct nfs_file *const *places, size_t capacity, uint64_t number)
{
    size_t place = (size_t)((number * 0x9e3779b97f4a7c15ULL) >> 32) & (capacity - 1);

    while (places[place] && places[place]->number != number)
        place = (place + 1) & (capacity - 1);
    return place;
}

static void grow(struct nfs_versions *versions)
{
    size_t capacity = 2 * versions->capacity;
    struct nfs_file **places = memory_zeroed(capacity, sizeof(struct nfs_file *));

    for (size_t i = 0; i < versions->capacity; i++) {
        struct nfs_file *file = versions->places[i];

        if (file)
            places[place_of(places, capacity, file->number)] = file;
    }
    free(versions->places);
    versions->places = places;
    versions->capacity = capacity;
}

static struct nfs_file *file_of(struct nfs_versions *versions, uint64_t number)
{
    size_t place = place_of(versions->places, versions->capacity, number);
    struct nfs_file *file = versions->places[place];

    if (file)
        return file;
    uint64_t blocks =
        (fileset_size_bytes(versions->set, number) + FILESET_BLOCK_BYTES - 1) / FILESET_BLOCK_BYTES;

    file = memory_zeroed(1, sizeof(*file) + blocks * sizeof(file->blocks[0]));
    file->number = number;
    file->count = blocks;
    for (uint64_t i = 0; i < blocks && versions->fresh; i++)
        file->blocks[i].known = file->blocks[i].committed_known = true;
    versions->places[place] = file;
    if (2 * ++versions->files > versions->capacity)
        grow(versions);
    return file;
}

/* The blocks of an extent: `*first` and the one behind the last; never past the file. */
static uint64_t range_of(const struct nfs_file *file, uint64_t offset, uint64_t bytes,
                         uint64_t *first)
{
    uint64_t end = (offset + bytes + FILESET_BLOCK_BYTES - 1) / FILESET_BLOCK_BYTES;

    *first = offset / FILESET_BLOCK_BYTES;
    return end < file->count ? end : file->count;
}

/* ---------------------------------------------------------------- WRITE and COMMIT */

void nfs_versions_write_begin(struct nfs_versions *versions, struct nfs_extent *write)
{
    struct nfs_file *file = file_of(versions, write->file);
    uint32_t version = 0;
    uint64_t first;
    uint64_t end = range_of(file, write->offset, write->bytes, &first);

    write->mark = ++file->clock;
    for (uint64_t i = first; i < end; i++) {
        const struct nfs_block *block = &file->blocks[i];
        uint32_t last = block->known ? block->high : versions->base;

        last = block->issued > last ? block->issued : last;
        version = last > version ? last : version;
    }
    write->version = version + 1;
    for (uint64_t i = first; i < end; i++) {
        struct nfs_block *block = &file->blocks[i];

        block->issued = write->version;
        block->changed_at = file->clock;
        block->overlap = block->in_flight > 0;
        block->in_flight++;
    }
}

static void written(struct nfs_block *block, uint32_t version, bool in_doubt)
{
    bool widens = block->known && (in_doubt || (block->overlap && block->overlap_ended));

    if (!widens) {
        /* Before an overlap is over, a WRITE done is what the others are added to. */
        block->low = block->high = version;
    } else {
        block->low = version < block->low ? version : block->low;
        block->high = version > block->high ? version : block->high;
    }
    block->known = true;
    block->torn = false;
    block->overlap_ended = block->overlap;
}

static void perhaps_written(struct nfs_block *block, uint32_t version, uint64_t now_ns)
{
    if (block->known && version > block->high)
        block->high = version;
    if (block->known && version < block->low)
        block->low = version;
    block->doubt_until_s = (uint32_t)((now_ns + NFS_VERSIONS_DOUBT_NS) / NS_PER_S) + 1;
}

void nfs_versions_write_end(struct nfs_versions *versions, const struct nfs_extent *write,
                            enum nfs_fate fate, uint32_t count, bool stable, uint64_t now_ns)
{
    struct nfs_file *file = file_of(versions, write->file);
    uint64_t written_end = fate == NFS_DONE ? write->offset + count : write->offset;
    uint64_t first;
    uint64_t end = range_of(file, write->offset, write->bytes, &first);

    file->clock++;
    for (uint64_t i = first; i < end; i++) {
        struct nfs_block *block = &file->blocks[i];
        uint64_t from = i * FILESET_BLOCK_BYTES;
        bool whole = from + FILESET_BLOCK_BYTES <= written_end ||
                     (written_end == write->offset + write->bytes && from < written_end);

        if (fate == NFS_UNKNOWN) {
            perhaps_written(block, write->version, now_ns);
        } else if (whole) {
            written(block, write->version, now_ns / NS_PER_S < block->doubt_until_s);
            if (stable) {
                block->committed = block->low;
                block->committed_known = true;
            }
        } else if (from < written_end) {
            block->torn = true;
        }
        block->changed_at = file->clock;
        if (--block->in_flight == 0)
            block->overlap = block->overlap_ended = false;
    }
}

void nfs_versions_commit_begin(struct nfs_versions *versions, struct nfs_extent *commit)
{
    commit->mark = file_of(versions, commit->file)->clock;
}

void nfs_versions_commit_end(struct nfs_versions *versions, const struct nfs_extent *commit)
{
    struct nfs_file *file = file_of(versions, commit->file);

    for (uint64_t i = 0; i < file->count; i++) {
        struct nfs_block *block = &file->blocks[i];

        if (!block->known || block->in_flight > 0 || block->changed_at > commit->mark)
            continue;
        block->committed = block->low;
        block->committed_known = true;
    }
}

void nfs_versions_server_lost(struct nfs_versions *versions)
{
    for (size_t i = 0; i < versions->capacity; i++) {
        struct nfs_file *file = versions->places[i];

        for (uint64_t b = 0; file && b < file->count; b++) {
            struct nfs_block *block = &file->blocks[b];

            if (!block->committed_known)
                block->known = false;
            else if (block->known && block->committed < block->low)
                block->low = block->committed;
        }
    }
}

/* ---------------------------------------------------------------- READ */

void nfs_versions_read_begin(struct nfs_versions *versions, struct nfs_extent *read)
{
    struct nfs_file *file = file_of(versions, read->file);
    uint64_t first;
    uint64_t end = range_of(file, read->offset, read->bytes, &first);

    read->mark = file->clock;
    for (uint64_t i = first; i < end; i++) {
        if (file->blocks[i].in_flight > 0) /* it may see either, though the WRITE ends first */
            read->mark = 0;
    }
}

static enum nfs_verdict judge(struct nfs_versions *versions, const struct nfs_extent *read,
                              struct nfs_block *block, uint64_t number, const uint8_t *data,
                              size_t length, uint64_t now_ns, char problem[FILESET_PROBLEM_BYTES])
{
    bool found;
    uint32_t version;

    if (block->in_flight > 0 || block->torn || block->changed_at > read->mark)
        return NFS_UNVERIFIED;
    found = fileset_version_found(versions->set, read->file, number, data, length, &version);
    if (!block->known && !found) {
        /* Any version would be right: the one of the stamp, or else 0, tells what is wrong. */
        version = 0;
    } else if (block->known && (!found || version < block->low || version > block->high)) {
        version = block->high;
    }
    if (!fileset_verify(versions->set, read->file, version, number * FILESET_BLOCK_BYTES, data,
                        length, problem))
        return NFS_CORRUPT;
    bool in_doubt = now_ns / NS_PER_S < block->doubt_until_s;

    if (!block->known) {
        block->known = block->committed_known = true;
        block->committed = block->low = version;
        block->high = in_doubt && block->issued > version ? block->issued : version;
    } else if (!in_doubt) {
        block->low = block->high = version;
    }
    return NFS_VERIFIED;
}

enum nfs_verdict nfs_versions_read_end(struct nfs_versions *versions, const struct nfs_extent *read,
                                       const uint8_t *data, uint32_t length, uint64_t now_ns,
                                       char problem[FILESET_PROBLEM_BYTES])
{
    struct nfs_file *file = file_of(versions, read->file);
    enum nfs_verdict verdict = NFS_VERIFIED;
    uint64_t first;
    uint64_t end = range_of(file, read->offset, length, &first);

    for (uint64_t i = first; i < end; i++) {
        size_t at = (size_t)((i - first) * FILESET_BLOCK_BYTES);
        size_t part = length - at < FILESET_BLOCK_BYTES ? length - at : FILESET_BLOCK_BYTES;
        enum nfs_verdict of_block =
            judge(versions, read, &file->blocks[i], i, data + at, part, now_ns, problem);

        if (of_block == NFS_CORRUPT)
            return NFS_CORRUPT;
        if (of_block == NFS_UNVERIFIED)
            verdict = NFS_UNVERIFIED;
    }
    return verdict;
}
