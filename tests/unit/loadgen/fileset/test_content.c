/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of files at any offset against a byte-by-byte reference written from the header, each
 * kind of damage, markers, and sets made in a local directory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "loadgen/fileset/fileset.h"

#define GOLDEN 0x9e3779b97f4a7c15ULL

static char problem[FILESET_PROBLEM_BYTES];
static struct fileset set;

static struct fileset make(uint64_t files, uint64_t size_bytes, uint64_t seed)
{
    struct fileset_spec spec = fileset_defaults;
    struct fileset made;

    spec.files = files;
    spec.size = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = size_bytes};
    spec.seed = seed;
    assert_int_equal(fileset_init(&made, &spec, problem), 0);
    return made;
}

static int begin(void **state)
{
    (void)state;
    set = make(1000, 16384, 7);
    return 0;
}

static uint64_t scrambled(uint64_t z)
{
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9ULL;
    z ^= z >> 27;
    z *= 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static uint8_t reference(uint64_t seed, uint64_t file, uint32_t version, uint64_t offset)
{
    uint64_t block = offset / 4096;
    uint64_t place = offset % 4096;
    uint64_t key = scrambled(seed + GOLDEN);
    uint64_t word;

    key = scrambled(key + file);
    key = scrambled(key ^ (block * GOLDEN));
    key = scrambled(key + version);
    if (place < 8)
        word = (uint64_t)version | (uint64_t)0x644c7053 << 32;
    else if (place < 16)
        word = file;
    else if (place < 24)
        word = block;
    else if (place < 32)
        word = key;
    else
        word = scrambled(key + (place / 8 - 3) * GOLDEN);
    return (uint8_t)(word >> (8 * (place % 8)));
}

static void contents_equal_the_reference_at_any_offset(void **state)
{
    static const uint64_t starts[] = {0,    1,    7,    8,    31,    32,         33,
                                      4090, 4095, 4096, 4097, 12288, 1ULL << 40, 99999};
    static const size_t lengths[] = {1, 2, 31, 32, 33, 4096, 4097, 10000};
    uint8_t data[10000 + 2];

    (void)state;
    for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
            memset(data, 0x5a, sizeof(data));
            fileset_content(&set, 123, 9, starts[s], data + 1, lengths[l]);
            for (size_t i = 0; i < lengths[l]; i++)
                assert_int_equal(data[1 + i], reference(7, 123, 9, starts[s] + i));
            assert_int_equal(data[0], 0x5a);
            assert_int_equal(data[1 + lengths[l]], 0x5a);
            assert_true(fileset_verify(&set, 123, 9, starts[s], data + 1, lengths[l], problem));
        }
    }
}

static void assert_damage(const uint8_t *data, size_t length, uint64_t offset, const char *says)
{
    problem[0] = '\0';
    assert_false(fileset_verify(&set, 5, 3, offset, data, length, problem));
    print_message("%s\n", problem);
    assert_non_null(strstr(problem, says));
    assert_non_null(strstr(problem, "f00000005"));
}

static void each_kind_of_damage_is_named(void **state)
{
    uint8_t data[3 * 4096];

    (void)state;
    fileset_content(&set, 5, 3, 4096, data, sizeof(data));
    assert_true(fileset_verify(&set, 5, 3, 4096, data, sizeof(data), problem));
    data[5000] ^= 1;
    assert_damage(data, sizeof(data), 4096, "byte 9096 ");
    assert_damage(data, sizeof(data), 4096, "stamp is right");
    fileset_content(&set, 5, 2, 8192, data + 4096, 4096); /* a lost write */
    assert_damage(data, sizeof(data), 4096, "file 5, block 2, version 2");
    fileset_content(&set, 6, 3, 8192, data + 4096, 4096); /* another file's */
    assert_damage(data, sizeof(data), 4096, "file 6, block 2, version 3");
    fileset_content(&set, 5, 3, 4096, data + 4096, 4096); /* at the wrong place */
    assert_damage(data, sizeof(data), 4096, "file 5, block 1, version 3");
    memset(data + 4096, 0, 4096);
    assert_damage(data, sizeof(data), 4096, "all zeros");
    memset(data + 4096, 'x', 4096);
    assert_damage(data, sizeof(data), 4096, "no stamp");
    fileset_content(&set, 5, 3, 4096, data, sizeof(data));
    data[4096 + 2000] = (uint8_t)~data[4096 + 2000];
    assert_damage(data + 4096 + 100, 4000, 8192 + 100, "not among the bytes");
    fileset_content(&set, 5, 3, 4096, data, sizeof(data)); /* the last byte alone */
    data[sizeof(data) - 1] ^= 0x80;
    assert_damage(data, sizeof(data), 4096, "byte 16383 ");
}

static void versions_are_found_even_in_stumps(void **state)
{
    uint8_t data[4096];
    struct fileset_stamp stamp;
    uint32_t version;

    (void)state;
    fileset_content(&set, 8, 0x01020304, 4096, data, sizeof(data));
    assert_true(fileset_stamp_read(&set, data, &stamp));
    assert_int_equal(stamp.file, 8);
    assert_int_equal(stamp.block, 1);
    assert_int_equal(stamp.version, 0x01020304);
    for (size_t length = 4; length <= sizeof(data); length++) {
        assert_true(fileset_version_found(&set, 8, 1, data, length, &version));
        assert_int_equal(version, 0x01020304);
    }
    assert_false(fileset_version_found(&set, 8, 2, data, sizeof(data), &version));
    assert_true(fileset_version_found(&set, 8, 2, data, 1, &version)); /* too short to tell */
    data[17] ^= 1;
    assert_false(fileset_stamp_read(&set, data, &stamp));
    assert_false(fileset_version_found(&set, 8, 1, data, sizeof(data), &version));
    struct fileset other = make(1000, 16384, 8);

    fileset_content(&other, 8, 0, 0, data, sizeof(data));
    assert_false(fileset_stamp_read(&set, data, &stamp));
}

