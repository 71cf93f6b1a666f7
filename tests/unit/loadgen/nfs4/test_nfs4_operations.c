/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a mix as NFSv4 compounds: which operations each is made of, what is taken from the
 * reply, and where an open owner of 4.0 stands after every kind of answer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "loadgen/client/nfs4/nfs4_operations.h"

static const struct rpc_slice handle = {(const uint8_t *)"handle", 6};

#define ARGS_AT 44 /* mark, six words, two empty authenticators */

/* The operations of the task's compound, zero at the end. */
static void compound_of(struct nfs4_task *task, const struct nfs4_context *context,
                        uint8_t ops[NFS4_OPS_KEPT])
{
    uint8_t buf[NFS4_CALL_MAX_BYTES + 64] = {0};
    struct nfs4_call call;
    struct nfs4_compound walked;

    nfs4_call_begin(&call, buf, NFS4_CALL_MAX_BYTES, NULL, 1, context->minorversion);
    nfs4_task_put(&call, task, context);
    size_t bytes = nfs4_call_end(&call);

    assert_true(bytes > ARGS_AT);
    assert_int_equal(
        nfs4_parse_compound(buf + ARGS_AT, bytes - ARGS_AT + call.trailing_bytes, &walked),
        RPC_PARSE_OK);
    assert_false(walked.partial);
    memcpy(ops, walked.ops, NFS4_OPS_KEPT);
}

static const struct {
    enum flow_operation operation;
    uint32_t minorversion;
    uint8_t ops[NFS4_OPS_KEPT];
} compounds[] = {
    {FLOW_READ, 1, {NFS4_OP_PUTFH, NFS4_OP_READ}},
    {FLOW_WRITE, 1, {NFS4_OP_PUTFH, NFS4_OP_WRITE}},
    {FLOW_GETATTR, 1, {NFS4_OP_PUTFH, NFS4_OP_GETATTR}},
    {FLOW_LOOKUP, 1, {NFS4_OP_PUTFH, NFS4_OP_LOOKUP, NFS4_OP_GETFH, NFS4_OP_GETATTR}},
    {FLOW_ACCESS, 1, {NFS4_OP_PUTFH, NFS4_OP_ACCESS}},
    {FLOW_SETATTR, 1, {NFS4_OP_PUTFH, NFS4_OP_SETATTR}},
    {FLOW_READDIR, 1, {NFS4_OP_PUTFH, NFS4_OP_READDIR}},
    {FLOW_CREATE, 1, {NFS4_OP_PUTFH, NFS4_OP_OPEN, NFS4_OP_GETFH, NFS4_OP_CLOSE}},
    {FLOW_CREATE, 0, {NFS4_OP_PUTFH, NFS4_OP_OPEN, NFS4_OP_GETFH}},
    {FLOW_REMOVE, 1, {NFS4_OP_PUTFH, NFS4_OP_REMOVE}},
    {FLOW_COMMIT, 1, {NFS4_OP_PUTFH, NFS4_OP_COMMIT}},
    {FLOW_FSSTAT, 1, {NFS4_OP_PUTFH, NFS4_OP_GETATTR}},
};

static void every_operation_is_its_compound(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof(compounds) / sizeof(compounds[0]); i++) {
        struct nfs4_opener opener = {0};
        struct nfs4_context context = {.minorversion = compounds[i].minorversion,
                                       .opener = &opener};
        struct nfs4_task task = {
            .operation = compounds[i].operation, .object = handle, .name = "name", .length = 8};
        uint8_t ops[NFS4_OPS_KEPT];

        compound_of(&task, &context, ops);
        assert_memory_equal(ops, compounds[i].ops, NFS4_OPS_KEPT);
        assert_false(task.looked_up);
    }
}

static void a_directory_is_made_without_an_open(void **state)
{
    (void)state;
    static const uint8_t expected[NFS4_OPS_KEPT] = {NFS4_OP_PUTFH, NFS4_OP_CREATE, NFS4_OP_GETFH};
    struct nfs4_task task = {
        .operation = FLOW_CREATE, .object = handle, .name = "name", .directory = true};
    uint8_t ops[NFS4_OPS_KEPT];

    compound_of(&task, &(struct nfs4_context){.minorversion = 0}, ops);
    assert_memory_equal(ops, expected, NFS4_OPS_KEPT);
}

/* ---------------------------------------------------------------- replies */

struct reply {
    uint8_t bytes[1024];
    struct rpc_writer w;
    uint32_t count;
};

