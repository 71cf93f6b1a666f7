/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `spillload run`. */
#include "loadgen/commands/run_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loadgen/base/memory.h"

#define NS_PER_S 1000000000LL

static void usage(FILE *out)
{
    fputs(
        "usage: spillload [run] --flow KEY=VALUE[,KEY=VALUE...] [--flow ...] [options]\n"
        "       spillload [run] --profile NAME --target HOST:PORT [options]\n"
        "       spillload [run] --workload FILE [options]\n"
        "\n"
        "Loads HTTP and NFS servers with flows of requests, open loop (rate and so on) or closed\n"
        "loop (concurrency alone), and shows throughput and latency of each. Latency counts\n"
        "from the time a request was meant to be sent.\n"
        "\n"
        "  --flow KEYS         a flow; up to 64\n"
        "  --workload FILE     flows, faults and times of a YAML file\n"
        "  --profile NAME      a built-in workload; `spillload profiles` lists them\n"
        "  --target HOST:PORT  of the flows that have none\n"
        "  --set KEY=VALUE     the key in every flow to whose protocol it means something\n"
        "  --speed N           the clock of shapes, of start and stop, and of the duration that a\n"
        "                      file or profile gives runs N times as fast\n"
        "  --scale N           all rates times N\n"
        "  --fault FAULT       a fault beside the load, see `spillload fault --help`; may be "
        "repeated\n"
        "  --duration TIME     measured time (default 10s)\n"
        "  --warmup TIME       load before it that is not measured (default 0)\n"
        "  --drain TIME        longest wait for replies after it (default 5s)\n"
        "  --start-at MOMENT   begin at HH:MM:SS, YYYY-MM-DDTHH:MM:SS or @SECONDS since 1970, as\n"
        "                      other machines do\n"
        "  --seed N            of all random draws (default 1)\n"
        "  --live[=KIND]       while it runs: table (redrawn), text (a line per flow and second),\n"
        "                      json (an object per second), off (default: table on a terminal)\n"
        "  --json FILE         summary as JSON, for compare, merge and plot\n"
        "  --csv FILE          a line per flow and second\n"
        "  --histogram FILE    the latency distributions as text\n"
        "  --label TEXT        shown in tables and pictures\n"
        "  --check             read and check everything, send nothing\n"
        "  --help              this text\n"
        "\n"
        "Keys of a flow (a comma in a value is written \\,):\n",
        out);
    flow_spec_help(out, FLOW_SENT);
    fputs("\n"
          "Exit status: 0; 1 when a flow got no good reply at all, or a result could not be "
          "written;\n"
          "2 for a wrong command line or file; 3 out of memory.\n",
          out);
}

enum {
    OPTION_FLOW = 256,
    OPTION_WORKLOAD,
    OPTION_PROFILE,
    OPTION_TARGET,
    OPTION_SET,
    OPTION_SPEED,
    OPTION_SCALE,
    OPTION_FAULT,
    OPTION_DURATION,
    OPTION_WARMUP,
    OPTION_DRAIN,
    OPTION_START_AT,
    OPTION_SEED,
    OPTION_LIVE,
    OPTION_JSON,
    OPTION_CSV,
    OPTION_HISTOGRAM,
    OPTION_LABEL,
    OPTION_CHECK,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"flow", required_argument, NULL, OPTION_FLOW},
    {"workload", required_argument, NULL, OPTION_WORKLOAD},
    {"profile", required_argument, NULL, OPTION_PROFILE},
    {"target", required_argument, NULL, OPTION_TARGET},
    {"set", required_argument, NULL, OPTION_SET},
    {"speed", required_argument, NULL, OPTION_SPEED},
    {"scale", required_argument, NULL, OPTION_SCALE},
    {"fault", required_argument, NULL, OPTION_FAULT},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"drain", required_argument, NULL, OPTION_DRAIN},
    {"start-at", required_argument, NULL, OPTION_START_AT},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"live", optional_argument, NULL, OPTION_LIVE},
    {"json", required_argument, NULL, OPTION_JSON},
    {"csv", required_argument, NULL, OPTION_CSV},
    {"histogram", required_argument, NULL, OPTION_HISTOGRAM},
    {"label", required_argument, NULL, OPTION_LABEL},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* What is put over the workload once all of it is there. */
struct overrides {
    struct workload_time duration;
    struct workload_time warmup;
    struct workload_time drain;
    bool has_seed;
    uint64_t seed;
    const char *target;
    const char *speed;
    const char *scale;
    char **sets; /* as many as there are arguments at most */
    size_t sets_count;
};

