/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrival processes of open-loop flows: when each request is meant to be sent, whatever became of
 * the ones before it.
 *
 * A process is a shape, the rate r(t) that is wanted at each time, and gaps that lay requests along
 * it. With R(t) = integral of r from 0 to t, the k-th request comes at the time where R(t) = u_k:
 *
 *   gaps constant   u_k = k
 *   gaps poisson    u_k = u_(k-1) + a draw of the exponential distribution with mean 1
 *
 * which makes the second a Poisson process whose rate is r(t) at every t (time rescaling: Cox and
 * Lewis, "The statistical analysis of series of events", 1966, section 3.3), and the first one with
 * the same count, off by one at most, up to every t. Where r is 0 nothing comes: a request that is
 * due as a pause begins comes at its end.
 *
 *   steady  r                       ramp    from r to `peak` in `period`, there it stays
 *   on/off  r for on, 0 for off     sine    r + amplitude * sin(2 pi t / period), never below 0
 *   steps   a list of rates and lengths, over and over (a square wave is a list of these)
 *   rates   a trace: one rate per interval; after its end nothing comes, unless it repeats
 *   times   a trace: the time of each request; gaps do not apply
 *
 * `speed` runs the shape's clock that many times as fast as real time and leaves its rates as they
 * are written: a day at speed 86400 s / 60 s takes a minute with the day's rates. A trace of times
 * at speed 2 comes twice as dense, there being no rate but its density. `scale` multiplies the
 * rates; a trace of times takes 1 alone.
 */
#ifndef LOADGEN_ARRIVAL_ARRIVAL_H
#define LOADGEN_ARRIVAL_ARRIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/arrival/sine.h"
#include "loadgen/arrival/trace.h"
#include "loadgen/base/rng.h"

#define ARRIVAL_STEPS 64

enum arrival_gaps {
    ARRIVAL_POISSON,
    ARRIVAL_CONSTANT,
};

enum arrival_shape {
    ARRIVAL_STEADY,
    ARRIVAL_ON_OFF,
    ARRIVAL_STEP_LIST,
    ARRIVAL_SINE,
    ARRIVAL_RAMP,
    ARRIVAL_TRACE, /* rates or times: the trace knows */
    ARRIVAL_SHAPES,
};

struct arrival_step {
    double rate_per_s; /* 0: a pause */
    uint64_t length_ns;
};

/* Plain data; a copy shares the trace, which must outlive every process that uses it. */
struct arrival_spec {
    enum arrival_gaps gaps;
    enum arrival_shape shape;
    double rate_per_s;      /* steady, on/off while on, sine its mean, ramp its start */
    uint64_t on_ns;         /* on/off; the first phase is ON */
    uint64_t off_ns;        /* on/off */
    double peak_per_s;      /* ramp: its end */
    double amplitude_per_s; /* sine */
    uint64_t period_ns;     /* sine: of one wave; ramp: from start to peak */
    struct arrival_step steps[ARRIVAL_STEPS];
    size_t steps_count;
    const struct trace *trace;
    bool repeats; /* trace: begins again at its end */
    double speed; /* above 0; 0 is read as 1 */
    double scale; /* above 0; 0 is read as 1 */
};

/*
 * A shape is a row of pieces that may come again in cycles: the steps, the entries of a trace, the
 * waves of a sine, the slope of a ramp and what follows it. `reached` and the time are counted from
 * the piece's start, whose time is whole nanoseconds, so that neither loses digits as a run goes
 * on. Steady and on/off have no pieces: there `reached` is ON time, in nanoseconds.
 */
struct arrival {
    struct arrival_spec spec;
    struct rng rng;
    uint64_t count;
    double factor;  /* of the shape's rates on its own clock: scale / speed */
    double reached; /* u of the request before, in requests since the piece's start */
    size_t piece;
    size_t pieces;
    uint64_t piece_start_ns; /* on the shape's clock */
    double cycle_total;      /* requests of all pieces */
    uint64_t cycle_ns;       /* 0: the pieces come once */
    struct sine sine;
    uint64_t last_ns;
    bool ended;
};

/* No time: what a process that has ended answers. */
#define ARRIVAL_NEVER UINT64_MAX

void arrival_init(struct arrival *arrival, const struct arrival_spec *spec, uint64_t seed,
                  uint64_t stream);

/*
 * The next request's time, from the flow's start; never less than the one before. ARRIVAL_NEVER
 * when there is none, and from then on.
 */
uint64_t arrival_next_ns(struct arrival *arrival);

/* r(t), of a trace of times 0: what a table shows as wanted. */
double arrival_rate_at(const struct arrival_spec *spec, uint64_t time_ns);

/* How many requests are wanted in [0, until): R(until), or the count of a trace of times. */
double arrival_expected(const struct arrival_spec *spec, uint64_t until_ns);

/* The shape's name, as "steady", and the gaps', as "poisson". */
const char *arrival_shape_name(enum arrival_shape shape);
const char *arrival_gaps_name(enum arrival_gaps gaps);

#endif
