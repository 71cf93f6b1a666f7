/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillway: the proxy. Options, start-up in the order that privileges demand, signals, the end.
 *
 *      read and check the file -> logs -> limits -> listen -> admin sockets -> pid file -> drop
 * privileges
 *      -> workers -> signals: HUP reload, USR1 reopen logs, TERM and INT drain (a second one: stop)
 */
#include "proxy/control/access_log.h"
#include "proxy/control/admin_server.h"
#include "proxy/control/log.h"
#include "proxy/control/version.h"
#include "proxy/core/admin_ops.h"
#include "proxy/core/process.h"
#include "proxy/core/runtime.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CONFIG_PATH "/etc/spillway.yaml"
#define DRAIN_POLL_NS       20000000L

enum { EXIT_CONFIG = 78, EXIT_USAGE = 64 };

static void usage(FILE *out)
{
    fprintf(out,
            "usage: spillway [-f FILE] [-c]\n"
            "  -f, --config FILE   configuration (default " DEFAULT_CONFIG_PATH ")\n"
            "  -c, --check         check the configuration and exit: 0 when it is good\n"
            "      --help-config   every key of the configuration, its type, default and meaning\n"
            "  -V, --version       version\n"
            "  -h, --help          this text\n"
            "Signals: HUP reloads the configuration, USR1 opens the logs again, TERM and INT drain "
            "and stop;\n"
            "a second TERM or INT stops at once. See spillway(8) and spillway.yaml(5).\n");
}

struct options {
    const char *path;
    bool check;
};

/* True to go on; else *status is the exit status. */
static bool parse_options(int argc, char **argv, struct options *options, int *status)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'f'}, {"check", no_argument, NULL, 'c'},
        {"help-config", no_argument, NULL, 'k'},  {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    int option;

    *status = EXIT_SUCCESS;
    while ((option = getopt_long(argc, argv, "f:cVh", longs, NULL)) != -1) {
        switch (option) {
        case 'f':
            options->path = optarg;
            break;
        case 'c':
            options->check = true;
            break;
        case 'k':
            config_print_reference(stdout);
            return false;
        case 'V':
            printf("spillway %s\n", SPILLWAY_VERSION);
            return false;
        case 'h':
            usage(stdout);
            return false;
        default:
            usage(stderr);
            *status = EXIT_USAGE;
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spillway: unexpected argument '%s'\n", argv[optind]);
        usage(stderr);
        *status = EXIT_USAGE;
        return false;
    }
    return true;
}

static struct config *load(const char *path)
{
    struct config *config = NULL;
    struct config_errors errors;

    config_errors_init(&errors);
    config_load(path, &config, &errors);
    config_errors_print(&errors, stderr);
    config_errors_fini(&errors);
    return config;
}

/* ------------------------------------------------------------------ signals */

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    /* Every thread inherits this: signals come to the main thread's sigwait alone. */
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void reopen_logs(void)
{
    int error = log_reopen();

    if (error == 0)
        error = access_log_reopen();
    if (error < 0)
        log_error("can't open a log again: %s; writing goes on to the old file", strerror(-error));
}

static void serve(struct runtime *runtime, const sigset_t *set)
{
    char why[4096];

    for (;;) {
        int number = sigwaitinfo(set, NULL);
        if (number == SIGHUP) {
            reopen_logs();
            admin_reload(runtime, why, sizeof(why));
        } else if (number == SIGUSR1) {
            reopen_logs();
        } else if (number == SIGTERM || number == SIGINT) {
            log_notice("%s: draining", strsignal(number));
            return;
        }
    }
}

/* Waits until every client is gone, the limit is over, or another signal asks for the end. */
static void drain(struct runtime *runtime, const sigset_t *set)
{
    uint64_t deadline_ns = loop_clock_ns() + runtime_drain(runtime);

    while (runtime_sessions(runtime) > 0) {
        struct timespec wait = {.tv_nsec = DRAIN_POLL_NS};
        int number = sigtimedwait(set, NULL, &wait);
        if (number == SIGTERM || number == SIGINT) {
            log_warning("%s again: stopping with %u connections open", strsignal(number),
                        runtime_sessions(runtime));
            return;
        }
        if (loop_clock_ns() > deadline_ns) {
            log_warning("drain time-out: stopping with %u connections open",
                        runtime_sessions(runtime));
            return;
        }
    }
}

/* ------------------------------------------------------------------ start */

static bool open_logs(const struct config *config)
{
    int error = log_open(&config->log);

    if (error < 0) {
        fprintf(stderr, "spillway: can't open the log %s: %s\n", config->log.target.text,
                strerror(-error));
        return false;
    }
    error = access_log_open(&config->log);
    if (error < 0) {
        fprintf(stderr, "spillway: can't open the access log %s: %s\n", config->log.access.text,
                strerror(-error));
        return false;
    }
    return true;
}

static bool start(struct runtime *runtime, const struct config *config, struct admin_server **admin)
{
    if (runtime_listen(runtime) < 0 || admin_server_open(runtime, &config->admin, admin) < 0)
        return false;
    if (process_write_pid_file(config->pid_file) < 0 || process_drop_privileges(config) < 0)
        return false;
    if (runtime_start(runtime) < 0)
        return false;
    return *admin == NULL || admin_server_start(*admin) == 0;
}

int main(int argc, char **argv)
{
    struct options options = {.path = DEFAULT_CONFIG_PATH};
    struct admin_server *admin = NULL;
    sigset_t signals;
    int status;

    if (!parse_options(argc, argv, &options, &status))
        return status;
    struct config *config = load(options.path);
    if (config == NULL)
        return EXIT_CONFIG;
    if (options.check) {
        printf("%s: the configuration is good\n", options.path);
        config_free(config);
        return EXIT_SUCCESS;
    }
    if (!open_logs(config)) {
        config_free(config);
        return EXIT_FAILURE;
    }
    block_signals(&signals);
    process_raise_open_files(config->open_files);
    struct runtime *runtime = runtime_create(config, options.path);
    if (runtime == NULL)
        return EXIT_FAILURE;
    status = EXIT_FAILURE;
    if (start(runtime, config, &admin)) {
        status = EXIT_SUCCESS;
        log_notice("spillway %s: ready, %u worker%s", SPILLWAY_VERSION, runtime->worker_count,
                   runtime->worker_count == 1 ? "" : "s");
        serve(runtime, &signals);
        drain(runtime, &signals);
    }
    admin_server_stop(admin);
    process_remove_pid_file();
    runtime_destroy(runtime);
    if (status == EXIT_SUCCESS)
        log_notice("stopped");
    access_log_close();
    log_close();
    return status;
}
