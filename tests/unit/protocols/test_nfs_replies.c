/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 results: what our server writes is what libnfs decodes, and what the peek sees;
 * truncations; results as a full server encodes them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "protocols/rpc/nfs3_server.h"
#include "tests/unit/protocols/nfs_oracle.h"
#include "tests/unit/protocols/rpc_test.h"

#define XID 1234

static const struct nfs3_attributes file_attributes = {
    .type = NFS3_TYPE_REG,
    .mode = 0644,
    .nlink = 1,
    .uid = 10,
    .gid = 20,
    .size_bytes = 5000000000u,
    .fsid = 7,
    .fileid = 99,
    .time_ns = 1700000000000000005u,
};
static const struct nfs3_attributes root_attributes = {
    .type = NFS3_TYPE_DIR, .mode = 0755, .nlink = 2, .size_bytes = 512, .fsid = 7, .fileid = 1};
static const struct nfs3_service service = {
    .read_max_bytes = 1048576,
    .write_max_bytes = 524288,
    .directory_bytes = 32768,
    .file_max_bytes = 1ull << 40,
    .total_bytes = 1ull << 33,
    .free_bytes = 1ull << 32,
    .total_files = 100,
    .free_files = 50,
};

struct results {
    uint8_t buf[8192];
    const uint8_t *at;
    size_t len;
};

/* Takes the record of `bytes` in r->buf apart: what is left is the results. */
static void take(struct results *r, size_t bytes, uint32_t trailing)
{
    struct rpc_reply reply;

    assert_true(bytes > 4);
    assert_int_equal(test_word_at(r->buf), 0x80000000u | (bytes - 4 + trailing));
    assert_int_equal(rpc_parse_reply(r->buf + 4, bytes - 4, &reply), RPC_PARSE_OK);
    assert_int_equal(reply.xid, XID);
    r->at = r->buf + 4 + reply.body_offset;
    r->len = bytes - 4 - reply.body_offset + trailing;
}

static void decode(struct nfs_oracle *o, const char *routine, const struct results *r, void *object)
{
    if (!nfs_oracle_decode(o, routine, r->at, r->len, object))
        fail_msg("%s can't decode our reply", routine);
}

/* Every prefix is NEED_MORE until it is enough, and never read past. */
static void peek_prefixes(uint32_t proc, const struct results *r, struct nfs3_reply *out)
{
    bool enough = false;

    for (size_t len = 0; len <= r->len; len++) {
        uint8_t *copy = test_exact_copy(r->at, len);
        enum rpc_parse result = nfs3_parse_reply(proc, copy, len, out);
        free(copy);
        if (enough || result == RPC_PARSE_OK) {
            assert_int_equal(result, RPC_PARSE_OK);
            enough = true;
        } else {
            assert_int_equal(result, RPC_PARSE_NEED_MORE);
        }
    }
    assert_true(enough);
    assert_int_equal(nfs3_parse_reply(proc, r->at, r->len, out), RPC_PARSE_OK);
    assert_int_equal(out->status, 0);
}

static void check_attributes(const fattr3 *a, const struct nfs3_attributes *want)
{
    assert_int_equal(a->type, want->type);
    assert_int_equal(a->mode, want->mode);
    assert_int_equal(a->nlink, want->nlink);
    assert_int_equal(a->uid, want->uid);
    assert_int_equal(a->gid, want->gid);
    assert_true(a->size == want->size_bytes);
    assert_true(a->fsid == want->fsid);
    assert_true(a->fileid == want->fileid);
    assert_int_equal(a->mtime.seconds, want->time_ns / 1000000000);
    assert_int_equal(a->mtime.nseconds, want->time_ns % 1000000000);
}

static void check_post_op(const post_op_attr *a, const struct nfs3_attributes *want)
{
    assert_int_equal(a->attributes_follow, want != NULL);
    if (want)
        check_attributes(&a->post_op_attr_u.attributes, want);
}

