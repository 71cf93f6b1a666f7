/* SPDX-License-Identifier: Apache-2.0 */
/* What flows are promised, at the gate: limits that let wait or refuse, wake-ups by time alone,
 * windows, queue limits of single flows, and changes of all that while requests wait. */
#include "tests/unit/proxy/core/fixture.h"

#define LISTENER "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
/* The wheel fires this late at the most. */
#define LATE_NS (2 * WHEEL_TICK_NS)

static struct world limited_world(const char *scheduler, const char *flow)
{
    char text[512];

    snprintf(text, sizeof(text),
             "workers: 2\n" LISTENER "pools:\n"
             "  - name: farm\n"
             "    scheduler: %s\n"
             "    queue: { timeout: off }\n"
             "    servers: [{ address: '127.0.0.1:1', depth: 2 },\n"
             "              { address: '127.0.0.1:2', depth: 2 }]\n"
             "    flows: [{ name: a, match: { path: /a }, %s }, { name: rest }]\n",
             scheduler, flow);
    return world_open(text);
}

static void close_at_rest(struct world *world)
{
    assert_pool_at_rest(pool_of(world));
    world_close(world);
}

/* Ten a second, one at a time: each goes by the passing of time alone, none early. */
static void held_requests_go_when_they_are_due(void **state)
{
    static const char *const schedulers[] = {"leaky-bucket", "mclock"};
    struct request requests[4];

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct world world = limited_world(schedulers[k], "limit: 10/s, burst: 0");
        for (unsigned i = 0; i < 4; i++)
            submit(&requests[i], &world, "a");
        settle_all(&world);
        assert_int_equal(count_dispatched(requests, 4), 1);
        uint64_t start_ns = world.clock_ns;
        for (unsigned i = 1; i < 4; i++) {
            /* mclock's tags go on from the arrival, a bucket's from what left it last. */
            uint64_t due_ns =
                100 * MILLISECOND_NS + (k == 0 ? requests[i - 1].exchange.dispatched_ns
                                               : start_ns + (i - 1) * 100 * MILLISECOND_NS);
            finish(&requests[i - 1], OUTCOME_ANSWERED);
            settle_all(&world);
            pass_time(&world, due_ns - 1 - world.clock_ns);
            assert_int_equal(requests[i].dispatched, 0);
            pass_time(&world, LATE_NS);
            assert_int_equal(requests[i].dispatched, 1);
        }
        finish(&requests[3], OUTCOME_ANSWERED);
        settle_all(&world);
        close_at_rest(&world);
    }
}

/* The burst makes up for what was let go late: in a second, a second's worth, although every one
 * but the first goes at a later tick than it might. */
