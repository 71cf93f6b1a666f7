/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as the configuration makes and changes them: see pool.h. */
#include "proxy/core/pool/pool.h"

#include "proxy/core/container_of.h"
#include "proxy/core/gate.h"
#include "proxy/io/memory.h"

#include <stdlib.h>
#include <string.h>

struct pool *pool_create(const char *name, bool nfs, struct loop **loops, unsigned loop_count)
{
    struct pool *pool = memory_zalloc(sizeof(*pool), "a pool");

    pthread_mutex_init(&pool->lock, NULL);
    pool->name = memory_copy_string(name, "a pool's name");
    pool->nfs = nfs;
    pool->wake_ns = SCHED_NEVER_NS;
    TAILQ_INIT(&pool->lanes);
    TAILQ_INIT(&pool->classes);
    pool_feedback_init(pool);
    pool->sides = memory_zalloc(loop_count * sizeof(*pool->sides), "a pool's gate");
    pool->side_count = loop_count;
    for (unsigned i = 0; i < loop_count; i++)
        gate_side_init(&pool->sides[i], pool, loops[i], loop_count);
    return pool;
}

/* ------------------------------------------------------------------ lanes and servers */

static struct lane *add_lane(struct pool *pool)
{
    struct sched_params params = {.algorithm = pool->algorithm,
                                  .depth_unit = pool->depth_unit == CONFIG_DEPTH_COST
                                                    ? SCHED_DEPTH_COST
                                                    : SCHED_DEPTH_REQUESTS,
                                  .options = pool->options};
    struct lane *lane = memory_zalloc(sizeof(*lane), "a lane");

    lane->pool = pool;
    lane->index = pool->lane_count++;
    lane->sched = sched_create(&params);
    if (lane->sched == NULL)
        memory_fail("a scheduler");
    admit_init(&lane->admit, &(struct admit_options){.policy = ADMIT_NONE}, pool->clock_ns);
    TAILQ_INIT(&lane->servers);
    TAILQ_INSERT_TAIL(&pool->lanes, lane, link);
    return lane;
}

static bool same_endpoints(const struct server *server, const struct config_address *address)
{
    if (server->endpoint_count != address->endpoint_count)
        return false;
    for (size_t i = 0; i < address->endpoint_count; i++) {
        const struct config_endpoint *a = &server->endpoints[i];
        const struct config_endpoint *b = &address->endpoints[i];
        if (a->len != b->len || memcmp(&a->addr, &b->addr, a->len) != 0)
            return false;
    }
    return true;
}

static struct server *find_same_server(struct pool *pool, const struct config_server *config)
{
    struct lane *lane;
    struct server *server;

    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        TAILQ_FOREACH(server, &lane->servers, link)
        {
            if (strcmp(server->name, config->name) == 0 && same_endpoints(server, &config->address))
                return server;
        }
    }
    return NULL;
}

static struct server *add_server(struct pool *pool, const struct config_server *config,
                                 unsigned index)
{
    struct server *server = memory_zalloc(sizeof(*server), "a server");
    struct lane *lane = pool->nfs ? NULL : TAILQ_FIRST(&pool->lanes);

    server->pool = pool;
    server->lane = lane != NULL ? lane : add_lane(pool);
    server->name = memory_copy_string(config->name, "a server's name");
    server->address_text = memory_copy_string(config->address.text, "a server's address");
    server->endpoint_count = config->address.endpoint_count;
    server->endpoints =
        memory_alloc(server->endpoint_count * sizeof(*server->endpoints), "a server's addresses");
    memcpy(server->endpoints, config->address.endpoints,
           server->endpoint_count * sizeof(*server->endpoints));
    server->index = index;
    TAILQ_INSERT_TAIL(&server->lane->servers, server, link);
    return server;
}

static void configure_servers(struct pool *pool, const struct config_pool *config,
                              unsigned *next_index)
{
    struct lane *lane;
    struct server *server;

    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        TAILQ_FOREACH(server, &lane->servers, link)
        {
            server->removed = true;
        }
    }
    for (size_t i = 0; i < config->server_count; i++) {
        server = find_same_server(pool, &config->servers[i]);
        if (server == NULL)
            server = add_server(pool, &config->servers[i], (*next_index)++);
        server->removed = false;
        server->depth = config->servers[i].depth;
        server->depth_is_auto = config->servers[i].depth_is_auto;
        server->mount_port = config->servers[i].mount_port;
        /* The file says what is in service: an operator's drain ends with a reload. */
        if (server->state == SERVER_DRAIN)
            server->state = SERVER_READY;
    }
}

