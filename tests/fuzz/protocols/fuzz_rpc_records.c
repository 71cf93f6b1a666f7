/* SPDX-License-Identifier: Apache-2.0 */
/* Record marking and RPC headers. The first byte picks how the stream is cut into receives; the
 * rest is the stream. Checked: the records are those of a plain decoder that has the whole stream
 * in hand, whatever the cuts; a limit that one finds the other finds; each record's header is read
 * as libtirpc reads it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocols/rpc/rpc_record.h"
#include "tests/unit/protocols/rpc_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rpc_record_limits limits = {
    .record_bytes = 2000, .fragments = 8, .empty_fragments = 3};

#define STREAM_MAX_BYTES 16384

/* Records as payloads one behind the other, with where each ends. */
struct records {
    uint8_t payload[STREAM_MAX_BYTES];
    size_t ends[STREAM_MAX_BYTES / 4];
    size_t count;
    size_t bytes; /* of payload, an unfinished record's included */
    enum rpc_record_error error;
};

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static void add(struct records *r, const uint8_t *data, size_t len)
{
    check(r->bytes + len <= sizeof r->payload, "no more payload comes out than went in");
    if (len)
        memcpy(r->payload + r->bytes, data, len);
    r->bytes += len;
}

static void plain_decode(const uint8_t *data, size_t size, struct records *r)
{
    size_t begin = 0;
    uint32_t fragments = 0, empty = 0;

    while (size >= 4) {
        uint32_t mark = (uint32_t)data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3];
        uint32_t len = mark & 0x7fffffff;
        size_t there = len < size - 4 ? len : size - 4;
        if (r->bytes - begin + len > limits.record_bytes)
            r->error = RPC_RECORD_TOO_LONG;
        else if (++fragments > limits.fragments)
            r->error = RPC_RECORD_TOO_MANY_FRAGMENTS;
        else if (len == 0 && ++empty > limits.empty_fragments)
            r->error = RPC_RECORD_TOO_MANY_EMPTY;
        if (r->error != RPC_RECORD_FINE)
            return;
        add(r, data + 4, there);
        data += 4 + there;
        size -= 4 + there;
        if (there == len && mark >> 31) {
            r->ends[r->count++] = r->bytes;
            begin = r->bytes;
            fragments = empty = 0;
        }
    }
}

static void feed(struct rpc_record_decoder *d, const uint8_t *data, size_t len, struct records *r)
{
    struct rpc_record_event e;

    do {
        size_t used = rpc_record_next(d, data, len, &e);
        check(used <= len, "no more is consumed than there is");
        data += used;
        len -= used;
        if (e.type == RPC_RECORD_WHOLE)
            add(r, e.data + 4, e.len - 4);
        if (e.type == RPC_RECORD_DATA)
            add(r, e.data, e.len);
        if (e.type == RPC_RECORD_WHOLE || e.type == RPC_RECORD_END)
            r->ends[r->count++] = r->bytes;
    } while (e.type != RPC_RECORD_MORE && e.type != RPC_RECORD_ERROR);
    check(e.type == RPC_RECORD_ERROR || len == 0, "a buffer is consumed whole");
    r->error = d->error;
}

static void check_headers(const struct records *r)
{
    size_t begin = 0;

    for (size_t i = 0; i < r->count; i++) {
        size_t len = r->ends[i] - begin;
        uint8_t *copy = malloc(len ? len : 1);
        struct rpc_reply reply;
        check(copy != NULL, "memory");
        memcpy(copy, r->payload + begin, len);
        const char *difference = rpc_oracle_disagrees(copy, len);
        check(!difference, difference ? difference : "");
        enum rpc_parse result = rpc_parse_reply(copy, len, &reply);
        check(result != RPC_PARSE_OK || reply.body_offset <= len, "results are in the record");
        free(copy);
        begin = r->ends[i];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct records want, got; /* large; cleared below as far as used */
    struct rpc_record_decoder d;

    if (size < 1 || size > STREAM_MAX_BYTES)
        return 0;
    uint32_t cut = data[0];
    data++;
    size--;
    want.count = want.bytes = got.count = got.bytes = 0;
    want.error = got.error = RPC_RECORD_FINE;
    plain_decode(data, size, &want);
    rpc_record_init(&d, &limits);
    for (size_t at = 0; at < size && got.error == RPC_RECORD_FINE;) {
        size_t len = cut == 0 ? size : 1 + cut % 64;
        len = len < size - at ? len : size - at;
        uint8_t *block = malloc(len);
        check(block != NULL, "memory");
        memcpy(block, data + at, len);
        feed(&d, block, len, &got);
        free(block);
        at += len;
        cut = cut * 5 + 3 * (cut != 0);
    }
    check(got.error == want.error, "the same limit");
    check(got.count == want.count && got.bytes == want.bytes, "as many records and bytes");
    check(!memcmp(got.ends, want.ends, want.count * sizeof want.ends[0]), "the same lengths");
    check(!memcmp(got.payload, want.payload, want.bytes), "the same bytes");
    check_headers(&got);
    return 0;
}
