/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: building, holding, and what requests are looked up in. See plan.h. */
#include "proxy/core/pool/plan.h"

#include "proxy/core/pool/match.h"
#include "proxy/core/worker.h"
#include "proxy/io/memory.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------ building */

static struct pool *find_or_create_pool(struct runtime *runtime, const struct config_pool *config)
{
    struct pool *pool;

    TAILQ_FOREACH(pool, &runtime->pools, link)
    {
        if (strcmp(pool->name, config->name) == 0)
            return pool;
    }
    struct loop **loops = memory_alloc(runtime->worker_count * sizeof(*loops), "a pool");
    for (unsigned i = 0; i < runtime->worker_count; i++)
        loops[i] = &runtime->workers[i].loop;
    pool = pool_create(config->name, config->used_by_nfs, loops, runtime->worker_count);
    free(loops);
    TAILQ_INSERT_TAIL(&runtime->pools, pool, link);
    return pool;
}

static void note_needs(struct plan *plan, const struct config_match *match)
{
    plan->needs_host |= match->host != NULL;
    plan->needs_path |= match->path != NULL;
}

static void build_pool(struct plan *plan, struct plan_pool *out, const struct config_pool *config)
{
    out->config = config;
    out->plan = plan;
    out->pool = find_or_create_pool(plan->runtime, config);
    pool_configure(out->pool, config, &plan->runtime->server_count);
    out->rule_count = config->flow_count;
    out->rules = memory_zalloc(config->flow_count * sizeof(*out->rules), "flow rules");
    for (size_t i = 0; i < config->flow_count; i++) {
        out->rules[i].config = &config->flows[i];
        out->rules[i].class = pool_find_class(out->pool, config->flows[i].name);
        note_needs(plan, &config->flows[i].match);
    }
    if (config->flow_count == 1 && config->flows[0].by == CONFIG_FLOW_BY_NOTHING)
        out->only_class = out->rules[0].class;
    for (unsigned method = 0; method < HTTP1_METHOD_COUNT; method++) {
        const char *name = http1_method_name((enum http1_method)method);
        out->method_rate[method] = config_cost_of_method(&config->cost, name, strlen(name));
    }
    out->method_rate[HTTP1_METHOD_OTHER] = config->cost.other;
}

static const struct plan_pool *find_plan_pool(const struct plan *plan,
                                              const struct config_pool *config)
{
    return config != NULL ? &plan->pools[config - plan->config->pools] : NULL;
}

static void build_listener(struct plan *plan, struct plan_listener *out,
                           const struct config_listener *config)
{
    out->config = config;
    out->plan = plan;
    out->pool = find_plan_pool(plan, config->pool);
    out->route_count = config->route_count;
    out->routes = memory_zalloc(config->route_count * sizeof(*out->routes), "routes");
    for (size_t i = 0; i < config->route_count; i++) {
        out->routes[i].match = &config->routes[i].match;
        out->routes[i].pool = find_plan_pool(plan, config->routes[i].pool);
        note_needs(plan, &config->routes[i].match);
    }
}

struct plan *plan_build(struct runtime *runtime, struct config *config)
{
    struct plan *plan = memory_zalloc(sizeof(*plan), "a plan");

    plan->config = config;
    plan->runtime = runtime;
    plan->held = memory_zalloc(runtime->worker_count * sizeof(*plan->held), "a plan");
    plan->pools = memory_zalloc(config->pool_count * sizeof(*plan->pools), "a plan");
    plan->listeners = memory_zalloc(config->listener_count * sizeof(*plan->listeners), "a plan");
    atomic_store(&plan->workers, runtime->worker_count);
    for (size_t i = 0; i < config->pool_count; i++)
        build_pool(plan, &plan->pools[i], &config->pools[i]);
    for (size_t i = 0; i < config->listener_count; i++)
        build_listener(plan, &plan->listeners[i], &config->listeners[i]);
    return plan;
}

void plan_free(struct plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->config->pool_count; i++)
        free(plan->pools[i].rules);
    for (size_t i = 0; i < plan->config->listener_count; i++)
        free(plan->listeners[i].routes);
    free(plan->pools);
    free(plan->listeners);
    free(plan->held);
    config_free(plan->config);
    free(plan);
}

void plan_leave(struct plan *plan, struct worker *worker)
{
    if (plan != worker->plan && plan->held[worker->index] == 0 &&
        atomic_fetch_sub(&plan->workers, 1) == 1)
        plan_free(plan);
}

