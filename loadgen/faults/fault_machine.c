/* SPDX-License-Identifier: Apache-2.0 */
/* What is done beside the processes: to memory, to a network. */
#include <string.h>

#include "loadgen/faults/fault_kinds.h"
#include "loadgen/faults/network.h"

/* ---------------------------------------------------------------- memory */

static int memory_prepare(struct fault *fault)
{
    fault->streaming = streaming_create(&fault->spec);
    return fault->streaming ? 0 : -1;
}

static enum fault_begun memory_begin(struct fault *fault)
{
    fault->counted_before = streaming_bytes(fault->streaming);
    streaming_begin(fault->streaming);
    return FAULT_BEGUN;
}

static bool memory_end(struct fault *fault, uint64_t *again_ns)
{
    (void)again_ns;
    streaming_end(fault->streaming);
    fault_tell_count(fault, "end", "bytes",
                     streaming_bytes(fault->streaming) - fault->counted_before);
    return true;
}

static void memory_finish(struct fault *fault)
{
    streaming_destroy(fault->streaming);
    fault->streaming = NULL;
}

const struct fault_kind_actions fault_memory_actions = {
    .prepare = memory_prepare, .begin = memory_begin, .end = memory_end, .finish = memory_finish};

/* ---------------------------------------------------------------- network */

static int network_prepare(struct fault *fault)
{
    return network_check(&fault->spec, fault->context->force) == 0 ? 0 : -1;
}

static enum fault_begun network_begin(struct fault *fault)
{
    struct remedy remedy = {.kind = REMEDY_NETWORK};

    strncpy(remedy.first, fault->spec.network, sizeof(remedy.first) - 1);
    strncpy(remedy.second, fault->spec.device, sizeof(remedy.second) - 1);
    if (fault_owe(fault, &remedy) != 0 || network_add(&fault->spec) != 0)
        return FAULT_FAILED;
    return FAULT_BEGUN;
}

static bool network_end(struct fault *fault, uint64_t *again_ns)
{
    (void)again_ns;
    fault_pay(fault);
    fault_tell(fault, "end", NULL);
    return true;
}

const struct fault_kind_actions fault_network_actions = {
    .prepare = network_prepare, .begin = network_begin, .end = network_end};
