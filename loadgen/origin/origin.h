/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin: an embedded service to put behind a proxy, with a capacity that is known.
 *
 * One service (slots, FIFO) per protocol, so that load on one does not touch the other. HTTP
 * answers any path; NFSv3 and MOUNT are served on one port from files in memory. What costs no
 * service time: MOUNT, NULL, injected errors and the HTTP paths under /_origin/, through which
 * settings are changed and counters are read.
 *
 *   GET /_origin/stats                            settings and counters of both protocols, JSON
 *   PUT /_origin/SETTING?value=TEXT[&protocol=P]  see origin_settings.h; both protocols unless one
 *                                                 is named
 *   PUT /_origin/slots?n=4, PUT /_origin/service?mean=20ms[&distribution=fixed]   shorter forms
 *   GET /factor?n=N                               the prime factors of N, found in a slot
 *
 * Work runs in threads (workers.h); all else, and everything here, in the loop's thread.
 */
#ifndef LOADGEN_ORIGIN_ORIGIN_H
#define LOADGEN_ORIGIN_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/net/loop.h"
#include "loadgen/net/stream.h"
#include "loadgen/base/units.h"
#include "loadgen/origin/nfs/origin_files.h"
#include "loadgen/origin/origin_errors.h"
#include "loadgen/origin/origin_settings.h"
#include "loadgen/origin/service/service.h"
#include "loadgen/origin/service/timeline.h"
#include "loadgen/origin/service/workers.h"

/* "http", "nfs". */
const char *origin_protocol_name(enum origin_protocol protocol);

struct origin_options {
    bool serve[ORIGIN_PROTOCOLS];
    struct units_address address[ORIGIN_PROTOCOLS];
    struct origin_settings settings; /* of each protocol at first */
    uint64_t seed;
    uint64_t reply_bytes; /* HTTP body when the request names no size */
    const char *export_path;
    const char *const *files; /* "name=size" each */
    size_t files_count;
    uint64_t memory_bytes; /* for files and directories that clients make */
};

struct origin_counters {
    uint64_t connections;
    uint64_t requests;
    uint64_t bytes_in;  /* bodies and WRITE data */
    uint64_t bytes_out; /* bodies and READ data */
    uint64_t errors;    /* malformed requests */
    uint64_t injected;  /* requests that failed because they were to */
};

/* The service of one protocol with what drives it. */
struct origin_port {
    struct origin *origin;
    enum origin_protocol protocol;
    struct stream_listener listener;
    struct origin_settings settings;
    struct service service;
    struct timeline timeline;
    struct workers workers;
    struct rng error_rng;
    struct loop_timer timer;
    struct origin_counters counters;
};

struct origin {
    struct loop *loop;
    struct origin_options options;
    struct origin_port ports[ORIGIN_PROTOCOLS];
    struct origin_files files;
    /* Wall clock minus monotonic clock, for the times of files. */
    uint64_t wall_offset_ns;
    /* Connections and jobs: all that were made, and those of them that wait for reuse. */
    struct origin_http_connection *http_made, *http_free;
    struct origin_nfs_connection *nfs_made, *nfs_free;
    struct origin_nfs_job *nfs_jobs_made, *nfs_jobs_free;
    /* HTTP reply head for reply_bytes, made once. */
    char http_head[256];
    size_t http_head_bytes;
};

/*
 * Binds and listens. 0 or negative errno, with *what set to the option that failed. `options` is
 * copied, what it points to must stay. origin_fini() is due after an error too, and before
 * loop_fini(); it closes all connections.
 */
int origin_init(struct origin *origin, struct loop *loop, const struct origin_options *options,
                const char **what);
void origin_fini(struct origin *origin);

/* Submits, and sees to the timer. As service_submit(). */
bool origin_submit(struct origin_port *port, struct service_job *job);

/* As service_is_immediate(), at this moment. */
bool origin_is_immediate(struct origin_port *port);

/* What befalls the request at hand, which is counted; NULL: nothing. */
const struct origin_error *origin_injects(struct origin_port *port);

/* Drops a connection so that its peer sees a reset. */
void origin_reset(struct stream *stream);

/* Changes a setting while running; a schedule begins now. 0, or -EINVAL and nothing is changed. */
int origin_change(struct origin_port *port, enum origin_setting setting, const char *text);

/* The protocols' ways in: a new connection. In origin_http.c and origin_nfs.c. */
void origin_http_accept(struct origin_port *port, int fd);
void origin_nfs_accept(struct origin_port *port, int fd);
void origin_http_fini(struct origin *origin);
void origin_nfs_fini(struct origin *origin);

/*
 * Answers a request below /_origin/ (path without that prefix): writes a JSON body into `body` and
 * returns the HTTP status. In origin_admin.c.
 */
unsigned origin_admin(struct origin *origin, bool change_wanted, const char *path,
                      const char *query, char *body, size_t body_size);

#endif
