/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillload sweep: a run per value of a parameter, each a fresh process, and where the knee is.
 *
 *   values -> child: spillload run ARGUMENTS --set NAME=VALUE --json PART -> a step -> next value
 *                                                                              | limit passed
 *                                                                              v
 *                                                                 knee, JSON of all steps
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"
#include "loadgen/commands/commands.h"
#include "loadgen/results/output.h"
#include "loadgen/results/statistics/steps.h"
#include "loadgen/results/summary/sweep_file.h"
#include "loadgen/results/table.h"

#define MAX_ARGUMENTS  1024
#define ARGUMENT_BYTES 8192
#define PLACE          "{}"
#define STATUS_EXEC    126

enum limit_metric {
    LIMIT_NONE,
    LIMIT_MEAN,
    LIMIT_P50,
    LIMIT_P90,
    LIMIT_P99,
    LIMIT_P999,
    LIMIT_ERRORS,
    LIMIT_REFUSED,
    LIMIT_METRICS,
};

static const struct {
    const char *name;
    double quantile;
} limit_metrics[LIMIT_METRICS] = {
    [LIMIT_MEAN] = {"mean", 0},       [LIMIT_P50] = {"p50", 0.5},
    [LIMIT_P90] = {"p90", 0.9},       [LIMIT_P99] = {"p99", 0.99},
    [LIMIT_P999] = {"p99.9", 0.999},  [LIMIT_ERRORS] = {"errors", 0},
    [LIMIT_REFUSED] = {"refused", 0},
};

/* A time in ns, or a share of all outcomes. */
struct limit {
    enum limit_metric metric;
    const char *text;
    double most;
};

struct request {
    struct steps steps;
    bool has_steps;
    const char *json_path;
    struct limit limit;
    bool until; /* ends the sweep; else it is only told which values keep it */
    int arguments_count;
    char **arguments; /* of run */
    bool has_place;   /* {} is in one of them */
};

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t child;

static void usage(FILE *out)
{
    fputs("usage: spillload sweep --vary NAME=VALUES [options] -- ARGUMENTS OF run\n"
          "\n"
          "Runs the load once per value of a parameter, each time as a fresh process, and shows\n"
          "where the throughput's knee is (Kneedle, S = 1).\n"
          "\n"
          "  --vary rate=100/s..2000/s:10     ten values in equal steps\n"
          "  --vary concurrency=1..256:x9     nine values in equal factors\n"
          "  --vary streams=1,2,5,10          these values\n"
          "\n"
          "Where ARGUMENTS hold {}, the value takes its place; else NAME is a key of a flow, and\n"
          "every flow to which it means something gets it (--set NAME=VALUE).\n"
          "\n"
          "  --until M=LIMIT   ends after the first value that passes the limit in any flow\n"
          "  --under M=LIMIT   does not end there, but tells the last value within the limit\n"
          "                    M: mean, p50, p90, p99, p99.9 with a time, as p99=50ms; errors,\n"
          "                    refused with a share of all requests, as errors=1%\n"
          "  --json FILE       all of it, for plot sweep\n"
          "  --help            this text\n"
          "\n"
          "Exit status: 0; 1 when a run failed (what was measured before is kept) or a file can't\n"
          "be written; 2 for a wrong command line.\n",
          out);
}

/* ---------------------------------------------------------------- the command line */

static bool read_limit(struct request *request, const char *text, bool until)
{
    const char *equals = strchr(text, '=');
    struct limit *limit = &request->limit;
    uint64_t most_ns;
    char *end;

    *limit = (struct limit){.text = text};
    request->until = until;
    for (int i = LIMIT_NONE + 1; equals && i < LIMIT_METRICS; i++) {
        size_t length = strlen(limit_metrics[i].name);

        if (length == (size_t)(equals - text) && strncmp(limit_metrics[i].name, text, length) == 0)
            limit->metric = (enum limit_metric)i;
    }
    if (limit->metric == LIMIT_ERRORS || limit->metric == LIMIT_REFUSED) {
        limit->most = strtod(equals + 1, &end) / 100;
        if (end != equals + 1 && strcmp(end, "%") == 0 && limit->most >= 0)
            return true;
    } else if (limit->metric && units_parse_duration_ns(equals + 1, &most_ns) == 0) {
        limit->most = (double)most_ns;
        return true;
    }
    fprintf(stderr, "spillload sweep: --%s %s: expected METRIC=TIME as p99=50ms, or errors=1%%\n",
            until ? "until" : "under", text);
    return false;
}

static int read_option(struct request *request, int option, const char *value)
{
    switch (option) {
    case 'v':
        if (request->has_steps || steps_parse(value, &request->steps) != 0) {
            fprintf(stderr,
                    "spillload sweep: --vary %s: expected once NAME=A..B:N, A..B:xN or A,B,C, "
                    "rising and with one unit\n",
                    value);
            return 2;
        }
        request->has_steps = true;
        return 0;
    case 'u':
    case 'U':
        return read_limit(request, value, option == 'u') ? 0 : 2;
    case 'j':
        request->json_path = value;
        return 0;
    default:
        return 2;
    }
}

