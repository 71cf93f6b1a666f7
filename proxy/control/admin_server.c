/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane's sockets and thread: see admin_server.h. What requests mean is in api/.
 *
 *      admin_server_open ──> opened ──admin_server_start──> serving ──admin_server_stop──> gone
 *
 * After the start, everything but `wake_fd` belongs to the server's thread.
 */
#include "proxy/control/admin_server.h"

#include "proxy/control/api/api.h"
#include "proxy/control/log.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG           128
#define SOCKET_MODE       0660
#define HEADER_BYTES_MAX  (16 << 10)
#define BODY_BYTES_MAX    (64 << 10)
#define IDLE_SECONDS      30
#define ACCEPT_PAUSE_USEC 100000

struct admin_server {
    struct runtime *runtime;
    struct event_base *base;
    struct evhttp *control; /* on the UNIX socket: everything */
    struct evhttp *reading; /* on TCP addresses */
    int wake_fd;            /* readable: end */
    struct event *wake;
    pthread_t thread;
    bool started;
    char *socket_path; /* ours to remove; NULL: none */
};

/* ------------------------------------------------------------------ requests */

static enum api_method method_of(struct evhttp_request *request)
{
    switch (evhttp_request_get_command(request)) {
    case EVHTTP_REQ_GET:
    case EVHTTP_REQ_HEAD:
        return API_GET;
    case EVHTTP_REQ_POST:
        return API_POST;
    default:
        return API_OTHER;
    }
}

static void answer(struct evhttp_request *request, const struct api_reply *reply)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

    evhttp_add_header(headers, "Content-Type", reply->content_type);
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    if (reply->status == 405)
        evhttp_add_header(headers, "Allow", "GET, HEAD, POST");
    if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
        /* evhttp would send the body, too. */
        char length[24];
        snprintf(length, sizeof(length), "%zu", evbuffer_get_length(reply->body));
        evhttp_add_header(headers, "Content-Length", length);
        evbuffer_drain(reply->body, evbuffer_get_length(reply->body));
    }
    evhttp_send_reply(request, reply->status, NULL, reply->body);
}

static void serve(struct admin_server *server, struct evhttp_request *request, bool may_change)
{
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    size_t length = evbuffer_get_length(input);
    struct api_reply reply = {.body = evbuffer_new()};
    struct api_request asked = {
        .method = method_of(request),
        .path = path != NULL ? path : "",
        .body = length > 0 ? (const char *)evbuffer_pullup(input, -1) : "",
        .body_length = length,
        .may_change = may_change,
    };

    if (reply.body == NULL || asked.body == NULL)
        memory_fail("an answer of the control plane");
    api_handle(server->runtime, &asked, &reply);
    answer(request, &reply);
    evbuffer_free(reply.body);
}

static void on_control_request(struct evhttp_request *request, void *server)
{
    serve(server, request, true);
}

static void on_reading_request(struct evhttp_request *request, void *server)
{
    serve(server, request, false);
}

/* ------------------------------------------------------------------ sockets */

static void resume_accepting(evutil_socket_t fd, short what, void *listener)
{
    (void)fd;
    (void)what;
    evconnlistener_enable(listener);
}

/* Out of descriptors, most likely: the connection waits in the backlog, so asking again at once
 * would only spin. */
static void on_accept_error(struct evconnlistener *listener, void *argument)
{
    static struct log_limit limit;
    struct timeval pause = {.tv_usec = ACCEPT_PAUSE_USEC};

    (void)argument;
    log_limited(&limit, loop_clock_ns(), CONFIG_LOG_WARNING, "admin: can't accept: %s",
                strerror(errno));
    evconnlistener_disable(listener);
    event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, resume_accepting, listener,
                    &pause);
}

static struct evhttp *new_http(struct admin_server *server,
                               void (*on_request)(struct evhttp_request *, void *))
{
    struct evhttp *http = evhttp_new(server->base);

    if (http == NULL)
        memory_fail("the control plane");
    evhttp_set_max_headers_size(http, HEADER_BYTES_MAX);
    evhttp_set_max_body_size(http, BODY_BYTES_MAX);
    evhttp_set_timeout(http, IDLE_SECONDS);
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                         EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
                                         EVHTTP_REQ_PATCH);
    evhttp_set_gencb(http, on_request, server);
    return http;
}

/* Takes over a listening descriptor. */
static void add_socket(struct evhttp *http, int fd)
{
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(http, fd);

    if (bound == NULL)
        memory_fail("the control plane's listener");
    evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), on_accept_error);
}

/* True when somebody answers at the address. */
static bool is_alive(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive;

    if (fd < 0)
        return true;
    alive = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
            (errno != ECONNREFUSED && errno != ENOENT);
    close(fd);
    return alive;
}