static void lateness_is_made_up_for(void **state)
{
    static struct request requests[400];
    struct world world = limited_world("leaky-bucket", "limit: 200/s, burst: 4");
    unsigned dispatched = 0;

    (void)state;
    for (unsigned i = 0; i < 400; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    for (unsigned ms = 0; ms < 1000; ms++) {
        struct request *request;
        pass_time(&world, MILLISECOND_NS);
        while ((request = oldest_dispatched(requests, 400)) != NULL) {
            finish(request, OUTCOME_ANSWERED);
            settle_all(&world);
            dispatched++;
        }
    }
    assert_in_range(dispatched, 200, 205);
    for (unsigned i = dispatched; i < 400; i++)
        assert_true(gate_cancel(&requests[i].exchange));
    settle_all(&world);
    close_at_rest(&world);
}

/* Whichever loop pumps: the time that the earliest is due at is somebody's. */
static void a_wake_up_moves_forward_with_an_earlier_request(void **state)
{
    struct world world = world_open("workers: 3\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    scheduler: leaky-bucket\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 9 }]\n"
                                    "    flows: [{ name: slow, limit: 1/s, match: { path: /s } },\n"
                                    "            { name: quick, limit: 10/s }]\n");
    struct request slow[2], quick[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        request_init(&slow[i], &world, 0, "slow", NULL);
        gate_submit(&slow[i].exchange);
    }
    settle_all(&world);
    uint64_t slow_ns = pool_of(&world)->wake_ns;
    assert_true(slow_ns == world.clock_ns + SECOND_NS);
    for (unsigned i = 0; i < 2; i++) {
        request_init(&quick[i], &world, 2, "quick", NULL);
        gate_submit(&quick[i].exchange);
    }
    settle_all(&world);
    assert_true(pool_of(&world)->wake_ns == world.clock_ns + SECOND_NS / 10);
    assert_int_equal(quick[1].dispatched, 0);
    pass_time(&world, SECOND_NS / 10 + LATE_NS);
    assert_int_equal(quick[1].dispatched, 1);
    assert_int_equal(slow[1].dispatched, 0);
    assert_true(pool_of(&world)->wake_ns == slow_ns);
    pass_time(&world, 9 * SECOND_NS / 10);
    assert_int_equal(slow[1].dispatched, 1);
    assert_true(pool_of(&world)->wake_ns == SCHED_NEVER_NS);
    for (unsigned i = 0; i < 2; i++) {
        finish(&slow[i], OUTCOME_ANSWERED);
        finish(&quick[i], OUTCOME_ANSWERED);
    }
    settle_all(&world);
    close_at_rest(&world);
}

/* What waits for a slot needs no timer, what is cancelled leaves at most one wake-up behind. */
static void only_time_is_waited_for_with_a_timer(void **state)
{
    struct world world = limited_world("leaky-bucket", "limit: 1/s, burst: 3");
    struct request requests[6];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 4), 4);
    submit(&requests[4], &world, "a");
    submit(&requests[5], &world, "rest");
    settle_all(&world);
    assert_true(pool_of(&world)->wake_ns == SCHED_NEVER_NS);
    finish(&requests[0], OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(requests[5].dispatched, 1);
    finish(&requests[1], OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(requests[4].dispatched, 0);
    assert_true(pool_of(&world)->wake_ns == world.clock_ns + SECOND_NS);
    assert_true(gate_cancel(&requests[4].exchange));
    settle_all(&world);
    pass_time(&world, SECOND_NS + LATE_NS);
    assert_true(pool_of(&world)->wake_ns == SCHED_NEVER_NS);
    finish_all(requests, 6, &world);
    close_at_rest(&world);
}

/* Depth in cost: the large one does not fit, and the small one behind it waits with it, until it
 * has waited too long. */
static void a_head_that_times_out_makes_way(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    depth-unit: cost\n"
                                    "    queue: { timeout: 2s }\n"
                                    "    servers: [{ address: '127.0.0.1:1', depth: 4 }]\n");
    static const uint64_t costs[] = {2, 4, 2};
    struct request requests[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        request_init(&requests[i], &world, 0, "default", NULL);
        requests[i].exchange.cost = costs[i];
        gate_submit(&requests[i].exchange);
        settle_all(&world);
        pass_time(&world, SECOND_NS / 2);
    }
    assert_int_equal(count_dispatched(requests, 3), 1);
    pass_time(&world, SECOND_NS + LATE_NS);
    assert_int_equal(requests[1].refused, 1);
    assert_int_equal(requests[1].refusal, REFUSAL_TIMEOUT);
    assert_int_equal(requests[2].dispatched, 1);
    finish_all(requests, 3, &world);
    close_at_rest(&world);
}

static void refused_at_the_limit_and_counted(void **state)
{
    struct world world =
        limited_world("{ algorithm: mclock, at-limit: refuse }", "limit: 10/s, burst: 2");
    struct flow_class *a = pool_find_class(pool_of(&world), "a");
    struct request requests[8];

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(requests[i].dispatched, i < 3);
        assert_int_equal(requests[i].refused, i >= 3);
        if (i >= 3)
            assert_int_equal(requests[i].refusal, REFUSAL_AT_LIMIT);
    }
    assert_int_equal(a->meters.at_limit, 2);
    assert_int_equal(a->meters.refused, 0);
    assert_int_equal(view_of(&world).meters.at_limit, 2);
    pass_time(&world, 100 * MILLISECOND_NS);
    for (unsigned i = 5; i < 8; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    assert_int_equal(a->meters.at_limit, 4);
    finish_all(requests, 8, &world);
    close_at_rest(&world);
}