void plan_release(const struct plan_pool *pool, struct worker *worker)
{
    struct plan *plan = pool->plan;

    if (--plan->held[worker->index] == 0)
        plan_leave(plan, worker);
}

/* ------------------------------------------------------------------ routing and classification */

const struct plan_pool *plan_route_http(const struct plan_listener *listener,
                                        const struct http_facts *facts)
{
    for (size_t i = 0; i < listener->route_count; i++) {
        if (match_http(listener->routes[i].match, facts))
            return listener->routes[i].pool;
    }
    return listener->pool;
}

static void set_key(struct exchange *exchange, const void *bytes, size_t length)
{
    if (length > EXCHANGE_KEY_BYTES)
        length = EXCHANGE_KEY_BYTES;
    memcpy(exchange->key, bytes, length);
    exchange->key_length = (uint8_t)length;
}

static void set_address_key(struct exchange *exchange, const struct sockaddr *client)
{
    if (client->sa_family == AF_INET)
        set_key(exchange, &((const struct sockaddr_in *)client)->sin_addr, 4);
    else if (client->sa_family == AF_INET6)
        set_key(exchange, &((const struct sockaddr_in6 *)client)->sin6_addr, 16);
    else
        set_key(exchange, "unix", 4);
}

static void set_header_key(struct exchange *exchange, const struct config_flow *flow,
                           const struct http1_head *head)
{
    size_t length = strlen(flow->by_header);

    for (unsigned i = 0; i < head->fields_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->name.len == length &&
            strncasecmp(field->name.ptr, flow->by_header, length) == 0 && field->value.len > 0) {
            set_key(exchange, field->value.ptr, field->value.len);
            return;
        }
    }
    /* Without the field: no key, so the class's one instance without a key. */
}

static void take_http_rule(const struct plan_rule *rule, const struct http_facts *facts,
                           struct exchange *exchange)
{
    exchange->class = rule->class;
    switch (rule->config->by) {
    case CONFIG_FLOW_BY_CLIENT_ADDRESS:
        set_address_key(exchange, facts->client);
        break;
    case CONFIG_FLOW_BY_HEADER:
        set_header_key(exchange, rule->config, facts->head);
        break;
    case CONFIG_FLOW_BY_NOTHING:
    case CONFIG_FLOW_BY_UID:
        break;
    }
}

void plan_classify_http(const struct plan_pool *pool, const struct http_facts *facts,
                        struct exchange *exchange)
{
    const struct config_cost *cost = &pool->config->cost;

    exchange->pool = pool;
    exchange->lane = TAILQ_FIRST(&pool->pool->lanes);
    exchange->class = pool->only_class;
    if (exchange->class == NULL) {
        for (size_t i = 0; i < pool->rule_count; i++) {
            if (match_http(&pool->rules[i].config->match, facts)) {
                take_http_rule(&pool->rules[i], facts, exchange);
                break;
            }
        }
    }
    struct config_cost_rate rate = pool->method_rate[facts->head->method];
    /* Methods that only the table has a name for. */
    if (cost->by == CONFIG_COST_TABLE && facts->head->method == HTTP1_METHOD_OTHER)
        rate =
            config_cost_of_method(cost, facts->head->method_name.ptr, facts->head->method_name.len);
    cost_estimate_http(exchange, facts->head, rate);
}

static void take_nfs_rule(const struct plan_rule *rule, const struct nfs_facts *facts,
                          struct exchange *exchange)
{
    exchange->class = rule->class;
    if (rule->config->by == CONFIG_FLOW_BY_CLIENT_ADDRESS)
        set_address_key(exchange, facts->client);
    else if (rule->config->by == CONFIG_FLOW_BY_UID && facts->has_uid)
        set_key(exchange, &facts->uid, sizeof(facts->uid));
}

void plan_classify_nfs(const struct plan_pool *pool, const struct nfs_facts *facts,
                       struct exchange *exchange)
{
    exchange->pool = pool;
    exchange->class = pool->only_class;
    if (exchange->class == NULL) {
        for (size_t i = 0; i < pool->rule_count; i++) {
            if (match_nfs(&pool->rules[i].config->match, facts)) {
                take_nfs_rule(&pool->rules[i], facts, exchange);
                break;
            }
        }
    }
    cost_estimate_nfs(exchange, facts);
}
