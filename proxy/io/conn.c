/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: see conn.h for states, input, output and ownership. */
#include "proxy/io/conn.h"

#include "proxy/io/memory.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(struct conn *conn, int error)
{
    /* Reading and writing may both find the socket broken; the owner hears of it once. */
    if (conn->failed)
        return;
    event_del(&conn->read_event);
    if (conn->blocked)
        event_del(&conn->write_event);
    conn->blocked = false;
    conn->paused = true;
    conn->failed = true;
    conn->ops->failed(conn, error);
}

static int socket_error(struct conn *conn)
{
    int error = 0;
    socklen_t length = sizeof(error);

    return getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
}

static void finish_shutdown(struct conn *conn)
{
    if (!conn->shut || conn->shut_done || !conn_is_open(conn) || conn->blocked || conn->failed)
        return;
    conn->shut_done = true;
    shutdown(conn->fd, SHUT_WR);
    if (conn->ops->drained != NULL)
        conn->ops->drained(conn);
}

static void on_readable(evutil_socket_t fd, short what, void *argument)
{
    struct conn *conn = argument;

    (void)fd;
    if (what & EV_CLOSED)
        conn->peer_closed = true;
    conn->unread = true;
    if (!conn->paused && !conn->ended) {
        conn_read(conn);
    } else if (!conn->failed) {
        /* A broken peer is reported even to an owner that does not read, or has read everything:
         * its request may be waiting. */
        int error = socket_error(conn);
        if (error != 0)
            fail(conn, error);
    }
}

static bool is_connected(struct conn *conn)
{
    int error = socket_error(conn);

    if (error != 0) {
        fail(conn, error);
        return false;
    }
    conn->connecting = false;
    if (conn->ops->connected != NULL)
        conn->ops->connected(conn);
    return conn_is_open(conn);
}

static void unblock(struct conn *conn)
{
    conn->blocked = false;
    event_del(&conn->write_event);
}

static void block(struct conn *conn)
{
    if (!conn->blocked) {
        conn->blocked = true;
        event_add(&conn->write_event, NULL);
    }
}

static void on_writable(evutil_socket_t fd, short what, void *argument)
{
    struct conn *conn = argument;

    (void)fd;
    (void)what;
    if (conn->connecting && !is_connected(conn))
        return;
    while (buffer_length(&conn->pending) > 0) {
        ssize_t sent = send(conn->fd, buffer_bytes(&conn->pending), buffer_length(&conn->pending),
                            MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN)
                fail(conn, errno);
            return;
        }
        conn->sent_bytes += (size_t)sent;
        buffer_consume(&conn->loop->buffers, &conn->pending, (size_t)sent);
    }
    unblock(conn);
    if (conn->shut && conn->references == NULL)
        finish_shutdown(conn);
    else if (conn->ops->drained != NULL)
        conn->ops->drained(conn);
}

static void init(struct conn *conn, struct loop *loop, int fd, const struct conn_ops *ops)
{
    memset(conn, 0, sizeof(*conn));
    conn->loop = loop;
    conn->ops = ops;
    conn->fd = fd;
    event_assign(&conn->read_event, loop->base, fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST,
                 on_readable, conn);
    event_assign(&conn->write_event, loop->base, fd, EV_WRITE | EV_ET | EV_PERSIST, on_writable,
                 conn);
}

static void set_no_delay(int fd, int family)
{
    int one = 1;

    if (family == AF_INET || family == AF_INET6)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int conn_open(struct conn *conn, struct loop *loop, int fd, const struct conn_ops *ops)
{
    init(conn, loop, fd, ops);
    if (event_add(&conn->read_event, NULL) < 0) {
        conn->fd = -1;
        return -ENOMEM;
    }
    return 0;
}

/* `again`: also when an earlier connection from there is in TIME_WAIT; connecting says if it can't
 * be. */
static int bind_source(int fd, int family, uint16_t port, bool again)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    int reuse = again;

    memset(&address, 0, sizeof(address));
    address.any.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        address.v4.sin_port = htons(port);
    else if (family == AF_INET6)
        address.v6.sin6_port = htons(port);
    else
        return 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    if (bind(fd, &address.any, family == AF_INET ? sizeof(address.v4) : sizeof(address.v6)) < 0)
        return -errno;
    return 0;
}

