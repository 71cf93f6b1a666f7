/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flow's own calls (nfs_calls.h: looking up, making and removing the files of its set) over the
 * connections of an NFSv4 flow. Those that find no free slot wait in a queue, in order, and go out
 * when one is free.
 */
#ifndef LOADGEN_CLIENT_NFS4_NFS4_CALLS_H
#define LOADGEN_CLIENT_NFS4_NFS4_CALLS_H

#include "loadgen/client/nfs/nfs_calls.h"
#include "loadgen/client/nfs4/nfs4_connection.h"

struct nfs4_calls {
    struct nfs_caller caller;
    struct nfs4_connection *connections;
    uint32_t count;
    struct nfs_call *first; /* waiting */
    struct nfs_call **last;
};

/* The connections need not be open yet. */
void nfs4_calls_init(struct nfs4_calls *calls, struct nfs4_connection *connections, uint32_t count);

/* The connection with the fewest calls in flight that can take another one; NULL: none can. */
struct nfs4_connection *nfs4_calls_connection(const struct nfs4_calls *calls);

/* A slot may be free: sends what waits. */
void nfs4_calls_pump(struct nfs4_calls *calls);

#endif
