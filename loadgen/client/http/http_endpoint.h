/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a flow of HTTP connects to, and how: TCP or TLS, and the sentence for the user when that
 * does not work, once per flow and kind of problem.
 */
#ifndef LOADGEN_CLIENT_HTTP_HTTP_ENDPOINT_H
#define LOADGEN_CLIENT_HTTP_HTTP_ENDPOINT_H

#include <stdbool.h>

#include "loadgen/client/flow.h"
#include "loadgen/net/stream.h"
#include "loadgen/net/stream_tls.h"

struct http_endpoint {
    const struct flow_spec *spec;
    struct loop *loop;
    struct stream_tls_context *tls; /* NULL: plain */
    bool told;
};

/* 0, or -EINVAL after a message on stderr. http_endpoint_fini() is due in either case. */
int http_endpoint_init(struct http_endpoint *endpoint, const struct flow *flow);
void http_endpoint_fini(struct http_endpoint *endpoint);

/* As stream_connect(). */
void http_endpoint_connect(const struct http_endpoint *endpoint, struct stream *stream,
                           const struct stream_handler *handler);

/* A connection ended before it carried anything: says why. Before stream_fini(). */
void http_endpoint_explain(struct http_endpoint *endpoint, const struct stream *stream, int error);

/* The same with a sentence of the caller's. */
void http_endpoint_tell(struct http_endpoint *endpoint, const char *sentence);

#endif
