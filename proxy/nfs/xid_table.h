/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in flight, found by their xid.
 *
 * A hash table with chains through the entries, so that adding and removing allocates nothing; it
 * grows with the number of calls in flight and keeps its size. The same xid may be in it several
 * times (clients may do that, and some start at 1): entries of one xid are found oldest first. The
 * hash is keyed, so that a client can't choose xids that collide.
 */
#ifndef SPILLWAY_NFS_XID_TABLE_H
#define SPILLWAY_NFS_XID_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define NFS_XID_FIRST_BUCKETS 16 /* in the table itself; a power of two */

struct nfs_xid_entry {
    struct nfs_xid_entry *next; /* in its bucket, older ones first */
    uint64_t checksum; /* of what was sent, to know a retransmission: see nfs_xid_checksum() */
    uint32_t xid;
};

struct nfs_xid_table {
    struct nfs_xid_entry **buckets;
    uint32_t shift; /* 32 - log2(number of buckets) */
    uint32_t count;
    uint32_t secret; /* odd */
    struct nfs_xid_entry *first_buckets[NFS_XID_FIRST_BUCKETS];
};

/* `secret`: any number, the same for the tables of one process will do. */
void nfs_xid_table_init(struct nfs_xid_table *table, uint32_t secret);
/* Entries are the caller's. */
void nfs_xid_table_fini(struct nfs_xid_table *table);

/* `xid` of the entry is set. */
void nfs_xid_insert(struct nfs_xid_table *table, struct nfs_xid_entry *entry);
/* The entry is in the table. */
void nfs_xid_remove(struct nfs_xid_table *table, struct nfs_xid_entry *entry);

/* The oldest with this xid, then the next older ones; NULL: no more. */
struct nfs_xid_entry *nfs_xid_first(const struct nfs_xid_table *table, uint32_t xid);
struct nfs_xid_entry *nfs_xid_next(const struct nfs_xid_entry *entry);

/* Over the first 256 bytes of a call, as servers' duplicate request caches do. Give it that many or
 * the whole call: equal calls then have equal checksums. */
uint64_t nfs_xid_checksum(const uint8_t *payload, size_t length);

#endif