static int bad_option(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "spillload: --%s %s: expected %s\n", option, value, expected);
    return 2;
}

static int complain(const char *error)
{
    fprintf(stderr, "spillload: %s\n", error);
    return 2;
}

/* ---------------------------------------------------------------- values */

static int read_time(const char *option, const char *value, struct workload_time *out)
{
    if (units_parse_duration_ns(value, &out->ns) != 0)
        return bad_option(option, value, "a time with its unit, as 20s");
    out->given = true;
    return 0;
}

static int read_live(const char *value, enum results_live *out)
{
    static const char *const kinds[] = {
        [RESULTS_LIVE_AUTO] = "auto",   [RESULTS_LIVE_OFF] = "off",   [RESULTS_LIVE_TEXT] = "text",
        [RESULTS_LIVE_TABLE] = "table", [RESULTS_LIVE_JSON] = "json",
    };

    for (int i = 0; value && i <= RESULTS_LIVE_JSON; i++) {
        if (strcmp(kinds[i], value) == 0) {
            *out = (enum results_live)i;
            return 0;
        }
    }
    *out = RESULTS_LIVE_TEXT;
    return value ? bad_option("live", value, "table, text, json, off or auto") : 0;
}

/* The fraction of a second at the end of a moment; true when there is nothing else. */
static bool read_fraction(const char *text, int64_t *ns)
{
    int64_t place = NS_PER_S;

    *ns = 0;
    if (*text == '\0')
        return true;
    if (*text++ != '.' || *text == '\0')
        return false;
    for (; *text >= '0' && *text <= '9' && place > 1; text++)
        *ns += (*text - '0') * (place /= 10);
    return *text == '\0';
}

int run_options_read_moment(const char *text, int64_t now_ns, int64_t *out)
{
    time_t now = (time_t)(now_ns / NS_PER_S);
    int64_t fraction_ns;
    struct tm moment;
    const char *end;

    if (text[0] == '@') {
        char *rest;
        long long seconds = strtoll(text + 1, &rest, 10);

        if (rest == text + 1 || seconds < 0 || seconds > INT64_MAX / NS_PER_S - 1 ||
            !read_fraction(rest, &fraction_ns))
            return -EINVAL;
        *out = seconds * NS_PER_S + fraction_ns;
        return 0;
    }
    localtime_r(&now, &moment);
    end = strptime(text, strchr(text, 'T') ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &moment);
    if (!end || !read_fraction(end, &fraction_ns))
        return -EINVAL;
    moment.tm_isdst = -1;
    time_t seconds = mktime(&moment);

    if (seconds < 0)
        return -EINVAL;
    *out = (int64_t)seconds * NS_PER_S + fraction_ns;
    return 0;
}

static int read_start_at(const char *value, int64_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ns = now.tv_sec * NS_PER_S + now.tv_nsec;

    if (run_options_read_moment(value, now_ns, out) != 0)
        return bad_option("start-at", value,
                          "HH:MM:SS, YYYY-MM-DDTHH:MM:SS or @SECONDS since 1970");
    if (*out <= now_ns)
        return bad_option("start-at", value, "a moment that is still to come");
    return 0;
}

/* ---------------------------------------------------------------- options */

static int read_part(struct workload *workload, int option, const char *value)
{
    char error[WORKLOAD_ERROR_BYTES];
    int result = option == OPTION_FLOW       ? workload_add_flow(workload, value, error)
                 : option == OPTION_WORKLOAD ? workload_read_file(workload, value, error)
                 : option == OPTION_PROFILE  ? workload_read_profile(workload, value, error)
                                             : workload_add_fault(workload, value, error);

    return result ? complain(error) : 0;
}

static int read_override(struct overrides *overrides, int option, char *value)
{
    switch (option) {
    case OPTION_TARGET:
        overrides->target = value;
        return 0;
    case OPTION_SET:
        if (!strchr(value, '='))
            return bad_option("set", value, "KEY=VALUE");
        overrides->sets[overrides->sets_count++] = value;
        return 0;
    case OPTION_SPEED:
        overrides->speed = value;
        return 0;
    case OPTION_SCALE:
        overrides->scale = value;
        return 0;
    case OPTION_DURATION:
        return read_time("duration", value, &overrides->duration);
    case OPTION_WARMUP:
        return read_time("warmup", value, &overrides->warmup);
    case OPTION_DRAIN:
        return read_time("drain", value, &overrides->drain);
    default:
        overrides->has_seed = units_parse_count(value, 0, INT64_MAX, &overrides->seed) == 0;
        return overrides->has_seed ? 0 : bad_option("seed", value, "a number");
    }
}

