/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's view of a pool's servers: which may get requests, how deep a lane is for it, and how
 * they fare. */
#include "proxy/control/log.h"
#include "proxy/core/gate/gate_internal.h"

/* ------------------------------------------------------------------ depth, choice, slots */

bool gate_server_is_usable(const struct server *server, uint64_t now_ns)
{
    if (server->removed)
        return false;
    switch (server->state) {
    case SERVER_READY:
        return true;
    case SERVER_DEAD:
        return now_ns >= server->dead_until_ns;
    case SERVER_DRAIN:
        break;
    }
    return false;
}

/* A dead server whose time is over gets one request to show itself. */
static uint64_t usable_depth(const struct server *server, uint64_t now_ns)
{
    if (!gate_server_is_usable(server, now_ns))
        return 0;
    return server->state == SERVER_DEAD ? 1 : server->depth;
}

static uint64_t in_use(const struct server *server)
{
    return server->lane->pool->depth_unit == CONFIG_DEPTH_COST ? server->outstanding_cost
                                                               : server->outstanding;
}

static bool has_room(const struct server *server, uint64_t now_ns)
{
    return in_use(server) < usable_depth(server, now_ns);
}

void gate_update_depth(struct lane *lane, uint64_t now_ns)
{
    struct pool *pool = lane->pool;
    struct server *server;
    uint64_t depth = 0;
    uint64_t elsewhere = 0;

    lane->unsettled = false;
    TAILQ_FOREACH(server, &lane->servers, link)
    {
        uint64_t own = usable_depth(server, now_ns);
        depth += own;
        /* What a server has beyond its present depth must not take slots from the others. */
        if (in_use(server) > own)
            elsewhere += in_use(server) - own;
        if (own != server->depth || in_use(server) > own)
            lane->unsettled = true;
    }
    uint64_t slots = pool->depth != 0 && depth > pool->depth ? pool->depth : depth;
    if (!pool->nfs)
        depth = slots;
    sched_set_depth(lane->sched, depth + elsewhere);
    admit_set_slots(&lane->admit, slots, pool->clock_ns);
}

static struct server *next_server(struct lane *lane, struct server *server)
{
    server = server != NULL ? TAILQ_NEXT(server, link) : NULL;
    return server != NULL ? server : TAILQ_FIRST(&lane->servers);
}

struct server *gate_choose_server(struct lane *lane, const struct server *other, uint64_t now_ns)
{
    struct server *first = next_server(lane, lane->cursor);
    struct server *best = NULL;
    struct server *server = first;

    if (first == NULL)
        return NULL;
    do {
        if (has_room(server, now_ns) && server != other) {
            if (lane->pool->balance == CONFIG_BALANCE_ROUND_ROBIN) {
                best = server;
                break;
            }
            if (best == NULL || in_use(server) < in_use(best))
                best = server;
        }
        server = next_server(lane, server);
    } while (server != first);
    if (best == NULL && other != NULL)
        return gate_choose_server(lane, NULL, now_ns);
    return best;
}

bool gate_lane_is_out(struct lane *lane, uint64_t now_ns)
{
    struct server *server;

    TAILQ_FOREACH(server, &lane->servers, link)
    {
        if (gate_server_is_usable(server, now_ns))
            return false;
    }
    return true;
}

static void mark_failed(struct server *server, uint64_t now_ns)
{
    struct pool *pool = server->pool;

    server->meters.connect_errors++;
    server->failures++;
    if (server->state == SERVER_DRAIN)
        return;
    if (server->state == SERVER_DEAD || server->failures >= pool->dead_after) {
        if (server->state == SERVER_READY)
            server->meters.deaths++;
        server->state = SERVER_DEAD;
        server->dead_until_ns = now_ns + pool->dead_for_ns;
        server->lane->unsettled = true;
    }
}

static void mark_alive(struct server *server)
{
    server->failures = 0;
    if (server->state == SERVER_DEAD) {
        server->state = SERVER_READY;
        server->lane->unsettled = true;
    }
}

void gate_take_slot(struct exchange *exchange, struct server *server)
{
    exchange->server = server;
    server->lane->cursor = server;
    server->outstanding++;
    server->outstanding_cost += exchange->cost;
}

void gate_give_slot(struct exchange *exchange)
{
    exchange->server->outstanding--;
    exchange->server->outstanding_cost -= exchange->cost;
}

/* ------------------------------------------------------------------ health */

void gate_count_retry(struct server *server)
{
    pthread_mutex_lock(&server->pool->lock);
    server->meters.retries++;
    pthread_mutex_unlock(&server->pool->lock);
}

void gate_server_connected(struct server *server)
{
    pthread_mutex_lock(&server->pool->lock);
    bool was_dead = server->state == SERVER_DEAD;
    server->meters.connects++;
    mark_alive(server);
    pthread_mutex_unlock(&server->pool->lock);
    if (was_dead) {
        log_notice("pool %s: server %s (%s) answers again", server->pool->name, server->name,
                   server->address_text);
        gate_kick(server->pool);
    }
}

void gate_server_failed(struct server *server, uint64_t now_ns)
{
    pthread_mutex_lock(&server->pool->lock);
    bool was_ready = server->state == SERVER_READY;
    mark_failed(server, now_ns);
    bool died = was_ready && server->state == SERVER_DEAD;
    uint64_t dead_for_ns = server->pool->dead_for_ns;
    pthread_mutex_unlock(&server->pool->lock);
    if (died)
        log_warning("pool %s: server %s (%s) does not take connections; it is left out for %.1f s "
                    "at a time",
                    server->pool->name, server->name, server->address_text,
                    (double)dead_for_ns / 1e9);
}

static uint64_t client_hash(const struct sockaddr *client)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    const uint8_t *bytes = NULL;
    size_t length = 0;

    if (client->sa_family == AF_INET) {
        bytes = (const uint8_t *)&((const struct sockaddr_in *)client)->sin_addr;
        length = 4;
    } else if (client->sa_family == AF_INET6) {
        bytes = (const uint8_t *)&((const struct sockaddr_in6 *)client)->sin6_addr;
        length = 16;
    }
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return hash ^ hash >> 32;
}

struct lane *gate_choose_lane(struct pool *pool, const struct sockaddr *client, uint64_t now_ns)
{
    uint64_t best_score = 0;
    struct lane *best = NULL;
    struct lane *lane;
    uint64_t hash = client_hash(client);

    /* Highest random weight: a server that comes or goes moves only its own clients. */
    pthread_mutex_lock(&pool->lock);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        uint64_t score = (hash ^ (lane->index + 1) * UINT64_C(0x9e3779b97f4a7c15)) *
                         UINT64_C(0xbf58476d1ce4e5b9);
        score ^= score >> 29;
        if (!gate_lane_is_out(lane, now_ns) && (best == NULL || score > best_score)) {
            best = lane;
            best_score = score;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return best;
}
