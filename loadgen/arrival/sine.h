/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One wave of r(t) = mean + amplitude * sin(2 pi t / period), cut off at 0, and its integral both
 * ways. An amplitude above the mean leaves a dry stretch in the second half of the wave:
 *
 *        __
 *      /    \
 *   --+------+-.----.--   mean
 *   0          |____|  period
 *           dry_from  dry_to
 */
#ifndef LOADGEN_ARRIVAL_SINE_H
#define LOADGEN_ARRIVAL_SINE_H

/* Times are seconds since the wave's start. */
struct sine {
    double mean_per_s;
    double amplitude_per_s; /* not negative */
    double period_s;
    double dry_from_s; /* equal to dry_to_s when it never runs dry */
    double dry_to_s;
};

void sine_init(struct sine *sine, double mean_per_s, double amplitude_per_s, double period_s);

double sine_rate(const struct sine *sine, double time_s);

/* The integral from 0 to a time within the wave. */
double sine_reached(const struct sine *sine, double time_s);

/* The time within the wave at which the integral is `reached`, that being below all of the wave's.
 * `guess_s` is where the search begins. */
double sine_time(const struct sine *sine, double reached, double guess_s);

#endif
