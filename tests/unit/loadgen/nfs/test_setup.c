/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, recognising and looking up sets over a caller that carries calls out on a tree in memory,
 * in an order drawn at random, and fails some of them as servers and connections do: the outcome is
 * the same. And walks with a table too small for the set.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/client/nfs/nfs_cleanup.h"
#include "loadgen/client/nfs/nfs_setup.h"

#define NODES 4000
#define CALLS 256

struct node {
    uint32_t parent;
    bool there;
    bool directory;
    char name[64];
    uint8_t *data;
    uint64_t size;
    uint32_t writes;
};

struct server {
    struct nfs_caller caller;
    struct loop_timer turn;
    struct loop loop;
    struct rng rng;
    struct nfs_call *waiting[CALLS];
    size_t count;
    uint64_t carried_out;
    uint32_t failures;  /* of 1000 calls that may be tried again */
    bool hides_handles; /* MKDIR and CREATE do not give them */
    uint32_t nodes_count;
    struct node nodes[NODES];
};

static struct server *server;
static struct flow *flow;

/* ---------------------------------------------------------------- the server */

static uint32_t find(uint32_t parent, const char *name)
{
    for (uint32_t i = 1; i < server->nodes_count; i++) {
        struct node *node = &server->nodes[i];

        if (node->there && node->parent == parent && strcmp(node->name, name) == 0)
            return i;
    }
    return 0;
}

static uint32_t add(uint32_t parent, const char *name, bool directory)
{
    uint32_t index = server->nodes_count++;

    assert_true(index < NODES);
    server->nodes[index] = (struct node){.parent = parent, .there = true, .directory = directory};
    snprintf(server->nodes[index].name, sizeof(server->nodes[index].name), "%s", name);
    return index;
}

static struct node *node_of(const struct nfs_handle *handle, uint32_t *index)
{
    assert_int_equal(handle->length, 7);
    memcpy(index, handle->bytes, sizeof(*index));
    assert_true(*index < server->nodes_count);
    return server->nodes[*index].there ? &server->nodes[*index] : NULL;
}

static void give(struct nfs_call *call, uint32_t index)
{
    call->found.length = 7;
    memset(call->found.bytes, 0x55, 7);
    memcpy(call->found.bytes, &index, sizeof(index));
    call->size_bytes = server->nodes[index].size;
}

static void make(struct nfs_call *call, uint32_t directory)
{
    uint32_t index = find(directory, call->name);

    if (index && call->kind == NFS_CALL_MKDIR) {
        call->error = -EEXIST;
        return;
    }
    if (!index)
        index = add(directory, call->name, call->kind == NFS_CALL_MKDIR);
    server->nodes[index].size = 0;
    if (!server->hides_handles)
        give(call, index);
}

static void carry_out(struct nfs_call *call)
{
    uint32_t index;
    struct node *node = node_of(&call->handle, &index);

    call->error = 0;
    call->found.length = 0;
    call->count = 0;
    if (!node) {
        call->error = -ESTALE;
        return;
    }
    switch (call->kind) {
    case NFS_CALL_LOOKUP:
    case NFS_CALL_REMOVE: {
        uint32_t found = find(index, call->name);

        if (!found)
            call->error = -ENOENT;
        else if (call->kind == NFS_CALL_LOOKUP)
            give(call, found);
        else
            server->nodes[found].there = false;
        break;
    }
    case NFS_CALL_MKDIR:
    case NFS_CALL_CREATE:
        assert_true(node->directory);
        make(call, index);
        break;
    case NFS_CALL_READ:
        call->data = node->data;
        call->count = node->size < call->bytes ? (uint32_t)node->size : call->bytes;
        break;
    case NFS_CALL_WRITE:
        /* A server may write less than it was given. */
        call->count = 1 + (uint32_t)rng_below(&server->rng, call->bytes);
        if (call->bytes < 2000)
            call->count = call->bytes;
        assert_false(node->directory);
        assert_int_equal(call->offset, node->size); /* one after the other */
        node->data = realloc(node->data, node->size + call->count);
        memcpy(node->data + node->size, call->payload, call->count);
        node->size += call->count;
        node->writes++;
        break;
    case NFS_CALL_GETATTR:
    default:
        call->size_bytes = node->size;
        break;
    }
}

