/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts and paths in one normal form, and escaping for logs (http1_uri.h). Pure functions.
 */
#include "protocols/http/http1_uri.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "protocols/http/http1_internal.h"

static bool port_is_valid(const char *p, const char *end)
{
    unsigned port = 0;

    if (end - p > 5)
        return false;
    for (; p < end; p++) {
        if (!http1_char_is(*p, HTTP1_CHAR_DIGIT))
            return false;
        port = port * 10 + (unsigned)(*p - '0');
    }
    return port <= 65535;
}

/* The end of "[v6]" at p, NULL if it is not one. */
static const char *skip_ipv6(const char *p, const char *end)
{
    const char *close = memchr(p, ']', (size_t)(end - p));
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (!close || (size_t)(close - p - 1) >= sizeof(text))
        return NULL;
    memcpy(text, p + 1, (size_t)(close - p - 1));
    text[close - p - 1] = '\0';
    /* an embedded NUL would hide what follows it */
    if (strlen(text) != (size_t)(close - p - 1) || inet_pton(AF_INET6, text, &address) != 1)
        return NULL;
    return close + 1;
}

/* The end of the registered name or IPv4 address at p, NULL if it is empty or malformed. */
static const char *skip_name(const char *p, const char *end)
{
    const char *start = p;

    while (p < end) {
        if (http1_char_is(*p, HTTP1_CHAR_HOST)) {
            p++;
        } else if (*p == '%') {
            if (end - p < 3 || http1_hex_value(p[1]) < 0 || http1_hex_value(p[2]) < 0)
                return NULL;
            p += 3;
        } else {
            break;
        }
    }
    return p == start ? NULL : p;
}

bool http1_host_is_valid(struct http1_slice host)
{
    const char *end = host.ptr + host.len;

    if (host.len == 0 || host.len > HTTP1_MAX_HOST_BYTES)
        return false;
    const char *p = host.ptr[0] == '[' ? skip_ipv6(host.ptr, end) : skip_name(host.ptr, end);
    if (!p)
        return false;
    return p == end || (*p == ':' && port_is_valid(p + 1, end));
}

ssize_t http1_normalise_host(struct http1_slice host, struct http1_slice scheme, char *buf,
                             size_t room)
{
    const char *end = host.ptr + host.len;
    const char *colon = memrchr(host.ptr, ':', host.len);
    const char *bracket = memrchr(host.ptr, ']', host.len);

    if (colon && colon > bracket) {
        unsigned port = 0;
        for (const char *p = colon + 1; p < end; p++)
            port = port * 10 + (unsigned)(*p - '0');
        if (colon + 1 == end || (port == 80 && http1_slice_is(scheme, "http")) ||
            (port == 443 && http1_slice_is(scheme, "https")))
            end = colon;
    }
    size_t len = (size_t)(end - host.ptr);
    if (len > room)
        return -ENAMETOOLONG;
    for (size_t i = 0; i < len; i++)
        buf[i] = http1_lower(host.ptr[i]);
    return (ssize_t)len;
}

/* Copies with escapes in normal form: decoded where that changes nothing, else in upper case. */
static ssize_t normalise_escapes(struct http1_slice path, char *buf, size_t room)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        bool keep_escaped = false;

        if (c == '%') {
            if (path.len - i < 3)
                return -EINVAL;
            int high = http1_hex_value(path.ptr[i + 1]);
            int low = http1_hex_value(path.ptr[i + 2]);
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return -EINVAL;
            c = (char)(high << 4 | low);
            keep_escaped = !http1_char_is(c, HTTP1_CHAR_UNRESERVED);
            i += 2;
        }
        if (room - n < (keep_escaped ? 3U : 1U))
            return -ENAMETOOLONG;
        if (keep_escaped) {
            buf[n++] = '%';
            buf[n++] = hex[(uint8_t)c >> 4];
            buf[n++] = hex[(uint8_t)c & 15];
        } else {
            buf[n++] = c;
        }
    }
    return (ssize_t)n;
}

/* RFC 3986 §5.2.4, in place, on a path that begins with '/'. */
static size_t remove_dot_segments(char *buf, size_t len)
{
    size_t out = 0;
    size_t in = 0;

    while (in < len) {
        /* one segment with its leading slash: [in, next) */
        size_t next = in + 1;
        while (next < len && buf[next] != '/')
            next++;
        const size_t segment = next - in - 1;
        const bool dot = segment == 1 && buf[in + 1] == '.';
        const bool dots = segment == 2 && buf[in + 1] == '.' && buf[in + 2] == '.';

        if (dots)
            while (out > 0 && buf[--out] != '/')
                ;
        if (!dot && !dots) {
            memmove(buf + out, buf + in, next - in);
            out += next - in;
        } else if (next == len) {
            buf[out++] = '/';
        }
        in = next;
    }
    return out;
}

ssize_t http1_normalise_path(struct http1_slice path, char *buf, size_t room)
{
    if (room == 0)
        return -ENAMETOOLONG;
    if (path.len == 0) {
        buf[0] = '/';
        return 1;
    }
    ssize_t len = normalise_escapes(path, buf, room);
    if (len <= 0 || buf[0] != '/')
        return len;
    return (ssize_t)remove_dot_segments(buf, (size_t)len);
}

/* The escape of c in `out` (at most 6 bytes); returns its length. */
static size_t escape_byte(enum http1_escape style, char c, char *out)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t byte = (uint8_t)c;
    size_t n = 0;

    if (c == '"' || c == '\\') {
        out[n++] = '\\';
        out[n++] = c;
    } else if (byte >= 0x20 && byte <= 0x7e) {
        out[n++] = c;
    } else if (style == HTTP1_ESCAPE_LABEL) {
        if (c == '\n') {
            out[n++] = '\\';
            out[n++] = 'n';
        } else {
            out[n++] = '?';
        }
    } else {
        const char *prefix = style == HTTP1_ESCAPE_JSON ? "\\u00" : "\\x";
        while (*prefix)
            out[n++] = *prefix++;
        out[n++] = hex[byte >> 4];
        out[n++] = hex[byte & 15];
    }
    return n;
}

size_t http1_escape(enum http1_escape style, struct http1_slice text, char *buf, size_t room)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char escaped[6];
        size_t n = escape_byte(style, text.ptr[i], escaped);
        if (n > room - len)
            break;
        memcpy(buf + len, escaped, n);
        len += n;
    }
    return len;
}
