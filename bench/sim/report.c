/* SPDX-License-Identifier: Apache-2.0 */
/* Table, CSV and JSON of a simulation. Times have their unit in the table, are ms elsewhere. */
#include "bench/sim/report.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "loadgen/base/units.h"

#define TIME_TEXT 24

static double metered_s(const struct sim_config *config)
{
    return (double)(config->end_ns - config->warmup_ns) / 1e9;
}

/* Completed work of a flow, in cost units. */
static double work(const struct sim *sim, const struct sim_config *config, uint32_t flow)
{
    return (double)sim_flow_meter(sim, flow)->completed * (double)config->flows[flow].cost;
}

static double all_work(const struct sim *sim, const struct sim_config *config)
{
    double sum = 0;

    for (uint32_t i = 0; i < config->flow_count; i++)
        sum += work(sim, config, i);
    return sum;
}

static double mean_wait_ns(const struct sim_meter *meter)
{
    return meter->completed ? meter->wait_ns / (double)meter->completed : 0;
}

static double per_wall_s(uint64_t count, uint64_t wall_ns)
{
    return wall_ns ? (double)count * 1e9 / (double)wall_ns : 0;
}

/* ---------------------------------------------------------------- table */

static const char *time_text(const struct sim_meter *meter, double value_ns, char *buffer)
{
    return meter->completed ? units_format_ns(value_ns, buffer, TIME_TEXT) : "-";
}

static void table_line(FILE *out, const struct sim *sim, const struct sim_config *config,
                       uint32_t flow)
{
    const struct sim_meter *meter = sim_flow_meter(sim, flow);
    const struct histogram *response = &meter->response;
    double total = all_work(sim, config);
    char text[5][TIME_TEXT];

    fprintf(out, "%-16s %7u %10.1f %10.1f %6.1f%% %8s %8s %8s %8s %8s %8llu %8llu\n",
            config->flows[flow].name, config->flows[flow].weight,
            (double)meter->offered / metered_s(config),
            (double)meter->completed / metered_s(config),
            total > 0 ? 100 * work(sim, config, flow) / total : 0,
            time_text(meter, histogram_mean(response), text[0]),
            time_text(meter, (double)histogram_quantile(response, 0.5), text[1]),
            time_text(meter, (double)histogram_quantile(response, 0.99), text[2]),
            time_text(meter, (double)histogram_quantile(response, 1), text[3]),
            time_text(meter, mean_wait_ns(meter), text[4]), (unsigned long long)meter->refused,
            (unsigned long long)sim_flow_waiting(sim, flow));
}

void sim_report_table(FILE *out, const struct sim *sim, const struct sim_config *config,
                      uint64_t wall_ns)
{
    uint64_t completed = 0;

    fprintf(out, "%-16s %7s %10s %10s %7s %8s %8s %8s %8s %8s %8s %8s\n", "flow", "weight",
            "offered/s", "done/s", "share", "mean", "p50", "p99", "max", "wait", "refused", "left");
    for (uint32_t i = 0; i < config->flow_count; i++) {
        table_line(out, sim, config, i);
        completed += sim_flow_meter(sim, i)->completed;
    }
    fprintf(out,
            "\n%s, depth %llu: %.1f requests/s, disks busy %.1f %%\n"
            "%llu requests, %llu events in %.2f s: %.1f million requests/s, %.1f million "
            "events/s\n",
            sched_algorithm_name(config->sched.algorithm), (unsigned long long)config->sched.depth,
            (double)completed / metered_s(config), 100 * sim_utilisation(sim),
            (unsigned long long)sim_requests(sim), (unsigned long long)sim_events(sim),
            (double)wall_ns / 1e9, per_wall_s(sim_requests(sim), wall_ns) / 1e6,
            per_wall_s(sim_events(sim), wall_ns) / 1e6);
}

/* ---------------------------------------------------------------- CSV */

