/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h: a simulated service with D slots and random service times, under a scheduler whose flows
 * are always topped up or come in bursts. For the bounds of the papers.
 *
 * Lag of two flows over an interval in which both always have a queued request:
 *     |W_f / weight_f - W_g / weight_g|,  W = cost completed in the interval.
 * The largest lag over all intervals inside one common backlogged period is the range of the
 * running difference; sim->worst keeps it relative to sim->bound_extra + sim->bound_factor times
 * (c_f / weight_f + c_g / weight_g), c being the flow's largest cost.
 *
 * After every event the caller dispatches; order within a flow and work conservation are checked
 * there, and how much others got while a flow waited is kept in sim->hunger.
 */
#ifndef SPILLWAY_TESTS_PROPERTY_SCHED_SIM_H
#define SPILLWAY_TESTS_PROPERTY_SCHED_SIM_H

#include "tests/property/sched/property.h"

#define SIM_FLOWS   6
#define SIM_SLOTS   40
#define SIM_ITEMS   512
#define SIM_FOREVER UINT64_MAX
#define SIM_RESERVE (SIM_ITEMS / 2) /* more than SIM_FLOWS * 30 topped up and 32 outstanding */

struct sim_source {
    struct sched_flow flow;
    uint32_t weight;
    uint64_t largest_cost;
    uint64_t keep;          /* always topped up to so many queued; 0: comes in bursts */
    exact_t per_cost;       /* scale / weight */
    exact_t served;         /* completed cost / weight */
    uint64_t last_sequence; /* of its request dispatched last, + 1 */
    exact_t waited;         /* cost of others dispatched since it waits without being served */
};

/* The range of served[f] - served[g] since both became backlogged. */
struct sim_lag {
    bool both;
    exact_t low;
    exact_t high;
};

struct sim {
    uint64_t seed;
    struct property_random random;
    struct property_arithmetic arithmetic;
    struct sched *s;
    enum sched_algorithm algorithm;
    uint64_t depth;
    uint64_t longest_service;
    bool heavy_tail;
    bool in_order; /* ends in the order of dispatch */
    int flows;
    struct sim_source sources[SIM_FLOWS];
    struct sim_lag lags[SIM_FLOWS][SIM_FLOWS];
    exact_t bound_factor;
    exact_t bound_extra; /* added to it, in 1/scale */
    exact_t worst;       /* largest lag seen / its bound, in thousandths */
    exact_t head_start;  /* of a flow that wakes up, in 1/scale; others may use it before */
    exact_t hunger; /* largest waited / what the others' shares in the meantime come to, the same */
    struct sched_item items[SIM_ITEMS];
    struct sched_item *idle[SIM_ITEMS];
    int idle_count;
    struct sched_item *slots[SIM_SLOTS];
    uint64_t ends[SIM_SLOTS];
    uint64_t last_end;
    uint64_t now;
    uint64_t activations;
    uint64_t last_vtime;
};

/* Whether no slot may be empty while a request waits. */
static inline bool sim_conserves_work(enum sched_algorithm algorithm)
{
    return algorithm != SCHED_ALGORITHM_RW && algorithm != SCHED_ALGORITHM_HYBRID &&
           algorithm != SCHED_ALGORITHM_LEAKY_BUCKET;
}

static inline void sim_init(struct sim *sim, const struct sched_params *params)
{
    sim->s = sched_create(params);
    assert_non_null(sim->s);
    sim->algorithm = params->algorithm;
    sim->depth = params->algorithm == SCHED_ALGORITHM_SFQ ? 1 : params->depth;
    sim->bound_factor = params->algorithm == SCHED_ALGORITHM_SFQ ? 1 : (exact_t)params->depth + 1;
    sim->last_vtime = params->virtual_start;
    for (int i = 0; i < SIM_ITEMS; i++) {
        sched_item_init(&sim->items[i]);
        sim->idle[sim->idle_count++] = &sim->items[i];
    }
}

static inline void sim_fini(struct sim *sim)
{
    sched_destroy(sim->s);
    test_free(sim);
}

