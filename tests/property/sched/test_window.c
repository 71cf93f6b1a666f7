/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_window.c: decentralised windows of several proxies in front of one service that takes
 * requests first come, first served, with one or more servers. Each proxy knows its own windows
 * only. Time is simulated.
 *
 * Checked at every event: no window holds more than its size and one request, and one that holds
 * less and has requests waiting opens by itself. Over a run: what is outstanding on average, the
 * shares, and the lag of two flows |W_f / share_f - W_g / share_g|, W = requests completed.
 */
#include "sched/window/window.h"
#include "tests/property/sched/property.h"

#define WINDOWS    8
#define LINE       256
#define SERVERS    8
#define SERVICE_NS UINT64_C(1000000)

enum service_times { SERVICE_EVEN, SERVICE_UNIFORM, SERVICE_EXPONENTIAL };

/* A request in the line or at a server. */
struct entry {
    int window;
    uint64_t cost;
    uint64_t end_ns;
};

struct sim {
    uint64_t seed;
    struct property_random random;
    enum service_times times;
    uint64_t depth;
    uint64_t largest_cost;
    int windows;
    struct sched_window window[WINDOWS];
    int flow[WINDOWS];       /* 0 or 1 */
    uint64_t cost[WINDOWS];  /* of the request that waits for the window */
    exact_t area[WINDOWS];   /* outstanding cost * ns */
    uint64_t completed[2];   /* by flow */
    struct entry line[LINE]; /* a ring */
    uint64_t line_head, line_tail;
    struct entry servers[SERVERS];
    uint64_t busy, server_count;
    uint64_t now_ns;
    exact_t lag_low, lag_high; /* times 100 */
    unsigned share_percent[2];
};

/* Exponential, of mean SERVICE_NS, nearly: octaves by tosses of a coin. */
static uint64_t exponential_ns(struct property_random *random)
{
    const uint64_t ln2_ns = SERVICE_NS * 693147 / 1000000;
    uint64_t octaves = 0;

    while (octaves < 30 && property_chance(random, 50))
        octaves++;
    /* Within an octave: -log2(1 - u / 2) for u in 0..1, by a parabola that is right at 0 and 1. */
    const uint64_t u = property_between(random, 0, 1000000);
    return octaves * ln2_ns +
           (u * 721347 / 1000000 + u * u / 1000000 * 278653 / 1000000) * ln2_ns / 1000000;
}

static uint64_t service_ns(struct sim *sim)
{
    switch (sim->times) {
    case SERVICE_UNIFORM:
        return property_between(&sim->random, SERVICE_NS / 2, SERVICE_NS * 3 / 2);
    case SERVICE_EXPONENTIAL:
        return exponential_ns(&sim->random);
    case SERVICE_EVEN:
        break;
    }
    return SERVICE_NS;
}

/* Each proxy has a window for either flow: the part share_num[] / share_den of it. */
static struct sim *sim_create(uint64_t seed, uint64_t depth, unsigned percent, int proxies,
                              const uint32_t *share_num, uint32_t share_den)
{
    struct sim *sim = test_calloc(1, sizeof(*sim));

    sim->seed = seed;
    sim->random.state = seed;
    sim->depth = depth;
    sim->largest_cost = 1;
    sim->server_count = 1;
    sim->share_percent[0] = percent;
    sim->share_percent[1] = 100 - percent;
    for (int proxy = 0; proxy < proxies; proxy++) {
        for (int flow = 0; flow < 2; flow++) {
            const struct sched_window_terms terms = {.depth = depth,
                                                     .weight = sim->share_percent[flow],
                                                     .weights_sum = 100,
                                                     .share_num = share_num[proxy],
                                                     .share_den = share_den};
            assert_int_equal(sched_window_init(&sim->window[sim->windows], &terms, 0), 0);
            sim->cost[sim->windows] = 1;
            sim->flow[sim->windows++] = flow;
        }
    }
    return sim;
}

