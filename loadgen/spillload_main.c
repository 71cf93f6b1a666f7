/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillload: load for HTTP and NFS servers, and what is done with its results. Here the command is
 * chosen; each is in commands/. Without a command's name the arguments are those of `run`.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/base/standard_streams.h"
#include "loadgen/commands/commands.h"

static const struct command commands[] = {
    {"run", command_run, "sends load and shows throughput, latency and errors"},
    {"compare", command_compare, "two summaries side by side, with ratios"},
    {"merge", command_merge, "summaries of several machines as one"},
    {"plot", command_plot, "summaries as PNG or SVG"},
    {"sweep", command_sweep, "runs over the values of a parameter; the knee"},
    {"fileset", command_fileset, "makes a file set below a local directory"},
    {"trace", command_trace, "makes a trace of load, or shows one"},
    {"fault", command_fault, "interference and faults, bounded and undone"},
    {"profiles", command_profiles, "lists the built-in workloads, or prints one"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void list_commands(FILE *out)
{
    fputs(
        "usage: spillload [COMMAND] ARGUMENTS\n"
        "\n"
        "Commands; the first is meant when none is named, `spillload COMMAND --help` tells more:\n",
        out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
}

/* What was printed has to have arrived: a full disk is no success. */
static int told(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "spillload: standard output: %s\n", strerror(errno ? errno : EIO));
    return status ? status : 1;
}

static int run_command(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";

    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0) {
        const struct command *command = argc > 2 ? find_command(argv[2]) : NULL;
        char *help[] = {argv[0], (char[]){"--help"}, NULL};

        if (command)
            return command->main(2, help);
        list_commands(stdout);
        putchar('\n');
        return command_run(2, help);
    }
    /* The one command that is known as an option too. */
    if (strcmp(word, "--merge") == 0 && find_command("merge"))
        return find_command("merge")->main(argc - 1, argv + 1);
    if (word[0] == '-' || word[0] == '\0')
        return command_run(argc, argv);

    const struct command *command = find_command(word);

    if (command)
        return command->main(argc - 1, argv + 1);
    fprintf(stderr, "spillload: there is no command '%s'\n", word);
    list_commands(stderr);
    return 2;
}

int main(int argc, char **argv)
{
    standard_streams_guard();
    errno = 0;
    return told(run_command(argc, argv));
}
