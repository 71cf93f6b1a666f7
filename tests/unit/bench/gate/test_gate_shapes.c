/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate under what is not a steady load of equal requests: costs that differ, clients that wait
 * for their answers and come again, marks, bursts, capacity that falls. Over five seeds.
 */
#include "tests/unit/bench/gate/fixture.h"

/*
 * Pareto, 1 to 64, mean 3.37. A request's worth is 3.57 of the mean request, so that the queue's
 * noise is as many times that of equal requests, and so are the targets of wait.
 */
static void duk_meets_its_targets_in_costs(void **state)
{
    static const double worth = 3.57;
    static const struct {
        double load;
        double wait_ms; /* of equal requests */
        double p99_ms;
        double used;
        double beyond;
    } rows[] = {
        {0.5, 0.1, 1, 48, 0.1},   {0.8, 4, 40, 77.5, 0.5}, {0.9, 10, 60, 87, 1.0},
        {1.2, 16, 50, 97.7, 1.5}, {2, 20, 50, 99.5, 0.5},  {10, 6, 20, 99.5, 0.3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gate_config config = pool(ADMIT_DUK, 16, 500);

        assert_int_equal(distribution_read("pareto:1.2:1:64", DISTRIBUTION_BYTES, &config.cost), 0);
        struct figures figures = runs(&config, rows[i].load);

        assert_true(figures.wait_ms <= worth * rows[i].wait_ms);
        assert_true(figures.p99_ms <= worth * rows[i].p99_ms);
        assert_true(figures.used >= rows[i].used);
        assert_true(figures.beyond <= rows[i].beyond);
    }
}

/*
 * What comes is what was answered, or was refused 50 ms ago. Every policy keeps the slots busy, and
 * a client is refused no more often than its time allows: N clients of which D are served leave
 * (N - D) / C for a request, of which each try takes 50 ms. Nobody starves: the answers take N / C
 * in the mean (Little's law counts those who get none). A limit alone favours who was just
 * answered.
 */
static void retries_are_stable(void **state)
{
    static const double wait_ms[ADMIT_POLICIES] = {
        [ADMIT_TAIL] = 130, [ADMIT_CODEL] = 60,       [ADMIT_PIE] = 25,
        [ADMIT_DUK] = 16,   [ADMIT_DUK_LITERAL] = 60,
    };

    (void)state;
    for (uint32_t count = 64; count <= 200; count += 136) {
        for (enum admit_policy policy = ADMIT_TAIL; policy < ADMIT_POLICIES; policy++) {
            struct gate_config config = pool(policy, 16, 500);
            struct flow_spec flow = clients(count);
            struct figures figures =
                runs_of(&config, &flow, count == 64 ? "64 clients" : "200 clients");

            assert_true(figures.used >= 99);
            assert_true(figures.tries < 1.3 + (count - 16) / (500 * 0.05));
            assert_true(figures.wait_ms <= wait_ms[policy]);
            if (policy != ADMIT_TAIL)
                assert_true(fabs(figures.response_ms - 2 * count) < 0.03 * 2 * count);
        }
    }
}

/* Slots 1, 4, 16 with four clients each, none of whom thinks: nothing is gained by refusing any. */
static void duk_leaves_no_slot_idle(void **state)
{
    (void)state;
    for (uint32_t slots = 1; slots <= 16; slots *= 4) {
        for (int fast = 0; fast < 2; fast++) {
            for (int fixed = 0; fixed < 2; fixed++) {
                struct gate_config config = pool(ADMIT_DUK, slots, fast ? 50000 : 500);
                struct flow_spec flow = clients(4 * slots);

                if (fixed)
                    config.service.kind = DISTRIBUTION_FIXED;
                if (fast)
                    config.end_ns = 12 * NS_PER_S;
                assert_true(runs_of(&config, &flow, "4 clients a slot").used >= 99.5);
                config.mark = true;
                assert_true(runs_of(&config, &flow, "the same, marked").used >= 99.5);
            }
        }
    }
}

/*
 * A connection that several clients share, as the processes of a mount, is slowed by marks; one
 * with a request at a time is not: what it would send next waits for its answer anyway.
 */
static void marks_slow_shared_connections(void **state)
{
    struct flow_spec flow = clients(200);
    struct gate_config config = pool(ADMIT_NONE, 16, 500);
    double without_ms = runs_of(&config, &flow, "200 clients").wait_ms;

    (void)state;
    config.mark = true;
    for (enum admit_policy policy = ADMIT_PIE; policy < ADMIT_POLICIES; policy++) {
        if (policy == ADMIT_DUK_LITERAL)
            continue;
        config.admit.policy = policy;
        config.per_connection = 8;
        struct figures shared = runs_of(&config, &flow, "200 marked, 8 each");

        config.per_connection = 1;
        struct figures alone = runs_of(&config, &flow, "200 marked");

        assert_true(shared.used >= 97.5 && alone.used >= 99.5);
        assert_true(shared.wait_ms < 0.45 * without_ms);
        assert_true(alone.wait_ms > 0.95 * without_ms);
        assert_true(shared.marked > 20);
    }
}

/* 5 times the capacity for a moment, nothing for nine times as long. */
static void duk_absorbs_short_bursts(void **state)
{
    static const struct {
        unsigned on_ms;
        double wait_ms;
        double refused;
    } rows[] = {{20, 25, 0.1}, {50, 80, 7}, {100, 90, 55}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gate_config config = pool(ADMIT_DUK, 16, 500);
        struct flow_spec flow = poisson(2500);
        char what[32];

        flow.arrival.shape = ARRIVAL_ON_OFF;
        flow.arrival.on_ns = rows[i].on_ms * NS_PER_S / 1000;
        flow.arrival.off_ns = 9 * flow.arrival.on_ns;
        snprintf(what, sizeof(what), "bursts of %u ms", rows[i].on_ms);
        struct figures figures = runs_of(&config, &flow, what);

        assert_true(figures.wait_ms <= rows[i].wait_ms);
        assert_true(figures.beyond <= rows[i].refused);
    }
}

/* 100, 50, 20, 50, 100 % of it, 20 s each. */
static void duk_follows_a_capacity_that_falls(void **state)
{
    static const struct {
        double load;
        double wait_ms;
        double p99_ms;
    } rows[] = {{0.8, 19, 100}, {1.2, 20, 80}, {2, 18, 60}};
    static const double shares[] = {1, 0.5, 0.2, 0.5, 1};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gate_config config = pool(ADMIT_DUK, 16, 500);

        for (size_t step = 0; step < 5; step++)
            config.steps[step] = (struct gate_step){step * 20 * NS_PER_S, shares[step]};
        config.step_count = 5;
        config.end_ns = 100 * NS_PER_S;
        config.warmup_ns = 0;
        struct figures figures = runs(&config, rows[i].load);

        assert_true(figures.wait_ms <= rows[i].wait_ms);
        assert_true(figures.p99_ms <= rows[i].p99_ms);
    }
}

