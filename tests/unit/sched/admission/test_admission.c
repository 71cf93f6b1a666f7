/* SPDX-License-Identifier: Apache-2.0 */
/* Admission policies one by one, by hand-made cases; what they do to a queue is spillsim's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched/admission/admission.h"
#include "sched/admission/admission_internal.h"

#define MS 1000000ULL
#define S  1000000000ULL

static struct admit made(enum admit_policy policy, uint64_t slots)
{
    struct admit admit;
    struct admit_options options = {.policy = policy, .slots = slots, .limit = 3, .seed = 7};

    admit_init(&admit, &options, 0);
    return admit;
}

/* ---------------------------------------------------------------- arithmetic */

static void roots(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t root = admit_root(i);

        assert_true(root * root <= i && (root + 1) * (root + 1) > i);
    }
    unsigned __int128 large = (unsigned __int128)UINT64_MAX * UINT64_MAX;

    assert_int_equal(admit_root(large), UINT64_MAX);
    assert_int_equal(admit_root(large - 1), UINT64_MAX - 1);
}

static void logarithms(void **state)
{
    static const struct {
        uint64_t a;
        uint64_t b;
        uint64_t log2_q16; /* floor of log2(a / b) * 65536 */
    } rows[] = {
        {1, 1, 0},
        {2, 1, 65536},
        {3, 1, 103872},
        {12, 10, 17238},
        {105, 100, 4612},
        {100, 1, 435411},
        {UINT64_MAX, 1, 4194303},
        {1ULL << 40, 1ULL << 20, 1310720},
        {1000001, 1000000, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t value = admit_log2_q16(rows[i].a, rows[i].b);

        assert_in_range(value, rows[i].log2_q16 - (rows[i].log2_q16 > 2 ? 2 : 0),
                        rows[i].log2_q16 + 1);
    }
}

static void names(void **state)
{
    enum admit_policy policy;

    (void)state;
    for (int i = 0; i < ADMIT_POLICIES; i++) {
        assert_int_equal(admit_policy_parse(admit_policy_name((enum admit_policy)i), &policy), 0);
        assert_int_equal(policy, i);
    }
    assert_true(admit_policy_parse("red", &policy) < 0);
    assert_true(admit_policy_parse("", &policy) < 0);
}

/* A pool that always has `queue` waiting and ends one request each `gap_ns`. */
static uint64_t busy(struct admit *admit, uint64_t now_ns, uint64_t gap_ns, int requests, int queue)
{
    while (admit->queue < (uint64_t)queue)
        admit_offer(admit, 1, now_ns);
    for (int i = 0; i < requests; i++) {
        now_ns += gap_ns;
        admit_complete(admit, 1, now_ns);
        admit_dispatch(admit, 1, 0, now_ns);
        while (admit->queue < (uint64_t)queue)
            admit_offer(admit, 1, now_ns);
    }
    return now_ns;
}

/* ---------------------------------------------------------------- the account */

static void the_account(void **state)
{
    struct admit admit = made(ADMIT_NONE, 2);

    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        assert_true(admit_offer(&admit, 10, i));
    assert_int_equal(admit_look(&admit).queue, 50);
    assert_true(admit_dispatch(&admit, 10, 1, 6));
    assert_true(admit_dispatch(&admit, 10, 1, 6));
    admit_leave(&admit, 10, 7);
    assert_int_equal(admit_look(&admit).queue, 20);
    assert_int_equal(admit.outstanding, 20);
    admit_requeue(&admit, 10, 8);
    assert_int_equal(admit_look(&admit).queue, 30);
    assert_int_equal(admit.outstanding, 10);
    admit_complete(&admit, 10, 9);
    assert_int_equal(admit.outstanding, 0);
    assert_int_equal(admit_look(&admit).offered, 5);
    assert_int_equal(admit_look(&admit).admitted, 5);
    assert_int_equal(admit_look(&admit).refused, 0);
    /* A time from before counts as the last one. */
    admit_offer(&admit, 1, 3);
    assert_int_equal(admit.now_ns, 9);
}

static void tail_has_a_limit(void **state)
{
    struct admit admit = made(ADMIT_TAIL, 1);

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(admit_offer(&admit, 1, 0));
    assert_false(admit_offer(&admit, 1, 0));
    assert_false(admit_offer(&admit, 1, 0));
    assert_true(admit_dispatch(&admit, 1, 0, 1));
    assert_true(admit_offer(&admit, 1, 1));
    assert_int_equal(admit_look(&admit).admitted, 4);
    assert_int_equal(admit_look(&admit).refused, 2);
}

/* What is put out by the offer and goes on all the same, in its own place or another's. */
static void marks_and_swaps(void **state)
{
    struct admit admit = made(ADMIT_TAIL, 1);

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(admit_offer(&admit, 1, 0));
    assert_false(admit_offer(&admit, 2, 0));
    admit_mark(&admit, 2, 0);
    assert_int_equal(admit.queue, 5);
    assert_false(admit_offer(&admit, 4, 0));
    admit_swap(&admit, 4, 2, 0);
    assert_int_equal(admit.queue, 7);
    assert_int_equal(admit_look(&admit).offered, 5);
    assert_int_equal(admit_look(&admit).admitted, 4);
    assert_int_equal(admit_look(&admit).refused, 2);
}

static void a_mark_at_the_dispatch(void **state)
{
    struct admit admit = made(ADMIT_CODEL, 1);
    uint64_t ms = 0;

    (void)state;
    do {
        admit_offer(&admit, 1, ms * MS);
        admit_offer(&admit, 1, ms * MS);
    } while (admit_dispatch(&admit, 1, 10 * MS, ms++ * MS));
    uint64_t outstanding = admit.outstanding;
    uint64_t admitted = admit.admitted;

    admit_keep(&admit, 1, ms * MS);
    assert_int_equal(admit.outstanding, outstanding + 1);
    assert_int_equal(admit.admitted, admitted + 1);
    assert_int_equal(admit.refused, 1);
}

static void a_marked_client_is_left_alone_for_an_interval(void **state)
{
    static const struct {
        uint64_t gap_ns;
        uint64_t least_ns;
        uint64_t most_ns;
    } rows[] = {
        {2 * MS, 40 * MS, 44 * MS}, /* 20 completions */
        {1000, MS / 10, MS / 10},   /* not below 100 us */
        {S, S, S},                  /* nor above 1 s */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct admit admit = made(ADMIT_DUK, 4);

        busy(&admit, 0, rows[i].gap_ns, 400, 2);
        assert_in_range(admit_mark_ns(&admit), rows[i].least_ns, rows[i].most_ns);
    }
}

struct model {
    uint64_t queue[512];
    uint64_t queued;
    uint64_t running[512];
    uint64_t ran;
};

static uint64_t random_of(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*random >> 33) % below;
}

