/* SPDX-License-Identifier: Apache-2.0 */
/* Throughput, response time, refusals and errors against time. */
#include <math.h>

#include "loadgen/results/plot/gnuplot.h"
#include "loadgen/results/plot/pictures.h"

enum column {
    COLUMN_THROUGHPUT = 2,
    COLUMN_RESPONSE,
    COLUMN_BAD,
};

/* The rate of a rest of a second that is shorter than this is mostly chance. */
#define LEAST_SECOND_S 0.1

struct range {
    double least_ms;
    double most_ms;
    double longest_s;
    double warmup_s;
    bool bad; /* something was refused or failed */
    size_t curves;
    size_t longest; /* title */
};

static double response_ms(const struct summary_second *second, enum picture_metric metric)
{
    switch (metric) {
    case PICTURE_MEAN:
        return second->mean_ms;
    case PICTURE_P50:
        return second->p50_ms;
    case PICTURE_P90:
        return second->p90_ms;
    default:
        return second->p99_ms;
    }
}

/* A block of data per curve: time, good replies/s, response time, refused and failed/s. */
static void write_data(const struct picture *picture, size_t file, const struct summary_flow *flow,
                       struct range *range)
{
    size_t length = picture_title_length(picture, file, flow->name);

    range->longest = length > range->longest ? length : range->longest;
    fprintf(picture->script, "$curve%zu << EOD\n", range->curves++);
    for (size_t i = 0; i < flow->seconds_count; i++) {
        const struct summary_second *second = &flow->seconds[i];
        double bad = (double)(second->refused + second->errors) / second->length_s;
        double value_ms = response_ms(second, picture->metric);

        if (second->length_s < LEAST_SECOND_S && flow->seconds_count > 1)
            continue;
        fprintf(picture->script, "%.6g %.6g ", second->time_s - second->length_s / 2,
                (double)second->done / second->length_s);
        /* Without a reply there is no response time: the line has a gap. */
        if (second->done)
            fprintf(picture->script, "%.6g %.6g\n", value_ms, bad);
        else
            fprintf(picture->script, "NaN %.6g\n", bad);
        range->bad = range->bad || bad > 0;
        range->longest_s = fmax(range->longest_s, second->time_s);
        if (second->done) {
            range->least_ms = fmin(range->least_ms, value_ms);
            range->most_ms = fmax(range->most_ms, value_ms);
        }
    }
    fputs("EOD\n", picture->script);
}

static void write_panel(const struct picture *picture, const struct summary *runs,
                        enum column column)
{
    struct picture_palette palette = {.count = 0};
    const char *between = "plot ";
    size_t curve = 0;

    for (size_t file = 0; file < picture->files; file++) {
        for (size_t i = 0; i < runs[file].flows_count; i++) {
            const struct summary_flow *flow = &runs[file].flows[i];

            if (!picture_wants(picture, flow->name) || flow->seconds_count == 0)
                continue;
            fprintf(picture->script, "%s$curve%zu using 1:%d", between, curve++, (int)column);
            gnuplot_line(picture->script, picture_colour(&palette, flow->name), file, 2);
            if (column == COLUMN_THROUGHPUT)
                picture_curve_title(picture, file, flow->name);
            else
                fputs(" notitle", picture->script);
            between = ", ";
        }
    }
    fputc('\n', picture->script);
}

static double top_of(const struct picture *picture)
{
    return picture->title ? 0.92 : 0.97;
}

/* Panels of one width, one above the other, only the lowest with the time written out. */
static void place_panel(const struct picture *picture, size_t number, size_t count)
{
    double top = top_of(picture);
    double bottom = 0.11;
    double height = (top - bottom) / (double)count;
    double gap = 0.035;

    fprintf(picture->script, "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
            top - height * (double)number,
            top - height * (double)(number + 1) + (number + 1 < count ? gap : 0));
    if (number + 1 < count)
        fputs("set format x ''\nunset xlabel\n", picture->script);
    else
        fputs("set format x '%g'\nset xlabel 'time (s)'\n", picture->script);
}

/* What went on beside the load: a reddish span in every panel, its name in the first. */
static void mark_spans(const struct picture *picture, const struct summary *runs)
{
    unsigned number = 2;

    for (size_t file = 0; file < picture->files; file++) {
        for (size_t i = 0; i < runs[file].marks_count; i++, number++) {
            const struct summary_mark *mark = &runs[file].marks[i];

            fprintf(picture->script,
                    "set object %u rectangle from %.6g,graph 0 to %.6g,graph 1 fc rgb '#f7dcd4' "
                    "fs noborder behind\nset label ",
                    number, mark->from_s, mark->to_s);
            gnuplot_text(picture->script, mark->text);
            fprintf(picture->script,
                    " at %.6g,graph %.2f left offset 0.3,0 font ',9' tc rgb '#7a3b2a' front\n",
                    mark->from_s, 0.95 - 0.08 * (double)(i % 4));
        }
    }
}

bool picture_time(const struct picture *picture, const struct summary *runs)
{
    struct range range = {.least_ms = INFINITY};
    FILE *script = picture->script;

    for (size_t file = 0; file < picture->files; file++) {
        range.warmup_s = fmax(range.warmup_s, runs[file].warmup_s);
        for (size_t i = 0; i < runs[file].flows_count; i++) {
            if (picture_wants(picture, runs[file].flows[i].name) &&
                runs[file].flows[i].seconds_count > 0)
                write_data(picture, file, &runs[file].flows[i], &range);
        }
    }
    if (range.curves == 0)
        return false;
    size_t panels = range.bad ? 3 : 2;
    double right = picture_legend(picture, range.longest, top_of(picture));

    fputs("set multiplot", script);
    if (picture->title) {
        fputs(" title ", script);
        gnuplot_text(script, picture->title);
        fputs(" font ',13'", script);
    }
    fprintf(script,
            "\nset lmargin at screen 0.085\nset rmargin at screen %.4f\nset xrange [0:%.6g]\n",
            right, range.longest_s);
    if (range.warmup_s > 0)
        fprintf(script,
                "set object 1 rectangle from 0,graph 0 to %.6g,graph 1 fc rgb '#f0f0f0' fs "
                "noborder behind\n",
                range.warmup_s);
    mark_spans(picture, runs);
    place_panel(picture, 0, panels);
    fputs("set ylabel 'good replies per second' offset 0.5\nset yrange [0:*]\n", script);
    write_panel(picture, runs, COLUMN_THROUGHPUT);
    fputs("unset label\n", script);
    place_panel(picture, 1, panels);
    picture_time_axis(script, "y", range.least_ms, range.most_ms);
    fprintf(script, "set ylabel 'response time, %s (ms)' offset 0.5\n",
            picture_metric_names[picture->metric]);
    write_panel(picture, runs, COLUMN_RESPONSE);
    if (range.bad) {
        place_panel(picture, 2, panels);
        fputs("unset logscale y\nset yrange [0:*]\n"
              "set ylabel 'refused or failed/s' offset 0.5\n",
              script);
        write_panel(picture, runs, COLUMN_BAD);
    }
    fputs("unset multiplot\n", script);
    return true;
}
