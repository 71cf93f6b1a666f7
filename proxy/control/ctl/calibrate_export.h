/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NFSv3 export to be measured: mounted, with a scratch folder in it.
 *
 *      EXPORT/.spillway-calibrate-PID/    file, link, and what the measurements make
 *                                     many/   CALIBRATE_MANY files, to be listed
 *
 * Nothing else is touched. calibrate_export_close() removes the folder with all that is in it.
 */
#ifndef SPILLWAY_CONTROL_CTL_CALIBRATE_EXPORT_H
#define SPILLWAY_CONTROL_CTL_CALIBRATE_EXPORT_H

#include "protocols/rpc/nfs3_client.h"
#include "proxy/control/ctl/calibrate.h"

#define CALIBRATE_FILE_BYTES (UINT64_C(4) << 20) /* of `file`, or a few of the largest WRITEs */
#define CALIBRATE_MANY       64

struct calibrate_handle {
    uint8_t bytes[NFS3_HANDLE_MAX_BYTES];
    uint32_t length;
};

struct calibrate_export {
    struct calibrate_loop loop;
    struct nfs3_client client;
    unsigned timeout_s;
    char path[1025];
    char folder[64];     /* of ours; empty: there is none */
    uint16_t mount_port; /* 0: not mounted */
    struct calibrate_handle root, scratch, many, file, link;
    uint32_t read_max_bytes, write_max_bytes;
    uint32_t xid;
    uint32_t xids[CALIBRATE_LINKS_MAX]; /* of the call under way, by link */
};

static inline struct rpc_slice calibrate_slice(const struct calibrate_handle *handle)
{
    return (struct rpc_slice){handle->bytes, handle->length};
}

/* The next call's xid on this link. */
uint32_t calibrate_export_xid(struct calibrate_export *export, const struct calibrate_link *link);

/*
 * Looks at link->in for the reply to that link's call. CALIBRATE_DONE: *results are those of an
 * accepted call, until link->in changes; *used bytes are the reply's.
 */
enum calibrate_reply calibrate_export_take(struct calibrate_export *export,
                                           struct calibrate_link *link, size_t *used,
                                           struct rpc_slice *results);

/* "HOST[:PORT]/EXPORT". An exit status; what went wrong was said. Close it in any case. */
int calibrate_export_open(struct calibrate_export *export, const struct calibrate_options *options,
                          const char *target);

/* Removes what was made; says what could not be. NULL folder and connections are fine. */
void calibrate_export_close(struct calibrate_export *export);

/* "13 (EACCES)". */
const char *calibrate_status_text(uint32_t status, char *text, size_t size);

#endif
