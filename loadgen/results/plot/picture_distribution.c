/* SPDX-License-Identifier: Apache-2.0 */
/* Distribution functions and percentile curves, from histograms. */
#include <math.h>

#include "loadgen/results/plot/gnuplot.h"
#include "loadgen/results/plot/pictures.h"

/* So few of the fastest requests do not widen the axis. */
#define FASTEST 0.001

struct range {
    double least_ms; /* of all but one in a thousand */
    double median_ms;
    double most_ms;
    double most_values; /* of any curve */
    size_t curves;
    size_t longest; /* title */
};

/* Per bucket: its value, the share of values up to it, 1 / (1 - the share before it). */
static void write_data(FILE *script, const struct histogram *latency, struct range *range)
{
    uint64_t seen = 0;

    fprintf(script, "$curve%zu << EOD\n%.6g 0 1\n", range->curves++, (double)latency->min / 1e6);
    for (size_t i = histogram_bucket(latency->min); seen < latency->total; i++) {
        if (latency->counts[i] == 0)
            continue;
        double value =
            fmin(fmax((double)(histogram_bucket_start(i) + histogram_bucket_start(i + 1)) / 2,
                      (double)latency->min),
                 (double)latency->max);
        double before = (double)(latency->total - seen);

        seen += latency->counts[i];
        fprintf(script, "%.6g %.9g %.9g\n", value / 1e6, (double)seen / (double)latency->total,
                (double)latency->total / before);
    }
    /* The largest value holds from its own place on. */
    fprintf(script, "%.6g 1 %.9g\nEOD\n", (double)latency->max / 1e6, (double)latency->total);
    range->least_ms = fmin(range->least_ms, (double)histogram_quantile(latency, FASTEST) / 1e6);
    range->median_ms = fmin(range->median_ms, (double)histogram_quantile(latency, 0.5) / 1e6);
    range->most_ms = fmax(range->most_ms, (double)latency->max / 1e6);
    range->most_values = fmax(range->most_values, (double)latency->total);
}

static bool drawn(const struct picture *picture, const struct summary_flow *flow)
{
    return picture_wants(picture, flow->name) && flow->total->latency.total > 0;
}

static bool write_all_data(const struct picture *picture, const struct summary *runs,
                           struct range *range)
{
    *range = (struct range){.least_ms = INFINITY, .median_ms = INFINITY};
    for (size_t file = 0; file < picture->files; file++) {
        for (size_t i = 0; i < runs[file].flows_count; i++) {
            size_t length = picture_title_length(picture, file, runs[file].flows[i].name);

            if (!drawn(picture, &runs[file].flows[i]))
                continue;
            range->longest = length > range->longest ? length : range->longest;
            write_data(picture->script, &runs[file].flows[i].total->latency, range);
        }
    }
    if (picture->title) {
        fputs("set title ", picture->script);
        gnuplot_text(picture->script, picture->title);
        fputs(" font ',13'\n", picture->script);
    }
    fprintf(picture->script, "set lmargin at screen 0.075\nset rmargin at screen %.4f\n",
            picture_legend(picture, range->longest, picture->title ? 0.91 : 0.96));
    return range->curves > 0;
}

static void write_plot(const struct picture *picture, const struct summary *runs,
                       const char *columns)
{
    struct picture_palette palette = {.count = 0};
    const char *between = "plot ";
    size_t curve = 0;

    for (size_t file = 0; file < picture->files; file++) {
        for (size_t i = 0; i < runs[file].flows_count; i++) {
            const struct summary_flow *flow = &runs[file].flows[i];

            if (!drawn(picture, flow))
                continue;
            fprintf(picture->script, "%s$curve%zu using %s", between, curve++, columns);
            gnuplot_line(picture->script, picture_colour(&palette, flow->name), file, 2);
            picture_curve_title(picture, file, flow->name);
            between = ", ";
        }
    }
    fputc('\n', picture->script);
}

bool picture_cdf(const struct picture *picture, const struct summary *runs)
{
    struct range range;

    if (!write_all_data(picture, runs, &range))
        return false;
    picture_time_axis(picture->script, "x", range.least_ms, range.most_ms);
    fputs(
        "set xlabel 'response time (ms)'\n"
        "set ylabel 'requests answered within it' offset 0.5\n"
        "set yrange [0:1]\n"
        "set ytics ('0 %%' 0, '25 %%' 0.25, '50 %%' 0.5, '75 %%' 0.75, '90 %%' 0.9, '100 %%' 1)\n",
        picture->script);
    write_plot(picture, runs, "1:2");
    return true;
}

bool picture_percentiles(const struct picture *picture, const struct summary *runs)
{
    static const char *const marks[] = {"0 %%",       "90 %%",       "99 %%",
                                        "99.9 %%",    "99.99 %%",    "99.999 %%",
                                        "99.9999 %%", "99.99999 %%", "99.999999 %%"};
    struct range range;
    double place = 1;

    if (!write_all_data(picture, runs, &range))
        return false;
    fputs("set logscale x\nset xtics (", picture->script);
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++, place *= 10)
        fprintf(picture->script, "%s'%s' %.0f", i ? ", " : "", marks[i], place);
    fprintf(picture->script,
            ")\nset xtics add ('50 %%%%' 2)\nset xrange [1:%.9g]\n"
            "set xlabel 'share of requests, on the scale 1 / (1 - share)'\n"
            "set ylabel 'response time (ms)'\n",
            fmax(range.most_values, 10));
    /* The tail is what counts here: fast requests need not be seen. */
    picture_time_axis(picture->script, "y", range.median_ms / 2, range.most_ms);
    write_plot(picture, runs, "3:1");
    return true;
}
