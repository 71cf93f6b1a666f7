/* SPDX-License-Identifier: Apache-2.0 */
/* The measured window: what it counts, when it opens and closes, whose processor time it reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/tools/bench_window.h"

#define START_NS   1000u
#define WARM_UP_NS 100u
#define LENGTH_NS  1000u

static struct bench_window window;

static int set_up(void **state)
{
    (void)state;
    bench_window_init(&window);
    window.warm_up_ns = WARM_UP_NS;
    window.duration_ns = LENGTH_NS;
    return 0;
}

static void counts_only_what_completes_while_open(void **state)
{
    (void)state;
    bench_window_start(&window, START_NS);
    assert_true(bench_window_poll(&window, START_NS + WARM_UP_NS - 1));
    assert_int_equal(window.state, BENCH_WINDOW_WARM_UP);
    bench_window_completed(&window, START_NS, START_NS + 10, 128);
    assert_int_equal(window.requests, 0);

    assert_true(bench_window_poll(&window, START_NS + WARM_UP_NS));
    assert_int_equal(window.state, BENCH_WINDOW_OPEN);
    bench_window_completed(&window, START_NS + 50, START_NS + 150, 128);
    bench_window_completed(&window, START_NS + 50, START_NS + 350, 4096);

    assert_false(bench_window_poll(&window, START_NS + WARM_UP_NS + LENGTH_NS));
    assert_int_equal(window.state, BENCH_WINDOW_CLOSED);
    bench_window_completed(&window, START_NS, START_NS + 1200, 128);

    assert_int_equal(window.requests, 2);
    assert_int_equal(window.bytes, 128 + 4096);
    assert_int_equal(window.requests_total, 4);
    assert_int_equal(histogram_quantile(&window.latency_ns, 0.5), 100);
    assert_int_equal(window.latency_ns.max, 300);
}

static void a_late_opening_moves_the_closing(void **state)
{
    (void)state;
    bench_window_start(&window, START_NS);
    assert_true(bench_window_poll(&window, START_NS + 5000));
    assert_int_equal(window.state, BENCH_WINDOW_OPEN);
    assert_true(bench_window_poll(&window, START_NS + 5000 + LENGTH_NS - 1));
    assert_false(bench_window_poll(&window, START_NS + 5000 + LENGTH_NS));
    assert_int_equal(window.closed_ns - window.opened_ns, LENGTH_NS);
}

static void reads_the_watched_process(void **state)
{
    char pid[16];

    (void)state;
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    assert_true(bench_window_option(&window, 'p', pid));
    assert_false(bench_window_option(&window, '?', pid));
    assert_int_equal(window.watched_count, 1);
    bench_window_start(&window, START_NS);
    bench_window_poll(&window, START_NS + WARM_UP_NS);
    bench_window_poll(&window, START_NS + WARM_UP_NS + LENGTH_NS);
    assert_true(window.at_open.processes[0].run_ns > 0);
    assert_true(window.at_close.processes[0].run_ns >= window.at_open.processes[0].run_ns);
    assert_int_equal(window.at_open.core_count, sysconf(_SC_NPROCESSORS_ONLN));
}

static void gives_up_when_everything_fails(void **state)
{
    unsigned failures = 1;

    (void)state;
    while (bench_window_failed(&window))
        failures++;
    assert_int_equal(window.errors, failures);
    assert_int_equal(failures, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counts_only_what_completes_while_open, set_up),
        cmocka_unit_test_setup(a_late_opening_moves_the_closing, set_up),
        cmocka_unit_test_setup(reads_the_watched_process, set_up),
        cmocka_unit_test_setup(gives_up_when_everything_fails, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