/* Ends one of the calls that wait. */
static void turn(struct loop_timer *timer)
{
    if (server->count > 0) {
        size_t place = (size_t)rng_below(&server->rng, server->count);
        struct nfs_call *call = server->waiting[place];
        uint64_t dice = rng_below(&server->rng, 1000);

        server->waiting[place] = server->waiting[--server->count];
        if (dice < server->failures / 2) {
            call->error = -EAGAIN;
        } else {
            carry_out(call);
            server->carried_out++;
            if (dice < server->failures)
                call->error = -ECONNRESET; /* done all the same */
        }
        call->done(call);
    }
    loop_timer_set(&server->loop, timer, server->loop.now_ns + 1);
}

static void issue(struct nfs_caller *caller, struct nfs_call *call)
{
    (void)caller;
    assert_true(server->count < CALLS);
    assert_true(call->kind == NFS_CALL_READ || call->kind == NFS_CALL_WRITE || call->name[0]);
    server->waiting[server->count++] = call;
}

/* ---------------------------------------------------------------- the tests */

static int begin(void **state)
{
    (void)state;
    server = calloc(1, sizeof(*server));
    flow = calloc(1, sizeof(*flow));
    server->caller.issue = issue;
    server->turn.fire = turn;
    rng_init(&server->rng, 3, 0);
    assert_int_equal(loop_init(&server->loop), 0);
    loop_timer_set(&server->loop, &server->turn, loop_clock_ns());
    server->nodes_count = 1;
    server->nodes[0] = (struct node){.there = true, .directory = true};
    flow_spec_init(&flow->spec);
    snprintf(flow->spec.name, sizeof(flow->spec.name), "f");
    flow->loop = &server->loop;
    flow->spec.nfs.populate = true;
    flow->spec.set = fileset_defaults;
    flow->spec.set.files = 200;
    flow->spec.set.depth = 2;
    flow->spec.set.width = 4;
    flow->spec.set.size = (struct distribution){.kind = DISTRIBUTION_UNIFORM, .mean = 20000};
    snprintf(flow->spec.set.root, sizeof(flow->spec.set.root), "top/set");
    return 0;
}

static int end(void **state)
{
    (void)state;
    loop_fini(&server->loop);
    for (uint32_t i = 0; i < server->nodes_count; i++)
        free(server->nodes[i].data);
    free(server);
    free(flow);
    return 0;
}

struct watch {
    struct loop_timer timer;
    struct nfs_setup *setup;
};

static void look(struct loop_timer *timer)
{
    struct watch *watch = (void *)((char *)timer - offsetof(struct watch, timer));

    if (nfs_setup_done(watch->setup))
        loop_stop(&server->loop);
    else
        loop_timer_set(&server->loop, timer, server->loop.now_ns + 100000);
}

static struct nfs_setup *start(void)
{
    struct nfs_setup *setup = nfs_setup_create(flow, &server->caller, 64);

    assert_non_null(setup);
    nfs_handle_keep(&nfs_setup_tree(setup)->export,
                    (struct rpc_slice){(const uint8_t *)"\0\0\0\0abc", 7});
    nfs_setup_begin(setup, 5000);
    return setup;
}

/* Until it is done, or has failed (which stops the loop). */
static void run_to_end(struct nfs_setup *setup)
{
    struct watch watch = {.timer.fire = look, .setup = setup};

    loop_timer_set(&server->loop, &watch.timer, loop_clock_ns());
    server->loop.stopped = false;
    assert_int_equal(loop_run(&server->loop), 0);
    loop_timer_cancel(&server->loop, &watch.timer);
}

static void check_all_files(struct nfs_setup *setup)
{
    const struct fileset *set = nfs_setup_set(setup);
    char problem[FILESET_PROBLEM_BYTES];

    for (uint64_t file = 0; file < set->spec.files; file++) {
        struct nfs_tree *tree = nfs_setup_tree(setup);
        struct nfs_handle handle = {0};
        struct rpc_slice slice;
        uint32_t index;

        assert_true(nfs_tree_get(tree, nfs_tree_file_key(tree, file), &slice));
        assert_true(nfs_handle_keep(&handle, slice));
        struct node *node = node_of(&handle, &index);

        assert_non_null(node);
        assert_int_equal(node->size, fileset_size_bytes(set, file));
        assert_true(fileset_verify(set, file, 0, 0, node->data, node->size, problem));
    }
}

