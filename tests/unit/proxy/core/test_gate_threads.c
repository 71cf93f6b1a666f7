/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate under threads: each loop runs on its own, submits, cancels and finishes its requests
 * from its turns, while the test's thread changes weights, depths, algorithms and admission. Every
 * request has one end, every callback comes on its loop's thread, and nothing is left. For the
 * thread sanitizer above all.
 */
#include "tests/unit/proxy/core/fixture.h"

#include <pthread.h>

#define WORKERS   4
#define EACH      3000 /* requests of one loop */
#define AT_A_TIME 24

struct side;

struct job {
    struct exchange exchange;
    struct side *side;
    bool dispatched;
};

struct side {
    struct world *world;
    struct loop *loop;
    pthread_t thread;
    struct loop_message start;
    struct turn_hook hook; /* between the turns' callbacks: more requests */
    struct job jobs[AT_A_TIME];
    struct job *idle[AT_A_TIME];
    unsigned idle_count;
    unsigned submitted, ended, answered, cancelled, refused, not_admitted, marked;
    uint32_t random;
};

static unsigned draw(struct side *side, unsigned limit)
{
    side->random = side->random * 1664525 + 1013904223;
    return (side->random >> 8) % limit;
}

static void end_job(struct job *job)
{
    struct side *side = job->side;

    assert_true(pthread_equal(pthread_self(), side->thread));
    side->idle[side->idle_count++] = job;
    side->ended++;
    if (side->ended == EACH)
        loop_stop(side->loop);
    else
        loop_add_pump(side->loop, &side->hook);
}

static void on_dispatched(struct exchange *exchange)
{
    struct job *job = container_of(exchange, struct job, exchange);

    assert_true(pthread_equal(pthread_self(), job->side->thread));
    assert_false(job->dispatched);
    job->dispatched = true;
    job->side->answered++;
    gate_finish(exchange, OUTCOME_ANSWERED, exchange->cost);
}

static void count_refusal(struct side *side, enum refusal refusal)
{
    if (refusal == REFUSAL_ADMISSION)
        side->not_admitted++;
    else
        side->refused++;
    assert_true(refusal == REFUSAL_ADMISSION || refusal == REFUSAL_AT_LIMIT);
}

static void on_refused(struct exchange *exchange, enum refusal refusal)
{
    struct job *job = container_of(exchange, struct job, exchange);

    count_refusal(job->side, refusal);
    end_job(job);
}

static void on_marked(struct exchange *exchange)
{
    struct job *job = container_of(exchange, struct job, exchange);

    assert_true(pthread_equal(pthread_self(), job->side->thread));
    assert_false(job->dispatched);
    job->side->marked++;
}

static void on_released(struct exchange *exchange)
{
    struct job *job = container_of(exchange, struct job, exchange);

    /* Given up on its way back: from a dispatch, or put out by another loop. */
    if (exchange->abandoned && exchange->state == EXCHANGE_READING)
        count_refusal(job->side, (enum refusal)exchange->refusal);
    else if (exchange->abandoned)
        job->side->cancelled++;
    end_job(job);
}

static const struct exchange_ops job_ops = {
    .dispatched = on_dispatched,
    .refused = on_refused,
    .released = on_released,
    .marked = on_marked,
};

static void submit_job(struct side *side, struct job *job)
{
    struct exchange *exchange = &job->exchange;

    exchange_init(exchange, side->loop, &job_ops, loop_now_ns(side->loop));
    exchange->pool = plan_pool_of(side->world);
    exchange->lane = TAILQ_FIRST(&pool_of(side->world)->lanes);
    exchange->class = pool_find_class(pool_of(side->world), draw(side, 2) ? "gold" : "users");
    if (exchange->class->keyed) {
        exchange->key_length = 1;
        exchange->key[0] = (uint8_t)draw(side, 9);
    }
    job->side = side;
    job->dispatched = false;
    side->submitted++;
    gate_submit(exchange);
}

/* Cancels some of those that wait; ones that were dispatched meanwhile are released later. */
static void cancel_some(struct side *side)
{
    struct job *job = &side->jobs[draw(side, AT_A_TIME)];

    for (unsigned i = 0; i < side->idle_count; i++) {
        if (side->idle[i] == job)
            return;
    }
    if (job->dispatched || job->exchange.abandoned)
        return;
    if (gate_cancel(&job->exchange)) {
        side->cancelled++;
        end_job(job);
    }
}

static void more(struct loop *loop, struct turn_hook *hook)
{
    struct side *side = container_of(hook, struct side, hook);

    (void)loop;
    if (draw(side, 3) == 0)
        cancel_some(side);
    while (side->idle_count > 0 && side->submitted < EACH)
        submit_job(side, side->idle[--side->idle_count]);
}

