/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 arguments: what libnfs encodes is what the peek sees, for every procedure and truncation;
 * what our client writes is what libnfs decodes; the word "later" in every result shape. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/nfs3_client.h"
#include "protocols/rpc/rpc_message.h"
#include "tests/unit/protocols/nfs_oracle.h"
#include "tests/unit/protocols/rpc_test.h"

static char handle_bytes[] = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDEF";

static nfs_fh3 a_handle(uint32_t len)
{
    nfs_fh3 fh;

    fh.data.data_len = len;
    fh.data.data_val = handle_bytes;
    return fh;
}

static diropargs3 a_place(uint32_t len, const char *name)
{
    diropargs3 place = {.dir = a_handle(len), .name = (char *)(uintptr_t)name};

    return place;
}

/* Arguments of `proc` as libnfs encodes them. */
static size_t encode_args(uint32_t proc, uint8_t *buf, size_t size)
{
    union {
        GETATTR3args getattr;
        SETATTR3args setattr;
        LOOKUP3args lookup;
        ACCESS3args access;
        READLINK3args readlink;
        READ3args read;
        WRITE3args write;
        CREATE3args create;
        MKDIR3args mkdir;
        SYMLINK3args symlink;
        MKNOD3args mknod;
        REMOVE3args remove;
        RMDIR3args rmdir;
        RENAME3args rename;
        LINK3args link;
        READDIR3args readdir;
        READDIRPLUS3args readdirplus;
        FSSTAT3args fsstat;
        FSINFO3args fsinfo;
        PATHCONF3args pathconf;
        COMMIT3args commit;
    } a;

    memset(&a, 0, sizeof a);
    switch (proc) {
    case NFS3_PROC_GETATTR:
        a.getattr.object = a_handle(64);
        return nfs_oracle_encode("zdr_GETATTR3args", &a, buf, size);
    case NFS3_PROC_SETATTR:
        a.setattr.object = a_handle(32);
        return nfs_oracle_encode("zdr_SETATTR3args", &a, buf, size);
    case NFS3_PROC_LOOKUP:
        a.lookup.what = a_place(28, "a-name");
        return nfs_oracle_encode("zdr_LOOKUP3args", &a, buf, size);
    case NFS3_PROC_ACCESS:
        a.access.object = a_handle(28);
        a.access.access = 0x2d;
        return nfs_oracle_encode("zdr_ACCESS3args", &a, buf, size);
    case NFS3_PROC_READLINK:
        a.readlink.symlink = a_handle(5);
        return nfs_oracle_encode("zdr_READLINK3args", &a, buf, size);
    case NFS3_PROC_READ:
        a.read.file = a_handle(29);
        a.read.offset = 0x123456789abcu;
        a.read.count = 65536;
        return nfs_oracle_encode("zdr_READ3args", &a, buf, size);
    case NFS3_PROC_WRITE:
        a.write.file = a_handle(64);
        a.write.offset = 0xffff000000000001u;
        a.write.count = 12; /* a server refuses that: the data has 11 */
        a.write.stable = FILE_SYNC;
        a.write.data.data_len = 11;
        a.write.data.data_val = handle_bytes;
        return nfs_oracle_encode("zdr_WRITE3args", &a, buf, size);
    case NFS3_PROC_CREATE:
        a.create.where = a_place(28, "created");
        return nfs_oracle_encode("zdr_CREATE3args", &a, buf, size);
    case NFS3_PROC_MKDIR:
        a.mkdir.where = a_place(28, "directory");
        return nfs_oracle_encode("zdr_MKDIR3args", &a, buf, size);
    case NFS3_PROC_SYMLINK:
        a.symlink.where = a_place(28, "symlink");
        a.symlink.symlink.symlink_data = handle_bytes;
        return nfs_oracle_encode("zdr_SYMLINK3args", &a, buf, size);
    case NFS3_PROC_MKNOD:
        a.mknod.where = a_place(28, "node");
        a.mknod.what.type = NF3FIFO;
        return nfs_oracle_encode("zdr_MKNOD3args", &a, buf, size);
    case NFS3_PROC_REMOVE:
        a.remove.object = a_place(28, "x");
        return nfs_oracle_encode("zdr_REMOVE3args", &a, buf, size);
    case NFS3_PROC_RMDIR:
        a.rmdir.object = a_place(28, "yy");
        return nfs_oracle_encode("zdr_RMDIR3args", &a, buf, size);
    case NFS3_PROC_RENAME:
        a.rename.from = a_place(28, "from");
        a.rename.to = a_place(20, "to");
        return nfs_oracle_encode("zdr_RENAME3args", &a, buf, size);
    case NFS3_PROC_LINK:
        a.link.file = a_handle(28);
        a.link.link = a_place(20, "link");
        return nfs_oracle_encode("zdr_LINK3args", &a, buf, size);
    case NFS3_PROC_READDIR:
        a.readdir.dir = a_handle(28);
        a.readdir.cookie = 77;
        a.readdir.count = 8192;
        return nfs_oracle_encode("zdr_READDIR3args", &a, buf, size);
    case NFS3_PROC_READDIRPLUS:
        a.readdirplus.dir = a_handle(28);
        a.readdirplus.cookie = 78;
        a.readdirplus.dircount = 1024;
        a.readdirplus.maxcount = 32768;
        return nfs_oracle_encode("zdr_READDIRPLUS3args", &a, buf, size);
    case NFS3_PROC_FSSTAT:
        a.fsstat.fsroot = a_handle(28);
        return nfs_oracle_encode("zdr_FSSTAT3args", &a, buf, size);
    case NFS3_PROC_FSINFO:
        a.fsinfo.fsroot = a_handle(28);
        return nfs_oracle_encode("zdr_FSINFO3args", &a, buf, size);
    case NFS3_PROC_PATHCONF:
        a.pathconf.object = a_handle(28);
        return nfs_oracle_encode("zdr_PATHCONF3args", &a, buf, size);
    case NFS3_PROC_COMMIT:
        a.commit.file = a_handle(28);
        a.commit.offset = 4096;
        a.commit.count = 1048576;
        return nfs_oracle_encode("zdr_COMMIT3args", &a, buf, size);
    default:
        return 0; /* NULL has none */
    }
}

