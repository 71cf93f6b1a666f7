/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bounds.c: the papers' bounds on the lag of two flows, on the simulated service of sim.h.
 *
 * SFQ keeps the lag within c_f / weight_f + c_g / weight_g (Goyal et al. 1997, theorem 1), SFQ(D)
 * within (D + 1) times that (Jin et al. 2004, theorem 1). RW(D) keeps it within 2 D for unit costs,
 * weights that sum to 1, windows of at least 1 and a service in order of arrival, while all flows
 * are backlogged.
 *
 * FSFQ(D) adds its credit v - v' to the bound of SFQ(D). Where the service ends requests in the
 * order of dispatch, v goes on by D charges at most while a request is there, so the credit is
 * within D times the largest c / weight of all flows. Where it does not, a request that is stuck
 * holds v' back for as long as it likes, and FSFQ(D) breaks the bound of SFQ(D), as Min-SFQ(D)
 * does. Both are shown.
 */
#include "tests/property/sched/sim.h"

static void bound_of_seed(uint64_t seed)
{
    const enum sched_algorithm algorithms[] = {SCHED_ALGORITHM_SFQ, SCHED_ALGORITHM_SFQD,
                                               SCHED_ALGORITHM_SFQD, SCHED_ALGORITHM_FSFQ};
    struct sim *sim = sim_draw(seed);
    const uint64_t most = property_chance(&sim->random, 50) ? 4 : 32;
    const struct sched_params params = {.algorithm =
                                            algorithms[property_between(&sim->random, 0, 3)],
                                        .depth = property_between(&sim->random, 1, most),
                                        .virtual_start = property_virtual_start(&sim->random)};

    sim_init(sim, &params);
    sim_draw_sources(sim);
    if (params.algorithm == SCHED_ALGORITHM_FSFQ) {
        sim->in_order = true;
        sim->bound_extra = (exact_t)params.depth * sim_largest_charge(sim);
    }
    for (int step = 0; step < 4000; step++)
        sim_step(sim);
    property_check(seed, sim->worst <= 1000);
    sim_fini(sim);
}

static void test_lag_of_sfq_sfqd_and_fsfq_is_bounded(void **state)
{
    (void)state;
    property_run("lag bound", 300, bound_of_seed);
}

/* Weights for which every window n_f is at least 1 at that depth, or at least for two flows. */
static uint32_t draw_window_weights(struct sim *sim, uint64_t depth, uint32_t *weights, int *flows)
{
    for (*flows = (int)property_between(&sim->random, 2, SIM_FLOWS);; *flows = 2) {
        uint32_t sum = 0;
        uint32_t least = UINT32_MAX;
        for (int i = 0; i < *flows; i++) {
            weights[i] = (uint32_t)property_between(&sim->random, 1, 16);
            sum += weights[i];
            least = weights[i] < least ? weights[i] : least;
        }
        if (depth * least >= sum)
            return sum;
    }
}

/* Lag in units of cost, times the sum of weights: as if weights summed to 1. */
static void rw_bound_of_seed(uint64_t seed)
{
    struct sim *sim = sim_draw(seed);
    const struct sched_params params = {.algorithm = SCHED_ALGORITHM_RW,
                                        .depth = property_between(&sim->random, 2, 32),
                                        .virtual_start = property_virtual_start(&sim->random)};
    uint32_t weights[SIM_FLOWS];
    int flows = 0;

    sim->arithmetic = (struct property_arithmetic){.scale = SCALE_MIXED, .largest_cost = 1};
    sim_init(sim, &params);
    sim->in_order = true;
    sim->heavy_tail = false;
    const exact_t sum = draw_window_weights(sim, params.depth, weights, &flows);
    for (int i = 0; i < flows; i++)
        sim_add_source(sim, weights[i], 1, 30);
    for (int step = 0; step < 4000; step++)
        sim_step(sim);
    for (int f = 0; f < sim->flows; f++)
        for (int g = 0; g < f; g++)
            property_check(seed, (sim->lags[f][g].high - sim->lags[f][g].low) * sum <=
                                     2 * (exact_t)params.depth * sim->arithmetic.scale);
    sim_fini(sim);
}

static void test_lag_of_rw_is_bounded(void **state)
{
    (void)state;
    property_run("lag bound of rw", 100, rw_bound_of_seed);
}

/* Thousandths of the work that the first of two flows gets, whose windows are no whole numbers. */
static exact_t share_of_first(uint64_t depth, uint32_t first, uint32_t second)
{
    struct sim *sim = sim_draw(1);
    const struct sched_params params = {.algorithm = SCHED_ALGORITHM_RW, .depth = depth};

    sim->arithmetic = (struct property_arithmetic){.scale = SCALE_MIXED * 7, .largest_cost = 1};
    sim->in_order = true;
    sim->heavy_tail = false;
    sim_init(sim, &params);
    struct sim_source *one = sim_add_source(sim, first, 1, 10);
    struct sim_source *other = sim_add_source(sim, second, 1, 10);
    for (int step = 0; step < 20000; step++)
        sim_step(sim);
    const exact_t work = one->served / one->per_cost;
    const exact_t both = work + other->served / other->per_cost;
    sim_fini(sim);
    return work * 1000 / both;
}

static void test_shares_of_rw_hold_at_windows_of_fractions(void **state)
{
    (void)state;
    assert_in_range(share_of_first(4, 3, 7), 295, 305);
    assert_in_range(share_of_first(5, 3, 7), 295, 305);
    assert_in_range(share_of_first(3, 1, 1), 495, 505);
    assert_in_range(share_of_first(7, 2, 3), 395, 405);
    assert_in_range(share_of_first(1, 1, 4), 195, 205);
}

/*
 * Two equal flows, unit costs, D = 4. The second keeps one request at the service for very long
 * while the first is served 1000 times; then it comes with a burst. Returns the worst lag of the
 * two from then on, in thousandths of the bound of SFQ(D).
 */
static int lag_after_being_stuck(enum sched_algorithm algorithm)
{
    struct sim *sim = test_calloc(1, sizeof(*sim));
    const struct sched_params params = {.algorithm = algorithm, .depth = 4};

    sim->random.state = 1;
    sim->arithmetic =
        (struct property_arithmetic){.scale = SCALE_BINARY, .binary = true, .exact = true};
    sim->longest_service = 1;
    sim_init(sim, &params);
    sim_add_source(sim, 1, 1, 8);
    struct sim_source *stuck = sim_add_source(sim, 1, 1, 0);
    sim_arrive(sim, stuck);
    sim_dispatch(sim);
    sim->ends[0] = SIM_FOREVER;
    for (int step = 0; step < 1300; step++) {
        sim_top_up(sim);
        while (step >= 1000 && stuck->flow.queued < 100)
            sim_arrive(sim, stuck);
        sim_dispatch(sim);
        sim_watch_lags(sim);
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

/* v' stays with the stuck request, and v - v' is the credit. */
static void test_fsfq_breaks_the_bound_when_a_request_is_stuck(void **state)
{
    (void)state;
    assert_in_range(lag_after_being_stuck(SCHED_ALGORITHM_FSFQ), 20000, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lag_of_sfq_sfqd_and_fsfq_is_bounded),
        cmocka_unit_test(test_lag_of_rw_is_bounded),
        cmocka_unit_test(test_shares_of_rw_hold_at_windows_of_fractions),
        cmocka_unit_test(test_minsfqd_breaks_the_bound_that_sfqd_keeps),
        cmocka_unit_test(test_fsfq_breaks_the_bound_when_a_request_is_stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
