/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP side of the proxy, as the workers see it.
 *
 *      client conn ── http_session ── http_exchange ── gate ── http_upstream ── server conn
 *
 * A session serves one exchange at a time, so that pipelined requests are answered in order; bytes
 * behind it wait in the session (bounded) or in the kernel. Server connections belong to a worker
 * and are used again.
 */
#ifndef SPILLWAY_HTTP_HTTP_H
#define SPILLWAY_HTTP_HTTP_H

#include "proxy/core/worker.h"

/* Per-worker state: idle server connections, free objects. */
struct http_worker *http_worker_create(struct worker *worker);
/* Closes every session and server connection; after the loop has ended. NULL is accepted. */
void http_worker_destroy(struct http_worker *http);

/* Takes over an accepted, non-blocking socket. */
void http_session_start(struct worker *worker, unsigned listener, int fd,
                        const struct sockaddr_storage *client);

#endif
