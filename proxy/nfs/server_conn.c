/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server connection of a client connection: made when a call is dispatched, sends calls in the
 * order of their dispatch, and is lost with all that it had. See internal.h; what comes back is
 * reply.c's.
 *
 *      CLOSED ──a call──> (ASKING ──port──>) CONNECTING ──> OPEN ──server closes──> CLOSED
 *         ^                    │                  │ next endpoint ^
 *         └────────────────────┴── none left ─────┘───────────────┘
 *
 * Nothing is sent before it is OPEN, so that calls are still whole when connecting fails.
 */
#include "proxy/nfs/internal.h"

#include "protocols/rpc/mount3.h"
#include "proxy/control/log.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static const struct conn_ops conn_ops;

static void on_timer(struct timer *timer, uint64_t now_ns);

/* ------------------------------------------------------------------ which connection */

static const struct config_server *config_of(const struct nfs_exchange *e)
{
    const struct config_pool *pool = e->exchange.pool->config;

    for (size_t i = 0; i < pool->server_count; i++) {
        if (strcmp(pool->servers[i].name, e->exchange.server->name) == 0)
            return &pool->servers[i];
    }
    return NULL;
}

/* Where its MOUNT service is asked for; SAME for every other program, and for a server that a
 * reload took out. */
static uint32_t mount_port_for(const struct nfs_exchange *e)
{
    const struct config_server *server = e->prog == MOUNT_PROG ? config_of(e) : NULL;

    return server != NULL ? server->mount_port : CONFIG_MOUNT_PORT_SAME;
}

static struct nfs_server_conn *create(struct nfs_binding *b, enum nfs_conn_role role)
{
    struct nfs_server_conn *c = memory_zalloc(sizeof(*c), "an NFS server connection");

    c->binding = b;
    c->role = (uint8_t)role;
    c->conn.fd = -1;
    TAILQ_INIT(&c->calls);
    TAILQ_INIT(&c->collected);
    timer_init(&c->timer, on_timer);
    nfs_incoming_init(&c->incoming, b->nfs->loop, &b->limits);
    b->conns[role] = c;
    return c;
}

/* Settings that a reload may have changed count for the next connection. */
static void configure(struct nfs_server_conn *c, const struct nfs_exchange *e, uint32_t mount_port)
{
    const struct config_pool *config = e->exchange.pool->config;

    if (c->server != e->exchange.server) {
        c->server = e->exchange.server;
        c->source_port = 0;
        c->endpoint = 0;
    }
    c->mount_port = mount_port;
    c->connect_ns = config->timeouts.connect_ns;
    c->idle_ns = config->timeouts.idle_ns;
    c->reserved_port = config->nfs.reserved_port;
}

/* ------------------------------------------------------------------ ending */

void nfs_server_conn_remove(struct nfs_server_conn *c, struct nfs_exchange *e)
{
    if (c->unsent == e)
        c->unsent = TAILQ_NEXT(e, conn_link);
    if (c->replying == e)
        c->replying = NULL;
    TAILQ_REMOVE(&c->calls, e, conn_link);
    e->conn = NULL;
}

void nfs_server_conn_close(struct nfs_server_conn *c)
{
    if (c->state == NFS_CONN_ASKING)
        nfs_mount_ports_cancel(c->binding->nfs->mount_ports, c);
    c->state = NFS_CONN_CLOSED;
    conn_close(&c->conn);
    timer_unlink(&c->timer);
    nfs_incoming_fini(&c->incoming);
    nfs_blocks_clear(c->binding->nfs, &c->collected);
    c->reply_mode = NFS_REPLY_NONE;
    c->reply_session = NULL;
    c->replying = NULL;
    c->paused_for = NULL;
}

static void end_calls(struct nfs_server_conn *c, enum outcome outcome)
{
    struct nfs_exchange *e;

    while ((e = TAILQ_FIRST(&c->calls)) != NULL) {
        struct nfs_session *s = e->session;
        nfs_server_conn_remove(c, e);
        if (e->backchannel || e->done) {
            e->done = true;
            nfs_call_settle(e);
        } else {
            nfs_call_done(e, outcome, outcome == OUTCOME_FAILED ? "server-failed" : "client-gone");
        }
        if (s != NULL)
            nfs_session_finish(s);
    }
}

