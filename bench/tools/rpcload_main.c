/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpcload: the closed-loop NFSv3 client of the benches. N connections, K calls outstanding on each;
 * every reply's xid, status and length are checked. All calls that the replies of one receive set
 * free leave by one sendmsg.
 *
 * One thread, edge-triggered epoll. A slot (one of the K of a connection) is either
 *   queued       in `queue`, to be sent as soon as the kernel takes it
 *   outstanding  sent; the reply with its xid sets it free, and it is queued again at once
 * An xid is round * K + slot, so a reply names its slot, and a stale or repeated one is found out.
 *
 * The data of a large reply is thrown away inside the kernel (MSG_TRUNC): the decoder never looks
 * at payload bytes, only at how many there were.
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
#include "bench/tools/bench_window.h"
#include "bench/tools/nfs_lookup.h"
#include "protocols/rpc/nfs3_client.h"
#include "protocols/rpc/rpc_message.h"
#include "protocols/rpc/rpc_record.h"

#define RECEIVE_BYTES     (1u << 20)
#define DISCARD_BYTES     (64u << 10) /* from here on a payload is not worth copying */
#define DATA_LIMIT_BYTES  (4u << 20)
#define REPLY_HEAD_BYTES  512
#define DEPTH_LIMIT       1024
#define CONNECTIONS_LIMIT 1024
#define BATCH_IOVECS      512
#define TURN_LIMIT_MS     100
#define FIRST_UID         1001

struct slot {
    uint32_t xid;
    bool outstanding;
    uint64_t queued_ns;
    uint32_t head_bytes;
    uint8_t head[NFS3_CALL_MAX_BYTES];
};

struct connection {
    int fd;
    struct rpc_record_decoder decoder;
    struct slot *slots;
    uint32_t *queue; /* ring of `depth` slot numbers */
    uint32_t queue_first;
    uint32_t queue_count;
    size_t first_sent_bytes;
    size_t reply_bytes; /* gathered in `reply` of a record that did not come in one piece */
    uint8_t reply[REPLY_HEAD_BYTES];
};

struct kind {
    const char *name;
    uint32_t proc;
};

static const struct kind kinds[] = {{"null", NFS3_PROC_NULL},
                                    {"getattr", NFS3_PROC_GETATTR},
                                    {"read", NFS3_PROC_READ},
                                    {"write", NFS3_PROC_WRITE},
                                    {0}};

struct load {
    struct units_address target;
    const struct kind *kind;
    uint32_t data_bytes;
    uint32_t trailing_bytes; /* zeros sent behind each call's head: WRITE data */
    uint32_t call_bytes;
    uint32_t depth;
    uint32_t uids;
    unsigned connection_count;
    struct connection *connections;
    struct slot *slots;
    uint32_t *queues;
    struct nfs_lookup_handle handle;
    struct units_address mount;
    const char *export_path;
    const char *file;
    int epoll;
    bool hopeless;
    struct bench_window window;
};

static struct load load;
static uint8_t receive_buffer[RECEIVE_BYTES];
static const uint8_t zeros[DATA_LIMIT_BYTES];

/* Writes the call of a slot, its machine name `name` as long as the call's size asks for. */
static size_t write_call(struct slot *s, uint32_t uid, const char *name)
{
    struct rpc_slice handle = {load.handle.data, load.handle.bytes};
    struct nfs3_client client = {.identity = {true, uid, uid, name}};

    switch (load.kind->proc) {
    case NFS3_PROC_NULL:
        return nfs3_call_null(s->head, sizeof(s->head), &client, s->xid);
    case NFS3_PROC_GETATTR:
        return nfs3_call_getattr(s->head, sizeof(s->head), &client, s->xid, handle);
    case NFS3_PROC_READ:
        return nfs3_call_read(s->head, sizeof(s->head), &client, s->xid, handle, 0,
                              load.data_bytes);
    default:
        return nfs3_call_write(s->head, sizeof(s->head), &client, s->xid, handle, 0,
                               load.data_bytes, NFS3_UNSTABLE);
    }
}

