/* SPDX-License-Identifier: Apache-2.0 */
/* MNT and LOOKUP over a blocking connection each: before a load starts, speed is of no matter. */
#include "bench/tools/nfs_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3_client.h"
#include "protocols/rpc/rpc_message.h"
#include "protocols/rpc/rpc_record.h"

#define ANSWER_LIMIT_S 5
#define REPLY_BYTES    8192
#define MNT_XID        1
#define LOOKUP_XID     2

static const struct rpc_identity root = {.sys = true, .machine = "bench"};

/* Reads one record of any fragments. Returns its payload's length or a negative errno. */
static ssize_t receive_record(int fd, uint8_t *payload, size_t size)
{
    size_t used = 0;
    bool last = false;

    while (!last) {
        uint8_t mark[RPC_RECORD_MARK_BYTES];
        uint32_t length;

        if (recv(fd, mark, sizeof(mark), MSG_WAITALL) != sizeof(mark))
            return -EIO;
        last = mark[0] & 0x80;
        length = rpc_load_u32(mark) & 0x7fffffff;
        if (length > size - used)
            return -EMSGSIZE;
        if (length && recv(fd, payload + used, length, MSG_WAITALL) != (ssize_t)length)
            return -EIO;
        used += length;
    }
    return (ssize_t)used;
}

/* Sends one call and receives its accepted reply; returns the payload's length or an error. */
static ssize_t ask(const struct units_address *server, const uint8_t *call, size_t length,
                   uint8_t *payload, size_t size, struct rpc_reply *reply)
{
    struct timeval limit = {.tv_sec = ANSWER_LIMIT_S};
    int fd = socket(server->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ssize_t got = -1;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (const struct sockaddr *)&server->address, server->length) < 0 ||
        send(fd, call, length, MSG_NOSIGNAL) != (ssize_t)length)
        got = -errno;
    else
        got = receive_record(fd, payload, size);
    close(fd);
    if (got < 0)
        return got;
    if (rpc_parse_reply(payload, (size_t)got, reply) != RPC_PARSE_OK || reply->denied ||
        reply->accept != RPC_ACCEPT_SUCCESS)
        return -EPROTO;
    return got;
}

static int keep(struct nfs_lookup_handle *handle, struct rpc_slice found)
{
    if (found.len == 0 || found.len > sizeof(handle->data))
        return -EPROTO;
    handle->bytes = found.len;
    memcpy(handle->data, found.data, found.len);
    return 0;
}

static int ask_mount(const struct units_address *server, const char *export_path,
                     struct nfs_lookup_handle *handle)
{
    uint8_t call[MOUNT3_CALL_MAX_BYTES];
    uint8_t payload[REPLY_BYTES];
    struct rpc_reply reply = {0};
    struct mount3_reply mount;
    size_t length = mount3_write_mnt_call(call, sizeof(call), MNT_XID, &root, export_path);
    ssize_t got = ask(server, call, length, payload, sizeof(payload), &reply);

    if (got < 0)
        return (int)got;
    if (mount3_parse_mnt_reply(payload + reply.body_offset, (size_t)got - reply.body_offset,
                               &mount) != RPC_PARSE_OK)
        return -EPROTO;
    return mount.status == MOUNT3_STATUS_OK ? keep(handle, mount.handle) : -EACCES;
}

static int ask_lookup(const struct units_address *server, const char *file,
                      struct nfs_lookup_handle *handle)
{
    static const struct nfs3_client client = {.identity = {.sys = true, .machine = "bench"}};
    struct rpc_slice directory = {handle->data, handle->bytes};
    uint8_t call[NFS3_CALL_MAX_BYTES];
    uint8_t payload[REPLY_BYTES];
    struct rpc_reply reply = {0};
    struct nfs3_reply found;
    size_t length = nfs3_call_lookup(call, sizeof(call), &client, LOOKUP_XID, directory, file);
    ssize_t got = ask(server, call, length, payload, sizeof(payload), &reply);

    if (got < 0)
        return (int)got;
    if (nfs3_parse_reply(NFS3_PROC_LOOKUP, payload + reply.body_offset,
                         (size_t)got - reply.body_offset, &found) != RPC_PARSE_OK)
        return -EPROTO;
    return found.status == NFS3_STATUS_OK ? keep(handle, found.handle) : -ENOENT;
}

int nfs_lookup(const struct units_address *mount, const struct units_address *nfs,
               const char *export_path, const char *file, struct nfs_lookup_handle *handle)
{
    int status = ask_mount(mount, export_path, handle);

    if (status < 0) {
        fprintf(stderr, "cannot mount %s: %s\n", export_path, strerror(-status));
        return status;
    }
    status = ask_lookup(nfs, file, handle);
    if (status < 0)
        fprintf(stderr, "cannot look up %s in %s: %s\n", file, export_path, strerror(-status));
    return status;
}