static unsigned count_unanswered(const struct nfs_server_conn *c)
{
    const struct nfs_exchange *e;
    unsigned count = 0;

    TAILQ_FOREACH(e, &c->calls, conn_link)
    {
        if (!e->backchannel && !e->done)
            count++;
    }
    return count;
}

void nfs_server_conn_lost(struct nfs_server_conn *c, enum outcome outcome, const char *why)
{
    static struct log_limit limit;
    struct nfs_binding *b = c->binding;
    struct nfs_session *streaming = c->reply_mode == NFS_REPLY_STREAM ? c->reply_session : NULL;
    char text[NFS_ADDRESS_TEXT_BYTES];

    if (c->state == NFS_CONN_CLOSED)
        return;
    unsigned unanswered = count_unanswered(c);
    if (outcome == OUTCOME_FAILED && unanswered > 0)
        log_limited(&limit, loop_now_ns(b->nfs->loop), CONFIG_LOG_WARNING,
                    "pool %s: server %s: %s, %u calls unanswered; the connection of client %s is "
                    "closed so that it "
                    "asks again",
                    c->server->pool->name, c->server->name, why, unanswered,
                    nfs_address_text((const struct sockaddr *)&b->client, text));
    nfs_server_conn_close(c);
    end_calls(c, outcome);
    /* Half a record was passed on: nothing can follow it. */
    if (streaming != NULL)
        nfs_session_finish(streaming);
    nfs_binding_settle(b);
}

/* ------------------------------------------------------------------ connecting */

static void set_port(struct sockaddr_storage *address, uint32_t port)
{
    if (address->ss_family == AF_INET)
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
    else if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
}

static int connect_to(struct nfs_server_conn *c, const struct config_endpoint *endpoint)
{
    struct loop *loop = c->binding->nfs->loop;
    struct sockaddr_storage address = endpoint->addr;
    const struct sockaddr *to = (const struct sockaddr *)&address;

    if (c->mount_port != CONFIG_MOUNT_PORT_SAME)
        set_port(&address, c->mount_port);
    int error = conn_connect(&c->conn, loop, to, endpoint->len, c->source_port, c->reserved_port,
                             &conn_ops);
    /* The port may still be in use towards this server. */
    if (error == -EADDRNOTAVAIL && c->source_port != 0)
        error = conn_connect(&c->conn, loop, to, endpoint->len, 0, c->reserved_port, &conn_ops);
    return error;
}

/* No endpoint takes the connection: the calls that wait for it are not lost silently. */
static void give_up(struct nfs_server_conn *c, int error, const char *why)
{
    struct nfs_worker *nfs = c->binding->nfs;

    if (conn_error_is_local(error))
        log_error("pool %s: server %s: can't make a connection here: %s", c->server->pool->name,
                  c->server->name, strerror(-error));
    else if (c->role == NFS_CONN_MAIN)
        gate_server_failed(c->server, loop_now_ns(nfs->loop));
    else
        nfs_mount_ports_forget(nfs->mount_ports, c->server);
    nfs_server_conn_lost(c, OUTCOME_FAILED, why);
}

/* The current endpoint, or the next one that can be tried. */
static void try_endpoints(struct nfs_server_conn *c)
{
    struct loop *loop = c->binding->nfs->loop;
    int error = -EHOSTUNREACH;

    c->state = NFS_CONN_CONNECTING;
    for (; c->tried < c->server->endpoint_count; c->tried++, c->endpoint++) {
        error = connect_to(c, &c->server->endpoints[c->endpoint % c->server->endpoint_count]);
        if (error == 0) {
            timer_set(&loop->wheel, &c->timer, loop_now_ns(loop) + c->connect_ns);
            return;
        }
    }
    give_up(c, error, strerror(-error));
}

