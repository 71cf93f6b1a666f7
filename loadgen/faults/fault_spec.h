/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fault as it is written on the command line: KIND[,key=value...]
 *
 *   cpu,pid=4711,quota=10%,for=300ms,every=2s       processor time of a process runs short
 *   memory,threads=2,bytes=256MiB,cpus=0-1,for=1s   threads stream through memory
 *   pause,pid=4711,for=500ms                        a process stands still
 *   kill,pid=4711,restart=COMMAND,for=1s            a process ends, and is started again
 *   network,namespace=NAME,device=lo,delay=10ms     packets of a network namespace are late, lost
 *
 * When: the first time `at` after the start, each time `for` long, again `every` (counted from
 * begin to begin) until it happened `times` times or the limit of the whole ends it.
 *
 * One table of keys is parser and help. Plain data; fault_spec_fini() frees the command.
 */
#ifndef LOADGEN_FAULTS_FAULT_SPEC_H
#define LOADGEN_FAULTS_FAULT_SPEC_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum fault_kind {
    FAULT_CPU,
    FAULT_MEMORY,
    FAULT_PAUSE,
    FAULT_KILL,
    FAULT_NETWORK,
    FAULT_KINDS,
};

/* How processor time is taken away. */
enum fault_means {
    FAULT_MEANS_AUTO,   /* a control group where one can be made, else the duty cycle */
    FAULT_MEANS_CGROUP, /* the quota of a control group */
    FAULT_MEANS_DUTY,   /* stopped and continued, a hundred times a second */
};

#define FAULT_ERROR_BYTES  512
#define FAULT_NAME_BYTES   256
#define FAULT_MAX_THREADS  256
#define FAULT_LEAST_FOR_NS 1000000ULL

struct fault_spec {
    enum fault_kind kind;
    uint64_t at_ns;
    uint64_t for_ns;
    uint64_t every_ns; /* 0: once */
    uint64_t times;    /* 0: until the limit */

    pid_t pid;
    bool children; /* the processes that descend from pid too */
    double quota;  /* of one processor: 0.1 is 10 % */
    enum fault_means means;
    int signal;
    char *restart; /* NULL: it stays ended */

    unsigned threads;
    uint64_t bytes; /* of each thread */
    bool has_cpus;
    cpu_set_t cpus;

    char network[FAULT_NAME_BYTES]; /* a path: /run/netns/NAME or what was written, with a slash */
    char device[FAULT_NAME_BYTES];
    uint64_t delay_ns;
    uint64_t jitter_ns;
    double loss; /* 0.01 is 1 % */
};

/* 0 or -EINVAL and a text in `error` that says what is wrong and what is expected. */
int fault_spec_parse(const char *text, struct fault_spec *out, char error[FAULT_ERROR_BYTES]);

void fault_spec_fini(struct fault_spec *spec);

const char *fault_kind_name(enum fault_kind kind);

/* The table of keys, for --help. */
void fault_spec_help(FILE *out);

#endif
