/* SPDX-License-Identifier: Apache-2.0 */
/* The levels of made traces over the part of their length that is gone, and the noise on them. */
#include "loadgen/arrival/trace_shapes.h"

#include <math.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/rng.h"

#define SWINGS   128
#define NS_PER_S 1000000000ULL
/* Of the noise from one interval to the next: 0 would be white. */
#define NOISE_MEMORY 0.8
/* Rates are whole multiples of this part of the peak. */
#define GRAIN 1e-4

/* What a seed decides of a shape: where it turns, and how far each swing goes. */
struct draws {
    double shift[4];      /* uniform in -1..1 */
    double where[SWINGS]; /* of turn n, in turns of mean length 1 */
    double depth[SWINGS]; /* uniform in 0..1 */
};

/* 0 before `at`, 1 after at + width, smooth between. */
static double rise(double part, double at, double width)
{
    double x = fmin(1, fmax(0, (part - at) / width));

    return x * x * (3 - 2 * x);
}

static double bell(double part, double at, double width)
{
    return exp(-(part - at) * (part - at) / (2 * width * width));
}

/* Swings between a low and a high band: turns are `turn` apart on average, low and high in turns.
 */
static double swing(const struct draws *draws, double part, double turn, const double low[2],
                    const double high[2])
{
    size_t n = 0;

    while (n + 2 < SWINGS && draws->where[n + 1] * turn <= part)
        n++;
    double from = draws->where[n] * turn;
    double to = draws->where[n + 1] * turn;
    const double *first = n % 2 ? high : low;
    const double *second = n % 2 ? low : high;
    double begin = first[0] + (first[1] - first[0]) * draws->depth[n];
    double end = second[0] + (second[1] - second[0]) * draws->depth[n + 1];

    return begin + (end - begin) * rise(part, from, to - from);
}

static double big_spike(const struct trace_shape *shape, const void *from, double part)
{
    const struct draws *draws = from;
    double at = 0.45 + 0.05 * draws->shift[0];

    (void)shape;
    return 0.2 + 0.75 * (rise(part, at, 0.03) - rise(part, at + 0.07, 0.07));
}

static double dual_phase(const struct trace_shape *shape, const void *from, double part)
{
    const struct draws *draws = from;

    (void)shape;
    return 0.3 + 0.02 * draws->shift[1] + 0.5 * rise(part, 0.47 + 0.03 * draws->shift[0], 0.04);
}

static double large_variation(const struct trace_shape *shape, const void *from, double part)
{
    static const double low[2] = {0.06, 0.3};
    static const double high[2] = {0.55, 1};

    (void)shape;
    return swing(from, part, 0.085, low, high);
}

static double quick_varying(const struct trace_shape *shape, const void *from, double part)
{
    static const double low[2] = {0.25, 0.45};
    static const double high[2] = {0.6, 1};

    (void)shape;
    return swing(from, part, 0.022, low, high);
}

static double slow_varying(const struct trace_shape *shape, const void *from, double part)
{
    const struct draws *draws = from;

    (void)shape;
    return 0.35 + 0.6 * bell(part, 0.55 + 0.05 * draws->shift[0], 0.22);
}

static double steep_tri_phase(const struct trace_shape *shape, const void *from, double part)
{
    const struct draws *draws = from;

    (void)shape;
    return 0.25 + 0.65 * rise(part, 0.3 + 0.03 * draws->shift[0], 0.015) -
           0.45 * rise(part, 0.63 + 0.03 * draws->shift[1], 0.015);
}

static double production_day(const struct trace_shape *shape, const void *from, double part)
{
    double hour = part * 24;
    double day = rise(hour, 5.5, 4.5) - rise(hour, 19, 5);

    (void)shape;
    (void)from;
    return 0.42 + 0.2 * day + 0.06 * bell(hour, 11.5, 1.5) - 0.03 * bell(hour, 13, 0.7) +
           0.35 * (rise(hour, 16.8, 0.4) - rise(hour, 17.4, 0.7));
}

static const struct trace_shape shapes[] = {
    {"big-spike", "a low level with one spike to the peak", NS_PER_S, 720 * NS_PER_S, 0.06,
     big_spike},
    {"dual-phase", "a low half, then a high one", NS_PER_S, 720 * NS_PER_S, 0.06, dual_phase},
    {"large-variation", "swings of a minute or so between little and the peak", NS_PER_S,
     720 * NS_PER_S, 0.05, large_variation},
    {"quick-varying", "swings of half a minute", NS_PER_S, 720 * NS_PER_S, 0.04, quick_varying},
    {"slow-varying", "one long wave", NS_PER_S, 720 * NS_PER_S, 0.04, slow_varying},
    {"steep-tri-phase", "three levels with steep flanks", NS_PER_S, 720 * NS_PER_S, 0.05,
     steep_tri_phase},
    {"production-day", "24 hours of a site: night, day, the spike at hour 17", 60 * NS_PER_S,
     86400 * NS_PER_S, 0.015, production_day},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

const struct trace_shape *trace_shape_at(size_t number)
{
    return number < SHAPES ? &shapes[number] : NULL;
}

const struct trace_shape *trace_shape_find(const char *name)
{
    for (size_t i = 0; i < SHAPES; i++) {
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    }
    return NULL;
}

static void draw(struct draws *draws, struct rng *rng)
{
    double where = -rng_unit(rng);

    for (size_t i = 0; i < sizeof(draws->shift) / sizeof(draws->shift[0]); i++)
        draws->shift[i] = 2 * rng_unit(rng) - 1;
    for (size_t i = 0; i < SWINGS; i++) {
        draws->where[i] = where;
        draws->depth[i] = rng_unit(rng);
        where += 0.6 + 0.8 * rng_unit(rng);
    }
}

/* Roughly normal with deviation 1, and no tails: twelve uniforms less six. */
static double bump(struct rng *rng)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += rng_unit(rng);
    return sum;
}

void trace_make(const struct trace_shape *shape, uint64_t seed, uint64_t length_ns,
                double peak_per_s, struct trace *out)
{
    struct draws draws;
    struct rng rng;
    double noise = 0;
    double highest = 0;

    *out = (struct trace){.interval_ns = shape->interval_ns,
                          .count = (size_t)(length_ns / shape->interval_ns)};
    out->length_ns = out->count * out->interval_ns;
    out->rates_per_s = memory_zeroed(out->count, sizeof(*out->rates_per_s));
    rng_init(&rng, seed, (uint64_t)(shape - shapes));
    draw(&draws, &rng);
    for (size_t i = 0; i < out->count; i++) {
        double part = ((double)i + 0.5) / (double)out->count;

        noise = NOISE_MEMORY * noise +
                sqrt(1 - NOISE_MEMORY * NOISE_MEMORY) * shape->noise * bump(&rng);
        out->rates_per_s[i] = fmax(0, shape->level(shape, &draws, part) * (1 + noise));
        highest = fmax(highest, out->rates_per_s[i]);
    }
    for (size_t i = 0; i < out->count; i++) {
        out->rates_per_s[i] = round(out->rates_per_s[i] / highest / GRAIN) * GRAIN * peak_per_s;
        out->total += out->rates_per_s[i] * (double)out->interval_ns / 1e9;
    }
}
