/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One bottleneck link, an admission policy of sched/ before it, and TCP senders, in virtual time.
 *
 *   senders ──► admit_offer ──► FIFO ──admit_dispatch──► the link ──admit_complete──► receivers
 *      ▲             │                       │                                            │
 *      │          dropped ◄──────────────────┘   (or marked, with ecn, and let through)   │
 *      └──────────────────── acknowledged, one round-trip time later ◄────────────────────┘
 *
 * Each of `flows` senders transfers `bytes` over a new connection, again and again. A connection
 * draws its round-trip time; all of that time is passed behind the link, so a sender's burst meets
 * the queue as a burst. Its set-up takes one round-trip time and no packets. Completion counts from
 * there to the acknowledgement of the last segment.
 *
 * The link sends one packet at a time: a pool of one slot, unless the policy is told otherwise
 * (what senders have under way is a reason to). What it carries when the capacity steps goes on to
 * its end as it is; the fraction of a nanosecond that a packet's time is rounded by is carried over
 * to the next one, so nothing drifts.
 *
 * A packet that is marked at the offer joins the queue by admit_requeue, which is how the policy
 * sees a queue with what it did not want in it. Costs are 1 (packets) or bytes.
 *
 * A run is repeatable: draws come from the seed, a generator per sender.
 */
#ifndef BENCH_SIM_LINK_LINK_SIM_H
#define BENCH_SIM_LINK_LINK_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/base/histogram.h"
#include "sched/admission/admission.h"

#define LINK_STEPS         64
#define LINK_SEGMENT_BYTES 1460U
#define LINK_HEADER_BYTES  40U

struct link_step {
    uint64_t from_ns;
    uint64_t bits_per_s; /* above 0 */
};

struct link_config {
    struct admit_options admit; /* its slots are in packets here, whatever the cost */
    bool ecn;                   /* mark instead of drop */
    bool cost_bytes;
    uint32_t flows;
    uint64_t bytes; /* of a transfer */
    uint64_t rtt_ns;
    uint64_t rtt_spread_ns; /* uniform, to both sides */
    uint64_t pause_ns;      /* between a sender's transfers */
    uint32_t initial_window;
    struct link_step steps[LINK_STEPS]; /* in order of time, the first from 0 */
    size_t step_count;
    uint64_t end_ns;
    uint64_t interval_ns; /* of the series; 0: none */
    uint64_t seed;
};

/* Of one capacity step. */
struct link_meter {
    uint64_t offered; /* packets */
    uint64_t dropped;
    uint64_t marked;
    uint64_t carried;
    uint64_t timeouts;
    uint64_t transfers;
    uint64_t busy_ns; /* of the link */
    uint64_t length_ns;
    struct histogram delay;      /* in the queue, of what was carried; by when it left */
    struct histogram completion; /* of transfers; by when they ended */
};

struct link_interval {
    uint64_t offered;
    uint64_t dropped;
    uint64_t marked;
    uint64_t carried;
    uint64_t delay_ns; /* sum over what was carried */
    uint64_t queue;    /* the longest */
};

/* Where every packet is: sent = dropped + delivered + queued + on the link + under way. */
struct link_count {
    uint64_t sent;
    uint64_t dropped;
    uint64_t delivered;
    uint64_t queued;
    uint64_t sending; /* 0 or 1 */
    uint64_t under_way;
    uint64_t held; /* packets that are not free, counted one by one */
};

struct link_sim;

struct link_sim *link_sim_create(const struct link_config *config);
void link_sim_destroy(struct link_sim *sim); /* NULL is accepted */
void link_sim_run(struct link_sim *sim, uint64_t until_ns);

const struct link_meter *link_sim_meter(const struct link_sim *sim, size_t step);
const struct link_interval *link_sim_intervals(const struct link_sim *sim, size_t *count);
struct link_count link_sim_count(const struct link_sim *sim);

/* Adds one run's to another's. */
void link_meter_reset(struct link_meter *meter);
void link_meter_merge(struct link_meter *into, const struct link_meter *from);

/* Shares of the link's time, and of the packets offered. */
double link_meter_used(const struct link_meter *meter);
double link_meter_dropped(const struct link_meter *meter);
double link_meter_marked(const struct link_meter *meter);

#endif
