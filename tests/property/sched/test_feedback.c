/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_feedback.c: the feedback loop on a simulated service: SFQ(D) in front of a few servers that
 * take requests first come, first served, in virtual time. Flows send at random moments at a rate,
 * or keep a number of requests waiting. A period is a second of simulated time.
 *
 * A load goes through phases; each test says what must be true at the end of, or within, each.
 */
#include "sched/feedback/feedback.h"
#include "tests/property/sched/property.h"

#include <math.h>

#define FLOWS       4
#define ITEMS       2048
#define QUEUE_LIMIT 256
#define SERVERS     4
#define SECOND_NS   UINT64_C(1000000000)
#define MS_NS       UINT64_C(1000000)

/* Four servers of 8 ms on average: 500 requests per second. */
#define SERVICE_NS (8 * MS_NS)
#define DEPTH      8

struct request {
    struct sched_item item;
    uint64_t sent_ns;
    uint64_t end_ns;
};

struct source {
    struct sched_flow flow;
    struct sched_feedback_flow feedback;
    double per_second; /* arrivals; 0: none by rate */
    uint64_t keep;     /* requests kept waiting; 0: none that way */
    uint64_t next_ns;  /* next arrival */
    uint64_t completed, response_sum_ns, wait_sum_ns;
    unsigned moves;  /* over the run */
    unsigned misses; /* periods with a mean response above the target */
};

struct sim {
    uint64_t seed;
    struct property_random random;
    struct sched *s;
    struct sched_feedback loop;
    int flows;
    struct source sources[FLOWS];
    struct request requests[ITEMS];
    struct request *idle[ITEMS];
    int idle_count;
    struct request *line[ITEMS]; /* at the service, oldest first; the first SERVERS are in work */
    int line_count;
    uint64_t service_ns;
    bool heavy_tail; /* one service in 20 takes ten times as long as the others */
    uint64_t now_ns;
};

static uint64_t exponential_ns(struct property_random *random, double mean_ns)
{
    const double u = (double)(property_next(random) >> 11) / 9007199254740992.0;
    return (uint64_t)(-log(1.0 - u) * mean_ns) + 1;
}

static struct sim *sim_create(uint64_t seed)
{
    struct sim *sim = test_calloc(1, sizeof(*sim));
    const struct sched_params params = {
        .algorithm = SCHED_ALGORITHM_SFQD, .depth = DEPTH, .flow_queue_limit = QUEUE_LIMIT};
    const struct sched_feedback_params defaults = {0};

    sim->seed = seed;
    sim->random.state = seed;
    sim->service_ns = SERVICE_NS;
    sim->s = sched_create(&params);
    assert_int_equal(sched_feedback_init(&sim->loop, &defaults), 0);
    for (int i = 0; i < ITEMS; i++) {
        sched_item_init(&sim->requests[i].item);
        sim->idle[sim->idle_count++] = &sim->requests[i];
    }
    return sim;
}

static void sim_destroy(struct sim *sim)
{
    sched_destroy(sim->s);
    test_free(sim);
}

/* target_ms 0: none. */
static struct source *sim_add(struct sim *sim, uint64_t target_ms, uint32_t weight,
                              uint32_t weight_max)
{
    struct source *source = &sim->sources[sim->flows++];
    const struct sched_feedback_terms terms = {.target_ns = target_ms * MS_NS,
                                               .weight = weight,
                                               .weight_min = weight / 2,
                                               .weight_max = weight_max};

    assert_int_equal(sched_flow_init(&source->flow, weight), 0);
    assert_int_equal(sched_flow_attach(sim->s, &source->flow), 0);
    assert_int_equal(sched_feedback_add(&sim->loop, &source->feedback, &terms), 0);
    return source;
}

/* New load of a flow from now on. */
static void sim_load(struct sim *sim, struct source *source, double per_second, uint64_t keep)
{
    source->per_second = per_second;
    source->keep = keep;
    if (per_second > 0)
        source->next_ns = sim->now_ns + exponential_ns(&sim->random, 1e9 / per_second);
}

