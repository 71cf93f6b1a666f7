/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, clock and option values of the bench's servers and clients. */
#include "bench/tools/bench_net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LISTEN_BACKLOG 4096

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_set_nodelay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int bench_listen(const char *text)
{
    struct units_address at = {0};
    char name[UNITS_ADDRESS_TEXT];
    int on = 1;
    int fd = -1;
    int status = units_parse_address(text, &at);

    if (status < 0)
        goto failed;
    fd = socket(at.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&at.address, at.length) < 0 || listen(fd, LISTEN_BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&at.address, &at.length) < 0) {
        status = -errno;
        goto failed;
    }
    printf("listening %s\n", units_format_address((struct sockaddr *)&at.address, name));
    fflush(stdout);
    return fd;

failed:
    fprintf(stderr, "cannot listen on %s: %s (expected ADDRESS:PORT, port 0 for a free one)\n",
            text, strerror(-status));
    if (fd >= 0)
        close(fd);
    return status;
}

int bench_connect(const struct units_address *target)
{
    int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    bench_set_nodelay(fd);
    if (connect(fd, (const struct sockaddr *)&target->address, target->length) < 0 &&
        errno != EINPROGRESS) {
        int status = -errno;
        close(fd);
        return status;
    }
    return fd;
}

static _Noreturn void refuse(const char *option, const char *text, const char *expected)
{
    fprintf(stderr, "--%s %s: expected %s\n", option, text, expected);
    exit(2);
}

uint64_t bench_option_count(const char *option, const char *text, uint64_t low, uint64_t high)
{
    char expected[80];
    uint64_t value;

    snprintf(expected, sizeof(expected), "a whole number from %llu to %llu",
             (unsigned long long)low, (unsigned long long)high);
    if (units_parse_count(text, low, high, &value) < 0)
        refuse(option, text, expected);
    return value;
}

uint64_t bench_option_duration_ns(const char *option, const char *text)
{
    uint64_t value_ns;

    if (units_parse_duration_ns(text, &value_ns) < 0)
        refuse(option, text, "a duration such as 500ms or 3s");
    return value_ns;
}

void bench_option_address(const char *option, const char *text, struct units_address *address)
{
    if (units_parse_address(text, address) < 0)
        refuse(option, text, "ADDRESS:PORT");
}
