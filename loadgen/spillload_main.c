/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillload: flows of load for HTTP and NFSv3, open and closed loop, and their percentiles. The
 * command line and the course of a run are here; flows are in client/.
 *
 * A run:  connect, mount -> SETUP_POLL until all flows are ready -> warm-up -> measured time ->
 * drain
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "loadgen/base/memory.h"
#include "loadgen/net/signals.h"
#include "loadgen/client/flow.h"
#include "loadgen/results/report.h"

#define MAX_FLOWS      64
#define NS_PER_S       1000000000ULL
#define SETUP_POLL_NS  5000000ULL
#define SETUP_LIMIT_NS (10 * NS_PER_S)
#define DRAIN_POLL_NS  10000000ULL

struct options {
    struct flow_spec flows[MAX_FLOWS];
    size_t flows_count;
    uint64_t duration_ns;
    uint64_t warmup_ns;
    uint64_t drain_ns;
    uint64_t seed;
    const char *json_path;
    enum report_live live;
};

struct run {
    const struct options *options;
    struct loop loop;
    struct signals signals;
    struct flow *flows;
    size_t flows_opened;
    struct flow_window window;
    struct loop_timer setup_timer;
    struct loop_timer second_timer;
    struct loop_timer drain_timer;
    uint64_t setup_until_ns;
    uint64_t second_began_ns;
    unsigned seconds;
    bool began;
    bool interrupted;
    int error;
};

/* ---------------------------------------------------------------- the course of a run */

static void setup_poll(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, setup_timer));
    const struct options *options = run->options;
    uint64_t now_ns = loop_clock_ns();

    for (size_t i = 0; i < options->flows_count; i++) {
        if (flow_ready(&run->flows[i]))
            continue;
        if (now_ns < run->setup_until_ns) {
            loop_timer_set(&run->loop, timer, now_ns + SETUP_POLL_NS);
            return;
        }
        fprintf(stderr, "spillload: flow %s: %s did not let us mount within %llu s\n",
                run->flows[i].spec.name, run->flows[i].spec.authority,
                (unsigned long long)(SETUP_LIMIT_NS / NS_PER_S));
        run->error = -ETIMEDOUT;
        loop_stop(&run->loop);
        return;
    }
    run->began = true;
    run->window.start_ns = now_ns;
    run->window.measure_ns = now_ns + options->warmup_ns;
    run->window.end_ns = run->window.measure_ns + options->duration_ns;
    for (size_t i = 0; i < options->flows_count; i++)
        flow_begin(&run->flows[i], &run->window);
    run->second_began_ns = now_ns;
    loop_timer_set(&run->loop, &run->second_timer, now_ns + NS_PER_S);
    loop_timer_set(&run->loop, &run->drain_timer, run->window.end_ns);
}

static void second_over(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, second_timer));
    uint64_t now_ns = loop_clock_ns();

    run->seconds++;
    report_second(stdout, run->options->live, run->flows, run->options->flows_count, run->seconds,
                  (double)(now_ns - run->second_began_ns) / 1e9);
    run->second_began_ns = now_ns;
    if (run->window.start_ns + (run->seconds + 1) * NS_PER_S <= run->window.end_ns)
        loop_timer_set(&run->loop, timer, run->window.start_ns + (run->seconds + 1) * NS_PER_S);
}

static void drain_poll(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, drain_timer));
    uint64_t now_ns = loop_clock_ns();
    uint64_t outstanding = 0;

    for (size_t i = 0; i < run->options->flows_count; i++)
        outstanding += flow_outstanding(&run->flows[i]);
    if (outstanding == 0 || now_ns >= run->window.end_ns + run->options->drain_ns)
        loop_stop(&run->loop);
    else
        loop_timer_set(&run->loop, timer, now_ns + DRAIN_POLL_NS);
}

/* The first signal ends the measured time now; the figures so far are shown. */
static void interrupted(struct signals *signals)
{
    struct run *run = (void *)((char *)signals - offsetof(struct run, signals));
    uint64_t now_ns = loop_clock_ns();

    run->interrupted = true;
    if (run->window.end_ns > now_ns)
        run->window.end_ns = now_ns;
    loop_stop(signals->loop);
}

