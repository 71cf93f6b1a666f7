/* SPDX-License-Identifier: Apache-2.0 */
/* Preparing a flow's requests, and drawing them. */
#include "loadgen/client/http/http_plan.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/pattern.h"

/* ---------------------------------------------------------------- preparing */

static enum http1_method method_of(const char *name)
{
    for (int i = 1; i < HTTP1_METHOD_COUNT; i++) {
        if (strcmp(http1_method_name((enum http1_method)i), name) == 0)
            return (enum http1_method)i;
    }
    return HTTP1_METHOD_OTHER;
}

static void add_text(struct http_template *template, const char *text)
{
    http_template_add_plain(template, text, strlen(text));
}

/* The head of an HTTP/1.1 request. */
static void prepare_head(struct http_kind *kind, const struct flow_spec *spec, const char *path)
{
    struct http_template *head = &kind->head;
    bool announces =
        kind->has_body || kind->method == HTTP1_METHOD_PUT || kind->method == HTTP1_METHOD_POST;

    add_text(head, kind->method_name);
    add_text(head, " ");
    http_template_add(head, path, strlen(path));
    add_text(head, " HTTP/1.1\r\n");
    if (!spec->http.has_host) {
        add_text(head, "Host: ");
        add_text(head, spec->authority);
        add_text(head, "\r\n");
    }
    add_text(head, "User-Agent: spillload\r\n");
    http_template_add(head, spec->http.headers, strlen(spec->http.headers));
    if (spec->http.close_each)
        add_text(head, "Connection: close\r\n");
    if (announces) {
        add_text(head, "Content-Length: ");
        http_template_add_word(head, HTTP_WORD_LENGTH);
        add_text(head, "\r\n");
    }
    add_text(head, "\r\n");
}

static void prepare_kind(struct http_kind *kind, const struct flow_spec *spec,
                         const struct flow_http_request *request)
{
    bool uploads;
    size_t name_bytes = strlen(request->method) + strlen(request->path) + 2;

    kind->method_name = memory_string(request->method);
    kind->method = method_of(request->method);
    kind->name = memory_zeroed(1, name_bytes);
    snprintf(kind->name, name_bytes, "%s %s", request->method, request->path);
    http_template_add(&kind->path, request->path, strlen(request->path));
    uploads = kind->method == HTTP1_METHOD_PUT || kind->method == HTTP1_METHOD_POST;
    kind->sends_file = uploads && !request->has_body && (kind->path.words & (1U << HTTP_WORD_FILE));
    kind->has_body = request->has_body || kind->sends_file;
    kind->body = request->body;
    prepare_head(kind, spec, request->path);
    kind->words = kind->head.words & ~(1U << HTTP_WORD_LENGTH);
    kind->drawn = kind->words != 0 || kind->sends_file ||
                  (kind->has_body && kind->body.kind != DISTRIBUTION_FIXED);
}

