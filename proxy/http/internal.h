/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP room's own structures.
 *
 * Session (client connection):
 *      IDLE ──first byte──> HEAD ──whole head──> EXCHANGE ──reply sent──> IDLE ...
 *                             └─ refused by the parser ─┐  └─ must close ─┤
 *      TUNNEL (after a 101)                             └────> LINGER <───┘ ──peer's FIN or 2 s──>
 * closed
 *
 * Upstream (server connection): connecting -> serving one exchange <-> idle in its worker's list ->
 * closed.
 *
 * An exchange has a session until the client goes away, and an upstream from its dispatch until its
 * reply has come whole. Who ends an exchange takes it off both first, then calls gate_finish().
 */
#ifndef SPILLWAY_HTTP_INTERNAL_H
#define SPILLWAY_HTTP_INTERNAL_H

#include "protocols/http/http1.h"
#include "protocols/http/http1_forward.h"
#include "proxy/core/container_of.h"
#include "proxy/core/gate.h"
#include "proxy/http/http.h"

#define HTTP_BACKLOG_BYTES                                                                         \
    (UINT32_C(256) << 10)      /* queued output above which the source is paused */
#define HTTP_FIELDS_MAX   1000 /* fields parsed at the most, whatever the configuration says */
#define HTTP_LINGER_NS    UINT64_C(2000000000)
#define HTTP_LOOK_NS      UINT64_C(1000000000) /* how often a silent client is looked at */
#define HTTP_PAUSE_MAX_NS UINT64_C(1000000000) /* of a marked client: see pause.c */
#define HTTP_HOST_BYTES   256
#define HTTP_PATH_BYTES   4096

enum http_phase {
    HTTP_PHASE_IDLE,     /* between requests */
    HTTP_PHASE_HEAD,     /* part of a head has come */
    HTTP_PHASE_EXCHANGE, /* session->exchange is set */
    HTTP_PHASE_TUNNEL,   /* session->tunnel is set */
    HTTP_PHASE_LINGER,   /* answered for the last time; what still comes is read and dropped */
};

struct http_session {
    struct session base; /* first: its conn is the session's address */
    struct http_exchange *exchange;
    struct http_upstream *tunnel;
    struct buffer input; /* received, not used yet */
    struct http1_scan scan;
    struct timer timer;
    struct alarm pause;      /* set: paused, see pause.c */
    uint64_t pause_until_ns; /* what a mark asks for when the request in hand is answered; or 0 */
    uint8_t phase;           /* enum http_phase */
    bool client_done;        /* FIN came */
    bool working; /* what it sent is being worked off: more may stand behind than `input` tells */
    bool trusted; /* a proxy whose forwarding fields we keep */
    uint8_t address_length;
    char address[46]; /* the client's, as text */
    uint64_t head_began_ns;
    uint64_t body_deadline_ns; /* for the next piece of a request body */
    uint64_t sent_mark;        /* conn.sent_bytes when the client was last seen to take something */
};

struct http_exchange {
    struct exchange base; /* first */
    struct http_session *session;
    struct http_upstream *upstream;
    char *head; /* the request head for the server, kept for a retry */
    size_t head_length, head_capacity;
    struct http1_body request_body;
    struct http1_body reply_body;
    char *trailers; /* of the chunked body under way, either direction */
    size_t trailers_capacity;
    uint8_t method;        /* enum http1_method */
    uint8_t method_length; /* of its name, at the start of `head` */
    uint8_t minor;
    uint8_t reply_framing; /* enum http1_framing, towards the client */
    uint8_t tries;
    bool keep_alive; /* the client wants to go on */
    bool wants_upgrade;
    bool request_done; /* the body has been relayed whole */
    bool body_started; /* some of the body has been relayed: no retry any more */
    bool reply_begun;  /* the final head went to the client */
    bool reply_keep;   /* that head promised to keep the client connection */
    bool server_keep;  /* the server allows another request */
    uint16_t status;   /* answered with; 0: nothing yet */
    uint16_t interims; /* 1xx replies so far */
    uint16_t mark_ms;  /* the pause that its reply tells of; 0: none */
    uint32_t target_offset, target_length; /* in `head` */
};

struct http_upstream {
    struct conn conn; /* first */
    struct deferred deferred;
    struct http_worker *http;
    struct server *server;
    struct http_exchange *exchange; /* NULL: idle or tunnel */
    struct http_session *tunnel;
    TAILQ_ENTRY(http_upstream) link; /* all of the worker */
    TAILQ_ENTRY(http_upstream) idle; /* of its server, the latest used first */
    struct buffer input;
    struct http1_scan scan;
    struct timer timer;
    bool is_idle;
    bool reused;       /* has served before */
    bool reply_bytes;  /* something of the reply has come */
    uint16_t endpoint; /* the server's address that is tried */
    uint16_t endpoints_tried;
};

