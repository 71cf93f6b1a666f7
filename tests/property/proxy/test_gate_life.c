/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random lives of a gate, several loops driven by one thread: requests of many flows come, are
 * finished well and badly, cancelled at any moment, moved; servers fail, come back, are drained;
 * weights, depths and algorithms change and configurations are reloaded.
 *
 * Always: no server and no pool above the largest depth it had while its requests were out; every
 * request gets exactly one end (released after a dispatch, refused, or given back by cancelling);
 * requests of one flow and loop are dispatched in their order; and when all is over nothing is
 * left, and the meters say what was done.
 */
#include "proxy/control/log.h"
#include "tests/property/sched/property.h"
#include "tests/unit/proxy/core/fixture.h"

#define WORKERS  3
#define REQUESTS 64
#define STEPS    1500

enum fate { FREE, IN_GATE, AT_SERVER, GIVEN_UP };

struct life;

struct piece {
    struct exchange exchange;
    struct life *life;
    enum fate fate;
    uint64_t sequence; /* of its submission */
    bool has_been_out; /* dispatched before and queued again by a move */
    bool finished;     /* gate_finish was called */
};

struct life {
    uint64_t seed;
    struct property_random random;
    struct world world;
    struct piece pieces[REQUESTS];
    uint64_t next_sequence;
    uint64_t answered, failed, aborted, cancelled, refused, no_server, timeouts, submitted, ended;
    uint64_t not_admitted, marked, cancelled_early;
};

static struct piece *piece_of(struct exchange *exchange)
{
    return container_of(exchange, struct piece, exchange);
}

static void on_dispatched(struct exchange *exchange)
{
    struct piece *piece = piece_of(exchange);
    struct life *life = piece->life;

    property_check(life->seed, piece->fate == IN_GATE);
    property_check(life->seed, exchange->state == EXCHANGE_DISPATCHED);
    property_check(life->seed, exchange->server != NULL);
    piece->fate = AT_SERVER;
    for (unsigned i = 0; i < REQUESTS; i++) {
        const struct piece *other = &life->pieces[i];
        bool same =
            other->exchange.loop == exchange->loop && other->exchange.flow == exchange->flow;
        bool waits = other->fate == IN_GATE && other->exchange.state == EXCHANGE_QUEUED;
        if (same && waits && !piece->has_been_out)
            property_check(life->seed, other->sequence > piece->sequence || other->has_been_out);
    }
}

static void count_refusal(struct life *life, enum refusal refusal)
{
    if (refusal == REFUSAL_NO_SERVER)
        life->no_server++;
    else if (refusal == REFUSAL_TIMEOUT)
        life->timeouts++;
    else if (refusal == REFUSAL_ADMISSION)
        life->not_admitted++;
    else
        life->refused++;
}

static void on_marked(struct exchange *exchange)
{
    struct piece *piece = piece_of(exchange);

    property_check(piece->life->seed, piece->fate == IN_GATE && exchange->mark_ns > 0);
    piece->life->marked++;
}

static void on_refused(struct exchange *exchange, enum refusal refusal)
{
    struct piece *piece = piece_of(exchange);
    struct life *life = piece->life;

    property_check(life->seed, piece->fate == IN_GATE);
    property_check(life->seed, exchange->state == EXCHANGE_READING);
    piece->fate = FREE;
    life->ended++;
    count_refusal(life, refusal);
}

static void on_released(struct exchange *exchange)
{
    struct piece *piece = piece_of(exchange);
    struct life *life = piece->life;

    if (piece->fate == GIVEN_UP) {
        /* Cancelled on its way: to a server, or to being refused by another loop. */
        if (exchange->state == EXCHANGE_READING)
            count_refusal(life, (enum refusal)exchange->refusal);
        else
            life->aborted++;
    } else {
        property_check(life->seed, piece->fate == AT_SERVER && piece->finished);
    }
    piece->fate = FREE;
    life->ended++;
}

static const struct exchange_ops piece_ops = {
    .dispatched = on_dispatched,
    .refused = on_refused,
    .released = on_released,
    .marked = on_marked,
};

