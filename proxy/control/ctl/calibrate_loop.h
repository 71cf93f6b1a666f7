/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A closed loop against one server: so many TCP connections, on each one request at a time, the
 * next one as soon as the reply is whole.
 *
 *      next ──> link->out (and tail) ──> sent ──> received into link->in ──> reply: MORE ─┐
 *       ^                                                  ^─────────────────────────────┘
 *       └─────────────────────── DONE (or CLOSE: on a fresh connection) ──────────────────
 *
 * One thread, poll(2). A run ends when its time is over or there is nothing more to send, and all
 * replies have come. A protocol is two functions (struct calibrate_work).
 */
#ifndef SPILLWAY_CONTROL_CTL_CALIBRATE_LOOP_H
#define SPILLWAY_CONTROL_CTL_CALIBRATE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CALIBRATE_LINKS_MAX  128U
#define CALIBRATE_ERROR_SIZE 512

struct calibrate_link {
    unsigned index;
    int fd; /* -1: not connected */
    uint8_t *out;
    size_t out_room, out_bytes; /* room is CALIBRATE_OUT_ROOM at least */
    const uint8_t *tail;        /* sent behind `out`; not owned */
    size_t tail_bytes;
    size_t sent_bytes; /* of both */
    uint8_t *in;
    size_t in_room, in_bytes;
    uint64_t received_bytes; /* of this reply */
    uint64_t sent_ns;        /* when the request was begun */
    bool busy;               /* a reply is to come */
    bool counted;            /* the request is one that is measured; `next` may say no */
};

#define CALIBRATE_OUT_ROOM 4096

enum calibrate_reply {
    CALIBRATE_MORE,  /* *used bytes can be dropped */
    CALIBRATE_DONE,  /* so many bytes were the reply (or its end) */
    CALIBRATE_CLOSE, /* likewise, and the server will close the connection */
    CALIBRATE_WRONG, /* calibrate_loop_fail() was called */
};

struct calibrate_work {
    void *context;
    /* Puts a request into link->out, with tail if need be. False: there is none any more. */
    bool (*next)(void *context, struct calibrate_link *link);
    /* Looks at link->in. */
    enum calibrate_reply (*reply)(void *context, struct calibrate_link *link, size_t *used);
};

struct calibrate_loop {
    struct sockaddr_storage address;
    socklen_t address_length;
    char peer[300]; /* as the user wrote it, for messages */
    unsigned timeout_s;
    bool reserved_port; /* connect from a port below 1024 when there is one: root only */
    unsigned count;     /* links that were ever used */
    struct calibrate_link links[CALIBRATE_LINKS_MAX];
    char error[CALIBRATE_ERROR_SIZE]; /* why a function here failed */
};

/* What a run came to; of counted requests alone unless it says otherwise. */
struct calibrate_run {
    uint64_t completions;
    uint64_t elapsed_ns;    /* from the first request of all to the last reply */
    uint64_t waited_ns;     /* sum of the times from request to reply */
    uint64_t waited_all_ns; /* likewise of all requests, counted or not */
    uint64_t sent_bytes, received_bytes;
};

/* Set by a signal's handler: runs that have a duration end early. Others tidy up. */
extern volatile sig_atomic_t calibrate_stopped;

/* Nothing is connected yet. 0, or -1 with `error` set: the name has no address. */
int calibrate_loop_init(struct calibrate_loop *loop, const char *host, const char *port,
                        unsigned timeout_s);
/* Another port of the same host, with no connection open. */
void calibrate_loop_set_port(struct calibrate_loop *loop, uint16_t port);
void calibrate_loop_fini(struct calibrate_loop *loop);

/* Drops every connection; the next run makes new ones. */
void calibrate_loop_disconnect(struct calibrate_loop *loop);

/*
 * Runs `depth` connections (1..CALIBRATE_LINKS_MAX) for duration_ns, UINT64_MAX: until `next` says
 * that there is nothing more. 0, or -1 with `error` set.
 */
int calibrate_loop_run(struct calibrate_loop *loop, const struct calibrate_work *work,
                       unsigned depth, uint64_t duration_ns, struct calibrate_run *run);

/* Sets `error`, unless it is set already. Returns -1. */
int calibrate_loop_fail(struct calibrate_loop *loop, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
