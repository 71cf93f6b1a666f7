/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link in virtual time: against arithmetic where there is an answer, its packets counted at any
 * time, and the admission policies against their published shapes over five seeds.
 *
 * Published, at 20 Mb/s (Novak and Kasera, tables 2.1 and 2.2): drop CoDel 30.8 ms, 99.7 % used,
 * 9.7 % dropped, PIE 25.8, 99.8, 9.9; ECN CoDel 24.2, 99.9, 30.7 marked, PIE 28.1, 99.8, 37.1. The
 * initial window was not published: 3 segments (RFC 3390) is the one of 1, 2, 3, 4 and 10 taken
 * here. Delays, use and drops come out as published, nearly; marks are about half of theirs for
 * CoDel and PIE. The bounds below hold these results where they are.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sim/link/link_sim.h"

#define NS_PER_S   1000000000ULL
#define MS         1000000ULL
#define SEEDS      5
#define FIRST_SEED 11

struct figures {
    double delay_ms;
    double used;
    double dropped;
    double marked;
};

static struct link_config link_of(enum admit_policy policy, bool ecn)
{
    return (struct link_config){
        .admit = {.policy = policy, .slots = 1, .limit = 64, .seed = 3},
        .ecn = ecn,
        .flows = 40,
        .bytes = 250000,
        .rtt_ns = 50 * MS,
        .rtt_spread_ns = 10 * MS,
        .initial_window = 3,
        .steps = {{0, 100000000},
                  {20 * NS_PER_S, 50000000},
                  {40 * NS_PER_S, 20000000},
                  {60 * NS_PER_S, 50000000},
                  {80 * NS_PER_S, 100000000}},
        .step_count = 5,
        .end_ns = 100 * NS_PER_S,
        .seed = 1,
    };
}

static void count_packets(const struct link_sim *sim)
{
    struct link_count count = link_sim_count(sim);

    assert_int_equal(count.sent, count.dropped + count.delivered + count.held);
    assert_int_equal(count.held, count.queued + count.sending + count.under_way);
}

/* ---------------------------------------------------------------- arithmetic */

/*
 * One flow and a link that is never full: 100 segments by windows of 3, 6, 12, 24, 48 and 7. The
 * first packet of a window is off the link one packet's time and one round trip after that of the
 * window before; two come for each that leaves, so the link is busy from there to the window's end.
 * The last packet is the 7th of the sixth window.
 */
static void one_transfer_takes_what_arithmetic_says(void **state)
{
    struct link_config config = link_of(ADMIT_NONE, false);
    uint64_t packet_ns = 1500 * 8 * 10; /* at 100 Mb/s */

    (void)state;
    config.flows = 1;
    config.bytes = 100 * LINK_SEGMENT_BYTES;
    config.rtt_spread_ns = 0;
    config.pause_ns = 1000 * NS_PER_S;
    config.end_ns = 10 * NS_PER_S;
    config.step_count = 1;
    struct link_sim *sim = link_sim_create(&config);

    link_sim_run(sim, config.end_ns);
    const struct link_meter *meter = link_sim_meter(sim, 0);

    assert_int_equal(meter->transfers, 1);
    assert_int_equal(meter->offered, 100);
    assert_int_equal(meter->busy_ns, 100 * packet_ns);
    uint64_t expected_ns = (1 + 6) * config.rtt_ns + (5 + 7) * packet_ns;

    assert_int_equal(meter->completion.min, expected_ns);
    count_packets(sim);
    link_sim_destroy(sim);
}

/* 1500 bytes at 7 Mb/s take 12000 / 7 us, no whole number of nanoseconds; seven of them are. */
static void packets_take_their_time_to_the_nanosecond(void **state)
{
    struct link_config config = link_of(ADMIT_NONE, false);

    (void)state;
    config.flows = 1;
    config.bytes = 70 * LINK_SEGMENT_BYTES;
    config.rtt_spread_ns = 0;
    config.initial_window = 70;
    config.pause_ns = 1000 * NS_PER_S;
    config.step_count = 1;
    config.steps[0].bits_per_s = 7000000;
    struct link_sim *sim = link_sim_create(&config);

    link_sim_run(sim, config.end_ns);
    const struct link_meter *meter = link_sim_meter(sim, 0);

    assert_int_equal(meter->busy_ns, 120 * MS);
    assert_int_equal(meter->completion.min, 2 * config.rtt_ns + 120 * MS);
    /* The n-th waits for n before it: 69 * 12 / 14 ms in the mean. */
    assert_true(fabs(histogram_mean(&meter->delay) / 1e6 - 69.0 * 12 / 14) < 0.01);
    link_sim_destroy(sim);
}

/* A tail of 5 and a burst of 10: one on the link, five wait, four are lost. */
static void a_full_tail_drops_the_rest(void **state)
{
    struct link_config config = link_of(ADMIT_TAIL, false);

    (void)state;
    config.flows = 1;
    config.bytes = 10 * LINK_SEGMENT_BYTES;
    config.initial_window = 10;
    config.admit.limit = 5;
    config.pause_ns = 1000 * NS_PER_S;
    struct link_sim *sim = link_sim_create(&config);

    link_sim_run(sim, config.end_ns);
    const struct link_meter *meter = link_sim_meter(sim, 0);

    assert_int_equal(meter->dropped, 4);
    assert_int_equal(meter->transfers, 1);
    assert_int_equal(meter->offered, 14);
    assert_int_equal(meter->timeouts, 1);
    count_packets(sim);
    link_sim_destroy(sim);
}

