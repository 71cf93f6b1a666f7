/* SPDX-License-Identifier: Apache-2.0 */
/* The calibrate command: its words, and what the protocols have in common. See calibrate.h. */
#include "proxy/control/ctl/calibrate.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIME_MS     100
#define TIME_MS_MAX 60000
#define GROWTH      1.1 /* of throughput, below which twice the depth is not worth it */

void calibrate_say(const char *format, ...)
{
    va_list args;

    fputs("spillctl: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

bool calibrate_split_host(char *text, char **host, char **port)
{
    char *colon = strrchr(text, ':');

    *host = text;
    if (text[0] == '[') {
        char *end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        colon = end[1] == ':' ? end + 1 : NULL;
        *end = '\0';
        *host = text + 1;
    } else if (colon != NULL && strchr(text, ':') != colon) {
        return false; /* an IPv6 address needs its brackets */
    }
    if (colon != NULL) {
        *colon = '\0';
        if (colon[1] != '\0')
            *port = colon + 1;
    }
    return **host != '\0' && strspn(*port, "0123456789") == strlen(*port);
}

/* ------------------------------------------------------------------ measuring */

unsigned calibrate_find_depth(struct calibrate_loop *loop, const struct calibrate_work *work,
                              const struct calibrate_options *options)
{
    unsigned best = 1;
    double best_rate = 0;

    for (unsigned depth = 1; depth <= CALIBRATE_LINKS_MAX / 2 && !calibrate_stopped; depth *= 2) {
        struct calibrate_run run;
        if (calibrate_loop_run(loop, work, depth, options->time_ns, &run) < 0)
            return 0;
        double rate = run.elapsed_ns > 0 ? (double)run.completions / (double)run.elapsed_ns : 0;
        if (depth > 1 && rate < GROWTH * best_rate)
            break;
        best = depth;
        best_rate = rate;
    }
    return best;
}

int calibrate_measure(struct calibrate_loop *loop, const struct calibrate_work *work,
                      const struct calibrate_options *options, unsigned depth,
                      struct calibrate_row *row)
{
    struct calibrate_run run;

    if (calibrate_loop_run(loop, work, depth, options->time_ns, &run) < 0)
        return -1;
    if (run.completions == 0 || row == NULL)
        return 0;
    double count = (double)run.completions;
    row->bytes = (double)(run.sent_bytes + run.received_bytes) / count;
    row->samples += run.completions;
    if (depth == 1)
        row->alone_us = (double)run.waited_ns / count / 1e3;
    else
        row->busy_us = (double)run.elapsed_ns / count / 1e3 * (double)run.waited_ns /
                       (double)run.waited_all_ns;
    return 0;
}

/* ------------------------------------------------------------------ the command line */

static void usage(FILE *out)
{
    fprintf(out,
            "usage: spillctl [-t SECONDS] calibrate [OPTION...] nfs HOST[:PORT]/EXPORT\n"
            "       spillctl [-t SECONDS] calibrate [OPTION...] http URL...\n"
            "Measures what a server's operations cost and prints a `cost` for a pool. The server\n"
            "should have nothing else to do. NFS: works in a folder of the export that it makes\n"
            "and removes.\n"
            "  --time MS          of each measurement, made three times (default 100)\n"
            "  --depth N          requests at a time when busy (default: found)\n"
            "  --uid N, --gid N   NFS: as this user (default: you)\n"
            "  --mount-port N     NFS: of the MOUNT service (default: that of NFS, or portmapped)\n"
            "  --put URL          HTTP: also PUT and DELETE, of files made below this URL\n"
            "  -j, --json         one JSON object\n");
}

static int misused(const char *what, const char *word)
{
    calibrate_say("%s '%s'; see spillctl calibrate --help", what, word);
    return CALIBRATE_USAGE;
}

static bool parse_range(const char *text, unsigned long least, unsigned long most,
                        unsigned long *number)
{
    char *end;

    errno = 0;
    *number = strtoul(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *number >= least &&
           *number <= most;
}

enum { OPTION_TIME = 256, OPTION_DEPTH, OPTION_UID, OPTION_GID, OPTION_MOUNT_PORT, OPTION_PUT };

static int take_number(int option, const char *text, struct calibrate_options *options)
{
    unsigned long number;

    switch (option) {
    case OPTION_TIME:
        if (!parse_range(text, 1, TIME_MS_MAX, &number))
            return misused("--time takes milliseconds from 1 to 60000, not", text);
        options->time_ns = number * UINT64_C(1000000);
        break;
    case OPTION_DEPTH:
        if (!parse_range(text, 2, CALIBRATE_LINKS_MAX, &number))
            return misused("--depth takes a number from 2 to 128, not", text);
        options->depth = (unsigned)number;
        break;
    case OPTION_MOUNT_PORT:
        if (!parse_range(text, 1, 65535, &number))
            return misused("--mount-port takes a number from 1 to 65535, not", text);
        options->mount_port = (unsigned)number;
        break;
    default:
        if (!parse_range(text, 0, UINT32_MAX - 1, &number))
            return misused("a user or group is a number from 0 to 4294967294, not", text);
        *(option == OPTION_UID ? &options->uid : &options->gid) = (uint32_t)number;
        break;
    }
    return CALIBRATE_OK;
}

/* CALIBRATE_OK to go on; -1: help was asked for. */
static int take_options(int argc, char **argv, struct calibrate_options *options, bool *json)
{
    static const struct option longs[] = {
        {"time", required_argument, NULL, OPTION_TIME},
        {"depth", required_argument, NULL, OPTION_DEPTH},
        {"uid", required_argument, NULL, OPTION_UID},
        {"gid", required_argument, NULL, OPTION_GID},
        {"mount-port", required_argument, NULL, OPTION_MOUNT_PORT},
        {"put", required_argument, NULL, OPTION_PUT},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    int status = CALIBRATE_OK;

    optind = 0;
    while (status == CALIBRATE_OK && (option = getopt_long(argc, argv, "jh", longs, NULL)) != -1) {
        switch (option) {
        case 'j':
            *json = true;
            break;
        case 'h':
            usage(stdout);
            return -1;
        case OPTION_PUT:
            options->put_url = optarg;
            break;
        case '?':
            fprintf(stderr, "see spillctl calibrate --help\n");
            return CALIBRATE_USAGE;
        default:
            status = take_number(option, optarg, options);
            break;
        }
    }
    return status;
}

/* ------------------------------------------------------------------ the command */

static void on_signal(int number)
{
    calibrate_stopped = number;
}

static void print(const struct calibrate_table *table, bool json)
{
    if (!json) {
        calibrate_table_print(table, stdout);
        return;
    }
    json_t *object = calibrate_table_json(table);
    json_dumpf(object, stdout, JSON_INDENT(2));
    fputc('\n', stdout);
    json_decref(object);
}

static int run(const struct calibrate_options *options, char *const *words, int count, bool json)
{
    static struct calibrate_table table;
    const struct sigaction stop = {.sa_handler = on_signal};
    int status;

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    table = (struct calibrate_table){.protocol = words[0]};
    if (strcmp(words[0], "nfs") == 0)
        status = calibrate_nfs(options, words[1], &table);
    else
        status = calibrate_http(options, words + 1, count - 1, &table);
    if (calibrate_stopped) {
        calibrate_say("stopped by signal %d", (int)calibrate_stopped);
        status = CALIBRATE_REFUSED;
    } else if (status == CALIBRATE_OK) {
        print(&table, json);
    }
    calibrate_table_fini(&table);
    return status;
}

int calibrate_command(int argc, char **argv, unsigned timeout_s, bool json)
{
    struct calibrate_options options = {
        .timeout_s = timeout_s,
        .time_ns = TIME_MS * UINT64_C(1000000),
        .uid = geteuid(),
        .gid = getegid(),
    };
    int status = take_options(argc, argv, &options, &json);
    int count = argc - optind;
    char **words = argv + optind;

    if (status != CALIBRATE_OK)
        return status < 0 ? CALIBRATE_OK : status;
    if (count == 0) {
        usage(stderr);
        return CALIBRATE_USAGE;
    }
    if (strcmp(words[0], "nfs") != 0 && strcmp(words[0], "http") != 0)
        return misused("calibrate takes nfs or http, not", words[0]);
    if (count < 2)
        return misused("nothing to calibrate after", words[0]);
    if (strcmp(words[0], "nfs") == 0 && count > 2)
        return misused("one export at a time; what about", words[2]);
    if (strcmp(words[0], "nfs") == 0 && options.put_url != NULL)
        return misused("--put is for http, not", words[0]);
    return run(&options, words, count, json);
}
