/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillorigin: an embedded service with a set number of slots and a service-time distribution, for
 * HTTP and for NFSv3. The command line is read here; the service is in origin/.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "loadgen/base/standard_streams.h"
#include "loadgen/net/signals.h"
#include "loadgen/origin/origin.h"

static const char usage[] =
    "usage: spillorigin [--http ADDR:PORT] [--nfs ADDR:PORT] [options]\n"
    "\n"
    "An embedded service with known capacity: slots work in parallel, requests beyond them wait\n"
    "in a FIFO. HTTP/1.1 answers any path; NFSv3 and MOUNT share one TCP port. Each protocol has\n"
    "slots of its own.\n"
    "\n"
    "  --http ADDR:PORT      serve HTTP there (port 0: any free one)\n"
    "  --nfs ADDR:PORT       serve NFSv3 and MOUNT there\n"
    "  --slots N             requests served at the same time, per protocol (default 8)\n"
    "  --service DIST        service time: a mean as 10ms (default 0: answer at once), or\n"
    "                        exponential:10ms, lognormal:10ms:1.2, pareto:1.1:1ms:1s, list:FILE\n"
    "  --distribution NAME   of a mean: fixed, exponential, uniform or bimodal (default\n"
    "                        exponential)\n"
    "  --work WHAT           wait, or cpu: burn the service time on a processor (default wait)\n"
    "  --schedule STEPS      capacity in time: '100%:10s 50%:10s 100%', '8:1m 2:1m repeat',\n"
    "                        '400/s:30s 100/s'\n"
    "  --stall WHEN          nothing is served for a while, as every=10s,for=500ms\n"
    "  --error SHARE[:KIND]  errors, may be repeated: 1%:503, 0.5%:reset, 2%:nfs=JUKEBOX, 3%\n"
    "  --retry-after N       seconds said with a 503; 0: none (default 1)\n"
    "  --slow-body RATE      bytes per second of each HTTP body, as 64KiB\n"
    "  --first-byte TIME     between service and HTTP reply\n"
    "  --seed N              of service times and errors (default 1)\n"
    "  --bytes N             HTTP body when the request names none by ?bytes=N (default 128)\n"
    "  --export PATH         exported directory (default /export)\n"
    "  --file NAME=SIZE      a file in it, may be repeated (default data=16MiB)\n"
    "  --memory SIZE         for files that clients make (default 1GiB)\n"
    "  --help                this text\n"
    "\n"
    "Prints 'listening http=ADDR:PORT nfs=ADDR:PORT', then 'ready'. While it runs:\n"
    "  GET /_origin/stats, GET /factor?n=N, and for each setting from --slots to --first-byte\n"
    "  PUT /_origin/slots?value=4[&protocol=nfs]\n";

/* Behind the settings' own numbers. */
enum {
    OPTION_SETTING = 256,
    OPTION_HTTP = OPTION_SETTING + ORIGIN_SETTINGS,
    OPTION_NFS,
    OPTION_SEED,
    OPTION_BYTES,
    OPTION_EXPORT,
    OPTION_FILE,
    OPTION_MEMORY,
    OPTION_HELP,
};

static const struct option own_options[] = {
    {"http", required_argument, NULL, OPTION_HTTP},
    {"nfs", required_argument, NULL, OPTION_NFS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"bytes", required_argument, NULL, OPTION_BYTES},
    {"export", required_argument, NULL, OPTION_EXPORT},
    {"file", required_argument, NULL, OPTION_FILE},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"help", no_argument, NULL, OPTION_HELP},
};

#define OWN_OPTIONS (sizeof(own_options) / sizeof(*own_options))

/* What the command line is read into. */
struct command {
    struct origin_options options;
    const char *files[ORIGIN_FILES];
    char errors[1024]; /* of every --error, with commas between */
};

static int bad_option(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "spillorigin: --%s %s: expected %s\n", option, value, expected);
    return 2;
}

static int read_address(struct origin_options *options, enum origin_protocol protocol,
                        const char *value)
{
    options->serve[protocol] = true;
    if (units_parse_address(value, &options->address[protocol]) == 0)
        return 0;
    return bad_option(origin_protocol_name(protocol), value, "ADDR:PORT, as 127.0.0.1:8080");
}

static int read_setting(struct command *command, enum origin_setting setting, const char *value)
{
    const char *text = value;

    if (setting == ORIGIN_SETTING_ERROR) {
        size_t used = strlen(command->errors);

        snprintf(command->errors + used, sizeof(command->errors) - used, "%s%s", used ? "," : "",
                 value);
        text = command->errors;
    }
    if (origin_setting_read(&command->options.settings, setting, text) == 0)
        return 0;
    if (strncmp(value, "list:", 5) == 0 && *distribution_list_problem()) {
        fprintf(stderr, "spillorigin: --%s: %s\n", origin_setting_name(setting),
                distribution_list_problem());
        return 2;
    }
    return bad_option(origin_setting_name(setting), value, origin_setting_expected(setting));
}

