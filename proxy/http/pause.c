/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that are slowed down: what a mark of the admission policy does to a connection.
 *
 *      EXCHANGE ──marked──> EXCHANGE ──reply sent──> IDLE, paused ──the pause ends──> IDLE or HEAD
 *                              └── longer than the pause was to be ──> IDLE, as ever
 *
 * The pause counts from the mark, and at most HTTP_PAUSE_MAX_NS. While its request is in hand the
 * client is read as ever: a body that has begun would only hold a slot for longer if it stalled,
 * and a client that goes away has to be noticed (`input` is bounded whatever it sends). From the
 * reply on nothing is read and nothing that stands in `input` is begun until the pause has ended.
 * So a request is late, never lost, and an arrival's time is when it was looked at.
 *
 *   keep-alive       its time limit begins when the pause ends
 *   FIN, reset       found when the pause ends, then as ever; requests before a FIN are answered.
 *                    A client that had said FIN before and has no request left is not paused
 *   abort-on-close   concerns requests in hand, hence as ever
 *   draining         ends the pause: what had been sent is answered, for the last time
 *   tunnels          are not slowed: no request will follow
 *   closed after the reply (HTTP/1.0, `Connection: close`): nothing is left to slow down; only the
 *                    reply's Spillway-Mark (http1_write.h) tells the client
 *
 * Invariants: `pause` is set only in phase IDLE, with the connection paused; its end comes from
 * here alone, or with the session's.
 */
#include "proxy/http/internal.h"

#define MS_NS UINT64_C(1000000)

void http_pause_ask(struct http_exchange *exchange, uint64_t pause_ns)
{
    struct http_session *session = exchange->session;

    if (pause_ns > HTTP_PAUSE_MAX_NS)
        pause_ns = HTTP_PAUSE_MAX_NS;
    exchange->mark_ms = (uint16_t)((pause_ns + MS_NS - 1) / MS_NS);
    session->pause_until_ns = loop_now_ns(loop_of(session)) + pause_ns;
}

bool http_pause_begin(struct http_session *session)
{
    struct loop *loop = loop_of(session);
    uint64_t until_ns = session->pause_until_ns;

    session->pause_until_ns = 0;
    if (until_ns <= loop_now_ns(loop) || http_has_said_all(session))
        return false;
    conn_pause(&session->base.conn);
    alarm_set(loop, &session->pause, until_ns);
    http_session_arm(session);
    return true;
}

void http_pause_end(struct http_session *session)
{
    alarm_clear(loop_of(session), &session->pause);
    conn_resume(&session->base.conn);
    http_session_continue(session);
    if (conn_is_open(&session->base.conn) && session->phase == HTTP_PHASE_IDLE)
        http_session_arm(session);
}

static void on_pause_over(struct alarm *alarm, uint64_t now_ns)
{
    (void)now_ns;
    http_pause_end(container_of(alarm, struct http_session, pause));
}

void http_pause_init(struct http_session *session)
{
    alarm_init(&session->pause, on_pause_over);
}
