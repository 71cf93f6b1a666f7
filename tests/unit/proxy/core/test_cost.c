/* SPDX-License-Identifier: Apache-2.0 */
/* Costs: estimates, what a header or the clock says in the end, running means, and that shares
 * follow the truth and not the estimate. */
#include "tests/unit/proxy/core/fixture.h"

#include <stdlib.h>
#include <time.h>

#define COSTS(cost)                                                                                \
    "workers: 1\n"                                                                                 \
    "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"                \
    "pools: [{ name: farm, servers: [{ address: '127.0.0.1:1', depth: 8 }], cost: " cost ",\n"     \
    "  flows: [{ name: small, weight: 1, match: { path: /s } }, { name: large, weight: 3 }] }]\n"

#define GET "GET / HTTP/1.1\r\nHost: h\r\n"

/* ------------------------------------------------------------------ header fields */

struct parsed {
    struct http1_field fields[16];
    struct http1_head head;
};

static void parse_request(struct parsed *parsed, const char *text)
{
    struct http1_scan scan = {0};

    http1_head_init(&parsed->head, parsed->fields, 16);
    assert_int_equal(
        http1_parse_request_head(text, strlen(text), &scan, &http1_default_limits, &parsed->head),
        HTTP1_OK);
}

static void parse_reply(struct parsed *parsed, const char *text)
{
    struct http1_scan scan = {0};

    http1_head_init(&parsed->head, parsed->fields, 16);
    assert_int_equal(http1_parse_reply_head(text, strlen(text), &scan, &http1_default_limits,
                                            HTTP1_METHOD_GET, &parsed->head),
                     HTTP1_OK);
}