static void sim_arrive(struct sim *sim, struct source *source)
{
    property_check(sim->seed, sim->idle_count > 0);
    struct request *request = sim->idle[sim->idle_count - 1];
    if (sched_enqueue(sim->s, &source->flow, &request->item, 1, sim->now_ns) == SCHED_OK)
        sim->idle_count--;
}

/* The end of a request's service is drawn when it reaches a server. */
static void sim_serve(struct sim *sim, int place)
{
    double mean_ns = (double)sim->service_ns;

    if (sim->heavy_tail)
        mean_ns *= property_chance(&sim->random, 5) ? 10 / 1.45 : 1 / 1.45;
    sim->line[place]->end_ns = sim->now_ns + exponential_ns(&sim->random, mean_ns);
}

static void sim_dispatch(struct sim *sim)
{
    struct sched_item *item;

    for (int i = 0; i < sim->flows; i++)
        while (sim->sources[i].flow.queued < sim->sources[i].keep)
            sim_arrive(sim, &sim->sources[i]);
    while ((item = sched_dispatch(sim->s, sim->now_ns)) != NULL) {
        struct request *request = (struct request *)item; /* item is its first member */
        request->sent_ns = sim->now_ns;
        sim->line[sim->line_count++] = request;
        if (sim->line_count <= SERVERS)
            sim_serve(sim, sim->line_count - 1);
    }
}

static void sim_complete(struct sim *sim, int place)
{
    struct request *request = sim->line[place];
    struct source *source = (struct source *)request->item.flow; /* flow is its first member */

    source->completed++;
    source->response_sum_ns += sim->now_ns - request->item.arrival_ns;
    source->wait_sum_ns += request->sent_ns - request->item.arrival_ns;
    sched_complete(sim->s, &request->item, request->item.cost, sim->now_ns);
    sim->idle[sim->idle_count++] = request;
    sim->line_count--;
    for (int i = place; i < sim->line_count; i++)
        sim->line[i] = sim->line[i + 1];
    if (sim->line_count >= SERVERS)
        sim_serve(sim, SERVERS - 1);
}

/* The next thing that happens, at until_ns at the latest. */
static void sim_event(struct sim *sim, uint64_t until_ns)
{
    struct source *arriving = NULL;
    int completing = -1;
    uint64_t next_ns = until_ns;

    for (int i = 0; i < sim->flows; i++) {
        if (sim->sources[i].per_second > 0 && sim->sources[i].next_ns < next_ns) {
            arriving = &sim->sources[i];
            next_ns = arriving->next_ns;
        }
    }
    for (int i = 0; i < sim->line_count && i < SERVERS; i++) {
        if (sim->line[i]->end_ns < next_ns) {
            completing = i;
            next_ns = sim->line[i]->end_ns;
        }
    }
    sim->now_ns = next_ns;
    if (completing >= 0) {
        sim_complete(sim, completing);
    } else if (arriving != NULL) {
        sim_arrive(sim, arriving);
        arriving->next_ns = next_ns + exponential_ns(&sim->random, 1e9 / arriving->per_second);
    }
    sim_dispatch(sim);
}

static struct sched_feedback_sample sim_sample(const struct sim *sim, const struct source *source)
{
    const struct sched_item *oldest = source->flow.queue.head;

    return (struct sched_feedback_sample){
        .completions = source->completed,
        .response_ns = source->completed > 0 ? source->response_sum_ns / source->completed : 0,
        .wait_ns = source->completed > 0 ? source->wait_sum_ns / source->completed : 0,
        .oldest_wait_ns = oldest != NULL ? sim->now_ns - oldest->arrival_ns : 0,
        .active = source->completed > 0 || oldest != NULL};
}

