/* SPDX-License-Identifier: Apache-2.0 */
/* The gate and its servers: balance, failing, dying, coming back, draining, moving, reloads. */
#include "tests/unit/proxy/core/fixture.h"

#include <arpa/inet.h>
#include <errno.h>

#define LISTENER "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
#define TWO_SERVERS(depth)                                                                         \
    "workers: 1\n" LISTENER "pools:\n"                                                             \
    "  - name: farm\n"                                                                             \
    "    retry: { dead-after: 2, dead-for: 1s }\n"                                                 \
    "    servers: [{ name: a, address: '127.0.0.1:1', depth: " #depth " },\n"                      \
    "              { name: b, address: '127.0.0.1:2', depth: " #depth " }]\n"

static struct server *server_named(struct world *world, const char *name)
{
    struct server *server = pool_find_server(pool_of(world), name);

    assert_non_null(server);
    return server;
}

static void fail_server(struct world *world, const char *name, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        gate_server_failed(server_named(world, name), world->clock_ns);
}

static void finish_one_of(const struct server *server, struct request *requests, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (requests[i].exchange.server == server &&
            requests[i].exchange.state == EXCHANGE_DISPATCHED) {
            finish(&requests[i], OUTCOME_ANSWERED);
            return;
        }
    }
    fail_msg("nothing is outstanding at %s", server->name);
}

static void drop_all(struct request *requests, unsigned count, struct world *world)
{
    finish_all(requests, count, world);
    for (unsigned i = 0; i < count; i++) {
        if (requests[i].exchange.state == EXCHANGE_QUEUED)
            assert_true(gate_cancel(&requests[i].exchange));
    }
    settle_all(world);
    assert_pool_at_rest(pool_of(world));
}

static void round_robin_takes_servers_in_turn(void **state)
{
    struct world world = world_open(TWO_SERVERS(8));
    struct request requests[6];

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        submit(&requests[i], &world, "default");
        settle_all(&world);
        if (i >= 2)
            assert_ptr_equal(requests[i].exchange.server, requests[i - 2].exchange.server);
    }
    assert_ptr_not_equal(requests[0].exchange.server, requests[1].exchange.server);
    drop_all(requests, 6, &world);
    world_close(&world);
}

