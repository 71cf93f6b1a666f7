/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people: see table.h. */
#include "proxy/control/ctl/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CELL_BYTES   256
#define GAP          2

static const struct column pool_columns[] = {
    {"POOL", COLUMN_TEXT, "name", NULL},
    {"PROTOCOL", COLUMN_TEXT, "protocol", NULL},
    {"ALGORITHM", COLUMN_TEXT, "algorithm", NULL},
    {"OPTIONS", COLUMN_OPTIONS, "algorithm", NULL},
    {"DEPTH", COLUMN_COUNT, "depth", NULL},
    {"QUEUED", COLUMN_COUNT, "queue_length", NULL},
    {"AT-SERVERS", COLUMN_COUNT, "outstanding", NULL},
    {"REQUESTS", COLUMN_COUNT, "requests", NULL},
    {"ERRORS", COLUMN_COUNT, "errors", NULL},
    {"REFUSED", COLUMN_COUNT, "refused", NULL},
    {"WAIT-MEAN", COLUMN_SECONDS, "wait", "mean_seconds"},
    {"WAIT-P99", COLUMN_SECONDS, "wait", "p99_seconds"},
    {"SERVICE-MEAN", COLUMN_SECONDS, "service", "mean_seconds"},
    {"SERVICE-P99", COLUMN_SECONDS, "service", "p99_seconds"},
};

static const struct column admission_columns[] = {
    {"POOL", COLUMN_TEXT, "name", NULL},
    {"POLICY", COLUMN_TEXT, "admission", NULL},
    {"ACTION", COLUMN_TEXT, "admission_action", NULL},
    {"OFFERED", COLUMN_COUNT, "offered", NULL},
    {"ADMITTED", COLUMN_COUNT, "admitted", NULL},
    {"REFUSED", COLUMN_COUNT, "admission_refused", NULL},
    {"MARKED", COLUMN_COUNT, "marked", NULL},
    {"CAPACITY", COLUMN_RATE, "admission_capacity_per_second", NULL},
    {"P", COLUMN_PERCENT, "admission_share", NULL},
    {"K*", COLUMN_AMOUNT, "admission_allowed", NULL},
    {"INTERVAL", COLUMN_TARGET, "admission_measured_seconds", NULL},
};

static const struct column flow_columns[] = {
    {"POOL", COLUMN_TEXT, "pool", NULL},
    {"FLOW", COLUMN_TEXT, "name", NULL},
    {"WEIGHT", COLUMN_COUNT, "weight", NULL},
    {"SHARE", COLUMN_PERCENT, "share", NULL},
    {"TARGET", COLUMN_TARGET, "target_seconds", NULL},
    {"RESERVED", COLUMN_RATE, "reservation_per_second", NULL},
    {"LIMIT", COLUMN_RATE, "limit_per_second", NULL},
    {"GOAL", COLUMN_TARGET, "response_target_seconds", NULL},
    {"GOAL-IS", COLUMN_TEXT, "feedback", NULL},
    {"INSTANCES", COLUMN_COUNT, "instances", NULL},
    {"QUEUED", COLUMN_COUNT, "queue_length", NULL},
    {"AT-SERVERS", COLUMN_COUNT, "outstanding", NULL},
    {"REQUESTS", COLUMN_COUNT, "requests", NULL},
    {"COST", COLUMN_COUNT, "cost", NULL},
    {"IN", COLUMN_BYTES, "bytes_in", NULL},
    {"OUT", COLUMN_BYTES, "bytes_out", NULL},
    {"REFUSED", COLUMN_COUNT, "refused", NULL},
    {"ADMISSION", COLUMN_COUNT, "admission_refused", NULL},
    {"MARKED", COLUMN_COUNT, "marked", NULL},
    {"AT-LIMIT", COLUMN_COUNT, "at_limit", NULL},
    {"WAIT-MEAN", COLUMN_SECONDS, "wait", "mean_seconds"},
    {"WAIT-P99", COLUMN_SECONDS, "wait", "p99_seconds"},
    {"SERVICE-P99", COLUMN_SECONDS, "service", "p99_seconds"},
};

