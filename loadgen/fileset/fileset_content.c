/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the files of a set, and the marker that tells what the set is. */
#include "loadgen/fileset/fileset.h"

#include <stdio.h>
#include <string.h>

#define GOLDEN      0x9e3779b97f4a7c15ULL
#define STAMP_MAGIC 0x644c7053U /* "SpLd" */
#define BLOCK_WORDS (FILESET_BLOCK_BYTES / 8)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blocks are made as the machine's words");

struct block {
    uint32_t version;
    uint32_t magic;
    uint64_t file;
    uint64_t number;
    uint64_t check;
    uint64_t words[BLOCK_WORDS - FILESET_STAMP_BYTES / 8];
};

_Static_assert(sizeof(struct block) == FILESET_BLOCK_BYTES, "a block without holes");

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static uint64_t block_key(const struct fileset *set, uint64_t file, uint64_t block,
                          uint32_t version)
{
    return mix(mix(mix(mix(set->spec.seed + GOLDEN) + file) ^ (block * GOLDEN)) + version);
}

static void block_fill(const struct fileset *set, uint64_t file, uint64_t number, uint32_t version,
                       struct block *out)
{
    uint64_t key = block_key(set, file, number, version);

    out->version = version;
    out->magic = STAMP_MAGIC;
    out->file = file;
    out->number = number;
    out->check = key;
    for (size_t i = 0; i < sizeof(out->words) / sizeof(out->words[0]); i++)
        out->words[i] = mix(key + (i + 1) * GOLDEN);
}

void fileset_content(const struct fileset *set, uint64_t file, uint32_t version, uint64_t offset,
                     void *buffer, size_t length)
{
    uint8_t *to = buffer;

    while (length > 0) {
        struct block block;
        size_t start = (size_t)(offset % FILESET_BLOCK_BYTES);
        size_t part = FILESET_BLOCK_BYTES - start;

        part = length < part ? length : part;
        block_fill(set, file, offset / FILESET_BLOCK_BYTES, version, &block);
        memcpy(to, (const uint8_t *)&block + start, part);
        to += part;
        offset += part;
        length -= part;
    }
}

/* ---------------------------------------------------------------- comparing */

bool fileset_stamp_read(const struct fileset *set, const void *block, struct fileset_stamp *out)
{
    struct block head;

    memcpy(&head, block, FILESET_STAMP_BYTES);
    if (head.magic != STAMP_MAGIC ||
        head.check != block_key(set, head.file, head.number, head.version))
        return false;
    *out = (struct fileset_stamp){.file = head.file, .block = head.number, .version = head.version};
    return true;
}

bool fileset_version_found(const struct fileset *set, uint64_t file, uint64_t block,
                           const void *data, size_t length, uint32_t *version)
{
    uint8_t expected[FILESET_STAMP_BYTES];
    uint32_t found = 0;

    length = length < FILESET_STAMP_BYTES ? length : FILESET_STAMP_BYTES;
    memcpy(&found, data, length < sizeof(found) ? length : sizeof(found));
    fileset_content(set, file, found, block * FILESET_BLOCK_BYTES, expected, length);
    if (memcmp(expected, data, length) != 0)
        return false;
    *version = found;
    return true;
}

/* What stands where the stamp of a block should be, of which `length` bytes are at hand. */
static void describe_found(const struct fileset *set, const struct fileset_stamp *expected,
                           const uint8_t *block, size_t length, char *out, size_t size)
{
    struct fileset_stamp stamp;

    if (length < FILESET_STAMP_BYTES) {
        snprintf(out, size, "the block's stamp is not among the bytes read");
    } else if (!fileset_stamp_read(set, block, &stamp)) {
        bool zeros = true;

        for (size_t i = 0; i < length && zeros; i++)
            zeros = block[i] == 0;
        snprintf(out, size,
                 zeros ? "the block is all zeros" : "the block has no stamp of this set");
    } else if (stamp.file == expected->file && stamp.block == expected->block &&
               stamp.version == expected->version) {
        snprintf(out, size, "the block's stamp is right, bytes behind it are not");
    } else {
        snprintf(out, size, "the block has the stamp of file %llu, block %llu, version %u",
                 (unsigned long long)stamp.file, (unsigned long long)stamp.block, stamp.version);
    }
}

