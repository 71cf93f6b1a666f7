/* SPDX-License-Identifier: Apache-2.0 */
/* The timer wheel: see timer.h for its rules. */
#include "proxy/io/timer.h"

void timer_wheel_init(struct timer_wheel *wheel, uint64_t now_ns)
{
    for (unsigned i = 0; i < WHEEL_SLOTS; i++)
        LIST_INIT(&wheel->slots[i]);
    for (unsigned i = 0; i < WHEEL_SLOTS / 64; i++)
        wheel->occupied[i] = 0;
    wheel->tick = now_ns >> WHEEL_TICK_SHIFT;
}

void timer_link(struct timer_wheel *wheel, struct timer *timer)
{
    if (timer->slot_ns != 0)
        LIST_REMOVE(timer, link);
    /* Rounded up, so that a slot's run never finds its timers' deadlines ahead by less than a tick.
     */
    uint64_t tick = (timer->deadline_ns + WHEEL_TICK_NS - 1) >> WHEEL_TICK_SHIFT;
    if (tick <= wheel->tick)
        tick = wheel->tick + 1;
    if (tick > wheel->tick + WHEEL_SLOTS - 1)
        tick = wheel->tick + WHEEL_SLOTS - 1;
    unsigned slot = (unsigned)(tick % WHEEL_SLOTS);
    timer->slot_ns = tick << WHEEL_TICK_SHIFT;
    LIST_INSERT_HEAD(&wheel->slots[slot], timer, link);
    wheel->occupied[slot / 64] |= UINT64_C(1) << (slot % 64);
}

static void run_slot(struct timer_wheel *wheel, unsigned slot, uint64_t now_ns)
{
    struct timer_slot due = LIST_HEAD_INITIALIZER(due);
    struct timer *timer;

    /* Taken out one by one from a private list: a callback may unlink any other timer of this slot.
     */
    due.lh_first = LIST_FIRST(&wheel->slots[slot]);
    if (due.lh_first != NULL)
        due.lh_first->link.le_prev = &due.lh_first;
    LIST_INIT(&wheel->slots[slot]);
    wheel->occupied[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
    while ((timer = LIST_FIRST(&due)) != NULL) {
        LIST_REMOVE(timer, link);
        timer->slot_ns = 0;
        if (timer->deadline_ns == 0)
            continue;
        if (timer->deadline_ns > now_ns) {
            timer_link(wheel, timer);
            continue;
        }
        timer->deadline_ns = 0;
        timer->fire(timer, now_ns);
    }
}

void timer_wheel_run(struct timer_wheel *wheel, uint64_t now_ns)
{
    uint64_t last = now_ns >> WHEEL_TICK_SHIFT;

    if (last > wheel->tick + WHEEL_SLOTS) {
        /* After a long pause one round sees every slot. */
        wheel->tick = last - WHEEL_SLOTS;
    }
    while (wheel->tick < last) {
        wheel->tick++;
        unsigned slot = (unsigned)(wheel->tick % WHEEL_SLOTS);
        if (wheel->occupied[slot / 64] & (UINT64_C(1) << (slot % 64)))
            run_slot(wheel, slot, now_ns);
    }
}

uint64_t timer_wheel_next_ns(struct timer_wheel *wheel)
{
    unsigned first = (unsigned)((wheel->tick + 1) % WHEEL_SLOTS);

    for (unsigned seen = 0; seen < WHEEL_SLOTS;) {
        unsigned slot = (first + seen) % WHEEL_SLOTS;
        uint64_t word = wheel->occupied[slot / 64] >> (slot % 64);
        if (word == 0) {
            seen += 64 - slot % 64;
            continue;
        }
        seen += (unsigned)__builtin_ctzll(word);
        if (seen >= WHEEL_SLOTS)
            break;
        slot = (first + seen) % WHEEL_SLOTS;
        if (!LIST_EMPTY(&wheel->slots[slot]))
            return (wheel->tick + 1 + seen) << WHEEL_TICK_SHIFT;
        wheel->occupied[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
        seen++;
    }
    return UINT64_MAX;
}
