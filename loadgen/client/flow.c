/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: offering, holding back, completing; the picture is in the header. */
#include "loadgen/client/flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

/* Requests that are due are started in batches, so that replies are read in between. */
#define ARRIVALS_PER_TURN 256
/* Between looks for requests that took too long: an eighth of the timeout within these bounds. */
#define EXPIRY_LEAST_NS 1000000ULL
#define EXPIRY_MOST_NS  100000000ULL

/* A closed-loop client between two requests, or a refused request before its next try. */
struct flow_thinker {
    struct loop_timer timer;
    struct flow *flow;
    struct flow_thinker *next_free;
    struct flow_thinker *next_made;
    bool again;
    struct flow_request request; /* again: what is sent again */
};

/* Of the backlog. */
struct flow_waiting {
    uint64_t intended_ns;
    uint64_t number;
    uint32_t tries;
};

/* ---------------------------------------------------------------- the backlog
 * A ring whose capacity is a power of two; places are counted from its first entry, wrapping. */

static struct flow_waiting *backlog_at(struct flow *flow, size_t place)
{
    return &flow->backlog[(flow->backlog_first + place) & (flow->backlog_capacity - 1)];
}

static void backlog_room(struct flow *flow)
{
    if (flow->backlog_count < flow->backlog_capacity)
        return;
    size_t capacity = flow->backlog_capacity ? 2 * flow->backlog_capacity : 1024;
    struct flow_waiting *grown = memory_zeroed(capacity, sizeof(*grown));

    for (size_t i = 0; i < flow->backlog_count; i++)
        grown[i] = *backlog_at(flow, i);
    free(flow->backlog);
    flow->backlog = grown;
    flow->backlog_first = 0;
    flow->backlog_capacity = capacity;
}

static void backlog_push(struct flow *flow, const struct flow_waiting *waiting)
{
    backlog_room(flow);
    flow->backlog_count++;
    *backlog_at(flow, flow->backlog_count - 1) = *waiting;
}

static void backlog_push_front(struct flow *flow, const struct flow_waiting *waiting)
{
    backlog_room(flow);
    flow->backlog_first--;
    flow->backlog_count++;
    *backlog_at(flow, 0) = *waiting;
}

static struct flow_waiting backlog_pop(struct flow *flow)
{
    struct flow_waiting first = *backlog_at(flow, 0);

    flow->backlog_first++;
    flow->backlog_count--;
    return first;
}

/* ---------------------------------------------------------------- sending */

static bool measured(const struct flow *flow, uint64_t intended_ns)
{
    return intended_ns >= flow->window.measure_ns;
}

static bool try_send(struct flow *flow, const struct flow_waiting *waiting, uint64_t now_ns)
{
    struct flow_request request = {.intended_ns = waiting->intended_ns,
                                   .sent_ns = now_ns,
                                   .number = waiting->number,
                                   .tries = waiting->tries};

    if (flow->in_flight >= flow->spec.concurrency)
        return false;
    flow->in_flight++;
    if (flow->transport->send(flow, &request))
        return true;
    flow->in_flight--;
    return false;
}

void flow_pump(struct flow *flow)
{
    /* A send that fails at once completes its request, which pumps: one level is enough. */
    if (flow->pumping)
        return;
    flow->pumping = true;
    while (flow->backlog_count > 0 && flow->in_flight < flow->spec.concurrency) {
        struct flow_waiting waiting = backlog_pop(flow);

        if (!try_send(flow, &waiting, loop_clock_ns())) {
            backlog_push_front(flow, &waiting);
            break;
        }
    }
    flow->pumping = false;
}

static void offer(struct flow *flow, uint64_t intended_ns, uint64_t now_ns)
{
    struct flow_waiting waiting = {.intended_ns = intended_ns, .number = flow->next_number++};
    uint64_t late_ns = now_ns > intended_ns ? now_ns - intended_ns : 0;
    bool sent = false;

    assert(!flow->pumping);
    if (measured(flow, intended_ns)) {
        flow->offered++;
        flow->late += late_ns > FLOW_LATE_NS;
        if (late_ns > flow->late_max_ns)
            flow->late_max_ns = late_ns;
    }
    if (flow->backlog_count == 0) {
        flow->pumping = true;
        sent = try_send(flow, &waiting, now_ns);
        flow->pumping = false;
    }
    if (!sent) {
        flow->delayed += measured(flow, intended_ns);
        backlog_push(flow, &waiting);
    }
}

/* ---------------------------------------------------------------- open and closed loop */

