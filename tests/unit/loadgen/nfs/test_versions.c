/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of blocks: what may be found after WRITEs of every fate, alone and overlapping; and a
 * random history against a model server that carries WRITEs out whenever it likes while they are in
 * flight: no alarm without a cause, and every damage is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/client/nfs/nfs_versions.h"

#define SECOND 1000000000ULL
#define SIZE   (10 * FILESET_BLOCK_BYTES + 100)

static struct fileset set;
static struct nfs_versions *versions;
static char problem[FILESET_PROBLEM_BYTES];
static uint64_t now_ns = 100 * SECOND;

static int begin(void **state)
{
    struct fileset_spec spec = fileset_defaults;

    (void)state;
    spec.files = 3000;
    spec.size = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = SIZE};
    assert_int_equal(fileset_init(&set, &spec, problem), 0);
    versions = nfs_versions_create(&set);
    nfs_versions_fresh(versions);
    return 0;
}

static int end(void **state)
{
    (void)state;
    nfs_versions_destroy(versions);
    return 0;
}

static struct nfs_extent block(uint64_t number)
{
    return (struct nfs_extent){
        .file = 1, .offset = number * FILESET_BLOCK_BYTES, .bytes = FILESET_BLOCK_BYTES};
}

static struct nfs_extent write_to(uint64_t number)
{
    struct nfs_extent extent = block(number);

    nfs_versions_write_begin(versions, &extent);
    return extent;
}

static void ends(const struct nfs_extent *write, enum nfs_fate fate)
{
    nfs_versions_write_end(versions, write, fate, fate == NFS_DONE ? write->bytes : 0, true,
                           now_ns);
}

/* A READ of one block now finds this version. */
static enum nfs_verdict finds(uint64_t number, uint32_t version)
{
    uint8_t data[FILESET_BLOCK_BYTES];
    struct nfs_extent read = block(number);

    nfs_versions_read_begin(versions, &read);
    fileset_content(&set, 1, version, read.offset, data, read.bytes);
    return nfs_versions_read_end(versions, &read, data, read.bytes, now_ns, problem);
}

static void a_write_that_is_done_is_all_there_is(void **state)
{
    (void)state;
    assert_int_equal(finds(2, 0), NFS_VERIFIED);
    assert_int_equal(finds(2, 1), NFS_CORRUPT);
    struct nfs_extent write = write_to(2);

    assert_int_equal(write.version, 1);
    assert_int_equal(finds(2, 0), NFS_UNVERIFIED);
    ends(&write, NFS_DONE);
    assert_int_equal(finds(2, 0), NFS_CORRUPT);
    assert_int_equal(finds(2, 1), NFS_VERIFIED);
    assert_int_equal(finds(3, 0), NFS_VERIFIED);
    write = write_to(2);
    assert_int_equal(write.version, 2);
    ends(&write, NFS_NOT_DONE);
    assert_int_equal(finds(2, 2), NFS_CORRUPT);
    assert_int_equal(finds(2, 1), NFS_VERIFIED);
    write = write_to(2);
    assert_int_equal(write.version, 3); /* 2 is never used again */
    ends(&write, NFS_DONE);
    assert_int_equal(finds(2, 3), NFS_VERIFIED);
}

static void of_two_in_flight_either_may_be_last(void **state)
{
    (void)state;
    struct nfs_extent first = write_to(0);
    struct nfs_extent second = write_to(0);

    ends(&second, NFS_DONE);
    ends(&first, NFS_DONE);
    assert_int_equal(finds(0, 0), NFS_CORRUPT);
    assert_int_equal(finds(0, 1), NFS_VERIFIED); /* and from now on it is that one */
    assert_int_equal(finds(0, 2), NFS_CORRUPT);
    first = write_to(1);
    second = write_to(1);
    ends(&first, NFS_DONE);
    ends(&second, NFS_DONE);
    assert_int_equal(finds(1, 2), NFS_VERIFIED);
    assert_int_equal(finds(1, 1), NFS_CORRUPT);
    first = write_to(3);
    second = write_to(3);
    ends(&first, NFS_NOT_DONE);
    ends(&second, NFS_DONE);
    assert_int_equal(finds(3, 1), NFS_CORRUPT);
    assert_int_equal(finds(3, 2), NFS_VERIFIED);
}

