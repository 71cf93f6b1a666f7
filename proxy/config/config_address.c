/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and networks. Everything is kept as socket addresses; networks in the 16 bytes of IPv6,
 * IPv4 in its v4-mapped form, so that one comparison serves both.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "proxy/config/config_tree.h"
#include "proxy/config/config_value.h"

/* ------------------------------------------------------------------ addresses */

static const char *parse_unix(const char *path, struct config_address_parts *out)
{
    const size_t room = sizeof(((struct sockaddr_un *)NULL)->sun_path);

    if (path[0] != '/' && path[0] != '.') {
        return "is a UNIX socket without a path (unix:/path or unix:./path)";
    }
    if (strlen(path) >= room) {
        return "is a UNIX socket with a path longer than 107 bytes";
    }
    out->is_unix = true;
    memcpy(out->host, path, strlen(path) + 1);
    return NULL;
}

static const char *parse_port(const char *text, bool bind, struct config_address_parts *out)
{
    uint64_t port;

    if (text[0] == '\0' || config_parse_count(text, &port) != NULL) {
        return "has a port that is not a number";
    }
    if (port > 65535) {
        return "has a port above 65535";
    }
    if (port == 0 && !bind) {
        return "has port 0, which nothing can connect to";
    }
    snprintf(out->port, sizeof(out->port), "%u", (unsigned)port);
    return NULL;
}

static const char *check_host(const char *host)
{
    bool numeric = true;

    for (const char *at = host; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr("-._", *at) == NULL) {
            return "has a host with characters that host names don't have";
        }
        numeric = numeric && (isdigit((unsigned char)*at) || *at == '.');
    }
    struct in_addr addr;

    /* Otherwise the resolver would take 10.1 for 10.0.0.1, and 1.2.3.400 for a name. */
    if (numeric && inet_pton(AF_INET, host, &addr) != 1) {
        return "has a host that is not a valid IPv4 address";
    }
    return NULL;
}

const char *config_parse_address(const char *text, bool bind, struct config_address_parts *out)
{
    const char *colon, *host = text;
    size_t length;

    *out = (struct config_address_parts){0};
    if (strncmp(text, "unix:", 5) == 0) {
        return parse_unix(text + 5, out);
    }
    if (strstr(text, "://") != NULL) {
        return "is a URL, not HOST:PORT";
    }
    colon = strrchr(text, ':');
    if (text[0] == '[') {
        const char *close = strchr(text, ']');

        if (close == NULL) {
            return "has `[` without `]`";
        }
        if (close[1] != ':') {
            return "has no port";
        }
        host = text + 1;
        length = (size_t)(close - host);
        colon = close + 1;
    } else if (colon == NULL) {
        return "has no port";
    } else {
        length = (size_t)(colon - text);
        if (memchr(text, ':', length) != NULL) {
            return "is an IPv6 address without brackets ([ADDRESS]:PORT)";
        }
    }
    if (length == 0) {
        return bind ? "has no host (* for all addresses)" : "has no host";
    }
    if (length >= sizeof(out->host)) {
        return "has a host longer than 255 bytes";
    }
    memcpy(out->host, host, length);
    const char *wrong = parse_port(colon + 1, bind, out);

    if (wrong != NULL) {
        return wrong;
    }
    if (text[0] == '[') {
        struct in6_addr addr;

        return inet_pton(AF_INET6, out->host, &addr) == 1
                   ? NULL
                   : "has no valid IPv6 address in its brackets";
    }
    out->wildcard = strcmp(out->host, "*") == 0;
    if (out->wildcard) {
        return bind ? NULL : "is `*`, which nothing can connect to";
    }
    return check_host(out->host);
}

static void add_endpoint(struct config_address *address, const struct sockaddr *addr, socklen_t len)
{
    struct config_endpoint endpoint = {.len = len};

    memcpy(&endpoint.addr, addr, len);
    for (size_t i = 0; i < address->endpoint_count; i++) {
        if (config_endpoint_equal(&address->endpoints[i], &endpoint)) {
            return;
        }
    }
    struct config_endpoint *endpoints =
        config_must(realloc(address->endpoints, (address->endpoint_count + 1) * sizeof(endpoint)));

    address->endpoints = endpoints;
    endpoints[address->endpoint_count++] = endpoint;
}

static const char *look_up(struct config_address *address, const struct config_address_parts *parts,
                           int flags)
{
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV | flags,
    };
    int error = getaddrinfo(parts->host, parts->port, &hints, &list);

    if (error != 0) {
        return error == EAI_SYSTEM ? "the resolver failed" : gai_strerror(error);
    }
    for (const struct addrinfo *one = list; one != NULL; one = one->ai_next) {
        if (one->ai_family == AF_INET || one->ai_family == AF_INET6) {
            add_endpoint(address, one->ai_addr, one->ai_addrlen);
        }
    }
    freeaddrinfo(list);
    return address->endpoint_count > 0 ? NULL : "the name has no IPv4 or IPv6 address";
}

