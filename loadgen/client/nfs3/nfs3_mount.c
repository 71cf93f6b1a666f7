/* SPDX-License-Identifier: Apache-2.0 */
/* Mounting by way of the portmapper. */
#include "loadgen/client/nfs3/nfs3_mount.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/portmap.h"

#define PORTMAP_PORT 111

static const struct stream_handler handler;

static struct nfs3_mount *mount_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct nfs3_mount, stream));
}

static void connect_to(struct nfs3_mount *mount, enum nfs3_mount_stage stage, uint16_t port)
{
    struct units_address to = mount->target;

    if (to.address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&to.address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)(void *)&to.address)->sin_port = htons(port);
    mount->stage = stage;
    mount->reply_bytes = 0;
    rpc_record_init(&mount->decoder, NULL);
    stream_connect(&mount->stream, mount->loop, (const void *)&to.address, to.length, &handler);
}

static void connected(struct stream *stream)
{
    struct nfs3_mount *mount = mount_of(stream);
    uint8_t *to = stream_reserve(stream, MOUNT3_CALL_MAX_BYTES);
    uint32_t xid = ++mount->xid;

    if (mount->stage == NFS3_MOUNT_PORTMAP)
        stream_commit(stream, portmap_write_getport(to, MOUNT3_CALL_MAX_BYTES, xid, MOUNT_PROG,
                                                    MOUNT3_VERS, PORTMAP_TCP));
    else
        stream_commit(stream, mount3_write_mnt_call(to, MOUNT3_CALL_MAX_BYTES, xid,
                                                    &mount->identity, mount->export_path));
}

static void take_port(struct nfs3_mount *mount, const uint8_t *results, size_t length)
{
    uint16_t port;

    if (portmap_parse_getport_reply(results, length, &port) != RPC_PARSE_OK)
        snprintf(mount->problem, sizeof(mount->problem), "the portmapper's reply is malformed");
    else if (port == 0)
        snprintf(mount->problem, sizeof(mount->problem),
                 "neither the NFS port nor the portmapper knows of MOUNT version 3");
    else
        mount->port = port;
}

static void take_handle(struct nfs3_mount *mount, const uint8_t *results, size_t length)
{
    struct mount3_reply reply;

    if (mount3_parse_mnt_reply(results, length, &reply) != RPC_PARSE_OK)
        snprintf(mount->problem, sizeof(mount->problem), "the reply to MNT is malformed");
    else if (reply.status != MOUNT3_STATUS_OK || reply.handle.len > NFS3_HANDLE_MAX_BYTES ||
             !nfs_handle_keep(&mount->handle, reply.handle))
        snprintf(mount->problem, sizeof(mount->problem), "MOUNT status %u", reply.status);
}

/* The connection has served its turn, whatever it brought; closed() goes on. */
static void take_reply(struct nfs3_mount *mount, const uint8_t *payload, size_t length)
{
    struct rpc_reply rpc;

    if (rpc_parse_reply(payload, length, &rpc) != RPC_PARSE_OK || rpc.xid != mount->xid)
        snprintf(mount->problem, sizeof(mount->problem), "the reply is malformed");
    else if (rpc.denied || rpc.accept != RPC_ACCEPT_SUCCESS)
        snprintf(mount->problem, sizeof(mount->problem), "RPC error %u",
                 rpc.denied ? rpc.reject : rpc.accept);
    else if (mount->stage == NFS3_MOUNT_PORTMAP)
        take_port(mount, payload + rpc.body_offset, length - rpc.body_offset);
    else
        take_handle(mount, payload + rpc.body_offset, length - rpc.body_offset);
    stream_close(&mount->stream, 0);
}

static size_t take_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct nfs3_mount *mount = mount_of(stream);
    struct rpc_record_event event = {.type = RPC_RECORD_BEGIN};
    size_t used = 0;

    while (event.type != RPC_RECORD_MORE && event.type != RPC_RECORD_ERROR &&
           stream->state == STREAM_OPEN) {
        used += rpc_record_next(&mount->decoder, data + used, length - used, &event);
        if (event.type == RPC_RECORD_WHOLE) {
            take_reply(mount, event.data + RPC_RECORD_MARK_BYTES,
                       event.len - RPC_RECORD_MARK_BYTES);
        } else if (event.type == RPC_RECORD_DATA) {
            size_t room = sizeof(mount->reply) - mount->reply_bytes;
            size_t part = event.len < room ? event.len : room;

            memcpy(mount->reply + mount->reply_bytes, event.data, part);
            mount->reply_bytes += part;
        } else if (event.type == RPC_RECORD_END) {
            take_reply(mount, mount->reply, mount->reply_bytes);
        } else if (event.type == RPC_RECORD_ERROR) {
            stream_close(stream, 0);
        }
    }
    return used;
}

static void closed(struct stream *stream, int error)
{
    struct nfs3_mount *mount = mount_of(stream);
    bool asked = mount->stage == NFS3_MOUNT_PORTMAP;

    stream_fini(stream);
    if (asked && mount->port && !mount->problem[0]) {
        connect_to(mount, NFS3_MOUNT_MOUNT, mount->port);
        return;
    }
    if (mount->handle.length == 0 && !mount->problem[0])
        snprintf(mount->problem, sizeof(mount->problem), "%s: %s",
                 asked ? "the portmapper, asked for MOUNT's port" : "MOUNT's port",
                 error ? strerror(error) : "no reply");
    mount->stage = NFS3_MOUNT_IDLE;
    mount->done(mount);
}

static const struct stream_handler handler = {
    .connected = connected,
    .data = take_data,
    .closed = closed,
};

void nfs3_mount_begin(struct nfs3_mount *mount)
{
    mount->handle.length = 0;
    mount->problem[0] = '\0';
    mount->port = 0;
    connect_to(mount, NFS3_MOUNT_PORTMAP, PORTMAP_PORT);
}

void nfs3_mount_fini(struct nfs3_mount *mount)
{
    if (mount->stage != NFS3_MOUNT_IDLE)
        stream_fini(&mount->stream);
    mount->stage = NFS3_MOUNT_IDLE;
}
