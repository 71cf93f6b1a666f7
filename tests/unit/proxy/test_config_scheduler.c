/* SPDX-License-Identifier: Apache-2.0 */
/* A pool's algorithm, its options, what flows are promised, and the depths that go with them: what
 * the file becomes, and what is said about it. */
#include <errno.h>

#include "tests/unit/proxy/config_findings.h"

#define FOUR                                                                                       \
    "pools:\n- name: farm\n  servers: ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', "              \
    "'10.0.0.4:80']\n"

/* ------------------------------------------------------------------ what becomes of it */

static void every_algorithm_is_chosen_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < SCHED_ALGORITHMS; i++) {
        const char *name = sched_algorithm_name((enum sched_algorithm)i);
        char text[512];
        char *printed;

        snprintf(text, sizeof(text), HTTP POOL "  scheduler: { algorithm: %s }\n", name);
        struct config *config = load_and_print(text, &printed);
        assert_non_null(config);
        assert_int_equal(config->pools[0].algorithm, i);
        config_free(config);
        free(printed);
    }
}

static void options_and_terms_are_taken_over(void **state)
{
    struct config *config =
        load(HTTP POOL "  scheduler: { algorithm: mclock, capacity: 5000/s, at-limit: refuse }\n"
                       "  flows:\n"
                       "  - { name: a, reservation: 100/s, limit: 5000/s, queue-limit: 7,\n"
                       "      match: { path: /a } }\n"
                       "  - { name: b, limit: 30/s, burst: 4 }\n");
    const struct config_pool *pool = &config->pools[0];
    const struct config_flow *a = &pool->flows[0], *b = &pool->flows[1];

    (void)state;
    assert_int_equal(pool->options.capacity_per_s, 5000);
    assert_true(pool->options.refuse_at_limit);
    assert_int_equal(a->terms.reservation_per_s, 100);
    assert_int_equal(a->terms.limit_per_s, 5000);
    assert_true(a->burst_is_auto);
    assert_int_equal(a->terms.burst, 50);
    assert_int_equal(a->terms.target_ns, 0);
    assert_int_equal(a->queue_limit, 7);
    assert_int_equal(b->terms.reservation_per_s, 0);
    assert_int_equal(b->terms.limit_per_s, 30);
    assert_false(b->burst_is_auto);
    assert_int_equal(b->terms.burst, 4);
    assert_int_equal(b->queue_limit, 0);
    config_free(config);
    config = load(HTTP POOL "  scheduler: { algorithm: hybrid, slack: 2 }\n");
    assert_int_equal(config->pools[0].options.slack, 2);
    assert_int_equal(config->pools[0].options.capacity_per_s, 0);
    assert_int_equal(config->pools[0].options.ageing_ns, 1000000);
    assert_false(config->pools[0].options.refuse_at_limit);
    config_free(config);
    config = load(HTTP POOL "  scheduler: { algorithm: scf, ageing: 250us }\n");
    assert_int_equal(config->pools[0].options.ageing_ns, 250000);
    config_free(config);
    config = load(HTTP POOL "  scheduler: edf\n  flows: [{ name: a, target: 10ms }]\n");
    assert_int_equal(config->pools[0].flows[0].terms.target_ns, 10000000);
    config_free(config);
}

static void a_server_gets_its_part_of_the_total(void **state)
{
    static const struct {
        const char *pool;
        uint32_t depths[4];
    } rows[] = {
        {FOUR, {16, 16, 16, 16}},
        {FOUR "  depth: 8\n", {2, 2, 2, 2}},
        {FOUR "  depth: 9\n", {3, 3, 3, 3}},
        {FOUR "  depth: 3\n", {1, 1, 1, 1}},
        {"pools:\n- name: farm\n  depth: 8\n  servers: ['10.0.0.1:80', '10.0.0.2:80', "
         "'10.0.0.3:80', { address: '10.0.0.4:80', depth: 5 }]\n",
         {2, 2, 2, 5}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512];

        snprintf(text, sizeof(text), HTTP "%s", rows[i].pool);
        struct config *config = load(text);
        for (size_t j = 0; j < 4; j++) {
            assert_int_equal(config->pools[0].servers[j].depth, rows[i].depths[j]);
        }
        config_free(config);
    }
}

/* ------------------------------------------------------------------ what is said */

