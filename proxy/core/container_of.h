/* SPDX-License-Identifier: Apache-2.0 */
/* From an embedded member back to the object around it. */
#ifndef SPILLWAY_CORE_CONTAINER_OF_H
#define SPILLWAY_CORE_CONTAINER_OF_H

#include <stddef.h>

#define container_of(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
