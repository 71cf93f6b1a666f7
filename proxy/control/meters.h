/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meters: what happened, counted where it happened.
 *
 * The structures below hold the values, api/meter_table.c gives each a name, unit and help; the
 * metrics page, the API and spillctl read that one table. Values only grow, but for gauges, which
 * are taken when somebody looks.
 *
 * Who may change what: pool, flow and server meters are written under their pool's gate lock, so
 * that a request is in all of them or in none; listener meters by one thread each (a copy per
 * worker, added up when read) with relaxed atomics.
 */
#ifndef SPILLWAY_CONTROL_METERS_H
#define SPILLWAY_CONTROL_METERS_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A histogram of times: four buckets to the octave (an error of at most 12.5 % to the middle) from
 * 16 us up to about 68 s; what is below the first or above the last counts in it.
 */
#define HISTOGRAM_FIRST_SHIFT 14
#define HISTOGRAM_OCTAVES     22
#define HISTOGRAM_BUCKETS     (HISTOGRAM_OCTAVES * 4)

struct histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t value_ns)
{
    if (value_ns < UINT64_C(1) << HISTOGRAM_FIRST_SHIFT)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll(value_ns);
    unsigned bucket =
        (octave - HISTOGRAM_FIRST_SHIFT) * 4 + (unsigned)((value_ns >> (octave - 2)) & 3);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_add(struct histogram *histogram, uint64_t value_ns)
{
    histogram->count++;
    histogram->sum_ns += value_ns;
    histogram->buckets[histogram_bucket(value_ns)]++;
}

/* The upper end of a bucket; the last one has none and gives UINT64_MAX. */
uint64_t histogram_bucket_end_ns(unsigned bucket);

/* The value below which `quantile` (0..1) of the entries lie, interpolated; 0 when empty. */
uint64_t histogram_quantile_ns(const struct histogram *histogram, double quantile);

/* Of a pool or a flow. */
struct flow_meters {
    uint64_t offered;  /* came to the gate (one that is held and comes again counts again) */
    uint64_t admitted; /* joined the queue */
    uint64_t admission_refused; /* by the admission policy, on arrival or out of the queue */
    uint64_t marked;            /* joined, but their clients were slowed down */
    uint64_t requests;          /* answered by a server, well or badly */
    uint64_t cost;              /* charged, after correction */
    uint64_t bytes_in;          /* of requests */
    uint64_t bytes_out;         /* of replies */
    uint64_t errors;    /* no whole answer came from a server: connect, reset, nonsense, time-out */
    uint64_t refused;   /* queue full */
    uint64_t no_server; /* refused because no server was in service */
    uint64_t at_limit;  /* refused because the flow's rate limit was reached */
    uint64_t queue_timeouts;  /* refused after waiting too long */
    uint64_t cancelled;       /* the client went away while the request waited */
    struct histogram wait;    /* from being queued to being sent */
    struct histogram service; /* from being sent to the end of the reply */
};

struct server_meters {
    uint64_t requests;
    uint64_t cost;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t errors;
    uint64_t connects;       /* connections made */
    uint64_t connect_errors; /* connections refused, timed out */
    uint64_t retries;        /* requests sent again elsewhere or on a fresh connection */
    uint64_t deaths;         /* times it was taken out of service for failing */
    struct histogram service;
};

struct listener_meters {
    atomic_uint_fast64_t connections; /* accepted */
    atomic_uint_fast64_t open;        /* now */
    atomic_uint_fast64_t rejected;    /* attempts to accept put off: no descriptors, no memory */
    atomic_uint_fast64_t malformed;   /* requests that broke the protocol's rules */
    atomic_uint_fast64_t not_found;   /* requests without a pool */
};

/* One writer each, so a plain load and store suffice. */
static inline void meter_add(atomic_uint_fast64_t *meter, int64_t amount)
{
    atomic_store_explicit(meter,
                          atomic_load_explicit(meter, memory_order_relaxed) + (uint64_t)amount,
                          memory_order_relaxed);
}

#endif
