/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a run:
 *
 *   open flows ─► set-up: connect, mount, make file sets ─► wait for --start-at
 *     ─► warm-up ─► measured time, faults ─► drain ─► results
 *
 * Set-up is given up when nothing has moved for SETUP_LIMIT. The first SIGINT or SIGTERM ends the
 * load with the figures so far, one more ends the program at once.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/flow.h"
#include "loadgen/commands/commands.h"
#include "loadgen/commands/run_faults.h"
#include "loadgen/commands/run_options.h"
#include "loadgen/net/signals.h"
#include "loadgen/results/results.h"

#define NS_PER_S         1000000000ULL
#define SETUP_POLL_NS    5000000ULL
#define SETUP_LIMIT_NS   (10 * NS_PER_S)
#define PROGRESS_NS      (NS_PER_S / 5)
#define PROGRESS_BYTES   160
#define DRAIN_POLL_NS    10000000ULL
#define FAULTS_LATER_NS  (600 * NS_PER_S) /* than the run, their own limit */
#define FAULTS_LONGEST_S 86400
#define ABORTED          130

struct run {
    const struct run_options *options;
    struct loop loop;
    struct signals signals;
    struct run_faults faults;
    struct results *results;
    struct flow *flows;
    size_t flows_count;
    size_t flows_opened;
    struct flow_window window;
    struct loop_timer setup_timer;
    struct loop_timer begin_timer;
    struct loop_timer measure_timer;
    struct loop_timer second_timer;
    struct loop_timer drain_timer;
    uint64_t setup_until_ns;
    uint64_t progress_shown_ns;
    bool progress_on_screen;
    unsigned seconds;
    bool seconds_ended;
    bool began;
    bool interrupted;
    int error;
};

/* ---------------------------------------------------------------- set-up */

/* One line on a terminal, written over itself. */
static void show_progress(struct run *run, const struct flow *flow, const char *text)
{
    uint64_t now_ns = loop_clock_ns();

    if (!isatty(STDERR_FILENO) || now_ns < run->progress_shown_ns + PROGRESS_NS)
        return;
    run->progress_shown_ns = now_ns;
    run->progress_on_screen = true;
    fprintf(stderr, "\r\033[Kspillload: flow %s: %s", flow->spec.name, text);
}

static void clear_progress(struct run *run)
{
    if (run->progress_on_screen)
        fputs("\r\033[K", stderr);
    run->progress_on_screen = false;
}

/* The first flow that is not ready, or NULL; whatever moved pushes the limit on. */
static const struct flow *unready_flow(struct run *run, char text[PROGRESS_BYTES])
{
    const struct flow *unready = NULL;
    uint64_t now_ns = loop_clock_ns();
    char words[PROGRESS_BYTES];

    for (size_t i = 0; i < run->flows_count; i++) {
        struct flow *flow = &run->flows[i];

        if (flow_ready(flow))
            continue;
        words[0] = '\0';
        if (flow->transport->progress && flow->transport->progress(flow, words, sizeof(words)))
            run->setup_until_ns = now_ns + SETUP_LIMIT_NS;
        if (!unready) {
            unready = flow;
            memcpy(text, words, sizeof(words));
        }
    }
    return unready;
}

static void begin_at_its_time(struct run *run);

static void setup_poll(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, setup_timer));
    uint64_t now_ns = loop_clock_ns();
    char text[PROGRESS_BYTES] = "";
    const struct flow *flow = unready_flow(run, text);

    if (!flow && run_faults_ready(&run->faults)) {
        clear_progress(run);
        begin_at_its_time(run);
        return;
    }
    if (now_ns < run->setup_until_ns) {
        if (flow && text[0])
            show_progress(run, flow, text);
        loop_timer_set(&run->loop, timer, now_ns + SETUP_POLL_NS);
        return;
    }
    clear_progress(run);
    if (flow)
        fprintf(stderr,
                "spillload: flow %s: %s did not let us begin: nothing moved for %llu s%s%s\n",
                flow->spec.name, flow->spec.authority,
                (unsigned long long)(SETUP_LIMIT_NS / NS_PER_S), text[0] ? ", at: " : "", text);
    else
        fprintf(stderr, "spillload: the faults were not prepared within %llu s\n",
                (unsigned long long)(SETUP_LIMIT_NS / NS_PER_S));
    run->error = -ETIMEDOUT;
    loop_stop(&run->loop);
}

/* ---------------------------------------------------------------- the load */

/* The last second, whole or not, is over when the measured time is. */
static void next_second(struct run *run)
{
    uint64_t over_ns = run->window.start_ns + (run->seconds + 1) * NS_PER_S;

    if (over_ns < run->window.end_ns)
        loop_timer_set(&run->loop, &run->second_timer, over_ns);
}

