/* SPDX-License-Identifier: Apache-2.0 */
/* A client's NFSv4 calls and the replies to them: every operation's encoding word by word, as the
 * RFCs lay it out; every truncation, every word too many, every operation out of turn is an error.
 * Those of minor version 0 are confirmed by libnfs, all of them by the walker of nfs4_compound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "protocols/rpc/nfs4_client.h"
#include "tests/unit/protocols/nfs_oracle.h"
#include "tests/unit/protocols/rpc_test.h"
#include <nfsc/libnfs-raw-nfs4.h>

static const uint8_t session[NFS4_SESSION_ID_BYTES] = {'s', 'e', 's', 's', 'i', 'o', 'n', '-',
                                                       's', 'i', 'x', 't', 'e', 'e', 'n', '.'};
static const struct nfs4_stateid stateid = {
    7, {'t', 'w', 'e', 'l', 'v', 'e', 'b', 'y', 't', 'e', 's', '.'}};
static const struct rpc_slice owner = {(const uint8_t *)"owner", 5};

/*
 * Encodings in words:
 *   =N  4 bytes    #N  8 bytes    'text  length, text, padding
 *   stateid, anonymous, current, session: 16 bytes each
 */
static void build_token(struct build *b, const char *token)
{
    if (token[0] == '=') {
        build_word(b, (uint32_t)strtoul(token + 1, NULL, 0));
    } else if (token[0] == '#') {
        build_hyper(b, strtoull(token + 1, NULL, 0));
    } else if (token[0] == '\'') {
        build_string(b, token + 1);
    } else if (!strcmp(token, "stateid")) {
        build_word(b, stateid.seqid);
        build_raw(b, stateid.other, sizeof(stateid.other));
    } else if (!strcmp(token, "anonymous")) {
        build_zeros(b, 16);
    } else if (!strcmp(token, "current")) {
        build_word(b, 1);
        build_zeros(b, 12);
    } else if (!strcmp(token, "session")) {
        build_raw(b, session, sizeof(session));
    } else {
        fail_msg("unknown token %s", token);
    }
}

static void build_tokens(struct build *b, const char *tokens)
{
    char copy[512];

    assert_true(strlen(tokens) < sizeof(copy));
    memcpy(copy, tokens, strlen(tokens) + 1);
    for (char *save, *token = strtok_r(copy, " ", &save); token; token = strtok_r(NULL, " ", &save))
        build_token(b, token);
}

/* ---------------------------------------------------------------- calls */

static void put_handle(struct nfs4_call *c)
{
    nfs4_put_handle(c, (struct rpc_slice){(const uint8_t *)"handle", 6});
}

static void put_lookup(struct nfs4_call *c)
{
    nfs4_put_lookup(c, "name");
}

static void put_access(struct nfs4_call *c)
{
    nfs4_put_access(c, 0x3f);
}

static void put_read(struct nfs4_call *c)
{
    nfs4_put_read(c, &nfs4_anonymous_stateid, 1ULL << 40, 65536);
}

static void put_commit(struct nfs4_call *c)
{
    nfs4_put_commit(c, 4096, 100);
}

static void put_getattr(struct nfs4_call *c)
{
    nfs4_put_getattr(c, NFS4_ATTRIBUTE(NFS4_ATTR_SIZE) | NFS4_ATTRIBUTE(NFS4_ATTR_MODE));
}

static void put_setattr(struct nfs4_call *c)
{
    nfs4_put_setattr_mode(c, &stateid, 0644);
}

static void put_readdir(struct nfs4_call *c)
{
    nfs4_put_readdir(c, 11, 12, 1000, 2000, NFS4_ATTRIBUTE(NFS4_ATTR_FILEID));
}

static void put_remove(struct nfs4_call *c)
{
    nfs4_put_remove(c, "gone");
}

static void put_directory(struct nfs4_call *c)
{
    nfs4_put_create_directory(c, "folder", 0755);
}

static void put_open(struct nfs4_call *c)
{
    nfs4_put_open_create(
        c, &(struct nfs4_open){
               .seqid = 3, .client_id = 9, .owner = owner, .name = "new", .mode = 0640});
}

static void put_open_truncating(struct nfs4_call *c)
{
    nfs4_put_open_create(
        c, &(struct nfs4_open){
               .client_id = 9, .owner = owner, .name = "new", .mode = 0640, .truncate = true});
}

static void put_open_confirm(struct nfs4_call *c)
{
    nfs4_put_open_confirm(c, &stateid, 4);
}