/* A held request takes no server's turn, however often it is looked at. */
static void round_robin_goes_on_where_it_was(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    scheduler: leaky-bucket\n"
                                    "    balance: round-robin\n"
                                    "    servers: ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3']\n"
                                    "    flows: [{ name: a, match: { path: /a }, limit: 1/s },\n"
                                    "            { name: rest }]\n");
    static const char *const turns[] = {"127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:1"};
    struct request held[2], requests[3];

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        submit(&held[i], &world, "a");
    settle_all(&world);
    assert_string_equal(held[0].exchange.server->name, "127.0.0.1:1");
    for (unsigned i = 0; i < 3; i++) {
        gate_kick(pool_of(&world));
        settle_all(&world);
        submit(&requests[i], &world, "rest");
        settle_all(&world);
        assert_string_equal(requests[i].exchange.server->name, turns[i]);
    }
    assert_true(gate_cancel(&held[1].exchange));
    finish(&held[0], OUTCOME_ANSWERED);
    finish_all(requests, 3, &world);
    settle_all(&world);
    close_at_rest(&world);
}

/* Where another lane has the pool's total, time alone lets nothing go, and no timer is set. */
static void no_wake_up_while_the_pool_is_full(void **state)
{
    struct world world =
        world_open("workers: 1\n"
                   "listeners: [{ name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: array }]\n"
                   "pools:\n"
                   "  - name: array\n"
                   "    depth: 1\n"
                   "    scheduler: leaky-bucket\n"
                   "    servers: ['127.0.0.1:1', '127.0.0.1:2']\n"
                   "    flows: [{ name: a, match: { uid: 1 }, limit: 10/s }, { name: rest }]\n");
    struct lane *second = TAILQ_NEXT(TAILQ_FIRST(&pool_of(&world)->lanes), link);
    struct request a[2], rest;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        request_init(&a[i], &world, 0, "a", NULL);
        a[i].exchange.lane = second;
    }
    gate_submit(&a[0].exchange);
    settle_all(&world);
    finish(&a[0], OUTCOME_ANSWERED);
    submit(&rest, &world, "rest");
    settle_all(&world);
    gate_submit(&a[1].exchange);
    settle_all(&world);
    assert_int_equal(rest.dispatched, 1);
    assert_true(pool_of(&world)->wake_ns == SCHED_NEVER_NS);
    finish(&rest, OUTCOME_ANSWERED);
    settle_all(&world);
    assert_true(pool_of(&world)->wake_ns == world.clock_ns + SECOND_NS / 10);
    pass_time(&world, SECOND_NS / 10 + LATE_NS);
    assert_int_equal(a[1].dispatched, 1);
    finish(&a[1], OUTCOME_ANSWERED);
    settle_all(&world);
    close_at_rest(&world);
}

/* Nobody can serve it: it is refused now, not when its limit would have let it go. */
static void held_requests_are_refused_when_no_server_is_left(void **state)
{
    static const char *const schedulers[] = {"leaky-bucket", "mclock", "rw", "sfqd"};
    struct request requests[9];
    char why[128];

    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        struct world world = limited_world(schedulers[k], "limit: 1/s");
        for (unsigned i = 0; i < 9; i++)
            submit(&requests[i], &world, "a");
        settle_all(&world);
        unsigned sent = count_dispatched(requests, 9);
        assert_in_range(sent, 1, 4);
        assert_int_equal(
            admin_set_server_state(world.runtime, "farm", "127.0.0.1:1", "drain", why, 128), 0);
        assert_int_equal(
            admin_set_server_state(world.runtime, "farm", "127.0.0.1:2", "drain", why, 128), 0);
        settle_all(&world);
        for (unsigned i = sent; i < 9; i++) {
            assert_int_equal(requests[i].refused, 1);
            assert_int_equal(requests[i].refusal, REFUSAL_NO_SERVER);
        }
        assert_int_equal(sched_algorithm_of(TAILQ_FIRST(&pool_of(&world)->lanes)->sched),
                         pool_of(&world)->algorithm);
        finish_all(requests, 9, &world);
        close_at_rest(&world);
    }
}