static void getattr_and_wcc(void **state)
{
    (void)state;
    struct results r;
    struct nfs_oracle o;
    struct nfs3_reply peek;
    GETATTR3res getattr = {0};
    SETATTR3res setattr = {0};

    take(&r, nfs3_reply_getattr(r.buf, sizeof r.buf, XID, &file_attributes), 0);
    decode(&o, "zdr_GETATTR3res", &r, &getattr);
    check_attributes(&getattr.GETATTR3res_u.resok.obj_attributes, &file_attributes);
    nfs_oracle_release(&o);
    peek_prefixes(NFS3_PROC_GETATTR, &r, &peek);
    assert_true(peek.size_bytes == 5000000000u);

    take(&r, nfs3_reply_wcc(r.buf, sizeof r.buf, XID, &file_attributes), 0);
    decode(&o, "zdr_SETATTR3res", &r, &setattr);
    check_post_op(&setattr.SETATTR3res_u.resok.obj_wcc.after, &file_attributes);
    nfs_oracle_release(&o);
    take(&r, nfs3_reply_wcc(r.buf, sizeof r.buf, XID, NULL), 0);
    decode(&o, "zdr_REMOVE3res", &r, &(REMOVE3res){0});
    nfs_oracle_release(&o);
}

static void lookup_create_access(void **state)
{
    (void)state;
    const struct rpc_slice fh = {(const uint8_t *)"a-file-handle", 13};
    struct results r;
    struct nfs_oracle o;
    struct nfs3_reply peek;
    LOOKUP3res lookup = {0};
    CREATE3res create = {0};
    ACCESS3res access = {0};

    take(&r, nfs3_reply_lookup(r.buf, sizeof r.buf, XID, fh, &file_attributes, &root_attributes),
         0);
    decode(&o, "zdr_LOOKUP3res", &r, &lookup);
    assert_int_equal(lookup.LOOKUP3res_u.resok.object.data.data_len, 13);
    check_post_op(&lookup.LOOKUP3res_u.resok.obj_attributes, &file_attributes);
    check_post_op(&lookup.LOOKUP3res_u.resok.dir_attributes, &root_attributes);
    nfs_oracle_release(&o);
    peek_prefixes(NFS3_PROC_LOOKUP, &r, &peek);
    assert_int_equal(peek.handle.len, 13);
    assert_memory_equal(peek.handle.data, "a-file-handle", 13);
    assert_true(peek.size_bytes == 5000000000u);

    take(&r, nfs3_reply_create(r.buf, sizeof r.buf, XID, fh, &file_attributes, NULL), 0);
    decode(&o, "zdr_CREATE3res", &r, &create);
    assert_int_equal(create.CREATE3res_u.resok.obj.handle_follows, 1);
    check_post_op(&create.CREATE3res_u.resok.obj_attributes, &file_attributes);
    nfs_oracle_release(&o);
    peek_prefixes(NFS3_PROC_CREATE, &r, &peek);
    assert_int_equal(peek.handle.len, 13);

    take(&r, nfs3_reply_create(r.buf, sizeof r.buf, XID, (struct rpc_slice){NULL, 0}, NULL, NULL),
         0);
    decode(&o, "zdr_MKDIR3res", &r, &create);
    nfs_oracle_release(&o);
    peek_prefixes(NFS3_PROC_MKDIR, &r, &peek);
    assert_int_equal(peek.handle.len, 0);

    take(&r, nfs3_reply_access(r.buf, sizeof r.buf, XID, &file_attributes, 0x21), 0);
    decode(&o, "zdr_ACCESS3res", &r, &access);
    assert_int_equal(access.ACCESS3res_u.resok.access, 0x21);
    nfs_oracle_release(&o);
    peek_prefixes(NFS3_PROC_ACCESS, &r, &peek);
    assert_int_equal(peek.access, 0x21);
}

static void read_with_trailing_data(void **state)
{
    (void)state;
    struct results r;
    struct nfs_oracle o;
    struct nfs3_reply peek;

    for (uint32_t count = 0; count < 9; count++) {
        READ3res read = {0};
        uint32_t padded = (count + 3) / 4 * 4;
        size_t header = nfs3_reply_read(r.buf, sizeof r.buf, XID,
                                        count % 2 ? &file_attributes : NULL, count, count == 8);
        take(&r, header, padded);
        memset(r.buf + header, 0, padded);
        memcpy(r.buf + header, "datadata", count);
        decode(&o, "zdr_READ3res", &r, &read);
        READ3resok *ok = &read.READ3res_u.resok;
        assert_int_equal(ok->count, count);
        assert_int_equal(ok->eof, count == 8);
        assert_int_equal(ok->data.data_len, count);
        assert_memory_equal(ok->data.data_val, "datadata", count);
        nfs_oracle_release(&o);
        peek_prefixes(NFS3_PROC_READ, &r, &peek);
        assert_int_equal(peek.count, count);
        assert_int_equal(peek.eof, count == 8);
        assert_int_equal(peek.data_bytes, count);
        assert_int_equal(peek.data_offset + padded, r.len);
    }
}

