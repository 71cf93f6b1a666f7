/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File sets: which files a load works on, where they are, how large, how popular, and what is in
 * them. Nothing of it is stored: all follows from the description, so that a set made yesterday,
 * by another flow or on another machine is used again by naming the same description.
 *
 * The tree. `depth` levels of directories, `width` of them in each; files lie in the directories of
 * the deepest level, file i in directory i mod (width^depth):
 *
 *   ROOT/d0/d0/f00000000   ROOT/d0/d1/f00000001 ...     depth 2
 *   ROOT/f00000000         ROOT/f00000001       ...     depth 0
 *
 * Sizes: a file's size is one draw of `size` from a generator of the file's own (seed, number), so
 * it depends on no other file; of a list file i has the value i mod its length. Draws outside 1
 * byte to FILESET_MAX_BYTES are moved to the nearer end.
 *
 * Popularity, of ranks 0 to files - 1:
 *   uniform   all alike
 *   zipf      P(rank k) in proportion to 1 / (k + 1)^exponent
 *   hot       `hot_share` of the draws go to the first `hot_files` of the ranks, as fractions
 * Ranks are dealt to files by a permutation that the seed gives, so that hot files lie in many
 * directories. Zipf draws take no table: rejection-inversion (Hoermann and Derflinger, "Rejection-
 * inversion to generate variates from monotone discrete distributions", 1996).
 *
 * Contents: byte `offset` of file i in version v is a function of (seed, i, v, offset). Blocks of
 * FILESET_BLOCK_BYTES begin with a stamp of version, file and block, so that a reader who expects
 * one thing can say what it found instead. Version 0 is what populating writes. A block:
 *
 *   0        4        8          16         24          32
 *   version  "SpLd"   file       block      check       words of a generator keyed with all of them
 *
 * Little-endian; `check` is that key, so that chance makes no stamp. The version comes first so
 * that even the stump of a block at a file's end tells it.
 */
#ifndef LOADGEN_FILESET_FILESET_H
#define LOADGEN_FILESET_FILESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/base/distribution.h"
#include "loadgen/base/rng.h"

enum fileset_popularity {
    FILESET_UNIFORM,
    FILESET_ZIPF,
    FILESET_HOT,
};

#define FILESET_MAX_FILES     1000000000ULL
#define FILESET_MAX_BYTES     (1ULL << 44)
#define FILESET_MAX_DEPTH     8U
#define FILESET_MAX_WIDTH     1000U
#define FILESET_ROOT_BYTES    128
#define FILESET_PATH_BYTES    256
#define FILESET_BLOCK_BYTES   4096U
#define FILESET_STAMP_BYTES   32U
#define FILESET_MARKER_NAME   ".spillload-set"
#define FILESET_MARKER_BYTES  1024
#define FILESET_PROBLEM_BYTES 384

struct fileset_spec {
    char root[FILESET_ROOT_BYTES]; /* its top directory, relative to export or document root */
    uint64_t files;                /* 1 or more; 0: no set is meant */
    uint32_t depth;
    uint32_t width;
    struct distribution size; /* bytes */
    enum fileset_popularity popularity;
    double zipf_exponent; /* above 0 */
    double hot_files;     /* fractions, above 0 and up to 1 */
    double hot_share;
    uint64_t seed;
};

/* root "set", 1000 files of 16 KiB in 1 level of 10 directories, uniform, seed 1. */
extern const struct fileset_spec fileset_defaults;

/* Plain data that nobody changes after fileset_init(): threads may share it. */
struct fileset {
    struct fileset_spec spec;
    uint64_t leaf_directories;
    uint64_t directories; /* of all levels, without the root */
    uint64_t permutation_key[4];
    uint32_t permutation_bits; /* of each half of a rank */
    uint64_t hot_ranks;        /* 0: all alike */
    double zipf_h_x1;
    double zipf_h_n;
    double zipf_s;
};

/* What the stamp of a block says of itself. */
struct fileset_stamp {
    uint64_t file;
    uint64_t block;
    uint32_t version;
};

/* 0, or -EINVAL with a sentence in `problem`. Holds no memory. */
int fileset_init(struct fileset *set, const struct fileset_spec *spec,
                 char problem[FILESET_PROBLEM_BYTES]);

/*
 * Paths without the root and without a slash in front; parents of a directory have lower numbers.
 * Each returns the length, and needs a buffer of FILESET_PATH_BYTES.
 */
size_t fileset_directory_path(const struct fileset *set, uint64_t directory, char *out);
size_t fileset_file_path(const struct fileset *set, uint64_t file, char *out);
/* The directory that a file lies in; UINT64_MAX for the root (depth 0). Of a directory: its parent.
 */
uint64_t fileset_file_directory(const struct fileset *set, uint64_t file);
uint64_t fileset_directory_parent(const struct fileset *set, uint64_t directory);

uint64_t fileset_size_bytes(const struct fileset *set, uint64_t file);

/* The file that has a rank, 0 being the most popular. */
uint64_t fileset_rank_file(const struct fileset *set, uint64_t rank);

/* A file by popularity. */
uint64_t fileset_draw(const struct fileset *set, struct rng *rng);

/* Fills a buffer with the contents from `offset` on. */
void fileset_content(const struct fileset *set, uint64_t file, uint32_t version, uint64_t offset,
                     void *buffer, size_t length);

/*
 * Whether the bytes are those of that version; where not, `problem` says at which offset, and which
 * file, block and version the stamp found there names.
 */
bool fileset_verify(const struct fileset *set, uint64_t file, uint32_t version, uint64_t offset,
                    const void *data, size_t length, char problem[FILESET_PROBLEM_BYTES]);

/*
 * The stamp at the start of a block: whether this set's generator wrote it. The other one is for
 * data that should be the block given, from its first byte on: the version it has, by its stamp or
 * by as much of it as there is.
 */
bool fileset_stamp_read(const struct fileset *set, const void *block, struct fileset_stamp *out);
bool fileset_version_found(const struct fileset *set, uint64_t file, uint64_t block,
                           const void *data, size_t length, uint32_t *version);

/*
 * The text of the marker file in the root, which tells what the files are (their number, tree,
 * sizes, seed; not their popularity); returns its length. A marker with the same text means that
 * the set is all there.
 */
size_t fileset_marker(const struct fileset *set, char out[FILESET_MARKER_BYTES]);

/* Whether a marker that was found is this set's; where not, `problem` says in what it differs. */
bool fileset_marker_matches(const struct fileset *set, const char *found, size_t length,
                            char problem[FILESET_PROBLEM_BYTES]);

/*
 * Makes the set below a local directory (a web server's document root), `threads` files at a time,
 * or finds it there and leaves it. 0, or negative errno with the path in `problem` (-EEXIST:
 * another set is there). `made` tells how many files were written.
 */
int fileset_make_local(const struct fileset *set, const char *directory, unsigned threads,
                       uint64_t *made, char problem[FILESET_PROBLEM_BYTES]);

#endif
