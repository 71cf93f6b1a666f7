/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bounds.c: the papers' bounds, on a simulated service with D slots and random service times.
 *
 * Lag of two flows over an interval in which both always have a queued request:
 *     |W_f / weight_f - W_g / weight_g|,  W = cost completed in the interval.
 * SFQ keeps it within c_f / weight_f + c_g / weight_g (Goyal et al. 1997, theorem 1), SFQ(D) within
 * (D + 1) times that (Jin et al. 2004, theorem 1), c being the flow's largest cost. The largest lag
 * over all intervals inside one common backlogged period is the range of the running difference.
 *
 * After every event the caller dispatches; work conservation is checked there.
 */
#include "tests/property/sched/property.h"

#define FLOWS   6
#define SLOTS   40
#define ITEMS   512
#define FOREVER UINT64_MAX
#define RESERVE (ITEMS / 2) /* more than FLOWS * 30 topped up and 32 outstanding */

struct source {
    struct sched_flow flow;
    uint64_t largest_cost;
    uint64_t keep;    /* always topped up to so many queued; 0: comes in bursts */
    exact_t per_cost; /* scale / weight */
    exact_t served;   /* completed cost / weight */
};

/* The range of served[f] - served[g] since both became backlogged. */
struct lag {
    bool both;
    exact_t low;
    exact_t high;
};

struct sim {
    uint64_t seed;
    struct property_random random;
    struct property_arithmetic arithmetic;
    struct sched *s;
    uint64_t depth;
    uint64_t longest_service;
    bool heavy_tail;
    int flows;
    struct source sources[FLOWS];
    struct lag lags[FLOWS][FLOWS];
    exact_t worst; /* largest lag seen / its bound, in thousandths */
    exact_t factor;
    struct sched_item items[ITEMS];
    struct sched_item *idle[ITEMS];
    int idle_count;
    struct sched_item *slots[SLOTS];
    uint64_t ends[SLOTS];
    uint64_t now;
    uint64_t activations;
};

static void sim_init(struct sim *sim, enum sched_algorithm algorithm, uint64_t depth)
{
    const struct sched_params params = {.algorithm = algorithm,
                                        .depth = depth,
                                        .virtual_start = property_virtual_start(&sim->random)};

    sim->s = sched_create(&params);
    sim->depth = algorithm == SCHED_ALGORITHM_SFQ ? 1 : depth;
    sim->factor = algorithm == SCHED_ALGORITHM_SFQ ? 1 : (exact_t)depth + 1;
    for (int i = 0; i < ITEMS; i++) {
        sched_item_init(&sim->items[i]);
        sim->idle[sim->idle_count++] = &sim->items[i];
    }
}

static struct source *sim_add_source(struct sim *sim, uint32_t weight, uint64_t largest_cost,
                                     uint64_t keep)
{
    struct source *source = &sim->sources[sim->flows++];

    source->largest_cost = largest_cost;
    source->keep = keep;
    source->per_cost = sim->arithmetic.scale / weight;
    assert_int_equal(sched_flow_init(&source->flow, weight), 0);
    assert_int_equal(sched_flow_attach(sim->s, &source->flow), 0);
    return source;
}

/* The bursts leave enough items for every flow that is always topped up. */
static void sim_arrive(struct sim *sim, struct source *source)
{
    assert_true(sim->idle_count > 0);
    struct sched_item *item = sim->idle[--sim->idle_count];
    sim->activations += source->flow.queued == 0;
    sched_enqueue(sim->s, &source->flow, item,
                  property_between(&sim->random, 1, source->largest_cost), sim->now);
}

static uint64_t sim_service_time(struct sim *sim)
{
    uint64_t time = property_between(&sim->random, 1, sim->longest_service);

    return sim->heavy_tail && property_chance(&sim->random, 2) ? time * 100 : time;
}

static void sim_dispatch(struct sim *sim)
{
    struct sched_item *item;

    while ((item = sched_dispatch(sim->s, sim->now)) != NULL) {
        int slot = 0;
        while (sim->slots[slot] != NULL)
            slot++;
        property_check(sim->seed, (uint64_t)slot < sim->depth);
        sim->slots[slot] = item;
        sim->ends[slot] = sim->now + sim_service_time(sim);
    }
    property_check(sim->seed, sched_queued(sim->s) == 0 || sched_outstanding(sim->s) == sim->depth);
}

/* Ends the service that ends first, if any. */
static void sim_complete(struct sim *sim)
{
    int first = -1;

    for (int i = 0; i < SLOTS; i++)
        if (sim->slots[i] != NULL && (first < 0 || sim->ends[i] < sim->ends[first]))
            first = i;
    if (first < 0)
        return;
    struct sched_item *item = sim->slots[first];
    struct source *source = (struct source *)item->flow; /* flow is its first member */
    sim->now = sim->ends[first];
    sim->slots[first] = NULL;
    source->served += (exact_t)item->cost * source->per_cost;
    sched_complete(sim->s, item, item->cost, sim->now);
    sim->idle[sim->idle_count++] = item;
}