static void prepare_slot(struct slot *s, uint32_t xid, uint32_t uid)
{
    char name[256] = "";
    size_t bytes;

    s->xid = xid;
    bytes = write_call(s, uid, name);
    if (bytes < load.call_bytes + RPC_RECORD_MARK_BYTES) {
        size_t pad = load.call_bytes + RPC_RECORD_MARK_BYTES - bytes;

        pad = pad < sizeof(name) ? pad : sizeof(name) - 1;
        memset(name, 'b', pad);
        name[pad] = '\0';
        bytes = write_call(s, uid, name);
    }
    s->head_bytes = (uint32_t)bytes;
}

static void queue_call(struct connection *c, uint32_t slot, uint64_t now_ns)
{
    struct slot *s = &c->slots[slot];

    s->xid += load.depth;
    rpc_set_xid(s->head + RPC_RECORD_MARK_BYTES, s->xid);
    s->outstanding = true;
    s->queued_ns = now_ns;
    c->queue[(c->queue_first + c->queue_count) % load.depth] = slot;
    c->queue_count++;
}

static int open_connection(struct connection *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    uint64_t now_ns = bench_now_ns();

    c->queue_first = c->queue_count = 0;
    c->first_sent_bytes = 0;
    rpc_record_init(&c->decoder, NULL);
    for (uint32_t i = 0; i < load.depth; i++)
        queue_call(c, i, now_ns);
    c->fd = bench_connect(&load.target);
    if (c->fd < 0)
        return c->fd;
    return epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event) < 0 ? -errno : 0;
}

static void fail(struct connection *c)
{
    do {
        if (c->fd >= 0)
            close(c->fd);
        load.hopeless = !bench_window_failed(&load.window);
    } while (!load.hopeless && open_connection(c) < 0);
}

static unsigned gather(const struct connection *c, struct iovec *iov)
{
    size_t skip = c->first_sent_bytes;
    unsigned used = 0;

    for (uint32_t i = 0; i < c->queue_count && used + 2 <= BATCH_IOVECS; i++) {
        const struct slot *s = &c->slots[c->queue[(c->queue_first + i) % load.depth]];
        size_t head_skip = skip < s->head_bytes ? skip : s->head_bytes;
        size_t data_skip = skip - head_skip;

        if (s->head_bytes > head_skip)
            iov[used++] = (struct iovec){(void *)(s->head + head_skip), s->head_bytes - head_skip};
        if (load.trailing_bytes > data_skip)
            iov[used++] = (struct iovec){(void *)zeros, load.trailing_bytes - data_skip};
        skip = 0;
    }
    return used;
}

/* Sends queued calls. Returns 0 (all gone, or blocked) or a negative errno. */
static int flush(struct connection *c)
{
    struct iovec iov[BATCH_IOVECS];

    while (c->queue_count) {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = gather(c, iov)};
        ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL);

        if (sent < 0)
            return errno == EAGAIN || errno == EINPROGRESS ? 0 : -errno;
        c->first_sent_bytes += (size_t)sent;
        while (c->queue_count) {
            const struct slot *s = &c->slots[c->queue[c->queue_first]];
            size_t length = (size_t)s->head_bytes + load.trailing_bytes;

            if (c->first_sent_bytes < length)
                break;
            c->first_sent_bytes -= length;
            c->queue_first = (c->queue_first + 1) % load.depth;
            c->queue_count--;
        }
    }
    return 0;
}

