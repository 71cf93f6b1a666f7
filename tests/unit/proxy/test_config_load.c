/* SPDX-License-Identifier: Apache-2.0 */
/* What a right configuration becomes: defaults, units, references, flows, costs; and that the
 * samples are right. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/config/config_schema.h"

static struct config *load(const char *text)
{
    struct config_errors errors;
    struct config *config;

    config_errors_init(&errors);
    if (config_load_text("f", text, strlen(text), CONFIG_NO_LOOKUP, &config, &errors) != 0) {
        config_errors_print(&errors, stderr);
    }
    assert_non_null(config);
    assert_int_equal(errors.error_count, 0);
    config_errors_fini(&errors);
    return config;
}

#define SMALLEST                                                                                   \
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"                \
    "pools: [{ name: farm, servers: ['127.0.0.1:1'] }]\n"

#define SECONDS(n) (1000000000ull * (n))

static void process_defaults(void **state)
{
    struct config *config = load(SMALLEST);

    (void)state;
    assert_in_range(config->workers, 1, 256);
    assert_null(config->user);
    assert_false(config->has_user);
    assert_null(config->pid_file);
    assert_int_equal(config->drain_timeout_ns, SECONDS(30));
    assert_int_equal(config->open_files, 0);
    assert_int_equal(config->log.target.kind, CONFIG_OUTPUT_STDERR);
    assert_int_equal(config->log.access.kind, CONFIG_OUTPUT_OFF);
    assert_int_equal(config->log.format, CONFIG_LOG_TEXT);
    assert_int_equal(config->log.level, CONFIG_LOG_NOTICE);
    assert_null(config->admin.socket);
    assert_int_equal(config->admin.http_count, 0);
    config_free(config);
}

static void listener_defaults(void **state)
{
    struct config *config = load(SMALLEST);
    const struct config_listener *listener = &config->listeners[0];

    (void)state;
    assert_int_equal(config->listener_count, 1);
    assert_string_equal(listener->name, "web");
    assert_int_equal(listener->bind_count, 1);
    assert_string_equal(listener->bind[0].text, "127.0.0.1:0");
    assert_int_equal(listener->bind[0].endpoint_count, 1);
    assert_int_equal(listener->protocol, CONFIG_PROTOCOL_HTTP);
    assert_ptr_equal(listener->pool, &config->pools[0]);
    assert_int_equal(listener->route_count, 0);
    assert_int_equal(listener->limits.request_line_bytes, 8192);
    assert_int_equal(listener->limits.header_bytes, 32768);
    assert_int_equal(listener->limits.header_fields, 100);
    assert_true(listener->limits.body_bytes == CONFIG_NO_LIMIT_BYTES);
    assert_int_equal(listener->limits.record_bytes, 68 << 20);
    assert_int_equal(listener->limits.fragments, 65536);
    assert_int_equal(listener->limits.connections, CONFIG_NO_LIMIT_COUNT);
    assert_int_equal(listener->timeouts.header_ns, SECONDS(30));
    assert_int_equal(listener->timeouts.body_idle_ns, SECONDS(30));
    assert_int_equal(listener->timeouts.keep_alive_ns, SECONDS(60));
    assert_int_equal(listener->timeouts.client_idle_ns, SECONDS(30));
    assert_int_equal(listener->trusted_proxy_count, 0);
    assert_false(listener->abort_on_close);
    config_free(config);
}

static void pool_defaults(void **state)
{
    struct config *config = load(SMALLEST);
    const struct config_pool *pool = &config->pools[0];

    (void)state;
    assert_int_equal(pool->server_count, 1);
    assert_string_equal(pool->servers[0].name, "127.0.0.1:1");
    assert_int_equal(pool->servers[0].depth, 16);
    assert_int_equal(pool->servers[0].mount_port, CONFIG_MOUNT_PORT_SAME);
    assert_int_equal(pool->balance, CONFIG_BALANCE_LEAST_OUTSTANDING);
    assert_int_equal(pool->depth, 0);
    assert_int_equal(pool->depth_of_servers, 16);
    assert_int_equal(pool->depth_unit, CONFIG_DEPTH_REQUESTS);
    assert_int_equal(pool->algorithm, SCHED_ALGORITHM_SFQD);
    assert_int_equal(pool->queue.limit, 4096);
    assert_int_equal(pool->queue.flow_limit, 1024);
    assert_int_equal(pool->queue.timeout_ns, SECONDS(30));
    assert_int_equal(pool->cost.by, CONFIG_COST_REQUEST);
    assert_int_equal(pool->cost.per_request, 1);
    assert_int_equal(pool->cost.unit_bytes, 4096);
    assert_int_equal(pool->timeouts.connect_ns, SECONDS(5));
    assert_int_equal(pool->timeouts.first_byte_ns, SECONDS(60));
    assert_int_equal(pool->timeouts.idle_ns, SECONDS(60));
    assert_int_equal(pool->timeouts.keep_alive_ns, SECONDS(60));
    assert_int_equal(pool->retry.attempts, 2);
    assert_int_equal(pool->retry.dead_after, 3);
    assert_int_equal(pool->retry.dead_for_ns, SECONDS(2));
    assert_int_equal(pool->idle_connections, 256);
    assert_string_equal(pool->http.via, "spillway");
    assert_false(pool->nfs.reserved_port);
    assert_int_equal(pool->nfs.read_ahead_bytes, 4 << 20);
    assert_true(pool->used_by_http);
    assert_false(pool->used_by_nfs);
    assert_int_equal(pool->flow_count, 1);
    assert_ptr_equal(pool->default_flow, &pool->flows[0]);
    assert_string_equal(pool->default_flow->name, "default");
    assert_int_equal(pool->default_flow->weight, 1);
    assert_true(config_match_is_empty(&pool->default_flow->match));
    config_free(config);
}

static void values_are_taken_over(void **state)
{
    struct config *config =
        load("workers: 3\n"
             "pid-file: /run/s.pid\n"
             "drain-timeout: off\n"
             "open-files: 100000\n"
             "log: { target: ./s.log, access: stderr, format: json, level: debug }\n"
             "admin: { socket: ./s.sock, http: ['127.0.0.1:9900', '[::1]:9900'] }\n"
             "listeners:\n"
             "- name: nas\n"
             "  bind: ['127.0.0.1:2049', 'unix:/run/nas']\n"
             "  protocol: nfs\n"
             "  pool: array\n"
             "  limits: { record: 2MiB, fragments: 7, connections: 9 }\n"
             "  timeouts: { client-idle: 1.5s }\n"
             "pools:\n"
             "- name: array\n"
             "  servers: [{ name: a, address: '10.0.0.1:2049', depth: 5, mount-port: portmap },\n"
             "            { address: '10.0.0.2:2049', depth: 6, mount-port: 635 }]\n"
             "  depth: 9\n"
             "  depth-unit: cost\n"
             "  scheduler: min-sfqd\n"
             "  queue: { limit: 10, flow-limit: 20, timeout: 250ms }\n"
             "  nfs: { reserved-port: yes, read-ahead: 1MiB }\n");
    const struct config_pool *pool = &config->pools[0];

    (void)state;
    assert_int_equal(config->workers, 3);
    assert_string_equal(config->pid_file, "/run/s.pid");
    assert_true(config->drain_timeout_ns == CONFIG_NEVER_NS);
    assert_int_equal(config->open_files, 100000);
    assert_int_equal(config->log.target.kind, CONFIG_OUTPUT_FILE);
    assert_string_equal(config->log.target.text, "./s.log");
    assert_int_equal(config->log.access.kind, CONFIG_OUTPUT_STDERR);
    assert_int_equal(config->log.format, CONFIG_LOG_JSON);
    assert_int_equal(config->log.level, CONFIG_LOG_DEBUG);
    assert_string_equal(config->admin.socket, "./s.sock");
    assert_int_equal(config->admin.http_count, 2);
    assert_int_equal(config->admin.http[1].endpoints[0].addr.ss_family, AF_INET6);
    assert_int_equal(config->listeners[0].bind[1].endpoints[0].addr.ss_family, AF_UNIX);
    assert_int_equal(config->listeners[0].limits.record_bytes, 2 << 20);
    assert_int_equal(config->listeners[0].limits.fragments, 7);
    assert_int_equal(config->listeners[0].limits.connections, 9);
    assert_int_equal(config->listeners[0].timeouts.client_idle_ns, SECONDS(3) / 2);
    assert_string_equal(pool->servers[0].name, "a");
    assert_int_equal(pool->servers[0].mount_port, CONFIG_MOUNT_PORT_PORTMAP);
    assert_int_equal(pool->servers[1].mount_port, 635);
    assert_int_equal(pool->depth, 9);
    assert_int_equal(pool->depth_of_servers, 11);
    assert_int_equal(pool->depth_unit, CONFIG_DEPTH_COST);
    assert_int_equal(pool->algorithm, SCHED_ALGORITHM_MINSFQD);
    assert_int_equal(pool->queue.limit, 10);
    assert_int_equal(pool->queue.flow_limit, 10);
    assert_int_equal(pool->queue.timeout_ns, 250000000);
    assert_true(pool->nfs.reserved_port);
    assert_int_equal(pool->nfs.read_ahead_bytes, 1 << 20);
    assert_true(pool->used_by_nfs);
    config_free(config);
}

static void flows_keep_their_order_and_the_rest_comes_last(void **state)
{
    struct config *config =
        load("listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
             "pools:\n"
             "- name: farm\n"
             "  servers: ['127.0.0.1:1']\n"
             "  flows:\n"
             "  - { name: gold, weight: 2, match: { header: { X-Tenant: gold, X-Any: '*' } } }\n"
             "  - { name: rest, weight: 7, by: client-address, key-limit: 5 }\n"
             "  - name: app\n"
             "    match: { host: '*.Example.COM', path: /app, method: [GET, HEAD],\n"
             "             client: [10.0.0.0/8, '::1'] }\n"
             "    by: { header: X-User }\n");
    const struct config_pool *pool = &config->pools[0];
    const struct config_flow *gold = &pool->flows[0], *app = &pool->flows[1];
    const struct sockaddr_in inside = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)};

    (void)state;
    assert_int_equal(pool->flow_count, 3);
    assert_string_equal(gold->name, "gold");
    assert_int_equal(gold->weight, 2);
    assert_int_equal(gold->match.header_count, 2);
    assert_string_equal(gold->match.headers[0].name, "X-Tenant");
    assert_string_equal(gold->match.headers[0].value, "gold");
    assert_string_equal(gold->match.headers[1].value, "*");
    assert_int_equal(gold->by, CONFIG_FLOW_BY_NOTHING);
    assert_string_equal(app->name, "app");
    assert_string_equal(app->match.host, "*.example.com");
    assert_string_equal(app->match.path, "/app");
    assert_int_equal(app->match.method_count, 2);
    assert_string_equal(app->match.methods[1], "HEAD");
    assert_int_equal(app->match.client_count, 2);
    assert_true(config_prefix_match(&app->match.clients[0], (const struct sockaddr *)&inside));
    assert_false(config_prefix_match(&app->match.clients[1], (const struct sockaddr *)&inside));
    assert_false(app->match.has_uid);
    assert_int_equal(app->match.procedure, CONFIG_CLASS_ANY);
    assert_int_equal(app->by, CONFIG_FLOW_BY_HEADER);
    assert_string_equal(app->by_header, "X-User");
    assert_ptr_equal(pool->default_flow, &pool->flows[2]);
    assert_string_equal(pool->default_flow->name, "rest");
    assert_int_equal(pool->default_flow->weight, 7);
    assert_int_equal(pool->default_flow->by, CONFIG_FLOW_BY_CLIENT_ADDRESS);
    assert_int_equal(pool->default_flow->key_limit, 5);
    config_free(config);
}

static void nfs_flows(void **state)
{
    struct config *config =
        load("listeners: [{ name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }]\n"
             "pools:\n"
             "- name: array\n"
             "  servers: ['127.0.0.1:1']\n"
             "  flows:\n"
             "  - { name: root, match: { uid: 0 } }\n"
             "  - { name: images, match: { export: /images, procedure: write }, by: uid }\n");
    const struct config_flow *flows = config->pools[0].flows;

    (void)state;
    assert_true(flows[0].match.has_uid);
    assert_int_equal(flows[0].match.uid, 0);
    assert_false(config_match_is_empty(&flows[0].match));
    assert_false(flows[1].match.has_uid);
    assert_string_equal(flows[1].match.export_path, "/images");
    assert_int_equal(flows[1].match.procedure, CONFIG_CLASS_WRITE);
    assert_int_equal(flows[1].by, CONFIG_FLOW_BY_UID);
    assert_string_equal(flows[2].name, "default");
    config_free(config);
}

static void routes_lead_to_pools(void **state)
{
    struct config *config =
        load("listeners:\n"
             "- name: web\n"
             "  bind: '127.0.0.1:0'\n"
             "  protocol: http\n"
             "  trusted-proxies: 10.0.0.0/8\n"
             "  routes: [{ match: { path: /b }, pool: b }, { match: { host: a }, pool: a }]\n"
             "pools:\n"
             "- { name: a, servers: ['127.0.0.1:1'] }\n"
             "- { name: b, servers: ['127.0.0.1:2'] }\n");
    const struct config_listener *listener = &config->listeners[0];

    (void)state;
    assert_null(listener->pool);
    assert_int_equal(listener->route_count, 2);
    assert_ptr_equal(listener->routes[0].pool, &config->pools[1]);
    assert_string_equal(listener->routes[0].match.path, "/b");
    assert_ptr_equal(listener->routes[1].pool, &config->pools[0]);
    assert_int_equal(listener->trusted_proxies[0].bits, 104);
    assert_true(config->pools[0].used_by_http && config->pools[1].used_by_http);
    config_free(config);
}

static void cost_tables(void **state)
{
    struct config *config =
        load("listeners:\n"
             "- { name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }\n"
             "- { name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }\n"
             "pools:\n"
             "- { name: farm, servers: ['127.0.0.1:1'],\n"
             "    cost: { by: table, table: { GET: 2, PUT: 8, default: 3 } } }\n"
             "- { name: array, servers: ['127.0.0.1:1'],\n"
             "    cost: { by: table, table: { read: 4, metadata: 2, lookup: 9, commit: 5 } } }\n");
    const struct config_cost *http = &config->pools[0].cost, *nfs = &config->pools[1].cost;

    (void)state;
    assert_int_equal(config_cost_of_method(http, "GET", 3).base, 2);
    assert_int_equal(config_cost_of_method(http, "PUT", 3).base, 8);
    assert_int_equal(config_cost_of_method(http, "PU", 2).base, 3);
    assert_int_equal(config_cost_of_method(http, "PUTS", 4).base, 3);
    assert_int_equal(http->other.base, 3);
    assert_int_equal(nfs->other.base, 1);
    assert_int_equal(nfs->class_rate[CONFIG_CLASS_READ].per_size, 0);
    assert_int_equal(nfs->class_rate[CONFIG_CLASS_READ].base, 4);
    assert_int_equal(nfs->class_rate[CONFIG_CLASS_WRITE].base, 1);
    assert_int_equal(nfs->class_rate[CONFIG_CLASS_METADATA].base, 2);
    assert_int_equal(nfs->nfs3_rate[6].base, 4);  /* READ */
    assert_int_equal(nfs->nfs3_rate[7].base, 1);  /* WRITE */
    assert_int_equal(nfs->nfs3_rate[1].base, 2);  /* GETATTR */
    assert_int_equal(nfs->nfs3_rate[3].base, 9);  /* LOOKUP */
    assert_int_equal(nfs->nfs3_rate[21].base, 5); /* COMMIT */
    config_free(config);
}

