/* SPDX-License-Identifier: Apache-2.0 */
/* Open loop: the rate and its shape over time. */
#include "loadgen/client/keys/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/embedded/embedded.h"

#define LEAST_RATE   1e-9
#define LEAST_FACTOR 1e-6
#define MOST_FACTOR  1e6
#define MOST_SCALED  1e8

static bool set_rate(struct flow_spec *spec, const char *value)
{
    spec->open_loop = true;
    return key_rate(value, LEAST_RATE, &spec->arrival.rate_per_s);
}

static bool set_arrival(struct flow_spec *spec, const char *value)
{
    spec->arrival.gaps = strcmp(value, "constant") == 0 ? ARRIVAL_CONSTANT : ARRIVAL_POISSON;
    return strcmp(value, "constant") == 0 || strcmp(value, "poisson") == 0;
}

static bool set_on(struct flow_spec *spec, const char *value)
{
    spec->arrival.shape = ARRIVAL_ON_OFF;
    return key_time(value, 1, &spec->arrival.on_ns);
}

static bool set_off(struct flow_spec *spec, const char *value)
{
    return key_time(value, 0, &spec->arrival.off_ns);
}

/* "RATE:TIME" */
static bool rate_and_time(const char *value, double least_per_s, double *rate_per_s, uint64_t *ns)
{
    char rate[40];
    const char *time;

    return key_split(value, rate, sizeof(rate), &time) && key_rate(rate, least_per_s, rate_per_s) &&
           key_time(time, 1, ns);
}

static bool set_steps(struct flow_spec *spec, const char *value)
{
    struct arrival_spec *arrival = &spec->arrival;
    char word[80];
    bool any = false;

    arrival->shape = ARRIVAL_STEP_LIST;
    spec->open_loop = true;
    for (arrival->steps_count = 0; key_word(&value, word, sizeof(word)); arrival->steps_count++) {
        struct arrival_step *step = &arrival->steps[arrival->steps_count];

        if (arrival->steps_count == ARRIVAL_STEPS ||
            !rate_and_time(word, 0, &step->rate_per_s, &step->length_ns))
            return false;
        any = any || step->rate_per_s > 0;
    }
    return any && value[strspn(value, " \t")] == '\0';
}

static bool set_sine(struct flow_spec *spec, const char *value)
{
    spec->arrival.shape = ARRIVAL_SINE;
    return rate_and_time(value, LEAST_RATE, &spec->arrival.amplitude_per_s,
                         &spec->arrival.period_ns);
}

static bool set_ramp(struct flow_spec *spec, const char *value)
{
    spec->arrival.shape = ARRIVAL_RAMP;
    spec->open_loop = true;
    return rate_and_time(value, 0, &spec->arrival.peak_per_s, &spec->arrival.period_ns);
}

static bool set_trace(struct flow_spec *spec, const char *value)
{
    spec->arrival.shape = ARRIVAL_TRACE;
    spec->open_loop = true;
    return key_text(spec->trace_name, sizeof(spec->trace_name), value);
}

static bool set_repeat(struct flow_spec *spec, const char *value)
{
    return key_flag(value, &spec->arrival.repeats);
}

static bool set_speed(struct flow_spec *spec, const char *value)
{
    return key_number(value, LEAST_FACTOR, MOST_FACTOR, &spec->arrival.speed);
}

static bool set_scale(struct flow_spec *spec, const char *value)
{
    return key_number(value, LEAST_FACTOR, MOST_FACTOR, &spec->arrival.scale);
}

/* ---------------------------------------------------------------- traces, read once each */

struct known_trace {
    struct known_trace *next;
    char name[FLOW_TRACE_BYTES];
    struct trace trace;
};

/* Arrival processes refer to traces as long as the program runs. */
static struct known_trace *known_traces;

static const struct trace *find_trace(const char *name, char error[FLOW_ERROR_BYTES])
{
    struct embedded_file file;
    char problem[TRACE_ERROR_BYTES] = "";
    struct known_trace *known = known_traces;

    while (known && strcmp(known->name, name) != 0)
        known = known->next;
    if (known)
        return &known->trace;
    known = memory_zeroed(1, sizeof(*known));
    if (embedded_trace(name, &file) ? trace_parse(file.text, file.length, &known->trace, problem)
                                    : trace_read(name, &known->trace, problem)) {
        key_complain(error, "trace=%.100s: %s", name, problem);
        free(known);
        return NULL;
    }
    snprintf(known->name, sizeof(known->name), "%s", name);
    known->next = known_traces;
    known_traces = known;
    return &known->trace;
}

static int check_trace(struct flow_spec *spec, char *error)
{
    if (spec->offline)
        return 0;
    spec->arrival.trace = find_trace(spec->trace_name, error);
    if (!spec->arrival.trace)
        return -EINVAL;
    if (spec->arrival.trace->times && flow_spec_given(spec, "arrival"))
        return key_complain(error, "arrival: this trace tells the time of each request; leave "
                                   "arrival out");
    if (spec->arrival.trace->times && flow_spec_given(spec, "scale"))
        return key_complain(error, "scale: this trace tells the time of each request; speed=N "
                                   "makes them come faster");
    return 0;
}

/* ---------------------------------------------------------------- together */

/* What gives the flow its shape, in the order of `enum arrival_shape`. */
static const char *const shape_keys[] = {"on", "steps", "sine", "ramp", "trace"};

#define SHAPE_KEYS (sizeof(shape_keys) / sizeof(shape_keys[0]))

