/* SPDX-License-Identifier: Apache-2.0 */
/* The gate in virtual time; the picture is in the header. */
#include "bench/sim/gate/gate_sim.h"

#include <stdlib.h>

#include "bench/sim/events.h"
#include "loadgen/arrival/arrival.h"
#include "loadgen/base/memory.h"
#include "loadgen/base/rng.h"

#define NS_PER_S       1e9
#define STREAMS        4
#define STREAM_ARRIVAL 0
#define STREAM_COST    1
#define STREAM_SERVICE 2
#define STREAM_THINK   3

struct gate_client {
    struct event ready;
    struct gate_flow *flow;
    uint64_t wanted_ns;        /* when the present request was first offered */
    struct gate_client *first; /* of its connection */
    uint64_t held_ns;          /* the first's: the connection is not read before */
    bool again;                /* the present request was refused */
};

struct gate_request {
    struct event done;
    struct gate_request *next; /* in the queue, or free */
    struct gate_flow *flow;
    struct gate_client *client;
    uint64_t first_ns; /* of its first try */
    uint64_t came_ns;
    uint64_t cost;
    double draw_ns; /* service time at full capacity */
    double served_ns;
};

struct gate_flow {
    struct gate_sim *sim;
    const struct flow_spec *spec;
    struct event next_arrival;
    struct arrival arrival;
    struct rng cost_rng;
    struct rng service_rng;
    struct rng think_rng;
    struct distribution cost;
    struct distribution service;
    struct distribution think;
    uint64_t end_ns;
    struct gate_client *clients;
    struct gate_meter meter;
};

struct gate_sim {
    struct gate_config config;
    struct events events;
    struct admit admit;
    struct gate_flow *flows;
    struct gate_request *queue;
    struct gate_request **queue_tail;
    struct gate_request *free;
    uint32_t running;
    uint64_t queue_count;
    struct gate_meter meter;
    struct gate_interval *intervals;
    size_t interval_count;
};

/* ---------------------------------------------------------------- capacity */

static double share_at(const struct gate_config *config, uint64_t time_ns)
{
    double share = 1;

    for (size_t i = 0; i < config->step_count && config->steps[i].from_ns <= time_ns; i++)
        share = config->steps[i].share;
    return share;
}

/* Capacity over the metered time, in cost. */
static double could_cost(const struct gate_config *config)
{
    double mean_cost = distribution_mean(&config->cost);
    double seconds = 0;
    uint64_t from_ns = config->warmup_ns;

    while (from_ns < config->end_ns) {
        uint64_t until_ns = config->end_ns;

        for (size_t i = config->step_count; i-- > 0;) {
            if (config->steps[i].from_ns > from_ns && config->steps[i].from_ns < until_ns)
                until_ns = config->steps[i].from_ns;
        }
        seconds += share_at(config, from_ns) * (double)(until_ns - from_ns) / NS_PER_S;
        from_ns = until_ns;
    }
    return seconds * config->capacity_per_s * mean_cost;
}

/* ---------------------------------------------------------------- meters */

static bool metered(const struct gate_sim *sim, uint64_t time_ns)
{
    return time_ns >= sim->config.warmup_ns;
}

static struct gate_interval *interval_at(struct gate_sim *sim, uint64_t time_ns)
{
    size_t place = sim->interval_count ? (size_t)(time_ns / sim->config.interval_ns) : 0;

    return place < sim->interval_count ? &sim->intervals[place] : NULL;
}

static void meter_offer(struct gate_sim *sim, struct gate_meter *meter, uint64_t cost)
{
    if (!metered(sim, sim->events.now_ns))
        return;
    meter->offered++;
    meter->offered_cost += cost;
    if (sim->queue_count > meter->queue_peak)
        meter->queue_peak = sim->queue_count;
}

