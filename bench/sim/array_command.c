/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillsim array: the project's scheduler in front of a simulated disk array, in virtual time. The
 * command line is here; the simulation is in sim.h, what it prints in report.h.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/sim/command_line.h"
#include "bench/sim/commands.h"
#include "bench/sim/report.h"
#include "bench/sim/sim.h"
#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define NS_PER_S       1000000000ULL
#define DEPTH_MAX      1000000000ULL
#define INTERVAL_CELLS 20000000ULL
#define MAX_FLOWS      1000

struct options {
    struct sim_config config;
    struct flow_spec *flows;
    const char *csv_path;
    const char *json_path;
};

/* ---------------------------------------------------------------- the command line */

enum option_id {
    OPTION_FLOW = 256,
    OPTION_ALGORITHM,
    OPTION_DEPTH,
    OPTION_DEPTH_UNIT,
    OPTION_SLACK,
    OPTION_CAPACITY,
    OPTION_AGEING,
    OPTION_REFUSE_AT_LIMIT,
    OPTION_FLOW_LIMIT,
    OPTION_TOTAL_LIMIT,
    OPTION_DISKS,
    OPTION_SERVICE,
    OPTION_DISTRIBUTION,
    OPTION_SPREAD,
    OPTION_SEEK,
    OPTION_DURATION,
    OPTION_WARMUP,
    OPTION_INTERVAL,
    OPTION_SEED,
    OPTION_CSV,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"flow", required_argument, NULL, OPTION_FLOW},
    {"algorithm", required_argument, NULL, OPTION_ALGORITHM},
    {"depth", required_argument, NULL, OPTION_DEPTH},
    {"depth-unit", required_argument, NULL, OPTION_DEPTH_UNIT},
    {"slack", required_argument, NULL, OPTION_SLACK},
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"ageing", required_argument, NULL, OPTION_AGEING},
    {"refuse-at-limit", no_argument, NULL, OPTION_REFUSE_AT_LIMIT},
    {"flow-limit", required_argument, NULL, OPTION_FLOW_LIMIT},
    {"limit", required_argument, NULL, OPTION_TOTAL_LIMIT},
    {"disks", required_argument, NULL, OPTION_DISKS},
    {"service", required_argument, NULL, OPTION_SERVICE},
    {"distribution", required_argument, NULL, OPTION_DISTRIBUTION},
    {"spread", required_argument, NULL, OPTION_SPREAD},
    {"seek", required_argument, NULL, OPTION_SEEK},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"interval", required_argument, NULL, OPTION_INTERVAL},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"csv", required_argument, NULL, OPTION_CSV},
    {"json", required_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* Every name sched knows, in lines of at most 74 columns. */
static void print_algorithms(FILE *out)
{
    size_t column = 0;

    for (int i = 0; i < SCHED_ALGORITHMS; i++) {
        const char *name = sched_algorithm_name((enum sched_algorithm)i);

        if (!name)
            continue;
        if (column == 0 || column + strlen(name) > 72)
            column = (size_t)fprintf(out, "%s  %s", i ? "\n" : "", name);
        else
            column += (size_t)fprintf(out, " %s", name);
    }
    fputc('\n', out);
}

static void usage(FILE *out)
{
    fputs("usage: spillsim array --flow KEY=VALUE[,KEY=VALUE...] [--flow ...] [options]\n"
          "\n"
          "Simulates flows of requests, a scheduler and a disk array in virtual time, and shows\n"
          "throughput, share and response time of each flow. The same command gives the same\n"
          "figures on every machine.\n"
          "\n"
          "Scheduler:\n"
          "  --algorithm NAME     one of those below (default sfqd)\n"
          "  --depth N            outstanding at the array at most (default 16)\n"
          "  --depth-unit UNIT    what that counts: requests (default) or cost\n"
          "  --slack N            hybrid: added to every window (default 0)\n"
          "  --capacity N/s       wfq: speed of the array in cost units (default: estimated)\n"
          "  --ageing TIME        scf: wait that makes up for one unit of cost (default 1ms)\n"
          "  --refuse-at-limit    mclock: refuse what is over a flow's limit, else hold it\n"
          "  --flow-limit N       requests of one flow waiting at most (default: no limit)\n"
          "  --limit N            requests of all flows waiting at most (default: no limit)\n"
          "Array:\n"
          "  --disks N            disks (default 4)\n"
          "  --service TIME       mean service time of a disk (default 6.7ms)\n"
          "  --distribution NAME  fixed, exponential (default), uniform or bimodal\n"
          "  --spread NAME        a request's disk: random (default) or shortest (queue)\n"
          "  --seek PERCENT       part of the service time that depends on the distance to the\n"
          "                       flow's last block on the disk (default 0); order=sequential\n"
          "                       makes the distance small\n"
          "Run:\n"
          "  --duration TIME      metered virtual time (default 100s)\n"
          "  --warmup TIME        virtual time before it (default 0)\n"
          "  --interval TIME      of the time series (default 1s)\n"
          "  --seed N             of all random draws (default 1)\n"
          "  --csv FILE           time series: throughput and response of each flow\n"
          "  --json FILE          summary\n"
          "  --help               this text\n"
          "\n"
          "Algorithms:\n",
          out);
    print_algorithms(out);
    fputs("\nKeys of a flow:\n", out);
    flow_spec_help(out, FLOW_SIMULATED);
    fputs("\n"
          "Exit status: 0; 1 when a file could not be written; 2 for a wrong command line.\n",
          out);
}

static int read_flow(struct options *options, const char *value)
{
    char error[FLOW_ERROR_BYTES];
    uint32_t count = options->config.flow_count;

    if (count == MAX_FLOWS)
        return sim_bad_option("flow", value, "at most 1000 flows");
    struct flow_spec *spec = &options->flows[count];

    if (flow_spec_parse(value, FLOW_SIMULATED, spec, error) != 0) {
        fprintf(stderr, "spillsim: --flow %s: %s\n", value, error);
        return 2;
    }
    if (!spec->name[0])
        snprintf(spec->name, sizeof(spec->name), "flow%u", count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(options->flows[i].name, spec->name) == 0)
            return sim_bad_option("flow", value, "names that differ");
    }
    options->config.flow_count++;
    return 0;
}

