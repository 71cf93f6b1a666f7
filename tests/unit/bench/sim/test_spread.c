/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large and small requests in the same slots, as 2DFQ spreads them (Mace et al., SIGCOMM 2016): 16
 * flows of cost 1 and 16 of cost 100 in 16 slots, all with requests waiting. Under sfqd the large
 * ones come due together and fill every slot; under 2dfq they take the low slots one after another.
 */
#include "tests/unit/bench/sim/fixture.h"

#define EACH 16

struct outcome {
    double p99_ms; /* of the small ones */
    double mean_ms;
    double share; /* of the small ones, of all work */
};

static struct outcome run(const char *algorithm, enum distribution_kind kind)
{
    struct flow_spec *flows = test_calloc(2 * EACH, sizeof(*flows));
    char error[FLOW_ERROR_BYTES];
    struct outcome outcome = {0};
    double work[2] = {0};

    struct sim_config config = {
        .sched = {.algorithm = (enum sched_algorithm)sched_algorithm_from_name(algorithm),
                  .depth = EACH},
        .array = {.disks = EACH, .service = {kind, NS_PER_MS}, .spread = ARRAY_SPREAD_SHORTEST},
        .flows = flows,
        .flow_count = 2 * EACH,
        .warmup_ns = 5 * NS_PER_S,
        .end_ns = 60 * NS_PER_S,
        .seed = fixture_seed(),
    };
    for (int i = 0; i < 2 * EACH; i++) {
        char text[64];
        snprintf(text, sizeof(text), "name=f%d,concurrency=8,cost=%d", i, i < EACH ? 1 : 100);
        assert_int_equal(flow_spec_parse(text, FLOW_SIMULATED, &flows[i], error), 0);
    }
    struct sim *sim = sim_create(&config);
    assert_non_null(sim);
    sim_advance(sim, config.end_ns);
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        const struct sim_meter *meter = sim_flow_meter(sim, i);
        work[i / EACH] += (double)meter->completed * (i < EACH ? 1 : 100);
        if (i >= EACH)
            continue;
        outcome.p99_ms += (double)histogram_quantile(&meter->response, 0.99) / 1e6 / EACH;
        outcome.mean_ms += histogram_mean(&meter->response) / 1e6 / EACH;
    }
    outcome.share = work[0] / (work[0] + work[1]);
    sim_destroy(sim);
    test_free(flows);
    print_message("%s: small requests: mean %.1f ms, p99 %.1f ms, share %.3f\n", algorithm,
                  outcome.mean_ms, outcome.p99_ms, outcome.share);
    return outcome;
}

static void large_requests_do_not_fill_all_slots(void **state)
{
    const enum distribution_kind kinds[] = {DISTRIBUTION_FIXED, DISTRIBUTION_UNIFORM};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct outcome sfqd = run("sfqd", kinds[i]);
        struct outcome spread = run("2dfq", kinds[i]);

        assert_within(spread.p99_ms, 0, 0.7 * sfqd.p99_ms);
        assert_near(spread.mean_ms, sfqd.mean_ms, 0.05);
        assert_near(spread.share, 0.5, 0.01);
        assert_near(sfqd.share, 0.5, 0.01);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_requests_do_not_fill_all_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