static void cost_by_size(void **state)
{
    struct config *config =
        load("listeners:\n"
             "- { name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }\n"
             "- { name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }\n"
             "pools:\n"
             "- { name: farm, servers: ['127.0.0.1:1'], cost: { by: table, bytes-unit: 64KiB,\n"
             "    table: { GET: 2, PUT: 8 }, per-size: { GET: 7, HEAD: 0, default: 5 } } }\n"
             "- { name: array, servers: ['127.0.0.1:1'], cost: { by: table,\n"
             "    table: { read: 4, readDir: 6 }, per-size: { read: 3, readdirplus: 9 } } }\n");
    const struct config_cost *http = &config->pools[0].cost, *nfs = &config->pools[1].cost;

    (void)state;
    assert_int_equal(http->unit_bytes, 65536);
    assert_int_equal(nfs->unit_bytes, 4096);
    assert_int_equal(config_cost_of_method(http, "GET", 3).per_size, 7);
    assert_int_equal(config_cost_of_method(http, "PUT", 3).base, 8);
    assert_int_equal(config_cost_of_method(http, "PUT", 3).per_size, 5);
    assert_int_equal(config_cost_of_method(http, "HEAD", 4).per_size, 0);
    assert_int_equal(config_cost_of_method(http, "POST", 4).base, 1);
    assert_int_equal(config_cost_of_method(http, "POST", 4).per_size, 5);
    assert_int_equal(nfs->class_rate[CONFIG_CLASS_READ].per_size, 3);
    assert_int_equal(nfs->nfs3_rate[6].per_size, 3); /* READ */
    assert_int_equal(nfs->nfs3_rate[7].per_size, 0); /* WRITE */
    assert_int_equal(nfs->nfs3_rate[16].base, 6);    /* READDIR */
    assert_int_equal(nfs->nfs3_rate[16].per_size, 0);
    assert_int_equal(nfs->nfs3_rate[17].base, 1); /* READDIRPLUS */
    assert_int_equal(nfs->nfs3_rate[17].per_size, 9);
    config_free(config);
}

