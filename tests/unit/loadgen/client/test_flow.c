/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows on a virtual clock over a wire that answers as a script says: when requests are sent, what
 * latency they are given, and what is counted, by hand-made cases to the nanosecond.
 *
 * The scripts of a case are at its top: the service time, and the outcome of each request or try.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/client/flow.h"
#include "tests/unit/loadgen/client/virtual_clock.h"

#define MS       1000000ULL
#define NS_PER_S 1000000000ULL
#define MOST     2048

/* One try in the wire's hands. */
struct wire_try {
    struct loop_timer timer;
    struct flow *flow;
    struct flow_request request;
    uint64_t done_ns;
    bool busy;
};

static struct {
    uint64_t service_ns;
    uint64_t send_ns; /* of work per send */
    uint32_t kinds;   /* names that kind_name() has */
    bool at_once;     /* the request ends before send() returns */
    bool closed;      /* send() says false */
    uint32_t room;    /* tries at once; 0: any number */
    uint32_t in_flight;
    struct flow_result (*answer)(const struct flow_request *request);
    struct wire_try tries[MOST];
    size_t sent;
    uint64_t expired_before_ns;
} wire;

static struct loop loop;
static struct flow flow;
static struct flow_spec spec;
static struct loop_timer stop_timer;

static struct flow_result ok(const struct flow_request *request)
{
    (void)request;
    return (struct flow_result){.outcome = OUTCOME_OK, .bytes_in = 10, .bytes_out = 3};
}

static struct flow_result refused(const struct flow_request *request)
{
    (void)request;
    return (struct flow_result){.outcome = OUTCOME_REFUSED};
}

/* ---------------------------------------------------------------- the wire */

static int wire_open(struct flow *opened)
{
    opened->wire = &wire;
    return 0;
}

static bool wire_ready(const struct flow *asked)
{
    (void)asked;
    return true;
}

static void answered(struct loop_timer *timer)
{
    struct wire_try *try = (void *)timer;
    struct flow_result result = wire.answer(&try->request);

    wire.in_flight--;
    try->busy = false;
    try->done_ns = virtual_now_ns;
    flow_completed(try->flow, &try->request, &result);
}

static bool wire_send(struct flow *sender, const struct flow_request *request)
{
    struct wire_try *try = &wire.tries[wire.sent];

    if (wire.closed || (wire.room && wire.in_flight == wire.room))
        return false;
    assert_true(wire.sent < MOST);
    *try = (struct wire_try){
        .timer.fire = answered, .flow = sender, .request = *request, .busy = true};
    wire.sent++;
    wire.in_flight++;
    virtual_now_ns += wire.send_ns;
    if (wire.at_once)
        answered(&try->timer);
    else
        loop_timer_set(&loop, &try->timer, virtual_now_ns + wire.service_ns);
    return true;
}

static void wire_expire(struct flow *expired, uint64_t sent_before_ns)
{
    wire.expired_before_ns = sent_before_ns;
    for (size_t i = 0; i < wire.sent; i++) {
        struct wire_try *try = &wire.tries[i];

        if (!try->busy || try->request.sent_ns >= sent_before_ns)
            continue;
        loop_timer_cancel(&loop, &try->timer);
        wire.in_flight--;
        try->busy = false;
        try->done_ns = virtual_now_ns;
        flow_completed(expired, &try->request, &(struct flow_result){.outcome = OUTCOME_TIMEOUT});
    }
}

static const char *wire_kind_name(const struct flow *asked, uint32_t kind)
{
    (void)asked;
    return kind < wire.kinds ? "kind" : NULL;
}

static void wire_close(struct flow *closed)
{
    closed->wire = NULL;
}

static const struct flow_transport wire_transport = {
    .open = wire_open,
    .ready = wire_ready,
    .send = wire_send,
    .expire = wire_expire,
    .kind_name = wire_kind_name,
    .close = wire_close,
};

/* ---------------------------------------------------------------- cases */

