/* SPDX-License-Identifier: Apache-2.0 */
/* spillload trace: makes a trace of load from a seed, or shows what one holds. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/arrival/trace_shapes.h"
#include "loadgen/base/units.h"
#include "loadgen/commands/commands.h"
#include "loadgen/embedded/embedded.h"

#define CHART_COLUMNS  72
#define CHART_ROWS     12
#define LEAST_ENTRIES  10U
#define MOST_ENTRIES   1000000U
#define DEFAULT_PEAK   100.0
#define DURATION_BYTES 32

struct make_options {
    const struct trace_shape *shape;
    uint64_t seed;
    uint64_t length_ns;
    double peak_per_s;
    const char *path; /* NULL: stdout */
};

static void usage(FILE *out)
{
    fputs(
        "usage: spillload trace make NAME [--seed N] [--length TIME] [--peak RATE] [--output "
        "FILE]\n"
        "       spillload trace show FILE|NAME\n"
        "\n"
        "make writes a trace of rates in one of the shapes below, to stdout or a file; show tells\n"
        "how many requests a trace holds and draws it. A flow replays a trace with trace=FILE.\n"
        "\n"
        "  --seed N       of its random draws (default 1)\n"
        "  --length TIME  stretches the shape (default: as below)\n"
        "  --peak RATE    its highest rate (default 100/s)\n"
        "  --output FILE  instead of stdout\n"
        "\n"
        "Shapes:\n",
        out);
    for (size_t i = 0; trace_shape_at(i); i++) {
        const struct trace_shape *shape = trace_shape_at(i);

        fprintf(out, "  %-16s %s (%" PRIu64 " min, a rate every %" PRIu64 " s)\n", shape->name,
                shape->help, shape->length_ns / 60000000000, shape->interval_ns / 1000000000);
    }
}

static int complain(const char *what, const char *value, const char *expected)
{
    fprintf(stderr, "spillload trace: %s %s: expected %s\n", what, value, expected);
    return 2;
}

/* ---------------------------------------------------------------- make */

/* 0 or a positive errno. */
static int write_trace(FILE *out, const struct make_options *options)
{
    struct trace trace;

    trace_make(options->shape, options->seed, options->length_ns, options->peak_per_s, &trace);
    fprintf(out,
            "# SPDX-License-Identifier: Apache-2.0\n"
            "# %s: %s\n"
            "# spillload trace make %s --seed %" PRIu64 " --length %gs --peak %g/s\n"
            "# spillload-trace: rates %" PRIu64 "s\n",
            options->shape->name, options->shape->help, options->shape->name, options->seed,
            (double)options->length_ns / 1e9, options->peak_per_s,
            options->shape->interval_ns / 1000000000);
    for (size_t i = 0; i < trace.count; i++)
        fprintf(out, "%.8g\n", trace.rates_per_s[i]);
    trace_fini(&trace);
    errno = 0;
    return fflush(out) != 0 || ferror(out) ? (errno ? errno : EIO) : 0;
}

static int read_make_option(struct make_options *options, int option, const char *value)
{
    const struct trace_shape *shape = options->shape;

    switch (option) {
    case 's':
        if (units_parse_count(value, 0, INT64_MAX, &options->seed) != 0)
            return complain("--seed", value, "a number");
        return 0;
    case 'l':
        if (units_parse_duration_ns(value, &options->length_ns) != 0 ||
            options->length_ns < LEAST_ENTRIES * shape->interval_ns ||
            options->length_ns > MOST_ENTRIES * shape->interval_ns)
            return complain("--length", value, "a time of 10 to 1000000 of its intervals, as 10m");
        return 0;
    case 'p':
        if (units_parse_rate_per_s(value, &options->peak_per_s) != 0 ||
            options->peak_per_s > TRACE_MAX_RATE)
            return complain("--peak", value, "a rate above 0, as 250/s");
        return 0;
    case 'o':
        options->path = value;
        return 0;
    default:
        fputs("Try 'spillload trace --help'.\n", stderr);
        return 2;
    }
}

static int make(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"seed", required_argument, NULL, 's'},
        {"length", required_argument, NULL, 'l'},
        {"peak", required_argument, NULL, 'p'},
        {"output", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0},
    };
    struct make_options options = {.seed = 1, .peak_per_s = DEFAULT_PEAK};
    int option;

    if (argc < 2 || !(options.shape = trace_shape_find(argv[1])))
        return complain("make", argc < 2 ? "" : argv[1], "a shape's name, see --help");
    options.length_ns = options.shape->length_ns;
    optind = 2;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        int status = read_make_option(&options, option, optarg);

        if (status)
            return status;
    }
    if (optind < argc)
        return complain("make", argv[optind], "nothing after the options");
    FILE *out = options.path ? fopen(options.path, "we") : stdout;

    int error = out ? write_trace(out, &options) : errno;

    if (out && options.path && fclose(out) != 0 && !error)
        error = errno;
    if (error)
        fprintf(stderr, "spillload trace: %s: %s\n", options.path ? options.path : "stdout",
                strerror(error));
    return error ? 1 : 0;
}

