/* SPDX-License-Identifier: Apache-2.0 */
/* What a shape wants: its rate and its integral at any time, without a process; and the names. */
#include <math.h>

#include "loadgen/arrival/arrival.h"

#define NS_PER_S 1e9

static const char *const shape_names[ARRIVAL_SHAPES] = {
    [ARRIVAL_STEADY] = "steady", [ARRIVAL_ON_OFF] = "on-off", [ARRIVAL_STEP_LIST] = "steps",
    [ARRIVAL_SINE] = "sine",     [ARRIVAL_RAMP] = "ramp",     [ARRIVAL_TRACE] = "trace",
};

const char *arrival_shape_name(enum arrival_shape shape)
{
    return shape_names[shape];
}

const char *arrival_gaps_name(enum arrival_gaps gaps)
{
    return gaps == ARRIVAL_CONSTANT ? "constant" : "poisson";
}

static double or_one(double factor)
{
    return factor > 0 ? factor : 1;
}

/* ---------------------------------------------------------------- on the shape's clock, unscaled
 */

static double cycle_s(const struct arrival_spec *spec)
{
    double length_s = 0;

    switch (spec->shape) {
    case ARRIVAL_ON_OFF:
        return (double)(spec->on_ns + spec->off_ns) / NS_PER_S;
    case ARRIVAL_STEP_LIST:
        for (size_t i = 0; i < spec->steps_count; i++)
            length_s += (double)spec->steps[i].length_ns / NS_PER_S;
        return length_s;
    case ARRIVAL_SINE:
        return (double)spec->period_ns / NS_PER_S;
    case ARRIVAL_TRACE:
        return spec->repeats ? (double)spec->trace->length_ns / NS_PER_S : INFINITY;
    default:
        return INFINITY;
    }
}

static struct sine wave(const struct arrival_spec *spec)
{
    struct sine sine;

    sine_init(&sine, spec->rate_per_s, spec->amplitude_per_s, (double)spec->period_ns / NS_PER_S);
    return sine;
}

static double ramp_rate(const struct arrival_spec *spec, double time_s)
{
    double part = fmin(1, time_s / ((double)spec->period_ns / NS_PER_S));

    return spec->rate_per_s + (spec->peak_per_s - spec->rate_per_s) * part;
}

/* Of steps and of a trace's rates: the rate at a time in the cycle, the integral up to it. */
static void walk(const struct arrival_spec *spec, double time_s, double *rate, double *reached)
{
    bool steps = spec->shape == ARRIVAL_STEP_LIST;
    size_t count = steps ? spec->steps_count : spec->trace->count;

    *rate = *reached = 0;
    for (size_t i = 0; i < count; i++) {
        double length_s =
            (double)(steps ? spec->steps[i].length_ns : spec->trace->interval_ns) / NS_PER_S;
        double piece_rate = steps ? spec->steps[i].rate_per_s : spec->trace->rates_per_s[i];

        if (time_s < length_s) {
            *rate = piece_rate;
            *reached += piece_rate * time_s;
            return;
        }
        *reached += piece_rate * length_s;
        time_s -= length_s;
    }
}

static size_t times_before(const struct trace *trace, double time_s)
{
    size_t low = 0;
    size_t high = trace->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((double)trace->times_ns[middle] < time_s * NS_PER_S)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Within the first cycle. */
static double reached_in_cycle(const struct arrival_spec *spec, double time_s)
{
    double rate;
    double reached;

    switch (spec->shape) {
    case ARRIVAL_ON_OFF:
        return spec->rate_per_s * fmin(time_s, (double)spec->on_ns / NS_PER_S);
    case ARRIVAL_SINE: {
        struct sine sine = wave(spec);

        return sine_reached(&sine, time_s);
    }
    case ARRIVAL_RAMP: {
        double length_s = fmin(time_s, (double)spec->period_ns / NS_PER_S);

        return (spec->rate_per_s + ramp_rate(spec, length_s)) / 2 * length_s +
               spec->peak_per_s * (time_s - length_s);
    }
    case ARRIVAL_STEP_LIST:
    case ARRIVAL_TRACE:
        if (spec->shape == ARRIVAL_TRACE && spec->trace->times)
            return (double)times_before(spec->trace, time_s);
        walk(spec, time_s, &rate, &reached);
        return reached;
    default:
        return spec->rate_per_s * time_s;
    }
}

static double rate_in_cycle(const struct arrival_spec *spec, double time_s)
{
    double rate;
    double reached;

    switch (spec->shape) {
    case ARRIVAL_ON_OFF:
        return time_s < (double)spec->on_ns / NS_PER_S ? spec->rate_per_s : 0;
    case ARRIVAL_SINE: {
        struct sine sine = wave(spec);

        return sine_rate(&sine, time_s);
    }
    case ARRIVAL_RAMP:
        return ramp_rate(spec, time_s);
    case ARRIVAL_STEP_LIST:
    case ARRIVAL_TRACE:
        if (spec->shape == ARRIVAL_TRACE && spec->trace->times)
            return 0;
        walk(spec, time_s, &rate, &reached);
        return rate;
    default:
        return spec->rate_per_s;
    }
}

/* ---------------------------------------------------------------- in real time */

double arrival_rate_at(const struct arrival_spec *spec, uint64_t time_ns)
{
    double time_s = (double)time_ns / NS_PER_S * or_one(spec->speed);
    double cycle = cycle_s(spec);

    if (isfinite(cycle) && cycle > 0)
        time_s = fmod(time_s, cycle);
    return rate_in_cycle(spec, time_s) * or_one(spec->scale);
}

double arrival_expected(const struct arrival_spec *spec, uint64_t until_ns)
{
    double time_s = (double)until_ns / NS_PER_S * or_one(spec->speed);
    double cycle = cycle_s(spec);
    double reached = 0;

    if (isfinite(cycle) && cycle > 0) {
        double cycles = floor(time_s / cycle);

        reached = cycles > 0 ? cycles * reached_in_cycle(spec, cycle) : 0;
        time_s -= cycles * cycle;
    }
    reached += reached_in_cycle(spec, time_s);
    if (spec->shape == ARRIVAL_TRACE && spec->trace->times)
        return reached;
    return reached * or_one(spec->scale) / or_one(spec->speed);
}