static void a_field_is_a_whole_number_or_nothing(void **state)
{
    static const struct {
        const char *fields;
        uint32_t cost;
    } rows[] = {
        {"X-Cost: 7\r\n", 7},
        {"x-cOST:   7  \r\n", 7},
        {"X-Cost: 0007\r\n", 7},
        {"X-Cost: 999\r\n", 999},
        {"X-Cost: 1000\r\n", 1000},
        {"X-Cost: 1001\r\n", 1000},
        {"X-Cost: 18446744073709551616\r\n", 1000},
        {"X-Cost: 18446744073709551617000000000000000000000000001\r\n", 1000},
        {"X-Cost: 0\r\n", 0},
        {"X-Cost: -7\r\n", 0},
        {"X-Cost: +7\r\n", 0},
        {"X-Cost: 7.0\r\n", 0},
        {"X-Cost: 7 8\r\n", 0},
        {"X-Cost: 7,8\r\n", 0},
        {"X-Cost: 0x7\r\n", 0},
        {"X-Cost: seven\r\n", 0},
        {"X-Cost:\r\n", 0},
        {"X-Costs: 7\r\n", 0},
        {"X-Cos: 7\r\n", 0},
        {"", 0},
        /* Who wrote which of the two? */
        {"X-Cost: 7\r\nX-Cost: 7\r\n", 0},
        {"X-Cost: 7\r\nX-Other: 1\r\nX-COST:\r\n", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct parsed parsed;
        char text[256];

        snprintf(text, sizeof(text), GET "%s\r\n", rows[i].fields);
        parse_request(&parsed, text);
        if (cost_in_head(&parsed.head, "X-Cost", 1000) != rows[i].cost)
            fail_msg("%s: %u", rows[i].fields, cost_in_head(&parsed.head, "X-Cost", 1000));
    }
}

/* ------------------------------------------------------------------ running means */

static void a_mean_follows_its_samples(void **state)
{
    static struct cost_history history;

    (void)state;
    memset(&history, 0, sizeof(history));
    assert_int_equal(cost_history_mean(&history, 3), 0);
    cost_history_add(&history, 3, 1000);
    assert_int_equal(cost_history_mean(&history, 3), 1000);
    /* Of an operation that has none: that of all. */
    assert_int_equal(cost_history_mean(&history, 4), 1000);
    cost_history_add(&history, 4, 17000);
    assert_int_equal(cost_history_mean(&history, 4), 17000);
    assert_int_equal(cost_history_mean(&history, 3), 1000);
    assert_int_equal(cost_history_mean(&history, 5), 2000); /* 1000 + (17000 - 1000) / 16 */
    for (unsigned i = 0; i < 200; i++)
        cost_history_add(&history, 3, 4000);
    assert_in_range(cost_history_mean(&history, 3), 3999, 4000);
    for (unsigned i = 0; i < 200; i++)
        cost_history_add(&history, 3, 0);
    assert_int_equal(cost_history_mean(&history, 3), 0);
    cost_history_add(&history, 6, UINT64_MAX);
    cost_history_add(&history, 6, UINT64_MAX);
    assert_in_range(cost_history_mean(&history, 6), (UINT64_C(1) << 48) - 100, UINT64_C(1) << 48);
}

/* ------------------------------------------------------------------ one request's way */

/* Classified, submitted and dispatched. */
static void send_request(struct request *request, struct world *world, const char *text)
{
    struct parsed parsed;
    struct sockaddr client = {.sa_family = AF_UNIX};
    struct http_facts facts = {.head = &parsed.head, .client = &client};

    parse_request(&parsed, text);
    facts.path = parsed.head.path;
    request_init(request, world, 0, "large", NULL);
    plan_classify_http(plan_pool_of(world), &facts, &request->exchange);
    gate_submit(&request->exchange);
    settle_all(world);
    assert_int_equal(request->dispatched, 1);
}

static uint64_t end_request(struct request *request, struct world *world, const char *reply,
                            enum outcome outcome)
{
    struct parsed parsed;

    if (reply != NULL) {
        parse_reply(&parsed, reply);
        cost_read_reply(&request->exchange, &parsed.head);
    }
    gate_finish(&request->exchange, outcome, cost_settle(&request->exchange, outcome));
    settle_all(world);
    assert_int_equal(request->released, 1);
    return request->exchange.true_cost;
}

#define OK_REPLY(fields) "HTTP/1.1 200 OK\r\n" fields "Content-Length: 0\r\n\r\n"

static void headers_name_estimate_and_truth(void **state)
{
    struct world world = world_open(COSTS(
        "{ by: header, request-header: X-Cost, reply-header: X-Used, max: 500, fallback: 3 }"));
    struct request request;

    (void)state;
    send_request(&request, &world, GET "X-Cost: 40\r\n\r\n");
    assert_int_equal(request.exchange.cost, 40);
    assert_int_equal(end_request(&request, &world, OK_REPLY("X-Used: 25\r\n"), OUTCOME_ANSWERED),
                     25);
    send_request(&request, &world, GET "X-Cost: 501\r\n\r\n");
    assert_int_equal(request.exchange.cost, 500);
    assert_int_equal(end_request(&request, &world, OK_REPLY("X-Used: 90000\r\n"), OUTCOME_ANSWERED),
                     500);
    send_request(&request, &world, GET "X-Cost: much\r\n\r\n");
    assert_int_equal(request.exchange.cost, 3);
    assert_int_equal(end_request(&request, &world, OK_REPLY("X-Used: 0\r\n"), OUTCOME_ANSWERED), 3);
    send_request(&request, &world, GET "\r\n");
    assert_int_equal(request.exchange.cost, 3);
    assert_int_equal(end_request(&request, &world, NULL, OUTCOME_FAILED), 3);
    /* What the client writes under the reply's name is nothing. */
    send_request(&request, &world, GET "X-Used: 80\r\nX-Cost: 5\r\n\r\n");
    assert_int_equal(end_request(&request, &world, OK_REPLY("X-Cost: 70\r\n"), OUTCOME_ANSWERED),
                     5);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

static void without_a_request_header_replies_teach(void **state)
{
    struct world world =
        world_open(COSTS("{ by: header, reply-header: X-Used, fallback: 3, max: 64 }"));
    struct request request;

    (void)state;
    send_request(&request, &world, GET "X-Cost: 40\r\n\r\n");
    assert_int_equal(request.exchange.cost, 3);
    assert_int_equal(end_request(&request, &world, OK_REPLY("X-Used: 32\r\n"), OUTCOME_ANSWERED),
                     32);
    send_request(&request, &world, GET "\r\n");
    assert_int_equal(request.exchange.cost, 32);
    assert_int_equal(end_request(&request, &world, OK_REPLY("X-Used: 64\r\n"), OUTCOME_ANSWERED),
                     64);
    send_request(&request, &world, GET "\r\n");
    assert_int_equal(request.exchange.cost, 34);
    end_request(&request, &world, NULL, OUTCOME_ANSWERED);
    /* Another flow has not learnt anything yet. */
    send_request(&request, &world, "GET /s HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_string_equal(request.exchange.class->name, "small");
    assert_int_equal(request.exchange.cost, 3);
    end_request(&request, &world, NULL, OUTCOME_ANSWERED);
    world_close(&world);
}

static uint64_t timed(struct world *world, const char *text, uint64_t us, enum outcome outcome,
                      uint64_t *estimate)
{
    struct request request;

    send_request(&request, world, text);
    *estimate = request.exchange.cost;
    pass_time(world, us * 1000);
    return end_request(&request, world, NULL, outcome);
}

static void time_is_measured_from_dispatch_to_end(void **state)
{
    struct world world = world_open(COSTS("{ by: service-time, unit: 100us, fallback: 9 }"));
    uint64_t estimate;

    (void)state;
    assert_int_equal(timed(&world, GET "\r\n", 1640, OUTCOME_ANSWERED, &estimate), 16);
    assert_int_equal(estimate, 9);
    assert_int_equal(timed(&world, GET "\r\n", 1650, OUTCOME_ANSWERED, &estimate), 17);
    assert_int_equal(estimate, 16);
    /* Never nothing. */
    assert_int_equal(timed(&world, GET "\r\n", 0, OUTCOME_ANSWERED, &estimate), 1);
    /* It held its slot, but teaches nothing: what failed is no measure of what works. */
    assert_int_equal(timed(&world, GET "\r\n", 500000, OUTCOME_FAILED, &estimate), 5000);
    timed(&world, GET "\r\n", 1600, OUTCOME_ANSWERED, &estimate);
    assert_int_equal(estimate, 15);
    /* Each operation by itself. */
    timed(&world, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 40000, OUTCOME_ANSWERED,
          &estimate);
    assert_int_equal(estimate, 15);
    timed(&world, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 40000, OUTCOME_ANSWERED,
          &estimate);
    assert_int_equal(estimate, 400);
    timed(&world, GET "\r\n", 1600, OUTCOME_ANSWERED, &estimate);
    assert_int_equal(estimate, 15);
    world_close(&world);
}

static void a_slot_on_another_loop_never_costs_ages(void **state)
{
    struct world world = world_open(COSTS("{ by: service-time }"));
    struct request request;

    (void)state;
    send_request(&request, &world, GET "\r\n");
    request.exchange.dispatched_ns += 1000000;
    assert_int_equal(end_request(&request, &world, NULL, OUTCOME_ANSWERED), 1);
    world_close(&world);
}

static void a_table_goes_by_size_too(void **state)
{
    struct world world = world_open(COSTS(
        "{ by: table, bytes-unit: 64KiB, table: { PUT: 10, BREW: 4 }, per-size: { PUT: 5 } }"));
    struct request request;

    (void)state;
    send_request(&request, &world, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 131072\r\n\r\n");
    assert_int_equal(request.exchange.cost, 10 + 2 * 5);
    request.exchange.bytes_in = 131072 + 100;
    request.exchange.bytes_out = 65536;
    /* 5 * 100 / 65536 is a part of a unit more. */
    assert_int_equal(end_request(&request, &world, NULL, OUTCOME_ANSWERED), 10 + 3 * 5 + 1);
    send_request(&request, &world, "BREW / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(request.exchange.cost, 4);
    request.exchange.bytes_out = 1 << 30;
    assert_int_equal(end_request(&request, &world, NULL, OUTCOME_ANSWERED), 4);
    /* No overflow at the largest length. */
    send_request(&request, &world,
                 "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775807\r\n\r\n");
    assert_true(request.exchange.cost == SCHED_COST_MAX);
    end_request(&request, &world, NULL, OUTCOME_ABORTED);
    world_close(&world);
}

/* One field of a request can't claim all of a depth that counts cost. */
static void an_announced_body_counts_for_a_part_of_the_depth(void **state)
{
    static const struct {
        const char *pool;
        uint64_t small, large;
    } rows[] = {
        {"depth-unit: cost, cost: { by: bytes, bytes-unit: 1KiB }", 3, 25},
        {"cost: { by: bytes, bytes-unit: 1KiB }", 3, 9765627},
        {"depth-unit: cost, cost: { by: table, bytes-unit: 1KiB, table: { PUT: 40 }, "
         "per-size: { PUT: 1 } }",
         40, 40},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(text, sizeof(text),
                 "workers: 1\n"
                 "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
                 "pools: [{ name: farm, servers: [{ address: '127.0.0.1:1', depth: 100 }], %s,\n"
                 "  flows: [{ name: large }] }]\n",
                 rows[i].pool);
        struct world world = world_open(text);
        struct request request;

        send_request(&request, &world, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1025\r\n\r\n");
        assert_int_equal(request.exchange.cost, rows[i].small);
        end_request(&request, &world, NULL, OUTCOME_ABORTED);
        send_request(&request, &world,
                     "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000001\r\n\r\n");
        assert_int_equal(request.exchange.cost, rows[i].large);
        end_request(&request, &world, NULL, OUTCOME_ABORTED);
        world_close(&world);
    }
}

/* ------------------------------------------------------------------ shares */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/*
 * Two flows with weights 1 and 3 that always have requests waiting, all estimated at 1. The
 * replies say what each has cost: up to 40 for the small flow, up to 400 for the large one. After
 * many completions the costs are 1 to 3.
 */
static void shares_follow_what_replies_say(void **state)
{
    const char *given = getenv("SPILLWAY_TEST_SEED");
    uint64_t random = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct world world =
        world_open(COSTS("{ by: header, request-header: X-Cost, reply-header: X-Used }"));
    struct request requests[64];
    uint64_t costs[2] = {0, 0};

    (void)state;
    printf("SPILLWAY_TEST_SEED=%llu\n", (unsigned long long)random);
    for (unsigned i = 0; i < 64; i++)
        submit(&requests[i], &world, i % 2 == 0 ? "small" : "large");
    settle_all(&world);
    for (unsigned i = 0; i < 20000; i++) {
        struct request *request = oldest_dispatched(requests, 64);
        bool large = strcmp(request->exchange.class->name, "large") == 0;

        request->exchange.said_cost = (uint32_t)(1 + next_random(&random) % (large ? 400 : 40));
        gate_finish(&request->exchange, OUTCOME_ANSWERED,
                    cost_settle(&request->exchange, OUTCOME_ANSWERED));
        costs[large] += request->exchange.true_cost;
        settle_all(&world);
        submit(request, &world, large ? "large" : "small");
        settle_all(&world);
    }
    double ratio = (double)costs[1] / (double)costs[0];
    if (ratio < 3 * 0.98 || ratio > 3 * 1.02)
        fail_msg("costs %llu and %llu: a ratio of %.3f, not 3", (unsigned long long)costs[0],
                 (unsigned long long)costs[1], ratio);
    finish_all(requests, 64, &world);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_a_whole_number_or_nothing),
        cmocka_unit_test(a_mean_follows_its_samples),
        cmocka_unit_test(headers_name_estimate_and_truth),
        cmocka_unit_test(without_a_request_header_replies_teach),
        cmocka_unit_test(time_is_measured_from_dispatch_to_end),
        cmocka_unit_test(a_slot_on_another_loop_never_costs_ages),
        cmocka_unit_test(a_table_goes_by_size_too),
        cmocka_unit_test(an_announced_body_counts_for_a_part_of_the_depth),
        cmocka_unit_test(shares_follow_what_replies_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