static void response_targets_have_a_range(void **state)
{
    static const struct {
        const char *flow;
        uint32_t low, high;
    } rows[] = {
        {"weight: 16, response-target: 40ms", 2, 128},
        {"weight: 3, response-target: 40ms", 1, 24},
        {"weight: 500000, response-target: 40ms", 62500, 1000000},
        {"weight: 16, response-target: 40ms, weight-range: 16..16", 16, 16},
        {"weight: 16, response-target: 40ms, weight-range: 1..1000000", 1, 1000000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512];

        snprintf(text, sizeof(text),
                 HTTP POOL "  scheduler: { feedback: { period: 2s } }\n"
                           "  flows: [{ name: a, %s }]\n",
                 rows[i].flow);
        struct config *config = load(text);
        const struct config_flow *flow = &config->pools[0].flows[0];
        assert_true(config->pools[0].feedback_period_ns == 2000000000);
        assert_int_equal(flow->response_target_ns, 40000000);
        assert_int_equal(flow->weight_min, rows[i].low);
        assert_int_equal(flow->weight_max, rows[i].high);
        config_free(config);
    }
}

static void ranges_that_are_wrong(void **state)
{
    static const struct {
        const char *range, *wrong;
    } rows[] = {
        {"5", "is not two numbers with .. between them"},
        {"0..4", "is out of range"},
        {"4..1000001", "is out of range"},
        {"4..", "is empty"},
        {"..4", "is empty"},
        {"a..4", "is not a whole number"},
        {"4..5..6", "is not a whole number"},
        {"5..4", "ends before it begins"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512], findings[512];

        snprintf(text, sizeof(text),
                 HTTP POOL "  flows: [{ name: a, response-target: 1s, weight-range: %s }]\n",
                 rows[i].range);
        snprintf(findings, sizeof(findings),
                 "f:5:57: pools[0].flows[0].weight-range: `%s` %s; expected a range such as 1..64 "
                 "from 1 to 1000000, or auto\n",
                 rows[i].range, rows[i].wrong);
        expect(text, findings, false);
    }
    expect(HTTP POOL "  flows: [{ name: a, weight: 5, response-target: 1s, weight-range: 6..9 }]\n",
           "f:5:68: pools[0].flows[0].weight-range: leaves out the weight; expected a range with 5 "
           "in it\n",
           false);
    expect(HTTP POOL "  scheduler: fifo\n  flows: [{ name: a, response-target: 1s }]\n",
           "f:6:39: warning: pools[0].flows[0].response-target: has no effect with algorithm fifo; "
           "it is for those that go by weight\n",
           true);
    expect(HTTP POOL "  scheduler: { feedback: { period: 2s } }\n"
                     "  flows: [{ name: a, weight-range: 1..2 }]\n",
           "f:5:26: warning: pools[0].scheduler.feedback: has no effect, since no flow has a "
           "response-target\n"
           "f:6:36: warning: pools[0].flows[0].weight-range: has no effect without "
           "`response-target`\n",
           true);
}

static void values_that_are_wrong(void **state)
{
    (void)state;
    expect(HTTP POOL "  scheduler: { algorithm: wfq, capacity: 100 }\n",
           "f:5:42: pools[0].scheduler.capacity: `100` is not a number with /s behind it; expected "
           "a rate such as 100/s from 1/s to 1099511627775/s or unknown\n",
           false);
    expect(HTTP POOL "  scheduler: { algorithm: wfq, capacity: 0/s }\n",
           "f:5:42: pools[0].scheduler.capacity: `0/s` is out of range; expected a rate such as "
           "100/s from 1/s to 1099511627775/s or unknown\n",
           false);
    expect(HTTP POOL "  scheduler: { algorithm: mclock, at-limit: drop }\n"
                     "  flows: [{ name: a, limit: 1/s }]\n",
           "f:5:45: pools[0].scheduler.at-limit: `drop` is unknown; expected one of: wait, "
           "refuse\n",
           false);
    expect(HTTP POOL "  scheduler: mclock\n"
                     "  flows: [{ name: a, reservation: 20/s, limit: 19/s }]\n",
           "f:6:48: pools[0].flows[0].limit: is below the reservation; expected at least 20/s\n",
           false);
    expect(HTTP POOL "  scheduler: { algorithm: mclock, capacity: 100/s }\n"
                     "  flows: [{ name: a, reservation: 60/s, match: { path: /a } },\n"
                     "          { name: b, reservation: 41/s }]\n",
           "f:5:45: pools[0].scheduler.capacity: is below the sum of the flows' reservations; "
           "expected at least 101/s, or smaller reservations\n",
           false);
}

