/* SPDX-License-Identifier: Apache-2.0 */
/* Lines through measurements, and tables of them: see calibrate_table.h. */
#include "proxy/control/ctl/calibrate_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/config/config.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct calibrate_row *calibrate_table_row(struct calibrate_table *table, const char *operation,
                                          uint64_t size)
{
    for (unsigned i = 0; i < table->row_count; i++) {
        struct calibrate_row *row = &table->rows[i];
        if (strcmp(row->operation, operation) == 0 && row->size == size)
            return row;
    }
    if (table->row_count == CALIBRATE_ROWS_MAX)
        return NULL;
    struct calibrate_row *row = &table->rows[table->row_count++];
    *row = (struct calibrate_row){.operation = operation, .size = size};
    return row;
}

static double lesser(double known, double other)
{
    return known <= 0 || (other > 0 && other < known) ? other : known;
}

void calibrate_row_merge(struct calibrate_row *row, const struct calibrate_row *more)
{
    row->bytes = more->bytes;
    row->samples += more->samples;
    row->alone_us = lesser(row->alone_us, more->alone_us);
    row->busy_us = lesser(row->busy_us, more->busy_us);
}

void calibrate_table_note(struct calibrate_table *table, const char *format, ...)
{
    va_list args;

    char *note;

    if (table->note_count == CALIBRATE_NOTES_MAX)
        return;
    va_start(args, format);
    if (vasprintf(&note, format, args) < 0)
        note = NULL;
    va_end(args);
    /* Every round finds the same. */
    for (unsigned i = 0; i < table->note_count && note != NULL; i++) {
        if (strcmp(table->notes[i], note) == 0) {
            free(note);
            note = NULL;
        }
    }
    if (note != NULL)
        table->notes[table->note_count++] = note;
}

void calibrate_table_fini(struct calibrate_table *table)
{
    for (unsigned i = 0; i < table->note_count; i++)
        free(table->notes[i]);
    table->note_count = 0;
}

/* ------------------------------------------------------------------ fits */

static double cost_us(const struct calibrate_row *row)
{
    return lesser(row->busy_us, row->alone_us);
}

struct sums {
    double weight, x, y, xx, xy;
};

static void add(struct sums *sums, const struct calibrate_row *row)
{
    double x = row->bytes / CALIBRATE_BYTES_UNIT;
    double y = cost_us(row);
    double weight = 1 / (y * y);

    sums->weight += weight;
    sums->x += weight * x;
    sums->y += weight * y;
    sums->xx += weight * x * x;
    sums->xy += weight * x * y;
}

static void solve(const struct sums *s, struct calibrate_fit *fit)
{
    double spread = s->weight * s->xx - s->x * s->x;

    fit->base_us = s->y / s->weight;
    /* One size tells nothing about sizes. */
    if (fit->rows < 2 || spread <= 1e-9 * s->weight * s->xx)
        return;
    double slope = (s->weight * s->xy - s->x * s->y) / spread;
    if (slope <= 0)
        return;
    double base = (s->y - slope * s->x) / s->weight;
    fit->per_size_us = base >= 0 ? slope : s->xy / s->xx;
    fit->base_us = base >= 0 ? base : 0;
}

static bool is_of(const struct calibrate_row *row, const char *operation)
{
    return strcmp(row->operation, operation) == 0 && cost_us(row) > 0;
}

struct calibrate_fit calibrate_table_fit(const struct calibrate_table *table, const char *operation)
{
    struct calibrate_fit fit = {.operation = operation};
    struct sums sums = {0, 0, 0, 0, 0};

    for (unsigned i = 0; i < table->row_count; i++) {
        if (is_of(&table->rows[i], operation)) {
            add(&sums, &table->rows[i]);
            fit.rows++;
        }
    }
    if (fit.rows == 0)
        return fit;
    solve(&sums, &fit);
    for (unsigned i = 0; i < table->row_count; i++) {
        const struct calibrate_row *row = &table->rows[i];
        if (!is_of(row, operation))
            continue;
        double line = fit.base_us + fit.per_size_us * row->bytes / CALIBRATE_BYTES_UNIT;
        double error = fabs(line - cost_us(row)) / cost_us(row);
        fit.error_mean += error / fit.rows;
        fit.error_max = fmax(fit.error_max, error);
    }
    return fit;
}

/* Every operation once, in the order of its first row. */
static unsigned fit_all(const struct calibrate_table *table, struct calibrate_fit *fits)
{
    unsigned count = 0;

    for (unsigned i = 0; i < table->row_count; i++) {
        bool seen = false;
        for (unsigned j = 0; j < count && !seen; j++)
            seen = strcmp(fits[j].operation, table->rows[i].operation) == 0;
        if (seen)
            continue;
        fits[count] = calibrate_table_fit(table, table->rows[i].operation);
        count += fits[count].rows > 0;
    }
    return count;
}

/* ------------------------------------------------------------------ the table of costs */

struct entry {
    const char *operation;
    double base_us, per_size_us;
};

struct cost_table {
    struct entry entries[CALIBRATE_ROWS_MAX + 4];
    unsigned count;
};