/* 0 when every flow got at least one good reply, else 1. */
static int finish(const struct run *run)
{
    const struct options *options = run->options;
    double measured_s = run->window.end_ns > run->window.measure_ns
                            ? (double)(run->window.end_ns - run->window.measure_ns) / 1e9
                            : 1e-9;
    int status = 0;

    report_table(stdout, run->flows, options->flows_count, measured_s);
    fflush(stdout);
    report_warnings(stderr, run->flows, options->flows_count);
    if (options->json_path) {
        int error = report_json(options->json_path, run->flows, options->flows_count, measured_s,
                                options->seed);

        if (error) {
            fprintf(stderr, "spillload: %s: %s\n", options->json_path, strerror(-error));
            status = 1;
        }
    }
    for (size_t i = 0; i < options->flows_count; i++) {
        const struct flow *flow = &run->flows[i];

        if (flow->total.outcomes[OUTCOME_OK] > 0 || (run->interrupted && flow->offered == 0))
            continue;
        fprintf(stderr, "spillload: flow %s: no request to %s succeeded", flow->spec.name,
                flow->spec.authority);
        for (int o = OUTCOME_OK + 1; o < OUTCOME_COUNT; o++) {
            if (flow->total.outcomes[o])
                fprintf(stderr, ", %s %llu", outcome_name((enum outcome)o),
                        (unsigned long long)flow->total.outcomes[o]);
        }
        fputc('\n', stderr);
        status = 1;
    }
    return status;
}

static int open_flows(struct run *run)
{
    const struct options *options = run->options;

    for (size_t i = 0; i < options->flows_count; i++) {
        int error = flow_open(&run->flows[i], &run->loop, &options->flows[i], options->seed, i);

        run->flows_opened++;
        if (error) {
            fprintf(stderr, "spillload: flow %s: %s\n", options->flows[i].name, strerror(-error));
            return error;
        }
    }
    return 0;
}

static int run_load(const struct options *options)
{
    struct run *run = memory_zeroed(1, sizeof(*run));
    int status = 1;

    run->options = options;
    run->signals.io.fd = -1;
    run->setup_timer.fire = setup_poll;
    run->second_timer.fire = second_over;
    run->drain_timer.fire = drain_poll;
    run->flows = memory_zeroed(options->flows_count, sizeof(*run->flows));
    run->error = loop_init(&run->loop);
    if (!run->error)
        run->error = signals_init(&run->signals, &run->loop, interrupted);
    if (run->error)
        fprintf(stderr, "spillload: %s\n", strerror(-run->error));
    else
        run->error = open_flows(run);
    if (!run->error) {
        run->setup_until_ns = run->loop.now_ns + SETUP_LIMIT_NS;
        loop_timer_set(&run->loop, &run->setup_timer, run->loop.now_ns);
        int error = loop_run(&run->loop);

        if (error)
            fprintf(stderr, "spillload: %s\n", strerror(-error));
        if (error || run->error)
            status = 1;
        else
            status = run->began ? finish(run) : 1;
    }
    for (size_t i = 0; i < run->flows_opened; i++)
        flow_fini(&run->flows[i]);
    signals_fini(&run->signals);
    loop_fini(&run->loop);
    free(run->flows);
    free(run);
    return status;
}

/* ---------------------------------------------------------------- the command line */

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

static int read_flow(struct options *options, const char *value)
{
    char error[FLOW_ERROR_BYTES];

    if (options->flows_count == MAX_FLOWS)
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

static int read_option(struct options *options, int option, const char *value)
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

static int read_command_line(struct options *options, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            usage(stdout);
            exit(0);
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

int main(int argc, char **argv)
{
    struct options *options = memory_zeroed(1, sizeof(*options));
    struct rlimit limit;

    *options = (struct options){.duration_ns = 10 * NS_PER_S, .drain_ns = 5 * NS_PER_S, .seed = 1};
    int status = read_command_line(options, argc, argv);

    if (status == 0) {
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(RLIMIT_NOFILE, &limit);
        }
        status = run_load(options);
    }
    free(options);
    return status;
}
