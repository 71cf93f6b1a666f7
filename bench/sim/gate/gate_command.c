/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillsim gate: admission policies in front of a pool of slots. The runs and the table are here;
 * the simulation is in gate_sim.h.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sim/command_line.h"
#include "bench/sim/commands.h"
#include "bench/sim/gate/gate_options.h"

/* ---------------------------------------------------------------- the runs */

struct outputs {
    FILE *csv;
    json_t *rows;
};

static json_t *meter_json(const struct gate_config *config, const struct gate_meter *meter)
{
    double seconds = (double)(config->end_ns - config->warmup_ns) / 1e9;

    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "offered",
                     (json_int_t)meter->offered, "refused_count", (json_int_t)meter->refused,
                     "marked_count", (json_int_t)meter->marked, "refused",
                     gate_meter_refused(meter), "tries", gate_meter_tries(meter), "completed_per_s",
                     (double)meter->completed / seconds, "wait", sim_times_json(&meter->wait),
                     "response", sim_times_json(&meter->response));
}

static json_t *row_json(const struct gate_config *config, const struct gate_sim *sim, double load,
                        const char *cost)
{
    const struct gate_meter *meter = gate_sim_meter(sim);
    json_t *row = meter_json(config, meter);
    json_t *flows = json_array();
    char name[160];
    json_t *more = json_pack("{s:s, s:s, s:s, s:f, s:I, s:f, s:f, s:I}", "cost", cost, "policy",
                             admit_policy_name(config->admit.policy), "action",
                             config->mark ? "mark" : "refuse", "load", load, "seed",
                             (json_int_t)config->seed, "used", gate_meter_used(meter, config),
                             "beyond_ideal", gate_meter_refused(meter) - gate_meter_ideal(meter),
                             "queue_peak", (json_int_t)meter->queue_peak);

    for (uint32_t i = 0; i < config->flow_count; i++) {
        json_t *flow = meter_json(config, gate_sim_flow_meter(sim, i));

        json_object_set_new(flow, "name", json_string(config->flows[i].name));
        json_array_append_new(flows, flow);
    }
    json_object_update(row, more);
    json_decref(more);
    snprintf(name, sizeof(name), "%s load %g cost %s seed %llu",
             admit_policy_name(config->admit.policy), load, cost, (unsigned long long)config->seed);
    json_object_set_new(row, "name", json_string(name));
    json_object_set_new(row, "flows", flows);
    return row;
}

static void row(const struct gate_config *config, const struct gate_sim *sim, double load,
                const char *cost, struct outputs *outputs)
{
    const struct gate_meter *meter = gate_sim_meter(sim);
    double refused = gate_meter_refused(meter);
    double marked = meter->offered ? (double)meter->marked / (double)meter->offered : 0;
    double seconds = (double)(config->end_ns - config->warmup_ns) / 1e9;
    char load_text[24] = "-";
    char text[3][SIM_TIME_TEXT];

    if (load > 0)
        snprintf(load_text, sizeof(load_text), "%g", load);
    printf("%-12s %6s %5llu %9s %9s %9s %7.2f%% %8.2f%% %8.2f %7.2f%% %9.1f %8llu  %s\n",
           admit_policy_name(config->admit.policy), load_text, (unsigned long long)config->seed,
           sim_time_text(&meter->wait, -1, text[0]), sim_time_text(&meter->wait, 0.5, text[1]),
           sim_time_text(&meter->wait, 0.99, text[2]), 100 * gate_meter_used(meter, config),
           100 * refused, 100 * (refused - gate_meter_ideal(meter)), 100 * marked,
           (double)meter->completed / seconds, (unsigned long long)meter->queue_peak, cost);
    if (outputs->rows)
        json_array_append_new(outputs->rows, row_json(config, sim, load, cost));
}

static void flow_rows(const struct gate_config *config, const struct gate_sim *sim)
{
    double seconds = (double)(config->end_ns - config->warmup_ns) / 1e9;

    for (uint32_t i = 0; i < config->flow_count; i++) {
        const struct gate_meter *meter = gate_sim_flow_meter(sim, i);
        char text[3][SIM_TIME_TEXT];

        printf("  %-16s offered %9.1f/s  done %9.1f/s  tries %6.2f  wait %9s  response %9s  "
               "p99 %9s\n",
               config->flows[i].name, (double)meter->offered / seconds,
               (double)meter->completed / seconds, gate_meter_tries(meter),
               sim_time_text(&meter->wait, -1, text[0]),
               sim_time_text(&meter->response, -1, text[1]),
               sim_time_text(&meter->response, 0.99, text[2]));
    }
}