static void cost_without_a_table(void **state)
{
    struct config *config =
        load("listeners:\n"
             "- { name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }\n"
             "- { name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }\n"
             "pools:\n"
             "- { name: farm, servers: ['127.0.0.1:1'], cost: { by: table } }\n"
             "- { name: array, servers: ['127.0.0.1:1'], cost: { by: table } }\n");
    const struct config_cost *http = &config->pools[0].cost, *nfs = &config->pools[1].cost;

    (void)state;
    assert_int_equal(http->unit_bytes, 65536);
    assert_int_equal(nfs->unit_bytes, 65536);
    /* Whatever the figures are: writing costs more than reading, and that more than asking. */
    assert_true(nfs->nfs3_rate[7].base > nfs->nfs3_rate[6].base);
    assert_true(nfs->nfs3_rate[6].base > nfs->nfs3_rate[1].base);
    assert_true(nfs->nfs3_rate[7].per_size > nfs->nfs3_rate[6].per_size);
    assert_true(nfs->nfs3_rate[6].per_size > 0);
    for (unsigned proc = 0; proc < CONFIG_NFS3_PROCEDURES; proc++) {
        assert_true(nfs->nfs3_rate[proc].base > 1);
        assert_int_equal(nfs->nfs3_rate[proc].per_size > 0, proc == 6 || proc == 7);
    }
    for (int class = 0; class < CONFIG_CLASS_COUNT; class ++)
        assert_true(nfs->class_rate[class].base > 1);
    assert_true(config_cost_of_method(http, "PUT", 3).per_size >
                config_cost_of_method(http, "GET", 3).per_size);
    assert_int_equal(config_cost_of_method(http, "HEAD", 4).per_size, 0);
    assert_int_equal(config_cost_of_method(http, "BREW", 4).base, http->other.base);
    assert_true(http->other.base > 1);
    config_free(config);
}

