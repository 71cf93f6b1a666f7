/* SPDX-License-Identifier: Apache-2.0 */
/* RPC headers: calls against libtirpc's decoder, replies of our own against its encoder, every
 * truncation, every RFC 5531 error. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "protocols/rpc/rpc_message.h"
#include "tests/unit/protocols/rpc_oracle.h"
#include "tests/unit/protocols/rpc_test.h"

/* An opaque_auth of `len` bytes of `fill`. */
static void build_auth(struct build *b, uint32_t flavour, uint32_t len, uint8_t fill)
{
    uint8_t body[1024];

    memset(body, fill, sizeof body);
    build_word(b, flavour);
    build_opaque(b, body, len);
}

static void build_call_start(struct build *b, uint32_t xid)
{
    build_word(b, xid);
    build_word(b, 0);
    build_word(b, 2);
    build_word(b, 100003);
    build_word(b, 3);
    build_word(b, 6);
}

static void build_auth_sys(struct build *b, uint32_t machine_bytes, uint32_t gids,
                           uint32_t said_gids)
{
    struct build body = {.len = 0};
    char machine[512];

    memset(machine, 'm', sizeof machine);
    build_word(&body, 12345);
    build_opaque(&body, machine, machine_bytes);
    build_word(&body, 1001);
    build_word(&body, 2002);
    build_word(&body, said_gids);
    for (uint32_t i = 0; i < gids; i++)
        build_word(&body, 100 + i);
    build_word(b, 1);
    build_opaque(b, body.bytes, body.len);
}

static void build_gss(struct build *b, uint32_t version, uint32_t proc, uint32_t service)
{
    struct build body = {.len = 0};

    build_word(&body, version);
    build_word(&body, proc);
    build_word(&body, 77);
    build_word(&body, service);
    build_opaque(&body, "context!", 8);
    build_word(b, 6);
    build_opaque(b, body.bytes, body.len);
}

/* Every form of call header, numbered; false past the last. */
static bool build_form(struct build *b, int form)
{
    b->len = 0;
    build_call_start(b, 0xabcd0000u + (uint32_t)form);
    switch (form) {
    case 0:
        build_auth(b, 0, 0, 0);
        build_auth(b, 0, 0, 0);
        return true;
    case 1:
        build_auth_sys(b, 9, 5, 5);
        build_auth(b, 0, 0, 0);
        return true;
    case 2:
        build_auth_sys(b, 255, 16, 16);
        build_auth(b, 0, 0, 0);
        return true;
    case 3:
        build_auth_sys(b, 0, 0, 0);
        build_auth(b, 2, 7, 9);
        return true;
    case 4:
        build_auth(b, 2, 12, 5); /* AUTH_SHORT */
        build_auth(b, 0, 0, 0);
        return true;
    case 5:
        build_auth(b, 7, 0, 0); /* AUTH_TLS */
        build_auth(b, 0, 0, 0);
        return true;
    case 6:
        build_gss(b, 1, 0, 1);
        build_auth(b, 6, 28, 1);
        return true;
    case 7:
        build_gss(b, 1, 0, 2);
        build_auth(b, 6, 400, 1);
        return true;
    case 8:
        build_auth(b, 400001, 400, 3); /* a flavour nobody knows, as long as it may be */
        build_auth(b, 300001, 399, 4);
        return true;
    default:
        return false;
    }
}

static enum rpc_parse parse_exact(const uint8_t *data, size_t len, struct rpc_call *call)
{
    uint8_t *copy = test_exact_copy(data, len);
    enum rpc_parse result = rpc_parse_call(copy, len, call);

    free(copy);
    return result;
}

static void every_form_is_read_as_libtirpc_reads_it(void **state)
{
    (void)state;
    struct build b;
    struct rpc_call call;

    for (int form = 0; build_form(&b, form); form++) {
        assert_int_equal(rpc_parse_call(b.bytes, b.len, &call), RPC_PARSE_OK);
        const char *difference = rpc_oracle_disagrees(b.bytes, b.len);
        if (difference)
            fail_msg("form %d: %s", form, difference);
        assert_int_equal(call.xid, 0xabcd0000u + (uint32_t)form);
        assert_int_equal(call.prog, 100003);
        assert_int_equal(call.vers, 3);
        assert_int_equal(call.proc, 6);
    }
}

