/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a call that failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/client/nfs/nfs_calls.h"

static void a_status_is_named(void **state)
{
    char text[NFS_CALL_PROBLEM_BYTES];

    (void)state;
    assert_string_equal(nfs_call_problem(28, text), "NFS status 28 (NOSPC)");
    assert_string_equal(nfs_call_problem(10006, text), "NFS status 10006 (SERVERFAULT)");
    assert_string_equal(nfs_call_problem(4043319057U, text), "NFS status 4043319057");
}

static void without_a_status_none_is_told(void **state)
{
    char text[NFS_CALL_PROBLEM_BYTES];

    (void)state;
    assert_null(strstr(nfs_call_problem(0, text), "status"));
    assert_non_null(strstr(nfs_call_problem(0, text), "malformed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_named),
        cmocka_unit_test(without_a_status_none_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
