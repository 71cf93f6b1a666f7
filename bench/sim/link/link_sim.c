/* SPDX-License-Identifier: Apache-2.0 */
/* The link in virtual time; the picture is in the header. */
#include "bench/sim/link/link_sim.h"

#include <stdlib.h>
#include <string.h>

#include "bench/sim/events.h"
#include "bench/sim/link/tcp.h"
#include "loadgen/base/memory.h"
#include "loadgen/base/rng.h"

#define NS_PER_S 1000000000ULL

struct link_packet {
    struct event back;         /* its acknowledgement is with the sender */
    struct link_packet *next;  /* in the queue, or free */
    struct link_packet *other; /* all there are */
    struct link_flow *flow;
    uint64_t connection;
    struct tcp_sent sent;
    uint32_t bytes;
    bool marked;
};

struct link_flow {
    struct link_sim *sim;
    struct event ready; /* the connection is set up */
    struct event timer;
    struct rng rng;
    struct tcp tcp;
    uint64_t connection;
    uint64_t began_ns;
    uint64_t rtt_ns;
};

struct link_sim {
    struct link_config config;
    struct events events;
    struct admit admit;
    struct link_flow *flows;
    struct link_packet *queue;
    struct link_packet **queue_tail;
    uint64_t queue_count;
    struct link_packet *sending;
    struct event sent;
    uint64_t fraction; /* of a nanosecond, over the bits per second, that is still to be waited */
    struct link_packet *free;
    struct link_packet *all;
    struct link_count count;
    struct link_meter *meters; /* one per step */
    size_t step;               /* the present one */
    struct link_interval *intervals;
    size_t interval_count;
};

/* ---------------------------------------------------------------- meters */

static void follow_steps(struct link_sim *sim)
{
    while (sim->step + 1 < sim->config.step_count &&
           sim->config.steps[sim->step + 1].from_ns <= sim->events.now_ns)
        sim->step++;
}

static struct link_meter *meter_now(struct link_sim *sim)
{
    follow_steps(sim);
    return &sim->meters[sim->step];
}

/* The one that time falls into; a spare one when there is no series. */
static struct link_interval *interval_now(struct link_sim *sim)
{
    size_t place =
        sim->config.interval_ns ? (size_t)(sim->events.now_ns / sim->config.interval_ns) : 0;

    return &sim->intervals[place < sim->interval_count ? place : sim->interval_count];
}

static uint32_t packet_cost(const struct link_sim *sim, const struct link_packet *packet)
{
    return sim->config.cost_bytes ? packet->bytes : 1;
}

/* ---------------------------------------------------------------- the link */

static void packet_free(struct link_sim *sim, struct link_packet *packet)
{
    packet->next = sim->free;
    sim->free = packet;
}

static void drop(struct link_sim *sim, struct link_packet *packet)
{
    meter_now(sim)->dropped++;
    interval_now(sim)->dropped++;
    sim->count.dropped++;
    packet_free(sim, packet);
}

static void mark(struct link_sim *sim, struct link_packet *packet)
{
    meter_now(sim)->marked++;
    interval_now(sim)->marked++;
    packet->marked = true;
}

static void transmit(struct link_sim *sim, struct link_packet *packet)
{
    struct link_meter *meter = meter_now(sim);
    struct link_interval *interval = interval_now(sim);
    uint64_t bits_per_s = sim->config.steps[sim->step].bits_per_s;
    uint64_t work = packet->bytes * 8 * NS_PER_S + sim->fraction;
    uint64_t length_ns = work / bits_per_s;
    uint64_t delay_ns = sim->events.now_ns - packet->sent.time_ns;

    sim->fraction = work % bits_per_s;
    sim->sending = packet;
    meter->carried++;
    meter->busy_ns += length_ns;
    histogram_add(&meter->delay, delay_ns);
    interval->carried++;
    interval->delay_ns += delay_ns;
    events_at(&sim->events, &sim->sent, sim->events.now_ns + length_ns);
}

static void dispatch(struct link_sim *sim)
{
    uint64_t now_ns = sim->events.now_ns;

    while (!sim->sending && sim->queue) {
        struct link_packet *packet = sim->queue;

        sim->queue = packet->next;
        if (!sim->queue)
            sim->queue_tail = &sim->queue;
        sim->queue_count--;
        if (admit_dispatch(&sim->admit, packet_cost(sim, packet), now_ns - packet->sent.time_ns,
                           now_ns)) {
            transmit(sim, packet);
        } else if (sim->config.ecn) {
            mark(sim, packet);
            transmit(sim, packet);
        } else {
            drop(sim, packet);
        }
    }
}

