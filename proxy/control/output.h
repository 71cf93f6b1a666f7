/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where log lines go: stderr or a file opened for appending. Shared by the process log and the
 * access log.
 *
 * Writing never fails to the caller: a line that can't be written is dropped and counted. A file is
 * replaced as a whole under `lock`, so that a reopening never loses a line of another thread.
 */
#ifndef SPILLWAY_CONTROL_OUTPUT_H
#define SPILLWAY_CONTROL_OUTPUT_H

#include "proxy/config/config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
    pthread_mutex_t lock;
    int fd;                       /* -1: off */
    bool torn;                    /* the last write ended inside a line */
    char *path;                   /* NULL: not a file */
    atomic_uint_fast64_t dropped; /* lines that could not be written */
    atomic_bool open;             /* fd >= 0, for a look without the lock */
};

/* Static initialiser. `descriptor` is -1 for off, 2 for stderr. */
#define OUTPUT_INITIALISER(descriptor)                                                             \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .fd = (descriptor), .open = (descriptor) >= 0           \
    }

/* 0 or -errno, and then everything is as before. */
int output_open(struct output *output, const struct config_output *config);
int output_reopen(struct output *output);
/* Back to `descriptor`. */
void output_close(struct output *output, int descriptor);

/* Writes whole lines at once. False when some of them were dropped. */
bool output_write(struct output *output, const char *bytes, size_t length);

/* "2026-11-30T12:00:00.123Z" of the wall clock; returns its length. */
size_t output_timestamp(char *text, size_t size);

/* Appends to a bounded line; what does not fit is cut. */
struct line {
    char *text;
    size_t length;
    size_t size;
};
void line_add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
void line_add_bytes(struct line *line, const char *bytes, size_t length);
/* As the inside of a double-quoted string: quotes, backslashes, controls and non-ASCII escaped. */
void line_add_escaped(struct line *line, const char *bytes, size_t length, bool json);

#endif
