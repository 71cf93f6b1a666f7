/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules and stalls: their text, and in virtual time what they do to a service, to the
 * nanosecond, whoever is late. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/origin/service/timeline.h"

#define MS   1000000ULL
#define S    (1000 * MS)
#define JOBS 2000

static struct service service;
static struct timeline timeline;
static struct service_job jobs[JOBS];
static int done_count;

static void job_done(struct service_job *job)
{
    (void)job;
    done_count++;
}

static void begin(uint32_t slots, uint64_t mean_ns)
{
    struct distribution time = {.kind = DISTRIBUTION_FIXED, .mean = mean_ns};

    service_init(&service, slots, &time, 7);
    timeline_init(&timeline, &service);
    done_count = 0;
    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < JOBS; i++)
        jobs[i].done = job_done;
}

static int end(void **state)
{
    (void)state;
    service_fini(&service);
    return 0;
}

static void set_schedule(const char *text, uint64_t now_ns)
{
    struct schedule schedule;

    assert_int_equal(schedule_read(text, &schedule), 0);
    timeline_set_schedule(&timeline, &schedule, now_ns);
}

static void set_stalls(const char *text, uint64_t now_ns)
{
    struct stalls stalls;

    assert_int_equal(stalls_read(text, &stalls), 0);
    timeline_set_stalls(&timeline, &stalls, now_ns);
}

static void submit(int count, uint64_t now_ns)
{
    for (int i = 0; i < count; i++)
        service_submit(&service, &jobs[i], now_ns);
}

static void schedules_are_read(void **state)
{
    struct schedule schedule;

    (void)state;
    assert_int_equal(schedule_read("100%:10s 50%:500ms,3:1m  400/s", &schedule), 0);
    assert_int_equal(schedule.count, 4);
    assert_false(schedule.repeat);
    assert_int_equal(schedule.steps[0].kind, CAPACITY_SHARE);
    assert_int_equal(schedule.steps[0].length_ns, 10 * S);
    assert_true(schedule.steps[1].value == 0.5);
    assert_int_equal(schedule.steps[2].kind, CAPACITY_SLOTS);
    assert_true(schedule.steps[2].value == 3);
    assert_int_equal(schedule.steps[3].kind, CAPACITY_RATE);
    assert_true(schedule.steps[3].value == 400);
    assert_int_equal(schedule.steps[3].length_ns, UINT64_MAX);
    assert_int_equal(schedule_read("8:1s 2:1s repeat", &schedule), 0);
    assert_int_equal(schedule.count, 2);
    assert_true(schedule.repeat);
    assert_int_equal(schedule.steps[1].length_ns, S);
    assert_int_equal(schedule_read("none", &schedule), 0);
    assert_int_equal(schedule.count, 0);
}

static void wrong_schedules_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "x",
        "50%:10",
        "50:0s",
        "50%:1ns 25%:1ns repeat",
        "50%:999us 25%:1ms repeat",
        "50% 20%:1s",
        "repeat",
        "8:1s 2 repeat",
        "8:1s repeat 2:1s",
        "-1:1s",
        "0/s:1s",
        "1e99%:1s",
        "8:1s:1s",
        "8:1s extra",
        "%:1s",
        ":1s",
        "a-word-that-is-far-longer-than-any-step-of-a-schedule-could-ever-be-in-earnest:1s"};
    struct schedule schedule = {.count = 17};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        if (schedule_read(wrong[i], &schedule) != -EINVAL)
            fail_msg("'%s' was taken", wrong[i]);
    }
    assert_int_equal(schedule.count, 17);
}

