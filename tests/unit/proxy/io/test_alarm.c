/* SPDX-License-Identifier: Apache-2.0 */
/* Alarms: when they fire and in what order, what callbacks may do, and what is left without
 * descriptors. */
#include "tests/unit/proxy/io/fixture.h"

#include <sys/resource.h>

#define PROBES_MAX 8
#define HOUR_NS    UINT64_C(3600000000000)

struct probe {
    struct alarm alarm;
    struct loop *loop;
    unsigned fired;
    unsigned place; /* among all that fired */
    uint64_t fired_ns;
    unsigned again;      /* how often it sets itself anew, for a time that is past */
    struct probe *other; /* cleared when this one fires */
};

static unsigned fired_in_all;

static void on_fire(struct alarm *alarm, uint64_t now_ns)
{
    struct probe *probe = container_of(alarm, struct probe, alarm);

    assert_true(probe->alarm.deadline_ns == 0);
    probe->fired++;
    probe->place = ++fired_in_all;
    probe->fired_ns = now_ns;
    if (probe->other != NULL)
        alarm_clear(probe->loop, &probe->other->alarm);
    if (probe->again > 0) {
        probe->again--;
        alarm_set(probe->loop, alarm, 1);
    }
}

static void make_probes(struct probe *probes, unsigned count, struct loop *loop)
{
    memset(probes, 0, count * sizeof(*probes));
    fired_in_all = 0;
    for (unsigned i = 0; i < count; i++) {
        probes[i].loop = loop;
        alarm_init(&probes[i].alarm, on_fire);
    }
}

static void no_descriptor_before_the_first_alarm(void **state)
{
    struct loop *loop = *state;
    struct probe probe;

    make_probes(&probe, 1, loop);
    assert_int_equal(loop->alarms.fd, -1);
    alarm_clear(loop, &probe.alarm);
    alarm_set(loop, &probe.alarm, loop_clock_ns() + HOUR_NS);
    assert_int_equal(loop->alarms.fd, -1);
    alarm_set(loop, &probe.alarm, 1);
    assert_true(loop->alarms.fd >= 0);
    alarm_clear(loop, &probe.alarm);
    assert_true(TAILQ_EMPTY(&loop->alarms.list));
}

static void fires_once_and_not_early(void **state)
{
    static const uint64_t delays_ns[] = {
        0, 1, 100000, 1000000, ALARM_SOON_NS - 1, ALARM_SOON_NS + 1, 20 * WHEEL_TICK_NS,
    };
    struct loop *loop = *state;

    for (size_t i = 0; i < sizeof(delays_ns) / sizeof(delays_ns[0]); i++) {
        struct probe probe;
        make_probes(&probe, 1, loop);
        uint64_t deadline_ns = loop_clock_ns() + delays_ns[i];
        alarm_set(loop, &probe.alarm, deadline_ns);
        turn_until(loop, &probe.fired, 1);
        assert_true(probe.fired_ns >= deadline_ns);
        turn(loop);
        assert_int_equal(probe.fired, 1);
    }
}

static void a_past_time_is_the_next_turn(void **state)
{
    struct loop *loop = *state;
    struct probe probe;

    make_probes(&probe, 1, loop);
    alarm_set(loop, &probe.alarm, 1);
    assert_int_equal(probe.fired, 0);
    turn_until(loop, &probe.fired, 1);
    assert_int_equal(probe.fired, 1);
}

/* Set in this order, each for its rank; those of one rank stay in the order of their setting. */
static void all_fire_in_the_order_of_their_times(void **state)
{
    static const unsigned ranks[PROBES_MAX] = {5, 2, 7, 2, 0, 7, 1, 6};
    static const unsigned places[PROBES_MAX] = {5, 3, 7, 4, 1, 8, 2, 6};
    struct loop *loop = *state;
    struct probe probes[PROBES_MAX];
    uint64_t start_ns = loop_clock_ns() + 2000000;

    make_probes(probes, PROBES_MAX, loop);
    for (unsigned i = 0; i < PROBES_MAX; i++)
        alarm_set(loop, &probes[i].alarm, start_ns + ranks[i] * UINT64_C(100000));
    turn_until(loop, &fired_in_all, PROBES_MAX);
    for (unsigned i = 0; i < PROBES_MAX; i++) {
        assert_int_equal(probes[i].fired, 1);
        assert_int_equal(probes[i].place, places[i]);
    }
}

static void an_earlier_one_is_not_held_up_by_a_later_one(void **state)
{
    struct loop *loop = *state;
    struct probe probes[2];

    make_probes(probes, 2, loop);
    alarm_set(loop, &probes[0].alarm, loop_clock_ns() + HOUR_NS);
    alarm_set(loop, &probes[1].alarm, loop_clock_ns() + 1000000);
    turn_until(loop, &probes[1].fired, 1);
    assert_int_equal(probes[0].fired, 0);
    alarm_clear(loop, &probes[0].alarm);
}

