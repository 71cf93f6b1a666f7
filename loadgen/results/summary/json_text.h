/* SPDX-License-Identifier: Apache-2.0 */
/* Text of any bytes as a JSON string, and JSON as files that people read too. */
#ifndef LOADGEN_RESULTS_SUMMARY_JSON_TEXT_H
#define LOADGEN_RESULTS_SUMMARY_JSON_TEXT_H

#include <jansson.h>
#include <stdio.h>

/* Never NULL: in text that is not UTF-8, every byte above 127 becomes a question mark. */
json_t *json_text(const char *text);

/* Objects an entry a line, arrays of plain values on one line. Errors are those of the file. */
void json_text_write(FILE *out, json_t *value);

#endif