static void sim_check_limits(struct sim *sim, const struct source *source)
{
    const struct sched_feedback_flow *feedback = &source->feedback;

    if (feedback->terms.target_ns == 0) {
        property_check(sim->seed, feedback->weight == feedback->terms.weight && !feedback->moved);
        property_check(sim->seed, feedback->state == SCHED_FEEDBACK_NO_TARGET);
        return;
    }
    property_check(sim->seed, feedback->weight >= feedback->terms.weight_min);
    property_check(sim->seed, feedback->weight <= feedback->terms.weight_max);
    const uint64_t before = source->flow.weight;
    const uint64_t step =
        feedback->weight > before ? feedback->weight - before : before - feedback->weight;
    property_check(sim->seed, step <= before / 4 + 1 && (step != 0) == feedback->moved);
}

static void sim_step_loop(struct sim *sim)
{
    for (int i = 0; i < sim->flows; i++) {
        struct source *source = &sim->sources[i];
        source->feedback.sample = sim_sample(sim, source);
        if (source->feedback.sample.response_ns > source->feedback.terms.target_ns)
            source->misses++;
        source->completed = source->response_sum_ns = source->wait_sum_ns = 0;
    }
    sched_feedback_step(&sim->loop);
    for (int i = 0; i < sim->flows; i++) {
        struct source *source = &sim->sources[i];
        sim_check_limits(sim, source);
        source->moves += source->feedback.moved;
        assert_int_equal(sched_flow_set_weight(sim->s, &source->flow, source->feedback.weight), 0);
    }
}

static bool sim_trace(void)
{
    return getenv("SPILLWAY_TEST_TRACE") != NULL;
}

static void sim_run(struct sim *sim, unsigned periods)
{
    for (unsigned i = 0; i < periods; i++) {
        const uint64_t until_ns = sim->now_ns + SECOND_NS;
        sim_dispatch(sim);
        while (sim->now_ns < until_ns)
            sim_event(sim, until_ns);
        sim_step_loop(sim);
        if (!sim_trace())
            continue;
        printf("%llu:", (unsigned long long)(sim->now_ns / SECOND_NS));
        for (int j = 0; j < sim->flows; j++)
            printf("  %7u %8.1f ms %s", sim->sources[j].feedback.weight,
                   (double)sim->sources[j].feedback.measured_ns / 1e6,
                   sched_feedback_state_name(sim->sources[j].feedback.state));
        printf("\n");
    }
}

/* A thousand periods in which a flow must be on target, and its weight must not swing. */
static void sim_check_calm(struct sim *sim, struct source *source)
{
    const uint32_t reversals = source->feedback.reversals;

    source->misses = 0;
    sim_run(sim, 1000);
    property_check(sim->seed, source->feedback.reversals - reversals <= 2);
    property_check(sim->seed, source->misses <= 80);
    property_check(sim->seed, source->feedback.state != SCHED_FEEDBACK_INFEASIBLE);
}

/* Forty periods in which a flow must be on target most of the time. */
static void sim_check_meets(struct sim *sim, struct source *source)
{
    source->misses = 0;
    sim_run(sim, 40);
    property_check(sim->seed, source->misses <= 16);
}

/*
 * 150 requests per second need a share of .3 of the service, the weight gives them .1 beside a flow
 * that always has requests waiting.
 */
static void converges_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    struct source *wanting = sim_add(sim, 80, 100, 100000);
    struct source *greedy = sim_add(sim, 0, 900, 0);

    sim_load(sim, wanting, 150, 0);
    sim_load(sim, greedy, 0, 20);
    sim_run(sim, 60);
    sim_check_meets(sim, wanting);
    sim_run(sim, 100);
    sim_check_calm(sim, wanting);
    sim_destroy(sim);
}

