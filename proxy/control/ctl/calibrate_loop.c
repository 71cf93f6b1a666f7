/* SPDX-License-Identifier: Apache-2.0 */
/* Closed loops of requests over TCP: see calibrate_loop.h. */
#include "proxy/control/ctl/calibrate_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "proxy/io/memory.h"

#define RESERVED_FIRST 665 /* as libtirpc does, away from well-known services */
#define RESERVED_PORTS 359

#define IN_ROOM_BYTES ((size_t)64 << 10)
#define IN_MAX_BYTES  ((size_t)64 << 20) /* of one reply that its protocol wants whole */

volatile sig_atomic_t calibrate_stopped;

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int calibrate_loop_fail(struct calibrate_loop *loop, const char *format, ...)
{
    va_list args;

    if (loop->error[0] != '\0')
        return -1;
    va_start(args, format);
    vsnprintf(loop->error, sizeof(loop->error), format, args);
    va_end(args);
    return -1;
}

/* ------------------------------------------------------------------ connections */

int calibrate_loop_init(struct calibrate_loop *loop, const char *host, const char *port,
                        unsigned timeout_s)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    memset(loop, 0, sizeof(*loop));
    loop->timeout_s = timeout_s;
    snprintf(loop->peer, sizeof(loop->peer), strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host,
             port);
    for (unsigned i = 0; i < CALIBRATE_LINKS_MAX; i++) {
        loop->links[i].index = i;
        loop->links[i].fd = -1;
    }
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0)
        return calibrate_loop_fail(loop, "%s: %s; expected HOST:PORT of a server", loop->peer,
                                   gai_strerror(error));
    memcpy(&loop->address, found->ai_addr, found->ai_addrlen);
    loop->address_length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

void calibrate_loop_set_port(struct calibrate_loop *loop, uint16_t port)
{
    char *colon = strrchr(loop->peer, ':');

    if (loop->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&loop->address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&loop->address)->sin_port = htons(port);
    snprintf(colon, sizeof(loop->peer) - (size_t)(colon - loop->peer), ":%u", port);
}

static void disconnect(struct calibrate_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    link->in_bytes = 0;
    link->busy = false;
}

void calibrate_loop_disconnect(struct calibrate_loop *loop)
{
    for (unsigned i = 0; i < loop->count; i++)
        disconnect(&loop->links[i]);
}

void calibrate_loop_fini(struct calibrate_loop *loop)
{
    calibrate_loop_disconnect(loop);
    for (unsigned i = 0; i < loop->count; i++) {
        free(loop->links[i].out);
        free(loop->links[i].in);
    }
    loop->count = 0;
}

static const char *advice(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "; nothing listens there: is the server running, is the port right?";
    case ETIMEDOUT:
    case EINPROGRESS:
    case EAGAIN:
        return "; is the host up, does a firewall drop the packets?";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "; is the address right?";
    default:
        return "";
    }
}

/* As NFS servers want it from root; any other port will do where all are taken. */
static void bind_reserved(const struct calibrate_loop *loop, int fd)
{
    static unsigned next;
    struct sockaddr_storage own = {.ss_family = loop->address.ss_family};
    in_port_t *port = own.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&own)->sin6_port
                                                : &((struct sockaddr_in *)&own)->sin_port;

    if (next == 0)
        next = (unsigned)getpid();
    for (unsigned tries = 0; tries < RESERVED_PORTS; tries++) {
        *port = htons((uint16_t)(RESERVED_FIRST + next++ % RESERVED_PORTS));
        if (bind(fd, (const struct sockaddr *)&own, loop->address_length) == 0)
            return;
    }
}

