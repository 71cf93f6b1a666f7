/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions as text, read and written. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/distribution.h"
#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define PARTS     4
#define MAX_SIGMA 10.0
#define MAX_ALPHA 100.0

static const char *const names[DISTRIBUTION_KINDS] = {
    [DISTRIBUTION_FIXED] = "fixed",         [DISTRIBUTION_EXPONENTIAL] = "exponential",
    [DISTRIBUTION_UNIFORM] = "uniform",     [DISTRIBUTION_BIMODAL] = "bimodal",
    [DISTRIBUTION_LOGNORMAL] = "lognormal", [DISTRIBUTION_PARETO] = "pareto",
    [DISTRIBUTION_LIST] = "list",
};

/* Of a list: longer lines hold no value, and more values are no list that anybody wrote. */
#define LINE_BYTES  256
#define MOST_VALUES 10000000U

/* Lists that were read, so that each stays reachable for as long as the program runs. */
struct kept_list {
    struct kept_list *next;
    char *file;
    uint64_t *values;
};

static struct kept_list *kept_lists;

int distribution_parse(const char *name, enum distribution_kind *out)
{
    for (int kind = 0; kind <= DISTRIBUTION_BIMODAL; kind++) {
        if (strcmp(names[kind], name) == 0) {
            *out = (enum distribution_kind)kind;
            return 0;
        }
    }
    return -EINVAL;
}

const char *distribution_name(enum distribution_kind kind)
{
    return names[kind];
}

/* ---------------------------------------------------------------- reading */

static int parse_value(const char *text, enum distribution_unit unit, uint64_t *out)
{
    return unit == DISTRIBUTION_NS ? units_parse_duration_ns(text, out)
                                   : units_parse_bytes(text, out);
}

/* Above 0 and at most `most`. */
static bool parse_shape(const char *text, double most, double *out)
{
    char *end;

    if (strspn(text, "0123456789.eE+-") != strlen(text))
        return false;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out > 0 && *out <= most;
}

static char list_problem[DISTRIBUTION_TEXT_BYTES];

const char *distribution_list_problem(void)
{
    return list_problem;
}

static int complain(int error, const char *path, const char *what)
{
    snprintf(list_problem, sizeof(list_problem), "%.300s: %s", path, what);
    return error;
}

static int complain_of_line(const char *path, size_t number, enum distribution_unit unit)
{
    char what[96];

    snprintf(what, sizeof(what), "line %zu: expected a %s", number,
             unit == DISTRIBUTION_NS ? "time, as 10ms" : "size, as 4KiB");
    return complain(-EINVAL, path, what);
}

/* A line at a time into a buffer that no file can make grow. */
static int read_values(FILE *file, const char *path, enum distribution_unit unit, uint64_t **values,
                       size_t *count)
{
    char line[LINE_BYTES];
    size_t number = 0;
    size_t capacity = 0;

    while (fgets(line, sizeof(line), file)) {
        char *text = line + strspn(line, " \t\r\n");

        number++;
        if (!strchr(line, '\n') && !feof(file))
            return complain_of_line(path, number, unit);
        text[strcspn(text, " \t\r\n")] = '\0';
        if (*text == '\0' || *text == '#')
            continue;
        if (*count == MOST_VALUES)
            return complain(-EINVAL, path, "more than ten million values");
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            *values = memory_grow(*values, capacity * sizeof(**values));
        }
        if (parse_value(text, unit, &(*values)[(*count)++]) != 0)
            return complain_of_line(path, number, unit);
    }
    if (ferror(file)) {
        int error = errno ? errno : EIO;

        return complain(-error, path, strerror(error));
    }
    return *count == 0 ? complain(-EINVAL, path, "no value in it") : 0;
}

static int read_list(const char *path, enum distribution_unit unit, struct distribution *out)
{
    uint64_t *values = NULL;
    size_t count = 0;
    double sum = 0;
    FILE *file = fopen(path, "re");

    if (!file) {
        int reason = errno;

        return complain(-reason, path, strerror(reason));
    }
    int error = read_values(file, path, unit, &values, &count);

    (void)fclose(file);
    if (error) {
        free(values);
        return error;
    }
    struct kept_list *kept = memory_zeroed(1, sizeof(*kept));

    *kept = (struct kept_list){.next = kept_lists, .file = memory_string(path), .values = values};
    kept_lists = kept;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    *out = (struct distribution){.kind = DISTRIBUTION_LIST,
                                 .mean = (uint64_t)llround(sum / (double)count),
                                 .list = values,
                                 .list_file = kept->file,
                                 .list_count = count};
    return 0;
}

