/* SPDX-License-Identifier: Apache-2.0 */
/* config_check()'s part for a pool's scheduler: options that fit the algorithm, and what the flows
 * were promised. */
#include <inttypes.h>
#include <string.h>

#include "proxy/config/config_schema.h"

#define BIT(algorithm) (UINT32_C(1) << (algorithm))
#define RATES          (BIT(SCHED_ALGORITHM_MCLOCK) | BIT(SCHED_ALGORITHM_LEAKY_BUCKET))

#define WEIGHTLESS                                                                                 \
    (BIT(SCHED_ALGORITHM_FIFO) | BIT(SCHED_ALGORITHM_EDF) | BIT(SCHED_ALGORITHM_SCF) |             \
     BIT(SCHED_ALGORITHM_LEAKY_BUCKET))

/* A key that only some algorithms read. */
struct use {
    const char *key;
    uint32_t algorithms;
    const char *readers;
};

static const struct use option_uses[] = {
    {"slack", BIT(SCHED_ALGORITHM_HYBRID), "hybrid"},
    {"capacity", BIT(SCHED_ALGORITHM_WFQ) | BIT(SCHED_ALGORITHM_MCLOCK), "wfq and mclock"},
    {"ageing", BIT(SCHED_ALGORITHM_SCF), "scf"},
    {"at-limit", BIT(SCHED_ALGORITHM_MCLOCK), "mclock"},
    {0},
};

static const struct use term_uses[] = {
    {"target", BIT(SCHED_ALGORITHM_EDF), "edf"},
    {"reservation", BIT(SCHED_ALGORITHM_MCLOCK), "mclock"},
    {"limit", RATES, "mclock and leaky-bucket"},
    {"burst", RATES, "mclock and leaky-bucket"},
    {"response-target", ~WEIGHTLESS, "those that go by weight"},
    {0},
};

static void warn_unused(const struct use *uses, enum sched_algorithm algorithm,
                        const struct config_place *map, struct config_errors *errors)
{
    for (; uses->key != NULL; uses++) {
        if ((uses->algorithms & BIT(algorithm)) == 0 && config_place_has(map, uses->key)) {
            const struct config_place key = config_place_get(map, uses->key);

            config_place_report(errors, CONFIG_WARNING, &key,
                                "has no effect with algorithm %s; it is for %s",
                                sched_algorithm_name(algorithm), uses->readers);
        }
    }
}

