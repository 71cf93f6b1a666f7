/* SPDX-License-Identifier: Apache-2.0 */
/* What requests do: proportions of the mix, where transfers lie, what a retry asks for, and the
 * life of the names that CREATE and REMOVE use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/client/nfs/nfs_work.h"

static struct flow *flow;
static struct fileset set;
static struct nfs_versions *versions;
static struct nfs_work work;

static int begin(void **state)
{
    char problem[FILESET_PROBLEM_BYTES];

    (void)state;
    flow = calloc(1, sizeof(*flow));
    flow_spec_init(&flow->spec);
    snprintf(flow->spec.name, sizeof(flow->spec.name), "a/b");
    flow->spec.protocol = FLOW_NFS;
    flow->spec.concurrency = 4;
    flow->spec.set = fileset_defaults;
    flow->spec.set.files = 500;
    flow->spec.set.size = (struct distribution){.kind = DISTRIBUTION_UNIFORM, .mean = 40000};
    flow->spec.nfs.transfer = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = 10000};
    flow->request_seed = 99;
    assert_int_equal(fileset_init(&set, &flow->spec.set, problem), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    nfs_work_fini(&work);
    nfs_versions_destroy(versions);
    versions = NULL;
    free(flow);
    return 0;
}

static void mix(enum flow_operation a, uint32_t weight_a, enum flow_operation b, uint32_t weight_b)
{
    memset(flow->spec.nfs.mix, 0, sizeof(flow->spec.nfs.mix));
    flow->spec.nfs.mix[a] = weight_a;
    flow->spec.nfs.mix[b] = weight_b;
}

static struct nfs_task choose(uint64_t number, uint32_t tries)
{
    struct flow_request request = {.number = number, .tries = tries};
    struct nfs_task task;

    nfs_work_choose(&work, &request, &task);
    return task;
}

static struct flow_result ended(uint64_t number, const struct nfs_task *task, enum outcome outcome)
{
    struct flow_request request = {.number = number};

    return nfs_work_ended(&work, &request, task,
                          &(struct nfs_ending){.outcome = outcome, .count = task->data.bytes});
}

static void assert_same(const struct nfs_task *a, const struct nfs_task *b)
{
    assert_int_equal(a->operation, b->operation);
    assert_int_equal(a->directory, b->directory);
    assert_int_equal(a->name.number, b->name.number);
    assert_int_equal(a->data.file, b->data.file);
    assert_int_equal(a->data.offset, b->data.offset);
    assert_int_equal(a->data.bytes, b->data.bytes);
    assert_int_equal(a->data.version, b->data.version);
}

static void operations_come_by_weight(void **state)
{
    static const uint32_t weights[FLOW_OPERATIONS] = {18, 11, 26, 24, 11, 4, 3, 1, 0, 1, 1};
    enum { DRAWS = 200000 };
    uint64_t counts[FLOW_OPERATIONS] = {0};
    double chi = 0.0;

    (void)state;
    memcpy(flow->spec.nfs.mix, weights, sizeof(weights));
    nfs_work_init(&work, flow, &set, NULL);
    for (uint64_t i = 0; i < DRAWS; i++)
        counts[choose(i, 0).operation]++;
    for (int i = 0; i < FLOW_OPERATIONS; i++) {
        double expected = DRAWS * weights[i] / 100.0;

        if (weights[i] == 0)
            assert_int_equal(counts[i], 0);
        else
            chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    }
    assert_true(chi < 33.7); /* 9 degrees of freedom, 1 in 10000 */
}

static void transfers_lie_within_their_files(void **state)
{
    (void)state;
    mix(FLOW_READ, 1, FLOW_WRITE, 1);
    flow->spec.nfs.transfer = (struct distribution){.kind = DISTRIBUTION_UNIFORM, .mean = 20000};
    for (int sequential = 0; sequential < 2; sequential++) {
        uint64_t whole = 0;

        flow->spec.nfs.sequential = sequential;
        nfs_work_init(&work, flow, &set, NULL);
        nfs_work_limits(&work, 30000, 25000);
        for (uint64_t i = 0; i < 20000; i++) {
            struct nfs_task task = choose(i, 0);
            uint64_t size = fileset_size_bytes(&set, task.data.file);

            assert_true(task.data.bytes >= 1);
            assert_true(task.data.bytes <= (task.operation == FLOW_WRITE ? 25000 : 30000));
            assert_true(task.data.offset + task.data.bytes <= size);
            whole += task.data.offset + task.data.bytes == size;
        }
        assert_true(whole > 100); /* ends of files are reached */
        nfs_work_fini(&work);
    }
}

