/* SPDX-License-Identifier: Apache-2.0 */
/* File sets: the tree as the header draws it, sizes, popularity against its definition
 * (chi-squared, fixed seeds), and that ranks are dealt to files by a permutation. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/fileset/fileset.h"

static char problem[FILESET_PROBLEM_BYTES];

static struct fileset_spec spec_of(uint64_t files, uint32_t depth, uint32_t width)
{
    struct fileset_spec spec = fileset_defaults;

    spec.files = files;
    spec.depth = depth;
    spec.width = width;
    return spec;
}

static struct fileset set_of(const struct fileset_spec *spec)
{
    struct fileset set;

    assert_int_equal(fileset_init(&set, spec, problem), 0);
    return set;
}

static void assert_path(const struct fileset *set, uint64_t file, const char *wanted)
{
    char path[FILESET_PATH_BYTES];

    assert_int_equal(fileset_file_path(set, file, path), strlen(wanted));
    assert_string_equal(path, wanted);
}

static void the_tree_is_as_drawn(void **state)
{
    struct fileset_spec spec = spec_of(1000, 2, 3);
    struct fileset set = set_of(&spec);

    (void)state;
    assert_int_equal(set.leaf_directories, 9);
    assert_int_equal(set.directories, 12);
    assert_path(&set, 0, "d0/d0/f00000000");
    assert_path(&set, 1, "d0/d1/f00000001");
    assert_path(&set, 3, "d1/d0/f00000003");
    assert_path(&set, 8, "d2/d2/f00000008");
    assert_path(&set, 9, "d0/d0/f00000009");
    spec = spec_of(1000000000, 0, 0);
    set = set_of(&spec);
    assert_int_equal(set.directories, 0);
    assert_int_equal(fileset_file_directory(&set, 5), UINT64_MAX);
    assert_path(&set, 0, "f00000000");
    assert_path(&set, 999999999, "f999999999");
    spec = spec_of(1, 8, 1);
    set = set_of(&spec);
    assert_path(&set, 0, "d0/d0/d0/d0/d0/d0/d0/d0/f00000000");
}

/* A parent has a lower number, and its path is the child's up to the last slash. */
static void parents_come_first(void **state)
{
    struct fileset_spec spec = spec_of(100, 4, 5);
    struct fileset set = set_of(&spec);
    char path[FILESET_PATH_BYTES];
    char parent_path[FILESET_PATH_BYTES];

    (void)state;
    assert_int_equal(set.directories, 5 + 25 + 125 + 625);
    for (uint64_t i = 0; i < set.directories; i++) {
        uint64_t parent = fileset_directory_parent(&set, i);
        size_t length = fileset_directory_path(&set, i, path);
        char *slash = strrchr(path, '/');

        assert_int_equal(length, strlen(path));
        if (parent == UINT64_MAX) {
            assert_null(slash);
            continue;
        }
        assert_true(parent < i);
        fileset_directory_path(&set, parent, parent_path);
        assert_non_null(slash);
        *slash = '\0';
        assert_string_equal(path, parent_path);
    }
}