static const struct expected_call {
    const char *name;
    uint64_t offset;
    uint64_t cost_bytes;
    uint32_t handle_bytes;
    uint32_t count, dircount, stable, access, data_bytes;
} expected_calls[NFS3_PROCS] = {
    [NFS3_PROC_GETATTR] = {.handle_bytes = 64},
    [NFS3_PROC_SETATTR] = {.handle_bytes = 32},
    [NFS3_PROC_LOOKUP] = {.handle_bytes = 28, .name = "a-name"},
    [NFS3_PROC_ACCESS] = {.handle_bytes = 28, .access = 0x2d},
    [NFS3_PROC_READLINK] = {.handle_bytes = 5},
    [NFS3_PROC_READ] = {.handle_bytes = 29,
                        .offset = 0x123456789abcu,
                        .count = 65536,
                        .cost_bytes = 65536},
    [NFS3_PROC_WRITE] = {.handle_bytes = 64,
                         .offset = 0xffff000000000001u,
                         .count = 12,
                         .stable = 2,
                         .data_bytes = 11,
                         .cost_bytes = 11},
    [NFS3_PROC_CREATE] = {.handle_bytes = 28, .name = "created"},
    [NFS3_PROC_MKDIR] = {.handle_bytes = 28, .name = "directory"},
    [NFS3_PROC_SYMLINK] = {.handle_bytes = 28, .name = "symlink"},
    [NFS3_PROC_MKNOD] = {.handle_bytes = 28, .name = "node"},
    [NFS3_PROC_REMOVE] = {.handle_bytes = 28, .name = "x"},
    [NFS3_PROC_RMDIR] = {.handle_bytes = 28, .name = "yy"},
    [NFS3_PROC_RENAME] = {.handle_bytes = 28, .name = "from"},
    [NFS3_PROC_LINK] = {.handle_bytes = 28},
    [NFS3_PROC_READDIR] = {.handle_bytes = 28, .offset = 77, .count = 8192, .cost_bytes = 8192},
    [NFS3_PROC_READDIRPLUS] =
        {.handle_bytes = 28, .offset = 78, .count = 32768, .dircount = 1024, .cost_bytes = 32768},
    [NFS3_PROC_FSSTAT] = {.handle_bytes = 28},
    [NFS3_PROC_FSINFO] = {.handle_bytes = 28},
    [NFS3_PROC_PATHCONF] = {.handle_bytes = 28},
    [NFS3_PROC_COMMIT] = {.handle_bytes = 28, .offset = 4096, .count = 1048576},
};

