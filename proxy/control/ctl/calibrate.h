/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillctl calibrate: measures what a server's operations cost and prints the table for
 * spillway.yaml. It talks to the server itself, not to a proxy.
 *
 * Each operation is measured one at a time, then at the depth that saturates the server: the first
 * of 1, 2, 4, ... after which its throughput no longer grows by a tenth. Each measurement is made
 * CALIBRATE_ROUNDS times and the fastest counts: whatever else goes on only makes it slower.
 */
#ifndef SPILLWAY_CONTROL_CTL_CALIBRATE_H
#define SPILLWAY_CONTROL_CTL_CALIBRATE_H

#include "proxy/control/ctl/calibrate_loop.h"
#include "proxy/control/ctl/calibrate_table.h"

#define CALIBRATE_ROUNDS 3

struct calibrate_options {
    unsigned timeout_s;  /* longest wait for a connection or an answer */
    unsigned depth;      /* 0: to be found */
    uint64_t time_ns;    /* of each run */
    uint32_t uid, gid;   /* of NFS calls */
    unsigned mount_port; /* 0: that of NFS, else what the portmapper says */
    const char *put_url; /* HTTP: where files may be put and deleted; NULL: neither is measured */
};

/* Exit statuses, as in spillctl(8). */
enum { CALIBRATE_OK = 0, CALIBRATE_REFUSED = 1, CALIBRATE_USAGE = 64, CALIBRATE_UNREACHABLE = 69 };

/* The command with its arguments, argv[0] being "calibrate". Exit status; whatever went wrong was
 * said. */
int calibrate_command(int argc, char **argv, unsigned timeout_s, bool json);

/* ---- for the protocols */

/* Fill the table. Exit status; what went wrong was said. */
int calibrate_nfs(const struct calibrate_options *options, const char *target,
                  struct calibrate_table *table);
int calibrate_http(const struct calibrate_options *options, char *const *urls, int count,
                   struct calibrate_table *table);

/* "spillctl: TEXT" on stderr. */
void calibrate_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The depth that saturates the server with this work. 0 when it failed (loop->error). */
unsigned calibrate_find_depth(struct calibrate_loop *loop, const struct calibrate_work *work,
                              const struct calibrate_options *options);

/*
 * One run of at most options->time_ns; puts its result into `row`: alone at depth 1, else busy. Of
 * the run's time requests that are not counted get their part by how long they were waited for. 0,
 * or -1 (loop->error).
 */
int calibrate_measure(struct calibrate_loop *loop, const struct calibrate_work *work,
                      const struct calibrate_options *options, unsigned depth,
                      struct calibrate_row *row);

/* "[v6]:PORT", "HOST:PORT", "HOST", "HOST:" taken apart in place; false when it is none. *port is
 * left alone when there is none. */
bool calibrate_split_host(char *text, char **host, char **port);

#endif
