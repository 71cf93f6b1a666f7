/* SPDX-License-Identifier: Apache-2.0 */
/* duk, the request form; the formulas and what they rest on are in admission.h. */
#include "sched/admission/admission_internal.h"

#define SURPLUS_MOST    5  /* S is held at so many h */
#define BURST           16 /* requests' worth that may wait in an overload */
#define LEAST           3  /* requests' worth that may wait in any */
#define LOG2_OF_100_Q16 435412U
#define PLACES          8

static uint64_t evidence_q8(const struct admit *admit)
{
    return admit_evidence(admit) << PLACES;
}

static void duk_init(struct admit *admit)
{
    admit->state.duk = (struct admit_duk){
        .most = ADMIT_NEVER, .surplus_ns = admit->now_ns, .quiet_ns = admit->now_ns};
}

/* S with the time that passed and the request that came. */
static void add_surplus(struct admit *admit, uint64_t cost)
{
    struct admit_duk *duk = &admit->state.duk;
    uint64_t most_q8 = SURPLUS_MOST * evidence_q8(admit);
    unsigned __int128 served_q8 =
        ((unsigned __int128)admit->interval.rate_q40 * (admit->now_ns - duk->surplus_ns)) >>
        (ADMIT_RATE_BITS - PLACES);

    duk->surplus_ns = admit->now_ns;
    duk->surplus_q8 = served_q8 < duk->surplus_q8 ? duk->surplus_q8 - (uint64_t)served_q8 : 0;
    if (duk->surplus_q8 == 0)
        duk->quiet_ns = admit->now_ns;
    if (admit->interval.rate_q40)
        duk->surplus_q8 += cost << PLACES;
    if (duk->surplus_q8 > most_q8)
        duk->surplus_q8 = most_q8;
}

/* S is above h, and has not been 0 for as long as two batches take; or it is at its most. */
static bool overloaded(const struct admit *admit)
{
    const struct admit_duk *duk = &admit->state.duk;

    if (duk->surplus_q8 <= evidence_q8(admit))
        return false;
    return duk->surplus_q8 >= SURPLUS_MOST * evidence_q8(admit) ||
           admit_served(admit->interval.rate_q40, admit->now_ns - duk->quiet_ns) >=
               2 * admit_batch(admit);
}

static bool duk_offer(struct admit *admit, uint64_t cost)
{
    struct admit_duk *duk = &admit->state.duk;

    add_surplus(admit, cost);
    if (!overloaded(admit)) {
        duk->credit_q32 = 0;
        return true;
    }
    if (admit->queue >= duk->most || admit->queue >= BURST * admit->interval.grain)
        return false;
    if (admit->queue <= duk->free) {
        duk->credit_q32 = 0;
        return true;
    }
    return !admit_spaced(&duk->credit_q32, duk->refuse_q32);
}

/* The surplus was reckoned with a capacity that is gone: what stands in the queue is one, and old.
 */
static void believe_queue(struct admit *admit)
{
    struct admit_duk *duk = &admit->state.duk;
    uint64_t queue_q8 = admit->queue << PLACES;

    if (duk->surplus_q8 < queue_q8)
        duk->surplus_q8 = queue_q8;
    duk->quiet_ns = 0;
}

/* n, a and k* of the interval that ends, with 8 places, make p and L. */
static void duk_closed(struct admit *admit, uint64_t length_ns)
{
    struct admit_duk *duk = &admit->state.duk;
    const struct admit_interval *interval = &admit->interval;
    uint64_t n_q8 = admit_scale(interval->rate_q40, length_ns, 1ULL << (ADMIT_RATE_BITS - PLACES));
    uint64_t allowed_q8 = admit_root(((unsigned __int128)n_q8 * interval->grain) << PLACES);
    uint64_t noise_q8 = admit_root(interval->offered_squares << (2 * PLACES));
    uint64_t offered_q8 = interval->offered_cost << PLACES;
    uint64_t room_q8 = n_q8 + allowed_q8;
    uint64_t queue_q8 = admit->queue << PLACES;

    if (interval->fell)
        believe_queue(admit);
    duk->allowed_q8 = allowed_q8;
    duk->free = allowed_q8 >> PLACES;
    duk->refuse_q32 = 0;
    duk->most = ADMIT_NEVER;
    if (n_q8 == 0 || offered_q8 <= noise_q8)
        return;
    offered_q8 -= noise_q8;
    room_q8 = room_q8 > queue_q8 ? room_q8 - queue_q8 : 0;
    if (room_q8 < offered_q8)
        duk->refuse_q32 = ADMIT_ONE_Q32 - admit_scale(room_q8, ADMIT_ONE_Q32, offered_q8);
    uint64_t log2_q16 = offered_q8 > n_q8 ? admit_log2_q16(offered_q8, n_q8) : 0;

    if (log2_q16) {
        duk->most = admit_scale(LOG2_OF_100_Q16, interval->grain, log2_q16);
        if (duk->most < LEAST * interval->grain)
            duk->most = LEAST * interval->grain;
    }
    if (offered_q8 > 2 * n_q8)
        duk->free = interval->grain - 1;
}

static void duk_look(const struct admit *admit, struct admit_view *view)
{
    const struct admit_duk *duk = &admit->state.duk;

    view->refuse_share = (double)duk->refuse_q32 / (double)ADMIT_ONE_Q32;
    view->queue_allowed = (double)duk->allowed_q8 / (1 << PLACES);
    view->queue_most = duk->most == ADMIT_NEVER ? 0 : (double)duk->most;
    view->surplus = (double)duk->surplus_q8 / (double)evidence_q8(admit);
}

const struct admit_policy_ops admit_duk_ops = {
    .name = "duk",
    .init = duk_init,
    .offer = duk_offer,
    .closed = duk_closed,
    .look = duk_look,
};