static void sim_issue(struct sim *sim, int which)
{
    struct sched_window *window = &sim->window[which];
    const uint64_t cost = sim->cost[which];

    sched_window_issue(window, cost, sim->now_ns);
    property_check(sim->seed,
                   (window->outstanding_cost - cost) * 1000 <= sched_window_size_milli(window));
    property_check(sim->seed, sim->line_tail - sim->line_head < LINE);
    sim->line[sim->line_tail++ % LINE] = (struct entry){.window = which, .cost = cost};
    sim->cost[which] = property_between(&sim->random, 1, sim->largest_cost);
}

/* Windows are served in a random order, so that none is always first. */
static void sim_fill(struct sim *sim)
{
    const int first = (int)property_between(&sim->random, 0, (uint64_t)sim->windows - 1);

    for (int i = 0; i < sim->windows; i++) {
        const int which = (first + i) % sim->windows;
        while (sched_window_may_issue(&sim->window[which], sim->cost[which], sim->now_ns))
            sim_issue(sim, which);
    }
    while (sim->busy < sim->server_count && sim->line_head != sim->line_tail) {
        struct entry *entry = &sim->servers[sim->busy++];
        *entry = sim->line[sim->line_head++ % LINE];
        entry->end_ns = sim->now_ns;
        for (uint64_t unit = 0; unit < entry->cost; unit++)
            entry->end_ns += service_ns(sim);
    }
}

static void sim_advance(struct sim *sim, uint64_t to_ns)
{
    for (int i = 0; i < sim->windows; i++)
        sim->area[i] += (exact_t)sim->window[i].outstanding_cost * (to_ns - sim->now_ns);
    sim->now_ns = to_ns;
}

static void sim_complete(struct sim *sim, uint64_t server)
{
    const struct entry entry = sim->servers[server];

    sim->servers[server] = sim->servers[--sim->busy];
    sim_advance(sim, entry.end_ns);
    sched_window_complete(&sim->window[entry.window], entry.cost, sim->now_ns);
    sim->completed[sim->flow[entry.window]] += entry.cost;
    const exact_t lag = (exact_t)sim->completed[0] * 10000 / sim->share_percent[0] -
                        (exact_t)sim->completed[1] * 10000 / sim->share_percent[1];
    sim->lag_low = lag < sim->lag_low ? lag : sim->lag_low;
    sim->lag_high = lag > sim->lag_high ? lag : sim->lag_high;
}

/* To the next completion, or the moment a window opens, whichever is first. */
static void sim_step(struct sim *sim)
{
    uint64_t wake_ns = SCHED_WINDOW_NEVER_NS;
    uint64_t first = 0;

    sim_fill(sim);
    for (int i = 0; i < sim->windows; i++) {
        const uint64_t opens_ns = sched_window_wake_ns(&sim->window[i]);
        property_check(sim->seed, opens_ns > sim->now_ns);
        wake_ns = opens_ns < wake_ns ? opens_ns : wake_ns;
    }
    for (uint64_t i = 1; i < sim->busy; i++)
        if (sim->servers[i].end_ns < sim->servers[first].end_ns)
            first = i;
    property_check(sim->seed, sim->busy > 0 || wake_ns != SCHED_WINDOW_NEVER_NS);
    if (sim->busy > 0 && sim->servers[first].end_ns <= wake_ns)
        sim_complete(sim, first);
    else
        sim_advance(sim, wake_ns);
}

static void sim_run(struct sim *sim, uint64_t requests)
{
    while (sim->completed[0] + sim->completed[1] < requests)
        sim_step(sim);
}

/* Completed by the first flow, in ten thousandths of all. */
static uint64_t sim_share(const struct sim *sim)
{
    return sim->completed[0] * 10000 / (sim->completed[0] + sim->completed[1]);
}

/*
 * With requests always waiting, what is outstanding on average is the window, to within what the
 * debt can be: one request's excess for as long as it is at the service.
 */
