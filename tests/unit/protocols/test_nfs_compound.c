/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv4 COMPOUND: every operation 3 to 75 in every arm of its unions is stepped over exactly, at
 * every truncation; what a compound amounts to; where DELAY may be said.
 *
 * The operations' encodings are written down here as words in the RFCs' terms; those of minor
 * version 0 are confirmed by libnfs's decoder. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "protocols/rpc/nfs4_compound.h"
#include "protocols/rpc/rpc_message.h"
#include "tests/unit/protocols/nfs_oracle.h"
#include "tests/unit/protocols/rpc_test.h"
#include <nfsc/libnfs-raw-nfs4.h>

static const struct encoding {
    uint32_t op;
    const char *args;
} encodings[] = {
    {NFS4_OP_ACCESS, "u32"},
    {NFS4_OP_CLOSE, "u32 stateid"},
    {NFS4_OP_COMMIT, "u64 u32"},
    {NFS4_OP_CREATE, "=5 str str fattr"},     /* NF4LNK */
    {NFS4_OP_CREATE, "=3 u32 u32 str fattr"}, /* NF4BLK */
    {NFS4_OP_CREATE, "=4 u32 u32 str fattr"}, /* NF4CHR */
    {NFS4_OP_CREATE, "=6 str fattr"},         /* NF4SOCK */
    {NFS4_OP_CREATE, "=7 str fattr"},         /* NF4FIFO */
    {NFS4_OP_CREATE, "=2 str nofattr"},       /* NF4DIR */
    {NFS4_OP_DELEGPURGE, "u64"},
    {NFS4_OP_DELEGRETURN, "stateid"},
    {NFS4_OP_GETATTR, "bitmap"},
    {NFS4_OP_GETATTR, "nobitmap"},
    {NFS4_OP_GETFH, ""},
    {NFS4_OP_LINK, "str"},
    {NFS4_OP_LOCK, "=1 =0 u64 u64 =1 u32 stateid u32 u64 str"}, /* a new lock owner */
    {NFS4_OP_LOCK, "=2 =1 u64 u64 =0 stateid u32"},             /* an existing one */
    {NFS4_OP_LOCKT, "=1 u64 u64 u64 str"},
    {NFS4_OP_LOCKU, "=1 u32 stateid u64 u64"},
    {NFS4_OP_LOOKUP, "str"},
    {NFS4_OP_LOOKUPP, ""},
    {NFS4_OP_NVERIFY, "fattr"},
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =0 str"},              /* no create, CLAIM_NULL */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =1 =0 fattr =0 str"},     /* unchecked */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =1 =1 fattr =0 str"},     /* guarded */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =1 =2 u64 =0 str"},       /* exclusive */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =1 =3 u64 fattr =0 str"}, /* exclusive, 4.1 */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =1 =1"},               /* CLAIM_PREVIOUS */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =2 stateid str"},      /* CLAIM_DELEGATE_CUR */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =3 str"},              /* CLAIM_DELEGATE_PREV */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =4"},                  /* CLAIM_FH */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =5 stateid"},          /* CLAIM_DELEG_CUR_FH */
    {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =6"},                  /* CLAIM_DELEG_PREV_FH */
    {NFS4_OP_OPENATTR, "=1"},
    {NFS4_OP_OPEN_CONFIRM, "stateid u32"},
    {NFS4_OP_OPEN_DOWNGRADE, "stateid u32 =1 =0"},
    {NFS4_OP_PUTFH, "str"},
    {NFS4_OP_PUTPUBFH, ""},
    {NFS4_OP_PUTROOTFH, ""},
    {NFS4_OP_READ, "stateid u64 u32"},
    {NFS4_OP_READDIR, "u64 u64 u32 u32 bitmap"},
    {NFS4_OP_READLINK, ""},
    {NFS4_OP_REMOVE, "str"},
    {NFS4_OP_RENAME, "str str"},
    {NFS4_OP_RENEW, "u64"},
    {NFS4_OP_RESTOREFH, ""},
    {NFS4_OP_SAVEFH, ""},
    {NFS4_OP_SECINFO, "str"},
    {NFS4_OP_SETATTR, "stateid fattr"},
    {NFS4_OP_SETCLIENTID, "u64 str u32 str str u32"},
    {NFS4_OP_SETCLIENTID_CONFIRM, "u64 u64"},
    {NFS4_OP_VERIFY, "fattr"},
    {NFS4_OP_WRITE, "stateid u64 =2 str"},
    {NFS4_OP_RELEASE_LOCKOWNER, "u64 str"},
    {NFS4_OP_BACKCHANNEL_CTL, "u32 =3 =0 =1 u32 str u32 u32 =2 u32 u32 =6 =1 str str"},
    {NFS4_OP_BIND_CONN_TO_SESSION, "id =3 =0"},
    {NFS4_OP_EXCHANGE_ID, "u64 str u32 =0 =0"}, /* SP4_NONE, no implementation id */
    {NFS4_OP_EXCHANGE_ID, "u64 str u32 =0 =1 str str time"},
    {NFS4_OP_EXCHANGE_ID, "u64 str u32 =1 bitmap bitmap =0"}, /* SP4_MACH_CRED */
    {NFS4_OP_EXCHANGE_ID,
     "u64 str u32 =2 bitmap nobitmap =2 str str =1 str u32 u32 =1 str str time"}, /* SP4_SSV */
    {NFS4_OP_CREATE_SESSION, "u64 u32 u32 u32 u32 u32 u32 u32 u32 =0 u32 u32 u32 u32 u32 u32 =0 "
                             "u32 =1 =0"},
    {NFS4_OP_CREATE_SESSION, "u64 u32 u32 u32 u32 u32 u32 u32 u32 =1 u32 u32 u32 u32 u32 u32 u32 "
                             "=1 u32 u32 =2 =0 =1 u32 str u32 u32 =0"},
    {NFS4_OP_DESTROY_SESSION, "id"},
    {NFS4_OP_FREE_STATEID, "stateid"},
    {NFS4_OP_GET_DIR_DELEGATION, "=0 bitmap time time bitmap nobitmap"},
    {NFS4_OP_GETDEVICEINFO, "id =1 u32 bitmap"},
    {NFS4_OP_GETDEVICELIST, "=1 u32 u64 u64"},
    {NFS4_OP_LAYOUTCOMMIT, "u64 u64 =0 stateid =1 u64 =1 time =1 str"},
    {NFS4_OP_LAYOUTCOMMIT, "u64 u64 =0 stateid =0 =0 =1 str"},
    {NFS4_OP_LAYOUTGET, "=0 =1 =2 u64 u64 u64 stateid u32"},
    {NFS4_OP_LAYOUTRETURN, "=0 =1 =2 =1 u64 u64 stateid str"}, /* LAYOUTRETURN4_FILE */
    {NFS4_OP_LAYOUTRETURN, "=0 =1 =2 =2"},
    {NFS4_OP_LAYOUTRETURN, "=0 =1 =2 =3"},
    {NFS4_OP_SECINFO_NO_NAME, "=0"},
    {NFS4_OP_SEQUENCE, "id u32 u32 u32 =1"},
    {NFS4_OP_SET_SSV, "str str"},
    {NFS4_OP_TEST_STATEID, "=3 stateid stateid stateid"},
    {NFS4_OP_TEST_STATEID, "=0"},
    {NFS4_OP_WANT_DELEGATION, "u32 =4"},    /* CLAIM_FH */
    {NFS4_OP_WANT_DELEGATION, "u32 =6"},    /* CLAIM_DELEG_PREV_FH */
    {NFS4_OP_WANT_DELEGATION, "u32 =1 =2"}, /* CLAIM_PREVIOUS */
    {NFS4_OP_DESTROY_CLIENTID, "u64"},
    {NFS4_OP_RECLAIM_COMPLETE, "=1"},
    {NFS4_OP_ALLOCATE, "stateid u64 u64"},
    {NFS4_OP_COPY, "stateid stateid u64 u64 u64 =1 =0 =0"},
    {NFS4_OP_COPY, "stateid stateid u64 u64 u64 =1 =0 =3 =1 str =2 str =3 str str"},
    {NFS4_OP_COPY_NOTIFY, "stateid =1 str"},
    {NFS4_OP_COPY_NOTIFY, "stateid =3 str str"},
    {NFS4_OP_DEALLOCATE, "stateid u64 u64"},
    {NFS4_OP_IO_ADVISE, "stateid u64 u64 bitmap"},
    {NFS4_OP_LAYOUTERROR, "u64 u64 stateid =2 id u32 u32 id u32 u32"},
    {NFS4_OP_LAYOUTSTATS, "u64 u64 stateid u64 u64 u64 u64 id =1 str"},
    {NFS4_OP_OFFLOAD_CANCEL, "stateid"},
    {NFS4_OP_OFFLOAD_STATUS, "stateid"},
    {NFS4_OP_READ_PLUS, "stateid u64 u32"},
    {NFS4_OP_SEEK, "stateid u64 =1"},
    {NFS4_OP_WRITE_SAME, "stateid =2 u64 u64 u64 u64 u32 u64 str"},
    {NFS4_OP_CLONE, "stateid stateid u64 u64 u64"},
    {NFS4_OP_GETXATTR, "str"},
    {NFS4_OP_SETXATTR, "=1 str str"},
    {NFS4_OP_LISTXATTRS, "u64 u32"},
    {NFS4_OP_REMOVEXATTR, "str"},
};
#define ENCODINGS (sizeof encodings / sizeof encodings[0])