static void step(struct admit *admit, struct model *model, uint64_t *random, uint64_t now_ns)
{
    uint64_t cost = random_of(random, 10) ? 1 + random_of(random, 64) : ADMIT_COST_MAX;

    switch (random_of(random, 8)) {
    case 0:
    case 1:
    case 2:
        if (model->queued == 512)
            return;
        if (!admit_offer(admit, cost, now_ns)) {
            if (random_of(random, 2))
                return;
            if (model->queued && random_of(random, 2)) {
                admit_swap(admit, cost, model->queue[--model->queued], now_ns);
            } else {
                admit_mark(admit, cost, now_ns);
            }
        }
        model->queue[model->queued++] = cost;
        return;
    case 3:
    case 4:
        if (model->queued == 0 || model->ran == 512)
            return;
        cost = model->queue[--model->queued];
        if (!admit_dispatch(admit, cost, random_of(random, 50 * MS), now_ns)) {
            if (random_of(random, 2))
                return;
            admit_keep(admit, cost, now_ns);
        }
        model->running[model->ran++] = cost;
        return;
    case 5:
        if (model->queued)
            admit_leave(admit, model->queue[--model->queued], now_ns);
        return;
    case 6:
        if (model->ran && model->queued < 512 && random_of(random, 4) == 0) {
            model->queue[model->queued++] = model->running[--model->ran];
            admit_requeue(admit, model->queue[model->queued - 1], now_ns);
            return;
        }
        /* fall through */
    default:
        if (model->ran)
            admit_complete(admit, model->running[--model->ran], now_ns);
    }
}

