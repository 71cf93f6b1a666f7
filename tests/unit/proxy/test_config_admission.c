/* SPDX-License-Identifier: Apache-2.0 */
/* A pool's admission: what the file becomes, what is said about it, and single settings. */
#include <errno.h>

#include "tests/unit/proxy/config_findings.h"

#define MILLISECOND_NS UINT64_C(1000000)

/* ------------------------------------------------------------------ what becomes of it */

static void everybody_joins_unless_said(void **state)
{
    struct config *config = load(HTTP POOL);
    const struct config_admission *admission = &config->pools[0].admission;

    (void)state;
    assert_int_equal(admission->algorithm, ADMIT_NONE);
    assert_int_equal(admission->limit, 64);
    assert_int_equal(admission->target_ns, 0);
    assert_int_equal(admission->interval_ns, 0);
    config_free(config);
}

static void every_policy_is_chosen_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < ADMIT_POLICIES; i++) {
        char text[512];

        snprintf(text, sizeof(text), HTTP POOL "  admission: %s\n",
                 admit_policy_name((enum admit_policy)i));
        struct config *config = load(text);
        assert_int_equal(config->pools[0].admission.algorithm, i);
        config_free(config);
    }
}

static void every_key_is_taken_over(void **state)
{
    struct config *config = load(HTTP POOL "  admission: { algorithm: codel, action: mark, target: "
                                           "3ms, interval: 70ms }\n");
    const struct config_admission *admission = &config->pools[0].admission;

    (void)state;
    assert_int_equal(admission->algorithm, ADMIT_CODEL);
    assert_int_equal(admission->action, CONFIG_ADMISSION_MARK);
    assert_int_equal(admission->target_ns, 3 * MILLISECOND_NS);
    assert_int_equal(admission->interval_ns, 70 * MILLISECOND_NS);
    config_free(config);
    config = load(NFS POOL "  admission: { algorithm: tail, action: refuse, limit: 9 }\n");
    admission = &config->pools[0].admission;
    assert_int_equal(admission->algorithm, ADMIT_TAIL);
    assert_int_equal(admission->action, CONFIG_ADMISSION_REFUSE);
    assert_int_equal(admission->limit, 9);
    config_free(config);
}

static enum config_admission_action action_of(const char *text)
{
    char *printed;
    struct config *config = load_and_print(text, &printed);

    assert_non_null(config);
    enum config_admission_action action = config->pools[0].admission.action;
    config_free(config);
    free(printed);
    return action;
}

static void the_action_goes_by_the_protocol(void **state)
{
    (void)state;
    assert_int_equal(action_of(HTTP POOL "  admission: duk\n"), CONFIG_ADMISSION_REFUSE);
    assert_int_equal(action_of(NFS POOL "  admission: duk\n"), CONFIG_ADMISSION_MARK);
    assert_int_equal(action_of(NFS POOL "  admission: { algorithm: duk, action: auto }\n"),
                     CONFIG_ADMISSION_MARK);
    assert_int_equal(action_of(NFS POOL), CONFIG_ADMISSION_MARK);
    /* The first pool is one that no listener uses. */
    assert_int_equal(action_of(NFS "pools:\n- { name: idle, servers: ['10.0.0.2:80'] }\n"
                                   "- { name: farm, servers: ['10.0.0.1:80'] }\n"),
                     CONFIG_ADMISSION_REFUSE);
}

/* ------------------------------------------------------------------ what is said about it */

