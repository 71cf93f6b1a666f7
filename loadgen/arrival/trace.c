/* SPDX-License-Identifier: Apache-2.0 */
/* Reading traces: lines, their first column, numbers; the form is told in the header. */
#include "loadgen/arrival/trace.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define SEPARATORS   " \t,;\r"
#define NUMBER_BYTES 64
#define DIRECTIVE    "spillload-trace:"
#define SHOWN_BYTES  40
#define READ_BYTES   (1U << 20)
#define MAX_TIME_NS  (1ULL << 62)

struct reader {
    struct trace *out;
    char *error;
    size_t line;
    size_t capacity;
    bool declared; /* the line that says what the numbers are was there */
    bool words;    /* a first line of words was skipped */
    double unit_ns;
};

/* "line 3: 'abc': expected a rate"; control characters of the text are shown as '?'. */
static int complain(const struct reader *reader, const char *text, size_t length,
                    const char *expected)
{
    char shown[SHOWN_BYTES + 1];
    size_t count = length < SHOWN_BYTES ? length : SHOWN_BYTES;

    for (size_t i = 0; i < count; i++)
        shown[i] = (char)(isprint((unsigned char)text[i]) ? text[i] : '?');
    shown[count] = '\0';
    snprintf(reader->error, TRACE_ERROR_BYTES, "line %zu: '%s%s': expected %s", reader->line, shown,
             length > SHOWN_BYTES ? "..." : "", expected);
    return -EINVAL;
}

/* ---------------------------------------------------------------- numbers */

/* A copy of the column as a string; false when it can't be a number. */
static bool copy_number(const char *text, size_t length, char number[NUMBER_BYTES])
{
    if (length == 0 || length >= NUMBER_BYTES)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    return strspn(number, "0123456789.eE+-") == length &&
           (isdigit((unsigned char)number[0]) || number[0] == '.');
}

static bool parse_rate(const char *text, size_t length, double *out)
{
    char number[NUMBER_BYTES];
    char *end;

    if (!copy_number(text, length, number))
        return false;
    *out = strtod(number, &end);
    return *end == '\0' && end != number && *out <= TRACE_MAX_RATE;
}

/* Digits are taken one by one: seconds since 1970 with nanoseconds do not fit a double. */
static bool parse_plain_time(const char *number, uint64_t unit_ns, uint64_t *out)
{
    unsigned __int128 whole = 0;
    uint64_t part = 0;
    uint64_t place_ns = unit_ns;
    const char *p = number;

    for (; isdigit((unsigned char)*p); p++) {
        whole = whole * 10 + (unsigned)(*p - '0');
        if (whole > MAX_TIME_NS)
            return false;
    }
    if (*p == '.') {
        for (p++; isdigit((unsigned char)*p); p++) {
            place_ns /= 10;
            part += (uint64_t)(*p - '0') * place_ns;
        }
    }
    whole = whole * unit_ns + part;
    *out = (uint64_t)whole;
    return *p == '\0' && whole <= MAX_TIME_NS && strcmp(number, ".") != 0;
}

static bool parse_time(const char *text, size_t length, double unit_ns, uint64_t *out)
{
    char number[NUMBER_BYTES];
    char *end;

    if (!copy_number(text, length, number))
        return false;
    if (!strpbrk(number, "eE"))
        return parse_plain_time(number, (uint64_t)unit_ns, out);
    double value_ns = strtod(number, &end) * unit_ns;

    if (*end != '\0' || end == number || !(value_ns <= (double)MAX_TIME_NS))
        return false;
    *out = (uint64_t)llround(value_ns);
    return true;
}

/* ---------------------------------------------------------------- lines */

static int room(struct reader *reader)
{
    struct trace *out = reader->out;

    if (out->count < reader->capacity)
        return 0;
    if (out->count == TRACE_MAX_ENTRIES) {
        snprintf(reader->error, TRACE_ERROR_BYTES,
                 "line %zu: more than %u entries; cut the trace into several", reader->line,
                 TRACE_MAX_ENTRIES);
        return -EINVAL;
    }
    reader->capacity = reader->capacity ? 2 * reader->capacity : 1024;
    if (out->times)
        out->times_ns = memory_grow(out->times_ns, reader->capacity * sizeof(*out->times_ns));
    else
        out->rates_per_s =
            memory_grow(out->rates_per_s, reader->capacity * sizeof(*out->rates_per_s));
    return 0;
}

static int take_number(struct reader *reader, const char *text, size_t length)
{
    struct trace *out = reader->out;
    int error = room(reader);

    if (error)
        return error;
    if (!out->times) {
        if (!parse_rate(text, length, &out->rates_per_s[out->count]))
            return complain(reader, text, length,
                            "a rate, requests per second from 0 to 1e9, as 12.5");
        out->count++;
        return 0;
    }
    uint64_t *time_ns = &out->times_ns[out->count];

    if (!parse_time(text, length, reader->unit_ns, time_ns))
        return complain(reader, text, length,
                        "the time of a request since the trace's start, as 12.5");
    if (out->count > 0 && *time_ns < time_ns[-1])
        return complain(reader, text, length,
                        "a time not before that of the entry above: sort the file");
    out->count++;
    return 0;
}

