/* SPDX-License-Identifier: Apache-2.0 */
/* The origin's service in virtual time: slots, FIFO, capacity that does not depend on the caller's
 * timers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/origin/service/service.h"

#define MS   1000000ULL
#define JOBS 1000

struct job {
    struct service_job job;
    int number;
};

static struct service service;
static struct job jobs[JOBS];
static int done_order[JOBS];
static int done_count;

static void job_done(struct service_job *job)
{
    done_order[done_count++] = ((struct job *)(void *)job)->number;
}

static void begin(uint32_t slots, enum distribution_kind kind, uint64_t mean_ns)
{
    struct distribution time = {.kind = kind, .mean = mean_ns};

    service_init(&service, slots, &time, 7);
    done_count = 0;
    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < JOBS; i++)
        jobs[i] = (struct job){.job.done = job_done, .number = i};
}

static int end(void **state)
{
    (void)state;
    service_fini(&service);
    return 0;
}

static void jobs_beyond_the_slots_wait_in_order(void **state)
{
    (void)state;
    begin(2, DISTRIBUTION_FIXED, 10 * MS);
    for (int i = 0; i < 5; i++)
        assert_false(service_submit(&service, &jobs[i].job, 0));
    assert_int_equal(service.running_count, 2);
    assert_int_equal(service.waiting_count, 3);
    assert_int_equal(service_next_ns(&service), 10 * MS);
    service_advance(&service, 10 * MS - 1);
    assert_int_equal(done_count, 0);
    service_advance(&service, 10 * MS);
    assert_int_equal(done_count, 2);
    assert_int_equal(service.running_count, 2);
    assert_int_equal(service.waiting_count, 1);
    service_advance(&service, 30 * MS);
    assert_int_equal(done_count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(done_order[i], i);
    assert_int_equal(service_next_ns(&service), UINT64_MAX);
    assert_int_equal(service.counters.submitted, 5);
    assert_int_equal(service.counters.completed, 5);
    assert_int_equal(service.counters.waiting_peak, 3);
    assert_int_equal(service.counters.busy_ns, 50 * MS);
    assert_int_equal(service.counters.wait_ns, (10 + 10 + 20) * MS);
}

static void a_late_caller_costs_no_capacity(void **state)
{
    (void)state;
    begin(1, DISTRIBUTION_FIXED, 10 * MS);
    for (int i = 0; i < 10; i++)
        service_submit(&service, &jobs[i].job, 0);
    /* Nobody looks for 95 ms: nine jobs were done by then, one after the other, and one runs. */
    service_advance(&service, 95 * MS);
    assert_int_equal(done_count, 9);
    assert_int_equal(service_next_ns(&service), 100 * MS);
}

static void a_job_never_starts_before_it_came(void **state)
{
    (void)state;
    begin(1, DISTRIBUTION_FIXED, 10 * MS);
    service_submit(&service, &jobs[0].job, 0);
    /* Submitted after the slot fell free, but before anybody said so. */
    service_submit(&service, &jobs[1].job, 14 * MS);
    service_advance(&service, 15 * MS);
    assert_int_equal(done_count, 1);
    assert_int_equal(service_next_ns(&service), 24 * MS);
    assert_int_equal(service.counters.wait_ns, 0);
}

static void capacity_changes_while_it_runs(void **state)
{
    (void)state;
    begin(4, DISTRIBUTION_FIXED, 10 * MS);
    for (int i = 0; i < 10; i++)
        service_submit(&service, &jobs[i].job, 0);
    service_set_slots(&service, 1, 5 * MS);
    assert_int_equal(service.running_count, 4);
    service_advance(&service, 10 * MS);
    assert_int_equal(done_count, 4);
    assert_int_equal(service.running_count, 1);
    assert_int_equal(service.waiting_count, 5);
    service_set_slots(&service, 3, 12 * MS);
    assert_int_equal(service.running_count, 3);
    assert_int_equal(service_next_ns(&service), 20 * MS);
    service_set_slots(&service, 0, 13 * MS);
    service_advance(&service, 1000 * MS);
    assert_int_equal(done_count, 7);
    assert_int_equal(service.running_count, 0);
    assert_int_equal(service.waiting_count, 3);
    service_set_slots(&service, 8, 1000 * MS);
    service_advance(&service, 1010 * MS);
    assert_int_equal(done_count, 10);
}

static void a_service_time_of_zero_is_done_at_once(void **state)
{
    (void)state;
    begin(1, DISTRIBUTION_EXPONENTIAL, 0);
    assert_true(service_submit(&service, &jobs[0].job, 0));
    assert_int_equal(service.counters.completed, 1);
    assert_int_equal(done_count, 0);
    /* Without a slot even such a job waits. */
    service_set_slots(&service, 0, 0);
    assert_false(service_submit(&service, &jobs[1].job, 0));
    service_set_slots(&service, 1, 5);
    service_advance(&service, 5);
    assert_int_equal(done_count, 1);
}

static void capacity_is_slots_over_mean(void **state)
{
    uint64_t now = 0;

    (void)state;
    begin(8, DISTRIBUTION_EXPONENTIAL, 16 * MS);
    for (int i = 0; i < JOBS; i++)
        service_submit(&service, &jobs[i].job, 0);
    while (done_count < JOBS) {
        now = service_next_ns(&service);
        service_advance(&service, now);
    }
    /* 1000 jobs at 500 per second: 2 s, give or take 3.2 % (one standard error) times five. */
    assert_true(now > 1680 * MS && now < 2320 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(jobs_beyond_the_slots_wait_in_order, end),
        cmocka_unit_test_teardown(a_late_caller_costs_no_capacity, end),
        cmocka_unit_test_teardown(a_job_never_starts_before_it_came, end),
        cmocka_unit_test_teardown(capacity_changes_while_it_runs, end),
        cmocka_unit_test_teardown(a_service_time_of_zero_is_done_at_once, end),
        cmocka_unit_test_teardown(capacity_is_slots_over_mean, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
