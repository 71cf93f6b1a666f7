/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NFS worker: memory that is used again, and what becomes of bytes when the loop settles. See
 * internal.h.
 *
 * The reset hook is queued while an exchange refers to the arena or blocks were sent; it runs after
 * everything that was queued in the turn went to the kernel or was copied by its connection.
 */
#include "proxy/nfs/internal.h"

#include "proxy/io/memory.h"
#include "proxy/nfs/exports.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FREE_EXCHANGES_MAX 4096
#define BLOCK_MAX_BYTES    (UINT32_C(64) << 10)

static void on_reset(struct loop *loop, struct turn_hook *hook)
{
    struct nfs_worker *nfs = container_of(hook, struct nfs_worker, reset);

    (void)loop;
    while (!TAILQ_EMPTY(&nfs->in_arena))
        nfs_arena_copy(nfs, TAILQ_FIRST(&nfs->in_arena));
    nfs_blocks_clear(nfs, &nfs->sent);
}

struct nfs_worker *nfs_worker_create(struct worker *worker)
{
    struct nfs_worker *nfs = memory_zalloc(sizeof(*nfs), "the NFS side of a worker");

    nfs->worker = worker;
    nfs->loop = &worker->loop;
    TAILQ_INIT(&nfs->free_exchanges);
    TAILQ_INIT(&nfs->in_arena);
    TAILQ_INIT(&nfs->orphans);
    TAILQ_INIT(&nfs->sent);
    nfs->reset.run = on_reset;
    nfs->exports = nfs_exports_acquire();
    nfs->mount_ports = nfs_mount_ports_create(nfs->loop);
    if (getrandom(&nfs->secret, sizeof(nfs->secret), GRND_NONBLOCK) != sizeof(nfs->secret))
        nfs->secret = (uint32_t)loop_clock_ns();
    return nfs;
}

static void drop_call(struct nfs_worker *nfs, struct nfs_exchange *e)
{
    if (e->binding != NULL)
        nfs_xid_remove(&e->binding->calls, &e->entry);
    if (e->conn != NULL)
        nfs_server_conn_remove(e->conn, e);
    if (e->session != NULL && e->session->receiving == e)
        e->session->receiving = NULL;
    timer_unlink(&e->exchange.queue_timer);
    nfs_blocks_clear(nfs, &e->blocks);
    free(e->mount_path);
    TAILQ_INSERT_HEAD(&nfs->free_exchanges, e, session_link);
}

/*
 * What was still under way when the loop ended (a drain that ran out of time). The gate is not
 * asked any more.
 */
static void drop_binding(struct nfs_worker *nfs, struct nfs_binding *b)
{
    for (unsigned role = 0; role < NFS_CONN_ROLES; role++) {
        while (b->conns[role] != NULL && !TAILQ_EMPTY(&b->conns[role]->calls))
            drop_call(nfs, TAILQ_FIRST(&b->conns[role]->calls));
    }
    for (uint32_t i = 0; i < UINT32_C(1) << (32 - b->calls.shift); i++) {
        while (b->calls.buckets[i] != NULL)
            drop_call(nfs, container_of(b->calls.buckets[i], struct nfs_exchange, entry));
    }
    nfs_binding_destroy(b);
}

static void end_session(struct nfs_worker *nfs, struct nfs_session *s)
{
    conn_close(&s->session.conn);
    timer_unlink(&s->receive_timer);
    timer_unlink(&s->stall_timer);
    timer_unlink(&s->retry_timer);
    nfs_incoming_fini(&s->incoming);
    nfs_blocks_clear(nfs, &s->after_stream);
    if (s->receiving != NULL && s->receiving->session == NULL && s->receiving->conn == NULL)
        drop_call(nfs, s->receiving);
    if (s->binding != NULL)
        drop_binding(nfs, s->binding);
    TAILQ_REMOVE(&nfs->worker->sessions, &s->session, link);
    free(s);
}

void nfs_worker_destroy(struct nfs_worker *nfs)
{
    struct session *session;
    struct session *next;
    struct nfs_binding *b;

    if (nfs == NULL)
        return;
    TAILQ_INIT(&nfs->in_arena);
    for (session = TAILQ_FIRST(&nfs->worker->sessions); session != NULL; session = next) {
        next = TAILQ_NEXT(session, link);
        if (session->ops == &nfs_session_ops)
            end_session(nfs, container_of(session, struct nfs_session, session));
    }
    while ((b = TAILQ_FIRST(&nfs->orphans)) != NULL) {
        TAILQ_REMOVE(&nfs->orphans, b, link);
        drop_binding(nfs, b);
    }
    while (!TAILQ_EMPTY(&nfs->free_exchanges)) {
        struct nfs_exchange *e = TAILQ_FIRST(&nfs->free_exchanges);
        TAILQ_REMOVE(&nfs->free_exchanges, e, session_link);
        free(e);
    }
    nfs_blocks_clear(nfs, &nfs->sent);
    nfs_mount_ports_destroy(nfs->mount_ports);
    nfs_exports_release(nfs->exports);
    free(nfs);
}

