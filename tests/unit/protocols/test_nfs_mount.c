/* SPDX-License-Identifier: Apache-2.0 */
/* MOUNT, NFSACL and portmap: both directions, against libnfs's decoders. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/portmap.h"
#include "tests/unit/protocols/nfs_oracle.h"
#include "tests/unit/protocols/rpc_test.h"
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-portmap.h>

static const struct rpc_identity identity = {.sys = true, .uid = 3, .gid = 4, .machine = "m"};

/* The body of a written call or reply. */
static const uint8_t *call_body(const uint8_t *buf, size_t len, uint32_t prog, uint32_t vers,
                                uint32_t proc, size_t *body_bytes)
{
    struct rpc_call call;

    assert_true(len > 4);
    assert_int_equal(test_word_at(buf), 0x80000000u | (len - 4));
    assert_int_equal(rpc_parse_call(buf + 4, len - 4, &call), RPC_PARSE_OK);
    assert_int_equal(call.prog, prog);
    assert_int_equal(call.vers, vers);
    assert_int_equal(call.proc, proc);
    *body_bytes = len - 4 - call.body_offset;
    return buf + 4 + call.body_offset;
}

static const uint8_t *reply_body(const uint8_t *buf, size_t len, size_t *body_bytes)
{
    struct rpc_reply reply;

    assert_true(len > 4);
    assert_int_equal(test_word_at(buf), 0x80000000u | (len - 4));
    assert_int_equal(rpc_parse_reply(buf + 4, len - 4, &reply), RPC_PARSE_OK);
    assert_int_equal(reply.xid, 8);
    *body_bytes = len - 4 - reply.body_offset;
    return buf + 4 + reply.body_offset;
}

static void mount_calls(void **state)
{
    (void)state;
    uint8_t buf[MOUNT3_CALL_MAX_BYTES];
    char path[MOUNT_PATH_MAX_BYTES + 2];
    struct rpc_slice slice;
    struct nfs_oracle o;
    char *decoded = NULL;
    size_t len;

    const uint8_t *body =
        call_body(buf, mount3_write_mnt_call(buf, sizeof buf, 8, &identity, "/export/images"),
                  100005, 3, 1, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_dirpath", body, len, &decoded));
    assert_string_equal(decoded, "/export/images");
    nfs_oracle_release(&o);
    assert_int_equal(mount3_parse_path(body, len, &slice), RPC_PARSE_OK);
    assert_int_equal(slice.len, 14);
    assert_memory_equal(slice.data, "/export/images", 14);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = test_exact_copy(body, cut);
        assert_int_equal(mount3_parse_path(copy, cut, &slice), RPC_PARSE_NEED_MORE);
        free(copy);
    }
    call_body(buf, mount3_write_umnt_call(buf, sizeof buf, 8, &identity, "/"), 100005, 3, 3, &len);
    assert_int_equal(len, 8);
    memset(path, 'p', sizeof path);
    path[MOUNT_PATH_MAX_BYTES + 1] = 0;
    assert_int_equal(mount3_write_mnt_call(buf, sizeof buf, 8, &identity, path), 0);
    path[MOUNT_PATH_MAX_BYTES] = 0;
    body = call_body(buf, mount3_write_mnt_call(buf, sizeof buf, 8, &identity, path), 100005, 3, 1,
                     &len);
    assert_int_equal(mount3_parse_path(body, len, &slice), RPC_PARSE_OK);
    struct build b = {.len = 0};
    build_word(&b, MOUNT_PATH_MAX_BYTES + 1);
    assert_int_equal(mount3_parse_path(b.bytes, b.len, &slice), RPC_PARSE_GARBAGE);
}

