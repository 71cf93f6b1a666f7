/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: offering, holding back, completing; the picture is in the header. */
#include "loadgen/client/flow.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

/* Requests that are due are started in batches, so that replies are read in between. */
#define ARRIVALS_PER_TURN  256
#define EXPIRY_INTERVAL_NS 100000000ULL

/* A closed-loop client between two requests. */
struct flow_thinker {
    struct loop_timer timer;
    struct flow *flow;
    struct flow_thinker *next_free;
};

/* ---------------------------------------------------------------- the backlog */

static void backlog_push(struct flow *flow, uint64_t intended_ns)
{
    if (flow->backlog_count == flow->backlog_capacity) {
        size_t capacity = flow->backlog_capacity ? 2 * flow->backlog_capacity : 1024;
        uint64_t *grown = memory_zeroed(capacity, sizeof(*grown));

        for (size_t i = 0; i < flow->backlog_count; i++)
            grown[i] = flow->backlog[(flow->backlog_first + i) % flow->backlog_capacity];
        free(flow->backlog);
        flow->backlog = grown;
        flow->backlog_first = 0;
        flow->backlog_capacity = capacity;
    }
    flow->backlog[(flow->backlog_first + flow->backlog_count) % flow->backlog_capacity] =
        intended_ns;
    flow->backlog_count++;
}

static void backlog_pop(struct flow *flow)
{
    flow->backlog_first = (flow->backlog_first + 1) % flow->backlog_capacity;
    flow->backlog_count--;
}

/* ---------------------------------------------------------------- sending */

static bool measured(const struct flow *flow, uint64_t intended_ns)
{
    return intended_ns >= flow->window.measure_ns;
}

static bool try_send(struct flow *flow, uint64_t intended_ns)
{
    struct flow_request request = {.intended_ns = intended_ns, .sent_ns = loop_clock_ns()};

    if (flow->in_flight >= flow->spec.concurrency)
        return false;
    flow->in_flight++;
    if (flow->transport->send(flow, &request))
        return true;
    flow->in_flight--;
    return false;
}

static void offer(struct flow *flow, uint64_t intended_ns)
{
    uint64_t now_ns = loop_clock_ns();
    uint64_t late_ns = now_ns > intended_ns ? now_ns - intended_ns : 0;

    if (measured(flow, intended_ns)) {
        flow->offered++;
        flow->late += late_ns > FLOW_LATE_NS;
        if (late_ns > flow->late_max_ns)
            flow->late_max_ns = late_ns;
    }
    if (flow->backlog_count == 0 && !flow->pumping && try_send(flow, intended_ns))
        return;
    flow->delayed += measured(flow, intended_ns);
    backlog_push(flow, intended_ns);
}

void flow_pump(struct flow *flow)
{
    /* A send that fails at once completes its request, which pumps: one level is enough. */
    if (flow->pumping)
        return;
    flow->pumping = true;
    while (flow->backlog_count > 0) {
        uint64_t intended_ns = flow->backlog[flow->backlog_first];

        if (flow->in_flight >= flow->spec.concurrency)
            break;
        backlog_pop(flow);
        if (!try_send(flow, intended_ns)) {
            flow->backlog_first =
                (flow->backlog_first + flow->backlog_capacity - 1) % flow->backlog_capacity;
            flow->backlog[flow->backlog_first] = intended_ns;
            flow->backlog_count++;
            break;
        }
    }
    flow->pumping = false;
}

/* ---------------------------------------------------------------- open and closed loop */

static void arrivals_due(struct loop_timer *timer)
{
    struct flow *flow = (void *)((char *)timer - offsetof(struct flow, arrival_timer));
    uint64_t now_ns = loop_clock_ns();

    for (int i = 0; i < ARRIVALS_PER_TURN && flow->next_arrival_ns <= now_ns; i++) {
        if (flow->next_arrival_ns >= flow->end_ns)
            return;
        offer(flow, flow->next_arrival_ns);
        flow->next_arrival_ns = flow->start_ns + arrival_next_ns(&flow->arrival);
    }
    if (flow->next_arrival_ns < flow->end_ns)
        loop_timer_set(flow->loop, timer,
                       flow->next_arrival_ns > now_ns ? flow->next_arrival_ns : now_ns + 1);
}

static void thought(struct loop_timer *timer)
{
    struct flow_thinker *thinker = (void *)((char *)timer - offsetof(struct flow_thinker, timer));
    struct flow *flow = thinker->flow;
    uint64_t intended_ns = timer->entry.deadline_ns;

    thinker->next_free = flow->thinkers_free;
    flow->thinkers_free = thinker;
    if (intended_ns < flow->end_ns)
        offer(flow, intended_ns);
}