static void series(const struct gate_config *config, const struct gate_sim *sim, double load,
                   const char *cost, FILE *out)
{
    size_t count;
    const struct gate_interval *intervals = gate_sim_intervals(sim, &count);

    for (size_t i = 0; i < count; i++) {
        const struct gate_interval *interval = &intervals[i];

        fprintf(out, "%s,%g,%llu,%.6g,%llu,%llu,%llu,%.6g,%llu,%s\n",
                admit_policy_name(config->admit.policy), load, (unsigned long long)config->seed,
                (double)i * (double)config->interval_ns / 1e9,
                (unsigned long long)interval->offered, (unsigned long long)interval->refused,
                (unsigned long long)interval->started,
                interval->started ? interval->wait_ns / 1e6 / (double)interval->started : 0,
                (unsigned long long)interval->queue, cost);
    }
}

static void simulate(struct gate_options *options, double load, const struct gate_cost *cost,
                     struct outputs *outputs)
{
    struct gate_config config = options->config;

    config.cost = cost->distribution;
    config.flows = load > 0 ? options->flows : options->flows + 1;
    config.flow_count = load > 0 ? options->flow_count : options->flow_count - 1;
    options->flows[0].arrival.rate_per_s = load * config.capacity_per_s;
    for (int policy = 0; policy < ADMIT_POLICIES; policy++) {
        if (!options->policies[policy])
            continue;
        config.admit.policy = (enum admit_policy)policy;
        for (uint64_t i = 0; i < options->seeds; i++) {
            config.seed = options->config.seed + i;
            config.admit.seed = config.seed;
            struct gate_sim *sim = gate_sim_create(&config);

            gate_sim_run(sim);
            row(&config, sim, load, cost->text, outputs);
            if (options->flow_count > 1)
                flow_rows(&config, sim);
            if (outputs->csv)
                series(&config, sim, load, cost->text, outputs->csv);
            gate_sim_destroy(sim);
        }
    }
}

static int complain(const char *path, int error)
{
    fprintf(stderr, "spillsim: %s: %s\n", path, strerror(error));
    return 1;
}

static int finish(const struct gate_options *options, struct outputs *outputs)
{
    int status = 0;

    if (outputs->csv) {
        bool failed = ferror(outputs->csv) != 0;

        errno = 0;
        if (fclose(outputs->csv) != 0 || failed)
            status = complain(options->csv_path, errno ? errno : EIO);
    }
    if (outputs->rows) {
        json_t *all =
            json_pack("{s:f, s:i, s:f, s:O}", "capacity_per_s", options->config.capacity_per_s,
                      "slots", (int)options->config.slots, "metered_s",
                      (double)(options->config.end_ns - options->config.warmup_ns) / 1e9, "rows",
                      outputs->rows);

        errno = 0;
        if (json_dump_file(all, options->json_path, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0)
            status = complain(options->json_path, errno ? errno : EIO);
        json_decref(all);
        json_decref(outputs->rows);
    }
    return status;
}

static int simulate_all(struct gate_options *options)
{
    struct outputs outputs = {0};

    if (options->csv_path) {
        outputs.csv = fopen(options->csv_path, "w");
        if (!outputs.csv)
            return complain(options->csv_path, errno);
        fputs("policy,load,seed,time_s,offered,refused,started,wait_ms,queue,cost\n", outputs.csv);
    }
    if (options->json_path)
        outputs.rows = json_array();
    printf("%-12s %6s %5s %9s %9s %9s %8s %9s %8s %8s %9s %8s  %s\n", "policy", "load", "seed",
           "wait", "p50", "p99", "used", "refused", "beyond", "marked", "done/s", "queue", "cost");
    for (size_t i = 0; i < options->load_count; i++)
        for (size_t cost = 0; cost < options->cost_count; cost++)
            simulate(options, options->loads[i], &options->costs[cost], &outputs);
    for (size_t cost = 0; options->load_count == 0 && cost < options->cost_count; cost++)
        simulate(options, 0, &options->costs[cost], &outputs);
    printf("beyond: points refused above what no policy could have served; queue: the longest\n");
    return finish(options, &outputs);
}

int gate_command(int argc, char **argv)
{
    struct gate_options options;
    int status = gate_options_read(&options, argc, argv);

    if (status == 0)
        status = simulate_all(&options);
    gate_options_fini(&options);
    return status;
}
