/* SPDX-License-Identifier: Apache-2.0 */
/* NFSv3, MOUNT and portmap bodies. The first byte picks the procedure, the second a prefix length;
 * the rest is a call's arguments, and a reply's results. Checked: no read past the end; slices lie
 * inside; a prefix says the same as the whole or asks for more. And whole call records, header
 * included. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/portmap.h"
#include "protocols/rpc/rpc_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static void inside(const struct rpc_slice *s, const uint8_t *data, size_t size)
{
    check(s->len == 0 ||
              (s->data >= data && s->len <= size && (size_t)(s->data - data) <= size - s->len),
          "a slice lies in the buffer");
}

static void fuzz_call(uint32_t proc, const uint8_t *data, size_t size, size_t prefix)
{
    struct nfs3_call whole, part;
    enum rpc_parse result = nfs3_parse_call(proc, data, size, &whole);
    uint8_t *copy = malloc(prefix ? prefix : 1);

    check(copy != NULL, "memory");
    memcpy(copy, data, prefix);
    enum rpc_parse early = nfs3_parse_call(proc, copy, prefix, &part);
    inside(&whole.handle, data, size);
    inside(&whole.name, data, size);
    check(whole.handle.len <= NFS3_HANDLE_MAX_BYTES, "a handle has at most 64 bytes");
    check(result != RPC_PARSE_OK || whole.data_offset <= size, "WRITE data starts inside");
    check(result != RPC_PARSE_NEED_MORE || size < NFS3_ARGS_PEEK_MAX_BYTES, "enough is enough");
    if (early == RPC_PARSE_NEED_MORE) {
        free(copy);
        return;
    }
    check(early == result, "a prefix is judged as the whole");
    check(part.offset == whole.offset && part.count == whole.count &&
              part.handle.len == whole.handle.len && part.name.len == whole.name.len &&
              part.cost_bytes == whole.cost_bytes && part.data_offset == whole.data_offset,
          "a prefix says the same");
    free(copy);
}

static void fuzz_reply(uint32_t proc, const uint8_t *data, size_t size)
{
    struct nfs3_reply reply;
    struct mount3_reply mount;
    struct rpc_slice path;
    uint32_t words[3];
    uint16_t port;

    if (nfs3_parse_reply(proc, data, size, &reply) == RPC_PARSE_OK) {
        inside(&reply.handle, data, size);
        check(reply.data_offset <= size, "READ data starts inside");
    }
    if (mount3_parse_mnt_reply(data, size, &mount) == RPC_PARSE_OK)
        inside(&mount.handle, data, size);
    if (mount3_parse_path(data, size, &path) == RPC_PARSE_OK)
        inside(&path, data, size);
    (void)portmap_parse_getport(data, size, &words[0], &words[1], &words[2]);
    (void)portmap_parse_getport_reply(data, size, &port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_call call;

    if (size < 2)
        return 0;
    uint32_t proc = data[0] % (NFS3_PROCS + 1);
    size_t prefix = data[1];
    data += 2;
    size -= 2;
    fuzz_call(proc, data, size, prefix < size ? prefix : size);
    fuzz_reply(proc, data, size);
    enum rpc_parse result = rpc_parse_call(data, size, &call);
    check(result != RPC_PARSE_NEED_MORE || size < RPC_CALL_HEADER_MAX_BYTES, "enough is enough");
    if (result == RPC_PARSE_OK && call.args_visible && call.body_offset <= size)
        fuzz_call(call.proc % NFS3_PROCS, data + call.body_offset, size - call.body_offset, 0);
    return 0;
}
