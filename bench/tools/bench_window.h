/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured window of one load: a warm-up, then a stretch of time in which every completed
 * request is counted and its latency kept, and over which the processor time of the process under
 * test is read. Both ends of the window are taken by the load itself, between two turns of its
 * loop, so that requests and processor time belong to the very same interval.
 *
 *   bench_window_start()  ->  bench_window_poll() once per loop turn  ->  bench_window_print()
 *                               opens the window after the warm-up,
 *                               closes it after the duration
 *
 * The result is one line of JSON on stdout:
 *   seconds, requests, requests_per_s, bytes, errors, p50_us, p99_us, max_us, requests_total
 *     requests_total counts from the first request on, warm-up included
 *   watched: [{pid, cpu_us, user_us, system_us}] processor time of each watched process during
 *     the window, all its threads; user and system are the kernel's estimate (from ticks)
 *   cores: [busy part of each processor during the window, 0..1]
 */
#ifndef BENCH_TOOLS_BENCH_WINDOW_H
#define BENCH_TOOLS_BENCH_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loadgen/base/histogram.h"

#define BENCH_WATCH_LIMIT 4
#define BENCH_CORE_LIMIT  256

/* Processor time of one process. */
struct bench_cpu {
    uint64_t run_ns;
    uint64_t user_ticks;
    uint64_t system_ticks;
};

/* Busy and total time of one processor, in ticks. */
struct bench_core {
    uint64_t busy_ticks;
    uint64_t total_ticks;
};

struct bench_usage {
    struct bench_cpu processes[BENCH_WATCH_LIMIT];
    struct bench_core cores[BENCH_CORE_LIMIT];
    unsigned core_count;
};

enum bench_window_state {
    BENCH_WINDOW_WARM_UP,
    BENCH_WINDOW_OPEN,
    BENCH_WINDOW_CLOSED,
};

struct bench_window {
    enum bench_window_state state;
    uint64_t warm_up_ns;
    uint64_t duration_ns;
    uint64_t started_ns;
    uint64_t opened_ns;
    uint64_t closed_ns;
    pid_t watched[BENCH_WATCH_LIMIT];
    unsigned watched_count;
    struct bench_usage at_open;
    struct bench_usage at_close;
    uint64_t requests;
    uint64_t requests_total;
    uint64_t bytes;
    uint64_t errors;
    struct histogram latency_ns;
};

/* Half a second of warm-up, three seconds counted, nothing watched. */
void bench_window_init(struct bench_window *window);

/*
 * Takes the options every load has: --warm-up, --duration and --watch (a process, up to
 * BENCH_WATCH_LIMIT times). BENCH_WINDOW_OPTIONS are their entries for getopt_long() and
 * BENCH_WINDOW_USAGE their help. Returns false when `option` is none of them; exits with status 2
 * on a bad value.
 */
#define BENCH_WINDOW_OPTIONS                                                                       \
    {"warm-up", required_argument, NULL, 'w'}, {"duration", required_argument, NULL, 'd'},         \
    {                                                                                              \
        "watch", required_argument, NULL, 'p'                                                      \
    }
#define BENCH_WINDOW_USAGE                                                                         \
    "  --warm-up T       time before counting starts (500ms)\n"                                    \
    "  --duration T      time counted (3s)\n"                                                      \
    "  --watch PID       read this process's processor time over the time counted (up to 4)\n"
bool bench_window_option(struct bench_window *window, int option, const char *text);

/* Starts the warm-up. */
void bench_window_start(struct bench_window *window, uint64_t now_ns);

/* Opens or closes the window when it is time to. Returns false once it is closed. */
bool bench_window_poll(struct bench_window *window, uint64_t now_ns);

/* Counts one request that was sent at `sent_ns` and answered with `bytes` at `now_ns`. */
void bench_window_completed(struct bench_window *window, uint64_t sent_ns, uint64_t now_ns,
                            uint64_t bytes);

/* Counts one request that failed. Returns false when so many have that the run is worthless. */
bool bench_window_failed(struct bench_window *window);

/* Prints the result. Returns the exit status of the load: 0, or 1 when nothing was completed. */
int bench_window_print(const struct bench_window *window);

#endif
