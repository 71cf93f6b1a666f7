/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: which pool and flow a request belongs to, its key and cost, and how long a plan lives. */
#include "tests/unit/proxy/core/fixture.h"

#include <arpa/inet.h>
#include <sys/un.h>

/* A parsed HTTP request with what the session adds to it. */
struct http_case {
    struct http1_field fields[16];
    struct http1_head head;
    struct sockaddr_storage client;
    struct http_facts facts;
};

static void set_client(struct sockaddr_storage *client, const char *text)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)client;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)client;

    memset(client, 0, sizeof(*client));
    if (text == NULL) {
        client->ss_family = AF_UNIX;
    } else if (strchr(text, ':') != NULL) {
        v6->sin6_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    } else {
        v4->sin_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, text, &v4->sin_addr), 1);
    }
}

static void parse(struct http_case *request, const char *text, const char *client)
{
    struct http1_scan scan = {0};

    http1_head_init(&request->head, request->fields, 16);
    assert_int_equal(
        http1_parse_request_head(text, strlen(text), &scan, &http1_default_limits, &request->head),
        HTTP1_OK);
    set_client(&request->client, client);
    request->facts = (struct http_facts){
        .head = &request->head,
        .client = (struct sockaddr *)&request->client,
        .host = request->head.host,
        .path = request->head.path,
    };
}

static const struct plan_pool *route(const struct world *world, const char *text)
{
    struct http_case request;

    parse(&request, text, "10.0.0.1");
    return plan_route_http(&world->runtime->plan->listeners[0], &request.facts);
}

