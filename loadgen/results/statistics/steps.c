/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a sweep. */
#include "loadgen/results/statistics/steps.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 6

/* A number at the text's start that is not negative, and where its unit begins. "1..2" is 1. */
static bool read_number(const char *text, double *out, const char **unit)
{
    size_t length = strspn(text, "0123456789");
    char number[32];

    if (text[length] == '.' && text[length + 1] != '.')
        length += 1 + strspn(text + length + 1, "0123456789");
    if (length == 0 || length >= sizeof(number) || text[0] == '.')
        return false;
    snprintf(number, sizeof(number), "%.*s", (int)length, text);
    *out = strtod(number, NULL);
    *unit = text + length;
    return true;
}

/* A value, its unit up to one of `ends`; the first unit is that of all. */
static const char *read_value(const char *text, const char *end, struct steps *out, double *value)
{
    const char *unit;

    if (!read_number(text, value, &unit) || unit > end)
        return NULL;
    size_t length = (size_t)(end - unit);

    if (length >= sizeof(out->unit))
        return NULL;
    if (out->count == 0 && !out->unit[0])
        snprintf(out->unit, sizeof(out->unit), "%.*s", (int)length, unit);
    else if (strlen(out->unit) != length || strncmp(out->unit, unit, length) != 0)
        return NULL;
    return end;
}

static int add(struct steps *out, double value)
{
    if (out->count > 0 && value <= out->values[out->count - 1])
        return -EINVAL;
    if (out->count == STEPS_MAX)
        return -EINVAL;
    out->values[out->count++] = value;
    return 0;
}

static int parse_list(const char *text, struct steps *out)
{
    for (;;) {
        const char *end = text + strcspn(text, ",");
        double value;

        if (!read_value(text, end, out, &value) || add(out, value) != 0)
            return -EINVAL;
        if (!*end)
            return 0;
        text = end + 1;
    }
}

static int parse_range(const char *text, const char *dots, struct steps *out)
{
    const char *colon = strchr(dots, ':');
    bool by_factor = colon && colon[1] == 'x';
    double first;
    double last;
    double number;
    const char *rest;

    if (!colon || !read_value(text, dots, out, &first))
        return -EINVAL;
    /* The first may leave its unit to the last. */
    if (!read_value(dots + 2, colon, out, &last) ||
        !read_number(colon + 1 + by_factor, &number, &rest) || *rest)
        return -EINVAL;
    if (number < 2 || number > STEPS_MAX || floor(number) < number || last <= first ||
        (by_factor && first <= 0))
        return -EINVAL;
    bool whole = floor(first) >= first && floor(last) >= last;

    for (size_t i = 0; i < (size_t)number; i++) {
        double part = (double)i / (number - 1);
        double value = by_factor ? first * pow(last / first, part) : first + (last - first) * part;

        value = i + 1 == (size_t)number ? last : value;
        value = whole ? round(value) : value;
        if (out->count == 0 || value > out->values[out->count - 1])
            add(out, value);
    }
    return 0;
}

int steps_parse(const char *text, struct steps *out)
{
    const char *equals = strchr(text, '=');

    memset(out, 0, sizeof(*out));
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof(out->name))
        return -EINVAL;
    memcpy(out->name, text, (size_t)(equals - text));
    const char *dots = strstr(equals + 1, "..");

    return dots ? parse_range(equals + 1, dots, out) : parse_list(equals + 1, out);
}

void steps_format(const struct steps *steps, size_t place, char *out, size_t size)
{
    double value = steps->values[place];

    if (floor(value) >= value && value < 1e15)
        snprintf(out, size, "%.0f%s", value, steps->unit);
    else
        snprintf(out, size, "%.*g%s", DIGITS, value, steps->unit);
}