static int read_algorithm(struct options *options, const char *value)
{
    int algorithm = sched_algorithm_from_name(value);

    if (algorithm < 0) {
        fprintf(stderr, "spillsim: --algorithm %s: expected one of\n", value);
        print_algorithms(stderr);
        return 2;
    }
    options->config.sched.algorithm = (enum sched_algorithm)algorithm;
    return 0;
}

static int read_capacity(struct options *options, const char *value)
{
    double rate;

    if (units_parse_rate_per_s(value, &rate) != 0 || rate < 1 || rate > 1e9)
        return sim_bad_option("capacity", value, "a rate of at least 1/s, as 500/s");
    options->config.sched.options.capacity_per_s = (uint64_t)llround(rate);
    return 0;
}

/* ---- one function per group of options: a status, or -1 for an option of another group ---- */

static int read_sched_option(struct options *options, int option, const char *value)
{
    struct sched_params *sched = &options->config.sched;

    switch (option) {
    case OPTION_ALGORITHM:
        return read_algorithm(options, value);
    case OPTION_DEPTH:
        return sim_read_count("depth", value, 0, DEPTH_MAX, &sched->depth);
    case OPTION_DEPTH_UNIT:
        sched->depth_unit = strcmp(value, "cost") == 0 ? SCHED_DEPTH_COST : SCHED_DEPTH_REQUESTS;
        if (strcmp(value, "cost") != 0 && strcmp(value, "requests") != 0)
            return sim_bad_option("depth-unit", value, "requests or cost");
        return 0;
    case OPTION_SLACK:
        return sim_read_count("slack", value, 0, DEPTH_MAX, &sched->options.slack);
    case OPTION_CAPACITY:
        return read_capacity(options, value);
    case OPTION_AGEING:
        return sim_read_time("ageing", value, 1, SCHED_TIME_NS_MAX, &sched->options.ageing_ns);
    case OPTION_REFUSE_AT_LIMIT:
        sched->options.refuse_at_limit = true;
        return 0;
    case OPTION_FLOW_LIMIT:
        return sim_read_count("flow-limit", value, 1, DEPTH_MAX, &sched->flow_queue_limit);
    case OPTION_TOTAL_LIMIT:
        return sim_read_count("limit", value, 1, DEPTH_MAX, &sched->total_queue_limit);
    default:
        return -1;
    }
}

static int read_array_option(struct options *options, int option, const char *value)
{
    struct array_config *array = &options->config.array;
    uint64_t number = 0;
    int status = 0;

    switch (option) {
    case OPTION_DISKS:
        status = sim_read_count("disks", value, 1, ARRAY_DISKS_MAX, &number);
        array->disks = (uint32_t)number;
        return status;
    case OPTION_SERVICE:
        return sim_read_time("service", value, 1, SCHED_TIME_NS_MAX, &array->service.mean);
    case OPTION_DISTRIBUTION:
        if (distribution_parse(value, &array->service.kind) != 0)
            return sim_bad_option("distribution", value, "fixed, exponential, uniform or bimodal");
        return 0;
    case OPTION_SPREAD:
        if (array_spread_parse(value, &array->spread) != 0)
            return sim_bad_option("spread", value, "random or shortest");
        return 0;
    case OPTION_SEEK:
        status = sim_read_count("seek", value, 0, 100, &number);
        array->seek_share = (double)number / 100;
        return status;
    default:
        return -1;
    }
}

