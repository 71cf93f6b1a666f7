/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_oracle.c: every call of sched.h in random order, side by side with the oracle.
 *
 * After each call: same item dispatched, same verdict, same counters, same flows idle, same virtual
 * time and wake-up time, tags to the last bit where they are exact (lockstep.h). The oracle never
 * retires a flow and never wraps, so agreement also shows that retiring, detaching and attaching an
 * idle flow again, and tags that wrap, change nothing.
 */
#include "tests/property/sched/lockstep.h"

#define STEPS 2500

/* What a case may use, besides arrivals, dispatches and completions. */
struct plan {
    bool corrections;
    bool switching;
    bool huge_costs;
    bool exact;          /* no rounding anywhere */
    uint64_t calm;       /* at most so much time passes between calls, in ns */
    unsigned algorithms; /* bit per algorithm to switch among */
};

static enum sched_algorithm draw_algorithm(struct lockstep *p, unsigned algorithms)
{
    for (;;) {
        uint64_t drawn = lockstep_draw(p, 0, SCHED_ALGORITHMS - 1);
        if ((algorithms >> drawn & 1) != 0)
            return (enum sched_algorithm)drawn;
    }
}

static void do_enqueue(struct lockstep *p)
{
    int number = lockstep_item(p, SCHED_ITEM_IDLE);
    /* Some flows come often, some seldom. */
    int flow = (int)lockstep_draw(p, 0, lockstep_draw(p, 0, ORACLE_FLOWS - 1));
    uint64_t cost = property_cost(&p->random, &p->oracle.arithmetic);

    if (number >= 0)
        lockstep_enqueue(p, flow, number, cost);
}

static void do_complete(struct lockstep *p, const struct plan *plan)
{
    int number = lockstep_item(p, SCHED_ITEM_OUTSTANDING);

    if (number < 0)
        return;
    uint64_t true_cost = p->oracle.items[number].cost;
    if (plan->corrections && property_chance(&p->random, 50))
        true_cost = lockstep_draw(p, 0, 2 * p->oracle.arithmetic.largest_cost);
    lockstep_complete(p, number, true_cost);
}

static void do_cancel(struct lockstep *p)
{
    int number = lockstep_item(p, SCHED_ITEM_QUEUED);

    if (number >= 0)
        lockstep_cancel(p, number);
}

static void do_requeue(struct lockstep *p)
{
    int number = lockstep_item(p, SCHED_ITEM_OUTSTANDING);

    if (number < 0)
        return;
    /* Tags so old have been lifted (engine/vtime.h): sent back, it would start later than exactly.
     */
    if (p->oracle.v - p->oracle.items[number].start <= (exact_t)1 << 58)
        lockstep_requeue(p, number);
}

static void do_depth(struct lockstep *p)
{
    enum sched_depth_unit unit = (enum sched_depth_unit)lockstep_draw(p, 0, 1);
    uint64_t depth = lockstep_draw(p, 0, 10);

    if (unit == SCHED_DEPTH_COST)
        depth *= p->oracle.arithmetic.largest_cost / 2;
    lockstep_set_depth(p, unit, depth);
}

static void do_limits(struct lockstep *p)
{
    struct oracle *o = &p->oracle;
    int flow = (int)lockstep_draw(p, 0, ORACLE_FLOWS - 1);

    o->flow_limit = lockstep_draw(p, 0, 20);
    o->total_limit = lockstep_draw(p, 0, 60);
    o->flows[flow].queue_limit = property_chance(&p->random, 50) ? 0 : lockstep_draw(p, 1, 10);
    sched_set_limits(p->s, o->flow_limit, o->total_limit);
    sched_flow_set_limit(&p->flows[flow], (uint32_t)o->flows[flow].queue_limit);
}

static void do_switch(struct lockstep *p, const struct plan *plan)
{
    enum sched_algorithm algorithm = draw_algorithm(p, plan->algorithms);

    if (!plan->switching)
        return;
    oracle_set_algorithm(&p->oracle, algorithm);
    property_check(p->seed, sched_set_algorithm(p->s, algorithm) == 0);
}