static void try_next_endpoint(struct nfs_server_conn *c, const char *why)
{
    conn_close(&c->conn);
    timer_clear(&c->timer);
    c->tried++;
    c->endpoint++;
    if (c->tried < c->server->endpoint_count)
        try_endpoints(c);
    else
        give_up(c, -ECONNREFUSED, why);
}

static void connect_conn(struct nfs_server_conn *c)
{
    struct nfs_worker *nfs = c->binding->nfs;

    nfs_incoming_init(&c->incoming, nfs->loop, &c->binding->limits);
    c->tried = 0;
    if (c->mount_port == CONFIG_MOUNT_PORT_PORTMAP) {
        c->state = NFS_CONN_ASKING;
        int port = nfs_mount_ports_get(nfs->mount_ports, c->server, c, c->connect_ns);
        if (port != 0)
            nfs_server_conn_mount_port(c, port > 0 ? (uint16_t)port : 0);
        return;
    }
    try_endpoints(c);
}

void nfs_server_conn_mount_port(struct nfs_server_conn *c, uint16_t port)
{
    /* It does not wait any more, whatever comes of it. */
    c->state = NFS_CONN_CONNECTING;
    if (port == 0) {
        give_up(c, -EHOSTUNREACH, "its portmapper does not tell the port of MOUNT");
        return;
    }
    c->mount_port = port;
    try_endpoints(c);
}

/* ------------------------------------------------------------------ sending */

/* Of an exchange whose turn it is. True: all of it was sent. */
static bool push(struct nfs_server_conn *c, struct nfs_exchange *e)
{
    struct nfs_block *block;

    e->begun = true;
    if (e->arena != NULL) {
        if (e->marked)
            conn_send(&c->conn, e->arena, e->arena_bytes);
        else
            nfs_framing_send(&e->framing, &c->conn, e->known_bytes, e->arena, e->arena_bytes);
        nfs_arena_leave(e->nfs, e);
        nfs_call_wait_bytes(e, -(int64_t)e->arena_bytes);
    }
    while ((block = TAILQ_FIRST(&e->blocks)) != NULL) {
        if (nfs_conn_is_stalled(&c->conn, NFS_SERVER_BACKLOG_BYTES))
            return false;
        if (e->marked)
            conn_send(&c->conn, block->bytes, block->length);
        else
            nfs_framing_send(&e->framing, &c->conn, e->known_bytes, block->bytes, block->length);
        nfs_call_wait_bytes(e, -(int64_t)block->length);
        nfs_blocks_first_sent(e->nfs, &e->blocks);
    }
    if (!e->complete)
        return false;
    if (!e->marked && !e->framing.closed)
        nfs_framing_send(&e->framing, &c->conn, e->known_bytes, NULL, 0);
    return true;
}

void nfs_server_conn_pump(struct nfs_server_conn *c)
{
    struct nfs_exchange *e;

    while (c->state == NFS_CONN_OPEN && (e = c->unsent) != NULL) {
        bool sent = !nfs_conn_is_stalled(&c->conn, NFS_SERVER_BACKLOG_BYTES) && push(c, e);
        if (!sent) {
            if (c->binding->session != NULL &&
                nfs_conn_is_stalled(&c->conn, NFS_SERVER_BACKLOG_BYTES))
                nfs_session_pause(c->binding->session, NFS_PAUSE_SERVER);
            return;
        }
        c->unsent = TAILQ_NEXT(e, conn_link);
        if (e->backchannel || e->done) {
            nfs_server_conn_remove(c, e);
            nfs_call_settle(e);
        }
    }
}

bool nfs_server_conn_pass(struct nfs_server_conn *c, struct nfs_exchange *e, const uint8_t *bytes,
                          size_t length)
{
    if (c->state != NFS_CONN_OPEN || c->unsent != e || !e->begun || e->arena != NULL ||
        !TAILQ_EMPTY(&e->blocks))
        return false;
    nfs_framing_send(&e->framing, &c->conn, e->known_bytes, bytes, length);
    return true;
}