static void write_and_commit(void **state)
{
    (void)state;
    struct results r;
    struct nfs_oracle o;
    struct nfs3_reply peek;
    WRITE3res write = {0};
    COMMIT3res commit = {0};

    take(&r, nfs3_reply_write(r.buf, sizeof r.buf, XID, &file_attributes, 4096, 2, 0xabcdef), 0);
    decode(&o, "zdr_WRITE3res", &r, &write);
    assert_int_equal(write.WRITE3res_u.resok.count, 4096);
    assert_int_equal(write.WRITE3res_u.resok.committed, FILE_SYNC);
    assert_memory_equal(write.WRITE3res_u.resok.verf, "\0\0\0\0\0\xab\xcd\xef", 8);
    check_post_op(&write.WRITE3res_u.resok.file_wcc.after, &file_attributes);
    nfs_oracle_release(&o);
    peek_prefixes(NFS3_PROC_WRITE, &r, &peek);
    assert_int_equal(peek.count, 4096);

    take(&r, nfs3_reply_commit(r.buf, sizeof r.buf, XID, &file_attributes, 0xabcdef), 0);
    decode(&o, "zdr_COMMIT3res", &r, &commit);
    assert_memory_equal(commit.COMMIT3res_u.resok.verf, "\0\0\0\0\0\xab\xcd\xef", 8);
    nfs_oracle_release(&o);
}

/* A server that gives attributes from before as well. */
static void write_reply_of_a_full_server(void **state)
{
    (void)state;
    struct results r;
    struct nfs3_reply peek;
    WRITE3res write = {0};

    write.WRITE3res_u.resok.file_wcc.before.attributes_follow = 1;
    write.WRITE3res_u.resok.file_wcc.after.attributes_follow = 1;
    write.WRITE3res_u.resok.count = 77;
    r.len = nfs_oracle_encode("zdr_WRITE3res", &write, r.buf, sizeof r.buf);
    r.at = r.buf;
    peek_prefixes(NFS3_PROC_WRITE, &r, &peek);
    assert_int_equal(peek.count, 77);
    r.buf[7] = 2; /* neither true nor false */
    assert_int_equal(nfs3_parse_reply(NFS3_PROC_WRITE, r.at, r.len, &peek), RPC_PARSE_GARBAGE);
}

static void file_system_answers(void **state)
{
    (void)state;
    struct results r;
    struct nfs_oracle o;
    struct nfs3_reply peek;
    FSINFO3res fsinfo = {0};
    FSSTAT3res fsstat = {0};
    PATHCONF3res pathconf = {0};

    take(&r, nfs3_reply_fsinfo(r.buf, sizeof r.buf, XID, &root_attributes, &service), 0);
    decode(&o, "zdr_FSINFO3res", &r, &fsinfo);
    assert_int_equal(fsinfo.FSINFO3res_u.resok.rtmax, 1048576);
    assert_int_equal(fsinfo.FSINFO3res_u.resok.wtmax, 524288);
    assert_int_equal(fsinfo.FSINFO3res_u.resok.dtpref, 32768);
    assert_true(fsinfo.FSINFO3res_u.resok.maxfilesize == 1ull << 40);
    nfs_oracle_release(&o);
    peek_prefixes(NFS3_PROC_FSINFO, &r, &peek);
    assert_int_equal(peek.read_max_bytes, 1048576);
    assert_int_equal(peek.write_max_bytes, 524288);

    take(&r, nfs3_reply_fsstat(r.buf, sizeof r.buf, XID, &root_attributes, &service), 0);
    decode(&o, "zdr_FSSTAT3res", &r, &fsstat);
    assert_true(fsstat.FSSTAT3res_u.resok.tbytes == 1ull << 33);
    assert_true(fsstat.FSSTAT3res_u.resok.abytes == 1ull << 32);
    assert_int_equal(fsstat.FSSTAT3res_u.resok.ffiles, 50);
    nfs_oracle_release(&o);

    take(&r, nfs3_reply_pathconf(r.buf, sizeof r.buf, XID, NULL), 0);
    decode(&o, "zdr_PATHCONF3res", &r, &pathconf);
    assert_int_equal(pathconf.PATHCONF3res_u.resok.name_max, 255);
    assert_int_equal(pathconf.PATHCONF3res_u.resok.case_preserving, 1);
    nfs_oracle_release(&o);

    take(&r, nfs3_reply_null(r.buf, sizeof r.buf, XID), 0);
    assert_int_equal(r.len, 0);
}

