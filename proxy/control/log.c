/* SPDX-License-Identifier: Apache-2.0 */
/* The process log: see log.h. */
#include "proxy/control/log.h"

#include "proxy/control/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES     4096
#define LIMIT_EVERY_NS UINT64_C(1000000000)

static struct output target = OUTPUT_INITIALISER(STDERR_FILENO);
static atomic_int level_limit = CONFIG_LOG_NOTICE;
static atomic_int line_format = CONFIG_LOG_TEXT;
static atomic_uint_fast64_t dropped_said;

int log_open(const struct config_log *config)
{
    int error = output_open(&target, &config->target);

    if (error < 0)
        return error;
    atomic_store(&level_limit, (int)config->level);
    atomic_store(&line_format, (int)config->format);
    return 0;
}

int log_reopen(void)
{
    return output_reopen(&target);
}

void log_close(void)
{
    output_close(&target, STDERR_FILENO);
}

bool log_would_write(enum config_log_level level)
{
    return (int)level <= atomic_load_explicit(&level_limit, memory_order_relaxed);
}

uint64_t log_dropped(void)
{
    return atomic_load(&target.dropped);
}

static const char *level_name(enum config_log_level level)
{
    static const char *const names[] = {"error", "warning", "notice", "info", "debug"};

    return names[level];
}

static bool write_line(enum config_log_level level, const char *message, size_t length)
{
    char text[LINE_BYTES * 2];
    char when[40];
    struct line line = {text, 0, sizeof(text) - 3};
    bool json = atomic_load(&line_format) == CONFIG_LOG_JSON;

    output_timestamp(when, sizeof(when));
    if (json)
        line_add(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"", when,
                 level_name(level));
    else
        line_add(&line, "%s %s: ", when, level_name(level));
    /* Quotes and backslashes of our own messages stay readable in text; what could break the line
     * does not. */
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)message[i];
        if (json || byte < 0x20 || byte > 0x7e)
            line_add_escaped(&line, message + i, 1, json);
        else
            line_add_bytes(&line, message + i, 1);
    }
    line.size = sizeof(text);
    if (json)
        line_add_bytes(&line, "\"}", 2);
    line_add_bytes(&line, "\n", 1);
    return output_write(&target, text, line.length);
}

static void say_dropped(void)
{
    uint64_t dropped = atomic_load(&target.dropped);
    uint64_t said = atomic_load(&dropped_said);
    char text[96];

    if (dropped == said || !atomic_compare_exchange_strong(&dropped_said, &said, dropped))
        return;
    int length = snprintf(text, sizeof(text), "%llu log lines could not be written",
                          (unsigned long long)(dropped - said));
    write_line(CONFIG_LOG_WARNING, text, (size_t)length);
}

static void write_formatted(enum config_log_level level, const char *format, va_list arguments,
                            uint64_t left_out)
{
    char message[LINE_BYTES];
    int length = vsnprintf(message, sizeof(message), format, arguments);

    if (length < 0)
        return;
    size_t used = (size_t)length < sizeof(message) ? (size_t)length : sizeof(message) - 1;
    if (left_out > 0 && used < sizeof(message)) {
        int more = snprintf(message + used, sizeof(message) - used, " (and %llu like it left out)",
                            (unsigned long long)left_out);
        used += more > 0 && (size_t)more < sizeof(message) - used ? (size_t)more : 0;
    }
    if (write_line(level, message, used))
        say_dropped();
}

void log_write(enum config_log_level level, const char *format, ...)
{
    va_list arguments;

    if (!log_would_write(level))
        return;
    va_start(arguments, format);
    write_formatted(level, format, arguments, 0);
    va_end(arguments);
}

void log_limited(struct log_limit *limit, uint64_t now_ns, enum config_log_level level,
                 const char *format, ...)
{
    uint_fast64_t next_ns = atomic_load(&limit->next_ns);
    va_list arguments;

    if (!log_would_write(level))
        return;
    if (now_ns < next_ns ||
        !atomic_compare_exchange_strong(&limit->next_ns, &next_ns, now_ns + LIMIT_EVERY_NS)) {
        atomic_fetch_add(&limit->left_out, 1);
        return;
    }
    va_start(arguments, format);
    write_formatted(level, format, arguments, atomic_exchange(&limit->left_out, 0));
    va_end(arguments);
}
