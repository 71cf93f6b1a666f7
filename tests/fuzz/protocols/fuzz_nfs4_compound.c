/* SPDX-License-Identifier: Apache-2.0 */
/* COMPOUND arguments and results. The first byte picks a prefix; the rest is the arguments.
 * Checked: no read past the end; need_bytes makes progress; what a prefix says holds for the whole;
 * DELAY is only said where it is safe, and fits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocols/rpc/nfs4_compound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static void check_one(enum rpc_parse result, const struct nfs4_compound *c, size_t size)
{
    uint8_t buf[NFS4_DELAY_MAX_BYTES];

    check(c->ops_seen <= c->ops_claimed, "no more operations than claimed");
    check(result == RPC_PARSE_GARBAGE || c->ops_claimed <= NFS4_OPS_MAX, "the limit holds");
    check(result != RPC_PARSE_NEED_MORE || c->need_bytes > size, "more is needed than there is");
    check(result == RPC_PARSE_OK || c->partial, "what is not whole is partial");
    check(c->partial || c->ops_seen == c->ops_claimed, "the whole was seen");
    check(!c->partial || !c->idempotent, "the unseen is not taken for idempotent");
    check(c->handle.len <= NFS4_HANDLE_MAX_BYTES, "a handle has at most 128 bytes");
    size_t delay = nfs4_write_delay(buf, sizeof buf, 1, c);
    if (c->minorversion == 0)
        check(delay == 0 || (!c->partial && !c->has_seqid), "no sequence is lost");
    else
        check((delay > 0) == c->leading_sequence, "the word is SEQUENCE's");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nfs4_compound whole, part;
    struct nfs4_reply reply;

    if (size < 1)
        return 0;
    size_t prefix = (size_t)data[0] * size / 256;
    data++;
    size--;
    if (prefix > size)
        prefix = size;
    enum rpc_parse result = nfs4_parse_compound(data, size, &whole);
    check_one(result, &whole, size);
    uint8_t *copy = malloc(prefix ? prefix : 1);
    check(copy != NULL, "memory");
    memcpy(copy, data, prefix);
    enum rpc_parse early = nfs4_parse_compound(copy, prefix, &part);
    check_one(early, &part, prefix);
    if (early == RPC_PARSE_NEED_MORE)
        check(part.ops_seen <= whole.ops_seen, "a prefix sees no more");
    else
        check(early == result && part.ops_seen == whole.ops_seen,
              "a prefix is judged as the whole");
    if (part.ops_seen > 0)
        check(part.leading_sequence == whole.leading_sequence && part.ops[0] == whole.ops[0],
              "the first operation stays");
    free(copy);
    (void)nfs4_parse_reply(data, size, &reply);
    return 0;
}
