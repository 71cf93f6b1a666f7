/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoDel, after RFC 8289 section 5: what leaves the queue is looked at.
 *
 *            every wait >= target for an interval               a wait < target, or an empty queue
 *   QUIET ------------------------------------------> DROPPING ---------------------> QUIET
 *                                                      puts one out, the next one
 *                                                      interval / sqrt(count) later
 */
#include "sched/admission/admission_internal.h"

#define TARGET_NS   5000000ULL
#define INTERVAL_NS 100000000ULL
#define PLACES      16

static uint64_t target_ns(const struct admit *admit)
{
    return admit->options.target_ns ? admit->options.target_ns : TARGET_NS;
}

static uint64_t interval_ns(const struct admit *admit)
{
    return admit->options.interval_ns ? admit->options.interval_ns : INTERVAL_NS;
}

/* The control law: the time of the next one after `from_ns`. */
static uint64_t next_after(const struct admit *admit, uint64_t from_ns, uint32_t count)
{
    uint64_t root_q16 = admit_root((unsigned __int128)count << (2 * PLACES));

    return from_ns + admit_scale(interval_ns(admit), 1U << PLACES, root_q16);
}

static void codel_init(struct admit *admit)
{
    admit->state.codel = (struct admit_codel){.above_since_ns = ADMIT_NEVER};
}

static bool codel_offer(struct admit *admit, uint64_t cost)
{
    (void)admit;
    (void)cost;
    return true;
}

/* Whether the wait has been at or above the target for a whole interval. */
static bool stands(struct admit *admit, uint64_t waited_ns)
{
    struct admit_codel *codel = &admit->state.codel;

    if (waited_ns < target_ns(admit) || admit->queue == 0) {
        codel->above_since_ns = ADMIT_NEVER;
        return false;
    }
    if (codel->above_since_ns == ADMIT_NEVER)
        codel->above_since_ns = admit->now_ns;
    return admit->now_ns - codel->above_since_ns >= interval_ns(admit);
}

static bool codel_dispatch(struct admit *admit, uint64_t waited_ns)
{
    struct admit_codel *codel = &admit->state.codel;
    bool standing = stands(admit, waited_ns);

    if (codel->dropping) {
        if (!standing) {
            codel->dropping = false;
            return true;
        }
        if (admit->now_ns < codel->next_ns)
            return true;
        codel->count++;
        codel->next_ns = next_after(admit, codel->next_ns, codel->count);
        return false;
    }
    if (!standing)
        return true;
    /* Soon after the last time: go on near the rate that was right then. */
    uint32_t since = codel->count - codel->last_count;
    bool recent = codel->next_ns && admit->now_ns < codel->next_ns + 16 * interval_ns(admit);

    codel->dropping = true;
    codel->count = recent && since > 1 ? since : 1;
    codel->last_count = codel->count;
    codel->next_ns = next_after(admit, admit->now_ns, codel->count);
    return false;
}

static void codel_look(const struct admit *admit, struct admit_view *view)
{
    (void)admit;
    (void)view;
}

const struct admit_policy_ops admit_codel_ops = {
    .name = "codel",
    .init = codel_init,
    .offer = codel_offer,
    .dispatch = codel_dispatch,
    .look = codel_look,
};
