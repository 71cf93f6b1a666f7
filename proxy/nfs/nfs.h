/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NFS side of the proxy, as the workers see it.
 *
 *      client conn ── nfs_session ── nfs_exchange ── gate ──┐
 *                          │                                v
 *                     nfs_binding ─────────────── nfs_server_conn ── server conn
 *
 * A session's calls (NFSv3, NFSv4, MOUNT, NFSACL) are scheduled one by one and go out on the
 * one server connection that belongs to this client connection, so that the server sees its clients
 * apart. Records pass unchanged: xids, credentials and file handles are the client's and the
 * server's own. See internal.h.
 */
#ifndef SPILLWAY_NFS_NFS_H
#define SPILLWAY_NFS_NFS_H

#include "proxy/core/worker.h"

/* Per-worker state: free objects, calls that outlived their client, what is known of mount
 * services. */
struct nfs_worker *nfs_worker_create(struct worker *worker);
/* Closes every session and server connection; after the loop has ended. NULL is accepted. */
void nfs_worker_destroy(struct nfs_worker *nfs);

/* Takes over an accepted, non-blocking socket. */
void nfs_session_start(struct worker *worker, unsigned listener, int fd,
                       const struct sockaddr_storage *client);

#endif