struct server *pool_find_server(struct pool *pool, const char *name)
{
    struct lane *lane;
    struct server *server;

    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        TAILQ_FOREACH(server, &lane->servers, link)
        {
            if (!server->removed && strcmp(server->name, name) == 0)
                return server;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ classes and flows */

struct flow_class *pool_find_class(struct pool *pool, const char *name)
{
    struct flow_class *class;

    TAILQ_FOREACH(class, &pool->classes, link)
    {
        if (!class->removed && strcmp(class->name, name) == 0)
            return class;
    }
    return NULL;
}

static struct flow_class *revive_or_add_class(struct pool *pool, const char *name)
{
    struct flow_class *class;

    TAILQ_FOREACH(class, &pool->classes, link)
    {
        if (strcmp(class->name, name) == 0)
            return class;
    }
    class = memory_zalloc(sizeof(*class), "a flow");
    class->pool = pool;
    class->name = memory_copy_string(name, "a flow's name");
    TAILQ_INSERT_TAIL(&pool->classes, class, link);
    pool->class_count++;
    return class;
}

/* Does something to every instance of the class. */
static void each_instance(struct flow_class *class,
                          void (*apply)(struct lane *lane, struct flow_class *class,
                                        struct sched_flow *flow))
{
    struct lane *lane;
    struct flow *flow;
    struct flow *next;

    TAILQ_FOREACH(lane, &class->pool->lanes, link)
    {
        if (lane->index < class->lane_flow_count && class->lane_flows[lane->index] != NULL)
            apply(lane, class, &class->lane_flows[lane->index]->sched);
        HASH_ITER(hash, lane->flows, flow, next)
        {
            if (flow->class == class)
                apply(lane, class, &flow->sched);
        }
    }
}

static void apply_weight(struct lane *lane, struct flow_class *class, struct sched_flow *flow)
{
    sched_flow_set_weight(lane->sched, flow, class->weight);
}

void pool_set_class_weight(struct flow_class *class, uint32_t weight)
{
    class->weight = weight;
    each_instance(class, apply_weight);
}

static void apply_queue_limit(struct lane *lane, struct flow_class *class, struct sched_flow *flow)
{
    (void)lane;
    sched_flow_set_limit(flow, class->queue_limit);
}

void pool_set_class_queue_limit(struct flow_class *class, uint32_t limit)
{
    class->queue_limit = limit;
    each_instance(class, apply_queue_limit);
}

static void apply_terms(struct lane *lane, struct flow_class *class, struct sched_flow *flow)
{
    (void)lane;
    sched_flow_set_terms(flow, pool_class_terms(class));
}

void pool_set_class_terms(struct flow_class *class, const struct sched_terms *terms)
{
    /* New terms begin anew, old ones go on: a reload is to be no amnesty. */
    if (memcmp(&class->terms[class->terms_in_use], terms, sizeof(*terms)) == 0)
        return;
    /* Of several instances each is told in its turn, and may be looked at with the old ones before.
     */
    unsigned other = 1 - class->terms_in_use;

    class->terms[other] = *terms;
    class->terms_in_use = other;
    each_instance(class, apply_terms);
}

void pool_switch_algorithm(struct lane *lane, enum sched_algorithm algorithm)
{
    if (sched_set_algorithm(lane->sched, algorithm) != 0)
        memory_fail("a scheduler");
}

void pool_set_admission(struct pool *pool, const struct config_admission *admission)
{
    struct lane *lane;

    pool->admission = *admission;
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        const struct admit_options options = {
            .policy = admission->algorithm,
            .slots = lane->admit.options.slots,
            .limit = admission->limit,
            .seed = lane->index + 1,
            .target_ns = admission->target_ns,
            .interval_ns = admission->interval_ns,
        };
        if (sched_watch_backlogs(lane->sched, admission->algorithm != ADMIT_NONE) != 0)
            memory_fail("a scheduler's backlogs");
        admit_change(&lane->admit, &options, pool->clock_ns);
    }
}

static struct flow *make_flow(struct flow_class *class, struct lane *lane, bool pinned)
{
    struct flow *flow = memory_zalloc(sizeof(*flow), "a flow");