static void do_time(struct lockstep *p, const struct plan *plan)
{
    uint64_t what = lockstep_draw(p, 0, 99);

    if (what < 30)
        p->now_ns += lockstep_draw(p, 0, plan->calm / 100);
    else if (what < 50)
        p->now_ns += lockstep_draw(p, 0, plan->calm);
    else if (what < 55 && sched_wake_ns(p->s) != SCHED_NEVER_NS && p->now_ns < sched_wake_ns(p->s))
        p->now_ns = sched_wake_ns(p->s) - lockstep_draw(p, 0, 1);
}

static void do_rarely(struct lockstep *p, const struct plan *plan)
{
    uint64_t what = lockstep_draw(p, 0, 99);
    int flow = (int)lockstep_draw(p, 0, ORACLE_FLOWS - 1);

    if (what < 15)
        lockstep_set_weight(p, flow, property_weight(&p->random, &p->oracle.arithmetic));
    else if (what < 28)
        do_depth(p);
    else if (what < 32)
        do_limits(p);
    else if (what < 42)
        do_switch(p, plan);
    else if (what < 50)
        lockstep_set_terms(p, flow);
    else if (what < 56)
        lockstep_set_options(p);
    else
        lockstep_retire(p);
}

static void do_something(struct lockstep *p, const struct plan *plan)
{
    uint64_t what = lockstep_draw(p, 0, 999);

    do_time(p, plan);
    if (what < 400)
        do_enqueue(p);
    else if (what < 680)
        for (uint64_t most = lockstep_draw(p, 1, 12); most > 0 && lockstep_dispatch(p); most--)
            ;
    else if (what < 890)
        do_complete(p, plan);
    else if (what < 915)
        do_cancel(p);
    else if (what < 945)
        do_requeue(p);
    else
        do_rarely(p, plan);
}

static void finish(struct lockstep *p, const struct plan *plan)
{
    lockstep_set_depth(p, SCHED_DEPTH_REQUESTS, 1000);
    while (p->oracle.queued > 0 || p->oracle.outstanding > 0) {
        while (lockstep_dispatch(p))
            ;
        if (p->oracle.outstanding == 0)
            p->now_ns = sched_wake_ns(p->s);
        do_complete(p, plan);
        lockstep_check_same(p);
    }
    /* The reservations and limits of what was sent last are to be over. */
    p->now_ns += UINT64_C(1) << 50;
    property_check(p->seed, !lockstep_dispatch(p));
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        property_check(p->seed, sched_flow_idle(p->s, &p->flows[f]));
        property_check(p->seed, sched_flow_detach(p->s, &p->flows[f]) == 0);
    }
}

/* Where rounding is to be expected, and which costs go. */
static void draw_arithmetic(struct lockstep *p, const struct plan *plan)
{
    struct property_arithmetic *a = &p->oracle.arithmetic;
    const unsigned sharp = 1U << SCHED_ALGORITHM_FSFQ | 1U << SCHED_ALGORITHM_2DFQ;

    do
        *a = property_arithmetic_draw(&p->random, plan->huge_costs);
    while (plan->exact && !a->exact);
    if ((plan->algorithms >> SCHED_ALGORITHM_WFQ & 1) != 0) {
        a->scale *= LOCKSTEP_WFQ_SCALE;
        a->exact = false;
    }
    p->lenient = !a->exact && (plan->algorithms & sharp) != 0;
    p->exact_times = plan->exact || property_chance(&p->random, 75);
}

