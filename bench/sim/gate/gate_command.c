/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillsim gate: admission policies in front of a pool of slots. The command line and the table are
 * here; the simulation is in gate_sim.h.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sim/command_line.h"
#include "bench/sim/commands.h"
#include "bench/sim/gate/gate_sim.h"
#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define NS_PER_S      1000000000ULL
#define LOADS_MAX     32
#define FLOWS_MAX     100
#define DURATION_MOST (1000000 * NS_PER_S)
#define INTERVALS     10000000ULL

struct options {
    struct gate_config config;
    bool policies[ADMIT_POLICIES];
    double loads[LOADS_MAX];
    size_t load_count;
    struct flow_spec *flows; /* the first is the load's, when there is one */
    uint32_t flow_count;
    uint64_t seeds;
    const char *csv_path;
    const char *json_path;
};

enum {
    OPTION_POLICY = 256,
    OPTION_ACTION,
    OPTION_PER_CONNECTION,
    OPTION_LOAD,
    OPTION_FLOW,
    OPTION_CAPACITY,
    OPTION_SLOTS,
    OPTION_DISTRIBUTION,
    OPTION_COST,
    OPTION_SCHEDULE,
    OPTION_LIMIT,
    OPTION_TARGET,
    OPTION_POLICY_INTERVAL,
    OPTION_DURATION,
    OPTION_WARMUP,
    OPTION_INTERVAL,
    OPTION_SEED,
    OPTION_SEEDS,
    OPTION_CSV,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"action", required_argument, NULL, OPTION_ACTION},
    {"per-connection", required_argument, NULL, OPTION_PER_CONNECTION},
    {"load", required_argument, NULL, OPTION_LOAD},
    {"flow", required_argument, NULL, OPTION_FLOW},
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"slots", required_argument, NULL, OPTION_SLOTS},
    {"distribution", required_argument, NULL, OPTION_DISTRIBUTION},
    {"cost", required_argument, NULL, OPTION_COST},
    {"schedule", required_argument, NULL, OPTION_SCHEDULE},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"target", required_argument, NULL, OPTION_TARGET},
    {"policy-interval", required_argument, NULL, OPTION_POLICY_INTERVAL},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"interval", required_argument, NULL, OPTION_INTERVAL},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"seeds", required_argument, NULL, OPTION_SEEDS},
    {"csv", required_argument, NULL, OPTION_CSV},
    {"json", required_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static void usage(FILE *out)
{
    fputs(
        "usage: spillsim gate [--load N[,N...]] [--flow KEY=VALUE[,KEY=VALUE...] ...] [options]\n"
        "\n"
        "Simulates an admission policy, a FIFO and a pool of slots, and shows what the requests\n"
        "waited, how busy the slots were, and how much was refused beyond what no policy could\n"
        "have served.\n"
        "\n"
        "  --policy NAME[,NAME]  none, tail, codel, pie, duk-literal, duk (default: all of them)\n"
        "  --action NAME         refuse (default), or mark: all are served, a marked client of a\n"
        "                        closed loop is not heard for a while\n"
        "  --per-connection N    clients that are not heard together (default 1)\n"
        "  --load N[,N...]       an open loop of Poisson arrivals at N times the capacity\n"
        "                        (default 0.5,0.8,0.9,1.2,2,10 unless there is a --flow)\n"
        "  --flow KEYS           a flow beside it, or instead; keys below\n"
        "  --capacity N/s        requests that the pool can serve (default 500/s)\n"
        "  --slots N             requests served at a time (default 16)\n"
        "  --distribution NAME   of service times: fixed, exponential (default), uniform, bimodal\n"
        "  --cost DISTRIBUTION   cost of a request, its service takes as long in proportion, as\n"
        "                        pareto:1.5:1KiB:1MiB (default 1: the request form)\n"
        "  --schedule LIST       capacity over time, as '100%:20s 50%:20s 20%:20s 100%:20s'\n"
        "  --limit N             tail: requests that may wait (default 64)\n"
        "  --target TIME         codel, pie: wanted wait (default 5ms, 20ms)\n"
        "  --policy-interval TIME  codel: default 100ms; duk-literal: default from the congestion\n"
        "  --duration TIME       metered virtual time (default 200s)\n"
        "  --warmup TIME         before it (default 10s)\n"
        "  --seed N, --seeds N   first seed and how many runs, each shown (default 1 and 1)\n"
        "  --interval TIME       of the time series (default 1s)\n"
        "  --csv FILE            time series: wait, refusals, queue of each run\n"
        "  --json FILE           all rows, wait and response with all their percentiles\n"
        "  --help                this text\n"
        "\n"
        "Keys of a flow (pause is also the time after which a refused client comes again):\n",
        out);
    flow_spec_help(out, FLOW_SIMULATED);
}

static int read_loads(struct options *options, const char *value)
{
    const char *p = value;

    options->load_count = 0;
    while (options->load_count < LOADS_MAX) {
        char *end;
        double load = strtod(p, &end);

        if (end == p || !(load > 0) || load > 1000 || (*end && *end != ','))
            return sim_bad_option("load", value, "numbers above 0 and up to 1000, as 0.8,1.2");
        options->loads[options->load_count++] = load;
        if (!*end)
            return 0;
        p = end + 1;
    }
    return sim_bad_option("load", value, "at most 32 numbers");
}

static int read_flow(struct options *options, const char *value)
{
    char error[FLOW_ERROR_BYTES];

    if (options->flow_count == FLOWS_MAX)
        return sim_bad_option("flow", value, "at most 99 flows");
    struct flow_spec *spec = &options->flows[options->flow_count];

    if (flow_spec_parse(value, FLOW_SIMULATED, spec, error) != 0) {
        fprintf(stderr, "spillsim: --flow %s: %s\n", value, error);
        return 2;
    }
    if (!spec->name[0])
        snprintf(spec->name, sizeof(spec->name), "flow%u", options->flow_count);
    options->flow_count++;
    return 0;
}

/* "100%:20s 50%:20s 20%" */
static int read_schedule(struct gate_config *config, const char *value)
{
    static const char expected[] = "shares and times, as '100%:20s 20%:10s 100%'";
    char *list = memory_string(value);
    char *rest = list;
    uint64_t from_ns = 0;
    bool open = true; /* the last step had a length */
    int status = 0;

    config->step_count = 0;
    for (char *item = strsep(&rest, " "); item && !status; item = strsep(&rest, " ")) {
        char *end;
        double percent = strtod(item, &end);
        uint64_t length_ns = 0;

        if (!open || config->step_count == GATE_STEPS || end == item || *end != '%' ||
            !(percent > 0) || percent > 1000 || (end[1] && end[1] != ':') ||
            (end[1] && sim_read_time("schedule", end + 2, 1, DURATION_MOST, &length_ns))) {
            status = sim_bad_option("schedule", value, expected);
            break;
        }
        config->steps[config->step_count++] = (struct gate_step){from_ns, percent / 100};
        from_ns += length_ns;
        open = length_ns > 0;
    }
    free(list);
    return status;
}

static int read_pool_option(struct options *options, int option, const char *value)
{
    struct gate_config *config = &options->config;
    uint64_t number;

    switch (option) {
    case OPTION_CAPACITY:
        if (units_parse_rate_per_s(value, &config->capacity_per_s) != 0 ||
            config->capacity_per_s < 0.001 || config->capacity_per_s > 1e8)
            return sim_bad_option("capacity", value, "a rate from 0.001/s to 100M/s");
        return 0;
    case OPTION_SLOTS:
        if (units_parse_count(value, 1, 1000000, &number) != 0)
            return sim_bad_option("slots", value, "a number from 1 to 1000000");
        config->slots = (uint32_t)number;
        return 0;
    case OPTION_DISTRIBUTION:
        if (distribution_parse(value, &config->service.kind) != 0)
            return sim_bad_option("distribution", value, "fixed, exponential, uniform or bimodal");
        return 0;
    case OPTION_COST:
        if (distribution_read(value, DISTRIBUTION_BYTES, &config->cost) != 0 ||
            distribution_mean(&config->cost) < 1)
            return sim_bad_option("cost", value,
                                  "a number or a distribution, as pareto:1.5:1KiB:1MiB");
        return 0;
    case OPTION_SCHEDULE:
        return read_schedule(config, value);
    default:
        return -1;
    }
}

static int read_policy_option(struct options *options, int option, const char *value)
{
    struct admit_options *admit = &options->config.admit;
    uint64_t number;

    switch (option) {
    case OPTION_POLICY:
        return sim_read_policies(value, options->policies);
    case OPTION_ACTION:
        options->config.mark = strcmp(value, "mark") == 0;
        if (!options->config.mark && strcmp(value, "refuse") != 0)
            return sim_bad_option("action", value, "refuse or mark");
        return 0;
    case OPTION_PER_CONNECTION:
        if (units_parse_count(value, 1, FLOW_MAX_CLIENTS, &number) != 0)
            return sim_bad_option("per-connection", value, "a number from 1 to 65000");
        options->config.per_connection = (uint32_t)number;
        return 0;
    case OPTION_LIMIT:
        if (units_parse_count(value, 1, INT64_MAX, &admit->limit) != 0)
            return sim_bad_option("limit", value, "a number from 1 on");
        return 0;
    case OPTION_TARGET:
        return sim_read_time("target", value, 1, DURATION_MOST, &admit->target_ns);
    case OPTION_POLICY_INTERVAL:
        return sim_read_time("policy-interval", value, 1, DURATION_MOST, &admit->interval_ns);
    default:
        return -1;
    }
}

static int read_run_option(struct options *options, int option, const char *value)
{
    struct gate_config *config = &options->config;

    switch (option) {
    case OPTION_LOAD:
        return read_loads(options, value);
    case OPTION_FLOW:
        return read_flow(options, value);
    case OPTION_DURATION:
        return sim_read_time("duration", value, 1, DURATION_MOST, &config->end_ns);
    case OPTION_WARMUP:
        if (strcmp(value, "0") != 0)
            return sim_read_time("warmup", value, 1, DURATION_MOST, &config->warmup_ns);
        config->warmup_ns = 0;
        return 0;
    case OPTION_INTERVAL:
        return sim_read_time("interval", value, 1, DURATION_MOST, &config->interval_ns);
    case OPTION_SEED:
        if (units_parse_count(value, 0, INT32_MAX, &config->seed) != 0)
            return sim_bad_option("seed", value, "a number");
        return 0;
    case OPTION_SEEDS:
        if (units_parse_count(value, 1, 1000, &options->seeds) != 0)
            return sim_bad_option("seeds", value, "a number from 1 to 1000");
        return 0;
    case OPTION_CSV:
        options->csv_path = value;
        return 0;
    case OPTION_JSON:
        options->json_path = value;
        return 0;
    default:
        return 2;
    }
}

/* What no option alone can tell, and what was left out. */
static int check(struct options *options)
{
    static const double usual[] = {0.5, 0.8, 0.9, 1.2, 2, 10};
    struct gate_config *config = &options->config;

    sim_default_policies(options->policies);
    if (options->load_count == 0 && options->flow_count == 1) {
        memcpy(options->loads, usual, sizeof(usual));
        options->load_count = sizeof(usual) / sizeof(usual[0]);
    }
    config->end_ns += config->warmup_ns;
    if (!options->csv_path)
        config->interval_ns = 0;
    else if (config->end_ns / config->interval_ns > INTERVALS) {
        fputs("spillsim: --interval: expected at most ten million intervals\n", stderr);
        return 2;
    }
    return 0;
}

/* An option belongs to one of the groups; the others say -1. */
static int read_option(void *context, int option, const char *value)
{
    int status = read_pool_option(context, option, value);

    if (status < 0)
        status = read_policy_option(context, option, value);
    if (status < 0)
        status = read_run_option(context, option, value);
    return status < 0 ? 2 : status;
}

static const struct sim_command_line command_line = {.name = "gate",
                                                     .options = long_options,
                                                     .help = OPTION_HELP,
                                                     .usage = usage,
                                                     .read = read_option};

static int read_command_line(struct options *options, int argc, char **argv)
{
    int status = sim_read_command_line(&command_line, options, argc, argv);

    return status ? status : check(options);
}

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

static json_t *row_json(const struct gate_config *config, const struct gate_sim *sim, double load)
{
    const struct gate_meter *meter = gate_sim_meter(sim);
    json_t *row = meter_json(config, meter);
    json_t *flows = json_array();
    json_t *more = json_pack("{s:s, s:s, s:f, s:I, s:f, s:f, s:I}", "policy",
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
    json_object_set_new(row, "flows", flows);
    return row;
}

static void row(const struct gate_config *config, const struct gate_sim *sim, double load,
                struct outputs *outputs)
{
    const struct gate_meter *meter = gate_sim_meter(sim);
    double refused = gate_meter_refused(meter);
    double marked = meter->offered ? (double)meter->marked / (double)meter->offered : 0;
    double seconds = (double)(config->end_ns - config->warmup_ns) / 1e9;
    char load_text[24] = "-";
    char text[3][SIM_TIME_TEXT];

    if (load > 0)
        snprintf(load_text, sizeof(load_text), "%g", load);
    printf("%-12s %6s %5llu %9s %9s %9s %7.2f%% %8.2f%% %8.2f %7.2f%% %9.1f %8llu\n",
           admit_policy_name(config->admit.policy), load_text, (unsigned long long)config->seed,
           sim_time_text(&meter->wait, -1, text[0]), sim_time_text(&meter->wait, 0.5, text[1]),
           sim_time_text(&meter->wait, 0.99, text[2]), 100 * gate_meter_used(meter, config),
           100 * refused, 100 * (refused - gate_meter_ideal(meter)), 100 * marked,
           (double)meter->completed / seconds, (unsigned long long)meter->queue_peak);
    if (outputs->rows)
        json_array_append_new(outputs->rows, row_json(config, sim, load));
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
                   FILE *out)
{
    size_t count;
    const struct gate_interval *intervals = gate_sim_intervals(sim, &count);

    for (size_t i = 0; i < count; i++) {
        const struct gate_interval *interval = &intervals[i];

        fprintf(out, "%s,%g,%llu,%.6g,%llu,%llu,%llu,%.6g,%llu\n",
                admit_policy_name(config->admit.policy), load, (unsigned long long)config->seed,
                (double)i * (double)config->interval_ns / 1e9,
                (unsigned long long)interval->offered, (unsigned long long)interval->refused,
                (unsigned long long)interval->started,
                interval->started ? interval->wait_ns / 1e6 / (double)interval->started : 0,
                (unsigned long long)interval->queue);
    }
}

static void simulate(struct options *options, double load, struct outputs *outputs)
{
    struct gate_config config = options->config;

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
            row(&config, sim, load, outputs);
            if (options->flow_count > 1)
                flow_rows(&config, sim);
            if (outputs->csv)
                series(&config, sim, load, outputs->csv);
            gate_sim_destroy(sim);
        }
    }
}

