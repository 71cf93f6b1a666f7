/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission at the gate: on whom the policy's no falls, what becomes of it under either action,
 * that the policies' books agree with the queue on every way out of it, and switching while
 * requests wait. `tail` is the policy wherever the test has to know beforehand what is refused.
 */
#include "tests/unit/proxy/core/fixture.h"

#define HEAD                                                                                       \
    "workers: 2\n"                                                                                 \
    "log: { level: error }\n"                                                                      \
    "listeners: [ { name: web, bind: '127.0.0.1:0', protocol: http, pool: farm } ]\n"              \
    "pools:\n"                                                                                     \
    "- name: farm\n"
#define SERVER "  servers: [ { name: s, address: '127.0.0.1:1', depth: 2 } ]\n"
#define FLOWS                                                                                      \
    "  flows:\n"                                                                                   \
    "  - { name: noisy, weight: 1, match: { header: { X-Flow: noisy } } }\n"                       \
    "  - { name: quiet, weight: 1, match: { header: { X-Flow: quiet } } }\n"

static struct world world_with(const char *admission, const char *more)
{
    char text[2048];

    snprintf(text, sizeof(text), HEAD SERVER "  admission: %s\n%s" FLOWS, admission, more);
    return world_open(text);
}

static struct flow_meters *meters_of(const struct world *world, const char *class)
{
    return &pool_find_class(pool_of(world), class)->meters;
}

static uint64_t books_of(const struct world *world)
{
    return admit_look(&TAILQ_FIRST(&pool_of(world)->lanes)->admit).queue;
}

/* The policy's queue is the scheduler's. */
static void check_books(const struct world *world)
{
    const struct sched *sched = TAILQ_FIRST(&pool_of(world)->lanes)->sched;
    bool cost = pool_of(world)->depth_unit == CONFIG_DEPTH_COST;

    assert_int_equal(books_of(world), cost ? sched_queued_cost(sched) : sched_queued(sched));
}

static void submit_all(struct world *world, struct request *requests, unsigned count,
                       const char *class)
{
    for (unsigned i = 0; i < count; i++)
        submit(&requests[i], world, class);
    settle_all(world);
    check_books(world);
}

static void finish_in_turn(struct world *world, struct request *requests, unsigned count)
{
    bool more = true;

    while (more) {
        more = false;
        for (unsigned i = 0; i < count; i++) {
            if (requests[i].exchange.state == EXCHANGE_DISPATCHED) {
                finish(&requests[i], OUTCOME_ANSWERED);
                more = true;
            }
        }
        pass_time(world, MILLISECOND_NS);
        check_books(world);
    }
}

static void refuses_what_the_policy_does_not_admit(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 3 }", "");
    struct request requests[8];

    (void)state;
    submit_all(&world, requests, 8, "noisy");
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(requests[i].dispatched, i < 2);
        assert_int_equal(requests[i].refused, i >= 5);
        if (i >= 5)
            assert_int_equal(requests[i].refusal, REFUSAL_ADMISSION);
    }
    assert_int_equal(meters_of(&world, "noisy")->offered, 8);
    assert_int_equal(meters_of(&world, "noisy")->admitted, 5);
    assert_int_equal(meters_of(&world, "noisy")->admission_refused, 3);
    assert_int_equal(meters_of(&world, "noisy")->refused, 0);
    finish_in_turn(&world, requests, 8);
    assert_int_equal(view_of(&world).meters.requests, 5);
    world_close(&world);
}

static void puts_out_the_newest_of_the_longest_flow(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 4 }", "");
    struct request noisy[6];
    struct request quiet[2];

    (void)state;
    submit_all(&world, noisy, 6, "noisy");
    submit_all(&world, quiet, 2, "quiet");
    assert_int_equal(noisy[5].refused, 1);
    assert_int_equal(noisy[5].refusal, REFUSAL_ADMISSION);
    assert_int_equal(noisy[4].refused, 1);
    assert_int_equal(noisy[3].refused, 0);
    assert_int_equal(quiet[0].refused + quiet[1].refused, 0);
    assert_int_equal(meters_of(&world, "noisy")->admission_refused, 2);
    assert_int_equal(meters_of(&world, "quiet")->admission_refused, 0);
    assert_int_equal(meters_of(&world, "quiet")->admitted, 2);
    finish_in_turn(&world, noisy, 6);
    finish_in_turn(&world, quiet, 2);
    finish_in_turn(&world, noisy, 6);
    world_close(&world);
}

static void puts_out_a_request_of_another_thread(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 4 }", "");
    struct request noisy[6];
    struct request quiet;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        request_init(&noisy[i], &world, 1, "noisy", NULL);
        gate_submit(&noisy[i].exchange);
    }
    settle(&world, 1);
    submit(&quiet, &world, "quiet");
    settle(&world, 0);
    assert_int_equal(noisy[5].refused, 0); /* its own thread has yet to hear of it */
    settle(&world, 1);
    assert_int_equal(noisy[5].refused, 1);
    check_books(&world);
    finish_in_turn(&world, noisy, 6);
    finish_in_turn(&world, &quiet, 1);
    finish_in_turn(&world, noisy, 6);
    world_close(&world);
}