static void verifying_flows_use_whole_blocks(void **state)
{
    (void)state;
    mix(FLOW_READ, 1, FLOW_WRITE, 1);
    flow->spec.nfs.transfer = (struct distribution){.kind = DISTRIBUTION_UNIFORM, .mean = 20000};
    versions = nfs_versions_create(&set);
    for (int sequential = 0; sequential < 2; sequential++) {
        uint64_t stumps = 0;

        flow->spec.nfs.sequential = sequential;
        nfs_work_init(&work, flow, &set, versions);
        nfs_work_limits(&work, 30000, 25000);
        for (uint64_t i = 0; i < 20000; i++) {
            struct nfs_task task = choose(i, 0);
            uint64_t size = fileset_size_bytes(&set, task.data.file);

            assert_int_equal(task.data.offset % FILESET_BLOCK_BYTES, 0);
            assert_true(task.data.bytes >= 1 && task.data.offset + task.data.bytes <= size);
            assert_true(task.data.bytes <= (task.operation == FLOW_WRITE ? 25000 : 30000));
            assert_true(task.data.bytes % FILESET_BLOCK_BYTES == 0 ||
                        task.data.offset + task.data.bytes == size);
            stumps += task.data.bytes % FILESET_BLOCK_BYTES != 0;
            ended(i, &task, OUTCOME_NFS_ERROR);
        }
        assert_true(stumps > 100);
        nfs_work_fini(&work);
    }
}

static void sequential_streams_go_through_their_files(void **state)
{
    (void)state;
    mix(FLOW_READ, 1, FLOW_READ, 1);
    flow->spec.nfs.sequential = true;
    nfs_work_init(&work, flow, &set, NULL);
    struct nfs_task before[4];

    for (uint64_t i = 0; i < 4000; i++) {
        struct nfs_task task = choose(i, 0);
        struct nfs_extent *last = &before[i % 4].data;

        if (i < 4 || last->offset + last->bytes == fileset_size_bytes(&set, last->file)) {
            assert_int_equal(task.data.offset, 0);
        } else {
            assert_int_equal(task.data.file, last->file);
            assert_int_equal(task.data.offset, last->offset + last->bytes);
        }
        before[i % 4] = task;
    }
}

static void one_file_is_gone_through_over_and_over(void **state)
{
    (void)state;
    mix(FLOW_READ, 1, FLOW_READ, 1);
    flow->spec.nfs.sequential = true;
    nfs_work_init(&work, flow, NULL, NULL);
    work.file_bytes = 35000;
    for (uint64_t i = 0; i < 9; i++) {
        struct nfs_task task = choose(i, 0);

        assert_int_equal(task.data.bytes, 10000);
        assert_int_equal(task.data.offset, i % 3 * 10000);
        assert_int_equal(task.directory, UINT64_MAX);
    }
    work.file_bytes = 0; /* an empty file: READ is sent all the same */
    assert_int_equal(choose(9, 0).data.offset, 0);
    assert_int_equal(choose(10, 0).data.bytes, 10000);
}

static void numbers_alone_decide(void **state)
{
    struct nfs_task tasks[200];

    (void)state;
    mix(FLOW_READ, 2, FLOW_GETATTR, 1);
    nfs_work_init(&work, flow, &set, NULL);
    for (uint64_t i = 0; i < 200; i++)
        tasks[i] = choose(i, 0);
    for (uint64_t i = 200; i-- > 0;) {
        struct nfs_task task = choose(i, 0);

        assert_same(&task, &tasks[i]);
    }
}