static int bind_reserved(int fd, int family)
{
    int error = -EADDRINUSE;

    /* From the top, as bindresvport() does, without its process-wide state. */
    for (uint16_t port = 1023; port >= 600; port--) {
        error = bind_source(fd, family, port, false);
        if (error != -EADDRINUSE)
            break;
    }
    return error;
}

int conn_connect(struct conn *conn, struct loop *loop, const struct sockaddr *address,
                 socklen_t length, uint16_t source_port, bool reserved, const struct conn_ops *ops)
{
    int error = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    set_no_delay(fd, address->sa_family);
    if (source_port == 0 || bind_source(fd, address->sa_family, source_port, true) < 0) {
        if (reserved)
            error = bind_reserved(fd, address->sa_family);
        if (error < 0)
            goto fail;
    }
    if (connect(fd, address, length) < 0 && errno != EINPROGRESS) {
        error = -errno;
        goto fail;
    }
    init(conn, loop, fd, ops);
    conn->connecting = true;
    if (event_add(&conn->read_event, NULL) < 0) {
        error = -ENOMEM;
        goto fail;
    }
    block(conn);
    return 0;
fail:
    close(fd);
    conn->fd = -1;
    return error;
}

bool conn_error_is_local(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM ||
           error == -EADDRINUSE || error == -EADDRNOTAVAIL || error == -EACCES || error == -EPERM;
}

bool conn_was_reset(struct conn *conn)
{
    if (!conn_is_open(conn) || conn->failed)
        return true;
    int error = socket_error(conn);
    if (error != 0)
        fail(conn, error);
    return error != 0;
}

static void free_references(struct conn *conn)
{
    block_free(&conn->loop->buffers, conn->references, sizeof(*conn->references));
    conn->references = NULL;
}

void conn_close(struct conn *conn)
{
    if (conn->fd < 0)
        return;
    event_del(&conn->read_event);
    event_del(&conn->write_event);
    close(conn->fd);
    conn->fd = -1;
    if (conn->is_dirty)
        TAILQ_REMOVE(&conn->loop->dirty, conn, dirty_link);
    if (conn->resuming)
        LIST_REMOVE(conn, resume_link);
    conn->is_dirty = conn->resuming = conn->blocked = false;
    free_references(conn);
    buffer_clear(&conn->loop->buffers, &conn->pending);
}

static void mark_dirty(struct conn *conn)
{
    if (!conn->is_dirty) {
        conn->is_dirty = true;
        TAILQ_INSERT_TAIL(&conn->loop->dirty, conn, dirty_link);
    }
}

