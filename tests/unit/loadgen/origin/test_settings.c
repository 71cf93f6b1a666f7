/* SPDX-License-Identifier: Apache-2.0 */
/* Settings and errors to inject: their texts, and how often each error falls. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/origin/origin_settings.h"
#include "protocols/rpc/nfs3.h"

#define DRAWS 100000
#define SEED  11

static void errors_are_read_and_written_again(void **state)
{
    static const char *const texts[] = {"none",        "0.01:503",
                                        "0.005:reset", "0.02:nfs=JUKEBOX",
                                        "0.03",        "0.25:500,0.25:nfs=IO,0.5:reset"};
    struct origin_errors errors;
    char text[ORIGIN_ERRORS_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_int_equal(origin_errors_read(texts[i], &errors), 0);
        assert_string_equal(origin_errors_format(&errors, text), texts[i]);
    }
    assert_int_equal(origin_errors_read("2%", &errors), 0);
    assert_int_equal(errors.list[0].status[ORIGIN_HTTP], 503);
    assert_int_equal(errors.list[0].status[ORIGIN_NFS], NFS3_STATUS_JUKEBOX);
    assert_int_equal(origin_errors_read("2%:nfs=IO", &errors), 0);
    assert_false(errors.list[0].of[ORIGIN_HTTP]);
    assert_int_equal(errors.list[0].status[ORIGIN_NFS], NFS3_STATUS_IO);
}

static void wrong_errors_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "0",
                                        "0%",
                                        "101%",
                                        "1.5:503",
                                        "1%:",
                                        "1%:200",
                                        "1%:600",
                                        "1%:nfs=",
                                        "1%:nfs=nope",
                                        "1%:503,",
                                        "60%:503,60%:500",
                                        "-1%:503",
                                        "nan",
                                        ",1%",
                                        "1%,1%,1%,1%,1%,1%,1%,1%,1%"};
    struct origin_errors errors = {.count = 5};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        if (origin_errors_read(wrong[i], &errors) != -EINVAL)
            fail_msg("'%s' was taken", wrong[i]);
    }
    assert_int_equal(errors.count, 5);
    /* Each protocol has its own whole. */
    assert_int_equal(origin_errors_read("100%:503,100%:nfs=IO", &errors), 0);
}

static void errors_fall_as_often_as_they_should(void **state)
{
    struct origin_errors errors;
    struct rng rng;
    int by_kind[3] = {0};

    (void)state;
    print_message("seed %d\n", SEED);
    assert_int_equal(origin_errors_read("10%:503,20%:nfs=IO,30%:reset", &errors), 0);
    rng_init(&rng, SEED, 0);
    for (int i = 0; i < DRAWS; i++) {
        const struct origin_error *error = origin_errors_draw(&errors, ORIGIN_HTTP, &rng);

        by_kind[error ? error - errors.list : 1] += error != NULL;
    }
    /* Five standard errors of a binomial. */
    assert_in_range(by_kind[0], 10000 - 475, 10000 + 475);
    assert_int_equal(by_kind[1], 0);
    assert_in_range(by_kind[2], 30000 - 725, 30000 + 725);
    assert_int_equal(origin_errors_read("none", &errors), 0);
    assert_null(origin_errors_draw(&errors, ORIGIN_NFS, &rng));
}

static void read_all(struct origin_settings *settings, enum origin_setting setting,
                     const char *text)
{
    assert_int_equal(origin_setting_read(settings, setting, text), 0);
}