static exact_t sim_bound(const struct sim *sim, const struct source *f, const struct source *g)
{
    return sim->factor *
           ((exact_t)f->largest_cost * f->per_cost + (exact_t)g->largest_cost * g->per_cost);
}

static void sim_watch_pair(struct sim *sim, const struct source *f, const struct source *g,
                           struct lag *lag)
{
    const exact_t difference = f->served - g->served;

    if (f->flow.queued == 0 || g->flow.queued == 0) {
        lag->both = false;
        return;
    }
    if (!lag->both)
        *lag = (struct lag){.both = true, .low = difference, .high = difference};
    lag->low = difference < lag->low ? difference : lag->low;
    lag->high = difference > lag->high ? difference : lag->high;
    /* Rounding of tags: engine/vtime.h. */
    exact_t rounding = (exact_t)(sim->activations + 2) * sim->arithmetic.scale / ULPS_PER_UNIT + 1;
    exact_t thousandths = (lag->high - lag->low - rounding) * 1000 / sim_bound(sim, f, g);
    sim->worst = thousandths > sim->worst ? thousandths : sim->worst;
}

static void sim_watch(struct sim *sim)
{
    for (int f = 0; f < sim->flows; f++)
        for (int g = 0; g < f; g++)
            sim_watch_pair(sim, &sim->sources[f], &sim->sources[g], &sim->lags[f][g]);
}

static void sim_fini(struct sim *sim)
{
    sched_destroy(sim->s);
    test_free(sim);
}

static void bound_of_seed(uint64_t seed)
{
    struct sim *sim = test_calloc(1, sizeof(*sim));

    sim->seed = seed;
    sim->random.state = seed;
    sim->arithmetic = property_arithmetic_draw(&sim->random, false);
    sim->longest_service = property_chance(&sim->random, 30) ? 1 : 50;
    sim->heavy_tail = property_chance(&sim->random, 50);
    sim_init(sim, property_chance(&sim->random, 20) ? SCHED_ALGORITHM_SFQ : SCHED_ALGORITHM_SFQD,
             property_between(&sim->random, 1, property_chance(&sim->random, 50) ? 4 : 32));
    int flows = (int)property_between(&sim->random, 2, FLOWS);
    for (int i = 0; i < flows; i++)
        sim_add_source(sim, property_weight(&sim->random, &sim->arithmetic),
                       property_cost(&sim->random, &sim->arithmetic),
                       property_chance(&sim->random, 50) ? property_between(&sim->random, 1, 30)
                                                         : 0);
    for (int step = 0; step < 4000; step++) {
        for (int i = 0; i < flows; i++) {
            struct source *source = &sim->sources[i];
            uint64_t burst = property_between(&sim->random, 1, 40);
            if (source->keep == 0 && property_chance(&sim->random, 2))
                for (; burst > 0 && sim->idle_count > RESERVE; burst--)
                    sim_arrive(sim, source);
            while (source->flow.queued < source->keep)
                sim_arrive(sim, source);
        }
        sim_dispatch(sim);
        for (int i = 0; i < flows; i++)
            while (sim->sources[i].flow.queued < sim->sources[i].keep)
                sim_arrive(sim, &sim->sources[i]);
        sim_watch(sim);
        sim_complete(sim);
    }
    property_check(seed, sim->worst <= 1000);
    sim_fini(sim);
}

static void test_lag_of_sfq_and_sfqd_is_bounded(void **state)
{
    (void)state;
    property_run("lag bound", 150, bound_of_seed);
}

/*
 * Two equal flows, unit costs, D = 4. The second keeps one request at the service for very long
 * while the first is served 1000 times; then it comes with a burst. Returns the worst lag of the
 * two from then on, in thousandths of the bound of SFQ(D).
 */
static int lag_after_being_stuck(enum sched_algorithm algorithm)
{
    struct sim *sim = test_calloc(1, sizeof(*sim));

    sim->random.state = 1;
    sim->arithmetic = (struct property_arithmetic){.scale = SCALE_BINARY, .binary = true};
    sim->longest_service = 1;
    sim_init(sim, algorithm, 4);
    struct source *busy = sim_add_source(sim, 1, 1, 8);
    struct source *stuck = sim_add_source(sim, 1, 1, 0);
    sim_arrive(sim, stuck);
    sim_dispatch(sim);
    sim->ends[0] = FOREVER;
    for (int step = 0; step < 1300; step++) {
        while (busy->flow.queued < busy->keep)
            sim_arrive(sim, busy);
        while (step >= 1000 && stuck->flow.queued < 100)
            sim_arrive(sim, stuck);
        sim_dispatch(sim);
        sim_watch(sim);
        sim_complete(sim);
    }
    int worst = (int)sim->worst;
    sim_fini(sim);
    return worst;
}

static void test_minsfqd_breaks_the_bound_that_sfqd_keeps(void **state)
{
    (void)state;
    assert_in_range(lag_after_being_stuck(SCHED_ALGORITHM_SFQD), 1, 1000);
    assert_in_range(lag_after_being_stuck(SCHED_ALGORITHM_MINSFQD), 20000, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lag_of_sfq_and_sfqd_is_bounded),
        cmocka_unit_test(test_minsfqd_breaks_the_bound_that_sfqd_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
