/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What spillsim simulates, each with its own command line: argv[0] is the program's name. The exit
 * status is 0; 1 when a file could not be written; 2 for a wrong command line.
 */
#ifndef BENCH_SIM_COMMANDS_H
#define BENCH_SIM_COMMANDS_H

int array_command(int argc, char **argv); /* flows, a scheduler, a disk array */
int gate_command(int argc, char **argv);  /* an admission policy in front of slots */
int link_command(int argc, char **argv);  /* the same before a link with TCP senders */

#endif
