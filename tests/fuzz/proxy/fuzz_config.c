/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a configuration: it is refused with at least one error, or it becomes a configuration
 * that keeps what config.h promises and that is no change to itself. Nothing is looked up.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds) {
        abort();
    }
}

static void check_match(const struct config_match *match)
{
    require(match->procedure <= CONFIG_CLASS_ANY);
    require(match->path == NULL || match->path[0] == '/');
    for (size_t i = 0; i < match->client_count; i++) {
        require(match->clients[i].bits <= 128);
    }
}

static void check_scheduler(const struct config_pool *pool)
{
    const struct sched_params params = {.algorithm = pool->algorithm, .options = pool->options};
    struct sched *sched = sched_create(&params);
    uint64_t reserved = 0;

    require(sched != NULL);
    sched_destroy(sched);
    for (size_t i = 0; i < pool->flow_count; i++) {
        const struct config_flow *flow = &pool->flows[i];
        struct sched_flow promised;

        require(sched_flow_init(&promised, flow->weight) == 0);
        require(sched_flow_set_terms(&promised, &flow->terms) == 0);
        require(flow->terms.limit_per_s == 0 ||
                flow->terms.limit_per_s >= flow->terms.reservation_per_s);
        require(flow->weight_min > 0 && flow->weight_min <= flow->weight);
        require(flow->weight <= flow->weight_max && flow->weight_max <= CONFIG_WEIGHT_MAX);
        reserved += flow->terms.reservation_per_s;
    }
    require(pool->options.capacity_per_s == 0 || reserved <= pool->options.capacity_per_s);
    require(pool->feedback_period_ns >= 1000000000);
}

static void check_pool(const struct config_pool *pool)
{
    check_scheduler(pool);
    require(pool->server_count > 0 && pool->depth_of_servers > 0);
    require(pool->queue.limit >= pool->queue.flow_limit && pool->queue.flow_limit > 0);
    require(pool->cost.unit_bytes > 0 && pool->cost.other.base > 0 && pool->cost.fallback > 0 &&
            pool->cost.max > 0 && pool->cost.unit_ns > 0);
    require(!(pool->used_by_http && pool->used_by_nfs));
    require(pool->flow_count > 0 && pool->default_flow == &pool->flows[pool->flow_count - 1]);
    require(config_match_is_empty(&pool->default_flow->match));
    for (size_t i = 0; i < pool->flow_count; i++) {
        const struct config_flow *flow = &pool->flows[i];

        require(flow->weight > 0 && flow->weight <= CONFIG_WEIGHT_MAX);
        require((flow->by == CONFIG_FLOW_BY_HEADER) == (flow->by_header != NULL));
        check_match(&flow->match);
    }
    for (size_t i = 0; i < pool->server_count; i++) {
        require(pool->servers[i].name != NULL && pool->servers[i].depth > 0);
    }
}

static void check_listener(const struct config_listener *listener)
{
    require(listener->bind_count > 0);
    require(listener->pool != NULL || listener->route_count > 0);
    require(listener->timeouts.header_ns > 0 && listener->timeouts.header_ns <= CONFIG_NEVER_NS);
    for (size_t i = 0; i < listener->route_count; i++) {
        require(listener->routes[i].pool != NULL);
        check_match(&listener->routes[i].match);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char disagreement[] = "the configuration can't be taken over";
    struct config_errors errors;
    struct config *config;

    config_errors_init(&errors);
    int result =
        config_load_text("fuzz", (const char *)data, size, CONFIG_NO_LOOKUP, &config, &errors);

    require((result == 0) == (config != NULL));
    require((result == 0) == (errors.error_count == 0));
    for (size_t i = 0; i < errors.count; i++) {
        char line[64];

        require(config_error_format(&errors, i, line, sizeof(line)) > 0);
        require(errors.list[i].line > 0 && errors.list[i].column > 0);
        /* The stages never disagree: what the shape lets pass, libcyaml takes. */
        require(strncmp(errors.list[i].message, disagreement, strlen(disagreement)) != 0);
    }
    if (config != NULL) {
        require(config->workers > 0 && config->listener_count > 0 && config->pool_count > 0);
        for (size_t i = 0; i < config->listener_count; i++) {
            check_listener(&config->listeners[i]);
        }
        for (size_t i = 0; i < config->pool_count; i++) {
            check_pool(&config->pools[i]);
        }
        require(config_diff_is_live(config, config, &errors));
    }
    config_free(config);
    config_errors_fini(&errors);
    return 0;
}
