/* SPDX-License-Identifier: Apache-2.0 */
/* The table of calls in flight against a plain list, and the checksum that tells retransmissions.
 */
#include "proxy/nfs/xid_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENTRIES 2000

static uint64_t random_state;

static uint32_t random_number(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static void seed(void)
{
    const char *wanted = getenv("SPILLWAY_SEED");

    random_state = wanted != NULL ? strtoull(wanted, NULL, 0) : 20261130;
    printf("SPILLWAY_SEED=%llu\n", (unsigned long long)random_state);
}

static void test_same_xid_is_found_oldest_first(void **state)
{
    struct nfs_xid_table table;
    struct nfs_xid_entry entries[5] = {{.xid = 7}, {.xid = 7}, {.xid = 8}, {.xid = 7}, {.xid = 9}};

    (void)state;
    nfs_xid_table_init(&table, 12345);
    for (unsigned i = 0; i < 5; i++)
        nfs_xid_insert(&table, &entries[i]);
    assert_ptr_equal(nfs_xid_first(&table, 7), &entries[0]);
    assert_ptr_equal(nfs_xid_next(&entries[0]), &entries[1]);
    assert_ptr_equal(nfs_xid_next(&entries[1]), &entries[3]);
    assert_null(nfs_xid_next(&entries[3]));
    nfs_xid_remove(&table, &entries[0]);
    assert_ptr_equal(nfs_xid_first(&table, 7), &entries[1]);
    nfs_xid_remove(&table, &entries[3]);
    assert_null(nfs_xid_next(&entries[1]));
    assert_ptr_equal(nfs_xid_first(&table, 9), &entries[4]);
    assert_null(nfs_xid_first(&table, 10));
    assert_int_equal(table.count, 3);
    nfs_xid_table_fini(&table);
}

/* The oldest of the list with this xid, from `from` on. */
static struct nfs_xid_entry *oldest(struct nfs_xid_entry **list, unsigned count, unsigned from,
                                    uint32_t xid)
{
    for (unsigned i = from; i < count; i++) {
        if (list[i]->xid == xid)
            return list[i];
    }
    return NULL;
}

/* Few different xids, so that many are there several times; growth on the way. */
static void test_behaves_like_a_list(void **state)
{
    static struct nfs_xid_entry entries[ENTRIES];
    static struct nfs_xid_entry *list[ENTRIES];
    struct nfs_xid_table table;
    unsigned count = 0;
    unsigned used = 0;

    (void)state;
    seed();
    nfs_xid_table_init(&table, random_number(UINT32_MAX));
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t xid = random_number(700);
        if (used < ENTRIES && random_number(3) > 0) {
            entries[used].xid = xid;
            list[count++] = &entries[used];
            nfs_xid_insert(&table, &entries[used++]);
        } else if (count > 0) {
            unsigned gone = random_number(count);
            nfs_xid_remove(&table, list[gone]);
            memmove(list + gone, list + gone + 1, (count - gone - 1) * sizeof(void *));
            count--;
        }
        assert_int_equal(table.count, count);
        unsigned from = 0;
        struct nfs_xid_entry *entry = nfs_xid_first(&table, xid);
        struct nfs_xid_entry *wanted = oldest(list, count, from, xid);
        while (wanted != NULL) {
            assert_ptr_equal(entry, wanted);
            while (list[from] != wanted)
                from++;
            wanted = oldest(list, count, ++from, xid);
            entry = nfs_xid_next(entry);
        }
        assert_null(entry);
    }
    nfs_xid_table_fini(&table);
}

static void test_checksum_sees_every_byte_of_the_beginning(void **state)
{
    uint8_t call[300];

    (void)state;
    for (unsigned i = 0; i < sizeof(call); i++)
        call[i] = (uint8_t)(i * 7);
    for (size_t length = 1; length <= 256; length += 17) {
        uint64_t before = nfs_xid_checksum(call, length);
        for (size_t i = 0; i < length; i++) {
            call[i] ^= 0x10;
            assert_true(nfs_xid_checksum(call, length) != before);
            call[i] ^= 0x10;
        }
        assert_true(nfs_xid_checksum(call, length) == before);
        assert_true(nfs_xid_checksum(call, length - 1) != before);
    }
}

static void test_checksum_of_a_prefix_is_that_of_the_whole(void **state)
{
    uint8_t call[1000];

    (void)state;
    memset(call, 0xa5, sizeof(call));
    uint64_t whole = nfs_xid_checksum(call, sizeof(call));
    assert_true(nfs_xid_checksum(call, 256) == whole);
    call[256] = 0;
    assert_true(nfs_xid_checksum(call, sizeof(call)) == whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_xid_is_found_oldest_first),
        cmocka_unit_test(test_behaves_like_a_list),
        cmocka_unit_test(test_checksum_sees_every_byte_of_the_beginning),
        cmocka_unit_test(test_checksum_of_a_prefix_is_that_of_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
