/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running flow: makes requests by its arrival process or its closed-loop clients, holds back what
 * is above its concurrency, and meters what comes back. The wire is a transport's business
 * (client_http.c, client_nfs.c).
 *
 *   arrival timer ─┐                      ┌─ transport.send ─► in flight ─► flow_completed ─►
 * meters think timers  ─┴─► flow_offer ─► room?┤                                      │ └─ backlog
 * (intended times) ◄── pump ──┘
 *
 * Invariants: in_flight <= concurrency; the backlog is in the order of intended times; every
 * request offered is in flight, in the backlog, or was completed once with an outcome.
 */
#ifndef LOADGEN_CLIENT_FLOW_H
#define LOADGEN_CLIENT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/net/loop.h"
#include "loadgen/client/arrival.h"
#include "loadgen/client/flow_spec.h"
#include "loadgen/client/meter.h"

struct flow;

/* One request in the transport's hands. */
struct flow_request {
    uint64_t intended_ns;
    uint64_t sent_ns;
};

struct flow_transport {
    /* Allocates flow->wire and starts to connect. 0 or negative errno. */
    int (*open)(struct flow *flow);
    /* Whether requests can be sent at once; a flow begins only then. */
    bool (*ready)(const struct flow *flow);
    /* Takes the request, or says false when it can't now; then it calls flow_pump() when it can. */
    bool (*send)(struct flow *flow, const struct flow_request *request);
    /* Ends requests sent before the given time with OUTCOME_TIMEOUT. */
    void (*expire)(struct flow *flow, uint64_t sent_before_ns);
    void (*close)(struct flow *flow);
};

extern const struct flow_transport client_http_transport;
extern const struct flow_transport client_nfs_transport;

/* The time of a run that flows have in common; all on the loop's clock. */
struct flow_window {
    uint64_t start_ns;
    uint64_t measure_ns; /* requests meant for earlier are warm-up: not metered */
    uint64_t end_ns;     /* no new requests from here on */
};

struct flow {
    struct flow_spec spec;
    struct loop *loop;
    const struct flow_transport *transport;
    void *wire;
    struct flow_window window;
    uint64_t start_ns;
    uint64_t end_ns;
    struct arrival arrival;
    struct rng rng; /* think times, offsets */
    struct loop_timer arrival_timer;
    struct loop_timer expiry_timer;
    uint64_t next_arrival_ns;
    bool pumping;

    uint32_t in_flight;
    uint64_t *backlog; /* ring of intended times */
    size_t backlog_first;
    size_t backlog_count;
    size_t backlog_capacity;
    struct flow_thinker *thinkers;
    struct flow_thinker *thinkers_free;

    uint64_t offered; /* requests meant to be sent in the measured time */
    uint64_t late; /* of those, sent over FLOW_LATE_NS after the intended time, through our fault */
    uint64_t delayed; /* of those, held back by the concurrency cap or for want of a connection */
    uint64_t late_max_ns;
    uint64_t completed; /* OK replies that arrived within the measured time */
    uint64_t reconnects;
    struct meter total;
    struct meter second; /* reset by whoever shows it */
};

#define FLOW_LATE_NS 1000000ULL

/*
 * Allocates what the flow needs and opens its transport. `number` sets its random draws apart from
 * those of other flows. 0 or negative errno; flow_fini() is due in either case.
 */
int flow_open(struct flow *flow, struct loop *loop, const struct flow_spec *spec, uint64_t seed,
              uint64_t number);
bool flow_ready(const struct flow *flow);
/* The first request comes at window->start_ns plus the flow's own start, or later. Once. */
void flow_begin(struct flow *flow, const struct flow_window *window);
void flow_fini(struct flow *flow);

/* Requests offered and not completed. */
uint64_t flow_outstanding(const struct flow *flow);

/* For transports: the request ended. Bytes are those of bodies or data. */
void flow_completed(struct flow *flow, const struct flow_request *request, enum outcome outcome,
                    uint64_t bytes_in, uint64_t bytes_out);

/* For transports: requests can be sent (again). */
void flow_pump(struct flow *flow);

#endif
