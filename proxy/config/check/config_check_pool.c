/* SPDX-License-Identifier: Apache-2.0 */
/* config_check()'s part for one pool: its servers and flows, and the order of the rest. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "protocols/rpc/nfs3.h"
#include "proxy/config/config_schema.h"
#include "proxy/config/config_value.h"

_Static_assert((int)CONFIG_CLASS_METADATA == (int)NFS_CLASS_METADATA &&
                   (int)CONFIG_CLASS_READ == (int)NFS_CLASS_READ &&
                   (int)CONFIG_CLASS_WRITE == (int)NFS_CLASS_WRITE,
               "classes are numbered alike");

/* ------------------------------------------------------------------ matching */

bool config_match_is_empty(const struct config_match *match)
{
    return match->header_count == 0 && match->host == NULL && match->path == NULL &&
           match->method_count == 0 && match->client_count == 0 && !match->has_uid &&
           match->export_path == NULL && match->procedure == CONFIG_CLASS_ANY;
}

void config_check_match(struct config_match *match, const struct config_place *place, bool http,
                        bool nfs, struct config_errors *errors)
{
    static const char *const http_keys[] = {"header", "host", "path", "method"};
    static const char *const nfs_keys[] = {"uid", "export", "procedure"};

    match->has_uid = config_place_has(place, "uid");
    for (size_t i = 0; i < match->client_count; i++) {
        config_parse_prefix(match->clients[i].text, &match->clients[i]);
    }
    for (size_t i = 0; nfs && !http && i < sizeof(http_keys) / sizeof(http_keys[0]); i++) {
        if (config_place_has(place, http_keys[i])) {
            const struct config_place key = config_place_get(place, http_keys[i]);

            config_place_report(
                errors, CONFIG_ERROR, &key,
                "is for http, this is nfs; expected client, uid, export or procedure");
        }
    }
    for (size_t i = 0; http && !nfs && i < sizeof(nfs_keys) / sizeof(nfs_keys[0]); i++) {
        if (config_place_has(place, nfs_keys[i])) {
            const struct config_place key = config_place_get(place, nfs_keys[i]);

            config_place_report(
                errors, CONFIG_ERROR, &key,
                "is for nfs, this is http; expected header, host, path, method or client");
        }
    }
}

/* ------------------------------------------------------------------ servers */

uint32_t config_server_depth(uint64_t pool_depth, uint64_t servers)
{
    const uint64_t part = (pool_depth + servers - 1) / servers;

    if (pool_depth == 0) {
        return CONFIG_SERVER_DEPTH;
    }
    return part < CONFIG_SERVER_DEPTH_MAX ? (uint32_t)part : CONFIG_SERVER_DEPTH_MAX;
}

static void check_servers(struct config_pool *pool, const struct config_place *place,
                          unsigned flags, struct config_errors *errors)
{
    const struct config_place servers = config_place_get(place, "servers");
    const uint32_t part = config_server_depth(pool->depth, pool->server_count);
    uint64_t sum = 0;

    for (size_t i = 0; i < pool->server_count; i++) {
        struct config_server *server = &pool->servers[i];
        const struct config_place item = config_place_item(&servers, i);
        const struct config_place address = config_place_get(&item, "address");

        if (server->name == NULL) {
            server->name = config_must(strdup(server->address.text));
        }
        config_check_address(&server->address, &address, false, flags, errors);
        server->depth_is_auto = server->depth == 0;
        if (server->depth_is_auto) {
            server->depth = part;
        } else if (pool->server_count > 1 && pool->depth != 0 && server->depth >= pool->depth) {
            const struct config_place depth = config_place_get(&item, "depth");

            config_place_report(errors, CONFIG_WARNING, &depth,
                                "lets this server alone hold the pool's whole depth of %" PRIu32
                                " when it is slow; expected less, or none here for %" PRIu32,
                                pool->depth, part);
        }
        sum += server->depth;
    }
    pool->depth_of_servers = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
    config_check_names(&servers, &pool->servers[0].name, sizeof(pool->servers[0]),
                       pool->server_count, "server", errors);
}

/* ------------------------------------------------------------------ flows */

static void check_by(struct config_flow *flow, const struct config_pool *pool,
                     const struct config_place *place, struct config_errors *errors)
{
    const struct config_place by = config_place_get(place, "by");
    const struct config_place limit = config_place_get(place, "key-limit");

    if (flow->by_header != NULL) {
        flow->by = CONFIG_FLOW_BY_HEADER;
    }
    if (flow->by == CONFIG_FLOW_BY_HEADER && pool->used_by_nfs) {
        config_place_report(errors, CONFIG_ERROR, &by,
                            "header is for http, this is nfs; expected client-address or uid");
    }
    if (flow->by == CONFIG_FLOW_BY_UID && pool->used_by_http) {
        config_place_report(
            errors, CONFIG_ERROR, &by,
            "uid is for nfs, this is http; expected client-address or { header: NAME }");
    }
    if (flow->by == CONFIG_FLOW_BY_NOTHING && config_place_has(place, "key-limit")) {
        config_place_report(errors, CONFIG_WARNING, &limit, "has no effect without `by`");
    }
}

