/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of conf/ that are built into the programs, so that profiles and the traces they replay work
 * wherever a program is copied to. The files themselves are the source; the build takes them as
 * they are.
 */
#ifndef LOADGEN_EMBEDDED_EMBEDDED_H
#define LOADGEN_EMBEDDED_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>

struct embedded_file {
    const char *name; /* without folder and ending */
    const char *text; /* ends with a NUL that `length` leaves out */
    size_t length;
};

/* By name; false when there is none. */
bool embedded_profile(const char *name, struct embedded_file *out);
bool embedded_trace(const char *name, struct embedded_file *out);

/* The names, from 0 on in the order in which they are listed; NULL past the last. */
const char *embedded_profile_name(size_t index);
const char *embedded_trace_name(size_t index);

#endif
