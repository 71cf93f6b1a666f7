/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates, measurements and their means: see cost.h. */
#include "proxy/core/pool/cost.h"

#include "proxy/core/pool/plan.h"

#include <string.h>
#include <strings.h>

#define SAMPLE_MAX     (UINT64_C(1) << 48)
#define ANNOUNCED_PART 4 /* of the depth that an announced body may count for */

/* ------------------------------------------------------------------ running means */

static void add_to(atomic_uint_least64_t *mean, uint64_t sample)
{
    uint64_t old = atomic_load_explicit(mean, memory_order_relaxed);
    uint64_t scaled = sample << COST_MEAN_SHIFT;
    uint64_t new = old == 0 ? scaled : old - old / COST_MEAN_WEIGHT + scaled / COST_MEAN_WEIGHT;

    /* 0 means that there was none. */
    atomic_store_explicit(mean, new > 0 ? new : 1, memory_order_relaxed);
}

void cost_history_add(struct cost_history *history, unsigned operation, uint64_t sample)
{
    if (sample > SAMPLE_MAX)
        sample = SAMPLE_MAX;
    add_to(&history->means[0], sample);
    if (operation != 0)
        add_to(&history->means[operation], sample);
}

uint64_t cost_history_mean(const struct cost_history *history, unsigned operation)
{
    uint64_t mean = atomic_load_explicit(&history->means[operation], memory_order_relaxed);

    if (mean == 0)
        mean = atomic_load_explicit(&history->means[0], memory_order_relaxed);
    return mean == 0 ? 0 : ((mean >> (COST_MEAN_SHIFT - 1)) + 1) >> 1;
}

/* ------------------------------------------------------------------ units */

static uint64_t at_least_one(uint64_t cost)
{
    return cost > 0 ? cost : 1;
}

static uint64_t byte_cost(const struct config_cost *cost, uint64_t bytes)
{
    uint64_t units = cost->per_request + bytes / cost->unit_bytes + (bytes % cost->unit_bytes != 0);

    return at_least_one(units);
}

/* base + per_size * bytes / unit, rounded up, in two parts so that no product overflows. */
static uint64_t table_cost(const struct config_cost *cost, struct config_cost_rate rate,
                           uint64_t bytes)
{
    uint64_t whole = bytes / cost->unit_bytes;
    uint64_t rest = bytes % cost->unit_bytes;

    if (rate.per_size == 0)
        return rate.base;
    if (whole >= SCHED_COST_MAX / rate.per_size)
        return SCHED_COST_MAX;
    return rate.base + whole * rate.per_size +
           (rest * rate.per_size + cost->unit_bytes - 1) / cost->unit_bytes;
}

/* Rounded to the nearest. */
static uint64_t time_cost(const struct config_cost *cost, uint64_t ns)
{
    return at_least_one(ns / cost->unit_ns + (ns % cost->unit_ns >= (cost->unit_ns + 1) / 2));
}

/* ------------------------------------------------------------------ header fields */

static uint32_t parse_cost(struct http1_slice text, uint32_t max)
{
    uint64_t number = 0;

    if (text.len == 0)
        return 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
        if (number > max)
            number = max; /* 10 * max + 9 is far from overflowing */
    }
    return (uint32_t)number;
}

uint32_t cost_in_head(const struct http1_head *head, const char *name, uint32_t max)
{
    const struct http1_field *found = NULL;
    size_t length = strlen(name);

    for (unsigned i = 0; i < head->fields_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->name.len != length || strncasecmp(field->name.ptr, name, length) != 0)
            continue;
        if (found != NULL)
            return 0;
        found = field;
    }
    return found != NULL ? parse_cost(found->value, max) : 0;
}

void cost_read_reply(struct exchange *exchange, const struct http1_head *head)
{
    const struct config_cost *cost = &exchange->pool->config->cost;

    if (cost->by == CONFIG_COST_HEADER && cost->reply_header != NULL)
        exchange->said_cost = cost_in_head(head, cost->reply_header, cost->max);
}

/* ------------------------------------------------------------------ estimates */

static uint64_t header_estimate(const struct exchange *exchange, const struct config_cost *cost,
                                const struct http1_head *head)
{
    uint64_t said;

    if (cost->request_header != NULL)
        said = cost_in_head(head, cost->request_header, cost->max);
    else
        said = cost_history_mean(&exchange->class->said_costs, exchange->operation);
    return said > 0 ? said : cost->fallback;
}

static uint64_t time_estimate(const struct exchange *exchange, const struct config_cost *cost)
{
    uint64_t ns = cost_history_mean(&exchange->class->service_times_ns, exchange->operation);

    return ns > 0 ? time_cost(cost, ns) : cost->fallback;
}

