/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summaries from JSON. A reader fails once: the first thing that is not as it must be is kept as a
 * sentence, and all that follows reads as zero.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/results/summary/summary_json.h"

#define MAX_KINDS 1024U

struct reader {
    const char *name; /* of the file */
    char where[128];  /* "flow gold" */
    char *error;      /* SUMMARY_ERROR_BYTES */
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void fail(struct reader *reader, const char *format,
                                                       ...)
{
    va_list arguments;

    if (reader->failed)
        return;
    reader->failed = true;
    int used = snprintf(reader->error, SUMMARY_ERROR_BYTES, "%s: %s%s", reader->name, reader->where,
                        reader->where[0] ? ": " : "");

    va_start(arguments, format);
    if (used >= 0 && used < SUMMARY_ERROR_BYTES)
        vsnprintf(reader->error + used, SUMMARY_ERROR_BYTES - (size_t)used, format, arguments);
    va_end(arguments);
}

/* ---------------------------------------------------------------- single values */

/* Whole numbers below 2^53, so that sums and doubles of them are exact enough for anything. */
static uint64_t whole_of(struct reader *reader, const json_t *value, const char *key)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || number >= (1LL << 53)) {
        fail(reader, "%s must be a whole number from 0 on", key);
        return 0;
    }
    return (uint64_t)number;
}

static double real_of(struct reader *reader, const json_t *value, const char *key)
{
    double number = json_number_value(value);

    if (!json_is_number(value) || !isfinite(number) || number < 0 || number > 1e18) {
        fail(reader, "%s must be a number from 0 on", key);
        return 0;
    }
    return number;
}

static uint64_t get_whole(struct reader *reader, const json_t *object, const char *key)
{
    return whole_of(reader, json_object_get(object, key), key);
}

static double get_real(struct reader *reader, const json_t *object, const char *key)
{
    return real_of(reader, json_object_get(object, key), key);
}

static uint64_t get_ms(struct reader *reader, const json_t *object, const char *key)
{
    double value_ms = get_real(reader, object, key);

    return value_ms < 9e12 ? (uint64_t)llround(value_ms * 1e6) : 0;
}

static void get_text(struct reader *reader, const json_t *object, const char *key, char *out,
                     size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text)
        fail(reader, "%s must be text", key);
    else if (strlen(text) >= size)
        fail(reader, "%s must be shorter than %zu bytes", key, size);
    else
        memcpy(out, text, strlen(text) + 1);
}

/* NULL where the key is null or not there. */
static char *get_optional_text(struct reader *reader, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!value || json_is_null(value))
        return NULL;
    if (!json_is_string(value)) {
        fail(reader, "%s must be text or null", key);
        return NULL;
    }
    return memory_string(json_string_value(value));
}

/* ---------------------------------------------------------------- histograms and meters */

static void read_buckets(struct reader *reader, const json_t *json, struct histogram *out)
{
    const json_t *starts = json_object_get(json, "start_ns");
    const json_t *counts = json_object_get(json, "count");
    size_t least = 0;

    if (!json_is_array(starts) || !json_is_array(counts) ||
        json_array_size(starts) != json_array_size(counts)) {
        fail(reader, "histogram must have the arrays start_ns and count, of one length");
        return;
    }
    for (size_t i = 0; i < json_array_size(starts) && !reader->failed; i++) {
        uint64_t start = whole_of(reader, json_array_get(starts, i), "start_ns");
        uint64_t count = whole_of(reader, json_array_get(counts, i), "count");
        size_t bucket = histogram_bucket(start);

        if (histogram_bucket_start(bucket) != start || bucket < least || count == 0 ||
            out->total + count >= (1ULL << 53)) {
            fail(reader, "start_ns must hold starts of buckets in rising order, and count counts");
            return;
        }
        out->counts[bucket] = count;
        out->total += count;
        least = bucket + 1;
    }
}

static void read_latency(struct reader *reader, const json_t *json, const char *key,
                         struct histogram *out)
{
    const json_t *object = json_object_get(json, key);

