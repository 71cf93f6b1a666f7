/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring an NFSv3 server, procedure by procedure. Those that make names (create) come before
 * those that use them up (rename, remove). COMMIT is worth nothing without something to commit, so
 * each follows a WRITE of the same connection, which is not counted.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/control/ctl/calibrate_export.h"

#define NAMES_MAX     4096 /* made by one run */
#define COMMIT_BYTES  65536
#define DIRECTORY_MAX 8192 /* bytes asked for by READDIR and READDIRPLUS */

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum step_kind {
    STEP_REPEAT, /* the same call, or the same at another place of the file */
    STEP_MAKE,   /* a new name each */
    STEP_USE,    /* a name each that the latest STEP_MAKE or STEP_USE has left */
};

static const struct step {
    const char *operation; /* as in the table of spillway.yaml */
    uint32_t proc;
    enum step_kind kind;
} steps[] = {
    {"null", NFS3_PROC_NULL, STEP_REPEAT},
    {"getattr", NFS3_PROC_GETATTR, STEP_REPEAT},
    {"setattr", NFS3_PROC_SETATTR, STEP_REPEAT},
    {"lookup", NFS3_PROC_LOOKUP, STEP_REPEAT},
    {"access", NFS3_PROC_ACCESS, STEP_REPEAT},
    {"readlink", NFS3_PROC_READLINK, STEP_REPEAT},
    {"readdir", NFS3_PROC_READDIR, STEP_REPEAT},
    {"readdirplus", NFS3_PROC_READDIRPLUS, STEP_REPEAT},
    {"fsstat", NFS3_PROC_FSSTAT, STEP_REPEAT},
    {"fsinfo", NFS3_PROC_FSINFO, STEP_REPEAT},
    {"pathconf", NFS3_PROC_PATHCONF, STEP_REPEAT},
    {"link", NFS3_PROC_LINK, STEP_MAKE},
    {"symlink", NFS3_PROC_SYMLINK, STEP_MAKE},
    {"create", NFS3_PROC_CREATE, STEP_MAKE},
    {"rename", NFS3_PROC_RENAME, STEP_USE},
    {"remove", NFS3_PROC_REMOVE, STEP_USE},
    {"mkdir", NFS3_PROC_MKDIR, STEP_MAKE},
    {"rmdir", NFS3_PROC_RMDIR, STEP_USE},
};

static const struct step read_step = {"read", NFS3_PROC_READ, STEP_REPEAT};
static const struct step write_step = {"write", NFS3_PROC_WRITE, STEP_REPEAT};
static const struct step commit_step = {"commit", NFS3_PROC_COMMIT, STEP_REPEAT};

static const uint32_t sizes[] = {4096, 16384, 65536, 262144, 1048576};

struct nfs_case {
    struct calibrate_export export;
    const struct calibrate_options *options;
    struct calibrate_table *table;
    unsigned depth; /* of the runs under way */
    const struct step *step;
    uint32_t size;                     /* of READ and WRITE */
    uint8_t *data;                     /* to be written */
    uint64_t calls;                    /* of this run */
    unsigned first_name;               /* of this run; names are never used twice */
    unsigned names, names_left;        /* that this run may use; that the one before has left */
    bool writing[CALIBRATE_LINKS_MAX]; /* COMMIT: what is under way is the WRITE before it */
    uint32_t failed_status;            /* of the first reply of this run that says so; 0: none */
};

/* ------------------------------------------------------------------ calls */

static uint64_t next_offset(const struct nfs_case *c)
{
    return c->calls * c->size % CALIBRATE_FILE_BYTES;
}

static size_t put_list(const struct nfs_case *c, uint8_t *to, uint32_t xid)
{
    struct rpc_slice many = calibrate_slice(&c->export.many);

    if (c->step->proc == NFS3_PROC_READDIR)
        return nfs3_call_readdir(to, CALIBRATE_OUT_ROOM, &c->export.client, xid, many, 0, 0,
                                 DIRECTORY_MAX);
    return nfs3_call_readdirplus(to, CALIBRATE_OUT_ROOM, &c->export.client, xid, many, 0, 0,
                                 DIRECTORY_MAX, DIRECTORY_MAX);
}

static size_t put_data_call(const struct nfs_case *c, struct calibrate_link *link, uint32_t xid)
{
    const struct nfs3_client *client = &c->export.client;
    struct rpc_slice file = calibrate_slice(&c->export.file);

    if (c->step->proc == NFS3_PROC_READ)
        return nfs3_call_read(link->out, CALIBRATE_OUT_ROOM, client, xid, file, next_offset(c),
                              c->size);
    if (c->step->proc == NFS3_PROC_COMMIT && !c->writing[link->index])
        return nfs3_call_commit(link->out, CALIBRATE_OUT_ROOM, client, xid, file, 0, 0);
    link->tail = c->data;
    link->tail_bytes = rpc_padded(c->size);
    return nfs3_call_write(link->out, CALIBRATE_OUT_ROOM, client, xid, file, next_offset(c),
                           c->size, NFS3_UNSTABLE);
}

