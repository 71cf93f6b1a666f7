/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields the proxy knows: from name to id in one table look-up, and what each is subject to.
 *
 * The look-up hashes a name's length, first and last letter. The compiler proves that no two known
 * names collide: a second initialiser for one slot is a warning, hence an error.
 */
#include "protocols/http/http1_internal.h"

#include <string.h>

struct field_info {
    const char *name; /* lower case */
    uint8_t len;
    uint8_t flags;
    bool not_in_trailer;
};

#define HOP       HTTP1_FLAG_HOP
#define REWRITTEN HTTP1_FLAG_REWRITTEN
#define ORIGIN    HTTP1_FLAG_ORIGIN

/* X(id, name, first, last, flags, forbidden in trailers) */
#define FIELDS(X)                                                                                  \
    X(AGE, "age", 'a', 'e', 0, true)                                                               \
    X(AUTHORIZATION, "authorization", 'a', 'n', 0, true)                                           \
    X(CACHE_CONTROL, "cache-control", 'c', 'l', 0, true)                                           \
    X(CONNECTION, "connection", 'c', 'n', HOP, true)                                               \
    X(CONTENT_ENCODING, "content-encoding", 'c', 'g', 0, true)                                     \
    X(CONTENT_LENGTH, "content-length", 'c', 'h', REWRITTEN, true)                                 \
    X(CONTENT_RANGE, "content-range", 'c', 'e', 0, true)                                           \
    X(CONTENT_TYPE, "content-type", 'c', 'e', 0, true)                                             \
    X(COOKIE, "cookie", 'c', 'e', 0, true)                                                         \
    X(DATE, "date", 'd', 'e', 0, true)                                                             \
    X(EXPECT, "expect", 'e', 't', 0, true)                                                         \
    X(EXPIRES, "expires", 'e', 's', 0, true)                                                       \
    X(FORWARDED, "forwarded", 'f', 'd', ORIGIN, true)                                              \
    X(HOST, "host", 'h', 't', REWRITTEN, true)                                                     \
    X(HTTP2_SETTINGS, "http2-settings", 'h', 's', HOP, true)                                       \
    X(KEEP_ALIVE, "keep-alive", 'k', 'e', HOP, true)                                               \
    X(LOCATION, "location", 'l', 'n', 0, true)                                                     \
    X(MAX_FORWARDS, "max-forwards", 'm', 's', 0, true)                                             \
    X(PROXY_AUTHENTICATE, "proxy-authenticate", 'p', 'e', HOP, true)                               \
    X(PROXY_AUTHORIZATION, "proxy-authorization", 'p', 'n', HOP, true)                             \
    X(PROXY_CONNECTION, "proxy-connection", 'p', 'n', HOP, true)                                   \
    X(RANGE, "range", 'r', 'e', 0, true)                                                           \
    X(RETRY_AFTER, "retry-after", 'r', 'r', 0, true)                                               \
    X(SERVER, "server", 's', 'r', 0, false)                                                        \
    X(SET_COOKIE, "set-cookie", 's', 'e', 0, true)                                                 \
    X(SPILLWAY_MARK, "spillway-mark", 's', 'k', HOP, true)                                         \
    X(TE, "te", 't', 'e', HOP, true)                                                               \
    X(TRACEPARENT, "traceparent", 't', 't', 0, true)                                               \
    X(TRAILER, "trailer", 't', 'r', HOP, true)                                                     \
    X(TRANSFER_ENCODING, "transfer-encoding", 't', 'g', HOP, true)                                 \
    X(UPGRADE, "upgrade", 'u', 'e', HOP, true)                                                     \
    X(USER_AGENT, "user-agent", 'u', 't', 0, false)                                                \
    X(VARY, "vary", 'v', 'y', 0, true)                                                             \
    X(VIA, "via", 'v', 'a', REWRITTEN, true)                                                       \
    X(WWW_AUTHENTICATE, "www-authenticate", 'w', 'e', 0, true)                                     \
    X(X_FORWARDED_FOR, "x-forwarded-for", 'x', 'r', ORIGIN, true)                                  \
    X(X_FORWARDED_HOST, "x-forwarded-host", 'x', 't', ORIGIN, true)                                \
    X(X_FORWARDED_PROTO, "x-forwarded-proto", 'x', 'o', ORIGIN, true)

#define INFO(id, text, first, last, flag_bits, forbidden)                                          \
    [HTTP1_FIELD_##id] = {text, sizeof(text) - 1, (flag_bits), (forbidden)},
static const struct field_info field_info[HTTP1_FIELD_COUNT] = {FIELDS(INFO)};

enum { SLOTS = 128 };
#define SLOT(len, first, last) (((len) + (first)*6 + (last)*55) & (SLOTS - 1))
#define SLOT_OF(id, text, first, last, flags, forbidden)                                           \
    [SLOT(sizeof(text) - 1, first, last)] = HTTP1_FIELD_##id,
static const uint8_t field_slots[SLOTS] = {FIELDS(SLOT_OF)};

/*
 * `lower` holds letters, digits and '-' only. Setting bit 5 maps no other token character onto
 * one of those, so it may stand for lower-casing.
 */
static bool token_is(const char *token, const char *lower, size_t len)
{
    const uint64_t to_lower = 0x2020202020202020U;
    uint64_t a;
    uint64_t b;

    if (len < 8) {
        for (size_t i = 0; i < len; i++)
            if ((token[i] | 0x20) != lower[i])
                return false;
        return true;
    }
    for (size_t i = 0; i + 8 < len; i += 8) {
        memcpy(&a, token + i, 8);
        memcpy(&b, lower + i, 8);
        if ((a | to_lower) != b)
            return false;
    }
    memcpy(&a, token + len - 8, 8);
    memcpy(&b, lower + len - 8, 8);
    return (a | to_lower) == b;
}

enum http1_field_id http1_field_lookup(struct http1_slice name)
{
    unsigned first = (uint8_t)(name.ptr[0] | 0x20);
    unsigned last = (uint8_t)(name.ptr[name.len - 1] | 0x20);
    unsigned id = field_slots[SLOT(name.len, first, last)];
    const struct field_info *info = &field_info[id];

    if (info->len == name.len && token_is(name.ptr, info->name, name.len))
        return (enum http1_field_id)id;
    return HTTP1_FIELD_OTHER;
}

/*
 * Also the spelling with '_': gateways that turn names into variables (CGI, WSGI) cannot tell
 * the two apart, so a client could forge one by the other.
 */
static bool has_forwarded_prefix(struct http1_slice name)
{
    static const char prefix[] = "x-forwarded-";

    if (name.len < sizeof(prefix) - 1 || (name.ptr[0] | 0x20) != 'x')
        return false;
    for (size_t i = 0; i < sizeof(prefix) - 1; i++) {
        char c = name.ptr[i] == '_' ? '-' : http1_lower(name.ptr[i]);
        if (c != prefix[i])
            return false;
    }
    return true;
}

uint8_t http1_field_flags(enum http1_field_id id, struct http1_slice name)
{
    if (id != HTTP1_FIELD_OTHER)
        return field_info[id].flags;
    return has_forwarded_prefix(name) ? HTTP1_FLAG_ORIGIN : 0;
}

bool http1_field_forbidden_in_trailer(enum http1_field_id id, struct http1_slice name)
{
    if (id != HTTP1_FIELD_OTHER)
        return field_info[id].not_in_trailer;
    /* If-Match and its kin change what the request means */
    if (name.len > 3 && token_is(name.ptr, "if-", 3))
        return true;
    return has_forwarded_prefix(name);
}
