/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flow of load is, as the user wrote it: --flow
 * name=gold,proto=http,target=HOST:PORT,rate=120/s...
 *
 * Two programs read it: spillload sends the flow's requests, spillsim simulates them. Most keys are
 * common; one that means nothing to the program at hand is refused with a sentence that says so.
 * The keys of a flow in a workload file (loadgen/workload) are the same, read by the same table.
 *
 * A comma in a value is written \, (backslash, comma). flow_spec_help() prints every key from the
 * tables the parser works with (keys/).
 */
#ifndef LOADGEN_CLIENT_FLOW_SPEC_H
#define LOADGEN_CLIENT_FLOW_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/arrival/arrival.h"
#include "loadgen/base/distribution.h"
#include "loadgen/base/units.h"
#include "loadgen/fileset/fileset.h"

/* The program's use of a flow. */
enum flow_use {
    FLOW_SENT = 1,
    FLOW_SIMULATED = 2,
};

enum flow_protocol {
    FLOW_HTTP,
    FLOW_NFS,
};

/* NFS operations of a mix; each is one call (one COMPOUND in NFSv4) but where it says more. */
enum flow_operation {
    FLOW_READ,
    FLOW_WRITE,
    FLOW_GETATTR,
    FLOW_LOOKUP,
    FLOW_ACCESS,
    FLOW_SETATTR,
    FLOW_READDIR,
    FLOW_CREATE, /* of a new file, which joins those that REMOVE may take */
    FLOW_REMOVE, /* of a file that CREATE made; becomes a CREATE when there is none */
    FLOW_COMMIT,
    FLOW_FSSTAT,
    FLOW_OPERATIONS,
};

enum flow_http_version {
    FLOW_HTTP_1_1,
    FLOW_HTTP_2,
};

enum flow_nfs_version {
    FLOW_NFS_3,
    FLOW_NFS_4_0,
    FLOW_NFS_4_1,
};

#define FLOW_NAME_BYTES    32
#define FLOW_TEXT_BYTES    512
#define FLOW_TRACE_BYTES   256
#define FLOW_HEADERS_BYTES 2048
#define FLOW_MAX_CLIENTS   65000U
#define FLOW_MAX_WEIGHT    1000000U
#define FLOW_MAX_REQUESTS  32
#define FLOW_MAX_STREAMS   1000U
#define FLOW_MAX_MIX       1000000U

/*
 * One kind of HTTP request; a flow draws among its kinds by weight. `path` and the flow's headers
 * may hold {file} (path of a file of the set, with its root, drawn by popularity), {number} (of the
 * request, from 0), {tenant} (0 to tenants - 1) and {random} (16 hex digits).
 */
struct flow_http_request {
    uint32_t weight;
    char method[16];
    char path[FLOW_TEXT_BYTES];
    bool has_body;
    struct distribution body; /* bytes */
};

struct flow_http {
    enum flow_http_version version;
    bool tls;
    bool tls_unverified;   /* takes any certificate */
    bool close_each;       /* no keep-alive: a connection per request */
    bool has_host;         /* one of the headers is Host */
    uint32_t streams;      /* HTTP/2: requests at once per connection */
    uint32_t tenants;      /* 1 or more */
    double tenant_zipf;    /* exponent of their popularity; 0: all alike */
    char tls_ca[256];      /* file of trusted certificates; empty: the system's */
    char server_name[256]; /* SNI and name in the certificate; empty: the target's host */
    struct flow_http_request requests[FLOW_MAX_REQUESTS]; /* at least one */
    size_t requests_count;
    char headers[FLOW_HEADERS_BYTES]; /* "Name: value\r\n" each, with templates */
};

struct flow_nfs {
    enum flow_nfs_version version;
    uint32_t mix[FLOW_OPERATIONS]; /* weights; at least one above 0 */
    struct distribution transfer;  /* bytes of a READ or WRITE */
    bool sequential;
    bool unstable; /* WRITE unstable, else file-sync */
    bool verify;   /* what is read must be what was written last */
    bool populate; /* make the set before the run unless it is there */
    uint32_t uid;
    uint32_t gid;
    char export_path[FLOW_TEXT_BYTES];
    char file[256]; /* worked on when the flow has no set: one existing file of the export */
};