/* Calls that ask about an object. */
static size_t put_query(const struct nfs_case *c, uint8_t *to, uint32_t xid)
{
    const struct nfs3_client *client = &c->export.client;
    struct rpc_slice file = calibrate_slice(&c->export.file);
    struct rpc_slice scratch = calibrate_slice(&c->export.scratch);
    const size_t room = CALIBRATE_OUT_ROOM;

    switch (c->step->proc) {
    case NFS3_PROC_NULL:
        return nfs3_call_null(to, room, client, xid);
    case NFS3_PROC_GETATTR:
        return nfs3_call_getattr(to, room, client, xid, file);
    case NFS3_PROC_SETATTR:
        return nfs3_call_setattr(to, room, client, xid, file, 0600 | (c->calls % 2 ? 0040 : 0));
    case NFS3_PROC_LOOKUP:
        return nfs3_call_lookup(to, room, client, xid, scratch, "file");
    case NFS3_PROC_ACCESS:
        return nfs3_call_access(to, room, client, xid, file, 0x3f);
    case NFS3_PROC_READLINK:
        return nfs3_call_readlink(to, room, client, xid, calibrate_slice(&c->export.link));
    case NFS3_PROC_FSSTAT:
        return nfs3_call_fsstat(to, room, client, xid, scratch);
    case NFS3_PROC_FSINFO:
        return nfs3_call_fsinfo(to, room, client, xid, scratch);
    case NFS3_PROC_PATHCONF:
        return nfs3_call_pathconf(to, room, client, xid, scratch);
    default:
        return put_list(c, to, xid);
    }
}

/* Calls that make, move or remove a name. */
static size_t put_name_call(const struct nfs_case *c, uint8_t *to, uint32_t xid)
{
    const struct nfs3_client *client = &c->export.client;
    struct rpc_slice scratch = calibrate_slice(&c->export.scratch);
    unsigned number = c->first_name + (unsigned)c->calls;
    const size_t room = CALIBRATE_OUT_ROOM;
    char name[32];
    char other[32];

    snprintf(name, sizeof(name), "%s%u", c->step->kind == STEP_MAKE ? c->step->operation : "create",
             number);
    snprintf(other, sizeof(other), "renamed%u", number);
    switch (c->step->proc) {
    case NFS3_PROC_LINK:
        return nfs3_call_link(to, room, client, xid, calibrate_slice(&c->export.file), scratch,
                              name);
    case NFS3_PROC_SYMLINK:
        return nfs3_call_symlink(to, room, client, xid, scratch, name, "file");
    case NFS3_PROC_CREATE:
        return nfs3_call_create(to, room, client, xid, scratch, name, 0600, false);
    case NFS3_PROC_RENAME:
        return nfs3_call_rename(to, room, client, xid, scratch, name, other);
    case NFS3_PROC_REMOVE:
        return nfs3_call_remove(to, room, client, xid, scratch, other);
    case NFS3_PROC_MKDIR:
        return nfs3_call_mkdir(to, room, client, xid, scratch, name, 0700);
    default:
        snprintf(name, sizeof(name), "mkdir%u", number);
        return nfs3_call_rmdir(to, room, client, xid, scratch, name);
    }
}

static bool nfs_next(void *context, struct calibrate_link *link)
{
    struct nfs_case *c = context;

    if (c->failed_status != 0 || (c->step->kind != STEP_REPEAT && c->calls >= c->names))
        return false;
    uint32_t xid = calibrate_export_xid(&c->export, link);
    switch (c->step->proc) {
    case NFS3_PROC_COMMIT:
        c->writing[link->index] = !c->writing[link->index];
        link->counted = !c->writing[link->index];
        link->out_bytes = put_data_call(c, link, xid);
        break;
    case NFS3_PROC_READ:
    case NFS3_PROC_WRITE:
        link->out_bytes = put_data_call(c, link, xid);
        break;
    default:
        link->out_bytes = c->step->kind == STEP_REPEAT ? put_query(c, link->out, xid)
                                                       : put_name_call(c, link->out, xid);
        break;
    }
    c->calls++;
    return true;
}

static enum calibrate_reply nfs_reply(void *context, struct calibrate_link *link, size_t *used)
{
    struct nfs_case *c = context;
    struct rpc_slice results;
    enum calibrate_reply result = calibrate_export_take(&c->export, link, used, &results);