static const char *const policies[] = {"none", "tail", "codel", "pie", "duk-literal", "duk"};

static void configuration_text(struct life *life, char *text, size_t size)
{
    static const char *const algorithms[] = {"fifo", "sfq", "sfqd", "min-sfqd"};
    static const char *const totals[] = {"none", "none", "1", "3", "6"};
    struct property_random *random = &life->random;

    snprintf(text, size,
             "workers: %d\n"
             "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
             "pools:\n"
             "  - name: farm\n"
             "    depth: %s\n"
             "    balance: %s\n"
             "    scheduler: %s\n"
             "    admission: { algorithm: %s, action: %s, limit: %u }\n"
             "    retry: { dead-after: %u, dead-for: 100ms }\n"
             "    queue: { limit: %u, flow-limit: %u, timeout: 300ms }\n"
             "    servers: [{ name: a, address: '127.0.0.1:1', depth: %u },\n"
             "              { name: b, address: '127.0.0.1:2', depth: %u }%s]\n"
             "    flows: [{ name: gold, weight: %u, match: { path: /gold } },\n"
             "            { name: users, weight: 1, by: client-address, key-limit: 3 }]\n",
             WORKERS, totals[property_between(random, 0, 4)],
             property_chance(random, 50) ? "round-robin" : "least-outstanding",
             algorithms[property_between(random, 0, 3)], policies[property_between(random, 0, 5)],
             property_chance(random, 50) ? "mark" : "refuse",
             (unsigned)property_between(random, 1, 12), (unsigned)property_between(random, 1, 3),
             (unsigned)property_between(random, 1, 40), (unsigned)property_between(random, 1, 20),
             (unsigned)property_between(random, 1, 4), (unsigned)property_between(random, 1, 4),
             property_chance(random, 50) ? ", { name: c, address: '127.0.0.1:3', depth: 2 }" : "",
             (unsigned)property_between(random, 1, 5));
}

static void come(struct life *life)
{
    struct piece *piece = &life->pieces[property_between(&life->random, 0, REQUESTS - 1)];
    struct world *world = &life->world;
    unsigned worker = (unsigned)property_between(&life->random, 0, WORKERS - 1);
    struct loop *loop = &world->runtime->workers[worker].loop;
    struct exchange *exchange = &piece->exchange;

    if (piece->fate != FREE)
        return;
    memset(exchange, 0xa5, sizeof(*exchange));
    exchange_init(exchange, loop, &piece_ops, world->clock_ns);
    exchange->pool = plan_pool_of(world);
    exchange->lane = TAILQ_FIRST(&pool_of(world)->lanes);
    exchange->cost = property_between(&life->random, 1, 10);
    if (property_chance(&life->random, 40)) {
        exchange->class = pool_find_class(pool_of(world), "gold");
    } else {
        exchange->class = pool_find_class(pool_of(world), "users");
        exchange->key_length = 1;
        exchange->key[0] = (uint8_t)property_between(&life->random, 1, 6);
    }
    piece->life = life;
    piece->fate = IN_GATE;
    piece->sequence = life->next_sequence++;
    piece->has_been_out = piece->finished = false;
    life->submitted++;
    gate_submit(exchange);
}

/* A piece that is at a server and not finished yet, from a random place on; or NULL. */
static struct piece *one_at_server(struct life *life)
{
    uint64_t start = property_between(&life->random, 0, REQUESTS - 1);

    for (unsigned i = 0; i < REQUESTS; i++) {
        struct piece *piece = &life->pieces[(start + i) % REQUESTS];
        if (piece->fate == AT_SERVER && !piece->finished)
            return piece;
    }
    return NULL;
}

static void finish_one(struct life *life)
{
    struct piece *piece = one_at_server(life);
    uint64_t outcome = property_between(&life->random, 0, 9);

    if (piece == NULL)
        return;
    piece->finished = true;
    life->answered += outcome < 8;
    life->failed += outcome == 8;
    life->aborted += outcome == 9;
    gate_finish(&piece->exchange,
                outcome < 8    ? OUTCOME_ANSWERED
                : outcome == 8 ? OUTCOME_FAILED
                               : OUTCOME_ABORTED,
                property_between(&life->random, 0, 20));
}

