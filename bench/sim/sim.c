/* SPDX-License-Identifier: Apache-2.0 */
/* Simulation: flows, scheduler and array on one virtual clock; the picture is in the header. */
#include "bench/sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "loadgen/base/memory.h"

static_assert(FLOW_MAX_WEIGHT <= SCHED_WEIGHT_MAX, "every weight that is parsed is one of sched");

#define REQUESTS_PER_CHUNK 1024

/* Generators of one flow; see rng_init(). */
enum {
    STREAM_ARRIVALS,
    STREAM_THINK,
    STREAM_JOBS,
    STREAMS,
};

struct client;

struct request {
    struct sched_item item;
    struct array_job job;
    struct client *client; /* NULL in an open loop */
    struct request *next_free;
    uint64_t dispatched_ns;
};

struct request_chunk {
    struct request_chunk *next;
    struct request requests[REQUESTS_PER_CHUNK];
};

struct sim_flow {
    struct sched_flow flow;
    struct sim *sim;
    const struct flow_spec *spec;
    struct sched_terms terms;
    uint64_t end_ns;
    struct arrival arrival;
    struct event next_arrival;
    struct rng think;
    struct distribution think_time; /* a copy: a list keeps its place */
    struct client *clients;
    struct array_stream stream;
    struct sim_meter meter;
    struct sim_interval *series;
};

/* One client of a closed loop: it has a request in the system, or thinks. */
struct client {
    struct event thought;
    struct sim_flow *flow;
};

struct sim {
    struct sim_config config;
    struct events events;
    struct array array;
    struct sched *sched;
    struct sim_flow *flows;
    uint32_t flows_ready;
    struct request *free;
    struct request_chunk *chunks;
    struct event wake;
    struct event interval_end;
    size_t intervals; /* that have ended */
    size_t intervals_max;
    uint64_t requests;
};

/* ---------------------------------------------------------------- requests */

static struct request *request_take(struct sim *sim)
{
    if (!sim->free) {
        struct request_chunk *chunk = memory_zeroed(1, sizeof(*chunk));

        chunk->next = sim->chunks;
        sim->chunks = chunk;
        for (int i = 0; i < REQUESTS_PER_CHUNK; i++) {
            sched_item_init(&chunk->requests[i].item);
            chunk->requests[i].next_free = sim->free;
            sim->free = &chunk->requests[i];
        }
    }
    struct request *request = sim->free;

    sim->free = request->next_free;
    return request;
}

static void request_give_back(struct sim *sim, struct request *request)
{
    request->next_free = sim->free;
    sim->free = request;
}

static bool metered(const struct sim *sim)
{
    return sim->events.now_ns >= sim->config.warmup_ns;
}

/* The interval that now belongs to, or NULL when no series is kept. */
static struct sim_interval *interval_of(struct sim_flow *flow)
{
    const struct sim *sim = flow->sim;

    return sim->intervals < sim->intervals_max ? &flow->series[sim->intervals] : NULL;
}

/* ---------------------------------------------------------------- the road of a request */

static void dispatch(struct sim *sim)
{
    uint64_t now_ns = sim->events.now_ns;
    struct sched_item *item;

    while ((item = sched_dispatch(sim->sched, now_ns)) != NULL) {
        struct request *request = (void *)((char *)item - offsetof(struct request, item));

        request->dispatched_ns = now_ns;
        array_submit(&sim->array, &request->job);
    }
    uint64_t wake_ns = sched_wake_ns(sim->sched);

    if (wake_ns == SCHED_NEVER_NS)
        events_cancel(&sim->events, &sim->wake);
    else if (!event_armed(&sim->wake) || event_time_ns(&sim->wake) != wake_ns)
        events_at(&sim->events, &sim->wake, wake_ns);
}

static void woken(struct event *event)
{
    dispatch((void *)((char *)event - offsetof(struct sim, wake)));
}

static void client_pause(struct client *client, uint64_t pause_ns)
{
    struct events *events = &client->flow->sim->events;

    if (events->now_ns + pause_ns < client->flow->end_ns)
        events_at(events, &client->thought, events->now_ns + pause_ns);
}

