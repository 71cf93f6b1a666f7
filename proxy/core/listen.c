/* SPDX-License-Identifier: Apache-2.0 */
/* Opening listening sockets: see listen.h. */
#include "proxy/core/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static int open_bound(const struct sockaddr *address, socklen_t length, bool v6only, bool shared)
{
    int one = 1;
    int only = v6only;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
        goto fail;
    if (address->sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)) < 0)
        goto fail;
    if (bind(fd, address, length) < 0)
        goto fail;
    return fd;
fail:;
    int error = -errno;
    close(fd);
    return error;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                          : ((const struct sockaddr_in *)address)->sin_port;
}

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

static int open_internet(const struct config_endpoint *endpoint, bool v6only, int *fds,
                         unsigned count)
{
    struct sockaddr_storage address = endpoint->addr;
    socklen_t length = endpoint->len;

    if (port_of(&address) != 0) {
        /* SO_REUSEPORT would let a second proxy share the port in silence: ask without it first. */
        int probe = open_bound((struct sockaddr *)&address, length, v6only, false);
        if (probe < 0)
            return probe;
        close(probe);
    }
    for (unsigned i = 0; i < count; i++) {
        int error = 0;
        fds[i] = open_bound((struct sockaddr *)&address, length, v6only, true);
        if (fds[i] < 0)
            error = fds[i];
        else if (listen(fds[i], BACKLOG) < 0 ||
                 getsockname(fds[i], (struct sockaddr *)&address, &length) < 0)
            error = -errno;
        if (error < 0) {
            close_all(fds, fds[i] < 0 ? i : i + 1);
            return error;
        }
    }
    return 0;
}

static int remove_stale_socket(const struct config_endpoint *endpoint)
{
    const struct sockaddr_un *address = (const struct sockaddr_un *)&endpoint->addr;
    struct stat status;

    if (stat(address->sun_path, &status) < 0)
        return 0;
    if (!S_ISSOCK(status.st_mode))
        return -EEXIST;
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return -errno;
    bool alive =
        connect(probe, (const struct sockaddr *)address, endpoint->len) == 0 || errno == EAGAIN;
    close(probe);
    if (alive)
        return -EADDRINUSE;
    return unlink(address->sun_path) < 0 ? -errno : 0;
}

static int open_unix(const struct config_endpoint *endpoint, int *fds, unsigned count)
{
    int error = remove_stale_socket(endpoint);

    if (error < 0)
        return error;
    fds[0] = open_bound((const struct sockaddr *)&endpoint->addr, endpoint->len, false, false);
    if (fds[0] < 0)
        return fds[0];
    if (listen(fds[0], BACKLOG) < 0) {
        error = -errno;
        close(fds[0]);
        return error;
    }
    for (unsigned i = 1; i < count; i++) {
        fds[i] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        if (fds[i] < 0) {
            error = -errno;
            close_all(fds, i);
            return error;
        }
    }
    return 0;
}

int listen_open(const struct config_endpoint *endpoint, bool v6only, int *fds, unsigned count)
{
    if (endpoint->addr.ss_family == AF_UNIX)
        return open_unix(endpoint, fds, count);
    return open_internet(endpoint, v6only, fds, count);
}

void listen_format(int fd, char *text, size_t size)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    char host[INET6_ADDRSTRLEN] = "?";

    memset(&address, 0, sizeof(address));
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        address.ss_family = AF_UNSPEC;
    if (address.ss_family == AF_INET) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)&address)->sin_addr, host, sizeof(host));
        snprintf(text, size, "%s:%u", host, ntohs(port_of(&address)));
    } else if (address.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&address)->sin6_addr, host, sizeof(host));
        snprintf(text, size, "[%s]:%u", host, ntohs(port_of(&address)));
    } else if (address.ss_family == AF_UNIX) {
        snprintf(text, size, "unix:%s", ((struct sockaddr_un *)&address)->sun_path);
    } else {
        snprintf(text, size, "?");
    }
}
