/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate in virtual time: against queueing theory where there is an answer, and the admission
 * policies against their targets, over five seeds.
 */
#include "tests/unit/bench/gate/fixture.h"

/* ---------------------------------------------------------------- theory */

/* M/M/c: the mean wait by Erlang's C formula. */
static double erlang_wait_ms(uint32_t slots, double capacity_per_s, double load)
{
    double offered = load * slots;
    double term = 1;
    double sum = 1;

    for (uint32_t i = 1; i < slots; i++) {
        term *= offered / i;
        sum += term;
    }
    double last = term * offered / slots / (1 - load);

    return last / (sum + last) / (capacity_per_s * (1 - load)) * 1e3;
}

static void without_a_policy_it_is_erlangs_queue(void **state)
{
    (void)state;
    for (uint32_t slots = 1; slots <= 16; slots *= 4) {
        struct gate_config config = pool(ADMIT_NONE, slots, 500);

        config.end_ns = 1010 * NS_PER_S;
        for (int tenths = 5; tenths <= 8; tenths += 3) {
            double load = tenths / 10.0;
            struct figures figures = runs(&config, load);
            double expected_ms = erlang_wait_ms(slots, 500, load);

            assert_true(fabs(figures.wait_ms - expected_ms) < 0.06 * expected_ms + 0.02);
            assert_true(fabs(figures.used - 100 * load) < 0.5);
        }
    }
}

static void a_full_tail_is_a_full_queue(void **state)
{
    struct gate_config config = pool(ADMIT_TAIL, 1, 500);
    struct figures figures = runs(&config, 2);

    (void)state;
    /* M/M/1/65 at rho = 2 has 64 - 1 + ... in front of an admitted one: K - 1/(rho - 1) - 1. */
    assert_true(fabs(figures.wait_ms - 2 * (64 - 1)) < 3);
    assert_true(fabs(figures.beyond) < 0.5);
    assert_true(figures.used > 99.9);
}

static void capacity_steps_change_what_can_be_served(void **state)
{
    struct gate_config config = pool(ADMIT_TAIL, 4, 1000);

    (void)state;
    config.steps[0] = (struct gate_step){0, 1};
    config.steps[1] = (struct gate_step){60 * NS_PER_S, 0.5};
    config.steps[2] = (struct gate_step){160 * NS_PER_S, 0.2};
    config.step_count = 3;
    struct flow_spec flow = poisson(2000);

    config.flows = &flow;
    config.flow_count = 1;
    struct gate_sim *sim = gate_sim_create(&config);

    gate_sim_run(sim);
    const struct gate_meter *meter = gate_sim_meter(sim);
    /* 50 s at 1000, 100 s at 500, 50 s at 200. */
    assert_true(fabs(meter->could_cost - 110000) < 1);
    assert_true(fabs((double)meter->completed - 110000) < 1500);
    gate_sim_destroy(sim);
}

static void refused_clients_come_again(void **state)
{
    struct gate_config config = pool(ADMIT_TAIL, 2, 100);
    struct flow_spec flow;

    (void)state;
    flow_spec_init(&flow);
    flow.concurrency = 100;
    flow.pause_ns = NS_PER_S / 20;
    flow.think = (struct distribution){.kind = DISTRIBUTION_EXPONENTIAL, .mean = NS_PER_S / 10};
    config.admit.limit = 5;
    config.flows = &flow;
    config.flow_count = 1;
    struct gate_sim *sim = gate_sim_create(&config);

    gate_sim_run(sim);
    const struct gate_meter *meter = gate_sim_meter(sim);
    /* Each of the hundred is served once a second in the mean, a tenth of which it thinks (Little's
     * law); its response counts from its first try. */
    double mean_ms = histogram_mean(&meter->response) / 1e6;

    assert_true(fabs(mean_ms - 900) < 50);
    assert_true(meter->refused > 10 * meter->completed);
    assert_true(histogram_mean(&meter->wait) / 1e6 < 60);
    gate_sim_destroy(sim);
}

