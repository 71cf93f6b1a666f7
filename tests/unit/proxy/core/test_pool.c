/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as reloads change them, and the flows made by key: how many there are and when they go. */
#include "tests/unit/proxy/core/fixture.h"

#define KEYED(limit)                                                                               \
    "workers: 1\n"                                                                                 \
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"                \
    "pools:\n"                                                                                     \
    "  - name: farm\n"                                                                             \
    "    servers: [{ address: '127.0.0.1:1', depth: 2 }]\n"                                        \
    "    queue: { limit: " #limit ", flow-limit: 1000 }\n"                                         \
    "    flows: [{ name: users, weight: 3, by: client-address, key-limit: 8 }]\n"

static void submit_key(struct request *request, struct world *world, unsigned number)
{
    char key[16];

    snprintf(key, sizeof(key), "client-%u", number);
    request_init(request, world, 0, "users", key);
    gate_submit(&request->exchange);
}

/* Idle loops retire a few instances each time the gate is pumped. */
static void pump_often(struct world *world)
{
    for (unsigned i = 0; i < 20; i++) {
        gate_kick(pool_of(world));
        settle_all(world);
    }
}

static void keyed_flows_go_when_idle(void **state)
{
    struct world world = world_open(KEYED(1000));
    struct flow_class *users = pool_find_class(pool_of(&world), "users");
    struct request requests[30];

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 30; i++)
            submit_key(&requests[i], &world, round * 5 + i % 5);
        settle_all(&world);
        assert_in_range(users->instances, 5, 8);
        finish_all(requests, 30, &world);
        for (unsigned i = 0; i < 30; i++)
            assert_int_equal(requests[i].released, 1);
    }
    pump_often(&world);
    assert_int_equal(users->instances, 0);
    assert_null(TAILQ_FIRST(&pool_of(&world)->lanes)->flows);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

/* Nobody needs to send anything for what many have left behind to go. */
static void many_keyed_flows_go_by_themselves(void **state)
{
    struct world world =
        world_open("workers: 1\n"
                   "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
                   "pools:\n"
                   "  - name: farm\n"
                   "    servers: [{ address: '127.0.0.1:1', depth: 1000 }]\n"
                   "    flows: [{ name: users, by: client-address }]\n");
    struct request *requests = test_calloc(300, sizeof(*requests));

    (void)state;
    for (unsigned i = 0; i < 300; i++)
        submit_key(&requests[i], &world, i);
    settle_all(&world);
    assert_int_equal(pool_find_class(pool_of(&world), "users")->instances, 300);
    finish_all(requests, 300, &world);
    for (unsigned turn = 0; turn < 20; turn++)
        settle_all(&world);
    assert_int_equal(pool_find_class(pool_of(&world), "users")->instances, 0);
    test_free(requests);
    world_close(&world);
}

static void keys_beyond_the_limit_share_one_instance(void **state)
{
    struct world world = world_open(KEYED(1000));
    struct flow_class *users = pool_find_class(pool_of(&world), "users");
    struct request requests[50];

    (void)state;
    for (unsigned i = 0; i < 50; i++)
        submit_key(&requests[i], &world, i);
    settle_all(&world);
    assert_int_equal(users->instances, 8);
    for (unsigned i = 8; i < 50; i++)
        assert_ptr_equal(requests[i].exchange.flow, requests[49].exchange.flow);
    assert_ptr_not_equal(requests[0].exchange.flow, requests[1].exchange.flow);
    finish_all(requests, 50, &world);
    pump_often(&world);
    assert_int_equal(users->instances, 0);
    assert_int_equal(users->meters.requests, 50);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

/* A stranger whose request finds the queue full must not leave an instance behind. */
static void refused_requests_leave_no_flow(void **state)
{
    struct world world = world_open(KEYED(1));
    struct flow_class *users = pool_find_class(pool_of(&world), "users");
    struct request requests[40];
    unsigned refused = 0;

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        submit_key(&requests[i], &world, i);
        settle_all(&world);
    }
    for (unsigned i = 0; i < 40; i++)
        refused += requests[i].refused;
    assert_int_equal(refused, 37);
    assert_int_equal(users->instances, 3);
    finish_all(requests, 40, &world);
    pump_often(&world);
    assert_int_equal(users->instances, 0);
    world_close(&world);
}