static void a_retry_asks_for_the_same(void **state)
{
    struct nfs_task tasks[300];

    (void)state;
    flow->spec.retries = 3;
    flow->spec.nfs.sequential = true;
    mix(FLOW_WRITE, 1, FLOW_CREATE, 1);
    versions = nfs_versions_create(&set);
    nfs_work_init(&work, flow, &set, versions);
    for (uint64_t i = 0; i < 300; i++) {
        tasks[i] = choose(i, 0);
        assert_int_equal(ended(i, &tasks[i], OUTCOME_REFUSED).outcome, OUTCOME_REFUSED);
    }
    for (uint64_t i = 300; i-- > 0;) {
        struct nfs_task task = choose(i, 1);

        assert_same(&task, &tasks[i]);
        ended(i, &task, OUTCOME_OK);
    }
    assert_int_equal(work.parked_count, 0);
}

static void each_name_is_removed_once(void **state)
{
    uint8_t *there = calloc(100000, 1);
    char name[256];
    uint64_t count = 0;
    uint64_t removed = 0;
    struct nfs_name left;

    (void)state;
    mix(FLOW_CREATE, 1, FLOW_REMOVE, 1);
    nfs_work_init(&work, flow, &set, NULL);
    for (uint64_t i = 0; i < 50000; i++) {
        struct nfs_task task = choose(i, 0);

        if (task.operation == FLOW_CREATE) {
            assert_int_equal(there[task.name.number], 0);
            assert_int_equal(task.directory, task.name.directory);
            nfs_work_name(&work, &task, name);
            assert_null(strchr(name, '/'));
        } else {
            assert_int_equal(there[task.name.number], 1);
        }
        /* One in seven does not reach the server, one in eleven is not heard of again. */
        bool refused = i % 7 == 0;
        bool lost = i % 11 == 0;

        if (!refused)
            there[task.name.number] = task.operation == FLOW_CREATE;
        removed += !refused && task.operation == FLOW_REMOVE;
        struct flow_result result = ended(i, &task,
                                          refused ? OUTCOME_REFUSED
                                          : lost  ? OUTCOME_TIMEOUT
                                                  : OUTCOME_OK);

        assert_int_equal(result.kind, task.operation);
    }
    assert_true(removed > 15000);
    while (nfs_names_next_leftover(&work.names, &left)) {
        there[left.number] = 0;
        count++;
    }
    for (uint64_t i = 0; i < 100000; i++)
        assert_int_equal(there[i], 0);
    print_message("%llu left over\n", (unsigned long long)count);
    free(there);
}

static void what_waits_for_a_retry_at_the_end_is_removed_too(void **state)
{
    struct nfs_name left;

    (void)state;
    flow->spec.retries = 1;
    mix(FLOW_CREATE, 1, FLOW_CREATE, 1);
    nfs_work_init(&work, flow, &set, NULL);
    struct nfs_task create = choose(0, 0);

    ended(0, &create, OUTCOME_OK);
    mix(FLOW_REMOVE, 1, FLOW_REMOVE, 1);
    struct nfs_task remove = choose(1, 0);

    assert_int_equal(remove.operation, FLOW_REMOVE);
    assert_int_equal(remove.name.number, create.name.number);
    ended(1, &remove, OUTCOME_REFUSED);
    assert_false(nfs_names_next_leftover(&work.names, &left));
    nfs_work_stop(&work);
    assert_true(nfs_names_next_leftover(&work.names, &left));
    assert_int_equal(left.number, create.name.number);
    assert_false(nfs_names_next_leftover(&work.names, &left));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operations_come_by_weight, begin, end),
        cmocka_unit_test_setup_teardown(transfers_lie_within_their_files, begin, end),
        cmocka_unit_test_setup_teardown(verifying_flows_use_whole_blocks, begin, end),
        cmocka_unit_test_setup_teardown(sequential_streams_go_through_their_files, begin, end),
        cmocka_unit_test_setup_teardown(one_file_is_gone_through_over_and_over, begin, end),
        cmocka_unit_test_setup_teardown(numbers_alone_decide, begin, end),
        cmocka_unit_test_setup_teardown(a_retry_asks_for_the_same, begin, end),
        cmocka_unit_test_setup_teardown(each_name_is_removed_once, begin, end),
        cmocka_unit_test_setup_teardown(what_waits_for_a_retry_at_the_end_is_removed_too, begin,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
