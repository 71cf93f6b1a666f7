/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation as a whole: queues whose response time is known exactly, runs that repeat, limits,
 * algorithms that wait for time, changes on the way, and a time series that adds up.
 */
#include <errno.h>

#include "tests/unit/bench/sim/fixture.h"

static void a_single_queue_waits_as_theory_says(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "fifo", 1000000, 20000);
    fixture.config.array.disks = 1;
    fixture.config.array.service.mean = 10 * NS_PER_MS;
    fixture_flow(&fixture, "rate=60/s");
    struct sim *sim = fixture_run(&fixture);

    /* M/M/1: s / (1 - load). */
    assert_near(fixture_response_ms(sim, 0), 10 / (1 - 0.6), 0.03);
    assert_near(fixture_per_s(&fixture, sim, 0), 60, 0.01);
    assert_near(sim_utilisation(sim), 0.6, 0.01);
    sim_destroy(sim);
}

static void waiting_before_the_array_is_metered_apart(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "fifo", 1, 20000);
    fixture.config.array.service =
        (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = 10 * NS_PER_MS};
    fixture_flow(&fixture, "rate=50/s");
    struct sim *sim = fixture_run(&fixture);
    const struct sim_meter *meter = sim_flow_meter(sim, 0);

    /* M/D/1: wait = load / (1 - load) * s / 2, and all of it is spent in the scheduler. */
    assert_near(meter->wait_ns / (double)meter->completed / 1e6, 5, 0.03);
    assert_near(fixture_response_ms(sim, 0), 15, 0.02);
    sim_destroy(sim);
}

static void clients_of_a_closed_loop_think(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "sfqd", 16, 100);
    fixture.config.array.service =
        (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = 10 * NS_PER_MS};
    fixture.config.array.spread = ARRAY_SPREAD_SHORTEST;
    fixture_flow(&fixture, "concurrency=4,think=30ms,start=1s");
    struct sim *sim = fixture_run(&fixture);

    /* Four clients never meet on four disks: 40 ms a round, from 1 s on. */
    assert_int_equal(sim_flow_meter(sim, 0)->completed, 4 * 99000 / 40);
    assert_int_equal(sim_flow_meter(sim, 0)->response.max, 10 * NS_PER_MS);
    sim_destroy(sim);
}

static void the_same_run_twice(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "sfqd", 8, 50);
    fixture_flow(&fixture, "name=f,rate=300/s,weight=2");
    fixture_flow(&fixture, "name=g,rate=200/s,on=1s,off=1s");
    struct sim *whole = fixture_run(&fixture);
    struct sim *steps = sim_create(&fixture.config);

    for (uint64_t t_ns = 0; t_ns <= fixture.config.end_ns; t_ns += 77 * NS_PER_MS)
        sim_advance(steps, t_ns);
    sim_advance(steps, fixture.config.end_ns);
    for (uint32_t i = 0; i < 2; i++)
        assert_memory_equal(sim_flow_meter(whole, i), sim_flow_meter(steps, i),
                            sizeof(struct sim_meter));
    assert_int_equal(sim_events(whole), sim_events(steps));

    /* Another algorithm gets the same requests, another seed does not. */
    fixture.config.sched.algorithm = SCHED_ALGORITHM_FIFO;
    struct sim *fifo = fixture_run(&fixture);

    fixture.config.seed++;
    struct sim *other = fixture_run(&fixture);

    assert_int_equal(sim_flow_meter(whole, 0)->offered, sim_flow_meter(fifo, 0)->offered);
    assert_true(sim_flow_meter(whole, 0)->response.sum != sim_flow_meter(fifo, 0)->response.sum);
    assert_true(sim_flow_meter(fifo, 0)->response.sum != sim_flow_meter(other, 0)->response.sum);
    sim_destroy(whole);
    sim_destroy(steps);
    sim_destroy(fifo);
    sim_destroy(other);
}

/* Of the first flow; both series have the same length. */
static size_t intervals_with_other_arrivals(const struct sim *a, const struct sim *b)
{
    size_t count;
    size_t different = 0;
    const struct sim_interval *of_a = sim_flow_series(a, 0, &count);
    const struct sim_interval *of_b = sim_flow_series(b, 0, &count);

    for (size_t i = 0; i < count; i++)
        different += of_a[i].offered != of_b[i].offered;
    return different;
}