/* ---------------------------------------------------------------- targets */

static void duk_meets_its_targets(void **state)
{
    static const struct {
        double load;
        double wait_ms;
        double p99_ms;
        double used;
        double beyond;
    } rows[] = {
        {0.5, 0.1, 1, 49, 0.1},   {0.8, 4, 40, 79, 0.5},  {0.9, 10, 60, 88.5, 1.0},
        {1.2, 16, 50, 97.7, 1.5}, {2, 20, 50, 99.5, 0.5}, {10, 5, 20, 99.5, 0.3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gate_config config = pool(ADMIT_DUK, 16, 500);
        struct figures figures = runs(&config, rows[i].load);

        assert_true(figures.wait_ms <= rows[i].wait_ms);
        assert_true(figures.p99_ms <= rows[i].p99_ms);
        assert_true(figures.used >= rows[i].used);
        assert_true(figures.beyond <= rows[i].beyond);
    }
}

static void duk_scales_itself(void **state)
{
    (void)state;
    for (int times = 10; times <= 100; times *= 10) {
        double capacity_per_s = 500 * times;
        struct gate_config config = pool(ADMIT_DUK, 16, capacity_per_s);

        config.end_ns = (uint64_t)(10 + 200 * 500 / capacity_per_s) * NS_PER_S;
        config.warmup_ns = NS_PER_S;
        struct figures figures = runs(&config, 1.2);

        assert_true(figures.wait_ms <= 16 * 500 / capacity_per_s);
        assert_true(figures.used >= 97.5);
    }
}

static void duk_works_with_few_slots(void **state)
{
    static const struct {
        double load;
        double wait_ms;
        double used;
        double beyond;
    } rows[] = {{0.8, 9, 79, 0.3}, {0.9, 15, 88, 1.7}, {1.2, 17, 96.8, 2.9}, {2, 17, 98.8, 0.8}};

    (void)state;
    for (uint32_t slots = 1; slots <= 8; slots *= 2) {
        struct gate_config config = pool(ADMIT_DUK, slots, 500);

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct figures figures = runs(&config, rows[i].load);

            assert_true(figures.wait_ms <= rows[i].wait_ms);
            assert_true(figures.used >= rows[i].used);
            assert_true(figures.beyond <= rows[i].beyond);
        }
    }
}

/* Reference figures: PIE 22, 21, 21 ms; CoDel 84, 1093 ms; tail 118, 126 ms. */
static void the_others_are_what_they_were_published_as(void **state)
{
    static const struct {
        enum admit_policy policy;
        double load;
        double least_ms;
        double most_ms;
    } rows[] = {
        {ADMIT_PIE, 1.2, 18, 25},    {ADMIT_PIE, 2, 17, 25},      {ADMIT_PIE, 10, 17, 25},
        {ADMIT_CODEL, 1.2, 60, 110}, {ADMIT_CODEL, 2, 800, 2500}, {ADMIT_TAIL, 1.2, 110, 125},
        {ADMIT_TAIL, 2, 120, 130},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gate_config config = pool(rows[i].policy, 16, 500);
        struct figures figures = runs(&config, rows[i].load);

        assert_in_range((uintmax_t)figures.wait_ms, (uintmax_t)rows[i].least_ms,
                        (uintmax_t)rows[i].most_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_policy_it_is_erlangs_queue),
        cmocka_unit_test(a_full_tail_is_a_full_queue),
        cmocka_unit_test(capacity_steps_change_what_can_be_served),
        cmocka_unit_test(refused_clients_come_again),
        cmocka_unit_test(duk_meets_its_targets),
        cmocka_unit_test(duk_scales_itself),
        cmocka_unit_test(duk_works_with_few_slots),
        cmocka_unit_test(the_others_are_what_they_were_published_as),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