static void every_truncation_needs_more(void **state)
{
    (void)state;
    struct build b;
    struct rpc_call call;

    for (int form = 0; build_form(&b, form); form++) {
        for (size_t len = 0; len < b.len; len++) {
            assert_int_equal(parse_exact(b.bytes, len, &call), RPC_PARSE_NEED_MORE);
            assert_int_equal(call.xid, len >= 4 ? 0xabcd0000u + (uint32_t)form : 0);
        }
        assert_int_equal(parse_exact(b.bytes, b.len, &call), RPC_PARSE_OK);
        assert_true(b.len <= RPC_CALL_HEADER_MAX_BYTES);
    }
}

static void uid_and_gid(void **state)
{
    (void)state;
    struct build b;
    struct rpc_call call;

    build_form(&b, 2);
    assert_int_equal(rpc_parse_call(b.bytes, b.len, &call), RPC_PARSE_OK);
    assert_true(call.has_ids);
    assert_int_equal(call.uid, 1001);
    assert_int_equal(call.gid, 2002);
    assert_true(call.args_visible);
    build_form(&b, 4);
    assert_int_equal(rpc_parse_call(b.bytes, b.len, &call), RPC_PARSE_OK);
    assert_false(call.has_ids);
    assert_int_equal(call.uid, 0);
}

