/* SPDX-License-Identifier: Apache-2.0 */
/* Operations as compounds: see nfs4_operations.h. */
#include "loadgen/client/nfs4/nfs4_operations.h"

#include <stdio.h>
#include <string.h>

#include "loadgen/client/nfs/nfs_work.h"

#define ALL_ACCESS     0x3fU
#define OWNER_BYTES    32
#define DIRECTORY_MODE 0755U

#define ATTRIBUTES_OF_ENTRY                                                                        \
    (NFS4_ATTRIBUTE(NFS4_ATTR_TYPE) | NFS4_ATTRIBUTE(NFS4_ATTR_FILEID) |                           \
     NFS4_ATTRIBUTE(NFS4_ATTR_RDATTR_ERROR))

bool nfs4_task_once(const struct nfs4_task *task)
{
    return task->operation == FLOW_CREATE || task->operation == FLOW_REMOVE ||
           task->operation == FLOW_SETATTR;
}

void nfs4_opener_renew(struct nfs4_opener *opener)
{
    opener->generation++;
    opener->seqid = 0;
}

/* -------------------------------------------------------------------------------- writing */

static void put_object(struct nfs4_call *call, struct nfs4_task *task)
{
    task->looked_up = task->object.len == 0;
    if (!task->looked_up) {
        nfs4_put_handle(call, task->object);
        return;
    }
    nfs4_put_handle(call, task->base);
    task->lookups = nfs4_put_lookups(call, task->path);
    nfs4_put_getfh(call);
}

static void put_open(struct nfs4_call *call, const struct nfs4_task *task,
                     const struct nfs4_context *context)
{
    char owner[OWNER_BYTES];
    int bytes = snprintf(owner, sizeof(owner), "%u.%u", context->slot, context->opener->generation);

    nfs4_put_open_create(
        call, &(struct nfs4_open){.seqid = context->minorversion ? 0 : context->opener->seqid,
                                  .client_id = context->client_id,
                                  .owner = {(const uint8_t *)owner, (uint32_t)bytes},
                                  .name = task->name,
                                  .mode = NFS_WORK_MODE,
                                  .truncate = task->truncate});
    nfs4_put_getfh(call);
    if (context->minorversion > 0)
        nfs4_put_close(call, &nfs4_current_stateid, 0);
}

/* The second and third compound of a CREATE. */
static void put_later_phase(struct nfs4_call *call, const struct nfs4_context *context)
{
    const struct nfs4_opener *opener = context->opener;

    nfs4_put_handle(call, (struct rpc_slice){opener->handle, opener->handle_bytes});
    if (context->phase == NFS4_PHASE_CONFIRM)
        nfs4_put_open_confirm(call, &opener->stateid, opener->seqid);
    else
        nfs4_put_close(call, &opener->stateid, opener->seqid);
}

static void put_operation(struct nfs4_call *call, const struct nfs4_task *task,
                          const struct nfs4_context *context)
{
    switch (task->operation) {
    case FLOW_READ:
        nfs4_put_read(call, &nfs4_anonymous_stateid, task->offset, task->length);
        break;
    case FLOW_WRITE:
        nfs4_put_write(call, &nfs4_anonymous_stateid, task->offset, task->length,
                       task->unstable ? 0 : 2);
        break;
    case FLOW_LOOKUP:
        nfs4_put_lookup(call, task->name);
        nfs4_put_getfh(call);
        nfs4_put_getattr(call, NFS4_ATTRIBUTES_OF_FILE);
        break;
    case FLOW_ACCESS:
        nfs4_put_access(call, ALL_ACCESS);
        break;
    case FLOW_SETATTR:
        nfs4_put_setattr_mode(call, &nfs4_anonymous_stateid, NFS_WORK_MODE);
        break;
    case FLOW_READDIR:
        nfs4_put_readdir(call, 0, 0, NFS_WORK_READDIR_BYTES, NFS_WORK_READDIR_BYTES,
                         ATTRIBUTES_OF_ENTRY);
        break;
    case FLOW_CREATE:
        if (task->directory) {
            nfs4_put_create_directory(call, task->name, DIRECTORY_MODE);
            nfs4_put_getfh(call);
        } else {
            put_open(call, task, context);
        }
        break;
    case FLOW_REMOVE:
        nfs4_put_remove(call, task->name);
        break;
    case FLOW_COMMIT:
        nfs4_put_commit(call, task->offset, task->length);
        break;
    case FLOW_FSSTAT:
        nfs4_put_getattr(call, NFS4_ATTRIBUTES_OF_SPACE);
        break;
    case FLOW_GETATTR:
    case FLOW_OPERATIONS:
    default:
        nfs4_put_getattr(call, NFS4_ATTRIBUTES_OF_FILE);
        break;
    }
}