static void sizes_depend_on_seed_and_number_alone(void **state)
{
    static const uint64_t values[] = {10, 0, 30};
    struct fileset_spec spec = spec_of(20000, 1, 10);
    double sum = 0.0;

    (void)state;
    spec.size = (struct distribution){.kind = DISTRIBUTION_EXPONENTIAL, .mean = 10000};
    struct fileset set = set_of(&spec);
    uint64_t last = fileset_size_bytes(&set, 19999);

    for (uint64_t i = 0; i < spec.files; i++) {
        uint64_t size = fileset_size_bytes(&set, i);

        assert_in_range(size, 1, FILESET_MAX_BYTES);
        sum += (double)size;
    }
    assert_int_equal(fileset_size_bytes(&set, 19999), last);
    /* Standard error of the mean: 10000 / sqrt(20000) = 71; five of them. */
    assert_in_range((uint64_t)(sum / 20000.0), 9645, 10355);
    spec.seed = 2;
    struct fileset other = set_of(&spec);

    assert_int_not_equal(fileset_size_bytes(&other, 19999), last);
    spec.size = (struct distribution){
        .kind = DISTRIBUTION_LIST, .list = values, .list_count = 3, .list_next = 2};
    set = set_of(&spec);
    assert_int_equal(fileset_size_bytes(&set, 3), 10);
    assert_int_equal(fileset_size_bytes(&set, 1), 1); /* 0 is moved to 1 */
    assert_int_equal(fileset_size_bytes(&set, 5), 30);
    spec.size = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = UINT64_MAX};
    set = set_of(&spec);
    assert_int_equal(fileset_size_bytes(&set, 7), FILESET_MAX_BYTES);
}

static void ranks_are_dealt_by_a_permutation(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 1000, 65535, 65536, 65537, 100000};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct fileset_spec spec = spec_of(counts[c], 1, 10);
        struct fileset set = set_of(&spec);
        uint8_t *seen = calloc(counts[c], 1);
        uint64_t stayed = 0;

        assert_non_null(seen);
        for (uint64_t rank = 0; rank < counts[c]; rank++) {
            uint64_t file = fileset_rank_file(&set, rank);

            assert_true(file < counts[c]);
            assert_int_equal(seen[file], 0);
            seen[file] = 1;
            stayed += file == rank;
        }
        /* A random permutation leaves one in its place on average; 20 would be a strange one. */
        if (counts[c] >= 1000)
            assert_true(stayed < 20);
        free(seen);
    }
}

/* Wilson and Hilferty's approximation of the upper quantile at 1 in 10000 (z = 3.72). */
static double chi_squared_limit(double degrees)
{
    double a = 2.0 / (9.0 * degrees);

    return degrees * pow(1.0 - a + 3.72 * sqrt(a), 3.0);
}

/* Draws files, turns them back into ranks, and compares how often each came with `share(rank)`. */
static void check_popularity(const struct fileset_spec *spec, const double *share)
{
    enum { DRAWS = 2000000 };
    struct fileset set = set_of(spec);
    uint64_t *rank_of = calloc(spec->files, sizeof(*rank_of));
    uint64_t *count = calloc(spec->files, sizeof(*count));
    double chi = 0.0;
    struct rng rng;

    assert_true(rank_of && count);
    for (uint64_t rank = 0; rank < spec->files; rank++)
        rank_of[fileset_rank_file(&set, rank)] = rank;
    rng_init(&rng, 11, 0);
    for (int i = 0; i < DRAWS; i++)
        count[rank_of[fileset_draw(&set, &rng)]]++;
    for (uint64_t rank = 0; rank < spec->files; rank++) {
        double expected = share[rank] * DRAWS;
        double off = (double)count[rank] - expected;

        assert_true(expected > 20.0);
        chi += off * off / expected;
    }
    print_message("chi squared %.1f, limit %.1f\n", chi,
                  chi_squared_limit((double)spec->files - 1.0));
    assert_true(chi < chi_squared_limit((double)spec->files - 1.0));
    free(rank_of);
    free(count);
}

static void zipf_draws_follow_its_law(void **state)
{
    static const double exponents[] = {0.5, 0.9, 0.999999, 1.0, 1.2};
    enum { FILES = 500 };
    double share[FILES];

    (void)state;
    for (size_t e = 0; e < sizeof(exponents) / sizeof(exponents[0]); e++) {
        struct fileset_spec spec = spec_of(FILES, 1, 10);
        double sum = 0.0;

        for (int k = 0; k < FILES; k++)
            sum += pow(k + 1.0, -exponents[e]);
        for (int k = 0; k < FILES; k++)
            share[k] = pow(k + 1.0, -exponents[e]) / sum;
        spec.popularity = FILESET_ZIPF;
        spec.zipf_exponent = exponents[e];
        check_popularity(&spec, share);
    }
}