static void what_the_policy_does_not_read(void **state)
{
    (void)state;
    expect(HTTP POOL "  admission: { algorithm: duk, limit: 9, target: 1ms, interval: 1s }\n",
           "f:5:39: warning: pools[0].admission.limit: has no effect with algorithm duk; it is "
           "for tail\n"
           "f:5:50: warning: pools[0].admission.target: has no effect with algorithm duk; it is "
           "for codel and pie\n"
           "f:5:65: warning: pools[0].admission.interval: has no effect with algorithm duk; it is "
           "for codel and duk-literal\n",
           true);
    expect(HTTP POOL "  admission: { action: mark }\n",
           "f:5:24: warning: pools[0].admission.action: has no effect with algorithm none; it is "
           "for those that keep something out\n",
           true);
    expect(HTTP POOL "  admission: { algorithm: pie, target: 2ms, interval: 2ms }\n",
           "f:5:55: warning: pools[0].admission.interval: has no effect with algorithm pie; it is "
           "for codel and duk-literal\n",
           true);
    expect(HTTP POOL "  admission: { algorithm: duk-literal, interval: 2ms }\n", "", true);
}

static void what_the_queue_ends_before(void **state)
{
    (void)state;
    expect(HTTP POOL "  admission: { algorithm: tail, limit: 90 }\n  queue: { limit: 89 }\n",
           "f:5:40: warning: pools[0].admission.limit: tail's limit of 90 is never reached, since "
           "queue.limit is 89; expected less than that\n",
           true);
    expect(HTTP POOL "  admission: tail\n  queue: { limit: 63 }\n",
           "f:5:14: warning: pools[0].admission.algorithm: tail's limit of 64 is never reached, "
           "since queue.limit is 63; expected less than that\n",
           true);
    expect(HTTP POOL "  admission: tail\n  queue: { limit: 64 }\n", "", true);
    /* Requests are not what it counts. */
    expect(HTTP POOL "  admission: tail\n  queue: { limit: 63 }\n  depth-unit: cost\n", "", true);
    expect(HTTP POOL "  admission: { algorithm: pie, target: 2s }\n  queue: { timeout: 2s }\n",
           "f:5:40: warning: pools[0].admission.target: is never reached, since no request waits "
           "longer than queue.timeout; expected less than that\n",
           true);
    expect(HTTP POOL "  admission: { algorithm: pie, target: 2s }\n  queue: { timeout: off }\n", "",
           true);
}

static void values_that_are_wrong(void **state)
{
    (void)state;
    /* One word about an unknown policy, not one more for each key that goes with it. */
    expect(HTTP POOL "  admission: { algorithm: red, limit: 9, target: 1ms }\n",
           "f:5:27: pools[0].admission.algorithm: `red` is unknown; expected one of: none, tail, "
           "codel, pie, duk-literal, duk\n",
           false);
    expect(HTTP POOL "  admission: { algorithm: duk, action: drop }\n",
           "f:5:40: pools[0].admission.action: `drop` is unknown; expected one of: auto, refuse, "
           "mark\n",
           false);
    expect(HTTP POOL "  admission: { algorithm: tail, limit: 0 }\n",
           "f:5:40: pools[0].admission.limit: `0` is out of range; expected a number from 1 to "
           "100000000\n",
           false);
    expect(HTTP POOL "  admission: { algorithm: codel, target: 20 }\n",
           "f:5:42: pools[0].admission.target: `20` has no unit of time; expected a time such as "
           "30s (units us, ms, s, m, h) from 1us to 24h or auto\n",
           false);
}

/* ------------------------------------------------------------------ single settings */

static void settings_read_as_in_the_file(void **state)
{
    struct config_admission admission = {.action = CONFIG_ADMISSION_REFUSE, .limit = 64};
    char why[256] = "";

    (void)state;
    assert_int_equal(config_set_admission(&admission, false, "admission", "pie", why, sizeof(why)),
                     0);
    assert_int_equal(admission.algorithm, ADMIT_PIE);
    assert_int_equal(
        config_set_admission(&admission, false, "admission-limit", "7", why, sizeof(why)), 0);
    assert_int_equal(admission.limit, 7);
    assert_int_equal(
        config_set_admission(&admission, false, "admission-target", "9ms", why, sizeof(why)), 0);
    assert_int_equal(admission.target_ns, 9 * MILLISECOND_NS);
    assert_int_equal(
        config_set_admission(&admission, false, "admission-interval", "90ms", why, sizeof(why)), 0);
    assert_int_equal(admission.interval_ns, 90 * MILLISECOND_NS);
    assert_int_equal(
        config_set_admission(&admission, false, "admission-interval", "auto", why, sizeof(why)), 0);
    assert_int_equal(admission.interval_ns, 0);
    assert_int_equal(admission.action, CONFIG_ADMISSION_REFUSE);
    assert_string_equal(why, "");
}