static void each_flow_draws_for_itself(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "fifo", 1000000, 100);
    fixture.config.array.disks = 1000;
    fixture.config.interval_ns = NS_PER_S;
    fixture_flow(&fixture, "name=f,rate=100/s");
    fixture_flow(&fixture, "name=g,rate=100/s");
    struct sim *both = fixture_run(&fixture);

    assert_true(sim_flow_meter(both, 0)->response.sum != sim_flow_meter(both, 1)->response.sum);
    assert_true(sim_flow_meter(both, 0)->offered != sim_flow_meter(both, 1)->offered);

    /* A neighbour's rate changes nothing of what f asks for. */
    fixture.flows[1].arrival.rate_per_s = 30;
    struct sim *other = fixture_run(&fixture);

    assert_int_equal(sim_flow_meter(both, 0)->offered, sim_flow_meter(other, 0)->offered);

    /* Arrivals depend on the seed, and so do service times where nothing else is drawn. */
    fixture.config.seed++;
    struct sim *reseeded = fixture_run(&fixture);

    assert_true(intervals_with_other_arrivals(other, reseeded) > 50);
    fixture.config.flow_count = 1;
    fixture.flows[0].arrival.gaps = ARRIVAL_CONSTANT;
    struct sim *one = fixture_run(&fixture);

    fixture.config.seed++;
    struct sim *two = fixture_run(&fixture);

    assert_true(sim_flow_meter(one, 0)->response.sum != sim_flow_meter(two, 0)->response.sum);
    sim_destroy(both);
    sim_destroy(other);
    sim_destroy(reseeded);
    sim_destroy(one);
    sim_destroy(two);
}

static void everything_offered_is_somewhere(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "sfqd", 8, 100);
    fixture.config.sched.flow_queue_limit = 10;
    fixture_flow(&fixture, "name=f,rate=800/s,start=3s,stop=90s");
    fixture_flow(&fixture, "name=g,concurrency=40,pause=20ms");
    struct sim *sim = fixture_run(&fixture);

    for (uint32_t i = 0; i < 2; i++) {
        const struct sim_meter *meter = sim_flow_meter(sim, i);

        assert_true(meter->refused > 0);
        assert_int_equal(meter->offered,
                         meter->refused + meter->completed + sim_flow_waiting(sim, i));
    }
    assert_near((double)sim_flow_meter(sim, 0)->offered, 800 * 87, 0.02);
    assert_int_equal(sim_flow_waiting(sim, 0), 0);
    sim_destroy(sim);
}

static void the_series_adds_up(void **state)
{
    struct fixture fixture;
    uint64_t offered = 0;
    uint64_t completed = 0;
    double response_ns = 0;
    size_t count;

    (void)state;
    fixture_init(&fixture, "sfqd", 8, 60);
    fixture.config.interval_ns = NS_PER_S;
    fixture_flow(&fixture, "rate=300/s,on=10s,off=10s");
    struct sim *sim = fixture_run(&fixture);
    const struct sim_interval *series = sim_flow_series(sim, 0, &count);
    const struct sim_meter *meter = sim_flow_meter(sim, 0);

    assert_int_equal(count, 60);
    for (size_t i = 0; i < count; i++) {
        assert_true(i / 10 % 2 == 0 ? series[i].offered > 200 : series[i].offered == 0);
        offered += series[i].offered;
        completed += series[i].completed;
        response_ns += series[i].response_ns;
        assert_int_equal(offered, completed + series[i].waiting + series[i].outstanding);
    }
    assert_int_equal(offered, meter->offered);
    assert_int_equal(completed, meter->completed);
    assert_near(response_ns, meter->response.sum, 1e-9);
    sim_destroy(sim);
}

static void warm_up_is_not_metered(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "sfqd", 8, 100);
    fixture.config.warmup_ns = 60 * NS_PER_S;
    fixture_flow(&fixture, "rate=100/s,arrival=constant");
    struct sim *sim = fixture_run(&fixture);

    assert_int_equal(sim_requests(sim), 9999);
    assert_int_equal(sim_flow_meter(sim, 0)->offered, 4000);
    sim_destroy(sim);
}

static void time_alone_wakes_a_leaky_bucket(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "leaky-bucket", 16, 100);
    fixture_flow(&fixture, "concurrency=4,limit=50/s");
    struct sim *sim = fixture_run(&fixture);

    assert_near(fixture_per_s(&fixture, sim, 0), 50, 0.01);
    sim_destroy(sim);
}

