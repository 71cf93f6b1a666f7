/* SPDX-License-Identifier: Apache-2.0 */
/* One request over the control socket: see client.h. */
#include "proxy/control/ctl/client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES       ((size_t)16 << 10)
#define ANSWER_BYTES_MAX ((size_t)256 << 20)

/* A connected socket, or -errno. */
static int connect_to(const char *path, unsigned timeout_s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = timeout_s};

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        int error = errno == EAGAIN ? -ETIMEDOUT : -errno;
        close(fd);
        return error;
    }
    return fd;
}

static int send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        bytes += count;
        length -= (size_t)count;
    }
    return 0;
}

static int send_request(int fd, const char *path, const char *body)
{
    char *text = NULL;
    int length;

    if (body == NULL)
        length = asprintf(&text, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
    else
        length = asprintf(&text,
                          "POST %s HTTP/1.0\r\nHost: localhost\r\n"
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          path, strlen(body), body);
    if (length < 0)
        return -ENOMEM;
    int error = send_all(fd, text, (size_t)length);
    free(text);
    return error;
}

/* Everything until the peer closes, with a zero byte after it. The caller frees *text. */
static int read_all(int fd, char **text, size_t *length)
{
    char *bytes = NULL;
    size_t used = 0;
    size_t room = 0;
    int error = 0;

    while (error == 0) {
        if (room - used <= READ_BYTES) {
            room = room == 0 ? 2 * READ_BYTES : room * 2;
            char *larger = room <= ANSWER_BYTES_MAX ? realloc(bytes, room) : NULL;
            if (larger == NULL) {
                error = -ENOMEM;
                break;
            }
            bytes = larger;
        }
        ssize_t count = read(fd, bytes + used, READ_BYTES);
        if (count == 0) {
            bytes[used] = '\0';
            *text = bytes;
            *length = used;
            return 0;
        }
        if (count > 0)
            used += (size_t)count;
        else if (errno != EINTR)
            error = errno == EAGAIN ? -ETIMEDOUT : -errno;
    }
    free(bytes);
    return error;
}

/* The value of Content-Length in the head, or -1. */
static long long content_length(const char *head, const char *end)
{
    static const char name[] = "\r\nContent-Length:";

    for (const char *at = head; at < end; at++) {
        if (strncasecmp(at, name, sizeof(name) - 1) == 0)
            return strtoll(at + sizeof(name) - 1, NULL, 10);
    }
    return -1;
}

/* Takes the body out of the message. */
static int parse(char *message, size_t length, struct client_answer *answer)
{
    char *end = strstr(message, "\r\n\r\n");
    int status;

    if (end == NULL || sscanf(message, "HTTP/1.%*1d %3d", &status) != 1)
        return -EPROTO;
    size_t head = (size_t)(end - message) + 4;
    long long said = content_length(message, end);
    if (said >= 0 && (unsigned long long)said != length - head)
        return -EPROTO;
    memmove(message, message + head, length - head + 1);
    *answer = (struct client_answer){status, message, length - head};
    return 0;
}

int client_ask(const char *socket_path, const char *path, const char *body, unsigned timeout_s,
               struct client_answer *answer)
{
    char *message = NULL;
    size_t length;
    int fd = connect_to(socket_path, timeout_s);

    if (fd < 0)
        return fd;
    int error = send_request(fd, path, body);
    if (error == 0)
        error = read_all(fd, &message, &length);
    if (error == 0)
        error = parse(message, length, answer);
    if (error < 0)
        free(message);
    close(fd);
    return error;
}

char *client_encode(const char *name)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    char *text = malloc(strlen(name) * 3 + 1);
    char *out = text;

    if (text == NULL)
        return NULL;
    for (; *name != '\0'; name++) {
        if (strchr(plain, *name) != NULL)
            *out++ = *name;
        else
            out += sprintf(out, "%%%02X", (unsigned char)*name);
    }
    *out = '\0';
    return text;
}