static void put_close(struct nfs4_call *c)
{
    nfs4_put_close(c, &stateid, 5);
}

static void put_close_current(struct nfs4_call *c)
{
    nfs4_put_close(c, &nfs4_current_stateid, 0);
}

static void put_setclientid(struct nfs4_call *c)
{
    nfs4_put_setclientid(c, 77, owner);
}

static void put_setclientid_confirm(struct nfs4_call *c)
{
    nfs4_put_setclientid_confirm(c, 9, 78);
}

static void put_renew(struct nfs4_call *c)
{
    nfs4_put_renew(c, 9);
}

static void put_exchange_id(struct nfs4_call *c)
{
    nfs4_put_exchange_id(c, 77, owner);
}

static void put_create_session(struct nfs4_call *c)
{
    nfs4_put_create_session(c, 9, 2, &(struct nfs4_channel){1001, 1002, 1003, 16, 32});
}

static void put_sequence(struct nfs4_call *c)
{
    nfs4_put_sequence(c, session, 5, 2, 31, true);
}

static void put_destroy_session(struct nfs4_call *c)
{
    nfs4_put_destroy_session(c, session);
}

static void put_destroy_clientid(struct nfs4_call *c)
{
    nfs4_put_destroy_clientid(c, 9);
}

static const struct {
    enum nfs4_op op;
    uint32_t minorversion;
    void (*put)(struct nfs4_call *call);
    const char *args;
} calls[] = {
    {NFS4_OP_PUTROOTFH, 0, nfs4_put_root, ""},
    {NFS4_OP_PUTFH, 0, put_handle, "'handle"},
    {NFS4_OP_GETFH, 0, nfs4_put_getfh, ""},
    {NFS4_OP_LOOKUP, 0, put_lookup, "'name"},
    {NFS4_OP_ACCESS, 0, put_access, "=63"},
    {NFS4_OP_READ, 0, put_read, "anonymous #0x10000000000 =65536"},
    {NFS4_OP_COMMIT, 0, put_commit, "#4096 =100"},
    {NFS4_OP_GETATTR, 0, put_getattr, "=2 =0x10 =2"},
    {NFS4_OP_SETATTR, 0, put_setattr, "stateid =2 =0 =2 =4 =0644"},
    {NFS4_OP_READDIR, 0, put_readdir, "#11 #12 =1000 =2000 =2 =0x100000 =0"},
    {NFS4_OP_REMOVE, 0, put_remove, "'gone"},
    {NFS4_OP_CREATE, 0, put_directory, "=2 'folder =2 =0 =2 =4 =0755"},
    /* seqid, WRITE, deny none, owner; create, UNCHECKED, mode; CLAIM_NULL */
    {NFS4_OP_OPEN, 0, put_open, "=3 =2 =0 #9 'owner =1 =0 =2 =0 =2 =4 =0640 =0 'new"},
    {NFS4_OP_OPEN, 1, put_open_truncating,
     "=0 =0x402 =0 #9 'owner =1 =0 =2 =0x10 =2 =12 #0 =0640 =0 'new"},
    {NFS4_OP_OPEN_CONFIRM, 0, put_open_confirm, "stateid =4"},
    {NFS4_OP_CLOSE, 0, put_close, "=5 stateid"},
    {NFS4_OP_CLOSE, 1, put_close_current, "=0 current"},
    {NFS4_OP_SETCLIENTID, 0, put_setclientid, "#77 'owner =0 'tcp '0.0.0.0.0.0 =0"},
    {NFS4_OP_SETCLIENTID_CONFIRM, 0, put_setclientid_confirm, "#9 #78"},
    {NFS4_OP_RENEW, 0, put_renew, "#9"},
    {NFS4_OP_EXCHANGE_ID, 1, put_exchange_id, "#77 'owner =0x10000 =0 =0"},
    {NFS4_OP_CREATE_SESSION, 1, put_create_session,
     "#9 =2 =0 =0 =1001 =1002 =1003 =16 =32 =0 =0 =4096 =4096 =0 =2 =1 =0 =0 =1 =0"},
    {NFS4_OP_SEQUENCE, 1, put_sequence, "session =5 =2 =31 =1"},
    {NFS4_OP_RECLAIM_COMPLETE, 1, nfs4_put_reclaim_complete, "=0"},
    {NFS4_OP_DESTROY_SESSION, 1, put_destroy_session, "session"},
    {NFS4_OP_DESTROY_CLIENTID, 1, put_destroy_clientid, "#9"},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* Where the arguments of COMPOUND begin: mark, then a header of six words and two empty
 * authenticators. */
#define ARGS_AT (4 + 40)

static void libnfs_agrees(const uint8_t *args, size_t len, enum nfs4_op op)
{
    COMPOUND4args decoded = {0};
    struct nfs_oracle o;
    nfs_argop4 first = {0};

    if (!nfs_oracle_decode(&o, "zdr_COMPOUND4args", args, len, &decoded))
        fail_msg("libnfs does not take our %s", nfs4_op_name(op));
    assert_int_equal(decoded.argarray.argarray_len, 1);
    assert_true(nfs_oracle_element(&first, decoded.argarray.argarray_val, sizeof(first)));
    assert_int_equal(first.argop, op);
    nfs_oracle_release(&o);
}

static void every_operation_is_written_as_the_rfcs_lay_it_out(void **state)
{
    (void)state;

    for (size_t i = 0; i < CALLS; i++) {
        uint8_t buf[NFS4_CALL_MAX_BYTES];
        struct nfs4_call call;
        struct nfs4_compound walked;
        struct build b = {.len = 0};

        nfs4_call_begin(&call, buf, sizeof(buf), NULL, 42, calls[i].minorversion);
        calls[i].put(&call);
        size_t bytes = nfs4_call_end(&call);

        build_word(&b, 0); /* tag */
        build_word(&b, calls[i].minorversion);
        build_word(&b, 1);
        build_word(&b, calls[i].op);
        build_tokens(&b, calls[i].args);
        if (bytes != ARGS_AT + b.len || memcmp(buf + ARGS_AT, b.bytes, b.len) != 0)
            fail_msg("%s is not %s", nfs4_op_name(calls[i].op), calls[i].args);
        assert_int_equal(test_word_at(buf), 0x80000000u | (bytes - 4));
        assert_int_equal(nfs4_parse_compound(buf + ARGS_AT, b.len, &walked), RPC_PARSE_OK);
        assert_false(walked.partial);
        assert_int_equal(walked.ops[0], calls[i].op);
        if (calls[i].minorversion == 0)
            libnfs_agrees(buf + ARGS_AT, b.len, calls[i].op);
    }
}

static void operations_add_up(void **state)
{
    (void)state;
    uint8_t buf[NFS4_CALL_MAX_BYTES];
    struct nfs4_call call;
    struct nfs4_compound walked;

    nfs4_call_begin(&call, buf, sizeof(buf), NULL, 1, 1);
    put_sequence(&call);
    nfs4_put_root(&call);
    assert_int_equal(nfs4_put_lookups(&call, "//export/a/b/"), 3);
    assert_int_equal(nfs4_put_lookups(&call, ""), 0);
    nfs4_put_getfh(&call);
    size_t bytes = nfs4_call_end(&call);

    assert_int_equal(nfs4_parse_compound(buf + ARGS_AT, bytes - ARGS_AT, &walked), RPC_PARSE_OK);
    assert_int_equal(walked.ops_seen, 6);
    assert_true(walked.leading_sequence);
}

static void write_leaves_its_data_to_the_caller(void **state)
{
    (void)state;
    uint8_t buf[NFS4_CALL_MAX_BYTES + 8];
    struct nfs4_call call;
    struct build b = {.len = 0};

    nfs4_call_begin(&call, buf, NFS4_CALL_MAX_BYTES, NULL, 1, 0);
    put_handle(&call);
    nfs4_put_write(&call, &nfs4_anonymous_stateid, 4096, 5, 2);
    size_t bytes = nfs4_call_end(&call);

    build_tokens(&b, "=0 =0 =2 =22 'handle =38 anonymous #4096 =2 =5");
    assert_int_equal(bytes, ARGS_AT + b.len);
    assert_memory_equal(buf + ARGS_AT, b.bytes, b.len);
    assert_int_equal(test_word_at(buf), 0x80000000u | (bytes - 4 + 8)); /* 5 bytes and padding */
    static const uint8_t hello[] = {'h', 'e', 'l', 'l', 'o', 0, 0, 0};

    memcpy(buf + bytes, hello, sizeof(hello));
    COMPOUND4args decoded = {0};
    struct nfs_oracle o;

    assert_true(nfs_oracle_decode(&o, "zdr_COMPOUND4args", buf + ARGS_AT, b.len + 8, &decoded));
    nfs_oracle_release(&o);
    put_handle(&call); /* nothing can come behind it */
    assert_int_equal(nfs4_call_end(&call), 0);
}

static void what_does_not_fit_is_no_call(void **state)
{
    (void)state;
    uint8_t buf[NFS4_CALL_MAX_BYTES];
    char name[NFS4_NAME_MAX_BYTES + 2];
    uint8_t handle[NFS4_HANDLE_MAX_BYTES + 1] = {0};
    struct nfs4_call call;

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    nfs4_call_begin(&call, buf, sizeof(buf), NULL, 1, 0);
    nfs4_put_lookup(&call, name);
    assert_int_equal(nfs4_call_end(&call), 0);
    nfs4_call_begin(&call, buf, sizeof(buf), NULL, 1, 0);
    nfs4_put_lookups(&call, name);
    assert_int_equal(nfs4_call_end(&call), 0);
    nfs4_call_begin(&call, buf, sizeof(buf), NULL, 1, 0);
    nfs4_put_lookup(&call, name + 1);
    assert_int_not_equal(nfs4_call_end(&call), 0);
    nfs4_call_begin(&call, buf, sizeof(buf), NULL, 1, 0);
    nfs4_put_handle(&call, (struct rpc_slice){handle, sizeof(handle)});
    assert_int_equal(nfs4_call_end(&call), 0);
    for (size_t size = 0; size < ARGS_AT + 16; size++) {
        uint8_t *exact = test_exact_copy(buf, size);

        nfs4_call_begin(&call, exact, size, NULL, 1, 0);
        nfs4_put_getfh(&call);
        assert_int_equal(nfs4_call_end(&call), 0);
        free(exact);
    }
}

/* ---------------------------------------------------------------- replies */

/* Replies of one operation, OK unless `status` says otherwise. */
static const struct reply {
    enum nfs4_op op;
    uint32_t minorversion;
    uint32_t status;
    const char *results;
} replies[] = {
    {NFS4_OP_PUTFH, 0, 0, ""},
    {NFS4_OP_PUTROOTFH, 0, 0, ""},
    {NFS4_OP_LOOKUP, 0, 0, ""},
    {NFS4_OP_LOOKUP, 0, NFS4_STATUS_NOENT, ""},
    {NFS4_OP_GETFH, 0, 0, "'handle"},
    {NFS4_OP_ACCESS, 0, 0, "=63 =31"},
    {NFS4_OP_READ, 0, 0, "=1 'data!"},
    {NFS4_OP_READ, 0, NFS4_STATUS_GRACE, ""},
    {NFS4_OP_WRITE, 0, 0, "=5 =2 #99"},
    {NFS4_OP_COMMIT, 0, 0, "#99"},
    /* size; mode, links and a time */
    {NFS4_OP_GETATTR, 0, 0, "=2 =0x10 =0x20000a =28 #4096 =0644 =2 #1700000000 =5"},
    {NFS4_OP_GETATTR, 0, 0, "=0 =0"},
    {NFS4_OP_SETATTR, 0, 0, "=2 =0 =2"},
    {NFS4_OP_SETATTR, 0, NFS4_STATUS_ACCESS, "=0"},
    {NFS4_OP_READDIR, 0, 0,
     "#12 =1 #3 'one =1 =0x100000 =8 #1001 =1 #4 'three =1 =0x100000 =8 #1003 =0 =1"},
    {NFS4_OP_READDIR, 0, 0, "#12 =0 =1"},
    {NFS4_OP_REMOVE, 0, 0, "=1 #5 #6"},
    {NFS4_OP_CREATE, 0, 0, "=0 #5 #6 =2 =0 =2"},
    {NFS4_OP_OPEN, 0, 0, "stateid =1 #5 #6 =2 =2 =0 =2 =0"},
    {NFS4_OP_OPEN, 0, 0, "stateid =1 #5 #6 =4 =0 =1 stateid =0 =0 =0 =7 'EVERYONE@"},
    {NFS4_OP_OPEN, 0, 0, "stateid =1 #5 #6 =4 =0 =2 stateid =0 =1 #4096 =0 =0 =7 'EVERYONE@"},
    {NFS4_OP_OPEN, 0, 0, "stateid =1 #5 #6 =4 =0 =2 stateid =0 =2 =8 =512 =0 =0 =7 'EVERYONE@"},
    {NFS4_OP_OPEN, 1, 0, "stateid =1 #5 #6 =4 =0 =3 =0"},    /* no delegation: not wanted */
    {NFS4_OP_OPEN, 1, 0, "stateid =1 #5 #6 =4 =0 =3 =1 =1"}, /* contention */
    {NFS4_OP_OPEN, 1, 0, "stateid =1 #5 #6 =4 =0 =3 =2 =0"}, /* resources */
    {NFS4_OP_OPEN_CONFIRM, 0, 0, "stateid"},
    {NFS4_OP_CLOSE, 0, 0, "stateid"},
    {NFS4_OP_SETCLIENTID, 0, 0, "#9 #78"},
    {NFS4_OP_SETCLIENTID, 0, NFS4_STATUS_CLID_INUSE, "'tcp '1.2.3.4.5.6"},
    {NFS4_OP_SETCLIENTID_CONFIRM, 0, 0, ""},
    {NFS4_OP_RENEW, 0, 0, ""},
    {NFS4_OP_EXCHANGE_ID, 1, 0, "#9 =3 =0x80010000 =0 #1 'major 'scope =0"},
    {NFS4_OP_EXCHANGE_ID, 1, 0, "#9 =3 =0x10000 =0 #1 'major 'scope =1 'domain 'name #7 =8"},
    {NFS4_OP_CREATE_SESSION, 1, 0,
     "session =2 =0 =0 =1001 =1002 =1003 =16 =32 =0 =0 =4096 =4096 =0 =2 =1 =1 =7"},
    {NFS4_OP_SEQUENCE, 1, 0, "session =5 =2 =31 =30 =4"},
    {NFS4_OP_SEQUENCE, 1, NFS4_STATUS_DELAY, ""},
    {NFS4_OP_RECLAIM_COMPLETE, 1, 0, ""},
    {NFS4_OP_DESTROY_SESSION, 1, 0, ""},
    {NFS4_OP_DESTROY_CLIENTID, 1, 0, ""},
};

#define REPLIES (sizeof(replies) / sizeof(replies[0]))

static void build_reply(struct build *b, const struct reply *reply)
{
    b->len = 0;
    build_word(b, reply->status);
    build_string(b, "");
    build_word(b, 1);
    build_word(b, reply->op);
    build_word(b, reply->status);
    build_tokens(b, reply->results);
}

/* One operation's reply, all of it: OK when every step is. */
static enum rpc_parse read_one(const uint8_t *bytes, size_t len, enum nfs4_op op,
                               struct nfs4_result *out)
{
    struct nfs4_results results;
    enum rpc_parse parse = nfs4_results_begin(&results, bytes, len, len);

    if (parse == RPC_PARSE_OK)
        parse = nfs4_results_next(&results, op, out);
    return parse == RPC_PARSE_OK ? nfs4_results_end(&results) : parse;
}

static void every_reply_is_read_exactly(void **state)
{
    (void)state;

    for (size_t i = 0; i < REPLIES; i++) {
        const struct reply *reply = &replies[i];
        struct nfs4_result result = {0};
        struct build b;

        build_reply(&b, reply);
        if (read_one(b.bytes, b.len, reply->op, &result) != RPC_PARSE_OK)
            fail_msg("%s: %s", nfs4_op_name(reply->op), reply->results);
        assert_int_equal(result.status, reply->status);
        for (size_t len = 0; len < b.len; len++) {
            uint8_t *copy = test_exact_copy(b.bytes, len);

            if (read_one(copy, len, reply->op, &result) != RPC_PARSE_NEED_MORE)
                fail_msg("%s: %s, cut to %zu", nfs4_op_name(reply->op), reply->results, len);
            free(copy);
        }
        build_word(&b, 0);
        assert_int_equal(read_one(b.bytes, b.len, reply->op, &result), RPC_PARSE_GARBAGE);
        b.len -= 4;
        assert_int_equal(read_one(b.bytes, b.len,
                                  reply->op == NFS4_OP_GETFH ? NFS4_OP_PUTFH : NFS4_OP_GETFH,
                                  &result),
                         RPC_PARSE_GARBAGE);
    }
}

static void libnfs_reads_the_same_replies(void **state)
{
    (void)state;

    for (size_t i = 0; i < REPLIES; i++) {
        COMPOUND4res decoded = {0};
        struct nfs_oracle o;
        struct build b;

        if (replies[i].minorversion > 0)
            continue;
        build_reply(&b, &replies[i]);
        if (!nfs_oracle_decode(&o, "zdr_COMPOUND4res", b.bytes, b.len, &decoded))
            fail_msg("libnfs does not take %s: %s", nfs4_op_name(replies[i].op),
                     replies[i].results);
        nfs_oracle_release(&o);
    }
}

/* The result of the nth reply to `op` above. */
static void result_of(enum nfs4_op op, unsigned nth, struct build *b, struct nfs4_result *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < REPLIES; i++) {
        if (replies[i].op != op || nth-- > 0)
            continue;
        build_reply(b, &replies[i]);
        assert_int_equal(read_one(b->bytes, b->len, op, out), RPC_PARSE_OK);
        return;
    }
    fail_msg("no such reply");
}

