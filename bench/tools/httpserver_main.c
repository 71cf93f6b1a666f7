/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpserver: an HTTP/1.1 backend that costs next to nothing, so that a bench measures the proxy
 * in front of it. GET /N answers N bytes (any other path 128), one recv and one send per request.
 *
 * One thread, edge-triggered epoll. A connection is
 *   reading  it has no output left; every byte the kernel holds is read and answered at once
 *   blocked  the peer's window is full: `pending` holds the rest of its answers, and nothing more
 *            is read or parsed before they have gone
 * Requests of one receive are answered together by one sendmsg (pipelining costs no extra calls).
 *
 * It serves the bench, not the world: GET only, no bodies, a request head of at most 8 KiB;
 * anything else closes the connection.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/tools/bench_net.h"

#define HEAD_LIMIT_BYTES  8192
#define REPLY_LIMIT_BYTES (64u << 20)
#define DEFAULT_BYTES     128
#define KNOWN_SIZES       32
#define BATCH             64
#define EVENTS            256

/* One whole answer, built when its size is first asked for. */
struct reply {
    size_t body_bytes;
    size_t length;
    char *data;
};

struct connection {
    int fd;
    bool blocked;
    bool closing; /* the last request asked for it: close when all is answered */
    unsigned pending_count;
    unsigned pending_next;
    size_t have;
    struct iovec pending[BATCH];
    char input[HEAD_LIMIT_BYTES];
};

static struct reply replies[KNOWN_SIZES];
static unsigned reply_count;

static const struct reply *reply_of_size(size_t body_bytes)
{
    struct reply *reply;
    char head[160];
    int head_length;

    for (unsigned i = 0; i < reply_count; i++) {
        if (replies[i].body_bytes == body_bytes)
            return &replies[i];
    }
    if (reply_count == KNOWN_SIZES)
        return NULL;
    head_length = snprintf(head, sizeof(head),
                           "HTTP/1.1 200 OK\r\nServer: bench\r\n"
                           "Content-Type: application/octet-stream\r\n"
                           "Content-Length: %zu\r\n\r\n",
                           body_bytes);
    reply = &replies[reply_count];
    reply->body_bytes = body_bytes;
    reply->length = (size_t)head_length + body_bytes;
    reply->data = malloc(reply->length);
    if (!reply->data)
        return NULL;
    memcpy(reply->data, head, (size_t)head_length);
    memset(reply->data + head_length, 'x', body_bytes);
    reply_count++;
    return reply;
}

/* The answer to the request head at `head`, or NULL when it is none we serve. */
static const struct reply *answer(struct connection *c, const char *head, size_t length)
{
    size_t bytes = 0;
    const char *p = head + 5;

    if (memcmp(head, "GET /", 5) != 0)
        return NULL;
    c->closing = memmem(head, length, "onnection: close\r\n", 18) != NULL;
    if (*p < '0' || *p > '9')
        return reply_of_size(DEFAULT_BYTES);
    for (; *p >= '0' && *p <= '9'; p++) {
        bytes = bytes * 10 + (size_t)(*p - '0');
        if (bytes > REPLY_LIMIT_BYTES)
            return NULL;
    }
    return reply_of_size(bytes);
}

/* Sends what is pending. Returns 0 (all gone or blocked) or a negative errno. */
static int flush(struct connection *c)
{
    while (c->pending_next < c->pending_count) {
        struct msghdr message = {.msg_iov = c->pending + c->pending_next,
                                 .msg_iovlen = c->pending_count - c->pending_next};
        ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL);

        if (sent < 0) {
            if (errno == EINTR)
                continue;
            c->blocked = errno == EAGAIN;
            return c->blocked ? 0 : -errno;
        }
        while (c->pending_next < c->pending_count &&
               (size_t)sent >= c->pending[c->pending_next].iov_len)
            sent -= (ssize_t)c->pending[c->pending_next++].iov_len;
        if (c->pending_next < c->pending_count) {
            struct iovec *rest = &c->pending[c->pending_next];
            rest->iov_base = (char *)rest->iov_base + sent;
            rest->iov_len -= (size_t)sent;
        }
    }
    c->blocked = false;
    c->pending_count = c->pending_next = 0;
    return c->closing ? -ESHUTDOWN : 0;
}

/* Answers every complete request in the input. Returns 0 or a negative errno: close then. */
static int answer_all(struct connection *c)
{
    size_t at = 0;
    int status = 0;

    while (!c->blocked && !c->closing && status == 0) {
        const char *head = c->input + at;
        const char *end = memmem(head, c->have - at, "\r\n\r\n", 4);
        const struct reply *reply;

        if (!end)
            break;
        reply = answer(c, head, (size_t)(end + 4 - head));
        if (!reply)
            return -EPROTO;
        c->pending[c->pending_count++] =
            (struct iovec){.iov_base = reply->data, .iov_len = reply->length};
        at = (size_t)(end + 4 - c->input);
        if (c->pending_count == BATCH)
            status = flush(c);
    }
    if (status == 0 && !c->blocked && c->pending_count)
        status = flush(c);
    c->have -= at;
    if (at && c->have)
        memmove(c->input, c->input + at, c->have);
    if (status == 0 && c->have == sizeof(c->input) && !c->blocked)
        return -EMSGSIZE;
    return status;
}

/*
 * Goes on with a connection that may have become readable or writable; negative: close it.
 * `hung_up`: the peer has sent its last byte, and no further edge will come for it.
 */
static int serve(struct connection *c, bool hung_up)
{
    int status = 0;

    if (c->blocked) {
        status = flush(c);
        if (status == 0 && !c->blocked && c->have)
            status = answer_all(c);
    }
    while (status == 0 && !c->blocked) {
        size_t room = sizeof(c->input) - c->have;
        ssize_t got = recv(c->fd, c->input + c->have, room, 0);

        if (got < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (got == 0)
            return -ECONNRESET;
        c->have += (size_t)got;
        status = answer_all(c);
        /* A short read has emptied the socket: the next edge will tell of more. */
        if ((size_t)got < room && !hung_up)
            break;
    }
    return status;
}

static void accept_all(int epoll, int listener)
{
    for (;;) {
        struct connection *c;
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        c = calloc(1, sizeof(*c));
        event.data.ptr = c;
        if (!c || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
            free(c);
            close(fd);
            continue;
        }
        bench_set_nodelay(fd);
        c->fd = fd;
    }
}

static int run(int listener)
{
    struct epoll_event events[EVENTS];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
        return 1;
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);

        if (count < 0 && errno != EINTR)
            return 1;
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;

            if (!c) {
                accept_all(epoll, listener);
            } else if (serve(c, events[i].events & (EPOLLRDHUP | EPOLLHUP)) < 0) {
                close(c->fd);
                free(c);
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *address = "127.0.0.1:0";
    int option;
    int listener;

    while ((option = getopt_long(argc, argv, "l:h", options, NULL)) != -1) {
        if (option == 'l') {
            address = optarg;
        } else {
            fprintf(option == 'h' ? stdout : stderr,
                    "usage: httpserver [--listen ADDRESS:PORT]\n"
                    "Answers GET /N with N bytes; prints \"listening ADDRESS:PORT\" when ready.\n");
            return option == 'h' ? 0 : 2;
        }
    }
    listener = bench_listen(address);
    return listener < 0 ? 1 : run(listener);
}
