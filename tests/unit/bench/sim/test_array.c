/* SPDX-License-Identifier: Apache-2.0 */
/* The disk array: its queues, where jobs go, what a seek costs, and the throughput known for it. */
#include "tests/unit/bench/sim/fixture.h"

#define JOBS 64

static struct events events;
static struct array array;
static struct array_stream stream;
static struct array_job jobs[JOBS];
static size_t done_order[JOBS];
static uint64_t done_ns[JOBS];
static size_t done_count;

static void record(void *owner, struct array_job *job)
{
    assert_ptr_equal(owner, &array);
    assert_true(done_count < JOBS);
    done_order[done_count] = (size_t)(job - jobs);
    done_ns[done_count++] = events.now_ns;
}

static void begin(const struct array_config *config, bool sequential)
{
    memset(&events, 0, sizeof(events));
    done_count = 0;
    array_init(&array, config, &events, record, &array);
    array_stream_init(&stream, &array, sequential, fixture_seed(), 7);
}

static void end(void)
{
    array_stream_fini(&stream);
    array_fini(&array);
    events_fini(&events);
}

static void submit(size_t count, uint64_t units)
{
    for (size_t i = 0; i < count; i++) {
        array_job_init(&array, &jobs[i], &stream, units);
        array_submit(&array, &jobs[i]);
    }
}

static void one_disk_serves_in_order(void **state)
{
    struct array_config config = {.disks = 1, .service = {.kind = DISTRIBUTION_FIXED, .mean = 100}};

    (void)state;
    begin(&config, false);
    submit(3, 2);
    assert_int_equal(array.disks[0].jobs, 3);
    events_run_until(&events, 500);
    assert_int_equal(done_count, 2);
    assert_near(array_utilisation(&array), 1, 1e-9);
    events_run_until(&events, 1200);
    assert_int_equal(done_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(done_order[i], i);
        assert_int_equal(done_ns[i], 200 * (i + 1));
    }
    assert_near(array_utilisation(&array), 0.5, 1e-9);
    end();
}

static void the_shortest_queue_is_taken(void **state)
{
    struct array_config config = {.disks = 4,
                                  .service = {.kind = DISTRIBUTION_FIXED, .mean = 100},
                                  .spread = ARRAY_SPREAD_SHORTEST};

    (void)state;
    begin(&config, false);
    submit(6, 1);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(jobs[i].disk, i % 4);
    end();
}

static void random_jobs_reach_every_disk(void **state)
{
    struct array_config config = {.disks = 4, .service = {.kind = DISTRIBUTION_FIXED, .mean = 100}};
    uint32_t hits[4] = {0};
    struct array_job job;

    (void)state;
    begin(&config, false);
    for (int i = 0; i < 40000; i++) {
        array_job_init(&array, &job, &stream, 1);
        hits[job.disk]++;
    }
    for (int i = 0; i < 4; i++)
        assert_near(hits[i], 10000, 0.05);
    end();
}

static void a_sequential_stream_is_striped(void **state)
{
    struct array_config config = {.disks = 3, .service = {.kind = DISTRIBUTION_FIXED, .mean = 100}};

    (void)state;
    begin(&config, true);
    submit(7, 1);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(jobs[i].disk, i % 3);
        assert_int_equal(jobs[i].block, i / 3);
    }
    end();
}

/* Mean service time, in parts of the configured one, of jobs served one after the other. */
static double mean_service(double seek_share, bool sequential)
{
    struct array_config config = {.disks = 4,
                                  .service = {.kind = DISTRIBUTION_FIXED, .mean = 1000000},
                                  .seek_share = seek_share};

    begin(&config, sequential);
    for (int i = 0; i < 20000; i++) {
        done_count = 0;
        submit(1, 1);
        events_run_until(&events, event_time_ns(&array.disks[jobs[0].disk].done));
    }
    double mean = (double)events.now_ns / 20000 / 1e6;

    end();
    return mean;
}

static void near_blocks_are_cheaper(void **state)
{
    (void)state;
    assert_near(mean_service(0, false), 1, 1e-9);
    assert_near(mean_service(0, true), 1, 1e-9);
    assert_near(mean_service(0.6, false), 1, 0.02);
    assert_near(mean_service(0.6, true), 0.4, 0.01);
}

static void throughput_is_that_of_the_closed_network(void **state)
{
    static const uint64_t depths[] = {1, 4, 16, 64};

    (void)state;
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        struct fixture fixture;
        double depth = (double)depths[i];

        fixture_init(&fixture, "fifo", depths[i], 2000);
        fixture_flow(&fixture, "concurrency=64");
        struct sim *sim = fixture_run(&fixture);

        assert_near(fixture_per_s(&fixture, sim, 0), 4 / 6.7e-3 * depth / (depth + 3), 0.01);
        assert_near(sim_utilisation(sim), depth / (depth + 3), 0.01);
        sim_destroy(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_disk_serves_in_order),
        cmocka_unit_test(the_shortest_queue_is_taken),
        cmocka_unit_test(random_jobs_reach_every_disk),
        cmocka_unit_test(a_sequential_stream_is_striped),
        cmocka_unit_test(near_blocks_are_cheaper),
        cmocka_unit_test(throughput_is_that_of_the_closed_network),
    };

    print_message("seed %llu (SPILLWAY_TEST_SEED)\n", (unsigned long long)fixture_seed());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