#define COUNT_WORD 0x01020304u /* every "u32" */

static void build_token(struct build *b, const char *token)
{
    if (token[0] == '=') {
        build_word(b, (uint32_t)strtoul(token + 1, NULL, 10));
    } else if (!strcmp(token, "u32")) {
        build_word(b, COUNT_WORD);
    } else if (!strcmp(token, "u64")) {
        build_hyper(b, 0x1112131415161718u);
    } else if (!strcmp(token, "stateid") || !strcmp(token, "id")) {
        build_raw(b, "sixteen-bytes-id", 16);
    } else if (!strcmp(token, "time")) {
        build_hyper(b, 1700000000);
        build_word(b, 5);
    } else if (!strcmp(token, "str")) {
        build_opaque(b, "hello", 5);
    } else if (!strcmp(token, "bitmap")) {
        build_word(b, 2);
        build_hyper(b, 0x30);
    } else if (!strcmp(token, "nobitmap")) {
        build_word(b, 0);
    } else if (!strcmp(token, "fattr")) {
        build_word(b, 1);
        build_word(b, 0x10);
        build_opaque(b, "sizesize", 8);
    } else if (!strcmp(token, "nofattr")) {
        build_word(b, 0);
        build_word(b, 0);
    } else {
        fail_msg("unknown token %s", token);
    }
}

