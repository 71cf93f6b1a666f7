/* SPDX-License-Identifier: Apache-2.0 */
/* The process in numbers: see process_view.h. */
#include "proxy/control/api/process_view.h"

#include "proxy/control/access_log.h"
#include "proxy/control/log.h"
#include "proxy/control/version.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Open descriptors but for the one that looks; -1 when /proc is not there. */
static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = -1;

    if (folder == NULL)
        return -1;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char text[128];
    long long pages = -1;

    if (file == NULL)
        return -1;
    if (fgets(text, sizeof(text), file) == NULL || sscanf(text, "%*s %lld", &pages) != 1)
        pages = -1;
    fclose(file);
    return pages < 0 ? -1 : (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double descriptor_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : -1;
}

size_t process_view_take(struct process_value values[PROCESS_VALUES_MAX], struct runtime *runtime)
{
    struct status_view status;
    size_t count = 0;

    admin_status(runtime, &status);
    double uptime_s = (double)status.uptime_ns / 1e9;
    const struct process_value all[] = {
        {"spillway_build_info", "The version that runs.", "version", SPILLWAY_VERSION, 1, false},
        {"spillway_uptime_seconds", "Time since the start.", NULL, NULL, uptime_s, false},
        {"spillway_workers", "Worker threads.", NULL, NULL, status.workers, false},
        {"spillway_sessions", "Client connections open now.", NULL, NULL, (double)status.sessions,
         false},
        {"spillway_draining", "1 while the process finishes what is in progress to stop.", NULL,
         NULL, status.draining, false},
        {"spillway_config_reloads_total", "Configurations loaded again, by result.", "result", "ok",
         (double)status.reloads_done, true},
        {"spillway_config_reloads_total", NULL, "result", "failed", (double)status.reloads_failed,
         true},
        {"spillway_log_lines_dropped_total", "Log lines that could not be written.", "log",
         "process", (double)log_dropped(), true},
        {"spillway_log_lines_dropped_total", NULL, "log", "access", (double)access_log_dropped(),
         true},
        {"process_cpu_seconds_total", "CPU time used, user and system.", NULL, NULL, cpu_seconds(),
         true},
        {"process_open_fds", "Open file descriptors.", NULL, NULL, count_descriptors(), false},
        {"process_max_fds", "The most file descriptors that may be open.", NULL, NULL,
         descriptor_limit(), false},
        {"process_resident_memory_bytes", "Memory in use.", NULL, NULL, resident_bytes(), false},
        {"process_start_time_seconds", "The start, in seconds since 1970.", NULL, NULL,
         (double)time(NULL) - uptime_s, false},
    };
    _Static_assert(sizeof(all) / sizeof(all[0]) <= PROCESS_VALUES_MAX, "room for every value");

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i].value >= 0)
            values[count++] = all[i];
    }
    return count;
}