static void what_the_algorithm_does_not_read(void **state)
{
    (void)state;
    expect(HTTP POOL "  scheduler: { algorithm: sfqd, slack: 2 }\n",
           "f:5:40: warning: pools[0].scheduler.slack: has no effect with algorithm sfqd; it is "
           "for hybrid\n",
           true);
    expect(HTTP POOL "  scheduler: { capacity: 9/s, ageing: 1s, at-limit: wait }\n",
           "f:5:26: warning: pools[0].scheduler.capacity: has no effect with algorithm sfqd; it is "
           "for wfq and mclock\n"
           "f:5:39: warning: pools[0].scheduler.ageing: has no effect with algorithm sfqd; it is "
           "for scf\n"
           "f:5:53: warning: pools[0].scheduler.at-limit: has no effect with algorithm sfqd; it is "
           "for mclock\n",
           true);
    expect(HTTP POOL "  flows: [{ name: a, target: 1s, reservation: 1/s, limit: 2/s, burst: 1 }]\n",
           "f:5:30: warning: pools[0].flows[0].target: has no effect with algorithm sfqd; it is "
           "for edf\n"
           "f:5:47: warning: pools[0].flows[0].reservation: has no effect with algorithm sfqd; it "
           "is for mclock\n"
           "f:5:59: warning: pools[0].flows[0].limit: has no effect with algorithm sfqd; it is for "
           "mclock and leaky-bucket\n"
           "f:5:71: warning: pools[0].flows[0].burst: has no effect with algorithm sfqd; it is for "
           "mclock and leaky-bucket\n",
           true);
    expect(HTTP POOL "  scheduler: mclock\n  flows: [{ name: a, reservation: 1/s, burst: 3 }]\n",
           "f:6:47: warning: pools[0].flows[0].burst: has no effect without `limit`\n", true);
}

static void algorithms_that_have_nothing_to_go_by(void **state)
{
    (void)state;
    expect(HTTP POOL "  scheduler: edf\n",
           "f:5:14: warning: pools[0].scheduler.algorithm: no flow has a target, so that requests "
           "go by arrival\n",
           true);
    expect(HTTP POOL "  scheduler: leaky-bucket\n",
           "f:5:14: warning: pools[0].scheduler.algorithm: no flow has a limit, so that requests "
           "go by arrival\n",
           true);
    expect(HTTP POOL "  scheduler: mclock\n",
           "f:5:14: warning: pools[0].scheduler.algorithm: no flow has a reservation or a limit, "
           "so that requests go as in sfqd\n",
           true);
}

/* D = 16 by default; the implicit flow has a weight too. */
static void windows_below_a_request(void **state)
{
    (void)state;
    expect(HTTP POOL "  scheduler: rw\n"
                     "  flows: [{ name: a, weight: 15, match: { path: /a } }]\n",
           "", true);
    expect(HTTP POOL "  scheduler: rw\n"
                     "  flows: [{ name: a, match: { path: /a } }, { name: b, weight: 19 }]\n",
           "f:6:11: warning: pools[0].flows[0]: the window of flow `a` is 0.80, less than the cost "
           "1 of a request; raise the depth, or its weight, to keep shares\n",
           true);
    expect(HTTP POOL "  scheduler: { algorithm: hybrid, slack: 1 }\n"
                     "  flows: [{ name: a, match: { path: /a } }, { name: b, weight: 19 }]\n",
           "", true);
    expect(HTTP POOL "  depth-unit: cost\n"
                     "  cost: { by: table, table: { GET: 3, PUT: 9 } }\n"
                     "  scheduler: rw\n"
                     "  flows: [{ name: a, match: { path: /a } }, { name: b, weight: 2 }]\n",
           "f:8:11: warning: pools[0].flows[0]: the window of flow `a` is 5.33, less than the cost "
           "9 of a request; raise the depth, or its weight, to keep shares\n",
           true);
    /* Each NFS server shares out its own depth; the smallest counts. */
    expect(NFS "pools:\n- name: farm\n  scheduler: rw\n"
               "  servers: ['10.0.0.1:80', { address: '10.0.0.2:80', depth: 3 }]\n"
               "  flows: [{ name: a, match: { uid: 1 } }, { name: b, weight: 3 }]\n",
           "f:6:11: warning: pools[0].flows[0]: the window of flow `a` is 0.75, less than the cost "
           "1 of a request; raise the depth, or its weight, to keep shares\n",
           true);
}

static void a_server_that_may_hold_the_whole_depth(void **state)
{
    (void)state;
    expect(HTTP "pools:\n- name: farm\n  depth: 8\n"
                "  servers: ['10.0.0.1:80', { address: '10.0.0.2:80', depth: 8 }]\n",
           "f:5:61: warning: pools[0].servers[1].depth: lets this server alone hold the pool's "
           "whole depth of 8 when it is slow; expected less, or none here for 4\n",
           true);
    expect(HTTP "pools:\n- name: farm\n  depth: 8\n"
                "  servers: [{ address: '10.0.0.2:80', depth: 9 }]\n",
           "", true);
}

