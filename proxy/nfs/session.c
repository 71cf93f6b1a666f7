/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client connection: see internal.h for the objects.
 *
 *      OPEN ──drain──> DRAINING ──nothing in flight──> LINGERING ──FIN, or time──> CLOSED
 *       ├───────── a server connection was lost ──────────> │
 *       └──FIN──> HALF_CLOSED ──nothing in flight─────────> ┘
 *
 * OPEN and DRAINING sessions have a binding; later it is an orphan or gone. A DRAINING one still
 * takes the rest of a record that has begun. A HALF_CLOSED one waits for replies that the server
 * owes, in an orphaned binding; its calls pass to another session that sends them again. A
 * LINGERING one reads and drops, so that what was sent is not cut off by a reset.
 */
#include "proxy/nfs/internal.h"

#include "proxy/control/log.h"
#include "proxy/io/memory.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct nfs_session *of_conn(struct conn *conn)
{
    return container_of(conn, struct nfs_session, session.conn);
}

static const struct config_client_timeouts *timeouts_of(const struct nfs_session *s)
{
    return &session_listener(&s->session)->config->timeouts;
}

static void set_timer(struct nfs_session *s, struct timer *timer, uint64_t after_ns)
{
    timer_set(&s->nfs->loop->wheel, timer, loop_now_ns(s->nfs->loop) + after_ns);
}

const char *nfs_address_text(const struct sockaddr *address, char text[NFS_ADDRESS_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN];

    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        snprintf(text, NFS_ADDRESS_TEXT_BYTES, "%s:%u", host, ntohs(v4->sin_port));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        snprintf(text, NFS_ADDRESS_TEXT_BYTES, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        snprintf(text, NFS_ADDRESS_TEXT_BYTES, "unix");
    }
    return text;
}

void nfs_keep_alive(int fd)
{
    const int one = 1;
    const int idle_s = 60;
    const int interval_s = 15;
    const int probes = 4;

    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) < 0)
        return;
    /* Not for UNIX sockets, which need none of it. */
    if (setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s)) < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* ------------------------------------------------------------------ pausing */

void nfs_session_pause(struct nfs_session *s, enum nfs_pause reason)
{
    if (s->pauses == 0)
        conn_pause(&s->session.conn);
    s->pauses |= (uint8_t)reason;
}

void nfs_session_resume(struct nfs_session *s, enum nfs_pause reason)
{
    if (s->pauses == 0)
        return;
    s->pauses &= (uint8_t)~reason;
    if (s->pauses == 0)
        conn_resume(&s->session.conn);
}

void nfs_session_slow(struct nfs_session *s, uint64_t duration_ns)
{
    uint64_t until_ns = loop_now_ns(s->nfs->loop) + duration_ns;

    if (s->state != NFS_SESSION_OPEN && s->state != NFS_SESSION_DRAINING)
        return;
    nfs_session_pause(s, NFS_PAUSE_MARK);
    if (s->mark_alarm.deadline_ns < until_ns)
        alarm_set(s->nfs->loop, &s->mark_alarm, until_ns);
}

/* ------------------------------------------------------------------ sending */

void nfs_session_watch(struct nfs_session *s)
{
    /* One that is set looks at the progress itself when it fires. */
    if (s->stall_timer.deadline_ns != 0)
        return;
    s->stall_sent_bytes = s->session.conn.sent_bytes;
    set_timer(s, &s->stall_timer, timeouts_of(s)->client_idle_ns);
}

void nfs_session_send(struct nfs_session *s, const uint8_t *record, size_t length)
{
    if (s->streaming != NULL)
        nfs_blocks_append(s->nfs, &s->after_stream, record, length);
    else
        conn_send(&s->session.conn, record, length);
    nfs_session_watch(s);
}

void nfs_session_send_copy(struct nfs_session *s, const uint8_t *record, size_t length)
{
    uint8_t *scratch = loop_scratch(s->nfs->loop, length);

    memcpy(scratch, record, length);
    nfs_session_send(s, scratch, length);
}

bool nfs_session_begin_stream(struct nfs_session *s, struct nfs_server_conn *c)
{
    if (s->streaming != NULL)
        return false;
    s->streaming = c;
    return true;
}

void nfs_session_end_stream(struct nfs_session *s)
{
    s->streaming = NULL;
    while (!TAILQ_EMPTY(&s->after_stream)) {
        struct nfs_block *block = TAILQ_FIRST(&s->after_stream);
        conn_send(&s->session.conn, block->bytes, block->length);
        nfs_blocks_first_sent(s->nfs, &s->after_stream);
    }
}