/* Fields that belong to an HTTP/1.1 connection; HTTP/2 forbids them. */
static bool of_connection(const char *name)
{
    static const char *const names[] = {"connection",        "keep-alive", "proxy-connection",
                                        "transfer-encoding", "upgrade",    "host"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static void add_field(struct http_plan *plan, const char *name, size_t name_bytes,
                      const char *value, size_t value_bytes)
{
    struct http_plan_field field = {.name = memory_zeroed(1, name_bytes + 1),
                                    .name_bytes = name_bytes};

    for (size_t i = 0; i < name_bytes; i++)
        field.name[i] = (char)tolower((unsigned char)name[i]);
    if (strcmp(field.name, "host") == 0) {
        free(plan->authority);
        plan->authority = memory_zeroed(1, value_bytes + 1);
        memcpy(plan->authority, value, value_bytes);
    }
    if (of_connection(field.name)) {
        free(field.name);
        return;
    }
    http_template_add(&field.value, value, value_bytes);
    plan->fields = memory_grow(plan->fields, (plan->fields_count + 1) * sizeof(*plan->fields));
    plan->fields[plan->fields_count++] = field;
    plan->fields_most_bytes += field.value.most_bytes;
}

/* The fields as HTTP/2 wants them, one by one. */
static void prepare_fields(struct http_plan *plan, const struct flow_spec *spec)
{
    plan->authority = memory_string(spec->authority);
    add_field(plan, "user-agent", 10, "spillload", 9);
    for (const char *line = spec->http.headers; *line;) {
        const char *end = strstr(line, "\r\n");
        const char *colon = strchr(line, ':');

        if (!end || !colon || colon > end)
            return;
        const char *value = colon + 1;

        while (value < end && *value == ' ')
            value++;
        add_field(plan, line, (size_t)(colon - line), value, (size_t)(end - value));
        line = end + 2;
    }
}

/* P(tenant k) in proportion to 1 / (k + 1)^exponent. */
static void prepare_tenants(struct http_plan *plan, const struct flow_http *http)
{
    double sum = 0;

    plan->tenants = http->tenants ? http->tenants : 1;
    if (!(http->tenant_zipf > 0))
        return;
    plan->tenants_up_to = memory_zeroed(plan->tenants, sizeof(*plan->tenants_up_to));
    for (uint32_t i = 0; i < plan->tenants; i++) {
        sum += pow(i + 1.0, -http->tenant_zipf);
        plan->tenants_up_to[i] = sum;
    }
    for (uint32_t i = 0; i < plan->tenants; i++)
        plan->tenants_up_to[i] /= sum;
}

static bool prepare_set(struct http_plan *plan, const struct flow_spec *spec, uint32_t words,
                        char problem[HTTP_PLAN_PROBLEM_BYTES])
{
    char why[FILESET_PROBLEM_BYTES];

    if (!(words & (1U << HTTP_WORD_FILE)))
        return true;
    if (spec->set.files == 0) {
        snprintf(problem, HTTP_PLAN_PROBLEM_BYTES,
                 "{file} needs a file set: say how many files there are");
        return false;
    }
    if (fileset_init(&plan->set, &spec->set, why) == 0)
        return true;
    snprintf(problem, HTTP_PLAN_PROBLEM_BYTES, "the file set: %s", why);
    return false;
}

struct http_plan *http_plan_create(const struct flow_spec *spec,
                                   char problem[HTTP_PLAN_PROBLEM_BYTES])
{
    struct http_plan *plan = memory_zeroed(1, sizeof(*plan));
    uint64_t sum = 0;
    uint32_t words = 0;

    for (size_t i = 0; i < spec->http.requests_count; i++) {
        prepare_kind(&plan->kinds[i], spec, &spec->http.requests[i]);
        words |= plan->kinds[i].words;
        sum += spec->http.requests[i].weight;
        plan->up_to[i] = sum;
    }
    plan->kinds_count = spec->http.requests_count;
    prepare_fields(plan, spec);
    prepare_tenants(plan, &spec->http);
    if (prepare_set(plan, spec, words, problem))
        return plan;
    http_plan_destroy(plan);
    return NULL;
}

void http_plan_destroy(struct http_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->kinds_count; i++) {
        http_template_fini(&plan->kinds[i].path);
        http_template_fini(&plan->kinds[i].head);
        free(plan->kinds[i].name);
        free((void *)(uintptr_t)plan->kinds[i].method_name);
    }
    for (size_t i = 0; i < plan->fields_count; i++) {
        http_template_fini(&plan->fields[i].value);
        free(plan->fields[i].name);
    }
    free(plan->fields);
    free(plan->authority);
    free(plan->tenants_up_to);
    free(plan);
}

/* ---------------------------------------------------------------- drawing */

static uint32_t draw_kind(const struct http_plan *plan, struct rng *rng)
{
    uint64_t place = rng_below(rng, plan->up_to[plan->kinds_count - 1]);
    uint32_t kind = 0;

    while (kind + 1 < plan->kinds_count && place >= plan->up_to[kind])
        kind++;
    return kind;
}

static uint64_t draw_tenant(const struct http_plan *plan, struct rng *rng)
{
    if (!plan->tenants_up_to)
        return rng_below(rng, plan->tenants);
    double place = rng_unit(rng);
    uint32_t low = 0;
    uint32_t high = plan->tenants - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (place < plan->tenants_up_to[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A list gives its values by the request's number, whatever was drawn before. */
static uint64_t draw_body(const struct http_kind *kind, struct rng *rng, uint64_t number)
{
    struct distribution body = kind->body;

    if (body.kind == DISTRIBUTION_FIXED)
        return body.mean;
    if (body.list_count)
        body.list_next = (size_t)(number % body.list_count);
    return distribution_draw(&body, rng);
}

void http_plan_draw(const struct http_plan *plan, struct rng *rng, uint64_t number,
                    struct http_draw *out)
{
    *out = (struct http_draw){.values = {.set = &plan->set, .number = number}};
    if (plan->kinds_count > 1)
        out->kind = draw_kind(plan, rng);
    const struct http_kind *kind = &plan->kinds[out->kind];

    if (kind->words & (1U << HTTP_WORD_TENANT))
        out->values.tenant = draw_tenant(plan, rng);
    if (kind->words & (1U << HTTP_WORD_FILE))
        out->values.file = fileset_draw(&plan->set, rng);
    if (kind->words & (1U << HTTP_WORD_RANDOM))
        out->values.random = rng_next(rng);
    if (kind->sends_file)
        out->values.body_bytes = fileset_size_bytes(&plan->set, out->values.file);
    else if (kind->has_body)
        out->values.body_bytes = draw_body(kind, rng, number);
}

void http_plan_body(const struct http_plan *plan, const struct http_draw *draw, uint64_t offset,
                    uint8_t *out, size_t length)
{
    if (plan->kinds[draw->kind].sends_file) {
        fileset_content(&plan->set, draw->values.file, 0, offset, out, length);
        return;
    }
    while (length > 0) {
        size_t start = (size_t)(offset % PATTERN_BYTES);
        size_t part = length < PATTERN_BYTES - start ? length : PATTERN_BYTES - start;

        memcpy(out, pattern_bytes() + start, part);
        out += part;
        offset += part;
        length -= part;
    }
}
