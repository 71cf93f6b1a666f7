/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bindings: what ties a client to its server, and outlives the client connection while the server
 * still works for it.
 *
 *      with a session ──leave──> orphan ──its calls are answered, or NFS_ORPHAN_NS──> closed
 *             ^                     │
 *             └──same address+port──┘
 */
#include "proxy/nfs/internal.h"

#include "proxy/io/memory.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ who is who */

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    if (a->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                      &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
    return false;
}

static in_port_t port_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_port
                                         : ((const struct sockaddr_in6 *)address)->sin6_port;
}

/* ------------------------------------------------------------------ life */

static void on_orphan_timer(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    nfs_binding_close(container_of(timer, struct nfs_binding, orphan_timer));
}

static struct nfs_binding *adopt(struct nfs_session *s, struct pool *pool)
{
    struct nfs_binding *b;

    TAILQ_FOREACH(b, &s->nfs->orphans, link)
    {
        if (b->pool == pool && same_host(&b->client, &s->session.client) &&
            port_of(&b->client) == port_of(&s->session.client)) {
            TAILQ_REMOVE(&s->nfs->orphans, b, link);
            timer_unlink(&b->orphan_timer);
            b->is_orphan = false;
            b->session = s;
            b->listener = s->session.listener;
            b->limits = s->incoming.decoder.limits;
            return b;
        }
    }
    return NULL;
}

struct nfs_binding *nfs_binding_take(struct nfs_session *s, struct pool *pool)
{
    struct nfs_binding *b = adopt(s, pool);

    if (b != NULL)
        return b;
    b = memory_zalloc(sizeof(*b), "an NFS client's binding");
    b->nfs = s->nfs;
    b->session = s;
    b->client = s->session.client;
    b->listener = s->session.listener;
    b->limits = s->incoming.decoder.limits;
    nfs_xid_table_init(&b->calls, s->nfs->secret);
    timer_init(&b->orphan_timer, on_orphan_timer);
    (void)nfs_binding_lane(b, pool);
    return b;
}

struct lane *nfs_binding_lane(struct nfs_binding *b, struct pool *pool)
{
    if (b->pool == pool && b->lane_is_chosen)
        return b->lane;
    b->pool = pool;
    b->lane =
        gate_choose_lane(pool, (const struct sockaddr *)&b->client, loop_now_ns(b->nfs->loop));
    b->lane_is_chosen = b->lane != NULL;
    /* With no server usable any lane will say so, and count it. */
    if (b->lane == NULL)
        b->lane = TAILQ_FIRST(&pool->lanes);
    return b->lane;
}

void nfs_binding_leave(struct nfs_binding *b)
{
    b->session = NULL;
    if (b->calls.count == 0) {
        nfs_binding_close(b);
        return;
    }
    b->is_orphan = true;
    TAILQ_INSERT_TAIL(&b->nfs->orphans, b, link);
    timer_set(&b->nfs->loop->wheel, &b->orphan_timer, loop_now_ns(b->nfs->loop) + NFS_ORPHAN_NS);
}

void nfs_binding_settle(struct nfs_binding *b)
{
    if (b->session == NULL && b->calls.count == 0)
        nfs_binding_close(b);
}

void nfs_binding_destroy(struct nfs_binding *b)
{
    timer_unlink(&b->orphan_timer);
    for (unsigned role = 0; role < NFS_CONN_ROLES; role++) {
        if (b->conns[role] != NULL) {
            nfs_server_conn_close(b->conns[role]);
            free(b->conns[role]);
        }
    }
    nfs_xid_table_fini(&b->calls);
    free(b);
}

static void release(struct deferred *deferred)
{
    nfs_binding_destroy(container_of(deferred, struct nfs_binding, deferred));
}

void nfs_binding_close(struct nfs_binding *b)
{
    if (b->closed)
        return;
    b->closed = true;
    if (b->is_orphan)
        TAILQ_REMOVE(&b->nfs->orphans, b, link);
    timer_unlink(&b->orphan_timer);
    for (unsigned role = 0; role < NFS_CONN_ROLES; role++) {
        if (b->conns[role] != NULL)
            nfs_server_conn_lost(b->conns[role], OUTCOME_ABORTED, "nobody waits for it");
    }
    loop_defer_free(b->nfs->loop, &b->deferred, release);
}

/* ------------------------------------------------------------------ retransmissions */

/* The client has come back for this call. */
static void move(struct nfs_exchange *e, struct nfs_session *s)
{
    struct nfs_session *old = e->session;

    nfs_call_leave_session(e);
    nfs_call_enter_session(e, s);
    if (old != NULL)
        nfs_session_call_left(old);
}

/* In one binding. A reply that is already being dropped in pieces can't be had any more. */
static enum nfs_duplicate find_in(struct nfs_session *s, struct nfs_binding *b, uint32_t xid,
                                  uint64_t checksum)
{
    unsigned same_xid = 0;

    for (struct nfs_xid_entry *entry = nfs_xid_first(&b->calls, xid); entry != NULL;
         entry = nfs_xid_next(entry)) {
        struct nfs_exchange *e = container_of(entry, struct nfs_exchange, entry);
        if (++same_xid >= NFS_SAME_XID_MAX)
            return NFS_DUPLICATE_EXCESS;
        if (entry->checksum != checksum)
            continue;
        if (e->session == s)
            return NFS_DUPLICATE_ATTACHED;
        if (!e->replying && (e->session == NULL || e->session->state == NFS_SESSION_HALF_CLOSED)) {
            move(e, s);
            return NFS_DUPLICATE_ATTACHED;
        }
    }
    return NFS_DUPLICATE_NONE;
}

enum nfs_duplicate nfs_binding_find_duplicate(struct nfs_session *s, uint32_t xid,
                                              uint64_t checksum)
{
    enum nfs_duplicate found = find_in(s, s->binding, xid, checksum);
    struct nfs_binding *b;

    if (found != NFS_DUPLICATE_NONE || TAILQ_EMPTY(&s->nfs->orphans))
        return found;
    TAILQ_FOREACH(b, &s->nfs->orphans, link)
    {
        if (b->pool != s->binding->pool || !same_host(&b->client, &s->session.client))
            continue;
        found = find_in(s, b, xid, checksum);
        if (found == NFS_DUPLICATE_ATTACHED)
            return found;
    }
    return NFS_DUPLICATE_NONE;
}
