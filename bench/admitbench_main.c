/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admitbench: what an admission decision costs. One thread, virtual time, sched/admission alone. A
 * pool that is offered 1.2 times what it can do, so that every part of a policy has work; a turn is
 * one request: admit_offer, and when it joins, admit_dispatch and admit_complete of the oldest
 * ones.
 *
 * A line of JSON for each policy and unit of cost goes to stdout:
 *
 *   policy, costs   what ran; costs are 1, or random from 1 to 64
 *   ns              per turn, without an interval's end: the median of batches
 *   with_ends_ns    the same where 20 completions end an interval
 *   interval_ns     what an interval's end costs: the difference, for as many turns as it takes
 *   turns           how many were timed, of each
 */
#include "loadgen/base/rng.h"
#include "sched/admission/admission.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GAP_NS        10000 /* between requests */
#define OFFERS        6     /* for five completions */
#define BATCH_TURNS   960
#define WARM_UP_TURNS 20000
#define MANY_SLOTS    (1ULL << 39) /* no interval ends */
#define SLOTS         16
#define PLACES        4096 /* of the queue; a power of two above what any policy lets stand */
#define BATCHES_MOST  100000
#define COSTS         64

static const char usage[] = "usage: admitbench [--turns N] [--seed N]\n"
                            "  --turns N  turns timed per policy (2000000)\n"
                            "  --seed N   of random costs (1)\n";

struct request {
    uint64_t came_ns;
    uint64_t cost;
};

struct bench {
    struct admit admit;
    struct rng rng;
    bool random_costs;
    uint64_t now_ns;
    uint64_t number;
    uint64_t head;
    uint64_t tail;
    struct request queue[PLACES];
    uint64_t done_cost; /* of what was dispatched last: it completes at the next turn */
    uint64_t costs[COSTS];
};

static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void turn(struct bench *bench)
{
    uint64_t cost = bench->costs[bench->number % COSTS];

    bench->now_ns += GAP_NS;
    if (admit_offer(&bench->admit, cost, bench->now_ns)) {
        if (bench->tail - bench->head == PLACES) {
            admit_leave(&bench->admit, cost, bench->now_ns); /* none and codel let all stand */
        } else {
            bench->queue[bench->tail++ % PLACES] =
                (struct request){.came_ns = bench->now_ns, .cost = cost};
        }
    }
    if (bench->number++ % OFFERS == 0)
        return;
    if (bench->done_cost)
        admit_complete(&bench->admit, bench->done_cost, bench->now_ns);
    bench->done_cost = 0;
    while (bench->head != bench->tail && !bench->done_cost) {
        struct request *next = &bench->queue[bench->head++ % PLACES];

        if (admit_dispatch(&bench->admit, next->cost, bench->now_ns - next->came_ns, bench->now_ns))
            bench->done_cost = next->cost;
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of batches, ns a turn. */
static double timed(struct bench *bench, uint64_t turns)
{
    static double batch_ns[BATCHES_MOST];
    size_t batches = 0;

    for (uint64_t done = 0; done < turns && batches < BATCHES_MOST; done += BATCH_TURNS) {
        uint64_t from_ns = clock_ns();

        for (int i = 0; i < BATCH_TURNS; i++)
            turn(bench);
        batch_ns[batches++] = (double)(clock_ns() - from_ns) / BATCH_TURNS;
    }
    qsort(batch_ns, batches, sizeof(batch_ns[0]), by_size);
    return batch_ns[batches / 2];
}

static void measure(enum admit_policy policy, bool random_costs, uint64_t turns, uint64_t seed)
{
    static struct bench bench;
    struct admit_options options = {
        .policy = policy, .slots = SLOTS, .limit = random_costs ? 2048 : 64, .seed = seed};
    uint64_t costs = 0;
    uint64_t squares = 0;

    memset(&bench, 0, sizeof(bench));
    rng_init(&bench.rng, seed, 0);
    for (int i = 0; i < COSTS; i++) {
        bench.costs[i] = random_costs ? 1 + rng_below(&bench.rng, 64) : 1;
        costs += bench.costs[i];
        squares += bench.costs[i] * bench.costs[i];
    }
    admit_init(&bench.admit, &options, 0);
    for (int i = 0; i < WARM_UP_TURNS; i++)
        turn(&bench);
    double with_ends_ns = timed(&bench, turns);

    admit_set_slots(&bench.admit, MANY_SLOTS, bench.now_ns);
    double ns = timed(&bench, turns);
    /* 20 requests' worth, in turns. */
    double per_interval =
        20.0 * (double)squares * COSTS / ((double)costs * (double)costs) * OFFERS / (OFFERS - 1);
    double interval_ns = (with_ends_ns - ns) * per_interval;

    printf("{\"policy\": \"%s\", \"costs\": \"%s\", \"ns\": %.2f, \"with_ends_ns\": %.2f, "
           "\"interval_ns\": %.1f, \"turns\": %" PRIu64 ", \"refused_share\": %.3f, "
           "\"bytes\": %zu}\n",
           admit_policy_name(policy), random_costs ? "random" : "equal", ns, with_ends_ns,
           interval_ns > 0 ? interval_ns : 0, turns,
           (double)bench.admit.refused / (double)bench.admit.offered, sizeof(bench.admit));
}

static uint64_t read_number(const char *text, uint64_t most)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (end == text || *end || *text == '-' || number > most) {
        fprintf(stderr, "admitbench: %s: expected a number up to %" PRIu64 "\n%s", text, most,
                usage);
        exit(2);
    }
    return number;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"turns", required_argument, NULL, 't'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    uint64_t turns = 2000000;
    uint64_t seed = 1;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 't') {
            turns = read_number(optarg, (uint64_t)BATCH_TURNS * BATCHES_MOST);
        } else if (option == 's') {
            seed = read_number(optarg, INT64_MAX);
        } else {
            fputs(usage, option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (optind < argc) {
        fputs(usage, stderr);
        return 2;
    }
    for (int random_costs = 0; random_costs < 2; random_costs++) {
        for (int policy = 0; policy < ADMIT_POLICIES; policy++)
            measure((enum admit_policy)policy, random_costs, turns, seed);
    }
    return 0;
}
