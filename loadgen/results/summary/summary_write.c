/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries to JSON. */
#include <jansson.h>

#include "loadgen/base/memory.h"
#include "loadgen/results/summary/json_text.h"
#include "loadgen/results/summary/summary_json.h"

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

static json_t *whole(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *buckets_json(const struct histogram *histogram)
{
    json_t *starts = json_array();
    json_t *counts = json_array();

    for (size_t i = 0; histogram->total && i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i] == 0)
            continue;
        json_array_append_new(starts, whole(histogram_bucket_start(i)));
        json_array_append_new(counts, whole(histogram->counts[i]));
    }
    return json_pack("{s:o, s:o}", "start_ns", starts, "count", counts);
}

static json_t *latency_json(const struct histogram *histogram)
{
    return json_pack("{s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "count",
                     whole(histogram->total), "mean_ms", histogram_mean(histogram) / 1e6, "min_ms",
                     histogram->total ? milliseconds(histogram->min) : 0.0, "p50_ms",
                     milliseconds(histogram_quantile(histogram, 0.5)), "p90_ms",
                     milliseconds(histogram_quantile(histogram, 0.9)), "p99_ms",
                     milliseconds(histogram_quantile(histogram, 0.99)), "p999_ms",
                     milliseconds(histogram_quantile(histogram, 0.999)), "p9999_ms",
                     milliseconds(histogram_quantile(histogram, 0.9999)), "max_ms",
                     milliseconds(histogram->max), "histogram", buckets_json(histogram));
}

static json_t *outcomes_json(const struct meter *meter)
{
    json_t *outcomes = json_object();

    for (int i = 0; i < OUTCOME_COUNT; i++)
        json_object_set_new(outcomes, outcome_name((enum outcome)i), whole(meter->outcomes[i]));
    return outcomes;
}

/* What a flow and a kind of its requests have in common. */
static void add_meter(json_t *object, const struct meter *meter)
{
    json_object_set_new(object, "outcomes", outcomes_json(meter));
    json_object_set_new(object, "bytes_in", whole(meter->bytes_in));
    json_object_set_new(object, "bytes_out", whole(meter->bytes_out));
    json_object_set_new(object, "latency", latency_json(&meter->latency));
    json_object_set_new(object, "refusal_latency", latency_json(&meter->refusal));
}

/* ---------------------------------------------------------------- the series */

static const struct column {
    const char *name;
    size_t offset;
    bool whole;
} columns[] = {
    {"time_s", offsetof(struct summary_second, time_s), false},
    {"length_s", offsetof(struct summary_second, length_s), false},
    {"offered", offsetof(struct summary_second, offered), true},
    {"done", offsetof(struct summary_second, done), true},
    {"refused", offsetof(struct summary_second, refused), true},
    {"errors", offsetof(struct summary_second, errors), true},
    {"in_flight", offsetof(struct summary_second, in_flight), true},
    {"waiting", offsetof(struct summary_second, waiting), true},
    {"bytes_in", offsetof(struct summary_second, bytes_in), true},
    {"bytes_out", offsetof(struct summary_second, bytes_out), true},
    {"mean_ms", offsetof(struct summary_second, mean_ms), false},
    {"p50_ms", offsetof(struct summary_second, p50_ms), false},
    {"p90_ms", offsetof(struct summary_second, p90_ms), false},
    {"p99_ms", offsetof(struct summary_second, p99_ms), false},
    {"max_ms", offsetof(struct summary_second, max_ms), false},
};

bool summary_column(size_t place, const char **name, size_t *offset, bool *is_whole)
{
    if (place >= sizeof(columns) / sizeof(columns[0]))
        return false;
    *name = columns[place].name;
    *offset = columns[place].offset;
    *is_whole = columns[place].whole;
    return true;
}

static json_t *series_json(const struct summary_flow *flow)
{
    json_t *series = json_object();

    for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
        json_t *values = json_array();

        for (size_t i = 0; i < flow->seconds_count; i++) {
            const char *field = (const char *)&flow->seconds[i] + columns[c].offset;

            json_array_append_new(values, columns[c].whole
                                              ? whole(*(const uint64_t *)(const void *)field)
                                              : json_real(*(const double *)(const void *)field));
        }
        json_object_set_new(series, columns[c].name, values);
    }
    return series;
}

/* ---------------------------------------------------------------- flows, and all of it */

static json_t *kinds_json(const struct summary_flow *flow)
{
    json_t *kinds = json_array();

    for (size_t i = 0; i < flow->kinds_count; i++) {
        json_t *kind = json_pack("{s:o}", "name", json_text(flow->kinds[i].name));

        add_meter(kind, flow->kinds[i].meter);
        json_array_append_new(kinds, kind);
    }
    return kinds;
}

static json_t *flow_json(const struct summary_flow *flow)
{
    json_t *object = json_pack(
        "{s:o, s:s, s:s, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:o, s:o, s:f, s:o, s:o, s:o, s:o, "
        "s:o}",
        "name", json_text(flow->name), "proto", flow->protocol, "loop",
        flow->open_loop ? "open" : "closed", "concurrency", whole(flow->concurrency), "offered",
        whole(flow->offered), "completed", whole(flow->completed), "offered_per_s",
        flow->offered_per_s, "throughput_per_s", flow->throughput_per_s, "bytes_in_per_s",
        flow->bytes_in_per_s, "bytes_out_per_s", flow->bytes_out_per_s, "late", whole(flow->late),
        "delayed", whole(flow->delayed), "late_max_ms", milliseconds(flow->late_max_ns),
        "unfinished", whole(flow->unfinished), "retried", whole(flow->retried), "reconnects",
        whole(flow->reconnects), "verified", whole(flow->verified), "unverified",
        whole(flow->unverified));

    add_meter(object, flow->total);
    json_object_set_new(object, "kinds", kinds_json(flow));
    json_object_set_new(object, "series", series_json(flow));
    return object;
}

static json_t *marks_json(const struct summary *summary)
{
    json_t *marks = json_array();

    for (size_t i = 0; i < summary->marks_count; i++) {
        const struct summary_mark *mark = &summary->marks[i];

        json_array_append_new(marks, json_pack("{s:o, s:f, s:f}", "text", json_text(mark->text),
                                               "from_s", mark->from_s, "to_s", mark->to_s));
    }
    return marks;
}

json_t *summary_json(const struct summary *summary)
{
    json_t *flows = json_array();

    for (size_t i = 0; i < summary->flows_count; i++)
        json_array_append_new(flows, flow_json(&summary->flows[i]));
    return json_pack(
        "{s:i, s:s, s:o, s:o, s:o, s:f, s:f, s:f, s:{s:o, s:o, s:o, s:f, s:f}, s:o, s:o}", "format",
        SUMMARY_FORMAT, "kind", "run", "label",
        summary->label ? json_text(summary->label) : json_null(), "command",
        summary->command ? json_text(summary->command) : json_null(), "seed", whole(summary->seed),
        "measured_s", summary->measured_s, "warmup_s", summary->warmup_s, "began_unix_s",
        summary->began_unix_s, "machine", "host", json_text(summary->host), "kernel",
        json_text(summary->kernel), "cpus", whole(summary->cpus), "generator_cpu",
        summary->generator_cpu, "generator_busy", summary->generator_busy, "marks",
        marks_json(summary), "flows", flows);
}

void summary_write(FILE *out, const struct summary *summary)
{
    json_t *json = summary_json(summary);

    json_text_write(out, json);
    json_decref(json);
}
