/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text with words that each request fills in: paths and header fields.
 *
 *   {file}    path of a file of the set, with its root     {number}  of the request, from 0
 *   {tenant}  a number below `tenants`                      {random}  16 hex digits
 *
 * Prepared once as pieces, so that filling in is copying: no allocation, no searching. Braces
 * around anything else are text as they stand.
 */
#ifndef LOADGEN_CLIENT_HTTP_HTTP_TEMPLATE_H
#define LOADGEN_CLIENT_HTTP_HTTP_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/fileset/fileset.h"

enum http_word {
    HTTP_WORD_TEXT,
    HTTP_WORD_FILE,
    HTTP_WORD_NUMBER,
    HTTP_WORD_TENANT,
    HTTP_WORD_RANDOM,
    HTTP_WORD_LENGTH, /* bytes of the body; has no name in the text */
};

struct http_piece {
    enum http_word word;
    uint32_t start; /* TEXT: in the template's text */
    uint32_t length;
};

/* A zeroed one is an empty text. */
struct http_template {
    char *text; /* what lies between the words */
    uint32_t text_bytes;
    struct http_piece *pieces;
    size_t count;
    size_t most_bytes; /* of what it can become */
    uint32_t words;    /* set of 1 << enum http_word, but TEXT */
};

/* What the words stand for in one request. */
struct http_values {
    const struct fileset *set;
    uint64_t file;
    uint64_t number;
    uint64_t tenant;
    uint64_t random;
    uint64_t body_bytes;
};

/* Adds text to the end; words in it are known by their braces. */
void http_template_add(struct http_template *template, const char *text, size_t length);
/* The same of text that is to stay as it is. */
void http_template_add_plain(struct http_template *template, const char *text, size_t length);
void http_template_add_word(struct http_template *template, enum http_word word);
void http_template_fini(struct http_template *template);

/* Writes at most most_bytes; returns how many. */
size_t http_template_fill(const struct http_template *template, const struct http_values *values,
                          char *out);

#endif