static void check_call(uint32_t proc, const struct nfs3_call *call)
{
    const struct expected_call *want = &expected_calls[proc];

    assert_int_equal(call->proc, proc);
    assert_int_equal(call->handle.len, want->handle_bytes);
    if (want->handle_bytes)
        assert_memory_equal(call->handle.data, handle_bytes, want->handle_bytes);
    assert_int_equal(call->name.len, want->name ? strlen(want->name) : 0);
    if (want->name)
        assert_memory_equal(call->name.data, want->name, call->name.len);
    assert_true(call->offset == want->offset);
    assert_int_equal(call->count, want->count);
    assert_int_equal(call->dircount, want->dircount);
    assert_int_equal(call->stable, want->stable);
    assert_int_equal(call->access, want->access);
    assert_int_equal(call->data_bytes, want->data_bytes);
    assert_true(call->cost_bytes == want->cost_bytes);
}

static void every_procedures_arguments_are_seen(void **state)
{
    (void)state;
    uint8_t buf[1024];
    struct nfs3_call call;

    for (uint32_t proc = 0; proc < NFS3_PROCS; proc++) {
        size_t len = encode_args(proc, buf, sizeof buf);
        assert_int_equal(nfs3_parse_call(proc, buf, len, &call), RPC_PARSE_OK);
        check_call(proc, &call);
        if (proc == NFS3_PROC_WRITE) {
            assert_int_equal(call.data_offset + rpc_padded(call.data_bytes), len);
            assert_memory_equal(buf + call.data_offset, handle_bytes, 11);
        }
    }
}

/* A peek doesn't need all arguments; but every prefix is either enough, and then says the same, or
 * asks for more. */
static void every_truncation_needs_more_or_is_enough(void **state)
{
    (void)state;
    uint8_t buf[1024];

    for (uint32_t proc = 1; proc < NFS3_PROCS; proc++) {
        size_t whole = encode_args(proc, buf, sizeof buf);
        bool enough = false;
        for (size_t len = 0; len <= whole; len++) {
            uint8_t *copy = test_exact_copy(buf, len);
            struct nfs3_call call;
            enum rpc_parse result = nfs3_parse_call(proc, copy, len, &call);
            if (enough || result == RPC_PARSE_OK) {
                assert_int_equal(result, RPC_PARSE_OK);
                check_call(proc, &call);
                enough = true;
            } else {
                assert_int_equal(result, RPC_PARSE_NEED_MORE);
            }
            free(copy);
        }
        assert_true(enough);
    }
}