static void a_set_action_goes_by_the_protocol_too(void **state)
{
    struct config_admission admission = {.action = CONFIG_ADMISSION_REFUSE};
    char why[256] = "";

    (void)state;
    assert_int_equal(
        config_set_admission(&admission, false, "admission-action", "mark", why, sizeof(why)), 0);
    assert_int_equal(admission.action, CONFIG_ADMISSION_MARK);
    assert_int_equal(
        config_set_admission(&admission, false, "admission-action", "auto", why, sizeof(why)), 0);
    assert_int_equal(admission.action, CONFIG_ADMISSION_REFUSE);
    assert_int_equal(
        config_set_admission(&admission, true, "admission-action", "auto", why, sizeof(why)), 0);
    assert_int_equal(admission.action, CONFIG_ADMISSION_MARK);
}

static void wrong_settings_change_nothing(void **state)
{
    static const char *const strangers[] = {
        "algorithm", "limit", "slack", "admission-", "admission-actions", "admissions", ""};
    struct config_admission admission = {.algorithm = ADMIT_DUK, .action = CONFIG_ADMISSION_MARK};
    char why[256] = "";

    (void)state;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        assert_int_equal(
            config_set_admission(&admission, true, strangers[i], "1", why, sizeof(why)), -ENOENT);
        assert_string_equal(why, "");
    }
    assert_int_equal(config_set_admission(&admission, true, "admission", "red", why, sizeof(why)),
                     -EINVAL);
    assert_string_equal(why, "admission: `red` is unknown; expected one of: none, tail, codel, "
                             "pie, duk-literal, duk");
    assert_int_equal(
        config_set_admission(&admission, true, "admission-limit", "0", why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "admission-limit: `0` is out of range; expected a number from 1 to "
                             "100000000");
    assert_int_equal(admission.algorithm, ADMIT_DUK);
    assert_int_equal(admission.action, CONFIG_ADMISSION_MARK);
    assert_int_equal(admission.limit, 0);
}

static void settings_know_their_policies(void **state)
{
    (void)state;
    assert_null(config_admission_readers("admission", ADMIT_NONE));
    assert_null(config_admission_readers("admission-action", ADMIT_DUK));
    assert_null(config_admission_readers("admission-limit", ADMIT_TAIL));
    assert_null(config_admission_readers("admission-interval", ADMIT_DUK_LITERAL));
    assert_string_equal(config_admission_readers("admission-limit", ADMIT_DUK), "tail");
    assert_string_equal(config_admission_readers("admission-target", ADMIT_TAIL), "codel and pie");
    assert_string_equal(config_admission_readers("admission-action", ADMIT_NONE),
                        "those that keep something out");
    assert_null(config_admission_readers("limit", ADMIT_DUK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_joins_unless_said),
        cmocka_unit_test(every_policy_is_chosen_by_its_name),
        cmocka_unit_test(every_key_is_taken_over),
        cmocka_unit_test(the_action_goes_by_the_protocol),
        cmocka_unit_test(what_the_policy_does_not_read),
        cmocka_unit_test(what_the_queue_ends_before),
        cmocka_unit_test(values_that_are_wrong),
        cmocka_unit_test(settings_read_as_in_the_file),
        cmocka_unit_test(a_set_action_goes_by_the_protocol_too),
        cmocka_unit_test(wrong_settings_change_nothing),
        cmocka_unit_test(settings_know_their_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
