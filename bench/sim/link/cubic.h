/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUBIC's congestion window, in segments, after RFC 9438 (section numbers below are its).
 *
 *     slow start:           one segment more for each that is acknowledged, while below the
 * threshold avoidance (4.2):      W(t) = 0.4 (t - K)^3 + W_max,  K = cbrt((W_max - window at t = 0)
 * / 0.4) Reno-friendly (4.3):  never slower than what additive increase would have reached
 *     reduction (4.6):      to 0.7; W_max is where it was, or less when it was falling (4.7)
 *
 * A loss leaves 2 segments at least, a mark leaves 1 (4.6), a timeout 1 and slow start (4.8).
 * HyStart is not simulated. Time is an argument; a reduction starts a new t at the next
 * acknowledgement.
 */
#ifndef BENCH_SIM_LINK_CUBIC_H
#define BENCH_SIM_LINK_CUBIC_H

#include <stdbool.h>
#include <stdint.h>

enum cubic_event { CUBIC_LOSS, CUBIC_MARK, CUBIC_TIMEOUT };

struct cubic {
    double window;
    double threshold;
    double window_max;   /* W_max */
    double inflection_s; /* K */
    double window_reno;  /* what additive increase would have reached since t = 0 */
    double window_prior; /* before the last reduction */
    uint64_t epoch_ns;   /* t = 0 */
    bool epoch;          /* there is one */
    bool restarted;      /* after a timeout: the next epoch starts at its own W_max */
};

/* A new connection in slow start. */
void cubic_init(struct cubic *cubic, double window);

/* W(t) of the present epoch. */
double cubic_curve(const struct cubic *cubic, double seconds);

/* A segment was acknowledged; `rtt_ns` is the smoothed one. */
void cubic_acked(struct cubic *cubic, uint64_t rtt_ns, uint64_t now_ns);

/* To be called once per window of data at most: when is the caller's business. */
void cubic_reduce(struct cubic *cubic, enum cubic_event event);

#endif