    flow->class = class;
    sched_flow_init(&flow->sched, class->weight);
    if (pinned)
        sched_flow_pin(&flow->sched);
    sched_flow_set_limit(&flow->sched, class->queue_limit);
    sched_flow_set_terms(&flow->sched, pool_class_terms(class));
    if (sched_flow_attach(lane->sched, &flow->sched) != 0)
        memory_fail("a scheduler's flow");
    return flow;
}

static struct flow *unkeyed_flow(struct flow_class *class, struct lane *lane)
{
    if (lane->index >= class->lane_flow_count) {
        unsigned count = lane->index + 1;
        class->lane_flows =
            memory_resize(class->lane_flows, count * sizeof(*class->lane_flows), "a flow's lanes");
        memset(class->lane_flows + class->lane_flow_count, 0,
               (count - class->lane_flow_count) * sizeof(*class->lane_flows));
        class->lane_flow_count = count;
    }
    if (class->lane_flows[lane->index] == NULL)
        class->lane_flows[lane->index] = make_flow(class, lane, class->reserves);
    return class->lane_flows[lane->index];
}

/* The instance without a key of a lane is given up, unless it has requests. */
static void leave_lane(struct flow_class *class, struct lane *lane)
{
    struct flow *flow =
        lane->index < class->lane_flow_count ? class->lane_flows[lane->index] : NULL;

    if (flow != NULL && sched_flow_detach(lane->sched, &flow->sched) == 0) {
        class->lane_flows[lane->index] = NULL;
        free(flow);
    }
}

void pool_flow_ended(struct exchange *exchange)
{
    if (exchange->class->removed)
        leave_lane(exchange->class, exchange->lane);
}

/* A declared flow is there from the start, in every lane: some algorithms keep a part free for it.
 */
static void settle_classes(struct pool *pool)
{
    struct flow_class *class;
    struct lane *lane;

    TAILQ_FOREACH(class, &pool->classes, link)
    {
        TAILQ_FOREACH(lane, &pool->lanes, link)
        {
            if (class->removed)
                leave_lane(class, lane);
            else if (class->reserves)
                unkeyed_flow(class, lane);
        }
    }
}

/* What a declared class without keys has in a lane is pinned; the others' is made when needed. */
static void set_kind(struct flow_class *class, const struct config_flow *config)
{
    const bool keyed = config->by != CONFIG_FLOW_BY_NOTHING;
    const bool reserves = !keyed && !config->implicit;
    struct lane *lane;

    if (class->keyed != keyed || class->reserves != reserves) {
        TAILQ_FOREACH(lane, &class->pool->lanes, link)
        {
            leave_lane(class, lane);
        }
    }
    class->keyed = keyed;
    class->reserves = reserves;
}

static void configure_classes(struct pool *pool, const struct config_pool *config)
{
    struct flow_class *class;

    TAILQ_FOREACH(class, &pool->classes, link)
    {
        class->removed = true;
    }
    for (size_t i = 0; i < config->flow_count; i++) {
        const struct config_flow *flow = &config->flows[i];
        class = revive_or_add_class(pool, flow->name);
        class->removed = false;
        set_kind(class, flow);
        class->key_limit = flow->key_limit;
        class->burst_is_auto = flow->burst_is_auto;
        pool_set_class_weight(class, flow->weight);
        pool_set_class_queue_limit(class, flow->queue_limit);
        pool_set_class_terms(class, &flow->terms);
    }
}

struct flow *pool_flow_for(struct exchange *exchange)
{
    struct flow_class *class = exchange->class;
    struct lane *lane = exchange->lane;
    struct flow *flow;

    if (exchange->key_length == 0)
        return unkeyed_flow(class, lane);