static void fields_of_files(void **state)
{
    (void)state;
    struct nfs4_result r;
    struct build b;

    result_of(NFS4_OP_GETFH, 0, &b, &r);
    assert_int_equal(r.handle.len, 6);
    assert_memory_equal(r.handle.data, "handle", 6);
    result_of(NFS4_OP_ACCESS, 0, &b, &r);
    assert_int_equal(r.supported, 63);
    assert_int_equal(r.access, 31);
    result_of(NFS4_OP_READ, 0, &b, &r);
    assert_true(r.eof);
    assert_int_equal(r.data_bytes, 5);
    assert_int_equal(r.data_there, 5);
    assert_memory_equal(r.data, "data!", 5);
    result_of(NFS4_OP_WRITE, 0, &b, &r);
    assert_int_equal(r.count, 5);
    assert_int_equal(r.committed, 2);
    assert_int_equal(r.verifier, 99);
    result_of(NFS4_OP_COMMIT, 0, &b, &r);
    assert_int_equal(r.verifier, 99);
    result_of(NFS4_OP_GETATTR, 0, &b, &r);
    assert_true(r.attributes.present ==
                (NFS4_ATTRIBUTE(NFS4_ATTR_SIZE) | NFS4_ATTRIBUTE(NFS4_ATTR_MODE) |
                 NFS4_ATTRIBUTE(NFS4_ATTR_NUMLINKS) | NFS4_ATTRIBUTE(NFS4_ATTR_TIME_MODIFY)));
    assert_int_equal(r.attributes.values[NFS4_ATTR_SIZE], 4096);
    assert_int_equal(r.attributes.values[NFS4_ATTR_MODE], 0644);
    assert_int_equal(r.attributes.values[NFS4_ATTR_NUMLINKS], 2);
    assert_int_equal(r.attributes.values[NFS4_ATTR_TIME_MODIFY], 1700000000);
}

