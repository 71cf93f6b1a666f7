/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values with units, as they are written on a command line, and how they are printed again.
 *
 * Every parser takes the whole string: 0 and the value, or -EINVAL (not in this form) or -ERANGE
 * (does not fit). `out` is untouched on errors.
 */
#ifndef LOADGEN_BASE_UNITS_H
#define LOADGEN_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* "250us", "1.5ms", "10s", "2m", "1h"; a bare "0" needs no unit. */
int units_parse_duration_ns(const char *text, uint64_t *out);

/* "4096", "4KiB", "1MiB", "2GiB"; K, M and G mean the same powers of 1024. A trailing B is allowed.
 */
int units_parse_bytes(const char *text, uint64_t *out);

/* "120/s", "30/m", "5/h"; a bare number is per second. Positive. */
int units_parse_rate_per_s(const char *text, double *out);

/* A whole number in [least, most]; -ERANGE outside. */
int units_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out);

struct units_address {
    struct sockaddr_storage address;
    socklen_t length;
};

/*
 * "127.0.0.1:80", "[::1]:80", "*:80" (every IPv4 address), "name:80". Names are looked up, which
 * may block: only at start. -ENOENT when the name does not resolve.
 */
int units_parse_address(const char *text, struct units_address *out);

/* Longest text units_format_address() writes, with its final NUL. */
#define UNITS_ADDRESS_TEXT 64

/* "127.0.0.1:80" or "[::1]:80" into a buffer of UNITS_ADDRESS_TEXT; returns it. */
const char *units_format_address(const struct sockaddr *address, char *buffer);

/* "850us", "12.3ms", "1.20s" into a buffer; returns it. */
const char *units_format_ns(double value_ns, char *buffer, size_t size);

#endif
