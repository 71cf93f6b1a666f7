/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part that all admission policies share: the queue's account, the interval, and the way into
 * the policy.
 *
 * The interval ends inside the calls: the first way is seen by the next completion, the other two
 * by the next offer, so that neither asks for what only the other can change.
 *   - a batch is done (every slot turned over, and 20 requests' worth at least), what stood at its
 *     start has left (done >= queue then) and a tick is over; or
 *   - C is known, twice the time that a batch takes is over, and what stood then has left: the
 *     pool idles; or
 *   - the queue was never empty and what was done falls short of C T by three times its noise: the
 *     capacity fell.
 * C is what was done over the time it took when the queue was never empty. Otherwise the servers
 * may have idled: C is only raised by it. While C is unknown the interval begins again with every
 * request that finds the pool empty.
 */
#include "sched/admission/admission_internal.h"

#include <errno.h>
#include <string.h>

#define GRAIN_INTERVALS 16

#define MARK_LEAST_NS 100000ULL
#define MARK_MOST_NS  1000000000ULL

static const struct admit_policy_ops *const policies[ADMIT_POLICIES] = {
    [ADMIT_NONE] = &admit_none_ops,           [ADMIT_TAIL] = &admit_tail_ops,
    [ADMIT_CODEL] = &admit_codel_ops,         [ADMIT_PIE] = &admit_pie_ops,
    [ADMIT_DUK_LITERAL] = &admit_literal_ops, [ADMIT_DUK] = &admit_duk_ops,
};

static const struct admit_policy_ops *ops_of(const struct admit *admit)
{
    return policies[admit->options.policy];
}

const char *admit_policy_name(enum admit_policy policy)
{
    return policies[policy]->name;
}

int admit_policy_parse(const char *name, enum admit_policy *out)
{
    for (int i = 0; i < ADMIT_POLICIES; i++) {
        if (strcmp(policies[i]->name, name) == 0) {
            *out = (enum admit_policy)i;
            return 0;
        }
    }
    return -EINVAL;
}

/* ---------------------------------------------------------------- arithmetic */

uint64_t admit_root(unsigned __int128 value)
{
    unsigned __int128 root = 0;
    unsigned __int128 bit = (unsigned __int128)1 << 126;

    while (bit > value)
        bit >>= 2;
    for (; bit; bit >>= 2) {
        bool fits = value >= root + bit;

        if (fits)
            value -= root + bit;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return (uint64_t)root;
}

uint64_t admit_log2_q16(uint64_t a, uint64_t b)
{
    uint64_t whole = 0;

    while (a / 2 >= b) {
        b *= 2;
        whole++;
    }
    /* a / b is in [1, 2): its logarithm's places come by squaring (Knuth, TAOCP 1.2.2). */
    uint64_t x_q31 = admit_scale(a, 1ULL << 31, b);
    uint64_t places = 0;

    for (int i = 0; i < 16; i++) {
        x_q31 = (x_q31 * x_q31) >> 31;
        places <<= 1;
        if (x_q31 >= 1ULL << 32) {
            x_q31 >>= 1;
            places |= 1;
        }
    }
    return whole << 16 | places;
}

/* ---------------------------------------------------------------- the interval */

static void interval_begin(struct admit *admit)
{
    struct admit_interval *interval = &admit->interval;

    interval->began_ns = admit->now_ns;
    interval->offered_cost = 0;
    interval->offered_squares = 0;
    interval->done_cost = 0;
    interval->done_squares = 0;
    interval->queue_at_start = admit->queue;
    interval->backlogged = admit->queue > 0;
}

/* A batch is done, and what stood at the start is too: told by a completion. */
static bool turned_over(const struct admit *admit)
{
    const struct admit_interval *interval = &admit->interval;
    uint64_t done = interval->done_cost;

    return done >= interval->queue_at_start && done >= admit_batch(admit) &&
           admit->now_ns - interval->began_ns >= ADMIT_TICK_NS;
}

/* The queue was never empty, and what was done is less than C T by three times its noise. */
static bool capacity_fell(const struct admit_interval *interval, uint64_t could)
{
    uint64_t done = interval->done_cost;

    /* What is missing is no more than could: less than 9 requests' worth is never enough. */
    if (!interval->backlogged || done == 0 || could <= done + 9 * interval->grain)
        return false;
    unsigned __int128 missing = could - done;

    return missing * missing > (unsigned __int128)9 * could * interval->grain;
}

/* The pool idles, or its capacity fell: told by time, and of interest to what is offered. */
static bool fell_short(const struct admit *admit)
{
    const struct admit_interval *interval = &admit->interval;
    uint64_t length_ns = admit->now_ns - interval->began_ns;
    uint64_t could = admit_served(interval->rate_q40, length_ns);

    if (length_ns < ADMIT_TICK_NS || could <= interval->done_cost)
        return false;
    if (interval->done_cost >= interval->queue_at_start && could > 2 * admit_batch(admit))
        return true;
    return capacity_fell(interval, could);
}

/* A request's worth is an average over many intervals: one holds too few of the large ones. */
static void weigh(struct admit_interval *interval)
{
    interval->grain_cost += interval->done_cost - interval->grain_cost / GRAIN_INTERVALS;
    interval->grain_squares += interval->done_squares - interval->grain_squares / GRAIN_INTERVALS;
    if (interval->grain_cost)
        interval->grain = (uint64_t)(interval->grain_squares / interval->grain_cost);
}

static void interval_close(struct admit *admit)
{
    struct admit_interval *interval = &admit->interval;
    uint64_t length_ns = admit->now_ns - interval->began_ns;
    uint64_t rate_q40 = admit_rate_q40(interval->done_cost, length_ns);

    interval->fell = capacity_fell(interval, admit_served(interval->rate_q40, length_ns));
    if (interval->backlogged || rate_q40 > interval->rate_q40)
        interval->rate_q40 = rate_q40;
    weigh(interval);
    interval->last_ns = length_ns;
    if (ops_of(admit)->closed)
        ops_of(admit)->closed(admit, length_ns);
    interval_begin(admit);
}

static void pass_time(struct admit *admit, uint64_t now_ns)
{
    if (now_ns > admit->now_ns)
        admit->now_ns = now_ns;
}

/* ---------------------------------------------------------------- life */

static void take_options(struct admit *admit, const struct admit_options *options)
{
    admit->options = *options;
    if (admit->options.slots == 0)
        admit->options.slots = 1;
    if (admit->options.slots > ADMIT_COST_MAX)
        admit->options.slots = ADMIT_COST_MAX;
    if (admit->options.limit == 0)
        admit->options.limit = 1;
}

void admit_init(struct admit *admit, const struct admit_options *options, uint64_t now_ns)
{
    memset(admit, 0, sizeof(*admit));
    admit->now_ns = now_ns;
    admit->interval.grain = 1;
    take_options(admit, options);
    interval_begin(admit);
    ops_of(admit)->init(admit);
}

void admit_change(struct admit *admit, const struct admit_options *options, uint64_t now_ns)
{
    enum admit_policy before = admit->options.policy;

    pass_time(admit, now_ns);
    take_options(admit, options);
    if (options->policy == before)
        return;
    memset(&admit->state, 0, sizeof(admit->state));
    ops_of(admit)->init(admit);
}

void admit_set_slots(struct admit *admit, uint64_t slots, uint64_t now_ns)
{
    struct admit_options options = admit->options;

    options.slots = slots;
    admit_change(admit, &options, now_ns);
}

/* ---------------------------------------------------------------- the road of a request */

bool admit_offer(struct admit *admit, uint64_t cost, uint64_t now_ns)
{
    struct admit_interval *interval = &admit->interval;

    pass_time(admit, now_ns);
    if (interval->rate_q40 == 0 && admit->queue == 0 && admit->outstanding == 0)
        interval_begin(admit); /* no time without work may count before C is known */
    interval->offered_cost += cost;
    interval->offered_squares += (unsigned __int128)cost * cost;
    admit->offered++;
    if (fell_short(admit))
        interval_close(admit);
    if (!ops_of(admit)->offer(admit, cost)) {
        admit->refused++;
        return false;
    }
    admit->admitted++;
    admit->queue += cost;
    return true;
}

static void left(struct admit *admit, uint64_t cost)
{
    admit->queue -= cost < admit->queue ? cost : admit->queue;
    if (admit->queue == 0)
        admit->interval.backlogged = false;
}

bool admit_dispatch(struct admit *admit, uint64_t cost, uint64_t waited_ns, uint64_t now_ns)
{
    pass_time(admit, now_ns);
    left(admit, cost);
    if (ops_of(admit)->dispatch && !ops_of(admit)->dispatch(admit, waited_ns)) {
        admit->admitted--;
        admit->refused++;
        return false;
    }
    admit->outstanding += cost;
    return true;
}

void admit_leave(struct admit *admit, uint64_t cost, uint64_t now_ns)
{
    pass_time(admit, now_ns);
    left(admit, cost);
}

void admit_mark(struct admit *admit, uint64_t cost, uint64_t now_ns)
{
    pass_time(admit, now_ns);
    admit->admitted++;
    admit->queue += cost;
}

void admit_keep(struct admit *admit, uint64_t cost, uint64_t now_ns)
{
    pass_time(admit, now_ns);
    admit->admitted++;
    admit->outstanding += cost;
}

uint64_t admit_mark_ns(const struct admit *admit)
{
    uint64_t length_ns = admit->interval.last_ns;

    if (length_ns < MARK_LEAST_NS)
        return MARK_LEAST_NS;
    return length_ns < MARK_MOST_NS ? length_ns : MARK_MOST_NS;
}

void admit_swap(struct admit *admit, uint64_t joins, uint64_t leaves, uint64_t now_ns)
{
    pass_time(admit, now_ns);
    admit->queue += joins;
    left(admit, leaves);
}

void admit_requeue(struct admit *admit, uint64_t cost, uint64_t now_ns)
{
    pass_time(admit, now_ns);
    admit->outstanding -= cost < admit->outstanding ? cost : admit->outstanding;
    admit->queue += cost;
}

void admit_complete(struct admit *admit, uint64_t cost, uint64_t now_ns)
{
    struct admit_interval *interval = &admit->interval;

    pass_time(admit, now_ns);
    admit->outstanding -= cost < admit->outstanding ? cost : admit->outstanding;
    interval->done_cost += cost;
    interval->done_squares += (unsigned __int128)cost * cost;
    if (ops_of(admit)->complete)
        ops_of(admit)->complete(admit, cost);
    if (turned_over(admit))
        interval_close(admit);
}

/* ---------------------------------------------------------------- looking */

struct admit_view admit_look(const struct admit *admit)
{
    struct admit_view view = {
        .queue = admit->queue,
        .offered = admit->offered,
        .admitted = admit->admitted,
        .refused = admit->refused,
        .capacity_per_s =
            (double)admit->interval.rate_q40 * 1e9 / (double)(1ULL << ADMIT_RATE_BITS),
        .interval_ns = admit->interval.last_ns,
    };

    ops_of(admit)->look(admit, &view);
    return view;
}

uint64_t admit_retry_after_ns(const struct admit *admit)
{
    if (admit->interval.rate_q40 == 0)
        return 0;
    return admit_scale(admit->queue, 1ULL << ADMIT_RATE_BITS, admit->interval.rate_q40);
}
