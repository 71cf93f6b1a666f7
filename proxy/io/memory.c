/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that never returns NULL: see memory.h for the policy. */
#include "proxy/io/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void out_of_memory(size_t size, const char *what)
{
    char text[192];
    /* No stdio streams here: they may want memory. */
    int length =
        snprintf(text, sizeof(text),
                 "spillway: out of memory: %zu bytes for %s; lower the connection and queue limits "
                 "or give the process more memory\n",
                 size, what);

    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(MEMORY_EXIT_STATUS);
    _exit(MEMORY_EXIT_STATUS);
}

static void *checked(void *block, size_t size, const char *what)
{
    if (block == NULL && size != 0)
        out_of_memory(size, what);
    return block;
}

void memory_fail(const char *what)
{
    out_of_memory(0, what);
}

void *memory_alloc(size_t size, const char *what)
{
    return checked(malloc(size), size, what);
}

void *memory_zalloc(size_t size, const char *what)
{
    return checked(calloc(1, size), size, what);
}

void *memory_resize(void *block, size_t size, const char *what)
{
    return checked(realloc(block, size), size, what);
}

char *memory_copy_string(const char *string, const char *what)
{
    return checked(strdup(string), strlen(string) + 1, what);
}