static void overlong_parts_are_garbage(void **state)
{
    (void)state;
    struct build b = {.len = 0};
    struct nfs3_call call;
    char name[257];

    build_word(&b, 65);
    build_zeros(&b, 100);
    for (uint32_t proc = 1; proc < NFS3_PROCS; proc++)
        assert_int_equal(nfs3_parse_call(proc, b.bytes, b.len, &call), RPC_PARSE_GARBAGE);
    memset(name, 'n', sizeof name);
    b.len = 0;
    build_opaque(&b, handle_bytes, 28);
    build_opaque(&b, name, 255);
    assert_int_equal(nfs3_parse_call(NFS3_PROC_LOOKUP, b.bytes, b.len, &call), RPC_PARSE_OK);
    b.len = 32;
    build_opaque(&b, name, 256);
    assert_int_equal(nfs3_parse_call(NFS3_PROC_LOOKUP, b.bytes, b.len, &call), RPC_PARSE_GARBAGE);
    assert_int_equal(nfs3_parse_call(22, b.bytes, b.len, &call), RPC_PARSE_GARBAGE);
}

static void classes_and_idempotence(void **state)
{
    (void)state;

    for (uint32_t proc = 0; proc < NFS3_PROCS + 2; proc++) {
        enum nfs_class class = proc == 6                 ? NFS_CLASS_READ
                               : proc == 7 || proc == 21 ? NFS_CLASS_WRITE
                                                         : NFS_CLASS_METADATA;
        /* SETATTR; CREATE to LINK; what isn't NFSv3 */
        bool once = proc == 2 || (proc >= 8 && proc <= 15) || proc > 21;
        assert_int_equal(nfs3_proc_class(proc), class);
        assert_int_equal(nfs3_proc_idempotent(proc), !once);
        assert_int_equal(nfs3_proc_name(proc) != NULL, proc <= 21);
    }
    assert_string_equal(nfs3_proc_name(17), "READDIRPLUS");
    assert_string_equal(nfs_class_name(NFS_CLASS_METADATA), "metadata");
    assert_string_equal(nfs_class_name(NFS_CLASS_READ), "read");
    assert_string_equal(nfs_class_name(NFS_CLASS_WRITE), "write");
}

static void jukebox_has_every_procedures_shape(void **state)
{
    (void)state;
    union {
        nfsstat3 status;
        uint8_t room[4096];
    } result;
    uint8_t buf[NFS3_FAILURE_MAX_BYTES];
    char routine[64];

    assert_int_equal(nfs3_write_jukebox(buf, sizeof buf, 7, NFS3_PROC_NULL), 0);
    assert_int_equal(nfs3_write_jukebox(buf, sizeof buf, 7, 22), 0);
    assert_int_equal(nfs3_write_failure(buf, sizeof buf, 7, 1, NFS3_STATUS_OK), 0);
    for (uint32_t proc = 1; proc < NFS3_PROCS; proc++) {
        struct nfs_oracle o;
        struct rpc_reply reply;
        struct nfs3_reply peek;
        size_t len = nfs3_write_jukebox(buf, sizeof buf, 7, proc);
        assert_true(len > 0);
        assert_int_equal(test_word_at(buf), 0x80000000u | (len - 4));
        assert_int_equal(rpc_parse_reply(buf + 4, len - 4, &reply), RPC_PARSE_OK);
        assert_int_equal(reply.xid, 7);
        assert_int_equal(reply.accept, RPC_ACCEPT_SUCCESS);
        const uint8_t *results = buf + 4 + reply.body_offset;
        size_t results_bytes = len - 4 - reply.body_offset;
        memset(&result, 0, sizeof result);
        snprintf(routine, sizeof routine, "zdr_%s3res", nfs3_proc_name(proc));
        if (!nfs_oracle_decode(&o, routine, results, results_bytes, &result))
            fail_msg("%s can't decode our reply", routine);
        assert_int_equal(result.status, NFS3ERR_JUKEBOX);
        nfs_oracle_release(&o);
        assert_int_equal(nfs3_parse_reply(proc, results, results_bytes, &peek), RPC_PARSE_OK);
        assert_int_equal(peek.status, NFS3_STATUS_JUKEBOX);
        for (size_t size = 0; size < len; size++) {
            uint8_t *small = malloc(size ? size : 1);
            assert_int_equal(nfs3_write_jukebox(small, size, 7, proc), 0);
            free(small);
        }
    }
}

