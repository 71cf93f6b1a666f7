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
    "  --service TIME        mean service time, as 10ms (default 0: answer at once)\n"
    "  --distribution NAME   fixed, exponential, uniform or bimodal (default exponential)\n"
    "  --seed N              of the service times (default 1)\n"
    "  --bytes N             HTTP body when the request names none by ?bytes=N (default 128)\n"
    "  --export PATH         exported directory (default /export)\n"
    "  --file NAME=SIZE      a file in it, may be repeated (default data=16MiB)\n"
    "  --help                this text\n"
    "\n"
    "Prints 'listening http=ADDR:PORT nfs=ADDR:PORT', then 'ready'. While it runs:\n"
    "  GET /_origin/stats, PUT /_origin/slots?n=4[&protocol=nfs],\n"
    "  PUT /_origin/service?mean=20ms[&distribution=fixed][&protocol=http]\n";

enum {
    OPTION_HTTP = 256,
    OPTION_NFS,
    OPTION_SLOTS,
    OPTION_SERVICE,
    OPTION_DISTRIBUTION,
    OPTION_SEED,
    OPTION_BYTES,
    OPTION_EXPORT,
    OPTION_FILE,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"http", required_argument, NULL, OPTION_HTTP},
    {"nfs", required_argument, NULL, OPTION_NFS},
    {"slots", required_argument, NULL, OPTION_SLOTS},
    {"service", required_argument, NULL, OPTION_SERVICE},
    {"distribution", required_argument, NULL, OPTION_DISTRIBUTION},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"bytes", required_argument, NULL, OPTION_BYTES},
    {"export", required_argument, NULL, OPTION_EXPORT},
    {"file", required_argument, NULL, OPTION_FILE},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
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

/* 0, or the exit status. */
static int read_option(struct origin_options *options, int option, const char *value,
                       const char **files)
{
    uint64_t number;

    switch (option) {
    case OPTION_HTTP:
        return read_address(options, ORIGIN_HTTP, value);
    case OPTION_NFS:
        return read_address(options, ORIGIN_NFS, value);
    case OPTION_SLOTS:
        if (units_parse_count(value, 0, 1000000, &number) != 0)
            return bad_option("slots", value, "a number from 0 to 1000000");
        options->slots = (uint32_t)number;
        return 0;
    case OPTION_SERVICE:
        if (units_parse_duration_ns(value, &options->time.mean) != 0)
            return bad_option("service", value, "a time with its unit, as 10ms");
        return 0;
    case OPTION_DISTRIBUTION:
        if (distribution_parse(value, &options->time.kind) != 0)
            return bad_option("distribution", value, "fixed, exponential, uniform or bimodal");
        return 0;
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
        files[options->files_count++] = value;
        return 0;
    default:
        return 2;
    }
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
    const char *files[ORIGIN_FILES] = {"data=16MiB"};
    struct origin_options options = {.slots = 8,
                                     .time = {.kind = DISTRIBUTION_EXPONENTIAL, .mean = 0},
                                     .seed = 1,
                                     .reply_bytes = 128,
                                     .export_path = "/export",
                                     .files = files};
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            fputs(usage, stdout);
            return 0;
        }
        int status = read_option(&options, option, optarg, files);

        if (status) {
            fputs("Try 'spillorigin --help'.\n", stderr);
            return status;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spillorigin: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    if (!options.serve[ORIGIN_HTTP] && !options.serve[ORIGIN_NFS]) {
        fprintf(stderr, "spillorigin: nothing to serve: give --http or --nfs, see --help\n");
        return 2;
    }
    if (options.files_count == 0)
        options.files_count = 1;
    raise_descriptor_limit();
    return serve(&options);
}