/* Every server connection that may have to do with this session. */
static void for_server_conns(struct nfs_session *s,
                             void (*call)(struct nfs_server_conn *c, struct nfs_session *s))
{
    struct nfs_binding *b;

    for (unsigned role = 0; role < NFS_CONN_ROLES; role++) {
        if (s->binding != NULL && s->binding->conns[role] != NULL)
            call(s->binding->conns[role], s);
    }
    TAILQ_FOREACH(b, &s->nfs->orphans, link)
    {
        for (unsigned role = 0; role < NFS_CONN_ROLES; role++) {
            if (b->conns[role] != NULL)
                call(b->conns[role], s);
        }
    }
}

/* ------------------------------------------------------------------ ending */

static void release(struct deferred *deferred)
{
    free(container_of(deferred, struct nfs_session, session.deferred));
}

/* The record that is coming belongs to no call of the session's: refused, answered early, or
 * backchannel. */
static void drop_receiving(struct nfs_session *s)
{
    struct nfs_exchange *e = s->receiving;

    if (e == NULL || e->session != NULL)
        return;
    s->receiving = NULL;
    e->receiving = false;
    struct nfs_server_conn *c = e->conn;
    if (c != NULL && e->begun) {
        nfs_server_conn_lost(c, OUTCOME_ABORTED, "the client went away in the middle of a record");
        return;
    }
    if (c != NULL)
        nfs_server_conn_remove(c, e);
    nfs_call_settle(e);
}

static void leave_binding(struct nfs_session *s)
{
    struct nfs_binding *b = s->binding;

    s->binding = NULL;
    if (b != NULL)
        nfs_binding_leave(b);
}

/* Leaves everything but the socket. */
static void leave(struct nfs_session *s)
{
    drop_receiving(s);
    while (!TAILQ_EMPTY(&s->calls))
        nfs_call_abandon(TAILQ_FIRST(&s->calls));
    for_server_conns(s, nfs_reply_forget_session);
    s->streaming = NULL;
    nfs_blocks_clear(s->nfs, &s->after_stream);
    nfs_incoming_fini(&s->incoming);
    timer_unlink(&s->receive_timer);
    timer_unlink(&s->retry_timer);
    alarm_clear(s->nfs->loop, &s->mark_alarm);
    leave_binding(s);
}

void nfs_session_close(struct nfs_session *s)
{
    uint8_t state = s->state;

    if (state == NFS_SESSION_CLOSED)
        return;
    s->state = NFS_SESSION_CLOSED;
    if (state != NFS_SESSION_LINGERING)
        leave(s);
    timer_unlink(&s->receive_timer);
    timer_unlink(&s->stall_timer);
    session_close(&s->session, release);
}

void nfs_session_finish(struct nfs_session *s)
{
    if (s->state == NFS_SESSION_LINGERING || s->state == NFS_SESSION_CLOSED)
        return;
    s->state = NFS_SESSION_LINGERING;
    leave(s);
    conn_shutdown(&s->session.conn);
    s->pauses = 0;
    conn_resume(&s->session.conn);
    set_timer(s, &s->receive_timer,
              s->session.conn.peer_closed ? NFS_LINGER_NS / 16 : NFS_LINGER_NS);
}

void nfs_session_call_left(struct nfs_session *s)
{
    /* Its place in the queue is the next one's, without waiting for the timer. */
    if (s->state == NFS_SESSION_OPEN || s->state == NFS_SESSION_DRAINING)
        nfs_call_retry_first_held(s);
    if (!TAILQ_EMPTY(&s->calls))
        return;
    if (s->state == NFS_SESSION_HALF_CLOSED ||
        (s->state == NFS_SESSION_DRAINING && nfs_incoming_is_idle(&s->incoming)))
        nfs_session_finish(s);
}

/* Gives up the calls that the server has got nothing of, and, `cut`, the one whose rest will not
 * come. */
static void abandon_waiting(struct nfs_session *s, bool cut)
{
    uint8_t state = s->state;
    struct nfs_exchange *e;
    struct nfs_exchange *next;

    for (e = TAILQ_FIRST(&s->calls); e != NULL; e = next) {
        next = TAILQ_NEXT(e, session_link);
        if (!e->begun || (cut && e->receiving)) {
            nfs_call_abandon(e);
            /* That may have ended others, or the session. */
            next = s->state == state ? TAILQ_FIRST(&s->calls) : NULL;
        }
    }
}

void nfs_session_wind_down(struct nfs_session *s)
{
    if (s->state != NFS_SESSION_OPEN && s->state != NFS_SESSION_DRAINING)
        return;
    s->state = NFS_SESSION_DRAINING;
    abandon_waiting(s, false);
    if (s->state != NFS_SESSION_DRAINING)
        return;
    if (TAILQ_EMPTY(&s->calls))
        nfs_session_finish(s);
    else if (nfs_incoming_is_idle(&s->incoming))
        nfs_session_pause(s, NFS_PAUSE_DRAIN);
}

