/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one policy for running out of memory: the process says what it wanted and ends with
 * status 71.
 *
 * What the proxy holds is bounded by its configuration (connections, queues, buffers), so an
 * allocation that fails means that the machine is smaller than the configuration promised. Going on
 * with half of a request's state would break the promise that nothing is lost silently; a
 * supervisor's restart does not.
 */
#ifndef SPILLWAY_IO_MEMORY_H
#define SPILLWAY_IO_MEMORY_H

#include <stddef.h>

#define MEMORY_EXIT_STATUS 71 /* EX_OSERR of sysexits.h */

/* `what` names the thing for the message. None of these returns NULL. */
void *memory_alloc(size_t size, const char *what);
void *memory_zalloc(size_t size, const char *what);
void *memory_resize(void *block, size_t size, const char *what);
char *memory_copy_string(const char *string, const char *what);

/* For what another library could not allocate. */
_Noreturn void memory_fail(const char *what);

#endif