static void last_second(struct run *run)
{
    if (run->seconds_ended)
        return;
    run->seconds_ended = true;
    loop_timer_cancel(&run->loop, &run->second_timer);
    results_second(run->results, loop_clock_ns());
}

static void begin(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, begin_timer));
    const struct workload *workload = &run->options->workload;
    uint64_t now_ns = loop_clock_ns();

    run->began = true;
    run->window.start_ns = now_ns;
    run->window.measure_ns = now_ns + workload->warmup.ns;
    run->window.end_ns = run->window.measure_ns + workload->duration.ns;
    run->window.drained_ns = run->window.end_ns + workload->drain.ns;
    for (size_t i = 0; i < run->flows_count; i++)
        flow_begin(&run->flows[i], &run->window);
    results_begin(run->results, &run->window);
    loop_timer_set(&run->loop, &run->measure_timer, run->window.measure_ns);
    next_second(run);
    loop_timer_set(&run->loop, &run->drain_timer, run->window.end_ns);
}

static void begin_at_its_time(struct run *run)
{
    uint64_t now_ns = loop_clock_ns();
    uint64_t at_ns = now_ns;
    struct timespec wall;

    if (run->options->start_at_ns) {
        clock_gettime(CLOCK_REALTIME, &wall);
        int64_t ahead_ns =
            run->options->start_at_ns - ((int64_t)wall.tv_sec * (int64_t)NS_PER_S + wall.tv_nsec);

        if (ahead_ns >= 0)
            at_ns += (uint64_t)ahead_ns;
        else
            fprintf(stderr,
                    "spillload: set-up took %.1f s longer than until --start-at; this machine is "
                    "late by so much\n",
                    (double)-ahead_ns / 1e9);
    }
    loop_timer_set(&run->loop, &run->begin_timer, at_ns);
}

/* The faults' times count from here. */
static void measured_time_begins(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, measure_timer));

    run_faults_go(&run->faults);
}

static void fault_marked(struct run_faults *faults, uint64_t number, bool begins, double at_s,
                         const char *kind)
{
    struct run *run = (void *)((char *)faults - offsetof(struct run, faults));

    results_mark(run->results, number, begins,
                 at_s + (double)run->options->workload.warmup.ns / 1e9, kind);
}

static void second_over(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, second_timer));

    run->seconds++;
    results_second(run->results, loop_clock_ns());
    next_second(run);
}

static void drain_poll(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, drain_timer));
    uint64_t now_ns = loop_clock_ns();
    uint64_t outstanding = 0;

    last_second(run);
    for (size_t i = 0; i < run->flows_count; i++)
        outstanding += flow_outstanding(&run->flows[i]);
    if (outstanding == 0 || now_ns >= run->window.end_ns + run->options->workload.drain.ns)
        loop_stop(&run->loop);
    else
        loop_timer_set(&run->loop, timer, now_ns + DRAIN_POLL_NS);
}

static void interrupted(struct signals *signals)
{
    struct run *run = (void *)((char *)signals - offsetof(struct run, signals));
    uint64_t now_ns = loop_clock_ns();

    if (run->interrupted) {
        fputs("spillload: aborted, without figures\n", stderr);
        _exit(ABORTED);
    }
    run->interrupted = true;
    if (run->window.end_ns > now_ns)
        run->window.end_ns = now_ns;
    loop_stop(signals->loop);
}

