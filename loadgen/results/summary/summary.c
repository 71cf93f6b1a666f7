/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries in memory; what they hold is in the header. */
#include "loadgen/results/summary/summary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loadgen/base/memory.h"

struct meter *summary_meter_create(void)
{
    struct meter *meter = memory_zeroed(1, sizeof(*meter));

    meter->latency.min = UINT64_MAX;
    meter->refusal.min = UINT64_MAX;
    return meter;
}

void summary_init(struct summary *summary, size_t flows_count)
{
    memset(summary, 0, sizeof(*summary));
    for (size_t i = 0; i < flows_count; i++)
        summary_add_flow(summary);
}

void summary_fini(struct summary *summary)
{
    for (size_t i = 0; i < summary->flows_count; i++) {
        struct summary_flow *flow = &summary->flows[i];

        for (size_t k = 0; k < flow->kinds_count; k++)
            free(flow->kinds[k].meter);
        free(flow->kinds);
        free(flow->total);
        free(flow->seconds);
    }
    free(summary->flows);
    free(summary->marks);
    free(summary->label);
    free(summary->command);
    memset(summary, 0, sizeof(*summary));
}

struct summary_flow *summary_add_flow(struct summary *summary)
{
    size_t count = summary->flows_count + 1;

    summary->flows = memory_grow(summary->flows, count * sizeof(*summary->flows));
    summary->flows_count = count;
    struct summary_flow *flow = &summary->flows[count - 1];

    memset(flow, 0, sizeof(*flow));
    flow->protocol = summary_protocols[0];
    flow->total = summary_meter_create();
    return flow;
}

struct summary_mark *summary_add_mark(struct summary *summary, const char *text)
{
    size_t count = summary->marks_count + 1;

    if (count > SUMMARY_MAX_MARKS)
        return NULL;
    summary->marks = memory_grow(summary->marks, count * sizeof(*summary->marks));
    summary->marks_count = count;
    struct summary_mark *mark = &summary->marks[count - 1];

    memset(mark, 0, sizeof(*mark));
    snprintf(mark->text, sizeof(mark->text), "%s", text);
    return mark;
}

struct summary_second *summary_add_second(struct summary_flow *flow)
{
    if (flow->seconds_count == flow->seconds_capacity) {
        flow->seconds_capacity = flow->seconds_capacity ? 2 * flow->seconds_capacity : 64;
        flow->seconds = memory_grow(flow->seconds, flow->seconds_capacity * sizeof(*flow->seconds));
    }
    struct summary_second *second = &flow->seconds[flow->seconds_count++];

    memset(second, 0, sizeof(*second));
    return second;
}

struct summary_kind *summary_kind(struct summary_flow *flow, const char *name)
{
    for (size_t i = 0; i < flow->kinds_count; i++) {
        if (strcmp(flow->kinds[i].name, name) == 0)
            return &flow->kinds[i];
    }
    flow->kinds = memory_grow(flow->kinds, (flow->kinds_count + 1) * sizeof(*flow->kinds));
    struct summary_kind *kind = &flow->kinds[flow->kinds_count++];

    memset(kind, 0, sizeof(*kind));
    strncpy(kind->name, name, sizeof(kind->name) - 1);
    kind->meter = summary_meter_create();
    return kind;
}

const struct summary_flow *summary_find(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->flows_count; i++) {
        if (strcmp(summary->flows[i].name, name) == 0)
            return &summary->flows[i];
    }
    return NULL;
}

const char *const summary_protocols[] = {"http", "https", "h2",    "h2c",
                                         "nfs",  "nfs4",  "nfs41", NULL};

const char *summary_protocol_of(const struct flow_spec *spec)
{
    if (spec->protocol == FLOW_NFS)
        return summary_protocols[4 + spec->nfs.version];
    if (spec->http.version == FLOW_HTTP_2)
        return summary_protocols[spec->http.tls ? 2 : 3];
    return summary_protocols[spec->http.tls ? 1 : 0];
}

void summary_machine(struct summary *summary)
{
    struct utsname names;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (uname(&names) == 0) {
        snprintf(summary->host, sizeof(summary->host), "%s", names.nodename);
        snprintf(summary->kernel, sizeof(summary->kernel), "%.60s %.60s", names.sysname,
                 names.release);
    }
    summary->cpus = cpus > 0 ? (uint64_t)cpus : 0;
}