/* False when the process has nothing more for this flow. */
static bool next_arrival(struct flow *flow)
{
    uint64_t next_ns = arrival_next_ns(&flow->arrival);

    if (flow->start_ns >= flow->end_ns || next_ns >= flow->end_ns - flow->start_ns)
        return false;
    flow->next_arrival_ns = flow->start_ns + next_ns;
    return true;
}

static void arrivals_due(struct loop_timer *timer)
{
    struct flow *flow = (void *)((char *)timer - offsetof(struct flow, arrival_timer));
    uint64_t now_ns = loop_clock_ns();

    for (int i = 0; i < ARRIVALS_PER_TURN && flow->next_arrival_ns <= now_ns; i++) {
        offer(flow, flow->next_arrival_ns, now_ns);
        if (!next_arrival(flow))
            return;
        now_ns = loop_clock_ns();
    }
    loop_timer_set(flow->loop, timer,
                   flow->next_arrival_ns > now_ns ? flow->next_arrival_ns : now_ns + 1);
}

static void thought(struct loop_timer *timer)
{
    struct flow_thinker *thinker = (void *)((char *)timer - offsetof(struct flow_thinker, timer));
    struct flow *flow = thinker->flow;
    uint64_t intended_ns = timer->entry.deadline_ns;
    bool again = thinker->again;
    struct flow_request request = thinker->request;

    thinker->next_free = flow->thinkers_free;
    flow->thinkers_free = thinker;
    if (again) {
        flow->retry_waiting--;
        backlog_push_front(
            flow, &(struct flow_waiting){request.intended_ns, request.number, request.tries + 1});
        flow_pump(flow);
    } else if (intended_ns < flow->end_ns) {
        offer(flow, intended_ns, loop_clock_ns());
    }
}

static struct flow_thinker *thinker_take(struct flow *flow)
{
    struct flow_thinker *thinker = flow->thinkers_free;

    if (thinker) {
        flow->thinkers_free = thinker->next_free;
    } else {
        thinker = memory_zeroed(1, sizeof(*thinker));
        thinker->flow = flow;
        thinker->timer.fire = thought;
        thinker->next_made = flow->thinkers_made;
        flow->thinkers_made = thinker;
    }
    thinker->again = false;
    return thinker;
}

/* A closed-loop client's next request, `pause_ns` from now. */
static void next_of_client(struct flow *flow, uint64_t now_ns, uint64_t pause_ns)
{
    if (now_ns + pause_ns >= flow->end_ns)
        return;
    /* A send that fails at once does not send again at once: the loop must turn in between. */
    if (pause_ns == 0 && !flow->pumping) {
        offer(flow, now_ns, now_ns);
        return;
    }
    loop_timer_set(flow->loop, &thinker_take(flow)->timer, now_ns + pause_ns);
}

/* ---------------------------------------------------------------- replies */

/* True when the refused request will be sent again. */
static bool retry(struct flow *flow, const struct flow_request *request,
                  const struct flow_result *result, uint64_t now_ns)
{
    uint64_t wait_ns = flow->spec.retry_ns;

    if (result->outcome != OUTCOME_REFUSED || request->tries >= flow->spec.retries)
        return false;
    if (flow->spec.retry_after && result->retry_after_ns)
        wait_ns = result->retry_after_ns;
    if (wait_ns >= flow->drained_ns || now_ns >= flow->drained_ns - wait_ns)
        return false;
    struct flow_thinker *thinker = thinker_take(flow);

    flow->retried += measured(flow, request->intended_ns);
    flow->retry_waiting++;
    thinker->again = true;
    thinker->request = *request;
    loop_timer_set(flow->loop, &thinker->timer, now_ns + wait_ns);
    return true;
}

static void count(struct meter *meter, const struct flow_result *result, uint64_t latency_ns)
{
    meter_add(meter, result->outcome, latency_ns);
    meter->bytes_in += result->bytes_in;
    meter->bytes_out += result->bytes_out;
}

static void meter_result(struct flow *flow, const struct flow_request *request,
                         const struct flow_result *result, uint64_t now_ns)
{
    uint64_t latency_ns = now_ns - request->intended_ns;

    count(&flow->second, result, latency_ns);
    if (result->outcome == OUTCOME_OK && now_ns >= flow->window.measure_ns &&
        now_ns < flow->window.end_ns)
        flow->completed++;
    if (!measured(flow, request->intended_ns))
        return;
    count(&flow->total, result, latency_ns);
    if (flow->one_kind || result->kind >= FLOW_KINDS)
        return;
    if (!flow->kinds[result->kind]) {
        flow->kinds[result->kind] = memory_zeroed(1, sizeof(*flow->kinds[0]));
        meter_reset(flow->kinds[result->kind]);
    }
    count(flow->kinds[result->kind], result, latency_ns);
}