static void zipf_works_at_its_ends(void **state)
{
    struct fileset_spec spec = spec_of(1, 0, 0);
    struct rng rng;

    (void)state;
    rng_init(&rng, 1, 1);
    spec.popularity = FILESET_ZIPF;
    struct fileset set = set_of(&spec);

    for (int i = 0; i < 1000; i++)
        assert_int_equal(fileset_draw(&set, &rng), 0);
    spec.files = FILESET_MAX_FILES;
    spec.zipf_exponent = 0.01;
    set = set_of(&spec);
    for (int i = 0; i < 10000; i++)
        assert_true(fileset_draw(&set, &rng) < FILESET_MAX_FILES);
    spec.zipf_exponent = 20.0;
    set = set_of(&spec);
    for (int i = 0; i < 1000; i++)
        assert_true(fileset_draw(&set, &rng) < FILESET_MAX_FILES);
}

static void hot_and_uniform_draws_follow_their_shares(void **state)
{
    enum { FILES = 200 };
    struct fileset_spec spec = spec_of(FILES, 1, 10);
    double share[FILES];

    (void)state;
    for (int k = 0; k < FILES; k++)
        share[k] = 1.0 / FILES;
    check_popularity(&spec, share);
    spec.popularity = FILESET_HOT;
    spec.hot_files = 0.2;
    spec.hot_share = 0.8;
    for (int k = 0; k < FILES; k++)
        share[k] = k < 40 ? 0.8 / 40 : 0.2 / 160;
    check_popularity(&spec, share);
    spec.hot_files = 1.0;
    for (int k = 0; k < FILES; k++)
        share[k] = 1.0 / FILES;
    check_popularity(&spec, share);
}

static void nonsense_is_refused(void **state)
{
    static const char *const bad_roots[] = {"", "/abs", "a/", "a//b", "..", "a/../b", "./a", "."};
    struct fileset set;
    struct fileset_spec spec = fileset_defaults;

    (void)state;
    for (size_t i = 0; i < sizeof(bad_roots) / sizeof(bad_roots[0]); i++) {
        snprintf(spec.root, sizeof(spec.root), "%s", bad_roots[i]);
        problem[0] = '\0';
        assert_int_equal(fileset_init(&set, &spec, problem), -EINVAL);
        assert_non_null(strstr(problem, "root"));
    }
    snprintf(spec.root, sizeof(spec.root), "a/..b/.c");
    assert_int_equal(fileset_init(&set, &spec, problem), 0);
    spec.files = 0;
    assert_int_equal(fileset_init(&set, &spec, problem), -EINVAL);
    spec = spec_of(10, 9, 1);
    assert_int_equal(fileset_init(&set, &spec, problem), -EINVAL);
    spec = spec_of(10, 1, 0);
    assert_int_equal(fileset_init(&set, &spec, problem), -EINVAL);
    spec = spec_of(10, 8, 1000);
    assert_int_equal(fileset_init(&set, &spec, problem), -EINVAL);
    spec = fileset_defaults;
    spec.popularity = FILESET_ZIPF;
    spec.zipf_exponent = 0.0;
    assert_int_equal(fileset_init(&set, &spec, problem), -EINVAL);
    spec.popularity = FILESET_HOT;
    spec.hot_files = 1.5;
    assert_int_equal(fileset_init(&set, &spec, problem), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_is_as_drawn),
        cmocka_unit_test(parents_come_first),
        cmocka_unit_test(sizes_depend_on_seed_and_number_alone),
        cmocka_unit_test(ranks_are_dealt_by_a_permutation),
        cmocka_unit_test(zipf_draws_follow_its_law),
        cmocka_unit_test(zipf_works_at_its_ends),
        cmocka_unit_test(hot_and_uniform_draws_follow_their_shares),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
