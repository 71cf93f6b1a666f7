/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: one non-blocking stream socket on one loop, embedded in a session of either side.
 *
 *      connecting ──> open ──> closed (fd = -1; the memory lives until the end of the turn)
 *
 * Input. Events are edge-triggered and never re-armed. When bytes arrive the connection receives
 * once (a short receive means that nothing is left) and calls `readable`. conn_pause() stops that
 * without a system call: the bytes stay in the kernel, its window closes, the sender waits.
 * conn_resume() goes on.
 *
 * Output. conn_send() queues a reference and costs no system call; the loop sends everything that
 * was queued in a turn at once. Bytes stay the caller's until the loop settles (arena and scratch
 * do by construction); what the kernel did not take is copied then. conn_backlog() says how much is
 * on the way: a producer that sees it above its watermark pauses its source, and resumes it in
 * `drained`.
 *
 * Owner's callbacks (none may free the connection's memory; all may close it):
 *   readable       bytes came, not yours beyond this call
 *   end_of_stream  the peer will send no more; output still flows. Called once.
 *   failed         the socket is broken (errno value); close it. Called once.
 *   blocked        the kernel took not everything: a backlog stands (optional, as those below)
 *   drained        a backlog that had stood, or was above CONN_BACKLOG_BYTES, is sent; or a
 *                  conn_shutdown() was carried out
 *   connected      conn_connect() succeeded
 */
#ifndef SPILLWAY_IO_CONN_H
#define SPILLWAY_IO_CONN_H

#include "proxy/io/loop.h"

#include <sys/socket.h>
#include <sys/uio.h>

#define CONN_REFERENCES      62 /* queued references before the connection sends early */
#define CONN_READ_TURN_BYTES (UINT32_C(1) << 20)  /* by one connection in one go */
#define CONN_BACKLOG_BYTES   (UINT32_C(64) << 10) /* watermarks must not lie below: see `drained` */

struct conn_ops {
    void (*readable)(struct conn *conn, uint8_t *bytes, size_t length);
    void (*end_of_stream)(struct conn *conn);
    void (*failed)(struct conn *conn, int error);
    void (*blocked)(struct conn *conn);
    void (*drained)(struct conn *conn);
    void (*connected)(struct conn *conn);
};

struct conn_references {
    unsigned count;
    size_t bytes;
    struct iovec vectors[CONN_REFERENCES];
};

struct conn {
    struct loop *loop;
    const struct conn_ops *ops;
    int fd;
    bool connecting : 1;
    bool paused : 1;
    bool unread : 1;      /* the kernel holds input that no event will announce again */
    bool peer_closed : 1; /* end_of_stream was or will be reported */
    bool ended : 1;       /* it was reported */
    bool blocked : 1;     /* waits for writability: `pending` is not empty, or connecting */
    bool is_dirty : 1;
    bool resuming : 1;
    bool failed : 1;
    bool shut : 1; /* our direction ends when the backlog is sent */
    bool shut_done : 1;
    struct event read_event;
    struct event write_event;
    TAILQ_ENTRY(conn) dirty_link;
    LIST_ENTRY(conn) resume_link;
    struct conn_references *references; /* this turn's output */
    struct buffer pending;              /* earlier output that the kernel did not take */
    uint64_t received_bytes, sent_bytes;
};

/* Takes over a connected socket. Reading begins with the next turn. 0 or -errno (the fd stays the
 * caller's). */
int conn_open(struct conn *conn, struct loop *loop, int fd, const struct conn_ops *ops);

/*
 * Begins to connect. `source_port` != 0 asks for that local port, falling back to any other.
 * `reserved` asks for a local port below 1024. 0 or -errno; -errno only for what is known at once.
 */
int conn_connect(struct conn *conn, struct loop *loop, const struct sockaddr *address,
                 socklen_t length, uint16_t source_port, bool reserved, const struct conn_ops *ops);

/* Whether -errno of conn_connect() speaks of this host (descriptors, memory, ports), not of the
 * server. */
bool conn_error_is_local(int error);

/*
 * Asks whether the connection was reset. True: yes, and `failed` was called. A reset that comes
 * right behind data causes no event of its own, so an owner that waits for more asks now and then.
 */
bool conn_was_reset(struct conn *conn);

/* Closes the socket, drops what was not sent. Safe on a closed connection. */
void conn_close(struct conn *conn);

static inline bool conn_is_open(const struct conn *conn)
{
    return conn->fd >= 0;
}

/* Queues `length` bytes by reference; see above for how long they must stay. No-op when closed. */
void conn_send(struct conn *conn, const void *bytes, size_t length);

/* Sends a FIN behind everything queued so far. */
void conn_shutdown(struct conn *conn);

static inline size_t conn_backlog(const struct conn *conn)
{
    return buffer_length(&conn->pending) + (conn->references != NULL ? conn->references->bytes : 0);
}

void conn_pause(struct conn *conn);
void conn_resume(struct conn *conn);

/* The local port of a TCP connection, 0 otherwise. */
uint16_t conn_local_port(const struct conn *conn);

/* For the loop alone. */
void conn_read(struct conn *conn);
void conn_flush(struct conn *conn);

#endif
