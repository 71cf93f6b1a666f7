/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one out-of-memory policy of the load tools: a message on stderr and exit status 3. A
 * measurement that lost part of its requests to a failed allocation would be worse than none.
 */
#ifndef LOADGEN_BASE_MEMORY_H
#define LOADGEN_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed memory; never NULL. Freed with free(). */
void *memory_zeroed(size_t count, size_t size);

/* realloc() that never returns NULL; size must not be 0. */
void *memory_grow(void *old, size_t size);

/* A copy of a string; never NULL. */
char *memory_string(const char *text);

#endif
