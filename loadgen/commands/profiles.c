/* SPDX-License-Identifier: Apache-2.0 */
/* spillload profiles: the built-in workloads, and their text. */
#include <stdio.h>
#include <string.h>

#include "loadgen/commands/commands.h"
#include "loadgen/embedded/embedded.h"

static void usage(FILE *out)
{
    fputs(
        "usage: spillload profiles          lists the built-in workloads\n"
        "       spillload profiles NAME     prints one, as a file to change: spillload --workload\n"
        "\n"
        "They are run by `spillload --profile NAME --target HOST:PORT [--speed N] [--scale N]`.\n",
        out);
}

/* The sentences of its comment, on one line; it begins after the licence's line. */
static void print_summary(const char *text)
{
    const char *line = strchr(text, '\n') + 1;
    const char *between = "";

    for (; line[0] == '#'; line = strchr(line, '\n') + 1) {
        int length = (int)strcspn(line, "\n");

        if (length < 3)
            continue;
        printf("%s%.*s", between, length - 2, line + 2);
        between = "\n                    ";
    }
    putchar('\n');
}

int command_profiles(int argc, char **argv)
{
    struct embedded_file file;

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    if (argc > 2) {
        usage(stderr);
        return 2;
    }
    if (argc == 2) {
        if (!embedded_profile(argv[1], &file)) {
            fprintf(stderr,
                    "spillload: there is no profile '%s'; `spillload profiles` lists them\n",
                    argv[1]);
            return 2;
        }
        fwrite(file.text, 1, file.length, stdout);
        return 0;
    }
    for (size_t i = 0; embedded_profile_name(i); i++) {
        if (!embedded_profile(embedded_profile_name(i), &file))
            continue;
        printf("  %-17s ", file.name);
        print_summary(file.text);
    }
    return 0;
}