static void build_op(struct build *b, uint32_t op, const char *args)
{
    char copy[256];

    assert_true(strlen(args) < sizeof copy);
    memcpy(copy, args, strlen(args) + 1);
    build_word(b, op);
    for (char *save, *token = strtok_r(copy, " ", &save); token; token = strtok_r(NULL, " ", &save))
        build_token(b, token);
}

static void build_header(struct build *b, const char *tag, uint32_t minorversion, uint32_t ops)
{
    b->len = 0;
    build_string(b, tag);
    build_word(b, minorversion);
    build_word(b, ops);
}

/* PUTFH; the encoding; GETATTR as a sentinel that is only found when the step was exact. */
static void build_probe(struct build *b, const struct encoding *e)
{
    build_header(b, "tag", e->op < 40 ? 0 : e->op < 59 ? 1 : 2, 3);
    build_op(b, NFS4_OP_PUTFH, "str");
    build_op(b, e->op, e->args);
    build_op(b, NFS4_OP_GETATTR, "bitmap");
}

static void every_operation_is_stepped_over_exactly(void **state)
{
    (void)state;
    bool seen[NFS4_OP_END] = {false};

    for (size_t i = 0; i < ENCODINGS; i++) {
        struct build b;
        struct nfs4_compound c;
        const struct encoding *e = &encodings[i];
        build_probe(&b, e);
        seen[e->op] = true;
        if (nfs4_parse_compound(b.bytes, b.len, &c) != RPC_PARSE_OK || c.partial)
            fail_msg("%s %s", nfs4_op_name(e->op), e->args);
        assert_int_equal(c.ops_seen, 3);
        assert_int_equal(c.ops[1], e->op);
        assert_int_equal(c.ops[2], NFS4_OP_GETATTR);
    }
    for (uint32_t op = 3; op < NFS4_OP_END; op++) {
        assert_true(seen[op]);
        assert_non_null(nfs4_op_name(op));
    }
    assert_null(nfs4_op_name(0));
    assert_null(nfs4_op_name(NFS4_OP_END));
    assert_string_equal(nfs4_op_name(NFS4_OP_SEQUENCE), "SEQUENCE");
    assert_int_equal(NFS4_OP_SEQUENCE, 53);
    assert_int_equal(NFS4_OP_CLONE, 71);
    assert_int_equal(NFS4_OP_END, 76);
}