static void entries_of_a_directory(void **state)
{
    (void)state;
    struct nfs4_attributes attributes;
    struct nfs4_result r;
    struct rpc_slice name;
    struct build b;

    result_of(NFS4_OP_READDIR, 0, &b, &r);
    assert_true(r.eof);
    assert_int_equal(r.count, 2);
    assert_int_equal(r.cookie, 4);
    assert_int_equal(r.verifier, 12);
    assert_true(nfs4_entry_next(&r, &name, &attributes));
    assert_memory_equal(name.data, "one", 3);
    assert_int_equal(attributes.values[NFS4_ATTR_FILEID], 1001);
    assert_true(nfs4_entry_next(&r, &name, &attributes));
    assert_int_equal(name.len, 5);
    assert_int_equal(attributes.values[NFS4_ATTR_FILEID], 1003);
    assert_false(nfs4_entry_next(&r, &name, &attributes));
    result_of(NFS4_OP_READDIR, 1, &b, &r);
    assert_int_equal(r.count, 0);
    assert_false(nfs4_entry_next(&r, &name, &attributes));
}

static void fields_of_clients(void **state)
{
    (void)state;
    struct nfs4_result r;
    struct build b;

    result_of(NFS4_OP_OPEN, 0, &b, &r);
    assert_int_equal(r.stateid.seqid, stateid.seqid);
    assert_memory_equal(r.stateid.other, stateid.other, sizeof(stateid.other));
    assert_true(r.confirm);
    assert_false(r.delegated);
    result_of(NFS4_OP_OPEN, 1, &b, &r);
    assert_false(r.confirm);
    assert_true(r.delegated);
    result_of(NFS4_OP_SETCLIENTID, 0, &b, &r);
    assert_int_equal(r.client_id, 9);
    assert_int_equal(r.verifier, 78);
    result_of(NFS4_OP_EXCHANGE_ID, 0, &b, &r);
    assert_int_equal(r.client_id, 9);
    assert_int_equal(r.sequence, 3);
    assert_true(r.confirmed);
    result_of(NFS4_OP_EXCHANGE_ID, 1, &b, &r);
    assert_false(r.confirmed);
    result_of(NFS4_OP_CREATE_SESSION, 0, &b, &r);
    assert_memory_equal(r.session, session, sizeof(session));
    assert_int_equal(r.sequence, 2);
    assert_int_equal(r.fore.max_request_bytes, 1001);
    assert_int_equal(r.fore.max_response_bytes, 1002);
    assert_int_equal(r.fore.max_cached_bytes, 1003);
    assert_int_equal(r.fore.max_operations, 16);
    assert_int_equal(r.fore.max_requests, 32);
    result_of(NFS4_OP_SEQUENCE, 0, &b, &r);
    assert_memory_equal(r.session, session, sizeof(session));
    assert_int_equal(r.sequence, 5);
    assert_int_equal(r.slot, 2);
    assert_int_equal(r.highest_slot, 30);
    assert_int_equal(r.flags, 4);
}

