/* SPDX-License-Identifier: Apache-2.0 */
/* What requests do. Random draws are taken in a fixed order, whatever they are used for, so that
 * one request's draws do not depend on what another one met. */
#include "loadgen/client/nfs/nfs_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

#define LARGEST_TRANSFER (64U << 20)

/* The task of a request that will be sent again. */
struct nfs_parked {
    bool used;
    uint64_t number;
    struct nfs_task task;
};

void nfs_work_init(struct nfs_work *work, struct flow *flow, const struct fileset *set,
                   struct nfs_versions *versions)
{
    const struct flow_spec *spec = &flow->spec;

    memset(work, 0, sizeof(*work));
    work->flow = flow;
    work->set = set;
    work->versions = versions;
    work->streams = 1;
    if (set)
        work->streams = spec->concurrency < NFS_WORK_STREAMS ? spec->concurrency : NFS_WORK_STREAMS;
    work->cursors = memory_zeroed((size_t)2 * work->streams, sizeof(*work->cursors));
    for (int i = 0; i < FLOW_OPERATIONS; i++)
        work->mix_total += spec->nfs.mix[i];
    nfs_names_init(&work->names, spec->name, flow->request_seed);
    nfs_work_limits(work, 0, 0);
}

void nfs_work_fini(struct nfs_work *work)
{
    nfs_names_fini(&work->names);
    free(work->cursors);
    free(work->parked);
    work->cursors = NULL;
    work->parked = NULL;
}

void nfs_work_limits(struct nfs_work *work, uint32_t read_most, uint32_t write_most)
{
    work->read_most = read_most ? read_most : LARGEST_TRANSFER;
    work->write_most = write_most ? write_most : LARGEST_TRANSFER;
}

/* ---------------------------------------------------------------- tasks kept for a retry */

static size_t parked_place(const struct nfs_parked *parked, size_t capacity, uint64_t number)
{
    size_t place = (size_t)((number * 0x9e3779b97f4a7c15ULL) >> 32) & (capacity - 1);

    while (parked[place].used && parked[place].number != number)
        place = (place + 1) & (capacity - 1);
    return place;
}

static void park(struct nfs_work *work, uint64_t number, const struct nfs_task *task)
{
    if (2 * work->parked_count >= work->parked_capacity) {
        size_t capacity = work->parked_capacity ? 2 * work->parked_capacity : 64;
        struct nfs_parked *grown = memory_zeroed(capacity, sizeof(*grown));

        for (size_t i = 0; i < work->parked_capacity; i++) {
            if (work->parked[i].used)
                grown[parked_place(grown, capacity, work->parked[i].number)] = work->parked[i];
        }
        free(work->parked);
        work->parked = grown;
        work->parked_capacity = capacity;
    }
    size_t place = parked_place(work->parked, work->parked_capacity, number);

    work->parked_count += !work->parked[place].used;
    work->parked[place] = (struct nfs_parked){.used = true, .number = number, .task = *task};
}

static bool unpark(struct nfs_work *work, uint64_t number, struct nfs_task *task)
{
    size_t mask = work->parked_capacity - 1;

    if (work->parked_count == 0)
        return false;
    size_t hole = parked_place(work->parked, work->parked_capacity, number);

    if (!work->parked[hole].used)
        return false;
    *task = work->parked[hole].task;
    work->parked[hole].used = false;
    work->parked_count--;
    /* Those behind may have been put there for want of this place. */
    for (size_t i = (hole + 1) & mask; work->parked[i].used; i = (i + 1) & mask) {
        struct nfs_parked moved = work->parked[i];

        work->parked[i].used = false;
        work->parked[parked_place(work->parked, work->parked_capacity, moved.number)] = moved;
    }
    return true;
}

/* ---------------------------------------------------------------- choosing */

static enum flow_operation draw_operation(const struct nfs_work *work, struct rng *rng)
{
    uint64_t at = rng_below(rng, work->mix_total);
    int operation = 0;

    while (operation < FLOW_OPERATIONS - 1 && at >= work->flow->spec.nfs.mix[operation])
        at -= work->flow->spec.nfs.mix[operation++];
    return (enum flow_operation)operation;
}

static uint64_t file_bytes(const struct nfs_work *work, uint64_t file)
{
    return work->set ? fileset_size_bytes(work->set, file) : work->file_bytes;
}

static uint32_t block_up(uint64_t bytes)
{
    return (uint32_t)((bytes + FILESET_BLOCK_BYTES - 1) / FILESET_BLOCK_BYTES *
                      FILESET_BLOCK_BYTES);
}

