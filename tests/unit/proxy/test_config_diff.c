/* SPDX-License-Identifier: Apache-2.0 */
/* What a running proxy takes over from a new configuration, and what it says about the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/config/config.h"

static struct config *load(const char *text)
{
    struct config_errors errors;
    struct config *config;

    config_errors_init(&errors);
    assert_int_equal(config_load_text("f", text, strlen(text), CONFIG_NO_LOOKUP, &config, &errors),
                     0);
    config_errors_fini(&errors);
    return config;
}

#define BEFORE                                                                                     \
    "workers: 2\n"                                                                                 \
    "listeners:\n"                                                                                 \
    "- { name: web, bind: ['127.0.0.1:1', '127.0.0.1:2'], protocol: http, pool: farm }\n"          \
    "- { name: nas, bind: '127.0.0.1:3', protocol: nfs, pool: array }\n"                           \
    "pools:\n"                                                                                     \
    "- { name: farm, servers: ['127.0.0.1:4'] }\n"                                                 \
    "- { name: array, servers: ['127.0.0.1:5'] }\n"

/* Expects the keys, joined by spaces, of what needs a restart; "" = all is live. */
static void expect_changes(const char *after, const char *keys)
{
    struct config *old = load(BEFORE), *new = load(after);
    struct config_errors errors;
    char found[256] = "";

    config_errors_init(&errors);
    assert_int_equal(config_diff_is_live(old, new, &errors), keys[0] == '\0');
    for (size_t i = 0; i < errors.count; i++) {
        assert_non_null(strstr(errors.list[i].message, ": needs a restart"));
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i > 0 ? " " : "",
                 errors.list[i].key);
    }
    assert_string_equal(found, keys);
    config_errors_fini(&errors);
    config_free(old);
    config_free(new);
}

static void the_same_is_live(void **state)
{
    (void)state;
    expect_changes(BEFORE, "");
}

static void most_is_live(void **state)
{
    (void)state;
    expect_changes(
        "workers: 2\n"
        "drain-timeout: 1s\n"
        "log: { level: debug, access: stderr }\n"
        "listeners:\n"
        "- { name: web, bind: ['127.0.0.1:2', '127.0.0.1:1'], protocol: http, pool: farm,\n"
        "    routes: [{ match: { path: /a }, pool: farm }], limits: { body: 1MiB },\n"
        "    timeouts: { header: 1s }, trusted-proxies: [10.0.0.0/8] }\n"
        "- { name: nas, bind: '127.0.0.1:3', protocol: nfs, pool: array }\n"
        "pools:\n"
        "- { name: array, servers: ['127.0.0.1:6', '127.0.0.1:7'], scheduler: fifo,\n"
        "    admission: { algorithm: codel, target: 1ms, action: refuse } }\n"
        "- { name: farm, servers: [{ address: '127.0.0.1:4', depth: 3 }], depth: 2,\n"
        "    cost: { by: bytes }, queue: { limit: 9 }, admission: duk, timeouts: { connect: 1s },\n"
        "    flows: [{ name: a, weight: 7, by: client-address }] }\n",
        "");
}

static void the_process_stays_as_it_is(void **state)
{
    (void)state;
    expect_changes("user: nobody\ngroup: nogroup\npid-file: /run/p\nopen-files: 999\n"
                   "admin: { socket: /run/s, http: '127.0.0.1:99' }\n" BEFORE,
                   "user group pid-file open-files admin.socket admin.http");
    expect_changes(
        "workers: 3\n"
        "listeners:\n"
        "- { name: web, bind: ['127.0.0.1:1', '127.0.0.1:2'], protocol: http, pool: farm }\n"
        "- { name: nas, bind: '127.0.0.1:3', protocol: nfs, pool: array }\n"
        "pools:\n"
        "- { name: farm, servers: ['127.0.0.1:4'] }\n"
        "- { name: array, servers: ['127.0.0.1:5'] }\n",
        "workers");
}

static void listeners_stay_where_they_are(void **state)
{
    (void)state;
    expect_changes(
        "workers: 2\n"
        "listeners:\n"
        "- { name: web, bind: ['127.0.0.1:1', '127.0.0.1:9'], protocol: http, pool: farm }\n"
        "- { name: san, bind: '127.0.0.1:3', protocol: nfs, pool: array }\n"
        "- { name: new, bind: '127.0.0.1:10', protocol: nfs, pool: array }\n"
        "pools:\n"
        "- { name: farm, servers: ['127.0.0.1:4'] }\n"
        "- { name: array, servers: ['127.0.0.1:5'] }\n",
        "listeners[0].bind listeners[1] listeners");
}

static void a_listener_keeps_its_protocol_and_so_does_its_pool(void **state)
{
    (void)state;
    expect_changes(
        "workers: 2\n"
        "listeners:\n"
        "- { name: web, bind: ['127.0.0.1:1', '127.0.0.1:2'], protocol: nfs, pool: farm }\n"
        "- { name: nas, bind: '127.0.0.1:3', protocol: nfs, pool: array }\n"
        "pools:\n"
        "- { name: farm, servers: ['127.0.0.1:4'] }\n"
        "- { name: array, servers: ['127.0.0.1:5'] }\n",
        "listeners[0].protocol pools[0]");
}

static void pools_come_and_go_at_a_restart(void **state)
{
    (void)state;
    expect_changes(
        "workers: 2\n"
        "listeners:\n"
        "- { name: web, bind: ['127.0.0.1:1', '127.0.0.1:2'], protocol: http, pool: barn }\n"
        "- { name: nas, bind: '127.0.0.1:3', protocol: nfs, pool: array }\n"
        "pools:\n"
        "- { name: barn, servers: ['127.0.0.1:4'] }\n"
        "- { name: array, servers: ['127.0.0.1:5'], depth-unit: cost }\n",
        "pools[0] pools[1].depth-unit pools");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_live),
        cmocka_unit_test(most_is_live),
        cmocka_unit_test(the_process_stays_as_it_is),
        cmocka_unit_test(listeners_stay_where_they_are),
        cmocka_unit_test(a_listener_keeps_its_protocol_and_so_does_its_pool),
        cmocka_unit_test(pools_come_and_go_at_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
