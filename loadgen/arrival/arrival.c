/* SPDX-License-Identifier: Apache-2.0 */
/* Arrival processes: walking the pieces of a shape; what they are is told in the header. */
#include "loadgen/arrival/arrival.h"

#include <math.h>
#include <string.h>

#define NS_PER_S 1e9
/* Far enough below the end of the clock that sums of two such times do not wrap. */
#define LAST_NS (1ULL << 62)

static double or_one(double factor)
{
    return factor > 0 ? factor : 1;
}

/* ---------------------------------------------------------------- pieces, on the shape's clock */

static uint64_t piece_length_ns(const struct arrival *arrival, size_t piece)
{
    const struct arrival_spec *spec = &arrival->spec;

    switch (spec->shape) {
    case ARRIVAL_STEP_LIST:
        return spec->steps[piece].length_ns;
    case ARRIVAL_TRACE:
        return spec->trace->interval_ns;
    case ARRIVAL_RAMP:
        return piece == 0 ? spec->period_ns : LAST_NS;
    default:
        return spec->period_ns;
    }
}

static double piece_rate(const struct arrival *arrival, size_t piece)
{
    const struct arrival_spec *spec = &arrival->spec;

    if (spec->shape == ARRIVAL_STEP_LIST)
        return spec->steps[piece].rate_per_s * arrival->factor;
    if (spec->shape == ARRIVAL_TRACE)
        return spec->trace->rates_per_s[piece] * arrival->factor;
    return spec->peak_per_s * arrival->factor; /* after a ramp */
}

static double piece_total(const struct arrival *arrival, size_t piece)
{
    const struct arrival_spec *spec = &arrival->spec;
    double length_s = (double)piece_length_ns(arrival, piece) / NS_PER_S;

    if (spec->shape == ARRIVAL_SINE)
        return sine_reached(&arrival->sine, length_s);
    if (spec->shape == ARRIVAL_RAMP && piece == 0)
        return (spec->rate_per_s + spec->peak_per_s) / 2 * arrival->factor * length_s;
    return piece_rate(arrival, piece) * length_s;
}

/* Nanoseconds into the piece at which `reached` is reached. */
static double piece_time_ns(const struct arrival *arrival)
{
    const struct arrival_spec *spec = &arrival->spec;
    double reached = arrival->reached;

    if (reached <= 0)
        return 0;
    if (spec->shape == ARRIVAL_SINE) {
        double before_ns = (double)arrival->last_ns * or_one(spec->speed);
        double guess_s = (before_ns - (double)arrival->piece_start_ns) / NS_PER_S;

        return sine_time(&arrival->sine, reached, guess_s) * NS_PER_S;
    }
    if (spec->shape == ARRIVAL_RAMP && arrival->piece == 0) {
        /* The root of slope/2 t^2 + from t - reached in the form that loses no digits. */
        double from = spec->rate_per_s * arrival->factor;
        double slope =
            (spec->peak_per_s * arrival->factor - from) / ((double)spec->period_ns / NS_PER_S);
        double square = from * from + 2 * slope * reached;

        return 2 * reached / (from + sqrt(square > 0 ? square : 0)) * NS_PER_S;
    }
    return reached / piece_rate(arrival, arrival->piece) * NS_PER_S;
}

/* Goes on to the piece in which `reached` lies; false when there is none. */
static bool find_piece(struct arrival *arrival)
{
    for (;;) {
        double total = piece_total(arrival, arrival->piece);

        if (arrival->reached < total)
            return true;
        arrival->reached -= total;
        arrival->piece_start_ns += piece_length_ns(arrival, arrival->piece);
        if (arrival->piece_start_ns >= LAST_NS)
            return false;
        if (++arrival->piece < arrival->pieces)
            continue;
        if (arrival->cycle_ns == 0)
            return false;
        arrival->piece = 0;
        double cycles = floor(arrival->reached / arrival->cycle_total);

        if (cycles * (double)arrival->cycle_ns >= (double)LAST_NS)
            return false;
        arrival->reached = fmax(0, arrival->reached - cycles * arrival->cycle_total);
        arrival->piece_start_ns += (uint64_t)cycles * arrival->cycle_ns;
    }
}

/* ---------------------------------------------------------------- the process */