static void a_burst_comes_at_once(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "leaky-bucket", 1000, 10);
    fixture.config.array.service =
        (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = NS_PER_MS};
    fixture_flow(&fixture, "name=plain,concurrency=100,limit=10/s,think=1h");
    fixture_flow(&fixture, "name=bursty,concurrency=100,limit=10/s,burst=20,think=1h");
    struct sim *sim = sim_create(&fixture.config);

    sim_advance(sim, 50 * NS_PER_MS);
    assert_int_equal(sim_flow_meter(sim, 0)->completed, 1);
    assert_int_equal(sim_flow_meter(sim, 1)->completed, 21);
    sim_destroy(sim);
}

static void a_near_deadline_goes_first(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "edf", 4, 100);
    fixture_flow(&fixture, "name=patient,rate=150/s,deadline=1s");
    fixture_flow(&fixture, "name=urgent,rate=150/s,deadline=10ms");
    struct sim *sim = fixture_run(&fixture);

    assert_true(fixture_response_ms(sim, 1) < 0.5 * fixture_response_ms(sim, 0));
    sim_destroy(sim);
}

static void mclock_reserves_and_limits(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "mclock", 16, 200);
    fixture_flow(&fixture, "name=capped,concurrency=20,weight=10,limit=60/s");
    fixture_flow(&fixture, "name=promised,concurrency=20,reservation=200/s");
    fixture_flow(&fixture, "name=rest,concurrency=20,weight=9");
    struct sim *sim = fixture_run(&fixture);

    assert_near(fixture_per_s(&fixture, sim, 0), 60, 0.03);
    assert_true(fixture_per_s(&fixture, sim, 1) >= 199);
    assert_near(fixture_per_s(&fixture, sim, 0) + fixture_per_s(&fixture, sim, 1) +
                    fixture_per_s(&fixture, sim, 2),
                502.7, 0.02);
    sim_destroy(sim);
}

static void shares_follow_a_weight_changed_on_the_way(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "sfqd", 16, 200);
    fixture.config.warmup_ns = 100 * NS_PER_S;
    fixture_flow(&fixture, "name=f,concurrency=50,weight=1");
    fixture_flow(&fixture, "name=g,concurrency=50,weight=1");
    struct sim *sim = sim_create(&fixture.config);

    sim_advance(sim, 100 * NS_PER_S);
    assert_int_equal(sched_flow_set_weight(sim_sched(sim), sim_sched_flow(sim, 0), 3), 0);
    sim_advance(sim, 200 * NS_PER_S);
    assert_near(fixture_per_s(&fixture, sim, 0) / fixture_per_s(&fixture, sim, 1), 3, 0.01);
    sim_destroy(sim);
}

static void costly_requests_take_longer_and_are_charged(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "sfqd", 16, 2000);
    fixture_flow(&fixture, "name=large,concurrency=50,cost=5");
    fixture_flow(&fixture, "name=small,concurrency=50");
    struct sim *sim = fixture_run(&fixture);

    assert_near(fixture_per_s(&fixture, sim, 1) / fixture_per_s(&fixture, sim, 0), 5, 0.01);
    sim_destroy(sim);
}

static void what_sched_refuses_is_an_error(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, "sfqd", 16, 1);
    fixture_flow(&fixture, "rate=1/s");
    fixture.flows[0].weight = 0;
    errno = 0;
    assert_null(sim_create(&fixture.config));
    assert_int_equal(errno, EINVAL);

    fixture.flows[0].weight = 1;
    fixture.config.sched.algorithm = (enum sched_algorithm)99;
    errno = 0;
    assert_null(sim_create(&fixture.config));
    assert_int_equal(errno, EINVAL);
    sim_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_queue_waits_as_theory_says),
        cmocka_unit_test(waiting_before_the_array_is_metered_apart),
        cmocka_unit_test(clients_of_a_closed_loop_think),
        cmocka_unit_test(the_same_run_twice),
        cmocka_unit_test(each_flow_draws_for_itself),
        cmocka_unit_test(everything_offered_is_somewhere),
        cmocka_unit_test(the_series_adds_up),
        cmocka_unit_test(warm_up_is_not_metered),
        cmocka_unit_test(time_alone_wakes_a_leaky_bucket),
        cmocka_unit_test(a_burst_comes_at_once),
        cmocka_unit_test(a_near_deadline_goes_first),
        cmocka_unit_test(mclock_reserves_and_limits),
        cmocka_unit_test(shares_follow_a_weight_changed_on_the_way),
        cmocka_unit_test(costly_requests_take_longer_and_are_charged),
        cmocka_unit_test(what_sched_refuses_is_an_error),
    };

    print_message("seed %llu (SPILLWAY_TEST_SEED)\n", (unsigned long long)fixture_seed());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