static int check_shape(const struct flow_spec *spec, enum flow_use use, const char **shape,
                       char *error)
{
    for (size_t i = 0; i < SHAPE_KEYS; i++) {
        /* A simulated flow has fewer of them. */
        if (!flow_spec_fits(spec, use, shape_keys[i]) || !flow_spec_given(spec, shape_keys[i]))
            continue;
        if (*shape)
            return key_complain(error, "%s and %s: a flow has one shape; leave one of them out",
                                *shape, shape_keys[i]);
        *shape = shape_keys[i];
    }
    return 0;
}

static double highest_rate(const struct arrival_spec *arrival)
{
    double rate = arrival->rate_per_s + arrival->amplitude_per_s;

    if (arrival->shape == ARRIVAL_RAMP && arrival->peak_per_s > rate)
        rate = arrival->peak_per_s;
    for (size_t i = 0; i < arrival->steps_count; i++)
        rate = arrival->steps[i].rate_per_s > rate ? arrival->steps[i].rate_per_s : rate;
    return rate;
}

static int check_rate(const struct flow_spec *spec, char *error)
{
    int result =
        key_exclude(spec, "rate", "steps", "the steps tell the rates; leave rate out", error);

    if (!result)
        result = key_exclude(spec, "rate", "trace",
                             "the trace tells the rates; scale=N multiplies them", error);
    if (result)
        return result;
    if (flow_spec_given(spec, "sine") && !flow_spec_given(spec, "rate"))
        return key_complain(error, "sine needs rate=N/s, its mean");
    if (spec->arrival.shape == ARRIVAL_RAMP && highest_rate(&spec->arrival) <= 0)
        return key_complain(error, "ramp: from 0 to 0 is no load; give it a peak or a rate to "
                                   "start from");
    return 0;
}

static int check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    const char *shape = NULL;
    int result = check_shape(spec, use, &shape, error);

    if (result)
        return result;
    if (flow_spec_given(spec, "on") != flow_spec_given(spec, "off") ||
        (spec->arrival.on_ns == 0) != (spec->arrival.off_ns == 0))
        return key_complain(error, "on and off go together");
    if (!flow_spec_given(spec, "rate") && spec->arrival.on_ns)
        return key_complain(error, "on and off need rate=N/s");
    if (!spec->open_loop && flow_spec_given(spec, "arrival"))
        return key_complain(error, "arrival is for open loop: it needs rate=N/s");
    if (!shape && flow_spec_given(spec, "speed"))
        return key_complain(error, "speed needs a rate that changes: on and off, steps, sine, "
                                   "ramp or trace");
    if (!spec->open_loop && flow_spec_given(spec, "scale"))
        return key_complain(error, "scale multiplies a rate: it needs rate, steps, ramp or trace");
    if (spec->arrival.scale * highest_rate(&spec->arrival) > MOST_SCALED)
        return key_complain(error, "scale: no more than 100M/s in all");
    if (use == FLOW_SENT && flow_spec_given(spec, "repeat") && !spec->trace_name[0])
        return key_complain(error, "repeat needs trace=FILE");
    result = check_rate(spec, error);
    if (result)
        return result;
    return spec->trace_name[0] ? check_trace(spec, error) : 0;
}

static const struct flow_key keys[] = {
    {"rate", FLOW_BOTH, KEY_OF_ALL, false, set_rate, "a rate above 0 and up to 100M/s, as 120/s",
     "open loop at this rate (while on; sine: its mean; ramp: its start)"},
    {"arrival", FLOW_BOTH, KEY_OF_ALL, false, set_arrival, "poisson or constant",
     "gaps between requests (default poisson)"},
    {"on", FLOW_BOTH, KEY_OF_ALL, false, set_on, "a time above 0, as 5s",
     "length of ON phases; needs off"},
    {"off", FLOW_BOTH, KEY_OF_ALL, false, set_off, "a time, as 5s",
     "length of OFF phases; needs on"},
    {"steps", FLOW_BOTH, KEY_OF_ALL, false, set_steps,
     "RATE:TIME up to 64 times with blanks between, as '15/s:10m 35/s:10m', not all of them 0",
     "a list of rates and how long each lasts, over and over"},
    {"sine", FLOW_BOTH, KEY_OF_ALL, false, set_sine, "AMPLITUDE:PERIOD, as 50/s:60s",
     "a wave about rate, never below 0"},
    {"ramp", FLOW_BOTH, KEY_OF_ALL, false, set_ramp, "RATE:TIME, as 500/s:30s",
     "from rate (default 0) to this one in this time, where it stays"},
    {"trace", FLOW_SENT, KEY_OF_ALL, false, set_trace, "a file",
     "rates or times of a file, or of a built-in trace (big-spike, dual-phase, large-variation, "
     "quick-varying, slow-varying, steep-tri-phase, production-day)"},
    {"repeat", FLOW_SENT, KEY_OF_ALL, false, set_repeat, "yes or no",
     "the trace begins again at its end (default no)"},
    {"speed", FLOW_BOTH, KEY_OF_ALL, false, set_speed, "a number from 0.000001 to 1000000",
     "the shape's clock runs so many times as fast (default 1); its rates stay"},
    {"scale", FLOW_BOTH, KEY_OF_ALL, false, set_scale, "a number from 0.000001 to 1000000",
     "multiplies the rates (default 1)"},
};

const struct key_group key_group_arrival = {"Open loop", keys, sizeof(keys) / sizeof(keys[0]),
                                            check};
