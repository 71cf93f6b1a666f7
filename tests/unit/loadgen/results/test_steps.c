/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a sweep, from their text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/results/statistics/steps.h"

/* All values as text, in one. */
static void becomes(const char *text, const char *name, const char *values)
{
    static struct steps steps;
    char all[1024] = "";
    size_t used = 0;

    if (steps_parse(text, &steps) != 0)
        fail_msg("%s was refused", text);
    assert_string_equal(steps.name, name);
    for (size_t i = 0; i < steps.count; i++) {
        char value[64];

        steps_format(&steps, i, value, sizeof(value));
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? " " : "", value);
    }
    assert_string_equal(all, values);
}

static void ranges_and_lists(void **state)
{
    (void)state;
    becomes("rate=100/s..500/s:5", "rate", "100/s 200/s 300/s 400/s 500/s");
    becomes("rate=100..500/s:3", "rate", "100/s 300/s 500/s");
}

static void one_unit_for_all(void **state)
{
    (void)state;
    becomes("think=1ms..2ms:3", "think", "1ms 2ms");
    becomes("think=1.5ms..3ms:4", "think", "1.5ms 2ms 2.5ms 3ms");
    becomes("transfer=4KiB,16KiB,64KiB", "transfer", "4KiB 16KiB 64KiB");
}

static void factors(void **state)
{
    (void)state;
    becomes("concurrency=1..256:x9", "concurrency", "1 2 4 8 16 32 64 128 256");
    becomes("concurrency=1..8:x8", "concurrency", "1 2 3 4 6 8");
    becomes("scale=0.5..2.0:x3", "scale", "0.5 1 2");
}

static void what_is_no_range_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "rate",
        "rate=",
        "=1..2:3",
        "rate=1..2",
        "rate=2..1:3",
        "rate=1..2:1",
        "rate=1..2:x",
        "rate=0..2:x3",
        "rate=1..2:3.5",
        "rate=1..2:3y",
        "rate=1/s,2/m",
        "rate=1,1",
        "rate=2,1",
        "rate=1,,2",
        "rate=-1..2:3",
        "rate=a..b:3",
        "rate=1..2:1001",
        "rate=1ms..2s:3",
        "rate=1,2,",
    };
    static struct steps steps;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (steps_parse(wrong[i], &steps) != -EINVAL)
            fail_msg("%s was taken", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_and_lists),
        cmocka_unit_test(one_unit_for_all),
        cmocka_unit_test(factors),
        cmocka_unit_test(what_is_no_range_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
