/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a fault of the command line and as a remedy of a journal: it is refused with words,
 * or it keeps what the headers promise, and a remedy is written as it was read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/faults/fault_spec.h"
#include "loadgen/faults/remedy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void try_spec(const char *text)
{
    struct fault_spec spec;
    char error[FAULT_ERROR_BYTES] = "";

    if (fault_spec_parse(text, &spec, error) != 0) {
        require(error[0] != '\0');
        require(strlen(error) < FAULT_ERROR_BYTES);
        return;
    }
    require(spec.kind < FAULT_KINDS);
    require(spec.every_ns == 0 ? spec.times == 1 : spec.every_ns > spec.for_ns);
    require(spec.jitter_ns <= spec.delay_ns);
    require(spec.loss >= 0 && spec.loss <= 1);
    require(spec.quota > 0);
    require(!spec.restart || !strpbrk(spec.restart, "\n\t"));
    fault_spec_fini(&spec);
}

static void try_remedy(const char *text)
{
    static struct remedy first;
    static struct remedy second;
    static char written[REMEDY_TEXT_BYTES];
    static char again[REMEDY_TEXT_BYTES];

    if (remedy_parse(text, &first) != 0 || remedy_format(&first, written) != 0)
        return;
    require(remedy_parse(written, &second) == 0);
    require(remedy_format(&second, again) == 0);
    require(strcmp(written, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    try_spec(text);
    try_remedy(text);
    free(text);
    return 0;
}
