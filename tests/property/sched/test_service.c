/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_service.c: what every flow may count on, on the simulated service of sim.h.
 *
 * Under every algorithm: first in, first out within a flow, virtual time that never goes back, and
 * something at the service whenever something waits. Where sched.h calls an algorithm
 * work-conserving, no slot is empty while a request waits (sim.h checks these after each event).
 *
 * No starvation: while the head of a flow waits, others are sent no more than what is due to them
 * in the time in which the flow is due one request, c / weight, plus one request each. Under
 * rw and hybrid a flow that had to wait for its window catches up: twice that. Under 2dfq another
 * may take a slot before its time, and a flow that wakes up starts level with the one furthest
 * behind, which is by the largest c / weight of all at most: twice that, and so much for each.
 * fsfq, wfq and virtual-clock are not among these: fsfq gives a flow that wakes up credit
 * (test_bounds.c), wfq is as good as its estimate, and virtual-clock makes a flow wait that got
 * more than its share while it was alone.
 */
#include "tests/property/sched/sim.h"

static enum sched_algorithm chosen;
static exact_t most_hunger; /* thousandths; 0: no bound */

static void case_of_seed(uint64_t seed)
{
    struct sim *sim = sim_draw(seed);
    const struct sched_params params = {
        .algorithm = chosen,
        .depth = property_between(&sim->random, 1, property_chance(&sim->random, 50) ? 4 : 32),
        .virtual_start = property_virtual_start(&sim->random),
        .options.slack = property_between(&sim->random, 0, 3),
        .options.capacity_per_s = property_between(&sim->random, 0, UINT64_C(1) << 36)};

    sim_init(sim, &params);
    sim_draw_sources(sim);
    /* What is stuck in its window lags, and catches up at the others' cost. */
    sim->in_order = chosen == SCHED_ALGORITHM_RW || chosen == SCHED_ALGORITHM_HYBRID;
    if (chosen == SCHED_ALGORITHM_2DFQ)
        sim->head_start = sim_largest_charge(sim);
    for (int step = 0; step < 2500; step++)
        sim_step(sim);
    property_check(seed, most_hunger == 0 || sim->hunger <= most_hunger);
    sim_fini(sim);
}

static void test_every_algorithm_serves_in_order(void **state)
{
    (void)state;
    most_hunger = 0;
    for (int i = 0; i < SCHED_ALGORITHMS; i++) {
        chosen = (enum sched_algorithm)i;
        property_run(sched_algorithm_name(chosen), 8, case_of_seed);
    }
}

static void test_fair_algorithms_starve_no_flow(void **state)
{
    const enum sched_algorithm strict[] = {SCHED_ALGORITHM_SFQ, SCHED_ALGORITHM_SFQD,
                                           SCHED_ALGORITHM_MCLOCK};
    const enum sched_algorithm loose[] = {SCHED_ALGORITHM_RW, SCHED_ALGORITHM_HYBRID,
                                          SCHED_ALGORITHM_2DFQ};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        most_hunger = 1000;
        chosen = strict[i];
        property_run(sched_algorithm_name(chosen), 20, case_of_seed);
        most_hunger = 2000;
        chosen = loose[i];
        property_run(sched_algorithm_name(chosen), 20, case_of_seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_algorithm_serves_in_order),
        cmocka_unit_test(test_fair_algorithms_starve_no_flow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
