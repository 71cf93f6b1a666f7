/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that bodies and files are made of: printable, and without a short period. */
#ifndef LOADGEN_BASE_PATTERN_H
#define LOADGEN_BASE_PATTERN_H

#include <stdint.h>

/* Longer bodies and files repeat the pattern from its start. */
#define PATTERN_BYTES (256U * 1024)

/* PATTERN_BYTES of static memory, the same in every run. */
const uint8_t *pattern_bytes(void);

#endif