/* Removes a socket that nobody listens at; anything else stays. */
static int remove_stale(const struct sockaddr_un *address)
{
    struct stat found;

    if (lstat(address->sun_path, &found) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(found.st_mode))
        return -EEXIST;
    if (is_alive(address))
        return -EADDRINUSE;
    return unlink(address->sun_path) < 0 ? -errno : 0;
}

/* A listening socket, or -errno. */
static int listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mode_t before;
    int fd;
    int error;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    error = remove_stale(&address);
    if (error < 0)
        return error;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* The mode must hold from the first moment on. No other thread makes files yet. */
    before = umask(0777 & ~SOCKET_MODE);
    error = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    umask(before);
    if (error == 0 && listen(fd, BACKLOG) < 0)
        error = -errno;
    if (error < 0) {
        close(fd);
        return error;
    }
    return fd;
}

static int listen_tcp(const struct config_endpoint *endpoint)
{
    const struct sockaddr *address = (const struct sockaddr *)&endpoint->addr;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(fd, address, endpoint->len) < 0 || listen(fd, BACKLOG) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

static int open_socket(struct admin_server *server, const struct config_admin *config)
{
    int fd;

    if (config->socket == NULL)
        return 0;
    fd = listen_unix(config->socket);
    if (fd < 0) {
        log_error("admin: can't listen on %s: %s%s", config->socket, strerror(-fd),
                  fd == -EADDRINUSE ? " (another Spillway runs there)"
                  : fd == -EEXIST   ? " and is no socket"
                                    : "");
        return fd;
    }
    server->socket_path = memory_copy_string(config->socket, "the control socket's path");
    server->control = new_http(server, on_control_request);
    add_socket(server->control, fd);
    return 0;
}

static int open_address(struct admin_server *server, const struct config_address *address)
{
    for (size_t i = 0; i < address->endpoint_count; i++) {
        int fd = listen_tcp(&address->endpoints[i]);
        /* A machine without IPv6 still has the other half of `*`. */
        if (fd < 0 && address->wildcard && i > 0)
            continue;
        if (fd < 0) {
            log_error("admin: can't listen on %s: %s", address->text, strerror(-fd));
            return fd;
        }
        if (server->reading == NULL)
            server->reading = new_http(server, on_reading_request);
        add_socket(server->reading, fd);
    }
    return 0;
}

/* ------------------------------------------------------------------ life */

static void on_wake(evutil_socket_t fd, short what, void *server)
{
    (void)fd;
    (void)what;
    event_base_loopbreak(((struct admin_server *)server)->base);
}

static void destroy(struct admin_server *server)
{
    if (server->control != NULL)
        evhttp_free(server->control);
    if (server->reading != NULL)
        evhttp_free(server->reading);
    if (server->wake != NULL)
        event_free(server->wake);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    event_base_free(server->base);
    if (server->socket_path != NULL)
        unlink(server->socket_path);
    free(server->socket_path);
    free(server);
}

int admin_server_open(struct runtime *runtime, const struct config_admin *config,
                      struct admin_server **server)
{
    struct admin_server *made;
    int error;

    *server = NULL;
    if (config->socket == NULL && config->http_count == 0)
        return 0;
    made = memory_zalloc(sizeof(*made), "the control plane");
    made->runtime = runtime;
    made->wake_fd = -1;
    made->base = event_base_new();
    if (made->base == NULL)
        memory_fail("the control plane's loop");
    error = open_socket(made, config);
    for (size_t i = 0; i < config->http_count && error == 0; i++)
        error = open_address(made, &config->http[i]);
    if (error == 0) {
        made->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (made->wake_fd < 0)
            error = -errno;
    }
    if (error < 0) {
        destroy(made);
        return error;
    }
    made->wake = event_new(made->base, made->wake_fd, EV_READ, on_wake, made);
    if (made->wake == NULL || event_add(made->wake, NULL) < 0)
        memory_fail("the control plane's loop");
    *server = made;
    return 0;
}

static void *run(void *argument)
{
    struct admin_server *server = argument;

    pthread_setname_np(pthread_self(), "admin");
    event_base_dispatch(server->base);
    return NULL;
}

int admin_server_start(struct admin_server *server)
{
    int error = -pthread_create(&server->thread, NULL, run, server);

    if (error < 0)
        log_error("admin: no thread: %s", strerror(-error));
    server->started = error == 0;
    return error;
}

void admin_server_stop(struct admin_server *server)
{
    uint64_t one = 1;

    if (server == NULL)
        return;
    if (server->started) {
        while (write(server->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
            continue;
        pthread_join(server->thread, NULL);
    }
    destroy(server);
}
