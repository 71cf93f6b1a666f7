/* SPDX-License-Identifier: Apache-2.0 */
/* File sets: the tree, sizes and popularity. What is in the files: fileset_content.c. */
#include "loadgen/fileset/fileset.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEISTEL_ROUNDS 4
/* Set the draws made from one seed apart. */
#define STREAM_KEYS  0x6b657973ULL
#define STREAM_SIZES 0x73697a6573ULL

const struct fileset_spec fileset_defaults = {
    .root = "set",
    .files = 1000,
    .depth = 1,
    .width = 10,
    .size = {.kind = DISTRIBUTION_FIXED, .mean = 16384},
    .popularity = FILESET_UNIFORM,
    .zipf_exponent = 0.9,
    .hot_files = 0.1,
    .hot_share = 0.9,
    .seed = 1,
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}

/* ---------------------------------------------------------------- popularity */

/* (exp(x t) - 1) / x, and its inverse in t, whatever is near 0. */
static double grown(double x, double t)
{
    return fabs(x) < 1e-12 ? t : expm1(x * t) / x;
}

static double shrunk(double x, double value)
{
    return fabs(x) < 1e-12 ? value : log1p(x * value) / x;
}

/* The integral of 1 / x^exponent from 1 to x, and its inverse. */
static double zipf_integral(double exponent, double x)
{
    return grown(1.0 - exponent, log(x));
}

static double zipf_inverse(double exponent, double area)
{
    return exp(shrunk(1.0 - exponent, area));
}

static void zipf_prepare(struct fileset *set)
{
    double exponent = set->spec.zipf_exponent;

    set->zipf_h_x1 = zipf_integral(exponent, 1.5) - 1.0;
    set->zipf_h_n = zipf_integral(exponent, (double)set->spec.files + 0.5);
    set->zipf_s = 2.0 - zipf_inverse(exponent, zipf_integral(exponent, 2.5) - pow(2.0, -exponent));
}

/* A point under the hat's integral, inverted to a real x; the whole number next to x is the draw
 * when the point lies under that number's column. */
static uint64_t zipf_rank(const struct fileset *set, struct rng *rng)
{
    double exponent = set->spec.zipf_exponent;

    for (;;) {
        double area = set->zipf_h_n + rng_unit(rng) * (set->zipf_h_x1 - set->zipf_h_n);
        double x = zipf_inverse(exponent, area);
        double k = floor(x + 0.5);

        if (k < 1.0)
            k = 1.0;
        else if (k > (double)set->spec.files)
            k = (double)set->spec.files;
        if (k - x <= set->zipf_s || area >= zipf_integral(exponent, k + 0.5) - pow(k, -exponent))
            return (uint64_t)k - 1;
    }
}

static uint64_t hot_rank(const struct fileset *set, struct rng *rng)
{
    uint64_t hot = set->hot_ranks;
    uint64_t files = set->spec.files;

    if (hot == files)
        return rng_below(rng, files);
    if (rng_unit(rng) < set->spec.hot_share)
        return rng_below(rng, hot);
    return hot + rng_below(rng, files - hot);
}

/* A balanced Feistel network permutes [0, 4^bits); walking on until a value below `files` comes
 * makes it a permutation of those. */
static uint64_t permuted(const struct fileset *set, uint64_t rank)
{
    uint32_t bits = set->permutation_bits;
    uint64_t mask = (1ULL << bits) - 1;

    do {
        uint64_t left = rank >> bits;
        uint64_t right = rank & mask;

        for (int round = 0; round < FEISTEL_ROUNDS; round++) {
            uint64_t next = left ^ (mix(right ^ set->permutation_key[round]) & mask);

            left = right;
            right = next;
        }
        rank = left << bits | right;
    } while (rank >= set->spec.files);
    return rank;
}

uint64_t fileset_rank_file(const struct fileset *set, uint64_t rank)
{
    return permuted(set, rank);
}

uint64_t fileset_draw(const struct fileset *set, struct rng *rng)
{
    switch (set->spec.popularity) {
    case FILESET_ZIPF:
        return permuted(set, zipf_rank(set, rng));
    case FILESET_HOT:
        return permuted(set, hot_rank(set, rng));
    case FILESET_UNIFORM:
    default:
        return rng_below(rng, set->spec.files);
    }
}

/* ---------------------------------------------------------------- the description */

static int refuse(char problem[FILESET_PROBLEM_BYTES], const char *sentence)
{
    snprintf(problem, FILESET_PROBLEM_BYTES, "%s", sentence);
    return -EINVAL;
}

/* Names with single slashes between them, none of them "." or "..". */
static bool root_good(const char *root)
{
    size_t length = strnlen(root, FILESET_ROOT_BYTES);
    const char *name = root;

    if (length == 0 || length == FILESET_ROOT_BYTES)
        return false;
    for (;;) {
        size_t bytes = strcspn(name, "/");

        if (bytes == 0 || (bytes == 1 && name[0] == '.') ||
            (bytes == 2 && name[0] == '.' && name[1] == '.'))
            return false;
        if (name[bytes] == '\0')
            return true;
        name += bytes + 1;
    }
}