static void add_default_flow(struct config_pool *pool)
{
    struct config_flow *flows =
        config_must(realloc(pool->flows, (pool->flow_count + 1) * sizeof(*flows)));

    pool->flows = flows;
    flows[pool->flow_count++] = (struct config_flow){
        .name = config_must(strdup("default")),
        .weight = 1,
        .match.procedure = CONFIG_CLASS_ANY,
        .by = CONFIG_FLOW_BY_NOTHING,
        .implicit = true,
        .burst_is_auto = true,
        .weight_min = 1,
        .weight_max = CONFIG_WEIGHT_SPAN,
    };
}

static void check_flows(struct config_pool *pool, const struct config_place *place,
                        struct config_errors *errors)
{
    const struct config_place flows = config_place_get(place, "flows");
    size_t catch_all = pool->flow_count, reserved = pool->flow_count;

    for (size_t i = 0; i < pool->flow_count; i++) {
        struct config_flow *flow = &pool->flows[i];
        const struct config_place item = config_place_item(&flows, i);
        const struct config_place match = config_place_get(&item, "match");

        config_check_match(&flow->match, &match, pool->used_by_http, pool->used_by_nfs, errors);
        check_by(flow, pool, &item, errors);
        if (!config_match_is_empty(&flow->match) || match.node->bad) {
            reserved = strcmp(flow->name, "default") == 0 ? i : reserved;
        } else if (catch_all < pool->flow_count) {
            config_place_report(errors, CONFIG_ERROR, &item,
                                "flow `%s` has no match, as `%s` has none; expected one such flow",
                                flow->name, pool->flows[catch_all].name);
        } else {
            catch_all = i;
        }
    }
    if (pool->flow_count > 0) {
        config_check_names(&flows, &pool->flows[0].name, sizeof(pool->flows[0]), pool->flow_count,
                           "flow", errors);
    }
    if (catch_all == pool->flow_count) {
        if (reserved < pool->flow_count) {
            const struct config_place item = config_place_item(&flows, reserved);
            const struct config_place name = config_place_get(&item, "name");

            config_place_report(errors, CONFIG_ERROR, &name,
                                "`default` is the flow of all other requests; expected another "
                                "name, or a flow without match beside it");
        }
        add_default_flow(pool);
    }
    struct config_flow moved = pool->flows[catch_all];

    memmove(&pool->flows[catch_all], &pool->flows[catch_all + 1],
            (pool->flow_count - catch_all - 1) * sizeof(moved));
    pool->flows[pool->flow_count - 1] = moved;
    pool->default_flow = &pool->flows[pool->flow_count - 1];
}

/* ------------------------------------------------------------------ the pool */

static void warn_unread(const struct config_pool *pool, const struct config_place *place,
                        struct config_errors *errors)
{
    static const char *const http_keys[] = {"balance", "idle-connections", "http"};
    const struct config_place nfs = config_place_get(place, "nfs");

    /* With errors, the listener that was to lead here may be among them. */
    if (!pool->used_by_http && !pool->used_by_nfs && errors->error_count == 0) {
        config_place_report(errors, CONFIG_WARNING, place, "no listener leads to pool `%s`",
                            pool->name);
    }
    for (size_t i = 0; pool->used_by_nfs && i < sizeof(http_keys) / sizeof(http_keys[0]); i++) {
        if (config_place_has(place, http_keys[i])) {
            const struct config_place key = config_place_get(place, http_keys[i]);

            config_place_report(errors, CONFIG_WARNING, &key, "has no effect: the pool is nfs");
        }
    }
    if (pool->used_by_http && config_place_has(place, "nfs")) {
        config_place_report(errors, CONFIG_WARNING, &nfs, "has no effect: the pool is http");
    }
}

void config_check_pool(struct config_pool *pool, const struct config_place *place, unsigned flags,
                       struct config_errors *errors)
{
    const struct config_place queue = config_place_get(place, "queue");
    const struct config_place flow_limit = config_place_get(&queue, "flow-limit");

    check_servers(pool, place, flags, errors);
    config_check_scheduler(pool, place, errors);
    check_flows(pool, place, errors);
    config_check_cost(pool, place, errors);
    config_check_admission(pool, place, errors);
    if (pool->queue.flow_limit > pool->queue.limit) {
        if (config_place_has(&queue, "flow-limit")) {
            config_place_report(errors, CONFIG_WARNING, &flow_limit,
                                "is above `limit`, which is what counts then");
        }
        pool->queue.flow_limit = pool->queue.limit;
    }
    warn_unread(pool, place, errors);
}