void flow_completed(struct flow *flow, const struct flow_request *request,
                    const struct flow_result *result)
{
    uint64_t now_ns = loop_clock_ns();

    flow->in_flight--;
    if (!retry(flow, request, result, now_ns)) {
        meter_result(flow, request, result, now_ns);
        if (!flow->spec.open_loop)
            next_of_client(flow, now_ns,
                           result->outcome == OUTCOME_OK
                               ? distribution_draw(&flow->spec.think, &flow->rng)
                               : flow->spec.pause_ns);
    }
    flow_pump(flow);
}

static uint64_t expiry_interval_ns(const struct flow *flow)
{
    uint64_t interval_ns = flow->spec.timeout_ns / 8;

    return interval_ns < EXPIRY_LEAST_NS  ? EXPIRY_LEAST_NS
           : interval_ns > EXPIRY_MOST_NS ? EXPIRY_MOST_NS
                                          : interval_ns;
}

static void expire(struct loop_timer *timer)
{
    struct flow *flow = (void *)((char *)timer - offsetof(struct flow, expiry_timer));
    uint64_t now_ns = flow->loop->now_ns;

    if (now_ns > flow->spec.timeout_ns)
        flow->transport->expire(flow, now_ns - flow->spec.timeout_ns);
    loop_timer_set(flow->loop, timer, now_ns + expiry_interval_ns(flow));
}

/* ---------------------------------------------------------------- life */

static const struct flow_transport *transport_of(const struct flow_spec *spec)
{
    if (spec->protocol == FLOW_NFS)
        return spec->nfs.version == FLOW_NFS_3 ? &client_nfs_transport : &client_nfs4_transport;
    if (spec->http.version == FLOW_HTTP_2)
        return &client_http2_transport;
    return &client_http_transport;
}

int flow_open(struct flow *flow, struct loop *loop, const struct flow_spec *spec, uint64_t seed,
              uint64_t number)
{
    return flow_open_over(flow, loop, spec, transport_of(spec), seed, number);
}

int flow_open_over(struct flow *flow, struct loop *loop, const struct flow_spec *spec,
                   const struct flow_transport *transport, uint64_t seed, uint64_t number)
{
    memset(flow, 0, sizeof(*flow));
    flow->spec = *spec;
    flow->loop = loop;
    flow->transport = transport;
    flow->arrival_timer.fire = arrivals_due;
    flow->expiry_timer.fire = expire;
    meter_reset(&flow->total);
    meter_reset(&flow->second);
    if (spec->has_seed) {
        seed = spec->seed;
        number = 0;
    }
    rng_init(&flow->rng, seed, 2 * number);
    flow->request_seed = rng_next(&flow->rng);
    if (spec->open_loop)
        arrival_init(&flow->arrival, &spec->arrival, seed, 2 * number + 1);
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
    flow->drained_ns = window->drained_ns > window->end_ns ? window->drained_ns : window->end_ns;
    if (flow->spec.stop_ns && window->start_ns + flow->spec.stop_ns < flow->end_ns)
        flow->end_ns = window->start_ns + flow->spec.stop_ns;
    flow->one_kind = !flow->transport->kind_name(flow, 1);
    if (flow->one_kind)
        flow->kinds[0] = &flow->total;
    loop_timer_set(flow->loop, &flow->expiry_timer, window->start_ns + expiry_interval_ns(flow));
    if (flow->spec.open_loop) {
        if (next_arrival(flow))
            loop_timer_set(flow->loop, &flow->arrival_timer, flow->next_arrival_ns);
        return;
    }
    for (uint32_t i = 0; i < flow->spec.concurrency; i++)
        loop_timer_set(flow->loop, &thinker_take(flow)->timer, flow->start_ns);
}

void flow_fini(struct flow *flow)
{
    if (flow->wire)
        flow->transport->close(flow);
    while (flow->thinkers_made) {
        struct flow_thinker *thinker = flow->thinkers_made;

        flow->thinkers_made = thinker->next_made;
        free(thinker);
    }
    for (int i = 0; i < FLOW_KINDS; i++) {
        if (flow->kinds[i] != &flow->total)
            free(flow->kinds[i]);
    }
    free(flow->backlog);
    flow->thinkers_free = NULL;
    flow->backlog = NULL;
}

void flow_request_rng(const struct flow *flow, const struct flow_request *request, struct rng *rng)
{
    rng_init(rng, flow->request_seed, request->number);
}

uint64_t flow_outstanding(const struct flow *flow)
{
    return flow->in_flight + flow->backlog_count + flow->retry_waiting;
}
