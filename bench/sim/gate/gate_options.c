/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of spillsim gate. */
#include "bench/sim/gate/gate_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sim/command_line.h"
#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define NS_PER_S      1000000000ULL
#define DURATION_MOST (1000000 * NS_PER_S)
#define INTERVALS     10000000ULL

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
        "                        pareto:1.2:1:64 (default 1: the request form); up to 8 of them,\n"
        "                        each has its rows\n"
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

static int read_loads(struct gate_options *options, const char *value)
{
    const char *p = value;

    options->load_count = 0;
    while (options->load_count < GATE_LOADS_MAX) {
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

static int read_flow(struct gate_options *options, const char *value)
{
    char error[FLOW_ERROR_BYTES];

    if (options->flow_count == GATE_FLOWS_MAX)
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

static int read_cost(struct gate_options *options, const char *value)
{
    struct gate_cost *cost = &options->costs[options->cost_count];

    if (options->cost_count == GATE_COSTS_MAX)
        return sim_bad_option("cost", value, "at most 8 of them");
    if (distribution_read(value, DISTRIBUTION_BYTES, &cost->distribution) != 0 ||
        distribution_mean(&cost->distribution) < 1)
        return sim_bad_option("cost", value, "a number or a distribution, as pareto:1.5:1KiB:1MiB");
    cost->text = value;
    options->cost_count++;
    return 0;
}

static int read_pool_option(struct gate_options *options, int option, const char *value)
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
        return read_cost(options, value);
    case OPTION_SCHEDULE:
        return read_schedule(config, value);
    default:
        return -1;
    }
}

static int read_policy_option(struct gate_options *options, int option, const char *value)
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

static int read_run_option(struct gate_options *options, int option, const char *value)
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
static int check(struct gate_options *options)
{
    static const double usual[] = {0.5, 0.8, 0.9, 1.2, 2, 10};
    struct gate_config *config = &options->config;

    sim_default_policies(options->policies);
    if (options->load_count == 0 && options->flow_count == 1) {
        memcpy(options->loads, usual, sizeof(usual));
        options->load_count = sizeof(usual) / sizeof(usual[0]);
    }
    if (options->cost_count == 0)
        options->costs[options->cost_count++] =
            (struct gate_cost){"1", {.kind = DISTRIBUTION_FIXED, .mean = 1}};
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

int gate_options_read(struct gate_options *options, int argc, char **argv)
{
    *options = (struct gate_options){
        .config = {.admit = {.limit = 64},
                   .slots = 16,
                   .capacity_per_s = 500,
                   .service = {.kind = DISTRIBUTION_EXPONENTIAL},
                   .end_ns = 200 * NS_PER_S,
                   .warmup_ns = 10 * NS_PER_S,
                   .interval_ns = NS_PER_S,
                   .seed = 1},
        .flow_count = 1,
        .seeds = 1,
    };
    options->flows = memory_zeroed(GATE_FLOWS_MAX + 1, sizeof(*options->flows));
    flow_spec_init(&options->flows[0]);
    options->flows[0].open_loop = true;
    snprintf(options->flows[0].name, sizeof(options->flows[0].name), "load");
    int status = sim_read_command_line(&command_line, options, argc, argv);

    return status ? status : check(options);
}

void gate_options_fini(struct gate_options *options)
{
    free(options->flows);
}
