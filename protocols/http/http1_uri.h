/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names made comparable: hosts and paths in one normal form for routing and classification, and
 * peers' text made harmless for logs and metrics.
 *
 * Requests are routed and matched on these forms, but forwarded with the target as received.
 * All functions write into the caller's buffer, without a NUL, and return the number of bytes or a
 * negative errno: -EINVAL when the input is malformed (answer 400), -ENAMETOOLONG when it does not
 * fit (answer 414).
 */
#ifndef SPILLWAY_PROTOCOLS_HTTP_HTTP1_URI_H
#define SPILLWAY_PROTOCOLS_HTTP_HTTP1_URI_H

#include <sys/types.h>

#include "protocols/http/http1.h"

/* Longest host with port that http1_host_is_valid lets pass. */
#define HTTP1_MAX_HOST_BYTES 255

/*
 * Whether this is host[:port] (RFC 3986 §3.2.2): a registered name without comma, an IPv4 address
 * or an IPv6 address in brackets; the port digits, at most 65535, possibly none. Not empty.
 */
bool http1_host_is_valid(struct http1_slice host);

/*
 * Lower case, without an empty port or the scheme's default one ("http": 80, "https": 443).
 * `host` must be valid (http1_head.host is).
 */
ssize_t http1_normalise_host(struct http1_slice host, struct http1_slice scheme, char *buf,
                             size_t room);

/*
 * RFC 3986 §6.2.2: escapes of unreserved characters decoded, other escapes in upper case, then
 * dot segments resolved. Consecutive slashes stay: they name something else. An empty path is
 * "/", "*" stays. Malformed escapes and %00 are -EINVAL.
 */
ssize_t http1_normalise_path(struct http1_slice path, char *buf, size_t room);

enum http1_escape {
    HTTP1_ESCAPE_TEXT,  /* within double quotes in a log line: \" \\ \xHH */
    HTTP1_ESCAPE_JSON,  /* within a JSON string: \" \\ \u00HH (a byte above 0x7e as Latin-1) */
    HTTP1_ESCAPE_LABEL, /* within a Prometheus label value: \" \\ \n, '?' for other bytes */
};

/*
 * Escapes what could end a quoted string, a line or a terminal's patience: quote, backslash,
 * control characters, bytes above 0x7e. Writes what fits, never half an escape; returns the
 * number of bytes written. Cannot fail.
 */
size_t http1_escape(enum http1_escape style, struct http1_slice text, char *buf, size_t room);

#endif