static void a_set_is_made_whatever_fails_on_the_way(void **state)
{
    (void)state;
    for (int hides = 0; hides < 2; hides++) {
        server->failures = 60;
        server->hides_handles = hides;
        snprintf(flow->spec.set.root, sizeof(flow->spec.set.root), "top/set%d", hides);
        struct nfs_setup *setup = start();

        run_to_end(setup);
        assert_true(nfs_setup_done(setup));
        check_all_files(setup);
        nfs_setup_destroy(setup);
    }
}

static void a_set_that_is_there_is_only_looked_up(void **state)
{
    uint64_t writes = 0;
    uint64_t calls;
    struct nfs_setup *setup = start();

    (void)state;
    run_to_end(setup);
    nfs_setup_destroy(setup);
    calls = server->carried_out;
    for (uint32_t i = 0; i < server->nodes_count; i++)
        writes += server->nodes[i].writes;
    flow->spec.nfs.populate = false;
    setup = start();
    run_to_end(setup);
    assert_true(nfs_setup_done(setup));
    check_all_files(setup);
    for (uint32_t i = 0; i < server->nodes_count; i++)
        writes -= server->nodes[i].writes;
    assert_int_equal(writes, 0);
    /* Root, marker twice, every directory and file. */
    assert_int_equal(server->carried_out - calls, 2 + 2 + 20 + 200);
    nfs_setup_destroy(setup);
}

static void another_set_is_no_set(void **state)
{
    struct nfs_setup *setup = start();

    (void)state;
    run_to_end(setup);
    nfs_setup_destroy(setup);
    flow->spec.set.files = 199;
    setup = start();
    run_to_end(setup);
    assert_true(nfs_setup_failed(setup));
    nfs_setup_destroy(setup);
    snprintf(flow->spec.set.root, sizeof(flow->spec.set.root), "elsewhere");
    flow->spec.nfs.populate = false;
    setup = start();
    run_to_end(setup);
    assert_true(nfs_setup_failed(setup));
    assert_int_equal(find(0, "elsewhere"), 0);
    nfs_setup_destroy(setup);
}

static void one_makes_it_and_the_others_wait(void **state)
{
    struct nfs_setup *first;
    struct nfs_setup *second;
    char text[100];

    (void)state;
    flow->spec.nfs.verify = true;
    first = start();
    second = start();
    assert_true(nfs_setup_progress(second, text, sizeof(text)));
    assert_string_equal(text, "waiting for the flow that makes the set");
    run_to_end(second);
    assert_true(nfs_setup_done(second));
    run_to_end(first);
    check_all_files(first);
    check_all_files(second);
    assert_ptr_equal(nfs_setup_versions(first), nfs_setup_versions(second));
    for (uint32_t i = 0; i < server->nodes_count; i++)
        assert_true(server->nodes[i].directory || server->nodes[i].name[0] != 'f' ||
                    server->nodes[i].writes > 0);
    /* Who writes without verifying has no place beside them. */
    flow->spec.nfs.verify = false;
    flow->spec.nfs.mix[FLOW_WRITE] = 1;
    assert_null(nfs_setup_create(flow, &server->caller, 64));
    nfs_setup_destroy(first);
    nfs_setup_destroy(second);
}

/* ---------------------------------------------------------------- walks */

static int walk_error;
static uint64_t walks_done;

static void walked(struct nfs_walk *walk, int error)
{
    (void)walk;
    walk_error = error;
    walks_done++;
    loop_stop(&server->loop);
}

static int walk_to(struct nfs_tree *tree, uint64_t key)
{
    struct nfs_walk walk;

    memset(&walk, 0, sizeof(walk));
    server->loop.stopped = false;
    nfs_tree_walk(tree, &server->caller, key, &walk, walked);
    assert_int_equal(loop_run(&server->loop), 0);
    return walk_error;
}

