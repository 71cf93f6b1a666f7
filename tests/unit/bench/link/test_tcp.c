/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP sender over a wire made by hand: what is lost and what is marked is written down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bench/sim/link/tcp.h"

#define RTT_NS   50000000ULL
#define SENT_MAX 4096

/* Every transmission in order; those that are to be lost have their bit set in `lost`. */
struct wire {
    struct tcp tcp;
    uint64_t now_ns;
    struct tcp_sent sent[SENT_MAX];
    uint32_t count;
    uint32_t answered; /* the next whose fate is due */
    const uint32_t *lost;
    const uint32_t *marked; /* numbers of transmissions, ended by UINT32_MAX */
};

static const uint32_t none[] = {UINT32_MAX};

static void check(const struct tcp *tcp)
{
    uint32_t in_flight = 0;
    uint32_t lost = 0;

    for (uint32_t i = 0; i < tcp->count; i++) {
        in_flight += tcp->segments[i].state == TCP_IN_FLIGHT;
        lost += tcp->segments[i].state == TCP_LOST;
        assert_true(i >= tcp->acked_to || tcp->segments[i].state == TCP_ACKED);
        assert_true((i >= tcp->next) == (tcp->segments[i].state == TCP_NEW));
    }
    assert_int_equal(in_flight, tcp->in_flight);
    assert_int_equal(lost, tcp->lost);
}

static void send_all(struct wire *wire)
{
    while (wire->count < SENT_MAX && tcp_send(&wire->tcp, wire->now_ns, &wire->sent[wire->count]))
        wire->count++;
    check(&wire->tcp);
}

static bool listed(const uint32_t *list, uint32_t number)
{
    for (; *list != UINT32_MAX; list++) {
        if (*list == number)
            return true;
    }
    return false;
}

static void begin(struct wire *wire, uint32_t segments, double window, const uint32_t *lost,
                  const uint32_t *marked)
{
    *wire = (struct wire){.lost = lost, .marked = marked};
    tcp_init(&wire->tcp, segments, window);
    tcp_begin(&wire->tcp, RTT_NS, 0);
    send_all(wire);
}

/* One transmission's answer, or the timeout if that is first. */
static void step(struct wire *wire)
{
    struct tcp *tcp = &wire->tcp;

    while (wire->answered < wire->count && listed(wire->lost, wire->answered))
        wire->answered++;
    uint64_t answer_ns =
        wire->answered < wire->count ? wire->sent[wire->answered].time_ns + RTT_NS : TCP_NEVER;

    if (tcp->deadline_ns < answer_ns) {
        wire->now_ns = tcp->deadline_ns;
        tcp_timeout(tcp, wire->now_ns);
    } else {
        uint32_t number = wire->answered++;

        assert_true(answer_ns != TCP_NEVER);
        wire->now_ns = answer_ns;
        tcp_acked(tcp, &wire->sent[number], listed(wire->marked, number), wire->now_ns);
    }
    send_all(wire);
}

static void to_the_end(struct wire *wire)
{
    while (!tcp_done(&wire->tcp))
        step(wire);
    assert_true(wire->tcp.deadline_ns == TCP_NEVER);
}

static void without_loss_it_doubles(void **state)
{
    struct wire wire;

    (void)state;
    begin(&wire, 150, 10, none, none);
    assert_int_equal(wire.count, 10);
    to_the_end(&wire);
    /* 10 + 20 + 40 + 80: four round trips. */
    assert_int_equal(wire.now_ns, 4 * RTT_NS);
    assert_int_equal(wire.count, 150);
    assert_int_equal(wire.tcp.reductions, 0);
    tcp_fini(&wire.tcp);
}

/*
 * Ten in flight, the third is lost. Acknowledgements of 0, 1, 3, 4 let 8 more go; that of 5 is the
 * third from beyond it: the window is 0.7 of 14, and what is in flight has to fall under it first.
 */
static void a_lost_segment_is_sent_again(void **state)
{
    static const uint32_t lost[] = {2, UINT32_MAX};
    struct wire wire;

    (void)state;
    begin(&wire, 100, 10, lost, none);
    for (int i = 0; i < 4; i++)
        step(&wire);
    assert_int_equal(wire.count, 18);
    assert_int_equal(wire.tcp.lost, 0);
    step(&wire);
    assert_int_equal(wire.tcp.lost, 1);
    assert_int_equal(wire.tcp.reductions, 1);
    assert_true(wire.tcp.cubic.window > 9.79 && wire.tcp.cubic.window < 9.81);
    assert_int_equal(wire.tcp.in_flight, 12);
    for (int i = 0; i < 4; i++)
        step(&wire);
    /* 8 in flight and room for 9: segment 2 goes before anything new. */
    assert_int_equal(wire.sent[wire.count - 1].segment, 2);
    assert_int_equal(wire.tcp.retransmitted, 1);
    to_the_end(&wire);
    assert_int_equal(wire.count, 101);
    assert_int_equal(wire.tcp.timeouts, 0);
    assert_int_equal(wire.tcp.reductions, 1);
    tcp_fini(&wire.tcp);
}

