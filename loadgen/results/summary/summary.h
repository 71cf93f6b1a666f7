/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run's summary: what `--json` writes and what compare, merge, plot and sweep read again. Format
 * 1, one JSON object:
 *
 *   format, kind "run", label, command, seed, measured_s, warmup_s
 *   began_unix_s   start of the measured time on the wall clock, by which merge aligns runs
 *   machine        host, kernel, cpus, generator_cpu (of one processor, 0 to 1, while it ran),
 *                  generator_busy (share of the time in which its loop had work)
 *   marks[]        text, from_s, to_s: what went on beside the load, from the run's start
 *   flows[]        name, proto, loop, concurrency, offered, completed, the rates, late, delayed,
 *                  late_max_ms, unfinished, retried, reconnects, verified, unverified, outcomes,
 *                  bytes_in, bytes_out, latency, refusal_latency, kinds[], series
 *     latency      count, mean_ms, min_ms, p50_ms ... max_ms; histogram: start_ns[] and count[] of
 *                  the buckets that hold something, so that quantiles of merged runs are exact
 *     kinds[]      of a mix: name, outcomes, bytes_in, bytes_out, latency, refusal_latency
 *     series       an array per column, a place per second: see struct summary_second
 *
 * Later versions add keys; a reader skips those it does not know, and refuses another format.
 *
 * In memory, meters are as large as their histograms and mostly untouched zeroes.
 */
#ifndef LOADGEN_RESULTS_SUMMARY_SUMMARY_H
#define LOADGEN_RESULTS_SUMMARY_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/client/flow.h"

#define SUMMARY_FORMAT      1
#define SUMMARY_MAX_FLOWS   1024U
#define SUMMARY_MAX_SECONDS 1000000U
/* What a "second" lasts at most: one whose run was stopped and went on. */
#define SUMMARY_LONGEST_S   3600.0
#define SUMMARY_MAX_MARKS   1000U
#define SUMMARY_TEXT_BYTES  128
#define SUMMARY_ERROR_BYTES 512

/* A second of a flow, of all requests that ended in it, warm-up too. */
struct summary_second {
    double time_s; /* its end, from the run's start */
    double length_s;
    uint64_t offered; /* meant to be sent in it */
    uint64_t done;    /* good replies */
    uint64_t refused;
    uint64_t errors;
    uint64_t in_flight; /* at its end */
    uint64_t waiting;   /* at its end */
    uint64_t bytes_in;
    uint64_t bytes_out;
    double mean_ms; /* of the good replies; 0 when there was none */
    double p50_ms;
    double p90_ms;
    double p99_ms;
    double max_ms;
};

struct summary_kind {
    char name[FLOW_TEXT_BYTES];
    struct meter *meter;
};

struct summary_flow {
    char name[FLOW_NAME_BYTES];
    const char *protocol; /* one of summary_protocols */
    bool open_loop;
    uint64_t concurrency;
    uint64_t offered;
    uint64_t completed;
    double offered_per_s;
    double throughput_per_s;
    double bytes_in_per_s;
    double bytes_out_per_s;
    uint64_t late;
    uint64_t delayed;
    uint64_t late_max_ns;
    uint64_t unfinished;
    uint64_t retried;
    uint64_t reconnects;
    uint64_t verified;
    uint64_t unverified;
    struct meter *total; /* never NULL; requests meant for the measured time */
    struct summary_kind *kinds;
    size_t kinds_count;
    struct summary_second *seconds;
    size_t seconds_count;
    size_t seconds_capacity;
};

/* A time in which something happened beside the load: a fault. */
struct summary_mark {
    char text[SUMMARY_TEXT_BYTES];
    double from_s; /* from the run's start */
    double to_s;
    uint64_t number; /* while the run goes on: which one ends */
    bool open;
};

struct summary {
    char *label;   /* NULL: none */
    char *command; /* NULL: not known */
    char host[SUMMARY_TEXT_BYTES];
    char kernel[SUMMARY_TEXT_BYTES];
    uint64_t cpus;
    double generator_cpu;  /* all of the process, of one processor */
    double generator_busy; /* share of the time in which its loop had work to do */
    double began_unix_s;
    double measured_s;
    double warmup_s;
    uint64_t seed;
    struct summary_flow *flows;
    size_t flows_count;
    struct summary_mark *marks;
    size_t marks_count;
};

/* All zero, with `flows_count` flows that have empty meters. */
void summary_init(struct summary *summary, size_t flows_count);
void summary_fini(struct summary *summary);

/* An empty meter, without touching its memory. */
struct meter *summary_meter_create(void);

/* A further, empty flow; pointers to the others no longer hold. */
struct summary_flow *summary_add_flow(struct summary *summary);
/* NULL when there are SUMMARY_MAX_MARKS. */
struct summary_mark *summary_add_mark(struct summary *summary, const char *text);
struct summary_second *summary_add_second(struct summary_flow *flow);
/* The kind of that name, made when it is not there. */
struct summary_kind *summary_kind(struct summary_flow *flow, const char *name);

/* NULL when there is none. */
const struct summary_flow *summary_find(const struct summary *summary, const char *name);

/* "http", "https", "h2", "h2c", "nfs" (version 3), "nfs4" (4.0), "nfs41"; NULL at their end. */
extern const char *const summary_protocols[];
const char *summary_protocol_of(const struct flow_spec *spec);

/* Host, kernel and processors of this machine. */
void summary_machine(struct summary *summary);

/* Writes the JSON. Errors are those of the file: ferror(). */
void summary_write(FILE *out, const struct summary *summary);

/*
 * Reads a summary. 0, or negative errno with a sentence in `error` that begins with the file's
 * name; the summary is empty then.
 */
int summary_read(const char *path, struct summary *out, char error[SUMMARY_ERROR_BYTES]);

/* The same of text in memory; `name` is what messages call it. */
int summary_parse(const char *text, size_t length, const char *name, struct summary *out,
                  char error[SUMMARY_ERROR_BYTES]);

#endif
