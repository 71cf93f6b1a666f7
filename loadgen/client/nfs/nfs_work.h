/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the requests of an NFS flow do, whatever version of the protocol carries them: which
 * operation, on which file, where, how much; and what follows from how it ended: names that live or
 * are left over, versions of blocks, data that is wrong.
 *
 *   flow ─ send(request) ─► nfs_work_choose ─► task ─► a call on the wire ─► nfs_work_ended ─►
 * result
 *
 * Operation, file, offset and length follow from flow_request_rng. What they can't tell is where a
 * sequential stream is and which created files live: that is state of the flow. A task that ends
 * with OUTCOME_REFUSED and will be sent again is kept, so the same request has the same task.
 *
 * Transfers lie within the file, at multiples of their size; a verifying flow's are of whole blocks
 * (FILESET_BLOCK_BYTES), so that every READ finds stamps. Sequential flows over a set have one
 * stream per client (concurrency, up to NFS_WORK_STREAMS), each going through one file after the
 * other, for READ and for WRITE apart; over one file there is one stream, over and over.
 *
 * Without a set (spec.set.files 0) the file is spec.nfs.file of the export, whose size the wire
 * tells; then transfers may go past its end, `directory` is always UINT64_MAX (the export) and
 * WRITE sends the pattern. With a set and without verifying WRITE sends version 0, what populating
 * wrote.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_WORK_H
#define LOADGEN_CLIENT_NFS_NFS_WORK_H

#include "loadgen/client/flow.h"
#include "loadgen/client/nfs/nfs_names.h"
#include "loadgen/client/nfs/nfs_versions.h"

#define NFS_WORK_STREAMS       64U
#define NFS_WORK_READDIR_BYTES 8192U /* asked for by one READDIR, from the directory's start */
#define NFS_WORK_MODE          0644U /* set by SETATTR and CREATE */

struct nfs_task {
    enum flow_operation operation;
    bool again;           /* the wire's: tried again after stale handles */
    uint64_t directory;   /* LOOKUP, READDIR, CREATE, REMOVE: where; UINT64_MAX: the root */
    struct nfs_name name; /* CREATE, REMOVE: nfs_work_name() */
    struct nfs_extent
        data; /* file: all but CREATE, REMOVE, FSSTAT; the rest: READ, WRITE, COMMIT */
};

/* A stream of sequential transfers. */
struct nfs_cursor {
    uint64_t file;
    uint64_t offset;
    bool started;
};

struct nfs_work {
    struct flow *flow;
    const struct fileset *set;     /* NULL: one file */
    struct nfs_versions *versions; /* NULL: not verifying */
    struct nfs_names names;
    uint64_t file_bytes; /* without a set: of the file */
    uint32_t read_most;  /* transfers are cut to these */
    uint32_t write_most;
    uint64_t mix_total;
    bool complained;
    uint32_t streams;
    struct nfs_cursor *cursors; /* of READ, then of WRITE */
    struct nfs_parked *parked;  /* open addressing by request number; see nfs_work.c */
    size_t parked_count;
    size_t parked_capacity;
};

/* `set` and `versions` NULL where there is none; they must outlive the work. */
void nfs_work_init(struct nfs_work *work, struct flow *flow, const struct fileset *set,
                   struct nfs_versions *versions);
void nfs_work_fini(struct nfs_work *work);

/* What the server takes in one call, 0 when it does not say. */
void nfs_work_limits(struct nfs_work *work, uint32_t read_most, uint32_t write_most);

/* Every task chosen must be ended, or given back with nfs_work_unchosen() when it could not be
 * sent: it is then chosen again for the same request. */
void nfs_work_choose(struct nfs_work *work, const struct flow_request *request,
                     struct nfs_task *task);
void nfs_work_unchosen(struct nfs_work *work, const struct flow_request *request,
                       const struct nfs_task *task);

/* Name in its directory: of LOOKUP the file's, of CREATE and REMOVE the flow's own. */
void nfs_work_name(const struct nfs_work *work, const struct nfs_task *task, char out[256]);

/* The data of a WRITE with a set: task->data.bytes of it. */
void nfs_work_fill(const struct nfs_work *work, const struct nfs_task *task, void *buffer);

/* How a task's call ended. */
struct nfs_ending {
    enum outcome outcome; /* OUTCOME_NFS_ERROR: any status but OK and "later" */
    uint32_t count;       /* READ, WRITE: bytes done */
    const uint8_t *data;  /* READ of a verifying flow: `count` bytes */
    bool eof;
};

/* The request's result, all of it; the outcome may have become OUTCOME_CORRUPT. */
struct flow_result nfs_work_ended(struct nfs_work *work, const struct flow_request *request,
                                  const struct nfs_task *task, const struct nfs_ending *ending);

/* The run is over: tasks that waited to be sent again will not be. */
void nfs_work_stop(struct nfs_work *work);

/* A connection was lost, the server with it, as far as we know. */
void nfs_work_server_lost(struct nfs_work *work);

#endif