void conn_send(struct conn *conn, const void *bytes, size_t length)
{
    struct conn_references *references = conn->references;

    if (conn->fd < 0 || conn->failed || length == 0)
        return;
    if (references == NULL) {
        size_t capacity;
        references = block_alloc(&conn->loop->buffers, sizeof(*references), &capacity);
        references->count = 0;
        references->bytes = 0;
        conn->references = references;
        mark_dirty(conn);
    } else {
        struct iovec *last = &references->vectors[references->count - 1];
        if ((const uint8_t *)last->iov_base + last->iov_len == bytes) {
            last->iov_len += length;
            references->bytes += length;
            return;
        }
        if (references->count == CONN_REFERENCES) {
            /* Copied, not sent: a failure must not reach the owner in the middle of its own call.
             */
            for (unsigned i = 0; i < references->count; i++)
                buffer_append(&conn->loop->buffers, &conn->pending, references->vectors[i].iov_base,
                              references->vectors[i].iov_len);
            references->count = 0;
            references->bytes = 0;
        }
    }
    references->vectors[references->count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    references->bytes += length;
}

void conn_shutdown(struct conn *conn)
{
    conn->shut = true;
    if (conn_is_open(conn))
        mark_dirty(conn);
}

/* Copies what is left of the references behind the pending bytes, skipping what was sent. */
static void keep_rest(struct conn *conn, size_t sent)
{
    struct conn_references *references = conn->references;

    for (unsigned i = 0; i < references->count; i++) {
        struct iovec *vector = &references->vectors[i];
        if (sent >= vector->iov_len) {
            sent -= vector->iov_len;
            continue;
        }
        buffer_append(&conn->loop->buffers, &conn->pending, (uint8_t *)vector->iov_base + sent,
                      vector->iov_len - sent);
        sent = 0;
    }
}

/* One sendmsg of pending bytes (copied early by conn_send) and references. Returns bytes sent or
 * -errno. */
static ssize_t send_all(struct conn *conn)
{
    struct iovec vectors[CONN_REFERENCES + 1];
    unsigned count = 0;

    if (buffer_length(&conn->pending) > 0)
        vectors[count++] = (struct iovec){.iov_base = buffer_bytes(&conn->pending),
                                          .iov_len = buffer_length(&conn->pending)};
    for (unsigned i = 0; i < conn->references->count; i++)
        vectors[count++] = conn->references->vectors[i];
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};
    ssize_t sent;
    do {
        sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

static void note_connected(struct conn *conn)
{
    unblock(conn);
    conn->connecting = false;
    if (conn->ops->connected != NULL)
        conn->ops->connected(conn);
}

static void send_references(struct conn *conn)
{
    size_t backlog = conn_backlog(conn);
    /* Even while connecting: over loopback the handshake is done before connect() returns. */
    ssize_t sent = conn->blocked && !conn->connecting ? -EAGAIN : send_all(conn);
    size_t done = sent > 0 ? (size_t)sent : 0;

    if (sent < 0 && sent != -EAGAIN) {
        free_references(conn);
        fail(conn, (int)-sent);
        return;
    }
    conn->sent_bytes += done;
    size_t held = buffer_length(&conn->pending);
    size_t early = done < held ? done : held;
    if (early > 0)
        buffer_consume(&conn->loop->buffers, &conn->pending, early);
    keep_rest(conn, done - early);
    free_references(conn);
    if (buffer_length(&conn->pending) > 0) {
        bool stood = conn->blocked;
        block(conn);
        if (!stood && conn->ops->blocked != NULL)
            conn->ops->blocked(conn);
        return;
    }
    if (conn->connecting && sent > 0)
        note_connected(conn);
    if (backlog > CONN_BACKLOG_BYTES && conn_is_open(conn) && conn->ops->drained != NULL)
        conn->ops->drained(conn);
}

void conn_flush(struct conn *conn)
{
    TAILQ_REMOVE(&conn->loop->dirty, conn, dirty_link);
    conn->is_dirty = false;
    if (conn->references != NULL)
        send_references(conn);
    finish_shutdown(conn);
}

static void resume_later(struct conn *conn)
{
    if (!conn->resuming) {
        conn->resuming = true;
        LIST_INSERT_HEAD(&conn->loop->resuming, conn, resume_link);
    }
}

void conn_read(struct conn *conn)
{
    size_t budget = CONN_READ_TURN_BYTES;

    while (!conn->paused && conn->unread && !conn->ended) {
        size_t room;
        uint8_t *bytes = loop_receive_room(conn->loop, &room);
        if (!conn_is_open(conn) || conn->paused)
            return;
        ssize_t received = recv(conn->fd, bytes, room, 0);
        if (received < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                conn->unread = false;
            else
                fail(conn, errno);
            return;
        }
        if (received == 0) {
            conn->unread = false;
            conn->peer_closed = true;
            conn->ended = true;
            conn->ops->end_of_stream(conn);
            return;
        }
        /* A short receive emptied the socket, unless the end of the stream stands behind it. */
        if ((size_t)received < room && !conn->peer_closed)
            conn->unread = false;
        conn->loop->arena_used += (size_t)received;
        conn->received_bytes += (size_t)received;
        conn->ops->readable(conn, bytes, (size_t)received);
        if (!conn_is_open(conn))
            return;
        if (conn->unread && !conn->paused) {
            if (budget <= (size_t)received) {
                resume_later(conn);
                return;
            }
            budget -= (size_t)received;
        }
    }
}

void conn_pause(struct conn *conn)
{
    conn->paused = true;
}

void conn_resume(struct conn *conn)
{
    if (!conn->paused || conn->failed || !conn_is_open(conn))
        return;
    conn->paused = false;
    if (conn->unread)
        resume_later(conn);
}

uint16_t conn_local_port(const struct conn *conn)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof(address);

    if (conn->fd < 0 || getsockname(conn->fd, (struct sockaddr *)&address, &length) < 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}