/* ------------------------------------------------------------------ while running */

static void flow_settings_read_as_in_the_file(void **state)
{
    struct config_flow flow = {.burst_is_auto = true};
    char why[256] = "";

    (void)state;
    assert_int_equal(config_set_flow(&flow, "limit", "500/s", why, sizeof(why)), 0);
    assert_int_equal(flow.terms.limit_per_s, 500);
    assert_int_equal(flow.terms.burst, 5);
    assert_int_equal(config_set_flow(&flow, "burst", "9", why, sizeof(why)), 0);
    assert_int_equal(config_set_flow(&flow, "limit", "900/s", why, sizeof(why)), 0);
    assert_int_equal(flow.terms.burst, 9);
    assert_int_equal(config_set_flow(&flow, "burst", "auto", why, sizeof(why)), 0);
    assert_int_equal(flow.terms.burst, 9);
    assert_true(flow.burst_is_auto);
    assert_int_equal(config_set_flow(&flow, "limit", "none", why, sizeof(why)), 0);
    assert_int_equal(flow.terms.limit_per_s, 0);
    assert_int_equal(config_set_flow(&flow, "target", "1.5ms", why, sizeof(why)), 0);
    assert_int_equal(flow.terms.target_ns, 1500000);
    assert_int_equal(config_set_flow(&flow, "reservation", "7/s", why, sizeof(why)), 0);
    assert_int_equal(flow.terms.reservation_per_s, 7);
    assert_int_equal(config_set_flow(&flow, "response-target", "9ms", why, sizeof(why)), 0);
    assert_int_equal(flow.response_target_ns, 9000000);
    assert_int_equal(config_set_flow(&flow, "queue-limit", "12", why, sizeof(why)), 0);
    assert_int_equal(flow.queue_limit, 12);
    assert_string_equal(why, "");
    assert_int_equal(config_set_flow(&flow, "name", "x", why, sizeof(why)), -ENOENT);
    assert_string_equal(why, "");
    assert_int_equal(config_set_flow(&flow, "limit", "many", why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "limit: `many` does not begin with a whole number; expected a rate "
                             "such as 100/s from 1/s to 1099511627775/s or none");
    assert_int_equal(config_set_flow(&flow, "queue-limit", "0", why, sizeof(why)), -EINVAL);
    assert_int_equal(flow.queue_limit, 12);
}

static void pool_settings_read_as_in_the_file(void **state)
{
    struct config_pool pool = {.algorithm = SCHED_ALGORITHM_HYBRID};
    char why[256] = "";

    (void)state;
    assert_int_equal(config_set_pool(&pool, "slack", "3", why, sizeof(why)), 0);
    assert_int_equal(config_set_pool(&pool, "capacity", "4/s", why, sizeof(why)), 0);
    assert_int_equal(config_set_pool(&pool, "ageing", "5us", why, sizeof(why)), 0);
    assert_int_equal(config_set_pool(&pool, "at-limit", "refuse", why, sizeof(why)), 0);
    assert_int_equal(pool.options.slack, 3);
    assert_int_equal(pool.options.capacity_per_s, 4);
    assert_int_equal(pool.options.ageing_ns, 5000);
    assert_true(pool.options.refuse_at_limit);
    assert_int_equal(pool.algorithm, SCHED_ALGORITHM_HYBRID);
    assert_int_equal(config_set_pool(&pool, "algorithm", "rw", why, sizeof(why)), -ENOENT);
    assert_int_equal(config_set_pool(&pool, "at-limit", "drop", why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "at-limit: `drop` is unknown; expected one of: wait, refuse");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_chosen_by_its_name),
        cmocka_unit_test(options_and_terms_are_taken_over),
        cmocka_unit_test(a_server_gets_its_part_of_the_total),
        cmocka_unit_test(response_targets_have_a_range),
        cmocka_unit_test(ranges_that_are_wrong),
        cmocka_unit_test(values_that_are_wrong),
        cmocka_unit_test(what_the_algorithm_does_not_read),
        cmocka_unit_test(algorithms_that_have_nothing_to_go_by),
        cmocka_unit_test(windows_below_a_request),
        cmocka_unit_test(a_server_that_may_hold_the_whole_depth),
        cmocka_unit_test(flow_settings_read_as_in_the_file),
        cmocka_unit_test(pool_settings_read_as_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
