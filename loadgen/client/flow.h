/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running flow: makes requests by its arrival process or its closed-loop clients, holds back what
 * is above its concurrency, sends again what was refused and may be, and meters what comes back.
 * The wire is a transport's business (client/http, client/nfs).
 *
 *   arrival timer --+            +-> transport.send -> in flight -> flow_completed -> meters
 *                   +-> offer -> room?                                 |       |
 *   think timers ---+            +-> backlog -> flow_pump      refused, a try  +-> closed loop:
 *        ^                              ^                      is left         |   the client
 *        |                              +----- retry timers <------+           |   thinks
 *        +---------------------------------------------------------------------+
 *
 * A closed-loop client waits for its request to the end, retries included, before it thinks. A
 * retry leaves its place below the concurrency to others while it waits, then goes before all that
 * are held back. After the flow's end nothing is offered, but what was offered is still sent, and
 * sent again, up to the end of the drain; a refusal whose next try would come later is final.
 *
 * What a request asks for follows from the flow's seed and the request's number alone
 * (flow_request_rng), whatever the timing was: the same seed sends the same requests, and a retry
 * asks for the same thing.
 *
 * Invariants: in_flight <= concurrency; the backlog is in the order of intended times but for
 * retries, which go to its front; every request offered is in flight, in the backlog, waits for its
 * retry, or was completed once with an outcome.
 */
#ifndef LOADGEN_CLIENT_FLOW_H
#define LOADGEN_CLIENT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/arrival/arrival.h"
#include "loadgen/client/flow_spec.h"
#include "loadgen/client/meter.h"
#include "loadgen/net/loop.h"

struct flow;

/* One request in the transport's hands. */
struct flow_request {
    uint64_t intended_ns;
    uint64_t sent_ns; /* of this try */
    uint64_t number;  /* from 0, in the order of offering */
    uint32_t tries;   /* before this one */
};

/* How it ended. Bytes are those of bodies or data. */
struct flow_result {
    enum outcome outcome;
    uint32_t kind; /* which of transport->kind_name(): a request of a mix, an operation */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t retry_after_ns; /* of a refusal that says when; 0: it does not */
};

struct flow_transport {
    /* Allocates flow->wire and starts to connect. 0 or negative errno, said on stderr where errno
     * does not tell enough. */
    int (*open)(struct flow *flow);
    /*
     * Whether requests can be sent at once; a flow begins only then. Setting up includes making the
     * file set, which may take long: `progress` tells how far it is.
     */
    bool (*ready)(const struct flow *flow);
    /* While not ready: a few words for the user ("mounting", "1200 of 5000 files"), and whether
     * something moved since it was last asked: a set-up that moves is not given up. Optional. */
    bool (*progress)(struct flow *flow, char *text, size_t size);
    /* Takes the request, or says false when it can't now; then it calls flow_pump() when it can. */
    bool (*send)(struct flow *flow, const struct flow_request *request);
    /* Ends requests sent before the given time with OUTCOME_TIMEOUT. */
    void (*expire)(struct flow *flow, uint64_t sent_before_ns);
    /* Name of a kind of request, as "read" or "GET /x"; NULL past the last. */
    const char *(*kind_name)(const struct flow *flow, uint32_t kind);
    void (*close)(struct flow *flow);
};

extern const struct flow_transport client_http_transport;
extern const struct flow_transport client_http2_transport;
extern const struct flow_transport client_nfs_transport;
extern const struct flow_transport client_nfs4_transport;

/* The time of a run that flows have in common; all on the loop's clock. */
struct flow_window {
    uint64_t start_ns;
    uint64_t measure_ns; /* requests meant for earlier are warm-up: not metered */
    uint64_t end_ns;     /* no new requests from here on */
    uint64_t drained_ns; /* nor new tries of those there are; below end_ns it is read as end_ns */
};

#define FLOW_KINDS FLOW_MAX_REQUESTS

struct flow_waiting; /* of the backlog */
struct flow_thinker; /* a closed-loop client, or a refused request, that waits for its time */

struct flow {
    struct flow_spec spec;
    struct loop *loop;
    const struct flow_transport *transport;
    void *wire;
    struct flow_window window;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t drained_ns;
    struct arrival arrival;
    struct rng rng; /* think times */
    uint64_t request_seed;
    struct loop_timer arrival_timer;
    struct loop_timer expiry_timer;
    uint64_t next_arrival_ns;
    uint64_t next_number;
    bool pumping;

    uint32_t in_flight;
    struct flow_waiting *backlog; /* a ring */
    size_t backlog_first;
    size_t backlog_count;
    size_t backlog_capacity;
    struct flow_thinker *thinkers_free;
    struct flow_thinker *thinkers_made;
    uint64_t retry_waiting;

    /* Of requests meant for the measured time, told of each once, retries apart. */
    uint64_t offered;
    uint64_t late; /* came to be sent over FLOW_LATE_NS after the intended time: our own fault */
    uint64_t late_max_ns;
    uint64_t delayed;   /* held back by the concurrency cap or for want of a connection */
    uint64_t completed; /* OK replies that arrived within the measured time */
    uint64_t retried;   /* tries after the first, of requests meant for the measured time */
    uint64_t reconnects;
    uint64_t verified;   /* replies whose data was compared with what had to be there */
    uint64_t unverified; /* replies that could not be: a write to the same place was in flight */
    struct meter total;
    struct meter second; /* meter_clear() by whoever shows it */
    /* Of the measured time; NULL: no such request so far. Where there is one kind alone this is
     * `total` itself. */
    struct meter *kinds[FLOW_KINDS];
    bool one_kind;
};

#define FLOW_LATE_NS 1000000ULL

/*
 * Allocates what the flow needs and opens its transport. `number` sets its random draws apart from
 * those of other flows. 0 or negative errno; flow_fini() is due in either case.
 */
int flow_open(struct flow *flow, struct loop *loop, const struct flow_spec *spec, uint64_t seed,
              uint64_t number);
/* The same over a wire of the caller's choice, where flow_open() goes by the spec. */
int flow_open_over(struct flow *flow, struct loop *loop, const struct flow_spec *spec,
                   const struct flow_transport *transport, uint64_t seed, uint64_t number);
bool flow_ready(const struct flow *flow);
/* The first request comes at window->start_ns plus the flow's own start, or later. Once. */
void flow_begin(struct flow *flow, const struct flow_window *window);
void flow_fini(struct flow *flow);

/* Requests offered and not completed. */
uint64_t flow_outstanding(const struct flow *flow);

/* For transports: a generator for what the request asks for, the same at every try. */
void flow_request_rng(const struct flow *flow, const struct flow_request *request, struct rng *rng);

/* For transports: the request ended. */
void flow_completed(struct flow *flow, const struct flow_request *request,
                    const struct flow_result *result);

/* For transports: requests can be sent (again). */
void flow_pump(struct flow *flow);

#endif
