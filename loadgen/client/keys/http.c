/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP flows: what is asked for, and how the connections are. */
#include "loadgen/client/keys/keys.h"

#include <string.h>
#include <strings.h>

#define BLANKS " \t"

static const char *const templates[] = {"{file}", "{number}", "{tenant}", "{random}"};

#define TEMPLATES (sizeof(templates) / sizeof(templates[0]))

/* Braces belong in no path, so a name in them that is none is a slip. */
static bool good_path(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *p = path; *p; p++) {
        size_t i = 0;

        if (*p == ' ' || *p == '}')
            return false;
        if (*p != '{')
            continue;
        while (i < TEMPLATES && strncmp(p, templates[i], strlen(templates[i])) != 0)
            i++;
        if (i == TEMPLATES)
            return false;
        p += strlen(templates[i]) - 1;
    }
    return true;
}

static bool put_method(struct flow_http_request *request, const char *value)
{
    static const char token[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return key_text(request->method, sizeof(request->method), value) &&
           strspn(value, token) == strlen(value) && strcmp(value, "CONNECT") != 0;
}

static bool put_path(struct flow_http_request *request, const char *value)
{
    return good_path(value) && key_text(request->path, sizeof(request->path), value);
}

static bool put_body(const struct flow_spec *spec, struct flow_http_request *request,
                     const char *value)
{
    if (!key_distribution(spec, value, DISTRIBUTION_BYTES, &request->body))
        return false;
    request->has_body = request->body.kind != DISTRIBUTION_FIXED || request->body.mean > 0;
    return true;
}

/* Of both protocols, as one key always was. */
static bool set_bytes(struct flow_spec *spec, const char *value)
{
    uint64_t bytes;

    if (units_parse_bytes(value, &bytes) != 0)
        return false;
    spec->http.requests[0].has_body = bytes > 0;
    spec->http.requests[0].body = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = bytes};
    spec->nfs.transfer = spec->http.requests[0].body;
    return true;
}

static bool set_method(struct flow_spec *spec, const char *value)
{
    return put_method(&spec->http.requests[0], value);
}

static bool set_path(struct flow_spec *spec, const char *value)
{
    return put_path(&spec->http.requests[0], value);
}

static bool set_body(struct flow_spec *spec, const char *value)
{
    return put_body(spec, &spec->http.requests[0], value);
}

/* "WEIGHT METHOD PATH [BODY]"; the first one takes the place of GET /. */
static bool set_request(struct flow_spec *spec, const char *value)
{
    struct flow_http *http = &spec->http;
    struct flow_http_request request = {0};
    char word[FLOW_TEXT_BYTES];
    bool good = key_word(&value, word, sizeof(word)) &&
                key_count(word, 1, FLOW_MAX_MIX, &request.weight) &&
                key_word(&value, word, sizeof(word)) && put_method(&request, word) &&
                key_word(&value, word, sizeof(word)) && put_path(&request, word);

    if (good && key_word(&value, word, sizeof(word)))
        good = put_body(spec, &request, word);
    if (!good || value[strspn(value, BLANKS)] != '\0')
        return false;
    if (!flow_spec_given(spec, "request"))
        http->requests_count = 0;
    if (http->requests_count == FLOW_MAX_REQUESTS)
        return false;
    http->requests[http->requests_count++] = request;
    return true;
}

static bool set_header(struct flow_spec *spec, const char *value)
{
    const char *colon = strchr(value, ':');
    size_t used = strlen(spec->http.headers);
    char checked[FLOW_HEADERS_BYTES];

    if (!colon || colon == value || memchr(value, ' ', (size_t)(colon - value)) ||
        !key_text(checked, sizeof(checked), value))
        return false;
    size_t name = (size_t)(colon - value);

    for (colon++; *colon == ' '; colon++)
        ;
    int length = snprintf(spec->http.headers + used, sizeof(spec->http.headers) - used,
                          "%.*s: %s\r\n", (int)name, value, colon);

    if (name == 4 && strncasecmp(value, "host", 4) == 0)
        spec->http.has_host = true;
    return used + (size_t)length < sizeof(spec->http.headers);
}

/* "N" or "N:EXPONENT" */
static bool set_tenants(struct flow_spec *spec, const char *value)
{
    char count[16];
    const char *exponent;

    if (!strchr(value, ':'))
        return key_count(value, 1, FLOW_MAX_MIX, &spec->http.tenants);
    return key_split(value, count, sizeof(count), &exponent) &&
           key_count(count, 1, FLOW_MAX_MIX, &spec->http.tenants) &&
           key_number(exponent, 0.001, 10, &spec->http.tenant_zipf);
}

static bool set_keep_alive(struct flow_spec *spec, const char *value)
{
    bool keep;

    if (!key_flag(value, &keep))
        return false;
    spec->http.close_each = !keep;
    return true;
}

static bool set_streams(struct flow_spec *spec, const char *value)
{
    return key_count(value, 1, FLOW_MAX_STREAMS, &spec->http.streams);
}

static bool set_tls_verify(struct flow_spec *spec, const char *value)
{
    bool verify;

    if (!key_flag(value, &verify))
        return false;
    spec->http.tls_unverified = !verify;
    return true;
}