static void an_unknown_outcome_leaves_both(void **state)
{
    (void)state;
    struct nfs_extent lost = write_to(4);

    ends(&lost, NFS_UNKNOWN);
    assert_int_equal(finds(4, 0), NFS_VERIFIED);
    assert_int_equal(finds(4, 1), NFS_VERIFIED); /* it came late */
    struct nfs_extent next = write_to(4);

    ends(&next, NFS_DONE);
    assert_int_equal(finds(4, 2), NFS_VERIFIED);
    assert_int_equal(finds(4, 1), NFS_VERIFIED); /* it came even later */
    assert_int_equal(finds(4, 3), NFS_CORRUPT);
    now_ns += NFS_VERSIONS_DOUBT_NS + 2 * SECOND;
    assert_int_equal(finds(4, 2), NFS_VERIFIED);
    assert_int_equal(finds(4, 1), NFS_CORRUPT);
}

static void a_read_that_overlaps_is_not_judged(void **state)
{
    uint8_t data[2 * FILESET_BLOCK_BYTES];
    struct nfs_extent read = block(5);

    (void)state;
    read.bytes = sizeof(data);
    /* The WRITE ended before the READ did, but was in flight when that began. */
    struct nfs_extent write = write_to(5);

    nfs_versions_read_begin(versions, &read);
    ends(&write, NFS_DONE);
    fileset_content(&set, 1, 0, read.offset, data, sizeof(data));
    assert_int_equal(nfs_versions_read_end(versions, &read, data, sizeof(data), now_ns, problem),
                     NFS_UNVERIFIED);
    /* It began and ended within the READ. */
    nfs_versions_read_begin(versions, &read);
    write = write_to(5);
    ends(&write, NFS_DONE);
    assert_int_equal(nfs_versions_read_end(versions, &read, data, sizeof(data), now_ns, problem),
                     NFS_UNVERIFIED);
    /* The other block is judged all the same. */
    nfs_versions_read_begin(versions, &read);
    write = write_to(5);
    data[FILESET_BLOCK_BYTES + 77] ^= 1;
    assert_int_equal(nfs_versions_read_end(versions, &read, data, sizeof(data), now_ns, problem),
                     NFS_CORRUPT);
    ends(&write, NFS_DONE);
}

static void what_was_not_committed_may_be_lost_with_the_server(void **state)
{
    struct nfs_extent commit = {.file = 1};

    (void)state;
    struct nfs_extent write = write_to(6);

    nfs_versions_write_end(versions, &write, NFS_DONE, write.bytes, false, now_ns);
    assert_int_equal(finds(6, 0), NFS_CORRUPT);
    nfs_versions_commit_begin(versions, &commit);
    nfs_versions_commit_end(versions, &commit);
    struct nfs_extent later = write_to(6);

    nfs_versions_write_end(versions, &later, NFS_DONE, later.bytes, false, now_ns);
    nfs_versions_server_lost(versions);
    assert_int_equal(finds(6, 0), NFS_CORRUPT);
    assert_int_equal(finds(6, 1), NFS_VERIFIED);
    assert_int_equal(finds(6, 2), NFS_CORRUPT); /* it was found gone */
    /* A COMMIT that began before the WRITE ended says nothing of it. */
    write = write_to(7);
    nfs_versions_commit_begin(versions, &commit);
    nfs_versions_write_end(versions, &write, NFS_DONE, write.bytes, false, now_ns);
    nfs_versions_commit_end(versions, &commit);
    nfs_versions_server_lost(versions);
    assert_int_equal(finds(7, 0), NFS_VERIFIED);
}