/*
 * The client sends no more. It may have closed altogether, as NFS clients do: what waits in the
 * queue is given up. Or it still reads: it gets the replies to what the server has got, unless it
 * comes back for them first.
 */
static void half_close(struct nfs_session *s)
{
    s->state = NFS_SESSION_HALF_CLOSED;
    drop_receiving(s);
    abandon_waiting(s, true);
    if (s->state != NFS_SESSION_HALF_CLOSED)
        return;
    if (TAILQ_EMPTY(&s->calls)) {
        nfs_session_close(s);
        return;
    }
    leave_binding(s);
    set_timer(s, &s->receive_timer, NFS_ORPHAN_NS);
}

static void drain(struct session *session)
{
    struct nfs_session *s = container_of(session, struct nfs_session, session);

    if (s->state != NFS_SESSION_OPEN)
        return;
    s->state = NFS_SESSION_DRAINING;
    if (nfs_incoming_is_idle(&s->incoming))
        nfs_session_pause(s, NFS_PAUSE_DRAIN);
    nfs_session_call_left(s);
}

static void abort_session(struct session *session)
{
    nfs_session_close(container_of(session, struct nfs_session, session));
}

const struct session_ops nfs_session_ops = {.drain = drain, .abort = abort_session};

/* ------------------------------------------------------------------ events */

static void close_for_limit(struct nfs_session *s)
{
    static struct log_limit limit;
    char text[NFS_ADDRESS_TEXT_BYTES];

    meter_add(&session_meters(&s->session)->malformed, 1);
    log_limited(&limit, loop_now_ns(s->nfs->loop), CONFIG_LOG_WARNING,
                "listener %s: client %s: %s; closed", session_listener(&s->session)->config->name,
                nfs_address_text(nfs_session_client(s), text),
                rpc_record_error_text(s->incoming.decoder.error));
    nfs_session_close(s);
}

static void take_piece(struct nfs_session *s, const struct nfs_piece *piece)
{
    if (!piece->first)
        nfs_call_next_piece(s, piece);
    else
        nfs_call_first_piece(s, piece);
}

/* Between two records a draining session stops. */
static bool takes_more(struct nfs_session *s)
{
    if (s->state == NFS_SESSION_OPEN)
        return true;
    if (s->state != NFS_SESSION_DRAINING)
        return false;
    if (!nfs_incoming_is_idle(&s->incoming))
        return true;
    nfs_session_pause(s, NFS_PAUSE_DRAIN);
    nfs_session_call_left(s);
    return false;
}

static void look_later(struct nfs_session *s, uint64_t now_ns)
{
    uint64_t look_ns = now_ns + NFS_LOOK_NS;

    timer_set(&s->nfs->loop->wheel, &s->receive_timer,
              look_ns < s->receive_deadline_ns ? look_ns : s->receive_deadline_ns);
}

static void wait_for_more(struct nfs_session *s)
{
    uint64_t now_ns = loop_now_ns(s->nfs->loop);

    s->receive_deadline_ns = now_ns + timeouts_of(s)->body_idle_ns;
    look_later(s, now_ns);
}

static void on_readable(struct conn *conn, uint8_t *bytes, size_t length)
{
    struct nfs_session *s = of_conn(conn);
    struct nfs_piece piece;

    while (takes_more(s)) {
        size_t used = nfs_incoming_next(&s->incoming, bytes, length, &piece);
        bytes += used;
        length -= used;
        switch (piece.type) {
        case NFS_RECORD_WHOLE:
            nfs_call_whole(s, piece.bytes, piece.length);
            break;
        case NFS_RECORD_PIECE:
            take_piece(s, &piece);
            break;
        case NFS_RECORD_ERROR:
            close_for_limit(s);
            return;
        case NFS_RECORD_MORE:
            if (!nfs_incoming_is_idle(&s->incoming))
                wait_for_more(s);
            else
                timer_clear(&s->receive_timer);
            return;
        }
    }
}

static void on_end_of_stream(struct conn *conn)
{
    struct nfs_session *s = of_conn(conn);

    if (s->state == NFS_SESSION_OPEN || s->state == NFS_SESSION_DRAINING)
        half_close(s);
    else
        nfs_session_close(s);
}

static void on_failed(struct conn *conn, int error)
{
    struct nfs_session *s = of_conn(conn);
    char text[NFS_ADDRESS_TEXT_BYTES];

    log_debug("client %s: %s", nfs_address_text(nfs_session_client(s), text), strerror(error));
    nfs_session_close(s);
}

static void on_drained(struct conn *conn)
{
    for_server_conns(of_conn(conn), nfs_reply_resume);
}

static const struct conn_ops conn_ops = {
    .readable = on_readable,
    .end_of_stream = on_end_of_stream,
    .failed = on_failed,
    .drained = on_drained,
};