static int connect_link(struct calibrate_loop *loop, struct calibrate_link *link)
{
    struct timeval timeout = {.tv_sec = loop->timeout_s};
    int one = 1;

    if (link->fd >= 0)
        return 0;
    if (link->out == NULL) {
        link->out_room = CALIBRATE_OUT_ROOM;
        link->out = memory_alloc(link->out_room, "a request");
        link->in_room = IN_ROOM_BYTES;
        link->in = memory_alloc(link->in_room, "a reply");
    }
    link->in_bytes = 0;
    link->fd = socket(loop->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd < 0)
        return calibrate_loop_fail(loop, "%s: no socket: %s", loop->peer, strerror(errno));
    setsockopt(link->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (loop->reserved_port)
        bind_reserved(loop, link->fd);
    if (connect(link->fd, (const struct sockaddr *)&loop->address, loop->address_length) < 0) {
        int error = errno == EINPROGRESS ? ETIMEDOUT : errno;
        disconnect(link);
        return calibrate_loop_fail(loop, "%s: can't connect: %s%s", loop->peer, strerror(error),
                                   advice(error));
    }
    fcntl(link->fd, F_SETFL, fcntl(link->fd, F_GETFL) | O_NONBLOCK);
    return 0;
}

/* ------------------------------------------------------------------ bytes */

static int link_broke(struct calibrate_loop *loop, const char *what)
{
    return calibrate_loop_fail(loop, "%s: %s", loop->peer, what);
}

static int send_some(struct calibrate_loop *loop, struct calibrate_link *link)
{
    size_t total = link->out_bytes + link->tail_bytes;

    while (link->sent_bytes < total) {
        struct iovec parts[2];
        int count = 0;
        size_t sent = link->sent_bytes;

        if (sent < link->out_bytes)
            parts[count++] = (struct iovec){link->out + sent, link->out_bytes - sent};
        size_t skipped = sent > link->out_bytes ? sent - link->out_bytes : 0;
        if (link->tail_bytes > skipped)
            parts[count++] =
                (struct iovec){(void *)(link->tail + skipped), link->tail_bytes - skipped};
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        ssize_t written = sendmsg(link->fd, &message, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return 0;
        if (written < 0)
            return calibrate_loop_fail(loop, "%s: can't send: %s", loop->peer, strerror(errno));
        link->sent_bytes += (size_t)written;
    }
    return 0;
}

/* > 0: some came; 0: nothing there; -1: failed. */
static int receive_some(struct calibrate_loop *loop, struct calibrate_link *link)
{
    if (link->in_room - link->in_bytes < IN_ROOM_BYTES / 2) {
        if (link->in_room >= IN_MAX_BYTES)
            return link_broke(loop, "a reply without end");
        link->in_room *= 2;
        link->in = memory_resize(link->in, link->in_room, "a reply");
    }
    ssize_t count = recv(link->fd, link->in + link->in_bytes, link->in_room - link->in_bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (count < 0)
        return calibrate_loop_fail(loop, "%s: %s", loop->peer, strerror(errno));
    if (count == 0)
        return link_broke(loop, "the server closed the connection instead of answering");
    link->in_bytes += (size_t)count;
    link->received_bytes += (uint64_t)count;
    return 1;
}

/* ------------------------------------------------------------------ a run */

struct running {
    struct calibrate_loop *loop;
    const struct calibrate_work *work;
    struct calibrate_run *run;
    uint64_t end_ns;
    unsigned busy;
    bool exhausted;
};

static int begin_next(struct running *r, struct calibrate_link *link, uint64_t now_ns)
{
    if (r->exhausted || now_ns >= r->end_ns || (calibrate_stopped && r->end_ns != UINT64_MAX))
        return 0;
    if (connect_link(r->loop, link) < 0)
        return -1;
    link->tail = NULL;
    link->out_bytes = link->tail_bytes = link->sent_bytes = 0;
    link->received_bytes = 0;
    link->counted = true;
    if (!r->work->next(r->work->context, link)) {
        r->exhausted = true;
        return r->loop->error[0] != '\0' ? -1 : 0;
    }
    link->busy = true;
    link->sent_ns = now_ns;
    r->busy++;
    return send_some(r->loop, link);
}

static void count(struct calibrate_run *run, const struct calibrate_link *link, uint64_t now_ns)
{
    run->completions++;
    run->waited_ns += now_ns - link->sent_ns;
    run->sent_bytes += link->out_bytes + link->tail_bytes;
    run->received_bytes += link->received_bytes;
}

/* After bytes have come: the reply may be whole, then the next request goes out. */
static int look(struct running *r, struct calibrate_link *link, uint64_t start_ns)
{
    size_t used = 0;
    enum calibrate_reply result = r->work->reply(r->work->context, link, &used);

    if (result == CALIBRATE_WRONG)
        return -1;
    memmove(link->in, link->in + used, link->in_bytes - used);
    link->in_bytes -= used;
    if (result == CALIBRATE_MORE)
        return 0;
    if (link->in_bytes > 0)
        return link_broke(r->loop, "bytes behind the end of a reply");
    uint64_t now_ns = clock_ns();
    link->busy = false;
    r->busy--;
    r->run->waited_all_ns += now_ns - link->sent_ns;
    if (link->counted)
        count(r->run, link, now_ns);
    r->run->elapsed_ns = now_ns - start_ns;
    if (result == CALIBRATE_CLOSE)
        disconnect(link);
    return begin_next(r, link, now_ns);
}

static int serve(struct running *r, struct calibrate_link *link, short events, uint64_t start_ns)
{
    if ((events & POLLOUT) != 0 && send_some(r->loop, link) < 0)
        return -1;
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0)
        return 0;
    int got = receive_some(r->loop, link);
    return got > 0 ? look(r, link, start_ns) : got;
}

static int turn(struct running *r, unsigned depth, uint64_t start_ns)
{
    struct pollfd polled[CALIBRATE_LINKS_MAX];
    struct calibrate_link *of[CALIBRATE_LINKS_MAX];
    nfds_t used = 0;

    for (unsigned i = 0; i < depth; i++) {
        struct calibrate_link *link = &r->loop->links[i];
        bool more = link->sent_bytes < link->out_bytes + link->tail_bytes;

        if (!link->busy)
            continue;
        of[used] = link;
        polled[used++] =
            (struct pollfd){.fd = link->fd, .events = (short)(POLLIN | (more ? POLLOUT : 0))};
    }
    int ready = poll(polled, used, (int)r->loop->timeout_s * 1000);
    if (ready < 0 && errno == EINTR)
        return 0;
    if (ready < 0)
        return calibrate_loop_fail(r->loop, "poll: %s", strerror(errno));
    if (ready == 0)
        return calibrate_loop_fail(r->loop, "%s: no answer for %u s", r->loop->peer,
                                   r->loop->timeout_s);
    for (nfds_t i = 0; i < used; i++) {
        if (polled[i].revents != 0 && serve(r, of[i], polled[i].revents, start_ns) < 0)
            return -1;
    }
    return 0;
}

int calibrate_loop_run(struct calibrate_loop *loop, const struct calibrate_work *work,
                       unsigned depth, uint64_t duration_ns, struct calibrate_run *run)
{
    struct running r = {.loop = loop, .work = work, .run = run};
    int result = 0;

    *run = (struct calibrate_run){0};
    loop->error[0] = '\0';
    loop->count = loop->count > depth ? loop->count : depth;
    for (unsigned i = 0; i < depth && result == 0; i++)
        result = connect_link(loop, &loop->links[i]);
    uint64_t start_ns = clock_ns();
    r.end_ns = duration_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + duration_ns;
    for (unsigned i = 0; i < depth && result == 0; i++)
        result = begin_next(&r, &loop->links[i], start_ns);
    while (result == 0 && r.busy > 0)
        result = turn(&r, depth, start_ns);
    /* What is still under way belongs to nobody. */
    if (result < 0)
        calibrate_loop_disconnect(loop);
    return result;
}
