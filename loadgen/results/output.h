/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of results: opened before the load, complete or told.
 *
 * A regular file comes into being as PATH.part and takes its name when it is complete, so what was
 * there before stays until then. Devices and pipes, and files that grow during the run (`whole`
 * false), are written in place. The first error is told on stderr, with the path; later ones are
 * not.
 */
#ifndef LOADGEN_RESULTS_OUTPUT_H
#define LOADGEN_RESULTS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file; /* NULL: no such file is wanted */
    const char *path;
    char *part; /* NULL: written in place */
    bool failed;
};

/* Takes a path, which must stay, or NULL. 0, or -1 after a message on stderr. */
int output_open(struct output *output, const char *path, bool whole);

/* Writes out what is buffered. False when something was lost, now or before. */
bool output_flush(struct output *output);

/* Closes; the file takes its name. False when something was lost, now or before. */
bool output_finish(struct output *output);

/* Closes and removes what is not complete; nothing after output_finish(). */
void output_drop(struct output *output);

#endif