/* -1: go on. */
static int read_options(struct request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"vary", required_argument, NULL, 'v'},  {"until", required_argument, NULL, 'u'},
        {"under", required_argument, NULL, 'U'}, {"json", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (read_option(request, option, optarg) != 0)
            return 2;
    }
    request->arguments = argv + optind;
    request->arguments_count = argc - optind;
    if (!request->has_steps || request->arguments_count == 0 ||
        request->arguments_count > MAX_ARGUMENTS - 16) {
        fputs("spillload sweep: expected --vary NAME=VALUES, then -- and the arguments of run "
              "(see --help)\n",
              stderr);
        return 2;
    }
    for (int i = 0; i < request->arguments_count; i++)
        request->has_place = request->has_place || strstr(request->arguments[i], PLACE);
    return -1;
}

/* ---------------------------------------------------------------- one run */

/* The argument with the value in each {}. */
static char *fill_in(const char *argument, const char *value)
{
    char text[ARGUMENT_BYTES];
    size_t used = 0;

    while (*argument && used < sizeof(text) - 1) {
        if (strncmp(argument, PLACE, strlen(PLACE)) == 0) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", value);
            argument += strlen(PLACE);
            if (used >= sizeof(text))
                used = sizeof(text) - 1;
        } else {
            text[used++] = *argument++;
        }
    }
    text[used] = '\0';
    return memory_string(text);
}

/* The child's argument list; its strings and itself are to be freed. */
static char **run_arguments(const struct request *request, const char *value, const char *part)
{
    char **list = memory_zeroed(MAX_ARGUMENTS, sizeof(*list));
    char set[SWEEP_NAME_BYTES + STEPS_NAME_BYTES + 2];
    size_t count = 0;

    list[count++] = memory_string("spillload");
    if (strcmp(request->arguments[0], "run") != 0)
        list[count++] = memory_string("run");
    for (int i = 0; i < request->arguments_count; i++)
        list[count++] = fill_in(request->arguments[i], value);
    if (!request->has_place) {
        snprintf(set, sizeof(set), "%s=%s", request->steps.name, value);
        list[count++] = memory_string("--set");
        list[count++] = memory_string(set);
    }
    list[count++] = memory_string("--live=off");
    list[count++] = memory_string("--json");
    list[count] = memory_string(part);
    return list;
}

static void free_arguments(char **list)
{
    for (size_t i = 0; list[i]; i++)
        free(list[i]);
    free(list);
}

/* In the child: its table is not shown, its messages are; it does not outlive us. */
static _Noreturn void become_run(char **arguments, pid_t parent)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(STATUS_EXEC);
    if (nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO);
    execv("/proc/self/exe", arguments);
    _exit(STATUS_EXEC);
}

static void pass_on(int number)
{
    interrupted = 1;
    if (child > 0)
        kill((pid_t)child, number);
}

/* The exit status of a run for this value; its summary is at `part`. */
static int run_once(const struct request *request, const char *value, const char *part)
{
    char **arguments = run_arguments(request, value, part);
    pid_t parent = getpid();
    int status = 0;

    fflush(NULL);
    pid_t pid = fork();

    if (pid == 0)
        become_run(arguments, parent);
    child = pid;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    free_arguments(arguments);
    if (pid < 0 || !WIFEXITED(status))
        return STATUS_EXEC;
    return WEXITSTATUS(status);
}

/* ---------------------------------------------------------------- what came of it */

static double limited(const struct limit *limit, const struct meter *meter)
{
    double quantile = limit_metrics[limit->metric].quantile;
    uint64_t all = 0;

    for (int i = 0; i < OUTCOME_COUNT; i++)
        all += meter->outcomes[i];
    if (quantile > 0)
        return (double)histogram_quantile(&meter->latency, quantile);
    if (limit->metric == LIMIT_MEAN)
        return histogram_mean(&meter->latency);
    uint64_t bad =
        limit->metric == LIMIT_ERRORS ? meter_errors(meter) : meter->outcomes[OUTCOME_REFUSED];

    return all ? (double)bad / (double)all : 0;
}

/* True when every flow keeps the limit; one without a good reply keeps none. */
static bool keeps_limit(const struct limit *limit, const struct summary *summary)
{
    for (size_t i = 0; i < summary->flows_count; i++) {
        const struct meter *meter = summary->flows[i].total;

        if (meter->latency.total == 0 || limited(limit, meter) > limit->most)
            return false;
    }
    return true;
}

static void print_head(const struct steps *steps)
{
    printf("%-12.12s %-16s %10s %10s %9s %9s %9s %9s %8s %8s\n", steps->name, "flow", "offered/s",
           "done/s", "mean", "p50", "p99", "p99.9", "refused", "errors");
}

