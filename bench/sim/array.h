/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated disk array: M disks, each serving its own queue first come, first served, one job at
 * a time.
 *
 *   array_submit ──► disk 0  [ | | ]──► done      a job's disk: at random, or the one with the
 *                ├─► disk 1  [ |   ]──► done      shortest queue; of a sequential stream: the
 *                └─► disk M-1[     ]──► done      next one (striping)
 *
 * With random disks and exponential times the array is a closed network whose throughput with D
 * jobs in it is known exactly,
 *
 *     X(D) = (M / s) * D / (D + M - 1),    s = mean service time,
 *
 * e.g. 503 a second for M = 4, s = 6.7 ms, D = 16 (Jin, Chase, Kaur, SIGMETRICS 2004, use an array
 * that saturates at about 500).
 *
 * Seek locality. With a seek share q > 0 a job's time depends on the distance d (a fraction of the
 * disk) between its block and the block its own stream had last on that disk, as in an array that
 * reads ahead for each stream:
 *
 *     time = draw * (1 - q + q * sqrt(d) / (8/15))
 *
 * The square root is the usual model of a short seek (Ruemmler and Wilkes, 1994). 8/15 is its mean
 * over two random places, so random streams keep the mean s and a sequential stream needs (1 - q)
 * s.
 */
#ifndef BENCH_SIM_ARRAY_H
#define BENCH_SIM_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/sim/events.h"
#include "loadgen/base/distribution.h"
#include "loadgen/base/rng.h"

#define ARRAY_DISKS_MAX 4096U
/* Blocks of one disk; a sequential stream starts over behind the last. */
#define ARRAY_DISK_BLOCKS (1U << 24)

enum array_spread {
    ARRAY_SPREAD_RANDOM,
    ARRAY_SPREAD_SHORTEST, /* equal queues: the lowest number */
    ARRAY_SPREADS,
};

/* 0, or -EINVAL for a name that is neither "random" nor "shortest". */
int array_spread_parse(const char *name, enum array_spread *out);

struct array_config {
    uint32_t disks; /* 1 to ARRAY_DISKS_MAX */
    struct distribution service;
    enum array_spread spread;
    double seek_share; /* q, 0 to 1 */
};

/* Jobs of one origin: where on the disks they lie, and their random draws. */
struct array_stream {
    bool sequential;
    struct rng rng;
    uint64_t next_block; /* of a sequential stream, counted over all disks */
    uint32_t *last;      /* per disk: the block it had last */
};

/* One job, embedded in the caller's request. */
struct array_job {
    struct array_job *next;
    struct array_stream *stream;
    uint64_t draw_ns; /* service time, the seek's part not yet known */
    uint32_t disk;
    uint32_t block;
};

struct array;

struct array_disk {
    struct event done;
    struct array *array;
    struct array_job *head; /* the one being served */
    struct array_job *tail;
    uint64_t jobs; /* in service and waiting */
    uint64_t busy_ns;
};

struct array {
    struct array_config config;
    struct events *events;
    /* Called when a job has ended; the disk already serves the next one. */
    void (*done)(void *owner, struct array_job *job);
    void *owner;
    struct array_disk *disks;
};

/* `done`, `owner` and `events` must outlive the array. array_fini() is due. */
void array_init(struct array *array, const struct array_config *config, struct events *events,
                void (*done)(void *owner, struct array_job *job), void *owner);
void array_fini(struct array *array);

/* A stream's draws depend on the seed and its number only. array_stream_fini() is due. */
void array_stream_init(struct array_stream *stream, const struct array *array, bool sequential,
                       uint64_t seed, uint64_t number);
void array_stream_fini(struct array_stream *stream);

/*
 * Fills in a job of `units` times the service time: all draws are made here, so that a request is
 * the same one whatever the order in which jobs are submitted later.
 */
void array_job_init(struct array *array, struct array_job *job, struct array_stream *stream,
                    uint64_t units);

/* Hands a job to its disk; it must stay where it is until done() is called for it. */
void array_submit(struct array *array, struct array_job *job);

/* Part of the time from 0 to now in which a disk was busy, mean over the disks. */
double array_utilisation(const struct array *array);

#endif