    if (!json_is_object(object)) {
        fail(reader, "%s is missing", key);
        return;
    }
    read_buckets(reader, json_object_get(object, "histogram"), out);
    if (reader->failed || out->total == 0)
        return;
    out->min = get_ms(reader, object, "min_ms");
    out->max = get_ms(reader, object, "max_ms");
    out->sum = get_real(reader, object, "mean_ms") * 1e6 * (double)out->total;
    if (!reader->failed && (get_whole(reader, object, "count") != out->total ||
                            out->min > out->max || out->counts[histogram_bucket(out->min)] == 0 ||
                            out->counts[histogram_bucket(out->max)] == 0))
        fail(reader, "%s: count, min_ms and max_ms must be those of its histogram", key);
}

static void read_meter(struct reader *reader, const json_t *object, struct meter *out)
{
    const json_t *outcomes = json_object_get(object, "outcomes");

    if (!json_is_object(outcomes))
        fail(reader, "outcomes is missing");
    for (int i = 0; i < OUTCOME_COUNT && !reader->failed; i++) {
        /* One that a later version added is skipped, one that an older one lacks is none. */
        const json_t *count = json_object_get(outcomes, outcome_name((enum outcome)i));

        if (count)
            out->outcomes[i] = whole_of(reader, count, outcome_name((enum outcome)i));
    }
    out->bytes_in = get_whole(reader, object, "bytes_in");
    out->bytes_out = get_whole(reader, object, "bytes_out");
    read_latency(reader, object, "latency", &out->latency);
    read_latency(reader, object, "refusal_latency", &out->refusal);
}

/* ---------------------------------------------------------------- flows */

static void read_column(struct reader *reader, const json_t *values, size_t place,
                        struct summary_flow *flow)
{
    const char *name = NULL;
    size_t offset = 0;
    bool is_whole = false;

    summary_column(place, &name, &offset, &is_whole);
    if (json_array_size(values) != flow->seconds_count) {
        fail(reader, "series: every column must be an array of the same length");
        return;
    }
    for (size_t i = 0; i < flow->seconds_count && !reader->failed; i++) {
        char *field = (char *)&flow->seconds[i] + offset;
        const json_t *value = json_array_get(values, i);

        if (is_whole)
            *(uint64_t *)(void *)field = whole_of(reader, value, name);
        else
            *(double *)(void *)field = real_of(reader, value, name);
    }
}

static void read_series(struct reader *reader, const json_t *series, struct summary_flow *flow)
{
    size_t count = json_array_size(json_object_get(series, "time_s"));
    const char *name = NULL;
    size_t offset;
    bool is_whole;

    if (!json_is_object(series) || count > SUMMARY_MAX_SECONDS) {
        fail(reader, "series is missing, or longer than %u seconds", SUMMARY_MAX_SECONDS);
        return;
    }
    for (size_t i = 0; i < count; i++)
        summary_add_second(flow);
    for (size_t c = 0; summary_column(c, &name, &offset, &is_whole) && !reader->failed; c++)
        read_column(reader, json_object_get(series, name), c, flow);
    for (size_t i = 0; i < count && !reader->failed; i++) {
        const struct summary_second *second = &flow->seconds[i];
        double before_s = i > 0 ? flow->seconds[i - 1].time_s : 0;

        if (second->length_s <= 0 || second->length_s > SUMMARY_LONGEST_S ||
            second->time_s < before_s || second->time_s > before_s + second->length_s + 1)
            fail(reader, "series: each second must have a length and follow the one before");
    }
}

static void read_kinds(struct reader *reader, const json_t *kinds, struct summary_flow *flow)
{
    if (!json_is_array(kinds) || json_array_size(kinds) > MAX_KINDS) {
        fail(reader, "kinds must be an array of at most %u", MAX_KINDS);
        return;
    }
    for (size_t i = 0; i < json_array_size(kinds) && !reader->failed; i++) {
        const json_t *kind = json_array_get(kinds, i);
        char name[FLOW_TEXT_BYTES] = "";

        get_text(reader, kind, "name", name, sizeof(name));
        if (reader->failed)
            return;
        if (summary_kind(flow, name) != &flow->kinds[i])
            fail(reader, "kind %s is there twice", name);
        else
            read_meter(reader, kind, flow->kinds[i].meter);
    }
}