static void gives_no_way_to_a_flow_that_exceeds_its_share_more(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 4 }", "");
    struct request quiet;
    struct request noisy[6];

    (void)state;
    submit_all(&world, &quiet, 1, "quiet");
    submit_all(&world, noisy, 6, "noisy");
    assert_int_equal(quiet.refused, 0);
    assert_int_equal(noisy[5].refused, 1);
    finish_in_turn(&world, &quiet, 1);
    finish_in_turn(&world, noisy, 6);
    world_close(&world);
}

static void marks_instead_of_refusing(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 3, action: mark }", "");
    struct request requests[8];

    (void)state;
    submit_all(&world, requests, 8, "noisy");
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(requests[i].refused, 0);
        assert_int_equal(requests[i].marked, i >= 5);
        if (i >= 5)
            assert_in_range(requests[i].exchange.mark_ns, 100000, SECOND_NS);
    }
    assert_int_equal(meters_of(&world, "noisy")->admitted, 8);
    assert_int_equal(meters_of(&world, "noisy")->marked, 3);
    assert_int_equal(meters_of(&world, "noisy")->admission_refused, 0);
    finish_in_turn(&world, requests, 8);
    assert_int_equal(view_of(&world).meters.requests, 8);
    world_close(&world);
}

static void marks_the_noisy_flow_on_its_own_thread(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 4, action: mark }", "");
    struct request noisy[6];
    struct request quiet;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        request_init(&noisy[i], &world, 1, "noisy", NULL);
        gate_submit(&noisy[i].exchange);
    }
    settle(&world, 1);
    submit(&quiet, &world, "quiet");
    settle(&world, 0);
    assert_int_equal(quiet.marked, 0);
    assert_int_equal(meters_of(&world, "noisy")->marked, 1);
    finish_in_turn(&world, noisy, 6);
    finish_in_turn(&world, &quiet, 1);
    finish_in_turn(&world, noisy, 6);
    /* At the latest with its dispatch. */
    assert_int_equal(noisy[5].marked, 1);
    world_close(&world);
}

/* Who has no word for "later" is slowed, on arrival and when another one comes. */
static void slows_who_insists(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 3 }", "");
    struct request noisy[6];
    struct request quiet;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        request_init(&noisy[i], &world, 0, "noisy", NULL);
        noisy[i].exchange.insists = true;
        gate_submit(&noisy[i].exchange);
    }
    settle_all(&world);
    assert_int_equal(noisy[4].marked, 0);
    assert_int_equal(noisy[5].marked, 1);
    submit_all(&world, &quiet, 1, "quiet");
    assert_int_equal(quiet.refused + quiet.marked, 0);
    assert_int_equal(noisy[5].refused, 0);
    finish_in_turn(&world, noisy, 6);
    finish_in_turn(&world, &quiet, 1);
    finish_in_turn(&world, noisy, 6);
    assert_int_equal(view_of(&world).meters.requests, 7);
    world_close(&world);
}

static void keeps_the_books_on_every_way_out(void **state)
{
    struct world world =
        world_with("{ algorithm: tail, limit: 100 }", "  queue: { timeout: 1s }\n");
    struct request requests[10];

    (void)state;
    submit_all(&world, requests, 10, "noisy");
    assert_int_equal(books_of(&world), 8);
    assert_true(gate_cancel(&requests[9].exchange));
    check_books(&world);
    assert_int_equal(books_of(&world), 7);
    assert_int_equal(gate_move(&requests[0].exchange), GATE_MOVED);
    check_books(&world);
    pass_time(&world, 2 * SECOND_NS);
    check_books(&world);
    assert_int_equal(books_of(&world), 0);
    assert_int_equal(requests[8].refusal, REFUSAL_TIMEOUT);
    finish_in_turn(&world, requests, 10);
    world_close(&world);
}

static void switches_while_requests_wait(void **state)
{
    struct world world = world_with("none", "");
    struct pool *pool = pool_of(&world);
    struct config_admission admission = {.algorithm = ADMIT_TAIL, .limit = 2};
    struct request before[10];
    struct request after[3];

    (void)state;
    submit_all(&world, before, 10, "noisy");
    pthread_mutex_lock(&pool->lock);
    pool_set_admission(pool, &admission);
    pthread_mutex_unlock(&pool->lock);
    submit_all(&world, after, 1, "noisy");
    assert_int_equal(after[0].refused, 1);
    /* What waits already waits on; and the watch knows of it. */
    submit_all(&world, after + 1, 1, "quiet");
    assert_int_equal(after[1].refused, 0);
    assert_int_equal(before[9].refused, 1);
    pthread_mutex_lock(&pool->lock);
    admission.algorithm = ADMIT_NONE;
    pool_set_admission(pool, &admission);
    pthread_mutex_unlock(&pool->lock);
    submit_all(&world, after + 2, 1, "noisy");
    assert_int_equal(after[2].refused, 0);
    finish_in_turn(&world, before, 10);
    finish_in_turn(&world, after, 3);
    finish_in_turn(&world, before, 10);
    finish_in_turn(&world, after, 3);
    assert_int_equal(view_of(&world).meters.requests, 11);
    world_close(&world);
}

