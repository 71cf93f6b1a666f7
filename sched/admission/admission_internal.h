/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the admission policies: what each file of a policy offers to admission.c, and the scaled
 * integers they share. Numbers named _q8, _q16, _q32, _q40 have that many binary places.
 */
#ifndef SPILLWAY_SCHED_ADMISSION_ADMISSION_INTERNAL_H
#define SPILLWAY_SCHED_ADMISSION_ADMISSION_INTERNAL_H

#include "sched/admission/admission.h"

#define ADMIT_TICK_NS   100000ULL /* no interval is shorter */
#define ADMIT_RATE_BITS 40
#define ADMIT_EVIDENCE  20 /* requests' worth: fewer than so many tell little */

struct admit_policy_ops {
    const char *name;
    void (*init)(struct admit *admit);
    /* The queue holds admit->queue without the request. */
    bool (*offer)(struct admit *admit, uint64_t cost);
    /* Optional; the queue is without the request. */
    bool (*dispatch)(struct admit *admit, uint64_t waited_ns);
    /* Optional: the request is in no count any more. */
    void (*complete)(struct admit *admit, uint64_t cost);
    /* Optional: the interval is over, its counts still stand, C is up to date. */
    void (*closed)(struct admit *admit, uint64_t length_ns);
    void (*look)(const struct admit *admit, struct admit_view *view);
};

extern const struct admit_policy_ops admit_none_ops;
extern const struct admit_policy_ops admit_tail_ops;
extern const struct admit_policy_ops admit_codel_ops;
extern const struct admit_policy_ops admit_pie_ops;
extern const struct admit_policy_ops admit_literal_ops;
extern const struct admit_policy_ops admit_duk_ops;

/* a * b / c without overflow in between; UINT64_MAX when it does not fit. c is not 0. */
static inline uint64_t admit_scale(uint64_t a, uint64_t b, uint64_t c)
{
    unsigned __int128 result = (unsigned __int128)a * b / c;

    return result > UINT64_MAX ? UINT64_MAX : (uint64_t)result;
}

/* What a rate serves in a time, in cost. */
static inline uint64_t admit_served(uint64_t rate_q40, uint64_t length_ns)
{
    unsigned __int128 cost = ((unsigned __int128)rate_q40 * length_ns) >> ADMIT_RATE_BITS;

    return cost > INT64_MAX ? INT64_MAX : (uint64_t)cost;
}

static inline uint64_t admit_rate_q40(uint64_t cost, uint64_t length_ns)
{
    unsigned __int128 rate = ((unsigned __int128)cost << ADMIT_RATE_BITS) / length_ns;

    return rate > UINT64_MAX ? UINT64_MAX : (uint64_t)rate;
}

/* The evidence in cost, and what makes an interval: that, or as much as the slots hold. */
static inline uint64_t admit_evidence(const struct admit *admit)
{
    return ADMIT_EVIDENCE * admit->interval.grain;
}

static inline uint64_t admit_batch(const struct admit *admit)
{
    uint64_t evidence = admit_evidence(admit);

    return admit->options.slots > evidence ? admit->options.slots : evidence;
}

/* The square root, rounded down. */
uint64_t admit_root(unsigned __int128 value);

/* log2 of a / b with 16 binary places, for a >= b > 0. */
uint64_t admit_log2_q16(uint64_t a, uint64_t b);

/* credit += p; true, and a whole one less, when that makes it one or more. */
static inline bool admit_spaced(uint64_t *credit_q32, uint64_t p_q32)
{
    *credit_q32 += p_q32;
    if (*credit_q32 < ADMIT_ONE_Q32)
        return false;
    *credit_q32 -= ADMIT_ONE_Q32;
    return true;
}

#endif