static void sent(struct event *event)
{
    struct link_sim *sim = (void *)((char *)event - offsetof(struct link_sim, sent));
    struct link_packet *packet = sim->sending;

    sim->sending = NULL;
    sim->count.under_way++;
    admit_complete(&sim->admit, packet_cost(sim, packet), sim->events.now_ns);
    events_at(&sim->events, &packet->back, sim->events.now_ns + packet->flow->rtt_ns);
    dispatch(sim);
}

static void offer(struct link_sim *sim, struct link_packet *packet)
{
    struct link_interval *interval = interval_now(sim);
    uint64_t now_ns = sim->events.now_ns;
    uint32_t cost = packet_cost(sim, packet);

    meter_now(sim)->offered++;
    interval->offered++;
    if (!admit_offer(&sim->admit, cost, now_ns)) {
        if (!sim->config.ecn) {
            drop(sim, packet);
            return;
        }
        mark(sim, packet);
        admit_requeue(&sim->admit, cost, now_ns);
    }
    packet->next = NULL;
    *sim->queue_tail = packet;
    sim->queue_tail = &packet->next;
    sim->queue_count++;
    if (sim->queue_count > interval->queue)
        interval->queue = sim->queue_count;
    dispatch(sim);
}

/* ---------------------------------------------------------------- the senders */

static void back(struct event *event);

static struct link_packet *packet_make(struct link_flow *flow, const struct tcp_sent *transmission)
{
    struct link_sim *sim = flow->sim;
    struct link_packet *packet = sim->free;
    uint64_t begins = (uint64_t)transmission->segment * LINK_SEGMENT_BYTES;
    uint64_t left = sim->config.bytes - begins;

    if (packet) {
        sim->free = packet->next;
    } else {
        packet = memory_zeroed(1, sizeof(*packet));
        packet->other = sim->all;
        sim->all = packet;
        packet->back.fire = back;
    }
    packet->flow = flow;
    packet->connection = flow->connection;
    packet->sent = *transmission;
    packet->bytes =
        LINK_HEADER_BYTES + (uint32_t)(left < LINK_SEGMENT_BYTES ? left : LINK_SEGMENT_BYTES);
    packet->marked = false;
    return packet;
}

static void send_all(struct link_flow *flow)
{
    struct link_sim *sim = flow->sim;
    struct tcp_sent transmission;

    while (tcp_send(&flow->tcp, sim->events.now_ns, &transmission)) {
        sim->count.sent++;
        offer(sim, packet_make(flow, &transmission));
    }
    if (flow->tcp.deadline_ns == TCP_NEVER)
        events_cancel(&sim->events, &flow->timer);
    else
        events_at(&sim->events, &flow->timer, flow->tcp.deadline_ns);
}

/* A new connection after `pause_ns`; packets of the last one answer nobody. */
static void connect_after(struct link_flow *flow, uint64_t pause_ns)
{
    struct link_sim *sim = flow->sim;
    uint64_t spread_ns = sim->config.rtt_spread_ns;

    flow->connection++;
    flow->rtt_ns = sim->config.rtt_ns - spread_ns + rng_below(&flow->rng, 2 * spread_ns + 1);
    flow->began_ns = sim->events.now_ns + pause_ns;
    events_at(&sim->events, &flow->ready, flow->began_ns + flow->rtt_ns);
}

static void ready(struct event *event)
{
    struct link_flow *flow = (void *)((char *)event - offsetof(struct link_flow, ready));

    tcp_begin(&flow->tcp, flow->rtt_ns, flow->sim->events.now_ns);
    send_all(flow);
}

static void timed_out(struct event *event)
{
    struct link_flow *flow = (void *)((char *)event - offsetof(struct link_flow, timer));

    meter_now(flow->sim)->timeouts++;
    tcp_timeout(&flow->tcp, flow->sim->events.now_ns);
    send_all(flow);
}

static void back(struct event *event)
{
    struct link_packet *packet = (void *)((char *)event - offsetof(struct link_packet, back));
    struct link_flow *flow = packet->flow;
    struct link_sim *sim = flow->sim;
    bool current = packet->connection == flow->connection;
    bool marked = packet->marked;
    struct tcp_sent transmission = packet->sent;

    sim->count.under_way--;
    sim->count.delivered++;
    packet_free(sim, packet);
    if (!current)
        return;
    tcp_acked(&flow->tcp, &transmission, marked, sim->events.now_ns);
    if (tcp_done(&flow->tcp)) {
        struct link_meter *meter = meter_now(sim);

        meter->transfers++;
        histogram_add(&meter->completion, sim->events.now_ns - flow->began_ns);
        events_cancel(&sim->events, &flow->timer);
        connect_after(flow, sim->config.pause_ns);
        return;
    }
    send_all(flow);
}