/* The same with service times that vary much more, and a target that allows for it. */
static void noise_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    struct source *wanting = sim_add(sim, 250, 100, 100000);
    struct source *greedy = sim_add(sim, 0, 900, 0);

    sim->heavy_tail = true;
    sim_load(sim, wanting, 150, 0);
    sim_load(sim, greedy, 0, 20);
    sim_run(sim, 200);
    sim_check_calm(sim, wanting);
    sim_destroy(sim);
}

static void test_noise_does_not_make_it_swing(void **state)
{
    (void)state;
    property_run("feedback noise", 20, noise_of_seed);
}

static void test_meets_a_target_and_stays_calm(void **state)
{
    (void)state;
    property_run("feedback converges", 20, converges_of_seed);
}

/* The other flow goes away and comes back: the weight returns, and rises again. */
static void load_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    struct source *wanting = sim_add(sim, 80, 100, 100000);
    struct source *greedy = sim_add(sim, 0, 900, 0);

    sim_load(sim, wanting, 150, 0);
    sim_load(sim, greedy, 0, 20);
    sim_run(sim, 200);
    property_check(seed, wanting->feedback.weight > 200);
    sim_load(sim, greedy, 0, 0);
    sim_run(sim, 600);
    property_check(seed, wanting->feedback.weight == 100);
    property_check(seed, wanting->feedback.state == SCHED_FEEDBACK_MET);
    sim_load(sim, greedy, 0, 20);
    sim_run(sim, 60);
    sim_check_meets(sim, wanting);
    sim_run(sim, 100);
    sim_check_calm(sim, wanting);
    sim_destroy(sim);
}

static void test_follows_a_load_that_changes(void **state)
{
    (void)state;
    property_run("feedback follows", 10, load_of_seed);
}

/* 600 requests per second of 500, then 200. */
static void overload_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    struct source *wanting = sim_add(sim, 80, 100, 100000);
    struct source *greedy = sim_add(sim, 0, 900, 0);

    sim_load(sim, wanting, 600, 0);
    sim_load(sim, greedy, 0, 20);
    sim_run(sim, 100);
    property_check(seed, wanting->feedback.state == SCHED_FEEDBACK_INFEASIBLE);
    property_check(seed, sched_feedback_infeasible(&sim->loop) == 1);
    const unsigned moves = wanting->moves;
    sim_run(sim, 300);
    property_check(seed, wanting->feedback.state == SCHED_FEEDBACK_INFEASIBLE);
    property_check(seed, wanting->moves == moves);
    sim_load(sim, wanting, 200, 0);
    sim_run(sim, 30);
    property_check(seed, wanting->feedback.state != SCHED_FEEDBACK_INFEASIBLE);
    sim_check_calm(sim, wanting);
    sim_destroy(sim);
}

static void test_says_infeasible_and_withdraws_it(void **state)
{
    (void)state;
    property_run("feedback infeasible", 10, overload_of_seed);
}

/* Nothing is faster than the service itself: no weight is moved for it. */
static void impossible_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    struct source *alone = sim_add(sim, 5, 100, 100000);

    sim_load(sim, alone, 100, 0);
    sim_run(sim, 1000);
    property_check(seed, alone->feedback.state == SCHED_FEEDBACK_INFEASIBLE);
    property_check(seed, alone->moves == 0);
    sim->service_ns = 2 * MS_NS;
    sim_run(sim, 50);
    property_check(seed, alone->feedback.state == SCHED_FEEDBACK_MET && alone->moves == 0);
    sim_destroy(sim);
}

static void test_says_at_once_what_no_weight_can_do(void **state)
{
    (void)state;
    property_run("feedback impossible", 10, impossible_of_seed);
}