static void read_protocol(struct reader *reader, const json_t *json, struct summary_flow *flow)
{
    char protocol[8] = "";
    char loop[8] = "";

    get_text(reader, json, "proto", protocol, sizeof(protocol));
    get_text(reader, json, "loop", loop, sizeof(loop));
    flow->protocol = NULL;
    for (int i = 0; summary_protocols[i]; i++) {
        if (strcmp(protocol, summary_protocols[i]) == 0)
            flow->protocol = summary_protocols[i];
    }
    if (!flow->protocol)
        fail(reader, "proto must be http, https, h2, h2c, nfs, nfs4 or nfs41");
    if (strcmp(loop, "open") != 0 && strcmp(loop, "closed") != 0)
        fail(reader, "loop must be open or closed");
    flow->open_loop = loop[0] == 'o';
}

static void read_flow(struct reader *reader, const json_t *json, struct summary_flow *flow)
{
    get_text(reader, json, "name", flow->name, sizeof(flow->name));
    if (!reader->failed)
        snprintf(reader->where, sizeof(reader->where), "flow %s", flow->name);
    read_protocol(reader, json, flow);
    flow->concurrency = get_whole(reader, json, "concurrency");
    flow->offered = get_whole(reader, json, "offered");
    flow->completed = get_whole(reader, json, "completed");
    flow->offered_per_s = get_real(reader, json, "offered_per_s");
    flow->throughput_per_s = get_real(reader, json, "throughput_per_s");
    flow->bytes_in_per_s = get_real(reader, json, "bytes_in_per_s");
    flow->bytes_out_per_s = get_real(reader, json, "bytes_out_per_s");
    flow->late = get_whole(reader, json, "late");
    flow->delayed = get_whole(reader, json, "delayed");
    flow->late_max_ns = get_ms(reader, json, "late_max_ms");
    flow->unfinished = get_whole(reader, json, "unfinished");
    flow->retried = get_whole(reader, json, "retried");
    flow->reconnects = get_whole(reader, json, "reconnects");
    flow->verified = get_whole(reader, json, "verified");
    flow->unverified = get_whole(reader, json, "unverified");
    read_meter(reader, json, flow->total);
    read_kinds(reader, json_object_get(json, "kinds"), flow);
    read_series(reader, json_object_get(json, "series"), flow);
    reader->where[0] = '\0';
}

/* ---------------------------------------------------------------- all of it */

/* Any that the command line takes. */
static uint64_t get_seed(struct reader *reader, const json_t *json)
{
    const json_t *seed = json_object_get(json, "seed");

    if (!json_is_integer(seed) || json_integer_value(seed) < 0)
        fail(reader, "seed must be a whole number from 0 on");
    return (uint64_t)json_integer_value(seed);
}

static void read_head(struct reader *reader, const json_t *json, struct summary *out)
{
    const json_t *machine = json_object_get(json, "machine");

    out->label = get_optional_text(reader, json, "label");
    out->command = get_optional_text(reader, json, "command");
    out->seed = get_seed(reader, json);
    out->measured_s = get_real(reader, json, "measured_s");
    out->warmup_s = get_real(reader, json, "warmup_s");
    out->began_unix_s = get_real(reader, json, "began_unix_s");
    get_text(reader, machine, "host", out->host, sizeof(out->host));
    get_text(reader, machine, "kernel", out->kernel, sizeof(out->kernel));
    out->cpus = get_whole(reader, machine, "cpus");
    out->generator_cpu = get_real(reader, machine, "generator_cpu");
    if (json_object_get(machine, "generator_busy"))
        out->generator_busy = get_real(reader, machine, "generator_busy");
}