/* ---------------------------------------------------------------- conservation */

static void every_packet_is_somewhere(void **state)
{
    (void)state;
    for (int policy = 0; policy < ADMIT_POLICIES; policy++) {
        for (int ecn = 0; ecn < 2; ecn++) {
            struct link_config config = link_of((enum admit_policy)policy, ecn);

            config.cost_bytes = ecn;
            struct link_sim *sim = link_sim_create(&config);

            for (uint64_t time_ns = 0; time_ns <= config.end_ns; time_ns += 37 * MS) {
                link_sim_run(sim, time_ns);
                count_packets(sim);
            }
            struct link_count count = link_sim_count(sim);
            uint64_t carried = 0;

            for (size_t step = 0; step < config.step_count; step++)
                carried += link_sim_meter(sim, step)->carried;
            assert_int_equal(carried, count.sending + count.under_way + count.delivered);
            assert_true(count.sent > 100000);
            assert_true(!ecn || count.dropped == 0);
            link_sim_destroy(sim);
        }
    }
}

static void a_seed_is_a_run(void **state)
{
    struct link_config config = link_of(ADMIT_PIE, false);
    uint64_t offered[3];

    (void)state;
    config.end_ns = 20 * NS_PER_S;
    for (int i = 0; i < 3; i++) {
        config.seed = i == 2 ? 2 : 1;
        struct link_sim *sim = link_sim_create(&config);

        link_sim_run(sim, config.end_ns);
        offered[i] = link_sim_meter(sim, 0)->offered;
        link_sim_destroy(sim);
    }
    assert_int_equal(offered[0], offered[1]);
    assert_int_not_equal(offered[0], offered[2]);
}

/* ---------------------------------------------------------------- shapes */

/* Of the step at 20 Mb/s, over the seeds, printed. */
static struct figures at_20(struct link_config *config)
{
    struct link_meter *sum = calloc(1, sizeof(*sum));

    assert_non_null(sum);
    link_meter_reset(sum);
    for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
        config->seed = config->admit.seed = seed;
        struct link_sim *sim = link_sim_create(config);

        link_sim_run(sim, config->end_ns);
        link_meter_merge(sum, link_sim_meter(sim, 2));
        link_sim_destroy(sim);
    }
    struct figures figures = {
        .delay_ms = histogram_mean(&sum->delay) / 1e6,
        .used = 100 * link_meter_used(sum),
        .dropped = 100 * link_meter_dropped(sum),
        .marked = 100 * link_meter_marked(sum),
    };

    printf("%-11s %-4s slots %-3u delay %6.2f ms  used %6.2f %%  dropped %5.2f %%  marked %5.2f %% "
           "(seeds %d to %d)\n",
           admit_policy_name(config->admit.policy), config->ecn ? "ecn" : "drop",
           (unsigned)config->admit.slots, figures.delay_ms, figures.used, figures.dropped,
           figures.marked, FIRST_SEED, FIRST_SEED + SEEDS - 1);
    free(sum);
    return figures;
}

static void policies_have_their_published_shapes(void **state)
{
    static const struct {
        enum admit_policy policy;
        bool ecn;
        unsigned slots;
        double least_ms;
        double most_ms;
        double used;
        double least_part; /* dropped or marked */
        double most_part;
    } rows[] = {
        {ADMIT_CODEL, false, 1, 26, 38, 99.5, 8, 12},
        {ADMIT_CODEL, true, 1, 22, 34, 99.5, 10, 35},
        {ADMIT_PIE, false, 1, 20, 28, 99.5, 8, 14},
        {ADMIT_PIE, true, 1, 20, 30, 99.5, 14, 40},
        {ADMIT_DUK_LITERAL, false, 1, 4.7, 16, 97, 12, 18},
        {ADMIT_DUK_LITERAL, true, 1, 33, 144, 99.5, 5, 40},
        /* The drained form was 12.1 ms, 99.7 % used, 44 % marked; DUK was published with drops as
         * 1.0 ms, 98.5 %, 17 %. The request form leaves a little more of the link unused. 42 slots
         * are half a round trip's packets. */
        {ADMIT_DUK, true, 1, 9, 16, 94, 38, 52},
        {ADMIT_DUK, true, 42, 10, 19, 94, 38, 52},
        {ADMIT_DUK, false, 1, 0.5, 6, 96, 14, 20},
        {ADMIT_DUK, false, 42, 4, 8, 98.5, 13, 19},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct link_config config = link_of(rows[i].policy, rows[i].ecn);

        config.admit.slots = rows[i].slots;
        config.step_count = 3;
        config.end_ns = 60 * NS_PER_S;
        struct figures figures = at_20(&config);
        double part = rows[i].ecn ? figures.marked : figures.dropped;

        assert_true(figures.delay_ms >= rows[i].least_ms && figures.delay_ms <= rows[i].most_ms);
        assert_true(figures.used >= rows[i].used && figures.used < 100.01);
        assert_true(part >= rows[i].least_part && part <= rows[i].most_part);
        assert_true((rows[i].ecn ? figures.dropped : figures.marked) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_transfer_takes_what_arithmetic_says),
        cmocka_unit_test(packets_take_their_time_to_the_nanosecond),
        cmocka_unit_test(a_full_tail_drops_the_rest),
        cmocka_unit_test(every_packet_is_somewhere),
        cmocka_unit_test(a_seed_is_a_run),
        cmocka_unit_test(policies_have_their_published_shapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