static const struct column server_columns[] = {
    {"POOL", COLUMN_TEXT, "pool", NULL},
    {"SERVER", COLUMN_TEXT, "name", NULL},
    {"ADDRESS", COLUMN_TEXT, "address", NULL},
    {"STATE", COLUMN_TEXT, "state", NULL},
    {"DEPTH", COLUMN_COUNT, "depth", NULL},
    {"AT-SERVER", COLUMN_COUNT, "outstanding", NULL},
    {"REQUESTS", COLUMN_COUNT, "requests", NULL},
    {"ERRORS", COLUMN_COUNT, "errors", NULL},
    {"CONNECT-ERRORS", COLUMN_COUNT, "connect_errors", NULL},
    {"RETRIES", COLUMN_COUNT, "retries", NULL},
    {"SERVICE-MEAN", COLUMN_SECONDS, "service", "mean_seconds"},
    {"SERVICE-P99", COLUMN_SECONDS, "service", "p99_seconds"},
};

static const struct column listener_columns[] = {
    {"LISTENER", COLUMN_TEXT, "name", NULL},
    {"PROTOCOL", COLUMN_TEXT, "protocol", NULL},
    {"OPEN", COLUMN_COUNT, "connections_open", NULL},
    {"CONNECTIONS", COLUMN_COUNT, "connections", NULL},
    {"REJECTED", COLUMN_COUNT, "rejected", NULL},
    {"MALFORMED", COLUMN_COUNT, "malformed", NULL},
    {"NOT-FOUND", COLUMN_COUNT, "not_found", NULL},
};