static void a_small_table_forgets_and_finds_again(void **state)
{
    struct nfs_setup *setup = start();
    struct nfs_tree tree;
    struct rpc_slice handle;
    struct rpc_slice right;
    char problem[FILESET_PROBLEM_BYTES];
    struct fileset set;

    (void)state;
    run_to_end(setup);
    assert_int_equal(fileset_init(&set, &flow->spec.set, problem), 0);
    nfs_tree_init(&tree, &set, 64);
    tree.export = nfs_setup_tree(setup)->export;
    tree.capacity = 13;
    assert_false(nfs_tree_holds_all(&tree));
    for (uint64_t file = 0; file < 200; file++) {
        uint64_t key = nfs_tree_file_key(&tree, file);

        assert_int_equal(walk_to(&tree, key), 0);
        assert_true(nfs_tree_get(&tree, key, &handle));
        assert_true(nfs_tree_get(nfs_setup_tree(setup), key, &right));
        assert_memory_equal(handle.data, right.data, 7);
    }
    /* A server that has everything anew: stale handles are forgotten, the way is found again. */
    uint64_t key = nfs_tree_file_key(&tree, 42);

    assert_int_equal(walk_to(&tree, key), 0);
    uint32_t top = find(0, "top");

    server->nodes[top].there = false;
    assert_int_equal(walk_to(&tree, key), 0); /* known directories are not asked again */
    nfs_tree_forget(&tree, key);
    assert_int_equal(walk_to(&tree, key), -ENOENT);
    server->nodes[top].there = true;
    assert_int_equal(walk_to(&tree, key), 0);
    nfs_tree_fini(&tree);
    nfs_setup_destroy(setup);
}

/* ---------------------------------------------------------------- the end */

static void cleaned(struct nfs_cleanup *cleanup)
{
    (void)cleanup;
    loop_stop(&server->loop);
}

static void left_over_files_are_removed(void **state)
{
    struct nfs_setup *setup = start();
    struct nfs_cleanup *cleanup = calloc(1, sizeof(*cleanup));
    struct nfs_names names;
    char text[256];

    (void)state;
    run_to_end(setup);
    struct nfs_tree *tree = nfs_setup_tree(setup);

    nfs_names_init(&names, "f", 1);
    uint32_t before = server->nodes_count;

    for (uint64_t i = 0; i < 300; i++) {
        struct nfs_name name = nfs_names_new(&names, 4 + i % 16);
        struct rpc_slice handle;
        struct nfs_handle directory = {0};
        uint32_t index;

        assert_true(nfs_tree_get(tree, name.directory, &handle));
        assert_true(nfs_handle_keep(&directory, handle));
        node_of(&directory, &index);
        nfs_names_text(&names, name.number, text);
        if (i % 10)
            add(index, text, false);
        if (i % 2)
            nfs_names_live(&names, name);
        else
            nfs_names_left_over(&names, name);
    }
    nfs_tree_forget(tree, 4); /* one directory has to be looked up */
    cleanup->names = &names;
    cleanup->tree = tree;
    cleanup->caller = &server->caller;
    cleanup->done = cleaned;
    server->loop.stopped = false;
    nfs_cleanup_begin(cleanup);
    assert_int_equal(loop_run(&server->loop), 0);
    assert_int_equal(cleanup->failed, 0);
    for (uint32_t i = before; i < server->nodes_count; i++)
        assert_false(server->nodes[i].there);
    check_all_files(setup);
    nfs_names_fini(&names);
    nfs_setup_destroy(setup);
    free(cleanup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_set_is_made_whatever_fails_on_the_way, begin, end),
        cmocka_unit_test_setup_teardown(a_set_that_is_there_is_only_looked_up, begin, end),
        cmocka_unit_test_setup_teardown(another_set_is_no_set, begin, end),
        cmocka_unit_test_setup_teardown(one_makes_it_and_the_others_wait, begin, end),
        cmocka_unit_test_setup_teardown(a_small_table_forgets_and_finds_again, begin, end),
        cmocka_unit_test_setup_teardown(left_over_files_are_removed, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
