/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of values that keys share. */
#include "loadgen/client/keys/keys.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RATE_PER_S 1e8 /* gaps that the clock's nanoseconds can still tell apart */

int key_complain(char error[FLOW_ERROR_BYTES], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error, FLOW_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

int key_exclude(const struct flow_spec *spec, const char *a, const char *b, const char *why,
                char error[FLOW_ERROR_BYTES])
{
    if (!flow_spec_given(spec, a) || !flow_spec_given(spec, b))
        return 0;
    return key_complain(error, "%s and %s: %s", a, b, why);
}

bool key_text(char *to, size_t size, const char *value)
{
    size_t length = strlen(value);

    if (length == 0 || length >= size)
        return false;
    for (const char *p = value; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    }
    memcpy(to, value, length + 1);
    return true;
}

bool key_count(const char *value, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t number;

    if (units_parse_count(value, least, most, &number) != 0)
        return false;
    *out = (uint32_t)number;
    return true;
}

bool key_number(const char *value, double least, double most, double *out)
{
    size_t length = strspn(value, "0123456789.");
    char *end;

    if (length == 0 || length > 30 || value[length] != '\0' || value[0] == '.')
        return false;
    double number = strtod(value, &end);

    if (*end != '\0' || number < least || number > most)
        return false;
    *out = number;
    return true;
}

bool key_fraction(const char *value, double *out)
{
    size_t length = strlen(value);
    char number[32];

    if (length == 0 || length >= sizeof(number))
        return false;
    memcpy(number, value, length + 1);
    bool percent = number[length - 1] == '%';

    if (percent)
        number[length - 1] = '\0';
    if (!key_number(number, 0, percent ? 100 : 1, out) || *out <= 0)
        return false;
    *out /= percent ? 100 : 1;
    return true;
}

bool key_rate(const char *value, double least_per_s, double *out)
{
    if (least_per_s <= 0 && (strcmp(value, "0") == 0 || strcmp(value, "0/s") == 0)) {
        *out = 0;
        return true;
    }
    return units_parse_rate_per_s(value, out) == 0 && *out >= least_per_s && *out <= MAX_RATE_PER_S;
}

bool key_time(const char *value, uint64_t least_ns, uint64_t *out)
{
    return units_parse_duration_ns(value, out) == 0 && *out >= least_ns;
}

bool key_flag(const char *value, bool *out)
{
    *out = strcmp(value, "yes") == 0 || strcmp(value, "true") == 0;
    return *out || strcmp(value, "no") == 0 || strcmp(value, "false") == 0;
}

bool key_distribution(const struct flow_spec *spec, const char *value, enum distribution_unit unit,
                      struct distribution *out)
{
    if (spec->offline && strncmp(value, "list:", 5) == 0 && value[5] != '\0') {
        *out = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = 1};
        return true;
    }
    return distribution_read(value, unit, out) == 0;
}

bool key_split(const char *value, char *left, size_t size, const char **right)
{
    const char *colon = strchr(value, ':');

    if (!colon || (size_t)(colon - value) >= size)
        return false;
    memcpy(left, value, (size_t)(colon - value));
    left[colon - value] = '\0';
    *right = colon + 1;
    return true;
}

bool key_word(const char **text, char *word, size_t size)
{
    static const char blanks[] = " \t";
    const char *start = *text + strspn(*text, blanks);
    size_t length = strcspn(start, blanks);

    if (length == 0 || length >= size)
        return false;
    memcpy(word, start, length);
    word[length] = '\0';
    *text = start + length;
    return true;
}