/* ---------------------------------------------------------------- show */

static const char *duration_text(uint64_t ns, char buffer[DURATION_BYTES])
{
    double seconds = (double)ns / 1e9;

    if (seconds >= 7200)
        snprintf(buffer, DURATION_BYTES, "%.4gh", seconds / 3600);
    else if (seconds >= 120)
        snprintf(buffer, DURATION_BYTES, "%.4gm", seconds / 60);
    else if (seconds >= 1)
        snprintf(buffer, DURATION_BYTES, "%.4gs", seconds);
    else
        snprintf(buffer, DURATION_BYTES, "%.4gms", seconds * 1e3);
    return buffer;
}

/* The mean rate of each column of the chart. */
static void columns_of(const struct trace *trace, double columns[CHART_COLUMNS])
{
    double column_s = (double)trace->length_ns / 1e9 / CHART_COLUMNS;

    for (size_t i = 0; i < CHART_COLUMNS; i++)
        columns[i] = 0;
    for (size_t i = 0; trace->times && i < trace->count; i++)
        columns[(size_t)((double)trace->times_ns[i] / (double)trace->length_ns * CHART_COLUMNS)] +=
            1 / column_s;
    for (size_t i = 0; !trace->times && i < CHART_COLUMNS; i++) {
        double from = (double)i / CHART_COLUMNS * (double)trace->count;
        double to = (double)(i + 1) / CHART_COLUMNS * (double)trace->count;

        /* Entries that lie in the column in part count in part. */
        for (size_t k = (size_t)from; k < trace->count && (double)k < to; k++) {
            double begin = (double)k > from ? (double)k : from;
            double end = (double)(k + 1) < to ? (double)(k + 1) : to;

            columns[i] += trace->rates_per_s[k] * (end - begin) / (to - from);
        }
    }
}

static void draw_chart(const struct trace *trace)
{
    double columns[CHART_COLUMNS];
    double highest = 0;
    char text[DURATION_BYTES];

    columns_of(trace, columns);
    for (size_t i = 0; i < CHART_COLUMNS; i++)
        highest = columns[i] > highest ? columns[i] : highest;
    for (int row = CHART_ROWS; row > 0; row--) {
        bool named = row == CHART_ROWS || row == CHART_ROWS / 2;

        if (named)
            printf("%10.4g |", highest * row / CHART_ROWS);
        else
            printf("%10s |", "");
        /* A full row is #, the upper half of one is left as a dot. */
        for (size_t i = 0; i < CHART_COLUMNS; i++) {
            double height = columns[i] / highest * CHART_ROWS - (row - 1);

            putchar(height >= 0.75 ? '#' : height >= 0.25 ? '.' : ' ');
        }
        putchar('\n');
    }
    printf("%10s +", "0");
    for (size_t i = 0; i < CHART_COLUMNS; i++)
        putchar('-');
    printf("\n%10s  0%*s\n", "", CHART_COLUMNS - 1, duration_text(trace->length_ns, text));
}

static double peak_of(const struct trace *trace)
{
    double peak = 0;

    for (size_t i = 0; i < trace->count; i++)
        peak = trace->rates_per_s[i] > peak ? trace->rates_per_s[i] : peak;
    return peak;
}

static int show(int argc, char **argv)
{
    char error[TRACE_ERROR_BYTES];
    char text[DURATION_BYTES];
    struct embedded_file file;
    struct trace trace;

    if (argc != 2)
        return complain("show", argc > 2 ? argv[2] : "", "one file");
    if (embedded_trace(argv[1], &file) ? trace_parse(file.text, file.length, &trace, error)
                                       : trace_read(argv[1], &trace, error)) {
        fprintf(stderr, "spillload trace: %s\n", error);
        return 1;
    }
    printf("%s: %zu %s over %s, %.0f requests\n", argv[1], trace.count,
           trace.times ? "times" : "rates", duration_text(trace.length_ns, text), trace.total);
    if (!trace.times)
        printf("a rate every %s, mean %.4g/s, peak %.4g/s\n",
               duration_text(trace.interval_ns, text), trace.total * 1e9 / (double)trace.length_ns,
               peak_of(&trace));
    else
        printf("first at %" PRIu64 " ns, last at %" PRIu64 " ns, mean %.4g/s\n", trace.times_ns[0],
               trace.times_ns[trace.count - 1], trace.total * 1e9 / (double)trace.length_ns);
    draw_chart(&trace);
    trace_fini(&trace);
    return 0;
}

int command_trace(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        usage(stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "make") == 0)
        return make(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "show") == 0)
        return show(argc - 1, argv + 1);
    usage(stderr);
    return 2;
}