static int check(const struct fileset_spec *spec, char problem[FILESET_PROBLEM_BYTES])
{
    if (!root_good(spec->root))
        return refuse(problem, "the set's root must be a path without a slash at either end and "
                               "without . or .. in it, of up to 127 bytes");
    if (spec->files == 0 || spec->files > FILESET_MAX_FILES)
        return refuse(problem, "a set has 1 to 1000000000 files");
    if (spec->depth > FILESET_MAX_DEPTH)
        return refuse(problem, "a set has at most 8 levels of directories");
    if (spec->depth > 0 && (spec->width == 0 || spec->width > FILESET_MAX_WIDTH))
        return refuse(problem, "a directory of a set has 1 to 1000 directories in it");
    if (spec->popularity == FILESET_ZIPF &&
        !(spec->zipf_exponent > 0.0 && spec->zipf_exponent <= 20.0))
        return refuse(problem, "the exponent of zipf must be above 0 and at most 20");
    if (spec->popularity == FILESET_HOT && !(spec->hot_files > 0.0 && spec->hot_files <= 1.0 &&
                                             spec->hot_share > 0.0 && spec->hot_share <= 1.0))
        return refuse(problem, "hot takes two fractions, above 0 and up to 1: of the files, and of "
                               "the requests that go to them");
    return 0;
}

/* All levels' directories; false when there are too many. */
static bool count_directories(struct fileset *set)
{
    set->leaf_directories = 1;
    set->directories = 0;
    for (uint32_t level = 0; level < set->spec.depth; level++) {
        set->leaf_directories *= set->spec.width;
        set->directories += set->leaf_directories;
        if (set->directories > FILESET_MAX_FILES)
            return false;
    }
    return true;
}

int fileset_init(struct fileset *set, const struct fileset_spec *spec,
                 char problem[FILESET_PROBLEM_BYTES])
{
    struct rng rng;
    int error = check(spec, problem);

    memset(set, 0, sizeof(*set));
    if (error)
        return error;
    set->spec = *spec;
    if (!count_directories(set))
        return refuse(problem, "the tree has over 1000000000 directories: less depth or width");
    rng_init(&rng, spec->seed, STREAM_KEYS);
    for (int i = 0; i < FEISTEL_ROUNDS; i++)
        set->permutation_key[i] = rng_next(&rng);
    set->permutation_bits = 1;
    while (1ULL << (2 * set->permutation_bits) < spec->files)
        set->permutation_bits++;
    if (spec->popularity == FILESET_ZIPF)
        zipf_prepare(set);
    if (spec->popularity == FILESET_HOT) {
        set->hot_ranks = (uint64_t)llround(spec->hot_files * (double)spec->files);
        if (set->hot_ranks == 0)
            set->hot_ranks = 1;
    }
    return 0;
}

/* ---------------------------------------------------------------- the tree */

/* Directories are numbered level by level. Takes the number apart into level (from 1) and place. */
static uint32_t level_of(const struct fileset *set, uint64_t directory, uint64_t *place)
{
    uint64_t count = set->spec.width;
    uint32_t level = 1;

    while (directory >= count) {
        directory -= count;
        count *= set->spec.width;
        level++;
    }
    *place = directory;
    return level;
}

uint64_t fileset_directory_parent(const struct fileset *set, uint64_t directory)
{
    uint64_t place;
    uint32_t level = level_of(set, directory, &place);
    uint64_t first = 0; /* number of the first directory of the level above */
    uint64_t count = 1;

    if (level == 1)
        return UINT64_MAX;
    for (uint32_t above = 2; above < level; above++) {
        count *= set->spec.width;
        first += count;
    }
    return first + place / set->spec.width;
}

uint64_t fileset_file_directory(const struct fileset *set, uint64_t file)
{
    if (set->spec.depth == 0)
        return UINT64_MAX;
    return set->directories - set->leaf_directories + file % set->leaf_directories;
}

size_t fileset_directory_path(const struct fileset *set, uint64_t directory, char *out)
{
    uint64_t digits[FILESET_MAX_DEPTH];
    uint64_t place;
    uint32_t level = level_of(set, directory, &place);
    size_t length = 0;

    for (uint32_t i = level; i-- > 0;) {
        digits[i] = place % set->spec.width;
        place /= set->spec.width;
    }
    for (uint32_t i = 0; i < level; i++)
        length += (size_t)snprintf(out + length, FILESET_PATH_BYTES - length, "%sd%llu",
                                   i ? "/" : "", (unsigned long long)digits[i]);
    return length;
}

size_t fileset_file_path(const struct fileset *set, uint64_t file, char *out)
{
    uint64_t directory = fileset_file_directory(set, file);
    size_t length = 0;

    if (directory != UINT64_MAX) {
        length = fileset_directory_path(set, directory, out);
        out[length++] = '/';
    }
    return length + (size_t)snprintf(out + length, FILESET_PATH_BYTES - length, "f%08llu",
                                     (unsigned long long)file);
}

uint64_t fileset_size_bytes(const struct fileset *set, uint64_t file)
{
    const struct distribution *size = &set->spec.size;
    uint64_t bytes = size->mean;
    struct rng rng;

    if (size->kind != DISTRIBUTION_FIXED) {
        rng_init(&rng, set->spec.seed ^ STREAM_SIZES, file);
        bytes = distribution_draw_for(size, &rng, file);
    }
    if (bytes < 1)
        return 1;
    return bytes < FILESET_MAX_BYTES ? bytes : FILESET_MAX_BYTES;
}