static void gss_says_whether_arguments_can_be_read(void **state)
{
    (void)state;
    static const struct {
        uint32_t version, proc, service;
        bool has_gss, visible;
        uint32_t wrapper_bytes;
    } cases[] = {
        {1, RPC_GSS_PROC_DATA, RPC_GSS_SERVICE_NONE, true, true, 0},
        {1, RPC_GSS_PROC_DATA, RPC_GSS_SERVICE_INTEGRITY, true, true, 8},
        {1, RPC_GSS_PROC_DATA, RPC_GSS_SERVICE_PRIVACY, true, false, 0},
        {1, RPC_GSS_PROC_INIT, RPC_GSS_SERVICE_NONE, true, false, 0},
        {1, RPC_GSS_PROC_DESTROY, RPC_GSS_SERVICE_NONE, true, false, 0},
        {2, RPC_GSS_PROC_DATA, RPC_GSS_SERVICE_NONE, false, false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct build b = {.len = 0};
        struct rpc_call call;
        build_call_start(&b, 1);
        build_gss(&b, cases[i].version, cases[i].proc, cases[i].service);
        build_auth(&b, 6, 20, 0);
        assert_int_equal(rpc_parse_call(b.bytes, b.len, &call), RPC_PARSE_OK);
        assert_int_equal(call.has_gss, cases[i].has_gss);
        assert_int_equal(call.args_visible, cases[i].visible);
        assert_int_equal(call.body_offset, b.len + cases[i].wrapper_bytes);
        if (call.has_gss) {
            assert_int_equal(call.gss_seq, 77);
            assert_int_equal(call.gss_handle.len, 8);
            assert_memory_equal(call.gss_handle.data, "context!", 8);
        }
    }
}

static void ill_formed_calls(void **state)
{
    (void)state;
    struct rpc_call call;
    struct build b = {.len = 0};

    build_word(&b, 5);
    build_word(&b, 1); /* a reply */
    build_zeros(&b, 40);
    assert_int_equal(parse_exact(b.bytes, b.len, &call), RPC_PARSE_NOT_EXPECTED);
    assert_int_equal(call.xid, 5);

    build_form(&b, 0);
    b.bytes[11] = 3; /* rpcvers */
    assert_int_equal(parse_exact(b.bytes, b.len, &call), RPC_PARSE_VERSION);

    b.len = 0;
    build_call_start(&b, 6);
    build_auth(&b, 0, 401, 0);
    assert_int_equal(parse_exact(b.bytes, b.len, &call), RPC_PARSE_BAD_CRED);
    assert_int_equal(parse_exact(b.bytes, 32, &call), RPC_PARSE_BAD_CRED); /* not waited for */

    b.len = 0;
    build_call_start(&b, 6);
    build_auth(&b, 0, 0, 0);
    build_auth(&b, 0, 401, 0);
    assert_int_equal(parse_exact(b.bytes, b.len, &call), RPC_PARSE_BAD_VERF);

    static const struct {
        uint32_t machine, gids, said_gids;
    } bad_sys[] = {{256, 0, 0}, {4, 17, 17}, {4, 3, 4}, {4, 0, 0x40000000u}};
    for (size_t i = 0; i < sizeof bad_sys / sizeof bad_sys[0]; i++) {
        b.len = 0;
        build_call_start(&b, 6);
        build_auth_sys(&b, bad_sys[i].machine, bad_sys[i].gids, bad_sys[i].said_gids);
        build_auth(&b, 0, 0, 0);
        assert_int_equal(parse_exact(b.bytes, b.len, &call), RPC_PARSE_BAD_CRED);
        assert_null(rpc_oracle_disagrees(b.bytes, b.len));
        assert_false(call.has_ids);
    }
}

static void damaged_calls_are_judged_as_libtirpc_judges_them(void **state)
{
    (void)state;
    struct test_random random;
    struct build b;

    test_random_init(&random, __func__);
    for (int round = 0; round < 20000; round++) {
        build_form(&b, round % 9);
        uint32_t changes = 1 + test_random_below(&random, 3);
        for (uint32_t i = 0; i < changes; i++) {
            uint32_t at = test_random_below(&random, (uint32_t)b.len);
            b.bytes[at] = (uint8_t)test_random_next(&random);
        }
        size_t len =
            test_random_below(&random, 4) ? b.len : test_random_below(&random, (uint32_t)b.len);
        uint8_t *copy = test_exact_copy(b.bytes, len);
        const char *difference = rpc_oracle_disagrees(copy, len);
        free(copy);
        if (difference)
            fail_msg("round %d: %s", round, difference);
    }
}

/* ------------------------------------------------------------------------------------------
 * replies */

/* libtirpc's encoding of `msg`, with a record mark in front. */
static size_t encode_reply(struct rpc_msg *msg, uint8_t *buf, size_t size)
{
    XDR xdrs;

    xdrmem_create(&xdrs, (char *)buf + 4, (u_int)(size - 4), XDR_ENCODE);
    assert_true(xdr_replymsg(&xdrs, msg));
    uint32_t len = xdr_getpos(&xdrs);
    xdr_destroy(&xdrs);
    buf[0] = 0x80;
    buf[1] = (uint8_t)(len >> 16);
    buf[2] = (uint8_t)(len >> 8);
    buf[3] = (uint8_t)len;
    return len + 4;
}

/* xdr_void in the type that xdr_replymsg calls through. */
static bool_t no_results(XDR *xdrs, ...)
{
    (void)xdrs;
    return TRUE;
}

static void accepted(struct rpc_msg *msg, uint32_t xid, enum accept_stat status)
{
    memset(msg, 0, sizeof *msg);
    msg->rm_xid = xid;
    msg->rm_direction = REPLY;
    msg->rm_reply.rp_stat = MSG_ACCEPTED;
    msg->acpted_rply.ar_stat = status;
    msg->acpted_rply.ar_results.proc = no_results;
}

static void denied(struct rpc_msg *msg, uint32_t xid, enum reject_stat status)
{
    memset(msg, 0, sizeof *msg);
    msg->rm_xid = xid;
    msg->rm_direction = REPLY;
    msg->rm_reply.rp_stat = MSG_DENIED;
    msg->rjcted_rply.rj_stat = status;
}

static void same_bytes(struct rpc_msg *msg, const uint8_t *ours, size_t ours_bytes)
{
    uint8_t theirs[128];
    size_t theirs_bytes = encode_reply(msg, theirs, sizeof theirs);

    assert_int_equal(ours_bytes, theirs_bytes);
    assert_memory_equal(ours, theirs, theirs_bytes);
    assert_true(ours_bytes <= RPC_ERROR_MAX_BYTES);
}

static void our_replies_are_libtirpcs_bytes(void **state)
{
    (void)state;
    uint8_t buf[RPC_ERROR_MAX_BYTES];
    struct rpc_msg msg;
    static const enum rpc_accept plain[] = {RPC_ACCEPT_PROG_UNAVAIL, RPC_ACCEPT_PROC_UNAVAIL,
                                            RPC_ACCEPT_GARBAGE_ARGS, RPC_ACCEPT_SYSTEM_ERR};

    for (size_t i = 0; i < 4; i++) {
        accepted(&msg, 0x12345678, (enum accept_stat)plain[i]);
        same_bytes(&msg, buf, rpc_write_accept_error(buf, sizeof buf, 0x12345678, plain[i]));
    }
    accepted(&msg, 9, PROG_MISMATCH);
    msg.acpted_rply.ar_vers.low = 3;
    msg.acpted_rply.ar_vers.high = 4;
    same_bytes(&msg, buf, rpc_write_prog_mismatch(buf, sizeof buf, 9, 3, 4));
    denied(&msg, 10, RPC_MISMATCH);
    msg.rjcted_rply.rj_vers.low = 2;
    msg.rjcted_rply.rj_vers.high = 2;
    same_bytes(&msg, buf, rpc_write_rpc_mismatch(buf, sizeof buf, 10));
    for (enum rpc_auth_status s = RPC_AUTH_STATUS_BADCRED; s <= RPC_AUTH_STATUS_FAILED; s++) {
        denied(&msg, 11, AUTH_ERROR);
        msg.rjcted_rply.rj_why = (enum auth_stat)s;
        same_bytes(&msg, buf, rpc_write_auth_error(buf, sizeof buf, 11, s));
    }
    struct rpc_writer w;
    rpc_writer_init(&w, buf, sizeof buf);
    rpc_write_success(&w, 12);
    accepted(&msg, 12, SUCCESS);
    same_bytes(&msg, buf, rpc_writer_finish(&w, 0));
}

static void parser_results_map_to_replies(void **state)
{
    (void)state;
    uint8_t buf[RPC_ERROR_MAX_BYTES];
    struct rpc_reply reply;
    size_t len;

    assert_int_equal(rpc_write_parse_error(buf, sizeof buf, 1, RPC_PARSE_OK), 0);
    assert_int_equal(rpc_write_parse_error(buf, sizeof buf, 1, RPC_PARSE_NOT_EXPECTED), 0);
    len = rpc_write_parse_error(buf, sizeof buf, 1, RPC_PARSE_VERSION);
    assert_int_equal(rpc_parse_reply(buf + 4, len - 4, &reply), RPC_PARSE_OK);
    assert_true(reply.denied);
    assert_int_equal(reply.reject, RPC_REJECT_MISMATCH);
    assert_int_equal(reply.low, 2);
    assert_int_equal(reply.high, 2);
    static const struct {
        enum rpc_parse result;
        uint32_t why;
    } auth[] = {{RPC_PARSE_BAD_CRED, 1}, {RPC_PARSE_BAD_VERF, 3}};
    for (size_t i = 0; i < 2; i++) {
        len = rpc_write_parse_error(buf, sizeof buf, 1, auth[i].result);
        assert_int_equal(rpc_parse_reply(buf + 4, len - 4, &reply), RPC_PARSE_OK);
        assert_int_equal(reply.reject, RPC_REJECT_AUTH_ERROR);
        assert_int_equal(reply.auth_status, auth[i].why);
    }
    static const enum rpc_parse garbage[] = {RPC_PARSE_GARBAGE, RPC_PARSE_NEED_MORE};
    for (size_t i = 0; i < 2; i++) {
        len = rpc_write_parse_error(buf, sizeof buf, 1, garbage[i]);
        assert_int_equal(rpc_parse_reply(buf + 4, len - 4, &reply), RPC_PARSE_OK);
        assert_false(reply.denied);
        assert_int_equal(reply.accept, RPC_ACCEPT_GARBAGE_ARGS);
    }
}

static void a_small_buffer_is_never_overrun(void **state)
{
    (void)state;

    for (size_t size = 0; size < RPC_ERROR_MAX_BYTES; size++) {
        uint8_t *buf = malloc(size ? size : 1);
        assert_non_null(buf);
        assert_int_equal(rpc_write_prog_mismatch(buf, size, 9, 3, 4) != 0, size >= 36);
        assert_int_equal(rpc_write_accept_error(buf, size, 9, RPC_ACCEPT_SYSTEM_ERR) != 0,
                         size >= 28);
        assert_int_equal(rpc_write_rpc_mismatch(buf, size, 9) != 0, size >= 28);
        assert_int_equal(rpc_write_auth_error(buf, size, 9, RPC_AUTH_STATUS_TOOWEAK) != 0,
                         size >= 24);
        free(buf);
    }
}

static void replies_are_read(void **state)
{
    (void)state;
    struct rpc_reply reply;
    struct build b = {.len = 0};

    build_word(&b, 42);
    build_word(&b, 1);
    build_word(&b, 0);
    build_auth(&b, 6, 30, 8);
    build_word(&b, 0);
    size_t body = b.len;
    build_word(&b, 0xffffffff);
    for (size_t len = 0; len < body; len++) {
        uint8_t *copy = test_exact_copy(b.bytes, len);
        assert_int_equal(rpc_parse_reply(copy, len, &reply), RPC_PARSE_NEED_MORE);
        free(copy);
    }
    assert_int_equal(rpc_parse_reply(b.bytes, b.len, &reply), RPC_PARSE_OK);
    assert_int_equal(reply.xid, 42);
    assert_false(reply.denied);
    assert_int_equal(reply.accept, RPC_ACCEPT_SUCCESS);
    assert_int_equal(reply.verf_flavour, 6);
    assert_int_equal(reply.verf.len, 30);
    assert_int_equal(reply.body_offset, body);
}

static void senseless_replies_are_garbage(void **state)
{
    (void)state;
    struct rpc_reply reply;
    struct build b = {.len = 0};

    build_word(&b, 42);
    build_word(&b, 0);
    assert_int_equal(rpc_parse_reply(b.bytes, b.len, &reply), RPC_PARSE_NOT_EXPECTED);
    b.len = 4;
    build_word(&b, 1);
    build_word(&b, 2); /* neither accepted nor denied */
    assert_int_equal(rpc_parse_reply(b.bytes, b.len, &reply), RPC_PARSE_GARBAGE);
    b.len = 8;
    build_word(&b, 1);
    build_word(&b, 2); /* neither mismatch nor auth error */
    assert_int_equal(rpc_parse_reply(b.bytes, b.len, &reply), RPC_PARSE_GARBAGE);
    b.len = 8;
    build_word(&b, 0);
    build_auth(&b, 0, 401, 0);
    assert_int_equal(rpc_parse_reply(b.bytes, b.len, &reply), RPC_PARSE_GARBAGE);
    b.len = 12;
    build_auth(&b, 0, 0, 0);
    build_word(&b, 6); /* no such accept status */
    assert_int_equal(rpc_parse_reply(b.bytes, b.len, &reply), RPC_PARSE_GARBAGE);
}

static void peeking(void **state)
{
    (void)state;
    uint8_t words[8] = {1, 2, 3, 4, 0, 0, 0, 1};
    uint32_t xid = 0;
    enum rpc_type type = RPC_TYPE_CALL;

    assert_false(rpc_peek(words, 7, &xid, &type));
    assert_true(rpc_peek(words, 8, &xid, &type));
    assert_int_equal(xid, 0x01020304);
    assert_int_equal(type, RPC_TYPE_REPLY);
    words[7] = 2;
    assert_false(rpc_peek(words, 8, &xid, &type));
    rpc_set_xid(words, 0xa1b2c3d4);
    assert_int_equal(test_word_at(words), 0xa1b2c3d4);
}

static void written_calls_are_read_back_by_libtirpc(void **state)
{
    (void)state;
    char long_name[400];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    const struct rpc_identity identities[] = {
        {.sys = false},
        {.sys = true, .uid = 1001, .gid = 7, .machine = "client-1"},
        {.sys = true, .uid = 0xffffffff, .gid = 0, .machine = NULL},
        {.sys = true, .uid = 1, .gid = 2, .machine = long_name},
    };

    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        uint8_t buf[1024];
        struct rpc_writer w;
        struct rpc_oracle o;
        rpc_writer_init(&w, buf, sizeof buf);
        rpc_write_call(&w, 99, 100005, 3, 1, i ? &identities[i] : NULL);
        size_t len = rpc_writer_finish(&w, 0);
        assert_int_equal(test_word_at(buf), 0x80000000u | (len - 4));
        assert_true(rpc_oracle_call(buf + 4, len - 4, &o));
        assert_null(rpc_oracle_disagrees(buf + 4, len - 4));
        assert_int_equal(o.position, len - 4);
        assert_int_equal(o.has_ids, identities[i].sys);
        assert_int_equal(o.uid, identities[i].uid);
        assert_int_equal(o.gid, identities[i].gid);
        assert_int_equal(o.msg.rm_call.cb_prog, 100005);
    }
}

