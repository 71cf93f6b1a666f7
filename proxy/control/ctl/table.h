/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON answers as tables for people: one aligned column per value, units with the values.
 */
#ifndef SPILLWAY_CONTROL_CTL_TABLE_H
#define SPILLWAY_CONTROL_CTL_TABLE_H

#include <jansson.h>
#include <stdio.h>

enum column_kind {
    COLUMN_TEXT,    /* to the left */
    COLUMN_COUNT,   /* and everything from here on to the right */
    COLUMN_BYTES,   /* 1.5MiB */
    COLUMN_SECONDS, /* 1.50ms */
    COLUMN_PERCENT, /* of a value from 0 to 1 */
    COLUMN_RATE,    /* 100/s; 0 is none */
    COLUMN_AMOUNT,  /* 12.5; 0 is none */
    COLUMN_TARGET,  /* as SECONDS; 0 is none */
    COLUMN_OPTIONS, /* text: what a pool's algorithm was told; out of several keys */
};

struct column {
    const char *title;
    enum column_kind kind;
    const char *key;    /* in the row's object */
    const char *member; /* of the times under `key`, or NULL */
};

/* The columns that "spillctl show WHAT" has; NULL for no such thing. */
const struct column *table_columns(const char *what, size_t *count);

/*
 * A row per object of the array, under a line of titles. What an object lacks, or never measured,
 * is
 * "-". Returns 0, or
 * -EPROTO when `rows` is no array of objects.
 */
int table_print(FILE *out, const struct column *columns, size_t count, const json_t *rows);

/* The status object, a line per value. Returns as table_print(). */
int table_print_status(FILE *out, const json_t *status);

/* Values as the columns show them; return as snprintf(). */
int table_format_seconds(char *text, size_t size, double seconds);
int table_format_bytes(char *text, size_t size, double bytes);

#endif