static void set_table_cost(struct exchange *exchange, const struct config_cost *cost,
                           struct config_cost_rate rate, uint64_t bytes)
{
    exchange->cost_base = rate.base;
    exchange->cost_per_size = rate.per_size;
    exchange->cost = table_cost(cost, rate, bytes);
}

/*
 * An announced body is not there yet. Where the depth counts cost, a client could otherwise claim
 * all of it with one header field, for as long as it takes its time with the body.
 */
static uint64_t believed(const struct exchange *exchange, uint64_t without_body)
{
    const struct config_pool *config = exchange->pool->config;
    uint64_t depth = config->depth != 0 ? config->depth : config->depth_of_servers;
    uint64_t most = depth / ANNOUNCED_PART > without_body ? depth / ANNOUNCED_PART : without_body;

    if (config->depth_unit != CONFIG_DEPTH_COST || exchange->cost < most)
        return exchange->cost;
    return most;
}

void cost_estimate_http(struct exchange *exchange, const struct http1_head *head,
                        struct config_cost_rate rate)
{
    const struct config_cost *cost = &exchange->pool->config->cost;

    exchange->operation = (uint8_t)(1 + head->method);
    switch (cost->by) {
    case CONFIG_COST_REQUEST:
        break;
    case CONFIG_COST_BYTES:
        exchange->cost = byte_cost(cost, head->content_length);
        exchange->cost = believed(exchange, byte_cost(cost, 0));
        break;
    case CONFIG_COST_TABLE:
        set_table_cost(exchange, cost, rate, head->content_length);
        exchange->cost = believed(exchange, table_cost(cost, rate, 0));
        break;
    case CONFIG_COST_HEADER:
        exchange->cost = header_estimate(exchange, cost, head);
        break;
    case CONFIG_COST_SERVICE_TIME:
        exchange->cost = time_estimate(exchange, cost);
        break;
    }
}

void cost_estimate_nfs(struct exchange *exchange, const struct nfs_facts *facts)
{
    const struct config_cost *cost = &exchange->pool->config->cost;
    bool v3 = facts->nfs3_procedure >= 0 && facts->nfs3_procedure < CONFIG_NFS3_PROCEDURES;
    int class = (int)facts->procedure_class;

    exchange->operation =
        (uint8_t)(1 + (v3 ? facts->nfs3_procedure : CONFIG_NFS3_PROCEDURES + class));
    switch (cost->by) {
    case CONFIG_COST_REQUEST:
    case CONFIG_COST_HEADER:
        break;
    case CONFIG_COST_BYTES:
        exchange->cost = byte_cost(cost, facts->bytes);
        break;
    case CONFIG_COST_TABLE:
        set_table_cost(exchange, cost,
                       v3 ? cost->nfs3_rate[facts->nfs3_procedure] : cost->class_rate[class],
                       facts->bytes);
        break;
    case CONFIG_COST_SERVICE_TIME:
        exchange->cost = time_estimate(exchange, cost);
        break;
    }
}

/* ------------------------------------------------------------------ the truth */

static uint64_t settle_time(const struct exchange *exchange, const struct config_cost *cost,
                            enum outcome outcome)
{
    uint64_t now_ns = loop_now_ns(exchange->loop);
    /* The dispatching loop's clock may be a turn ahead of ours. */
    uint64_t held_ns = now_ns > exchange->dispatched_ns ? now_ns - exchange->dispatched_ns : 0;

    if (outcome == OUTCOME_ANSWERED)
        cost_history_add(&exchange->class->service_times_ns, exchange->operation, held_ns);
    return time_cost(cost, held_ns);
}

static uint64_t settle_header(const struct exchange *exchange)
{
    if (exchange->said_cost == 0)
        return exchange->cost;
    cost_history_add(&exchange->class->said_costs, exchange->operation, exchange->said_cost);
    return exchange->said_cost;
}

uint64_t cost_settle(const struct exchange *exchange, enum outcome outcome)
{
    const struct config_cost *cost = &exchange->pool->config->cost;
    const struct config_cost_rate rate = {exchange->cost_base, exchange->cost_per_size};
    uint64_t moved = exchange->bytes_in + exchange->bytes_out;

    switch (cost->by) {
    case CONFIG_COST_REQUEST:
        break;
    case CONFIG_COST_BYTES:
        return byte_cost(cost, moved);
    case CONFIG_COST_TABLE:
        return table_cost(cost, rate, moved);
    case CONFIG_COST_HEADER:
        return settle_header(exchange);
    case CONFIG_COST_SERVICE_TIME:
        return settle_time(exchange, cost, outcome);
    }
    return exchange->cost;
}