static void put(struct cost_table *costs, const char *operation, double base_us, double per_size_us)
{
    costs->entries[costs->count++] = (struct entry){operation, base_us, per_size_us};
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Names that stand for several operations, from those that stand for them. */
static void put_general_nfs(const struct calibrate_table *table, struct cost_table *costs)
{
    static const char *const common[] = {"getattr", "lookup", "access"};
    const struct calibrate_fit create = calibrate_table_fit(table, "create");
    double median[COUNT_OF(common)];
    size_t known = 0;

    for (size_t i = 0; i < COUNT_OF(common); i++) {
        const struct calibrate_fit fit = calibrate_table_fit(table, common[i]);
        if (fit.rows > 0)
            median[known++] = fit.base_us;
    }
    qsort(median, known, sizeof(median[0]), compare_doubles);
    if (known > 0)
        put(costs, "metadata", median[known / 2], 0);
    if (create.rows > 0)
        put(costs, "mknod", create.base_us, create.per_size_us);
}

static void put_general_http(const struct calibrate_table *table, struct cost_table *costs)
{
    struct calibrate_fit like = calibrate_table_fit(table, "PUT");

    if (like.rows == 0)
        like = calibrate_table_fit(table, "GET");
    if (like.rows > 0)
        put(costs, "default", like.base_us, like.per_size_us);
}

static struct cost_table make_costs(const struct calibrate_table *table)
{
    struct calibrate_fit fits[CALIBRATE_ROWS_MAX];
    unsigned count = fit_all(table, fits);
    struct cost_table costs = {.count = 0};

    for (unsigned i = 0; i < count; i++)
        put(&costs, fits[i].operation, fits[i].base_us, fits[i].per_size_us);
    if (strcmp(table->protocol, "nfs") == 0)
        put_general_nfs(table, &costs);
    else
        put_general_http(table, &costs);
    return costs;
}

uint64_t calibrate_table_unit_ns(const struct calibrate_table *table)
{
    double least_us = 1e12;
    double most_us = 0;
    uint64_t unit_ns = 1;

    for (unsigned i = 0; i < table->row_count; i++) {
        double us = cost_us(&table->rows[i]);
        if (us > 0)
            least_us = fmin(least_us, us);
        most_us = fmax(most_us, us);
    }
    while (unit_ns < UINT64_C(1000000000) && least_us * 1000 / (double)(unit_ns * 10) >= 10)
        unit_ns *= 10;
    while (most_us * 1000 / (double)unit_ns > CONFIG_COST_MAX)
        unit_ns *= 10;
    return unit_ns;
}

static unsigned long units(double us, uint64_t unit_ns)
{
    double value = us * 1000 / (double)unit_ns;

    return value >= CONFIG_COST_MAX ? CONFIG_COST_MAX : (unsigned long)lround(value);
}

/* A table's entries are at least 1. */
static unsigned long base_units(double us, uint64_t unit_ns)
{
    unsigned long value = units(us, unit_ns);

    return value > 0 ? value : 1;
}

/* ------------------------------------------------------------------ printing */

static const char *size_text(uint64_t bytes, char *text, size_t room)
{
    if (bytes == 0)
        snprintf(text, room, "-");
    else if (bytes % 1048576 == 0)
        snprintf(text, room, "%" PRIu64 " MiB", bytes / 1048576);
    else if (bytes % 1024 == 0)
        snprintf(text, room, "%" PRIu64 " KiB", bytes / 1024);
    else
        snprintf(text, room, "%" PRIu64 " B", bytes);
    return text;
}

static const char *time_text(uint64_t ns, char *text, size_t room)
{
    if (ns % 1000000 == 0)
        snprintf(text, room, "%" PRIu64 " ms", ns / 1000000);
    else if (ns % 1000 == 0)
        snprintf(text, room, "%" PRIu64 " us", ns / 1000);
    else
        snprintf(text, room, "%" PRIu64 " ns", ns);
    return text;
}

static void print_rows(const struct calibrate_table *table, FILE *out)
{
    char size[32];

    fprintf(out, "# %-12s %10s %12s %12s %12s %10s\n", "operation", "size", "bytes moved",
            "alone us", "busy us", "samples");
    for (unsigned i = 0; i < table->row_count; i++) {
        const struct calibrate_row *row = &table->rows[i];
        fprintf(out, "# %-12s %10s %12.0f %12.1f %12.1f %10" PRIu64 "\n", row->operation,
                size_text(row->size, size, sizeof(size)), row->bytes, row->alone_us, row->busy_us,
                row->samples);
    }
}

static void print_fits(const struct calibrate_table *table, FILE *out)
{
    struct calibrate_fit fits[CALIBRATE_ROWS_MAX];
    unsigned count = fit_all(table, fits);

    for (unsigned i = 0; i < count; i++) {
        if (fits[i].rows < 2)
            continue;
        fprintf(out,
                "# %s: %.1f us and %.1f us per 64 KiB; the %u sizes are off this line by %.0f %% "
                "on average, %.0f %% at most\n",
                fits[i].operation, fits[i].base_us, fits[i].per_size_us, fits[i].rows,
                100 * fits[i].error_mean, 100 * fits[i].error_max);
    }
}

/* Its size means nothing, but that of its class or of `default` would be taken for it. */
static bool says_no_size(const char *operation)
{
    static const char *const names[] = {"commit", "HEAD", "DELETE"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(operation, names[i]) == 0)
            return true;
    }
    return false;
}