static void libnfs_agrees_on_minor_version_0(void **state)
{
    (void)state;

    for (size_t i = 0; i < ENCODINGS; i++) {
        struct build b;
        struct nfs_oracle o;
        COMPOUND4args args = {0};
        nfs_argop4 op;
        const struct encoding *e = &encodings[i];
        if (e->op >= 40 || e->op == NFS4_OP_SECINFO)
            continue; /* libnfs knows none of these */
        if (e->op == NFS4_OP_OPEN && (strstr(e->args, "=0 =4") || strstr(e->args, "=0 =5") ||
                                      strstr(e->args, "=0 =6") || strstr(e->args, "=1 =3")))
            continue; /* nor these arms of minor version 1 */
        build_probe(&b, e);
        if (!nfs_oracle_decode(&o, "zdr_COMPOUND4args", b.bytes, b.len, &args))
            fail_msg("libnfs doesn't take our %s %s", nfs4_op_name(e->op), e->args);
        assert_int_equal(args.argarray.argarray_len, 3);
        memcpy(&op, (const char *)args.argarray.argarray_val + sizeof op, sizeof op);
        assert_int_equal(op.argop, e->op);
        nfs_oracle_release(&o);
    }
}

/* Feeding exactly what is asked for gets there, and no prefix is taken for the whole. */
static void every_truncation_needs_more(void **state)
{
    (void)state;

    for (size_t i = 0; i < ENCODINGS; i++) {
        struct build b;
        struct nfs4_compound c;
        build_probe(&b, &encodings[i]);
        for (size_t len = 0; len < b.len; len++) {
            uint8_t *copy = test_exact_copy(b.bytes, len);
            assert_int_equal(nfs4_parse_compound(copy, len, &c), RPC_PARSE_NEED_MORE);
            assert_true(c.partial);
            assert_false(c.idempotent);
            assert_true(c.need_bytes > len && c.need_bytes <= b.len);
            free(copy);
        }
        size_t len = 0, feeds = 0;
        while (nfs4_parse_compound(b.bytes, len, &c) == RPC_PARSE_NEED_MORE) {
            len = (size_t)c.need_bytes;
            feeds++;
        }
        assert_int_equal(len, b.len);
        assert_true(feeds < 100);
    }
}

static enum rpc_parse parse_ops(struct nfs4_compound *c, struct build *b, uint32_t minorversion,
                                size_t count, const struct encoding *ops)
{
    build_header(b, "", minorversion, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        build_op(b, ops[i].op, ops[i].args);
    return nfs4_parse_compound(b->bytes, b->len, c);
}

#define PARSE(c, b, minorversion, ...)                                                             \
    parse_ops((c), (b), (minorversion),                                                            \
              sizeof((const struct encoding[]){__VA_ARGS__}) / sizeof(struct encoding),            \
              (const struct encoding[]){__VA_ARGS__})

static void an_unknown_operation_stops_the_walk(void **state)
{
    (void)state;
    static const uint32_t unknown[] = {0, 2, 76, 10044, 0xffffffff};

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        struct nfs4_compound c;
        struct build b;
        assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"},
                               {NFS4_OP_READ, "stateid u64 =4096"}, {unknown[i], "u64"},
                               {NFS4_OP_READ, "stateid u64 =4096"}),
                         RPC_PARSE_OK);
        assert_true(c.partial);
        assert_int_equal(c.stopped_op, unknown[i]);
        assert_int_equal(c.ops_claimed, 4);
        assert_int_equal(c.ops_seen, 2);
        assert_int_equal(c.read_bytes, 4096);
        assert_int_equal(c.class, NFS_CLASS_READ);
        assert_false(c.idempotent);
    }
}

