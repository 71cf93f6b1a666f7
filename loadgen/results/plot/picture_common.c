/* SPDX-License-Identifier: Apache-2.0 */
/* What the pictures have in common. */
#include <string.h>

#include "loadgen/results/plot/gnuplot.h"
#include "loadgen/results/plot/pictures.h"

#define LOG_FROM 30

/* Of the legend: what a letter takes, the line beside the text and the gaps, and the most of all.
 */
#define LETTER_PX    7.4
#define SAMPLE_PX    86.0
#define LEGEND_SHARE 0.45

const char *const picture_metric_names[PICTURE_METRICS] = {"mean", "p50", "p90", "p99"};

bool picture_wants(const struct picture *picture, const char *flow)
{
    for (size_t i = 0; i < picture->wanted_count; i++) {
        if (strcmp(picture->wanted[i], flow) == 0)
            return true;
    }
    return picture->wanted_count == 0;
}

size_t picture_colour(struct picture_palette *palette, const char *flow)
{
    for (size_t i = 0; i < palette->count; i++) {
        if (strcmp(palette->names[i], flow) == 0)
            return i;
    }
    if (palette->count == SUMMARY_MAX_FLOWS)
        return 0;
    palette->names[palette->count] = flow;
    return palette->count++;
}

void picture_curve_title(const struct picture *picture, size_t file, const char *flow)
{
    char text[512];

    if (picture->files > 1)
        snprintf(text, sizeof(text), "%s, %s", flow, picture->names[file]);
    else
        snprintf(text, sizeof(text), "%s", flow);
    fputs(" title ", picture->script);
    gnuplot_text(picture->script, text);
}

size_t picture_title_length(const struct picture *picture, size_t file, const char *flow)
{
    return strlen(flow) + (picture->files > 1 ? strlen(picture->names[file]) + 2 : 0);
}

double picture_legend(const struct picture *picture, size_t longest, double top)
{
    double share = ((double)longest * LETTER_PX + SAMPLE_PX) / (double)picture->width;
    double right = 1 - (share < LEGEND_SHARE ? share : LEGEND_SHARE);

    fprintf(picture->script, "set key at screen %.4f, screen %.4f left top\n", right + 0.012, top);
    return right;
}

void picture_time_axis(FILE *script, const char *axis, double least_ms, double most_ms)
{
    if (least_ms > 0 && most_ms > LOG_FROM * least_ms)
        fprintf(script, "set logscale %s\nset %srange [%.4g:%.4g]\n", axis, axis, 0.8 * least_ms,
                1.2 * most_ms);
    else
        fprintf(script, "unset logscale %s\nset %srange [0:*]\n", axis, axis);
    fprintf(script, "set format %s '%%g'\n", axis);
}
