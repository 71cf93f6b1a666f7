/* SPDX-License-Identifier: Apache-2.0 */
/* The table of meters: see meter_table.h. */
#include "proxy/control/api/meter_table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What pools and flows count alike, in the same structure. */
#define REQUEST_METERS(view)                                                                       \
    {"queue_length", "Requests waiting for their turn.", METER_GAUGE,                              \
     offsetof(struct view, queued)},                                                               \
        {"outstanding", "Requests at the servers.", METER_GAUGE,                                   \
         offsetof(struct view, outstanding)},                                                      \
        {"offered", "Requests that came to the gate.", METER_COUNTER,                              \
         offsetof(struct view, meters.offered)},                                                   \
        {"admitted", "Requests that joined the queue.", METER_COUNTER,                             \
         offsetof(struct view, meters.admitted)},                                                  \
        {"admission_refused", "Requests refused by the admission policy.", METER_COUNTER,          \
         offsetof(struct view, meters.admission_refused)},                                         \
        {"marked", "Requests that joined, but whose clients were slowed down.", METER_COUNTER,     \
         offsetof(struct view, meters.marked)},                                                    \
        {"requests", "Requests answered by a server.", METER_COUNTER,                              \
         offsetof(struct view, meters.requests)},                                                  \
        {"cost", "Cost units charged, after correction.", METER_COUNTER,                           \
         offsetof(struct view, meters.cost)},                                                      \
        {"bytes_in", "Bytes of requests.", METER_COUNTER, offsetof(struct view, meters.bytes_in)}, \
        {"bytes_out", "Bytes of replies.", METER_COUNTER,                                          \
         offsetof(struct view, meters.bytes_out)},                                                 \
        {"errors", "Requests that got no whole reply from a server.", METER_COUNTER,               \
         offsetof(struct view, meters.errors)},                                                    \
        {"refused", "Requests refused because the queue was full.", METER_COUNTER,                 \
         offsetof(struct view, meters.refused)},                                                   \
        {"no_server", "Requests refused because no server was in service.", METER_COUNTER,         \
         offsetof(struct view, meters.no_server)},                                                 \
        {"at_limit", "Requests refused because their flow was at its rate limit.", METER_COUNTER,  \
         offsetof(struct view, meters.at_limit)},                                                  \
        {"queue_timeouts", "Requests refused after waiting for too long.", METER_COUNTER,          \
         offsetof(struct view, meters.queue_timeouts)},                                            \
        {"cancelled", "Requests whose client went away while they waited.", METER_COUNTER,         \
         offsetof(struct view, meters.cancelled)},                                                 \
        {"wait", "Time from being queued to being sent.", METER_TIMES,                             \
         offsetof(struct view, meters.wait)},                                                      \
    {                                                                                              \
        "service", "Time from being sent to the end of the reply.", METER_TIMES,                   \
            offsetof(struct view, meters.service)                                                  \
    }

/* ------------------------------------------------------------------ listeners */

static const struct meter_text listener_texts[] = {
    {"name", "listener", offsetof(struct listener_view, name)},
    {"protocol", NULL, offsetof(struct listener_view, protocol)},
};

static const struct meter listener_meters[] = {
    {"connections", "Connections accepted.", METER_COUNTER,
     offsetof(struct listener_view, connections)},
    {"connections_open", "Connections open now.", METER_GAUGE,
     offsetof(struct listener_view, open)},
    {"rejected", "Attempts to accept that failed for want of descriptors or memory.", METER_COUNTER,
     offsetof(struct listener_view, rejected)},
    {"malformed", "Requests that broke the rules of their protocol.", METER_COUNTER,
     offsetof(struct listener_view, malformed)},
    {"not_found", "Requests that no route leads to a pool.", METER_COUNTER,
     offsetof(struct listener_view, not_found)},
};

/* ------------------------------------------------------------------ pools and flows */

static const struct meter_text pool_texts[] = {
    {"name", "pool", offsetof(struct pool_view, name)},
    {"protocol", NULL, offsetof(struct pool_view, protocol)},
    {"algorithm", NULL, offsetof(struct pool_view, algorithm)},
    {"at_limit_policy", NULL, offsetof(struct pool_view, at_limit)},
    {"admission", NULL, offsetof(struct pool_view, admission)},
    {"admission_action", NULL, offsetof(struct pool_view, admission_action)},
};

static const struct meter pool_meters[] = {
    {"depth", "Requests (or cost units) allowed at the servers together.", METER_GAUGE,
     offsetof(struct pool_view, depth)},
    {"slack", "hybrid: how far a flow may go beyond its window.", METER_GAUGE,
     offsetof(struct pool_view, slack)},
    {"capacity_per_second", "Cost units per second the servers do together; 0: not known.",
     METER_GAUGE, offsetof(struct pool_view, capacity_per_s)},
    {"ageing_seconds", "scf: wait that makes up for one unit of cost.", METER_GAUGE_REAL,
     offsetof(struct pool_view, ageing_s)},
    {"admission_limit", "tail: requests (or cost units) that may wait.", METER_GAUGE,
     offsetof(struct pool_view, admission_limit)},
    {"admission_target_seconds", "codel, pie: wait to keep to; 0: the published one.",
     METER_GAUGE_REAL, offsetof(struct pool_view, admission_target_s)},
    {"admission_interval_seconds", "codel, duk-literal: interval; 0: the published one.",
     METER_GAUGE_REAL, offsetof(struct pool_view, admission_interval_s)},
    {"admission_capacity_per_second",
     "Requests (or cost units) per second that the servers do, as measured; 0: not yet.",
     METER_GAUGE_REAL, offsetof(struct pool_view, admission_capacity_per_s)},
    {"admission_share", "Of what comes, how much is refused or marked, 0 to 1.", METER_GAUGE_REAL,
     offsetof(struct pool_view, admission_share)},
    {"admission_allowed", "Requests (or cost units) that may wait in any case.", METER_GAUGE_REAL,
     offsetof(struct pool_view, admission_allowed)},
    {"admission_most", "duk: the most that may wait during an overload; 0: there is none.",
     METER_GAUGE_REAL, offsetof(struct pool_view, admission_most)},
    {"admission_surplus", "duk: what has come in excess; an overload is evident above 1.",
     METER_GAUGE_REAL, offsetof(struct pool_view, admission_surplus)},
    {"admission_measured_seconds", "Length of the interval that was measured last.",
     METER_GAUGE_REAL, offsetof(struct pool_view, admission_measured_s)},
    REQUEST_METERS(pool_view),
};

