/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: a thread with its loop, its share of every listener, its sessions and server
 * connections. The runtime: the workers and what they share.
 *
 *      running ──runtime_drain──> draining (no new connections; idle ones closed, requests
 * finished) ──────────────────────────────────────> stopped
 */
#ifndef SPILLWAY_CORE_WORKER_H
#define SPILLWAY_CORE_WORKER_H

#include "proxy/control/access_log.h"
#include "proxy/core/pool/plan.h"
#include "proxy/io/conn.h"
#include "proxy/io/loop.h"

#include <pthread.h>

struct http_upstream;
struct http_worker;
struct nfs_worker;
struct runtime;

/* A listening socket of one worker. */
struct acceptor {
    struct worker *worker;
    unsigned listener; /* index into plan->listeners */
    int fd;
    struct event event;
    struct timer pause; /* after running out of descriptors */
};

/*
 * A client connection of any protocol: first member of the protocols' sessions. On its worker's
 * list, so that draining finds it.
 */
struct session {
    struct conn conn;
    struct worker *worker;
    TAILQ_ENTRY(session) link;
    struct deferred deferred;
    const struct session_ops *ops;
    unsigned listener;
    struct sockaddr_storage client; /* IPv4 as IPv4, never v4-mapped */
};

struct session_ops {
    /* The worker drains: close at once if idle, else after what is in progress. */
    void (*drain)(struct session *session);
    /* Close now, whatever is in progress: the process ends. The loop does not run any more. */
    void (*abort)(struct session *session);
};

struct worker {
    struct loop loop;
    struct runtime *runtime;
    unsigned index;
    pthread_t thread;
    struct plan *plan;
    bool draining;
    TAILQ_HEAD(session_list, session) sessions;
    struct acceptor *acceptors;
    unsigned acceptor_count;
    struct listener_meters *listeners; /* by listener index */
    struct access_buffer *access;      /* NULL: no access log */
    struct http_worker *http;          /* the HTTP room's: idle server connections, free objects */
    struct nfs_worker *nfs;            /* the NFS room's */
    struct timer second;               /* once a second: flush the access log */
    struct plan_switch {
        struct loop_message message;
        struct plan *plan;
        struct worker *worker;
    } plan_switch; /* a reload's hand-over; the reload waits until it was taken */
    atomic_bool plan_taken;
    struct loop_message drain_message;
};

struct runtime {
    struct worker *workers;
    unsigned worker_count;
    struct pool_list pools;
    unsigned server_count; /* indices given out so far */
    struct plan *plan;     /* the newest; changed under `lock` */
    char *config_path;
    pthread_mutex_t lock; /* one reload or administrative change at a time */
    atomic_uint reloads_done, reloads_failed;
    atomic_uint sessions;   /* open, all workers; the drain waits for 0 */
    unsigned session_limit; /* half of the descriptors: each client may need a server connection */
    atomic_uint *open;      /* sessions by listener, all workers: for the limit of connections */
    uint64_t started_ns;
    atomic_bool draining;
};

static inline const struct plan_listener *session_listener(const struct session *session)
{
    return &session->worker->plan->listeners[session->listener];
}

static inline struct listener_meters *session_meters(const struct session *session)
{
    return &session->worker->listeners[session->listener];
}

/* 0 or -errno. The worker's thread is not started. */
int worker_init(struct worker *worker, struct runtime *runtime, unsigned index);
void worker_fini(struct worker *worker);

/* Closes every session; for when no worker's loop runs any more. loop_wind_up() has to follow. */
void worker_abort_sessions(struct worker *worker);

/* Gives the worker a listening socket; it owns the descriptor from here on. Before worker_start().
 */
void worker_add_listener(struct worker *worker, unsigned listener, int fd);

/* Starts the thread. 0 or -errno. */
int worker_start(struct worker *worker);
void worker_join(struct worker *worker);

/* From other threads: the worker takes over the plan; returns when it has. */
void worker_switch_plan(struct worker *worker, struct plan *plan);
/* From other threads: stop accepting, close what is idle, finish the rest. */
void worker_drain(struct worker *worker);

/* Registers a session whose connection is open; session_close() takes it off and counts. */
void session_open(struct session *session, const struct session_ops *ops);

/* Closes the connection and frees the session at the end of the turn through `release`. Once. */
void session_close(struct session *session, void (*release)(struct deferred *deferred));

#endif