static void stalls_are_read(void **state)
{
    static const char *const wrong[] = {"",
                                        "every=1s",
                                        "for=1s",
                                        "every=1s,for=1s",
                                        "every=1s,for=2s",
                                        "every=1s,for=0",
                                        "every=1,for=1ms",
                                        "every=2ns,for=1ns",
                                        "every=999us,for=1us",
                                        "odd=1s,for=1ms"};
    struct stalls stalls;

    (void)state;
    assert_int_equal(stalls_read("every=10s,for=500ms", &stalls), 0);
    assert_int_equal(stalls.every_ns, 10 * S);
    assert_int_equal(stalls.length_ns, 500 * MS);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        if (stalls_read(wrong[i], &stalls) != -EINVAL)
            fail_msg("'%s' was taken", wrong[i]);
    }
    assert_int_equal(stalls_read("none", &stalls), 0);
    assert_int_equal(stalls.every_ns, 0);
}

static void slots_change_at_their_times_however_late_the_caller(void **state)
{
    (void)state;
    begin(10, 10 * MS);
    set_schedule("100%:1s 50%:1s 20%:1s 100%", 0);
    submit(JOBS, 0);
    /* Asked only at the very end: 1000 jobs in the first second, 500, 200, then the rest. */
    timeline_advance(&timeline, 3 * S);
    assert_int_equal(done_count, 1700);
    assert_int_equal(service.slots, 10);
    timeline_advance(&timeline, 3 * S + 300 * MS);
    assert_int_equal(done_count, 2000);
    assert_int_equal(timeline_next_ns(&timeline), UINT64_MAX);
}

static void the_present_capacity_is_the_steps(void **state)
{
    (void)state;
    begin(8, 10 * MS);
    set_schedule("100%:1s 44%:1s 1%:1s 0%:1s 3:1s repeat", 5 * S);
    assert_int_equal(timeline_next_ns(&timeline), 6 * S);
    assert_false(timeline_is_due(&timeline, 6 * S - 1));
    assert_true(timeline_is_due(&timeline, 6 * S));
    static const uint32_t slots[] = {8, 4, 1, 0, 3, 8, 4};

    for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
        timeline_advance(&timeline, 5 * S + i * S);
        assert_int_equal(service.slots, slots[i]);
        timeline_advance(&timeline, 6 * S + i * S - 1);
        assert_int_equal(service.slots, slots[i]);
    }
    /* New slots are what shares are of, at once. */
    timeline_set_slots(&timeline, 100, 12 * S - 1);
    assert_int_equal(service.slots, 44);
    set_schedule("none", 12 * S - 1);
    assert_int_equal(service.slots, 100);
}

static void rates_scale_the_service_times(void **state)
{
    (void)state;
    begin(4, 10 * MS);
    set_schedule("100/s:1s 200/s:1s 400/s", 0);
    submit(JOBS, 0);
    timeline_advance(&timeline, S);
    assert_int_equal(done_count, 100);
    timeline_advance(&timeline, 2 * S);
    /* Those that ran at the change kept their 40 ms. */
    assert_in_range(done_count, 296, 300);
    int before = done_count;

    timeline_advance(&timeline, 3 * S);
    assert_in_range(done_count - before, 396, 400);
    /* The rate stays when the time changes. */
    struct distribution time = {.kind = DISTRIBUTION_FIXED, .mean = 20 * MS};

    timeline_set_time(&timeline, &time, 3 * S);
    before = done_count;
    timeline_advance(&timeline, 4 * S);
    assert_in_range(done_count - before, 396, 404);
}

static void a_stall_freezes_what_runs_and_what_waits(void **state)
{
    (void)state;
    begin(1, 10 * MS);
    set_stalls("every=100ms,for=50ms", 0);
    submit(40, 0);
    /* 100 ms of work in each 100 ms but for 50 ms: the tenth job ends as the stall begins. */
    timeline_advance(&timeline, 149 * MS);
    assert_int_equal(done_count, 10);
    timeline_advance(&timeline, 160 * MS - 1);
    assert_int_equal(done_count, 10);
    timeline_advance(&timeline, 160 * MS);
    assert_int_equal(done_count, 11);
    /* The second stall is from 200 to 250 ms. */
    timeline_advance(&timeline, 249 * MS);
    assert_int_equal(done_count, 15);
    timeline_advance(&timeline, 260 * MS);
    assert_int_equal(done_count, 16);
    set_stalls("none", 260 * MS);
    timeline_advance(&timeline, 500 * MS);
    assert_int_equal(done_count, 40);
}