static void on_receive_timer(struct timer *timer, uint64_t now_ns)
{
    struct nfs_session *s = container_of(timer, struct nfs_session, receive_timer);
    static struct log_limit limit;
    char text[NFS_ADDRESS_TEXT_BYTES];

    if (s->state == NFS_SESSION_LINGERING && conn_backlog(&s->session.conn) > 0) {
        /* It still takes replies; stall_timer watches that it does. */
        set_timer(s, timer, NFS_LINGER_NS);
        return;
    }
    if (s->state == NFS_SESSION_OPEN || s->state == NFS_SESSION_DRAINING) {
        if (nfs_incoming_is_idle(&s->incoming))
            return;
        if (s->pauses != 0) {
            /* It is our doing that nothing comes. */
            wait_for_more(s);
            return;
        }
        if (now_ns < s->receive_deadline_ns) {
            if (!conn_was_reset(&s->session.conn))
                look_later(s, now_ns);
            return;
        }
        log_limited(&limit, now_ns, CONFIG_LOG_WARNING,
                    "client %s: stopped in the middle of a record; closed",
                    nfs_address_text(nfs_session_client(s), text));
    }
    nfs_session_close(s);
}

static void on_stall_timer(struct timer *timer, uint64_t now_ns)
{
    struct nfs_session *s = container_of(timer, struct nfs_session, stall_timer);
    static struct log_limit limit;
    char text[NFS_ADDRESS_TEXT_BYTES];

    if (conn_backlog(&s->session.conn) == 0)
        return;
    if (s->session.conn.sent_bytes != s->stall_sent_bytes) {
        nfs_session_watch(s);
        return;
    }
    log_limited(&limit, now_ns, CONFIG_LOG_WARNING, "client %s: does not take its replies; closed",
                nfs_address_text(nfs_session_client(s), text));
    nfs_session_close(s);
}

static void on_retry_timer(struct timer *timer, uint64_t now_ns)
{
    struct nfs_session *s = container_of(timer, struct nfs_session, retry_timer);

    (void)now_ns;
    /* Read again only after a round in which none came back. */
    if (nfs_call_retry_held(s))
        set_timer(s, timer, NFS_HOLD_RETRY_NS);
    else
        nfs_session_resume(s, NFS_PAUSE_HELD);
}

static void on_mark_alarm(struct alarm *alarm, uint64_t now_ns)
{
    struct nfs_session *s = container_of(alarm, struct nfs_session, mark_alarm);

    (void)now_ns;
    /* The time that it was not read is not its own. */
    if (!nfs_incoming_is_idle(&s->incoming))
        wait_for_more(s);
    nfs_session_resume(s, NFS_PAUSE_MARK);
}

/* ------------------------------------------------------------------ beginning */

static void init(struct nfs_session *s, struct worker *worker, unsigned listener,
                 const struct sockaddr_storage *client)
{
    s->nfs = worker->nfs;
    s->session.worker = worker;
    s->session.listener = listener;
    s->session.client = *client;
    TAILQ_INIT(&s->calls);
    TAILQ_INIT(&s->held);
    TAILQ_INIT(&s->after_stream);
    timer_init(&s->receive_timer, on_receive_timer);
    timer_init(&s->stall_timer, on_stall_timer);
    timer_init(&s->retry_timer, on_retry_timer);
    alarm_init(&s->mark_alarm, on_mark_alarm);
}

void nfs_session_start(struct worker *worker, unsigned listener, int fd,
                       const struct sockaddr_storage *client)
{
    struct nfs_session *s = memory_zalloc(sizeof(*s), "an NFS client connection");

    init(s, worker, listener, client);
    int error = conn_open(&s->session.conn, &worker->loop, fd, &conn_ops);
    if (error < 0) {
        log_error("can't watch a client connection: %s", strerror(-error));
        meter_add(&session_meters(&s->session)->rejected, 1);
        close(fd);
        free(s);
        return;
    }
    const struct plan_listener *plan = session_listener(&s->session);
    struct rpc_record_limits limits = rpc_record_default_limits;
    if (plan->config->limits.record_bytes < RPC_RECORD_MAX_BYTES)
        limits.record_bytes = (uint32_t)plan->config->limits.record_bytes;
    else
        limits.record_bytes = RPC_RECORD_MAX_BYTES;
    limits.fragments = plan->config->limits.fragments;
    nfs_incoming_init(&s->incoming, &worker->loop, &limits);
    s->read_ahead_bytes = plan->pool->config->nfs.read_ahead_bytes;
    s->binding = nfs_binding_take(s, plan->pool->pool);
    nfs_keep_alive(fd);
    session_open(&s->session, &nfs_session_ops);
}
