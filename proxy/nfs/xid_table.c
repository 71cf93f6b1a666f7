/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in flight by xid: see xid_table.h. */
#include "proxy/nfs/xid_table.h"

#include "proxy/io/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHECKSUM_BYTES 256

void nfs_xid_table_init(struct nfs_xid_table *table, uint32_t secret)
{
    memset(table, 0, sizeof(*table));
    table->buckets = table->first_buckets;
    table->shift = 32 - (uint32_t)__builtin_ctz(NFS_XID_FIRST_BUCKETS);
    table->secret = secret | 1;
}

void nfs_xid_table_fini(struct nfs_xid_table *table)
{
    if (table->buckets != table->first_buckets)
        free(table->buckets);
    table->buckets = NULL;
}

static uint32_t bucket_count(const struct nfs_xid_table *table)
{
    return UINT32_C(1) << (32 - table->shift);
}

static struct nfs_xid_entry **bucket_of(const struct nfs_xid_table *table, uint32_t xid)
{
    return &table->buckets[(xid * table->secret) >> table->shift];
}

static void append(struct nfs_xid_table *table, struct nfs_xid_entry *entry)
{
    struct nfs_xid_entry **end = bucket_of(table, entry->xid);

    while (*end != NULL)
        end = &(*end)->next;
    *end = entry;
    entry->next = NULL;
}

static void grow(struct nfs_xid_table *table)
{
    struct nfs_xid_entry **old = table->buckets;
    uint32_t old_count = bucket_count(table);

    table->shift--;
    table->buckets = memory_zalloc(bucket_count(table) * sizeof(struct nfs_xid_entry *),
                                   "a table of calls in flight");
    for (uint32_t i = 0; i < old_count; i++) {
        struct nfs_xid_entry *next;
        for (struct nfs_xid_entry *entry = old[i]; entry != NULL; entry = next) {
            next = entry->next;
            append(table, entry);
        }
    }
    if (old != table->first_buckets)
        free(old);
}

void nfs_xid_insert(struct nfs_xid_table *table, struct nfs_xid_entry *entry)
{
    if (table->count >= bucket_count(table) && table->shift > 8)
        grow(table);
    append(table, entry);
    table->count++;
}

void nfs_xid_remove(struct nfs_xid_table *table, struct nfs_xid_entry *entry)
{
    struct nfs_xid_entry **link = bucket_of(table, entry->xid);

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    entry->next = NULL;
    table->count--;
}

static struct nfs_xid_entry *find(struct nfs_xid_entry *entry, uint32_t xid)
{
    while (entry != NULL && entry->xid != xid)
        entry = entry->next;
    return entry;
}

struct nfs_xid_entry *nfs_xid_first(const struct nfs_xid_table *table, uint32_t xid)
{
    return find(*bucket_of(table, xid), xid);
}

struct nfs_xid_entry *nfs_xid_next(const struct nfs_xid_entry *entry)
{
    return find(entry->next, entry->xid);
}

static uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

static uint64_t mix(uint64_t state, uint64_t word)
{
    state = (state ^ word) * UINT64_C(0x9fb21c651e98df25);
    return state ^ state >> 32;
}

uint64_t nfs_xid_checksum(const uint8_t *payload, size_t length)
{
    /* Two chains, because a multiplication has to wait for the one before it. */
    uint64_t odd = UINT64_C(0x243f6a8885a308d3);
    size_t at = 0;

    if (length > CHECKSUM_BYTES)
        length = CHECKSUM_BYTES;
    uint64_t even = length;
    for (; at + 16 <= length; at += 16) {
        even = mix(even, load_word(payload + at));
        odd = mix(odd, load_word(payload + at + 8));
    }
    for (; at < length; at++)
        even = mix(even, payload[at]);
    return mix(even, odd);
}
