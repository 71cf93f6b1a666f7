/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a flow creates and removes while it runs. Each has a number, and a name made of it,
 * the flow's name, its seed and the run, so that no other flow or run has it; and the directory it
 * was put into.
 *
 *   CREATE sent ─► its own ── done ──► live ── REMOVE sent ─► its own ── done ─► gone
 *                     └── outcome unknown ──► left over ◄── outcome unknown ──┘
 *
 * A live file is taken by one REMOVE alone, so that a REMOVE always finds its file. What is live or
 * left over at the end is removed then.
 */
#ifndef LOADGEN_CLIENT_NFS_NFS_NAMES_H
#define LOADGEN_CLIENT_NFS_NFS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nfs_name {
    uint64_t number;
    uint64_t directory; /* of the set; UINT64_MAX: its root */
};

struct nfs_name_list {
    struct nfs_name *names;
    size_t count;
    size_t capacity;
};

struct nfs_names {
    char prefix[96];
    uint64_t next;
    struct nfs_name_list live;
    struct nfs_name_list left_over;
};

void nfs_names_init(struct nfs_names *names, const char *flow, uint64_t seed);
void nfs_names_fini(struct nfs_names *names);

/* A name that nothing has. */
struct nfs_name nfs_names_new(struct nfs_names *names, uint64_t directory);
/* Takes a live one, chosen by a number drawn at random; false when there is none. */
bool nfs_names_take(struct nfs_names *names, uint64_t random, struct nfs_name *out);
/* It exists; it may exist. */
void nfs_names_live(struct nfs_names *names, struct nfs_name name);
void nfs_names_left_over(struct nfs_names *names, struct nfs_name name);
/* The next one to be removed at the end; false when all were given. */
bool nfs_names_next_leftover(struct nfs_names *names, struct nfs_name *out);

void nfs_names_text(const struct nfs_names *names, uint64_t number, char out[256]);

#endif
