/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel against a model that is a table of deadlines: after any sets, moves, clears and
 * unlinkings, and however far the time jumps, no timer fires early, none fires twice, none is lost,
 * and none is later than two ticks when the wheel is run as it asks to be.
 */
#include "proxy/core/container_of.h"
#include "proxy/io/timer.h"
#include "tests/property/sched/property.h"

#define TIMERS 64
#define STEPS  4000

struct model;

struct entry {
    struct timer timer;
    struct model *model;
    uint64_t deadline_ns; /* 0: not set */
};

struct model {
    uint64_t seed;
    struct property_random random;
    struct timer_wheel wheel;
    struct entry entries[TIMERS];
    uint64_t now_ns;
};

static uint64_t draw_deadline(struct model *model)
{
    static const uint64_t spans[] = {1, 3, 50, WHEEL_SLOTS, 5 * WHEEL_SLOTS};
    uint64_t span = spans[property_between(&model->random, 0, 4)];

    return model->now_ns + property_between(&model->random, 1, span * WHEEL_TICK_NS);
}

static void on_fire(struct timer *timer, uint64_t now_ns)
{
    struct entry *entry = container_of(timer, struct entry, timer);
    struct model *model = entry->model;

    property_check(model->seed, entry->deadline_ns != 0);
    property_check(model->seed, entry->deadline_ns <= now_ns);
    entry->deadline_ns = 0;
    if (property_chance(&model->random, 30)) {
        entry->deadline_ns = draw_deadline(model);
        timer_set(&model->wheel, timer, entry->deadline_ns);
    }
    if (property_chance(&model->random, 10)) {
        struct entry *other = &model->entries[property_between(&model->random, 0, TIMERS - 1)];
        timer_unlink(&other->timer);
        other->deadline_ns = 0;
    }
}

static void change_one(struct model *model)
{
    struct entry *entry = &model->entries[property_between(&model->random, 0, TIMERS - 1)];
    uint64_t what = property_between(&model->random, 0, 9);

    if (what < 7) {
        entry->deadline_ns = draw_deadline(model);
        timer_set(&model->wheel, &entry->timer, entry->deadline_ns);
    } else if (what < 9) {
        timer_clear(&entry->timer);
        entry->deadline_ns = 0;
    } else {
        timer_unlink(&entry->timer);
        entry->deadline_ns = 0;
    }
}

static void check_all(struct model *model)
{
    uint64_t next_ns = timer_wheel_next_ns(&model->wheel);

    for (unsigned i = 0; i < TIMERS; i++) {
        uint64_t deadline_ns = model->entries[i].deadline_ns;
        if (deadline_ns == 0)
            continue;
        /* Rounded up to a tick, and one more when the wheel was already run to that tick. */
        property_check(model->seed, model->now_ns < deadline_ns + 2 * WHEEL_TICK_NS);
        property_check(model->seed, next_ns <= deadline_ns + 2 * WHEEL_TICK_NS);
    }
}

static void a_random_life(uint64_t seed)
{
    struct model *model = calloc(1, sizeof(*model));

    assert_non_null(model);
    model->seed = seed;
    model->random.state = seed;
    model->now_ns = property_between(&model->random, 1, UINT64_C(1) << 50);
    timer_wheel_init(&model->wheel, model->now_ns);
    for (unsigned i = 0; i < TIMERS; i++) {
        model->entries[i].model = model;
        timer_init(&model->entries[i].timer, on_fire);
    }
    for (unsigned step = 0; step < STEPS; step++) {
        for (uint64_t i = property_between(&model->random, 0, 4); i > 0; i--)
            change_one(model);
        uint64_t next_ns = timer_wheel_next_ns(&model->wheel);
        if (property_chance(&model->random, 60) && next_ns != UINT64_MAX)
            model->now_ns = next_ns > model->now_ns ? next_ns : model->now_ns;
        else
            model->now_ns += property_between(
                &model->random, 0,
                (property_chance(&model->random, 2) ? 3 * WHEEL_SLOTS : 4) * WHEEL_TICK_NS);
        timer_wheel_run(&model->wheel, model->now_ns);
        check_all(model);
    }
    free(model);
}

static void timers_fire_once_and_in_time(void **state)
{
    (void)state;
    property_run("timers", 20, a_random_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(timers_fire_once_and_in_time)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
