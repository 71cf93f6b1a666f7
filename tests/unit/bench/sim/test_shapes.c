/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes of the evaluation in Jin, Chase, Kaur, "Interposed Proportional Sharing for a Storage
 * Service Utility" (SIGMETRICS 2004), on the simulated array: plateaus within 20 %, and orderings.
 *
 * f is the flow to be protected, g the one that asks for more and more. Numbers are mean response
 * times in ms unless they say otherwise.
 */
#include "tests/unit/bench/sim/fixture.h"

/* Virtual seconds: long where a number is judged, short where an order is. */
#define LONG_RUN_S  1000
#define SHORT_RUN_S 300

struct pair {
    double f_ms;
    double g_ms;
    double f_per_s;
    double g_per_s;
};

static struct pair run(const char *algorithm, uint64_t depth, const char *f, const char *g,
                       uint64_t seconds)
{
    struct fixture fixture;

    fixture_init(&fixture, algorithm, depth, seconds);
    fixture_flow(&fixture, f);
    fixture_flow(&fixture, g);
    struct sim *sim = fixture_run(&fixture);
    struct pair result = {
        .f_ms = fixture_response_ms(sim, 0),
        .g_ms = fixture_response_ms(sim, 1),
        .f_per_s = fixture_per_s(&fixture, sim, 0),
        .g_per_s = fixture_per_s(&fixture, sim, 1),
    };

    sim_destroy(sim);
    return result;
}

/* f at `f_rate` with this weight against g at `g_rate` with weight 1. */
static struct pair sweep_for(uint64_t seconds, const char *algorithm, uint64_t depth,
                             unsigned weight, unsigned f_rate, unsigned g_rate)
{
    char f[64];
    char g[64];

    snprintf(f, sizeof(f), "name=f,weight=%u,rate=%u/s", weight, f_rate);
    snprintf(g, sizeof(g), "name=g,rate=%u/s", g_rate);
    return run(algorithm, depth, f, g, seconds);
}

static struct pair sweep(const char *algorithm, uint64_t depth, unsigned weight, unsigned f_rate,
                         unsigned g_rate)
{
    return sweep_for(SHORT_RUN_S, algorithm, depth, weight, f_rate, g_rate);
}

/* ---------------------------------------------------------------- f at 240, g swept */

/*
 * What the plateaus depend on: Poisson arrivals, exponential service and random disks give all of
 * them; constant arrivals or uniform service times come out 10 to 34 % lower at depth 8, and with
 * the shortest queue instead of a random disk the array is faster than the published one.
 *
 * rw(8) at 2:1 lies above its published range, though within 20 % of it: of its windows, 5.33 and
 * 2.67, f may hold 6 and g 3, but both together 8. Whole windows (5 and 2 of depth 7) give 26 ms.
 */
static void plateaus(void **state)
{
    static const struct {
        const char *algorithm;
        uint64_t depth;
        unsigned weight;
        double low_ms;
        double high_ms;
    } rows[] = {
        {"sfqd", 8, 2, 35, 40},  {"fsfq", 8, 2, 32, 37},  {"rw", 8, 2, 24, 27},
        {"sfqd", 8, 8, 25, 25},  {"fsfq", 8, 8, 25, 25},  {"rw", 8, 8, 15, 15},
        {"sfqd", 32, 2, 65, 65}, {"fsfq", 32, 2, 64, 64}, {"rw", 32, 2, 39, 39},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double f_ms =
            sweep_for(LONG_RUN_S, rows[i].algorithm, rows[i].depth, rows[i].weight, 240, 400).f_ms;

        print_message("%s(%llu) %u:1: %.1f ms, published %g to %g\n", rows[i].algorithm,
                      (unsigned long long)rows[i].depth, rows[i].weight, f_ms, rows[i].low_ms,
                      rows[i].high_ms);
        assert_within(f_ms, 0.8 * rows[i].low_ms, 1.2 * rows[i].high_ms);
    }
}

static void rw_is_below_fsfq_and_fsfq_not_above_sfq(void **state)
{
    static const struct {
        uint64_t depth;
        unsigned weight;
    } rows[] = {{8, 2}, {8, 8}, {32, 1}, {32, 2}, {32, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double sfq = sweep("sfqd", rows[i].depth, rows[i].weight, 240, 400).f_ms;
        double fsfq = sweep("fsfq", rows[i].depth, rows[i].weight, 240, 400).f_ms;
        double rw = sweep("rw", rows[i].depth, rows[i].weight, 240, 400).f_ms;

        assert_within(fsfq, 0, 1.005 * sfq);
        assert_within(rw, 0, 0.95 * fsfq);
    }
}

static void f_rises_then_levels_off_at_a_height_set_by_its_weight(void **state)
{
    static const char *const algorithms[] = {"sfqd", "fsfq", "rw"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const char *algorithm = algorithms[i];
        double few = sweep(algorithm, 8, 2, 240, 100).f_ms;
        double more = sweep(algorithm, 8, 2, 240, 150).f_ms;
        double many = sweep(algorithm, 8, 2, 240, 350).f_ms;
        double most = sweep(algorithm, 8, 2, 240, 500).f_ms;

        assert_within(more, 1.2 * few, 100);
        assert_within(many, 1.3 * few, 100);
        assert_near(most, many, 0.07);
        assert_within(sweep(algorithm, 8, 8, 240, 500).f_ms, 0, 0.8 * most);
    }
}

static void g_waits_without_bound_past_its_share(void **state)
{
    static const char *const algorithms[] = {"sfqd", "fsfq", "rw"};
    const char *f = "name=f,weight=2,rate=240/s";

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct pair within = run(algorithms[i], 8, f, "name=g,rate=100/s", SHORT_RUN_S);
        struct pair half = run(algorithms[i], 8, f, "name=g,rate=400/s", SHORT_RUN_S);
        struct pair whole = run(algorithms[i], 8, f, "name=g,rate=400/s", 2 * SHORT_RUN_S);

        assert_within(within.g_ms, 0, 50);
        assert_within(half.g_ms, 30000, 1e9);
        assert_near(whole.g_ms, 2 * half.g_ms, 0.1);
        assert_near(whole.f_ms, half.f_ms, 0.1);
    }
}