/* D = 4, weights 1:1: two slots each, also when the other one has never sent anything; a completion
 * frees one. */
static void windows_hold_back(void **state)
{
    struct world world = limited_world("rw", "weight: 1");
    struct request requests[6];
    char why[128];

    (void)state;
    for (unsigned i = 0; i < 6; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 2);
    finish(&requests[0], OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(requests[2].dispatched, 1);
    assert_int_equal(count_dispatched(requests, 6), 2);
    assert_int_equal(admin_set_algorithm(world.runtime, "farm", "hybrid", why, sizeof(why)), 0);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 2);
    assert_int_equal(admin_set_pool(world.runtime, "farm", "slack", "1", why, sizeof(why)), 0);
    assert_string_equal(why, "");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 3);
    finish_all(requests, 6, &world);
    close_at_rest(&world);
}

static void each_flow_has_its_own_queue_limit(void **state)
{
    struct world world = limited_world("sfqd", "queue-limit: 3");
    struct request requests[20];
    char why[128];
    unsigned refused = 0;

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(requests[i].refused, i >= 7);
        if (requests[i].refused)
            assert_int_equal(requests[i].refusal, REFUSAL_FLOW_FULL);
    }
    assert_int_equal(admin_set_flow(world.runtime, "farm", "a", "queue-limit", "5", why, 128), 0);
    for (unsigned i = 10; i < 16; i++)
        submit(&requests[i], &world, "a");
    for (unsigned i = 16; i < 20; i++)
        submit(&requests[i], &world, "rest");
    settle_all(&world);
    for (unsigned i = 10; i < 20; i++)
        refused += requests[i].refused;
    assert_int_equal(refused, 4);
    finish_all(requests, 20, &world);
    close_at_rest(&world);
}

/* Loops read their clocks at different moments: a pool's time does not go back, and no time that is
 * measured between two clocks is less than none. */