static void undefined_arms_and_limits_are_garbage(void **state)
{
    (void)state;
    static const struct encoding bad[] = {
        {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =7"}, {NFS4_OP_OPEN, "u32 =1 =0 u64 str =1 =4"},
        {NFS4_OP_LOCK, "=1 =0 u64 u64 =2"},        {NFS4_OP_EXCHANGE_ID, "u64 str u32 =3"},
        {NFS4_OP_LAYOUTRETURN, "=0 =1 =2 =0"},     {NFS4_OP_LAYOUTRETURN, "=0 =1 =2 =4"},
        {NFS4_OP_COPY_NOTIFY, "stateid =0"},       {NFS4_OP_WANT_DELEGATION, "u32 =0"},
        {NFS4_OP_BACKCHANNEL_CTL, "u32 =1 =5"},
    };
    struct nfs4_compound c;
    struct build b;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        build_probe(&b, &bad[i]);
        assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_GARBAGE);
        assert_int_equal(c.ops_seen, 1);
        assert_int_equal(c.stopped_op, bad[i].op);
    }
    build_header(&b, "", 1, 1);
    build_word(&b, NFS4_OP_PUTFH);
    build_word(&b, 129);
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_GARBAGE);
    build_header(&b, "", 1, NFS4_OPS_MAX + 1);
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_GARBAGE);
    b.len = 0;
    build_word(&b, NFS4_TAG_MAX_BYTES + 1);
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_GARBAGE);
}

static void what_a_compound_amounts_to(void **state)
{
    (void)state;
    struct nfs4_compound c;
    struct build b;

    assert_int_equal(PARSE(&c, &b, 1, {NFS4_OP_SEQUENCE, "id u32 u32 u32 =1"},
                           {NFS4_OP_PUTFH, "str"}, {NFS4_OP_READ, "stateid u64 =65536"},
                           {NFS4_OP_GETATTR, "bitmap"}),
                     RPC_PARSE_OK);
    assert_int_equal(c.minorversion, 1);
    assert_int_equal(c.ops_claimed, 4);
    assert_int_equal(c.ops_seen, 4);
    assert_true(c.leading_sequence);
    assert_false(c.has_seqid);
    assert_true(c.idempotent);
    assert_int_equal(c.class, NFS_CLASS_READ);
    assert_int_equal(c.read_bytes, 65536);
    assert_int_equal(c.write_bytes, 0);
    assert_true(c.offset == 0x1112131415161718u);
    assert_int_equal(c.handle.len, 5);
    assert_true(c.handle_exact);

    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"}, {NFS4_OP_WRITE, "stateid u64 =2 str"},
                           {NFS4_OP_READ, "stateid u64 =10"}, {NFS4_OP_READ, "stateid u64 =20"}),
                     RPC_PARSE_OK);
    assert_int_equal(c.class, NFS_CLASS_WRITE); /* the first to move data */
    assert_int_equal(c.write_bytes, 5);
    assert_int_equal(c.read_bytes, 30);
    assert_false(c.leading_sequence);

    assert_int_equal(PARSE(&c, &b, 2, {NFS4_OP_SEQUENCE, "id u32 u32 u32 =1"},
                           {NFS4_OP_PUTFH, "str"}, {NFS4_OP_READDIR, "u64 u64 =512 =8192 bitmap"},
                           {NFS4_OP_LISTXATTRS, "u64 =100"}, {NFS4_OP_SETXATTR, "=0 str str"},
                           {NFS4_OP_WRITE_SAME, "stateid =2 u64 u64 u64 u64 u32 u64 str"}),
                     RPC_PARSE_OK);
    assert_int_equal(c.read_bytes, 8292);
    assert_int_equal(c.write_bytes, 10);
    assert_false(c.idempotent); /* SETXATTR */
    assert_int_equal(c.class, NFS_CLASS_WRITE);

    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"}, {NFS4_OP_COMMIT, "u64 u32"}),
                     RPC_PARSE_OK);
    assert_int_equal(c.class, NFS_CLASS_WRITE);
    assert_true(c.idempotent);
    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"}, {NFS4_OP_GETATTR, "bitmap"}),
                     RPC_PARSE_OK);
    assert_int_equal(c.class, NFS_CLASS_METADATA);
}