/* ---------------------------------------------------------------- depth and low demand */

static void a_larger_depth_is_higher(void **state)
{
    static const char *const algorithms[] = {"sfqd", "fsfq", "rw"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        double d8 = sweep(algorithms[i], 8, 8, 240, 500).f_ms;
        double d16 = sweep(algorithms[i], 16, 8, 240, 500).f_ms;
        double d64 = sweep(algorithms[i], 64, 8, 240, 500).f_ms;

        assert_within(d16, 1.1 * d8, 1000);
        assert_within(d64, 1.5 * d16, 1000);
    }
}

/*
 * A flow that rarely has more than one request waiting starts at v: what it waits for is the array,
 * and only the depth decides how full that is. Under rw the other flow's window is what is left of
 * the depth, so there a weight helps the smallest flow too.
 */
static void low_demand_is_insensitive_to_the_weight(void **state)
{
    (void)state;
    for (uint64_t depth = 16; depth <= 64; depth += 48) {
        for (int i = 0; i < 2; i++) {
            const char *algorithm = i == 0 ? "sfqd" : "fsfq";

            assert_near(sweep(algorithm, depth, 8, 60, 500).f_ms,
                        sweep(algorithm, depth, 1, 60, 500).f_ms, 0.04);
        }
        assert_within(sweep("rw", depth, 8, 60, 500).f_ms, 0,
                      0.6 * sweep("rw", depth, 1, 60, 500).f_ms);
    }
}

/* ---------------------------------------------------------------- g ON and OFF */

struct phases {
    double f_on_per_s;
    double f_off_per_s;
    double g_on_per_s;
    double g_ms;
};

/* f at 480 a second with two thirds, g ON/OFF every 10 s: means over the ON and OFF seconds. */
static struct phases on_off(const char *algorithm)
{
    struct fixture fixture;
    struct phases result = {.f_on_per_s = 0};
    size_t count;

    fixture_init(&fixture, algorithm, 16, 100);
    fixture.config.interval_ns = NS_PER_S;
    fixture_flow(&fixture, "name=f,weight=2,rate=480/s,deadline=1s");
    fixture_flow(&fixture, "name=g,rate=120/s,on=10s,off=10s,deadline=10ms");
    struct sim *sim = fixture_run(&fixture);
    const struct sim_interval *f = sim_flow_series(sim, 0, &count);
    const struct sim_interval *g = sim_flow_series(sim, 1, &count);

    assert_int_equal(count, 100);
    for (size_t i = 0; i < count; i++) {
        bool on = i / 10 % 2 == 0;

        *(on ? &result.f_on_per_s : &result.f_off_per_s) += (double)f[i].completed / 50;
        result.g_on_per_s += on ? (double)g[i].completed / 50 : 0;
    }
    result.g_ms = fixture_response_ms(sim, 1);
    sim_destroy(sim);
    return result;
}

static void f_gives_way_only_while_g_is_on(void **state)
{
    static const char *const algorithms[] = {"fsfq", "rw"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct phases phases = on_off(algorithms[i]);

        assert_within(phases.g_ms, 0, 60);
        assert_near(phases.g_on_per_s, 120, 0.1);
        assert_within(phases.f_on_per_s, 333, 400);
        assert_within(phases.f_off_per_s, 1.1 * phases.f_on_per_s, 510);
    }
}

/* Deadlines know no shares: once f is late by its own fault, g's urgent requests wait for it... */
static void edf_lets_an_overload_reach_the_other_flow(void **state)
{
    (void)state;
    assert_within(on_off("edf").g_ms, 1000, 1e9);
}

/* ...and while f is not yet late, an urgent g takes what it asks for, whatever f's share. */
static void edf_does_not_protect_f(void **state)
{
    (void)state;
    const char *f = "name=f,weight=2,rate=300/s,deadline=1s";
    const char *g = "name=g,rate=400/s,deadline=10ms";

    assert_within(run("edf", 16, f, g, 100).f_ms, 1000, 1e9);
    assert_within(run("fsfq", 16, f, g, 100).f_ms, 0, 150);
    assert_within(run("rw", 16, f, g, 100).f_ms, 0, 150);
    assert_near(run("fsfq", 16, f, g, 100).f_per_s, 300, 0.05);
    assert_within(run("edf", 16, f, g, 100).f_per_s, 0, 270);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plateaus),
        cmocka_unit_test(rw_is_below_fsfq_and_fsfq_not_above_sfq),
        cmocka_unit_test(f_rises_then_levels_off_at_a_height_set_by_its_weight),
        cmocka_unit_test(g_waits_without_bound_past_its_share),
        cmocka_unit_test(a_larger_depth_is_higher),
        cmocka_unit_test(low_demand_is_insensitive_to_the_weight),
        cmocka_unit_test(f_gives_way_only_while_g_is_on),
        cmocka_unit_test(edf_lets_an_overload_reach_the_other_flow),
        cmocka_unit_test(edf_does_not_protect_f),
    };

    print_message("seed %llu (SPILLWAY_TEST_SEED)\n", (unsigned long long)fixture_seed());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
