/* SPDX-License-Identifier: Apache-2.0 */
/* CUBIC's window against RFC 9438's formulas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bench/sim/link/cubic.h"

#define NS_PER_S 1e9

/* `rounds` round-trip times, each with a window of acknowledgements spread over it. */
static uint64_t rounds(struct cubic *cubic, int count, uint64_t rtt_ns, uint64_t now_ns)
{
    for (int i = 0; i < count; i++) {
        int acks = (int)cubic->window;

        for (int ack = 0; ack < acks; ack++)
            cubic_acked(cubic, rtt_ns, now_ns + rtt_ns * (uint64_t)ack / (uint64_t)acks);
        now_ns += rtt_ns;
    }
    return now_ns;
}

static void slow_start_doubles(void **state)
{
    struct cubic cubic;

    (void)state;
    cubic_init(&cubic, 10);
    rounds(&cubic, 4, 50000000, 0);
    assert_true(cubic.window == 160);
    cubic_reduce(&cubic, CUBIC_LOSS);
    assert_true(cubic.window == 112);
    assert_true(cubic.threshold == 112);
}

static void reductions_are_as_deep_as_their_reason(void **state)
{
    struct cubic cubic;

    (void)state;
    cubic_init(&cubic, 2);
    cubic_reduce(&cubic, CUBIC_LOSS);
    assert_true(cubic.window == 2);
    cubic_init(&cubic, 2);
    cubic_reduce(&cubic, CUBIC_MARK);
    assert_true(fabs(cubic.window - 1.4) < 1e-9);
    cubic_reduce(&cubic, CUBIC_MARK);
    assert_true(cubic.window == 1);
    assert_true(cubic.threshold == 2);
    cubic_init(&cubic, 100);
    cubic_reduce(&cubic, CUBIC_TIMEOUT);
    assert_true(cubic.window == 1);
    assert_true(cubic.threshold == 70);
}

/* Where a window is falling, W_max is put lower than it was (fast convergence). */
static void a_falling_window_makes_room(void **state)
{
    struct cubic cubic;

    (void)state;
    cubic_init(&cubic, 100);
    cubic_reduce(&cubic, CUBIC_LOSS);
    assert_true(cubic.window_max == 100);
    cubic_reduce(&cubic, CUBIC_LOSS);
    assert_true(fabs(cubic.window_max - 70 * 0.85) < 1e-9);
}

/*
 * A large window over a long path, where the curve and not Reno's line rules: from 0.7 of W_max it
 * is back after K = cbrt(0.3 W_max / 0.4), flat there, and beyond it steepens.
 */
static void the_window_follows_the_curve(void **state)
{
    struct cubic cubic;
    uint64_t rtt_ns = 100000000;
    double most = 1000;
    double inflection_s = cbrt(most * 0.3 / 0.4);

    (void)state;
    cubic_init(&cubic, most);
    cubic_reduce(&cubic, CUBIC_LOSS);
    uint64_t now_ns = 0;

    while ((double)now_ns < 2 * inflection_s * NS_PER_S) {
        now_ns = rounds(&cubic, 1, rtt_ns, now_ns);
        double from_s = (double)now_ns / NS_PER_S - inflection_s;
        double expected = 0.4 * from_s * from_s * from_s + most;

        /* A round's acknowledgements bring it nearly to where the curve is a round later. */
        assert_true(fabs(cubic.window - expected) < 0.02 * expected);
    }
    assert_true(fabs(cubic.inflection_s - inflection_s) < 1e-9);
    assert_true(cubic.window > 1.25 * most);
}

/* A short path: the additive line, 3 (1 - 0.7) / (1 + 0.7) = 0.53 segments per round trip. */
static void a_short_path_is_as_fast_as_reno(void **state)
{
    struct cubic cubic;

    (void)state;
    cubic_init(&cubic, 40);
    cubic_reduce(&cubic, CUBIC_LOSS);
    uint64_t now_ns = rounds(&cubic, 20, 1000000, 0);

    assert_true(fabs(cubic.window - (28 + 20 * 0.9 / 1.7)) < 0.5);
    /* From where it was before, one segment per round trip. */
    while (cubic.window < 41)
        now_ns = rounds(&cubic, 1, 1000000, now_ns);
    double before = cubic.window;

    rounds(&cubic, 10, 1000000, now_ns);
    assert_true(fabs(cubic.window - before - 10) < 0.5);
}

static void after_a_timeout_it_starts_at_its_own_top(void **state)
{
    struct cubic cubic;

    (void)state;
    cubic_init(&cubic, 100);
    cubic_reduce(&cubic, CUBIC_TIMEOUT);
    for (int i = 0; i < 69; i++)
        cubic_acked(&cubic, 50000000, 0);
    assert_true(cubic.window == 70);
    cubic_acked(&cubic, 50000000, 0);
    assert_true(cubic.window_max == 70);
    assert_true(cubic.inflection_s == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_start_doubles),
        cmocka_unit_test(reductions_are_as_deep_as_their_reason),
        cmocka_unit_test(a_falling_window_makes_room),
        cmocka_unit_test(the_window_follows_the_curve),
        cmocka_unit_test(a_short_path_is_as_fast_as_reno),
        cmocka_unit_test(after_a_timeout_it_starts_at_its_own_top),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