static void mount_replies(void **state)
{
    (void)state;
    const struct rpc_slice fh = {(const uint8_t *)"root-handle", 11};
    uint8_t buf[512];
    struct mount3_reply peek;
    struct nfs_oracle o;
    mountres3 res = {0};
    size_t len;

    const uint8_t *body =
        reply_body(buf, mount3_write_mnt_reply(buf, sizeof buf, 8, MOUNT3_STATUS_OK, fh), &len);
    assert_true(nfs_oracle_decode(&o, "zdr_mountres3", body, len, &res));
    assert_int_equal(res.fhs_status, MNT3_OK);
    assert_int_equal(res.mountres3_u.mountinfo.auth_flavors.auth_flavors_len, 2);
    assert_int_equal(res.mountres3_u.mountinfo.fhandle.fhandle3_len, 11);
    nfs_oracle_release(&o);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = test_exact_copy(body, cut);
        assert_int_equal(mount3_parse_mnt_reply(copy, cut, &peek), RPC_PARSE_NEED_MORE);
        free(copy);
    }
    assert_int_equal(mount3_parse_mnt_reply(body, len, &peek), RPC_PARSE_OK);
    assert_int_equal(peek.status, 0);
    assert_int_equal(peek.handle.len, 11);
    assert_int_equal(peek.flavours_count, 2);
    assert_int_equal(peek.flavours[0], RPC_FLAVOUR_SYS);

    body =
        reply_body(buf, mount3_write_mnt_reply(buf, sizeof buf, 8, MOUNT3_STATUS_NOENT, fh), &len);
    assert_true(nfs_oracle_decode(&o, "zdr_mountres3", body, len, &res));
    nfs_oracle_release(&o);
    assert_int_equal(mount3_parse_mnt_reply(body, len, &peek), RPC_PARSE_OK);
    assert_int_equal(peek.status, 2);
    assert_int_equal(peek.handle.len, 0);
}

static void many_flavours_and_bad_handles(void **state)
{
    (void)state;
    struct build b = {.len = 0};
    struct mount3_reply peek;

    build_word(&b, 0);
    build_opaque(&b, "fh", 2);
    build_word(&b, 20);
    for (uint32_t i = 0; i < 20; i++)
        build_word(&b, 390000 + i);
    assert_int_equal(mount3_parse_mnt_reply(b.bytes, b.len, &peek), RPC_PARSE_OK);
    assert_int_equal(peek.flavours_count, 8);
    assert_int_equal(peek.flavours[7], 390007);
    assert_int_equal(mount3_parse_mnt_reply(b.bytes, b.len - 4, &peek), RPC_PARSE_NEED_MORE);
    b.len = 4;
    build_word(&b, 65);
    assert_int_equal(mount3_parse_mnt_reply(b.bytes, b.len, &peek), RPC_PARSE_GARBAGE);
}

static void listings(void **state)
{
    (void)state;
    static const char *const paths[] = {"/", "/images"};
    uint8_t buf[512];
    struct nfs_oracle o;
    exports list = NULL;
    mountlist mounts = NULL;
    size_t len;

    const uint8_t *body =
        reply_body(buf, mount3_write_export_reply(buf, sizeof buf, 8, paths, 2), &len);
    assert_true(nfs_oracle_decode(&o, "zdr_exports", body, len, &list));
    exportnode node;
    size_t count = 0;
    for (const void *next = list; nfs_oracle_element(&node, next, sizeof node);
         next = node.ex_next) {
        assert_string_equal(node.ex_dir, count < 2 ? paths[count] : "no more");
        count++;
        assert_null(node.ex_groups);
    }
    assert_int_equal(count, 2);
    nfs_oracle_release(&o);
    body = reply_body(buf, mount3_write_dump_reply(buf, sizeof buf, 8), &len);
    assert_true(nfs_oracle_decode(&o, "zdr_mountlist", body, len, &mounts));
    assert_null(mounts);
    nfs_oracle_release(&o);
    reply_body(buf, mount3_write_void_reply(buf, sizeof buf, 8), &len);
    assert_int_equal(len, 0);
}

/* Two exports, the first for two groups. */
static size_t put_exports(uint8_t *buf, size_t size)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_put_u32(&w, 1);
    rpc_put_opaque(&w, "/data", 5);
    rpc_put_u32(&w, 1);
    rpc_put_opaque(&w, "hosts", 5);
    rpc_put_u32(&w, 1);
    rpc_put_opaque(&w, "10.0.0.0/8", 10);
    rpc_put_u32(&w, 0);
    rpc_put_u32(&w, 1);
    rpc_put_opaque(&w, "/", 1);
    rpc_put_u32(&w, 0);
    rpc_put_u32(&w, 0);
    return rpc_writer_finish(&w, 0) - RPC_RECORD_MARK_BYTES;
}