/* Whatever happens in whatever order, and whatever the policy changes to, the account is right. */
static void the_account_is_right_whatever_happens(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        enum admit_policy policy = (enum admit_policy)(seed % ADMIT_POLICIES);
        struct admit admit = made(policy, seed * 7);
        struct model model = {0};
        uint64_t random = seed;
        uint64_t now_ns = 0;

        for (int i = 0; i < 20000; i++) {
            uint64_t queue = 0;
            uint64_t running = 0;

            now_ns += random_of(&random, 4 * MS);
            step(&admit, &model, &random, now_ns);
            if (random_of(&random, 1000) == 0) {
                struct admit_options options = admit.options;

                options.policy = (enum admit_policy)random_of(&random, ADMIT_POLICIES);
                admit_change(&admit, &options, now_ns);
            }
            for (uint64_t j = 0; j < model.queued; j++)
                queue += model.queue[j];
            for (uint64_t j = 0; j < model.ran; j++)
                running += model.running[j];
            assert_int_equal(admit.queue, queue);
            assert_int_equal(admit.outstanding, running);
            assert_true(admit_look(&admit).refuse_share <= 1);
            assert_in_range(admit_mark_ns(&admit), MS / 10, S);
        }
    }
}

/* ---------------------------------------------------------------- the rate */

static void capacity_is_what_a_busy_pool_completes(void **state)
{
    struct admit admit = made(ADMIT_NONE, 4);
    uint64_t now_ns = 0;

    (void)state;
    assert_int_equal(admit_retry_after_ns(&admit), 0);
    now_ns = busy(&admit, now_ns, 2 * MS, 40, 8);
    assert_true(admit_look(&admit).capacity_per_s > 499.9);
    assert_true(admit_look(&admit).capacity_per_s < 500.1);
    /* Eight wait, two milliseconds each. */
    assert_true(admit_retry_after_ns(&admit) / 1000 >= 15998);
    assert_true(admit_retry_after_ns(&admit) / 1000 <= 16002);
    /* It falls to a tenth: known again within few completions. */
    busy(&admit, now_ns, 20 * MS, 16, 8);
    assert_true(admit_look(&admit).capacity_per_s < 51);
    assert_true(admit_look(&admit).capacity_per_s > 49);
}

static void an_idle_pool_lowers_no_capacity(void **state)
{
    struct admit admit = made(ADMIT_DUK, 4);
    uint64_t now_ns = busy(&admit, 0, 2 * MS, 40, 8);

    (void)state;
    while (admit.queue) {
        now_ns += 2 * MS;
        admit_complete(&admit, 1, now_ns);
        admit_dispatch(&admit, 1, 0, now_ns);
    }
    for (int i = 0; i < 100; i++) {
        now_ns += 100 * MS;
        assert_true(admit_offer(&admit, 1, now_ns));
        assert_true(admit_dispatch(&admit, 1, 0, now_ns));
        admit_complete(&admit, 1, now_ns + 2 * MS);
    }
    assert_true(admit_look(&admit).capacity_per_s > 499);
    assert_true(admit_look(&admit).refuse_share == 0);
}

/* A night without work is in no measurement of C, whatever the policy. */
static void an_idle_start_is_not_measured(void **state)
{
    (void)state;
    for (int policy = 0; policy < ADMIT_POLICIES; policy++) {
        struct admit admit = made((enum admit_policy)policy, 4);
        uint64_t now_ns = 8 * 3600 * S;

        for (int i = 0; i < 3; i++) {
            assert_true(admit_offer(&admit, 1, now_ns));
            assert_true(admit_dispatch(&admit, 1, 0, now_ns));
            admit_complete(&admit, 1, now_ns + 2 * MS);
            now_ns += 3600 * S;
        }
        assert_true(admit_look(&admit).capacity_per_s == 0);
        /* One interval: 20 completions. */
        busy(&admit, now_ns, 2 * MS, 20, 2);
        assert_true(admit_look(&admit).capacity_per_s > 480);
        assert_true(admit.interval.last_ns <= 40 * MS);
    }
}