/* What follows "spillload-trace:"; the length is that of the rest of the line. */
static int take_directive(struct reader *reader, const char *text, size_t length)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"", 1e9}};
    struct trace *out = reader->out;
    char copy[NUMBER_BYTES] = "";
    char kind[16] = "";
    char value[32] = "";

    if (reader->declared || out->count > 0)
        return complain(reader, text, length, "this line once, and before the first number");
    reader->declared = true;
    if (length < sizeof(copy) && !memchr(text, '\0', length)) {
        char rest[2];

        memcpy(copy, text, length);
        copy[length] = '\0';
        if (sscanf(copy, "%15s %31s %1s", kind, value, rest) == 3)
            kind[0] = '\0';
    }
    if (strcmp(kind, "rates") == 0) {
        out->times = false;
        if (units_parse_duration_ns(value, &out->interval_ns) == 0 && out->interval_ns > 0)
            return 0;
    } else if (strcmp(kind, "times") == 0) {
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            if (strcmp(units[i].name, value) == 0) {
                reader->unit_ns = units[i].ns;
                return 0;
            }
        }
    }
    return complain(reader, text, length,
                    "'rates INTERVAL', as 'rates 1s', or 'times UNIT', as 'times ms'");
}

static int take_comment(struct reader *reader, const char *text, size_t length)
{
    while (length > 0 && (*text == '#' || *text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length < strlen(DIRECTIVE) || memcmp(text, DIRECTIVE, strlen(DIRECTIVE)) != 0)
        return 0;
    return take_directive(reader, text + strlen(DIRECTIVE), length - strlen(DIRECTIVE));
}

static int take_line(struct reader *reader, const char *text, size_t length)
{
    size_t column = 0;

    while (length > 0 && strchr(" \t\r", *text) && *text) {
        text++;
        length--;
    }
    if (length == 0)
        return 0;
    if (*text == '#')
        return take_comment(reader, text, length);
    while (column < length && (text[column] == '\0' || !strchr(SEPARATORS, text[column])))
        column++;
    if (!reader->words && reader->out->count == 0 &&
        (isalpha((unsigned char)*text) || *text == '"')) {
        reader->words = true;
        return 0;
    }
    return take_number(reader, text, column);
}

/* ---------------------------------------------------------------- the whole */

static int finish(struct reader *reader)
{
    struct trace *out = reader->out;

    if (out->times && out->count > 0) {
        uint64_t last_ns = out->times_ns[out->count - 1];
        uint64_t first_ns = out->times_ns[0];
        uint64_t gap_ns = out->count > 1 ? (last_ns - first_ns) / (out->count - 1) : 0;

        out->total = (double)out->count;
        out->length_ns = last_ns + (gap_ns > first_ns ? gap_ns - first_ns : 0);
        if (out->length_ns == last_ns)
            out->length_ns++;
        return 0;
    }
    for (size_t i = 0; i < out->count; i++)
        out->total += out->rates_per_s[i] * (double)out->interval_ns / 1e9;
    if (out->total <= 0) {
        snprintf(reader->error, TRACE_ERROR_BYTES, "no request in it: %s",
                 out->count ? "every rate is 0" : "it has no line with a number");
        return -EINVAL;
    }
    if ((double)out->count * (double)out->interval_ns > (double)MAX_TIME_NS) {
        snprintf(reader->error, TRACE_ERROR_BYTES,
                 "%zu intervals are longer than 146 years: shorten the interval", out->count);
        return -EINVAL;
    }
    out->length_ns = out->count * out->interval_ns;
    return 0;
}

int trace_parse(const char *text, size_t length, struct trace *out, char error[TRACE_ERROR_BYTES])
{
    struct reader reader = {.out = out, .error = error, .unit_ns = 1e9};
    const char *end = text + length;
    int result = 0;

    *out = (struct trace){.times = true};
    while (result == 0 && text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));

        if (!line_end)
            line_end = end;
        reader.line++;
        result = take_line(&reader, text, (size_t)(line_end - text));
        text = line_end < end ? line_end + 1 : end;
    }
    if (result == 0)
        result = finish(&reader);
    if (result)
        trace_fini(out);
    return result;
}

/* All of a file; NULL and errno when it can't be read. */
static char *read_all(const char *path, size_t *length)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t got;

    *length = 0;
    if (!file)
        return NULL;
    do {
        text = memory_grow(text, *length + READ_BYTES);
        got = fread(text + *length, 1, READ_BYTES, file);
        *length += got;
    } while (got == READ_BYTES);
    int error = ferror(file) ? errno : 0;

    (void)fclose(file);
    if (error) {
        free(text);
        errno = error;
        return NULL;
    }
    return text;
}

int trace_read(const char *path, struct trace *out, char error[TRACE_ERROR_BYTES])
{
    char why[TRACE_ERROR_BYTES];
    size_t length;

    *out = (struct trace){0};
    errno = 0;
    char *text = read_all(path, &length);

    if (!text) {
        int result = errno ? -errno : -EIO;

        snprintf(error, TRACE_ERROR_BYTES, "%.200s: %s", path, strerror(-result));
        return result;
    }
    int result = trace_parse(text, length, out, why);

    if (result)
        snprintf(error, TRACE_ERROR_BYTES, "%.200s: %.280s", path, why);
    free(text);
    return result;
}

void trace_fini(struct trace *trace)
{
    free(trace->times_ns);
    free(trace->rates_per_s);
    *trace = (struct trace){0};
}