static void exports_are_walked(void **state)
{
    uint8_t buf[512];
    const uint8_t *results = buf + RPC_RECORD_MARK_BYTES;
    struct rpc_reader r;
    struct rpc_slice path;
    size_t len;

    (void)state;
    call_body(buf, mount3_write_export_call(buf, sizeof buf, 8, &identity), 100005, 3, 5, &len);
    assert_int_equal(len, 0);
    len = put_exports(buf, sizeof buf);
    rpc_reader_init(&r, results, len);
    assert_int_equal(mount3_next_export(&r, &path), RPC_PARSE_OK);
    assert_int_equal(path.len, 5);
    assert_memory_equal(path.data, "/data", 5);
    assert_int_equal(mount3_next_export(&r, &path), RPC_PARSE_OK);
    assert_int_equal(path.len, 1);
    assert_int_equal(mount3_next_export(&r, &path), RPC_PARSE_NOT_EXPECTED);
    for (size_t cut = 0; cut < len; cut++) {
        enum rpc_parse result = RPC_PARSE_OK;
        rpc_reader_init(&r, results, cut);
        while (result == RPC_PARSE_OK)
            result = mount3_next_export(&r, &path);
        assert_int_equal(result, RPC_PARSE_NEED_MORE);
    }
    rpc_store_u32(buf + RPC_RECORD_MARK_BYTES, 2);
    rpc_reader_init(&r, results, len);
    assert_int_equal(mount3_next_export(&r, &path), RPC_PARSE_GARBAGE);
}

static void procedure_names(void **state)
{
    (void)state;

    assert_string_equal(mount3_proc_name(1), "MNT");
    assert_string_equal(mount3_proc_name(5), "EXPORT");
    assert_null(mount3_proc_name(6));
    assert_string_equal(nfsacl_proc_name(3, 2), "SETACL");
    assert_null(nfsacl_proc_name(3, 3));
    assert_string_equal(nfsacl_proc_name(2, 4), "ACCESS");
    assert_null(nfsacl_proc_name(1, 0));
    assert_true(nfsacl_proc_reads(3, 1));
    assert_false(nfsacl_proc_reads(3, 2));
    assert_false(nfsacl_proc_reads(3, 9));
}

static void portmap_lookups(void **state)
{
    (void)state;
    uint8_t buf[128];
    struct nfs_oracle o;
    pmap2_mapping mapping = {0};
    uint32_t prog, vers, transport;
    uint16_t port;
    size_t len;

    size_t bytes = portmap_write_getport(buf, sizeof buf, 8, 100005, 3, PORTMAP_TCP);
    assert_int_equal(bytes, PORTMAP_CALL_BYTES);
    const uint8_t *body = call_body(buf, bytes, 100000, 2, 3, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_pmap2_mapping", body, len, &mapping));
    assert_int_equal(mapping.prog, 100005);
    assert_int_equal(mapping.vers, 3);
    assert_int_equal(mapping.prot, 6);
    nfs_oracle_release(&o);
    assert_int_equal(portmap_parse_getport(body, len, &prog, &vers, &transport), RPC_PARSE_OK);
    assert_int_equal(prog, 100005);
    assert_int_equal(vers, 3);
    assert_int_equal(transport, 6);
    assert_int_equal(portmap_parse_getport(body, len - 1, &prog, &vers, &transport),
                     RPC_PARSE_NEED_MORE);
    assert_int_equal(portmap_write_getport(buf, PORTMAP_CALL_BYTES - 1, 8, 1, 1, PORTMAP_UDP), 0);

    body = reply_body(buf, portmap_write_getport_reply(buf, sizeof buf, 8, 20048), &len);
    assert_int_equal(portmap_parse_getport_reply(body, len, &port), RPC_PARSE_OK);
    assert_int_equal(port, 20048);
    assert_int_equal(portmap_parse_getport_reply(body, 3, &port), RPC_PARSE_NEED_MORE);
    buf[len + 25] = 1; /* 65536 + ... */
    assert_int_equal(portmap_parse_getport_reply(body, len, &port), RPC_PARSE_GARBAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mount_calls),
        cmocka_unit_test(mount_replies),
        cmocka_unit_test(many_flavours_and_bad_handles),
        cmocka_unit_test(listings),
        cmocka_unit_test(exports_are_walked),
        cmocka_unit_test(procedure_names),
        cmocka_unit_test(portmap_lookups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