/* Which operations advance a sequence, and which can't be repeated. */
static void seqid_and_once(void **state)
{
    (void)state;
    static const uint8_t seqid[] = {4, 12, 14, 18, 20, 21};
    static const uint8_t once[] = {4,  6,  7,  8,  11, 12, 14, 18, 19, 20, 21, 28, 29,
                                   34, 35, 36, 39, 40, 41, 42, 43, 44, 45, 46, 49, 50,
                                   51, 54, 56, 57, 58, 60, 61, 64, 65, 66, 71, 73, 75};

    for (size_t i = 0; i < ENCODINGS; i++) {
        struct build b;
        struct nfs4_compound c;
        build_probe(&b, &encodings[i]);
        assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_OK);
        assert_int_equal(c.has_seqid, memchr(seqid, (int)encodings[i].op, sizeof seqid) != NULL);
        if (c.idempotent != (memchr(once, (int)encodings[i].op, sizeof once) == NULL))
            fail_msg("%s", nfs4_op_name(encodings[i].op));
    }
}

static void the_current_handle_is_followed(void **state)
{
    (void)state;
    struct nfs4_compound c;
    struct build b;
#define READ_IT {NFS4_OP_READ, "stateid u64 =1"}

    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"}, {NFS4_OP_LOOKUP, "str"}, READ_IT),
                     RPC_PARSE_OK);
    assert_int_equal(c.handle.len, 5);
    assert_false(c.handle_exact);
    assert_false(c.root);

    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTROOTFH, ""}, {NFS4_OP_LOOKUP, "str"}, READ_IT),
                     RPC_PARSE_OK);
    assert_null(c.handle.data);
    assert_true(c.root);
    assert_false(c.handle_exact);

    assert_int_equal(PARSE(&c, &b, 0, READ_IT), RPC_PARSE_OK);
    assert_null(c.handle.data);
    assert_false(c.root);

    /* restored after something else was looked up */
    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"}, {NFS4_OP_SAVEFH, ""},
                           {NFS4_OP_PUTROOTFH, ""}, {NFS4_OP_LOOKUP, "str"},
                           {NFS4_OP_RESTOREFH, ""}, READ_IT),
                     RPC_PARSE_OK);
    assert_int_equal(c.handle.len, 5);
    assert_true(c.handle_exact);
    assert_false(c.root);

    /* what comes after the first that moves data doesn't count */
    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"}, READ_IT, {NFS4_OP_PUTROOTFH, ""}),
                     RPC_PARSE_OK);
    assert_int_equal(c.handle.len, 5);
    assert_false(c.root);

    /* an OPEN by name moves to the file, one by handle stays */
    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"},
                           {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =0 str"}, READ_IT),
                     RPC_PARSE_OK);
    assert_false(c.handle_exact);
    assert_int_equal(PARSE(&c, &b, 1, {NFS4_OP_PUTFH, "str"},
                           {NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =4"}, READ_IT),
                     RPC_PARSE_OK);
    assert_true(c.handle_exact);
}

/* A 1 MiB WRITE of which only the first bytes are there: all but what follows it is known. */
static void a_streamed_write_is_known_from_its_prefix(void **state)
{
    (void)state;
    struct nfs4_compound c;
    struct build b;

    build_header(&b, "", 1, 4);
    build_op(&b, NFS4_OP_SEQUENCE, "id u32 u32 u32 =1");
    build_op(&b, NFS4_OP_PUTFH, "str");
    build_op(&b, NFS4_OP_WRITE, "stateid u64 =2 =1048576");
    size_t head = b.len;
    build_zeros(&b, 100);
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_NEED_MORE);
    assert_int_equal(c.need_bytes, head + 1048576);
    assert_int_equal(c.ops_seen, 3);
    assert_int_equal(c.ops[2], NFS4_OP_WRITE);
    assert_int_equal(c.class, NFS_CLASS_WRITE);
    assert_int_equal(c.write_bytes, 1048576);
    assert_int_equal(c.stopped_op, NFS4_OP_WRITE);
    assert_true(c.partial);
    assert_true(c.leading_sequence);
    assert_true(c.handle_exact);
}

