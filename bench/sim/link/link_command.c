/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillsim link: admission policies before a bottleneck link with TCP senders. The command line and
 * the table are here; the simulation is in link_sim.h.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sim/command_line.h"
#include "bench/sim/commands.h"
#include "bench/sim/link/link_sim.h"
#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define NS_PER_S      1000000000ULL
#define DURATION_MOST (1000000 * NS_PER_S)
#define INTERVALS     10000000ULL
#define BYTES_MOST    (1ULL << 40)
#define MBPS          1e6

struct options {
    struct link_config config;
    bool policies[ADMIT_POLICIES];
    uint64_t seeds;
    const char *csv_path;
    const char *json_path;
};

enum {
    OPTION_POLICY = 256,
    OPTION_ECN,
    OPTION_COST,
    OPTION_SLOTS,
    OPTION_LIMIT,
    OPTION_TARGET,
    OPTION_POLICY_INTERVAL,
    OPTION_SCHEDULE,
    OPTION_FLOWS,
    OPTION_BYTES,
    OPTION_RTT,
    OPTION_PAUSE,
    OPTION_WINDOW,
    OPTION_SEED,
    OPTION_SEEDS,
    OPTION_INTERVAL,
    OPTION_CSV,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"ecn", no_argument, NULL, OPTION_ECN},
    {"cost", required_argument, NULL, OPTION_COST},
    {"slots", required_argument, NULL, OPTION_SLOTS},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"target", required_argument, NULL, OPTION_TARGET},
    {"policy-interval", required_argument, NULL, OPTION_POLICY_INTERVAL},
    {"schedule", required_argument, NULL, OPTION_SCHEDULE},
    {"flows", required_argument, NULL, OPTION_FLOWS},
    {"bytes", required_argument, NULL, OPTION_BYTES},
    {"rtt", required_argument, NULL, OPTION_RTT},
    {"pause", required_argument, NULL, OPTION_PAUSE},
    {"initial-window", required_argument, NULL, OPTION_WINDOW},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"seeds", required_argument, NULL, OPTION_SEEDS},
    {"interval", required_argument, NULL, OPTION_INTERVAL},
    {"csv", required_argument, NULL, OPTION_CSV},
    {"json", required_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static void usage(FILE *out)
{
    fputs(
        "usage: spillsim link [options]\n"
        "\n"
        "Simulates, packet by packet, TCP senders (CUBIC) that share a bottleneck link with an\n"
        "admission policy before it, and shows for each step of the link's capacity what packets\n"
        "waited, how busy the link was, what was dropped or marked, and how long transfers took.\n"
        "\n"
        "  --policy NAME[,NAME]  none, tail, codel, pie, duk-literal, duk (default: all of them)\n"
        "  --ecn                 packets are marked instead of dropped\n"
        "  --cost packets|bytes  what the policy counts (default packets)\n"
        "  --slots N             packets that duk takes to be served at a time (default 1)\n"
        "  --limit N             tail: packets (or bytes) that may wait (default 64)\n"
        "  --target TIME         codel, pie: wanted wait (default 5ms, 20ms)\n"
        "  --policy-interval TIME  codel: default 100ms; duk-literal: default from the congestion\n"
        "  --schedule LIST       capacity in Mb/s over time\n"
        "                        (default '100:20s 50:20s 20:20s 50:20s 100:20s')\n"
        "  --flows N             senders, each with a transfer at a time (default 40)\n"
        "  --bytes N             of a transfer; K, M: 1024s (default 250000)\n"
        "  --rtt TIME[+-TIME]    round-trip time without a queue, drawn for each transfer\n"
        "                        (default 50ms+-10ms)\n"
        "  --pause TIME          between a sender's transfers (default 0)\n"
        "  --initial-window N    segments (default 3)\n"
        "  --seed N, --seeds N   first seed and how many runs, shown together (default 1 and 1)\n"
        "  --interval TIME       of the time series (default 100ms)\n"
        "  --csv FILE            time series: delay, drops, marks, queue of each run\n"
        "  --json FILE           all rows, completion times with all their percentiles\n"
        "  --help                this text\n",
        out);
}

/* "100:20s 50:20s": all of the run. */
static int read_schedule(struct link_config *config, const char *value)
{
    char *list = memory_string(value);
    char *rest = list;
    uint64_t from_ns = 0;
    int status = 0;

    config->step_count = 0;
    for (char *item = strsep(&rest, " "); item && !status; item = strsep(&rest, " ")) {
        char *end;
        double mbps = strtod(item, &end);
        uint64_t length_ns = 0;

        if (config->step_count == LINK_STEPS || end == item || *end != ':' || !(mbps >= 0.001) ||
            mbps > 1000000 || units_parse_duration_ns(end + 1, &length_ns) != 0 || length_ns == 0 ||
            length_ns > DURATION_MOST) {
            status = sim_bad_option(
                "schedule", value, "at most 64 capacities in Mb/s with times, as '100:20s 20:10s'");
            break;
        }
        config->steps[config->step_count++] =
            (struct link_step){from_ns, (uint64_t)(mbps * MBPS + 0.5)};
        from_ns += length_ns;
    }
    config->end_ns = from_ns;
    free(list);
    return status;
}

/* "50ms+-10ms" */
static int read_rtt(struct link_config *config, const char *value)
{
    char *text = memory_string(value);
    char *spread = strstr(text, "+-");
    int status = 0;

    if (spread) {
        *spread = '\0';
        spread += 2;
    }
    if (units_parse_duration_ns(text, &config->rtt_ns) != 0 || config->rtt_ns == 0 ||
        config->rtt_ns > 100 * NS_PER_S ||
        units_parse_duration_ns(spread ? spread : "0", &config->rtt_spread_ns) != 0 ||
        config->rtt_spread_ns >= config->rtt_ns)
        status =
            sim_bad_option("rtt", value, "a time up to 100s and less to both sides, as 50ms+-10ms");
    free(text);
    return status;
}

static int read_policy_option(struct options *options, int option, const char *value)
{
    struct admit_options *admit = &options->config.admit;

    switch (option) {
    case OPTION_POLICY:
        return sim_read_policies(value, options->policies);
    case OPTION_ECN:
        options->config.ecn = true;
        return 0;
    case OPTION_COST:
        options->config.cost_bytes = strcmp(value, "bytes") == 0;
        if (!options->config.cost_bytes && strcmp(value, "packets") != 0)
            return sim_bad_option("cost", value, "packets or bytes");
        return 0;
    case OPTION_SLOTS:
        return sim_read_count("slots", value, 1, 1000000, &admit->slots);
    case OPTION_LIMIT:
        return sim_read_count("limit", value, 1, INT64_MAX, &admit->limit);
    case OPTION_TARGET:
        return sim_read_time("target", value, 1, DURATION_MOST, &admit->target_ns);
    case OPTION_POLICY_INTERVAL:
        return sim_read_time("policy-interval", value, 1, DURATION_MOST, &admit->interval_ns);
    default:
        return -1;
    }
}

static int read_load_option(struct options *options, int option, const char *value)
{
    struct link_config *config = &options->config;
    uint64_t number;

    switch (option) {
    case OPTION_SCHEDULE:
        return read_schedule(config, value);
    case OPTION_RTT:
        return read_rtt(config, value);
    case OPTION_FLOWS:
        if (sim_read_count("flows", value, 1, 100000, &number) != 0)
            return 2;
        config->flows = (uint32_t)number;
        return 0;
    case OPTION_WINDOW:
        if (sim_read_count("initial-window", value, 1, 100000, &number) != 0)
            return 2;
        config->initial_window = (uint32_t)number;
        return 0;
    case OPTION_BYTES:
        if (units_parse_bytes(value, &config->bytes) != 0 || config->bytes == 0 ||
            config->bytes > BYTES_MOST)
            return sim_bad_option("bytes", value, "a number of bytes from 1 to 1024G");
        return 0;
    case OPTION_PAUSE:
        if (strcmp(value, "0") != 0)
            return sim_read_time("pause", value, 1, DURATION_MOST, &config->pause_ns);
        config->pause_ns = 0;
        return 0;
    default:
        return -1;
    }
}

static int read_run_option(struct options *options, int option, const char *value)
{
    struct link_config *config = &options->config;

    switch (option) {
    case OPTION_SEED:
        return sim_read_count("seed", value, 0, INT32_MAX, &config->seed);
    case OPTION_SEEDS:
        return sim_read_count("seeds", value, 1, 1000, &options->seeds);
    case OPTION_INTERVAL:
        return sim_read_time("interval", value, 1, DURATION_MOST, &config->interval_ns);
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
    struct link_config *config = &options->config;

    sim_default_policies(options->policies);
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
    int status = read_policy_option(context, option, value);

    if (status < 0)
        status = read_load_option(context, option, value);
    if (status < 0)
        status = read_run_option(context, option, value);
    return status < 0 ? 2 : status;
}

static const struct sim_command_line command_line = {.name = "link",
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

static json_t *row_json(const char *policy, const struct link_step *step,
                        const struct link_meter *meter)
{
    json_t *row =
        json_pack("{s:s, s:f, s:f, s:f, s:f}", "policy", policy, "from_s",
                  (double)step->from_ns / 1e9, "capacity_mbps", (double)step->bits_per_s / MBPS,
                  "used", link_meter_used(meter), "length_s", (double)meter->length_ns / 1e9);
    json_t *packets =
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "offered", (json_int_t)meter->offered, "dropped",
                  (json_int_t)meter->dropped, "marked", (json_int_t)meter->marked, "carried",
                  (json_int_t)meter->carried, "timeouts", (json_int_t)meter->timeouts);

    json_object_set_new(row, "delay", sim_times_json(&meter->delay));
    json_object_set_new(row, "completion", sim_times_json(&meter->completion));
    json_object_set_new(row, "packets", packets);
    return row;
}

static void show(const struct link_config *config, size_t step, const struct link_meter *meter,
                 struct outputs *outputs)
{
    const char *policy = admit_policy_name(config->admit.policy);
    char text[4][SIM_TIME_TEXT];

    printf("%-12s %7g %9s %9s %7.2f%% %7.2f%% %7.2f%% %9.1f %9s %9s %9.1f\n", policy,
           (double)config->steps[step].bits_per_s / MBPS, sim_time_text(&meter->delay, -1, text[0]),
           sim_time_text(&meter->delay, 0.99, text[1]), 100 * link_meter_used(meter),
           100 * link_meter_dropped(meter), 100 * link_meter_marked(meter),
           (double)meter->transfers * 1e9 / (double)meter->length_ns,
           sim_time_text(&meter->completion, 0.5, text[2]),
           sim_time_text(&meter->completion, 0.95, text[3]),
           (double)meter->timeouts * 1e9 / (double)meter->length_ns);
    if (outputs->rows)
        json_array_append_new(outputs->rows, row_json(policy, &config->steps[step], meter));
}

static void series(const struct link_config *config, const struct link_sim *sim, FILE *out)
{
    size_t count;
    const struct link_interval *intervals = link_sim_intervals(sim, &count);

    for (size_t i = 0; i < count; i++) {
        const struct link_interval *interval = &intervals[i];

        fprintf(out, "%s,%llu,%.6g,%llu,%llu,%llu,%llu,%.6g,%llu\n",
                admit_policy_name(config->admit.policy), (unsigned long long)config->seed,
                (double)i * (double)config->interval_ns / 1e9,
                (unsigned long long)interval->offered, (unsigned long long)interval->dropped,
                (unsigned long long)interval->marked, (unsigned long long)interval->carried,
                interval->carried ? (double)interval->delay_ns / 1e6 / (double)interval->carried
                                  : 0,
                (unsigned long long)interval->queue);
    }
}

static void simulate(const struct options *options, enum admit_policy policy,
                     struct outputs *outputs)
{
    struct link_config config = options->config;
    struct link_meter *sums = memory_zeroed(config.step_count, sizeof(*sums));

    config.admit.policy = policy;
    for (size_t step = 0; step < config.step_count; step++)
        link_meter_reset(&sums[step]);
    for (uint64_t i = 0; i < options->seeds; i++) {
        config.seed = options->config.seed + i;
        config.admit.seed = config.seed;
        struct link_sim *sim = link_sim_create(&config);

        link_sim_run(sim, config.end_ns);
        for (size_t step = 0; step < config.step_count; step++)
            link_meter_merge(&sums[step], link_sim_meter(sim, step));
        if (outputs->csv)
            series(&config, sim, outputs->csv);
        link_sim_destroy(sim);
    }
    for (size_t step = 0; step < config.step_count; step++)
        show(&config, step, &sums[step], outputs);
    free(sums);
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
            json_pack("{s:b, s:I, s:I, s:I, s:O}", "ecn", options->config.ecn, "flows",
                      (json_int_t)options->config.flows, "bytes", (json_int_t)options->config.bytes,
                      "seeds", (json_int_t)options->seeds, "rows", outputs->rows);

        errno = 0;
        if (json_dump_file(all, options->json_path, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0)
            status = complain(options->json_path, errno ? errno : EIO);
        json_decref(all);
        json_decref(outputs->rows);
    }
    return status;
}

static int simulate_all(const struct options *options)
{
    struct outputs outputs = {0};

    if (options->csv_path) {
        outputs.csv = fopen(options->csv_path, "w");
        if (!outputs.csv)
            return complain(options->csv_path, errno);
        fputs("policy,seed,time_s,offered,dropped,marked,carried,delay_ms,queue\n", outputs.csv);
    }
    if (options->json_path)
        outputs.rows = json_array();
    printf("%-12s %7s %9s %9s %8s %8s %8s %9s %9s %9s %9s\n", "policy", "Mb/s", "delay", "p99",
           "used", "dropped", "marked", "done/s", "p50", "p95", "RTO/s");
    for (int policy = 0; policy < ADMIT_POLICIES; policy++) {
        if (options->policies[policy])
            simulate(options, (enum admit_policy)policy, &outputs);
    }
    printf("delay, p99: in the queue; done/s, p50, p95: transfers, and how long they took\n");
    return finish(options, &outputs);
}

int link_command(int argc, char **argv)
{
    struct options options = {
        .config = {.admit = {.slots = 1, .limit = 64},
                   .flows = 40,
                   .bytes = 250000,
                   .rtt_ns = 50000000,
                   .rtt_spread_ns = 10000000,
                   .initial_window = 3,
                   .interval_ns = NS_PER_S / 10,
                   .seed = 1},
        .seeds = 1,
    };
    int status = read_schedule(&options.config, "100:20s 50:20s 20:20s 50:20s 100:20s");

    if (status == 0)
        status = read_command_line(&options, argc, argv);
    if (status == 0)
        status = simulate_all(&options);
    return status;
}