static void stop(struct loop_timer *timer)
{
    (void)timer;
    loop_stop(&loop);
}

static int begin(void **state)
{
    (void)state;
    memset(&wire, 0, sizeof(wire));
    memset(&stop_timer, 0, sizeof(stop_timer));
    wire.service_ns = 10 * MS;
    wire.kinds = 1;
    wire.answer = ok;
    stop_timer.fire = stop;
    virtual_now_ns = CLOCK_START_NS;
    assert_int_equal(loop_init(&loop), 0);
    flow_spec_init(&spec);
    spec.concurrency = 1024;
    return 0;
}

static int end(void **state)
{
    (void)state;
    flow_fini(&flow);
    loop_fini(&loop);
    return 0;
}

static void constant_rate(double per_s)
{
    spec.open_loop = true;
    spec.arrival.gaps = ARRIVAL_CONSTANT;
    spec.arrival.rate_per_s = per_s;
}

/* A run of `warmup` and `measured`, then of the drain; the clock's start is that of the load. */
static void run(uint64_t warmup_ns, uint64_t measured_ns, uint64_t drain_ns)
{
    struct flow_window window = {.start_ns = virtual_now_ns,
                                 .measure_ns = virtual_now_ns + warmup_ns,
                                 .end_ns = virtual_now_ns + warmup_ns + measured_ns,
                                 .drained_ns = virtual_now_ns + warmup_ns + measured_ns + drain_ns};

    assert_int_equal(flow_open_over(&flow, &loop, &spec, &wire_transport, 1, 0), 0);
    flow_begin(&flow, &window);
    loop_timer_set(&loop, &stop_timer, window.drained_ns);
    assert_int_equal(loop_run(&loop), 0);
    assert_true(flow.in_flight == wire.in_flight);
}

static uint64_t sent_at(size_t try)
{
    assert_true(try < wire.sent);
    return wire.tries[try].request.sent_ns - CLOCK_START_NS;
}

static uint64_t finished(void)
{
    uint64_t count = 0;

    for (int i = 0; i < OUTCOME_COUNT; i++)
        count += flow.total.outcomes[i];
    return count;
}

static void an_open_loop_counts_from_the_intended_time(void **state)
{
    (void)state;
    constant_rate(10);
    spec.concurrency = 1;
    wire.service_ns = 250 * MS;
    run(0, NS_PER_S, 60 * NS_PER_S);
    /* Meant for 100, 200 .. 900 ms; sent one after the other from 100 ms on, 250 ms each. */
    assert_int_equal(wire.sent, 9);
    for (size_t i = 0; i < wire.sent; i++) {
        assert_int_equal(sent_at(i), (100 + 250 * i) * MS);
        assert_int_equal(wire.tries[i].request.intended_ns - CLOCK_START_NS, 100 * (i + 1) * MS);
        assert_int_equal(wire.tries[i].request.number, i);
    }
    assert_int_equal(flow.offered, 9);
    assert_int_equal(flow.delayed, 8);
    assert_int_equal(flow.late, 0);
    assert_int_equal(flow.completed, 3); /* at 350, 600 and 850 ms */
    assert_int_equal(flow.total.outcomes[OUTCOME_OK], 9);
    assert_int_equal(flow.total.latency.min, 250 * MS);
    assert_int_equal(flow.total.latency.max, (250 + 8 * 150) * MS);
    assert_true(histogram_mean(&flow.total.latency) == (250 + 4 * 150) * 1e6);
    assert_int_equal(flow.total.bytes_in, 90);
    assert_int_equal(flow.total.bytes_out, 27);
    assert_int_equal(flow_outstanding(&flow), 0);
}