static void cost_by_header_and_by_time(void **state)
{
    struct config *config =
        load("listeners:\n"
             "- { name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }\n"
             "- { name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }\n"
             "pools:\n"
             "- { name: farm, servers: ['127.0.0.1:1'], cost: { by: header,\n"
             "    request-header: X-Cost, reply-header: X-Cost-Used, max: 500, fallback: 3 } }\n"
             "- { name: array, servers: ['127.0.0.1:1'],\n"
             "    cost: { by: service-time, unit: 1ms } }\n");
    const struct config_cost *http = &config->pools[0].cost, *nfs = &config->pools[1].cost;

    (void)state;
    assert_int_equal(http->by, CONFIG_COST_HEADER);
    assert_string_equal(http->request_header, "X-Cost");
    assert_string_equal(http->reply_header, "X-Cost-Used");
    assert_int_equal(http->max, 500);
    assert_int_equal(http->fallback, 3);
    assert_int_equal(http->unit_ns, 1000);
    assert_int_equal(nfs->by, CONFIG_COST_SERVICE_TIME);
    assert_int_equal(nfs->unit_ns, 1000000);
    assert_int_equal(nfs->fallback, 1);
    assert_int_equal(nfs->max, CONFIG_COST_MAX);
    assert_null(nfs->request_header);
    config_free(config);
}