/* ---------------------------------------------------------------- codel */

static void codel_puts_out_what_has_stood(void **state)
{
    struct admit admit = made(ADMIT_CODEL, 1);
    uint64_t out_ms[8];
    int count = 0;

    (void)state;
    /* One leaves each millisecond, 4 ms old for 50 ms, then 10 ms old; more always wait. */
    for (uint64_t ms = 0; ms < 400; ms++) {
        admit_offer(&admit, 1, ms * MS);
        admit_offer(&admit, 1, ms * MS);
        if (!admit_dispatch(&admit, 1, ms < 50 ? 4 * MS : 10 * MS, ms * MS) && count < 8)
            out_ms[count++] = ms;
    }
    /* Above from 50 on: the first after 100 ms, then 100/sqrt(1), 100/sqrt(2), 100/sqrt(3) later:
     * the law counts from the time the one before was due. */
    assert_int_equal(out_ms[0], 150);
    assert_int_equal(out_ms[1], 250);
    assert_int_equal(out_ms[2], 321);
    assert_int_equal(out_ms[3], 379);
    assert_int_equal(count, 4);
    /* One that has waited less ends it. */
    assert_true(admit_dispatch(&admit, 1, 4 * MS, 500 * MS));
    assert_true(admit_dispatch(&admit, 1, 10 * MS, 550 * MS));
    assert_true(admit_dispatch(&admit, 1, 10 * MS, 649 * MS));
    assert_false(admit_dispatch(&admit, 1, 10 * MS, 650 * MS));
    assert_int_equal(admit_look(&admit).refused, 5);
}

/* ---------------------------------------------------------------- pie */

static void pie_follows_the_delay(void **state)
{
    struct admit admit = made(ADMIT_PIE, 4);
    uint64_t now_ns = busy(&admit, 0, 2 * MS, 20, 8);
    double before = 0;

    (void)state;
    /* 100 wait, served at 500/s: 200 ms. p climbs, at most to one. */
    for (int i = 0; i < 200; i++) {
        now_ns += 10 * MS;
        while (admit.queue < 100 && admit.offered < 100000)
            admit_offer(&admit, 1, now_ns);
        admit_offer(&admit, 1, now_ns);
        assert_true(admit_look(&admit).refuse_share >= before || admit.state.pie.burst_ns == 0);
        before = admit_look(&admit).refuse_share;
        for (int done = 0; done < 5; done++) {
            admit_complete(&admit, 1, now_ns);
            admit_dispatch(&admit, 1, 0, now_ns);
        }
    }
    assert_true(admit_look(&admit).refuse_share > 0.5);
    assert_true(admit_look(&admit).refused > 100);
    /* Nothing waits any more: p falls to nothing, and a burst may pass again. */
    while (admit.queue) {
        admit_dispatch(&admit, 1, 0, now_ns);
        admit_complete(&admit, 1, now_ns);
    }
    for (int i = 0; i < 2000; i++) {
        now_ns += 10 * MS;
        admit_offer(&admit, 1, now_ns);
        if (admit.queue)
            admit_dispatch(&admit, 1, 0, now_ns);
        admit_complete(&admit, 1, now_ns);
    }
    assert_true(admit_look(&admit).refuse_share < 0.01);
    assert_true(admit_offer(&admit, 1, now_ns));
}

/* ---------------------------------------------------------------- duk */

/* Four slots, 500 completions a second, and `offers` offered between two completions. */
static uint64_t overload(struct admit *admit, uint64_t now_ns, int completions, int offers)
{
    for (int i = 0; i < completions; i++) {
        for (int j = 0; j < offers; j++)
            admit_offer(admit, 1, now_ns + (uint64_t)j);
        now_ns += 2 * MS;
        admit_complete(admit, 1, now_ns);
        if (admit->queue)
            admit_dispatch(admit, 1, 0, now_ns);
    }
    return now_ns;
}

