/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3 and MOUNT operations on the origin's files: one call in, one reply out. */
#ifndef LOADGEN_ORIGIN_NFS_ORIGIN_NFS3_H
#define LOADGEN_ORIGIN_NFS_ORIGIN_NFS3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/origin/origin.h"

/* Room for any reply's head: all but READ data and directory listings. */
#define ORIGIN_NFS3_REPLY_BYTES 512

#define ORIGIN_NFS3_IO_BYTES        (1U << 20) /* largest READ and WRITE, as FSINFO says */
#define ORIGIN_NFS3_DIRECTORY_BYTES (32U * 1024)

/* The reply is the head, then the data, then zeros up to a multiple of 4. */
struct origin_nfs3_reply {
    size_t head_bytes; /* in the caller's buffer, mark included */
    const uint8_t *data;
    uint32_t data_bytes;
    bool stays;  /* data may be pointed to for as long as the origin lives; else copy it before
                    the next call is carried out */
    bool served; /* the call is one that takes service time */
    bool reset;  /* no reply: the connection is to be reset */
};

/*
 * Carries out the call in payload[0..length) and writes its reply into a buffer of
 * ORIGIN_NFS3_REPLY_BYTES. False when the payload is no call at all: nothing can be answered.
 */
bool origin_nfs3_execute(struct origin_port *port, const uint8_t *payload, size_t length,
                         uint8_t *buffer, struct origin_nfs3_reply *reply);

#endif