/* ---------------------------------------------------------------- life */

static void flow_begin(struct link_sim *sim, uint32_t number)
{
    struct link_flow *flow = &sim->flows[number];
    uint64_t segments = (sim->config.bytes + LINK_SEGMENT_BYTES - 1) / LINK_SEGMENT_BYTES;

    flow->sim = sim;
    flow->ready.fire = ready;
    flow->timer.fire = timed_out;
    rng_init(&flow->rng, sim->config.seed, number);
    tcp_init(&flow->tcp, (uint32_t)segments, sim->config.initial_window);
    /* Not all at once: within the first round-trip time; alone, at once. */
    connect_after(flow, number ? rng_below(&flow->rng, sim->config.rtt_ns) : 0);
}

static uint64_t step_end_ns(const struct link_config *config, size_t step)
{
    return step + 1 < config->step_count ? config->steps[step + 1].from_ns : config->end_ns;
}

struct link_sim *link_sim_create(const struct link_config *config)
{
    struct link_sim *sim = memory_zeroed(1, sizeof(*sim));

    sim->config = *config;
    sim->queue_tail = &sim->queue;
    sim->sent.fire = sent;
    if (config->cost_bytes)
        sim->config.admit.slots *= LINK_SEGMENT_BYTES + LINK_HEADER_BYTES;
    admit_init(&sim->admit, &sim->config.admit, 0);
    sim->meters = memory_zeroed(config->step_count, sizeof(*sim->meters));
    for (size_t i = 0; i < config->step_count; i++) {
        link_meter_reset(&sim->meters[i]);
        sim->meters[i].length_ns = step_end_ns(config, i) - config->steps[i].from_ns;
    }
    if (config->interval_ns)
        sim->interval_count =
            (size_t)((config->end_ns + config->interval_ns - 1) / config->interval_ns);
    sim->intervals = memory_zeroed(sim->interval_count + 1, sizeof(*sim->intervals));
    sim->flows = memory_zeroed(config->flows, sizeof(*sim->flows));
    for (uint32_t i = 0; i < config->flows; i++)
        flow_begin(sim, i);
    return sim;
}

void link_sim_run(struct link_sim *sim, uint64_t until_ns)
{
    events_run_until(&sim->events, until_ns);
}

void link_sim_destroy(struct link_sim *sim)
{
    if (!sim)
        return;
    for (uint32_t i = 0; i < sim->config.flows; i++)
        tcp_fini(&sim->flows[i].tcp);
    while (sim->all) {
        struct link_packet *other = sim->all->other;

        free(sim->all);
        sim->all = other;
    }
    free(sim->flows);
    free(sim->meters);
    free(sim->intervals);
    events_fini(&sim->events);
    free(sim);
}

/* ---------------------------------------------------------------- results */

const struct link_meter *link_sim_meter(const struct link_sim *sim, size_t step)
{
    return &sim->meters[step];
}

const struct link_interval *link_sim_intervals(const struct link_sim *sim, size_t *count)
{
    *count = sim->interval_count;
    return sim->intervals;
}

struct link_count link_sim_count(const struct link_sim *sim)
{
    struct link_count count = sim->count;

    count.sending = sim->sending != NULL;
    for (const struct link_packet *packet = sim->queue; packet; packet = packet->next)
        count.queued++;
    for (const struct link_packet *packet = sim->all; packet; packet = packet->other)
        count.held++;
    for (const struct link_packet *packet = sim->free; packet; packet = packet->next)
        count.held--;
    return count;
}

void link_meter_reset(struct link_meter *meter)
{
    memset(meter, 0, sizeof(*meter));
    histogram_reset(&meter->delay);
    histogram_reset(&meter->completion);
}

void link_meter_merge(struct link_meter *into, const struct link_meter *from)
{
    into->offered += from->offered;
    into->dropped += from->dropped;
    into->marked += from->marked;
    into->carried += from->carried;
    into->timeouts += from->timeouts;
    into->transfers += from->transfers;
    into->busy_ns += from->busy_ns;
    into->length_ns += from->length_ns;
    histogram_merge(&into->delay, &from->delay);
    histogram_merge(&into->completion, &from->completion);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

double link_meter_used(const struct link_meter *meter)
{
    return share(meter->busy_ns, meter->length_ns);
}

double link_meter_dropped(const struct link_meter *meter)
{
    return share(meter->dropped, meter->offered);
}

double link_meter_marked(const struct link_meter *meter)
{
    return share(meter->marked, meter->offered);
}
