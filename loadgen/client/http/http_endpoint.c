/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting flows of HTTP to their target. */
#include "loadgen/client/http/http_endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The host of "host:port" or "[address]:port". */
static void host_of(const char *authority, char *out, size_t size)
{
    const char *colon = strrchr(authority, ':');
    size_t length = colon ? (size_t)(colon - authority) : strlen(authority);

    if (length >= 2 && authority[0] == '[' && authority[length - 1] == ']') {
        authority++;
        length -= 2;
    }
    snprintf(out, size, "%.*s", (int)length, authority);
}

int http_endpoint_init(struct http_endpoint *endpoint, const struct flow *flow)
{
    const struct flow_http *http = &flow->spec.http;
    bool two = http->version == FLOW_HTTP_2;
    char host[sizeof(flow->spec.authority)];
    char problem[STREAM_TLS_PROBLEM_BYTES];

    *endpoint = (struct http_endpoint){.spec = &flow->spec, .loop = flow->loop};
    if (!http->tls)
        return 0;
    host_of(flow->spec.authority, host, sizeof(host));
    endpoint->tls = stream_tls_context_create(
        &(struct stream_tls_options){.unverified = http->tls_unverified,
                                     .ca_path = http->tls_ca,
                                     .server_name = http->server_name[0] ? http->server_name : host,
                                     .protocol = two ? "h2" : "http/1.1",
                                     .protocol_required = two},
        problem);
    if (endpoint->tls)
        return 0;
    fprintf(stderr, "spillload: flow %s: %s\n", flow->spec.name, problem);
    return -EINVAL;
}

void http_endpoint_fini(struct http_endpoint *endpoint)
{
    stream_tls_context_destroy(endpoint->tls);
    endpoint->tls = NULL;
}

void http_endpoint_connect(const struct http_endpoint *endpoint, struct stream *stream,
                           const struct stream_handler *handler)
{
    const struct units_address *target = &endpoint->spec->target;

    if (endpoint->tls)
        stream_connect_tls(stream, endpoint->loop, (const void *)&target->address, target->length,
                           handler, endpoint->tls);
    else
        stream_connect(stream, endpoint->loop, (const void *)&target->address, target->length,
                       handler);
}

static const char *advice(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "; is the server running there?";
    case EADDRNOTAVAIL:
        return "; this host has no free port left for it: keep connections alive, or use fewer";
    case EMFILE:
        return "; raise the limit of open files (ulimit -n), or use fewer connections";
    default:
        return "";
    }
}

void http_endpoint_tell(struct http_endpoint *endpoint, const char *sentence)
{
    if (endpoint->told)
        return;
    endpoint->told = true;
    fprintf(stderr, "spillload: flow %s: %s: %s\n", endpoint->spec->name, endpoint->spec->authority,
            sentence);
}

void http_endpoint_explain(struct http_endpoint *endpoint, const struct stream *stream, int error)
{
    const char *problem = stream_tls_problem(stream);
    char sentence[STREAM_TLS_PROBLEM_BYTES + 32];

    if (error == 0 && !problem[0])
        return;
    snprintf(sentence, sizeof(sentence), "no connection: %s%s",
             problem[0] ? problem : strerror(error), problem[0] ? "" : advice(error));
    http_endpoint_tell(endpoint, sentence);
}
