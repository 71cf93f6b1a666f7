/* SPDX-License-Identifier: Apache-2.0 */
/* The process and its host: limits, identity, pid file. Failures are said in the log. */
#ifndef SPILLWAY_CORE_PROCESS_H
#define SPILLWAY_CORE_PROCESS_H

#include "proxy/config/config.h"

/* Raises RLIMIT_NOFILE to `wanted`, or to the hard limit when 0. What can't be had is said. */
void process_raise_open_files(uint64_t wanted);

/* Client connections that leave each a descriptor for its server connection, and some for the rest.
 */
unsigned process_session_limit(unsigned workers);

/*
 * Writes the process id; path NULL: nothing. A file that names a living process with another id is
 * not overwritten. 0 or -errno.
 */
int process_write_pid_file(const char *path);
void process_remove_pid_file(void);

/* Becomes the configured user and group, for good. 0 or -errno. */
int process_drop_privileges(const struct config *config);

#endif