static void describe(const struct fileset *set, const struct fileset_stamp *expected,
                     uint64_t wrong, uint8_t is, uint8_t should, const uint8_t *block,
                     size_t length, char problem[FILESET_PROBLEM_BYTES])
{
    char path[FILESET_PATH_BYTES];
    char found[128];

    fileset_file_path(set, expected->file, path);
    describe_found(set, expected, block, length, found, sizeof(found));
    snprintf(problem, FILESET_PROBLEM_BYTES,
             "%.64s: byte %llu is 0x%02x, not 0x%02x of block %llu, version %u; %s", path,
             (unsigned long long)wrong, is, should, (unsigned long long)expected->block,
             expected->version, found);
}

bool fileset_verify(const struct fileset *set, uint64_t file, uint32_t version, uint64_t offset,
                    const void *data, size_t length, char problem[FILESET_PROBLEM_BYTES])
{
    const uint8_t *at = data;

    while (length > 0) {
        struct block block;
        uint64_t number = offset / FILESET_BLOCK_BYTES;
        size_t start = (size_t)(offset % FILESET_BLOCK_BYTES);
        size_t part = FILESET_BLOCK_BYTES - start;
        const uint8_t *should = (const uint8_t *)&block + start;

        part = length < part ? length : part;
        block_fill(set, file, number, version, &block);
        if (memcmp(at, should, part) != 0) {
            struct fileset_stamp expected = {.file = file, .block = number, .version = version};
            size_t wrong = 0;

            while (at[wrong] == should[wrong])
                wrong++;
            describe(set, &expected, offset + wrong, at[wrong], should[wrong], at,
                     start == 0 ? part : 0, problem);
            return false;
        }
        at += part;
        offset += part;
        length -= part;
    }
    return true;
}

/* ---------------------------------------------------------------- the marker */

static uint64_t list_digest(const struct distribution *size)
{
    uint64_t digest = size->list_count;

    for (size_t i = 0; i < size->list_count; i++)
        digest = mix(digest + GOLDEN) ^ size->list[i];
    return digest;
}

size_t fileset_marker(const struct fileset *set, char out[FILESET_MARKER_BYTES])
{
    const struct fileset_spec *spec = &set->spec;
    const struct distribution *size = &spec->size;
    int length =
        snprintf(out, FILESET_MARKER_BYTES,
                 "spillload file set, format 1\nfiles %llu\ndepth %u\nwidth %u\nseed %llu\n",
                 (unsigned long long)spec->files, spec->depth, spec->depth ? spec->width : 0,
                 (unsigned long long)spec->seed);
    char *rest = out + length;
    size_t room = FILESET_MARKER_BYTES - (size_t)length;
    const char *name = distribution_name(size->kind);

    if (size->kind == DISTRIBUTION_PARETO)
        length += snprintf(rest, room, "size %s %.17g %llu %llu\n", name, size->shape,
                           (unsigned long long)size->least, (unsigned long long)size->most);
    else if (size->kind == DISTRIBUTION_LIST)
        length += snprintf(rest, room, "size %s of %zu values, digest %016llx\n", name,
                           size->list_count, (unsigned long long)list_digest(size));
    else if (size->kind == DISTRIBUTION_LOGNORMAL)
        length += snprintf(rest, room, "size %s %llu %.17g\n", name, (unsigned long long)size->mean,
                           size->shape);
    else
        length += snprintf(rest, room, "size %s %llu\n", name, (unsigned long long)size->mean);
    return (size_t)length;
}

bool fileset_marker_matches(const struct fileset *set, const char *found, size_t length,
                            char problem[FILESET_PROBLEM_BYTES])
{
    char wanted[FILESET_MARKER_BYTES];
    const char *w = wanted;
    const char *end = found + length;

    fileset_marker(set, wanted);
    while (*w) {
        size_t line = strcspn(w, "\n");
        const char *stop = memchr(found, '\n', (size_t)(end - found));
        size_t is = stop ? (size_t)(stop - found) : (size_t)(end - found);

        if (!stop || is != line || memcmp(found, w, line) != 0) {
            snprintf(problem, FILESET_PROBLEM_BYTES, "\"%.*s\" there, \"%.*s\" wanted",
                     (int)(is < 80 ? is : 80), found, (int)(line < 80 ? line : 80), w);
            return false;
        }
        w += line + 1;
        found = stop + 1;
    }
    if (found == end)
        return true;
    snprintf(problem, FILESET_PROBLEM_BYTES, "more in it than a marker of this version has");
    return false;
}
