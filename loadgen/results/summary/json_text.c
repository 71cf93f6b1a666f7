/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings of any bytes, and JSON in lines. */
#include "loadgen/results/summary/json_text.h"

#include <stdbool.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"

/* Nanoseconds are exact up to eleven days, in milliseconds too. */
#define DIGITS 15
#define INDENT 2

json_t *json_text(const char *text)
{
    json_t *string = json_string(text);

    if (string)
        return string;
    char *plain = memory_string(text);

    for (char *c = plain; *c; c++) {
        if ((unsigned char)*c > 127)
            *c = '?';
    }
    string = json_string(plain);
    free(plain);
    return string;
}

static void write_plain(FILE *out, const json_t *value)
{
    json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS));
}

static void new_line(FILE *out, int depth)
{
    fprintf(out, "\n%*s", depth * INDENT, "");
}

static bool is_plain(const json_t *array)
{
    size_t place;
    json_t *item;

    json_array_foreach(array, place, item)
    {
        if (json_is_array(item) || json_is_object(item))
            return false;
    }
    return true;
}

/* As deep as the value is: the callers' own make, of a known depth. */
static void write_value(FILE *out, json_t *value, int depth)
{
    const char *between = "";

    if (json_is_object(value) && json_object_size(value) > 0) {
        const char *key;
        json_t *item;

        fputc('{', out);
        json_object_foreach(value, key, item)
        {
            json_t *name = json_text(key);

            fputs(between, out);
            new_line(out, depth + 1);
            write_plain(out, name);
            fputs(": ", out);
            write_value(out, item, depth + 1);
            json_decref(name);
            between = ",";
        }
        new_line(out, depth);
        fputc('}', out);
    } else if (json_is_array(value) && !is_plain(value)) {
        size_t place;
        json_t *item;

        fputc('[', out);
        json_array_foreach(value, place, item)
        {
            fputs(between, out);
            new_line(out, depth + 1);
            write_value(out, item, depth + 1);
            between = ",";
        }
        new_line(out, depth);
        fputc(']', out);
    } else {
        write_plain(out, value);
    }
}

void json_text_write(FILE *out, json_t *value)
{
    write_value(out, value, 0);
    fputc('\n', out);
}