static void enqueue(struct nfs_server_conn *c, struct nfs_exchange *e)
{
    e->conn = c;
    TAILQ_INSERT_TAIL(&c->calls, e, conn_link);
    if (c->unsent == NULL)
        c->unsent = e;
}

void nfs_server_conn_send(struct nfs_binding *b, struct nfs_exchange *e)
{
    uint32_t mount_port = mount_port_for(e);
    enum nfs_conn_role role = mount_port == CONFIG_MOUNT_PORT_SAME ? NFS_CONN_MAIN : NFS_CONN_MOUNT;
    struct nfs_server_conn *c = b->conns[role] != NULL ? b->conns[role] : create(b, role);

    if (c->state != NFS_CONN_CLOSED && c->server != e->exchange.server && TAILQ_EMPTY(&c->calls))
        nfs_server_conn_close(c);
    if (c->state != NFS_CONN_CLOSED && c->server != e->exchange.server) {
        /* The client was moved to another pool while the old one still works for it: it has to
         * begin anew. */
        struct nfs_session *s = e->session;
        nfs_call_done(e, OUTCOME_ABORTED, "moved");
        if (s != NULL)
            nfs_session_wind_down(s);
        return;
    }
    enqueue(c, e);
    if (c->state == NFS_CONN_OPEN) {
        nfs_server_conn_pump(c);
    } else if (c->state == NFS_CONN_CLOSED) {
        configure(c, e, mount_port);
        connect_conn(c);
    }
}

void nfs_server_conn_send_backchannel(struct nfs_binding *b, struct nfs_exchange *e)
{
    struct nfs_server_conn *c = b->conns[NFS_CONN_MAIN];

    if (c == NULL || c->state != NFS_CONN_OPEN) {
        /* Who asked is not there any more. */
        e->done = true;
        nfs_call_settle(e);
        return;
    }
    enqueue(c, e);
    nfs_server_conn_pump(c);
}

/* ------------------------------------------------------------------ events */

static struct nfs_server_conn *of_conn(struct conn *conn)
{
    return container_of(conn, struct nfs_server_conn, conn);
}

static void on_connected(struct conn *conn)
{
    struct nfs_server_conn *c = of_conn(conn);

    c->state = NFS_CONN_OPEN;
    c->source_port = conn_local_port(conn);
    timer_clear(&c->timer);
    nfs_keep_alive(conn->fd);
    if (c->role == NFS_CONN_MAIN)
        gate_server_connected(c->server);
    nfs_server_conn_pump(c);
}

static void on_failed(struct conn *conn, int error)
{
    struct nfs_server_conn *c = of_conn(conn);

    if (c->state == NFS_CONN_CONNECTING)
        try_next_endpoint(c, strerror(error));
    else
        nfs_server_conn_lost(c, OUTCOME_FAILED, strerror(error));
}

static void on_end_of_stream(struct conn *conn)
{
    nfs_server_conn_lost(of_conn(conn), OUTCOME_FAILED, "it closed the connection");
}

static void on_drained(struct conn *conn)
{
    struct nfs_server_conn *c = of_conn(conn);

    nfs_server_conn_pump(c);
    if (c->binding->session != NULL && !nfs_conn_is_stalled(conn, NFS_SERVER_BACKLOG_BYTES))
        nfs_session_resume(c->binding->session, NFS_PAUSE_SERVER);
}

static void on_timer(struct timer *timer, uint64_t now_ns)
{
    struct nfs_server_conn *c = container_of(timer, struct nfs_server_conn, timer);

    (void)now_ns;
    if (c->state == NFS_CONN_CONNECTING)
        try_next_endpoint(c, "it does not answer connecting");
    else
        nfs_server_conn_lost(c, OUTCOME_FAILED, "it stopped in the middle of a reply");
}

static const struct conn_ops conn_ops = {
    .readable = nfs_reply_readable,
    .end_of_stream = on_end_of_stream,
    .failed = on_failed,
    .drained = on_drained,
    .connected = on_connected,
};