static void meter_refusal(struct gate_sim *sim, const struct gate_request *request)
{
    struct gate_interval *interval = interval_at(sim, sim->events.now_ns);

    if (interval)
        interval->refused++;
    if (!metered(sim, request->came_ns))
        return;
    sim->meter.refused++;
    sim->meter.refused_cost += request->cost;
    request->flow->meter.refused++;
    request->flow->meter.refused_cost += request->cost;
}

static void meter_end(struct gate_sim *sim, const struct gate_request *request)
{
    uint64_t now_ns = sim->events.now_ns;
    uint64_t began_ns = now_ns - (uint64_t)request->served_ns;

    if (metered(sim, now_ns))
        sim->meter.busy_ns +=
            metered(sim, began_ns) ? request->served_ns : (double)(now_ns - sim->config.warmup_ns);
    if (!metered(sim, request->came_ns))
        return;
    sim->meter.completed++;
    request->flow->meter.completed++;
    histogram_add(&sim->meter.response, now_ns - request->first_ns);
    histogram_add(&request->flow->meter.response, now_ns - request->first_ns);
}

static void meter_start(struct gate_sim *sim, const struct gate_request *request, uint64_t wait_ns)
{
    struct gate_interval *interval = interval_at(sim, sim->events.now_ns);

    if (interval) {
        interval->started++;
        interval->wait_ns += (double)wait_ns;
    }
    if (!metered(sim, request->came_ns))
        return;
    histogram_add(&sim->meter.wait, wait_ns);
    histogram_add(&request->flow->meter.wait, wait_ns);
}

/* ---------------------------------------------------------------- the road of a request */

static void request_free(struct gate_sim *sim, struct gate_request *request)
{
    request->next = sim->free;
    sim->free = request;
}

static void client_pause(struct gate_client *client, uint64_t pause_ns)
{
    struct gate_sim *sim = client->flow->sim;
    uint64_t until_ns = sim->events.now_ns + pause_ns;

    if (until_ns < client->first->held_ns)
        until_ns = client->first->held_ns;
    if (until_ns < client->flow->end_ns)
        events_at(&sim->events, &client->ready, until_ns);
}

static void mark(struct gate_sim *sim, const struct gate_request *request)
{
    if (metered(sim, request->came_ns)) {
        sim->meter.marked++;
        request->flow->meter.marked++;
    }
    if (request->client)
        request->client->first->held_ns = sim->events.now_ns + admit_mark_ns(&sim->admit);
}

static void refuse(struct gate_sim *sim, struct gate_request *request)
{
    struct gate_client *client = request->client;

    meter_refusal(sim, request);
    request_free(sim, request);
    if (!client)
        return;
    client->again = true;
    client_pause(client, client->flow->spec->pause_ns);
}

static void dispatch(struct gate_sim *sim)
{
    uint64_t now_ns = sim->events.now_ns;

    while (sim->running < sim->config.slots && sim->queue) {
        struct gate_request *request = sim->queue;
        uint64_t wait_ns = now_ns - request->came_ns;

        sim->queue = request->next;
        if (!sim->queue)
            sim->queue_tail = &sim->queue;
        sim->queue_count--;
        if (!admit_dispatch(&sim->admit, request->cost, wait_ns, now_ns)) {
            if (!sim->config.mark) {
                refuse(sim, request);
                continue;
            }
            admit_keep(&sim->admit, request->cost, now_ns);
            mark(sim, request);
        }
        meter_start(sim, request, wait_ns);
        sim->running++;
        request->served_ns = request->draw_ns / share_at(&sim->config, now_ns);
        events_at(&sim->events, &request->done, now_ns + (uint64_t)request->served_ns);
    }
}

static void ended(struct event *event)
{
    struct gate_request *request = (void *)((char *)event - offsetof(struct gate_request, done));
    struct gate_client *client = request->client;
    struct gate_sim *sim = request->flow->sim;

    sim->running--;
    meter_end(sim, request);
    admit_complete(&sim->admit, request->cost, sim->events.now_ns);
    request_free(sim, request);
    dispatch(sim);
    if (client) {
        client->again = false;
        client_pause(client, distribution_draw(&client->flow->think, &client->flow->think_rng));
    }
}

