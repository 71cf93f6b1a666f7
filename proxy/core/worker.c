/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: accepting, the list of sessions, taking over plans, draining. See worker.h. */
#include "proxy/core/worker.h"

#include "proxy/control/log.h"
#include "proxy/core/container_of.h"
#include "proxy/http/http.h"
#include "proxy/io/memory.h"
#include "proxy/nfs/nfs.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCEPT_PER_EVENT 64
#define ACCEPT_PAUSE_NS  UINT64_C(50000000)
#define SECOND_NS        UINT64_C(1000000000)

/* ------------------------------------------------------------------ accepting */

/* An IPv4 client of a dual socket is an IPv4 client. */
static void unmap_address(struct sockaddr_storage *address)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = v6->sin6_port};
    memcpy(&v4.sin_addr, &v6->sin6_addr.s6_addr[12], 4);
    memset(address, 0, sizeof(*address));
    memcpy(address, &v4, sizeof(v4));
}

static void pause_accepting(struct acceptor *acceptor)
{
    struct loop *loop = &acceptor->worker->loop;

    event_del(&acceptor->event);
    timer_set(&loop->wheel, &acceptor->pause, loop_now_ns(loop) + ACCEPT_PAUSE_NS);
}

static void on_pause_over(struct timer *timer, uint64_t now_ns)
{
    struct acceptor *acceptor = container_of(timer, struct acceptor, pause);

    (void)now_ns;
    event_add(&acceptor->event, NULL);
}

static void start_session(struct acceptor *acceptor, int fd, struct sockaddr_storage *client)
{
    struct worker *worker = acceptor->worker;
    const struct config_listener *config = worker->plan->listeners[acceptor->listener].config;
    int one = 1;

    unmap_address(client);
    if (client->ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    meter_add(&worker->listeners[acceptor->listener].connections, 1);
    if (config->protocol == CONFIG_PROTOCOL_HTTP)
        http_session_start(worker, acceptor->listener, fd, client);
    else
        nfs_session_start(worker, acceptor->listener, fd, client);
}

static void say_full(struct acceptor *acceptor)
{
    static struct log_limit limit;
    struct worker *worker = acceptor->worker;

    meter_add(&worker->listeners[acceptor->listener].rejected, 1);
    log_limited(&limit, loop_now_ns(&worker->loop), CONFIG_LOG_ERROR,
                "listener %s: %u connections are open, half of the descriptors there are; clients "
                "wait in the "
                "backlog (raise open-files or the process's limit)",
                worker->plan->listeners[acceptor->listener].config->name,
                worker->runtime->session_limit);
}

static bool accept_one(struct acceptor *acceptor)
{
    static struct log_limit limit;
    struct worker *worker = acceptor->worker;
    struct sockaddr_storage client;
    socklen_t length = sizeof(client);

    memset(&client, 0, sizeof(client));
    int fd =
        accept4(acceptor->fd, (struct sockaddr *)&client, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        start_session(acceptor, fd, &client);
        return true;
    }
    if (errno == EINTR || errno == ECONNABORTED)
        return true;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        log_limited(&limit, loop_now_ns(&worker->loop), CONFIG_LOG_ERROR,
                    "listener %s: can't accept: %s; clients wait in the backlog (raise open-files "
                    "or the process's "
                    "limit)",
                    worker->plan->listeners[acceptor->listener].config->name, strerror(errno));
        meter_add(&worker->listeners[acceptor->listener].rejected, 1);
        pause_accepting(acceptor);
    }
    return false;
}

static void on_acceptable(evutil_socket_t fd, short what, void *argument)
{
    struct acceptor *acceptor = argument;
    struct worker *worker = acceptor->worker;
    uint32_t limit = worker->plan->listeners[acceptor->listener].config->limits.connections;

    (void)fd;
    (void)what;
    for (unsigned i = 0; i < ACCEPT_PER_EVENT; i++) {
        if (atomic_load_explicit(&worker->runtime->sessions, memory_order_relaxed) >=
            worker->runtime->session_limit) {
            say_full(acceptor);
            pause_accepting(acceptor);
            return;
        }
        if (atomic_load_explicit(&worker->runtime->open[acceptor->listener],
                                 memory_order_relaxed) >= limit) {
            /* The others wait in the backlog, where they cost nothing. */
            pause_accepting(acceptor);
            return;
        }
        if (!accept_one(acceptor))
            return;
    }
}

void worker_add_listener(struct worker *worker, unsigned listener, int fd)
{
    unsigned count = worker->acceptor_count;

    worker->acceptors = memory_resize(worker->acceptors, (count + 1) * sizeof(*worker->acceptors),
                                      "a listening socket");
    struct acceptor *acceptor = &worker->acceptors[count];
    memset(acceptor, 0, sizeof(*acceptor));
    acceptor->worker = worker;
    acceptor->listener = listener;
    acceptor->fd = fd;
    worker->acceptor_count++;
}

static void begin_accepting(struct worker *worker)
{
    for (unsigned i = 0; i < worker->acceptor_count; i++) {
        struct acceptor *acceptor = &worker->acceptors[i];
        timer_init(&acceptor->pause, on_pause_over);
        event_assign(&acceptor->event, worker->loop.base, acceptor->fd, EV_READ | EV_PERSIST,
                     on_acceptable, acceptor);
        event_add(&acceptor->event, NULL);
    }
}

