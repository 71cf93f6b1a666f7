/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flow asks for: its mix of requests prepared for sending, and the draw of one of them.
 *
 *   flow_spec.http ─http_plan_create─► kinds with templates
 *   seed, number ─http_plan_draw─► kind, file, tenant, size of the body
 *                                      └─► HTTP/1.1: http_template_fill(&kind->head)
 *                                          HTTP/2:   kind->path and plan->fields
 *
 * A request's draws come from a generator of its own, so the same number asks for the same thing at
 * every try: kind, tenant, file, random digits and size, in this order, those that it needs.
 *
 * Uploads: a PUT or POST of a {file} in the path sends that file's content (version 0) and size;
 * with a size given it sends as many bytes of the pattern.
 */
#ifndef LOADGEN_CLIENT_HTTP_HTTP_PLAN_H
#define LOADGEN_CLIENT_HTTP_HTTP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/client/flow_spec.h"
#include "loadgen/client/http/http_template.h"
#include "protocols/http/http1.h"

struct http_kind {
    const char *method_name;
    char *name; /* "GET /x" */
    enum http1_method method;
    bool has_body;
    bool sends_file;
    bool drawn; /* something in it is drawn, if only the body's size */
    uint32_t words;
    struct distribution body;
    struct http_template path;
    struct http_template head; /* HTTP/1.1: all of it */
};

/* HTTP/2: a field of every request, its name in lower case. */
struct http_plan_field {
    char *name;
    size_t name_bytes;
    struct http_template value;
};

struct http_plan {
    struct http_kind kinds[FLOW_MAX_REQUESTS];
    size_t kinds_count;
    uint64_t up_to[FLOW_MAX_REQUESTS]; /* sum of weights, of kinds 0 to this one */
    struct http_plan_field *fields;
    size_t fields_count;
    size_t fields_most_bytes; /* of all their values */
    char *authority;          /* HTTP/2 */
    struct fileset set;
    uint32_t tenants;
    double *tenants_up_to; /* cumulative probabilities; NULL: all alike */
};

struct http_draw {
    uint32_t kind;
    struct http_values values;
};

#define HTTP_PLAN_PROBLEM_BYTES 512

/* NULL with a sentence in `problem`. */
struct http_plan *http_plan_create(const struct flow_spec *spec,
                                   char problem[HTTP_PLAN_PROBLEM_BYTES]);
void http_plan_destroy(struct http_plan *plan);

/* `rng` is the request's own, at its start. */
void http_plan_draw(const struct http_plan *plan, struct rng *rng, uint64_t number,
                    struct http_draw *out);

/* Whether a draw of it takes no generator: one kind with nothing drawn. */
static inline bool http_plan_is_fixed(const struct http_plan *plan)
{
    return plan->kinds_count == 1 && !plan->kinds[0].drawn;
}

/* Bytes of the request's body from `offset` on. */
void http_plan_body(const struct http_plan *plan, const struct http_draw *draw, uint64_t offset,
                    uint8_t *out, size_t length);

#endif