/* ---------------------------------------------------------------------------------- client writers
 */

static const struct nfs3_client client = {.identity = {.sys = true, .uid = 501, .machine = "c"}};

/* The arguments of a written call, checked to be a call of `proc` by uid 501. */
static const uint8_t *args_of(const uint8_t *buf, size_t len, uint32_t trailing, uint32_t proc,
                              size_t *args_bytes)
{
    struct rpc_call call;

    assert_true(len > 4 && len <= NFS3_CALL_MAX_BYTES);
    assert_int_equal(test_word_at(buf), 0x80000000u | (len - 4 + trailing));
    assert_int_equal(rpc_parse_call(buf + 4, len - 4, &call), RPC_PARSE_OK);
    assert_int_equal(call.prog, 100003);
    assert_int_equal(call.vers, 3);
    assert_int_equal(call.proc, proc);
    assert_int_equal(call.xid, 55);
    assert_int_equal(call.uid, 501);
    *args_bytes = len - 4 - call.body_offset;
    return buf + 4 + call.body_offset;
}

static void written_calls_are_decoded_by_libnfs(void **state)
{
    (void)state;
    const struct rpc_slice fh = {(const uint8_t *)handle_bytes, 28};
    uint8_t buf[NFS3_CALL_MAX_BYTES];
    struct nfs_oracle o;
    const uint8_t *args;
    size_t len;

    (void)args_of(buf, nfs3_call_null(buf, sizeof buf, &client, 55), 0, 0, &len);
    assert_int_equal(len, 0);

    GETATTR3args getattr = {0};
    args = args_of(buf, nfs3_call_getattr(buf, sizeof buf, &client, 55, fh), 0, 1, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_GETATTR3args", args, len, &getattr));
    assert_int_equal(getattr.object.data.data_len, 28);
    assert_memory_equal(getattr.object.data.data_val, handle_bytes, 28);
    nfs_oracle_release(&o);

    LOOKUP3args lookup = {0};
    args = args_of(buf, nfs3_call_lookup(buf, sizeof buf, &client, 55, fh, "file"), 0, 3, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_LOOKUP3args", args, len, &lookup));
    assert_string_equal(lookup.what.name, "file");
    nfs_oracle_release(&o);

    ACCESS3args access = {0};
    args = args_of(buf, nfs3_call_access(buf, sizeof buf, &client, 55, fh, 0x3f), 0, 4, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_ACCESS3args", args, len, &access));
    assert_int_equal(access.access, 0x3f);
    nfs_oracle_release(&o);

    READ3args read = {0};
    args = args_of(buf, nfs3_call_read(buf, sizeof buf, &client, 55, fh, 1ull << 40, 4096), 0, 6,
                   &len);
    assert_true(nfs_oracle_decode(&o, "zdr_READ3args", args, len, &read));
    assert_true(read.offset == 1ull << 40);
    assert_int_equal(read.count, 4096);
    nfs_oracle_release(&o);

    COMMIT3args commit = {0};
    args = args_of(buf, nfs3_call_commit(buf, sizeof buf, &client, 55, fh, 9, 0), 0, 21, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_COMMIT3args", args, len, &commit));
    assert_int_equal(commit.offset, 9);
    nfs_oracle_release(&o);

    FSINFO3args fsinfo = {0};
    args = args_of(buf, nfs3_call_fsinfo(buf, sizeof buf, &client, 55, fh), 0, 19, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_FSINFO3args", args, len, &fsinfo));
    nfs_oracle_release(&o);

    REMOVE3args remove = {0};
    args = args_of(buf, nfs3_call_remove(buf, sizeof buf, &client, 55, fh, "gone"), 0, 12, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_REMOVE3args", args, len, &remove));
    assert_string_equal(remove.object.name, "gone");
    nfs_oracle_release(&o);

    READDIRPLUS3args list = {0};
    args = args_of(buf, nfs3_call_readdirplus(buf, sizeof buf, &client, 55, fh, 5, 6, 100, 200), 0,
                   17, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_READDIRPLUS3args", args, len, &list));
    assert_int_equal(list.cookie, 5);
    assert_int_equal(list.dircount, 100);
    assert_int_equal(list.maxcount, 200);
    nfs_oracle_release(&o);
}

static void written_calls_on_names_are_decoded_by_libnfs(void **state)
{
    (void)state;
    const struct rpc_slice fh = {(const uint8_t *)handle_bytes, 28};
    const struct rpc_slice other = {(const uint8_t *)handle_bytes + 4, 16};
    uint8_t buf[NFS3_CALL_MAX_BYTES];
    struct nfs_oracle o;
    const uint8_t *args;
    size_t len;

    MKDIR3args mkdir = {0};
    args = args_of(buf, nfs3_call_mkdir(buf, sizeof buf, &client, 55, fh, "d", 0755), 0, 9, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_MKDIR3args", args, len, &mkdir));
    assert_string_equal(mkdir.where.name, "d");
    assert_int_equal(mkdir.attributes.mode.set_it, 1);
    assert_int_equal(mkdir.attributes.mode.set_mode3_u.mode, 0755);
    assert_int_equal(mkdir.attributes.size.set_it, 0);
    nfs_oracle_release(&o);

    RMDIR3args rmdir = {0};
    args = args_of(buf, nfs3_call_rmdir(buf, sizeof buf, &client, 55, fh, "d"), 0, 13, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_RMDIR3args", args, len, &rmdir));
    assert_string_equal(rmdir.object.name, "d");
    nfs_oracle_release(&o);

    SYMLINK3args symlink = {0};
    args = args_of(buf, nfs3_call_symlink(buf, sizeof buf, &client, 55, fh, "s", "to/it"), 0, 10,
                   &len);
    assert_true(nfs_oracle_decode(&o, "zdr_SYMLINK3args", args, len, &symlink));
    assert_string_equal(symlink.where.name, "s");
    assert_string_equal(symlink.symlink.symlink_data, "to/it");
    nfs_oracle_release(&o);

    LINK3args link = {0};
    args = args_of(buf, nfs3_call_link(buf, sizeof buf, &client, 55, other, fh, "l"), 0, 15, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_LINK3args", args, len, &link));
    assert_int_equal(link.file.data.data_len, 16);
    assert_int_equal(link.link.dir.data.data_len, 28);
    assert_string_equal(link.link.name, "l");
    nfs_oracle_release(&o);

    RENAME3args rename = {0};
    args =
        args_of(buf, nfs3_call_rename(buf, sizeof buf, &client, 55, fh, "old", "new"), 0, 14, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_RENAME3args", args, len, &rename));
    assert_string_equal(rename.from.name, "old");
    assert_string_equal(rename.to.name, "new");
    assert_int_equal(rename.to.dir.data.data_len, 28);
    nfs_oracle_release(&o);
}

static void written_calls_on_objects_are_decoded_by_libnfs(void **state)
{
    (void)state;
    const struct rpc_slice fh = {(const uint8_t *)handle_bytes, 28};
    uint8_t buf[NFS3_CALL_MAX_BYTES];
    struct nfs_oracle o;
    const uint8_t *args;
    size_t len;

    SETATTR3args setattr = {0};
    args = args_of(buf, nfs3_call_setattr(buf, sizeof buf, &client, 55, fh, 0640), 0, 2, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_SETATTR3args", args, len, &setattr));
    assert_int_equal(setattr.new_attributes.mode.set_mode3_u.mode, 0640);
    assert_int_equal(setattr.new_attributes.mtime.set_it, 0);
    assert_int_equal(setattr.guard.check, 0);
    nfs_oracle_release(&o);

    READLINK3args readlink = {0};
    args = args_of(buf, nfs3_call_readlink(buf, sizeof buf, &client, 55, fh), 0, 5, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_READLINK3args", args, len, &readlink));
    assert_int_equal(readlink.symlink.data.data_len, 28);
    nfs_oracle_release(&o);

    FSSTAT3args fsstat = {0};
    args = args_of(buf, nfs3_call_fsstat(buf, sizeof buf, &client, 55, fh), 0, 18, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_FSSTAT3args", args, len, &fsstat));
    nfs_oracle_release(&o);

    PATHCONF3args pathconf = {0};
    args = args_of(buf, nfs3_call_pathconf(buf, sizeof buf, &client, 55, fh), 0, 20, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_PATHCONF3args", args, len, &pathconf));
    nfs_oracle_release(&o);

    READDIR3args list = {0};
    args =
        args_of(buf, nfs3_call_readdir(buf, sizeof buf, &client, 55, fh, 5, 6, 1000), 0, 16, &len);
    assert_true(nfs_oracle_decode(&o, "zdr_READDIR3args", args, len, &list));
    assert_int_equal(list.cookie, 5);
    assert_int_equal(list.count, 1000);
    nfs_oracle_release(&o);
}

/* READDIR's results of two entries with or without the directory's attributes. */
static size_t put_listing(uint8_t *buf, size_t size, bool attributes)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_put_u32(&w, 0);
    rpc_put_u32(&w, attributes);
    for (int i = 0; i < 21 && attributes; i++)
        rpc_put_u32(&w, 7);
    rpc_put_u64(&w, 99); /* verifier */
    for (uint64_t i = 1; i <= 2; i++) {
        rpc_put_u32(&w, 1);
        rpc_put_u64(&w, 1000 + i);
        rpc_put_opaque(&w, i == 1 ? "." : "name5", i == 1 ? 1 : 5);
        rpc_put_u64(&w, i * 512);
    }
    rpc_put_u32(&w, 0);
    rpc_put_u32(&w, 1); /* the end */
    return rpc_writer_finish(&w, 0) - RPC_RECORD_MARK_BYTES;
}

static void listings_are_walked(void **state)
{
    uint8_t buf[400];
    struct nfs3_entries entries;
    struct rpc_slice name;

    (void)state;
    for (int attributes = 0; attributes < 2; attributes++) {
        size_t len = put_listing(buf, sizeof buf, attributes);
        const uint8_t *results = buf + RPC_RECORD_MARK_BYTES;

        assert_int_equal(nfs3_entries_begin(&entries, results, len), RPC_PARSE_OK);
        assert_int_equal(entries.verifier, 99);
        assert_int_equal(nfs3_entries_next(&entries, &name), RPC_PARSE_OK);
        assert_memory_equal(name.data, ".", name.len);
        assert_int_equal(nfs3_entries_next(&entries, &name), RPC_PARSE_OK);
        assert_int_equal(name.len, 5);
        assert_memory_equal(name.data, "name5", 5);
        assert_int_equal(entries.cookie, 1024);
        assert_int_equal(nfs3_entries_next(&entries, &name), RPC_PARSE_NOT_EXPECTED);
        /* Cut anywhere before the word that says that there are no more, it is not whole. */
        for (size_t cut = 0; cut < len - 4; cut++) {
            enum rpc_parse result = nfs3_entries_begin(&entries, results, cut);
            while (result == RPC_PARSE_OK)
                result = nfs3_entries_next(&entries, &name);
            assert_int_equal(result, RPC_PARSE_NEED_MORE);
        }
    }
    rpc_store_u32(buf + 8, 2); /* attributes: neither there nor not */
    assert_int_equal(nfs3_entries_begin(&entries, buf + 4, 300), RPC_PARSE_GARBAGE);
    rpc_store_u32(buf + 4, NFS3_STATUS_ACCES);
    assert_int_equal(nfs3_entries_begin(&entries, buf + 4, 300), RPC_PARSE_GARBAGE);
}

static void written_creates_and_writes(void **state)
{
    (void)state;
    const struct rpc_slice fh = {(const uint8_t *)handle_bytes, 28};
    uint8_t buf[NFS3_CALL_MAX_BYTES];
    struct nfs_oracle o;
    const uint8_t *args;
    size_t len, call_bytes;

    for (int truncate = 0; truncate < 2; truncate++) {
        CREATE3args create = {0};
        args =
            args_of(buf, nfs3_call_create(buf, sizeof buf, &client, 55, fh, "new", 0644, truncate),
                    0, 8, &len);
        assert_true(nfs_oracle_decode(&o, "zdr_CREATE3args", args, len, &create));
        assert_string_equal(create.where.name, "new");
        assert_int_equal(create.how.mode, UNCHECKED);
        assert_int_equal(create.how.createhow3_u.obj_attributes.mode.set_it, 1);
        assert_int_equal(create.how.createhow3_u.obj_attributes.size.set_it, truncate);
        nfs_oracle_release(&o);
    }
    for (uint32_t count = 0; count < 9; count++) {
        WRITE3args write = {0};
        uint32_t padded = (count + 3) / 4 * 4;
        call_bytes = nfs3_call_write(buf, sizeof buf, &client, 55, fh, 10, count, NFS3_DATA_SYNC);
        args = args_of(buf, call_bytes, padded, 7, &len);
        memcpy(buf + call_bytes, "datadata\0\0\0", padded);
        assert_true(nfs_oracle_decode(&o, "zdr_WRITE3args", args, len + padded, &write));
        assert_int_equal(write.offset, 10);
        assert_int_equal(write.count, count);
        assert_int_equal(write.stable, DATA_SYNC);
        assert_int_equal(write.data.data_len, count);
        nfs_oracle_release(&o);
    }
}

static void what_does_not_fit_is_not_written(void **state)
{
    (void)state;
    const struct rpc_slice fh = {(const uint8_t *)handle_bytes, 28};
    const struct rpc_slice long_fh = {(const uint8_t *)handle_bytes, 65};
    uint8_t buf[NFS3_CALL_MAX_BYTES];
    char name[257];
    size_t need = nfs3_call_lookup(buf, sizeof buf, &client, 55, fh, "file");

    for (size_t size = 0; size < need; size++) {
        uint8_t *small = malloc(size ? size : 1);
        assert_int_equal(nfs3_call_lookup(small, size, &client, 55, fh, "file"), 0);
        free(small);
    }
    memset(name, 'n', sizeof name);
    name[256] = 0;
    assert_int_equal(nfs3_call_lookup(buf, sizeof buf, &client, 55, fh, name), 0);
    name[255] = 0;
    assert_true(nfs3_call_lookup(buf, sizeof buf, &client, 55, fh, name) > 0);
    assert_int_equal(nfs3_call_getattr(buf, sizeof buf, &client, 55, long_fh), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_procedures_arguments_are_seen),
        cmocka_unit_test(every_truncation_needs_more_or_is_enough),
        cmocka_unit_test(overlong_parts_are_garbage),
        cmocka_unit_test(classes_and_idempotence),
        cmocka_unit_test(jukebox_has_every_procedures_shape),
        cmocka_unit_test(written_calls_are_decoded_by_libnfs),
        cmocka_unit_test(written_calls_on_names_are_decoded_by_libnfs),
        cmocka_unit_test(written_calls_on_objects_are_decoded_by_libnfs),
        cmocka_unit_test(listings_are_walked),
        cmocka_unit_test(written_creates_and_writes),
        cmocka_unit_test(what_does_not_fit_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
