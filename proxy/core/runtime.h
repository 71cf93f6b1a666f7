/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the process: from a checked configuration to running workers, reloads, the drain, the
 * end.
 *
 *      runtime_create -> runtime_listen -> runtime_start -> (admin_reload)* -> runtime_drain ->
 * runtime_destroy
 *
 * Called from the main thread, but for admin_reload() (admin_ops.h), which any thread but a
 * worker's may call.
 */
#ifndef SPILLWAY_CORE_RUNTIME_H
#define SPILLWAY_CORE_RUNTIME_H

#include "proxy/core/worker.h"

/* Takes over the configuration. NULL when an event loop can't be made (said in the log). */
struct runtime *runtime_create(struct config *config, const char *config_path);

/* Opens every listening socket. 0 or -errno (said in the log, with the address). Needs privileges
 * for low ports. */
int runtime_listen(struct runtime *runtime);

/* Starts the workers. 0 or -errno. */
int runtime_start(struct runtime *runtime);

/*
 * Closes the listening sockets and idle connections; what is in progress goes on, and no reload is
 * taken any more. Returns how long to wait for it, in ns.
 */
uint64_t runtime_drain(struct runtime *runtime);

/* Open client connections. */
unsigned runtime_sessions(struct runtime *runtime);

/* Stops the workers, closing what is left, and frees everything. */
void runtime_destroy(struct runtime *runtime);

#endif