/* Checks one reply and sets its slot free. `whole_bytes` is the payload's length. */
static int take_reply(struct connection *c, const uint8_t *payload, size_t length,
                      uint64_t whole_bytes)
{
    struct rpc_reply reply;
    struct nfs3_reply nfs;
    struct slot *s;
    uint64_t now_ns;

    if (rpc_parse_reply(payload, length, &reply) != RPC_PARSE_OK || reply.denied ||
        reply.accept != RPC_ACCEPT_SUCCESS)
        return -EPROTO;
    s = &c->slots[reply.xid % load.depth];
    if (!s->outstanding || s->xid != reply.xid)
        return -EPROTO;
    if (nfs3_parse_reply(load.kind->proc, payload + reply.body_offset, length - reply.body_offset,
                         &nfs) != RPC_PARSE_OK ||
        nfs.status != NFS3_STATUS_OK)
        return -EPROTO;
    if (load.kind->proc == NFS3_PROC_READ &&
        (nfs.data_bytes != load.data_bytes ||
         whole_bytes != reply.body_offset + nfs.data_offset + rpc_padded(nfs.data_bytes)))
        return -EPROTO;
    s->outstanding = false;
    now_ns = bench_now_ns();
    bench_window_completed(&load.window, s->queued_ns, now_ns, load.data_bytes);
    queue_call(c, reply.xid % load.depth, now_ns);
    return 0;
}

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
                take_reply(c, event.data + RPC_RECORD_MARK_BYTES, event.len - RPC_RECORD_MARK_BYTES,
                           event.len - RPC_RECORD_MARK_BYTES);
        } else if (event.type == RPC_RECORD_BEGIN) {
            c->reply_bytes = 0;
        } else if (event.type == RPC_RECORD_DATA) {
            size_t room = sizeof(c->reply) - c->reply_bytes;
            size_t part = event.len < room ? event.len : room;

            memcpy(c->reply + c->reply_bytes, event.data, part);
            c->reply_bytes += part;
        } else if (event.type == RPC_RECORD_END) {
            status = take_reply(c, c->reply, c->reply_bytes, event.total_bytes);
        } else if (event.type == RPC_RECORD_ERROR) {
            status = -EPROTO;
        }
    } while (status == 0 && event.type != RPC_RECORD_MORE);
    return status;
}

/* Whether all that the next receive can bring is data that nobody will look at. */
static bool only_data_ahead(const struct connection *c)
{
    return c->decoder.in_record && c->reply_bytes == sizeof(c->reply) &&
           c->decoder.fragment_remaining >= DISCARD_BYTES;
}

