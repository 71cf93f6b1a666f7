/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads: every job is carried out once and comes back in the loop's thread; burning takes
 * processor time; the end cuts it short. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "loadgen/origin/service/workers.h"

#define JOBS 1000
#define MS   1000000ULL

struct job {
    struct service_job job;
    int done;
    int finished;
    pthread_t by;
};

static struct loop loop;
static struct workers workers;
static struct job jobs[JOBS];
static int finished_count;
static int expected_count;

static void carry_out(struct service_job *job)
{
    struct job *own = (struct job *)(void *)job;

    own->done++;
    own->by = pthread_self();
}

static void finished(struct workers *of, struct service_job *job)
{
    assert_ptr_equal(of, &workers);
    ((struct job *)(void *)job)->finished++;
    if (++finished_count == expected_count)
        loop_stop(&loop);
}

static int begin(void **state)
{
    (void)state;
    memset(jobs, 0, sizeof(jobs));
    finished_count = 0;
    return loop_init(&loop) || workers_init(&workers, &loop, finished);
}

static int end(void **state)
{
    (void)state;
    workers_fini(&workers);
    loop_fini(&loop);
    return 0;
}

static void every_job_is_done_once_elsewhere(void **state)
{
    (void)state;
    expected_count = JOBS;
    for (int i = 0; i < JOBS; i++) {
        jobs[i].job.work = carry_out;
        assert_int_equal(workers_give(&workers, &jobs[i].job), 0);
    }
    assert_int_equal(loop_run(&loop), 0);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].done, 1);
        assert_int_equal(jobs[i].finished, 1);
        assert_false(pthread_equal(jobs[i].by, pthread_self()));
    }
    assert_in_range(workers.threads_count, 1, WORKERS_MAX);
}

static uint64_t process_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static void burning_takes_processor_time(void **state)
{
    uint64_t before_ns = process_cpu_ns();

    (void)state;
    expected_count = 4;
    for (int i = 0; i < 4; i++) {
        jobs[i].job.burn_ns = 20 * MS;
        assert_int_equal(workers_give(&workers, &jobs[i].job), 0);
    }
    assert_int_equal(loop_run(&loop), 0);
    assert_true(process_cpu_ns() - before_ns >= 80 * MS);
}

static void the_end_does_not_wait_for_what_burns(void **state)
{
    (void)state;
    /* An hour: were it not cut short, the test would not end. The teardown ends it. */
    jobs[0].job.burn_ns = 3600ULL * 1000 * MS;
    assert_int_equal(workers_give(&workers, &jobs[0].job), 0);
    for (unsigned queued = 1; queued > 0;) {
        sched_yield();
        pthread_mutex_lock(&workers.lock);
        queued = workers.queued;
        pthread_mutex_unlock(&workers.lock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_job_is_done_once_elsewhere, begin, end),
        cmocka_unit_test_setup_teardown(burning_takes_processor_time, begin, end),
        cmocka_unit_test_setup_teardown(the_end_does_not_wait_for_what_burns, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