/* How much at a time: what was drawn, within what the server takes; whole blocks to verify. */
static uint32_t transfer_unit(const struct nfs_work *work, uint64_t drawn, bool write)
{
    uint32_t most = write ? work->write_most : work->read_most;

    if (drawn < 1)
        drawn = 1;
    if (work->versions) {
        most = most < FILESET_BLOCK_BYTES ? FILESET_BLOCK_BYTES
                                          : most / FILESET_BLOCK_BYTES * FILESET_BLOCK_BYTES;
        return drawn < most ? block_up(drawn) : most;
    }
    return drawn < most ? (uint32_t)drawn : most;
}

/* A unit anywhere in the file; with a set, the rest of the file where a unit is too long. */
static void random_place(const struct nfs_work *work, struct nfs_extent *extent, uint32_t unit,
                         uint64_t random)
{
    uint64_t size = file_bytes(work, extent->file);
    uint64_t units = size / unit;
    struct rng rng;

    if (work->versions && size % unit)
        units++; /* the stump of a file has a stamp too */
    if (units == 0)
        units = 1;
    rng_init(&rng, random, 0);
    extent->offset = rng_below(&rng, units) * unit;
    extent->bytes = unit;
    if (work->set && size - extent->offset < unit)
        extent->bytes = (uint32_t)(size - extent->offset);
}

static void sequential_place(struct nfs_work *work, struct nfs_extent *extent, uint32_t unit,
                             uint64_t stream, bool write)
{
    struct nfs_cursor *cursor = &work->cursors[2 * (stream % work->streams) + write];
    uint64_t size;

    if (!cursor->started || cursor->offset >= file_bytes(work, cursor->file)) {
        cursor->started = true;
        cursor->offset = 0;
        cursor->file = extent->file;
    }
    extent->file = cursor->file;
    extent->offset = cursor->offset;
    extent->bytes = unit;
    size = file_bytes(work, cursor->file);
    if (work->set && size - cursor->offset < unit)
        extent->bytes = (uint32_t)(size - cursor->offset);
    cursor->offset += extent->bytes;
    /* Over one file whole units alone, as random transfers have them. */
    if (!work->set && cursor->offset + unit > size)
        cursor->offset = size;
}

static void begin_data(struct nfs_work *work, struct nfs_task *task)
{
    if (!work->versions)
        return;
    if (task->operation == FLOW_READ)
        nfs_versions_read_begin(work->versions, &task->data);
    else if (task->operation == FLOW_WRITE)
        nfs_versions_write_begin(work->versions, &task->data);
    else if (task->operation == FLOW_COMMIT)
        nfs_versions_commit_begin(work->versions, &task->data);
}

static void choose_name(struct nfs_work *work, struct nfs_task *task, uint64_t random)
{
    if (task->operation == FLOW_REMOVE && nfs_names_take(&work->names, random, &task->name)) {
        task->directory = task->name.directory;
        return;
    }
    task->operation = FLOW_CREATE;
    task->name = nfs_names_new(&work->names, task->directory);
}

void nfs_work_choose(struct nfs_work *work, const struct flow_request *request,
                     struct nfs_task *task)
{
    struct rng rng;

    if (unpark(work, request->number, task)) {
        /* A WRITE keeps the version it has; what a READ may overlap begins anew. */
        if (task->operation != FLOW_WRITE)
            begin_data(work, task);
        return;
    }
    flow_request_rng(work->flow, request, &rng);
    memset(task, 0, sizeof(*task));
    task->operation = draw_operation(work, &rng);
    uint64_t random = rng_next(&rng);
    uint64_t drawn = 0;
    bool write = task->operation == FLOW_WRITE;

    task->data.file = work->set ? fileset_draw(work->set, &rng) : 0;
    if (write || task->operation == FLOW_READ) {
        drawn = distribution_draw_for(&work->flow->spec.nfs.transfer, &rng, request->number);
        uint32_t unit = transfer_unit(work, drawn, write);

        if (work->flow->spec.nfs.sequential)
            sequential_place(work, &task->data, unit, request->number, write);
        else
            random_place(work, &task->data, unit, random);
    }
    task->directory = work->set ? fileset_file_directory(work->set, task->data.file) : UINT64_MAX;
    if (task->operation == FLOW_CREATE || task->operation == FLOW_REMOVE)
        choose_name(work, task, random);
    begin_data(work, task);
}

void nfs_work_unchosen(struct nfs_work *work, const struct flow_request *request,
                       const struct nfs_task *task)
{
    park(work, request->number, task);
}

void nfs_work_name(const struct nfs_work *work, const struct nfs_task *task, char out[256])
{
    char path[FILESET_PATH_BYTES];

    if (task->operation == FLOW_CREATE || task->operation == FLOW_REMOVE) {
        nfs_names_text(&work->names, task->name.number, out);
        return;
    }
    if (!work->set) {
        snprintf(out, 256, "%s", work->flow->spec.nfs.file);
        return;
    }
    fileset_file_path(work->set, task->data.file, path);
    const char *slash = strrchr(path, '/');

    snprintf(out, 256, "%s", slash ? slash + 1 : path);
}

