/* SPDX-License-Identifier: Apache-2.0 */
/* Throughput and response time against the parameter of a sweep. */
#include <math.h>
#include <string.h>

#include "loadgen/results/plot/gnuplot.h"
#include "loadgen/results/plot/pictures.h"

enum column {
    COLUMN_THROUGHPUT = 2,
    COLUMN_RESPONSE,
};

struct range {
    double least_ms;
    double most_ms;
    size_t curves;
    size_t longest; /* title */
};

static double response_ms(const struct summary_flow *flow, enum picture_metric metric)
{
    static const double quantiles[PICTURE_METRICS] = {0, 0.5, 0.9, 0.99};
    const struct histogram *latency = &flow->total->latency;

    return metric == PICTURE_MEAN ? histogram_mean(latency) / 1e6
                                  : (double)histogram_quantile(latency, quantiles[metric]) / 1e6;
}

/* The flows of a sweep are those of its first step. */
static bool drawn(const struct picture *picture, const struct sweep *sweep, size_t flow)
{
    return picture_wants(picture, sweep->steps[0].summary.flows[flow].name);
}

static void write_data(const struct picture *picture, const struct sweep *sweep, const char *name,
                       struct range *range)
{
    fprintf(picture->script, "$curve%zu << EOD\n", range->curves++);
    for (size_t i = 0; i < sweep->count; i++) {
        const struct summary_flow *flow = summary_find(&sweep->steps[i].summary, name);

        if (!flow)
            continue;
        double value_ms = response_ms(flow, picture->metric);

        fprintf(picture->script, "%.9g %.6g ", sweep->steps[i].value, flow->throughput_per_s);
        if (flow->total->latency.total == 0) {
            fputs("NaN\n", picture->script);
            continue;
        }
        fprintf(picture->script, "%.6g\n", value_ms);
        range->least_ms = fmin(range->least_ms, value_ms);
        range->most_ms = fmax(range->most_ms, value_ms);
    }
    fputs("EOD\n", picture->script);
}

static void write_panel(const struct picture *picture, const struct sweep *sweeps,
                        enum column column)
{
    struct picture_palette palette = {.count = 0};
    const char *between = "plot ";
    size_t curve = 0;

    for (size_t file = 0; file < picture->files; file++) {
        for (size_t i = 0; sweeps[file].count && i < sweeps[file].steps[0].summary.flows_count;
             i++) {
            const char *name = sweeps[file].steps[0].summary.flows[i].name;

            if (!drawn(picture, &sweeps[file], i))
                continue;
            fprintf(picture->script, "%s$curve%zu using 1:%d", between, curve++, (int)column);
            gnuplot_line_points(picture->script, picture_colour(&palette, name), file);
            if (column == COLUMN_RESPONSE)
                picture_curve_title(picture, file, name);
            else
                fputs(" notitle", picture->script);
            between = ", ";
        }
    }
    fputc('\n', picture->script);
}

/* A vertical line at each file's knee. */
static void write_knees(const struct picture *picture, const struct sweep *sweeps)
{
    for (size_t file = 0; file < picture->files; file++) {
        const struct sweep_step *knee = sweep_knee(&sweeps[file]);

        if (!knee)
            continue;
        fprintf(picture->script,
                "set arrow from %.9g,graph 0 to %.9g,graph 1 nohead lc rgb '#888888' dt (6,4)\n"
                "set label ",
                knee->value, knee->value);
        char text[SWEEP_NAME_BYTES + 16];

        snprintf(text, sizeof(text), "knee %s", knee->text);
        gnuplot_text(picture->script, text);
        fprintf(picture->script,
                " at %.9g,graph %.2f rotate by 90 offset -0.7,0 font ',9' tc rgb '#555555'\n",
                knee->value, 0.03 + 0.3 * (double)file);
    }
}

/* Logarithmic where the steps are rather of one factor than of one width. */
static bool steps_by_factor(const struct sweep *sweep)
{
    if (sweep->count < 3 || sweep->steps[0].value <= 0)
        return false;
    double first = sweep->steps[1].value - sweep->steps[0].value;
    double last = sweep->steps[sweep->count - 1].value - sweep->steps[sweep->count - 2].value;

    return last > 3 * first;
}

static void write_x_axis(const struct picture *picture, const struct sweep *sweep)
{
    char text[SWEEP_NAME_BYTES + 64];

    snprintf(text, sizeof(text), "%s%s", sweep->parameter,
             strcmp(sweep->parameter, "rate") == 0 ? " of each flow (requests per second)" : "");
    fputs("set xlabel ", picture->script);
    gnuplot_text(picture->script, text);
    fprintf(picture->script, "\nset format x '%%g'\n%s",
            steps_by_factor(sweep) ? "set logscale x\n" : "");
}

bool picture_sweep(const struct picture *picture, const struct sweep *sweeps)
{
    struct range range = {.least_ms = INFINITY};
    FILE *script = picture->script;

    for (size_t file = 0; file < picture->files; file++) {
        for (size_t i = 0; sweeps[file].count && i < sweeps[file].steps[0].summary.flows_count;
             i++) {
            const char *name = sweeps[file].steps[0].summary.flows[i].name;
            size_t length = picture_title_length(picture, file, name);

            if (!drawn(picture, &sweeps[file], i))
                continue;
            range.longest = length > range.longest ? length : range.longest;
            write_data(picture, &sweeps[file], name, &range);
        }
    }
    if (range.curves == 0)
        return false;
    double top = picture->title ? 0.90 : 0.96;
    double right = picture_legend(picture, range.longest, top);
    double half = (right - 0.075) / 2;

    fputs("set multiplot", script);
    if (picture->title) {
        fputs(" title ", script);
        gnuplot_text(script, picture->title);
        fputs(" font ',13'", script);
    }
    fprintf(script, "\nset tmargin at screen %.2f\nset bmargin at screen 0.13\n", top);
    write_x_axis(picture, &sweeps[0]);
    write_knees(picture, sweeps);
    fprintf(script,
            "set lmargin at screen 0.075\nset rmargin at screen %.4f\n"
            "set ylabel 'good replies per second' offset 0.5\nset yrange [0:*]\n",
            0.075 + half - 0.035);
    write_panel(picture, sweeps, COLUMN_THROUGHPUT);
    fprintf(script, "set lmargin at screen %.4f\nset rmargin at screen %.4f\n",
            0.075 + half + 0.035, right);
    picture_time_axis(script, "y", range.least_ms, range.most_ms);
    fprintf(script, "set ylabel 'response time, %s (ms)' offset 0.5\n",
            picture_metric_names[picture->metric]);
    write_panel(picture, sweeps, COLUMN_RESPONSE);
    fputs("unset multiplot\n", script);
    return true;
}