void nfs4_task_put(struct nfs4_call *call, struct nfs4_task *task,
                   const struct nfs4_context *context)
{
    if (context->phase != NFS4_PHASE_WHOLE) {
        put_later_phase(call, context);
        return;
    }
    put_object(call, task);
    put_operation(call, task, context);
}

/* -------------------------------------------------------------------------------- reading */

/* The next result; false when the walk is over, for good (`*parse` OK) or because it is none. */
static bool next(struct nfs4_results *results, uint32_t op, struct nfs4_result *result,
                 struct nfs4_done *done, enum rpc_parse *parse)
{
    *parse = nfs4_results_next(results, op, result);
    if (*parse == RPC_PARSE_NOT_EXPECTED && results->status != NFS4_STATUS_OK) {
        done->status = results->status;
        done->failed_op = op;
        *parse = RPC_PARSE_OK;
        return false;
    }
    if (*parse != RPC_PARSE_OK || result->status == NFS4_STATUS_OK)
        return *parse == RPC_PARSE_OK;
    done->status = result->status;
    done->failed_op = op;
    return false;
}

/* As put_object(). */
static bool take_object(struct nfs4_results *results, const struct nfs4_task *task,
                        struct nfs4_done *done, enum rpc_parse *parse)
{
    struct nfs4_result result;

    if (!next(results, NFS4_OP_PUTFH, &result, done, parse))
        return false;
    if (!task->looked_up)
        return true;
    for (uint32_t i = 0; i < task->lookups; i++) {
        if (!next(results, NFS4_OP_LOOKUP, &result, done, parse))
            return false;
    }
    if (!next(results, NFS4_OP_GETFH, &result, done, parse))
        return false;
    done->object = result.handle;
    return true;
}

/* Errors after which an owner's sequence stays where it was (RFC 7530 section 9.1.7). */
static bool keeps_seqid(uint32_t status)
{
    switch (status) {
    case NFS4_STATUS_STALE_CLIENTID:
    case NFS4_STATUS_STALE_STATEID:
    case NFS4_STATUS_BAD_STATEID:
    case NFS4_STATUS_BAD_SEQID:
    case NFS4_STATUS_BADXDR:
    case NFS4_STATUS_RESOURCE:
    case NFS4_STATUS_NOFILEHANDLE:
    case NFS4_STATUS_MOVED:
        return true;
    default:
        return false;
    }
}

/* An operation that the open owner numbers was answered. */
static void count_seqid(const struct nfs4_context *context, uint32_t status)
{
    if (status == NFS4_STATUS_BAD_SEQID || status == NFS4_STATUS_BAD_STATEID ||
        status == NFS4_STATUS_STALE_STATEID || status == NFS4_STATUS_EXPIRED)
        nfs4_opener_renew(context->opener);
    else if (!keeps_seqid(status))
        context->opener->seqid++;
}

static bool next_of_owner(struct nfs4_results *results, const struct nfs4_context *context,
                          uint32_t op, struct nfs4_result *result, struct nfs4_done *done,
                          enum rpc_parse *parse)
{
    bool good = next(results, op, result, done, parse);

    if (*parse == RPC_PARSE_OK && context->minorversion == 0)
        count_seqid(context, good ? NFS4_STATUS_OK : done->status);
    return good;
}

static void take_open(struct nfs4_results *results, const struct nfs4_context *context,
                      struct nfs4_done *done, enum rpc_parse *parse)
{
    struct nfs4_result result;
    struct nfs4_opener *opener = context->opener;
    bool confirm;

    if (!next_of_owner(results, context, NFS4_OP_OPEN, &result, done, parse))
        return;
    opener->stateid = result.stateid;
    confirm = result.confirm;
    if (!next(results, NFS4_OP_GETFH, &result, done, parse)) {
        nfs4_opener_renew(opener); /* what it has open has no handle to be closed by */
        return;
    }
    done->found = result.handle;
    if (context->minorversion > 0) {
        next(results, NFS4_OP_CLOSE, &result, done, parse);
        return;
    }
    memcpy(opener->handle, result.handle.data, result.handle.len);
    opener->handle_bytes = result.handle.len;
    done->phase = confirm ? NFS4_PHASE_CONFIRM : NFS4_PHASE_CLOSE;
}

