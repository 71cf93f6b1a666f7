/* SPDX-License-Identifier: Apache-2.0 */
/* Results of COMPOUND as a client reads them. The first bytes pick the operations that are expected
 * (how many, then one each) and how much of the reply is in the buffer; the rest is the reply.
 * Checked: no read past the end; slices lie within the buffer; what a whole reply says, a cut one
 * either says too or calls too short, and nothing that is cut is taken for whole but READ's data.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocols/rpc/nfs4_client.h"

#define OPS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

struct script {
    const uint8_t *ops;
    uint32_t count;
};

static bool within(const uint8_t *data, uint32_t len, const uint8_t *reply, size_t available)
{
    return len == 0 || (data >= reply && len <= (size_t)(reply + available - data));
}

static void check_entries(struct nfs4_result *directory, const uint8_t *reply, size_t available)
{
    struct nfs4_attributes attributes;
    struct rpc_slice name;
    uint32_t count = 0;

    while (nfs4_entry_next(directory, &name, &attributes)) {
        check(within(name.data, name.len, reply, available), "a name lies in the reply");
        count++;
    }
    check(count == directory->count, "as many entries as were counted");
}

/* Reads it all; `cut` tells whether READ's data goes on behind the buffer. */
static enum rpc_parse read_all(const struct script *script, const uint8_t *reply, size_t available,
                               size_t whole, bool *cut)
{
    struct nfs4_results results;
    struct nfs4_result result;
    enum rpc_parse parse = nfs4_results_begin(&results, reply, available, whole);

    *cut = false;
    for (uint32_t i = 0; parse == RPC_PARSE_OK && i < script->count && !results.failed; i++) {
        uint32_t op = script->ops[i] % NFS4_OP_END;

        parse = nfs4_results_next(&results, op, &result);
        if (parse != RPC_PARSE_OK)
            break;
        check(result.status == NFS4_STATUS_OK || results.failed, "a failure is noticed");
        check(result.handle.len <= NFS4_HANDLE_MAX_BYTES, "a handle has at most 128 bytes");
        check(within(result.handle.data, result.handle.len, reply, available), "a handle");
        check(within(result.data, result.data_there, reply, available), "READ's data");
        check(result.data_there <= result.data_bytes, "no more data than there is");
        if (op == NFS4_OP_READDIR && result.status == NFS4_STATUS_OK)
            check_entries(&result, reply, available);
    }
    *cut = results.cut;
    return parse == RPC_PARSE_OK ? nfs4_results_end(&results) : parse;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script;
    bool cut;
    bool cut_early;

    if (size < 2 + OPS_MAX)
        return 0;
    script.count = 1 + data[0] % OPS_MAX;
    script.ops = data + 2;
    const uint8_t *reply = data + 2 + OPS_MAX;
    size_t whole = size - 2 - OPS_MAX;
    size_t part = (size_t)data[1] * whole / 256;
    enum rpc_parse result = read_all(&script, reply, whole, whole, &cut);

    check(!cut, "a whole reply is not cut");
    /* The same in a heap block of the exact size, so that every over-read is seen. */
    uint8_t *copy = malloc(part ? part : 1);

    check(copy != NULL, "memory");
    memcpy(copy, reply, part);
    enum rpc_parse early = read_all(&script, copy, part, whole, &cut_early);

    if (early == RPC_PARSE_OK)
        check(cut_early && part < whole && result == RPC_PARSE_OK, "only READ's data may be cut");
    early = read_all(&script, copy, part, part, &cut_early);
    check(!cut_early, "what ends with the buffer is not cut");
    check(early != RPC_PARSE_OK || result != RPC_PARSE_OK || part == whole,
          "no part of a reply is one");
    free(copy);
    return 0;
}
