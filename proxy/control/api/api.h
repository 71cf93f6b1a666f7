/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane's requests, apart from how they arrive: a method, a path and a body in, a
 * status and a body out.
 *
 *      GET  /metrics                             the page for Prometheus
 *      GET  /v1/status                           the process: one object
 *      GET  /v1/listeners | pools | flows | servers    an array of objects
 *      POST /v1/pools/POOL                       {"depth": N} or {"algorithm": NAME}
 *      POST /v1/pools/POOL/flows/FLOW            {"weight": N}
 *      POST /v1/pools/POOL/servers/SERVER        {"depth": N} or {"state": "drain" | "ready"}
 *      POST /v1/reload                           no body
 *
 * Names in paths are percent-encoded. One change a request, so that a failure changes nothing.
 * Answers to changes are {"result": "ok"}, with "messages" when there is something to say; failures
 * are {"error": SENTENCES} with a status of 400 (not understood, out of range), 403 (reading only),
 * 404 (no such thing), 405 (not with this method) or 409 (a configuration that can't be taken
 * over).
 */
#ifndef SPILLWAY_CONTROL_API_API_H
#define SPILLWAY_CONTROL_API_API_H

#include "proxy/core/admin_ops.h"

struct evbuffer;

enum api_method { API_GET, API_POST, API_OTHER };

struct api_request {
    enum api_method method;
    const char *path; /* as received, without the query */
    const char *body;
    size_t body_length;
    bool may_change; /* came over the control socket */
};

struct api_reply {
    int status;
    const char *content_type;
    struct evbuffer *body; /* the caller's, empty before */
};

/* Blocks while a reload loads its file. */
void api_handle(struct runtime *runtime, const struct api_request *request,
                struct api_reply *reply);

#endif