static void take_later_phase(struct nfs4_results *results, const struct nfs4_context *context,
                             struct nfs4_done *done, enum rpc_parse *parse)
{
    struct nfs4_result result;
    bool confirm = context->phase == NFS4_PHASE_CONFIRM;

    if (!next(results, NFS4_OP_PUTFH, &result, done, parse) ||
        !next_of_owner(results, context, confirm ? NFS4_OP_OPEN_CONFIRM : NFS4_OP_CLOSE, &result,
                       done, parse))
        return;
    context->opener->stateid = result.stateid;
    if (confirm)
        done->phase = NFS4_PHASE_CLOSE;
    done->found = (struct rpc_slice){context->opener->handle, context->opener->handle_bytes};
}

static void take_directory(struct nfs4_results *results, struct nfs4_done *done,
                           enum rpc_parse *parse)
{
    struct nfs4_result result;

    if (next(results, NFS4_OP_CREATE, &result, done, parse) &&
        next(results, NFS4_OP_GETFH, &result, done, parse))
        done->found = result.handle;
}

static void keep_size(const struct nfs4_attributes *attributes, struct nfs4_done *done)
{
    if (attributes->present & NFS4_ATTRIBUTE(NFS4_ATTR_SIZE))
        done->size_bytes = attributes->values[NFS4_ATTR_SIZE];
}

static void take_lookup(struct nfs4_results *results, struct nfs4_done *done, enum rpc_parse *parse)
{
    struct nfs4_result result;

    if (!next(results, NFS4_OP_LOOKUP, &result, done, parse) ||
        !next(results, NFS4_OP_GETFH, &result, done, parse))
        return;
    done->found = result.handle;
    if (next(results, NFS4_OP_GETATTR, &result, done, parse))
        keep_size(&result.attributes, done);
}

static void take_read(struct nfs4_results *results, struct nfs4_done *done, enum rpc_parse *parse)
{
    struct nfs4_result result;

    if (!next(results, NFS4_OP_READ, &result, done, parse))
        return;
    done->data = result.data;
    done->data_bytes = result.data_bytes;
    done->data_there = result.data_there;
    done->eof = result.eof;
}

static void take_operation(struct nfs4_results *results, const struct nfs4_task *task,
                           const struct nfs4_context *context, struct nfs4_done *done,
                           enum rpc_parse *parse)
{
    static const uint32_t single[FLOW_OPERATIONS] = {
        [FLOW_WRITE] = NFS4_OP_WRITE,     [FLOW_GETATTR] = NFS4_OP_GETATTR,
        [FLOW_ACCESS] = NFS4_OP_ACCESS,   [FLOW_SETATTR] = NFS4_OP_SETATTR,
        [FLOW_READDIR] = NFS4_OP_READDIR, [FLOW_REMOVE] = NFS4_OP_REMOVE,
        [FLOW_COMMIT] = NFS4_OP_COMMIT,   [FLOW_FSSTAT] = NFS4_OP_GETATTR,
    };
    struct nfs4_result result;

    switch (task->operation) {
    case FLOW_READ:
        take_read(results, done, parse);
        break;
    case FLOW_LOOKUP:
        take_lookup(results, done, parse);
        break;
    case FLOW_CREATE:
        if (task->directory)
            take_directory(results, done, parse);
        else
            take_open(results, context, done, parse);
        break;
    default:
        if (!next(results, single[task->operation], &result, done, parse))
            break;
        done->count = result.count;
        keep_size(&result.attributes, done);
        break;
    }
}

enum rpc_parse nfs4_task_take(struct nfs4_results *results, const struct nfs4_task *task,
                              const struct nfs4_context *context, struct nfs4_done *done)
{
    enum rpc_parse parse = RPC_PARSE_OK;

    *done = (struct nfs4_done){.status = NFS4_STATUS_OK};
    if (context->phase != NFS4_PHASE_WHOLE)
        take_later_phase(results, context, done, &parse);
    else if (take_object(results, task, done, &parse))
        take_operation(results, task, context, done, &parse);
    if (parse != RPC_PARSE_OK)
        return parse;
    parse = nfs4_results_end(results);
    /* A compound that was refused as a whole has no results to end with. */
    return parse == RPC_PARSE_NOT_EXPECTED && done->status != NFS4_STATUS_OK ? RPC_PARSE_OK : parse;
}