static void a_user_brings_its_group(void **state)
{
    static const char text[] = "user: root\n" SMALLEST;
    struct config_errors errors;
    struct config *config;

    (void)state;
    config_errors_init(&errors);
    assert_int_equal(config_load_text("f", text, strlen(text), 0, &config, &errors), 0);
    assert_true(config->has_user && config->has_group);
    assert_int_equal(config->uid, 0);
    assert_int_equal(config->gid, 0);
    config_free(config);
    config_errors_fini(&errors);
}

static void many_flows(void **state)
{
    enum { FLOWS = 2000 };
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    (void)state;
    fputs(SMALLEST, out);
    fseek(out, -3, SEEK_CUR); /* over the pool's end */
    fputs(", flows: [", out);
    for (int i = 0; i < FLOWS; i++) {
        fprintf(out, "%s{ name: f%d, match: { path: /%d } }", i > 0 ? ",\n" : "", i, i);
    }
    fputs("] }]\n", out);
    assert_int_equal(fclose(out), 0);

    struct config *config = load(text);

    assert_int_equal(config->pools[0].flow_count, FLOWS + 1);
    assert_string_equal(config->pools[0].flows[FLOWS - 1].name, "f1999");
    config_free(config);
    free(text);
}

static void samples_are_right(void **state)
{
    static const char *const samples[] = {"conf/web-farm.yaml", "conf/storage-array.yaml",
                                          "conf/rates.yaml", "conf/demo.yaml"};
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct config_errors errors;
        struct config *config;

        config_errors_init(&errors);
        int result = config_load(samples[i], &config, &errors);

        config_errors_print(&errors, stderr);
        assert_int_equal(result, 0);
        assert_int_equal(errors.count, 0);
        config_free(config);
        config_errors_fini(&errors);
    }
}