/* A closed-loop client's next request, `pause_ns` from now. */
static void next_of_client(struct flow *flow, uint64_t now_ns, uint64_t pause_ns)
{
    if (now_ns + pause_ns >= flow->end_ns)
        return;
    if (pause_ns == 0) {
        offer(flow, now_ns);
        return;
    }
    struct flow_thinker *thinker = flow->thinkers_free;

    flow->thinkers_free = thinker->next_free;
    loop_timer_set(flow->loop, &thinker->timer, now_ns + pause_ns);
}

void flow_completed(struct flow *flow, const struct flow_request *request, enum outcome outcome,
                    uint64_t bytes_in, uint64_t bytes_out)
{
    uint64_t now_ns = loop_clock_ns();
    uint64_t latency_ns = now_ns - request->intended_ns;

    flow->in_flight--;
    meter_add(&flow->second, outcome, latency_ns);
    flow->second.bytes_in += bytes_in;
    flow->second.bytes_out += bytes_out;
    if (outcome == OUTCOME_OK && now_ns >= flow->window.measure_ns && now_ns < flow->window.end_ns)
        flow->completed++;
    if (measured(flow, request->intended_ns)) {
        meter_add(&flow->total, outcome, latency_ns);
        flow->total.bytes_in += bytes_in;
        flow->total.bytes_out += bytes_out;
    }
    if (!flow->spec.open_loop)
        next_of_client(flow, now_ns,
                       outcome == OUTCOME_OK ? distribution_draw(&flow->spec.think, &flow->rng)
                                             : flow->spec.pause_ns);
    flow_pump(flow);
}

static void expire(struct loop_timer *timer)
{
    struct flow *flow = (void *)((char *)timer - offsetof(struct flow, expiry_timer));
    uint64_t now_ns = flow->loop->now_ns;

    if (now_ns > flow->spec.timeout_ns)
        flow->transport->expire(flow, now_ns - flow->spec.timeout_ns);
    loop_timer_set(flow->loop, timer, now_ns + EXPIRY_INTERVAL_NS);
}

/* ---------------------------------------------------------------- life */

int flow_open(struct flow *flow, struct loop *loop, const struct flow_spec *spec, uint64_t seed,
              uint64_t number)
{
    memset(flow, 0, sizeof(*flow));
    flow->spec = *spec;
    flow->loop = loop;
    flow->transport = spec->protocol == FLOW_NFS ? &client_nfs_transport : &client_http_transport;
    flow->arrival_timer.fire = arrivals_due;
    flow->expiry_timer.fire = expire;
    meter_reset(&flow->total);
    meter_reset(&flow->second);
    rng_init(&flow->rng, seed, 2 * number);
    if (spec->open_loop) {
        arrival_init(&flow->arrival, &spec->arrival, seed, 2 * number + 1);
    } else {
        flow->thinkers = memory_zeroed(spec->concurrency, sizeof(*flow->thinkers));
        for (uint32_t i = 0; i < spec->concurrency; i++) {
            flow->thinkers[i].flow = flow;
            flow->thinkers[i].timer.fire = thought;
        }
    }
    return flow->transport->open(flow);
}

bool flow_ready(const struct flow *flow)
{
    return flow->transport->ready(flow);
}

void flow_begin(struct flow *flow, const struct flow_window *window)
{
    flow->window = *window;
    flow->start_ns = window->start_ns + flow->spec.start_ns;
    flow->end_ns = window->end_ns;
    if (flow->spec.stop_ns && window->start_ns + flow->spec.stop_ns < flow->end_ns)
        flow->end_ns = window->start_ns + flow->spec.stop_ns;
    loop_timer_set(flow->loop, &flow->expiry_timer, window->start_ns + EXPIRY_INTERVAL_NS);
    if (flow->spec.open_loop) {
        flow->next_arrival_ns = flow->start_ns + arrival_next_ns(&flow->arrival);
        loop_timer_set(flow->loop, &flow->arrival_timer, flow->next_arrival_ns);
        return;
    }
    for (uint32_t i = 0; i < flow->spec.concurrency; i++)
        loop_timer_set(flow->loop, &flow->thinkers[i].timer, flow->start_ns);
}

void flow_fini(struct flow *flow)
{
    if (flow->wire)
        flow->transport->close(flow);
    free(flow->thinkers);
    free(flow->backlog);
    flow->thinkers = NULL;
    flow->backlog = NULL;
}

uint64_t flow_outstanding(const struct flow *flow)
{
    return flow->in_flight + flow->backlog_count;
}
