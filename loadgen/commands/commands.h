/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of spillload, each in a file of its name: `spillload [run] ...`, `spillload plot
 * ...`. A command gets its own arguments (argv[0] is its name), prints its own help for --help, and
 * returns the exit status: 0 good; 1 the work failed; 2 a wrong command line; 3 out of memory.
 */
#ifndef LOADGEN_COMMANDS_COMMANDS_H
#define LOADGEN_COMMANDS_COMMANDS_H

struct command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *help; /* one line */
};

int command_run(int argc, char **argv);      /* sends load; the command when none is named */
int command_sweep(int argc, char **argv);    /* runs over the values of a parameter; the knee */
int command_compare(int argc, char **argv);  /* two summaries side by side */
int command_merge(int argc, char **argv);    /* summaries of several machines as one */
int command_plot(int argc, char **argv);     /* summaries as PNG or SVG */
int command_fileset(int argc, char **argv);  /* makes a file set below a local directory */
int command_trace(int argc, char **argv);    /* makes or shows a trace of load */
int command_fault(int argc, char **argv);    /* interference and faults, bounded and undone */
int command_profiles(int argc, char **argv); /* the named profiles, and their text */

#endif
