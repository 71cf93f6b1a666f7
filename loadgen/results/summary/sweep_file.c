/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps in memory and as JSON. */
#include "loadgen/results/summary/sweep_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/results/statistics/knee.h"
#include "loadgen/results/summary/json_text.h"
#include "loadgen/results/summary/summary_json.h"

void sweep_init(struct sweep *sweep, const char *parameter)
{
    memset(sweep, 0, sizeof(*sweep));
    snprintf(sweep->parameter, sizeof(sweep->parameter), "%s", parameter);
}

void sweep_fini(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        summary_fini(&sweep->steps[i].summary);
    free(sweep->steps);
    free(sweep->command);
    memset(sweep, 0, sizeof(*sweep));
}

void sweep_add(struct sweep *sweep, const char *text, double value, const struct summary *summary)
{
    sweep->steps = memory_grow(sweep->steps, (sweep->count + 1) * sizeof(*sweep->steps));
    struct sweep_step *step = &sweep->steps[sweep->count++];

    snprintf(step->text, sizeof(step->text), "%s", text);
    step->value = value;
    step->summary = *summary;
}

double sweep_throughput(const struct sweep_step *step)
{
    double sum = 0;

    for (size_t i = 0; i < step->summary.flows_count; i++)
        sum += step->summary.flows[i].throughput_per_s;
    return sum;
}

const struct sweep_step *sweep_knee(const struct sweep *sweep)
{
    double *x = memory_zeroed(sweep->count, sizeof(*x));
    double *y = memory_zeroed(sweep->count, sizeof(*y));

    for (size_t i = 0; i < sweep->count; i++) {
        x[i] = sweep->steps[i].value;
        y[i] = sweep_throughput(&sweep->steps[i]);
    }
    size_t knee = knee_find(x, y, sweep->count);

    free(x);
    free(y);
    return knee == KNEE_NONE ? NULL : &sweep->steps[knee];
}

void sweep_write(FILE *out, const struct sweep *sweep)
{
    const struct sweep_step *knee = sweep_knee(sweep);
    json_t *steps = json_array();

    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_step *step = &sweep->steps[i];

        json_array_append_new(steps,
                              json_pack("{s:o, s:f, s:o}", "text", json_text(step->text), "value",
                                        step->value, "summary", summary_json(&step->summary)));
    }
    json_t *json = json_pack("{s:i, s:s, s:o, s:o, s:o, s:o}", "format", SUMMARY_FORMAT, "kind",
                             "sweep", "parameter", json_text(sweep->parameter), "command",
                             sweep->command ? json_text(sweep->command) : json_null(), "knee",
                             knee ? json_real(knee->value) : json_null(), "steps", steps);

    json_text_write(out, json);
    json_decref(json);
}

/* ---------------------------------------------------------------- reading */

static int refuse(const char *name, const char *reason, char error[SUMMARY_ERROR_BYTES])
{
    snprintf(error, SUMMARY_ERROR_BYTES, "%s: %s", name, reason);
    return -EINVAL;
}

static int read_step(const json_t *json, const char *name, struct sweep *out,
                     char error[SUMMARY_ERROR_BYTES])
{
    const char *text = json_string_value(json_object_get(json, "text"));
    const json_t *value = json_object_get(json, "value");
    double number = json_number_value(value);
    struct summary summary;

    if (!text || !json_is_number(value) || !isfinite(number))
        return refuse(name, "each step must have text and value", error);
    if (out->count > 0 && number <= out->steps[out->count - 1].value)
        return refuse(name, "the steps' values must rise", error);
    int result = summary_from_json(json_object_get(json, "summary"), name, &summary, error);

    if (result == 0)
        sweep_add(out, text, number, &summary);
    return result;
}

int sweep_from_json(const json_t *json, const char *name, struct sweep *out,
                    char error[SUMMARY_ERROR_BYTES])
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *parameter = json_string_value(json_object_get(json, "parameter"));
    const char *command = json_string_value(json_object_get(json, "command"));
    const json_t *steps = json_object_get(json, "steps");
    int result = 0;

    sweep_init(out, parameter ? parameter : "");
    if (!kind || strcmp(kind, "sweep") != 0 || !parameter ||
        json_integer_value(json_object_get(json, "format")) != SUMMARY_FORMAT)
        return refuse(name, "this is no result of spillload sweep --json", error);
    if (!json_is_array(steps) || json_array_size(steps) > SWEEP_MAX_STEPS)
        return refuse(name, "steps must be an array of at most 1000", error);
    out->command = command ? memory_string(command) : NULL;
    for (size_t i = 0; i < json_array_size(steps) && result == 0; i++)
        result = read_step(json_array_get(steps, i), name, out, error);
    if (result != 0)
        sweep_fini(out);
    return result;
}