/* Not in the files of older versions. */
static void read_marks(struct reader *reader, const json_t *marks, struct summary *out)
{
    if (marks && (!json_is_array(marks) || json_array_size(marks) > SUMMARY_MAX_MARKS))
        fail(reader, "marks must be an array of at most %u", SUMMARY_MAX_MARKS);
    for (size_t i = 0; i < json_array_size(marks) && !reader->failed; i++) {
        const json_t *json = json_array_get(marks, i);
        struct summary_mark *mark = summary_add_mark(out, "");

        get_text(reader, json, "text", mark->text, sizeof(mark->text));
        mark->from_s = get_real(reader, json, "from_s");
        mark->to_s = get_real(reader, json, "to_s");
        if (!reader->failed && mark->to_s < mark->from_s)
            fail(reader, "marks: to_s must not be before from_s");
    }
}

static void read_flows(struct reader *reader, const json_t *flows, struct summary *out)
{
    if (!json_is_array(flows) || json_array_size(flows) > SUMMARY_MAX_FLOWS) {
        fail(reader, "flows must be an array of at most %u", SUMMARY_MAX_FLOWS);
        return;
    }
    for (size_t i = 0; i < json_array_size(flows) && !reader->failed; i++) {
        struct summary_flow *flow = summary_add_flow(out);

        read_flow(reader, json_array_get(flows, i), flow);
        if (!reader->failed && summary_find(out, flow->name) != flow)
            fail(reader, "flow %s is there twice", flow->name);
    }
}

int summary_from_json(const json_t *json, const char *name, struct summary *out,
                      char error[SUMMARY_ERROR_BYTES])
{
    struct reader reader = {.name = name, .error = error};
    const char *kind = json_string_value(json_object_get(json, "kind"));

    summary_init(out, 0);
    if (!kind || !json_object_get(json, "format"))
        fail(&reader, "this is no summary of spillload run --json (no format and kind in it)");
    else if (json_integer_value(json_object_get(json, "format")) != SUMMARY_FORMAT)
        fail(&reader, "its format is not %d: a spillload of another version wrote it",
             SUMMARY_FORMAT);
    else if (strcmp(kind, "run") != 0)
        fail(&reader, "its kind is %.20s, wanted is a run", kind);
    if (!reader.failed)
        read_head(&reader, json, out);
    if (!reader.failed)
        read_marks(&reader, json_object_get(json, "marks"), out);
    if (!reader.failed)
        read_flows(&reader, json_object_get(json, "flows"), out);
    if (!reader.failed)
        return 0;
    summary_fini(out);
    return -EINVAL;
}

int summary_parse(const char *text, size_t length, const char *name, struct summary *out,
                  char error[SUMMARY_ERROR_BYTES])
{
    json_error_t problem;
    json_t *json = json_loadb(text, length, 0, &problem);

    summary_init(out, 0);
    if (!json) {
        snprintf(error, SUMMARY_ERROR_BYTES, "%s:%d: not JSON: %s", name, problem.line,
                 problem.text);
        return -EINVAL;
    }
    int result = summary_from_json(json, name, out, error);

    json_decref(json);
    return result;
}

json_t *summary_load(const char *path, char error[SUMMARY_ERROR_BYTES])
{
    json_error_t problem;
    FILE *in = fopen(path, "re");

    if (!in) {
        snprintf(error, SUMMARY_ERROR_BYTES, "%s: %s", path, strerror(errno));
        return NULL;
    }
    json_t *json = json_loadf(in, 0, &problem);

    if (!json)
        snprintf(error, SUMMARY_ERROR_BYTES, "%s:%d: not JSON: %s", path, problem.line,
                 problem.text);
    fclose(in);
    return json;
}

int summary_read(const char *path, struct summary *out, char error[SUMMARY_ERROR_BYTES])
{
    json_t *json = summary_load(path, error);

    summary_init(out, 0);
    if (!json)
        return -EINVAL;
    int result = summary_from_json(json, path, out, error);

    json_decref(json);
    return result;
}
