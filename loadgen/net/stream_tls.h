/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS below a stream, as a client: who connects with stream_connect_tls() reads and writes plain
 * bytes as on any stream; `connected` comes when the handshake is over.
 *
 *   stream output ─► SSL_write ─► records ─► one send() per turn
 *   handler->data ◄─ SSL_read  ◄─ records ◄─ one recv(), shared buffer
 *
 * A context holds what connections of one flow have in common: the trust, the name asked for, the
 * protocol wanted (ALPN), and the session of the last handshake, which the next one takes up again.
 * It must outlive its streams.
 *
 * Invariants: every byte received is taken by OpenSSL before the shared buffer is used again;
 * nothing is encrypted while older records wait for the socket, so that back-pressure reaches the
 * stream's output. A connection that ends without the peer's close_notify ended with ECONNRESET,
 * unless it was idle as far as TLS can tell: who reads until the end must know about a cut.
 */
#ifndef LOADGEN_NET_STREAM_TLS_H
#define LOADGEN_NET_STREAM_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "loadgen/net/stream.h"

#define STREAM_TLS_PROBLEM_BYTES 512

struct stream_tls_options {
    bool unverified;         /* takes any certificate */
    const char *ca_path;     /* PEM file of trusted certificates; NULL or empty: the system's */
    const char *server_name; /* in the certificate, and sent (SNI) when it is no address */
    const char *protocol;    /* ALPN: "http/1.1", "h2"; NULL: none */
    bool protocol_required;  /* a server that does not choose it is refused */
};

struct stream_tls_context;

/* NULL with a sentence in `problem`. */
struct stream_tls_context *stream_tls_context_create(const struct stream_tls_options *options,
                                                     char problem[STREAM_TLS_PROBLEM_BYTES]);
void stream_tls_context_destroy(struct stream_tls_context *context);

/* As stream_connect(). */
void stream_connect_tls(struct stream *stream, struct loop *loop, const struct sockaddr *address,
                        socklen_t length, const struct stream_handler *handler,
                        struct stream_tls_context *context);

/* What went wrong in TLS, for the user; empty when nothing did. Until stream_fini(). */
const char *stream_tls_problem(const struct stream *stream);

/* Whether the handshake took up an earlier session. */
bool stream_tls_resumed(const struct stream *stream);

#endif