static void one_that_is_set_moves_both_ways(void **state)
{
    struct loop *loop = *state;
    struct probe probes[2];
    uint64_t start_ns = loop_clock_ns();

    make_probes(probes, 2, loop);
    alarm_set(loop, &probes[0].alarm, start_ns + HOUR_NS);
    alarm_set(loop, &probes[0].alarm, start_ns + 1000000);
    alarm_set(loop, &probes[1].alarm, start_ns + 1);
    alarm_set(loop, &probes[1].alarm, start_ns + 2000000);
    turn_until(loop, &fired_in_all, 2);
    assert_int_equal(probes[0].place, 1);
    assert_int_equal(probes[1].place, 2);
    assert_true(probes[1].fired_ns >= start_ns + 2000000);
}

/* Those far ahead stand on the wheel: cleared there, or moved, they leave it. */
static void one_far_ahead_moves_and_goes_likewise(void **state)
{
    struct loop *loop = *state;
    struct probe probes[4];
    uint64_t start_ns = loop_clock_ns();

    make_probes(probes, 4, loop);
    for (unsigned i = 0; i < 4; i++)
        alarm_set(loop, &probes[i].alarm, start_ns + ALARM_SOON_NS + (i + 2) * WHEEL_TICK_NS);
    alarm_set(loop, &probes[3].alarm, start_ns + 1000000);
    alarm_clear(loop, &probes[1].alarm);
    alarm_set(loop, &probes[0].alarm, start_ns + ALARM_SOON_NS + 8 * WHEEL_TICK_NS);
    turn_until(loop, &fired_in_all, 3);
    assert_int_equal(probes[3].place, 1);
    assert_int_equal(probes[2].place, 2);
    assert_int_equal(probes[0].place, 3);
    assert_int_equal(probes[1].fired, 0);
    assert_true(probes[0].fired_ns >= start_ns + ALARM_SOON_NS + 8 * WHEEL_TICK_NS);
    assert_true(probes[2].fired_ns >= start_ns + ALARM_SOON_NS + 4 * WHEEL_TICK_NS);
}

static void one_that_was_cleared_does_not_fire_and_holds_up_nobody(void **state)
{
    struct loop *loop = *state;
    struct probe probes[3];
    uint64_t start_ns = loop_clock_ns();

    make_probes(probes, 3, loop);
    for (unsigned i = 0; i < 3; i++)
        alarm_set(loop, &probes[i].alarm, start_ns + (i + 1) * UINT64_C(1000000));
    alarm_clear(loop, &probes[0].alarm);
    alarm_clear(loop, &probes[1].alarm);
    alarm_clear(loop, &probes[1].alarm);
    turn_until(loop, &probes[2].fired, 1);
    assert_int_equal(fired_in_all, 1);
    assert_true(probes[2].fired_ns >= start_ns + 3000000);
}

/* Both are due in the same turn. */
static void one_that_fires_may_clear_the_next(void **state)
{
    struct loop *loop = *state;
    struct probe probes[2];

    make_probes(probes, 2, loop);
    probes[0].other = &probes[1];
    alarm_set(loop, &probes[0].alarm, 1);
    alarm_set(loop, &probes[1].alarm, 1);
    turn_until(loop, &probes[0].fired, 1);
    turn(loop);
    assert_int_equal(probes[1].fired, 0);
}

/* Else one that always sets itself for a time that is past would never let the loop go on. */
static void one_that_fires_and_sets_itself_waits_for_the_next_turn(void **state)
{
    struct loop *loop = *state;
    struct probe probe;

    make_probes(&probe, 1, loop);
    probe.again = 3;
    alarm_set(loop, &probe.alarm, 1);
    for (unsigned wanted = 1; wanted <= 4; wanted++) {
        turn_until(loop, &probe.fired, wanted);
        assert_int_equal(probe.fired, wanted);
    }
}

static void without_descriptors_the_wheel_does_it(void **state)
{
    struct loop *loop = *state;
    struct rlimit before, none;
    struct probe probes[2];
    uint64_t start_ns = loop_clock_ns();

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    make_probes(probes, 2, loop);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    alarm_set(loop, &probes[1].alarm, start_ns + 2 * WHEEL_TICK_NS);
    alarm_set(loop, &probes[0].alarm, start_ns + 1000000);
    assert_int_equal(loop->alarms.fd, -1);
    turn_until(loop, &fired_in_all, 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(probes[0].place, 1);
    assert_true(probes[0].fired_ns >= start_ns + 1000000);
    assert_true(probes[1].fired_ns >= start_ns + 2 * WHEEL_TICK_NS);
    alarm_set(loop, &probes[0].alarm, 1);
    assert_true(loop->alarms.fd >= 0);
    turn_until(loop, &fired_in_all, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(no_descriptor_before_the_first_alarm),
        loop_test(fires_once_and_not_early),
        loop_test(a_past_time_is_the_next_turn),
        loop_test(all_fire_in_the_order_of_their_times),
        loop_test(an_earlier_one_is_not_held_up_by_a_later_one),
        loop_test(one_that_is_set_moves_both_ways),
        loop_test(one_far_ahead_moves_and_goes_likewise),
        loop_test(one_that_was_cleared_does_not_fire_and_holds_up_nobody),
        loop_test(one_that_fires_may_clear_the_next),
        loop_test(one_that_fires_and_sets_itself_waits_for_the_next_turn),
        loop_test(without_descriptors_the_wheel_does_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
