/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that succeeds or ends the program. */
#include "loadgen/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "out of memory (%zu bytes wanted)\n", size);
    exit(3);
}

void *memory_zeroed(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);

    if (!p)
        out_of_memory(count * size);
    return p;
}

void *memory_grow(void *old, size_t size)
{
    void *p = realloc(old, size);

    if (!p)
        out_of_memory(size);
    return p;
}

char *memory_string(const char *text)
{
    char *p = strdup(text);

    if (!p)
        out_of_memory(strlen(text) + 1);
    return p;
}
