/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, switches, and the guess at what a misspelt word was meant to be. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "proxy/config/config_value.h"

struct unit {
    const char *name;
    uint64_t scale;
};

static const struct unit duration_units[] = {
    {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
    {"ms", 1000000},      {"us", 1000},       {"ns", 1},
};

static const struct unit size_units[] = {
    {"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1},
    {"T", 1ull << 40},   {"G", 1ull << 30},   {"M", 1ull << 20},   {"K", 1ull << 10},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

const char *config_parse_count(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (*text == '\0') {
        return "is empty";
    }
    for (; *text != '\0'; text++) {
        if (!isdigit((unsigned char)*text)) {
            return "is not a whole number";
        }
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            return "is too large";
        }
    }
    *out = value;
    return NULL;
}

const char *config_parse_rate(const char *text, uint64_t *out_per_s)
{
    const size_t digits = strspn(text, "0123456789");
    char number[24];

    if (digits == 0) {
        return "does not begin with a whole number";
    }
    if (strcmp(text + digits, "/s") != 0) {
        return "is not a number with /s behind it";
    }
    if (digits >= sizeof(number)) {
        return "is too large";
    }
    memcpy(number, text, digits);
    number[digits] = '\0';
    return config_parse_count(number, out_per_s);
}

const char *config_parse_range(const char *text, uint64_t *out_min, uint64_t *out_max)
{
    const char *dots = strstr(text, "..");
    char first[24];
    const char *wrong;

    if (dots == NULL || (size_t)(dots - text) >= sizeof(first)) {
        return "is not two numbers with .. between them";
    }
    memcpy(first, text, (size_t)(dots - text));
    first[dots - text] = '\0';
    wrong = config_parse_count(first, out_min);
    if (wrong == NULL) {
        wrong = config_parse_count(dots + 2, out_max);
    }
    return wrong == NULL && *out_min > *out_max ? "ends before it begins" : wrong;
}

/* The fraction is kept as a numerator over a power of ten, so that no floating point rounds a
 * limit. */
static const char *parse_scaled(const char *text, const struct unit *units, size_t count,
                                const char *no_unit, uint64_t *out)
{
    uint64_t whole = 0, fraction = 0, power = 1;
    const char *at = text;

    for (; isdigit((unsigned char)*at); at++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole)) {
            return "is too large";
        }
    }
    if (at == text) {
        return "does not begin with a number";
    }
    if (*at == '.') {
        const char *point = at++;

        for (; isdigit((unsigned char)*at); at++) {
            if (power == 1000000000) {
                return "has more than nine digits after the point";
            }
            fraction = 10 * fraction + (uint64_t)(*at - '0');
            power *= 10;
        }
        if (at == point + 1) {
            return "has no digit after the point";
        }
    }
    if (*at == '\0') {
        return no_unit;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(at, units[i].name) == 0) {
            uint64_t part = (uint64_t)((unsigned __int128)fraction * units[i].scale / power);

            if (__builtin_mul_overflow(whole, units[i].scale, out) ||
                __builtin_add_overflow(*out, part, out)) {
                return "is too large";
            }
            return NULL;
        }
    }
    return "has an unknown unit";
}

const char *config_parse_duration(const char *text, uint64_t *out_ns)
{
    return parse_scaled(text, duration_units, COUNT_OF(duration_units), "has no unit of time",
                        out_ns);
}

const char *config_parse_size(const char *text, uint64_t *out_bytes)
{
    return parse_scaled(text, size_units, COUNT_OF(size_units), "has no unit of size", out_bytes);
}

const char *config_parse_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};

    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return NULL;
        }
    }
    return "is neither true nor false";
}

static const char *scaled_text(uint64_t value, const struct unit *units, size_t count,
                               const char *zero, char *buf, size_t size)
{
    snprintf(buf, size, "%s", zero);
    for (size_t i = 0; i < count && value > 0; i++) {
        if (value % units[i].scale == 0) {
            snprintf(buf, size, "%llu%s", (unsigned long long)(value / units[i].scale),
                     units[i].name);
            break;
        }
    }
    return buf;
}

const char *config_duration_text(uint64_t ns, char *buf, size_t size)
{
    return scaled_text(ns, duration_units, COUNT_OF(duration_units), "0s", buf, size);
}

const char *config_size_text(uint64_t bytes, char *buf, size_t size)
{
    return scaled_text(bytes, size_units, COUNT_OF(size_units), "0B", buf, size);
}

bool config_is_token(const char *text)
{
    const char *at = text;

    while (isalnum((unsigned char)*at) || (*at != '\0' && strchr("!#$%&'*+-.^_`|~", *at) != NULL)) {
        at++;
    }
    return at > text && *at == '\0';
}

/* ------------------------------------------------------------------ guessing */

#define WORD_MAX 32

static char fold(char c)
{
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

/* Edits (insert, delete, change, swap of neighbours) from a to b, both shorter than WORD_MAX. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned rows[3][WORD_MAX + 1];
    const size_t len_a = strlen(a), len_b = strlen(b);
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= len_b; j++) {
        before[j] = last[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= len_a; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= len_b; j++) {
            const bool same = fold(a[i - 1]) == fold(b[j - 1]);
            unsigned best = last[j - 1] + !same;

            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]) && before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            row[j] = best;
        }
        unsigned *oldest = before;

        before = last;
        last = row;
        row = oldest;
    }
    return last[len_b];
}

const char *config_suggest(const char *text, size_t count,
                           const char *(*word)(const void *context, size_t index),
                           const void *context)
{
    const char *best = NULL;
    unsigned best_distance = 0;
    const size_t length = strlen(text);

    if (length == 0 || length >= WORD_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const char *candidate = word(context, i);

        if (candidate == NULL || strlen(candidate) >= WORD_MAX) {
            continue;
        }
        unsigned distance = edit_distance(text, candidate);

        /* One slip in a short word, a quarter of the letters in a long one; of two, the one of this
         * length. */
        if (distance <= 1 + length / 4 && distance < length &&
            (best == NULL || distance < best_distance ||
             (distance == best_distance && strlen(candidate) == length))) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}
