/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a calibration measured, and the cost table that comes of it.
 *
 * A row is one operation at one size. Its cost is the server's time when it serves most: the time
 * of a run by the requests served, which is what one more request takes from the others. Where a
 * server serves less with many at a time than with one, that one is what counts. Operations that
 * move data are measured at several sizes; the line
 *
 *     time = base + per_size * bytes / CALIBRATE_BYTES_UNIT        bytes: of request and reply
 *
 * is laid through them by least squares of the relative error (so that small sizes count as much
 * as large ones), base and per_size not below 0.
 */
#ifndef SPILLWAY_CONTROL_CTL_CALIBRATE_TABLE_H
#define SPILLWAY_CONTROL_CTL_CALIBRATE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CALIBRATE_ROWS_MAX   128
#define CALIBRATE_NOTES_MAX  16
#define CALIBRATE_BYTES_UNIT 65536

struct calibrate_row {
    const char *operation; /* as in the table of spillway.yaml; static */
    uint64_t size;         /* payload asked for; 0: none */
    double bytes;          /* of request and reply, as the proxy counts them; mean */
    double alone_us;       /* from request to reply, one at a time */
    double busy_us;        /* run time by requests, at the depth that saturates */
    uint64_t samples;
};

struct calibrate_fit {
    const char *operation;
    double base_us, per_size_us;  /* per CALIBRATE_BYTES_UNIT */
    double error_mean, error_max; /* relative, over its rows */
    unsigned rows;
};

struct calibrate_table {
    const char *protocol; /* "nfs", "http" */
    char target[300];
    unsigned depth; /* that saturates */
    struct calibrate_row rows[CALIBRATE_ROWS_MAX];
    unsigned row_count;
    char *notes[CALIBRATE_NOTES_MAX]; /* what was left out, and why */
    unsigned note_count;
};

/* The row of that operation (static text) and size, made if need be; NULL when there is no room. */
struct calibrate_row *calibrate_table_row(struct calibrate_table *table, const char *operation,
                                          uint64_t size);
/* Takes a run's times over where they are the first or the least so far. */
void calibrate_row_merge(struct calibrate_row *row, const struct calibrate_row *more);
/* Said once, however often. */
void calibrate_table_note(struct calibrate_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void calibrate_table_fini(struct calibrate_table *table);

/* The line through the operation's rows; rows 0: there is none. */
struct calibrate_fit calibrate_table_fit(const struct calibrate_table *table,
                                         const char *operation);

/* Nanoseconds of one unit of cost: the largest power of ten that leaves the cheapest operation 10
 * units, if the dearest then is within the configuration's range. */
uint64_t calibrate_table_unit_ns(const struct calibrate_table *table);

/* For people in comments, then the `cost` of a pool: the whole is YAML. */
void calibrate_table_print(const struct calibrate_table *table, FILE *out);
/* One object; the caller's. */
json_t *calibrate_table_json(const struct calibrate_table *table);

#endif
