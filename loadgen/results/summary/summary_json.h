/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries as JSON values, for files that hold more than one: those of sweep. */
#ifndef LOADGEN_RESULTS_SUMMARY_SUMMARY_JSON_H
#define LOADGEN_RESULTS_SUMMARY_SUMMARY_JSON_H

#include <jansson.h>

#include "loadgen/results/summary/summary.h"

/* A new reference; never NULL. */
json_t *summary_json(const struct summary *summary);

/* 0, or -EINVAL with a sentence in `error` (`name` is what it calls the text); the summary is empty
 * then. */
int summary_from_json(const json_t *json, const char *name, struct summary *out,
                      char error[SUMMARY_ERROR_BYTES]);

/* The JSON of a file. NULL with the sentence in `error`. */
json_t *summary_load(const char *path, char error[SUMMARY_ERROR_BYTES]);

/* A column of the series: its name, and where in struct summary_second it is, as uint64_t or as
 * double. False past the last. */
bool summary_column(size_t place, const char **name, size_t *offset, bool *is_whole);

#endif