static void reply_begin(struct reply *reply)
{
    rpc_writer_init(&reply->w, reply->bytes, sizeof(reply->bytes));
    for (int word = 0; word < 3; word++) /* status, tag, count: set at the end */
        rpc_put_u32(&reply->w, 0);
    reply->count = 0;
}

static void reply_op(struct reply *reply, enum nfs4_op op, uint32_t status)
{
    reply->count++;
    rpc_put_u32(&reply->w, op);
    rpc_put_u32(&reply->w, status);
    rpc_store_u32(reply->bytes + 4, status);
}

static void reply_open(struct reply *reply, bool confirm)
{
    reply_op(reply, NFS4_OP_OPEN, NFS4_STATUS_OK);
    rpc_put_u32(&reply->w, 1);
    rpc_put_fixed(&reply->w, "twelvebytes.", 12);
    rpc_put_u32(&reply->w, 1);
    rpc_put_u64(&reply->w, 1);
    rpc_put_u64(&reply->w, 2);
    rpc_put_u32(&reply->w, confirm ? 2 : 0);
    rpc_put_u32(&reply->w, 0); /* no attributes set */
    rpc_put_u32(&reply->w, 0); /* no delegation */
}

static void reply_getfh(struct reply *reply)
{
    reply_op(reply, NFS4_OP_GETFH, NFS4_STATUS_OK);
    rpc_put_opaque(&reply->w, "found", 5);
}

static void reply_stateid(struct reply *reply, enum nfs4_op op)
{
    reply_op(reply, op, NFS4_STATUS_OK);
    rpc_put_u32(&reply->w, 2);
    rpc_put_fixed(&reply->w, "twelvebytes.", 12);
}

static enum rpc_parse take(struct reply *reply, const struct nfs4_task *task,
                           const struct nfs4_context *context, struct nfs4_done *done)
{
    struct nfs4_results results;
    size_t bytes = (size_t)(reply->w.at - reply->bytes) - 4;

    rpc_store_u32(reply->bytes + 12, reply->count);
    assert_int_equal(nfs4_results_begin(&results, reply->bytes + 4, bytes, bytes), RPC_PARSE_OK);
    return nfs4_task_take(&results, task, context, done);
}

/* The three compounds of the first CREATE of an owner, the two of the next one. */
static void an_owner_is_confirmed_once(void **state)
{
    (void)state;
    struct nfs4_opener opener = {.seqid = 0};
    struct nfs4_context context = {.opener = &opener};
    const struct nfs4_task task = {.operation = FLOW_CREATE, .object = handle, .name = "name"};
    struct nfs4_done done;
    struct reply reply;

    reply_begin(&reply);
    reply_op(&reply, NFS4_OP_PUTFH, 0);
    reply_open(&reply, true);
    reply_getfh(&reply);
    assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
    assert_int_equal(done.phase, NFS4_PHASE_CONFIRM);
    assert_int_equal(opener.seqid, 1);
    context.phase = done.phase;
    reply_begin(&reply);
    reply_op(&reply, NFS4_OP_PUTFH, 0);
    reply_stateid(&reply, NFS4_OP_OPEN_CONFIRM);
    assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
    assert_int_equal(done.phase, NFS4_PHASE_CLOSE);
    assert_int_equal(opener.seqid, 2);
    assert_int_equal(opener.stateid.seqid, 2);
    context.phase = done.phase;
    reply_begin(&reply);
    reply_op(&reply, NFS4_OP_PUTFH, 0);
    reply_stateid(&reply, NFS4_OP_CLOSE);
    assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
    assert_int_equal(done.phase, NFS4_PHASE_WHOLE);
    assert_int_equal(opener.seqid, 3);
    assert_int_equal(done.found.len, 5);
    context.phase = done.phase;
    reply_begin(&reply);
    reply_op(&reply, NFS4_OP_PUTFH, 0);
    reply_open(&reply, false);
    reply_getfh(&reply);
    assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
    assert_int_equal(done.phase, NFS4_PHASE_CLOSE);
    assert_int_equal(opener.seqid, 4);
    assert_int_equal(opener.generation, 0);
}