const struct column *table_columns(const char *what, size_t *count)
{
    static const struct {
        const char *what;
        const struct column *columns;
        size_t count;
    } tables[] = {
        {"listeners", listener_columns, COUNT(listener_columns)},
        {"pools", pool_columns, COUNT(pool_columns)},
        {"admission", admission_columns, COUNT(admission_columns)},
        {"flows", flow_columns, COUNT(flow_columns)},
        {"servers", server_columns, COUNT(server_columns)},
    };

    for (size_t i = 0; i < COUNT(tables); i++) {
        if (strcmp(tables[i].what, what) == 0) {
            *count = tables[i].count;
            return tables[i].columns;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ cells */

int table_format_seconds(char *text, size_t size, double seconds)
{
    static const struct {
        double limit, factor;
        const char *unit;
    } units[] = {{1e-3, 1e6, "us"}, {1, 1e3, "ms"}, {0, 1, "s"}};
    size_t i = 0;

    while (i + 1 < COUNT(units) && seconds >= units[i].limit)
        i++;
    double value = seconds * units[i].factor;
    int decimals = value >= 100 || value == 0 ? 0 : value >= 10 ? 1 : 2;
    return snprintf(text, size, "%.*f%s", decimals, value, units[i].unit);
}

int table_format_bytes(char *text, size_t size, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;

    while (i + 1 < COUNT(units) && bytes >= 1024) {
        bytes /= 1024;
        i++;
    }
    return snprintf(text, size, "%.*f%s", i == 0 || bytes >= 100 ? 0 : 1, bytes, units[i]);
}

/* Names come from a file: they may not steer the terminal. */
static void format_text(char *cell, const char *text)
{
    size_t length = 0;

    for (; *text != '\0' && length + 1 < CELL_BYTES; text++) {
        unsigned char byte = (unsigned char)*text;
        cell[length++] = (char)(byte < 0x20 || byte == 0x7f ? '?' : byte);
    }
    cell[length] = '\0';
}

static void format_cell(char *cell, enum column_kind kind, const json_t *value)
{
    double number = json_number_value(value);

    if (kind == COLUMN_TEXT && json_is_string(value))
        format_text(cell, json_string_value(value));
    else if (kind == COLUMN_TEXT || !json_is_number(value))
        format_text(cell, "-");
    else if (number == 0 && (kind == COLUMN_RATE || kind == COLUMN_AMOUNT || kind == COLUMN_TARGET))
        format_text(cell, "-");
    else if (kind == COLUMN_RATE)
        snprintf(cell, CELL_BYTES, "%.0f/s", number);
    else if (kind == COLUMN_AMOUNT)
        snprintf(cell, CELL_BYTES, "%.1f", number);
    else if (kind == COLUMN_SECONDS || kind == COLUMN_TARGET)
        table_format_seconds(cell, CELL_BYTES, number);
    else if (kind == COLUMN_BYTES)
        table_format_bytes(cell, CELL_BYTES, number);
    else if (kind == COLUMN_PERCENT)
        snprintf(cell, CELL_BYTES, "%.1f%%", number * 100);
    else
        snprintf(cell, CELL_BYTES, "%.0f", number);
}

/* The options that the row's algorithm reads. */
static void format_options(char *cell, const json_t *row)
{
    const char *algorithm = json_string_value(json_object_get(row, "algorithm"));
    const char *at_limit = json_string_value(json_object_get(row, "at_limit_policy"));
    double capacity = json_number_value(json_object_get(row, "capacity_per_second"));
    char ageing[32];

    table_format_seconds(ageing, sizeof(ageing),
                         json_number_value(json_object_get(row, "ageing_seconds")));
    snprintf(cell, CELL_BYTES, "-");
    if (algorithm == NULL)
        return;
    if (strcmp(algorithm, "hybrid") == 0)
        snprintf(cell, CELL_BYTES, "slack=%.0f", json_number_value(json_object_get(row, "slack")));
    else if (strcmp(algorithm, "scf") == 0)
        snprintf(cell, CELL_BYTES, "ageing=%s", ageing);
    else if (strcmp(algorithm, "mclock") == 0 && at_limit != NULL)
        snprintf(cell, CELL_BYTES, "at-limit=%s", at_limit);
    else if (strcmp(algorithm, "wfq") == 0 && capacity > 0)
        snprintf(cell, CELL_BYTES, "capacity=%.0f/s", capacity);
}

static void format_member(char *cell, const struct column *column, const json_t *row)
{
    const json_t *value = json_object_get(row, column->key);

    if (column->kind == COLUMN_OPTIONS) {
        format_options(cell, row);
        return;
    }
    /* Nothing measured is not a time of zero. */
    if (column->member != NULL && json_integer_value(json_object_get(value, "count")) == 0)
        value = NULL;
    else if (column->member != NULL)
        value = json_object_get(value, column->member);
    format_cell(cell, column->kind, value);
}

/* Columns on a terminal, for text in UTF-8 without wide characters. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* ------------------------------------------------------------------ tables */

static void print_cell(FILE *out, const struct column *column, const char *cell, size_t width,
                       bool last)
{
    int fill = (int)(width - width_of(cell));

    if (column->kind != COLUMN_TEXT && column->kind != COLUMN_OPTIONS)
        fprintf(out, "%*s%s", fill, "", cell);
    else
        fprintf(out, "%s%*s", cell, last ? 0 : fill, "");
    fprintf(out, "%*s", last ? 0 : GAP, "");
}

int table_print(FILE *out, const struct column *columns, size_t count, const json_t *rows)
{
    size_t *widths = calloc(count, sizeof(*widths));
    char cell[CELL_BYTES];
    const json_t *row;
    size_t i;

    if (widths == NULL)
        return -ENOMEM;
    for (size_t c = 0; c < count; c++)
        widths[c] = width_of(columns[c].title);
    json_array_foreach(rows, i, row)
    {
        for (size_t c = 0; c < count; c++) {
            format_member(cell, &columns[c], row);
            size_t width = width_of(cell);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    for (size_t c = 0; c < count; c++)
        print_cell(out, &columns[c], columns[c].title, widths[c], c + 1 == count);
    fputc('\n', out);
    json_array_foreach(rows, i, row)
    {
        for (size_t c = 0; c < count; c++) {
            format_member(cell, &columns[c], row);
            print_cell(out, &columns[c], cell, widths[c], c + 1 == count);
        }
        fputc('\n', out);
    }
    free(widths);
    return json_is_array(rows) ? 0 : -EPROTO;
}

static void print_uptime(FILE *out, double seconds)
{
    unsigned long long left = (unsigned long long)seconds;

    fprintf(out, "uptime             ");
    if (left >= 86400)
        fprintf(out, "%llud ", left / 86400);
    fprintf(out, "%02llu:%02llu:%02llu\n", left / 3600 % 24, left / 60 % 60, left % 60);
}

int table_print_status(FILE *out, const json_t *status)
{
    static const struct {
        const char *title, *key;
    } counts[] = {
        {"process id", "pid"},
        {"workers", "workers"},
        {"sessions", "sessions"},
        {"reloads done", "reloads_done"},
        {"reloads failed", "reloads_failed"},
        {"log lines dropped", "log_lines_dropped"},
    };
    char cell[CELL_BYTES];

    if (!json_is_object(status))
        return -EPROTO;
    format_cell(cell, COLUMN_TEXT, json_object_get(status, "version"));
    fprintf(out, "version            %s\n", cell);
    fprintf(out, "state              %s\n",
            json_is_true(json_object_get(status, "draining")) ? "draining" : "running");
    print_uptime(out, json_number_value(json_object_get(status, "uptime_seconds")));
    for (size_t i = 0; i < COUNT(counts); i++) {
        format_cell(cell, COLUMN_COUNT, json_object_get(status, counts[i].key));
        fprintf(out, "%-18s %s\n", counts[i].title, cell);
    }
    return 0;
}