static void a_stall_cuts_a_job_in_two(void **state)
{
    (void)state;
    begin(2, 30 * MS);
    set_stalls("every=100ms,for=40ms", 0);
    submit(1, 90 * MS);
    timeline_advance(&timeline, 110 * MS);
    service_submit(&service, &jobs[1], 110 * MS);
    assert_int_equal(service.stalled_ns, 140 * MS);
    /* 10 ms before the stall, 20 ms after it; the second one starts with its end. */
    timeline_advance(&timeline, 160 * MS - 1);
    assert_int_equal(done_count, 0);
    timeline_advance(&timeline, 160 * MS);
    assert_int_equal(done_count, 1);
    timeline_advance(&timeline, 170 * MS - 1);
    assert_int_equal(done_count, 1);
    timeline_advance(&timeline, 170 * MS);
    assert_int_equal(done_count, 2);
}

static void without_service_time_a_stall_still_stops_all(void **state)
{
    (void)state;
    begin(2, 0);
    set_stalls("every=100ms,for=40ms", 0);
    assert_true(service_submit(&service, &jobs[0], 50 * MS));
    timeline_advance(&timeline, 100 * MS);
    for (int i = 1; i <= 5; i++)
        assert_false(service_submit(&service, &jobs[i], 110 * MS));
    timeline_advance(&timeline, 140 * MS - 1);
    assert_int_equal(done_count, 0);
    timeline_advance(&timeline, 140 * MS);
    assert_int_equal(done_count, 5);
    assert_true(service_is_immediate(&service, 140 * MS));
}

static int handed_over;

static void hand_over(struct service *of, struct service_job *job)
{
    (void)of;
    (void)job;
    handed_over++;
}

static void work_keeps_its_slot_until_it_is_finished(void **state)
{
    (void)state;
    begin(2, 10 * MS);
    handed_over = 0;
    service.hand_over = hand_over;
    service.burn = true;
    submit(4, 0);
    assert_int_equal(handed_over, 2);
    assert_int_equal(jobs[0].burn_ns, 10 * MS);
    assert_int_equal(timeline_next_ns(&timeline), UINT64_MAX);
    timeline_advance(&timeline, S);
    assert_int_equal(done_count, 0);
    service_finish(&service, &jobs[1], S);
    assert_int_equal(done_count, 1);
    assert_int_equal(handed_over, 3);
    assert_int_equal(service.counters.busy_ns, S);
    /* What ends in a stall is held back to its end. */
    service_stall(&service, 2 * S, S);
    service_finish(&service, &jobs[0], S + 500 * MS);
    assert_int_equal(done_count, 1);
    assert_int_equal(timeline_next_ns(&timeline), 2 * S);
    timeline_advance(&timeline, 2 * S);
    assert_int_equal(done_count, 2);
    assert_int_equal(handed_over, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_read),
        cmocka_unit_test(wrong_schedules_are_refused),
        cmocka_unit_test(stalls_are_read),
        cmocka_unit_test_teardown(slots_change_at_their_times_however_late_the_caller, end),
        cmocka_unit_test_teardown(the_present_capacity_is_the_steps, end),
        cmocka_unit_test_teardown(rates_scale_the_service_times, end),
        cmocka_unit_test_teardown(a_stall_freezes_what_runs_and_what_waits, end),
        cmocka_unit_test_teardown(a_stall_cuts_a_job_in_two, end),
        cmocka_unit_test_teardown(without_service_time_a_stall_still_stops_all, end),
        cmocka_unit_test_teardown(work_keeps_its_slot_until_it_is_finished, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