/* Two flows that can't both have what they want: 600 requests per second of 500. */
static void conflict_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    struct source *one = sim_add(sim, 60, 100, 100000);
    struct source *two = sim_add(sim, 60, 100, 100000);
    struct source *greedy = sim_add(sim, 0, 300, 0);
    const double half = (double)property_between(&sim->random, 250, 350);

    sim_load(sim, one, half, 0);
    sim_load(sim, two, 600 - half, 0);
    sim_load(sim, greedy, 0, 20);
    sim_run(sim, 400);
    property_check(seed, sched_feedback_infeasible(&sim->loop) >= 1);
    one->moves = two->moves = 0;
    const uint32_t reversals = one->feedback.reversals + two->feedback.reversals;
    sim_run(sim, 1000);
    property_check(seed, sched_feedback_infeasible(&sim->loop) >= 1);
    property_check(seed, one->feedback.reversals + two->feedback.reversals - reversals <= 4);
    if (sim_trace())
        printf("moves %u %u\n", one->moves, two->moves);
    /* Then there is enough for both. */
    sim_load(sim, one, 150, 0);
    sim_load(sim, two, 150, 0);
    sim_run(sim, 200);
    property_check(seed, sched_feedback_infeasible(&sim->loop) == 0);
    sim_check_meets(sim, one);
    sim_check_meets(sim, two);
    sim_destroy(sim);
}

static void test_flows_in_conflict_come_to_rest(void **state)
{
    (void)state;
    property_run("feedback conflict", 10, conflict_of_seed);
}

/* Two flows with different targets, both possible beside a third. */
static void pair_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    struct source *one = sim_add(sim, 60, 100, 100000);
    struct source *two = sim_add(sim, 150, 100, 100000);
    struct source *greedy = sim_add(sim, 0, 800, 0);

    sim_load(sim, one, 100, 0);
    sim_load(sim, two, 150, 0);
    sim_load(sim, greedy, 0, 20);
    sim_run(sim, 200);
    sim_check_meets(sim, one);
    sim_check_meets(sim, two);
    sim_check_calm(sim, one);
    sim_check_calm(sim, two);
    sim_destroy(sim);
}

static void test_two_flows_meet_their_targets(void **state)
{
    (void)state;
    property_run("feedback pair", 10, pair_of_seed);
}

/* Any targets, limits and loads, the loads changing: limits hold, and reversals are few. */
static void any_load_of_seed(uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    const int flows = (int)property_between(&sim->random, 1, FLOWS);

    sim->heavy_tail = property_chance(&sim->random, 30);
    for (int i = 0; i < flows; i++) {
        const uint32_t weight = (uint32_t)property_between(&sim->random, 2, 300);
        sim_add(sim, property_chance(&sim->random, 30) ? 0 : property_between(&sim->random, 1, 300),
                weight, weight + (uint32_t)property_between(&sim->random, 0, 3000));
    }
    for (unsigned phase = 1; phase <= 5; phase++) {
        for (int i = 0; i < flows; i++) {
            const bool greedy = property_chance(&sim->random, 20);
            const bool sparse = property_chance(&sim->random, 20);
            sim_load(sim, &sim->sources[i],
                     greedy ? 0 : (double)property_between(&sim->random, 0, sparse ? 5 : 300),
                     greedy ? property_between(&sim->random, 1, 50) : 0);
        }
        sim_run(sim, (unsigned)property_between(&sim->random, 20, 500));
        for (int i = 0; i < flows; i++)
            property_check(seed, sim->sources[i].feedback.reversals <= 2 * phase);
    }
    sim_destroy(sim);
}

static void test_limits_hold_under_any_load(void **state)
{
    (void)state;
    property_run("feedback any load", 30, any_load_of_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meets_a_target_and_stays_calm),
        cmocka_unit_test(test_noise_does_not_make_it_swing),
        cmocka_unit_test(test_follows_a_load_that_changes),
        cmocka_unit_test(test_says_infeasible_and_withdraws_it),
        cmocka_unit_test(test_says_at_once_what_no_weight_can_do),
        cmocka_unit_test(test_flows_in_conflict_come_to_rest),
        cmocka_unit_test(test_two_flows_meet_their_targets),
        cmocka_unit_test(test_limits_hold_under_any_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
