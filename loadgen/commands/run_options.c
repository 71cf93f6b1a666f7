/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `spillload run`. */
#include "loadgen/commands/run_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ULL

static void usage(FILE *out)
{
    fputs(
        "usage: spillload --flow KEY=VALUE[,KEY=VALUE...] [--flow ...] [options]\n"
        "\n"
        "Loads HTTP servers and NFSv3 servers with flows of requests, open loop (rate=) or closed\n"
        "loop (concurrency= alone), and shows throughput and latency of each. Latency counts\n"
        "from the time a request was meant to be sent.\n"
        "\n"
        "  --flow KEYS       a flow; up to 64\n"
        "  --duration TIME   measured time (default 10s)\n"
        "  --warmup TIME     load before it that is not measured (default 0)\n"
        "  --drain TIME      longest wait for replies after it (default 5s)\n"
        "  --seed N          of all random draws (default 1)\n"
        "  --live[=json]     a line per flow and second, or a JSON object per second\n"
        "  --json FILE       summary as JSON\n"
        "  --help            this text\n"
        "\n"
        "Keys of a flow (a comma in a value is written \\,):\n",
        out);
    flow_spec_help(out, FLOW_SENT);
    fputs("\n"
          "Exit status: 0; 1 when a flow got no good reply at all; 2 for a wrong command line.\n",
          out);
}

enum {
    OPTION_FLOW = 256,
    OPTION_DURATION,
    OPTION_WARMUP,
    OPTION_DRAIN,
    OPTION_SEED,
    OPTION_LIVE,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"flow", required_argument, NULL, OPTION_FLOW},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"drain", required_argument, NULL, OPTION_DRAIN},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"live", optional_argument, NULL, OPTION_LIVE},
    {"json", required_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static int bad_option(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "spillload: --%s %s: expected %s\n", option, value, expected);
    return 2;
}

static int read_flow(struct run_options *options, const char *value)
{
    char error[FLOW_ERROR_BYTES];

    if (options->flows_count == RUN_MAX_FLOWS)
        return bad_option("flow", value, "at most 64 flows");
    struct flow_spec *spec = &options->flows[options->flows_count];

    if (flow_spec_parse(value, FLOW_SENT, spec, error) != 0) {
        fprintf(stderr, "spillload: --flow %s: %s\n", value, error);
        return 2;
    }
    if (!spec->name[0])
        snprintf(spec->name, sizeof(spec->name), "flow%zu", options->flows_count + 1);
    for (size_t i = 0; i < options->flows_count; i++) {
        if (strcmp(options->flows[i].name, spec->name) == 0)
            return bad_option("flow", value, "names that differ");
    }
    options->flows_count++;
    return 0;
}

static int read_time(const char *option, const char *value, uint64_t *out)
{
    if (units_parse_duration_ns(value, out) != 0)
        return bad_option(option, value, "a time with its unit, as 20s");
    return 0;
}

static int read_option(struct run_options *options, int option, const char *value)
{
    switch (option) {
    case OPTION_FLOW:
        return read_flow(options, value);
    case OPTION_DURATION:
        return read_time("duration", value, &options->duration_ns);
    case OPTION_WARMUP:
        return read_time("warmup", value, &options->warmup_ns);
    case OPTION_DRAIN:
        return read_time("drain", value, &options->drain_ns);
    case OPTION_SEED:
        if (units_parse_count(value, 0, INT64_MAX, &options->seed) != 0)
            return bad_option("seed", value, "a number");
        return 0;
    case OPTION_LIVE:
        options->live = value && strcmp(value, "json") == 0 ? REPORT_LIVE_JSON : REPORT_LIVE_TEXT;
        if (value && strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
            return bad_option("live", value, "text or json");
        return 0;
    case OPTION_JSON:
        options->json_path = value;
        return 0;
    default:
        return 2;
    }
}

int run_options_read(struct run_options *options, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            usage(stdout);
            options->help = true;
            return 0;
        }
        int status = read_option(options, option, optarg);

        if (status) {
            fputs("Try 'spillload --help'.\n", stderr);
            return status;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spillload: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    if (options->flows_count == 0) {
        fputs("spillload: no --flow was given, see --help\n", stderr);
        return 2;
    }
    if (options->duration_ns == 0)
        return bad_option("duration", "0", "a time above 0");
    return 0;
}