static void clocks_of_loops_may_differ(void **state)
{
    struct world world = limited_world("leaky-bucket", "limit: 100/s");
    struct loop *behind = &world.runtime->workers[1].loop;
    struct flow_meters *meters = &pool_find_class(pool_of(&world), "rest")->meters;
    struct request first, second;

    (void)state;
    pass_time(&world, SECOND_NS);
    behind->now_ns -= 10 * MILLISECOND_NS;
    request_init(&first, &world, 0, "rest", NULL);
    gate_submit(&first.exchange);
    settle(&world, 0);
    request_init(&second, &world, 1, "rest", NULL);
    gate_submit(&second.exchange);
    loop_wind_up(behind);
    assert_int_equal(second.dispatched, 1);
    assert_true(second.exchange.dispatched_ns == first.exchange.dispatched_ns);
    finish(&second, OUTCOME_ANSWERED);
    assert_true(exchange_wait_ns(&second.exchange, behind->now_ns) == 0);
    assert_true(exchange_service_ns(&second.exchange, behind->now_ns) == 0);
    loop_wind_up(behind);
    finish(&first, OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(meters->service.count, 2);
    assert_true(meters->service.sum_ns == 0);
    assert_true(meters->wait.sum_ns == 0);
    close_at_rest(&world);
}

/* ------------------------------------------------------------------ changes while running */

#define WINDOWS(flows)                                                                             \
    "workers: 1\n" LISTENER "pools:\n"                                                             \
    "  - name: farm\n"                                                                             \
    "    scheduler: rw\n"                                                                          \
    "    servers: [{ address: '127.0.0.1:1', depth: 12 }]\n"                                       \
    "    flows: [{ name: a, match: { path: /a } }, " flows "{ name: rest }]\n"

static void reload_pool(struct world *world, const char *text)
{
    struct config *config = load_config(text);

    pool_configure(pool_of(world), &config->pools[0], &world->runtime->server_count);
    settle_all(world);
    config_free(config);
}

/* What is declared has its window from the reload on, and what is not any more gives it back: at
 * once, or with its last request. */
static void windows_follow_the_declared_flows(void **state)
{
    struct world world = world_open(WINDOWS(""));
    struct request requests[20];
    struct request other[2];

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 20), 6);
    reload_pool(&world, WINDOWS("{ name: c, match: { path: /c } },"));
    for (unsigned i = 0; i < 2; i++)
        finish(oldest_dispatched(requests, 20), OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 20), 4);
    reload_pool(&world, WINDOWS(""));
    assert_int_equal(count_dispatched(requests, 20), 6);
    reload_pool(&world, WINDOWS("{ name: c, match: { path: /c } },"));
    for (unsigned i = 0; i < 2; i++)
        submit(&other[i], &world, "c");
    settle_all(&world);
    reload_pool(&world, WINDOWS(""));
    for (unsigned i = 0; i < 3; i++)
        finish(oldest_dispatched(requests, 20), OUTCOME_ANSWERED);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 20), 4);
    for (unsigned i = 0; i < 2; i++) {
        finish(&other[i], OUTCOME_ANSWERED);
        settle_all(&world);
        assert_int_equal(count_dispatched(requests, 20), i == 0 ? 4 : 6);
    }
    finish_all(requests, 20, &world);
    close_at_rest(&world);
}

/* A flow that gets keys, and one that loses them, keeps what it has and no window besides. */
static void keys_come_and_go_with_reloads(void **state)
{
    struct world world = world_open(WINDOWS("{ name: c, match: { path: /c } },"));
    struct lane *lane = TAILQ_FIRST(&pool_of(&world)->lanes);
    struct request keyed, plain;

    (void)state;
    assert_int_equal(sched_flows(lane->sched), 3);
    submit(&plain, &world, "c");
    settle_all(&world);
    reload_pool(&world, WINDOWS("{ name: c, match: { path: /c }, by: client-address },"));
    assert_int_equal(sched_flows(lane->sched), 3);
    request_init(&keyed, &world, 0, "c", "key");
    gate_submit(&keyed.exchange);
    settle_all(&world);
    assert_int_equal(sched_flows(lane->sched), 4);
    finish(&plain, OUTCOME_ANSWERED);
    finish(&keyed, OUTCOME_ANSWERED);
    for (unsigned i = 0; i < 20; i++) {
        gate_kick(pool_of(&world));
        settle_all(&world);
    }
    reload_pool(&world, WINDOWS("{ name: c, match: { path: /c } },"));
    assert_int_equal(sched_flows(lane->sched), 3);
    submit(&plain, &world, "c");
    settle_all(&world);
    finish(&plain, OUTCOME_ANSWERED);
    settle_all(&world);
    close_at_rest(&world);
}

