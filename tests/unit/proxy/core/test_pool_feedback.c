/* SPDX-License-Identifier: Apache-2.0 */
/* Response targets in a pool: the loop's samples come from the meters, its weights reach the
 * schedulers, and reloads and commands find it as they should. In virtual time. */
#include "tests/unit/proxy/core/fixture.h"

#define SERVICE_NS (10 * MILLISECOND_NS)
#define CLIENTS    68 /* the first 8 are a's */

/* Four slots of 10 ms: 400 requests per second. */
#define POOL(target, algorithm)                                                                    \
    "workers: 1\n"                                                                                 \
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"                \
    "pools:\n"                                                                                     \
    "  - name: farm\n"                                                                             \
    "    scheduler: { algorithm: " algorithm ", feedback: { period: 1s } }\n"                      \
    "    queue: { timeout: off }\n"                                                                \
    "    servers: [{ address: '127.0.0.1:1', depth: 4 }]\n"                                        \
    "    flows: [{ name: a, weight: 16, match: { path: /a }, response-target: " target             \
    ", weight-range: 4..200 },\n"                                                                  \
    "            { name: b, weight: 16 }]\n"

struct farm {
    struct world world;
    struct request requests[CLIENTS];
};

static void submit_client(struct farm *farm, unsigned client)
{
    submit(&farm->requests[client], &farm->world, client < 8 ? "a" : "b");
}

static void farm_open(struct farm *farm, const char *text)
{
    farm->world = world_open(text);
    for (unsigned i = 0; i < CLIENTS; i++)
        submit_client(farm, i);
    settle_all(&farm->world);
}

/* Every client asks again as soon as it has its answer. */
static void run_for(struct farm *farm, unsigned seconds)
{
    for (uint64_t ns = 0; ns < seconds * SECOND_NS; ns += SERVICE_NS) {
        bool done[CLIENTS];
        set_clock(&farm->world, farm->world.clock_ns + SERVICE_NS);
        for (unsigned i = 0; i < CLIENTS; i++) {
            done[i] = farm->requests[i].dispatched > 0;
            if (done[i])
                finish(&farm->requests[i], OUTCOME_ANSWERED);
        }
        settle_all(&farm->world);
        for (unsigned i = 0; i < CLIENTS; i++) {
            if (done[i])
                submit_client(farm, i);
        }
        settle_all(&farm->world);
    }
}

static void farm_close(struct farm *farm)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (farm->requests[i].dispatched > 0)
            finish(&farm->requests[i], OUTCOME_ANSWERED);
        else
            assert_true(gate_cancel(&farm->requests[i].exchange));
    }
    settle_all(&farm->world);
    finish_all(farm->requests, CLIENTS, &farm->world);
    assert_pool_at_rest(pool_of(&farm->world));
    world_close(&farm->world);
}

static void keep_a(const struct flow_view *view, void *argument)
{
    if (strcmp(view->name, "a") == 0)
        *(struct flow_view *)argument = *view;
}

static struct flow_view view_a(const struct farm *farm)
{
    struct flow_view view;

    admin_each_flow(farm->world.runtime, keep_a, &view);
    return view;
}

static uint32_t weight_of_b(const struct farm *farm)
{
    return pool_find_class(pool_of(&farm->world), "b")->weight;
}

/* Half of 400/s for 8 clients is 40 ms each; 25 ms take 320/s, four times b's weight. */
static void the_weight_rises_until_the_target_is_met(void **state)
{
    static struct farm farm;

    (void)state;
    farm_open(&farm, POOL("25ms", "sfqd"));
    run_for(&farm, 4);
    assert_string_equal(view_a(&farm).feedback, "raising");
    assert_true(view_a(&farm).response_s > 0.035);
    run_for(&farm, 60);
    assert_string_equal(view_a(&farm).feedback, "met");
    assert_in_range(view_a(&farm).weight, 50, 110);
    assert_true(view_a(&farm).response_s <= 0.025);
    assert_int_equal(view_a(&farm).infeasible, 0);
    assert_int_equal(weight_of_b(&farm), 16);
    uint32_t weight = view_a(&farm).weight;
    run_for(&farm, 60);
    assert_int_equal(view_a(&farm).weight, weight);
    farm_close(&farm);
}

/* The scheduler works by the weight that the loop has set, not only the view. */
static void the_scheduler_has_the_weight(void **state)
{
    static struct farm farm;

    (void)state;
    farm_open(&farm, POOL("25ms", "sfqd"));
    run_for(&farm, 64);
    uint64_t before = pool_find_class(pool_of(&farm.world), "a")->meters.requests;
    run_for(&farm, 10);
    uint64_t served = pool_find_class(pool_of(&farm.world), "a")->meters.requests - before;
    assert_in_range(served, 3200, 3999);
    farm_close(&farm);
}