static const struct meter_text flow_texts[] = {
    {"pool", "pool", offsetof(struct flow_view, pool)},
    {"name", "flow", offsetof(struct flow_view, name)},
    {"feedback", NULL, offsetof(struct flow_view, feedback)},
};

static const struct meter flow_meters[] = {
    {"weight", "Weight of each of the flow's instances.", METER_GAUGE_U32,
     offsetof(struct flow_view, weight)},
    {"target_seconds", "edf: requests are due this long after they came; 0: no target.",
     METER_GAUGE_REAL, offsetof(struct flow_view, target_s)},
    {"reservation_per_second", "Cost units per second before all shares; 0: none.", METER_GAUGE,
     offsetof(struct flow_view, reservation_per_s)},
    {"limit_per_second", "Cost units per second at most; 0: no limit.", METER_GAUGE,
     offsetof(struct flow_view, limit_per_s)},
    {"burst", "Cost units that may come at once beyond one request under the limit.", METER_GAUGE,
     offsetof(struct flow_view, burst)},
    {"response_target_seconds", "Mean response that the weight is moved for; 0: none.",
     METER_GAUGE_REAL, offsetof(struct flow_view, response_target_s)},
    {"response_seconds", "Response as last measured for the target; 0: not yet.", METER_GAUGE_REAL,
     offsetof(struct flow_view, response_s)},
    {"infeasible", "1 while no weight in the range reaches the response target.", METER_GAUGE,
     offsetof(struct flow_view, infeasible)},
    {"queue_limit", "Requests of an instance that may wait.", METER_GAUGE,
     offsetof(struct flow_view, queue_limit)},
    {"instances", "Instances by key; 1 for a flow without a key.", METER_GAUGE_U32,
     offsetof(struct flow_view, instances)},
    {"share", "Share by weight among the flows that have requests now, 0 to 1.", METER_GAUGE_REAL,
     offsetof(struct flow_view, share)},
    REQUEST_METERS(flow_view),
};

/* ------------------------------------------------------------------ servers */

static const struct meter_text server_texts[] = {
    {"pool", "pool", offsetof(struct server_row, view.pool)},
    {"name", "server", offsetof(struct server_row, view.name)},
    {"address", NULL, offsetof(struct server_row, view.address)},
    {"state", NULL, offsetof(struct server_row, view.state)},
};

static const struct meter server_meters[] = {
    {"up", "1 while the server may get requests.", METER_GAUGE, offsetof(struct server_row, up)},
    {"draining", "1 while an operator keeps the server from getting requests.", METER_GAUGE,
     offsetof(struct server_row, draining)},
    {"depth", "Requests (or cost units) allowed at the server.", METER_GAUGE,
     offsetof(struct server_row, view.depth)},
    {"outstanding", "Requests at the server.", METER_GAUGE,
     offsetof(struct server_row, view.outstanding)},
    {"requests", "Requests answered by the server.", METER_COUNTER,
     offsetof(struct server_row, view.meters.requests)},
    {"cost", "Cost units charged, after correction.", METER_COUNTER,
     offsetof(struct server_row, view.meters.cost)},
    {"bytes_in", "Bytes of requests sent to the server.", METER_COUNTER,
     offsetof(struct server_row, view.meters.bytes_in)},
    {"bytes_out", "Bytes of replies from the server.", METER_COUNTER,
     offsetof(struct server_row, view.meters.bytes_out)},
    {"errors", "Requests that got no whole reply from the server.", METER_COUNTER,
     offsetof(struct server_row, view.meters.errors)},
    {"connects", "Connections made to the server.", METER_COUNTER,
     offsetof(struct server_row, view.meters.connects)},
    {"connect_errors", "Connections the server refused or did not answer.", METER_COUNTER,
     offsetof(struct server_row, view.meters.connect_errors)},
    {"retries", "Requests sent again, elsewhere or on a fresh connection.", METER_COUNTER,
     offsetof(struct server_row, view.meters.retries)},
    {"deaths", "Times the server was taken out of service for failing.", METER_COUNTER,
     offsetof(struct server_row, view.meters.deaths)},
    {"service", "Time from being sent to the end of the reply.", METER_TIMES,
     offsetof(struct server_row, view.meters.service)},
};

#define SCOPE(title, row)                                                                          \
    {                                                                                              \
        .name = #title, .row_bytes = sizeof(struct row), .texts = title##_texts,                   \
        .text_count = COUNT(title##_texts), .meters = title##_meters,                              \
        .meter_count = COUNT(title##_meters),                                                      \
    }

const struct meter_scope meter_scope_listener = SCOPE(listener, listener_view);
const struct meter_scope meter_scope_pool = SCOPE(pool, pool_view);
const struct meter_scope meter_scope_flow = SCOPE(flow, flow_view);
const struct meter_scope meter_scope_server = SCOPE(server, server_row);