TAILQ_HEAD(http_upstream_list, http_upstream);

struct http_idle {
    struct http_upstream_list list;
    unsigned count;
};

struct http_worker {
    struct worker *worker;
    struct http_upstream_list upstreams;
    struct http_idle *idle; /* by server index */
    unsigned idle_count;
    struct http1_head head; /* of the message being parsed */
    struct http1_field fields[HTTP_FIELDS_MAX];
    char host[HTTP_HOST_BYTES];
    char path[HTTP_PATH_BYTES];
};

static inline struct http_worker *http_of(const struct http_session *session)
{
    return session->base.worker->http;
}

static inline struct loop *loop_of(const struct http_session *session)
{
    return &session->base.worker->loop;
}

/* ---- session.c */
/* Goes on with what has been received: the next request, or the exchange's body. */
void http_session_continue(struct http_session *session);
/* Sets the timer for what the session waits for. */
void http_session_arm(struct http_session *session);
/* The exchange is over and answered; the next request, or closing. */
void http_session_next(struct http_session *session, bool keep);
/* Answers with a text of ours; closes unless `keep`. No exchange may be attached. */
void http_session_error(struct http_session *session, unsigned status, const char *explanation,
                        bool keep, const struct http1_error_reply *like);
/* Closes at once, dropping what was not sent; `reset` tells the client that the reply is not whole.
 */
void http_session_close(struct http_session *session, bool reset);

/* ---- pause.c */
void http_pause_init(struct http_session *session);
/* The exchange's client is to be left alone for so long from now on. */
void http_pause_ask(struct http_exchange *exchange, uint64_t pause_ns);
/* Between two requests: true if the next one has to wait; the rest is pause.c's then. */
bool http_pause_begin(struct http_session *session);
/* Ends a pause early, and goes on with what the client has sent. */
void http_pause_end(struct http_session *session);

/* Nothing of what the client sent is left, nor will more come. */
static inline bool http_has_said_all(const struct http_session *session)
{
    return session->client_done && !session->working && buffer_length(&session->input) == 0;
}

static inline bool http_is_paused(const struct http_session *session)
{
    return session->pause.deadline_ns != 0;
}

/* ---- request.c */
/* Starts an exchange for the parsed head, or answers that it can't. */
void http_request_begin(struct http_session *session, const struct http1_head *head);
/* Relays request body bytes to the upstream; returns how many were used. */
size_t http_request_body(struct http_exchange *exchange, uint8_t *bytes, size_t length);
/* Ends the exchange: access log, gate. It must be off its session and upstream. */
void http_exchange_end(struct http_exchange *exchange, enum outcome outcome, const char *why);
/* The client has gone: gives up the session's exchange wherever it is. */
void http_exchange_abandon(struct http_session *session, const char *why);
/* Answers the client with an error if nothing was answered yet, else cuts its connection; ends the
 * exchange. */
void http_exchange_fail(struct http_exchange *exchange, unsigned status, const char *explanation,
                        const char *why);
extern const struct exchange_ops http_exchange_ops;

/* ---- upstream.c */
/* Finds or makes a connection to exchange->base.server and sends the request's head. */
void http_upstream_attach(struct http_exchange *exchange);
/* Takes the upstream off its exchange: kept for the next request if `reusable`, else closed. */
void http_upstream_detach(struct http_upstream *upstream, bool reusable);
void http_upstream_close(struct http_upstream *upstream);
void http_upstream_arm(struct http_upstream *upstream);
/* The connection broke or ran into a time-out: retry, or answer for it. */
void http_upstream_broken(struct http_upstream *upstream, unsigned status, const char *why);

/* ---- reply.c */
void http_reply_readable(struct http_upstream *upstream, uint8_t *bytes, size_t length);
void http_reply_end_of_stream(struct http_upstream *upstream);

/* ---- relay.c */
/*
 * Passes body bytes on to `to`, framed as `framing` says (chunked, or as they are). *used bytes
 * were taken. HTTP1_BODY_MORE, _DONE (the end was written, too) or _ERROR.
 */
enum http1_body_result http_relay(struct loop *loop, struct conn *to, struct http1_body *body,
                                  enum http1_framing framing, uint8_t *bytes, size_t length,
                                  size_t *used);
/* Writes the end of a body that its peer ended by closing. */
void http_relay_end(struct loop *loop, struct conn *to, const struct http1_body *body,
                    enum http1_framing framing);

#endif