static void a_full_queue_is_fair_too(void **state)
{
    struct world world = world_with("none", "  queue: { limit: 4 }\n");
    struct request noisy[6];
    struct request quiet;

    (void)state;
    submit_all(&world, noisy, 6, "noisy");
    submit_all(&world, &quiet, 1, "quiet");
    assert_int_equal(noisy[5].refused, 1);
    assert_int_equal(noisy[5].refusal, REFUSAL_POOL_FULL);
    assert_int_equal(quiet.refused, 0);
    assert_int_equal(meters_of(&world, "noisy")->refused, 1);
    finish_in_turn(&world, noisy, 6);
    finish_in_turn(&world, &quiet, 1);
    finish_in_turn(&world, noisy, 6);
    world_close(&world);
}

/* A slot turns over every 10 ms, until all must have ended. */
static void serve_slowly(struct world *world, struct request *requests, unsigned count)
{
    for (unsigned round = 0; round < count; round++) {
        for (unsigned i = 0; i < count; i++) {
            if (requests[i].exchange.state == EXCHANGE_DISPATCHED)
                finish(&requests[i], OUTCOME_ANSWERED);
        }
        pass_time(world, 10 * MILLISECOND_NS);
        check_books(world);
    }
}

/* codel judges what leaves the queue. */
static void refuses_at_the_dispatch(void **state)
{
    struct world world = world_with("codel", "");
    struct request requests[200];
    unsigned refused = 0;

    (void)state;
    submit_all(&world, requests, 200, "noisy");
    serve_slowly(&world, requests, 200);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(requests[i].refused + requests[i].released, 1);
        refused += requests[i].refused;
    }
    assert_in_range(refused, 1, 100);
    assert_int_equal(meters_of(&world, "noisy")->admission_refused, refused);
    assert_int_equal(meters_of(&world, "noisy")->requests, 200 - refused);
    world_close(&world);
}

static void marks_at_the_dispatch(void **state)
{
    struct world world = world_with("{ algorithm: codel, action: mark }", "");
    struct request requests[100];
    unsigned marked = 0;

    (void)state;
    submit_all(&world, requests, 100, "noisy");
    serve_slowly(&world, requests, 100);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(requests[i].released, 1);
        marked += requests[i].marked;
    }
    assert_true(marked > 0);
    assert_int_equal(meters_of(&world, "noisy")->marked, marked);
    world_close(&world);
}

static void says_when_to_come_back(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 50 }", "");
    struct request requests[400];
    struct request late;

    (void)state;
    /* Two every 10 ms: 200 a second. */
    submit_all(&world, requests, 52, "noisy");
    for (unsigned i = 52; i + 2 <= 400; i += 2) {
        for (unsigned j = 0; j < i; j++) {
            if (requests[j].exchange.state == EXCHANGE_DISPATCHED)
                finish(&requests[j], OUTCOME_ANSWERED);
        }
        settle_all(&world);
        submit_all(&world, requests + i, 2, "noisy");
        pass_time(&world, 10 * MILLISECOND_NS);
    }
    submit(&late, &world, "noisy");
    settle_all(&world);
    assert_int_equal(late.refused, 1);
    assert_int_equal(books_of(&world), 50);
    assert_in_range(late.exchange.retry_after_ns, 200 * MILLISECOND_NS, 300 * MILLISECOND_NS);
    finish_in_turn(&world, requests, 400);
    world_close(&world);
}

static void counts_in_the_depths_unit(void **state)
{
    struct world world = world_with("{ algorithm: tail, limit: 10 }", "  depth-unit: cost\n");
    struct request requests[6];

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        request_init(&requests[i], &world, 0, "noisy", NULL);
        requests[i].exchange.cost = 4;
        gate_submit(&requests[i].exchange);
    }
    settle_all(&world);
    /* One is out; the queue takes others until it holds 10: 4, 8, 12. */
    assert_int_equal(requests[3].refused, 0);
    assert_int_equal(requests[4].refused, 1);
    assert_int_equal(books_of(&world), 12);
    finish_in_turn(&world, requests, 6);
    assert_int_equal(books_of(&world), 0);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_the_policy_does_not_admit),
        cmocka_unit_test(puts_out_the_newest_of_the_longest_flow),
        cmocka_unit_test(puts_out_a_request_of_another_thread),
        cmocka_unit_test(gives_no_way_to_a_flow_that_exceeds_its_share_more),
        cmocka_unit_test(marks_instead_of_refusing),
        cmocka_unit_test(marks_the_noisy_flow_on_its_own_thread),
        cmocka_unit_test(slows_who_insists),
        cmocka_unit_test(keeps_the_books_on_every_way_out),
        cmocka_unit_test(switches_while_requests_wait),
        cmocka_unit_test(a_full_queue_is_fair_too),
        cmocka_unit_test(refuses_at_the_dispatch),
        cmocka_unit_test(marks_at_the_dispatch),
        cmocka_unit_test(says_when_to_come_back),
        cmocka_unit_test(counts_in_the_depths_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
