/* SPDX-License-Identifier: Apache-2.0 */
/* Out of memory: the process says what it wanted and ends with its own status, so that a supervisor
 * knows. */
#include "proxy/io/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Runs `attempt` in a child; returns its exit status, with what it wrote to stderr in `text`. */
static int end_of_child(void (*attempt)(void), char *text, size_t size)
{
    int ends[2];
    int status = 0;
    size_t length = 0;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        attempt();
        _exit(0);
    }
    close(ends[1]);
    for (;;) {
        ssize_t count = read(ends[0], text + length, size - 1 - length);
        if (count <= 0)
            break;
        length += (size_t)count;
    }
    text[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static size_t too_much(void)
{
    /* Volatile, so that the compiler does not reason about it. */
    volatile size_t half = SIZE_MAX / 4;

    return half;
}

static void want_too_much(void)
{
    memory_alloc(too_much(), "a flow of the test");
}

static void grow_too_much(void)
{
    memory_resize(memory_alloc(16, "a block"), too_much(), "a growing block");
}

static void library_failed(void)
{
    memory_fail("a scheduler");
}

static void running_out_is_said_and_has_its_own_status(void **state)
{
    static const struct {
        void (*attempt)(void);
        const char *wanted;
    } rows[] = {{want_too_much, "for a flow of the test;"},
                {grow_too_much, "for a growing block;"},
                {library_failed, "for a scheduler;"}};
    char text[4096];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(end_of_child(rows[i].attempt, text, sizeof(text)), MEMORY_EXIT_STATUS);
        assert_non_null(strstr(text, "spillway: out of memory: "));
        assert_non_null(strstr(text, rows[i].wanted));
        assert_non_null(strstr(text, "more memory\n"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_out_is_said_and_has_its_own_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
