/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single values: texts of the file -> numbers, times, sizes, addresses, networks. Pure but for
 * config_address_resolve().
 *
 * Parsers return NULL when the text is right, else what is wrong with it in words that go after
 * "TEXT: " (static).
 */
#ifndef SPILLWAY_PROXY_CONFIG_VALUE_H
#define SPILLWAY_PROXY_CONFIG_VALUE_H

#include "proxy/config/config.h"

/* `30s`, `1.5ms`; units ns us ms s m h. At most nine digits after the point; rounded down to a
 * nanosecond. */
const char *config_parse_duration(const char *text, uint64_t *out_ns);
/* `8KiB`, `1.5GiB`, `512B`; units B, KiB MiB GiB TiB, and K M G T for the same powers of 1024. */
const char *config_parse_size(const char *text, uint64_t *out_bytes);
/* Decimal digits only. */
const char *config_parse_count(const char *text, uint64_t *out);
/* `100/s`: a whole number of something in a second. */
const char *config_parse_rate(const char *text, uint64_t *out_per_s);
/* `1..64`: whole numbers, the second not below the first. */
const char *config_parse_range(const char *text, uint64_t *out_min, uint64_t *out_max);
/* true yes on, false no off. */
const char *config_parse_bool(const char *text, bool *out);

/* Write a time or size with the largest unit that leaves it whole: 90s, 64KiB. Returns `buf`. */
const char *config_duration_text(uint64_t ns, char *buf, size_t size);
const char *config_size_text(uint64_t bytes, char *buf, size_t size);

/* An address taken apart. Host names are checked for their characters only. */
struct config_address_parts {
    char host[256]; /* without brackets; the path of a UNIX socket */
    char port[6];   /* decimal */
    bool is_unix, wildcard;
};
/* `bind`: `*` and port 0 are allowed. */
const char *config_parse_address(const char *text, bool bind, struct config_address_parts *out);
/*
 * Fill in address->endpoints (malloc'd) from address->text, which config_parse_address() accepts.
 * Numeric addresses and UNIX sockets need no lookup; with `lookup` false, names are left without
 * endpoints. Returns NULL or why the name could not be resolved.
 */
const char *config_address_resolve(struct config_address *address, bool bind, bool lookup);
/* True when every endpoint can be reached from this machine only. */
bool config_address_is_local(const struct config_address *address);
bool config_endpoint_equal(const struct config_endpoint *a, const struct config_endpoint *b);

/* Fill in the members of prefix from `text`; prefix->text is left alone. */
const char *config_parse_prefix(const char *text, struct config_prefix *prefix);

/* A token of HTTP: RFC 9110, section 5.6.2. */
bool config_is_token(const char *text);

/* The one of `count` words that `text` may be a slip of, or NULL. `word(context, i)` gives the
 * words. */
const char *config_suggest(const char *text, size_t count,
                           const char *(*word)(const void *context, size_t index),
                           const void *context);

#endif