static void serve(struct connection *c, bool hung_up)
{
    int status = flush(c);

    while (status == 0) {
        bool discard = only_data_ahead(c);
        size_t room = sizeof(receive_buffer);
        ssize_t got;

        if (discard && c->decoder.fragment_remaining < room)
            room = c->decoder.fragment_remaining;
        got = recv(c->fd, receive_buffer, room, discard ? MSG_TRUNC : 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
            return;
        if (got <= 0)
            status = got < 0 ? -errno : -ECONNRESET;
        else
            status = take(c, receive_buffer, (size_t)got);
        if (status == 0)
            status = flush(c);
        if (got < (ssize_t)room && !hung_up)
            break;
    }
    if (status < 0)
        fail(c);
}

static int run(void)
{
    struct epoll_event events[CONNECTIONS_LIMIT];
    uint64_t now_ns = bench_now_ns();

    for (unsigned i = 0; i < load.connection_count; i++) {
        if (open_connection(&load.connections[i]) < 0)
            fail(&load.connections[i]);
    }
    while (!load.hopeless && bench_window_poll(&load.window, now_ns)) {
        int count = epoll_wait(load.epoll, events, CONNECTIONS_LIMIT, TURN_LIMIT_MS);

        for (int i = 0; i < count && !load.hopeless; i++)
            serve(events[i].data.ptr, events[i].events & (EPOLLRDHUP | EPOLLHUP));
        now_ns = bench_now_ns();
    }
    if (load.hopeless)
        fprintf(stderr, "rpcload: %llu failures, gave up\n",
                (unsigned long long)load.window.errors);
    return bench_window_print(&load.window);
}

static const char usage[] =
    "usage: rpcload --target ADDRESS:PORT [options]\n"
    "  --kind K          null, getattr, read or write (read)\n"
    "  --bytes N         data of a read or write (4096)\n"
    "  --call-bytes N    make calls this long, without WRITE data, by a longer machine name (200)\n"
    "  --connections N   connections (4)\n"
    "  --depth K         calls outstanding on each connection (32)\n"
    "  --uids N          connections take turns at user numbers 1001, 1002, .. "
    "(2)\n" BENCH_WINDOW_USAGE "Prints one line of JSON.\n";

static const struct kind *option_kind(const char *text)
{
    for (const struct kind *kind = kinds; kind->name; kind++) {
        if (strcmp(kind->name, text) == 0)
            return kind;
    }
    fprintf(stderr, "--kind %s: expected null, getattr, read or write\n", text);
    exit(2);
}

static const struct option options[] = {{"target", required_argument, NULL, 't'},
                                        {"kind", required_argument, NULL, 'k'},
                                        {"bytes", required_argument, NULL, 'b'},
                                        {"call-bytes", required_argument, NULL, 'l'},
                                        {"connections", required_argument, NULL, 'c'},
                                        {"depth", required_argument, NULL, 'n'},
                                        {"uids", required_argument, NULL, 'u'},
                                        {"mount", required_argument, NULL, 'm'},
                                        {"export", required_argument, NULL, 'e'},
                                        {"file", required_argument, NULL, 'f'},
                                        {"help", no_argument, NULL, 'h'},
                                        BENCH_WINDOW_OPTIONS,
                                        {0}};

static void read_options(int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 't':
            bench_option_address("target", optarg, &load.target);
            break;
        case 'k':
            load.kind = option_kind(optarg);
            break;
        case 'b':
            load.data_bytes = (uint32_t)bench_option_count("bytes", optarg, 1, DATA_LIMIT_BYTES);
            break;
        case 'l':
            load.call_bytes = (uint32_t)bench_option_count("call-bytes", optarg, 40, 400);
            break;
        case 'c':
            load.connection_count =
                (unsigned)bench_option_count("connections", optarg, 1, CONNECTIONS_LIMIT);
            break;
        case 'n':
            load.depth = (uint32_t)bench_option_count("depth", optarg, 1, DEPTH_LIMIT);
            break;
        case 'u':
            load.uids = (uint32_t)bench_option_count("uids", optarg, 1, CONNECTIONS_LIMIT);
            break;
        case 'm':
            bench_option_address("mount", optarg, &load.mount);
            break;
        case 'e':
            load.export_path = optarg;
            break;
        case 'f':
            load.file = optarg;
            break;
        default:
            if (bench_window_option(&load.window, option, optarg))
                break;
            fputs(usage, option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (!load.target.length || optind < argc) {
        fputs(usage, stderr);
        exit(2);
    }
    if (load.kind->proc != NFS3_PROC_READ && load.kind->proc != NFS3_PROC_WRITE)
        load.data_bytes = 0;
    if (load.kind->proc == NFS3_PROC_WRITE)
        load.trailing_bytes = (uint32_t)rpc_padded(load.data_bytes);
}

static int prepare(void)
{
    size_t slots = (size_t)load.connection_count * load.depth;

    load.connections = calloc(load.connection_count, sizeof(*load.connections));
    load.slots = calloc(slots, sizeof(*load.slots));
    load.queues = calloc(slots, sizeof(*load.queues));
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!load.connections || !load.slots || !load.queues)
        return -ENOMEM;
    if (load.epoll < 0)
        return -errno;
    for (unsigned i = 0; i < load.connection_count; i++) {
        struct connection *c = &load.connections[i];

        c->fd = -1;
        c->slots = load.slots + (size_t)i * load.depth;
        c->queue = load.queues + (size_t)i * load.depth;
        for (uint32_t slot = 0; slot < load.depth; slot++)
            prepare_slot(&c->slots[slot], slot, FIRST_UID + i % load.uids);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int status;

    load.kind = option_kind("read");
    load.data_bytes = 4096;
    load.call_bytes = 200;
    load.connection_count = 4;
    load.depth = 32;
    load.uids = 2;
    load.handle.bytes = 32;
    load.export_path = "/export";
    load.file = "data";
    bench_window_init(&load.window);
    read_options(argc, argv);
    if (load.mount.length &&
        nfs_lookup(&load.mount, &load.target, load.export_path, load.file, &load.handle) < 0)
        return 1;
    status = prepare();
    if (status < 0) {
        fprintf(stderr, "rpcload: %s\n", strerror(-status));
        return 1;
    }
    bench_window_start(&load.window, bench_now_ns());
    status = run();
    free(load.connections);
    free(load.slots);
    free(load.queues);
    return status;
}
