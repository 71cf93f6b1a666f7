/* SPDX-License-Identifier: Apache-2.0 */
/* Counting outcomes and their latencies. */
#include "loadgen/client/meter.h"

#include <string.h>

static const char *const names[OUTCOME_COUNT] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_REFUSED] = "refused",
    [OUTCOME_HTTP_4XX] = "http_4xx",
    [OUTCOME_HTTP_5XX] = "http_5xx",
    [OUTCOME_NFS_ERROR] = "nfs_error",
    [OUTCOME_RPC_ERROR] = "rpc_error",
    [OUTCOME_MALFORMED] = "malformed_reply",
    [OUTCOME_CONNECT] = "connect",
    [OUTCOME_CONNECTION] = "connection_lost",
    [OUTCOME_TIMEOUT] = "timeout",
    [OUTCOME_CORRUPT] = "corrupt",
};

const char *outcome_name(enum outcome outcome)
{
    return names[outcome];
}

static void forget_counts(struct meter *meter)
{
    memset(meter->outcomes, 0, sizeof(meter->outcomes));
    meter->bytes_in = meter->bytes_out = 0;
}

void meter_reset(struct meter *meter)
{
    forget_counts(meter);
    histogram_reset(&meter->latency);
    histogram_reset(&meter->refusal);
}

void meter_clear(struct meter *meter)
{
    forget_counts(meter);
    histogram_clear(&meter->latency);
    histogram_clear(&meter->refusal);
}

void meter_add(struct meter *meter, enum outcome outcome, uint64_t latency_ns)
{
    meter->outcomes[outcome]++;
    if (outcome == OUTCOME_OK)
        histogram_add(&meter->latency, latency_ns);
    else if (outcome == OUTCOME_REFUSED)
        histogram_add(&meter->refusal, latency_ns);
}

uint64_t meter_errors(const struct meter *meter)
{
    uint64_t errors = 0;

    for (int i = OUTCOME_REFUSED + 1; i < OUTCOME_COUNT; i++)
        errors += meter->outcomes[i];
    return errors;
}