static void draw_start(struct lockstep *p, const struct plan *plan)
{
    struct oracle *o = &p->oracle;

    draw_arithmetic(p, plan);
    o->algorithm = draw_algorithm(p, plan->algorithms);
    o->depth = lockstep_draw(p, 1, 12);
    o->first_rank = 0;
    p->virtual_start = property_virtual_start(&p->random);
    p->last_vtime = p->virtual_start;
    p->now_ns = property_chance(&p->random, 50) ? 0 : lockstep_draw(p, 0, UINT64_C(1) << 61);
    const struct sched_params params = {.algorithm = o->algorithm,
                                        .depth_unit = o->unit,
                                        .depth = o->depth,
                                        .virtual_start = p->virtual_start};
    p->s = sched_create(&params);
    oracle_advance(o, p->now_ns);
    lockstep_set_options(p);
    for (int f = 0; f < ORACLE_FLOWS; f++) {
        o->flows[f].weight = property_weight(&p->random, &o->arithmetic);
        o->flows[f].pinned = property_chance(&p->random, 20);
        lockstep_attach(p, f);
        lockstep_set_terms(p, f);
    }
    for (int i = 0; i < ORACLE_ITEMS; i++)
        sched_item_init(&p->items[i]);
    property_check(p->seed, !lockstep_dispatch(p));
}

static void run_case(uint64_t seed, unsigned algorithms, bool exact)
{
    struct lockstep *p = test_calloc(1, sizeof(*p));
    struct plan plan = {.algorithms = algorithms};

    p->seed = seed;
    p->random.state = seed;
    plan.switching = (algorithms & (algorithms - 1)) != 0;
    plan.corrections = property_chance(&p->random, 50);
    plan.calm = lockstep_draw(p, 0, 1) == 0 ? 10000000 : 1000000000;
    /* Where v may stand still or heads may be passed over, or corrections are due, tags keep within
     * a window that the largest costs reach. */
    plan.huge_costs = !plan.corrections &&
                      (algorithms & ~(1U << SCHED_ALGORITHM_FIFO | 1U << SCHED_ALGORITHM_SFQ |
                                      1U << SCHED_ALGORITHM_SFQD)) == 0;
    plan.exact = exact;
    draw_start(p, &plan);
    for (p->steps = 0; p->steps < STEPS; p->steps++) {
        do_something(p, &plan);
        lockstep_check_same(p);
    }
    finish(p, &plan);
    sched_destroy(p->s);
    test_free(p);
}

/* The algorithms of a case: one, or what it switches among. */
static unsigned chosen;

static void case_of_seed(uint64_t seed)
{
    run_case(seed, chosen, false);
}

static void exact_case_of_seed(uint64_t seed)
{
    run_case(seed, chosen, true);
}

static void test_alone(void **state)
{
    const enum sched_algorithm algorithm = *(const enum sched_algorithm *)*state;

    chosen = 1U << algorithm;
    property_run(sched_algorithm_name(algorithm), 40, case_of_seed);
}

#define ALL_ALGORITHMS ((1U << SCHED_ALGORITHMS) - 1)

static void test_switching_among_all(void **state)
{
    (void)state;
    chosen = ALL_ALGORITHMS;
    property_run("switching among all", 100, case_of_seed);
}

/* Without wfq, whose v is never exact, the rest can be. */
static void test_switching_exactly(void **state)
{
    (void)state;
    chosen = ALL_ALGORITHMS & ~(1U << SCHED_ALGORITHM_WFQ);
    property_run("switching, exact", 200, exact_case_of_seed);
}

int main(void)
{
    static enum sched_algorithm algorithms[SCHED_ALGORITHMS];
    struct CMUnitTest tests[SCHED_ALGORITHMS + 2];

    for (int i = 0; i < SCHED_ALGORITHMS; i++) {
        algorithms[i] = (enum sched_algorithm)i;
        tests[i] = (struct CMUnitTest){.name = sched_algorithm_name(algorithms[i]),
                                       .test_func = test_alone,
                                       .initial_state = &algorithms[i]};
    }
    tests[SCHED_ALGORITHMS] = (struct CMUnitTest)cmocka_unit_test(test_switching_among_all);
    tests[SCHED_ALGORITHMS + 1] = (struct CMUnitTest)cmocka_unit_test(test_switching_exactly);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