static void undefined_arms_and_lengths_are_garbage(void **state)
{
    (void)state;
    static const struct reply bad[] = {
        {NFS4_OP_READ, 0, 0, "=2 'data"},                /* a bool of 2 */
        {NFS4_OP_WRITE, 0, 0, "=5 =3 #99"},              /* stable_how4 ends with 2 */
        {NFS4_OP_GETATTR, 0, 0, "=1 =0x10 =12 #1 =0"},   /* more than the bitmap says */
        {NFS4_OP_GETATTR, 0, 0, "=1 =0x10 =4 =0"},       /* less */
        {NFS4_OP_GETATTR, 0, 0, "=1 =0x1 =4 =0"},        /* one that can't be asked for */
        {NFS4_OP_GETATTR, 0, 0, "=3 =0 =0 =1 =4 =0"},    /* likewise */
        {NFS4_OP_GETATTR, 0, 0, "=9 =0 =0 =0 =0 =0 =0"}, /* a bitmap without end */
        {NFS4_OP_REMOVE, 0, 0, "=2 #5 #6"},
        {NFS4_OP_READDIR, 0, 0, "#12 =2 =1"},
        {NFS4_OP_OPEN, 0, 0, "stateid =1 #5 #6 =2 =0 =4"},
        {NFS4_OP_OPEN, 0, 0, "stateid =1 #5 #6 =2 =0 =2 stateid =0 =3 #1 =0 =0 =0 'x"},
        {NFS4_OP_EXCHANGE_ID, 1, 0, "#9 =3 =0 =1 =0 =0"}, /* protection nobody asked for */
        {NFS4_OP_EXCHANGE_ID, 1, 0, "#9 =3 =0 =0 #1 'major 'scope =2"},
        {NFS4_OP_CREATE_SESSION, 1, 0, "session =2 =0 =0 =1 =1 =1 =1 =1 =2 =0 =0"},
    };
    struct nfs4_result result;
    struct build b;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        build_reply(&b, &bad[i]);
        if (read_one(b.bytes, b.len, bad[i].op, &result) != RPC_PARSE_GARBAGE)
            fail_msg("%s: %s", nfs4_op_name(bad[i].op), bad[i].results);
    }
    b.len = 0;
    build_tokens(&b, "=0 '_ =1 =10 =0 =129"); /* a handle over 128 bytes */
    assert_int_equal(read_one(b.bytes, b.len, NFS4_OP_GETFH, &result), RPC_PARSE_GARBAGE);
    b.len = 0;
    build_tokens(&b, "=0 '_ =4097"); /* NFS4_OPS_MAX */
    assert_int_equal(read_one(b.bytes, b.len, NFS4_OP_GETFH, &result), RPC_PARSE_GARBAGE);
}