static bool set_tls_ca(struct flow_spec *spec, const char *value)
{
    return key_text(spec->http.tls_ca, sizeof(spec->http.tls_ca), value);
}

static bool set_server_name(struct flow_spec *spec, const char *value)
{
    return key_text(spec->http.server_name, sizeof(spec->http.server_name), value) &&
           !strpbrk(value, " :/");
}

/* ---------------------------------------------------------------- together */

static bool mentions(const struct flow_spec *spec, const char *template)
{
    for (size_t i = 0; i < spec->http.requests_count; i++) {
        if (strstr(spec->http.requests[i].path, template))
            return true;
    }
    return strstr(spec->http.headers, template) != NULL;
}

static int check_requests(const struct flow_spec *spec, char *error)
{
    static const char *const replaced[] = {"method", "path", "bytes", "body"};
    int result =
        key_exclude(spec, "bytes", "body", "body takes a plain size too; leave bytes out", error);

    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]) && !result; i++)
        result = key_exclude(spec, "request", replaced[i],
                             "a request is written WEIGHT METHOD PATH [BODY]", error);
    if (result)
        return result;
    if (mentions(spec, "{file}") && spec->set.files == 0)
        return key_complain(error, "{file} needs a file set: files=N, and size and so on");
    if (spec->set.files && !mentions(spec, "{file}"))
        return key_complain(error, "files needs {file} in a path or a header");
    if (flow_spec_given(spec, "tenants") && !mentions(spec, "{tenant}"))
        return key_complain(error, "tenants needs {tenant} in a path or a header");
    return 0;
}

static int check_connections(const struct flow_spec *spec, char *error)
{
    static const char *const tls_keys[] = {"tls-verify", "tls-ca", "server-name"};

    for (size_t i = 0; i < sizeof(tls_keys) / sizeof(tls_keys[0]); i++) {
        if (flow_spec_given(spec, tls_keys[i]) && !spec->http.tls)
            return key_complain(error, "%s is for TLS: proto=https or proto=h2", tls_keys[i]);
    }
    if (spec->http.tls_unverified && spec->http.tls_ca[0])
        return key_complain(error, "tls-verify=no and tls-ca: leave one of them out");
    if (flow_spec_given(spec, "streams") && spec->http.version != FLOW_HTTP_2)
        return key_complain(error, "streams is for HTTP/2: proto=h2 or proto=h2c");
    if (spec->http.close_each && spec->http.version == FLOW_HTTP_2)
        return key_complain(error, "keep-alive=no is for HTTP/1.1: proto=http or proto=https");
    return 0;
}

static int check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    if (use != FLOW_SENT || spec->protocol != FLOW_HTTP)
        return 0;
    int result = check_requests(spec, error);

    return result ? result : check_connections(spec, error);
}

static const struct flow_key keys[] = {
    {"bytes", FLOW_SENT, KEY_OF_ALL, false, set_bytes, "a size, as 4096 or 64KiB",
     "body sent (default 0); NFS: of a READ or WRITE (default 4096)"},
    {"method", FLOW_SENT, KEY_OF_HTTP, false, set_method, "a method in capitals", "default GET"},
    {"path", FLOW_SENT, KEY_OF_HTTP, false, set_path,
     "a path that begins with /, with nothing in braces but {file}, {number}, {tenant}, {random}",
     "request target (default /), with {file}: a file of the set, {number}: of the request, "
     "{tenant}: from 0 to tenants - 1, {random}: 16 hexadecimal digits"},
    {"body", FLOW_SENT, KEY_OF_HTTP, false, set_body,
     "a size, as 64KiB, or a distribution of sizes, as pareto:1.2:1KiB:1MiB", "body sent"},
    {"request", FLOW_SENT, KEY_OF_HTTP, true, set_request,
     "WEIGHT METHOD PATH [BODY], as '80 GET /{file}', and at most 32 of them",
     "one of several kinds, drawn by weight, in place of method, path and body; repeated"},
    {"header", FLOW_SENT, KEY_OF_HTTP, true, set_header, "NAME:VALUE",
     "an extra field, its value with the braces of path; may be repeated"},
    {"tenants", FLOW_SENT, KEY_OF_HTTP, false, set_tenants,
     "a number from 1 to 1000000, or with an exponent, as 100:0.9",
     "values of {tenant}, all alike or Zipf with this exponent"},
    {"keep-alive", FLOW_SENT, KEY_OF_HTTP, false, set_keep_alive, "yes or no",
     "no: a connection per request (default yes)"},
    {"streams", FLOW_SENT, KEY_OF_HTTP, false, set_streams, "a number from 1 to 1000",
     "HTTP/2: requests at once per connection (default 1)"},
    {"tls-verify", FLOW_SENT, KEY_OF_HTTP, false, set_tls_verify, "yes or no",
     "no: any certificate will do (default yes)"},
    {"tls-ca", FLOW_SENT, KEY_OF_HTTP, false, set_tls_ca, "a file",
     "trusted certificates (default: the system's)"},
    {"server-name", FLOW_SENT, KEY_OF_HTTP, false, set_server_name, "a host name",
     "asked for and expected in the certificate (default: the target's host)"},
};

const struct key_group key_group_http = {"HTTP", keys, sizeof(keys) / sizeof(keys[0]), check};
