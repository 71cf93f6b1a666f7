/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: one line per exchange, with its phases' times.
 *
 * Each worker fills a buffer of its own and writes it when it is full or a second old, so that a
 * line costs formatting alone. Reopening after a rotation, full disks and escaping are as in log.h.
 */
#ifndef SPILLWAY_CONTROL_ACCESS_LOG_H
#define SPILLWAY_CONTROL_ACCESS_LOG_H

#include "proxy/config/config.h"

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct access_buffer;

/* What one line says. Strings need not outlive the call; NULL prints as "-". */
struct access_record {
    const struct sockaddr *client;
    const char *listener;
    const char *pool;
    const char *flow;
    const char *server;
    const char *protocol;  /* "HTTP/1.1", "NFSv3", "NFSv4.1", "MOUNTv3" */
    const char *operation; /* method, or procedure name */
    size_t operation_length;
    const char *target; /* HTTP: as received; NFS: NULL */
    size_t target_length;
    uint32_t status; /* HTTP status, NFS status, or 0 when there was none */
    uint64_t bytes_in, bytes_out;
    uint64_t wait_ns;    /* in the queue */
    uint64_t service_ns; /* at the server */
    uint64_t total_ns;   /* from the first byte of the request to the last of the reply */
    const char *end;     /* why it ended: "done", "refused", "queue-timeout", "client-gone",
                            "server-failed", ... */
};

/*
 * The process-wide target, as log_open() for the log. Off is not an error: access_log_enabled() is
 * then false. 0 or -errno (the old target stays).
 */
int access_log_open(const struct config_log *config);
int access_log_reopen(void);
void access_log_close(void);
bool access_log_enabled(void);

/* Lines that could not be written so far. */
uint64_t access_log_dropped(void);

/* One per worker. */
struct access_buffer *access_buffer_create(void);
void access_buffer_destroy(struct access_buffer *buffer); /* flushes */

/* Appends a line; does nothing while the access log is off. */
void access_log_write(struct access_buffer *buffer, const struct access_record *record,
                      uint64_t now_ns);

/* Writes what is older than a second, or everything; called by the worker about once a second. */
void access_log_flush(struct access_buffer *buffer, uint64_t now_ns, bool everything);

#endif