/* Where a compound may end, and with what status. */
static void a_compound_ends_with_the_first_failure(void **state)
{
    (void)state;
    struct nfs4_results results;
    struct nfs4_result result;
    struct build b = {.len = 0};

    build_tokens(&b, "=2 't =2 =22 =0 =15 =2");
    assert_int_equal(nfs4_results_begin(&results, b.bytes, b.len, b.len), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_PUTFH, &result), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_end(&results), RPC_PARSE_GARBAGE); /* one is left */
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_LOOKUP, &result), RPC_PARSE_OK);
    assert_int_equal(result.status, NFS4_STATUS_NOENT);
    assert_int_equal(nfs4_results_end(&results), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_GETFH, &result), RPC_PARSE_NOT_EXPECTED);

    b.len = 0;
    build_tokens(&b, "=2 't =2 =22 =2 =15 =0"); /* goes on behind a failure */
    assert_int_equal(nfs4_results_begin(&results, b.bytes, b.len, b.len), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_PUTFH, &result), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_LOOKUP, &result), RPC_PARSE_GARBAGE);

    b.len = 0;
    build_tokens(&b, "=0 't =1 =22 =70"); /* its status is another one */
    assert_int_equal(nfs4_results_begin(&results, b.bytes, b.len, b.len), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_PUTFH, &result), RPC_PARSE_GARBAGE);

    b.len = 0;
    build_tokens(&b, "=2 't =1 =22 =0"); /* likewise */
    assert_int_equal(nfs4_results_begin(&results, b.bytes, b.len, b.len), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_PUTFH, &result), RPC_PARSE_OK);
    assert_int_equal(nfs4_results_end(&results), RPC_PARSE_NOT_EXPECTED);

    b.len = 0;
    build_tokens(&b, "=10021 't =0"); /* refused as a whole: the minor version */
    assert_int_equal(nfs4_results_begin(&results, b.bytes, b.len, b.len), RPC_PARSE_OK);
    assert_int_equal(results.status, NFS4_STATUS_MINOR_VERS_MISMATCH);
    assert_int_equal(nfs4_results_next(&results, NFS4_OP_PUTFH, &result), RPC_PARSE_NOT_EXPECTED);
    assert_int_equal(nfs4_results_end(&results), RPC_PARSE_NOT_EXPECTED);

    b.len = 0;
    build_tokens(&b, "=10044 't =1 =10044 =10044"); /* an operation it does not know */
    assert_int_equal(read_one(b.bytes, b.len, NFS4_OP_SEQUENCE, &result), RPC_PARSE_OK);
    assert_int_equal(result.status, NFS4_STATUS_OP_ILLEGAL);
}

