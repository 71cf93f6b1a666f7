/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpload: the closed-loop HTTP/1.1 client of the benches. N connections, one request in flight
 * on each, every reply's status and length checked. It costs a few microseconds per request, so
 * that one core carries it and the backend while the proxy fills the other.
 *
 * One thread, edge-triggered epoll. A connection is
 *   connecting  -> its first request is sent when it becomes writable
 *   waiting     for the reply's head, gathered in `head`
 *   body        `body_left` bytes are taken and thrown away inside the kernel (MSG_TRUNC)
 *   ending      (with --close) the reply is complete; the server's end of connection is awaited
 * A failed or closed connection is counted and opened anew.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/tools/bench_net.h"
#include "bench/tools/bench_window.h"

#define HEAD_LIMIT_BYTES    4096
#define DISCARD_LIMIT_BYTES (4u << 20)
#define REQUEST_LIMIT_BYTES 2048
#define EVENTS              256
#define FLOW_LIMIT          64
#define TURN_LIMIT_MS       100

enum step {
    STEP_CONNECTING,
    STEP_WAITING,
    STEP_BODY,
    STEP_ENDING,
};

struct request {
    size_t length;
    char text[REQUEST_LIMIT_BYTES];
};

struct connection {
    int fd;
    enum step step;
    const struct request *request;
    uint64_t sent_ns;
    uint64_t body_left;
    size_t have;
    char head[HEAD_LIMIT_BYTES];
};

struct load {
    struct units_address target;
    unsigned connection_count;
    struct connection *connections;
    bool close_each;
    uint64_t expected_bytes;
    unsigned flows;
    struct request requests[FLOW_LIMIT];
    int epoll;
    bool hopeless;
    struct bench_window window;
};

static struct load load;

static int open_connection(struct connection *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};

    c->have = 0;
    c->body_left = 0;
    c->step = STEP_CONNECTING;
    c->sent_ns = bench_now_ns();
    c->fd = bench_connect(&load.target);
    if (c->fd < 0)
        return c->fd;
    return epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event) < 0 ? -errno : 0;
}

static void reopen(struct connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    while (!load.hopeless && open_connection(c) < 0) {
        if (c->fd >= 0)
            close(c->fd);
        load.hopeless = !bench_window_failed(&load.window);
    }
}

static void fail(struct connection *c)
{
    if (!bench_window_failed(&load.window))
        load.hopeless = true;
    reopen(c);
}

/* Requests are far smaller than an empty send buffer: a short send means a broken connection. */
static int send_request(struct connection *c, uint64_t now_ns)
{
    ssize_t sent = send(c->fd, c->request->text, c->request->length, MSG_NOSIGNAL);

    if (sent < 0)
        return -errno;
    if ((size_t)sent != c->request->length)
        return -EIO;
    c->step = STEP_WAITING;
    if (!load.close_each)
        c->sent_ns = now_ns;
    return 0;
}

/* The value of Content-Length in a reply's head, or -1. */
static int64_t content_length(const char *head, const char *end)
{
    static const char name[] = "\ncontent-length:";
    const char *line = head;

    while ((line = memchr(line, '\n', (size_t)(end - line))) != NULL) {
        if (strncasecmp(line, name, sizeof(name) - 1) == 0)
            return strtoll(line + sizeof(name) - 1, NULL, 10);
        line++;
    }
    return -1;
}

/* Takes what stands in `head`. Returns 1 when the reply is complete, 0 when not, or an error. */
static int take_head(struct connection *c)
{
    const char *end = memmem(c->head, c->have, "\r\n\r\n", 4);
    uint64_t body_here;
    int64_t length;

    if (!end)
        return c->have == sizeof(c->head) ? -EMSGSIZE : 0;
    if (memcmp(c->head, "HTTP/1.1 200", 12) != 0)
        return -EPROTO;
    length = content_length(c->head, end);
    body_here = c->have - (size_t)(end + 4 - c->head);
    if (length < 0 || (uint64_t)length != load.expected_bytes || body_here > (uint64_t)length)
        return -EPROTO;
    c->body_left = (uint64_t)length - body_here;
    c->step = STEP_BODY;
    c->have = 0;
    return c->body_left == 0;
}

/* Reads once. Returns 1 when a reply became complete, 0 when there is more to read, else error. */
static int read_some(struct connection *c, bool *emptied)
{
    size_t room;
    ssize_t got;

    if (c->step == STEP_BODY) {
        room = c->body_left < DISCARD_LIMIT_BYTES ? c->body_left : DISCARD_LIMIT_BYTES;
        got = recv(c->fd, NULL, room, MSG_TRUNC);
    } else {
        room = sizeof(c->head) - c->have;
        got = recv(c->fd, c->head + c->have, room, 0);
    }
    if (got < 0)
        return -errno;
    if (got == 0)
        return -ECONNRESET;
    *emptied = (size_t)got < room;
    if (c->step == STEP_ENDING)
        return -EPROTO;
    if (c->step == STEP_BODY) {
        c->body_left -= (uint64_t)got;
        return c->body_left == 0;
    }
    c->have += (size_t)got;
    return take_head(c);
}