static inline struct sim_source *sim_add_source(struct sim *sim, uint32_t weight,
                                                uint64_t largest_cost, uint64_t keep)
{
    struct sim_source *source = &sim->sources[sim->flows++];

    source->weight = weight;
    source->largest_cost = largest_cost;
    source->keep = keep;
    source->per_cost = sim->arithmetic.scale / weight;
    assert_int_equal(sched_flow_init(&source->flow, weight), 0);
    assert_int_equal(sched_flow_attach(sim->s, &source->flow), 0);
    return source;
}

/* The bursts leave enough items for every flow that is always topped up. */
static inline void sim_arrive(struct sim *sim, struct sim_source *source)
{
    assert_true(sim->idle_count > 0);
    struct sched_item *item = sim->idle[--sim->idle_count];
    sim->activations += source->flow.queued == 0;
    sched_enqueue(sim->s, &source->flow, item,
                  property_between(&sim->random, 1, source->largest_cost), sim->now);
}

static inline void sim_top_up(struct sim *sim)
{
    for (int i = 0; i < sim->flows; i++)
        while (sim->sources[i].flow.queued < sim->sources[i].keep)
            sim_arrive(sim, &sim->sources[i]);
}

/* Sources that come in bursts do so now and then. */
static inline void sim_bursts(struct sim *sim)
{
    for (int i = 0; i < sim->flows; i++) {
        uint64_t burst = property_between(&sim->random, 1, 40);
        if (sim->sources[i].keep == 0 && property_chance(&sim->random, 2))
            for (; burst > 0 && sim->idle_count > SIM_RESERVE; burst--)
                sim_arrive(sim, &sim->sources[i]);
    }
}

/* In the time in which a flow is due one request, each other is due its share and one request; and
 * its head start, where there is such a thing. */
static inline exact_t sim_due_to_others(const struct sim *sim, const struct sim_source *source)
{
    exact_t due = 0;

    for (int i = 0; i < sim->flows; i++)
        if (&sim->sources[i] != source)
            due += (exact_t)source->largest_cost * sim->sources[i].weight / source->weight +
                   (exact_t)sim->sources[i].largest_cost +
                   sim->head_start * sim->sources[i].weight / sim->arithmetic.scale;
    return due;
}

/* Under windows a flow may have to wait for its own; only what it waits with none counts then. */
static inline void sim_watch_hunger(struct sim *sim, const struct sched_item *item)
{
    const bool windows = !sim_conserves_work(sim->algorithm);

    for (int i = 0; i < sim->flows; i++) {
        struct sim_source *source = &sim->sources[i];
        if (item->flow == &source->flow || source->flow.queued == 0 ||
            (windows && source->flow.outstanding > 0)) {
            source->waited = 0;
            continue;
        }
        source->waited += (exact_t)item->cost;
        exact_t thousandths = source->waited * 1000 / (sim_due_to_others(sim, source) + 1);
        sim->hunger = thousandths > sim->hunger ? thousandths : sim->hunger;
    }
}

static inline void sim_start(struct sim *sim, struct sched_item *item)
{
    uint64_t time = property_between(&sim->random, 1, sim->longest_service);
    int slot = 0;

    while (sim->slots[slot] != NULL)
        slot++;
    property_check(sim->seed, (uint64_t)slot < sim->depth);
    if (sim->heavy_tail && property_chance(&sim->random, 2))
        time *= 100;
    sim->slots[slot] = item;
    sim->ends[slot] = sim->now + time;
    if (sim->in_order && sim->ends[slot] <= sim->last_end)
        sim->ends[slot] = sim->last_end + 1;
    sim->last_end = sim->ends[slot];
}

static inline void sim_dispatch(struct sim *sim)
{
    struct sched_item *item;

    while ((item = sched_dispatch(sim->s, sim->now)) != NULL) {
        struct sim_source *source = (struct sim_source *)item->flow; /* flow is its first member */
        property_check(sim->seed, item->sequence >= source->last_sequence);
        source->last_sequence = item->sequence + 1;
        property_check(sim->seed, (int64_t)(sched_virtual_time(sim->s) - sim->last_vtime) >= 0);
        sim->last_vtime = sched_virtual_time(sim->s);
        sim_watch_hunger(sim, item);
        sim_start(sim, item);
    }
    property_check(sim->seed, sched_queued(sim->s) == 0 || sched_outstanding(sim->s) > 0);
    property_check(sim->seed, sched_queued(sim->s) == 0 || !sim_conserves_work(sim->algorithm) ||
                                  sched_outstanding(sim->s) == sim->depth);
}

