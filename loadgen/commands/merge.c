/* SPDX-License-Identifier: Apache-2.0 */
/* spillload merge: summaries of several machines that loaded one service at the same time. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/commands/commands.h"
#include "loadgen/results/output.h"
#include "loadgen/results/summary/summary_merge.h"
#include "loadgen/results/table.h"
#include "loadgen/results/warnings.h"

struct request {
    const char *json_path;
    bool force;
};

static void usage(FILE *out)
{
    fputs("usage: spillload merge A.json B.json [...] [options]\n"
          "\n"
          "Makes one run of several that went on at the same time, as a service was loaded from\n"
          "several machines: flows of one name are added up, histograms and all, so percentiles\n"
          "are those of all requests; seconds are laid beside each other by the wall clock.\n"
          "\n"
          "  --json FILE   writes the merged summary\n"
          "  --force       merges runs that did not overlap in time\n"
          "  --help        this text\n"
          "\n"
          "Exit status: 0; 1 when a file can't be used or runs do not overlap; 2 for a wrong\n"
          "command line.\n",
          out);
}

/* What the merged figures do not show. */
static void notes(char **paths, const struct summary *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const char *first = parts[0].command;
        const char *other = parts[i].command;

        if (first && other && strcmp(first, other) != 0)
            fprintf(stderr, "note: the commands differ:\n  %s: %s\n  %s: %s\n", paths[0], first,
                    paths[i], other);
        if (parts[0].seed == parts[i].seed)
            fprintf(stderr,
                    "note: %s and %s used the same seed %llu: their flows of one place asked for "
                    "the same things at the same times unless they have seeds of their own\n",
                    paths[0], paths[i], (unsigned long long)parts[0].seed);
    }
}

/* False when the parts must not be merged. */
static bool check_overlap(const struct request *request, const struct summary *parts, size_t count)
{
    double overlap_s = summary_overlap_s(parts, count);
    double shortest_s = parts[0].measured_s;

    for (size_t i = 1; i < count; i++)
        shortest_s = parts[i].measured_s < shortest_s ? parts[i].measured_s : shortest_s;
    if (overlap_s <= 0 && !request->force) {
        fprintf(stderr,
                "spillload merge: the runs did not measure at the same time (%.1f s apart); "
                "adding their rates would show a load that never was; --force does it\n",
                -overlap_s);
        return false;
    }
    if (overlap_s <= 0)
        fputs("warning: the runs did not measure at the same time: the added rates are of a load "
              "that never was\n",
              stderr);
    else if (overlap_s < 0.9 * shortest_s)
        fprintf(stderr,
                "warning: the runs measured only %.1f s of %.1f s together: the added rates are "
                "higher than what the service bore for the rest\n",
                overlap_s, shortest_s);
    return true;
}

static int merge(const struct request *request, char **paths, const struct summary *parts,
                 size_t count)
{
    struct summary merged;
    struct output json;
    int status = 0;

    if (!check_overlap(request, parts, count) || output_open(&json, request->json_path, true) != 0)
        return 1;
    notes(paths, parts, count);
    summary_merge(&merged, parts, count);
    printf("%zu runs, %.1f s\n", count, merged.measured_s);
    table_print(stdout, &merged);
    if (fflush(stdout) != 0) {
        fputs("spillload merge: standard output could not be written\n", stderr);
        status = 1;
    }
    warnings_print(stderr, &merged);
    if (json.file)
        summary_write(json.file, &merged);
    if (!output_finish(&json))
        status = 1;
    summary_fini(&merged);
    return status;
}

/* -1: go on. */
static int read_options(struct request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", required_argument, NULL, 'j'},
        {"force", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (option == 'j')
            request->json_path = optarg;
        else if (option == 'f')
            request->force = true;
        else
            return 2;
    }
    if (argc - optind < 2) {
        fputs("spillload merge: expected two summaries or more (see --help)\n", stderr);
        return 2;
    }
    return -1;
}

int command_merge(int argc, char **argv)
{
    struct request request = {0};
    char error[SUMMARY_ERROR_BYTES];
    int status = read_options(&request, argc, argv);

    if (status >= 0)
        return status;
    size_t count = (size_t)(argc - optind);
    size_t read = 0;
    struct summary *parts = memory_zeroed(count, sizeof(*parts));

    for (status = 0; read < count && status == 0;) {
        status = summary_read(argv[optind + (int)read], &parts[read], error);
        if (status == 0)
            read++;
    }
    if (status != 0)
        fprintf(stderr, "spillload merge: %s\n", error);
    status = status != 0 ? 1 : merge(&request, argv + optind, parts, count);
    for (size_t i = 0; i < read; i++)
        summary_fini(&parts[i]);
    free(parts);
    return status;
}
