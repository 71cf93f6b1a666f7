/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one side to the other: heads written anew by an intermediary's rules (RFC 9110 §7.6,
 * RFC 7239).
 *
 * A head is never passed on as bytes. What belongs to the connection it came on is left out first
 * (hop-by-hop fields and those named in Connection), then our own fields are added, so that a peer
 * can neither remove nor forge them. Fields otherwise keep their order, name and value.
 */
#ifndef SPILLWAY_PROTOCOLS_HTTP_HTTP1_FORWARD_H
#define SPILLWAY_PROTOCOLS_HTTP_HTTP1_FORWARD_H

#include "protocols/http/http1_write.h"

struct http1_forward_request {
    struct http1_slice client_address; /* "192.0.2.1", "2001:db8::1"; absent: "unknown" (RFC 7239
                                          §6.2), as for a UNIX socket */
    struct http1_slice default_host;   /* Host for a client that named none (HTTP/1.0) */
    struct http1_slice scheme;         /* what the client speaks to us: "http" or "https" */
    struct http1_slice via;            /* our name in Via: a token */
    bool trust_client;                 /* client is a known proxy: its X-Forwarded-* and Forwarded
                                          are kept and continued; otherwise replaced */
    bool pass_upgrade;                 /* let an Upgrade request through (head->upgrade) */
};

/*
 * Writes the request for the server: HTTP/1.1, origin-form (or "*"), Host first, then the
 * client's fields, then X-Forwarded-For, -Proto, -Host, Forwarded, Via, and the framing the head
 * has. The body must be sent with the same framing: length as is, chunked in chunks.
 * Expect: 100-continue is kept. Nothing is said about the connection: it is kept (HTTP/1.1).
 * Not for CONNECT.
 */
void http1_write_forward_request(struct http1_writer *w, const struct http1_head *head,
                                 const struct http1_forward_request *how);

struct http1_forward_reply {
    struct http1_slice via; /* our name in Via: a token */
    uint8_t client_minor;   /* the client's HTTP version: 1.minor */
    bool keep_alive;        /* we and the client both want to go on */
    uint32_t mark_ms;       /* http1_write_mark(); not in interim replies */
};

/* What the head told the client, hence how its body must be sent. */
struct http1_reply_plan {
    enum http1_framing framing; /* UNTIL_CLOSE: raw bytes, then close */
    bool keep_alive;            /* false: close after the reply */
};

/*
 * Decides how a reply goes to a client: a length stays a length; chunked and until-close become
 * chunked for HTTP/1.1, until-close for HTTP/1.0 (which ends keep_alive).
 */
struct http1_reply_plan http1_plan_reply(const struct http1_head *head,
                                         const struct http1_forward_reply *how);

/*
 * Writes the reply head for the client and returns the plan it announces. 1xx and 204 carry no
 * framing; replies to HEAD and 304 keep a Content-Length as information. Interim replies say
 * nothing about the connection; do not send them to an HTTP/1.0 client. A 101 passes its Upgrade.
 */
struct http1_reply_plan http1_write_forward_reply(struct http1_writer *w,
                                                  const struct http1_head *head,
                                                  const struct http1_forward_reply *how);

#endif