static void on_start(struct loop *loop, struct loop_message *message)
{
    struct side *side = container_of(message, struct side, start);

    loop_add_pump(loop, &side->hook);
}

static void *run(void *argument)
{
    struct side *side = argument;

    loop_run(side->loop);
    return NULL;
}

static void start_sides(struct side *sides, struct world *world)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        struct side *side = &sides[i];
        side->world = world;
        side->loop = &world->runtime->workers[i].loop;
        side->random = i + 1;
        side->hook.run = more;
        side->start.run = on_start;
        for (unsigned k = 0; k < AT_A_TIME; k++)
            side->idle[side->idle_count++] = &side->jobs[k];
        assert_int_equal(pthread_create(&side->thread, NULL, run, side), 0);
    }
    /* Only now, since callbacks look at `thread`. */
    for (unsigned i = 0; i < WORKERS; i++)
        loop_post(sides[i].loop, &sides[i].start, &sides[i].start);
}

static void change_admission(struct pool *pool, unsigned i)
{
    const struct config_admission admission = {
        .algorithm = (enum admit_policy)(i % ADMIT_POLICIES),
        .action = i % 4 == 0 ? CONFIG_ADMISSION_MARK : CONFIG_ADMISSION_REFUSE,
        .limit = 1 + i % 8,
    };

    pthread_mutex_lock(&pool->lock);
    pool_set_admission(pool, &admission);
    pthread_mutex_unlock(&pool->lock);
}

static void change_things(struct world *world)
{
    static const char *const limits[] = {"1000000/s", "none", "5000/s"};
    char why[200];

    for (unsigned i = 0; i < 20 * SCHED_ALGORITHMS; i++) {
        const char *algorithm = sched_algorithm_name((enum sched_algorithm)(i % SCHED_ALGORITHMS));
        assert_int_equal(admin_set_weight(world->runtime, "farm", "gold", 1 + i % 5, why, 100), 0);
        assert_int_equal(admin_set_algorithm(world->runtime, "farm", algorithm, why, sizeof(why)),
                         0);
        assert_int_equal(admin_set_flow(world->runtime, "farm", i % 2 ? "gold" : "users", "limit",
                                        limits[i % 3], why, sizeof(why)),
                         0);
        assert_int_equal(admin_set_pool(world->runtime, "farm", "at-limit",
                                        i % 5 ? "wait" : "refuse", why, sizeof(why)),
                         0);
        assert_int_equal(
            admin_set_server_depth(world->runtime, "farm", "a", 1 + i % 3, why, sizeof(why)), 0);
        change_admission(pool_of(world), i);
        assert_true(view_of(world).outstanding <= 6);
    }
}

static void every_request_has_one_end_on_its_own_thread(void **state)
{
    struct side *sides = calloc(WORKERS, sizeof(*sides));
    struct world world =
        world_open("workers: 4\n"
                   "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
                   "pools:\n"
                   "  - name: farm\n"
                   "    queue: { timeout: off }\n"
                   "    servers: [{ name: a, address: '127.0.0.1:1', depth: 2 },\n"
                   "              { name: b, address: '127.0.0.1:2', depth: 3 }]\n"
                   "    flows: [{ name: gold, weight: 2, match: { path: /gold } },\n"
                   "            { name: users, weight: 1, by: client-address, key-limit: 4 }]\n");
    unsigned answered = 0;
    unsigned cancelled = 0;
    unsigned refused = 0;
    unsigned not_admitted = 0;
    unsigned marked = 0;

    (void)state;
    assert_non_null(sides);
    start_sides(sides, &world);
    change_things(&world);
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(sides[i].thread, NULL);
        assert_int_equal(sides[i].ended, EACH);
        assert_int_equal(sides[i].submitted, EACH);
        answered += sides[i].answered;
        cancelled += sides[i].cancelled;
        refused += sides[i].refused;
        not_admitted += sides[i].not_admitted;
        marked += sides[i].marked;
    }
    /* By then no rate has anything left to remember. */
    set_clock(&world, loop_clock_ns() + SECOND_NS);
    for (unsigned i = 0; i < 20; i++) {
        gate_kick(pool_of(&world));
        settle_all(&world);
    }
    struct flow_meters meters = view_of(&world).meters;
    assert_int_equal(answered + cancelled + refused + not_admitted, WORKERS * EACH);
    assert_int_equal(meters.admission_refused, not_admitted);
    assert_true(meters.marked >= marked);
    assert_int_equal(meters.at_limit, refused);
    assert_int_equal(meters.requests, answered);
    assert_int_equal(meters.cancelled, cancelled);
    assert_int_equal(pool_find_class(pool_of(&world), "users")->instances, 0);
    assert_pool_at_rest(pool_of(&world));
    world_close(&world);
    free(sides);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_has_one_end_on_its_own_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