/* Servers that name no depth follow the pool's; one that was given its own does not. */
static void a_changed_total_is_shared_out(void **state)
{
    struct world world = world_open("workers: 1\n" LISTENER "pools:\n"
                                    "  - name: farm\n"
                                    "    depth: 4\n"
                                    "    servers: ['127.0.0.1:1', '127.0.0.1:2',\n"
                                    "              { address: '127.0.0.1:3', depth: 1 }]\n");
    struct request requests[20];
    char why[128];
    static const struct {
        const char *server;
        uint64_t depth;
        unsigned dispatched;
    } steps[] = {{NULL, 9, 7}, {"127.0.0.1:1", 5, 9}, {NULL, 12, 10}, {NULL, 0, 20}};

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        submit(&requests[i], &world, "default");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 20), 4);
    for (unsigned i = 0; i < 4; i++) {
        if (steps[i].server == NULL)
            assert_int_equal(
                admin_set_pool_depth(world.runtime, "farm", steps[i].depth, why, sizeof(why)), 0);
        else
            assert_int_equal(admin_set_server_depth(world.runtime, "farm", steps[i].server,
                                                    steps[i].depth, why, sizeof(why)),
                             0);
        settle_all(&world);
        assert_int_equal(count_dispatched(requests, 20), steps[i].dispatched);
    }
    finish_all(requests, 20, &world);
    close_at_rest(&world);
}

/* A raised limit lets go what it held, at once; a reload sets what the file says. */
static void a_changed_limit_counts_for_what_waits(void **state)
{
    struct world world = limited_world("leaky-bucket", "limit: 1/s");
    struct request requests[4];
    char why[256];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        submit(&requests[i], &world, "a");
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 4), 1);
    assert_int_equal(admin_set_flow(world.runtime, "farm", "a", "limit", "none", why, 256), 0);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 4), 4);
    assert_string_equal(why, "");
    finish_all(requests, 4, &world);
    close_at_rest(&world);
}

/* Instances made by key share what their class was promised, each for itself. */
static void keyed_instances_have_the_terms_of_their_class(void **state)
{
    struct world world =
        world_open("workers: 1\n" LISTENER "pools:\n"
                   "  - name: farm\n"
                   "    scheduler: leaky-bucket\n"
                   "    servers: [{ address: '127.0.0.1:1', depth: 20 }]\n"
                   "    flows: [{ name: users, limit: 1/s, by: client-address }]\n");
    struct request requests[6];
    char why[256];

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        request_init(&requests[i], &world, 0, "users", i % 2 ? "odd" : "even");
        gate_submit(&requests[i].exchange);
    }
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 2);
    assert_int_equal(admin_set_flow(world.runtime, "farm", "users", "limit", "2/s", why, 256), 0);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 4);
    assert_int_equal(admin_set_flow(world.runtime, "farm", "users", "limit", "none", why, 256), 0);
    settle_all(&world);
    assert_int_equal(count_dispatched(requests, 6), 6);
    finish_all(requests, 6, &world);
    for (unsigned i = 0; i < 20; i++) {
        pass_time(&world, SECOND_NS);
        gate_kick(pool_of(&world));
        settle_all(&world);
    }
    assert_int_equal(pool_find_class(pool_of(&world), "users")->instances, 0);
    close_at_rest(&world);
}

static void wrong_settings_change_nothing(void **state)
{
    struct world world =
        limited_world("{ algorithm: mclock, capacity: 100/s }", "reservation: 10/s, limit: 20/s");
    struct flow_class *a = pool_find_class(pool_of(&world), "a");
    struct runtime *runtime = world.runtime;
    char why[256] = "";

    (void)state;
    assert_int_equal(admin_set_flow(runtime, "farm", "a", "limit", "9/s", why, 256), -EINVAL);
    assert_string_equal(why, "the limit would be below the reservation");
    assert_int_equal(admin_set_flow(runtime, "farm", "a", "reservation", "21/s", why, 256),
                     -EINVAL);
    assert_int_equal(admin_set_flow(runtime, "farm", "rest", "reservation", "91/s", why, 256),
                     -EINVAL);
    assert_string_equal(why, "the flows' reservations would add up to more than the capacity");
    assert_int_equal(admin_set_flow(runtime, "farm", "rest", "reservation", "90/s", why, 256), 0);
    assert_int_equal(admin_set_pool(runtime, "farm", "capacity", "99/s", why, 256), -EINVAL);
    assert_int_equal(admin_set_pool(runtime, "farm", "capacity", "fast", why, 256), -EINVAL);
    assert_int_equal(admin_set_flow(runtime, "farm", "b", "limit", "9/s", why, 256), -ENOENT);
    assert_non_null(strstr(why, "there are: a rest"));
    assert_int_equal(pool_class_terms(a)->limit_per_s, 20);
    assert_int_equal(pool_class_terms(a)->reservation_per_s, 10);
    assert_int_equal(pool_of(&world)->options.capacity_per_s, 100);
    assert_int_equal(admin_set_flow(runtime, "farm", "a", "target", "9ms", why, 256), 0);
    assert_string_equal(why, "target has no effect under algorithm mclock; it is for edf");
    assert_int_equal(pool_class_terms(a)->target_ns, 9 * MILLISECOND_NS);
    world_close(&world);
}