/* ------------------------------------------------------------------ exchanges */

static const struct exchange_ops exchange_ops = {
    .dispatched = nfs_call_dispatched,
    .refused = nfs_call_refused,
    .marked = nfs_call_marked,
    .released = nfs_call_released,
};

struct nfs_exchange *nfs_exchange_take(struct nfs_worker *nfs, uint64_t arrived_ns)
{
    struct nfs_exchange *e = TAILQ_FIRST(&nfs->free_exchanges);

    if (e != NULL) {
        TAILQ_REMOVE(&nfs->free_exchanges, e, session_link);
        nfs->free_count--;
    } else {
        e = memory_alloc(sizeof(*e), "an NFS call");
    }
    /* Everything behind the core's part, which exchange_init() sets. */
    memset((char *)e + sizeof(e->exchange), 0, sizeof(*e) - sizeof(e->exchange));
    exchange_init(&e->exchange, nfs->loop, &exchange_ops, arrived_ns);
    e->exchange.owner_counts = true;
    timer_init(&e->exchange.queue_timer, NULL);
    TAILQ_INIT(&e->blocks);
    e->nfs = nfs;
    return e;
}

void nfs_exchange_give(struct nfs_worker *nfs, struct nfs_exchange *e)
{
    nfs_arena_leave(nfs, e);
    nfs_blocks_clear(nfs, &e->blocks);
    free(e->mount_path);
    e->mount_path = NULL;
    if (e->exchange.pool != NULL)
        plan_release(e->exchange.pool, nfs->worker);
    if (nfs->free_count >= FREE_EXCHANGES_MAX) {
        free(e);
        return;
    }
    /* The warm one first. */
    TAILQ_INSERT_HEAD(&nfs->free_exchanges, e, session_link);
    nfs->free_count++;
}

/* ------------------------------------------------------------------ bytes */

static struct nfs_block *add_block(struct nfs_worker *nfs, struct nfs_blocks *blocks, size_t length)
{
    size_t wanted = sizeof(struct nfs_block) + length;
    size_t capacity;
    struct nfs_block *block = block_alloc(
        &nfs->loop->buffers, wanted < BLOCK_MAX_BYTES ? wanted : BLOCK_MAX_BYTES, &capacity);

    block->capacity = capacity;
    block->length = 0;
    TAILQ_INSERT_TAIL(blocks, block, link);
    return block;
}

void nfs_blocks_append(struct nfs_worker *nfs, struct nfs_blocks *blocks, const uint8_t *bytes,
                       size_t length)
{
    struct nfs_block *block = TAILQ_LAST(blocks, nfs_blocks);

    assert(bytes != NULL || length == 0);
    while (length > 0) {
        size_t room = block != NULL ? block->capacity - sizeof(*block) - block->length : 0;
        if (room == 0) {
            block = add_block(nfs, blocks, length);
            room = block->capacity - sizeof(*block);
        }
        size_t take = length < room ? length : room;
        memcpy(block->bytes + block->length, bytes, take);
        block->length += take;
        bytes += take;
        length -= take;
    }
}

void nfs_blocks_first_sent(struct nfs_worker *nfs, struct nfs_blocks *blocks)
{
    struct nfs_block *block = TAILQ_FIRST(blocks);

    TAILQ_REMOVE(blocks, block, link);
    TAILQ_INSERT_TAIL(&nfs->sent, block, link);
    loop_add_reset(nfs->loop, &nfs->reset);
}

void nfs_blocks_clear(struct nfs_worker *nfs, struct nfs_blocks *blocks)
{
    struct nfs_block *block;

    while ((block = TAILQ_FIRST(blocks)) != NULL) {
        TAILQ_REMOVE(blocks, block, link);
        block_free(&nfs->loop->buffers, block, block->capacity);
    }
}

void nfs_arena_enter(struct nfs_worker *nfs, struct nfs_exchange *e, const uint8_t *bytes,
                     size_t length)
{
    e->arena = bytes;
    e->arena_bytes = length;
    TAILQ_INSERT_TAIL(&nfs->in_arena, e, arena_link);
    loop_add_reset(nfs->loop, &nfs->reset);
}

void nfs_arena_leave(struct nfs_worker *nfs, struct nfs_exchange *e)
{
    if (e->arena == NULL)
        return;
    TAILQ_REMOVE(&nfs->in_arena, e, arena_link);
    e->arena = NULL;
}

void nfs_arena_copy(struct nfs_worker *nfs, struct nfs_exchange *e)
{
    const uint8_t *bytes = e->arena;

    nfs_arena_leave(nfs, e);
    nfs_blocks_append(nfs, &e->blocks, bytes, e->arena_bytes);
}