static struct gate_request *request_make(struct gate_flow *flow, struct gate_client *client)
{
    struct gate_sim *sim = flow->sim;
    struct gate_request *request = sim->free;
    uint64_t now_ns = sim->events.now_ns;

    if (request)
        sim->free = request->next;
    else
        request = memory_zeroed(1, sizeof(*request));
    uint64_t cost = distribution_draw(&flow->cost, &flow->cost_rng);

    *request = (struct gate_request){.done.fire = ended,
                                     .flow = flow,
                                     .client = client,
                                     .came_ns = now_ns,
                                     .first_ns = client ? client->wanted_ns : now_ns,
                                     .cost = cost ? cost : 1};
    request->draw_ns = (double)distribution_draw(&flow->service, &flow->service_rng) *
                       (double)request->cost / distribution_mean(&sim->config.cost);
    return request;
}

static void offer(struct gate_flow *flow, struct gate_client *client)
{
    struct gate_sim *sim = flow->sim;
    struct gate_request *request = request_make(flow, client);
    struct gate_interval *interval = interval_at(sim, sim->events.now_ns);

    if (interval)
        interval->offered++;
    meter_offer(sim, &sim->meter, request->cost);
    meter_offer(sim, &flow->meter, request->cost);
    if (!admit_offer(&sim->admit, request->cost, sim->events.now_ns)) {
        if (!sim->config.mark) {
            refuse(sim, request);
            return;
        }
        admit_mark(&sim->admit, request->cost, sim->events.now_ns);
        mark(sim, request);
    }
    request->next = NULL;
    *sim->queue_tail = request;
    sim->queue_tail = &request->next;
    sim->queue_count++;
    dispatch(sim);
    interval = interval_at(sim, sim->events.now_ns);
    if (interval)
        interval->queue = sim->queue_count;
}

/* ---------------------------------------------------------------- where requests come from */

static void schedule_arrival(struct gate_flow *flow)
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
    struct gate_flow *flow = (void *)((char *)event - offsetof(struct gate_flow, next_arrival));

    offer(flow, NULL);
    schedule_arrival(flow);
}

static void client_ready(struct event *event)
{
    struct gate_client *client = (void *)((char *)event - offsetof(struct gate_client, ready));

    if (!client->again)
        client->wanted_ns = client->flow->sim->events.now_ns;
    if (client->first->held_ns > client->flow->sim->events.now_ns) {
        client->again = true;
        client_pause(client, 0);
        return;
    }
    offer(client->flow, client);
}

/* ---------------------------------------------------------------- life */

static void flow_begin(struct gate_sim *sim, uint32_t number)
{
    struct gate_flow *flow = &sim->flows[number];
    const struct flow_spec *spec = &sim->config.flows[number];
    uint64_t stream = (uint64_t)number * STREAMS;

    flow->sim = sim;
    flow->spec = spec;
    flow->next_arrival.fire = arrived;
    flow->cost = sim->config.cost;
    flow->service = sim->config.service;
    flow->think = spec->think;
    flow->end_ns =
        spec->stop_ns && spec->stop_ns < sim->config.end_ns ? spec->stop_ns : sim->config.end_ns;
    rng_init(&flow->cost_rng, sim->config.seed, stream + STREAM_COST);
    rng_init(&flow->service_rng, sim->config.seed, stream + STREAM_SERVICE);
    rng_init(&flow->think_rng, sim->config.seed, stream + STREAM_THINK);
    histogram_reset(&flow->meter.wait);
    histogram_reset(&flow->meter.response);
    if (spec->open_loop) {
        arrival_init(&flow->arrival, &spec->arrival, sim->config.seed, stream + STREAM_ARRIVAL);
        schedule_arrival(flow);
        return;
    }
    flow->clients = memory_zeroed(spec->concurrency, sizeof(*flow->clients));
    for (uint32_t i = 0; i < spec->concurrency; i++) {
        struct gate_client *client = &flow->clients[i];

        client->flow = flow;
        client->first = client - i % (sim->config.per_connection ? sim->config.per_connection : 1);
        client->ready.fire = client_ready;
        events_at(&sim->events, &client->ready,
                  spec->start_ns + rng_below(&flow->think_rng, (uint64_t)NS_PER_S));
    }
}