static void warm_up_is_sent_but_not_counted(void **state)
{
    (void)state;
    constant_rate(10);
    wire.service_ns = 250 * MS;
    run(450 * MS, 500 * MS, NS_PER_S);
    /* Meant for 100 .. 900 ms; from 500 on they count. Replies from 450 up to 950 ms: of 200 ..
     * 600. */
    assert_int_equal(wire.sent, 9);
    assert_int_equal(flow.offered, 5);
    assert_int_equal(flow.total.outcomes[OUTCOME_OK], 5);
    assert_int_equal(flow.completed, 5);
    assert_int_equal(flow.second.outcomes[OUTCOME_OK], 9);
    assert_int_equal(flow.delayed, 0);
}

static void a_flow_starts_and_stops_within_the_run(void **state)
{
    (void)state;
    constant_rate(10);
    spec.start_ns = 200 * MS;
    spec.stop_ns = 550 * MS;
    run(0, NS_PER_S, NS_PER_S);
    assert_int_equal(wire.sent, 3); /* 300, 400, 500 ms */
    assert_int_equal(sent_at(0), 300 * MS);
    assert_int_equal(flow.offered, 3);
}

static void a_trace_that_ends_ends_the_flow(void **state)
{
    static uint64_t times_ns[] = {0, 5 * MS, 5 * MS, 70 * MS};
    static const struct trace trace = {
        .times = true, .count = 4, .times_ns = times_ns, .total = 4, .length_ns = 100 * MS};

    (void)state;
    spec.open_loop = true;
    spec.arrival.shape = ARRIVAL_TRACE;
    spec.arrival.trace = &trace;
    run(0, NS_PER_S, 0);
    assert_int_equal(wire.sent, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(sent_at(i), times_ns[i]);
    assert_int_equal(flow_outstanding(&flow), 0);
}

static void closed_loop_clients_think_between_requests(void **state)
{
    (void)state;
    spec.concurrency = 2;
    spec.think.mean = 90 * MS;
    run(0, NS_PER_S, NS_PER_S);
    /* Each sends at 0, 100 .. 900 ms. */
    assert_int_equal(wire.sent, 20);
    assert_int_equal(sent_at(19), 900 * MS);
    assert_int_equal(flow.offered, 20);
    assert_int_equal(flow.completed, 20);
    assert_int_equal(flow.late + flow.delayed, 0);
    assert_int_equal(flow.total.latency.min, 10 * MS);
    assert_int_equal(flow.total.latency.max, 10 * MS);
}

static void closed_loop_clients_pause_after_errors(void **state)
{
    (void)state;
    spec.concurrency = 1;
    spec.pause_ns = 40 * MS;
    wire.answer = refused;
    run(0, 200 * MS, NS_PER_S);
    assert_int_equal(wire.sent, 4); /* 0, 50, 100, 150 ms */
    assert_int_equal(flow.total.outcomes[OUTCOME_REFUSED], 4);
    assert_int_equal(flow.total.refusal.min, 10 * MS);
    assert_int_equal(flow.total.refusal.max, 10 * MS);
    assert_int_equal(flow.total.latency.total, 0);
    assert_int_equal(flow.completed, 0);
}

/* ---------------------------------------------------------------- late requests, a busy loop */

static void what_the_generator_does_late_is_told(void **state)
{
    (void)state;
    constant_rate(1000);
    wire.send_ns = 3 * MS;
    run(0, 10500000, NS_PER_S);
    /* Meant for 1, 2 .. 10 ms; each send takes 3 ms of the generator, so they go at 1, 4 .. 28. */
    assert_int_equal(wire.sent, 10);
    assert_int_equal(sent_at(9), 28 * MS);
    assert_int_equal(flow.late, 9); /* by 2, 4 .. 18 ms */
    assert_int_equal(flow.late_max_ns, 18 * MS);
    assert_int_equal(flow.delayed, 0);
    assert_int_equal(flow.total.latency.max, (18 + 3 + 10) * MS);
    assert_int_equal(loop_busy_ns(&loop), 10 * 3 * MS);
}

/* ---------------------------------------------------------------- retries */

static struct flow_result third_time_lucky(const struct flow_request *request)
{
    return request->tries < 2 ? refused(request) : ok(request);
}

static void a_retry_is_the_same_request_and_its_latency_the_whole(void **state)
{
    struct rng first;
    struct rng again;

    (void)state;
    spec.concurrency = 1;
    spec.think.mean = 50 * MS;
    spec.retries = 5;
    spec.retry_ns = 30 * MS;
    wire.answer = third_time_lucky;
    run(0, 300 * MS, NS_PER_S);
    /* Tries at 0, 40, 80 ms, the reply at 90; the client thinks and is back at 140 and 280. */
    assert_int_equal(wire.sent, 9);
    for (size_t i = 0; i < wire.sent; i++) {
        assert_int_equal(sent_at(i), (i / 3 * 140 + i % 3 * 40) * MS);
        assert_int_equal(wire.tries[i].request.number, i / 3);
        assert_int_equal(wire.tries[i].request.tries, i % 3);
        assert_int_equal(wire.tries[i].request.intended_ns - CLOCK_START_NS, i / 3 * 140 * MS);
    }
    flow_request_rng(&flow, &wire.tries[3].request, &first);
    flow_request_rng(&flow, &wire.tries[5].request, &again);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_int_equal(flow.offered, 3);
    assert_int_equal(flow.retried, 6);
    assert_int_equal(flow.total.outcomes[OUTCOME_OK], 3);
    assert_int_equal(flow.total.outcomes[OUTCOME_REFUSED], 0);
    assert_int_equal(flow.total.latency.min, 90 * MS);
    assert_int_equal(flow.total.latency.max, 90 * MS);
}

static void when_no_try_is_left_the_refusal_is_final(void **state)
{
    (void)state;
    spec.concurrency = 1;
    spec.pause_ns = 100 * MS;
    spec.retries = 2;
    spec.retry_ns = 30 * MS;
    wire.answer = refused;
    run(0, 200 * MS, NS_PER_S);
    /* Tries at 0, 40, 80, refused for good at 90; from 190 on once more, into the drain. */
    assert_int_equal(wire.sent, 6);
    assert_int_equal(sent_at(3), 190 * MS);
    assert_int_equal(flow.offered, 2);
    assert_int_equal(flow.retried, 4);
    assert_int_equal(flow.total.outcomes[OUTCOME_REFUSED], 2);
    assert_int_equal(flow.total.refusal.min, 90 * MS);
    assert_int_equal(finished(), 2);
}

static struct flow_result come_back_in_a_while(const struct flow_request *request)
{
    return (struct flow_result){.outcome = request->tries ? OUTCOME_OK : OUTCOME_REFUSED,
                                .retry_after_ns = 400 * MS};
}

static void the_server_says_when_to_come_back(void **state)
{
    (void)state;
    constant_rate(10);
    spec.retries = 1;
    spec.retry_ns = 30 * MS;
    spec.retry_after = true;
    wire.answer = come_back_in_a_while;
    run(0, 250 * MS, NS_PER_S);
    assert_int_equal(wire.sent, 4); /* at 100 and 200, then 410 ms later */
    assert_int_equal(sent_at(2), 510 * MS);
    assert_int_equal(sent_at(3), 610 * MS);
    assert_int_equal(flow.total.latency.max, 420 * MS);
    assert_int_equal(flow.completed, 0);
}

static void no_try_is_made_past_the_drain(void **state)
{
    (void)state;
    constant_rate(10);
    spec.retries = UINT32_MAX;
    spec.retry_ns = 90 * MS;
    wire.answer = refused;
    run(0, 150 * MS, 155 * MS);
    /* One request, at 100 ms; tries at 200 and 300 too. The fourth would come at 400. */
    assert_int_equal(wire.sent, 3);
    assert_int_equal(flow.total.outcomes[OUTCOME_REFUSED], 0);
    assert_int_equal(flow_outstanding(&flow), 1); /* the third has no reply before 305 */
    end(NULL);
    begin(NULL);
    constant_rate(10);
    spec.retries = UINT32_MAX;
    spec.retry_ns = 90 * MS;
    wire.answer = refused;
    run(0, 150 * MS, 165 * MS);
    assert_int_equal(wire.sent, 3);
    assert_int_equal(flow.total.outcomes[OUTCOME_REFUSED], 1);
    assert_int_equal(flow.total.refusal.max, 210 * MS);
    assert_int_equal(flow.retried, 2);
    assert_int_equal(flow_outstanding(&flow), 0);
}

static struct flow_result first_try_refused(const struct flow_request *request)
{
    return request->number == 0 && request->tries == 0 ? refused(request) : ok(request);
}

static void a_retry_goes_before_what_is_held_back(void **state)
{
    static const uint64_t numbers[] = {0, 1, 0, 2, 3};

    (void)state;
    constant_rate(100);
    spec.concurrency = 1;
    spec.retries = 1;
    spec.retry_ns = 20 * MS;
    wire.service_ns = 50 * MS;
    wire.answer = first_try_refused;
    run(0, 45 * MS, NS_PER_S);
    /* 0 goes at 10 ms and comes back at 60; 1 goes; 0 is due again at 80 and waits for 1's end. */
    assert_int_equal(wire.sent, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(wire.tries[i].request.number, numbers[i]);
    assert_int_equal(sent_at(2), 110 * MS);
    assert_int_equal(flow.offered, 4);
    assert_int_equal(flow.delayed, 3); /* a retry that waits is not told again */
    assert_int_equal(flow.total.outcomes[OUTCOME_OK], 4);
}

/* ---------------------------------------------------------------- wires with moods */

static void what_a_wire_does_not_take_waits(void **state)
{
    (void)state;
    constant_rate(100);
    wire.room = 2;
    wire.service_ns = 50 * MS;
    run(0, 55 * MS, NS_PER_S);
    /* Meant for 10 .. 50 ms; two go, the third and fourth when those are done, the fifth then. */
    assert_int_equal(wire.sent, 5);
    assert_int_equal(sent_at(1), 20 * MS);
    assert_int_equal(sent_at(2), 60 * MS);
    assert_int_equal(sent_at(3), 70 * MS);
    assert_int_equal(sent_at(4), 110 * MS);
    assert_int_equal(flow.delayed, 3);
}

static void what_is_never_sent_is_outstanding(void **state)
{
    (void)state;
    constant_rate(100);
    wire.closed = true;
    run(0, 55 * MS, 10 * MS);
    assert_int_equal(flow.offered, 5);
    assert_int_equal(flow.delayed, 5);
    assert_int_equal(flow_outstanding(&flow), 5);
    assert_int_equal(finished(), 0);
    wire.closed = false;
    flow_pump(&flow);
    assert_int_equal(flow.in_flight, 5);
    assert_int_equal(flow.backlog_count, 0);
}

static struct flow_result no_connection(const struct flow_request *request)
{
    (void)request;
    return (struct flow_result){.outcome = OUTCOME_CONNECT};
}

static void sends_that_fail_at_once_do_not_pile_up(void **state)
{
    (void)state;
    spec.concurrency = 3;
    spec.pause_ns = 0;
    wire.at_once = true;
    wire.send_ns = 1000;
    wire.answer = no_connection;
    run(0, MS, 0);
    /* Three clients a turn, a microsecond each; the last turn's three were due before the end. */
    assert_int_equal(wire.sent, 1002);
    assert_int_equal(flow.total.outcomes[OUTCOME_CONNECT], 1002);
    assert_int_equal(flow.delayed, 0);
    assert_int_equal(flow_outstanding(&flow), 0);
}

static void requests_without_an_answer_time_out(void **state)
{
    (void)state;
    constant_rate(10);
    spec.timeout_ns = 80 * MS;
    wire.service_ns = 3600 * NS_PER_S;
    run(0, 250 * MS, NS_PER_S);
    assert_int_equal(wire.sent, 2);
    assert_int_equal(flow.total.outcomes[OUTCOME_TIMEOUT], 2);
    assert_int_equal(flow_outstanding(&flow), 0);
    /* Looked for every 10 ms, an eighth of the timeout: sent at 100, found at 190. */
    assert_int_equal(wire.tries[0].done_ns - CLOCK_START_NS, 190 * MS);
}

/* ---------------------------------------------------------------- kinds and seeds */

static struct flow_result kind_by_number(const struct flow_request *request)
{
    static const uint32_t kinds[] = {0, 2, 2, FLOW_KINDS};

    return (struct flow_result){.outcome = request->number == 2 ? OUTCOME_HTTP_4XX : OUTCOME_OK,
                                .kind = kinds[request->number % 4]};
}

static void kinds_are_metered_apart(void **state)
{
    (void)state;
    constant_rate(100);
    wire.kinds = 3;
    wire.answer = kind_by_number;
    run(0, 45 * MS, NS_PER_S);
    assert_int_equal(flow.total.outcomes[OUTCOME_OK], 3);
    assert_int_equal(flow.kinds[0]->outcomes[OUTCOME_OK], 1);
    assert_null(flow.kinds[1]);
    assert_int_equal(flow.kinds[2]->outcomes[OUTCOME_OK], 1);
    assert_int_equal(flow.kinds[2]->outcomes[OUTCOME_HTTP_4XX], 1);
    assert_int_equal(flow.kinds[2]->latency.total, 1);
}

static void one_kind_is_the_total(void **state)
{
    (void)state;
    constant_rate(100);
    run(0, 45 * MS, NS_PER_S);
    assert_ptr_equal(flow.kinds[0], &flow.total);
    assert_null(flow.kinds[1]);
    assert_int_equal(flow.total.outcomes[OUTCOME_OK], 4);
}

static uint64_t draw_of(uint64_t seed, uint64_t number, uint64_t request_number)
{
    struct flow_request request = {.number = request_number};
    struct rng rng;

    assert_int_equal(flow_open_over(&flow, &loop, &spec, &wire_transport, seed, number), 0);
    flow_request_rng(&flow, &request, &rng);
    flow_fini(&flow);
    return rng_next(&rng);
}

static void requests_follow_from_seed_and_numbers(void **state)
{
    (void)state;
    assert_true(draw_of(1, 0, 7) == draw_of(1, 0, 7));
    assert_true(draw_of(1, 0, 7) != draw_of(1, 0, 8));
    assert_true(draw_of(1, 0, 7) != draw_of(1, 1, 7));
    assert_true(draw_of(1, 0, 7) != draw_of(2, 0, 7));
    /* A flow with a seed of its own sends the same whatever place and run it is in. */
    spec.has_seed = true;
    spec.seed = 5;
    assert_true(draw_of(1, 0, 7) == draw_of(2, 3, 7));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_open_loop_counts_from_the_intended_time),
        CASE(warm_up_is_sent_but_not_counted),
        CASE(a_flow_starts_and_stops_within_the_run),
        CASE(a_trace_that_ends_ends_the_flow),
        CASE(closed_loop_clients_think_between_requests),
        CASE(closed_loop_clients_pause_after_errors),
        CASE(what_the_generator_does_late_is_told),
        CASE(a_retry_is_the_same_request_and_its_latency_the_whole),
        CASE(when_no_try_is_left_the_refusal_is_final),
        CASE(the_server_says_when_to_come_back),
        CASE(no_try_is_made_past_the_drain),
        CASE(a_retry_goes_before_what_is_held_back),
        CASE(what_a_wire_does_not_take_waits),
        CASE(what_is_never_sent_is_outstanding),
        CASE(sends_that_fail_at_once_do_not_pile_up),
        CASE(requests_without_an_answer_time_out),
        CASE(kinds_are_metered_apart),
        CASE(one_kind_is_the_total),
        CASE(requests_follow_from_seed_and_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