static void many_operations_are_counted_but_not_kept(void **state)
{
    (void)state;
    struct nfs4_compound c;
    struct build b;

    build_header(&b, "", 0, 500);
    for (int i = 0; i < 500; i++)
        build_op(&b, NFS4_OP_GETFH, "");
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_OK);
    assert_int_equal(c.ops_seen, 500);
    assert_int_equal(c.ops[NFS4_OPS_KEPT - 1], NFS4_OP_GETFH);
}

/* --------------------------------------------------------------------------------------------
 * DELAY */

static size_t delay(const struct nfs4_compound *c, uint8_t *buf, size_t size)
{
    return nfs4_write_delay(buf, size, 4711, c);
}

/* The results of a delay reply. */
static const uint8_t *delay_results(const uint8_t *buf, size_t len, size_t *bytes)
{
    struct rpc_reply reply;

    assert_int_equal(test_word_at(buf), 0x80000000u | (len - 4));
    assert_int_equal(rpc_parse_reply(buf + 4, len - 4, &reply), RPC_PARSE_OK);
    assert_int_equal(reply.xid, 4711);
    assert_int_equal(reply.accept, RPC_ACCEPT_SUCCESS);
    *bytes = len - 4 - reply.body_offset;
    return buf + 4 + reply.body_offset;
}

static void v41_delays_in_its_sequence(void **state)
{
    (void)state;
    uint8_t buf[NFS4_DELAY_MAX_BYTES];
    struct nfs4_compound c;
    struct nfs4_reply reply;
    struct build b, want = {.len = 0};
    size_t len;

    build_header(&b, "a-tag", 1, 3);
    build_op(&b, NFS4_OP_SEQUENCE, "id u32 u32 u32 =1");
    build_op(&b, NFS4_OP_PUTFH, "str");
    build_op(&b, NFS4_OP_OPEN, "u32 =1 =0 u64 str =0 =4"); /* a seqid doesn't matter here */
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_OK);
    build_word(&want, 10008);
    build_string(&want, "a-tag");
    build_word(&want, 1);
    build_word(&want, 53);
    build_word(&want, 10008);
    const uint8_t *results = delay_results(buf, delay(&c, buf, sizeof buf), &len);
    assert_int_equal(len, want.len);
    assert_memory_equal(results, want.bytes, len);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = test_exact_copy(results, cut);
        assert_int_equal(nfs4_parse_reply(copy, cut, &reply), RPC_PARSE_NEED_MORE);
        free(copy);
    }
    assert_int_equal(nfs4_parse_reply(results, len, &reply), RPC_PARSE_OK);
    assert_int_equal(reply.status, NFS4_STATUS_DELAY);
    assert_int_equal(reply.ops, 1);
    assert_int_equal(reply.first_op, 53);
    assert_int_equal(reply.first_status, NFS4_STATUS_DELAY);

    /* also from a prefix, as soon as SEQUENCE was seen; never without it */
    assert_int_equal(nfs4_parse_compound(b.bytes, 60, &c), RPC_PARSE_NEED_MORE);
    assert_int_equal(c.ops_seen, 1);
    assert_true(delay(&c, buf, sizeof buf) > 0);
    assert_int_equal(nfs4_parse_compound(b.bytes, 30, &c), RPC_PARSE_NEED_MORE);
    assert_int_equal(delay(&c, buf, sizeof buf), 0);
    assert_int_equal(PARSE(&c, &b, 1, {NFS4_OP_EXCHANGE_ID, "u64 str u32 =0 =0"}), RPC_PARSE_OK);
    assert_int_equal(delay(&c, buf, sizeof buf), 0);
}

