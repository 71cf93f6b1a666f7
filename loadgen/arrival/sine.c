/* SPDX-License-Identifier: Apache-2.0 */
/* The sine's integral in closed form, its inverse by Newton's steps inside a bracket. */
#include "loadgen/arrival/sine.h"

#include <math.h>
#include <stdbool.h>

#define TOLERANCE_S 1e-10
#define MOST_STEPS  100

void sine_init(struct sine *sine, double mean_per_s, double amplitude_per_s, double period_s)
{
    *sine = (struct sine){mean_per_s, amplitude_per_s, period_s, period_s, period_s};
    if (amplitude_per_s > mean_per_s) {
        double past_half_s = asin(mean_per_s / amplitude_per_s) * period_s / (2 * M_PI);

        sine->dry_from_s = period_s / 2 + past_half_s;
        sine->dry_to_s = period_s - past_half_s;
    }
}

double sine_rate(const struct sine *sine, double time_s)
{
    double rate =
        sine->mean_per_s + sine->amplitude_per_s * sin(2 * M_PI * time_s / sine->period_s);

    return rate > 0 ? rate : 0;
}

/* As if the rate could be negative. */
static double integral(const struct sine *sine, double time_s)
{
    double half_turn = sin(M_PI * time_s / sine->period_s);

    /* 1 - cos(2x) = 2 sin(x)^2, which keeps its digits near 0. */
    return sine->mean_per_s * time_s +
           sine->amplitude_per_s * sine->period_s / M_PI * half_turn * half_turn;
}

double sine_reached(const struct sine *sine, double time_s)
{
    if (time_s <= sine->dry_from_s)
        return integral(sine, time_s);
    double reached = integral(sine, sine->dry_from_s);

    if (time_s > sine->dry_to_s)
        reached += integral(sine, time_s) - integral(sine, sine->dry_to_s);
    return reached;
}

double sine_time(const struct sine *sine, double reached, double guess_s)
{
    bool after = reached >= sine_reached(sine, sine->dry_from_s);
    double low_s = after ? sine->dry_to_s : 0;
    double high_s = after ? sine->period_s : sine->dry_from_s;
    double time_s = guess_s;

    for (int i = 0; i < MOST_STEPS && high_s - low_s > TOLERANCE_S; i++) {
        if (time_s <= low_s || time_s >= high_s)
            time_s = low_s + (high_s - low_s) / 2;
        double excess = sine_reached(sine, time_s) - reached;
        double rate = sine_rate(sine, time_s);

        if (excess > 0)
            high_s = time_s;
        else
            low_s = time_s;
        double step_s = rate > 0 ? excess / rate : high_s;

        time_s -= step_s;
        if (fabs(step_s) < TOLERANCE_S)
            break;
    }
    return time_s < low_s ? low_s : time_s > high_s ? high_s : time_s;
}