static void markers_tell_sets_apart(void **state)
{
    struct fileset_spec spec = set.spec;
    struct fileset other;
    char text[FILESET_MARKER_BYTES];
    char again[FILESET_MARKER_BYTES];
    size_t length = fileset_marker(&set, text);

    (void)state;
    assert_int_equal(length, strlen(text));
    assert_true(fileset_marker_matches(&set, text, length, problem));
    assert_false(fileset_marker_matches(&set, text, length - 1, problem));
    assert_false(fileset_marker_matches(&set, text, 0, problem));
    spec.popularity = FILESET_ZIPF; /* changes no file */
    snprintf(spec.root, sizeof(spec.root), "elsewhere");
    assert_int_equal(fileset_init(&other, &spec, problem), 0);
    fileset_marker(&other, again);
    assert_string_equal(again, text);
    spec.seed = 8;
    assert_int_equal(fileset_init(&other, &spec, problem), 0);
    assert_false(fileset_marker_matches(&other, text, length, problem));
    assert_string_equal(problem, "\"seed 7\" there, \"seed 8\" wanted");
    spec = set.spec;
    spec.size = (struct distribution){
        .kind = DISTRIBUTION_PARETO, .shape = 1.1, .least = 500, .most = 1000};
    assert_int_equal(fileset_init(&other, &spec, problem), 0);
    assert_false(fileset_marker_matches(&other, text, length, problem));
    fileset_marker(&other, text);
    spec.size.shape = 1.2;
    assert_int_equal(fileset_init(&other, &spec, problem), 0);
    assert_false(fileset_marker_matches(&other, text, strlen(text), problem));
}

static void check_file(const char *directory, const struct fileset *of, uint64_t file)
{
    char path[FILESET_PATH_BYTES];
    char full[1024];
    uint64_t size = fileset_size_bytes(of, file);
    uint8_t *data = malloc(size + 1);

    fileset_file_path(of, file, path);
    snprintf(full, sizeof(full), "%s/%s/%s", directory, of->spec.root, path);
    FILE *in = fopen(full, "rb");

    assert_non_null(in);
    assert_int_equal(fread(data, 1, size + 1, in), size);
    fclose(in);
    assert_true(fileset_verify(of, file, 0, 0, data, size, problem));
    free(data);
}

static void a_local_set_is_made_once(void **state)
{
    char directory[] = "/tmp/spillload-set-XXXXXX";
    char command[64];
    struct fileset_spec spec = fileset_defaults;
    struct fileset local;
    uint64_t made;

    (void)state;
    assert_non_null(mkdtemp(directory));
    spec.files = 300;
    spec.depth = 2;
    spec.width = 3;
    snprintf(spec.root, sizeof(spec.root), "deep/er");
    spec.size = (struct distribution){.kind = DISTRIBUTION_EXPONENTIAL, .mean = 20000};
    assert_int_equal(fileset_init(&local, &spec, problem), 0);
    assert_int_equal(fileset_make_local(&local, directory, 4, &made, problem), 0);
    assert_int_equal(made, 300);
    for (uint64_t i = 0; i < spec.files; i++)
        check_file(directory, &local, i);
    assert_int_equal(fileset_make_local(&local, directory, 4, &made, problem), 0);
    assert_int_equal(made, 0);
    spec.files = 301;
    assert_int_equal(fileset_init(&local, &spec, problem), 0);
    assert_int_equal(fileset_make_local(&local, directory, 4, &made, problem), -EEXIST);
    print_message("%s\n", problem);
    assert_non_null(strstr(problem, "\"files 300\" there, \"files 301\" wanted"));
    assert_int_equal(fileset_make_local(&local, "/nonexistent", 4, &made, problem), -ENOENT);
    assert_non_null(strstr(problem, "/nonexistent"));
    snprintf(command, sizeof(command), "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

/* A file of the set's tree is a directory: the maker says which one it is. */
static void what_is_in_the_way_is_named(void **state)
{
    char directory[] = "/tmp/spillload-set-XXXXXX";
    char command[64];
    struct fileset small = make(20, 100, 1);
    char path[512];
    uint64_t made;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/set", directory);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/set/d3", directory);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/set/d3/f00000013", directory);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(fileset_make_local(&small, directory, 2, &made, problem), -EISDIR);
    assert_non_null(strstr(problem, "set/d3/f00000013"));
    snprintf(path, sizeof(path), "%s/set/" FILESET_MARKER_NAME, directory);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(contents_equal_the_reference_at_any_offset, begin),
        cmocka_unit_test_setup(each_kind_of_damage_is_named, begin),
        cmocka_unit_test_setup(versions_are_found_even_in_stumps, begin),
        cmocka_unit_test_setup(markers_tell_sets_apart, begin),
        cmocka_unit_test(a_local_set_is_made_once),
        cmocka_unit_test(what_is_in_the_way_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
