/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate.h: tags in time, for reservations and limits in cost units per second. Private to sched/.
 *
 * A time tag is in ns, with `rest`, the part below, in 1/rate ns: exact for as long as the rate
 * stays. Tags stay below SCHED_TIME_NS_MAX.
 */
#ifndef SPILLWAY_SCHED_ALGORITHMS_HEADS_RATE_H
#define SPILLWAY_SCHED_ALGORITHMS_HEADS_RATE_H

#include "sched/sched.h"

#include <stdbool.h>
#include <stdint.h>

#define RATE_NS_PER_SECOND UINT64_C(1000000000)

/* The tag moves on by cost / rate; rate > 0. */
static inline void rate_charge(uint64_t *tag_ns, uint64_t *rest, uint64_t cost, uint64_t rate)
{
    unsigned __int128 work = (unsigned __int128)cost * RATE_NS_PER_SECOND + *rest;
    unsigned __int128 tag = *tag_ns + work / rate;

    *rest = (uint64_t)(work % rate);
    *tag_ns = tag < SCHED_TIME_NS_MAX ? (uint64_t)tag : SCHED_TIME_NS_MAX;
}

/* The tag goes back by cost / rate, to 0 at most; rate > 0. */
static inline void rate_refund(uint64_t *tag_ns, uint64_t *rest, uint64_t cost, uint64_t rate)
{
    unsigned __int128 tag = (unsigned __int128)*tag_ns * rate + *rest;
    unsigned __int128 work = (unsigned __int128)cost * RATE_NS_PER_SECOND;

    tag = tag > work ? tag - work : 0;
    *tag_ns = (uint64_t)(tag / rate);
    *rest = (uint64_t)(tag % rate);
}

/* The request charged with `cost` turned out to be `true_cost`. Whether the tag has changed; a rate
 * of 0 is no rate. */
static inline bool rate_correct(uint64_t *tag_ns, uint64_t *rest, uint64_t cost, uint64_t true_cost,
                                uint64_t rate)
{
    if (rate == 0 || cost == true_cost)
        return false;
    if (true_cost > cost)
        rate_charge(tag_ns, rest, true_cost - cost, rate);
    else
        rate_refund(tag_ns, rest, cost - true_cost, rate);
    return true;
}

/*
 * The first whole ns that is not before the tag less burst / rate (rate > 0; with a rate of 0 there
 * is no rest and no burst).
 */
static inline uint64_t rate_from_ns(uint64_t tag_ns, uint64_t rest, uint64_t burst, uint64_t rate)
{
    if (rate == 0 || (burst == 0 && rest == 0))
        return tag_ns;
    unsigned __int128 tag = (unsigned __int128)tag_ns * rate + rest;
    unsigned __int128 early = (unsigned __int128)burst * RATE_NS_PER_SECOND;

    return tag > early ? (uint64_t)((tag - early + rate - 1) / rate) : 0;
}

#endif