/* All of it, then a fifth, at once: beside PIE, which must not be better. */
static void duk_notices_a_fall(void **state)
{
    (void)state;
    for (int tenths = 8; tenths <= 12; tenths += 4) {
        struct figures figures[2];

        for (int i = 0; i < 2; i++) {
            struct gate_config config = pool(i ? ADMIT_DUK : ADMIT_PIE, 16, 500);

            config.steps[0] = (struct gate_step){0, 1};
            config.steps[1] = (struct gate_step){20 * NS_PER_S, 0.2};
            config.step_count = 2;
            config.end_ns = 40 * NS_PER_S;
            config.warmup_ns = 0;
            figures[i] = runs(&config, tenths / 10.0);
        }
        assert_true(figures[1].wait_ms < figures[0].wait_ms);
        assert_true(figures[1].p99_ms < 0.6 * figures[0].p99_ms);
        assert_true(figures[1].used > figures[0].used - 0.5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(duk_meets_its_targets_in_costs),
        cmocka_unit_test(retries_are_stable),
        cmocka_unit_test(duk_leaves_no_slot_idle),
        cmocka_unit_test(marks_slow_shared_connections),
        cmocka_unit_test(duk_absorbs_short_bursts),
        cmocka_unit_test(duk_follows_a_capacity_that_falls),
        cmocka_unit_test(duk_notices_a_fall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
