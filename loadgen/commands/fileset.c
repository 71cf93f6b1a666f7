/* SPDX-License-Identifier: Apache-2.0 */
/* spillload fileset: makes a file set below a local directory, as a web server's document root. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/client/flow_spec.h"
#include "loadgen/commands/commands.h"
#include "loadgen/fileset/fileset.h"

#define THREADS     8
#define MAX_THREADS 256

/* The keys of a flow that describe a set. */
static const char *const set_keys[] = {"files", "set", "depth", "width", "size", "set-seed"};

#define SET_KEYS (sizeof(set_keys) / sizeof(set_keys[0]))

static void usage(FILE *out)
{
    fputs("usage: spillload fileset DIRECTORY --files N [options]\n"
          "\n"
          "Makes a file set below a local directory, for HTTP flows that ask for {file}, or finds "
          "it\n"
          "there and leaves it. The options are the keys of such a flow, which must say the same:\n"
          "\n"
          "  --files N        how many\n"
          "  --set NAME       its top directory in DIRECTORY (default set)\n"
          "  --depth N        levels of directories (default 1)\n"
          "  --width N        directories in each (default 10)\n"
          "  --size SIZE      a size or a distribution of sizes (default 16KiB)\n"
          "  --set-seed N     of sizes and contents (default 1)\n"
          "  --threads N      files that are written at once (default 8)\n"
          "\n"
          "Exit status: 0; 1 when it could not be made; 2 for a wrong command line.\n",
          out);
}

struct request {
    struct flow_spec spec;
    const char *directory;
    unsigned threads;
};

static int complain(const char *what)
{
    fprintf(stderr, "spillload fileset: %s\n", what);
    return 2;
}

static int read_option(struct request *request, const char *key, const char *value)
{
    char problem[FLOW_ERROR_BYTES];
    uint64_t threads;
    size_t i = 0;

    if (strcmp(key, "threads") == 0) {
        if (units_parse_count(value, 1, MAX_THREADS, &threads) != 0)
            return complain("--threads: expected a number from 1 to 256");
        request->threads = (unsigned)threads;
        return 0;
    }
    while (i < SET_KEYS && strcmp(set_keys[i], key) != 0)
        i++;
    if (i == SET_KEYS) {
        fprintf(stderr, "spillload fileset: unknown option --%s, see --help\n", key);
        return 2;
    }
    if (flow_spec_set(&request->spec, FLOW_SENT, key, value, problem) != 0)
        return complain(problem);
    return 0;
}

/* "--key value" or "--key=value"; moves on to the argument after it. */
static int read_argument(struct request *request, int argc, char **argv, int *at)
{
    const char *argument = argv[*at];
    const char *equals = strchr(argument, '=');
    char key[32];

    (*at)++;
    if (strncmp(argument, "--", 2) != 0) {
        if (request->directory)
            return complain("expected one directory, see --help");
        request->directory = argument;
        return 0;
    }
    snprintf(key, sizeof(key), "%.*s",
             equals ? (int)(equals - argument - 2) : (int)strlen(argument) - 2, argument + 2);
    if (equals)
        return read_option(request, key, equals + 1);
    if (*at == argc) {
        fprintf(stderr, "spillload fileset: --%s: expected a value\n", key);
        return 2;
    }
    return read_option(request, key, argv[(*at)++]);
}

static int make(const struct request *request)
{
    char problem[FILESET_PROBLEM_BYTES] = "";
    struct fileset set;
    uint64_t made = 0;

    if (!request->directory || request->spec.set.files == 0)
        return complain("expected DIRECTORY and --files N, see --help");
    if (fileset_init(&set, &request->spec.set, problem) != 0)
        return complain(problem);
    if (fileset_make_local(&set, request->directory, request->threads, &made, problem) != 0) {
        fprintf(stderr, "spillload fileset: %s\n", problem);
        return 1;
    }
    printf("%s/%s: %llu files, %llu of them written now\n", request->directory, set.spec.root,
           (unsigned long long)set.spec.files, (unsigned long long)made);
    return 0;
}

int command_fileset(int argc, char **argv)
{
    struct request *request = memory_zeroed(1, sizeof(*request));
    int status = 0;
    int at = 1;

    flow_spec_init(&request->spec);
    request->threads = THREADS;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        free(request);
        return 0;
    }
    while (at < argc && !status)
        status = read_argument(request, argc, argv, &at);
    if (!status)
        status = make(request);
    free(request);
    return status;
}
