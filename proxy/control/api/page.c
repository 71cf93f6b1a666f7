/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics page: see page.h. */
#include "proxy/control/api/page.h"

#include "proxy/control/api/process_view.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------ pieces of the format */

static void write_head(struct evbuffer *out, const char *name, const char *help, const char *type)
{
    evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Label values: backslash, quote and line feed are escaped. */
static void write_escaped(struct evbuffer *out, const char *text)
{
    for (;;) {
        size_t plain = strcspn(text, "\\\"\n");
        evbuffer_add(out, text, plain);
        text += plain;
        if (*text == '\0')
            return;
        evbuffer_add_printf(out, "\\%c", *text == '\n' ? 'n' : *text);
        text++;
    }
}

/* The row's labels, without braces. */
static void write_labels(struct evbuffer *out, const struct meter_scope *scope, const void *row)
{
    const char *comma = "";

    for (size_t i = 0; i < scope->text_count; i++) {
        if (scope->texts[i].label == NULL)
            continue;
        evbuffer_add_printf(out, "%s%s=\"", comma, scope->texts[i].label);
        write_escaped(out, snapshot_text(row, &scope->texts[i]));
        evbuffer_add(out, "\"", 1);
        comma = ",";
    }
}

/* ------------------------------------------------------------------ scopes */

/*
 * One cumulative bucket an octave. The format's bound includes its value and the histogram's end
 * does not; times that hit the bound to the nanosecond count one octave up.
 */
static void write_times(struct evbuffer *out, const char *family, const struct meter_scope *scope,
                        const void *row, const struct histogram *times)
{
    uint64_t below = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        below += times->buckets[i];
        if (i % 4 != 3 || i == HISTOGRAM_BUCKETS - 1)
            continue;
        evbuffer_add_printf(out, "%s_bucket{", family);
        write_labels(out, scope, row);
        evbuffer_add_printf(out, ",le=\"%.9g\"} %" PRIu64 "\n",
                            (double)histogram_bucket_end_ns(i) / 1e9, below);
    }
    evbuffer_add_printf(out, "%s_bucket{", family);
    write_labels(out, scope, row);
    evbuffer_add_printf(out, ",le=\"+Inf\"} %" PRIu64 "\n%s_sum{", times->count, family);
    write_labels(out, scope, row);
    evbuffer_add_printf(out, "} %.9f\n%s_count{", (double)times->sum_ns / 1e9, family);
    write_labels(out, scope, row);
    evbuffer_add_printf(out, "} %" PRIu64 "\n", times->count);
}

static void write_row(struct evbuffer *out, const char *family, const struct meter_scope *scope,
                      const struct meter *meter, const void *row)
{
    if (meter->kind == METER_TIMES) {
        write_times(out, family, scope, row, snapshot_times(row, meter));
        return;
    }
    evbuffer_add_printf(out, "%s{", family);
    write_labels(out, scope, row);
    if (meter->kind == METER_GAUGE_REAL)
        evbuffer_add_printf(out, "} %.6g\n", snapshot_real(row, meter));
    else
        evbuffer_add_printf(out, "} %" PRIu64 "\n", snapshot_integer(row, meter));
}

void page_write_scope(struct evbuffer *out, const struct snapshot *snapshot)
{
    const struct meter_scope *scope = snapshot->scope;
    char family[96];

    for (size_t i = 0; i < scope->meter_count; i++) {
        const struct meter *meter = &scope->meters[i];
        const char *suffix = "";
        const char *type = "gauge";
        if (meter->kind == METER_COUNTER) {
            suffix = "_total";
            type = "counter";
        } else if (meter->kind == METER_TIMES) {
            suffix = "_seconds";
            type = "histogram";
        }
        snprintf(family, sizeof(family), "spillway_%s_%s%s", scope->name, meter->name, suffix);
        write_head(out, family, meter->help, type);
        for (size_t row = 0; row < snapshot->count; row++)
            write_row(out, family, scope, meter, snapshot_row(snapshot, row));
    }
}

/* ------------------------------------------------------------------ the whole */

void page_write(struct evbuffer *out, struct runtime *runtime)
{
    static const struct meter_scope *const scopes[] = {&meter_scope_listener, &meter_scope_pool,
                                                       &meter_scope_flow, &meter_scope_server};
    struct process_value values[PROCESS_VALUES_MAX];
    size_t count = process_view_take(values, runtime);

    for (size_t i = 0; i < count; i++) {
        const struct process_value *value = &values[i];
        if (value->help != NULL)
            write_head(out, value->name, value->help, value->is_counter ? "counter" : "gauge");
        evbuffer_add_printf(out, "%s", value->name);
        if (value->label != NULL)
            evbuffer_add_printf(out, "{%s=\"%s\"}", value->label, value->label_value);
        evbuffer_add_printf(out, " %.17g\n", value->value);
    }
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        struct snapshot snapshot;
        snapshot_take(&snapshot, scopes[i], runtime);
        page_write_scope(out, &snapshot);
        snapshot_fini(&snapshot);
    }
}