static void csv_cells(FILE *out, const struct sim_interval *interval, double length_s)
{
    fprintf(out, ",%.6g,%.6g,", (double)interval->offered / length_s,
            (double)interval->completed / length_s);
    if (interval->completed)
        fprintf(out, "%.6g", interval->response_ns / (double)interval->completed / 1e6);
    fprintf(out, ",%llu,%llu", (unsigned long long)interval->waiting,
            (unsigned long long)interval->outstanding);
}

static void csv_write(FILE *out, const struct sim *sim, const struct sim_config *config)
{
    double length_s = (double)config->interval_ns / 1e9;
    size_t count = 0;

    fputs("time_s", out);
    for (uint32_t i = 0; i < config->flow_count; i++) {
        const char *name = config->flows[i].name;

        fprintf(out,
                ",%s.offered_per_s,%s.completed_per_s,%s.response_ms,%s.waiting,%s.outstanding",
                name, name, name, name, name);
        sim_flow_series(sim, i, &count);
    }
    fputc('\n', out);
    for (size_t row = 0; row < count; row++) {
        fprintf(out, "%.6g", (double)(row + 1) * length_s);
        for (uint32_t i = 0; i < config->flow_count; i++)
            csv_cells(out, &sim_flow_series(sim, i, &count)[row], length_s);
        fputc('\n', out);
    }
}

int sim_report_csv(const char *path, const struct sim *sim, const struct sim_config *config)
{
    FILE *out = fopen(path, "w");
    int error = 0;

    if (!out)
        return -errno;
    csv_write(out, sim, config);
    if (ferror(out))
        error = -EIO;
    if (fclose(out) != 0 && !error)
        error = -errno;
    return error;
}

/* ---------------------------------------------------------------- JSON */

static double quantile_ms(const struct histogram *histogram, double quantile)
{
    return (double)histogram_quantile(histogram, quantile) / 1e6;
}

static json_t *flow_json(const struct sim *sim, const struct sim_config *config, uint32_t flow)
{
    const struct sim_meter *meter = sim_flow_meter(sim, flow);
    const struct histogram *response = &meter->response;
    double total = all_work(sim, config);

    return json_pack(
        "{s:s, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:{s:f, s:f, s:f, s:f, s:f}}", "name",
        config->flows[flow].name, "weight", (int)config->flows[flow].weight, "offered",
        (json_int_t)meter->offered, "completed", (json_int_t)meter->completed, "refused",
        (json_int_t)meter->refused, "waiting", (json_int_t)sim_flow_waiting(sim, flow),
        "offered_per_s", (double)meter->offered / metered_s(config), "completed_per_s",
        (double)meter->completed / metered_s(config), "share",
        total > 0 ? work(sim, config, flow) / total : 0, "wait_mean_ms", mean_wait_ns(meter) / 1e6,
        "response", "mean_ms", histogram_mean(response) / 1e6, "p50_ms", quantile_ms(response, 0.5),
        "p90_ms", quantile_ms(response, 0.9), "p99_ms", quantile_ms(response, 0.99), "max_ms",
        quantile_ms(response, 1));
}

int sim_report_json(const char *path, const struct sim *sim, const struct sim_config *config,
                    uint64_t wall_ns)
{
    json_t *flows = json_array();
    int error = 0;

    for (uint32_t i = 0; i < config->flow_count; i++)
        json_array_append_new(flows, flow_json(sim, config, i));
    json_t *summary = json_pack(
        "{s:s, s:I, s:i, s:f, s:s, s:f, s:I, s:f, s:I, s:I, s:f, s:o}", "algorithm",
        sched_algorithm_name(config->sched.algorithm), "depth", (json_int_t)config->sched.depth,
        "disks", (int)config->array.disks, "service_ms", (double)config->array.service.mean / 1e6,
        "distribution", distribution_name(config->array.service.kind), "metered_s",
        metered_s(config), "seed", (json_int_t)config->seed, "utilisation", sim_utilisation(sim),
        "requests", (json_int_t)sim_requests(sim), "events", (json_int_t)sim_events(sim), "wall_s",
        (double)wall_ns / 1e9, "flows", flows);

    errno = 0;
    if (json_dump_file(summary, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0)
        error = errno ? -errno : -EIO;
    json_decref(summary);
    return error;
}