static void duk_waits_for_evidence(void **state)
{
    struct admit admit = made(ADMIT_DUK, 4);
    uint64_t now_ns = busy(&admit, 0, 2 * MS, 40, 2);
    uint64_t refused = admit.refused;
    int passed = 0;

    (void)state;
    /* All at once: five times twenty over what is served pass, whatever the time. */
    admit.state.duk.surplus_q8 = 0;
    while (admit_offer(&admit, 1, now_ns) && passed < 1000)
        passed++;
    assert_in_range(passed, 99, 101);
    assert_int_equal(admit.refused, refused + 1);
    assert_true(admit_look(&admit).surplus > 1);
}

/* Nothing waits and S is 0; then twice of what is served comes. */
static void duk_lets_a_short_burst_pass(void **state)
{
    struct admit admit = made(ADMIT_DUK, 4);
    uint64_t now_ns = busy(&admit, 0, 2 * MS, 400, 2);
    uint64_t refused;

    (void)state;
    while (admit.queue)
        admit_leave(&admit, 1, now_ns);
    now_ns += S;
    refused = admit.refused;
    /* A batch is 20: it takes 40 ms, and for two of them all pass, though S is above 20 after one.
     */
    now_ns = overload(&admit, now_ns, 39, 2);
    assert_true(admit_look(&admit).surplus > 1);
    assert_int_equal(admit.refused, refused);
    assert_int_equal(admit.queue, 39);
    overload(&admit, now_ns, 5, 2);
    assert_true(admit.refused > refused);
}

static void duk_holds_the_queue_of_an_overload(void **state)
{
    (void)state;
    for (int offers = 2; offers <= 10; offers += 4) {
        struct admit admit = made(ADMIT_DUK, 4);
        uint64_t now_ns = overload(&admit, 0, 600, offers);
        uint64_t offered = admit.offered;
        uint64_t refused = admit.refused;
        uint64_t most = 0;

        for (int i = 0; i < 1000; i++) {
            now_ns = overload(&admit, now_ns, 1, offers);
            most = admit.queue > most ? admit.queue : most;
        }
        double share = (double)(admit.refused - refused) / (double)(admit.offered - offered);

        assert_true(share > 1 - 1.0 / offers - 0.01 && share < 1 - 1.0 / offers + 0.01);
        assert_true(most <= 16);
        assert_true(admit.queue > 0);
    }
}

static void duk_forgets_an_overload(void **state)
{
    struct admit admit = made(ADMIT_DUK, 4);
    uint64_t now_ns = overload(&admit, 0, 500, 10);

    (void)state;
    assert_true(admit_look(&admit).surplus > 1);
    /* Half of what can be served, for a second: 250 of surplus are gone, at most 100 were there. */
    for (int i = 0; i < 500; i++) {
        now_ns += 2 * MS;
        if (i % 2)
            admit_offer(&admit, 1, now_ns);
        if (admit.queue)
            admit_dispatch(&admit, 1, 0, now_ns);
        if (admit.outstanding)
            admit_complete(&admit, 1, now_ns);
    }
    assert_true(admit_look(&admit).surplus < 1);
    uint64_t refused = admit.refused;

    for (int i = 0; i < 10; i++)
        assert_true(admit_offer(&admit, 1, now_ns));
    assert_int_equal(admit.refused, refused);
}

/* The same with every cost a thousand times as large. */
static void duk_scales_with_the_unit(void **state)
{
    struct admit one = made(ADMIT_DUK, 4);
    struct admit many = made(ADMIT_DUK, 4000);
    uint64_t now_ns = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        now_ns += MS / 3;
        admit_offer(&one, 1, now_ns);
        admit_offer(&many, 1000, now_ns);
        if (i % 6 == 0 && one.queue && many.queue) {
            admit_complete(&one, 1, now_ns);
            admit_complete(&many, 1000, now_ns);
            admit_dispatch(&one, 1, 0, now_ns);
            admit_dispatch(&many, 1000, 0, now_ns);
        }
    }
    assert_true(one.refused > 10000);
    assert_in_range(many.refused, one.refused - 20, one.refused + 20);
    assert_in_range(many.queue / 1000, one.queue - 2, one.queue + 2);
}

/* ---------------------------------------------------------------- duk-literal */

