/* SPDX-License-Identifier: Apache-2.0 */
/* The timer wheel, by exact cases: when a timer fires, what callbacks may do, when to run next. */
#include "proxy/core/container_of.h"
#include "proxy/io/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_NS (UINT64_C(1000) * WHEEL_TICK_NS)

struct probe {
    struct timer timer;
    unsigned fired;
    uint64_t fired_ns;
    struct timer_wheel *wheel;
    struct probe *other; /* unlinked when this one fires */
    uint64_t again_ns;   /* set for this when it fires, once */
};

static void on_fire(struct timer *timer, uint64_t now_ns)
{
    struct probe *probe = container_of(timer, struct probe, timer);

    probe->fired++;
    probe->fired_ns = now_ns;
    if (probe->other != NULL)
        timer_unlink(&probe->other->timer);
    if (probe->again_ns != 0) {
        timer_set(probe->wheel, timer, probe->again_ns);
        probe->again_ns = 0;
    }
}

static struct timer_wheel *new_wheel(void)
{
    struct timer_wheel *wheel = malloc(sizeof(*wheel));

    assert_non_null(wheel);
    timer_wheel_init(wheel, START_NS);
    return wheel;
}

static struct probe new_probe(struct timer_wheel *wheel)
{
    struct probe probe = {.wheel = wheel};

    timer_init(&probe.timer, on_fire);
    return probe;
}

static void an_empty_wheel_asks_for_nothing(void **state)
{
    struct timer_wheel *wheel = new_wheel();

    (void)state;
    assert_true(timer_wheel_next_ns(wheel) == UINT64_MAX);
    timer_wheel_run(wheel, START_NS + 100 * WHEEL_TICK_NS);
    assert_true(timer_wheel_next_ns(wheel) == UINT64_MAX);
    free(wheel);
}

static void fires_once_not_early_and_at_most_two_ticks_late(void **state)
{
    static const uint64_t delays_ns[] = {
        1,
        WHEEL_TICK_NS - 1,
        WHEEL_TICK_NS,
        WHEEL_TICK_NS + 1,
        10 * WHEEL_TICK_NS + 5,
        (WHEEL_SLOTS - 1) * WHEEL_TICK_NS,
        (uint64_t)WHEEL_SLOTS * WHEEL_TICK_NS,
        3 * (uint64_t)WHEEL_SLOTS * WHEEL_TICK_NS + 7,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(delays_ns) / sizeof(delays_ns[0]); i++) {
        struct timer_wheel *wheel = new_wheel();
        struct probe probe = new_probe(wheel);
        uint64_t deadline_ns = START_NS + delays_ns[i];
        uint64_t now_ns = START_NS;

        timer_set(wheel, &probe.timer, deadline_ns);
        while (probe.fired == 0) {
            now_ns += WHEEL_TICK_NS;
            timer_wheel_run(wheel, now_ns);
            assert_true(now_ns <= deadline_ns + 2 * WHEEL_TICK_NS);
        }
        assert_true(probe.fired_ns >= deadline_ns);
        timer_wheel_run(wheel, now_ns + 2 * (uint64_t)WHEEL_SLOTS * WHEEL_TICK_NS);
        assert_int_equal(probe.fired, 1);
        free(wheel);
    }
}

static void a_deadline_moved_later_does_not_fire_at_the_old_one(void **state)
{
    struct timer_wheel *wheel = new_wheel();
    struct probe probe = new_probe(wheel);

    (void)state;
    timer_set(wheel, &probe.timer, START_NS + 5 * WHEEL_TICK_NS);
    timer_set(wheel, &probe.timer, START_NS + 50 * WHEEL_TICK_NS);
    timer_wheel_run(wheel, START_NS + 49 * WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 0);
    timer_wheel_run(wheel, START_NS + 51 * WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 1);
    free(wheel);
}

static void a_deadline_moved_earlier_fires_there(void **state)
{
    struct timer_wheel *wheel = new_wheel();
    struct probe probe = new_probe(wheel);

    (void)state;
    timer_set(wheel, &probe.timer, START_NS + 500 * WHEEL_TICK_NS);
    timer_set(wheel, &probe.timer, START_NS + 5 * WHEEL_TICK_NS);
    timer_wheel_run(wheel, START_NS + 6 * WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 1);
    timer_wheel_run(wheel, START_NS + 600 * WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 1);
    free(wheel);
}

static void cleared_and_unlinked_timers_stay_silent(void **state)
{
    struct timer_wheel *wheel = new_wheel();
    struct probe cleared = new_probe(wheel);
    struct probe unlinked = new_probe(wheel);
    struct probe set_again = new_probe(wheel);

    (void)state;
    timer_set(wheel, &cleared.timer, START_NS + WHEEL_TICK_NS);
    timer_set(wheel, &unlinked.timer, START_NS + WHEEL_TICK_NS);
    timer_set(wheel, &set_again.timer, START_NS + WHEEL_TICK_NS);
    timer_clear(&cleared.timer);
    timer_unlink(&unlinked.timer);
    timer_unlink(&unlinked.timer);
    timer_clear(&set_again.timer);
    timer_set(wheel, &set_again.timer, START_NS + 2 * WHEEL_TICK_NS);
    timer_wheel_run(wheel, START_NS + 10 * WHEEL_TICK_NS);
    assert_int_equal(cleared.fired, 0);
    assert_int_equal(unlinked.fired, 0);
    assert_int_equal(set_again.fired, 1);
    assert_true(timer_wheel_next_ns(wheel) == UINT64_MAX);
    free(wheel);
}

