/* SPDX-License-Identifier: Apache-2.0 */
/* Log targets and line building: see output.h. */
#include "proxy/control/output.h"

#include "protocols/http/http1_uri.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int open_file(const char *path)
{
    /* Non-blocking, so that a pipe without a reader can't stop the proxy. */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);

    return fd < 0 ? -errno : fd;
}

static void replace(struct output *output, int fd, char *path)
{
    int old = output->fd;

    output->fd = fd;
    output->torn = false;
    atomic_store(&output->open, fd >= 0);
    if (output->path != NULL)
        close(old);
    if (path != output->path)
        free(output->path);
    output->path = path;
}

int output_open(struct output *output, const struct config_output *config)
{
    char *path = NULL;
    int fd = -1;

    if (config->kind == CONFIG_OUTPUT_FILE) {
        fd = open_file(config->text);
        if (fd < 0)
            return fd;
        path = strdup(config->text);
        if (path == NULL) {
            close(fd);
            return -ENOMEM;
        }
    } else if (config->kind == CONFIG_OUTPUT_STDERR) {
        fd = STDERR_FILENO;
    }
    pthread_mutex_lock(&output->lock);
    replace(output, fd, path);
    pthread_mutex_unlock(&output->lock);
    return 0;
}

int output_reopen(struct output *output)
{
    int error = 0;

    pthread_mutex_lock(&output->lock);
    if (output->path != NULL) {
        int fd = open_file(output->path);
        if (fd < 0)
            error = fd;
        else
            replace(output, fd, output->path);
    }
    pthread_mutex_unlock(&output->lock);
    return error;
}

void output_close(struct output *output, int descriptor)
{
    pthread_mutex_lock(&output->lock);
    replace(output, descriptor, NULL);
    pthread_mutex_unlock(&output->lock);
}

/* Returns how many bytes went out. */
static size_t write_all(int fd, const char *bytes, size_t length)
{
    size_t written = 0;

    while (written < length) {
        ssize_t count = write(fd, bytes + written, length - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        written += (size_t)count;
    }
    return written;
}

static uint64_t count_lines(const char *bytes, size_t length)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    return lines;
}

bool output_write(struct output *output, const char *bytes, size_t length)
{
    size_t written = 0;

    pthread_mutex_lock(&output->lock);
    /* What was cut by a full disk must not swallow the line after it. */
    if (output->torn && output->fd >= 0 && write_all(output->fd, "\n", 1) == 1)
        output->torn = false;
    if (output->fd >= 0 && !output->torn) {
        written = write_all(output->fd, bytes, length);
        output->torn = written > 0 && bytes[written - 1] != '\n';
    }
    pthread_mutex_unlock(&output->lock);
    if (written == length)
        return true;
    atomic_fetch_add(&output->dropped, count_lines(bytes + written, length - written));
    return false;
}

size_t output_timestamp(char *text, size_t size)
{
    struct timespec now;
    struct tm parts;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &parts);
    int rest = snprintf(text + length, size - length, ".%03uZ", (unsigned)(now.tv_nsec / 1000000));
    return length + (rest > 0 ? (size_t)rest : 0);
}

void line_add(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line->text + line->length, line->size - line->length, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    size_t room = line->size - line->length;
    if (room > 0)
        line->length += (size_t)length < room ? (size_t)length : room - 1;
}

void line_add_bytes(struct line *line, const char *bytes, size_t length)
{
    size_t room = line->size - line->length;

    if (length > room)
        length = room;
    memcpy(line->text + line->length, bytes, length);
    line->length += length;
}

void line_add_escaped(struct line *line, const char *bytes, size_t length, bool json)
{
    struct http1_slice text = {bytes, length};

    line->length += http1_escape(json ? HTTP1_ESCAPE_JSON : HTTP1_ESCAPE_TEXT, text,
                                 line->text + line->length, line->size - line->length);
}
