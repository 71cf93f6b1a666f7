/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PIE, after RFC 8033 section 4: p follows the delay of the queue and its change. The delay is the
 * queue over the rate at which the interval says it is served.
 */
#include "sched/admission/admission_internal.h"

#define TARGET_NS    20000000ULL
#define UPDATE_NS    30000000ULL
#define BURST_NS     100000000ULL
#define NS_PER_S     1000000000LL
#define UPDATES_MOST 64 /* made up for after a time without calls */

static uint64_t target_ns(const struct admit *admit)
{
    return admit->options.target_ns ? admit->options.target_ns : TARGET_NS;
}

static void pie_init(struct admit *admit)
{
    admit->state.pie = (struct admit_pie){
        .update_ns = admit->now_ns + UPDATE_NS,
        .burst_ns = BURST_NS,
        .random = admit->options.seed * 0x9e3779b97f4a7c15ULL + 0xd1342543de82ef95ULL,
    };
}

/* The step is scaled down while p is small (section 4.2). */
static int64_t scaled(int64_t step_q32, uint64_t p_q32)
{
    static const struct {
        uint64_t below_q32;
        int shift;
    } rows[] = {{4295, 11}, {42950, 9}, {429497, 7}, {4294967, 5}, {42949673, 3}, {429496730, 1}};

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (p_q32 < rows[i].below_q32)
            return step_q32 / (1LL << rows[i].shift);
    }
    return step_q32;
}

static int64_t clamped_ns(uint64_t value_ns)
{
    return value_ns > 100 * (uint64_t)NS_PER_S ? 100 * NS_PER_S : (int64_t)value_ns;
}

static void update(struct admit *admit)
{
    struct admit_pie *pie = &admit->state.pie;
    uint64_t delay_ns = admit_retry_after_ns(admit);
    int64_t now = clamped_ns(delay_ns);
    int64_t old = clamped_ns(pie->delay_old_ns);
    int64_t target = clamped_ns(target_ns(admit));
    /* 0.125 and 1.25 per second, in 2^-32 per ns: 1/8 and 10/8 of 2^32 / 10^9. */
    int64_t weighed_ns = (now - target) + 10 * (now - old);
    int64_t step_q32 = (int64_t)((__int128)weighed_ns * (1 << 29) / NS_PER_S);
    int64_t p_q32 = (int64_t)pie->refuse_q32 + scaled(step_q32, pie->refuse_q32);

    if (delay_ns == 0 && pie->delay_old_ns == 0)
        p_q32 -= p_q32 / 64;
    if (p_q32 < 0)
        p_q32 = 0;
    pie->refuse_q32 = (uint64_t)p_q32 > ADMIT_ONE_Q32 ? ADMIT_ONE_Q32 : (uint64_t)p_q32;
    pie->burst_ns = pie->burst_ns > UPDATE_NS ? pie->burst_ns - UPDATE_NS : 0;
    if (pie->refuse_q32 == 0 && now < target / 2 && old < target / 2)
        pie->burst_ns = BURST_NS;
    pie->delay_old_ns = delay_ns;
}

static void catch_up(struct admit *admit)
{
    struct admit_pie *pie = &admit->state.pie;

    for (int i = 0; i < UPDATES_MOST && admit->now_ns >= pie->update_ns; i++) {
        update(admit);
        pie->update_ns += UPDATE_NS;
    }
    if (admit->now_ns >= pie->update_ns)
        pie->update_ns = admit->now_ns + UPDATE_NS;
}

static uint64_t draw_q32(struct admit_pie *pie)
{
    uint64_t z = (pie->random += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) >> 32;
}

static bool pie_offer(struct admit *admit, uint64_t cost)
{
    struct admit_pie *pie = &admit->state.pie;

    (void)cost;
    catch_up(admit);
    if (pie->burst_ns ||
        (pie->delay_old_ns < target_ns(admit) / 2 && pie->refuse_q32 < ADMIT_ONE_Q32 / 5) ||
        admit->queue <= 2 * admit->interval.grain)
        return true;
    return draw_q32(pie) >= pie->refuse_q32;
}

static void pie_look(const struct admit *admit, struct admit_view *view)
{
    view->refuse_share = (double)admit->state.pie.refuse_q32 / (double)ADMIT_ONE_Q32;
}

const struct admit_policy_ops admit_pie_ops = {
    .name = "pie", .init = pie_init, .offer = pie_offer, .look = pie_look};