    if (result == CALIBRATE_DONE && c->step->proc != NFS3_PROC_NULL && results.len >= 4 &&
        c->failed_status == 0)
        c->failed_status = rpc_load_u32(results.data);
    return result;
}

/* ------------------------------------------------------------------ runs */

static struct calibrate_work begin_run(struct nfs_case *c, const struct step *step, uint32_t size)
{
    c->step = step;
    c->size = size;
    c->failed_status = 0;
    memset(c->writing, 0, sizeof(c->writing));
    if (step->kind == STEP_MAKE) {
        c->first_name += NAMES_MAX;
        c->names = NAMES_MAX;
    } else if (step->kind == STEP_USE) {
        c->names = c->names_left;
    }
    c->calls = 0;
    return (struct calibrate_work){c, nfs_next, nfs_reply};
}

static bool skips(const struct nfs_case *c, const struct step *step)
{
    return (step->proc == NFS3_PROC_READLINK && c->export.link.length == 0) ||
           (step->kind == STEP_USE && c->names_left == 0);
}

/* 0, or -1: the server is gone. */
static int measure(struct nfs_case *c, const struct step *step, uint32_t size)
{
    struct calibrate_row row = {.samples = 0};

    if (calibrate_stopped || skips(c, step))
        return 0;
    struct calibrate_work work = begin_run(c, step, size);
    if (calibrate_measure(&c->export.loop, &work, c->options, c->depth, &row) < 0)
        return -1;
    c->names_left = step->kind == STEP_REPEAT ? 0 : (unsigned)c->calls;
    if (c->failed_status != 0) {
        char text[32];
        c->names_left = 0;
        calibrate_table_note(c->table, "%s is left out: the server answers %s", step->operation,
                             calibrate_status_text(c->failed_status, text, sizeof(text)));
        return 0;
    }
    struct calibrate_row *kept =
        calibrate_table_row(c->table, step->operation, step->proc == NFS3_PROC_COMMIT ? 0 : size);
    if (kept == NULL || row.samples == 0)
        return 0;
    calibrate_row_merge(kept, &row);
    return 0;
}

static int measure_sizes(struct nfs_case *c, const struct step *step, uint32_t most)
{
    for (size_t i = 0; i < COUNT_OF(sizes) && sizes[i] <= most; i++) {
        if (measure(c, step, sizes[i]) < 0)
            return -1;
    }
    return 0;
}

static int measure_all(struct nfs_case *c, unsigned depth)
{
    c->depth = depth;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (measure(c, &steps[i], 0) < 0)
            return -1;
    }
    if (measure_sizes(c, &read_step, c->export.read_max_bytes) < 0 ||
        measure_sizes(c, &write_step, c->export.write_max_bytes) < 0)
        return -1;
    return c->export.write_max_bytes >= COMMIT_BYTES ? measure(c, &commit_step, COMMIT_BYTES) : 0;
}

/* What asks least of the server needs most at a time; reading may need yet more. */
static int find_depth(struct nfs_case *c)
{
    const struct calibrate_work small = begin_run(c, &steps[1], 0);
    unsigned depth = calibrate_find_depth(&c->export.loop, &small, c->options);

    if (depth == 0)
        return -1;
    const struct calibrate_work large = begin_run(c, &read_step, sizes[0]);
    unsigned other = calibrate_find_depth(&c->export.loop, &large, c->options);
    if (other == 0)
        return -1;
    c->table->depth = other > depth ? other : depth;
    /* Depth 1 is what `alone` is for. */
    c->table->depth = c->table->depth > 2 ? c->table->depth : 2;
    return 0;
}

static int run_case(struct nfs_case *c)
{
    int result = 0;

    c->table->depth = c->options->depth;
    if (c->table->depth == 0)
        result = find_depth(c);
    for (unsigned round = 0; round < CALIBRATE_ROUNDS && result == 0; round++) {
        result = measure_all(c, 1);
        if (result == 0)
            result = measure_all(c, c->table->depth);
    }
    if (result == 0)
        return CALIBRATE_OK;
    calibrate_say("%s", c->export.loop.error);
    return CALIBRATE_UNREACHABLE;
}

int calibrate_nfs(const struct calibrate_options *options, const char *target,
                  struct calibrate_table *table)
{
    static struct nfs_case c;
    int status;

    c = (struct nfs_case){.options = options, .table = table};
    snprintf(table->target, sizeof(table->target), "%s", target);
    c.data = calloc(1, sizes[COUNT_OF(sizes) - 1]);
    status = calibrate_export_open(&c.export, options, target);
    if (status == CALIBRATE_OK)
        status = c.data != NULL ? run_case(&c) : CALIBRATE_REFUSED;
    calibrate_export_close(&c.export);
    free(c.data);
    return status;
}
