/* SPDX-License-Identifier: Apache-2.0 */
/* spillsim: which simulation; each has its own file. */
#include <stdio.h>
#include <string.h>

#include "bench/sim/commands.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} simulations[] = {
    {"array", array_command, "flows of requests, a scheduler and a disk array"},
    {"gate", gate_command, "an admission policy in front of a pool of slots"},
    {"link", link_command, "an admission policy before a link with TCP senders"},
};

#define SIMULATIONS (sizeof(simulations) / sizeof(simulations[0]))

static void usage(FILE *out)
{
    fputs("usage: spillsim WHAT [options]\n"
          "\n"
          "Simulates in virtual time, with the same code that the proxy runs. The same command\n"
          "gives the same figures on every machine. WHAT is one of\n"
          "\n",
          out);
    for (size_t i = 0; i < SIMULATIONS; i++)
        fprintf(out, "  %-8s %s\n", simulations[i].name, simulations[i].help);
    fputs("\n'spillsim WHAT --help' lists its options.\n", out);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("spillsim: what to simulate is missing: array, gate or link; see --help\n", stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < SIMULATIONS; i++) {
        if (strcmp(argv[1], simulations[i].name) != 0)
            continue;
        argv[1] = argv[0]; /* what getopt says begins with the program's name */
        return simulations[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr,
            "spillsim: '%s': expected what to simulate first: array, gate or link; see --help\n",
            argv[1]);
    return 2;
}
