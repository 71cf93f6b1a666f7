/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpcstub: an NFSv3 server that costs next to nothing, so that a bench measures the proxy in front
 * of it. It knows one file, full of zeros and of any size: NULL, GETATTR, READ, WRITE and COMMIT of
 * NFSv3, NULL and MNT of MOUNT; other procedures are PROC_UNAVAIL.
 *
 * One thread, edge-triggered epoll. All calls of one receive are answered by one sendmsg; the data
 * of a READ is never copied. A connection is
 *   reading  its `replies` are empty: whatever the kernel holds is read and answered
 *   blocked  the peer's window is full: `replies` hold the rest, nothing more is read before they
 *            have gone. A receive is bounded, and so is what it can add to `replies`.
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
#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3_server.h"
#include "protocols/rpc/rpc_message.h"
#include "protocols/rpc/rpc_record.h"

#define RECEIVE_BYTES    (1u << 20)
#define DATA_LIMIT_BYTES (4u << 20)
#define REPLY_HEAD_BYTES 192
#define CALL_HEAD_BYTES  (RPC_CALL_HEADER_MAX_BYTES + NFS3_ARGS_PEEK_MAX_BYTES)
#define BATCH_IOVECS     512
#define EVENTS           64
#define FILE_HANDLE      "the one file of the bench, always"
#define FILE_HANDLE_LEN  32

/* A reply that has not gone yet: its head, then `data_bytes` zeros. */
struct reply {
    uint32_t head_bytes;
    uint32_t data_bytes;
    uint8_t head[REPLY_HEAD_BYTES];
};

struct connection {
    int fd;
    struct rpc_record_decoder decoder;
    struct reply *replies; /* [first, count) are to be sent */
    size_t capacity;
    size_t first;
    size_t count;
    size_t first_sent_bytes;
    size_t call_bytes; /* gathered in `call` of a record that did not come in one piece */
    uint8_t call[CALL_HEAD_BYTES];
};

static uint8_t receive_buffer[RECEIVE_BYTES];
static const uint8_t zeros[DATA_LIMIT_BYTES];
static const struct nfs3_attributes attributes = {.type = NFS3_TYPE_REG,
                                                  .mode = 0644,
                                                  .nlink = 1,
                                                  .size_bytes = 1ull << 40,
                                                  .fsid = 1,
                                                  .fileid = 2,
                                                  .time_ns = 1700000000ull * 1000000000};

static struct reply *new_reply(struct connection *c)
{
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 64;
        struct reply *larger = realloc(c->replies, capacity * sizeof(*larger));

        if (!larger)
            return NULL;
        c->replies = larger;
        c->capacity = capacity;
    }
    return &c->replies[c->count++];
}

static size_t answer_nfs(struct reply *r, const struct rpc_call *call, const uint8_t *args,
                         size_t length)
{
    struct nfs3_call nfs;
    enum rpc_parse parsed = nfs3_parse_call(call->proc, args, length, &nfs);

    if (parsed != RPC_PARSE_OK)
        return rpc_write_parse_error(r->head, sizeof(r->head), call->xid, RPC_PARSE_GARBAGE);
    switch (call->proc) {
    case NFS3_PROC_NULL:
        return nfs3_reply_null(r->head, sizeof(r->head), call->xid);
    case NFS3_PROC_GETATTR:
        return nfs3_reply_getattr(r->head, sizeof(r->head), call->xid, &attributes);
    case NFS3_PROC_READ:
        if (nfs.count > DATA_LIMIT_BYTES)
            nfs.count = DATA_LIMIT_BYTES;
        r->data_bytes = (uint32_t)rpc_padded(nfs.count);
        return nfs3_reply_read(r->head, sizeof(r->head), call->xid, &attributes, nfs.count, false);
    case NFS3_PROC_WRITE:
        return nfs3_reply_write(r->head, sizeof(r->head), call->xid, &attributes, nfs.data_bytes,
                                nfs.stable, 1);
    case NFS3_PROC_COMMIT:
        return nfs3_reply_commit(r->head, sizeof(r->head), call->xid, &attributes, 1);
    default:
        return rpc_write_accept_error(r->head, sizeof(r->head), call->xid, RPC_ACCEPT_PROC_UNAVAIL);
    }
}