static void cancel_one(struct life *life)
{
    struct piece *piece = &life->pieces[property_between(&life->random, 0, REQUESTS - 1)];

    if (piece->fate != IN_GATE)
        return;
    life->cancelled_early += piece->exchange.state == EXCHANGE_SUBMITTED;
    if (gate_cancel(&piece->exchange)) {
        property_check(life->seed, piece->exchange.state == EXCHANGE_READING);
        piece->fate = FREE;
        life->cancelled++;
        life->ended++;
    } else {
        piece->fate = GIVEN_UP;
    }
}

static void move_one(struct life *life)
{
    struct piece *piece = one_at_server(life);

    if (piece == NULL)
        return;
    if (property_chance(&life->random, 50))
        gate_server_failed(piece->exchange.server, life->world.clock_ns);
    switch (gate_move(&piece->exchange)) {
    case GATE_MOVED:
        break;
    case GATE_QUEUED:
        piece->fate = IN_GATE;
        piece->has_been_out = true;
        break;
    case GATE_NOWHERE:
        piece->finished = true;
        life->failed++;
        gate_finish(&piece->exchange, OUTCOME_FAILED, 0);
        break;
    }
}

static void reload(struct life *life)
{
    char text[1200];

    configuration_text(life, text, sizeof(text));
    world_reload(&life->world, text);
    for (unsigned i = 0; i < REQUESTS; i++) {
        if (life->pieces[i].fate != FREE)
            life->pieces[i].exchange.pool = plan_pool_of(&life->world);
    }
}

static void change_admission(struct life *life)
{
    struct pool *pool = pool_of(&life->world);
    struct property_random *random = &life->random;
    const struct config_admission admission = {
        .algorithm = (enum admit_policy)property_between(random, 0, ADMIT_POLICIES - 1),
        .action = property_chance(random, 50) ? CONFIG_ADMISSION_MARK : CONFIG_ADMISSION_REFUSE,
        .limit = (uint32_t)property_between(random, 1, 12),
    };

    pthread_mutex_lock(&pool->lock);
    pool_set_admission(pool, &admission);
    pthread_mutex_unlock(&pool->lock);
}

static void change_something(struct life *life)
{
    static const char *const algorithms[] = {"fifo", "sfq", "sfqd", "min-sfqd"};
    struct runtime *runtime = life->world.runtime;
    struct property_random *random = &life->random;
    const char *server = property_chance(random, 50) ? "a" : "b";
    char why[200];

    switch (property_between(random, 0, 8)) {
    case 0:
        admin_set_weight(runtime, "farm", "gold", property_between(random, 1, 9), why, sizeof(why));
        break;
    case 1:
        admin_set_algorithm(runtime, "farm", algorithms[property_between(random, 0, 3)], why,
                            sizeof(why));
        break;
    case 2:
        admin_set_server_depth(runtime, "farm", server, property_between(random, 1, 5), why,
                               sizeof(why));
        break;
    case 3:
        admin_set_pool_depth(runtime, "farm", property_between(random, 0, 6), why, sizeof(why));
        break;
    case 4:
        admin_set_server_state(runtime, "farm", server,
                               property_chance(random, 30) ? "drain" : "ready", why, sizeof(why));
        break;
    case 5:
        gate_server_failed(pool_find_server(pool_of(&life->world), server), life->world.clock_ns);
        break;
    case 6:
        gate_server_connected(pool_find_server(pool_of(&life->world), server));
        break;
    case 7:
        change_admission(life);
        break;
    default:
        reload(life);
        break;
    }
}

/* What each server and the pool have outstanding. */
struct load {
    uint64_t pool;
    uint64_t servers[4];
};

static struct load load_of(const struct life *life)
{
    struct pool *pool = pool_of(&life->world);
    struct load load = {.pool = pool->outstanding};
    struct server *server;