static void literal_holds_the_growth_at_nothing(void **state)
{
    struct admit admit = made(ADMIT_DUK_LITERAL, 4);
    struct admit_options options = admit.options;
    uint64_t now_ns = 0;

    (void)state;
    options.interval_ns = 10 * MS;
    admit_init(&admit, &options, 0);
    now_ns = overload(&admit, now_ns, 500, 2);
    uint64_t queue = admit.queue;

    overload(&admit, now_ns, 1000, 2);
    /* p = 1 - beta / A: what stood is what stands, it never drains. */
    assert_true(admit.queue >= queue - 8 && admit.queue <= queue + 8);
    assert_true(queue > 8);
    assert_true(admit_look(&admit).refuse_share > 0.45 && admit_look(&admit).refuse_share < 0.55);
}

static void literal_chooses_its_interval(void **state)
{
    struct admit admit = made(ADMIT_DUK_LITERAL, 4);

    (void)state;
    overload(&admit, overload(&admit, 0, 500, 2), 500, 4);
    assert_true(admit_look(&admit).interval_ns >= MS && admit_look(&admit).interval_ns <= S);
    assert_true(admit.refused > 0);
}

/* ---------------------------------------------------------------- changes */

static void policies_change_with_a_queue(void **state)
{
    struct admit admit = made(ADMIT_NONE, 4);
    uint64_t now_ns = overload(&admit, 0, 100, 3);

    (void)state;
    for (int i = 0; i < 3 * ADMIT_POLICIES; i++) {
        struct admit_options options = admit.options;
        uint64_t queue = admit.queue;

        options.policy = (enum admit_policy)(i % ADMIT_POLICIES);
        admit_change(&admit, &options, now_ns);
        assert_int_equal(admit.queue, queue);
        assert_true(admit_look(&admit).capacity_per_s > 0);
        now_ns = overload(&admit, now_ns, 100, 3);
        assert_int_equal(admit.admitted + admit.refused, admit.offered);
    }
    admit_set_slots(&admit, 0, now_ns);
    assert_int_equal(admit.options.slots, 1);
    overload(&admit, now_ns, 100, 3);
}

static void extremes_do_not_overflow(void **state)
{
    (void)state;
    for (int policy = 0; policy < ADMIT_POLICIES; policy++) {
        struct admit admit = made((enum admit_policy)policy, ADMIT_COST_MAX);
        uint64_t now_ns = 0;

        for (int i = 0; i < 200; i++) {
            admit_offer(&admit, ADMIT_COST_MAX, now_ns);
            admit_offer(&admit, 1, now_ns);
            if (admit.queue)
                admit_dispatch(&admit, ADMIT_COST_MAX, UINT64_MAX, now_ns);
            admit_complete(&admit, ADMIT_COST_MAX, now_ns);
            now_ns = i < 100 ? now_ns + 1 : now_ns * 2 + 1 < now_ns ? UINT64_MAX : now_ns * 2 + 1;
            (void)admit_look(&admit);
            (void)admit_retry_after_ns(&admit);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots),
        cmocka_unit_test(logarithms),
        cmocka_unit_test(names),
        cmocka_unit_test(the_account),
        cmocka_unit_test(tail_has_a_limit),
        cmocka_unit_test(marks_and_swaps),
        cmocka_unit_test(a_mark_at_the_dispatch),
        cmocka_unit_test(a_marked_client_is_left_alone_for_an_interval),
        cmocka_unit_test(the_account_is_right_whatever_happens),
        cmocka_unit_test(capacity_is_what_a_busy_pool_completes),
        cmocka_unit_test(an_idle_pool_lowers_no_capacity),
        cmocka_unit_test(an_idle_start_is_not_measured),
        cmocka_unit_test(codel_puts_out_what_has_stood),
        cmocka_unit_test(pie_follows_the_delay),
        cmocka_unit_test(duk_waits_for_evidence),
        cmocka_unit_test(duk_lets_a_short_burst_pass),
        cmocka_unit_test(duk_holds_the_queue_of_an_overload),
        cmocka_unit_test(duk_forgets_an_overload),
        cmocka_unit_test(duk_scales_with_the_unit),
        cmocka_unit_test(literal_holds_the_growth_at_nothing),
        cmocka_unit_test(literal_chooses_its_interval),
        cmocka_unit_test(policies_change_with_a_queue),
        cmocka_unit_test(extremes_do_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