static const char *const names[] = {".", "..", "a", "bb", "a-rather-long-name-for-a-file"};
#define LISTING_BYTES 256
#define NAMES         (sizeof names / sizeof names[0])

static void make_entries(struct nfs3_entry *entries)
{
    for (size_t i = 0; i < NAMES; i++) {
        entries[i] = (struct nfs3_entry){.name = names[i],
                                         .cookie = i + 1,
                                         .handle = {(const uint8_t *)"handle", 6},
                                         .attributes = file_attributes};
        entries[i].attributes.fileid = 100 + i;
    }
    entries[1].handle = (struct rpc_slice){NULL, 0};
}

static void append_name(char *got, const char *name)
{
    size_t used = strlen(got);

    assert_true(used + strlen(name) + 1 < LISTING_BYTES);
    snprintf(got + used, LISTING_BYTES - used, "%s/", name);
}

/* Reads one listing reply; appends its names to *got, sets *cookie and *eof. */
static void read_listing(bool plus, const struct results *r, char *got, uint64_t *cookie, bool *eof)
{
    struct nfs_oracle o;

    if (plus) {
        READDIRPLUS3res res = {0};
        decode(&o, "zdr_READDIRPLUS3res", r, &res);
        assert_int_equal(res.status, 0);
        const void *next = res.READDIRPLUS3res_u.resok.reply.entries;
        for (entryplus3 e; nfs_oracle_element(&e, next, sizeof e); next = e.nextentry) {
            append_name(got, e.name);
            *cookie = e.cookie;
            assert_int_equal(e.fileid, 99 + e.cookie);
            assert_int_equal(e.name_handle.handle_follows, e.cookie != 2);
            assert_int_equal(e.name_attributes.attributes_follow, 1);
        }
        *eof = res.READDIRPLUS3res_u.resok.reply.eof;
    } else {
        READDIR3res res = {0};
        decode(&o, "zdr_READDIR3res", r, &res);
        assert_int_equal(res.status, 0);
        const void *next = res.READDIR3res_u.resok.reply.entries;
        for (entry3 e; nfs_oracle_element(&e, next, sizeof e); next = e.nextentry) {
            append_name(got, e.name);
            *cookie = e.cookie;
            assert_int_equal(e.fileid, 99 + e.cookie);
        }
        *eof = res.READDIR3res_u.resok.reply.eof;
    }
    nfs_oracle_release(&o);
}

static void listings_go_on_where_they_stopped(void **state)
{
    (void)state;
    struct nfs3_entry entries[NAMES];
    struct results r;

    make_entries(entries);
    for (int plus = 0; plus < 2; plus++) {
        for (uint32_t count = 300; count < 1200; count += 37) {
            char got[LISTING_BYTES] = "";
            uint64_t cookie = 0;
            bool eof = false;
            while (!eof) {
                take(&r,
                     nfs3_reply_readdir(r.buf, sizeof r.buf, XID, plus, &root_attributes, entries,
                                        NAMES, cookie, count),
                     0);
                assert_true(r.len <= count);
                read_listing(plus, &r, got, &cookie, &eof);
            }
            assert_string_equal(got, "./../a/bb/a-rather-long-name-for-a-file/");
        }
    }
}

static void a_listing_that_fits_nothing_is_too_small(void **state)
{
    (void)state;
    struct nfs3_entry entries[NAMES];
    struct results r;
    struct nfs3_reply peek;

    make_entries(entries);
    take(&r,
         nfs3_reply_readdir(r.buf, sizeof r.buf, XID, true, &root_attributes, entries, NAMES, 0,
                            120),
         0);
    assert_int_equal(nfs3_parse_reply(NFS3_PROC_READDIRPLUS, r.at, r.len, &peek), RPC_PARSE_OK);
    assert_int_equal(peek.status, NFS3_STATUS_TOOSMALL);
    /* the buffer is the limit as well */
    for (size_t size = 0; size < 700; size++) {
        uint8_t *small = malloc(size ? size : 1);
        size_t bytes =
            nfs3_reply_readdir(small, size, XID, true, &root_attributes, entries, NAMES, 0, 100000);
        assert_true(bytes <= size);
        free(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(getattr_and_wcc),
        cmocka_unit_test(lookup_create_access),
        cmocka_unit_test(read_with_trailing_data),
        cmocka_unit_test(write_and_commit),
        cmocka_unit_test(write_reply_of_a_full_server),
        cmocka_unit_test(file_system_answers),
        cmocka_unit_test(listings_go_on_where_they_stopped),
        cmocka_unit_test(a_listing_that_fits_nothing_is_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
