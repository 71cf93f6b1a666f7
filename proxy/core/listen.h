/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets. */
#ifndef SPILLWAY_CORE_LISTEN_H
#define SPILLWAY_CORE_LISTEN_H

#include "proxy/config/config.h"

/*
 * Opens `count` listening sockets on one address into fds: with SO_REUSEPORT, so that each worker
 * accepts for itself (a UNIX socket is opened once and duplicated; a stale socket file is replaced,
 * a live one is not). Refuses an address that another process listens on. Port 0 is one port for
 * all of them. 0 or -errno.
 */
int listen_open(const struct config_endpoint *endpoint, bool v6only, int *fds, unsigned count);

/* The address as text: "127.0.0.1:80", "[::1]:80", "unix:/path". */
void listen_format(int fd, char *text, size_t size);

#endif