static void a_callback_may_unlink_a_timer_that_is_due_as_well(void **state)
{
    struct timer_wheel *wheel = new_wheel();
    struct probe first = new_probe(wheel);
    struct probe second = new_probe(wheel);

    (void)state;
    first.other = &second;
    second.other = &first;
    timer_set(wheel, &first.timer, START_NS + WHEEL_TICK_NS);
    timer_set(wheel, &second.timer, START_NS + WHEEL_TICK_NS);
    timer_wheel_run(wheel, START_NS + 3 * WHEEL_TICK_NS);
    assert_int_equal(first.fired + second.fired, 1);
    free(wheel);
}

static void a_callback_may_set_its_own_timer_again(void **state)
{
    struct timer_wheel *wheel = new_wheel();
    struct probe probe = new_probe(wheel);

    (void)state;
    probe.again_ns = START_NS + 20 * WHEEL_TICK_NS;
    timer_set(wheel, &probe.timer, START_NS + WHEEL_TICK_NS);
    timer_wheel_run(wheel, START_NS + 2 * WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 1);
    timer_wheel_run(wheel, START_NS + 19 * WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 1);
    timer_wheel_run(wheel, START_NS + 21 * WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 2);
    free(wheel);
}

static void a_deadline_in_the_past_fires_with_the_next_tick(void **state)
{
    struct timer_wheel *wheel = new_wheel();
    struct probe probe = new_probe(wheel);

    (void)state;
    timer_set(wheel, &probe.timer, START_NS - 5 * WHEEL_TICK_NS);
    timer_wheel_run(wheel, START_NS + WHEEL_TICK_NS);
    assert_int_equal(probe.fired, 1);
    free(wheel);
}

static void a_long_pause_fires_everything_that_is_due(void **state)
{
    struct timer_wheel *wheel = new_wheel();
    struct probe near = new_probe(wheel);
    struct probe far = new_probe(wheel);
    struct probe later = new_probe(wheel);
    uint64_t now_ns = START_NS + 10 * (uint64_t)WHEEL_SLOTS * WHEEL_TICK_NS;

    (void)state;
    timer_set(wheel, &near.timer, START_NS + 3 * WHEEL_TICK_NS);
    timer_set(wheel, &far.timer, START_NS + (WHEEL_SLOTS - 2) * WHEEL_TICK_NS);
    timer_set(wheel, &later.timer, now_ns + 4 * WHEEL_TICK_NS);
    timer_wheel_run(wheel, now_ns);
    assert_int_equal(near.fired, 1);
    assert_int_equal(far.fired, 1);
    assert_int_equal(later.fired, 0);
    timer_wheel_run(wheel, now_ns + 5 * WHEEL_TICK_NS);
    assert_int_equal(later.fired, 1);
    free(wheel);
}

static void the_next_run_is_never_asked_for_too_late(void **state)
{
    (void)state;
    /* Every place of the wheel, so that each word of its map comes first once. */
    for (unsigned offset = 0; offset < WHEEL_SLOTS; offset += 61) {
        struct timer_wheel *wheel = malloc(sizeof(*wheel));
        assert_non_null(wheel);
        timer_wheel_init(wheel, START_NS + offset * WHEEL_TICK_NS);
        struct probe probe = new_probe(wheel);
        for (unsigned ticks = 1; ticks < WHEEL_SLOTS; ticks += 97) {
            uint64_t deadline_ns = START_NS + (offset + ticks) * WHEEL_TICK_NS;
            timer_set(wheel, &probe.timer, deadline_ns);
            assert_true(timer_wheel_next_ns(wheel) == deadline_ns);
            timer_unlink(&probe.timer);
            assert_true(timer_wheel_next_ns(wheel) == UINT64_MAX);
        }
        free(wheel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_wheel_asks_for_nothing),
        cmocka_unit_test(fires_once_not_early_and_at_most_two_ticks_late),
        cmocka_unit_test(a_deadline_moved_later_does_not_fire_at_the_old_one),
        cmocka_unit_test(a_deadline_moved_earlier_fires_there),
        cmocka_unit_test(cleared_and_unlinked_timers_stay_silent),
        cmocka_unit_test(a_callback_may_unlink_a_timer_that_is_due_as_well),
        cmocka_unit_test(a_callback_may_set_its_own_timer_again),
        cmocka_unit_test(a_deadline_in_the_past_fires_with_the_next_tick),
        cmocka_unit_test(a_long_pause_fires_everything_that_is_due),
        cmocka_unit_test(the_next_run_is_never_asked_for_too_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