static int read_run_option(struct options *options, int option, const char *value)
{
    struct sim_config *config = &options->config;

    switch (option) {
    case OPTION_FLOW:
        return read_flow(options, value);
    case OPTION_DURATION:
        return sim_read_time("duration", value, 1, SCHED_TIME_NS_MAX, &config->end_ns);
    case OPTION_WARMUP:
        return sim_read_time("warmup", value, 0, SCHED_TIME_NS_MAX, &config->warmup_ns);
    case OPTION_INTERVAL:
        return sim_read_time("interval", value, 1, SCHED_TIME_NS_MAX, &config->interval_ns);
    case OPTION_SEED:
        return sim_read_count("seed", value, 0, INT64_MAX, &config->seed);
    case OPTION_CSV:
        options->csv_path = value;
        return 0;
    case OPTION_JSON:
        options->json_path = value;
        return 0;
    default:
        return -1;
    }
}

/* What no option alone can tell. */
static int check(struct options *options)
{
    struct sim_config *config = &options->config;

    if (config->flow_count == 0) {
        fputs("spillsim: no --flow was given, see --help\n", stderr);
        return 2;
    }
    config->end_ns += config->warmup_ns;
    if (!options->csv_path) {
        config->interval_ns = 0;
        return 0;
    }
    uint64_t intervals = config->end_ns / config->interval_ns;

    if (intervals == 0 || intervals > INTERVAL_CELLS / config->flow_count) {
        fputs("spillsim: --interval: expected a time not above --duration, and fewer than 20 "
              "million intervals times flows\n",
              stderr);
        return 2;
    }
    return 0;
}

/* An option belongs to one of the groups; the others say -1. */
static int read_option(void *context, int option, const char *value)
{
    int status = read_sched_option(context, option, value);

    if (status < 0)
        status = read_array_option(context, option, value);
    if (status < 0)
        status = read_run_option(context, option, value);
    return status < 0 ? 2 : status;
}

static const struct sim_command_line command_line = {.name = "array",
                                                     .options = long_options,
                                                     .help = OPTION_HELP,
                                                     .usage = usage,
                                                     .read = read_option};

static int read_command_line(struct options *options, int argc, char **argv)
{
    int status = sim_read_command_line(&command_line, options, argc, argv);

    return status ? status : check(options);
}

/* ---------------------------------------------------------------- the run */

static uint64_t wall_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int complain(const char *path, int error)
{
    if (!error)
        return 0;
    fprintf(stderr, "spillsim: %s: %s\n", path, strerror(-error));
    return 1;
}

static int simulate(const struct options *options)
{
    const struct sim_config *config = &options->config;
    struct sim *sim = sim_create(config);
    int status = 0;

    if (!sim) {
        fprintf(stderr, "spillsim: the scheduler %s refuses these parameters: %s\n",
                sched_algorithm_name(config->sched.algorithm), strerror(errno));
        return 2;
    }
    uint64_t began_ns = wall_clock_ns();

    sim_advance(sim, config->end_ns);
    uint64_t wall_ns = wall_clock_ns() - began_ns;

    sim_report_table(stdout, sim, config, wall_ns);
    if (options->csv_path)
        status |= complain(options->csv_path, sim_report_csv(options->csv_path, sim, config));
    if (options->json_path)
        status |=
            complain(options->json_path, sim_report_json(options->json_path, sim, config, wall_ns));
    sim_destroy(sim);
    return status;
}

int array_command(int argc, char **argv)
{
    struct options options = {
        .config = {.sched = {.algorithm = SCHED_ALGORITHM_SFQD, .depth = 16},
                   .array = {.disks = 4,
                             .service = {.kind = DISTRIBUTION_EXPONENTIAL, .mean = 6700000}},
                   .end_ns = 100 * NS_PER_S,
                   .interval_ns = NS_PER_S,
                   .seed = 1},
    };

    options.flows = memory_zeroed(MAX_FLOWS, sizeof(*options.flows));
    options.config.flows = options.flows;
    int status = read_command_line(&options, argc, argv);

    if (status == 0)
        status = simulate(&options);
    free(options.flows);
    return status;
}
