/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and JSON of flows. Times are shown in milliseconds in JSON, with their unit in tables. */
#include "loadgen/results/report.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define TIME_TEXT 24

static const char *protocol_name(const struct flow *flow)
{
    return flow->spec.protocol == FLOW_NFS ? "nfs" : "http";
}

static const char *quantile_text(const struct histogram *histogram, double quantile, char *buffer)
{
    if (histogram->total == 0)
        return "-";
    return units_format_ns((double)histogram_quantile(histogram, quantile), buffer, TIME_TEXT);
}

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void live_text(FILE *out, const struct flow *flow, unsigned second, double length_s)
{
    const struct meter *meter = &flow->second;
    char p50[TIME_TEXT];
    char p99[TIME_TEXT];

    fprintf(out,
            "%4us  %-16s %9.1f/s  p50 %8s  p99 %8s  in flight %5u  waiting %6zu  refused %llu"
            "  errors %llu\n",
            second, flow->spec.name, (double)meter->outcomes[OUTCOME_OK] / length_s,
            quantile_text(&meter->latency, 0.5, p50), quantile_text(&meter->latency, 0.99, p99),
            flow->in_flight, flow->backlog_count,
            (unsigned long long)meter->outcomes[OUTCOME_REFUSED],
            (unsigned long long)meter_errors(meter));
}

static json_t *live_json(const struct flow *flow, double length_s)
{
    const struct meter *meter = &flow->second;

    return json_pack("{s:s, s:f, s:f, s:f, s:i, s:i, s:I, s:I}", "name", flow->spec.name, "rate",
                     (double)meter->outcomes[OUTCOME_OK] / length_s, "p50_ms",
                     milliseconds(histogram_quantile(&meter->latency, 0.5)), "p99_ms",
                     milliseconds(histogram_quantile(&meter->latency, 0.99)), "in_flight",
                     (int)flow->in_flight, "waiting", (int)flow->backlog_count, "refused",
                     (json_int_t)meter->outcomes[OUTCOME_REFUSED], "errors",
                     (json_int_t)meter_errors(meter));
}

void report_second(FILE *out, enum report_live live, struct flow *flows, size_t count,
                   unsigned second, double length_s)
{
    json_t *list = live == REPORT_LIVE_JSON ? json_array() : NULL;

    for (size_t i = 0; i < count; i++) {
        if (live == REPORT_LIVE_TEXT)
            live_text(out, &flows[i], second, length_s);
        else if (list)
            json_array_append_new(list, live_json(&flows[i], length_s));
        meter_reset(&flows[i].second);
    }
    if (list) {
        json_t *line = json_pack("{s:i, s:o}", "second", (int)second, "flows", list);

        json_dumpf(line, out, JSON_COMPACT | JSON_REAL_PRECISION(6));
        fputc('\n', out);
        json_decref(line);
    }
    fflush(out);
}

void report_table(FILE *out, const struct flow *flows, size_t count, double measured_s)
{
    fprintf(out, "%-16s %-5s %10s %10s %9s %9s %9s %9s %9s %8s %8s\n", "flow", "proto", "offered/s",
            "done/s", "mean", "p50", "p99", "p99.9", "max", "refused", "errors");
    for (size_t i = 0; i < count; i++) {
        const struct flow *flow = &flows[i];
        const struct histogram *latency = &flow->total.latency;
        char text[5][TIME_TEXT];

        fprintf(out, "%-16s %-5s %10.1f %10.1f %9s %9s %9s %9s %9s %8llu %8llu\n", flow->spec.name,
                protocol_name(flow), (double)flow->offered / measured_s,
                (double)flow->completed / measured_s,
                latency->total ? units_format_ns(histogram_mean(latency), text[0], TIME_TEXT) : "-",
                quantile_text(latency, 0.5, text[1]), quantile_text(latency, 0.99, text[2]),
                quantile_text(latency, 0.999, text[3]), quantile_text(latency, 1, text[4]),
                (unsigned long long)flow->total.outcomes[OUTCOME_REFUSED],
                (unsigned long long)meter_errors(&flow->total));
    }
}

void report_warnings(FILE *out, const struct flow *flows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct flow *flow = &flows[i];
        uint64_t outstanding = flow_outstanding(flow);

        if (flow->spec.open_loop && flow->late * 100 > flow->offered)
            fprintf(out,
                    "warning: flow %s: %llu of %llu requests were made over 1 ms late (worst %.1f "
                    "ms): the generator or its machine is saturated\n",
                    flow->spec.name, (unsigned long long)flow->late,
                    (unsigned long long)flow->offered, milliseconds(flow->late_max_ns));
        if (flow->spec.open_loop && flow->delayed * 100 > flow->offered)
            fprintf(out,
                    "note: flow %s: %llu of %llu requests waited for concurrency=%u; their latency "
                    "counts from the intended time\n",
                    flow->spec.name, (unsigned long long)flow->delayed,
                    (unsigned long long)flow->offered, flow->spec.concurrency);
        if (outstanding)
            fprintf(out,
                    "warning: flow %s: %llu requests had no reply when the run ended: the true "
                    "latencies are worse than shown\n",
                    flow->spec.name, (unsigned long long)outstanding);
    }
}

static json_t *latency_json(const struct histogram *histogram)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "count",
                     (json_int_t)histogram->total, "mean_ms", histogram_mean(histogram) / 1e6,
                     "min_ms", histogram->total ? milliseconds(histogram->min) : 0.0, "p50_ms",
                     milliseconds(histogram_quantile(histogram, 0.5)), "p90_ms",
                     milliseconds(histogram_quantile(histogram, 0.9)), "p99_ms",
                     milliseconds(histogram_quantile(histogram, 0.99)), "p999_ms",
                     milliseconds(histogram_quantile(histogram, 0.999)), "max_ms",
                     milliseconds(histogram->max));
}

static json_t *flow_json(const struct flow *flow, double measured_s)
{
    json_t *outcomes = json_object();

    for (int i = 0; i < OUTCOME_COUNT; i++)
        json_object_set_new(outcomes, outcome_name((enum outcome)i),
                            json_integer((json_int_t)flow->total.outcomes[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:I, s:I, s:o, s:o, s:o}", "name",
        flow->spec.name, "proto", protocol_name(flow), "loop",
        flow->spec.open_loop ? "open" : "closed", "offered", (json_int_t)flow->offered,
        "offered_per_s", (double)flow->offered / measured_s, "throughput_per_s",
        (double)flow->completed / measured_s, "bytes_in_per_s",
        (double)flow->total.bytes_in / measured_s, "bytes_out_per_s",
        (double)flow->total.bytes_out / measured_s, "late", (json_int_t)flow->late, "delayed",
        (json_int_t)flow->delayed, "late_max_ms", milliseconds(flow->late_max_ns), "unfinished",
        (json_int_t)flow_outstanding(flow), "reconnects", (json_int_t)flow->reconnects, "outcomes",
        outcomes, "latency", latency_json(&flow->total.latency), "refusal_latency",
        latency_json(&flow->total.refusal));
}

int report_json(const char *path, const struct flow *flows, size_t count, double measured_s,
                uint64_t seed)
{
    json_t *list = json_array();
    json_t *summary;
    int error = 0;

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, flow_json(&flows[i], measured_s));
    summary = json_pack("{s:f, s:I, s:o}", "measured_s", measured_s, "seed", (json_int_t)seed,
                        "flows", list);
    errno = 0;
    if (json_dump_file(summary, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0)
        error = errno ? -errno : -EIO;
    json_decref(summary);
    return error;
}