/* Ends the service that ends first, if any. */
static inline void sim_complete(struct sim *sim)
{
    int first = -1;

    for (int i = 0; i < SIM_SLOTS; i++)
        if (sim->slots[i] != NULL && (first < 0 || sim->ends[i] < sim->ends[first]))
            first = i;
    if (first < 0)
        return;
    struct sched_item *item = sim->slots[first];
    struct sim_source *source = (struct sim_source *)item->flow;
    sim->now = sim->ends[first];
    sim->slots[first] = NULL;
    source->served += (exact_t)item->cost * source->per_cost;
    sched_complete(sim->s, item, item->cost, sim->now);
    sim->idle[sim->idle_count++] = item;
}

static inline exact_t sim_bound(const struct sim *sim, const struct sim_source *f,
                                const struct sim_source *g)
{
    return sim->bound_extra + sim->bound_factor * ((exact_t)f->largest_cost * f->per_cost +
                                                   (exact_t)g->largest_cost * g->per_cost);
}

static inline void sim_watch_pair(struct sim *sim, const struct sim_source *f,
                                  const struct sim_source *g, struct sim_lag *lag)
{
    const exact_t difference = f->served - g->served;

    if (f->flow.queued == 0 || g->flow.queued == 0) {
        lag->both = false;
        return;
    }
    if (!lag->both)
        *lag = (struct sim_lag){.both = true, .low = difference, .high = difference};
    lag->low = difference < lag->low ? difference : lag->low;
    lag->high = difference > lag->high ? difference : lag->high;
    /* Rounding of tags: engine/vtime.h. */
    exact_t rounding = (exact_t)(sim->activations + 2) * sim->arithmetic.scale / ULPS_PER_UNIT + 1;
    exact_t thousandths = (lag->high - lag->low - rounding) * 1000 / sim_bound(sim, f, g);
    sim->worst = thousandths > sim->worst ? thousandths : sim->worst;
}

static inline void sim_watch_lags(struct sim *sim)
{
    for (int f = 0; f < sim->flows; f++)
        for (int g = 0; g < f; g++)
            sim_watch_pair(sim, &sim->sources[f], &sim->sources[g], &sim->lags[f][g]);
}

/* The largest c / weight, in 1/scale. */
static inline exact_t sim_largest_charge(const struct sim *sim)
{
    exact_t largest = 0;

    for (int i = 0; i < sim->flows; i++) {
        const exact_t charge = (exact_t)sim->sources[i].largest_cost * sim->sources[i].per_cost;
        largest = charge > largest ? charge : largest;
    }
    return largest;
}

/* One event and what follows from it. */
static inline void sim_step(struct sim *sim)
{
    sim_bursts(sim);
    sim_top_up(sim);
    sim_dispatch(sim);
    sim_top_up(sim);
    sim_watch_lags(sim);
    sim_complete(sim);
}

/* A simulation drawn from a seed, without sources. */
static inline struct sim *sim_draw(uint64_t seed)
{
    struct sim *sim = test_calloc(1, sizeof(*sim));

    sim->seed = seed;
    sim->random.state = seed;
    sim->arithmetic = property_arithmetic_draw(&sim->random, false);
    sim->longest_service = property_chance(&sim->random, 30) ? 1 : 50;
    sim->heavy_tail = property_chance(&sim->random, 50);
    return sim;
}

/* Some sources, at least one in each of the two ways on average. */
static inline void sim_draw_sources(struct sim *sim)
{
    for (uint64_t flows = property_between(&sim->random, 2, SIM_FLOWS); flows > 0; flows--) {
        uint32_t weight = property_weight(&sim->random, &sim->arithmetic);
        uint64_t cost = property_cost(&sim->random, &sim->arithmetic);
        uint64_t keep =
            property_chance(&sim->random, 50) ? property_between(&sim->random, 1, 30) : 0;
        sim_add_source(sim, weight, cost, keep);
    }
}

#endif
