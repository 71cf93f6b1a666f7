/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: connecting, accepting, closing. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/net/stream.h"
#include "loadgen/net/stream_private.h"

/* Connections taken per turn, so that a flood of them leaves time for those that are there. */
#define ACCEPTS_PER_TURN 64
/* After running out of descriptors: wait this long for some to come back. */
#define ACCEPT_RETRY_NS 10000000ULL

static void stream_setup(struct stream *stream, struct loop *loop, int fd,
                         const struct stream_handler *handler)
{
    memset(stream, 0, sizeof(*stream));
    stream->io.fd = fd;
    stream->io.ready = stream_ready;
    stream->turn_end.run = stream_turn_end;
    stream->loop = loop;
    stream->handler = handler;
}

int stream_open(struct stream *stream, struct loop *loop, int fd,
                const struct stream_handler *handler)
{
    stream_setup(stream, loop, fd, handler);
    stream->state = STREAM_OPEN;
    stream->linked = true;
    stream->writable = true;
    int error = loop_add(loop, &stream->io);

    if (error) {
        close(fd);
        stream->state = STREAM_CLOSED;
    }
    return error;
}

void stream_connect(struct stream *stream, struct loop *loop, const struct sockaddr *address,
                    socklen_t length, const struct stream_handler *handler)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    int error = 0;

    stream_setup(stream, loop, fd, handler);
    stream->state = STREAM_CONNECTING;
    if (fd < 0) {
        error = errno;
    } else {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (connect(fd, address, length) < 0 && errno != EINPROGRESS)
            error = errno;
        else
            error = -loop_add(loop, &stream->io);
    }
    if (error)
        stream_close(stream, error);
}

void stream_connect_result(struct stream *stream, uint32_t events)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        return;
    if (getsockopt(stream->io.fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error) {
        stream_close(stream, error);
        return;
    }
    if (!(events & EPOLLOUT))
        return;
    stream->linked = true;
    stream->writable = true;
    if (stream->tls) {
        stream_tls_start(stream);
        return;
    }
    stream->state = STREAM_OPEN;
    if (stream->handler->connected)
        stream->handler->connected(stream);
}

void stream_close(struct stream *stream, int error)
{
    if (stream->state == STREAM_CLOSED)
        return;
    if (stream->tls && stream->state == STREAM_OPEN && error == 0)
        stream_tls_goodbye(stream);
    stream->state = STREAM_CLOSED;
    stream->error = error;
    if (stream->io.fd >= 0) {
        loop_remove(stream->loop, &stream->io);
        close(stream->io.fd);
    }
    loop_defer(stream->loop, &stream->turn_end);
}

void stream_finish(struct stream *stream)
{
    stream->close_when_sent = true;
    stream->flush_wanted = true;
    loop_defer(stream->loop, &stream->turn_end);
}

void stream_fini(struct stream *stream)
{
    if (stream->state != STREAM_CLOSED && stream->io.fd >= 0) {
        loop_remove(stream->loop, &stream->io);
        close(stream->io.fd);
        stream->state = STREAM_CLOSED;
    }
    if (stream->tls)
        stream_tls_fini(stream);
    free(stream->input);
    free(stream->output);
    free(stream->segments);
    stream->input = stream->output = NULL;
    stream->segments = NULL;
}

static void listener_ready(struct loop_io *io, uint32_t events)
{
    struct stream_listener *listener = (void *)((char *)io - offsetof(struct stream_listener, io));
    int on = 1;

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            listener->accepted(listener, fd);
            continue;
        }
        if (errno == EAGAIN)
            return;
        if (errno == ECONNABORTED || errno == EINTR)
            continue;
        loop_timer_set(listener->loop, &listener->retry, listener->loop->now_ns + ACCEPT_RETRY_NS);
        return;
    }
    loop_timer_set(listener->loop, &listener->retry, listener->loop->now_ns + 1);
}

static void listener_retry(struct loop_timer *timer)
{
    struct stream_listener *listener =
        (void *)((char *)timer - offsetof(struct stream_listener, retry));

    listener_ready(&listener->io, EPOLLIN);
}

int stream_listen(struct stream_listener *listener, struct loop *loop,
                  const struct sockaddr *address, socklen_t length)
{
    int on = 1;
    int error = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    listener->io.fd = -1;
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, address, length) < 0 || listen(fd, SOMAXCONN) < 0) {
        error = -errno;
        close(fd);
        return error;
    }
    listener->io.fd = fd;
    listener->io.ready = listener_ready;
    listener->retry.fire = listener_retry;
    listener->loop = loop;
    error = loop_add(loop, &listener->io);
    if (error) {
        close(fd);
        listener->io.fd = -1;
    }
    return error;
}

void stream_listener_fini(struct stream_listener *listener)
{
    if (listener->io.fd < 0)
        return;
    loop_timer_cancel(listener->loop, &listener->retry);
    loop_remove(listener->loop, &listener->io);
    close(listener->io.fd);
    listener->io.fd = -1;
}
