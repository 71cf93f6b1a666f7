/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of meters: what there is to read about the process, its listeners, pools, flows and
 * servers, under which name, and where it lies in a view.
 *
 * The metrics page and the JSON API are both this table read aloud, so a meter is added in one
 * place. A name is written once and the two derive theirs from it:
 *
 *      meter            page                              JSON
 *      counter  NAME    spillway_SCOPE_NAME_total         "NAME": count
 *      gauge    NAME    spillway_SCOPE_NAME               "NAME": value
 *      times    NAME    spillway_SCOPE_NAME_seconds       "NAME": {"count", "sum_seconds",
 *                       (a histogram)                     "mean_seconds", "p50_seconds", ...}
 */
#ifndef SPILLWAY_CONTROL_API_METER_TABLE_H
#define SPILLWAY_CONTROL_API_METER_TABLE_H

#include "proxy/core/admin_ops.h"

#include <stddef.h>

enum meter_kind {
    METER_COUNTER,   /* uint64_t */
    METER_GAUGE,     /* uint64_t */
    METER_GAUGE_U32, /* uint32_t */
    METER_GAUGE_REAL,
    METER_TIMES, /* struct histogram */
};

struct meter {
    const char *name;
    const char *help;
    enum meter_kind kind;
    size_t offset; /* in the scope's row */
};

/* A string of a row: a name in JSON, and a label on the page unless `label` is NULL. */
struct meter_text {
    const char *key;
    const char *label;
    size_t offset;
};

struct meter_scope {
    const char *name; /* "pool" */
    size_t row_bytes;
    const struct meter_text *texts;
    size_t text_count;
    const struct meter *meters;
    size_t meter_count;
};

/* A server's view, and what its state means in numbers. */
struct server_row {
    struct server_view view;
    uint64_t up;       /* 1 while it may get requests */
    uint64_t draining; /* 1 while an operator keeps it from getting any */
};

/* Rows are struct listener_view, pool_view, flow_view and server_row. */
extern const struct meter_scope meter_scope_listener;
extern const struct meter_scope meter_scope_pool;
extern const struct meter_scope meter_scope_flow;
extern const struct meter_scope meter_scope_server;

#endif
