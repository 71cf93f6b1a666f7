/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of routes and flows: see config.h for what each means. */
#include "proxy/core/pool/match.h"

#include <string.h>
#include <strings.h>

static bool slice_equals(struct http1_slice slice, const char *text)
{
    size_t length = strlen(text);

    return slice.len == length && memcmp(slice.ptr, text, length) == 0;
}

static bool match_client(const struct config_match *match, const struct sockaddr *client)
{
    if (match->client_count == 0)
        return true;
    for (size_t i = 0; i < match->client_count; i++) {
        if (config_prefix_match(&match->clients[i], client))
            return true;
    }
    return false;
}

static bool match_method(const struct config_match *match, struct http1_slice method)
{
    if (match->method_count == 0)
        return true;
    for (size_t i = 0; i < match->method_count; i++) {
        if (slice_equals(method, match->methods[i]))
            return true;
    }
    return false;
}

/* "*.example.com" stands for every name below example.com, not for itself. */
static bool match_host(const char *wanted, struct http1_slice host)
{
    if (wanted[0] != '*')
        return slice_equals(host, wanted);
    size_t length = strlen(wanted + 1);
    return host.len > length && memcmp(host.ptr + host.len - length, wanted + 1, length) == 0;
}

static bool match_path(const char *prefix, struct http1_slice path)
{
    size_t length = strlen(prefix);

    if (path.len < length || memcmp(path.ptr, prefix, length) != 0)
        return false;
    return path.len == length || prefix[length - 1] == '/' || path.ptr[length] == '/';
}

static bool match_header(const struct config_pair *wanted, const struct http1_head *head)
{
    size_t name_length = strlen(wanted->name);
    bool any = strcmp(wanted->value, "*") == 0;

    for (unsigned i = 0; i < head->fields_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->name.len == name_length &&
            strncasecmp(field->name.ptr, wanted->name, name_length) == 0 &&
            (any || slice_equals(field->value, wanted->value)))
            return true;
    }
    return false;
}

bool match_http(const struct config_match *match, const struct http_facts *facts)
{
    for (size_t i = 0; i < match->header_count; i++) {
        if (!match_header(&match->headers[i], facts->head))
            return false;
    }
    if (match->host != NULL && !match_host(match->host, facts->host))
        return false;
    if (match->path != NULL && !match_path(match->path, facts->path))
        return false;
    return match_method(match, facts->head->method_name) && match_client(match, facts->client);
}

static bool match_export(const char *wanted, const char *export_path)
{
    return export_path != NULL && strcmp(wanted, export_path) == 0;
}

bool match_nfs(const struct config_match *match, const struct nfs_facts *facts)
{
    if (match->has_uid && (!facts->has_uid || facts->uid != match->uid))
        return false;
    if (match->procedure != CONFIG_CLASS_ANY && match->procedure != facts->procedure_class)
        return false;
    if (match->export_path != NULL && !match_export(match->export_path, facts->export_path))
        return false;
    return match_client(match, facts->client);
}