static void routes_are_tried_in_order(void **state)
{
    struct world world =
        world_open("workers: 1\n"
                   "listeners:\n"
                   "  - name: web\n"
                   "    bind: '127.0.0.1:0'\n"
                   "    protocol: http\n"
                   "    pool: rest\n"
                   "    routes:\n"
                   "      - { match: { host: img.example.com, path: /a }, pool: images }\n"
                   "      - { match: { host: '*.example.com' }, pool: site }\n"
                   "  - { name: bare, bind: '127.0.0.1:0', protocol: http,\n"
                   "      routes: [{ match: { path: /x }, pool: site }] }\n"
                   "pools:\n"
                   "  - { name: rest, servers: ['127.0.0.1:1'] }\n"
                   "  - { name: images, servers: ['127.0.0.1:2'] }\n"
                   "  - { name: site, servers: ['127.0.0.1:3'] }\n");
    struct plan *plan = world.runtime->plan;
    struct http_case request;

    (void)state;
    assert_true(plan->needs_host);
    assert_true(plan->needs_path);
    assert_ptr_equal(route(&world, "GET /a/b HTTP/1.1\r\nHost: img.example.com\r\n\r\n"),
                     &plan->pools[1]);
    assert_ptr_equal(route(&world, "GET /b HTTP/1.1\r\nHost: img.example.com\r\n\r\n"),
                     &plan->pools[2]);
    assert_ptr_equal(route(&world, "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n"),
                     &plan->pools[0]);
    parse(&request, "GET /y HTTP/1.1\r\nHost: h\r\n\r\n", "10.0.0.1");
    assert_null(plan_route_http(&plan->listeners[1], &request.facts));
    parse(&request, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", "10.0.0.1");
    assert_ptr_equal(plan_route_http(&plan->listeners[1], &request.facts), &plan->pools[2]);
    world_close(&world);
}

static const char flows_text[] =
    "workers: 1\n"
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
    "pools:\n"
    "  - name: farm\n"
    "    servers: ['127.0.0.1:1']\n"
    "    flows:\n"
    "      - { name: tenant, match: { header: { X-Tenant: gold } } }\n"
    "      - { name: any-token, match: { header: { X-Token: '*' } } }\n"
    "      - { name: admin, match: { path: /admin } }\n"
    "      - { name: writes, match: { method: [PUT, POST] } }\n"
    "      - { name: below, match: { host: '*.example.com' } }\n"
    "      - { name: near, match: { client: [10.1.0.0/16, 'fd00::/16'] } }\n"
    "      - { name: both, match: { path: /both, client: 10.9.0.0/16 } }\n"
    "      - { name: by-user, match: { path: /users }, by: { header: X-User } }\n"
    "      - { name: others, by: client-address }\n";

static struct exchange classify(struct world *world, const char *text, const char *client)
{
    struct http_case request;
    struct exchange exchange;

    parse(&request, text, client);
    exchange_init(&exchange, &world->runtime->workers[0].loop, &request_ops, 0);
    plan_classify_http(plan_pool_of(world), &request.facts, &exchange);
    assert_ptr_equal(exchange.pool, plan_pool_of(world));
    assert_ptr_equal(exchange.lane, TAILQ_FIRST(&pool_of(world)->lanes));
    return exchange;
}

static void the_first_flow_that_matches_takes_the_request(void **state)
{
    static const struct {
        const char *text, *client, *class;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: h\r\nx-tenant: gold\r\n\r\n", "1.1.1.1", "tenant"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX-Tenant: Gold\r\n\r\n", "1.1.1.1", "others"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX-Tenant: gold, x\r\n\r\n", "1.1.1.1", "others"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX-Tenan: gold\r\n\r\n", "1.1.1.1", "others"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-Tenant: tin\r\nX-Tenant: gold\r\n\r\n",
         "1.1.1.1", "tenant"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX-Token: whatever\r\n\r\n", "1.1.1.1", "any-token"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX-Token:\r\n\r\n", "1.1.1.1", "any-token"},
        {"GET /admin HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1", "admin"},
        {"GET /admin/ HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1", "admin"},
        {"GET /admin/x?y=1 HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1", "admin"},
        {"GET /administrator HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1", "others"},
        {"GET /adm HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1", "others"},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "1.1.1.1", "writes"},
        {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "1.1.1.1", "writes"},
        {"put / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "1.1.1.1", "others"},
        {"GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "1.1.1.1", "below"},
        {"GET / HTTP/1.1\r\nHost: a.b.example.com\r\n\r\n", "1.1.1.1", "below"},
        {"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "1.1.1.1", "others"},
        {"GET / HTTP/1.1\r\nHost: badexample.com\r\n\r\n", "1.1.1.1", "others"},
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "10.1.255.255", "near"},
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "10.2.0.0", "others"},
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "fd00::1", "near"},
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "fd01::1", "others"},
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", NULL, "others"},
        {"GET /both HTTP/1.1\r\nHost: h\r\n\r\n", "10.9.1.1", "both"},
        {"GET /both HTTP/1.1\r\nHost: h\r\n\r\n", "10.8.1.1", "others"},
        {"GET /users/1 HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1", "by-user"},
        /* Several would: the earlier in the file. */
        {"PUT /admin HTTP/1.1\r\nHost: a.example.com\r\nX-Token: t\r\n\r\n", "10.1.0.1",
         "any-token"},
    };
    struct world world = world_open(flows_text);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct exchange exchange = classify(&world, cases[i].text, cases[i].client);
        if (strcmp(exchange.class->name, cases[i].class) != 0)
            fail_msg("case %zu: %s, not %s", i, exchange.class->name, cases[i].class);
    }
    world_close(&world);
}