static void serve(struct connection *c, bool hung_up)
{
    bool emptied = false;
    int status = 0;

    if (c->step == STEP_CONNECTING && (status = send_request(c, bench_now_ns())) < 0) {
        if (status != -EAGAIN && status != -ENOTCONN)
            fail(c);
        return;
    }
    while (!emptied || hung_up) {
        status = read_some(c, &emptied);
        if (status == -EAGAIN || status == -EINTR)
            return;
        if (status == -ECONNRESET && c->step == STEP_ENDING) {
            reopen(c);
            return;
        }
        if (status > 0) {
            uint64_t now_ns = bench_now_ns();

            bench_window_completed(&load.window, c->sent_ns, now_ns, load.expected_bytes);
            if (load.close_each) {
                c->step = STEP_ENDING;
                c->have = 0;
                continue;
            }
            status = send_request(c, now_ns);
        }
        if (status < 0) {
            fail(c);
            return;
        }
    }
}

static int run(void)
{
    struct epoll_event events[EVENTS];
    uint64_t now_ns = bench_now_ns();

    for (unsigned i = 0; i < load.connection_count; i++) {
        struct connection *c = &load.connections[i];

        c->fd = -1;
        c->request = &load.requests[i % load.flows];
        reopen(c);
    }
    while (!load.hopeless && bench_window_poll(&load.window, now_ns)) {
        int count = epoll_wait(load.epoll, events, EVENTS, TURN_LIMIT_MS);

        for (int i = 0; i < count && !load.hopeless; i++)
            serve(events[i].data.ptr, events[i].events & (EPOLLRDHUP | EPOLLHUP));
        now_ns = bench_now_ns();
    }
    if (load.hopeless)
        fprintf(stderr, "httpload: %llu requests failed, gave up\n",
                (unsigned long long)load.window.errors);
    return bench_window_print(&load.window);
}

static const char usage[] =
    "usage: httpload --target ADDRESS:PORT [options]\n"
    "  --bytes N         ask for /N and expect N bytes (128)\n"
    "  --connections N   connections, one request in flight on each (64)\n"
    "  --header LINE     one more header line in each request (may be repeated)\n"
    "  --flows N         connections take turns at X-Flow: f0 .. f(N-1); none by default\n"
    "  --close           a new connection for every request\n" BENCH_WINDOW_USAGE
    "Prints one line of JSON.\n";

/* The request of flow number `flow`. */
static void build_request(const char *headers, unsigned flow)
{
    struct request *request = &load.requests[flow];
    char line[32] = "";
    int length;

    if (load.flows)
        snprintf(line, sizeof(line), "X-Flow: f%u\r\n", flow);
    length = snprintf(request->text, sizeof(request->text),
                      "GET /%llu HTTP/1.1\r\nHost: bench.example\r\n%s%s%s\r\n",
                      (unsigned long long)load.expected_bytes, line, headers,
                      load.close_each ? "Connection: close\r\n" : "");
    if (length < 0 || (size_t)length >= sizeof(request->text)) {
        fprintf(stderr, "httpload: the request is longer than %d bytes\n", REQUEST_LIMIT_BYTES);
        exit(2);
    }
    request->length = (size_t)length;
}

static void read_options(int argc, char **argv)
{
    static const struct option options[] = {{"target", required_argument, NULL, 't'},
                                            {"bytes", required_argument, NULL, 'b'},
                                            {"connections", required_argument, NULL, 'c'},
                                            {"header", required_argument, NULL, 'H'},
                                            {"flows", required_argument, NULL, 'f'},
                                            {"close", no_argument, NULL, 'x'},
                                            {"help", no_argument, NULL, 'h'},
                                            BENCH_WINDOW_OPTIONS,
                                            {0}};
    char headers[REQUEST_LIMIT_BYTES] = "";
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        size_t used = strlen(headers);

        switch (option) {
        case 't':
            bench_option_address("target", optarg, &load.target);
            break;
        case 'b':
            load.expected_bytes = bench_option_count("bytes", optarg, 0, 64u << 20);
            break;
        case 'c':
            load.connection_count = (unsigned)bench_option_count("connections", optarg, 1, 100000);
            break;
        case 'H':
            snprintf(headers + used, sizeof(headers) - used, "%s\r\n", optarg);
            break;
        case 'f':
            load.flows = (unsigned)bench_option_count("flows", optarg, 1, FLOW_LIMIT);
            break;
        case 'x':
            load.close_each = true;
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
    for (unsigned i = 0; i == 0 || i < load.flows; i++)
        build_request(headers, i);
    load.flows = load.flows ? load.flows : 1;
}

int main(int argc, char **argv)
{
    int status;

    load.connection_count = 64;
    load.expected_bytes = 128;
    bench_window_init(&load.window);
    read_options(argc, argv);
    load.connections = calloc(load.connection_count, sizeof(*load.connections));
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!load.connections || load.epoll < 0) {
        fprintf(stderr, "httpload: %s\n", strerror(errno));
        return 1;
    }
    bench_window_start(&load.window, bench_now_ns());
    status = run();
    free(load.connections);
    return status;
}