static void the_mark_counts_trailing_data(void **state)
{
    (void)state;
    uint8_t buf[16];
    struct rpc_writer w;

    rpc_writer_init(&w, buf, sizeof buf);
    rpc_put_u32(&w, 1);
    assert_int_equal(rpc_writer_finish(&w, 1000), 8);
    assert_int_equal(test_word_at(buf), 0x80000000u | 1004);
    assert_int_equal(rpc_writer_finish(&w, 0x7fffffff), 0); /* a mark can't say that */
    rpc_put_opaque(&w, "abcde", 5);
    assert_int_equal(rpc_writer_finish(&w, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read_as_libtirpc_reads_it),
        cmocka_unit_test(every_truncation_needs_more),
        cmocka_unit_test(uid_and_gid),
        cmocka_unit_test(gss_says_whether_arguments_can_be_read),
        cmocka_unit_test(ill_formed_calls),
        cmocka_unit_test(damaged_calls_are_judged_as_libtirpc_judges_them),
        cmocka_unit_test(our_replies_are_libtirpcs_bytes),
        cmocka_unit_test(parser_results_map_to_replies),
        cmocka_unit_test(a_small_buffer_is_never_overrun),
        cmocka_unit_test(replies_are_read),
        cmocka_unit_test(senseless_replies_are_garbage),
        cmocka_unit_test(peeking),
        cmocka_unit_test(written_calls_are_read_back_by_libtirpc),
        cmocka_unit_test(the_mark_counts_trailing_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