static int complain(const char *path, int error)
{
    fprintf(stderr, "spillsim: %s: %s\n", path, strerror(error));
    return 1;
}

static int finish(const struct options *options, struct outputs *outputs)
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

static int simulate_all(struct options *options)
{
    struct outputs outputs = {0};

    if (options->csv_path) {
        outputs.csv = fopen(options->csv_path, "w");
        if (!outputs.csv)
            return complain(options->csv_path, errno);
        fputs("policy,load,seed,time_s,offered,refused,started,wait_ms,queue\n", outputs.csv);
    }
    if (options->json_path)
        outputs.rows = json_array();
    printf("%-12s %6s %5s %9s %9s %9s %8s %9s %8s %8s %9s %8s\n", "policy", "load", "seed", "wait",
           "p50", "p99", "used", "refused", "beyond", "marked", "done/s", "queue");
    for (size_t i = 0; i < options->load_count; i++)
        simulate(options, options->loads[i], &outputs);
    if (options->load_count == 0)
        simulate(options, 0, &outputs);
    printf("beyond: points refused above what no policy could have served; queue: the longest\n");
    return finish(options, &outputs);
}

int gate_command(int argc, char **argv)
{
    struct options options = {
        .config = {.admit = {.limit = 64},
                   .slots = 16,
                   .capacity_per_s = 500,
                   .service = {.kind = DISTRIBUTION_EXPONENTIAL},
                   .cost = {.kind = DISTRIBUTION_FIXED, .mean = 1},
                   .end_ns = 200 * NS_PER_S,
                   .warmup_ns = 10 * NS_PER_S,
                   .interval_ns = NS_PER_S,
                   .seed = 1},
        .flow_count = 1,
        .seeds = 1,
    };

    options.flows = memory_zeroed(FLOWS_MAX + 1, sizeof(*options.flows));
    flow_spec_init(&options.flows[0]);
    options.flows[0].open_loop = true;
    snprintf(options.flows[0].name, sizeof(options.flows[0].name), "load");
    int status = read_command_line(&options, argc, argv);

    if (status == 0)
        status = simulate_all(&options);
    free(options.flows);
    return status;
}