static void end_accepting(struct worker *worker)
{
    for (unsigned i = 0; i < worker->acceptor_count; i++) {
        struct acceptor *acceptor = &worker->acceptors[i];
        if (acceptor->fd < 0)
            continue;
        /* Who is in the backlog has been promised an answer. */
        on_acceptable(acceptor->fd, EV_READ, acceptor);
        event_del(&acceptor->event);
        timer_unlink(&acceptor->pause);
        close(acceptor->fd);
        acceptor->fd = -1;
    }
}

/* ------------------------------------------------------------------ sessions */

void session_open(struct session *session, const struct session_ops *ops)
{
    struct worker *worker = session->worker;

    session->ops = ops;
    TAILQ_INSERT_TAIL(&worker->sessions, session, link);
    meter_add(&session_meters(session)->open, 1);
    atomic_fetch_add_explicit(&worker->runtime->open[session->listener], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->runtime->sessions, 1, memory_order_relaxed);
}

void session_close(struct session *session, void (*release)(struct deferred *deferred))
{
    struct worker *worker = session->worker;

    conn_close(&session->conn);
    TAILQ_REMOVE(&worker->sessions, session, link);
    meter_add(&session_meters(session)->open, -1);
    atomic_fetch_sub_explicit(&worker->runtime->open[session->listener], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&worker->runtime->sessions, 1, memory_order_relaxed);
    loop_defer_free(&worker->loop, &session->deferred, release);
}

/* ------------------------------------------------------------------ messages from other threads */

static void on_plan(struct loop *loop, struct loop_message *message)
{
    struct plan_switch *next = container_of(message, struct plan_switch, message);
    struct worker *worker = next->worker;
    struct plan *old = worker->plan;

    (void)loop;
    worker->plan = next->plan;
    plan_leave(old, worker);
    atomic_store(&worker->plan_taken, true);
}

void worker_switch_plan(struct worker *worker, struct plan *plan)
{
    atomic_store(&worker->plan_taken, false);
    worker->plan_switch =
        (struct plan_switch){.message = {.run = on_plan}, .plan = plan, .worker = worker};
    loop_post(&worker->loop, &worker->plan_switch.message, &worker->plan_switch.message);
    while (!atomic_load(&worker->plan_taken))
        sched_yield();
}

static void on_drain(struct loop *loop, struct loop_message *message)
{
    struct worker *worker = container_of(message, struct worker, drain_message);
    struct session *session;
    struct session *next;

    (void)loop;
    worker->draining = true;
    end_accepting(worker);
    for (session = TAILQ_FIRST(&worker->sessions); session != NULL; session = next) {
        next = TAILQ_NEXT(session, link);
        session->ops->drain(session);
    }
}

void worker_drain(struct worker *worker)
{
    worker->drain_message.run = on_drain;
    loop_post(&worker->loop, &worker->drain_message, &worker->drain_message);
}

/* ------------------------------------------------------------------ life */

static void on_second(struct timer *timer, uint64_t now_ns)
{
    struct worker *worker = container_of(timer, struct worker, second);

    access_log_flush(worker->access, now_ns, false);
    timer_set(&worker->loop.wheel, &worker->second, now_ns + SECOND_NS);
}

int worker_init(struct worker *worker, struct runtime *runtime, unsigned index)
{
    int error = loop_init(&worker->loop, index);

    if (error < 0)
        return error;
    worker->runtime = runtime;
    worker->index = index;
    worker->loop.context = worker;
    TAILQ_INIT(&worker->sessions);
    return 0;
}

static void *run(void *argument)
{
    struct worker *worker = argument;

    loop_run(&worker->loop);
    access_log_flush(worker->access, loop_now_ns(&worker->loop), true);
    return NULL;
}

int worker_start(struct worker *worker)
{
    worker->access = access_buffer_create();
    worker->http = http_worker_create(worker);
    worker->nfs = nfs_worker_create(worker);
    timer_init(&worker->second, on_second);
    timer_set(&worker->loop.wheel, &worker->second, loop_now_ns(&worker->loop) + SECOND_NS);
    begin_accepting(worker);
    return -pthread_create(&worker->thread, NULL, run, worker);
}

void worker_join(struct worker *worker)
{
    loop_stop(&worker->loop);
    pthread_join(worker->thread, NULL);
}

void worker_abort_sessions(struct worker *worker)
{
    struct session *session;

    while ((session = TAILQ_FIRST(&worker->sessions)) != NULL)
        session->ops->abort(session);
}

void worker_fini(struct worker *worker)
{
    for (unsigned i = 0; i < worker->acceptor_count; i++) {
        if (worker->acceptors[i].fd >= 0) {
            if (event_initialized(&worker->acceptors[i].event))
                event_del(&worker->acceptors[i].event);
            close(worker->acceptors[i].fd);
        }
    }
    http_worker_destroy(worker->http);
    nfs_worker_destroy(worker->nfs);
    access_buffer_destroy(worker->access);
    free(worker->acceptors);
    free(worker->listeners);
    loop_fini(&worker->loop);
}