static void add_wildcards(struct config_address *address, const char *port_text)
{
    uint64_t port = 0;

    (void)config_parse_count(port_text, &port);
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

    add_endpoint(address, (struct sockaddr *)&v4, sizeof(v4));
    add_endpoint(address, (struct sockaddr *)&v6, sizeof(v6));
}

const char *config_address_resolve(struct config_address *address, bool bind, bool lookup)
{
    struct config_address_parts parts;
    const char *wrong = config_parse_address(address->text, bind, &parts);

    if (wrong != NULL) {
        return wrong;
    }
    address->wildcard = parts.wildcard;
    if (parts.is_unix) {
        struct sockaddr_un path = {.sun_family = AF_UNIX};

        memcpy(path.sun_path, parts.host, strlen(parts.host) + 1);
        add_endpoint(address, (struct sockaddr *)&path,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(parts.host) + 1));
        return NULL;
    }
    if (parts.wildcard) {
        add_wildcards(address, parts.port);
        return NULL;
    }
    if (look_up(address, &parts, AI_NUMERICHOST) == NULL) {
        return NULL;
    }
    return lookup ? look_up(address, &parts, 0) : NULL;
}

bool config_endpoint_equal(const struct config_endpoint *a, const struct config_endpoint *b)
{
    if (a->addr.ss_family != b->addr.ss_family) {
        return false;
    }
    if (a->addr.ss_family == AF_INET) {
        const struct sockaddr_in *x = (const void *)&a->addr, *y = (const void *)&b->addr;

        return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
    }
    if (a->addr.ss_family == AF_INET6) {
        const struct sockaddr_in6 *x = (const void *)&a->addr, *y = (const void *)&b->addr;

        return x->sin6_port == y->sin6_port && x->sin6_scope_id == y->sin6_scope_id &&
               memcmp(&x->sin6_addr, &y->sin6_addr, sizeof(x->sin6_addr)) == 0;
    }
    return a->len == b->len && memcmp(&a->addr, &b->addr, a->len) == 0;
}

static bool is_loopback(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == 127;
    }
    if (addr->sa_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
    }
    return addr->sa_family == AF_UNIX;
}

bool config_address_is_local(const struct config_address *address)
{
    for (size_t i = 0; i < address->endpoint_count; i++) {
        if (!is_loopback((const struct sockaddr *)&address->endpoints[i].addr)) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ networks */

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

/* The bits behind the prefix must be 0, or the user meant something else than what would be
 * matched. */
static bool host_bits_are_zero(const struct config_prefix *prefix)
{
    for (unsigned bit = prefix->bits; bit < 128; bit++) {
        if (prefix->bytes[bit / 8] & (0x80u >> bit % 8)) {
            return false;
        }
    }
    return true;
}

const char *config_parse_prefix(const char *text, struct config_prefix *prefix)
{
    char host[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    const size_t length = slash != NULL ? (size_t)(slash - text) : strlen(text);
    uint64_t bits;

    if (length == 0 || length >= sizeof(host)) {
        return "is not an IPv4 or IPv6 network";
    }
    memcpy(host, text, length);
    host[length] = '\0';
    prefix->ipv4 = strchr(host, ':') == NULL;
    memcpy(prefix->bytes, v4_mapped, sizeof(v4_mapped));
    if (inet_pton(prefix->ipv4 ? AF_INET : AF_INET6, host,
                  prefix->ipv4 ? prefix->bytes + 12 : prefix->bytes) != 1) {
        return "is not an IPv4 or IPv6 network";
    }
    const unsigned most = prefix->ipv4 ? 32 : 128;

    bits = most;
    if (slash != NULL && config_parse_count(slash + 1, &bits) != NULL) {
        return "has a prefix length that is not a number";
    }
    if (bits > most) {
        return prefix->ipv4 ? "has a prefix length above 32" : "has a prefix length above 128";
    }
    prefix->bits = (uint8_t)(bits + 128 - most);
    if (!host_bits_are_zero(prefix)) {
        return "has bits set after its prefix length";
    }
    /* ::ffff:10.0.0.0/104 is 10.0.0.0/8 said the long way. */
    prefix->ipv4 = prefix->ipv4 ||
                   (prefix->bits >= 96 && memcmp(prefix->bytes, v4_mapped, sizeof(v4_mapped)) == 0);
    return NULL;
}

bool config_prefix_match(const struct config_prefix *prefix, const struct sockaddr *addr)
{
    uint8_t bytes[16];
    bool ipv4 = true;

    if (addr->sa_family == AF_INET) {
        memcpy(bytes, v4_mapped, sizeof(v4_mapped));
        memcpy(bytes + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
    } else if (addr->sa_family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)addr)->sin6_addr, sizeof(bytes));
        ipv4 = memcmp(bytes, v4_mapped, sizeof(v4_mapped)) == 0;
    } else {
        return false;
    }
    if (ipv4 != prefix->ipv4) {
        return false;
    }
    const unsigned whole = prefix->bits / 8, rest = prefix->bits % 8;

    if (memcmp(bytes, prefix->bytes, whole) != 0) {
        return false;
    }
    return rest == 0 || ((bytes[whole] ^ prefix->bytes[whole]) >> (8 - rest)) == 0;
}