static void settings_are_read(void **state)
{
    struct origin_settings settings = origin_settings_defaults;

    (void)state;
    assert_int_equal(settings.slots, 8);
    read_all(&settings, ORIGIN_SETTING_SERVICE, "10ms");
    assert_int_equal(settings.time.kind, DISTRIBUTION_EXPONENTIAL);
    read_all(&settings, ORIGIN_SETTING_DISTRIBUTION, "fixed");
    read_all(&settings, ORIGIN_SETTING_SERVICE, "20ms");
    assert_int_equal(settings.time.kind, DISTRIBUTION_FIXED);
    assert_int_equal(settings.time.mean, 20000000);
    read_all(&settings, ORIGIN_SETTING_SERVICE, "lognormal:10ms:1.2");
    assert_int_equal(settings.time.kind, DISTRIBUTION_LOGNORMAL);
    read_all(&settings, ORIGIN_SETTING_SERVICE, "5ms");
    assert_int_equal(settings.time.kind, DISTRIBUTION_EXPONENTIAL);
    read_all(&settings, ORIGIN_SETTING_SLOTS, "0");
    assert_int_equal(settings.slots, 0);
    read_all(&settings, ORIGIN_SETTING_WORK, "cpu");
    assert_true(settings.burn);
    read_all(&settings, ORIGIN_SETTING_SLOW_BODY, "64KiB/s");
    assert_int_equal(settings.slow_body_bytes_per_s, 65536);
    read_all(&settings, ORIGIN_SETTING_SLOW_BODY, "none");
    assert_int_equal(settings.slow_body_bytes_per_s, 0);
    read_all(&settings, ORIGIN_SETTING_FIRST_BYTE, "2ms");
    read_all(&settings, ORIGIN_SETTING_RETRY_AFTER, "30");
    assert_int_equal(settings.retry_after_s, 30);
    read_all(&settings, ORIGIN_SETTING_STALL, "every=1s,for=1ms");
    assert_true(origin_settings_agree(&settings));
}

static void wrong_settings_are_refused(void **state)
{
    static const struct {
        enum origin_setting setting;
        const char *text;
    } wrong[] = {{ORIGIN_SETTING_SLOTS, "x"},
                 {ORIGIN_SETTING_SLOTS, "1000001"},
                 {ORIGIN_SETTING_SERVICE, "10"},
                 {ORIGIN_SETTING_SERVICE, "lognormal:10ms"},
                 {ORIGIN_SETTING_SERVICE, "list:/nowhere"},
                 {ORIGIN_SETTING_DISTRIBUTION, "pareto"},
                 {ORIGIN_SETTING_WORK, "gpu"},
                 {ORIGIN_SETTING_SLOW_BODY, "0"},
                 {ORIGIN_SETTING_FIRST_BYTE, "5"},
                 {ORIGIN_SETTING_RETRY_AFTER, "-1"},
                 {ORIGIN_SETTING_SCHEDULE, "50% 20%"},
                 {ORIGIN_SETTING_STALL, "10s"},
                 {ORIGIN_SETTING_ERROR, "1%:odd"}};
    struct origin_settings settings = origin_settings_defaults;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        if (origin_setting_read(&settings, wrong[i].setting, wrong[i].text) >= 0)
            fail_msg("%s '%s' was taken", origin_setting_name(wrong[i].setting), wrong[i].text);
    }
    assert_memory_equal(&settings, &origin_settings_defaults, sizeof(settings));
    for (int i = 0; i < ORIGIN_SETTINGS; i++) {
        assert_int_equal(origin_setting_of(origin_setting_name((enum origin_setting)i)), i);
        assert_non_null(origin_setting_expected((enum origin_setting)i));
    }
    assert_int_equal(origin_setting_of("odd"), ORIGIN_SETTINGS);
    read_all(&settings, ORIGIN_SETTING_SCHEDULE, "100/s:1s 50/s");
    assert_false(origin_settings_agree(&settings));
    read_all(&settings, ORIGIN_SETTING_SERVICE, "1ms");
    assert_true(origin_settings_agree(&settings));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_read_and_written_again),
        cmocka_unit_test(wrong_errors_are_refused),
        cmocka_unit_test(errors_fall_as_often_as_they_should),
        cmocka_unit_test(settings_are_read),
        cmocka_unit_test(wrong_settings_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