void calibrate_table_print(const struct calibrate_table *table, FILE *out)
{
    const struct cost_table costs = make_costs(table);
    uint64_t unit_ns = calibrate_table_unit_ns(table);
    bool sizes = false;
    char unit[32];

    fprintf(out,
            "# %s %s, one request at a time (alone) and %u (busy). Bytes are those of request and "
            "reply.\n",
            table->protocol, table->target, table->depth);
    print_rows(table, out);
    print_fits(table, out);
    for (unsigned i = 0; i < table->note_count; i++)
        fprintf(out, "# %s\n", table->notes[i]);
    fprintf(out,
            "# One unit of cost is %s of the server's time, alone or busy, whichever is less.\n",
            time_text(unit_ns, unit, sizeof(unit)));
    fprintf(out, "cost:\n  by: table\n  table:\n");
    for (unsigned i = 0; i < costs.count; i++) {
        /* A bare null is nothing to YAML. */
        const char *quote = strcmp(costs.entries[i].operation, "null") == 0 ? "\"" : "";
        fprintf(out, "    %s%s%s: %lu\n", quote, costs.entries[i].operation, quote,
                base_units(costs.entries[i].base_us, unit_ns));
        sizes |= units(costs.entries[i].per_size_us, unit_ns) > 0;
    }
    if (!sizes)
        return;
    fprintf(out, "  bytes-unit: 64KiB\n  per-size:\n");
    for (unsigned i = 0; i < costs.count; i++) {
        unsigned long per_size = units(costs.entries[i].per_size_us, unit_ns);
        if (per_size > 0 || says_no_size(costs.entries[i].operation))
            fprintf(out, "    %s: %lu\n", costs.entries[i].operation, per_size);
    }
}

static json_t *rows_json(const struct calibrate_table *table)
{
    json_t *rows = json_array();

    for (unsigned i = 0; i < table->row_count; i++) {
        const struct calibrate_row *row = &table->rows[i];
        json_array_append_new(
            rows, json_pack("{s:s, s:I, s:f, s:f, s:f, s:I}", "operation", row->operation,
                            "size_bytes", (json_int_t)row->size, "moved_bytes", row->bytes,
                            "alone_seconds", row->alone_us / 1e6, "busy_seconds",
                            row->busy_us / 1e6, "samples", (json_int_t)row->samples));
    }
    return rows;
}

static json_t *fits_json(const struct calibrate_table *table)
{
    struct calibrate_fit fits[CALIBRATE_ROWS_MAX];
    unsigned count = fit_all(table, fits);
    json_t *object = json_object();

    for (unsigned i = 0; i < count; i++) {
        const struct calibrate_fit *fit = &fits[i];
        json_object_set_new(object, fit->operation,
                            json_pack("{s:f, s:f, s:i, s:f, s:f}", "base_seconds",
                                      fit->base_us / 1e6, "seconds_per_size",
                                      fit->per_size_us / 1e6, "sizes", (int)fit->rows, "error_mean",
                                      fit->error_mean, "error_max", fit->error_max));
    }
    return object;
}

static json_t *costs_json(const struct calibrate_table *table, uint64_t unit_ns)
{
    const struct cost_table costs = make_costs(table);
    json_t *base = json_object();
    json_t *per_size = json_object();

    for (unsigned i = 0; i < costs.count; i++) {
        const struct entry *entry = &costs.entries[i];
        unsigned long more = units(entry->per_size_us, unit_ns);
        json_object_set_new(base, entry->operation,
                            json_integer((json_int_t)base_units(entry->base_us, unit_ns)));
        if (more > 0 || says_no_size(entry->operation))
            json_object_set_new(per_size, entry->operation, json_integer((json_int_t)more));
    }
    return json_pack("{s:s, s:o, s:s, s:o}", "by", "table", "table", base, "bytes-unit", "64KiB",
                     "per-size", per_size);
}

json_t *calibrate_table_json(const struct calibrate_table *table)
{
    uint64_t unit_ns = calibrate_table_unit_ns(table);
    json_t *notes = json_array();

    for (unsigned i = 0; i < table->note_count; i++)
        json_array_append_new(notes, json_string(table->notes[i]));
    return json_pack("{s:s, s:s, s:i, s:f, s:i, s:o, s:o, s:o, s:o}", "protocol", table->protocol,
                     "target", table->target, "depth", (int)table->depth, "unit_seconds",
                     (double)unit_ns / 1e9, "size_bytes", CALIBRATE_BYTES_UNIT, "rows",
                     rows_json(table), "fits", fits_json(table), "cost", costs_json(table, unit_ns),
                     "notes", notes);
}