/* READ's data may go on behind the buffer: it has to end where the reply does. */
static void read_data_may_go_on_behind_the_buffer(void **state)
{
    (void)state;
    struct build b = {.len = 0};

    build_tokens(&b, "=0 '_ =2 =22 =0 =25 =0 =0");
    size_t before = b.len;

    build_opaque(&b, "ninebytes", 9);
    for (size_t available = before + 4; available < b.len; available++) {
        uint8_t *copy = test_exact_copy(b.bytes, available);
        struct nfs4_results results;
        struct nfs4_result r;

        for (int off = -4; off <= 4; off += 4) {
            assert_int_equal(nfs4_results_begin(&results, copy, available, b.len + (size_t)off),
                             RPC_PARSE_OK);
            assert_int_equal(nfs4_results_next(&results, NFS4_OP_PUTFH, &r), RPC_PARSE_OK);
            enum rpc_parse parse = nfs4_results_next(&results, NFS4_OP_READ, &r);

            if (off == 0) {
                assert_int_equal(parse, RPC_PARSE_OK);
                assert_int_equal(nfs4_results_end(&results), RPC_PARSE_OK);
                assert_int_equal(r.data_bytes, 9);
                size_t there = available - before - 4;

                assert_int_equal(r.data_there, there < 9 ? there : 9);
            } else if (available <= b.len + (size_t)off) {
                assert_int_equal(parse, off < 0 ? RPC_PARSE_NEED_MORE : RPC_PARSE_GARBAGE);
            }
        }
        /* With another result behind the data there is no telling where it begins. */
        rpc_store_u32(copy + 12, 3);
        assert_int_equal(nfs4_results_begin(&results, copy, available, b.len), RPC_PARSE_OK);
        assert_int_equal(nfs4_results_next(&results, NFS4_OP_PUTFH, &r), RPC_PARSE_OK);
        assert_int_equal(nfs4_results_next(&results, NFS4_OP_READ, &r), RPC_PARSE_GARBAGE);
        free(copy);
    }
}

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(nfs4_status_name(NFS4_STATUS_GRACE), "GRACE");
    assert_string_equal(nfs4_status_name(10052), "BADSESSION");
    assert_null(nfs4_status_name(99999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_written_as_the_rfcs_lay_it_out),
        cmocka_unit_test(operations_add_up),
        cmocka_unit_test(write_leaves_its_data_to_the_caller),
        cmocka_unit_test(what_does_not_fit_is_no_call),
        cmocka_unit_test(every_reply_is_read_exactly),
        cmocka_unit_test(libnfs_reads_the_same_replies),
        cmocka_unit_test(fields_of_files),
        cmocka_unit_test(entries_of_a_directory),
        cmocka_unit_test(fields_of_clients),
        cmocka_unit_test(undefined_arms_and_lengths_are_garbage),
        cmocka_unit_test(a_compound_ends_with_the_first_failure),
        cmocka_unit_test(read_data_may_go_on_behind_the_buffer),
        cmocka_unit_test(statuses_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
