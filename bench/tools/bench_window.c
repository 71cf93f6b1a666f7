/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured window: counting, processor time from /proc, and the line of results.
 * Only the load's own loop calls in here; nothing is shared between threads.
 */
#include "bench/tools/bench_window.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/tools/bench_net.h"

#define FAILURE_LIMIT 10000

/* A process that is gone reads as zero: the driver sees that its server died by other means. */
static void read_process(pid_t pid, struct bench_cpu *cpu)
{
    char path[320];
    char line[1024];
    const char *fields;
    struct dirent *entry;
    DIR *threads;
    FILE *file;

    memset(cpu, 0, sizeof(*cpu));
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    threads = opendir(path);
    while (threads && (entry = readdir(threads)) != NULL) {
        unsigned long long run_ns;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (file) {
            if (fscanf(file, "%llu", &run_ns) == 1)
                cpu->run_ns += run_ns;
            fclose(file);
        }
    }
    if (threads)
        closedir(threads);

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(line, sizeof(line), file) && (fields = strrchr(line, ')')) != NULL) {
        unsigned long long user;
        unsigned long long system;

        if (sscanf(fields + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
                   &system) == 2) {
            cpu->user_ticks = user;
            cpu->system_ticks = system;
        }
    }
    fclose(file);
}

static void read_usage(const struct bench_window *window, struct bench_usage *usage)
{
    char line[512];
    FILE *file = fopen("/proc/stat", "re");

    memset(usage, 0, sizeof(*usage));
    for (unsigned i = 0; i < window->watched_count; i++)
        read_process(window->watched[i], &usage->processes[i]);
    while (file && fgets(line, sizeof(line), file)) {
        unsigned number;
        unsigned long long t[8];
        struct bench_core *core;

        /* The first line, "cpu ", is the sum of all. */
        if (line[3] == ' ' || sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &number,
                                     &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) != 9)
            continue;
        if (usage->core_count == BENCH_CORE_LIMIT)
            break;
        core = &usage->cores[usage->core_count++];
        for (unsigned i = 0; i < 8; i++)
            core->total_ticks += t[i];
        core->busy_ticks = core->total_ticks - t[3] - t[4]; /* less idle and waiting for a disk */
    }
    if (file)
        fclose(file);
}

void bench_window_init(struct bench_window *window)
{
    memset(window, 0, sizeof(*window));
    window->warm_up_ns = 500000000;
    window->duration_ns = 3000000000;
    histogram_reset(&window->latency_ns);
}

bool bench_window_option(struct bench_window *window, int option, const char *text)
{
    switch (option) {
    case 'w':
        window->warm_up_ns = bench_option_duration_ns("warm-up", text);
        return true;
    case 'd':
        window->duration_ns = bench_option_duration_ns("duration", text);
        return true;
    case 'p':
        if (window->watched_count == BENCH_WATCH_LIMIT) {
            fprintf(stderr, "--watch %s: more than %d processes\n", text, BENCH_WATCH_LIMIT);
            exit(2);
        }
        window->watched[window->watched_count++] =
            (pid_t)bench_option_count("watch", text, 1, 1 << 22);
        return true;
    default:
        return false;
    }
}

void bench_window_start(struct bench_window *window, uint64_t now_ns)
{
    window->state = BENCH_WINDOW_WARM_UP;
    window->started_ns = now_ns;
}

bool bench_window_poll(struct bench_window *window, uint64_t now_ns)
{
    if (window->state == BENCH_WINDOW_WARM_UP &&
        now_ns - window->started_ns >= window->warm_up_ns) {
        read_usage(window, &window->at_open);
        window->state = BENCH_WINDOW_OPEN;
        window->opened_ns = now_ns;
    } else if (window->state == BENCH_WINDOW_OPEN &&
               now_ns - window->opened_ns >= window->duration_ns) {
        read_usage(window, &window->at_close);
        window->state = BENCH_WINDOW_CLOSED;
        window->closed_ns = now_ns;
    }
    return window->state != BENCH_WINDOW_CLOSED;
}

void bench_window_completed(struct bench_window *window, uint64_t sent_ns, uint64_t now_ns,
                            uint64_t bytes)
{
    window->requests_total++;
    if (window->state != BENCH_WINDOW_OPEN)
        return;
    window->requests++;
    window->bytes += bytes;
    histogram_add(&window->latency_ns, now_ns - sent_ns);
}

bool bench_window_failed(struct bench_window *window)
{
    return ++window->errors < FAILURE_LIMIT;
}

static void print_watched(const struct bench_window *window)
{
    double us_per_tick = 1e6 / (double)sysconf(_SC_CLK_TCK);

    printf(", \"watched\": [");
    for (unsigned i = 0; i < window->watched_count; i++) {
        const struct bench_cpu *from = &window->at_open.processes[i];
        const struct bench_cpu *to = &window->at_close.processes[i];

        printf("%s{\"pid\": %d, \"cpu_us\": %.1f, \"user_us\": %.0f, \"system_us\": %.0f}",
               i ? ", " : "", (int)window->watched[i], (double)(to->run_ns - from->run_ns) / 1e3,
               (double)(to->user_ticks - from->user_ticks) * us_per_tick,
               (double)(to->system_ticks - from->system_ticks) * us_per_tick);
    }
    printf("], \"cores\": [");
    for (unsigned i = 0; i < window->at_close.core_count; i++) {
        const struct bench_core *from = &window->at_open.cores[i];
        const struct bench_core *to = &window->at_close.cores[i];
        uint64_t total = to->total_ticks - from->total_ticks;

        printf("%s%.3f", i ? ", " : "",
               total ? (double)(to->busy_ticks - from->busy_ticks) / (double)total : 0.0);
    }
    printf("]");
}

int bench_window_print(const struct bench_window *window)
{
    double seconds = (double)(window->closed_ns - window->opened_ns) / 1e9;

    if (window->state != BENCH_WINDOW_CLOSED)
        seconds = 0;
    printf("{\"seconds\": %.6f, \"requests\": %llu, \"requests_per_s\": %.1f, \"bytes\": %llu, "
           "\"errors\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, "
           "\"requests_total\": %llu",
           seconds, (unsigned long long)window->requests,
           seconds > 0 ? (double)window->requests / seconds : 0.0,
           (unsigned long long)window->bytes, (unsigned long long)window->errors,
           (double)histogram_quantile(&window->latency_ns, 0.5) / 1e3,
           (double)histogram_quantile(&window->latency_ns, 0.99) / 1e3,
           (double)window->latency_ns.max / 1e3, (unsigned long long)window->requests_total);
    print_watched(window);
    printf("}\n");
    fflush(stdout);
    return seconds > 0 && window->requests ? 0 : 1;
}
