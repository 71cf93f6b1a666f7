/* SPDX-License-Identifier: Apache-2.0 */
/* The process and its host: the pid file's rules, and the limit of open files. */
#include "proxy/core/process.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/spillway-process-XXXXXX";
static char path[64];

static int make_directory(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/pid", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static long read_file(void)
{
    FILE *file = fopen(path, "re");
    long number = -1;
    char line[32];

    assert_non_null(file);
    if (fgets(line, sizeof(line), file) != NULL)
        number = strtol(line, NULL, 10);
    assert_int_equal(fclose(file), 0);
    return number;
}

static void the_pid_file_holds_the_process_id(void **state)
{
    (void)state;
    assert_int_equal(process_write_pid_file(NULL), 0);
    process_remove_pid_file();
    assert_int_equal(process_write_pid_file(path), 0);
    assert_int_equal(read_file(), getpid());
    /* Its own file may be written again. */
    assert_int_equal(process_write_pid_file(path), 0);
    process_remove_pid_file();
    assert_int_equal(access(path, F_OK), -1);
}

static void a_living_process_keeps_its_file(void **state)
{
    (void)state;
    /* The first process always lives. */
    write_file("1\n");
    assert_int_equal(process_write_pid_file(path), -EEXIST);
    assert_int_equal(read_file(), 1);
}

static void a_dead_process_or_nonsense_is_overwritten(void **state)
{
    char text[32];
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    snprintf(text, sizeof(text), "%d\n", (int)child);
    write_file(text);
    assert_int_equal(process_write_pid_file(path), 0);
    assert_int_equal(read_file(), getpid());
    write_file("not a number\n");
    assert_int_equal(process_write_pid_file(path), 0);
    assert_int_equal(read_file(), getpid());
    write_file("-1\n");
    assert_int_equal(process_write_pid_file(path), 0);
    assert_int_equal(read_file(), getpid());
    process_remove_pid_file();
}

static void a_file_that_cannot_be_made_is_an_error(void **state)
{
    char nowhere[128];

    (void)state;
    snprintf(nowhere, sizeof(nowhere), "%s/missing/pid", directory);
    assert_int_equal(process_write_pid_file(nowhere), -ENOENT);
    /* Opening this one would wait for a reader. */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(process_write_pid_file(path), -EINVAL);
    assert_int_equal(unlink(path), 0);
}

static void open_files_are_raised_as_far_as_allowed(void **state)
{
    struct rlimit before;
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 128, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    process_raise_open_files(200);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 200);
    process_raise_open_files(0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, before.rlim_max);
    /* More than the kernel gives to anybody: what is allowed, and said. */
    process_raise_open_files(UINT64_C(1) << 40);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, before.rlim_max);
}

static void nobody_to_become_changes_nothing(void **state)
{
    struct config config = {.has_user = false};
    uid_t uid = geteuid();

    (void)state;
    assert_int_equal(process_drop_privileges(&config), 0);
    assert_int_equal(geteuid(), uid);
}

static void becoming_another_user_is_for_good(void **state)
{
    struct config config = {
        .has_user = true, .has_group = true, .user = "nobody", .uid = 65534, .gid = 65534};
    int status = -1;

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool became = process_drop_privileges(&config) == 0 && geteuid() == 65534 &&
                      getegid() == 65534 && setuid(0) < 0;
        _exit(became ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pid_file_holds_the_process_id),
        cmocka_unit_test(a_living_process_keeps_its_file),
        cmocka_unit_test(a_dead_process_or_nonsense_is_overwritten),
        cmocka_unit_test(a_file_that_cannot_be_made_is_an_error),
        cmocka_unit_test(open_files_are_raised_as_far_as_allowed),
        cmocka_unit_test(nobody_to_become_changes_nothing),
        cmocka_unit_test(becoming_another_user_is_for_good),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