/* From here on the signals end the program as they do by default: results may take their time. */
static void stop_listening(struct run *run)
{
    sigset_t set;

    signals_fini(&run->signals);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---------------------------------------------------------------- the end */

/* 0 when every flow got at least one good reply, else 1. */
static int tell_silent_flows(const struct run *run)
{
    int status = 0;

    for (size_t i = 0; i < run->flows_count; i++) {
        const struct flow *flow = &run->flows[i];

        if (flow->total.outcomes[OUTCOME_OK] > 0 || (run->interrupted && flow->offered == 0))
            continue;
        fprintf(stderr, "spillload: flow %s: no request to %s succeeded", flow->spec.name,
                flow->spec.authority);
        for (int o = OUTCOME_OK + 1; o < OUTCOME_COUNT; o++) {
            if (flow->total.outcomes[o])
                fprintf(stderr, ", %s %llu", outcome_name((enum outcome)o),
                        (unsigned long long)flow->total.outcomes[o]);
        }
        fputc('\n', stderr);
        status = 1;
    }
    return status;
}

static int open_flows(struct run *run)
{
    const struct workload *workload = &run->options->workload;

    for (size_t i = 0; i < run->flows_count; i++) {
        const struct flow_spec *spec = &workload->flows[i].spec;
        int error = flow_open(&run->flows[i], &run->loop, spec, workload->seed, i);

        run->flows_opened++;
        if (error) {
            fprintf(stderr, "spillload: flow %s: %s\n", spec->name, strerror(-error));
            return error;
        }
    }
    return 0;
}

static int open_run(struct run *run)
{
    const struct run_options *options = run->options;
    const struct workload *workload = &options->workload;
    uint64_t limit_ns =
        workload->warmup.ns + workload->duration.ns + workload->drain.ns + FAULTS_LATER_NS;
    int error;

    if (limit_ns > FAULTS_LONGEST_S * NS_PER_S)
        limit_ns = FAULTS_LONGEST_S * NS_PER_S;
    run->faults.quiet = options->results.live == RESULTS_LIVE_TABLE ||
                        (options->results.live == RESULTS_LIVE_AUTO && isatty(STDOUT_FILENO));
    run->faults.mark = fault_marked;
    run->results = results_create(&options->results, run->flows, run->flows_count);
    if (!run->results)
        return -EIO;
    /* Before the signals are blocked, which a child would inherit. */
    error = run_faults_start(&run->faults, workload->faults, workload->faults_count, limit_ns);
    if (!error)
        error = loop_init(&run->loop);
    if (!error)
        error = signals_init(&run->signals, &run->loop, interrupted);
    if (!error)
        error = run_faults_listen(&run->faults, &run->loop);
    if (error) {
        fprintf(stderr, "spillload: %s\n", strerror(-error));
        return error;
    }
    return open_flows(run);
}

static void go(struct run *run)
{
    run->setup_timer.fire = setup_poll;
    run->begin_timer.fire = begin;
    run->measure_timer.fire = measured_time_begins;
    run->second_timer.fire = second_over;
    run->drain_timer.fire = drain_poll;
    run->setup_until_ns = loop_clock_ns() + SETUP_LIMIT_NS;
    loop_timer_set(&run->loop, &run->setup_timer, run->loop.now_ns);
    int error = loop_run(&run->loop);

    clear_progress(run);
    if (error) {
        fprintf(stderr, "spillload: %s\n", strerror(-error));
        run->error = error;
    }
}

static int run_load(const struct run_options *options)
{
    struct run *run = memory_zeroed(1, sizeof(*run));
    int status = 1;

    run->options = options;
    run->signals.io.fd = -1;
    run->loop.epoll_fd = -1;
    run->flows_count = options->workload.flows_count;
    run->flows = memory_zeroed(run->flows_count, sizeof(*run->flows));
    run->error = open_run(run);
    if (!run->error)
        go(run);
    stop_listening(run);
    int faults_status = run_faults_end(&run->faults);

    if (!run->error && run->began) {
        last_second(run);
        status = results_finish(run->results, &run->window);
        if (tell_silent_flows(run) != 0 || faults_status != 0)
            status = 1;
    } else if (faults_status == 2) {
        status = 2;
    }
    results_destroy(run->results);
    for (size_t i = 0; i < run->flows_opened; i++)
        flow_fini(&run->flows[i]);
    loop_fini(&run->loop);
    free(run->flows);
    free(run);
    return status;
}

static void tell_workload(const struct workload *workload)
{
    for (size_t i = 0; i < workload->flows_count; i++) {
        const struct flow_spec *spec = &workload->flows[i].spec;

        if (spec->open_loop)
            printf("flow %s: %s, open loop, about %.0f requests in the measured time\n", spec->name,
                   spec->authority, arrival_expected(&spec->arrival, workload->duration.ns));
        else
            printf("flow %s: %s, closed loop, %u clients\n", spec->name, spec->authority,
                   spec->concurrency);
    }
    for (size_t i = 0; i < workload->faults_count; i++)
        printf("fault %s\n", workload->faults[i]);
    printf("warm-up %g s, measured %g s, drain up to %g s, seed %llu\n",
           (double)workload->warmup.ns / 1e9, (double)workload->duration.ns / 1e9,
           (double)workload->drain.ns / 1e9, (unsigned long long)workload->seed);
}

int command_run(int argc, char **argv)
{
    struct run_options *options = memory_zeroed(1, sizeof(*options));
    struct rlimit limit;
    int status = run_options_read(options, argc, argv);

    if (status == 0 && options->check) {
        tell_workload(&options->workload);
    } else if (status == 0 && !options->help) {
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(RLIMIT_NOFILE, &limit);
        }
        status = run_load(options);
    }
    run_options_fini(options);
    free(options);
    return status;
}