static void a_short_write_leaves_a_block_without_version(void **state)
{
    struct nfs_extent write = block(8);

    (void)state;
    write.bytes = SIZE - (uint32_t)write.offset; /* 8, 9 and the stump */
    nfs_versions_write_begin(versions, &write);
    nfs_versions_write_end(versions, &write, NFS_DONE, FILESET_BLOCK_BYTES + 10, true, now_ns);
    assert_int_equal(finds(8, 1), NFS_VERIFIED);
    assert_int_equal(finds(9, 0), NFS_UNVERIFIED);
    write = write_to(9);
    ends(&write, NFS_DONE);
    assert_int_equal(finds(9, 2), NFS_VERIFIED);
    struct nfs_extent stump = block(10);
    uint8_t data[100];

    stump.bytes = 100;
    nfs_versions_read_begin(versions, &stump);
    fileset_content(&set, 1, 0, stump.offset, data, 100);
    assert_int_equal(nfs_versions_read_end(versions, &stump, data, 100, now_ns, problem),
                     NFS_VERIFIED);
    nfs_versions_write_begin(versions, &stump);
    nfs_versions_write_end(versions, &stump, NFS_DONE, 100, true, now_ns);
    fileset_content(&set, 1, stump.version, stump.offset, data, 100);
    nfs_versions_read_begin(versions, &stump);
    assert_int_equal(nfs_versions_read_end(versions, &stump, data, 100, now_ns, problem),
                     NFS_VERIFIED);
}

static void versions_of_an_earlier_run_are_taken_as_found(void **state)
{
    (void)state;
    nfs_versions_destroy(versions);
    versions = nfs_versions_create(&set);
    assert_int_equal(finds(0, 4711), NFS_VERIFIED);
    assert_int_equal(finds(0, 4710), NFS_CORRUPT);
    struct nfs_extent write = write_to(0);

    assert_int_equal(write.version, 4712);
    ends(&write, NFS_DONE);
    assert_int_equal(finds(0, 4712), NFS_VERIFIED);
    write = write_to(1); /* not read before: above anything an earlier run has written */
    assert_true(write.version > 1700000000);
    ends(&write, NFS_DONE);
    assert_int_equal(finds(1, write.version), NFS_VERIFIED);
}

/* ---------------------------------------------------------------- a random history */

#define FLIGHTS 8

struct flight {
    struct nfs_extent extent;
    uint32_t seen[11];
    bool busy;
    bool write;
    bool applied; /* WRITE: the server has carried it out; READ: has looked */
};

static uint32_t disk[11];
static struct flight flights[FLIGHTS];
static struct flight late; /* a WRITE given up that the server still has */
static uint64_t late_until_ns;

static uint64_t blocks_of(const struct nfs_extent *extent)
{
    return (extent->bytes + FILESET_BLOCK_BYTES - 1) / FILESET_BLOCK_BYTES;
}

static void apply(struct flight *flight)
{
    uint64_t first = flight->extent.offset / FILESET_BLOCK_BYTES;

    for (uint64_t i = 0; i < blocks_of(&flight->extent); i++) {
        if (flight->write)
            disk[first + i] = flight->extent.version;
        else
            flight->seen[i] = disk[first + i];
    }
    flight->applied = true;
}

static void take_off(struct flight *flight, struct rng *rng)
{
    uint64_t first = rng_below(rng, 11);
    uint64_t count = 1 + rng_below(rng, 11 - first);

    memset(flight, 0, sizeof(*flight));
    flight->busy = true;
    flight->write = rng_below(rng, 2);
    flight->extent.file = 1;
    flight->extent.offset = first * FILESET_BLOCK_BYTES;
    flight->extent.bytes = (uint32_t)(first + count == 11 ? SIZE - flight->extent.offset
                                                          : count * FILESET_BLOCK_BYTES);
    if (flight->write)
        nfs_versions_write_begin(versions, &flight->extent);
    else
        nfs_versions_read_begin(versions, &flight->extent);
}