void nfs_work_fill(const struct nfs_work *work, const struct nfs_task *task, void *buffer)
{
    fileset_content(work->set, task->data.file, work->versions ? task->data.version : 0,
                    task->data.offset, buffer, task->data.bytes);
}

/* ---------------------------------------------------------------- ending */

static enum nfs_fate fate_of(const struct nfs_task *task, enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_OK:
        return NFS_DONE;
    case OUTCOME_NFS_ERROR:
        /* A WRITE may have got half-way. */
        return task->operation == FLOW_WRITE ? NFS_UNKNOWN : NFS_NOT_DONE;
    case OUTCOME_REFUSED:
    case OUTCOME_RPC_ERROR:
    case OUTCOME_CONNECT:
        return NFS_NOT_DONE;
    default:
        return NFS_UNKNOWN;
    }
}

static void end_name(struct nfs_work *work, const struct nfs_task *task, enum nfs_fate fate)
{
    bool create = task->operation == FLOW_CREATE;

    if (fate == NFS_UNKNOWN)
        nfs_names_left_over(&work->names, task->name);
    else if ((fate == NFS_DONE) == create)
        /* One that is new; or one that REMOVE left, to be tried again. */
        nfs_names_live(&work->names, task->name);
}

static void complain(struct nfs_work *work, const char *problem)
{
    if (!work->complained)
        fprintf(stderr, "spillload: flow %s: wrong data read: %s\n", work->flow->spec.name,
                problem);
    work->complained = true;
}

/* Whether the data of a READ is right, as far as that can be told. */
static bool read_right(struct nfs_work *work, const struct nfs_task *task,
                       const struct nfs_ending *ending)
{
    char problem[FILESET_PROBLEM_BYTES];
    enum nfs_verdict verdict;

    if (ending->count > task->data.bytes || (ending->count < task->data.bytes && ending->eof) ||
        ending->count == 0) {
        char path[FILESET_PATH_BYTES];

        fileset_file_path(work->set, task->data.file, path);
        snprintf(problem, sizeof(problem), "%.64s: %u bytes at %llu where %u are due%s", path,
                 ending->count, (unsigned long long)task->data.offset, task->data.bytes,
                 ending->eof ? ", and the file ends there" : "");
        complain(work, problem);
        return false;
    }
    verdict = nfs_versions_read_end(work->versions, &task->data, ending->data, ending->count,
                                    loop_clock_ns(), problem);
    if (verdict == NFS_CORRUPT)
        complain(work, problem);
    work->flow->verified += verdict != NFS_UNVERIFIED;
    work->flow->unverified += verdict == NFS_UNVERIFIED;
    return verdict != NFS_CORRUPT;
}

static enum outcome end_data(struct nfs_work *work, const struct nfs_task *task,
                             const struct nfs_ending *ending, enum nfs_fate fate)
{
    bool done = fate == NFS_DONE;

    if (!work->versions)
        return ending->outcome;
    if (task->operation == FLOW_WRITE)
        nfs_versions_write_end(work->versions, &task->data, fate, ending->count,
                               !work->flow->spec.nfs.unstable, loop_clock_ns());
    else if (task->operation == FLOW_COMMIT && done)
        nfs_versions_commit_end(work->versions, &task->data);
    else if (task->operation == FLOW_READ && done && !read_right(work, task, ending))
        return OUTCOME_CORRUPT;
    return ending->outcome;
}

struct flow_result nfs_work_ended(struct nfs_work *work, const struct flow_request *request,
                                  const struct nfs_task *task, const struct nfs_ending *ending)
{
    enum nfs_fate fate = fate_of(task, ending->outcome);
    struct flow_result result = {.outcome = ending->outcome, .kind = task->operation};

    /* As flow.c decides. */
    if (ending->outcome == OUTCOME_REFUSED && request->tries < work->flow->spec.retries) {
        park(work, request->number, task);
        return result;
    }
    if (task->operation == FLOW_CREATE || task->operation == FLOW_REMOVE)
        end_name(work, task, fate);
    else
        result.outcome = end_data(work, task, ending, fate);
    if (fate == NFS_DONE && task->operation == FLOW_READ)
        result.bytes_in = ending->count;
    if (fate == NFS_DONE && task->operation == FLOW_WRITE)
        result.bytes_out = ending->count;
    return result;
}

void nfs_work_stop(struct nfs_work *work)
{
    for (size_t i = 0; i < work->parked_capacity; i++) {
        const struct nfs_task *task = &work->parked[i].task;

        if (work->parked[i].used && task->operation == FLOW_REMOVE)
            nfs_names_live(&work->names, task->name);
        work->parked[i].used = false;
    }
    work->parked_count = 0;
}

void nfs_work_server_lost(struct nfs_work *work)
{
    if (work->versions && work->flow->spec.nfs.unstable)
        nfs_versions_server_lost(work->versions);
}
