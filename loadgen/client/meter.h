/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of a flow's requests. Latency is counted from the time a request was meant to be
 * sent, so a generator or a server that falls behind shows in it (no coordinated omission).
 */
#ifndef LOADGEN_CLIENT_METER_H
#define LOADGEN_CLIENT_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/base/histogram.h"

enum outcome {
    OUTCOME_OK,
    OUTCOME_REFUSED,    /* HTTP 503 and 429, NFS3ERR_JUKEBOX: come back later */
    OUTCOME_HTTP_4XX,   /* but 429 */
    OUTCOME_HTTP_5XX,   /* but 503 */
    OUTCOME_NFS_ERROR,  /* any other NFS status */
    OUTCOME_RPC_ERROR,  /* denied, or not accepted */
    OUTCOME_MALFORMED,  /* the reply is none */
    OUTCOME_CONNECT,    /* no connection could be made */
    OUTCOME_CONNECTION, /* it ended before the reply did */
    OUTCOME_TIMEOUT,
    OUTCOME_CORRUPT, /* verification: the data is not what was written */
    OUTCOME_COUNT,
};

/* As in the JSON summary: "ok", "refused", "http_4xx"... */
const char *outcome_name(enum outcome outcome);

struct meter {
    uint64_t outcomes[OUTCOME_COUNT];
    uint64_t bytes_in;        /* bodies, READ data */
    uint64_t bytes_out;       /* bodies, WRITE data */
    struct histogram latency; /* of OUTCOME_OK */
    struct histogram refusal; /* of OUTCOME_REFUSED */
};

void meter_reset(struct meter *meter);
/* As reset, of a meter in use, and much cheaper: what a run may do every second. */
void meter_clear(struct meter *meter);
void meter_add(struct meter *meter, enum outcome outcome, uint64_t latency_ns);

/* Everything that is neither OK nor refused. */
uint64_t meter_errors(const struct meter *meter);

#endif
