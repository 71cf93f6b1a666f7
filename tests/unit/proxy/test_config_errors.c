/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user is told: for each kind of mistake, a configuration with it and all that must be said,
 * with its place. A row's text is a whole file; `expected` is the printed list, a finding per line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/config/config.h"

/* The rest of a file that has its mistake elsewhere: two lines and three. */
#define LISTENERS    "listeners:\n- { name: web, bind: '*:80', protocol: http, pool: farm }\n"
#define NFS_LISTENER "listeners:\n- { name: nas, bind: '*:2049', protocol: nfs, pool: farm }\n"
#define POOLS        "pools:\n- name: farm\n  servers: ['10.0.0.1:80']\n"

struct row {
    const char *text;
    const char *expected;
};

/* Loads without lookups, and checks what is printed. */
static void expect_findings(const struct row *row, int result)
{
    struct config_errors errors;
    struct config *config;
    char *printed = NULL;
    size_t length;
    FILE *out = open_memstream(&printed, &length);

    config_errors_init(&errors);
    assert_int_equal(
        config_load_text("f", row->text, strlen(row->text), CONFIG_NO_LOOKUP, &config, &errors),
        result);
    assert_true((config == NULL) == (result != 0));
    config_errors_print(&errors, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(printed, row->expected);
    free(printed);
    config_free(config);
    config_errors_fini(&errors);
}

static void expect_rows(const struct row *rows, size_t count, int result)
{
    for (size_t i = 0; i < count; i++) {
        expect_findings(&rows[i], result);
    }
}

#define EXPECT(rows, result) expect_rows(rows, sizeof(rows) / sizeof((rows)[0]), result)

static void text_that_is_not_yaml(void **state)
{
    static const struct row rows[] = {
        {"", "f:1:1: nothing is configured; expected at least `listeners` and `pools`\n"},
        {"# only a comment\n",
         "f:1:1: nothing is configured; expected at least `listeners` and `pools`\n"},
        {"a: b: c\n", "f:1:5: not YAML: mapping values are not allowed in this context\n"},
        {"pools: [a, b\nx: 1\n", "f:2:2: not YAML: did not find expected ',' or ']', while parsing "
                                 "a flow sequence that began in line 1\n"},
        {"a: \"open\n", "f:2:1: not YAML: found unexpected end of stream, while scanning a quoted "
                        "scalar that began in line 1\n"},
        {"\tworkers: 1\n", "f:1:1: not YAML: found character that cannot start any token, while "
                           "scanning for the next token that began in line 1\n"},
        {"a: \xff\n", "f:1:1: not YAML: invalid leading UTF-8 octet (byte 3)\n"},
        {LISTENERS POOLS "---\na: 1\n",
         "f:6:1: a second YAML document begins; expected one document in a file\n"},
        {"? [a]\n: b\n", "f:1:3: a key is a map or a list; expected a plain word as the key\n"},
        {"pid-file: \"a\\0b\"\n",
         "f:1:11: the value has a control character in it; expected one line of text\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void anchors_and_aliases(void **state)
{
    static const struct row bad[] = {
        {"a: *x\n", "f:1:4: the alias names an anchor that is not there\n"},
        {"a: &x [*x]\n", "f:1:8: the alias stands inside of its own anchor\n"},
        {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
         "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
         "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
         "f:5:20: the aliases make the configuration too large\n"},
        {"a: [[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]\n",
         "f:1:27: too many maps and lists inside each other\n"},
    };
    static const struct row good[] = {
        {LISTENERS POOLS
         "  flows:\n  - { name: a, match: &m { path: /a } }\n"
         "- { name: spare, servers: ['[::1]:1'], flows: [{ name: b, match: *m }] }\n",
         "f:8:3: warning: pools[1]: no listener leads to pool `spare`\n"},
    };
    (void)state;
    EXPECT(bad, -EINVAL);
    EXPECT(good, 0);
}

static void keys_that_are_not_there(void **state)
{
    static const struct row rows[] = {
        {"worker: 1\n" LISTENERS POOLS, "f:1:1: worker: unknown key; did you mean `workers`?\n"},
        {"pid_file: /run/x\n" LISTENERS POOLS,
         "f:1:1: pid_file: unknown key; did you mean `pid-file`?\n"},
        {"depth: 1\n" LISTENERS POOLS, "f:1:1: depth: unknown key here; it is a key of pools[]\n"},
        {"zzzzzz: 1\n" LISTENERS POOLS,
         "f:1:1: zzzzzz: unknown key; expected one of: workers, user, group, pid-file, "
         "drain-timeout, open-files, log, admin, listeners, pools\n"},
        {"workers: 1\nworkers: 2\n" LISTENERS POOLS,
         "f:2:1: workers: given twice; the first is in line 1\n"},
        {LISTENERS, "f:1:1: pools: missing; expected a list of maps of keys\n"},
        {POOLS, "f:1:1: listeners: missing; expected a list of maps of keys\n"},
        {LISTENERS "pools:\n- { name: farm }\n",
         "f:4:3: pools[0].servers: missing; expected a list of maps of keys\n"},
        {LISTENERS POOLS "  flows: [{ weight: 2 }]\n",
         "f:6:11: pools[0].flows[0].name: missing; expected a name (letters, digits and "
         "._-:/@+)\n"},
        {LISTENERS POOLS "  flows: [{ name: a, by: { source: uid } }]\n",
         "f:6:28: pools[0].flows[0].by.source: unknown key; expected one of: header\n"},
        {LISTENERS "pools:\n- { name: farm, servers: [{ address: { text: '10.0.0.1:1' } }] }\n",
         "f:4:38: pools[0].servers[0].address: is a map; expected IP:PORT, [IPV6]:PORT, NAME:PORT "
         "or unix:/PATH\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void values_of_the_wrong_kind(void **state)
{
    static const struct row rows[] = {
        {"- 1\n", "f:1:1: the file is a list; expected a map with `listeners` and `pools`\n"},
        {"hello\n",
         "f:1:1: the file is a single value; expected a map with `listeners` and `pools`\n"},
        {"workers: [1]\n" LISTENERS POOLS,
         "f:1:10: workers: is a list; expected a number from 1 to 256 or auto\n"},
        {"workers:\n" LISTENERS POOLS,
         "f:1:9: workers: has no value; expected a number from 1 to 256 or auto\n"},
        {"log: debug\n" LISTENERS POOLS, "f:1:6: log: is a single value; expected a map of keys\n"},
        {LISTENERS "pools: { name: farm }\n",
         "f:3:8: pools: is a map; expected a list of maps of keys\n"},
        {LISTENERS "pools: []\n", "f:3:8: pools: is an empty list; expected at least one entry\n"},
        {LISTENERS POOLS "  flows: []\n",
         "f:6:10: pools[0].flows: is an empty list; expected at least one entry, or leave the key "
         "out\n"},
        {LISTENERS POOLS "  flows: [{ name: a, match: { header: gold } }]\n",
         "f:6:39: pools[0].flows[0].match.header: is a single value; expected a map of "
         "HEADER-NAME: VALUE\n"},
        {LISTENERS POOLS "  flows: [{ name: a, match: { header: { X: [1] } } }]\n",
         "f:6:44: pools[0].flows[0].match.header.X: is a list; expected a text\n"},
        {NFS_LISTENER POOLS "  nfs: { reserved-port: 1 }\n",
         "f:6:25: pools[0].nfs.reserved-port: `1` is neither true nor false; expected true or "
         "false\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void numbers_and_units(void **state)
{
    static const struct row rows[] = {
        {"workers: 0\n" LISTENERS POOLS,
         "f:1:10: workers: `0` is out of range; expected a number from 1 to 256 or auto\n"},
        {"drain-timeout: 30\n" LISTENERS POOLS,
         "f:1:16: drain-timeout: `30` has no unit of time; expected a time such as 30s (units us, "
         "ms, s, m, h) from 0s to 24h or off\n"},
        {"drain-timeout: 25h\n" LISTENERS POOLS,
         "f:1:16: drain-timeout: `25h` is out of range; expected a time such as 30s (units us, ms, "
         "s, m, h) from 0s to 24h or off\n"},
        {NFS_LISTENER POOLS "  nfs: { read-ahead: 4 MB }\n",
         "f:6:22: pools[0].nfs.read-ahead: `4 MB` has an unknown unit; expected a size such as "
         "64KiB (units B, KiB, MiB, GiB) from 64KiB to 1GiB\n"},
        {LISTENERS "pools:\n- { name: a/b, servers: ['10.0.0.1:80'] }\n",
         "f:4:11: pools[0].name: `a/b` has a slash; expected a name (letters, digits and "
         "._-:@+)\n"},
        {LISTENERS POOLS "  flows: [{ name: a, weight: 0 }]\n",
         "f:6:30: pools[0].flows[0].weight: `0` is out of range; expected a number from 1 to "
         "1000000\n"},
        {LISTENERS POOLS "  flows: [{ name: a, weight: 1000001 }]\n",
         "f:6:30: pools[0].flows[0].weight: `1000001` is out of range; expected a number from 1 to "
         "1000000\n"},
        {LISTENERS POOLS "  depth: -3\n",
         "f:6:10: pools[0].depth: `-3` is not a whole number; expected a number from 1 to "
         "100000000 or none\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void words(void **state)
{
    static const struct row rows[] = {
        {LISTENERS POOLS "  scheduler: { algorithm: sfdq }\n",
         "f:6:27: pools[0].scheduler.algorithm: `sfdq` is unknown, did you mean `sfqd`?; expected "
         "one of: fifo, sfq, sfqd, min-sfqd, fsfq, rw, hybrid, virtual-clock, wfq, edf, scf, "
         "leaky-bucket, mclock, 2dfq\n"},
        {LISTENERS POOLS "  flows: [{ name: a, by: cookie }]\n",
         "f:6:26: pools[0].flows[0].by: `cookie` is not built in this version; expected "
         "client-address, uid, or { header: NAME }\n"},
        {LISTENERS POOLS "  cost: { by: table, table: { get: 1 } }\n",
         "f:6:31: pools[0].cost.table.get: `get` is not an operation (HTTP methods are upper "
         "case); expected an HTTP method, read, write, metadata, an NFSv3 procedure, or default\n"},
        {"log: { target: sterr }\n" LISTENERS POOLS,
         "f:1:16: log.target: `sterr` is not possible; expected stderr, or a path such as "
         "/var/log/spillway.log or ./spillway.log\n"},
        {"admin: { socket: off }\n" LISTENERS POOLS,
         "f:1:18: admin.socket: `off` is not a path; expected a path such as /run/NAME or "
         "./NAME\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void addresses(void **state)
{
    static const struct row rows[] = {
        {"listeners:\n- { name: web, bind: '*:70000', protocol: http, pool: farm }\n" POOLS,
         "f:2:22: listeners[0].bind: `*:70000` has a port above 65535; expected IP:PORT, "
         "[IPV6]:PORT, *:PORT, NAME:PORT or unix:/PATH\n"},
        {LISTENERS "pools:\n- { name: farm, servers: ['10.0.0.1'] }\n",
         "f:4:27: pools[0].servers[0].address: `10.0.0.1` has no port; expected IP:PORT, "
         "[IPV6]:PORT, NAME:PORT or unix:/PATH\n"},
        {"listeners:\n"
         "- { name: web, bind: ['*:80', '[::]:80'], protocol: http, pool: farm }\n" POOLS,
         "f:2:31: listeners[0].bind[1]: `[::]:80` is bound in line 2 already; expected another "
         "address\n"},
        {"admin: { http: '127.0.0.1:80' }\n"
         "listeners:\n- { name: web, bind: '127.0.0.1:80', protocol: http, pool: farm }\n" POOLS,
         "f:3:22: listeners[0].bind[0]: `127.0.0.1:80` is bound in line 1 already; expected "
         "another "
         "address\n"},
        {LISTENERS POOLS "  flows: [{ name: a, match: { client: 10.0.0.1/8 } }]\n",
         "f:6:39: pools[0].flows[0].match.client: `10.0.0.1/8` has bits set after its prefix "
         "length; expected an IPv4 or IPv6 address or network such as 10.0.0.0/8\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void names_and_references(void **state)
{
    static const struct row rows[] = {
        {LISTENERS "- { name: web, bind: '*:81', protocol: http, pool: farms }\n" POOLS,
         "f:3:11: listeners[1].name: `web` is the name of a listener in line 2 already; expected "
         "another\n"
         "f:3:52: listeners[1].pool: there is no pool `farms`, did you mean `farm`?; expected the "
         "name of one under `pools`\n"},
        {LISTENERS POOLS "- name: farm\n  servers: ['10.0.0.2:80', '10.0.0.2:80']\n",
         "f:6:9: pools[1].name: `farm` is the name of a pool in line 4 already; expected another\n"
         "f:7:28: pools[1].servers[1].name: `10.0.0.2:80` is the name of a server in line 7 "
         "already; expected another\n"},
        {LISTENERS POOLS "  flows: [{ name: a, match: { path: /a } }, { name: a }]\n",
         "f:6:53: pools[0].flows[1].name: `a` is the name of a flow in line 6 already; expected "
         "another\n"},
        {LISTENERS POOLS "  flows: [{ name: a }, { name: b }]\n",
         "f:6:24: pools[0].flows[1]: flow `b` has no match, as `a` has none; expected one such "
         "flow\n"},
        {LISTENERS POOLS "  flows: [{ name: default, match: { path: /a } }]\n",
         "f:6:19: pools[0].flows[0].name: `default` is the flow of all other requests; expected "
         "another name, or a flow without match beside it\n"},
        {"listeners:\n- { name: web, bind: '*:80', protocol: http }\n" POOLS,
         "f:2:3: listeners[0]: has neither pool nor routes; expected `pool: NAME`\n"},
        {"listeners:\n- { name: web, bind: '*:80', protocol: nfs }\n" POOLS,
         "f:2:3: listeners[0]: has no pool; expected `pool: NAME`\n"},
        {LISTENERS POOLS "  cost: { by: table, per-size: { GET: 3 } }\n",
         "f:6:32: pools[0].cost.per-size: is added to what a table says, and there is none; "
         "expected `table` beside it\n"},
        {LISTENERS POOLS "  cost: { by: header }\n",
         "f:6:15: pools[0].cost.by: there is no header; expected `request-header`, "
         "`reply-header` or both\n"},
        {LISTENERS POOLS "  cost: { by: header, reply-header: X-Cost, max: 5, fallback: 6 }\n",
         "f:6:63: pools[0].cost.fallback: is above `max`; expected at most 5\n"},
        {LISTENERS POOLS "  cost: { by: header, reply-header: 'X Cost', max: 0 }\n",
         "f:6:37: pools[0].cost.reply-header: `X Cost` has a character that is not allowed here; "
         "expected an HTTP token (letters, digits and !#$%&'*+-.^_`|~)\n"
         "f:6:52: pools[0].cost.max: `0` is out of range; expected a number from 1 to 1000000\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void protocols_that_do_not_fit(void **state)
{
    static const struct row rows[] = {
        {LISTENERS "- { name: nas, bind: '*:2049', protocol: nfs, pool: farm }\n" POOLS,
         "f:3:53: listeners[1].pool: pool `farm` serves http and nfs; expected a pool for each "
         "protocol\n"},
        {LISTENERS POOLS "  flows: [{ name: a, match: { uid: 7, export: /e } }]\n",
         "f:6:36: pools[0].flows[0].match.uid: is for nfs, this is http; expected header, host, "
         "path, method or client\n"
         "f:6:47: pools[0].flows[0].match.export: is for nfs, this is http; expected header, host, "
         "path, method or client\n"},
        {LISTENERS POOLS "  flows: [{ name: a, by: uid }]\n",
         "f:6:26: pools[0].flows[0].by: uid is for nfs, this is http; expected client-address or { "
         "header: NAME }\n"},
        {"listeners:\n- { name: nas, bind: '*:2049', protocol: nfs, pool: farm,\n"
         "    routes: [{ match: { path: /a }, pool: farm }] }\n" POOLS,
         "f:3:13: listeners[0].routes: routes are for http; expected `pool` alone\n"
         "f:3:31: listeners[0].routes[0].match.path: is for http, this is nfs; expected client, "
         "uid, export or procedure\n"},
        {LISTENERS POOLS "  cost: { by: table, table: { GET: 1, getattr: 2 } }\n",
         "f:6:39: pools[0].cost.table.getattr: `getattr` is an operation of nfs; expected "
         "HTTP methods\n"},
        {LISTENERS POOLS "  cost: { by: table, table: { GET: 1 }, per-size: { read: 2 } }\n",
         "f:6:53: pools[0].cost.per-size.read: `read` is an operation of nfs; expected HTTP "
         "methods\n"},
        {"listeners:\n- { name: nas, bind: '*:2049', protocol: nfs, pool: farm }\n" POOLS
         "  cost: { by: header, reply-header: X-Cost }\n",
         "f:6:15: pools[0].cost.by: header is for http, this is nfs; expected request, bytes, "
         "table or service-time\n"},
    };
    (void)state;
    EXPECT(rows, -EINVAL);
}

static void things_worth_a_warning(void **state)
{
    static const struct row rows[] = {
        {"admin: { http: '0.0.0.0:9900' }\n" LISTENERS POOLS,
         "f:1:16: warning: admin.http[0]: `0.0.0.0:9900` is open to other machines, which then can "
         "read the metrics\n"},
        {LISTENERS POOLS "- { name: spare, servers: ['unix:/run/s'] }\n",
         "f:6:3: warning: pools[1]: no listener leads to pool `spare`\n"},
        {LISTENERS POOLS "  queue: { limit: 10, flow-limit: 20 }\n",
         "f:6:35: warning: pools[0].queue.flow-limit: is above `limit`, which is what counts "
         "then\n"},
        {LISTENERS POOLS "  cost: { bytes-unit: 1KiB, table: { GET: 2 } }\n",
         "f:6:23: warning: pools[0].cost.bytes-unit: has no effect without `by: bytes`\n"
         "f:6:36: warning: pools[0].cost.table: has no effect without `by: table`\n"},
        {LISTENERS POOLS
         "  cost: { by: table, table: { GET: 2 }, bytes-unit: 1KiB, fallback: 2 }\n",
         "f:6:53: warning: pools[0].cost.bytes-unit: has no effect without `per-size`\n"
         "f:6:69: warning: pools[0].cost.fallback: has no effect without `by: header` or `by: "
         "service-time`\n"},
        {LISTENERS POOLS "  cost: { by: service-time, reply-header: X-Cost, per-request: 2 }\n",
         "f:6:43: warning: pools[0].cost.reply-header: has no effect without `by: header`\n"
         "f:6:64: warning: pools[0].cost.per-request: has no effect without `by: bytes`\n"},
        {LISTENERS POOLS "  cost: { unit: 1ms }\n",
         "f:6:17: warning: pools[0].cost.unit: has no effect without `by: service-time`\n"},
        {"listeners:\n- { name: nas, bind: '*:2049', protocol: nfs, pool: farm,\n"
         "    abort-on-close: true, limits: { body: 1KiB }, timeouts: { header: 1s } }\n" POOLS
         "  balance: round-robin\n",
         "f:3:21: warning: listeners[0].abort-on-close: has no effect: the listener is nfs\n"
         "f:3:43: warning: listeners[0].limits.body: has no effect: the listener is nfs\n"
         "f:3:71: warning: listeners[0].timeouts.header: has no effect: the listener is nfs\n"
         "f:7:12: warning: pools[0].balance: has no effect: the pool is nfs\n"},
        {LISTENERS POOLS "  flows: [{ name: a, key-limit: 7 }]\n",
         "f:6:33: warning: pools[0].flows[0].key-limit: has no effect without `by`\n"},
    };
    (void)state;
    EXPECT(rows, 0);
}

/* All stages' findings come together, in the file's order. */
static void everything_is_said_at_once(void **state)
{
    static const char text[] =
        "workers: many\n"
        "listeners:\n"
        "- { name: web, bind: nowhere, protocol: gopher, pool: barn }\n"
        "- { name: web, bind: '*:81', protocol: http, pool: farm, colour: red }\n" POOLS
        "  flows: [{ name: a, weight: x }, { name: a, match: { path: a } }]\n";
    struct config_errors errors;
    struct config *config;

    (void)state;
    config_errors_init(&errors);
    assert_int_equal(config_load_text("f", text, strlen(text), CONFIG_NO_LOOKUP, &config, &errors),
                     -EINVAL);
    static const struct {
        unsigned line, column;
        const char *key;
    } places[] = {
        {1, 10, "workers"},
        {3, 22, "listeners[0].bind"},
        {3, 41, "listeners[0].protocol"},
        {3, 55, "listeners[0].pool"},
        {4, 11, "listeners[1].name"},
        {4, 58, "listeners[1].colour"},
        {8, 30, "pools[0].flows[0].weight"},
        {8, 43, "pools[0].flows[1].name"},
        {8, 61, "pools[0].flows[1].match.path"},
    };
    assert_int_equal(errors.count, sizeof(places) / sizeof(places[0]));
    for (size_t i = 0; i < errors.count; i++) {
        assert_string_equal(errors.list[i].key, places[i].key);
        assert_int_equal(errors.list[i].line, places[i].line);
        assert_int_equal(errors.list[i].column, places[i].column);
    }
    config_errors_fini(&errors);
}

static void unreadable_files(void **state)
{
    struct config_errors errors;
    struct config *config;
    char line[128];

    (void)state;
    config_errors_init(&errors);
    assert_int_equal(config_load("/nonexistent/spillway.yaml", &config, &errors), -ENOENT);
    assert_null(config);
    config_error_format(&errors, 0, line, sizeof(line));
    assert_string_equal(line,
                        "/nonexistent/spillway.yaml: can't be read: No such file or directory");
    config_errors_fini(&errors);
    assert_int_equal(config_load("/", &config, &errors), -EISDIR);
    config_errors_fini(&errors);
}

/* A file of nonsense does not make a list without end. */
static void findings_are_bounded(void **state)
{
    struct config_errors errors;
    struct config *config;
    char text[8192] = "";

    (void)state;
    for (int i = 0; i < 500; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "zz%d: 1\n", i);
    }
    config_errors_init(&errors);
    assert_int_equal(config_load_text("f", text, strlen(text), CONFIG_NO_LOOKUP, &config, &errors),
                     -EINVAL);
    assert_int_equal(errors.count, 200);
    assert_true(errors.error_count >= 500);
    config_errors_fini(&errors);
}

static void unknown_users_and_names(void **state)
{
    static const char text[] = "user: no-such-user\ngroup: no-such-group\n" LISTENERS
                               "pools:\n- { name: farm, servers: ['no-such-host.invalid:80'] }\n";
    struct config_errors errors;
    struct config *config;

    (void)state;
    config_errors_init(&errors);
    assert_int_equal(config_load_text("f", text, strlen(text), 0, &config, &errors), -EINVAL);
    assert_int_equal(errors.count, 3);
    assert_string_equal(errors.list[0].key, "user");
    assert_string_equal(errors.list[1].key, "group");
    assert_string_equal(errors.list[2].key, "pools[0].servers[0].address");
    assert_non_null(
        strstr(errors.list[2].message, "`no-such-host.invalid:80` can't be resolved: "));
    config_errors_fini(&errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_that_is_not_yaml),
        cmocka_unit_test(anchors_and_aliases),
        cmocka_unit_test(keys_that_are_not_there),
        cmocka_unit_test(values_of_the_wrong_kind),
        cmocka_unit_test(numbers_and_units),
        cmocka_unit_test(words),
        cmocka_unit_test(addresses),
        cmocka_unit_test(names_and_references),
        cmocka_unit_test(protocols_that_do_not_fit),
        cmocka_unit_test(things_worth_a_warning),
        cmocka_unit_test(everything_is_said_at_once),
        cmocka_unit_test(unreadable_files),
        cmocka_unit_test(findings_are_bounded),
        cmocka_unit_test(unknown_users_and_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