/* Returns whether a READ was judged. */
static bool land(struct flight *flight, struct rng *rng, bool damage)
{
    uint8_t data[SIZE];
    uint64_t first = flight->extent.offset / FILESET_BLOCK_BYTES;

    flight->busy = false;
    if (flight->write) {
        enum nfs_fate fate = flight->applied ? NFS_DONE : NFS_NOT_DONE;

        if (rng_below(rng, 20) == 0)
            fate = NFS_UNKNOWN;
        if (fate == NFS_UNKNOWN && !flight->applied && !late.busy) {
            late = *flight;
            late.busy = true;
            late_until_ns = now_ns + NFS_VERSIONS_DOUBT_NS;
        }
        ends(&flight->extent, fate);
        return false;
    }
    if (!flight->applied)
        apply(flight);
    for (uint64_t i = 0; i < blocks_of(&flight->extent); i++) {
        uint64_t at = i * FILESET_BLOCK_BYTES;
        uint64_t part = flight->extent.bytes - at;

        fileset_content(&set, 1, flight->seen[i], (first + i) * FILESET_BLOCK_BYTES, data + at,
                        part < FILESET_BLOCK_BYTES ? part : FILESET_BLOCK_BYTES);
    }
    if (damage)
        data[rng_below(rng, flight->extent.bytes)] ^= (uint8_t)(1 + rng_below(rng, 255));
    enum nfs_verdict verdict = nfs_versions_read_end(versions, &flight->extent, data,
                                                     flight->extent.bytes, now_ns, problem);

    if (damage) {
        /* Only an overlap may hide it. */
        assert_int_not_equal(verdict, NFS_VERIFIED);
        return false;
    }
    if (verdict == NFS_CORRUPT)
        fail_msg("false alarm: %s", problem);
    return verdict == NFS_VERIFIED;
}

static void no_alarm_without_a_cause(void **state)
{
    uint64_t judged = 0;
    struct rng rng;

    (void)state;
    rng_init(&rng, 20, 0);
    for (int step = 0; step < 300000; step++) {
        struct flight *flight = &flights[rng_below(&rng, FLIGHTS)];

        now_ns += rng_below(&rng, 20 * SECOND / 1000);
        if (late.busy && rng_below(&rng, 100) == 0) {
            if (now_ns < late_until_ns)
                apply(&late);
            late.busy = false;
        }
        if (!flight->busy)
            take_off(flight, &rng);
        else if (!flight->applied && rng_below(&rng, 2))
            apply(flight);
        else
            judged += land(flight, &rng, rng_below(&rng, 50) == 0);
    }
    print_message("%llu reads judged\n", (unsigned long long)judged);
    assert_true(judged > 1000);
}

static void thousands_of_files_are_kept_apart(void **state)
{
    (void)state;
    for (uint64_t file = 0; file < 3000; file++) {
        struct nfs_extent write = {.file = file, .bytes = FILESET_BLOCK_BYTES};

        for (uint64_t i = 0; i <= file % 3; i++) {
            nfs_versions_write_begin(versions, &write);
            ends(&write, NFS_DONE);
        }
        assert_int_equal(write.version, file % 3 + 1);
    }
    for (uint64_t file = 0; file < 3000; file++) {
        struct nfs_extent read = {.file = file, .bytes = FILESET_BLOCK_BYTES};
        uint8_t data[FILESET_BLOCK_BYTES];

        nfs_versions_read_begin(versions, &read);
        fileset_content(&set, file, (uint32_t)(file % 3 + 1), 0, data, sizeof(data));
        assert_int_equal(
            nfs_versions_read_end(versions, &read, data, sizeof(data), now_ns, problem),
            NFS_VERIFIED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_write_that_is_done_is_all_there_is, begin, end),
        cmocka_unit_test_setup_teardown(of_two_in_flight_either_may_be_last, begin, end),
        cmocka_unit_test_setup_teardown(an_unknown_outcome_leaves_both, begin, end),
        cmocka_unit_test_setup_teardown(a_read_that_overlaps_is_not_judged, begin, end),
        cmocka_unit_test_setup_teardown(what_was_not_committed_may_be_lost_with_the_server, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_short_write_leaves_a_block_without_version, begin, end),
        cmocka_unit_test_setup_teardown(versions_of_an_earlier_run_are_taken_as_found, begin, end),
        cmocka_unit_test_setup_teardown(no_alarm_without_a_cause, begin, end),
        cmocka_unit_test_setup_teardown(thousands_of_files_are_kept_apart, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