static void v40_delays_where_no_sequence_is_lost(void **state)
{
    (void)state;
    static const struct encoding first[] = {
        {NFS4_OP_PUTFH, "str"}, {NFS4_OP_PUTROOTFH, ""}, {NFS4_OP_PUTPUBFH, ""}};
    uint8_t buf[NFS4_DELAY_MAX_BYTES];
    struct nfs4_compound c;
    struct build b;

    for (size_t i = 0; i < 3; i++) {
        struct nfs_oracle o;
        COMPOUND4res res = {0};
        nfs_resop4 op;
        size_t len;
        assert_int_equal(parse_ops(&c, &b, 0, 1, &first[i]), RPC_PARSE_OK);
        const uint8_t *results = delay_results(buf, delay(&c, buf, sizeof buf), &len);
        assert_true(nfs_oracle_decode(&o, "zdr_COMPOUND4res", results, len, &res));
        assert_int_equal(res.status, NFS4ERR_DELAY);
        assert_int_equal(res.resarray.resarray_len, 1);
        memcpy(&op, res.resarray.resarray_val, sizeof op);
        assert_int_equal(op.resop, first[i].op);
        assert_int_equal(op.nfs_resop4_u.opputfh.status, NFS4ERR_DELAY);
        nfs_oracle_release(&o);
    }
}

static void v40_has_no_word_for_these(void **state)
{
    (void)state;
    static const uint8_t never[] = {4, 12, 14, 18, 20, 21, 30, 35, 36, 39};
    uint8_t buf[NFS4_DELAY_MAX_BYTES];
    struct nfs4_compound c;
    struct build b;

    for (size_t i = 0; i < ENCODINGS; i++) {
        const struct encoding *e = &encodings[i];
        if (e->op >= 40)
            break;
        build_probe(&b, e);
        assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_OK);
        bool safe = memchr(never, (int)e->op, sizeof never) == NULL;
        assert_int_equal(delay(&c, buf, sizeof buf) > 0, safe);
        /* a seqid operation might be in the part that isn't there */
        assert_int_equal(nfs4_parse_compound(b.bytes, b.len - 1, &c), RPC_PARSE_NEED_MORE);
        assert_int_equal(delay(&c, buf, sizeof buf), 0);
    }
    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_PUTFH, "str"}, {10044, ""}), RPC_PARSE_OK);
    assert_int_equal(delay(&c, buf, sizeof buf), 0);
    assert_int_equal(PARSE(&c, &b, 0, {NFS4_OP_GETATTR, "bitmap"}), RPC_PARSE_OK);
    assert_int_equal(delay(&c, buf, sizeof buf), 0);
    build_header(&b, "", 0, 0);
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_OK);
    assert_int_equal(delay(&c, buf, sizeof buf), 0);
}

static void the_longest_tag_is_echoed_in_bounds(void **state)
{
    (void)state;
    uint8_t buf[NFS4_DELAY_MAX_BYTES];
    char tag[NFS4_TAG_MAX_BYTES + 1];
    struct nfs4_compound c;
    struct build b;

    memset(tag, 't', sizeof tag);
    tag[NFS4_TAG_MAX_BYTES] = 0;
    build_header(&b, tag, 0, 1);
    build_op(&b, NFS4_OP_PUTROOTFH, "");
    assert_int_equal(nfs4_parse_compound(b.bytes, b.len, &c), RPC_PARSE_OK);
    size_t need = delay(&c, buf, sizeof buf);
    assert_true(need > NFS4_TAG_MAX_BYTES);
    for (size_t size = 0; size < need; size += 7) {
        uint8_t *small = malloc(size ? size : 1);
        assert_int_equal(delay(&c, small, size), 0);
        free(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_stepped_over_exactly),
        cmocka_unit_test(libnfs_agrees_on_minor_version_0),
        cmocka_unit_test(every_truncation_needs_more),
        cmocka_unit_test(an_unknown_operation_stops_the_walk),
        cmocka_unit_test(undefined_arms_and_limits_are_garbage),
        cmocka_unit_test(what_a_compound_amounts_to),
        cmocka_unit_test(seqid_and_once),
        cmocka_unit_test(the_current_handle_is_followed),
        cmocka_unit_test(a_streamed_write_is_known_from_its_prefix),
        cmocka_unit_test(many_operations_are_counted_but_not_kept),
        cmocka_unit_test(v41_delays_in_its_sequence),
        cmocka_unit_test(v40_delays_where_no_sequence_is_lost),
        cmocka_unit_test(v40_has_no_word_for_these),
        cmocka_unit_test(the_longest_tag_is_echoed_in_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
