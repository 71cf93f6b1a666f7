/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane: HTTP on a UNIX socket for spillctl (everything), and on a TCP address (reading
 * only: metrics and the views), served by a thread of its own.
 */
#ifndef SPILLWAY_CONTROL_ADMIN_SERVER_H
#define SPILLWAY_CONTROL_ADMIN_SERVER_H

#include "proxy/core/worker.h"

struct admin_server;

/*
 * Opens the sockets that are configured; *server is NULL when none is. A stale UNIX socket is
 * replaced, a live one is not. 0 or -errno (said in the log).
 */
int admin_server_open(struct runtime *runtime, const struct config_admin *config,
                      struct admin_server **server);

/* Starts the thread. 0 or -errno. */
int admin_server_start(struct admin_server *server);

/* Ends the thread, closes and removes the sockets. NULL is accepted. */
void admin_server_stop(struct admin_server *server);

#endif