/* The service takes 10 ms alone. */
static void what_no_weight_reaches_is_infeasible(void **state)
{
    static struct farm farm;
    char why[256];

    (void)state;
    farm_open(&farm, POOL("5ms", "sfqd"));
    run_for(&farm, 30);
    assert_int_equal(view_a(&farm).infeasible, 1);
    assert_string_equal(view_a(&farm).feedback, "infeasible");
    assert_int_equal(
        admin_set_flow(farm.world.runtime, "farm", "a", "response-target", "1s", why, 256), 0);
    run_for(&farm, 5);
    assert_int_equal(view_a(&farm).infeasible, 0);
    assert_string_equal(view_a(&farm).feedback, "met");
    assert_int_equal(view_a(&farm).weight, 16);
    assert_int_equal(
        admin_set_flow(farm.world.runtime, "farm", "a", "response-target", "none", why, 256), 0);
    assert_string_equal(view_a(&farm).feedback, "no-target");
    run_for(&farm, 5);
    assert_int_equal(pool_of(&farm.world)->feedback.period_ns, 0);
    farm_close(&farm);
}

/* Nothing ends: what waits is measured by its wait. */
static void a_starved_flow_is_measured_by_its_wait(void **state)
{
    static struct farm farm;

    (void)state;
    farm_open(&farm, POOL("25ms", "sfqd"));
    for (unsigned i = 0; i < 6; i++)
        pass_time(&farm.world, SECOND_NS);
    assert_true(view_a(&farm).response_s > 1);
    assert_string_not_equal(view_a(&farm).feedback, "met");
    assert_string_not_equal(view_a(&farm).feedback, "unknown");
    farm_close(&farm);
}

static void a_reload_keeps_what_was_learnt_where_nothing_changed(void **state)
{
    static struct farm farm;
    char why[256];

    (void)state;
    farm_open(&farm, POOL("25ms", "sfqd"));
    run_for(&farm, 64);
    uint32_t learnt = view_a(&farm).weight;
    assert_true(learnt > 16);
    pool_configure(pool_of(&farm.world), &farm.world.runtime->plan->config->pools[0],
                   &farm.world.runtime->server_count);
    assert_int_equal(view_a(&farm).weight, learnt);
    assert_string_equal(view_a(&farm).feedback, "met");
    assert_int_equal(admin_set_weight(farm.world.runtime, "farm", "a", 201, why, 256), -EINVAL);
    assert_int_equal(view_a(&farm).weight, learnt);
    assert_int_equal(admin_set_weight(farm.world.runtime, "farm", "a", 30, why, 256), 0);
    assert_int_equal(view_a(&farm).weight, 30);
    assert_string_equal(view_a(&farm).feedback, "unknown");
    assert_int_equal(admin_set_weight(farm.world.runtime, "farm", "b", 500, why, 256), 0);
    assert_int_equal(weight_of_b(&farm), 500);
    run_for(&farm, 20);
    assert_true(view_a(&farm).weight > 30);
    assert_int_equal(weight_of_b(&farm), 500);
    farm_close(&farm);
}

static void without_targets_there_is_no_loop(void **state)
{
    static struct farm farm;
    char why[256];

    (void)state;
    farm_open(&farm, POOL("none", "fifo"));
    run_for(&farm, 5);
    assert_int_equal(pool_of(&farm.world)->feedback.period_ns, 0);
    assert_null(pool_of(&farm.world)->feedback.loop.flows);
    assert_int_equal(
        admin_set_flow(farm.world.runtime, "farm", "a", "response-target", "25ms", why, 256), 0);
    assert_non_null(strstr(why, "no effect under algorithm fifo"));
    assert_true(pool_of(&farm.world)->feedback.period_ns == SECOND_NS);
    assert_int_equal(admin_set_algorithm(farm.world.runtime, "farm", "sfqd", why, 256), 0);
    run_for(&farm, 64);
    assert_string_equal(view_a(&farm).feedback, "met");
    farm_close(&farm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weight_rises_until_the_target_is_met),
        cmocka_unit_test(the_scheduler_has_the_weight),
        cmocka_unit_test(what_no_weight_reaches_is_infeasible),
        cmocka_unit_test(a_starved_flow_is_measured_by_its_wait),
        cmocka_unit_test(a_reload_keeps_what_was_learnt_where_nothing_changed),
        cmocka_unit_test(without_targets_there_is_no_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
