/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run does: its flows, faults and times. Built up from a workload file or a profile and from
 * the command line, overridden by the latter, then checked as a whole:
 *
 *   workload_init ──► read_file, read_profile, add_flow ──► overrides ──► workload_check ──► run
 *
 * A workload file is YAML:
 *
 *   duration: 60s                 also warmup, drain and seed, as the options of these names
 *   profile: square-wave          a built-in workload whose flows come first
 *   defaults:                     keys for every flow that has not got them, nor others that say
 *     target: 127.0.0.1:8080      the same otherwise, and to whose protocol they mean something
 *   flows:                        the keys of --flow, with lists and maps where these are natural:
 *     - name: web
 *       steps: [15/s:10m, {rate: 35/s, for: 10m}]
 *       header: {X-Tenant: "{tenant}"}                        or a list of "NAME: VALUE"
 *       request: [{weight: 80, path: "/{file}"}, "20 PUT /x 4KiB"]
 *     - {proto: nfs, mix: {read: 60, write: 40}}
 *   faults:                       as `spillload fault` takes them
 *     - {kind: pause, pid: 1234, at: 10s, for: 1s}            or "pause,pid=1234,at=10s,for=1s"
 *
 * headers and requests are known by these names too. Every error says file:line:column, what was
 * found, what was expected.
 */
#ifndef LOADGEN_WORKLOAD_WORKLOAD_H
#define LOADGEN_WORKLOAD_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/client/flow_spec.h"

#define WORKLOAD_MAX_FLOWS   64
#define WORKLOAD_MAX_FAULTS  32
#define WORKLOAD_FILE_BYTES  (1U << 20)
#define WORKLOAD_WHERE_BYTES 320
#define WORKLOAD_ERROR_BYTES 1024

struct workload_flow {
    struct flow_spec spec;
    char where[WORKLOAD_WHERE_BYTES]; /* it was written, for messages: "web.yaml:12:5" */
};

/* A time that was written somewhere, or is the default. */
struct workload_time {
    uint64_t ns;
    bool given;
};

struct workload {
    struct workload_flow *flows;
    size_t flows_count;
    char *faults[WORKLOAD_MAX_FAULTS];
    size_t faults_count;
    struct workload_time duration;
    struct workload_time warmup;
    struct workload_time drain;
    uint64_t seed;
    bool offline; /* checks the text alone: flow_spec.h */
};

/* No flows, 10 s, no warm-up, 5 s to drain, seed 1. */
void workload_init(struct workload *workload);
void workload_fini(struct workload *workload);

/*
 * Each adds to the workload. 0, or -EINVAL (of a file that can't be read negative errno) with a
 * sentence in `error`; the workload is good for workload_fini() alone then.
 */
int workload_read_file(struct workload *workload, const char *path,
                       char error[WORKLOAD_ERROR_BYTES]);
int workload_read_text(struct workload *workload, const char *name, const char *text, size_t length,
                       char error[WORKLOAD_ERROR_BYTES]);
int workload_read_profile(struct workload *workload, const char *name,
                          char error[WORKLOAD_ERROR_BYTES]);
/* "key=value,key=value..." */
int workload_add_flow(struct workload *workload, const char *text,
                      char error[WORKLOAD_ERROR_BYTES]);
/* "KIND,key=value..." */
int workload_add_fault(struct workload *workload, const char *text,
                       char error[WORKLOAD_ERROR_BYTES]);

/* Overrides; all after the last flow was added. Errors as above. */

/* The key in every flow to whose protocol it means something, in place of what is there. */
int workload_set(struct workload *workload, const char *key, const char *value,
                 char error[WORKLOAD_ERROR_BYTES]);
/* The target of every flow that has none. */
int workload_target(struct workload *workload, const char *target,
                    char error[WORKLOAD_ERROR_BYTES]);
/*
 * The workload's clock so many times as fast: shapes, start and stop of the flows, and the duration
 * that a file or a profile gave. At least one flow must have a shape.
 */
int workload_speed(struct workload *workload, const char *factor, char error[WORKLOAD_ERROR_BYTES]);
/* The rates of all open-loop flows, which must be one at least. */
int workload_scale(struct workload *workload, const char *factor, char error[WORKLOAD_ERROR_BYTES]);

/* Names the flows that have no name, checks each flow and that names differ. */
int workload_check(struct workload *workload, char error[WORKLOAD_ERROR_BYTES]);

#endif