static void keys_tell_clients_and_values_apart(void **state)
{
    struct world world = world_open(flows_text);
    static const char plain[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    struct exchange v4 = classify(&world, plain, "1.2.3.4");
    struct exchange v6 = classify(&world, plain, "fe80::1");
    struct exchange local = classify(&world, plain, NULL);
    struct exchange ann =
        classify(&world, "GET /users HTTP/1.1\r\nHost: h\r\nx-user: ann\r\n\r\n", "1.1.1.1");
    struct exchange nobody = classify(&world, "GET /users HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1");
    struct exchange empty =
        classify(&world, "GET /users HTTP/1.1\r\nHost: h\r\nX-User:\r\n\r\n", "1.1.1.1");
    struct exchange admin = classify(&world, "GET /admin HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1");
    char text[300];

    (void)state;
    assert_int_equal(v4.key_length, 4);
    assert_memory_equal(v4.key, "\1\2\3\4", 4);
    assert_int_equal(v6.key_length, 16);
    assert_int_not_equal(local.key_length, 0);
    assert_int_equal(ann.key_length, 3);
    assert_memory_equal(ann.key, "ann", 3);
    /* Those that lack the field share the instance without a key. */
    assert_int_equal(nobody.key_length, 0);
    assert_int_equal(empty.key_length, 0);
    assert_int_equal(admin.key_length, 0);
    snprintf(text, sizeof(text), "GET /users HTTP/1.1\r\nHost: h\r\nX-User: %0100d\r\n\r\n", 7);
    struct exchange longest = classify(&world, text, "1.1.1.1");
    assert_int_equal(longest.key_length, EXCHANGE_KEY_BYTES);
    world_close(&world);
}

#define COSTS(cost)                                                                                \
    "workers: 1\n"                                                                                 \
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"                \
    "pools: [{ name: farm, servers: ['127.0.0.1:1'], cost: " cost " }]\n"

static uint64_t cost_of(struct world *world, const char *text)
{
    return classify(world, text, "1.1.1.1").cost;
}

static void costs_follow_the_configuration(void **state)
{
    static const char get[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char put[] = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 4097\r\n\r\n";
    static const char brew[] = "BREW / HTTP/1.1\r\nHost: h\r\n\r\n";
    struct world world = world_open(COSTS("{ by: request }"));

    (void)state;
    assert_int_equal(cost_of(&world, get), 1);
    assert_int_equal(cost_of(&world, put), 1);
    world_close(&world);

    world = world_open(COSTS("{ by: table, table: { PUT: 5, BREW: 7, default: 2 } }"));
    assert_int_equal(cost_of(&world, get), 2);
    assert_int_equal(cost_of(&world, put), 5);
    assert_int_equal(cost_of(&world, brew), 7);
    assert_int_equal(cost_of(&world, "MAKE / HTTP/1.1\r\nHost: h\r\n\r\n"), 2);
    world_close(&world);

    world = world_open(COSTS("{ by: bytes, per-request: 3, bytes-unit: 1KiB }"));
    assert_int_equal(cost_of(&world, get), 3);
    assert_int_equal(cost_of(&world, put), 3 + 5);
    struct exchange exchange = classify(&world, get, "1.1.1.1");
    exchange.bytes_in = 1000;
    exchange.bytes_out = 1049;
    assert_int_equal(cost_settle(&exchange, OUTCOME_ANSWERED), 3 + 3);
    world_close(&world);

    /* Never nothing, and no overflow at the largest length. */
    world = world_open(COSTS("{ by: bytes, per-request: 0, bytes-unit: 1B }"));
    assert_int_equal(cost_of(&world, get), 1);
    assert_true(cost_of(&world, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: "
                                "9223372036854775807\r\n\r\n") == INT64_MAX);
    world_close(&world);
}

static void true_costs_are_the_charged_ones_unless_bytes_count(void **state)
{
    struct world world = world_open(COSTS("{ by: table, table: { GET: 4 } }"));
    struct exchange exchange = classify(&world, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "1.1.1.1");

    (void)state;
    exchange.bytes_out = 1 << 20;
    assert_int_equal(cost_settle(&exchange, OUTCOME_ANSWERED), 4);
    world_close(&world);
}

/* ------------------------------------------------------------------ NFS */

static struct exchange classify_nfs(struct world *world, const struct nfs_facts *facts)
{
    struct exchange exchange;

    exchange_init(&exchange, &world->runtime->workers[0].loop, &request_ops, 0);
    plan_classify_nfs(plan_pool_of(world), facts, &exchange);
    return exchange;
}

static void nfs_calls_are_told_apart(void **state)
{
    struct world world =
        world_open("workers: 1\n"
                   "listeners: [{ name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }]\n"
                   "pools:\n"
                   "  - name: array\n"
                   "    servers: ['127.0.0.1:1']\n"
                   "    cost: { by: table, table: { read: 4, write: 8, getattr: 2, default: 3 } }\n"
                   "    flows:\n"
                   "      - { name: images, match: { export: /images } }\n"
                   "      - { name: backup, match: { uid: 34, procedure: read } }\n"
                   "      - { name: near, match: { client: 10.1.0.0/16 } }\n"
                   "      - { name: users, by: uid }\n");
    struct sockaddr_storage far;
    struct sockaddr_storage near;

    (void)state;
    set_client(&far, "1.1.1.1");
    set_client(&near, "10.1.1.1");
    struct nfs_facts base = {.client = (struct sockaddr *)&far,
                             .uid = 34,
                             .has_uid = true,
                             .procedure_class = CONFIG_CLASS_READ,
                             .nfs3_procedure = 6};
    struct nfs_facts facts = base;
    struct exchange exchange = classify_nfs(&world, &facts);
    assert_string_equal(exchange.class->name, "backup");
    assert_int_equal(exchange.cost, 4);
    assert_int_equal(exchange.key_length, 0);
    facts.export_path = "/images";
    assert_string_equal(classify_nfs(&world, &facts).class->name, "images");
    facts.export_path = "/images2";
    assert_string_equal(classify_nfs(&world, &facts).class->name, "backup");
    facts = base;
    facts.procedure_class = CONFIG_CLASS_METADATA;
    facts.nfs3_procedure = 1;
    exchange = classify_nfs(&world, &facts);
    assert_string_equal(exchange.class->name, "users");
    assert_int_equal(exchange.cost, 2);
    assert_int_equal(exchange.key_length, sizeof(uint32_t));
    facts.nfs3_procedure = 4;
    assert_int_equal(classify_nfs(&world, &facts).cost, 3);
    /* An NFSv4 compound: by its class. */
    facts.procedure_class = CONFIG_CLASS_WRITE;
    facts.nfs3_procedure = -1;
    assert_int_equal(classify_nfs(&world, &facts).cost, 8);
    facts.has_uid = false;
    struct exchange without = classify_nfs(&world, &facts);
    assert_string_equal(without.class->name, "users");
    assert_int_equal(without.key_length, 0);
    facts.client = (struct sockaddr *)&near;
    assert_string_equal(classify_nfs(&world, &facts).class->name, "near");
    world_close(&world);
}

/* ------------------------------------------------------------------ how long a plan lives */

static void take_over(struct world *world, unsigned worker, struct plan *plan)
{
    struct plan *old = world->runtime->workers[worker].plan;

    world->runtime->workers[worker].plan = plan;
    plan_leave(old, &world->runtime->workers[worker]);
}

static const char one_pool[] =
    "workers: 2\n"
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
    "pools: [{ name: farm, servers: ['127.0.0.1:1'] }]\n";

/* The sanitizers tell whether it is freed at the end, once, and not before. */
static void an_old_plan_goes_with_its_last_holder(void **state)
{
    struct world world = world_open(one_pool);
    struct worker *workers = world.runtime->workers;
    struct plan *old = world.runtime->plan;
    const struct plan_pool *pool = plan_pool_of(&world);

    (void)state;
    plan_hold(pool, 0);
    plan_hold(pool, 0);
    plan_hold(pool, 1);
    /* While it is the newest, giving back everything changes nothing. */
    plan_release(pool, &workers[1]);
    assert_int_equal(atomic_load(&old->workers), 2);
    world.runtime->plan = plan_build(world.runtime, load_config(one_pool));
    assert_ptr_equal(plan_pool_of(&world)->pool, pool->pool);
    take_over(&world, 0, world.runtime->plan);
    assert_int_equal(atomic_load(&old->workers), 2);
    plan_release(pool, &workers[0]);
    assert_int_equal(atomic_load(&old->workers), 2);
    take_over(&world, 1, world.runtime->plan);
    assert_int_equal(atomic_load(&old->workers), 1);
    assert_string_equal(pool->config->name, "farm");
    plan_release(pool, &workers[0]);
    settle_all(&world);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_are_tried_in_order),
        cmocka_unit_test(the_first_flow_that_matches_takes_the_request),
        cmocka_unit_test(keys_tell_clients_and_values_apart),
        cmocka_unit_test(costs_follow_the_configuration),
        cmocka_unit_test(true_costs_are_the_charged_ones_unless_bytes_count),
        cmocka_unit_test(nfs_calls_are_told_apart),
        cmocka_unit_test(an_old_plan_goes_with_its_last_holder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