const char *config_setting_readers(const char *name, enum sched_algorithm algorithm)
{
    static const struct use *const tables[] = {option_uses, term_uses};

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct use *use = tables[i]; use->key != NULL; use++) {
            if (strcmp(use->key, name) == 0) {
                return (use->algorithms & BIT(algorithm)) != 0 ? NULL : use->readers;
            }
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ one flow's terms */

static void check_response_target(struct config_flow *flow, const struct config_place *place,
                                  struct config_errors *errors)
{
    const struct config_place range = config_place_get(place, "weight-range");

    config_weight_range(flow->weight_range, flow->weight, &flow->weight_min, &flow->weight_max);
    if (flow->weight < flow->weight_min || flow->weight > flow->weight_max) {
        config_place_report(errors, CONFIG_ERROR, &range,
                            "leaves out the weight; expected a range with %" PRIu32 " in it",
                            flow->weight);
    }
    if (flow->response_target_ns == 0 && config_place_has(place, "weight-range")) {
        config_place_report(errors, CONFIG_WARNING, &range,
                            "has no effect without `response-target`");
    }
}

static void check_terms(struct config_flow *flow, enum sched_algorithm algorithm,
                        const struct config_place *place, struct config_errors *errors)
{
    struct sched_terms *terms = &flow->terms;
    const struct config_place limit = config_place_get(place, "limit");
    const struct config_place burst = config_place_get(place, "burst");

    warn_unused(term_uses, algorithm, place, errors);
    check_response_target(flow, place, errors);
    if (terms->limit_per_s != 0 && terms->limit_per_s < terms->reservation_per_s) {
        config_place_report(errors, CONFIG_ERROR, &limit,
                            "is below the reservation; expected at least %" PRIu64 "/s",
                            terms->reservation_per_s);
    }
    flow->burst_is_auto = terms->burst == CONFIG_BURST_AUTO;
    if (flow->burst_is_auto) {
        terms->burst = config_auto_burst(terms->limit_per_s);
    } else if (terms->limit_per_s == 0 && (RATES & BIT(algorithm)) != 0) {
        config_place_report(errors, CONFIG_WARNING, &burst, "has no effect without `limit`");
    }
}

/* ------------------------------------------------------------------ windows */

/* The largest cost of a request in what the depth counts, or as much of it as is known; 0: nothing
 * is. */
static uint64_t largest_cost(const struct config_pool *pool)
{
    uint64_t largest = 1;

    if (pool->depth_unit == CONFIG_DEPTH_REQUESTS || pool->cost.by == CONFIG_COST_REQUEST) {
        return 1;
    }
    if (pool->cost.by == CONFIG_COST_HEADER) {
        return pool->cost.max;
    }
    if (pool->cost.by != CONFIG_COST_TABLE) {
        return 0;
    }
    for (size_t i = 0; i < pool->cost.table_count; i++) {
        if (pool->cost.table[i].cost > largest) {
            largest = pool->cost.table[i].cost;
        }
    }
    return largest;
}

/* The depth that one scheduler shares out: of an NFS pool each server has its own. */
static uint64_t shared_depth(const struct config_pool *pool)
{
    uint64_t least = pool->servers[0].depth;

    if (!pool->used_by_nfs) {
        return pool->depth != 0 && pool->depth < pool->depth_of_servers ? pool->depth
                                                                        : pool->depth_of_servers;
    }
    for (size_t i = 1; i < pool->server_count; i++) {
        if (pool->servers[i].depth < least) {
            least = pool->servers[i].depth;
        }
    }
    return least;
}

/* All flows, with the implicit one. */
static uint64_t sum_of_weights(const struct config_pool *pool)
{
    bool catch_all = false;
    uint64_t sum = 0;

    for (size_t i = 0; i < pool->flow_count; i++) {
        sum += pool->flows[i].weight;
        catch_all |= config_match_is_empty(&pool->flows[i].match);
    }
    return catch_all ? sum : sum + 1;
}

/* A window below one request is overrun by every request there is, and shares with it. */
static void warn_narrow_windows(const struct config_pool *pool, const struct config_place *flows,
                                struct config_errors *errors)
{
    const uint64_t cost = largest_cost(pool), weights = sum_of_weights(pool);
    const uint64_t depth = shared_depth(pool);
    const uint64_t slack =
        pool->algorithm == SCHED_ALGORITHM_HYBRID ? pool->options.slack : UINT64_C(0);

    for (size_t i = 0; cost > slack && i < pool->flow_count; i++) {
        const struct config_place item = config_place_item(flows, i);

        /* depth <= 2^32, weight < 2^20, cost <= 2^20, a sum of weights < 2^44 in any file. */
        if (depth * pool->flows[i].weight < (cost - slack) * weights) {
            config_place_report(errors, CONFIG_WARNING, &item,
                                "the window of flow `%s` is %.2f, less than the cost %" PRIu64
                                " of a request; raise the depth%s, or its weight, to keep shares",
                                pool->flows[i].name,
                                (double)depth * pool->flows[i].weight / (double)weights +
                                    (double)slack,
                                cost, slack > 0 ? ", the slack" : "");
        }
    }
}

/* ------------------------------------------------------------------ the pool */

static void check_promises(const struct config_pool *pool, const struct config_place *scheduler,
                           struct config_errors *errors)
{
    const struct config_place algorithm = config_place_get(scheduler, "algorithm");
    const struct config_place capacity = config_place_get(scheduler, "capacity");
    bool targets = false, limits = false;
    uint64_t reserved = 0;

    for (size_t i = 0; i < pool->flow_count; i++) {
        const struct sched_terms *terms = &pool->flows[i].terms;

        targets |= terms->target_ns != 0;
        limits |= terms->limit_per_s != 0;
        if (__builtin_add_overflow(reserved, terms->reservation_per_s, &reserved)) {
            reserved = UINT64_MAX;
        }
    }
    if (pool->options.capacity_per_s != 0 && reserved > pool->options.capacity_per_s) {
        config_place_report(errors, CONFIG_ERROR, &capacity,
                            "is below the sum of the flows' reservations; expected at least "
                            "%" PRIu64 "/s, or smaller reservations",
                            reserved);
    }
    if (pool->algorithm == SCHED_ALGORITHM_EDF && !targets) {
        config_place_report(errors, CONFIG_WARNING, &algorithm,
                            "no flow has a target, so that requests go by arrival");
    }
    if (pool->algorithm == SCHED_ALGORITHM_LEAKY_BUCKET && !limits) {
        config_place_report(errors, CONFIG_WARNING, &algorithm,
                            "no flow has a limit, so that requests go by arrival");
    }
    if (pool->algorithm == SCHED_ALGORITHM_MCLOCK && !limits && reserved == 0) {
        config_place_report(errors, CONFIG_WARNING, &algorithm,
                            "no flow has a reservation or a limit, so that requests go as in sfqd");
    }
}

void config_check_scheduler(struct config_pool *pool, const struct config_place *place,
                            struct config_errors *errors)
{
    const struct config_place scheduler = config_place_get(place, "scheduler");
    const struct config_place flows = config_place_get(place, "flows");

    bool targets = false;

    warn_unused(option_uses, pool->algorithm, &scheduler, errors);
    for (size_t i = 0; i < pool->flow_count; i++) {
        const struct config_place item = config_place_item(&flows, i);

        check_terms(&pool->flows[i], pool->algorithm, &item, errors);
        targets |= pool->flows[i].response_target_ns != 0;
    }
    if (!targets && config_place_has(&scheduler, "feedback")) {
        const struct config_place feedback = config_place_get(&scheduler, "feedback");

        config_place_report(errors, CONFIG_WARNING, &feedback,
                            "has no effect, since no flow has a response-target");
    }
    check_promises(pool, &scheduler, errors);
    if (pool->algorithm == SCHED_ALGORITHM_RW || pool->algorithm == SCHED_ALGORITHM_HYBRID) {
        warn_narrow_windows(pool, &flows, errors);
    }
}
