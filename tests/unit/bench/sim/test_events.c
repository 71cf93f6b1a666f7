/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: order, moving and cancelling, and what a call to it leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sim/events.h"

#define LOGGED 16

struct probe {
    struct event event;
    char name;
    uint64_t again_ns; /* arms itself once more, so much later; 0: doesn't */
};

static struct events events;
static struct probe probes[4];
static char order[LOGGED];
static uint64_t times[LOGGED];
static size_t logged;

static void fired(struct event *event)
{
    struct probe *probe = (void *)event;

    assert_true(logged < LOGGED - 1);
    assert_false(event_armed(event));
    times[logged] = events.now_ns;
    order[logged++] = probe->name;
    if (probe->again_ns) {
        uint64_t later_ns = events.now_ns + probe->again_ns;

        probe->again_ns = 0;
        events_at(&events, event, later_ns);
    }
}

static int set_up(void **state)
{
    (void)state;
    memset(&events, 0, sizeof(events));
    memset(order, 0, sizeof(order));
    logged = 0;
    for (int i = 0; i < 4; i++)
        probes[i] = (struct probe){.event = {.fire = fired}, .name = (char)('a' + i)};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    events_fini(&events);
    return 0;
}

static void by_time_then_by_call(void **state)
{
    (void)state;
    events_at(&events, &probes[2].event, 50);
    events_at(&events, &probes[0].event, 20);
    events_at(&events, &probes[1].event, 50);
    events_at(&events, &probes[3].event, 10);
    events_run_until(&events, 1000);
    assert_string_equal(order, "dacb");
    assert_int_equal(times[0], 10);
    assert_int_equal(times[3], 50);
    assert_int_equal(events.fired, 4);
    assert_int_equal(events.now_ns, 1000);
}

static void the_last_moment_belongs_to_the_call(void **state)
{
    (void)state;
    events_at(&events, &probes[0].event, 100);
    events_at(&events, &probes[1].event, 101);
    events_run_until(&events, 100);
    assert_string_equal(order, "a");
    assert_int_equal(events.now_ns, 100);
    assert_true(event_armed(&probes[1].event));
    assert_int_equal(event_time_ns(&probes[1].event), 101);
    events_run_until(&events, 101);
    assert_string_equal(order, "ab");
}

static void events_made_on_the_way_fire_too(void **state)
{
    (void)state;
    probes[0].again_ns = 30;
    events_at(&events, &probes[0].event, 10);
    events_at(&events, &probes[1].event, 20);
    events_run_until(&events, 100);
    assert_string_equal(order, "aba");
    assert_int_equal(times[2], 40);
}

static void moved_and_cancelled(void **state)
{
    (void)state;
    events_at(&events, &probes[0].event, 10);
    events_at(&events, &probes[1].event, 20);
    events_at(&events, &probes[2].event, 30);
    events_at(&events, &probes[0].event, 25);
    events_cancel(&events, &probes[1].event);
    events_cancel(&events, &probes[3].event);
    events_run_until(&events, 100);
    assert_string_equal(order, "ac");
    assert_int_equal(times[0], 25);
}

static void the_past_counts_as_now(void **state)
{
    (void)state;
    events_run_until(&events, 500);
    events_at(&events, &probes[0].event, 3);
    assert_int_equal(event_time_ns(&probes[0].event), 500);
    events_run_until(&events, 500);
    assert_string_equal(order, "a");
    assert_int_equal(times[0], 500);
    events_run_until(&events, 400);
    assert_int_equal(events.now_ns, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_time_then_by_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_moment_belongs_to_the_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_made_on_the_way_fire_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moved_and_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_past_counts_as_now, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
