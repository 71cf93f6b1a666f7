/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_definition.c: dispatch order against the textbook, word for word.
 *
 * The reference gives both tags on arrival, keeps them in one array and searches it:
 *     S = max(v(A), F of the flow's previous arrival)     F = S + cost / weight
 *     SFQ, SFQ(D): v = S of the request dispatched last
 *     RW(D), hybrid: the same, only flows with room in their window D * weight / sum (+ slack)
 *     Virtual Clock: v stands still
 *     Min-SFQ(D):  v = smallest S among the outstanding requests
 *     FSFQ(D):     v as in SFQ(D); v' = smallest S among the outstanding requests, else v;
 *                  S' = max(v'(A), F if F < v(A), else F'), F' = S' + cost / weight
 *                  S = max(v(A), S')   (F, F' of the flow's previous arrival); ties go by S'
 *     end of a busy period: v = v' = largest F served
 * sched/ gives tags late; that this comes to the same is what is tested. The caller dispatches
 * after every event. Service times and completion orders are random.
 */
#include "tests/property/sched/property.h"

#define REQUESTS 600
#define FLOWS    7

enum { WAITING = 1, SENT, GONE };

struct request {
    struct sched_item item;
    int flow;
    int state;
    uint64_t cost;
    exact_t start;
    exact_t finish;
    exact_t adjusted;
};

struct textbook {
    uint64_t seed;
    enum sched_algorithm algorithm;
    enum sched_depth_unit unit;
    uint64_t depth;
    struct property_arithmetic arithmetic;
    uint64_t virtual_start;
    struct request requests[REQUESTS]; /* in order of arrival */
    int arrived;
    int waiting;
    int sent;
    uint64_t sent_cost;
    uint64_t slack;
    exact_t v;
    exact_t adjusted_v;
    exact_t last_finish[FLOWS];
    exact_t last_adjusted[FLOWS];
    exact_t largest_served;
    struct sched_flow flows[FLOWS];
    struct sched *s;
};

static exact_t later(exact_t a, exact_t b)
{
    return a > b ? a : b;
}

static void textbook_arrive(struct textbook *t, int flow, uint64_t cost)
{
    struct request *r = &t->requests[t->arrived++];
    const exact_t charge = property_charge(&t->arithmetic, cost, t->flows[flow].weight);

    r->flow = flow;
    r->cost = cost;
    r->state = WAITING;
    r->start = later(t->v, t->last_finish[flow]);
    if (t->algorithm == SCHED_ALGORITHM_FSFQ) {
        r->adjusted = later(t->adjusted_v, t->last_finish[flow] < t->v ? t->last_finish[flow]
                                                                       : t->last_adjusted[flow]);
        r->start = later(t->v, r->adjusted);
    }
    r->finish = r->start + charge;
    t->last_finish[flow] = r->finish;
    t->last_adjusted[flow] = r->adjusted + charge;
    t->waiting++;
    sched_item_init(&r->item);
    property_check(t->seed, sched_enqueue(t->s, &t->flows[flow], &r->item, cost, 0) == SCHED_OK);
}

static bool windowed(enum sched_algorithm algorithm)
{
    return algorithm == SCHED_ALGORITHM_RW || algorithm == SCHED_ALGORITHM_HYBRID;
}

/* Which flows have outstanding < n_f + slack. */
static void textbook_windows(const struct textbook *t, bool *open)
{
    bool active[FLOWS] = {false};
    exact_t outstanding[FLOWS] = {0};
    exact_t weights = 0;

    for (int i = 0; i < t->arrived; i++) {
        const struct request *r = &t->requests[i];
        active[r->flow] = active[r->flow] || r->state != GONE;
        if (r->state == SENT)
            outstanding[r->flow] += t->unit == SCHED_DEPTH_COST ? (exact_t)r->cost : 1;
    }
    for (int f = 0; f < FLOWS; f++)
        weights += active[f] ? t->flows[f].weight : 0;
    for (int f = 0; f < FLOWS; f++) {
        if (t->algorithm == SCHED_ALGORITHM_HYBRID)
            outstanding[f] -= (exact_t)t->slack;
        open[f] = !windowed(t->algorithm) ||
                  outstanding[f] * weights < (exact_t)t->depth * t->flows[f].weight;
    }
}

static bool textbook_before(const struct textbook *t, const struct request *a,
                            const struct request *b)
{
    if (t->algorithm == SCHED_ALGORITHM_FIFO)
        return false; /* b came first */
    if (a->start != b->start)
        return a->start < b->start;
    return t->algorithm == SCHED_ALGORITHM_FSFQ && a->adjusted < b->adjusted;
}

/* The request whose turn it is, by the algorithm's order and nothing else. */
static struct request *textbook_first(struct textbook *t)
{
    struct request *first = NULL;
    bool open[FLOWS];

    textbook_windows(t, open);
    for (int i = 0; i < t->arrived; i++) {
        struct request *r = &t->requests[i];
        if (r->state != WAITING || !open[r->flow])
            continue;
        if (first == NULL || textbook_before(t, r, first))
            first = r;
    }
    return first;
}

static bool textbook_room(const struct textbook *t, uint64_t cost)
{
    if (t->sent == 0)
        return true;
    if (t->algorithm == SCHED_ALGORITHM_SFQ)
        return false;
    if (t->unit == SCHED_DEPTH_REQUESTS)
        return (uint64_t)t->sent < t->depth;
    return t->sent_cost + cost <= t->depth;
}

/* v and v' once something was sent or has ended; `sent` is NULL for the latter. */
static void textbook_clocks(struct textbook *t, const struct request *sent)
{
    const struct request *least = NULL;

    for (int i = 0; i < t->arrived; i++) {
        const struct request *r = &t->requests[i];
        if (r->state == SENT && (least == NULL || r->start < least->start))
            least = r;
    }
    if (t->algorithm == SCHED_ALGORITHM_MINSFQD)
        t->v = least != NULL ? least->start : t->v;
    else if (sent != NULL && t->algorithm != SCHED_ALGORITHM_VIRTUAL_CLOCK)
        t->v = later(t->v, sent->start);
    t->adjusted_v = least != NULL ? least->start : t->v;
    if (t->sent == 0 && t->waiting == 0) {
        t->v = t->largest_served;
        t->adjusted_v = t->largest_served;
    }
}

static bool first_of_its_flow(const struct textbook *t, const struct request *r)
{
    for (const struct request *other = t->requests; other < r; other++)
        if (other->state == WAITING && other->flow == r->flow)
            return false;
    return true;
}

/* Dispatches until neither side has anything; each must choose the same. */
static void dispatch_all(struct textbook *t)
{
    for (;;) {
        struct request *expected = textbook_first(t);
        struct sched_item *item = sched_dispatch(t->s, 0);
        if (item == NULL) {
            property_check(t->seed, expected == NULL || !textbook_room(t, expected->cost) ||
                                        !t->arithmetic.binary);
            /* With rounding the other side may look at another, larger request; some must fit. */
            property_check(t->seed, t->waiting == 0 || t->sent > 0);
            return;
        }
        struct request *chosen = (struct request *)item; /* item is its first member */
        property_check(t->seed, expected != NULL && textbook_room(t, chosen->cost));
        property_check(t->seed, first_of_its_flow(t, chosen));
        if (chosen != expected)
            property_check(t->seed, t->algorithm != SCHED_ALGORITHM_FIFO &&
                                        property_near(&t->arithmetic, chosen->start,
                                                      expected->start, (uint64_t)t->arrived));
        if (t->arithmetic.binary && t->algorithm != SCHED_ALGORITHM_FIFO)
            property_check(t->seed, item->start == property_fixed(t->virtual_start, chosen->start));
        chosen->state = SENT;
        t->waiting--;
        t->sent++;
        t->sent_cost += chosen->cost;
        t->largest_served = later(t->largest_served, chosen->finish);
        textbook_clocks(t, chosen);
    }
}

static void complete_one(struct textbook *t, struct property_random *random)
{
    uint64_t which = property_between(random, 0, (uint64_t)t->sent - 1);

    for (int i = 0; i < t->arrived; i++) {
        struct request *r = &t->requests[i];
        if (r->state != SENT || which-- > 0)
            continue;
        r->state = GONE;
        t->sent--;
        t->sent_cost -= r->cost;
        sched_complete(t->s, &r->item, r->cost, 0);
        break;
    }
    textbook_clocks(t, NULL);
}

static void change_depth(struct textbook *t, struct property_random *random)
{
    uint64_t depth = t->unit == SCHED_DEPTH_REQUESTS
                         ? property_between(random, 1, 12)
                         : property_between(random, 1, 4) * t->arithmetic.largest_cost;

    /* Lowered, the caller could not keep all slots busy, which Min-SFQ(D)'s v takes for granted. */
    if (t->algorithm == SCHED_ALGORITHM_MINSFQD && depth < t->depth)
        return;
    t->depth = depth;
    sched_set_depth(t->s, depth);
}

static enum sched_algorithm draw_algorithm(struct property_random *random)
{
    const enum sched_algorithm algorithms[] = {
        SCHED_ALGORITHM_FIFO,         SCHED_ALGORITHM_SFQ,  SCHED_ALGORITHM_SFQD,
        SCHED_ALGORITHM_MINSFQD,      SCHED_ALGORITHM_FSFQ, SCHED_ALGORITHM_FSFQ,
        SCHED_ALGORITHM_RW,           SCHED_ALGORITHM_RW,   SCHED_ALGORITHM_HYBRID,
        SCHED_ALGORITHM_VIRTUAL_CLOCK};
    return algorithms[property_between(random, 0, 9)];
}

/* Costs go up to the largest only where tags cannot lag behind v, nor v behind them. */
static struct property_arithmetic draw_arithmetic(struct property_random *random,
                                                  enum sched_algorithm algorithm)
{
    const bool huge = algorithm <= SCHED_ALGORITHM_SFQD;
    struct property_arithmetic a;

    /* Rounding may decide between the two equations of FSFQ(D). */
    do
        a = property_arithmetic_draw(random, huge);
    while (algorithm == SCHED_ALGORITHM_FSFQ && !a.exact);
    return a;
}

static void case_of_seed(uint64_t seed)
{
    struct property_random random = {.state = seed};
    struct textbook *t = test_calloc(1, sizeof(*t));

    t->seed = seed;
    t->algorithm = draw_algorithm(&random);
    /* Without enough requests in sight Min-SFQ(D) in cost units leaves slots empty, see above. */
    t->unit = t->algorithm != SCHED_ALGORITHM_MINSFQD && property_chance(&random, 40)
                  ? SCHED_DEPTH_COST
                  : SCHED_DEPTH_REQUESTS;
    t->arithmetic = draw_arithmetic(&random, t->algorithm);
    t->virtual_start = property_virtual_start(&random);
    t->depth = 1;
    t->slack = property_between(&random, 0, 5);
    const struct sched_params params = {.options.slack = t->slack,
                                        .algorithm = t->algorithm,
                                        .depth_unit = t->unit,
                                        .depth = 1,
                                        .virtual_start = t->virtual_start};
    t->s = sched_create(&params);
    for (int i = 0; i < FLOWS; i++) {
        assert_int_equal(sched_flow_init(&t->flows[i], property_weight(&random, &t->arithmetic)),
                         0);
        assert_int_equal(sched_flow_attach(t->s, &t->flows[i]), 0);
    }
    change_depth(t, &random);
    const unsigned pressure = (unsigned)property_between(&random, 20, 80);
    while (t->arrived < REQUESTS || t->sent > 0) {
        if (t->arrived < REQUESTS && (t->sent == 0 || property_chance(&random, pressure)))
            textbook_arrive(t, (int)property_between(&random, 0, FLOWS - 1),
                            property_cost(&random, &t->arithmetic));
        else
            complete_one(t, &random);
        if (property_chance(&random, 2))
            change_depth(t, &random);
        dispatch_all(t);
    }
    property_check(seed, t->waiting == 0 && sched_queued(t->s) == 0);
    sched_destroy(t->s);
    test_free(t);
}

static void test_dispatch_order_is_the_textbooks(void **state)
{
    (void)state;
    property_run("definition", 300, case_of_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatch_order_is_the_textbooks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