    TAILQ_FOREACH(server, &TAILQ_FIRST(&pool->lanes)->servers, link)
    {
        load.servers[server->index] = server->outstanding;
    }
    return load;
}

/* Settling may only add where there is room by the present depths. */
static void check_depths(const struct life *life, const struct load *before)
{
    struct pool *pool = pool_of(&life->world);
    struct server *server;

    if (pool->depth != 0)
        property_check(life->seed,
                       pool->outstanding <= pool->depth || pool->outstanding <= before->pool);
    TAILQ_FOREACH(server, &TAILQ_FIRST(&pool->lanes)->servers, link)
    {
        uint64_t most = gate_server_is_usable(server, life->world.clock_ns) ? server->depth : 0;
        property_check(life->seed, server->outstanding <= most ||
                                       server->outstanding <= before->servers[server->index]);
    }
    property_check(life->seed, pool_find_class(pool, "users")->instances <= 3);
    const struct lane *lane = TAILQ_FIRST(&pool->lanes);
    property_check(life->seed, admit_look(&lane->admit).queue == sched_queued(lane->sched));
}

static void step(struct life *life)
{
    uint64_t what = property_between(&life->random, 0, 99);

    if (what < 45)
        come(life);
    else if (what < 75)
        finish_one(life);
    else if (what < 85)
        cancel_one(life);
    else if (what < 88)
        move_one(life);
    else if (what < 94)
        change_something(life);
    else
        set_clock(&life->world,
                  life->world.clock_ns + property_between(&life->random, 1, 60) * MILLISECOND_NS);
    if (property_chance(&life->random, 50)) {
        struct load before = load_of(life);
        settle(&life->world, (unsigned)property_between(&life->random, 0, WORKERS - 1));
        check_depths(life, &before);
    }
}

static void end_of_life(struct life *life)
{
    struct pool *pool = pool_of(&life->world);

    for (unsigned round = 0; round < 4 * REQUESTS && life->ended < life->submitted; round++) {
        settle_all(&life->world);
        while (one_at_server(life) != NULL)
            finish_one(life);
        pass_time(&life->world, 20 * MILLISECOND_NS);
    }
    property_check(life->seed, life->ended == life->submitted);
    for (unsigned i = 0; i < 20; i++) {
        gate_kick(pool);
        settle_all(&life->world);
    }
    assert_pool_at_rest(pool);
    property_check(life->seed, pool_find_class(pool, "users")->instances == 0);
    struct flow_meters meters = view_of(&life->world).meters;
    property_check(life->seed, meters.requests == life->answered);
    property_check(life->seed, meters.errors == life->failed);
    property_check(life->seed, meters.refused == life->refused);
    property_check(life->seed, meters.admission_refused == life->not_admitted);
    property_check(life->seed, meters.offered == life->submitted - life->cancelled_early);
    property_check(life->seed, meters.marked >= life->marked);
    property_check(life->seed, meters.no_server == life->no_server);
    property_check(life->seed, meters.queue_timeouts == life->timeouts);
    property_check(life->seed, meters.cancelled == life->cancelled + life->aborted);
}

static void a_random_life(uint64_t seed)
{
    struct life *life = calloc(1, sizeof(*life));
    char text[1200];

    assert_non_null(life);
    life->seed = seed;
    life->random.state = seed;
    configuration_text(life, text, sizeof(text));
    life->world = world_open(text);
    /* Not the machine's clock: the same seed has to lead the same life. */
    set_clock(&life->world, loop_clock_ns() + 60 * SECOND_NS);
    for (unsigned i = 0; i < STEPS; i++)
        step(life);
    end_of_life(life);
    world_close(&life->world);
    free(life);
}

static void every_request_has_one_end(void **state)
{
    struct config_log quiet = {.target = {.kind = CONFIG_OUTPUT_STDERR}, .level = CONFIG_LOG_ERROR};

    (void)state;
    log_open(&quiet);
    property_run("gate", 60, a_random_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_request_has_one_end)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