/* 0, or the exit status. */
static int read_own_option(struct command *command, int option, const char *value)
{
    struct origin_options *options = &command->options;

    switch (option) {
    case OPTION_HTTP:
        return read_address(options, ORIGIN_HTTP, value);
    case OPTION_NFS:
        return read_address(options, ORIGIN_NFS, value);
    case OPTION_SEED:
        if (units_parse_count(value, 0, UINT64_MAX, &options->seed) != 0)
            return bad_option("seed", value, "a number");
        return 0;
    case OPTION_BYTES:
        if (units_parse_bytes(value, &options->reply_bytes) != 0)
            return bad_option("bytes", value, "a size, as 128 or 64KiB");
        return 0;
    case OPTION_EXPORT:
        if (value[0] != '/' || strlen(value) > 255 || (value[1] && value[strlen(value) - 1] == '/'))
            return bad_option("export", value, "an absolute path without a slash at its end");
        options->export_path = value;
        return 0;
    case OPTION_FILE:
        if (options->files_count == ORIGIN_FILES)
            return bad_option("file", value, "at most 64 files");
        command->files[options->files_count++] = value;
        return 0;
    case OPTION_MEMORY:
        if (units_parse_bytes(value, &options->memory_bytes) != 0)
            return bad_option("memory", value, "a size, as 512MiB");
        return 0;
    default:
        return 2;
    }
}

/* 0, or the exit status; -1: help was asked for. */
static int read_command_line(struct command *command, int argc, char **argv)
{
    struct option table[ORIGIN_SETTINGS + OWN_OPTIONS + 1] = {0};
    int option;

    for (int i = 0; i < ORIGIN_SETTINGS; i++)
        table[i] = (struct option){origin_setting_name((enum origin_setting)i), required_argument,
                                   NULL, OPTION_SETTING + i};
    memcpy(table + ORIGIN_SETTINGS, own_options, sizeof(own_options));
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == OPTION_HELP)
            return -1;
        int status =
            option >= OPTION_SETTING && option < OPTION_HTTP
                ? read_setting(command, (enum origin_setting)(option - OPTION_SETTING), optarg)
                : read_own_option(command, option, optarg);

        if (status) {
            fputs("Try 'spillorigin --help'.\n", stderr);
            return status;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spillorigin: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    if (!command->options.serve[ORIGIN_HTTP] && !command->options.serve[ORIGIN_NFS]) {
        fprintf(stderr, "spillorigin: nothing to serve: give --http or --nfs, see --help\n");
        return 2;
    }
    if (!origin_settings_agree(&command->options.settings)) {
        fprintf(stderr, "spillorigin: --schedule: rates need a service time and slots: "
                        "give --service, as 10ms\n");
        return 2;
    }
    return 0;
}

/* Prints where it listens; false when that can't be found out or written. */
static bool announce(const struct origin *origin)
{
    char text[UNITS_ADDRESS_TEXT];

    printf("listening");
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        struct sockaddr_storage address;
        socklen_t length = sizeof(address);

        if (!origin->options.serve[i])
            continue;
        if (getsockname(origin->ports[i].listener.io.fd, (void *)&address, &length) < 0)
            return false;
        printf(" %s=%s", origin_protocol_name((enum origin_protocol)i),
               units_format_address((const void *)&address, text));
    }
    printf("\nready\n");
    return fflush(stdout) == 0;
}

static void stop(struct signals *signals)
{
    loop_stop(signals->loop);
}

static int serve(const struct origin_options *options)
{
    struct loop loop;
    struct signals signals = {.io.fd = -1};
    struct origin *origin = calloc(1, sizeof(*origin));
    const char *what = "";
    int error = origin ? loop_init(&loop) : -ENOMEM;

    if (error) {
        fprintf(stderr, "spillorigin: %s\n", strerror(-error));
        free(origin);
        return 1;
    }
    error = signals_init(&signals, &loop, stop);
    if (!error)
        error = origin_init(origin, &loop, options, &what);
    if (!error && !announce(origin))
        error = -errno;
    if (error)
        fprintf(stderr, "spillorigin: %s: %s\n", what, strerror(-error));
    else
        error = loop_run(&loop);
    origin_fini(origin);
    signals_fini(&signals);
    loop_fini(&loop);
    free(origin);
    return error ? 1 : 0;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    static struct command command = {
        .files = {"data=16MiB"},
        .options = {
            .seed = 1, .reply_bytes = 128, .export_path = "/export", .memory_bytes = 1ULL << 30}};

    standard_streams_guard();
    command.options.settings = origin_settings_defaults;
    command.options.files = command.files;
    int status = read_command_line(&command, argc, argv);

    if (status < 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (status > 0)
        return status;
    if (command.options.files_count == 0)
        command.options.files_count = 1;
    raise_descriptor_limit();
    return serve(&command.options);
}
