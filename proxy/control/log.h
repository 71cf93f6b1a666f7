/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process log: levelled lines to stderr or a file, as text or one JSON object a line.
 *
 * Any thread may write. A line is one write(2); a log that can't be written (disk full, reader
 * gone) never blocks nor ends the proxy: lines are dropped, counted, and the count is said when
 * writing works again. Whatever a peer sent is escaped, so that a line stays a line.
 */
#ifndef SPILLWAY_CONTROL_LOG_H
#define SPILLWAY_CONTROL_LOG_H

#include "proxy/config/config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Opens the target; the one before (stderr, text, notice, until the first call) stays on failure.
 * 0 or -errno. Call it again to change settings.
 */
int log_open(const struct config_log *config);

/* Opens the file again under its name, after a rotation. 0 or -errno (the old one stays). */
int log_reopen(void);
void log_close(void);

bool log_would_write(enum config_log_level level);

/* Lines that could not be written so far. */
uint64_t log_dropped(void);

void log_write(enum config_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(CONFIG_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(CONFIG_LOG_WARNING, __VA_ARGS__)
#define log_notice(...)  log_write(CONFIG_LOG_NOTICE, __VA_ARGS__)
#define log_info(...)    log_write(CONFIG_LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_would_write(CONFIG_LOG_DEBUG))                                                     \
            log_write(CONFIG_LOG_DEBUG, __VA_ARGS__);                                              \
    } while (0)

/*
 * For what a peer can cause at will: at most one line a second per limit; the next one says how
 * many were left out. Zero-initialised, static, may be shared by threads.
 */
struct log_limit {
    atomic_uint_fast64_t next_ns;
    atomic_uint_fast64_t left_out;
};
void log_limited(struct log_limit *limit, uint64_t now_ns, enum config_log_level level,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
