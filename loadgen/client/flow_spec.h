/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flow of load is, as the user wrote it: --flow
 * name=gold,proto=http,target=HOST:PORT,rate=120/s...
 *
 * Two programs read it: spillload sends the flow's requests, spillsim simulates them. Most keys are
 * common; one that means nothing to the program at hand is refused with a sentence that says so.
 *
 * A comma in a value is written \, (backslash, comma). flow_spec_help() prints every key from the
 * table the parser works with.
 */
#ifndef LOADGEN_CLIENT_FLOW_SPEC_H
#define LOADGEN_CLIENT_FLOW_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/base/distribution.h"
#include "loadgen/base/units.h"
#include "loadgen/client/arrival.h"

/* The program's use of a flow. */
enum flow_use {
    FLOW_SENT = 1,
    FLOW_SIMULATED = 2,
};

enum flow_protocol {
    FLOW_HTTP,
    FLOW_NFS,
};

enum flow_operation {
    FLOW_READ,
    FLOW_WRITE,
    FLOW_GETATTR,
    FLOW_LOOKUP,
    FLOW_ACCESS,
    FLOW_OPERATIONS,
};

#define FLOW_NAME_BYTES    32
#define FLOW_TEXT_BYTES    512
#define FLOW_HEADERS_BYTES 2048
#define FLOW_MAX_CLIENTS   65000U
#define FLOW_MAX_WEIGHT    1000000U

struct flow_spec {
    char name[FLOW_NAME_BYTES];
    enum flow_protocol protocol;
    bool has_target;
    struct units_address target;

    /* Open loop: requests come by `arrival`. Closed loop: `concurrency` clients, one request each.
     */
    bool open_loop;
    struct arrival_spec arrival;
    uint32_t concurrency;
    struct distribution think;
    uint64_t pause_ns; /* of a closed-loop client after a refusal or an error */
    uint64_t start_ns; /* from the run's start */
    uint64_t stop_ns;  /* 0: at the run's end */
    uint64_t timeout_ns;
    uint32_t connections; /* 0: HTTP as many as concurrency needs, NFS 4 or fewer */
    uint64_t bytes;       /* HTTP: of the request's body. NFS: of a READ or WRITE */

    char method[16];
    char path[FLOW_TEXT_BYTES];
    char headers[FLOW_HEADERS_BYTES]; /* "Name: value\r\n" each */
    bool has_host;                    /* one of the headers is Host */
    char authority[256];              /* target as written, for Host */

    enum flow_operation operation;
    bool sequential;
    char export_path[FLOW_TEXT_BYTES];
    char file[256];
    uint32_t uid;
    uint32_t gid;

    /* Simulated flows only: what the scheduler is told of them. */
    uint32_t weight;
    uint64_t cost;              /* of each request; its service takes as many times the mean */
    uint64_t deadline_ns;       /* edf: response-time target; 0: none */
    uint64_t reservation_per_s; /* mclock, in cost units; 0: none */
    uint64_t limit_per_s;       /* mclock, leaky-bucket, in cost units; 0: none */
    uint64_t burst;             /* of the limit */
};

/* Longest message flow_spec_parse() writes. */
#define FLOW_ERROR_BYTES 256

/* 0, or -EINVAL with a sentence in `error` that names the key and what was expected. */
int flow_spec_parse(const char *text, enum flow_use use, struct flow_spec *out,
                    char error[FLOW_ERROR_BYTES]);

/* One line per key that this use knows. */
void flow_spec_help(FILE *out, enum flow_use use);

const char *flow_operation_name(enum flow_operation operation);

#endif
