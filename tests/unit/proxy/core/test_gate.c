/* SPDX-License-Identifier: Apache-2.0 */
/* The gate in exact cases: depth, order, shares, limits, time-outs, cancelling, meters. */
#include "tests/unit/proxy/core/fixture.h"

#define LISTENER "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
#define TWO_FLOWS                                                                                  \
    "    flows: [{ name: gold, weight: 2, match: { header: { X: gold } } },\n"                     \
    "            { name: rest, weight: 1 }]\n"

static void depth_bounds_what_is_outstanding(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 3 },\n"
                                    "              { address: '127.0.0.1:2', depth: 2 }]\n");
    struct request requests[12];

    (void)state;
    for (unsigned i = 0; i < 12; i++)
        submit(&requests[i], &world, "default");
    assert_int_equal(count_dispatched(requests, 12), 0);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 12), 5);
    assert_int_equal(pool_find_server(pool_of(&world), "127.0.0.1:1")->outstanding, 3);
    assert_int_equal(pool_find_server(pool_of(&world), "127.0.0.1:2")->outstanding, 2);
    for (unsigned i = 0; i < 12; i++) {
        finish(oldest_dispatched(requests, 12), OUTCOME_ANSWERED);
        settle_all(&world);
        assert_int_equal(count_dispatched(requests, 12), 11 - i < 5 ? 11 - i : 5);
    }
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(requests[i].released, 1);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void a_pool_total_bounds_all_servers_together(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    depth: 4\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 3 },\n"
                                    "              { address: '127.0.0.1:2', depth: 3 }]\n");
    struct request requests[9];

    (void)state;
    for (unsigned i = 0; i < 9; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 9), 4);
    finish_all(requests, 9, &world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void a_flow_is_first_in_first_out(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools: [{ name: farm, servers: "
                                    "[{ address: '127.0.0.1:1', depth: 1 }] }]\n");
    struct request requests[30];

    (void)state;
    dispatch_count = 0;
    for (unsigned i = 0; i < 30; i++) {
        submit(&requests[i], &world, "default");
        if (i % 4 == 0)
            settle_all(&world);
    }
    settle_all(&world);
    finish_all(requests, 30, &world);
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(requests[i].order, i + 1);
    world_close(&world);
}

/* Of every three dispatches two are the heavy flow's, to the request. */
static void shares_follow_weights(void **state)
{
    enum { EACH = 300 };
    static struct request requests[2 * EACH];
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 1 }]\n"
                                    "    scheduler: sfqd\n" TWO_FLOWS);
    unsigned gold = 0;

    (void)state;
    for (unsigned i = 0; i < 2 * EACH; i++)
        submit(&requests[i], &world, i < EACH ? "rest" : "gold");
    settle_all(&world);
    for (unsigned served = 1; served <= EACH; served++) {
        struct request *request = oldest_dispatched(requests, 2 * EACH);
        assert_non_null(request);
        gold += request >= &requests[EACH];
        if (served % 3 == 0)
            assert_in_range(gold, 2 * served / 3 - 1, 2 * served / 3 + 1);
        finish(request, OUTCOME_ANSWERED);
        settle_all(&world);
    }
    assert_in_range(gold, 2 * EACH / 3 - 1, 2 * EACH / 3 + 1);
    finish_all(requests, 2 * EACH, &world);
    assert_int_equal(pool_find_class(pool_of(&world), "gold")->meters.requests, EACH);
    assert_int_equal(pool_find_class(pool_of(&world), "rest")->meters.requests, EACH);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void fifo_ignores_weights_until_the_algorithm_changes(void **state)
{
    enum { EACH = 30 };
    static struct request requests[2 * EACH];
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 1 }]\n"
                                    "    scheduler: fifo\n" TWO_FLOWS);
    unsigned gold = 0;
    char why[100];

    (void)state;
    for (unsigned i = 0; i < 2 * EACH; i++)
        submit(&requests[i], &world, i < EACH ? "rest" : "gold");
    settle_all(&world);
    for (unsigned served = 0; served < 10; served++) {
        struct request *request = oldest_dispatched(requests, 2 * EACH);
        assert_ptr_equal(request, &requests[served]);
        finish(request, OUTCOME_ANSWERED);
        settle_all(&world);
    }
    assert_int_equal(admin_set_algorithm(world.runtime, "farm", "sfqd", why, sizeof(why)), 0);
    settle_all(&world);
    for (unsigned served = 0; served < 18; served++) {
        struct request *request = oldest_dispatched(requests, 2 * EACH);
        gold += request >= &requests[EACH];
        finish(request, OUTCOME_ANSWERED);
        settle_all(&world);
    }
    assert_in_range(gold, 11, 13);
    finish_all(requests, 2 * EACH, &world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

#define LIMITED                                                                                    \
    "workers: 1\n" LISTENER "pools:\n"                                                             \
    "  - name: farm\n"                                                                             \
    "    servers: [{ address: '127.0.0.1:1', depth: 1 }]\n"                                        \
    "    queue: { limit: 5, flow-limit: 3, timeout: 1s }\n" TWO_FLOWS

static void queue_limits_refuse_with_their_own_word(void **state)
{
    struct world world = world_open(LIMITED);
    struct request holder;
    struct request gold[5];
    struct request rest[5];
    struct pool *pool = pool_of(&world);

    (void)state;
    submit(&holder, &world, "rest");
    settle_all(&world);
    assert_int_equal(holder.dispatched, 1);
    for (unsigned i = 0; i < 5; i++) {
        submit(&gold[i], &world, "gold");
        settle_all(&world);
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(gold[i].refused, i >= 3);
        if (i >= 3)
            assert_int_equal(gold[i].refusal, REFUSAL_FLOW_FULL);
    }
    for (unsigned i = 0; i < 5; i++) {
        submit(&rest[i], &world, "rest");
        settle_all(&world);
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(rest[i].refused, i >= 2);
        if (i >= 2)
            assert_int_equal(rest[i].refusal, REFUSAL_POOL_FULL);
        assert_int_equal(rest[i].exchange.state, i >= 2 ? EXCHANGE_READING : EXCHANGE_QUEUED);
    }
    assert_int_equal(view_of(&world).meters.refused, 5);
    assert_int_equal(pool_find_class(pool, "gold")->meters.refused, 2);
    assert_int_equal(pool_find_class(pool, "rest")->meters.refused, 3);
    finish(&holder, OUTCOME_ANSWERED);
    settle_all(&world);
    finish_all(gold, 5, &world);
    finish_all(rest, 5, &world);
    finish_all(gold, 5, &world);
    assert_pool_at_rest(pool);
    world_close(&world);
}

/* What a free server can take at once does not count as waiting, however much comes in a turn. */
static void a_burst_that_servers_can_take_is_not_refused(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 8 }]\n"
                                    "    queue: { limit: 2, flow-limit: 2 }\n");
    struct request requests[11];

    (void)state;
    for (unsigned i = 0; i < 11; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 11), 8);
    assert_int_equal(requests[9].refused, 0);
    assert_int_equal(requests[10].refused, 1);
    finish_all(requests, 11, &world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void waiting_too_long_is_refused(void **state)
{
    struct world world = world_open(LIMITED);
    struct request holder;
    struct request waiting[2];
    struct pool *pool = pool_of(&world);

    (void)state;
    submit(&holder, &world, "rest");
    settle_all(&world);
    submit(&waiting[0], &world, "gold");
    settle_all(&world);
    pass_time(&world, 900 * MILLISECOND_NS);
    assert_int_equal(waiting[0].refused, 0);
    submit(&waiting[1], &world, "gold");
    settle_all(&world);
    pass_time(&world, 150 * MILLISECOND_NS);
    assert_int_equal(waiting[0].refused, 1);
    assert_int_equal(waiting[0].refusal, REFUSAL_TIMEOUT);
    assert_int_equal(waiting[1].refused, 0);
    assert_int_equal(view_of(&world).meters.queue_timeouts, 1);
    finish(&holder, OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(waiting[1].dispatched, 1);
    /* A request at the server is not the queue's business any more. */
    pass_time(&world, 10 * SECOND_NS);
    assert_int_equal(waiting[1].refused, 0);
    finish(&waiting[1], OUTCOME_FAILED);
    settle_all(&world);
    assert_int_equal(view_of(&world).meters.errors, 1);
    assert_pool_at_rest(pool);
    world_close(&world);
}

static void cancelling_leaves_no_trace(void **state)
{
    struct world world = world_open(LIMITED);
    struct request holder;
    struct request requests[3];
    struct pool *pool = pool_of(&world);

    (void)state;
    submit(&holder, &world, "rest");
    settle_all(&world);
    /* On the loop's own list. */
    submit(&requests[0], &world, "gold");
    assert_true(gate_cancel(&requests[0].exchange));
    assert_int_equal(requests[0].exchange.state, EXCHANGE_READING);
    /* In the scheduler, with one behind it. */
    submit(&requests[1], &world, "gold");
    submit(&requests[2], &world, "gold");
    settle_all(&world);
    assert_true(gate_cancel(&requests[1].exchange));
    settle_all(&world);
    pass_time(&world, 10 * MILLISECOND_NS);
    finish(&holder, OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(requests[2].dispatched, 1);
    finish(&requests[2], OUTCOME_ABORTED);
    settle_all(&world);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(requests[i].dispatched + requests[i].refused + requests[i].released, 0);
    assert_int_equal(view_of(&world).meters.cancelled, 3);
    assert_int_equal(view_of(&world).meters.requests, 1);
    assert_pool_at_rest(pool);
    world_close(&world);
}

/* Two loops: the dispatch is on its way to the owner's loop when the owner gives up. */
static void cancelling_a_dispatch_under_way_releases_later(void **state)
{
    struct world world = world_open("workers: 2\n" LISTENER "pools: [{ name: farm, servers: "
                                    "[{ address: '127.0.0.1:1', depth: 1 }] }]\n");
    struct request holder;
    struct request waiting;
    struct pool *pool = pool_of(&world);

    (void)state;
    request_init(&holder, &world, 0, "default", NULL);
    gate_submit(&holder.exchange);
    settle_all(&world);
    request_init(&waiting, &world, 1, "default", NULL);
    gate_submit(&waiting.exchange);
    settle_all(&world);
    finish(&holder, OUTCOME_ANSWERED);
    settle(&world, 0);
    assert_int_equal(holder.released, 1);
    assert_int_equal(waiting.exchange.state, EXCHANGE_DISPATCHED);
    assert_int_equal(waiting.dispatched, 0);
    assert_false(gate_cancel(&waiting.exchange));
    settle_all(&world);
    assert_int_equal(waiting.dispatched, 0);
    assert_int_equal(waiting.released, 1);
    assert_int_equal(view_of(&world).meters.cancelled, 1);
    assert_pool_at_rest(pool);
    world_close(&world);
}

static void another_loops_request_is_handed_over(void **state)
{
    enum { WORKERS = 3, EACH = 20 };
    static struct request requests[WORKERS * EACH];
    struct world world = world_open("workers: 3\n" LISTENER "pools: [{ name: farm, servers: "
                                    "[{ address: '127.0.0.1:1', depth: 2 }] }]\n");

    (void)state;
    for (unsigned i = 0; i < WORKERS * EACH; i++) {
        request_init(&requests[i], &world, i % WORKERS, "default", NULL);
        gate_submit(&requests[i].exchange);
        settle_all(&world);
    }
    dispatch_count = 2;
    finish_all(requests, WORKERS * EACH, &world);
    for (unsigned i = 0; i < WORKERS * EACH; i++)
        assert_int_equal(requests[i].released, 1);
    for (unsigned i = 2; i < WORKERS * EACH; i++)
        assert_int_equal(requests[i].order, i + 1);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void meters_say_what_happened(void **state)
{
    struct world world = world_open(LIMITED);
    struct request requests[3];
    struct pool *pool = pool_of(&world);
    struct server *server = pool_find_server(pool, "127.0.0.1:1");

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        submit(&requests[i], &world, "gold");
        requests[i].exchange.cost = 4;
        requests[i].exchange.bytes_in = 100;
        requests[i].exchange.bytes_out = 1000;
    }
    settle_all(&world);
    pass_time(&world, 40 * MILLISECOND_NS);
    gate_finish(&requests[0].exchange, OUTCOME_ANSWERED, 7);
    settle_all(&world);
    finish(&requests[1], OUTCOME_FAILED);
    settle_all(&world);
    finish(&requests[2], OUTCOME_ABORTED);
    settle_all(&world);
    struct pool_view view = view_of(&world);
    const struct flow_meters *both[] = {&view.meters, &pool_find_class(pool, "gold")->meters};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(both[i]->requests, 1);
        assert_int_equal(both[i]->errors, 1);
        assert_int_equal(both[i]->cancelled, 1);
        assert_int_equal(both[i]->cost, 7 + 4 + 4);
        assert_int_equal(both[i]->bytes_in, 300);
        assert_int_equal(both[i]->bytes_out, 3000);
        assert_int_equal(both[i]->wait.count, 3);
        assert_int_equal(both[i]->wait.sum_ns, 80 * MILLISECOND_NS);
        assert_int_equal(both[i]->service.count, 1);
        assert_int_equal(both[i]->service.sum_ns, 40 * MILLISECOND_NS);
    }
    assert_int_equal(server->meters.requests, 1);
    assert_int_equal(server->meters.errors, 1);
    assert_int_equal(server->meters.cost, 15);
    assert_int_equal(pool_find_class(pool, "rest")->meters.requests, 0);
    assert_pool_at_rest(pool);
    world_close(&world);
}

static void a_depth_in_cost_units_counts_costs(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    depth-unit: cost\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 10 }]\n");
    struct request requests[6];

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        submit(&requests[i], &world, "default");
        requests[i].exchange.cost = i == 5 ? 50 : 4;
    }
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 2);
    assert_int_equal(pool_of(&world)->outstanding_cost, 8);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(requests[5].dispatched, 0);
        finish(oldest_dispatched(requests, 6), OUTCOME_ANSWERED);
        settle_all(&world);
    }
    /* Larger than the whole depth: alone. */
    assert_int_equal(requests[5].dispatched, 1);
    finish_all(requests, 6, &world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_bounds_what_is_outstanding),
        cmocka_unit_test(a_pool_total_bounds_all_servers_together),
        cmocka_unit_test(a_flow_is_first_in_first_out),
        cmocka_unit_test(shares_follow_weights),
        cmocka_unit_test(fifo_ignores_weights_until_the_algorithm_changes),
        cmocka_unit_test(queue_limits_refuse_with_their_own_word),
        cmocka_unit_test(a_burst_that_servers_can_take_is_not_refused),
        cmocka_unit_test(waiting_too_long_is_refused),
        cmocka_unit_test(cancelling_leaves_no_trace),
        cmocka_unit_test(cancelling_a_dispatch_under_way_releases_later),
        cmocka_unit_test(another_loops_request_is_handed_over),
        cmocka_unit_test(meters_say_what_happened),
        cmocka_unit_test(a_depth_in_cost_units_counts_costs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
