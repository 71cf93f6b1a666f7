/* SPDX-License-Identifier: Apache-2.0 */
/* Views as JSON: see json_view.h. */
#include "proxy/control/api/json_view.h"

#include "proxy/control/access_log.h"
#include "proxy/control/log.h"
#include "proxy/control/version.h"

#include <unistd.h>

static json_t *seconds(uint64_t ns)
{
    return json_real((double)ns / 1e9);
}

static json_t *times_object(const struct histogram *times)
{
    json_t *object = json_object();
    uint64_t mean_ns = times->count > 0 ? times->sum_ns / times->count : 0;

    json_object_set_new(object, "count", json_integer((json_int_t)times->count));
    json_object_set_new(object, "sum_seconds", seconds(times->sum_ns));
    json_object_set_new(object, "mean_seconds", seconds(mean_ns));
    json_object_set_new(object, "p50_seconds", seconds(histogram_quantile_ns(times, 0.5)));
    json_object_set_new(object, "p90_seconds", seconds(histogram_quantile_ns(times, 0.9)));
    json_object_set_new(object, "p99_seconds", seconds(histogram_quantile_ns(times, 0.99)));
    return object;
}

static json_t *meter_value(const void *row, const struct meter *meter)
{
    switch (meter->kind) {
    case METER_TIMES:
        return times_object(snapshot_times(row, meter));
    case METER_GAUGE_REAL:
        return json_real(snapshot_real(row, meter));
    case METER_COUNTER:
    case METER_GAUGE:
    case METER_GAUGE_U32:
        break;
    }
    return json_integer((json_int_t)snapshot_integer(row, meter));
}

json_t *json_view_scope(const struct snapshot *snapshot)
{
    const struct meter_scope *scope = snapshot->scope;
    json_t *array = json_array();

    for (size_t i = 0; i < snapshot->count; i++) {
        const void *row = snapshot_row(snapshot, i);
        json_t *object = json_object();
        for (size_t j = 0; j < scope->text_count; j++)
            json_object_set_new(object, scope->texts[j].key,
                                json_string(snapshot_text(row, &scope->texts[j])));
        for (size_t j = 0; j < scope->meter_count; j++)
            json_object_set_new(object, scope->meters[j].name, meter_value(row, &scope->meters[j]));
        json_array_append_new(array, object);
    }
    return array;
}

json_t *json_view_status(struct runtime *runtime)
{
    struct status_view status;
    json_t *object = json_object();

    admin_status(runtime, &status);
    json_object_set_new(object, "version", json_string(SPILLWAY_VERSION));
    json_object_set_new(object, "pid", json_integer(getpid()));
    json_object_set_new(object, "uptime_seconds", seconds(status.uptime_ns));
    json_object_set_new(object, "workers", json_integer(status.workers));
    json_object_set_new(object, "sessions", json_integer((json_int_t)status.sessions));
    json_object_set_new(object, "draining", json_boolean(status.draining));
    json_object_set_new(object, "reloads_done", json_integer((json_int_t)status.reloads_done));
    json_object_set_new(object, "reloads_failed", json_integer((json_int_t)status.reloads_failed));
    json_object_set_new(object, "log_lines_dropped",
                        json_integer((json_int_t)log_dropped() + (json_int_t)access_log_dropped()));
    return object;
}