static void offer(struct sim_flow *flow, struct client *client)
{
    struct sim *sim = flow->sim;
    struct sim_interval *interval = interval_of(flow);
    struct request *request = request_take(sim);

    request->client = client;
    array_job_init(&sim->array, &request->job, &flow->stream, flow->spec->cost);
    sim->requests++;
    flow->meter.offered += metered(sim);
    if (interval)
        interval->offered++;
    if (sched_enqueue(sim->sched, &flow->flow, &request->item, flow->spec->cost,
                      sim->events.now_ns) == SCHED_OK) {
        dispatch(sim);
        return;
    }
    request_give_back(sim, request);
    flow->meter.refused += metered(sim);
    if (interval)
        interval->refused++;
    if (client)
        client_pause(client, flow->spec->pause_ns);
}

static void served(void *owner, struct array_job *job)
{
    struct sim *sim = owner;
    struct request *request = (void *)((char *)job - offsetof(struct request, job));
    struct sim_flow *flow = (void *)((char *)request->item.flow - offsetof(struct sim_flow, flow));
    struct sim_interval *interval = interval_of(flow);
    struct client *client = request->client;
    uint64_t now_ns = sim->events.now_ns;
    uint64_t response_ns = now_ns - request->item.arrival_ns;

    if (metered(sim)) {
        flow->meter.completed++;
        flow->meter.wait_ns += (double)(request->dispatched_ns - request->item.arrival_ns);
        histogram_add(&flow->meter.response, response_ns);
    }
    if (interval) {
        interval->completed++;
        interval->response_ns += (double)response_ns;
    }
    sched_complete(sim->sched, &request->item, request->item.cost, now_ns);
    request_give_back(sim, request);
    dispatch(sim);
    if (client)
        client_pause(client, distribution_draw(&flow->think_time, &flow->think));
}

/* ---------------------------------------------------------------- where requests come from */

static void schedule_arrival(struct sim_flow *flow)
{
    uint64_t next_ns = arrival_next_ns(&flow->arrival);

    if (next_ns == ARRIVAL_NEVER)
        return;
    next_ns += flow->spec->start_ns;
    if (next_ns < flow->end_ns)
        events_at(&flow->sim->events, &flow->next_arrival, next_ns);
}

static void arrived(struct event *event)
{
    struct sim_flow *flow = (void *)((char *)event - offsetof(struct sim_flow, next_arrival));

    offer(flow, NULL);
    schedule_arrival(flow);
}

static void thought(struct event *event)
{
    struct client *client = (void *)((char *)event - offsetof(struct client, thought));

    offer(client->flow, client);
}

static void begin_clients(struct sim_flow *flow)
{
    flow->clients = memory_zeroed(flow->spec->concurrency, sizeof(*flow->clients));
    for (uint32_t i = 0; i < flow->spec->concurrency; i++) {
        struct client *client = &flow->clients[i];

        client->flow = flow;
        client->thought.fire = thought;
        if (flow->spec->start_ns < flow->end_ns)
            events_at(&flow->sim->events, &client->thought, flow->spec->start_ns);
    }
}

/* ---------------------------------------------------------------- the time series */

static void interval_over(struct event *event)
{
    struct sim *sim = (void *)((char *)event - offsetof(struct sim, interval_end));

    for (uint32_t i = 0; i < sim->config.flow_count; i++) {
        struct sim_flow *flow = &sim->flows[i];

        flow->series[sim->intervals].waiting = flow->flow.queued;
        flow->series[sim->intervals].outstanding = flow->flow.outstanding;
    }
    sim->intervals++;
    if (sim->intervals < sim->intervals_max)
        events_at(&sim->events, event, (sim->intervals + 1) * sim->config.interval_ns);
}

static void begin_series(struct sim *sim)
{
    uint64_t interval_ns = sim->config.interval_ns;

    if (interval_ns == 0)
        return;
    sim->intervals_max = sim->config.end_ns / interval_ns;
    for (uint32_t i = 0; i < sim->config.flow_count; i++)
        sim->flows[i].series = memory_zeroed(sim->intervals_max, sizeof(*sim->flows[i].series));
    if (sim->intervals_max)
        events_at(&sim->events, &sim->interval_end, interval_ns);
}

/* ---------------------------------------------------------------- life */