static void the_demo_is_as_documented(void **state)
{
    struct config_errors errors;
    struct config *config;

    (void)state;
    config_errors_init(&errors);
    assert_int_equal(config_load("conf/demo.yaml", &config, &errors), 0);
    assert_int_equal(config->listener_count, 2);
    assert_string_equal(config->listeners[0].bind[0].text, "127.0.0.1:18080");
    assert_string_equal(config->listeners[0].pool->name, "farm");
    assert_string_equal(config->listeners[0].pool->servers[0].address.text, "127.0.0.1:18081");
    assert_string_equal(config->listeners[1].bind[0].text, "127.0.0.1:12049");
    assert_string_equal(config->listeners[1].pool->name, "array");
    assert_string_equal(config->listeners[1].pool->servers[0].address.text, "127.0.0.1:12050");
    assert_int_equal(config->pools[0].depth_of_servers, 8);
    assert_int_equal(config->pools[1].flows[0].match.uid, 1001);
    config_free(config);
    config_errors_fini(&errors);
}

/* Each key of the table, wherever it is, is in the reference and in the manual page. */
static void expect_keys(const struct config_shape *shape, const char *reference, const char *manual)
{
    for (const struct config_key *key = shape->keys; key->name != NULL; key++) {
        char line[80];

        if (key->hidden) {
            continue;
        }
        assert_non_null(key->help);
        assert_non_null(strstr(reference, key->name));
        snprintf(line, sizeof(line), "\n.It Ic %s", key->name);
        if (strstr(manual, line) == NULL) {
            print_error("not in the manual page: %s\n", key->name);
            fail();
        }
        if (key->shape != NULL && !key->shape->scalar_only && key->kind != CONFIG_KIND_PAIRS) {
            expect_keys(key->shape, reference, manual);
        }
    }
}

static void every_key_is_documented(void **state)
{
    char *reference = NULL, *manual = NULL;
    size_t length;
    FILE *out = open_memstream(&reference, &length);
    FILE *in = fopen("conf/man/spillway.yaml.5", "r");

    (void)state;
    config_print_reference(out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(in);
    assert_true(getdelim(&manual, &length, '\0', in) > 0);
    fclose(in);
    expect_keys(&config_schema, reference, manual);
    assert_non_null(strstr(reference, "        Value: a number from 1 to 1000000; default 1.\n"
                                      "pools[].flows[].target\n"));
    free(reference);
    free(manual);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(config_protocol_name(CONFIG_PROTOCOL_NFS), "nfs");
    assert_string_equal(config_class_name(CONFIG_CLASS_METADATA), "metadata");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_defaults),
        cmocka_unit_test(listener_defaults),
        cmocka_unit_test(pool_defaults),
        cmocka_unit_test(values_are_taken_over),
        cmocka_unit_test(flows_keep_their_order_and_the_rest_comes_last),
        cmocka_unit_test(nfs_flows),
        cmocka_unit_test(routes_lead_to_pools),
        cmocka_unit_test(cost_tables),
        cmocka_unit_test(cost_by_size),
        cmocka_unit_test(cost_without_a_table),
        cmocka_unit_test(cost_by_header_and_by_time),
        cmocka_unit_test(a_user_brings_its_group),
        cmocka_unit_test(many_flows),
        cmocka_unit_test(samples_are_right),
        cmocka_unit_test(the_demo_is_as_documented),
        cmocka_unit_test(every_key_is_documented),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