/* Cuts the text at its colons; 0 when there are too many. */
static size_t split(char *text, char *parts[PARTS])
{
    size_t count = 0;

    for (char *p = text; p; count++) {
        char *colon = strchr(p, ':');

        if (count == PARTS)
            return 0;
        parts[count] = p;
        if (colon)
            *colon++ = '\0';
        p = colon;
    }
    return count;
}

static int read_parts(char *parts[PARTS], size_t count, enum distribution_unit unit,
                      struct distribution *out)
{
    struct distribution read = {0};

    if (count == 1 && parse_value(parts[0], unit, &read.mean) == 0) {
        *out = read;
        return 0;
    }
    if (count == 2 && distribution_parse(parts[0], &read.kind) == 0 &&
        parse_value(parts[1], unit, &read.mean) == 0) {
        *out = read;
        return 0;
    }
    if (count == 3 && strcmp(parts[0], names[DISTRIBUTION_LOGNORMAL]) == 0 &&
        parse_value(parts[1], unit, &read.mean) == 0 && read.mean > 0 &&
        parse_shape(parts[2], MAX_SIGMA, &read.shape)) {
        read.kind = DISTRIBUTION_LOGNORMAL;
        *out = read;
        return 0;
    }
    if (count == 4 && strcmp(parts[0], names[DISTRIBUTION_PARETO]) == 0 &&
        parse_shape(parts[1], MAX_ALPHA, &read.shape) &&
        parse_value(parts[2], unit, &read.least) == 0 &&
        parse_value(parts[3], unit, &read.most) == 0 && read.least > 0 && read.least <= read.most) {
        read.kind = DISTRIBUTION_PARETO;
        read.mean = (uint64_t)llround(distribution_mean(&read));
        *out = read;
        return 0;
    }
    return -EINVAL;
}

int distribution_read(const char *text, enum distribution_unit unit, struct distribution *out)
{
    char copy[DISTRIBUTION_TEXT_BYTES];
    char *parts[PARTS];
    size_t length = strlen(text);

    if (length >= sizeof(copy))
        return -EINVAL;
    list_problem[0] = '\0';
    if (strncmp(text, "list:", 5) == 0)
        return read_list(text + 5, unit, out);
    memcpy(copy, text, length + 1);
    return read_parts(parts, split(copy, parts), unit, out);
}

/* ---------------------------------------------------------------- writing */

/* In the largest unit that leaves a whole number. */
static const char *value_text(uint64_t value, enum distribution_unit unit, char *buffer,
                              size_t size)
{
    static const struct {
        uint64_t factor;
        const char *name;
    } units[2][5] = {
        {{3600000000000, "h"}, {1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}},
        {{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, ""}, {1, ""}},
    };

    if (value == 0)
        return "0";
    for (size_t i = 0; i < 5; i++) {
        uint64_t factor = units[unit][i].factor;

        if (value % factor == 0) {
            snprintf(buffer, size, "%" PRIu64 "%s", value / factor, units[unit][i].name);
            break;
        }
    }
    return buffer;
}

/* The shortest text that reads back as the same number. */
static const char *shape_text(double shape, char *buffer, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, size, "%.*g", digits, shape);
        if (strtod(buffer, NULL) == shape)
            break;
    }
    return buffer;
}

const char *distribution_format(const struct distribution *distribution,
                                enum distribution_unit unit, char *buffer)
{
    char first[32];
    char second[32];
    char shape[32];
    const char *name = names[distribution->kind];

    switch (distribution->kind) {
    case DISTRIBUTION_LOGNORMAL:
        snprintf(buffer, DISTRIBUTION_TEXT_BYTES, "%s:%s:%s", name,
                 value_text(distribution->mean, unit, first, sizeof(first)),
                 shape_text(distribution->shape, shape, sizeof(shape)));
        break;
    case DISTRIBUTION_PARETO:
        snprintf(buffer, DISTRIBUTION_TEXT_BYTES, "%s:%s:%s:%s", name,
                 shape_text(distribution->shape, shape, sizeof(shape)),
                 value_text(distribution->least, unit, first, sizeof(first)),
                 value_text(distribution->most, unit, second, sizeof(second)));
        break;
    case DISTRIBUTION_LIST:
        snprintf(buffer, DISTRIBUTION_TEXT_BYTES, "%s:%s", name, distribution->list_file);
        break;
    case DISTRIBUTION_FIXED:
        snprintf(buffer, DISTRIBUTION_TEXT_BYTES, "%s",
                 value_text(distribution->mean, unit, first, sizeof(first)));
        break;
    default:
        snprintf(buffer, DISTRIBUTION_TEXT_BYTES, "%s:%s", name,
                 value_text(distribution->mean, unit, first, sizeof(first)));
        break;
    }
    return buffer;
}
