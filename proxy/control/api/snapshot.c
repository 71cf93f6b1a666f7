/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of all views of a scope: see snapshot.h. */
#include "proxy/control/api/snapshot.h"

#include "proxy/io/memory.h"

#include <stdlib.h>
#include <string.h>

static void *add_row(struct snapshot *snapshot)
{
    if (snapshot->count == snapshot->room) {
        snapshot->room = snapshot->room == 0 ? 16 : snapshot->room * 2;
        snapshot->rows = memory_resize(snapshot->rows, snapshot->room * snapshot->scope->row_bytes,
                                       "a snapshot of the meters");
    }
    return snapshot->rows + snapshot->count++ * snapshot->scope->row_bytes;
}

static void add_listener(const struct listener_view *view, void *snapshot)
{
    memcpy(add_row(snapshot), view, sizeof(*view));
}

static void add_pool(const struct pool_view *view, void *snapshot)
{
    memcpy(add_row(snapshot), view, sizeof(*view));
}

static void add_flow(const struct flow_view *view, void *snapshot)
{
    memcpy(add_row(snapshot), view, sizeof(*view));
}

static void add_server(const struct server_view *view, void *snapshot)
{
    struct server_row row = {
        .view = *view,
        .up = strcmp(view->state, "ready") == 0,
        .draining = strcmp(view->state, "drain") == 0,
    };

    memcpy(add_row(snapshot), &row, sizeof(row));
}

void snapshot_take(struct snapshot *snapshot, const struct meter_scope *scope,
                   struct runtime *runtime)
{
    *snapshot = (struct snapshot){.scope = scope};
    if (scope == &meter_scope_listener)
        admin_each_listener(runtime, add_listener, snapshot);
    else if (scope == &meter_scope_pool)
        admin_each_pool(runtime, add_pool, snapshot);
    else if (scope == &meter_scope_flow)
        admin_each_flow(runtime, add_flow, snapshot);
    else
        admin_each_server(runtime, add_server, snapshot);
}

void snapshot_fini(struct snapshot *snapshot)
{
    free(snapshot->rows);
    snapshot->rows = NULL;
}
