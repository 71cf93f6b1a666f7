/* SPDX-License-Identifier: Apache-2.0 */
/* The origin's files: names, listings, what they hold, and the limit of memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/base/rng.h"
#include "loadgen/origin/nfs/origin_files.h"

#define MEMORY (1U << 20)
#define SEED   5

static struct origin_files files;
static const uint8_t pattern[16] = "0123456789abcde";

static int begin(void **state)
{
    static const char *const specs[] = {"data=40", "other=0"};

    (void)state;
    return origin_files_init(&files, MEMORY, specs, 2, pattern, sizeof(pattern), 1);
}

static int end(void **state)
{
    (void)state;
    origin_files_fini(&files);
    return 0;
}

static struct origin_node *make(struct origin_node *directory, const char *name, bool is_directory)
{
    int error;
    struct origin_node *node =
        origin_files_create(&files, directory, name, strlen(name), is_directory, 2, &error);

    assert_non_null(node);
    return node;
}

static struct origin_node *find(const struct origin_node *directory, const char *name)
{
    return origin_files_find(&files, directory, name, strlen(name));
}

static void files_made_at_start_hold_the_pattern(void **state)
{
    const struct origin_node *file = find(files.root, "data");

    (void)state;
    assert_int_equal(file->size_bytes, 40);
    for (int i = 0; i < 40; i++)
        assert_int_equal(file->data[i], pattern[i % 16]);
    assert_int_equal(find(files.root, "other")->size_bytes, 0);
    assert_null(find(files.root, "dat"));
    static const char *const wrong[][2] = {{"data", NULL}, {"a=x", NULL}, {"a=1", "a=2"}};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct origin_files other;

        assert_int_equal(origin_files_init(&other, MEMORY, wrong[i], wrong[i][1] ? 2 : 1, pattern,
                                           sizeof(pattern), 1),
                         -EINVAL);
        origin_files_fini(&other);
    }
}

static void names_belong_to_their_directory(void **state)
{
    int error;
    struct origin_node *one = make(files.root, "one", true);
    struct origin_node *two = make(files.root, "two", true);
    struct origin_node *first = make(one, "same", false);
    struct origin_node *second = make(two, "same", false);

    (void)state;
    assert_ptr_equal(find(one, "same"), first);
    assert_ptr_equal(find(two, "same"), second);
    assert_null(find(files.root, "same"));
    assert_int_equal(files.root->child_directories, 2);
    uint32_t number = first->number;
    uint32_t generation = first->generation;

    assert_ptr_equal(origin_files_node(&files, number, generation), first);
    origin_files_remove(&files, first, 3);
    assert_null(origin_files_node(&files, number, generation));
    assert_null(find(one, "same"));
    /* The number is used again, the generation is not. */
    first = make(one, "new", false);
    assert_int_equal(first->number, number);
    assert_null(origin_files_node(&files, number, generation));
    static const char *const wrong[] = {"", ".", "..", "a/b"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_null(origin_files_create(&files, one, wrong[i], strlen(wrong[i]), false, 2, &error));
    char longest[ORIGIN_NAME_MAX_BYTES + 2];

    memset(longest, 'n', sizeof(longest));
    assert_null(
        origin_files_create(&files, one, longest, ORIGIN_NAME_MAX_BYTES + 1, false, 2, &error));
    assert_int_equal(error, -EINVAL);
    assert_non_null(
        origin_files_create(&files, one, longest, ORIGIN_NAME_MAX_BYTES, false, 2, &error));
}

