/* SPDX-License-Identifier: Apache-2.0 */
/* fluid.c: the clock of fluid.h. s->speed.backlogged_weight is kept by the algorithm. */
#include "sched/algorithms/tags/fluid.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define LONGEST_NS    (UINT64_C(1) << 40) /* passed over at a time; more counts as this much */
#define SUM_LIMIT     (UINT64_C(1) << 36)
#define MOST_SLOTS    (UINT64_C(1) << 31)
#define REST_BITS     32

static void limit_sums(struct sched_speed *speed)
{
    while (speed->slot_ns >= SUM_LIMIT || speed->done_cost >= SUM_LIMIT) {
        speed->slot_ns /= 2;
        speed->done_cost /= 2;
    }
}

/* The speed of the clock, in the last place of tags per ns, as a fraction; 0 / 1 when it can't be
 * told. */
static void clock_speed(const struct sched *s, unsigned __int128 *above, unsigned __int128 *below)
{
    const struct sched_speed *speed = &s->speed;

    *above = 0;
    *below = 1;
    if (s->active_weight == 0)
        return;
    if (s->options.capacity_per_s != 0) {
        *above = (unsigned __int128)s->options.capacity_per_s << VTIME_SHIFT;
        *below = (unsigned __int128)NS_PER_SECOND * s->active_weight;
    } else if (speed->slot_ns != 0) {
        uint64_t weights =
            speed->backlogged_weight != 0 ? speed->backlogged_weight : s->active_weight;
        uint64_t outstanding = s->outstanding < MOST_SLOTS ? s->outstanding : MOST_SLOTS;
        *above = ((unsigned __int128)outstanding * speed->done_cost) << VTIME_SHIFT;
        *below = (unsigned __int128)speed->slot_ns * weights;
    }
}

void fluid_hold(struct sched *s, uint64_t passed_ns)
{
    s->speed.slot_ns += s->outstanding * (passed_ns < LONGEST_NS ? passed_ns : LONGEST_NS);
    limit_sums(&s->speed);
}

void fluid_elapse(struct sched *s, uint64_t *clock, uint64_t passed_ns)
{
    unsigned __int128 above;
    unsigned __int128 below;

    passed_ns = passed_ns < LONGEST_NS ? passed_ns : LONGEST_NS;
    clock_speed(s, &above, &below);
    unsigned __int128 way = above * passed_ns;
    uint64_t rest = s->speed.clock_rest + (uint64_t)(((way % below) << REST_BITS) / below);
    unsigned __int128 moved = way / below + (rest >> REST_BITS);
    uint64_t furthest = s->front + VTIME_LAG - *clock;

    if (furthest > 2 * VTIME_LAG)
        furthest = 0;
    s->speed.clock_rest = rest & ((UINT64_C(1) << REST_BITS) - 1);
    *clock += moved < furthest ? (uint64_t)moved : furthest;
    fluid_hold(s, passed_ns);
}

uint64_t fluid_work(const struct sched *s, uint64_t passed_ns)
{
    const struct sched_speed *speed = &s->speed;

    if (speed->slot_ns == 0)
        return 0;
    passed_ns = passed_ns < LONGEST_NS ? passed_ns : LONGEST_NS;
    uint64_t outstanding = s->outstanding < MOST_SLOTS ? s->outstanding : MOST_SLOTS;
    unsigned __int128 work =
        ((unsigned __int128)outstanding * passed_ns * speed->done_cost << VTIME_SHIFT) /
        speed->slot_ns;
    return work < VTIME_LAG ? (uint64_t)work : VTIME_LAG;
}

void fluid_done(struct sched *s, uint64_t cost)
{
    s->speed.done_cost += cost;
    limit_sums(&s->speed);
}