/* RFC 7530 section 9.1.7: which answers move an owner's sequence, and which end the owner. */
static void what_an_owner_learns_from_failures(void **state)
{
    (void)state;
    static const struct {
        uint32_t status;
        uint32_t seqid; /* afterwards, where it was 5 */
        uint32_t generation;
    } cases[] = {
        {NFS4_STATUS_DELAY, 6, 0},          {NFS4_STATUS_GRACE, 6, 0},
        {NFS4_STATUS_NOSPC, 6, 0},          {NFS4_STATUS_RESOURCE, 5, 0},
        {NFS4_STATUS_STALE_CLIENTID, 5, 0}, {NFS4_STATUS_BADXDR, 5, 0},
        {NFS4_STATUS_NOFILEHANDLE, 5, 0},   {NFS4_STATUS_MOVED, 5, 0},
        {NFS4_STATUS_BAD_SEQID, 0, 1},      {NFS4_STATUS_BAD_STATEID, 0, 1},
        {NFS4_STATUS_STALE_STATEID, 0, 1},  {NFS4_STATUS_EXPIRED, 0, 1},
    };
    const struct nfs4_task task = {.operation = FLOW_CREATE, .object = handle, .name = "name"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct nfs4_opener opener = {.seqid = 5};
        struct nfs4_context context = {.opener = &opener};
        struct nfs4_done done;
        struct reply reply;

        reply_begin(&reply);
        reply_op(&reply, NFS4_OP_PUTFH, 0);
        reply_op(&reply, NFS4_OP_OPEN, cases[i].status);
        assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
        assert_int_equal(done.status, cases[i].status);
        assert_int_equal(done.failed_op, NFS4_OP_OPEN);
        assert_int_equal(opener.seqid, cases[i].seqid);
        assert_int_equal(opener.generation, cases[i].generation);
        /* A failure before OPEN is none of the owner's business. */
        opener = (struct nfs4_opener){.seqid = 5};
        reply_begin(&reply);
        reply_op(&reply, NFS4_OP_PUTFH, cases[i].status);
        assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
        assert_int_equal(opener.seqid, 5);
        assert_int_equal(opener.generation, 0);
    }
}

static void what_is_not_known_is_looked_up_on_the_way(void **state)
{
    (void)state;
    static const uint8_t expected[NFS4_OPS_KEPT] = {NFS4_OP_PUTFH,  NFS4_OP_LOOKUP, NFS4_OP_LOOKUP,
                                                    NFS4_OP_LOOKUP, NFS4_OP_GETFH,  NFS4_OP_READ};
    struct nfs4_task task = {.operation = FLOW_READ, .base = handle, .path = "set/d0/f1"};
    const struct nfs4_context context = {.minorversion = 1};
    uint8_t ops[NFS4_OPS_KEPT];
    struct nfs4_done done;
    struct reply reply;

    compound_of(&task, &context, ops);
    assert_memory_equal(ops, expected, NFS4_OPS_KEPT);
    task.path = NULL; /* not needed any more */
    reply_begin(&reply);
    reply_op(&reply, NFS4_OP_PUTFH, 0);
    for (int part = 0; part < 3; part++)
        reply_op(&reply, NFS4_OP_LOOKUP, 0);
    reply_getfh(&reply);
    reply_op(&reply, NFS4_OP_READ, 0);
    rpc_put_u32(&reply.w, 1);
    rpc_put_opaque(&reply.w, "data", 4);
    assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
    assert_int_equal(done.object.len, 5);
    assert_memory_equal(done.object.data, "found", 5);
    assert_int_equal(done.data_bytes, 4);
    assert_true(done.eof);
    reply_begin(&reply);
    reply_op(&reply, NFS4_OP_PUTFH, 0);
    reply_op(&reply, NFS4_OP_LOOKUP, NFS4_STATUS_NOENT);
    assert_int_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
    assert_int_equal(done.status, NFS4_STATUS_NOENT);
    assert_int_equal(done.failed_op, NFS4_OP_LOOKUP);
    assert_int_equal(done.object.len, 0);
}

/* A reply that ends well before its operations did is none. */
static void a_reply_that_stops_early_is_none(void **state)
{
    (void)state;
    const struct nfs4_task task = {.operation = FLOW_GETATTR, .object = handle};
    const struct nfs4_context context = {.minorversion = 1};
    struct nfs4_done done;
    struct reply reply;

    reply_begin(&reply);
    reply_op(&reply, NFS4_OP_PUTFH, 0);
    assert_int_not_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
    reply_op(&reply, NFS4_OP_ACCESS, 0);
    assert_int_not_equal(take(&reply, &task, &context, &done), RPC_PARSE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_its_compound),
        cmocka_unit_test(a_directory_is_made_without_an_open),
        cmocka_unit_test(an_owner_is_confirmed_once),
        cmocka_unit_test(what_an_owner_learns_from_failures),
        cmocka_unit_test(what_is_not_known_is_looked_up_on_the_way),
        cmocka_unit_test(a_reply_that_stops_early_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
