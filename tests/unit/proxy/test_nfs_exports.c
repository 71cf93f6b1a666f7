/* SPDX-License-Identifier: Apache-2.0 */
/* Exports learnt from MOUNT: by handle in the formats that are known, by client otherwise, within
 * bounds. */
#include "proxy/nfs/exports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int pool_a, pool_b;

static const struct sockaddr *client(const char *address, uint16_t port)
{
    static struct sockaddr_in v4;

    memset(&v4, 0, sizeof(v4));
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    assert_int_equal(inet_pton(AF_INET, address, &v4.sin_addr), 1);
    return (const struct sockaddr *)&v4;
}

#define ONE client("192.0.2.1", 700)
#define TWO client("192.0.2.2", 700)

static void assert_path(const char *found, const char *wanted)
{
    assert_non_null(found);
    assert_string_equal(found, wanted);
}

/* Linux: version, authentication, fsid type, file id type; here fsid type 1, four bytes. */
static const uint8_t linux_root[] = {1, 0, 1, 0, 0, 0, 0, 42};
static const uint8_t linux_file[] = {1, 0, 1, 0x81, 0, 0, 0, 42, 9, 9, 9, 9, 1, 2, 3, 4};
static const uint8_t linux_other[] = {1, 0, 1, 0x81, 0, 0, 0, 43, 9, 9, 9, 9, 1, 2, 3, 4};
/* Ganesha: version, flags, export id, length, opaque. */
static const uint8_t ganesha_root[] = {0x43, 0, 7, 0, 4, 1, 2, 3, 4};
static const uint8_t ganesha_file[] = {0x43, 0, 7, 0, 8, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t ganesha_other[] = {0x43, 0, 8, 0, 8, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t opaque_root[] = {0x77, 1, 2, 3};
static const uint8_t opaque_file[] = {0x77, 1, 2, 4};

static void test_a_handle_names_its_export(void **state)
{
    struct nfs_exports *exports = nfs_exports_create();

    (void)state;
    nfs_exports_mounted(exports, &pool_a, ONE, "/linux", linux_root, sizeof(linux_root));
    nfs_exports_mounted(exports, &pool_a, ONE, "/ganesha", ganesha_root, sizeof(ganesha_root));
    nfs_exports_mounted(exports, &pool_a, ONE, "/opaque", opaque_root, sizeof(opaque_root));
    /* For a client that never mounted anything: the handle alone says it. */
    assert_path(nfs_exports_find(exports, &pool_a, TWO, linux_file, sizeof(linux_file)), "/linux");
    assert_path(nfs_exports_find(exports, &pool_a, TWO, ganesha_file, sizeof(ganesha_file)),
                "/ganesha");
    assert_path(nfs_exports_find(exports, &pool_a, TWO, opaque_root, sizeof(opaque_root)),
                "/opaque");
    assert_null(nfs_exports_find(exports, &pool_a, TWO, linux_other, sizeof(linux_other)));
    assert_null(nfs_exports_find(exports, &pool_a, TWO, ganesha_other, sizeof(ganesha_other)));
    assert_null(nfs_exports_find(exports, &pool_a, TWO, opaque_file, sizeof(opaque_file)));
    /* Another pool's servers have other handles. */
    assert_null(nfs_exports_find(exports, &pool_b, TWO, linux_file, sizeof(linux_file)));
    nfs_exports_destroy(exports);
}

static void test_a_single_mount_decides_for_its_client(void **state)
{
    struct nfs_exports *exports = nfs_exports_create();

    (void)state;
    nfs_exports_mounted(exports, &pool_a, ONE, "/a", opaque_root, sizeof(opaque_root));
    assert_path(nfs_exports_find(exports, &pool_a, client("192.0.2.1", 999), opaque_file,
                                 sizeof(opaque_file)),
                "/a");
    assert_path(nfs_exports_find(exports, &pool_a, ONE, NULL, 0), "/a");
    assert_null(nfs_exports_find(exports, &pool_a, TWO, opaque_file, sizeof(opaque_file)));
    nfs_exports_mounted(exports, &pool_a, ONE, "/a", opaque_root, sizeof(opaque_root));
    assert_path(nfs_exports_find(exports, &pool_a, ONE, NULL, 0), "/a");
    nfs_exports_mounted(exports, &pool_a, ONE, "/b", linux_root, sizeof(linux_root));
    assert_null(nfs_exports_find(exports, &pool_a, ONE, NULL, 0));
    nfs_exports_unmounted(exports, &pool_a, ONE, "/a/");
    assert_path(nfs_exports_find(exports, &pool_a, ONE, NULL, 0), "/b");
    nfs_exports_unmounted(exports, &pool_a, ONE, NULL);
    assert_null(nfs_exports_find(exports, &pool_a, ONE, NULL, 0));
    nfs_exports_destroy(exports);
}

static void test_a_folder_of_an_export_is_the_export(void **state)
{
    struct nfs_exports *exports = nfs_exports_create();

    (void)state;
    nfs_exports_mounted(exports, &pool_a, ONE, "/data/home", linux_file, sizeof(linux_file));
    nfs_exports_mounted(exports, &pool_a, ONE, "/data/", linux_root, sizeof(linux_root));
    assert_path(nfs_exports_find(exports, &pool_a, TWO, linux_file, sizeof(linux_file)), "/data");
    nfs_exports_mounted(exports, &pool_a, ONE, "/data/home", linux_file, sizeof(linux_file));
    assert_path(nfs_exports_find(exports, &pool_a, TWO, linux_root, sizeof(linux_root)), "/data");
    /* The server's administrator gave the number to something else. */
    nfs_exports_mounted(exports, &pool_a, ONE, "/database", linux_root, sizeof(linux_root));
    assert_path(nfs_exports_find(exports, &pool_a, TWO, linux_root, sizeof(linux_root)),
                "/database");
    nfs_exports_destroy(exports);
}

static void test_more_mounts_than_are_remembered_decide_nothing(void **state)
{
    struct nfs_exports *exports = nfs_exports_create();
    char path[16];

    (void)state;
    for (unsigned i = 0; i < NFS_EXPORT_PER_CLIENT + 1; i++) {
        snprintf(path, sizeof(path), "/e%u", i);
        nfs_exports_mounted(exports, &pool_a, ONE, path, NULL, 0);
    }
    for (unsigned i = 0; i < NFS_EXPORT_PER_CLIENT; i++) {
        snprintf(path, sizeof(path), "/e%u", i);
        nfs_exports_unmounted(exports, &pool_a, ONE, path);
        assert_null(nfs_exports_find(exports, &pool_a, ONE, NULL, 0));
    }
    nfs_exports_destroy(exports);
}

static void test_tables_are_bounded(void **state)
{
    struct nfs_exports *exports = nfs_exports_create();
    char text[32];

    (void)state;
    for (uint32_t i = 0; i < NFS_EXPORT_CLIENTS + 1000; i++) {
        struct in_addr address = {.s_addr = htonl(0x0a000000 + i)};
        uint8_t handle[8] = {1, 0, 1, 0};
        memcpy(handle + 4, &i, 4);
        snprintf(text, sizeof(text), "/p%u", i % (NFS_EXPORT_PATHS + 10));
        nfs_exports_mounted(exports, &pool_a, client(inet_ntoa(address), 1), text, handle,
                            sizeof(handle));
    }
    uint32_t first = 0;
    uint8_t handle[8] = {1, 0, 1, 0};
    memcpy(handle + 4, &first, 4);
    assert_null(nfs_exports_find(exports, &pool_a, ONE, handle, sizeof(handle)));
    assert_null(nfs_exports_find(exports, &pool_a, client("10.0.0.0", 1), NULL, 0));
    assert_path(nfs_exports_find(exports, &pool_a, client("10.0.67.231", 1), NULL, 0), "/p959");
    nfs_exports_destroy(exports);
}

static void test_handle_keys_never_read_past_the_end(void **state)
{
    uint8_t key[NFS_EXPORT_KEY_BYTES];
    uint8_t handle[128];

    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned type = 0; type < 10; type++) {
            memset(handle, (int)type, sizeof(handle));
            handle[0] = (uint8_t)first;
            for (size_t length = 0; length <= sizeof(handle); length++) {
                /* A copy of the right size, so that a sanitizer sees a step too far. */
                uint8_t *exact = test_malloc(length + 1);
                memcpy(exact, handle, length);
                size_t bytes = nfs_exports_handle_key(exact, length, key);
                assert_in_range(bytes, length > 0 ? 1 : 0, NFS_EXPORT_KEY_BYTES);
                test_free(exact);
            }
        }
    }
}

static void test_the_shared_table_lives_as_long_as_its_users(void **state)
{
    struct nfs_exports *one = nfs_exports_acquire();
    struct nfs_exports *two = nfs_exports_acquire();

    (void)state;
    assert_ptr_equal(one, two);
    nfs_exports_release(one);
    nfs_exports_mounted(two, &pool_a, ONE, "/a", NULL, 0);
    assert_path(nfs_exports_find(two, &pool_a, ONE, NULL, 0), "/a");
    nfs_exports_release(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_handle_names_its_export),
        cmocka_unit_test(test_a_single_mount_decides_for_its_client),
        cmocka_unit_test(test_a_folder_of_an_export_is_the_export),
        cmocka_unit_test(test_more_mounts_than_are_remembered_decide_nothing),
        cmocka_unit_test(test_tables_are_bounded),
        cmocka_unit_test(test_handle_keys_never_read_past_the_end),
        cmocka_unit_test(test_the_shared_table_lives_as_long_as_its_users),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