/* Answers the call whose payload begins with these bytes. Returns 0 or a negative errno. */
static int answer(struct connection *c, const uint8_t *payload, size_t length)
{
    struct rpc_call call;
    enum rpc_parse parsed = rpc_parse_call(payload, length, &call);
    struct reply *r = new_reply(c);

    if (!r)
        return -ENOMEM;
    if (parsed == RPC_PARSE_NOT_EXPECTED)
        return -EPROTO;
    r->data_bytes = 0;
    if (parsed != RPC_PARSE_OK)
        r->head_bytes = (uint32_t)rpc_write_parse_error(r->head, sizeof(r->head), call.xid, parsed);
    else if (call.prog == NFS_PROG && call.vers == NFS3_VERS)
        r->head_bytes =
            (uint32_t)answer_nfs(r, &call, payload + call.body_offset, length - call.body_offset);
    else if (call.prog == MOUNT_PROG && call.proc == MOUNT3_PROC_MNT)
        r->head_bytes = (uint32_t)mount3_write_mnt_reply(
            r->head, sizeof(r->head), call.xid, MOUNT3_STATUS_OK,
            (struct rpc_slice){(const uint8_t *)FILE_HANDLE, FILE_HANDLE_LEN});
    else if (call.prog == MOUNT_PROG)
        r->head_bytes = (uint32_t)mount3_write_void_reply(r->head, sizeof(r->head), call.xid);
    else
        r->head_bytes = (uint32_t)rpc_write_accept_error(r->head, sizeof(r->head), call.xid,
                                                         RPC_ACCEPT_PROG_UNAVAIL);
    return r->head_bytes ? 0 : -EMSGSIZE;
}

static unsigned gather(const struct connection *c, struct iovec *iov)
{
    size_t skip = c->first_sent_bytes;
    unsigned used = 0;

    for (size_t i = c->first; i < c->count && used + 2 <= BATCH_IOVECS; i++) {
        const struct reply *r = &c->replies[i];
        size_t head_skip = skip < r->head_bytes ? skip : r->head_bytes;
        size_t data_skip = skip - head_skip;

        if (r->head_bytes > head_skip)
            iov[used++] = (struct iovec){(void *)(r->head + head_skip), r->head_bytes - head_skip};
        if (r->data_bytes > data_skip)
            iov[used++] = (struct iovec){(void *)zeros, r->data_bytes - data_skip};
        skip = 0;
    }
    return used;
}

/* Sends what has been answered. Returns 0 (all gone, or blocked) or a negative errno. */
static int flush(struct connection *c)
{
    struct iovec iov[BATCH_IOVECS];

    while (c->first < c->count) {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = gather(c, iov)};
        ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL);

        if (sent < 0)
            return errno == EAGAIN ? 0 : -errno;
        c->first_sent_bytes += (size_t)sent;
        while (c->first < c->count) {
            const struct reply *r = &c->replies[c->first];
            size_t length = (size_t)r->head_bytes + r->data_bytes;

            if (c->first_sent_bytes < length)
                break;
            c->first_sent_bytes -= length;
            c->first++;
        }
    }
    c->first = c->count = 0;
    return 0;
}

/* Answers every record that these received bytes complete. Returns 0 or a negative errno. */
static int take(struct connection *c, const uint8_t *bytes, size_t length)
{
    struct rpc_record_event event;
    int status = 0;

    do {
        size_t used = rpc_record_next(&c->decoder, bytes, length, &event);

        bytes += used;
        length -= used;
        if (event.type == RPC_RECORD_WHOLE) {
            status =
                answer(c, event.data + RPC_RECORD_MARK_BYTES, event.len - RPC_RECORD_MARK_BYTES);
        } else if (event.type == RPC_RECORD_BEGIN) {
            c->call_bytes = 0;
        } else if (event.type == RPC_RECORD_DATA) {
            size_t room = sizeof(c->call) - c->call_bytes;
            size_t part = event.len < room ? event.len : room;

            memcpy(c->call + c->call_bytes, event.data, part);
            c->call_bytes += part;
        } else if (event.type == RPC_RECORD_END) {
            status = answer(c, c->call, c->call_bytes);
        } else if (event.type == RPC_RECORD_ERROR) {
            status = -EPROTO;
        }
    } while (status == 0 && event.type != RPC_RECORD_MORE);
    return status;
}

/*
 * Goes on with a connection that may have become readable or writable; negative: close it.
 * `hung_up`: the peer has sent its last byte, and no further edge will come for it.
 */
static int serve(struct connection *c, bool hung_up)
{
    int status = flush(c);

    while (status == 0 && c->count == 0) {
        ssize_t got = recv(c->fd, receive_buffer, sizeof(receive_buffer), 0);

        if (got < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (got == 0)
            return -ECONNRESET;
        status = take(c, receive_buffer, (size_t)got);
        if (status == 0)
            status = flush(c);
        /* A short read has emptied the socket: the next edge will tell of more. */
        if ((size_t)got < sizeof(receive_buffer) && !hung_up)
            break;
    }
    return status;
}

static void close_connection(struct connection *c)
{
    close(c->fd);
    free(c->replies);
    free(c);
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
        rpc_record_init(&c->decoder, NULL);
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

            if (!c)
                accept_all(epoll, listener);
            else if (serve(c, events[i].events & (EPOLLRDHUP | EPOLLHUP)) < 0)
                close_connection(c);
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

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'l') {
            address = optarg;
        } else {
            fprintf(option == 'h' ? stdout : stderr,
                    "usage: rpcstub [--listen ADDRESS:PORT]\n"
                    "Answers NFSv3 and MOUNT calls on one file of zeros; prints\n"
                    "\"listening ADDRESS:PORT\" when ready.\n");
            return option == 'h' ? 0 : 2;
        }
    }
    listener = bench_listen(address);
    return listener < 0 ? 1 : run(listener);
}
