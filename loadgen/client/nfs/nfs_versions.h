/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification: which version each block of a set may have, by what was written to it.
 *
 * Per block of FILESET_BLOCK_BYTES, from its first use on: the range of versions that a READ may
 * find while no WRITE is in flight. A WRITE takes the next version for all of its blocks.
 *
 *   WRITE v done               range is v alone
 *   two in flight at once      either may come last: the range holds both
 *   outcome unknown            v joins the range, and for NFS_VERSIONS_DOUBT_NS no later WRITE
 *                              narrows it: the server may carry it out late
 *   unstable, the server lost  the range goes down to the version committed last
 *   a READ found v             range is v alone
 *
 * A READ that overlaps a WRITE in flight can't be judged there: it is unverified, unless another of
 * its blocks is wrong. The first READ of a block of a set that was found takes the version it
 * finds; of a set made in this run it expects 0.
 *
 * Flows of a process that use the same set have one of these in common.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_VERSIONS_H
#define LOADGEN_CLIENT_NFS_NFS_VERSIONS_H

#include "loadgen/fileset/fileset.h"

#define NFS_VERSIONS_DOUBT_NS 30000000000ULL

struct nfs_versions;

/* A READ, WRITE or COMMIT (of the whole file) in flight. */
struct nfs_extent {
    uint64_t file;
    uint64_t offset; /* of a block */
    uint32_t bytes;  /* whole blocks, or up to the file's end */
    uint32_t version;
    uint32_t mark; /* the file's clock when it began */
};

enum nfs_fate {
    NFS_DONE,
    NFS_NOT_DONE, /* surely not carried out */
    NFS_UNKNOWN,
};

enum nfs_verdict {
    NFS_VERIFIED,
    NFS_UNVERIFIED,
    NFS_CORRUPT,
};

/* The set must outlive it. */
struct nfs_versions *nfs_versions_create(const struct fileset *set);
void nfs_versions_destroy(struct nfs_versions *versions);

/* Every block that was not used yet has version 0. */
void nfs_versions_fresh(struct nfs_versions *versions);

/* Chooses the version. */
void nfs_versions_write_begin(struct nfs_versions *versions, struct nfs_extent *write);
/* `count` of its bytes were written (NFS_DONE). */
void nfs_versions_write_end(struct nfs_versions *versions, const struct nfs_extent *write,
                            enum nfs_fate fate, uint32_t count, bool stable, uint64_t now_ns);

void nfs_versions_commit_begin(struct nfs_versions *versions, struct nfs_extent *commit);
void nfs_versions_commit_end(struct nfs_versions *versions, const struct nfs_extent *commit);

void nfs_versions_read_begin(struct nfs_versions *versions, struct nfs_extent *read);
/* Compares what came; `problem` is written when it is corrupt. */
enum nfs_verdict nfs_versions_read_end(struct nfs_versions *versions, const struct nfs_extent *read,
                                       const uint8_t *data, uint32_t length, uint64_t now_ns,
                                       char problem[FILESET_PROBLEM_BYTES]);

/* The server may have lost what was not committed. */
void nfs_versions_server_lost(struct nfs_versions *versions);

#endif