/* Room for the keys there are: a bit of each. */
#define FLOW_KEY_WORDS 2

struct flow_spec {
    char name[FLOW_NAME_BYTES];
    uint64_t given[FLOW_KEY_WORDS]; /* the keys that were written: flow_spec_given() */
    enum flow_protocol protocol;
    bool offline; /* checks the text alone: no name is looked up, no file read; can't be sent */
    bool has_target;
    bool open_loop;
    bool has_seed;    /* else the run's seed and the flow's place */
    bool retry_after; /* see retries */
    bool sequential;  /* simulated: blocks on the disks */
    struct units_address target;
    char authority[256]; /* target as written, for Host */

    /* Open loop: requests come by `arrival`. Closed loop: `concurrency` clients, one request each.
     */
    struct arrival_spec arrival;
    char trace_name[FLOW_TRACE_BYTES]; /* read into arrival.trace by flow_spec_check() */
    uint32_t concurrency;
    uint32_t connections; /* 0: HTTP as many as concurrency needs, NFS 4 or fewer */
    struct distribution think;
    uint64_t pause_ns; /* of a closed-loop client after a refusal or an error that is final */
    /*
     * Retries after a refusal: the same request again, `retry_ns` later (or what the server's
     * Retry-After says, with `retry_after`), at most `retries` times; its latency counts from the
     * first intended time, its outcome is that of the last try.
     */
    uint64_t retry_ns;
    uint32_t retries;  /* 0: a refusal is final */
    uint32_t weight;   /* simulated, as the members at the end */
    uint64_t start_ns; /* from the run's start */
    uint64_t stop_ns;  /* 0: at the run's end */
    uint64_t timeout_ns;
    uint64_t seed;

    struct fileset_spec set; /* files 0: none */
    struct flow_http http;
    struct flow_nfs nfs;

    /* Simulated flows only: what the scheduler is told of them. */
    uint64_t cost;              /* of each request; its service takes as many times the mean */
    uint64_t deadline_ns;       /* edf: response-time target; 0: none */
    uint64_t reservation_per_s; /* mclock, in cost units; 0: none */
    uint64_t limit_per_s;       /* mclock, leaky-bucket, in cost units; 0: none */
    uint64_t burst;             /* of the limit */
};

/* Longest message flow_spec_parse() writes. */
#define FLOW_ERROR_BYTES 512

/* What a flow is before any key is read. */
void flow_spec_init(struct flow_spec *spec);

/*
 * One key. 0, or -EINVAL with a sentence in `error` that names the key and what was expected. Most
 * keys are taken once.
 */
int flow_spec_set(struct flow_spec *spec, enum flow_use use, const char *key, const char *value,
                  char error[FLOW_ERROR_BYTES]);

/* The same for a key that may have been written before: this value takes that one's place. */
int flow_spec_replace(struct flow_spec *spec, enum flow_use use, const char *key, const char *value,
                      char error[FLOW_ERROR_BYTES]);

/* Whether the key was written. It must be one. */
bool flow_spec_given(const struct flow_spec *spec, const char *key);

/* Whether a key means something to a flow of this protocol; a flow's defaults may hold others. */
bool flow_spec_fits(const struct flow_spec *spec, enum flow_use use, const char *key);

/* Whether a key that was written says what this one would say, so that both would be refused. */
bool flow_spec_excludes(const struct flow_spec *spec, const char *key);

/*
 * After the last key: what no key alone can tell, contradictions among them, the trace, and the
 * defaults that depend on others.
 */
int flow_spec_check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES]);

/* The keys of "key=value,key=value...". */
int flow_spec_set_all(struct flow_spec *spec, enum flow_use use, const char *text,
                      char error[FLOW_ERROR_BYTES]);

/* All of it: flow_spec_init(), the keys of the text, flow_spec_check(). */
int flow_spec_parse(const char *text, enum flow_use use, struct flow_spec *out,
                    char error[FLOW_ERROR_BYTES]);

/* One line per key that this use knows. */
void flow_spec_help(FILE *out, enum flow_use use);

const char *flow_operation_name(enum flow_operation operation);

#endif