static void many_losses_of_one_window_reduce_it_once(void **state)
{
    static const uint32_t lost[] = {1, 3, 5, 6, UINT32_MAX};
    struct wire wire;

    (void)state;
    begin(&wire, 200, 16, lost, none);
    to_the_end(&wire);
    assert_int_equal(wire.tcp.reductions, 1);
    assert_int_equal(wire.tcp.retransmitted, 4);
    assert_int_equal(wire.tcp.timeouts, 0);
    assert_int_equal(wire.count, 204);
    tcp_fini(&wire.tcp);
}

/* The last of all: nothing sent later tells of it. Set up and one answer: 50 ms, so 200 ms. */
static void a_lost_tail_needs_the_timeout(void **state)
{
    static const uint32_t lost[] = {9, 10, UINT32_MAX};
    struct wire wire;

    (void)state;
    begin(&wire, 10, 10, lost, none);
    to_the_end(&wire);
    assert_int_equal(wire.tcp.timeouts, 2);
    assert_int_equal(wire.tcp.retransmitted, 2);
    /* 50 ms, then 200 ms from there, lost again, then 400 ms, then one round trip. */
    assert_int_equal(wire.now_ns, RTT_NS + 200000000 + 400000000 + RTT_NS);
    assert_int_equal(wire.count, 12);
    tcp_fini(&wire.tcp);
}

static void a_lost_retransmission_is_noticed(void **state)
{
    static const uint32_t lost[] = {2, 18, 19, 20, UINT32_MAX};
    struct wire wire;

    (void)state;
    begin(&wire, 100, 10, lost, none);
    to_the_end(&wire);
    assert_int_equal(wire.tcp.timeouts, 0);
    assert_int_equal(wire.tcp.retransmitted, 4);
    assert_int_equal(wire.tcp.reductions, 2);
    assert_int_equal(wire.count, 104);
    tcp_fini(&wire.tcp);
}

/* All ten of the first flight are marked: one reduction. Those sent after it: one more. */
static void marks_reduce_once_per_round_trip(void **state)
{
    static const uint32_t first[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, UINT32_MAX};
    struct wire wire;

    (void)state;
    begin(&wire, 60, 10, none, first);
    for (int i = 0; i < 10; i++)
        step(&wire);
    assert_int_equal(wire.tcp.reductions, 1);
    assert_true(wire.tcp.cubic.window == 7);
    assert_int_equal(wire.tcp.in_flight, 7);
    to_the_end(&wire);
    assert_int_equal(wire.tcp.reductions, 1);
    assert_int_equal(wire.count, 60);
    tcp_fini(&wire.tcp);
}

static void marks_of_every_round_end_at_one_segment(void **state)
{
    uint32_t all[200];
    struct wire wire;

    (void)state;
    for (uint32_t i = 0; i < 199; i++)
        all[i] = i;
    all[199] = UINT32_MAX;
    begin(&wire, 60, 10, none, all);
    to_the_end(&wire);
    assert_true(wire.tcp.cubic.window == 1);
    assert_int_equal(wire.count, 60);
    assert_int_equal(wire.tcp.timeouts, 0);
    tcp_fini(&wire.tcp);
}

/* An answer that was slower than the timeout is an answer all the same. */
static void a_late_answer_counts(void **state)
{
    struct wire wire;

    (void)state;
    begin(&wire, 3, 3, none, none);
    tcp_timeout(&wire.tcp, 200000000);
    assert_int_equal(wire.tcp.lost, 3);
    tcp_acked(&wire.tcp, &wire.sent[0], false, 210000000);
    check(&wire.tcp);
    wire.now_ns = 210000000;
    send_all(&wire);
    tcp_acked(&wire.tcp, &wire.sent[1], false, 211000000);
    tcp_acked(&wire.tcp, &wire.sent[2], false, 212000000);
    check(&wire.tcp);
    assert_true(tcp_done(&wire.tcp));
    tcp_acked(&wire.tcp, &wire.sent[wire.count - 1], false, 260000000);
    check(&wire.tcp);
    assert_true(tcp_done(&wire.tcp));
    tcp_fini(&wire.tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_loss_it_doubles),
        cmocka_unit_test(a_lost_segment_is_sent_again),
        cmocka_unit_test(many_losses_of_one_window_reduce_it_once),
        cmocka_unit_test(a_lost_tail_needs_the_timeout),
        cmocka_unit_test(a_lost_retransmission_is_noticed),
        cmocka_unit_test(marks_reduce_once_per_round_trip),
        cmocka_unit_test(marks_of_every_round_end_at_one_segment),
        cmocka_unit_test(a_late_answer_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