/* Under every algorithm, and through changes from each to the next, with requests waiting: all are
 * served once, and those of a flow in their order. */
static void no_change_of_algorithm_loses_or_reorders(void **state)
{
    enum { EACH = 40, ALL = 3 * EACH };
    static const char *const classes[] = {"a", "rest"};
    static struct request requests[ALL];
    struct world world = limited_world("sfqd", "limit: 100000/s, weight: 3");
    char why[128];

    (void)state;
    for (int i = 0; i < SCHED_ALGORITHMS * SCHED_ALGORITHMS; i++) {
        unsigned latest[2] = {0, 0};
        unsigned switches[] = {(unsigned)i / SCHED_ALGORITHMS, (unsigned)i % SCHED_ALGORITHMS};
        dispatch_count = 0;
        for (unsigned r = 0; r < ALL; r++) {
            struct request *request;
            if (r % EACH == 0 && r / EACH < 2) {
                const char *name = sched_algorithm_name((enum sched_algorithm)switches[r / EACH]);
                assert_int_equal(admin_set_algorithm(world.runtime, "farm", name, why, 128), 0);
            }
            submit(&requests[r], &world, classes[r % 3 == 0]);
            if (r % 5 == 0)
                settle_all(&world);
            if (r % 2 == 0 && (request = oldest_dispatched(requests, r)) != NULL)
                finish(request, OUTCOME_ANSWERED);
        }
        for (unsigned k = 0; k < ALL; k++) {
            finish_all(requests, ALL, &world);
            pass_time(&world, MILLISECOND_NS);
        }
        for (unsigned r = 0; r < ALL; r++) {
            assert_int_equal(requests[r].released, 1);
            assert_true(requests[r].order > latest[r % 3 == 0]);
            latest[r % 3 == 0] = requests[r].order;
        }
        assert_pool_at_rest(pool_of(&world));
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_requests_go_when_they_are_due),
        cmocka_unit_test(lateness_is_made_up_for),
        cmocka_unit_test(a_wake_up_moves_forward_with_an_earlier_request),
        cmocka_unit_test(only_time_is_waited_for_with_a_timer),
        cmocka_unit_test(a_head_that_times_out_makes_way),
        cmocka_unit_test(refused_at_the_limit_and_counted),
        cmocka_unit_test(round_robin_goes_on_where_it_was),
        cmocka_unit_test(no_wake_up_while_the_pool_is_full),
        cmocka_unit_test(held_requests_are_refused_when_no_server_is_left),
        cmocka_unit_test(windows_hold_back),
        cmocka_unit_test(each_flow_has_its_own_queue_limit),
        cmocka_unit_test(clocks_of_loops_may_differ),
        cmocka_unit_test(windows_follow_the_declared_flows),
        cmocka_unit_test(keys_come_and_go_with_reloads),
        cmocka_unit_test(a_changed_total_is_shared_out),
        cmocka_unit_test(a_changed_limit_counts_for_what_waits),
        cmocka_unit_test(keyed_instances_have_the_terms_of_their_class),
        cmocka_unit_test(wrong_settings_change_nothing),
        cmocka_unit_test(no_change_of_algorithm_loses_or_reorders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
