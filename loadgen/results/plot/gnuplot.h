/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gnuplot as a child that reads its commands, data included, from a pipe; and the look that all
 * pictures share: white ground, light grid, no frame above and right, the legend beside the data,
 * colours that people who see few of them tell apart, line styles for the rest.
 */
#ifndef LOADGEN_RESULTS_PLOT_GNUPLOT_H
#define LOADGEN_RESULTS_PLOT_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct gnuplot {
    FILE *script; /* commands go here */
    pid_t child;  /* 0: the script is a file */
    const char *path;
};

/*
 * Starts a picture of that many pixels at `path`, which ends in .png or .svg; .gp keeps the
 * commands themselves, which draw PATH.png. 0, or -1 after a message on stderr.
 */
int gnuplot_begin(struct gnuplot *gnuplot, const char *path, unsigned width, unsigned height);

/* Waits for the picture. False after a message when there is none. */
bool gnuplot_finish(struct gnuplot *gnuplot);

/* Text as gnuplot takes it without reading anything into it. */
void gnuplot_text(FILE *script, const char *text);

/* " with lines ..." of the curve of flow `colour`, file `dash`; `width` 1 is thin, 2 usual. */
void gnuplot_line(FILE *script, size_t colour, size_t dash, double width);
void gnuplot_line_points(FILE *script, size_t colour, size_t dash);

#endif
