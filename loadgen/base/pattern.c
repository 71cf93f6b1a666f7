/* SPDX-License-Identifier: Apache-2.0 */
/* The byte pattern, made on first use. */
#include "loadgen/base/pattern.h"

const uint8_t *pattern_bytes(void)
{
    static uint8_t pattern[PATTERN_BYTES];

    if (pattern[0] == 0) {
        for (uint32_t i = 0; i < PATTERN_BYTES; i++)
            pattern[i] = (uint8_t)('a' + (i * 2654435761U >> 16) % 26);
    }
    return pattern;
}
