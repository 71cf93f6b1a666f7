/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of MOUNT services, asked of the servers' portmappers (RFC 1833) once each.
 *
 *      UNKNOWN ──first connection that needs it──> ASKING ──answer──> KNOWN
 * ──nfs_mount_ports_forget──> UNKNOWN └── no answer ──> UNKNOWN (who waited is told 0)
 *
 * One question at a time per server, over a connection of its own; server connections wait in a
 * list.
 */
#include "proxy/nfs/internal.h"

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/portmap.h"
#include "proxy/control/log.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

TAILQ_HEAD(waiting_conns, nfs_server_conn);

struct question {
    struct conn conn;
    struct server *server;
    struct nfs_mount_ports *ports;
    uint16_t port; /* 0: UNKNOWN or ASKING */
    bool asking;
    struct nfs_incoming incoming;
    struct timer timer;
    struct waiting_conns waiting;
};

struct slot {
    struct question *question; /* NULL: never needed */
};

struct nfs_mount_ports {
    struct loop *loop;
    struct slot *slots; /* by server index */
    unsigned count;
};

struct nfs_mount_ports *nfs_mount_ports_create(struct loop *loop)
{
    struct nfs_mount_ports *ports = memory_zalloc(sizeof(*ports), "what is known of MOUNT ports");

    ports->loop = loop;
    return ports;
}

static void stop(struct question *q)
{
    conn_close(&q->conn);
    timer_unlink(&q->timer);
    nfs_incoming_fini(&q->incoming);
    q->asking = false;
}

void nfs_mount_ports_destroy(struct nfs_mount_ports *ports)
{
    for (unsigned i = 0; i < ports->count; i++) {
        if (ports->slots[i].question != NULL)
            stop(ports->slots[i].question);
        free(ports->slots[i].question);
    }
    free(ports->slots);
    free(ports);
}

/* ------------------------------------------------------------------ the answer */

static void answer(struct question *q, uint16_t port)
{
    struct waiting_conns waiting = TAILQ_HEAD_INITIALIZER(waiting);
    struct nfs_server_conn *c;

    stop(q);
    q->port = port;
    TAILQ_CONCAT(&waiting, &q->waiting, ask_link);
    while ((c = TAILQ_FIRST(&waiting)) != NULL) {
        TAILQ_REMOVE(&waiting, c, ask_link);
        nfs_server_conn_mount_port(c, port);
    }
}

static void fail(struct question *q, const char *why)
{
    static struct log_limit limit;

    log_limited(&limit, loop_now_ns(q->ports->loop), CONFIG_LOG_WARNING,
                "pool %s: server %s: its portmapper does not tell the port of MOUNT: %s",
                q->server->pool->name, q->server->name, why);
    answer(q, 0);
}

static void on_readable(struct conn *conn, uint8_t *bytes, size_t length)
{
    struct question *q = container_of(conn, struct question, conn);
    struct nfs_piece piece;
    struct rpc_reply reply;
    uint16_t port = 0;

    (void)nfs_incoming_next(&q->incoming, bytes, length, &piece);
    if (piece.type == NFS_RECORD_MORE)
        return;
    const uint8_t *payload = piece.bytes + RPC_RECORD_MARK_BYTES;
    size_t payload_bytes = piece.length - RPC_RECORD_MARK_BYTES;
    if (piece.type != NFS_RECORD_WHOLE ||
        rpc_parse_reply(payload, payload_bytes, &reply) != RPC_PARSE_OK || reply.denied ||
        reply.accept != RPC_ACCEPT_SUCCESS ||
        portmap_parse_getport_reply(payload + reply.body_offset, payload_bytes - reply.body_offset,
                                    &port) != RPC_PARSE_OK)
        fail(q, "it answers nonsense");
    else if (port == 0)
        fail(q, "MOUNT is not registered");
    else
        answer(q, port);
}

static void on_end_of_stream(struct conn *conn)
{
    fail(container_of(conn, struct question, conn), "it closed the connection");
}

static void on_failed(struct conn *conn, int error)
{
    fail(container_of(conn, struct question, conn), strerror(error));
}

static void on_connected(struct conn *conn)
{
    uint8_t *call = loop_scratch(conn->loop, PORTMAP_CALL_BYTES);
    size_t size =
        portmap_write_getport(call, PORTMAP_CALL_BYTES, 1, MOUNT_PROG, MOUNT3_VERS, PORTMAP_TCP);

    conn_send(conn, call, size);
}

static void on_timer(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    fail(container_of(timer, struct question, timer), "it does not answer");
}

static const struct conn_ops conn_ops = {
    .readable = on_readable,
    .end_of_stream = on_end_of_stream,
    .failed = on_failed,
    .connected = on_connected,
};

/* ------------------------------------------------------------------ the question */

static struct question *question_of(struct nfs_mount_ports *ports, struct server *server)
{
    unsigned index = server->index;

    if (index >= ports->count) {
        unsigned count = index + 1;
        ports->slots = memory_resize(ports->slots, count * sizeof(*ports->slots),
                                     "what is known of MOUNT ports");
        memset(ports->slots + ports->count, 0, (count - ports->count) * sizeof(*ports->slots));
        ports->count = count;
    }
    if (ports->slots[index].question == NULL) {
        struct question *q = memory_zalloc(sizeof(*q), "a question to a portmapper");
        q->conn.fd = -1;
        q->server = server;
        q->ports = ports;
        TAILQ_INIT(&q->waiting);
        timer_init(&q->timer, on_timer);
        nfs_incoming_init(&q->incoming, ports->loop, NULL);
        ports->slots[index].question = q;
    }
    return ports->slots[index].question;
}

static int ask(struct question *q)
{
    const struct config_endpoint *endpoint = &q->server->endpoints[0];
    struct sockaddr_storage address = endpoint->addr;

    if (address.ss_family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_port = htons(PORTMAP_PORT);
    else if (address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_port = htons(PORTMAP_PORT);
    else
        return -EAFNOSUPPORT;
    nfs_incoming_init(&q->incoming, q->ports->loop, NULL);
    return conn_connect(&q->conn, q->ports->loop, (const struct sockaddr *)&address, endpoint->len,
                        0, false, &conn_ops);
}

int nfs_mount_ports_get(struct nfs_mount_ports *ports, struct server *server,
                        struct nfs_server_conn *c, uint64_t timeout_ns)
{
    struct question *q = question_of(ports, server);

    if (q->port != 0)
        return q->port;
    if (!q->asking) {
        int error = server->endpoint_count > 0 ? ask(q) : -EDESTADDRREQ;
        if (error < 0)
            return error;
        q->asking = true;
        timer_set(&ports->loop->wheel, &q->timer, loop_now_ns(ports->loop) + timeout_ns);
    }
    TAILQ_INSERT_TAIL(&q->waiting, c, ask_link);
    return 0;
}

void nfs_mount_ports_forget(struct nfs_mount_ports *ports, const struct server *server)
{
    if (server->index < ports->count && ports->slots[server->index].question != NULL)
        ports->slots[server->index].question->port = 0;
}

void nfs_mount_ports_cancel(struct nfs_mount_ports *ports, struct nfs_server_conn *c)
{
    TAILQ_REMOVE(&ports->slots[c->server->index].question->waiting, c, ask_link);
}
