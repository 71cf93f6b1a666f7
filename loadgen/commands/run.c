/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a run:
 *
 *   connect, mount -> SETUP_POLL until all flows are ready -> warm-up -> measured time -> drain
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/flow.h"
#include "loadgen/commands/commands.h"
#include "loadgen/commands/run_options.h"
#include "loadgen/net/signals.h"
#include "loadgen/results/report.h"

#define NS_PER_S       1000000000ULL
#define SETUP_POLL_NS  5000000ULL
#define SETUP_LIMIT_NS (10 * NS_PER_S)
#define DRAIN_POLL_NS  10000000ULL

struct run {
    const struct run_options *options;
    struct loop loop;
    struct signals signals;
    struct flow *flows;
    size_t flows_opened;
    struct flow_window window;
    struct loop_timer setup_timer;
    struct loop_timer second_timer;
    struct loop_timer drain_timer;
    uint64_t setup_until_ns;
    uint64_t second_began_ns;
    unsigned seconds;
    bool began;
    bool interrupted;
    int error;
};

/* ---------------------------------------------------------------- the course of a run */

static void setup_poll(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, setup_timer));
    const struct run_options *options = run->options;
    uint64_t now_ns = loop_clock_ns();

    for (size_t i = 0; i < options->flows_count; i++) {
        if (flow_ready(&run->flows[i]))
            continue;
        if (now_ns < run->setup_until_ns) {
            loop_timer_set(&run->loop, timer, now_ns + SETUP_POLL_NS);
            return;
        }
        fprintf(stderr, "spillload: flow %s: %s did not let us mount within %llu s\n",
                run->flows[i].spec.name, run->flows[i].spec.authority,
                (unsigned long long)(SETUP_LIMIT_NS / NS_PER_S));
        run->error = -ETIMEDOUT;
        loop_stop(&run->loop);
        return;
    }
    run->began = true;
    run->window.start_ns = now_ns;
    run->window.measure_ns = now_ns + options->warmup_ns;
    run->window.end_ns = run->window.measure_ns + options->duration_ns;
    for (size_t i = 0; i < options->flows_count; i++)
        flow_begin(&run->flows[i], &run->window);
    run->second_began_ns = now_ns;
    loop_timer_set(&run->loop, &run->second_timer, now_ns + NS_PER_S);
    loop_timer_set(&run->loop, &run->drain_timer, run->window.end_ns);
}

static void second_over(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, second_timer));
    uint64_t now_ns = loop_clock_ns();

    run->seconds++;
    report_second(stdout, run->options->live, run->flows, run->options->flows_count, run->seconds,
                  (double)(now_ns - run->second_began_ns) / 1e9);
    run->second_began_ns = now_ns;
    if (run->window.start_ns + (run->seconds + 1) * NS_PER_S <= run->window.end_ns)
        loop_timer_set(&run->loop, timer, run->window.start_ns + (run->seconds + 1) * NS_PER_S);
}

static void drain_poll(struct loop_timer *timer)
{
    struct run *run = (void *)((char *)timer - offsetof(struct run, drain_timer));
    uint64_t now_ns = loop_clock_ns();
    uint64_t outstanding = 0;

    for (size_t i = 0; i < run->options->flows_count; i++)
        outstanding += flow_outstanding(&run->flows[i]);
    if (outstanding == 0 || now_ns >= run->window.end_ns + run->options->drain_ns)
        loop_stop(&run->loop);
    else
        loop_timer_set(&run->loop, timer, now_ns + DRAIN_POLL_NS);
}

/* The first signal ends the measured time now; the figures so far are shown. */
static void interrupted(struct signals *signals)
{
    struct run *run = (void *)((char *)signals - offsetof(struct run, signals));
    uint64_t now_ns = loop_clock_ns();

    run->interrupted = true;
    if (run->window.end_ns > now_ns)
        run->window.end_ns = now_ns;
    loop_stop(signals->loop);
}

/* 0 when every flow got at least one good reply, else 1. */
static int finish(const struct run *run)
{
    const struct run_options *options = run->options;
    double measured_s = run->window.end_ns > run->window.measure_ns
                            ? (double)(run->window.end_ns - run->window.measure_ns) / 1e9
                            : 1e-9;
    int status = 0;

    report_table(stdout, run->flows, options->flows_count, measured_s);
    fflush(stdout);
    report_warnings(stderr, run->flows, options->flows_count);
    if (options->json_path) {
        int error = report_json(options->json_path, run->flows, options->flows_count, measured_s,
                                options->seed);

        if (error) {
            fprintf(stderr, "spillload: %s: %s\n", options->json_path, strerror(-error));
            status = 1;
        }
    }
    for (size_t i = 0; i < options->flows_count; i++) {
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
    const struct run_options *options = run->options;

    for (size_t i = 0; i < options->flows_count; i++) {
        int error = flow_open(&run->flows[i], &run->loop, &options->flows[i], options->seed, i);

        run->flows_opened++;
        if (error) {
            fprintf(stderr, "spillload: flow %s: %s\n", options->flows[i].name, strerror(-error));
            return error;
        }
    }
    return 0;
}

static int run_load(const struct run_options *options)
{
    struct run *run = memory_zeroed(1, sizeof(*run));
    int status = 1;

    run->options = options;
    run->signals.io.fd = -1;
    run->setup_timer.fire = setup_poll;
    run->second_timer.fire = second_over;
    run->drain_timer.fire = drain_poll;
    run->flows = memory_zeroed(options->flows_count, sizeof(*run->flows));
    run->error = loop_init(&run->loop);
    if (!run->error)
        run->error = signals_init(&run->signals, &run->loop, interrupted);
    if (run->error)
        fprintf(stderr, "spillload: %s\n", strerror(-run->error));
    else
        run->error = open_flows(run);
    if (!run->error) {
        run->setup_until_ns = run->loop.now_ns + SETUP_LIMIT_NS;
        loop_timer_set(&run->loop, &run->setup_timer, run->loop.now_ns);
        int error = loop_run(&run->loop);

        if (error)
            fprintf(stderr, "spillload: %s\n", strerror(-error));
        if (error || run->error)
            status = 1;
        else
            status = run->began ? finish(run) : 1;
    }
    for (size_t i = 0; i < run->flows_opened; i++)
        flow_fini(&run->flows[i]);
    signals_fini(&run->signals);
    loop_fini(&run->loop);
    free(run->flows);
    free(run);
    return status;
}

int command_run(int argc, char **argv)
{
    struct run_options *options = memory_zeroed(1, sizeof(*options));
    struct rlimit limit;
    int status = run_options_read(options, argc, argv);

    if (status == 0 && !options->help) {
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(RLIMIT_NOFILE, &limit);
        }
        status = run_load(options);
    }
    free(options);
    return status;
}