struct gate_sim *gate_sim_create(const struct gate_config *config)
{
    struct gate_sim *sim = memory_zeroed(1, sizeof(*sim));
    double mean_cost = distribution_mean(&config->cost);

    sim->config = *config;
    sim->queue_tail = &sim->queue;
    sim->config.admit.slots = (uint64_t)((double)config->slots * mean_cost + 0.5);
    sim->config.service.mean = (uint64_t)(config->slots * NS_PER_S / config->capacity_per_s + 0.5);
    admit_init(&sim->admit, &sim->config.admit, 0);
    histogram_reset(&sim->meter.wait);
    histogram_reset(&sim->meter.response);
    sim->meter.could_cost = could_cost(config);
    if (config->interval_ns) {
        sim->interval_count =
            (size_t)((config->end_ns + config->interval_ns - 1) / config->interval_ns);
        sim->intervals = memory_zeroed(sim->interval_count, sizeof(*sim->intervals));
    }
    sim->flows = memory_zeroed(config->flow_count, sizeof(*sim->flows));
    for (uint32_t i = 0; i < config->flow_count; i++)
        flow_begin(sim, i);
    return sim;
}

void gate_sim_run(struct gate_sim *sim)
{
    events_run_until(&sim->events, sim->config.end_ns);
}

static void free_list(struct gate_request *request)
{
    while (request) {
        struct gate_request *next = request->next;

        free(request);
        request = next;
    }
}

void gate_sim_destroy(struct gate_sim *sim)
{
    if (!sim)
        return;
    /* What is being served belongs to nobody but its event: it is let go to its end. */
    for (uint32_t i = 0; i < sim->config.flow_count; i++)
        sim->flows[i].end_ns = 0;
    free_list(sim->queue);
    sim->queue = NULL;
    sim->queue_tail = &sim->queue;
    for (uint32_t i = 0; i < sim->config.flow_count; i++)
        events_cancel(&sim->events, &sim->flows[i].next_arrival);
    while (sim->running)
        events_run_until(&sim->events, sim->events.now_ns + 1000 * (uint64_t)NS_PER_S);
    free_list(sim->queue);
    free_list(sim->free);
    for (uint32_t i = 0; i < sim->config.flow_count; i++)
        free(sim->flows[i].clients);
    free(sim->flows);
    free(sim->intervals);
    events_fini(&sim->events);
    free(sim);
}

/* ---------------------------------------------------------------- results */

const struct gate_meter *gate_sim_meter(const struct gate_sim *sim)
{
    return &sim->meter;
}

const struct gate_meter *gate_sim_flow_meter(const struct gate_sim *sim, uint32_t flow)
{
    return &sim->flows[flow].meter;
}

const struct gate_interval *gate_sim_intervals(const struct gate_sim *sim, size_t *count)
{
    *count = sim->interval_count;
    return sim->intervals;
}

const struct admit *gate_sim_admit(const struct gate_sim *sim)
{
    return &sim->admit;
}

double gate_meter_used(const struct gate_meter *meter, const struct gate_config *config)
{
    return meter->busy_ns / ((double)config->slots * (double)(config->end_ns - config->warmup_ns));
}

double gate_meter_refused(const struct gate_meter *meter)
{
    return meter->offered_cost ? (double)meter->refused_cost / (double)meter->offered_cost : 0;
}

double gate_meter_tries(const struct gate_meter *meter)
{
    return meter->completed ? (double)meter->offered / (double)meter->completed : 0;
}

double gate_meter_ideal(const struct gate_meter *meter)
{
    double offered = (double)meter->offered_cost;

    return offered > meter->could_cost ? 1 - meter->could_cost / offered : 0;
}