/* 0, or -EINVAL when sched refuses what the flow was promised. */
static int flow_begin_simulated(struct sim *sim, uint32_t number)
{
    struct sim_flow *flow = &sim->flows[number];
    const struct flow_spec *spec = &sim->config.flows[number];
    uint64_t seed = sim->config.seed;
    uint64_t streams = (uint64_t)number * STREAMS;

    flow->sim = sim;
    flow->spec = spec;
    flow->end_ns =
        spec->stop_ns && spec->stop_ns < sim->config.end_ns ? spec->stop_ns : sim->config.end_ns;
    flow->terms = (struct sched_terms){.target_ns = spec->deadline_ns,
                                       .reservation_per_s = spec->reservation_per_s,
                                       .limit_per_s = spec->limit_per_s,
                                       .burst = spec->burst};
    histogram_reset(&flow->meter.response);
    flow->think_time = spec->think;
    array_stream_init(&flow->stream, &sim->array, spec->sequential, seed, streams + STREAM_JOBS);
    sim->flows_ready++;
    int error = sched_flow_init(&flow->flow, spec->weight);

    if (!error)
        error = sched_flow_set_terms(&flow->flow, &flow->terms);
    if (error)
        return error;
    sched_flow_pin(&flow->flow);
    error = sched_flow_attach(sim->sched, &flow->flow);
    if (error)
        return error;
    rng_init(&flow->think, seed, streams + STREAM_THINK);
    if (!spec->open_loop) {
        begin_clients(flow);
        return 0;
    }
    flow->next_arrival.fire = arrived;
    arrival_init(&flow->arrival, &spec->arrival, seed, streams + STREAM_ARRIVALS);
    schedule_arrival(flow);
    return 0;
}

struct sim *sim_create(const struct sim_config *config)
{
    struct sim *sim = memory_zeroed(1, sizeof(*sim));
    int error = 0;

    sim->config = *config;
    sim->wake.fire = woken;
    sim->interval_end.fire = interval_over;
    array_init(&sim->array, &config->array, &sim->events, served, sim);
    sim->flows = memory_zeroed(config->flow_count, sizeof(*sim->flows));
    sim->sched = sched_create(&config->sched);
    if (!sim->sched)
        error = -errno;
    begin_series(sim);
    for (uint32_t i = 0; !error && i < config->flow_count; i++)
        error = flow_begin_simulated(sim, i);
    if (!error)
        return sim;
    sim_destroy(sim);
    errno = -error;
    return NULL;
}

void sim_destroy(struct sim *sim)
{
    if (!sim)
        return;
    sched_destroy(sim->sched);
    for (uint32_t i = 0; i < sim->config.flow_count; i++)
        free(sim->flows[i].series);
    for (uint32_t i = 0; i < sim->flows_ready; i++) {
        array_stream_fini(&sim->flows[i].stream);
        free(sim->flows[i].clients);
    }
    free(sim->flows);
    for (struct request_chunk *chunk = sim->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    array_fini(&sim->array);
    events_fini(&sim->events);
    free(sim);
}

void sim_advance(struct sim *sim, uint64_t until_ns)
{
    /* Whoever changed the scheduler since the last call may have made room. */
    dispatch(sim);
    events_run_until(&sim->events, until_ns);
}

/* ---------------------------------------------------------------- views */

struct sched *sim_sched(struct sim *sim)
{
    return sim->sched;
}

struct sched_flow *sim_sched_flow(struct sim *sim, uint32_t flow)
{
    return &sim->flows[flow].flow;
}

const struct sim_meter *sim_flow_meter(const struct sim *sim, uint32_t flow)
{
    return &sim->flows[flow].meter;
}

const struct sim_interval *sim_flow_series(const struct sim *sim, uint32_t flow, size_t *count)
{
    *count = sim->intervals;
    return sim->flows[flow].series;
}

uint64_t sim_flow_waiting(const struct sim *sim, uint32_t flow)
{
    return sim->flows[flow].flow.queued + sim->flows[flow].flow.outstanding;
}

uint64_t sim_now_ns(const struct sim *sim)
{
    return sim->events.now_ns;
}

uint64_t sim_events(const struct sim *sim)
{
    return sim->events.fired;
}

uint64_t sim_requests(const struct sim *sim)
{
    return sim->requests;
}

double sim_utilisation(const struct sim *sim)
{
    return array_utilisation(&sim->array);
}