static void sim_check_average(const struct sim *sim)
{
    for (int i = 0; i < sim->windows; i++) {
        const exact_t promised = (exact_t)sched_window_size_milli(&sim->window[i]) * sim->now_ns;
        const exact_t difference = sim->area[i] * 1000 - promised;
        property_check(sim->seed, difference < promised / 100 && difference > -promised / 100);
    }
}

static void average_of_seed(uint64_t seed)
{
    struct property_random random = {.state = seed};
    const uint32_t shares[][2] = {{1, 1}, {1, 3}, {2, 1}};
    const uint32_t *share = shares[property_between(&random, 0, 2)];
    struct sim *sim =
        sim_create(seed, property_between(&random, 2, 20),
                   (unsigned)property_between(&random, 20, 80), 2, share, share[0] + share[1]);

    sim->times = (enum service_times)property_between(&random, 0, 2);
    sim->largest_cost = property_between(&random, 1, property_chance(&random, 50) ? 1 : 5);
    sim->server_count = property_between(&random, 1, 4);
    sim_run(sim, 20000);
    if (sim->largest_cost == 1)
        sim_check_average(sim);
    test_free(sim);
}

static void test_what_is_outstanding_averages_to_the_window(void **state)
{
    (void)state;
    property_run("window average", 60, average_of_seed);
}

/* Two proxies, depth 4, weights 3 and 7: windows of 0.6 and 1.4 at each. */
static void test_shares_are_right_at_fractional_windows(void **state)
{
    const uint32_t halves[] = {1, 1};

    (void)state;
    for (uint64_t servers = 1; servers <= 2; servers++) {
        struct sim *sim = sim_create(servers, 4, 30, 2, halves, 2);
        sim->server_count = servers;
        sim_run(sim, 50000);
        assert_in_range(sim_share(sim), 2950, 3050);
        test_free(sim);
    }
}

/*
 * Windows of at least one request, uneven service times. With exactly even ones the requests may
 * fall in step, which window.h owns up to.
 */
static void shares_of_seed(uint64_t seed)
{
    struct property_random random = {.state = seed};
    const uint32_t halves[] = {1, 1};
    const int proxies = (int)property_between(&random, 1, 2);
    struct sim *sim = sim_create(seed, proxies == 1 ? 4 : property_between(&random, 8, 16), 30,
                                 proxies, halves, (uint32_t)proxies);

    sim->times = (enum service_times)property_between(&random, 1, 2);
    sim->server_count = property_between(&random, 1, 4);
    sim_run(sim, 50000);
    property_check(seed, sim_share(sim) >= 2870 && sim_share(sim) <= 3130);
    test_free(sim);
}

static void test_shares_hold_at_uneven_service_times(void **state)
{
    (void)state;
    property_run("window shares", 40, shares_of_seed);
}

/* Whole windows, unit costs: the paper's bound, 2 * depth per share. */
static void lag_of_seed(uint64_t seed)
{
    struct property_random random = {.state = seed};
    const uint32_t parts[] = {1, 3};
    const bool split = property_chance(&random, 50);
    struct sim *sim = sim_create(seed, split ? 40 : 10, 30, split ? 2 : 1, parts, split ? 4 : 1);

    sim->times = (enum service_times)property_between(&random, 0, 2);
    sim_run(sim, 20000);
    property_check(seed, sim->lag_high - sim->lag_low <= (exact_t)2 * sim->depth * 100);
    test_free(sim);
}

static void test_lag_of_whole_windows_is_bounded(void **state)
{
    (void)state;
    property_run("window lag", 40, lag_of_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_outstanding_averages_to_the_window),
        cmocka_unit_test(test_shares_are_right_at_fractional_windows),
        cmocka_unit_test(test_shares_hold_at_uneven_service_times),
        cmocka_unit_test(test_lag_of_whole_windows_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