static int read_option(struct run_options *options, struct overrides *overrides, int option,
                       char *value)
{
    switch (option) {
    case OPTION_FLOW:
    case OPTION_WORKLOAD:
    case OPTION_PROFILE:
    case OPTION_FAULT:
        return read_part(&options->workload, option, value);
    case OPTION_START_AT:
        return read_start_at(value, &options->start_at_ns);
    case OPTION_LIVE:
        return read_live(value, &options->results.live);
    case OPTION_JSON:
        options->results.json_path = value;
        return 0;
    case OPTION_CSV:
        options->results.csv_path = value;
        return 0;
    case OPTION_HISTOGRAM:
        options->results.histogram_path = value;
        return 0;
    case OPTION_LABEL:
        options->results.label = value;
        return 0;
    case OPTION_CHECK:
        options->check = true;
        return 0;
    case '?':
        return 2;
    default:
        return read_override(overrides, option, value);
    }
}

static int override_keys(struct workload *workload, const struct overrides *overrides)
{
    char error[WORKLOAD_ERROR_BYTES];
    int result = 0;

    for (size_t i = 0; i < overrides->sets_count && !result; i++) {
        char *equals = strchr(overrides->sets[i], '=');
        char *key = memory_string(overrides->sets[i]);

        key[equals - overrides->sets[i]] = '\0';
        result = workload_set(workload, key, equals + 1, error);
        free(key);
    }
    if (!result && overrides->target)
        result = workload_target(workload, overrides->target, error);
    if (!result && overrides->speed)
        result = workload_speed(workload, overrides->speed, error);
    if (!result && overrides->scale)
        result = workload_scale(workload, overrides->scale, error);
    return result ? complain(error) : 0;
}

static int finish_workload(struct run_options *options, const struct overrides *overrides)
{
    struct workload *workload = &options->workload;
    char error[WORKLOAD_ERROR_BYTES];

    if (workload->flows_count == 0)
        return complain("no --flow was given, nor --workload or --profile; see --help");
    int status = override_keys(workload, overrides);

    if (status)
        return status;
    if (overrides->duration.given)
        workload->duration = overrides->duration;
    if (overrides->warmup.given)
        workload->warmup = overrides->warmup;
    if (overrides->drain.given)
        workload->drain = overrides->drain;
    if (overrides->has_seed)
        workload->seed = overrides->seed;
    if (workload_check(workload, error) != 0)
        return complain(error);
    options->results.seed = workload->seed;
    options->results.warmup_ns = workload->warmup.ns;
    options->results.duration_ns = workload->duration.ns;
    return 0;
}

/* The arguments with blanks between them, quoted where a shell would part them. */
static char *join(int argc, char **argv)
{
    size_t size = sizeof("spillload");
    char *text;

    for (int i = 1; i < argc; i++)
        size += strlen(argv[i]) + 3;
    text = memory_zeroed(1, size);
    char *end = stpcpy(text, "spillload");

    for (int i = 1; i < argc; i++) {
        const char *quote = strpbrk(argv[i], " \t\\$&;|*?{}<>()\"") ? "'" : "";

        end = stpcpy(stpcpy(stpcpy(stpcpy(end, " "), quote), argv[i]), quote);
    }
    return text;
}

int run_options_read(struct run_options *options, int argc, char **argv)
{
    struct overrides overrides = {.sets = memory_zeroed((size_t)argc, sizeof(char *))};
    int status = 0;
    int option;

    *options = (struct run_options){.results = {.live = RESULTS_LIVE_AUTO}};
    workload_init(&options->workload);
    options->command = join(argc, argv);
    options->results.command = options->command;
    while (!status && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            usage(stdout);
            options->help = true;
            break;
        }
        status = read_option(options, &overrides, option, optarg);
    }
    if (!status && !options->help && optind < argc) {
        fprintf(stderr, "spillload: unexpected argument '%s'\n", argv[optind]);
        status = 2;
    }
    if (!status && !options->help)
        status = finish_workload(options, &overrides);
    if (status)
        fputs("Try 'spillload --help'.\n", stderr);
    free(overrides.sets);
    return status;
}

void run_options_fini(struct run_options *options)
{
    workload_fini(&options->workload);
    free(options->command);
}