    struct flow_id id = {.class = class, .length = exchange->key_length};
    size_t id_length = offsetof(struct flow_id, key) + exchange->key_length;
    memcpy(id.key, exchange->key, exchange->key_length);
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the key is initialised. */
    HASH_FIND(hash, lane->flows, &id, id_length, flow);
    if (flow != NULL)
        return flow;
    /* Keys beyond the limit share one instance with requests that have no key: bounded memory, and
     * the flow's weight at least once. */
    if (class->instances >= class->key_limit)
        return unkeyed_flow(class, lane);
    flow = make_flow(class, lane, false);
    memcpy(&flow->id, &id, id_length);
    HASH_ADD(hash, lane->flows, id, id_length, flow);
    class->instances++;
    return flow;
}

static void forget_flow(struct lane *lane, struct flow *flow)
{
    if (flow->id.class == NULL) {
        leave_lane(flow->class, lane);
        return;
    }
    sched_flow_detach(lane->sched, &flow->sched);
    /* uthash keeps its table while it has entries. */
    HASH_DELETE(hash, lane->flows, flow); /* NOLINT(clang-analyzer-core.NullDereference) */
    flow->class->instances--;
    free(flow);
}

bool pool_retire_flows(struct lane *lane, unsigned budget, uint64_t now_ns)
{
    struct sched_flow *idle;

    if (lane->flows == NULL)
        return false;
    /* Rates are forgotten with time, of which a scheduler hears with requests. */
    if (sched_queued(lane->sched) == 0)
        sched_dispatch(lane->sched, now_ns);
    for (; budget > 0 && (idle = sched_retire_next(lane->sched)) != NULL; budget--)
        forget_flow(lane, container_of(idle, struct flow, sched));
    return budget == 0;
}

void pool_drop_flow(struct exchange *exchange)
{
    struct flow *flow = exchange->flow;

    if (flow->id.class != NULL && sched_flow_idle(exchange->lane->sched, &flow->sched))
        forget_flow(exchange->lane, flow);
    exchange->flow = NULL;
}

/* ------------------------------------------------------------------ the whole */

void pool_configure(struct pool *pool, const struct config_pool *config, unsigned *next_index)
{
    struct lane *lane;

    pthread_mutex_lock(&pool->lock);
    pool->algorithm = config->algorithm;
    pool->options = config->options;
    pool->balance = config->balance;
    pool->depth_unit = config->depth_unit;
    pool->depth = config->depth;
    pool->queue_limit = config->queue.limit;
    pool->flow_limit = config->queue.flow_limit;
    pool->queue_timeout_ns = config->queue.timeout_ns;
    pool->dead_after = config->retry.dead_after;
    pool->dead_for_ns = config->retry.dead_for_ns;
    configure_servers(pool, config, next_index);
    configure_classes(pool, config);
    settle_classes(pool);
    pool_feedback_configure(pool, config);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        sched_set_options(lane->sched, &pool->options);
        pool_switch_algorithm(lane, pool->algorithm);
        sched_set_limits(lane->sched, pool->flow_limit, pool->queue_limit);
        gate_update_depth(lane, loop_clock_ns());
    }
    pool_set_admission(pool, &config->admission);
    pthread_mutex_unlock(&pool->lock);
    gate_kick(pool);
}

static void free_server(struct server *server)
{
    free(server->name);
    free(server->address_text);
    free(server->endpoints);
    free(server);
}

static void free_lane(struct lane *lane)
{
    struct server *server;
    struct flow *flow;
    struct flow *next;

    sched_destroy(lane->sched);
    HASH_ITER(hash, lane->flows, flow, next)
    {
        HASH_DELETE(hash, lane->flows, flow); /* NOLINT(clang-analyzer-unix.Malloc) */
        free(flow);
    }
    while ((server = TAILQ_FIRST(&lane->servers)) != NULL) {
        TAILQ_REMOVE(&lane->servers, server, link);
        free_server(server);
    }
    free(lane);
}

void pool_destroy(struct pool *pool)
{
    struct lane *lane;
    struct flow_class *class;

    while ((lane = TAILQ_FIRST(&pool->lanes)) != NULL) {
        TAILQ_REMOVE(&pool->lanes, lane, link);
        free_lane(lane);
    }
    while ((class = TAILQ_FIRST(&pool->classes)) != NULL) {
        TAILQ_REMOVE(&pool->classes, class, link);
        for (unsigned i = 0; i < class->lane_flow_count; i++)
            free(class->lane_flows[i]);
        free(class->lane_flows);
        free(class->name);
        free(class);
    }
    for (unsigned i = 0; i < pool->side_count; i++)
        gate_side_fini(&pool->sides[i]);
    free(pool->sides);
    pthread_mutex_destroy(&pool->lock);
    free(pool->name);
    free(pool);
}