static void cancelled_requests_leave_no_flow(void **state)
{
    struct world world = world_open(KEYED(1000));
    struct flow_class *users = pool_find_class(pool_of(&world), "users");
    struct request requests[8];

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        submit_key(&requests[i], &world, i);
    settle_all(&world);
    for (unsigned i = 2; i < 8; i++)
        assert_true(gate_cancel(&requests[i].exchange));
    finish_all(requests, 8, &world);
    pump_often(&world);
    assert_int_equal(users->instances, 0);
    world_close(&world);
}

static void each_key_has_the_weight_of_its_class(void **state)
{
    struct world world = world_open(KEYED(1000));
    struct pool *pool = pool_of(&world);
    struct flow_class *users = pool_find_class(pool, "users");
    struct request requests[4];
    char why[100];

    (void)state;
    submit_key(&requests[0], &world, 0);
    submit_key(&requests[1], &world, 1);
    settle_all(&world);
    assert_int_equal(requests[0].exchange.flow->sched.weight, 3);
    assert_int_equal(admin_set_weight(world.runtime, "farm", "users", 7, why, sizeof(why)), 0);
    assert_int_equal(requests[0].exchange.flow->sched.weight, 7);
    assert_int_equal(requests[1].exchange.flow->sched.weight, 7);
    submit_key(&requests[2], &world, 2);
    settle_all(&world);
    assert_int_equal(requests[2].exchange.flow->sched.weight, 7);
    assert_int_equal(users->weight, 7);
    finish_all(requests, 3, &world);
    world_close(&world);
}

#define FLOWS(flows)                                                                               \
    "workers: 1\n"                                                                                 \
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"                \
    "pools:\n"                                                                                     \
    "  - name: farm\n"                                                                             \
    "    servers: [{ address: '127.0.0.1:1', depth: 1 }]\n"                                        \
    "    flows: [" flows "]\n"

static void a_removed_class_finishes_and_comes_back(void **state)
{
    struct world world = world_open(FLOWS("{ name: gold, weight: 2, match: { path: /a } }"));
    struct flow_class *gold = pool_find_class(pool_of(&world), "gold");
    struct request requests[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        submit(&requests[i], &world, "gold");
    settle_all(&world);
    world_reload(&world, FLOWS("{ name: silver, weight: 1, match: { path: /a } }"));
    for (unsigned i = 0; i < 3; i++)
        requests[i].exchange.pool = plan_pool_of(&world);
    assert_null(pool_find_class(pool_of(&world), "gold"));
    assert_non_null(pool_find_class(pool_of(&world), "silver"));
    finish_all(requests, 3, &world);
    assert_int_equal(gold->meters.requests, 3);
    /* What it did still counts for the pool. */
    assert_int_equal(view_of(&world).meters.requests, 3);
    world_reload(&world, FLOWS("{ name: gold, weight: 5, match: { path: /a } }"));
    assert_ptr_equal(pool_find_class(pool_of(&world), "gold"), gold);
    assert_int_equal(gold->weight, 5);
    assert_int_equal(gold->meters.requests, 3);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void a_server_with_another_address_is_another_server(void **state)
{
    static const char at[] = "workers: 1\n"
                             "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: "
                             "farm }]\n"
                             "pools: [{ name: farm, servers: [{ name: a, address: '127.0.0.1:%u', "
                             "depth: %u }] }]\n";
    char text[400];
    struct world world;

    (void)state;
    snprintf(text, sizeof(text), at, 1U, 4U);
    world = world_open(text);
    struct server *first = pool_find_server(pool_of(&world), "a");
    snprintf(text, sizeof(text), at, 1U, 9U);
    world_reload(&world, text);
    assert_ptr_equal(pool_find_server(pool_of(&world), "a"), first);
    assert_int_equal(first->depth, 9);
    snprintf(text, sizeof(text), at, 2U, 9U);
    world_reload(&world, text);
    struct server *second = pool_find_server(pool_of(&world), "a");
    assert_ptr_not_equal(second, first);
    assert_int_not_equal(second->index, first->index);
    assert_true(first->removed);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keyed_flows_go_when_idle),
        cmocka_unit_test(many_keyed_flows_go_by_themselves),
        cmocka_unit_test(keys_beyond_the_limit_share_one_instance),
        cmocka_unit_test(refused_requests_leave_no_flow),
        cmocka_unit_test(cancelled_requests_leave_no_flow),
        cmocka_unit_test(each_key_has_the_weight_of_its_class),
        cmocka_unit_test(a_removed_class_finishes_and_comes_back),
        cmocka_unit_test(a_server_with_another_address_is_another_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
