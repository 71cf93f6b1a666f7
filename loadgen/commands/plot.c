/* SPDX-License-Identifier: Apache-2.0 */
/* spillload plot: pictures of summaries and sweeps. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"
#include "loadgen/commands/commands.h"
#include "loadgen/results/plot/gnuplot.h"
#include "loadgen/results/plot/pictures.h"
#include "loadgen/results/summary/summary_json.h"

#define MAX_WANTED 64

enum kind {
    KIND_TIME,
    KIND_CDF,
    KIND_PERCENTILES,
    KIND_SWEEP,
    KINDS,
};

static const char *const kind_names[KINDS] = {"time", "cdf", "percentiles", "sweep"};

struct request {
    enum kind kind;
    const char *output;
    const char *title;
    enum picture_metric metric;
    unsigned width;
    unsigned height;
    const char *wanted[MAX_WANTED];
    size_t wanted_count;
};

/* What was read of the files; of the two arrays the one that the kind needs. */
struct sources {
    size_t count;
    struct summary *runs;
    struct sweep *sweeps;
    const char **names;
};

static void usage(FILE *out)
{
    fputs("usage: spillload plot KIND FILE.json [FILE.json ...] -o X.png|X.svg|X.gp [options]\n"
          "\n"
          "Draws summaries (spillload run --json) and sweeps (spillload sweep --json) through\n"
          "gnuplot. Several files are drawn over each other: a flow keeps its colour, a file has\n"
          "its line style. X.gp keeps gnuplot's commands instead.\n"
          "\n"
          "  time           throughput, response time, refusals and errors against time\n"
          "  cdf            the share of requests answered within a time\n"
          "  percentiles    response time over 1 / (1 - percentile)\n"
          "  sweep          throughput and response time against the parameter, with the knee\n"
          "\n"
          "  -o FILE        the picture\n"
          "  --title TEXT   above it (default: the runs' label)\n"
          "  --metric M     response time of time and sweep: mean, p50, p90 or p99 (default)\n"
          "  --flow NAME    only this flow; may be given again\n"
          "  --size WxH     pixels (default 1200x600)\n"
          "  --help         this text\n"
          "\n"
          "Exit status: 0; 1 when the picture could not be made; 2 for a wrong command line.\n",
          out);
}

/* ---------------------------------------------------------------- the command line */

static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

static bool read_size(struct request *request, const char *text)
{
    unsigned width;
    unsigned height;
    char rest;

    if (sscanf(text, "%5ux%5u%c", &width, &height, &rest) != 2 || width < 200 || height < 150 ||
        width > 10000 || height > 10000)
        return false;
    request->width = width;
    request->height = height;
    return true;
}

static int bad_option(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "spillload plot: %s %s: expected %s\n", option, value, expected);
    return 2;
}

static int read_option(struct request *request, int option, const char *value)
{
    int found;

    switch (option) {
    case 'o':
        request->output = value;
        return 0;
    case 't':
        request->title = value;
        return 0;
    case 'm':
        found = find_name(picture_metric_names, PICTURE_METRICS, value);
        if (found < 0)
            return bad_option("--metric", value, "mean, p50, p90 or p99");
        request->metric = (enum picture_metric)found;
        return 0;
    case 'f':
        if (request->wanted_count == MAX_WANTED)
            return bad_option("--flow", value, "at most 64 of them");
        request->wanted[request->wanted_count++] = value;
        return 0;
    case 's':
        return read_size(request, value)
                   ? 0
                   : bad_option("--size", value, "WIDTHxHEIGHT in pixels, as 1200x600");
    default:
        return 2;
    }
}

/* -1: go on. */
static int read_options(struct request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"title", required_argument, NULL, 't'},
        {"metric", required_argument, NULL, 'm'},
        {"flow", required_argument, NULL, 'f'},
        {"size", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (read_option(request, option, optarg) != 0)
            return 2;
    }
    int kind = optind < argc ? find_name(kind_names, KINDS, argv[optind]) : -1;

    if (kind < 0) {
        fprintf(stderr,
                "spillload plot: %s: expected a kind: time, cdf, percentiles or sweep (see "
                "--help)\n",
                optind < argc ? argv[optind] : "nothing given");
        return 2;
    }
    request->kind = (enum kind)kind;
    if (argc - optind < 2 || !request->output) {
        fputs("spillload plot: expected files, and -o with the picture's name (see --help)\n",
              stderr);
        return 2;
    }
    optind++;
    return -1;
}

/* ---------------------------------------------------------------- the files */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int read_file(struct sources *sources, size_t place, enum kind kind, const char *path)
{
    char error[SUMMARY_ERROR_BYTES];
    json_t *json = summary_load(path, error);
    int result = -1;

    sources->names[place] = last_part(path);
    if (json && kind == KIND_SWEEP)
        result = sweep_from_json(json, path, &sources->sweeps[place], error);
    else if (json)
        result = summary_from_json(json, path, &sources->runs[place], error);
    if (result == 0 && kind != KIND_SWEEP && sources->runs[place].label)
        sources->names[place] = sources->runs[place].label;
    if (result != 0)
        fprintf(stderr, "spillload plot: %s\n", error);
    json_decref(json);
    return result;
}

static int draw(const struct request *request, const struct sources *sources)
{
    struct picture picture = {.title = request->title,
                              .metric = request->metric,
                              .names = sources->names,
                              .files = sources->count,
                              .wanted = request->wanted,
                              .wanted_count = request->wanted_count,
                              .width = request->width};
    struct gnuplot gnuplot;
    bool drawn = false;

    if (!picture.title && sources->count == 1 && request->kind != KIND_SWEEP)
        picture.title = sources->runs[0].label;
    if (gnuplot_begin(&gnuplot, request->output, request->width, request->height) != 0)
        return 1;
    picture.script = gnuplot.script;
    switch (request->kind) {
    case KIND_TIME:
        drawn = picture_time(&picture, sources->runs);
        break;
    case KIND_CDF:
        drawn = picture_cdf(&picture, sources->runs);
        break;
    case KIND_PERCENTILES:
        drawn = picture_percentiles(&picture, sources->runs);
        break;
    default:
        drawn = picture_sweep(&picture, sources->sweeps);
    }
    if (!drawn)
        fprintf(stderr, "spillload plot: there is nothing to draw: no %s in the files\n",
                request->wanted_count ? "flow of that name with replies" : "replies");
    return gnuplot_finish(&gnuplot) && drawn ? 0 : 1;
}

int command_plot(int argc, char **argv)
{
    struct request request = {.metric = PICTURE_P99, .width = 1200, .height = 600};
    int status = read_options(&request, argc, argv);

    if (status >= 0)
        return status;
    struct sources sources = {.count = (size_t)(argc - optind)};

    sources.runs = memory_zeroed(sources.count, sizeof(*sources.runs));
    sources.sweeps = memory_zeroed(sources.count, sizeof(*sources.sweeps));
    sources.names = memory_zeroed(sources.count, sizeof(*sources.names));
    status = 0;
    for (size_t i = 0; i < sources.count && status == 0; i++)
        status = read_file(&sources, i, request.kind, argv[optind + (int)i]) == 0 ? 0 : 1;
    if (status == 0)
        status = draw(&request, &sources);
    for (size_t i = 0; i < sources.count; i++) {
        summary_fini(&sources.runs[i]);
        sweep_fini(&sources.sweeps[i]);
    }
    free(sources.runs);
    free(sources.sweeps);
    free(sources.names);
    return status;
}
