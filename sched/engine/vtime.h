/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vtime.h: virtual time in 64-bit fixed point, and what a cost comes to in it.
 *
 * Unit: one unit of cost at weight 1 is 2^VTIME_SHIFT. Tags wrap around; they are compared by the
 * sign of their difference, so any two that are compared must be less than 2^63 apart. That holds:
 *   - one charge is at most SCHED_COST_MAX << VTIME_SHIFT < 2^60, and corrections not yet in a tag
 *     are held within 2^60: no tag is more than 2^61 ahead of the last start tag dispatched;
 *   - each time that tag has moved on by VTIME_LAG (2^60), every tag still standing further behind
 *     is lifted (sched_flows_rebase), so none is more than 3 * 2^60 behind. A tag so far behind v
 *     decides nothing any more, unless its request is sent back then: it starts later than exactly,
 *     but still before v. Nor does a request that is taken back put a tag further behind than that.
 *
 * Division-free: a weight is kept as reciprocal = floor(2^63 / weight). A charge is
 * cost * reciprocal, of which the upper part goes to the tag and the lower VTIME_REST_BITS stay
 * with the flow (`tag_rest`) for its next charge. Rounding therefore does not add up within a
 * backlogged period: a tag is less than one unit in the last place (2^-20 cost units at weight 1)
 * below its exact value, plus a relative error below weight / 2^63 < 2^-43 of the charge, and both
 * are 0 for powers of two. An activation takes v as it is, itself rounded down.
 */
#ifndef SPILLWAY_SCHED_ENGINE_VTIME_H
#define SPILLWAY_SCHED_ENGINE_VTIME_H

#include "sched/sched.h"

#include <stdbool.h>
#include <stdint.h>

#define VTIME_SHIFT     20
#define VTIME_REST_BITS (63 - VTIME_SHIFT)
#define VTIME_REST_MASK ((UINT64_C(1) << VTIME_REST_BITS) - 1)
#define VTIME_OWED_MAX  (INT64_C(1) << 60)
#define VTIME_LAG       (UINT64_C(1) << 60)

static inline uint64_t vtime_reciprocal(uint32_t weight)
{
    return (UINT64_C(1) << 63) / weight;
}

static inline bool vtime_before(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0;
}

static inline uint64_t vtime_later(uint64_t a, uint64_t b)
{
    return vtime_before(a, b) ? b : a;
}

/*
 * What `cost` (|cost| <= SCHED_COST_MAX, negative for a refund) comes to for the flow. The part
 * below the last place is carried in flow->tag_rest, which stays in 0..VTIME_REST_MASK.
 */
static inline int64_t vtime_charge(struct sched_flow *flow, int64_t cost)
{
    __int128 exact = (__int128)cost * (__int128)flow->reciprocal + (__int128)flow->tag_rest;
    flow->tag_rest = (uint64_t)exact & VTIME_REST_MASK;
    return (int64_t)(exact >> VTIME_REST_BITS);
}

#endif