void arrival_init(struct arrival *arrival, const struct arrival_spec *spec, uint64_t seed,
                  uint64_t stream)
{
    bool comes_again = spec->shape == ARRIVAL_STEP_LIST || spec->shape == ARRIVAL_SINE ||
                       (spec->shape == ARRIVAL_TRACE && spec->repeats);

    memset(arrival, 0, sizeof(*arrival));
    arrival->spec = *spec;
    arrival->factor = or_one(spec->scale) / or_one(spec->speed);
    rng_init(&arrival->rng, seed, stream);
    if (spec->shape == ARRIVAL_STEADY || spec->shape == ARRIVAL_ON_OFF) {
        arrival->ended = spec->rate_per_s <= 0;
        return;
    }
    if (spec->shape == ARRIVAL_TRACE && spec->trace->times) {
        arrival->cycle_ns = spec->repeats ? spec->trace->length_ns : 0;
        arrival->ended = spec->trace->count == 0;
        return;
    }
    arrival->pieces = spec->shape == ARRIVAL_STEP_LIST ? spec->steps_count
                      : spec->shape == ARRIVAL_TRACE   ? spec->trace->count
                      : spec->shape == ARRIVAL_RAMP    ? 2
                                                       : 1;
    if (spec->shape == ARRIVAL_SINE)
        sine_init(&arrival->sine, spec->rate_per_s * arrival->factor,
                  spec->amplitude_per_s * arrival->factor, (double)spec->period_ns / NS_PER_S);
    for (size_t i = 0; i < arrival->pieces; i++) {
        arrival->cycle_total += piece_total(arrival, i);
        if (comes_again)
            arrival->cycle_ns += piece_length_ns(arrival, i);
    }
    arrival->ended = arrival->cycle_total <= 0;
}

/* From the shape's clock to real time; ARRIVAL_NEVER past the clock's end. */
static uint64_t real_ns(const struct arrival *arrival, uint64_t start_ns, double offset_ns)
{
    double speed = or_one(arrival->spec.speed);

    if (speed == 1 && offset_ns < (double)LAST_NS)
        return start_ns + (uint64_t)offset_ns;
    double time_ns = ((double)start_ns + offset_ns) / speed;

    return time_ns < (double)LAST_NS ? (uint64_t)time_ns : ARRIVAL_NEVER;
}

static uint64_t next_steady_ns(struct arrival *arrival)
{
    const struct arrival_spec *spec = &arrival->spec;
    double gap_ns = NS_PER_S / (spec->rate_per_s * or_one(spec->scale));

    if (spec->gaps == ARRIVAL_POISSON)
        arrival->reached += rng_exponential(&arrival->rng, gap_ns);
    else
        arrival->reached = (double)arrival->count * gap_ns;
    if (arrival->reached >= (double)LAST_NS)
        return ARRIVAL_NEVER;
    if (spec->shape == ARRIVAL_STEADY)
        return (uint64_t)arrival->reached;
    uint64_t on_time_ns = (uint64_t)(arrival->reached * or_one(spec->speed));
    uint64_t cycles = on_time_ns / spec->on_ns;

    if ((double)cycles * (double)(spec->on_ns + spec->off_ns) >= (double)LAST_NS)
        return ARRIVAL_NEVER;
    return real_ns(arrival, cycles * (spec->on_ns + spec->off_ns),
                   (double)(on_time_ns % spec->on_ns));
}

static uint64_t next_of_times_ns(struct arrival *arrival)
{
    const struct trace *trace = arrival->spec.trace;

    if (arrival->piece == trace->count) {
        arrival->piece_start_ns += arrival->cycle_ns;
        if (arrival->cycle_ns == 0 || arrival->piece_start_ns >= LAST_NS)
            return ARRIVAL_NEVER;
        arrival->piece = 0;
    }
    uint64_t time_ns = trace->times_ns[arrival->piece++];

    /* Times of months have more nanoseconds than a double has places. */
    if (or_one(arrival->spec.speed) == 1)
        return time_ns < LAST_NS ? arrival->piece_start_ns + time_ns : ARRIVAL_NEVER;
    return real_ns(arrival, arrival->piece_start_ns, (double)time_ns);
}

static uint64_t next_of_pieces_ns(struct arrival *arrival)
{
    arrival->reached +=
        arrival->spec.gaps == ARRIVAL_POISSON ? rng_exponential(&arrival->rng, 1) : 1;
    if (!find_piece(arrival))
        return ARRIVAL_NEVER;
    /* Rounding must not push it to where the next piece begins. */
    double last_ns = (double)(piece_length_ns(arrival, arrival->piece) - 1);

    return real_ns(arrival, arrival->piece_start_ns, fmin(piece_time_ns(arrival), last_ns));
}

uint64_t arrival_next_ns(struct arrival *arrival)
{
    const struct arrival_spec *spec = &arrival->spec;
    uint64_t next_ns;

    if (arrival->ended)
        return ARRIVAL_NEVER;
    arrival->count++;
    if (spec->shape == ARRIVAL_STEADY || spec->shape == ARRIVAL_ON_OFF)
        next_ns = next_steady_ns(arrival);
    else if (spec->shape == ARRIVAL_TRACE && spec->trace->times)
        next_ns = next_of_times_ns(arrival);
    else
        next_ns = next_of_pieces_ns(arrival);
    if (next_ns == ARRIVAL_NEVER) {
        arrival->ended = true;
        return next_ns;
    }
    if (next_ns > arrival->last_ns)
        arrival->last_ns = next_ns;
    return arrival->last_ns;
}