static void a_listing_goes_on_where_it_was(void **state)
{
    struct origin_node *directory = make(files.root, "many", true);
    uint64_t cookie = 0;
    int found = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", i);
        make(directory, name, false);
    }
    for (int i = 0; i < 1000; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", i);
        assert_non_null(find(directory, name));
    }
    /* Every second one is removed while it is listed: all are seen once all the same. */
    for (struct origin_node *node; (node = origin_files_child(directory, cookie)); found++) {
        char name[16];

        assert_true(node->cookie >= ORIGIN_FIRST_COOKIE);
        snprintf(name, sizeof(name), "f%d", found);
        assert_string_equal(node->name, name);
        cookie = node->cookie;
        if (found % 2)
            origin_files_remove(&files, node, 4);
    }
    assert_int_equal(found, 1000);
    assert_int_equal(directory->children, 500);
}

/* A file beside a plain array, through random writes and changes of size. */
static void data_is_what_was_written(void **state)
{
    static uint8_t mirror[60000];
    uint8_t piece[500];
    size_t size = 0;
    struct rng rng;
    struct origin_node *nodes[] = {make(files.root, "free", false), find(files.root, "data")};

    (void)state;
    print_message("seed %d\n", SEED);
    rng_init(&rng, SEED, 0);
    for (size_t which = 0; which < 2; which++) {
        struct origin_node *file = nodes[which];

        memset(mirror, 0, sizeof(mirror));
        assert_int_equal(origin_files_resize(&files, file, 0, 4), 0);
        size = 0;
        for (int i = 0; i < 5000; i++) {
            size_t offset = (size_t)rng_below(&rng, sizeof(mirror) - sizeof(piece));
            size_t length = (size_t)rng_below(&rng, sizeof(piece));

            if (rng_below(&rng, 8) == 0) {
                assert_int_equal(origin_files_resize(&files, file, offset, 4), 0);
                if (offset < size)
                    memset(mirror + offset, 0, size - offset);
                size = offset;
            } else {
                memset(piece, 1 + i % 255, sizeof(piece));
                assert_int_equal(origin_files_write(&files, file, offset, piece, length, 4), 0);
                memcpy(mirror + offset, piece, length);
                if (length > 0 && offset + length > size)
                    size = offset + length;
            }
            assert_int_equal(file->size_bytes, size);
            if (size > 0)
                assert_memory_equal(file->data, mirror, size);
        }
    }
}

static void memory_is_bounded_and_comes_back(void **state)
{
    uint64_t before = files.used_bytes;
    struct origin_node *file = make(files.root, "large", false);
    static const uint8_t byte = 7;
    int error = 0;
    int made = 0;

    (void)state;
    assert_int_equal(origin_files_write(&files, file, MEMORY, &byte, 1, 4), -ENOSPC);
    assert_int_equal(origin_files_resize(&files, file, ORIGIN_FILE_MAX_BYTES + 1, 4), -EFBIG);
    assert_int_equal(origin_files_write(&files, file, ORIGIN_FILE_MAX_BYTES, &byte, 1, 4), -EFBIG);
    assert_int_equal(origin_files_write(&files, file, UINT64_MAX, &byte, 1, 4), -EFBIG);
    assert_int_equal(origin_files_resize(&files, file, MEMORY / 2, 4), 0);
    assert_true(files.used_bytes >= MEMORY / 2);
    /* Files made at start do not count. */
    assert_int_equal(origin_files_write(&files, find(files.root, "data"), 2 * MEMORY, &byte, 1, 4),
                     0);
    while (!error) {
        char name[16];

        snprintf(name, sizeof(name), "n%d", made++);
        origin_files_create(&files, files.root, name, strlen(name), false, 4, &error);
    }
    assert_int_equal(error, -ENOSPC);
    assert_true(files.used_bytes <= MEMORY);
    for (struct origin_node *node; (node = origin_files_child(files.root, 4));)
        origin_files_remove(&files, node, 5);
    assert_int_equal(files.used_bytes, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_made_at_start_hold_the_pattern, begin, end),
        cmocka_unit_test_setup_teardown(names_belong_to_their_directory, begin, end),
        cmocka_unit_test_setup_teardown(a_listing_goes_on_where_it_was, begin, end),
        cmocka_unit_test_setup_teardown(data_is_what_was_written, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_bounded_and_comes_back, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
