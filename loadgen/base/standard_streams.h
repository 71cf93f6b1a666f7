/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input, output and error of a program that was started with some of them closed. Without
 * a guard the next file or socket takes the number, and what is meant for the user goes into it.
 */
#ifndef LOADGEN_BASE_STANDARD_STREAMS_H
#define LOADGEN_BASE_STANDARD_STREAMS_H

/* First in main(). A closed one stays unusable (EBADF), but its number is taken. */
void standard_streams_guard(void);

#endif
