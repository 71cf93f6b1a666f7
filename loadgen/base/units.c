/* SPDX-License-Identifier: Apache-2.0 */
/* Values with units: text to numbers and back. */
#include "loadgen/base/units.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit duration_units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {NULL, 0},
};

static const struct unit size_units[] = {
    {"", 1},          {"B", 1},          {"K", 1024},         {"KiB", 1024}, {"M", 1048576},
    {"MiB", 1048576}, {"G", 1073741824}, {"GiB", 1073741824}, {NULL, 0},
};

static const struct unit rate_units[] = {
    {"", 1}, {"/s", 1}, {"/m", 1.0 / 60}, {"/h", 1.0 / 3600}, {NULL, 0},
};

/* A decimal number (no sign, no exponent, no hexadecimal) followed by one of the units. */
static int parse_with_unit(const char *text, const struct unit *units, double *out)
{
    size_t digits = strspn(text, "0123456789.");
    char number[32];
    char *end;

    if (digits == 0 || digits >= sizeof(number) || !isdigit((unsigned char)text[0]))
        return -EINVAL;
    memcpy(number, text, digits);
    number[digits] = '\0';
    double value = strtod(number, &end);

    if (*end != '\0')
        return -EINVAL;
    for (; units->name; units++) {
        if (strcmp(units->name, text + digits) == 0) {
            *out = value * units->factor;
            return 0;
        }
    }
    return -EINVAL;
}

static int parse_whole(const char *text, const struct unit *units, uint64_t *out)
{
    double value;
    int error = parse_with_unit(text, units, &value);

    if (error)
        return error;
    if (value > 9e18)
        return -ERANGE;
    *out = (uint64_t)llround(value);
    return 0;
}

int units_parse_duration_ns(const char *text, uint64_t *out)
{
    if (strcmp(text, "0") == 0) {
        *out = 0;
        return 0;
    }
    return parse_whole(text, duration_units, out);
}

int units_parse_bytes(const char *text, uint64_t *out)
{
    return parse_whole(text, size_units, out);
}

int units_parse_rate_per_s(const char *text, double *out)
{
    double value;
    int error = parse_with_unit(text, rate_units, &value);

    if (error)
        return error;
    if (value <= 0)
        return -ERANGE;
    *out = value;
    return 0;
}

int units_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);

    if (*end != '\0')
        return -EINVAL;
    if (errno || value < least || value > most)
        return -ERANGE;
    *out = value;
    return 0;
}

int units_parse_address(const char *text, struct units_address *out)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    uint64_t port;

    if (!colon || units_parse_count(colon + 1, 0, 65535, &port) != 0)
        return -EINVAL;
    size_t length = (size_t)(colon - text);

    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return -EINVAL;
    }
    if (length == 0 || length >= sizeof(host))
        return -EINVAL;
    memcpy(host, text, length);
    host[length] = '\0';

    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;

    if (getaddrinfo(strcmp(host, "*") == 0 ? "0.0.0.0" : host, colon + 1, &hints, &found) != 0)
        return -ENOENT;
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

const char *units_format_address(const struct sockaddr *address, char *buffer)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address;

        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
        snprintf(buffer, UNITS_ADDRESS_TEXT, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in = (const void *)address;

        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
        snprintf(buffer, UNITS_ADDRESS_TEXT, "%s:%u", host, ntohs(in->sin_port));
    }
    return buffer;
}

const char *units_format_ns(double value_ns, char *buffer, size_t size)
{
    static const struct unit steps[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const struct unit *step = value_ns < 999500    ? &steps[0]
                              : value_ns < 999.5e6 ? &steps[1]
                                                   : &steps[2];
    double scaled = value_ns / step->factor;

    snprintf(buffer, size, "%.*f%s",
             scaled < 9.995   ? 2
             : scaled < 99.95 ? 1
                              : 0,
             scaled, step->name);
    return buffer;
}