static void least_outstanding_takes_the_emptiest(void **state)
{
    struct world world = world_open(TWO_SERVERS(8) "    balance: least-outstanding\n");
    struct request requests[7];

    (void)state;
    for (unsigned i = 0; i < 6; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    struct server *emptied = requests[0].exchange.server;
    for (unsigned i = 0; i < 6; i++) {
        if (requests[i].exchange.server == emptied)
            finish(&requests[i], OUTCOME_ANSWERED);
    }
    settle_all(&world);
    assert_int_equal(emptied->outstanding, 0);
    for (unsigned i = 0; i < 3; i++) {
        submit(&requests[6], &world, "default");
        settle_all(&world);
        assert_ptr_equal(requests[6].exchange.server, emptied);
        finish(&requests[6], OUTCOME_ANSWERED);
        settle_all(&world);
    }
    for (unsigned i = 0; i < 6; i++) {
        if (requests[i].released == 0)
            finish(&requests[i], OUTCOME_ANSWERED);
    }
    settle_all(&world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void a_dead_server_is_left_out(void **state)
{
    struct world world = world_open(TWO_SERVERS(4));
    struct server *a = server_named(&world, "a");
    struct request requests[12];

    (void)state;
    fail_server(&world, "a", 1);
    assert_int_equal(a->state, SERVER_READY);
    fail_server(&world, "a", 1);
    assert_int_equal(a->state, SERVER_DEAD);
    assert_int_equal(a->meters.deaths, 1);
    assert_int_equal(a->meters.connect_errors, 2);
    for (unsigned i = 0; i < 12; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(a->outstanding, 0);
    assert_int_equal(server_named(&world, "b")->outstanding, 4);
    drop_all(requests, 12, &world);
    world_close(&world);
}

static void failures_count_in_a_row_only(void **state)
{
    struct world world = world_open(TWO_SERVERS(4));
    struct server *a = server_named(&world, "a");

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        fail_server(&world, "a", 1);
        gate_server_connected(a);
    }
    assert_int_equal(a->state, SERVER_READY);
    assert_int_equal(a->meters.connects, 5);
    assert_int_equal(a->meters.deaths, 0);
    world_close(&world);
}

/* When its time is over one request tries it; more only after it has shown itself. */
static void a_dead_server_is_tried_with_one_request(void **state)
{
    struct world world = world_open(TWO_SERVERS(4));
    struct server *a = server_named(&world, "a");
    struct request requests[16];

    (void)state;
    fail_server(&world, "a", 2);
    for (unsigned i = 0; i < 16; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    pass_time(&world, 1010 * MILLISECOND_NS);
    finish(oldest_dispatched(requests, 16), OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(a->outstanding, 1);
    /* It fails again: out for another while, whatever else ends meanwhile. */
    fail_server(&world, "a", 1);
    assert_int_equal(a->meters.deaths, 1);
    for (unsigned i = 0; i < 16; i++) {
        if (requests[i].exchange.server == a && requests[i].exchange.state == EXCHANGE_DISPATCHED)
            finish(&requests[i], OUTCOME_FAILED);
    }
    settle_all(&world);
    assert_int_equal(a->outstanding, 0);
    /* And once more, now with success. */
    pass_time(&world, 1010 * MILLISECOND_NS);
    finish(oldest_dispatched(requests, 16), OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(a->outstanding, 1);
    gate_server_connected(a);
    settle_all(&world);
    assert_int_equal(a->state, SERVER_READY);
    assert_int_equal(a->outstanding, 4);
    drop_all(requests, 16, &world);
    world_close(&world);
}

/* Requests at a server that died must not take slots from the one that lives. */
static void a_dead_servers_requests_take_no_slots_of_others(void **state)
{
    struct world world = world_open(TWO_SERVERS(4));
    struct request requests[24];
    struct server *b = server_named(&world, "b");

    (void)state;
    for (unsigned i = 0; i < 24; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    fail_server(&world, "a", 2);
    for (unsigned round = 0; round < 8; round++) {
        finish_one_of(b, requests, 24);
        settle_all(&world);
        assert_int_equal(b->outstanding, 4);
    }
    drop_all(requests, 24, &world);
    world_close(&world);
}

static void without_any_server_everything_is_refused(void **state)
{
    struct world world = world_open(TWO_SERVERS(2));
    struct request requests[9];
    unsigned refused = 0;

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 8), 4);
    fail_server(&world, "a", 2);
    fail_server(&world, "b", 2);
    submit(&requests[8], &world, "default");
    settle_all(&world);
    for (unsigned i = 0; i < 9; i++) {
        refused += requests[i].refused;
        if (requests[i].refused > 0) {
            assert_int_equal(requests[i].refusal, REFUSAL_NO_SERVER);
            assert_int_equal(requests[i].exchange.state, EXCHANGE_READING);
        }
    }
    assert_int_equal(refused, 5);
    assert_int_equal(view_of(&world).meters.no_server, 5);
    assert_int_equal(count_dispatched(requests, 9), 4);
    drop_all(requests, 9, &world);
    /* After their time the next request is let through to see. */
    pass_time(&world, 1010 * MILLISECOND_NS);
    submit(&requests[8], &world, "default");
    settle_all(&world);
    assert_int_equal(requests[8].dispatched, 1);
    drop_all(&requests[8], 1, &world);
    world_close(&world);
}

static void a_drained_server_finishes_and_gets_nothing_new(void **state)
{
    struct world world = world_open(TWO_SERVERS(3));
    struct server *a = server_named(&world, "a");
    struct request requests[20];
    char why[100];

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(a->outstanding, 3);
    assert_int_equal(admin_set_server_state(world.runtime, "farm", "a", "drain", why, sizeof(why)),
                     0);
    for (unsigned i = 0; i < 6; i++) {
        finish(oldest_dispatched(requests, 20), OUTCOME_ANSWERED);
        settle_all(&world);
        assert_int_equal(server_named(&world, "b")->outstanding, 3);
    }
    assert_int_equal(a->outstanding, 0);
    /* A failure of a drained server does not put it back into the game. */
    fail_server(&world, "a", 5);
    assert_int_equal(a->state, SERVER_DRAIN);
    assert_int_equal(admin_set_server_state(world.runtime, "farm", "a", "ready", why, sizeof(why)),
                     0);
    settle_all(&world);
    assert_int_equal(a->outstanding, 3);
    drop_all(requests, 20, &world);
    world_close(&world);
}

/* ------------------------------------------------------------------ moving */

static void moving_takes_another_server_where_there_is_room(void **state)
{
    struct world world = world_open(TWO_SERVERS(2));
    struct request request;
    struct server *old;

    (void)state;
    submit(&request, &world, "default");
    settle_all(&world);
    old = request.exchange.server;
    assert_int_equal(gate_move(&request.exchange), GATE_MOVED);
    assert_ptr_not_equal(request.exchange.server, old);
    assert_int_equal(old->outstanding, 0);
    assert_int_equal(request.exchange.server->outstanding, 1);
    assert_int_equal(request.exchange.server->meters.retries, 1);
    assert_int_equal(request.dispatched, 1);
    drop_all(&request, 1, &world);
    assert_int_equal(request.released, 1);
    world_close(&world);
}

static void moving_waits_at_the_head_when_the_others_are_full(void **state)
{
    struct world world = world_open(TWO_SERVERS(1));
    struct request requests[5];

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    struct server *broken = requests[0].exchange.server;
    fail_server(&world, broken->name, 2);
    assert_int_equal(gate_move(&requests[0].exchange), GATE_QUEUED);
    assert_int_equal(requests[0].exchange.state, EXCHANGE_QUEUED);
    settle_all(&world);
    finish(&requests[1], OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(requests[0].dispatched, 2);
    assert_int_equal(requests[2].dispatched, 0);
    assert_ptr_not_equal(requests[0].exchange.server, broken);
    drop_all(requests, 5, &world);
    world_close(&world);
}

static void moving_nowhere_keeps_the_slot(void **state)
{
    struct world world = world_open(TWO_SERVERS(1));
    struct request request;

    (void)state;
    submit(&request, &world, "default");
    settle_all(&world);
    fail_server(&world, "a", 2);
    fail_server(&world, "b", 2);
    assert_int_equal(gate_move(&request.exchange), GATE_NOWHERE);
    assert_int_equal(request.exchange.server->outstanding, 1);
    finish(&request, OUTCOME_FAILED);
    settle_all(&world);
    assert_int_equal(request.released, 1);
    assert_int_equal(view_of(&world).meters.errors, 1);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

/* ------------------------------------------------------------------ changes while running */

static void a_lower_depth_is_reached_by_waiting(void **state)
{
    struct world world = world_open(TWO_SERVERS(6));
    struct request requests[30];
    struct server *a = server_named(&world, "a");
    struct server *b = server_named(&world, "b");

    (void)state;
    for (unsigned i = 0; i < 30; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    world_reload(&world, "workers: 1\n" LISTENER "pools:\n"
                         "  - name: farm\n"
                         "    servers: [{ name: a, address: '127.0.0.1:1', depth: 2 },\n"
                         "              { name: b, address: '127.0.0.1:2', depth: 6 }]\n");
    for (unsigned i = 0; i < 30; i++)
        requests[i].exchange.pool = plan_pool_of(&world);
    settle_all(&world);
    /* What is too much at one server must not keep the other below its own depth. */
    for (unsigned round = 0; round < 3; round++) {
        finish_one_of(b, requests, 30);
        settle_all(&world);
        assert_int_equal(b->outstanding, 6);
        assert_int_equal(a->outstanding, 6);
    }
    finish_all(requests, 30, &world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void a_removed_server_comes_back_as_itself(void **state)
{
    static const char only_b[] = "workers: 1\n" LISTENER "pools:\n"
                                 "  - name: farm\n"
                                 "    servers: [{ name: b, address: '127.0.0.1:2', depth: 3 }]\n";
    struct world world = world_open(TWO_SERVERS(3));
    struct server *a = server_named(&world, "a");
    struct request requests[10];

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    world_reload(&world, only_b);
    for (unsigned i = 0; i < 10; i++)
        requests[i].exchange.pool = plan_pool_of(&world);
    settle_all(&world);
    assert_null(pool_find_server(pool_of(&world), "a"));
    assert_int_equal(a->outstanding, 3);
    drop_all(requests, 10, &world);
    for (unsigned i = 0; i < 6; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 3);
    assert_int_equal(a->outstanding, 0);
    world_reload(&world, TWO_SERVERS(3));
    for (unsigned i = 0; i < 6; i++)
        requests[i].exchange.pool = plan_pool_of(&world);
    settle_all(&world);
    assert_ptr_equal(server_named(&world, "a"), a);
    assert_int_equal(a->outstanding, 3);
    drop_all(requests, 6, &world);
    world_close(&world);
}

static void a_raised_depth_dispatches_without_a_new_request(void **state)
{
    struct world world = world_open(TWO_SERVERS(1));
    struct request requests[10];
    char why[100];

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 10), 2);
    assert_int_equal(admin_set_server_depth(world.runtime, "farm", "b", 5, why, sizeof(why)), 0);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 10), 6);
    assert_int_equal(admin_set_pool_depth(world.runtime, "farm", 3, why, sizeof(why)), 0);
    for (unsigned i = 0; i < 4; i++) {
        finish(oldest_dispatched(requests, 10), OUTCOME_ANSWERED);
        settle_all(&world);
    }
    assert_int_equal(count_dispatched(requests, 10), 3);
    drop_all(requests, 10, &world);
    world_close(&world);
}

static void changes_of_unknown_names_say_what_there_is(void **state)
{
    struct world world = world_open(TWO_SERVERS(1));
    char why[200];

    (void)state;
    assert_int_equal(admin_set_pool_depth(world.runtime, "nope", 3, why, sizeof(why)), -ENOENT);
    assert_non_null(strstr(why, "farm"));
    assert_int_equal(admin_set_server_depth(world.runtime, "farm", "c", 3, why, sizeof(why)),
                     -ENOENT);
    assert_non_null(strstr(why, " a b"));
    assert_int_equal(admin_set_server_depth(world.runtime, "farm", "a", 0, why, sizeof(why)),
                     -EINVAL);
    assert_int_equal(admin_set_weight(world.runtime, "farm", "default", 0, why, sizeof(why)),
                     -EINVAL);
    assert_int_equal(admin_set_weight(world.runtime, "farm", "silver", 1, why, sizeof(why)),
                     -ENOENT);
    assert_int_equal(admin_set_algorithm(world.runtime, "farm", "lifo", why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "min-sfqd"));
    assert_int_equal(admin_set_server_state(world.runtime, "farm", "a", "up", why, sizeof(why)),
                     -EINVAL);
    world_close(&world);
}

/* ------------------------------------------------------------------ NFS lanes */

#define ARRAY                                                                                      \
    "workers: 1\n"                                                                                 \
    "listeners: [{ name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }]\n"                \
    "pools:\n"                                                                                     \
    "  - name: array\n"                                                                            \
    "    retry: { dead-after: 1, dead-for: 1s }\n"                                                 \
    "    servers: [{ name: a, address: '127.0.0.1:1' }, { name: b, address: '127.0.0.1:2' },\n"    \
    "              { name: c, address: '127.0.0.1:3' }]\n"

static struct lane *lane_for(struct world *world, unsigned client)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(client * 7 + 1)),
                                  .sin_addr.s_addr = htonl(0x0a000000 + client)};

    return gate_choose_lane(pool_of(world), (struct sockaddr *)&address, world->clock_ns);
}

static void clients_keep_their_lane_and_are_spread(void **state)
{
    enum { CLIENTS = 3000 };
    static struct lane *lanes[CLIENTS];
    struct world world = world_open(ARRAY);
    unsigned counts[3] = {0};
    unsigned moved = 0;

    (void)state;
    assert_int_equal(pool_of(&world)->lane_count, 3);
    for (unsigned i = 0; i < CLIENTS; i++) {
        lanes[i] = lane_for(&world, i);
        assert_non_null(lanes[i]);
        assert_ptr_equal(lane_for(&world, i), lanes[i]);
        counts[lanes[i]->index]++;
    }
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(counts[i], CLIENTS / 6, CLIENTS / 2);
    /* Only the clients of the server that went have to move. */
    fail_server(&world, "b", 1);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct lane *lane = lane_for(&world, i);
        assert_int_not_equal(lane->index, 1);
        moved += lane != lanes[i];
    }
    assert_int_equal(moved, counts[1]);
    fail_server(&world, "a", 1);
    fail_server(&world, "c", 1);
    assert_null(lane_for(&world, 5));
    world_close(&world);
}

/* The pool's total is shorter than what the servers take: no lane may have all of it. */
static void a_short_total_goes_round_the_lanes(void **state)
{
    enum { REQUESTS = 60 };
    static struct request requests[REQUESTS];
    struct world world = world_open(ARRAY "    depth: 2\n");
    struct lane *lanes[3] = {NULL};
    struct lane *lane;
    unsigned count = 0;

    (void)state;
    TAILQ_FOREACH(lane, &pool_of(&world)->lanes, link)
    {
        lanes[count++] = lane;
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        request_init(&requests[i], &world, 0, "default", NULL);
        requests[i].exchange.lane = lanes[i / (REQUESTS / 3)];
        gate_submit(&requests[i].exchange);
    }
    settle_all(&world);
    for (unsigned done = 0; done < 30; done++) {
        assert_int_equal(count_dispatched(requests, REQUESTS), 2);
        finish(oldest_dispatched(requests, REQUESTS), OUTCOME_ANSWERED);
        settle_all(&world);
    }
    for (unsigned i = 0; i < 3; i++) {
        unsigned served = 0;
        for (unsigned j = 0; j < REQUESTS; j++)
            served += requests[j].exchange.lane == lanes[i] && requests[j].released > 0;
        assert_int_equal(served, 10);
    }
    finish_all(requests, REQUESTS, &world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_robin_takes_servers_in_turn),
        cmocka_unit_test(least_outstanding_takes_the_emptiest),
        cmocka_unit_test(a_dead_server_is_left_out),
        cmocka_unit_test(failures_count_in_a_row_only),
        cmocka_unit_test(a_dead_server_is_tried_with_one_request),
        cmocka_unit_test(a_dead_servers_requests_take_no_slots_of_others),
        cmocka_unit_test(without_any_server_everything_is_refused),
        cmocka_unit_test(a_drained_server_finishes_and_gets_nothing_new),
        cmocka_unit_test(moving_takes_another_server_where_there_is_room),
        cmocka_unit_test(moving_waits_at_the_head_when_the_others_are_full),
        cmocka_unit_test(moving_nowhere_keeps_the_slot),
        cmocka_unit_test(a_lower_depth_is_reached_by_waiting),
        cmocka_unit_test(a_removed_server_comes_back_as_itself),
        cmocka_unit_test(a_raised_depth_dispatches_without_a_new_request),
        cmocka_unit_test(changes_of_unknown_names_say_what_there_is),
        cmocka_unit_test(clients_keep_their_lane_and_are_spread),
        cmocka_unit_test(a_short_total_goes_round_the_lanes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