static void print_step(const struct sweep_step *step)
{
    static const double quantiles[] = {0.5, 0.99, 0.999};

    for (size_t i = 0; i < step->summary.flows_count; i++) {
        const struct summary_flow *flow = &step->summary.flows[i];
        const struct histogram *latency = &flow->total->latency;
        char text[TABLE_TIME_BYTES];

        printf("%-12s %-16s %10.1f %10.1f %9s", i ? "" : step->text, flow->name,
               flow->offered_per_s, flow->throughput_per_s,
               table_time(histogram_mean(latency) / 1e6, latency->total, text));
        for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++)
            printf(" %9s", table_time((double)histogram_quantile(latency, quantiles[q]) / 1e6,
                                      latency->total, text));
        printf(" %8llu %8llu\n", (unsigned long long)flow->total->outcomes[OUTCOME_REFUSED],
               (unsigned long long)meter_errors(flow->total));
    }
    fflush(stdout);
}

static void print_findings(const struct request *request, const struct sweep *sweep)
{
    const struct sweep_step *knee = sweep_knee(sweep);
    const struct sweep_step *kept = NULL;

    if (knee)
        printf("knee: %s %s, %.1f good replies per second\n", sweep->parameter, knee->text,
               sweep_throughput(knee));
    else
        printf("knee: none between these values\n");
    if (!request->limit.metric)
        return;
    for (size_t i = 0; i < sweep->count; i++) {
        if (!keeps_limit(&request->limit, &sweep->steps[i].summary))
            break;
        kept = &sweep->steps[i];
    }
    if (kept)
        printf("%s: kept by every flow up to %s %s\n", request->limit.text, sweep->parameter,
               kept->text);
    else
        printf("%s: not kept even at the first value\n", request->limit.text);
}

/* ---------------------------------------------------------------- the sweep */

/* One value: 0 go on, 1 the run failed, -1 the sweep ends here. */
static int take_step(const struct request *request, size_t place, const char *part,
                     struct sweep *sweep)
{
    struct summary summary;
    char error[SUMMARY_ERROR_BYTES];
    char value[SWEEP_NAME_BYTES];

    steps_format(&request->steps, place, value, sizeof(value));
    if (isatty(STDOUT_FILENO)) {
        printf("%s, %zu of %zu ...\r", value, place + 1, request->steps.count);
        fflush(stdout);
    }
    int status = run_once(request, value, part);

    if (isatty(STDOUT_FILENO))
        fputs("\033[K", stdout);
    if (interrupted)
        return -1;
    if (status > 1 || summary_read(part, &summary, error) != 0) {
        fprintf(stderr, "spillload sweep: the run with %s=%s ended with status %d\n",
                request->steps.name, value, status);
        return 1;
    }
    sweep_add(sweep, value, request->steps.values[place], &summary);
    print_step(&sweep->steps[sweep->count - 1]);
    if (status != 0)
        return 1;
    return request->until && !keeps_limit(&request->limit, &summary) ? -1 : 0;
}

/* The arguments of run in one text. */
static char *joined(const struct request *request)
{
    size_t size = 1;
    size_t used = 0;

    for (int i = 0; i < request->arguments_count; i++)
        size += strlen(request->arguments[i]) + 1;
    char *text = memory_zeroed(1, size);

    for (int i = 0; i < request->arguments_count; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", request->arguments[i]);
    return text;
}

static int run_sweep(const struct request *request, const char *part, struct output *json)
{
    struct sweep sweep;
    int result = 0;

    sweep_init(&sweep, request->steps.name);
    print_head(&request->steps);
    for (size_t i = 0; i < request->steps.count && result == 0 && !interrupted; i++)
        result = take_step(request, i, part, &sweep);
    if (sweep.count > 0)
        print_findings(request, &sweep);
    if (interrupted)
        fputs("spillload sweep: interrupted, the run that went on is left out\n", stderr);
    if (json->file && sweep.count > 0) {
        sweep.command = joined(request);
        sweep_write(json->file, &sweep);
        if (!output_finish(json))
            result = 1;
    }
    if (fflush(stdout) != 0) {
        fputs("spillload sweep: standard output could not be written\n", stderr);
        result = 1;
    }
    sweep_fini(&sweep);
    return result == 1 ? 1 : 0;
}

int command_sweep(int argc, char **argv)
{
    struct request *request = memory_zeroed(1, sizeof(*request));
    struct sigaction action = {.sa_handler = pass_on};
    const char *folder = getenv("TMPDIR");
    struct output json;
    char part[512];
    int status = read_options(request, argc, argv);

    if (status >= 0) {
        free(request);
        return status;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    snprintf(part, sizeof(part), "%s/spillload-sweep-XXXXXX", folder ? folder : "/tmp");
    int file = mkstemp(part);

    status = 1;
    if (file < 0) {
        fprintf(stderr, "spillload sweep: %s: %s\n", part, strerror(errno));
    } else if (output_open(&json, request->json_path, true) == 0) {
        status = run_sweep(request, part, &json);
        output_drop(&json);
    }
    if (file >= 0) {
        close(file);
        unlink(part);
    }
    free(request);
    return status;
}
