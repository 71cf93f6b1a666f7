/* SPDX-License-Identifier: Apache-2.0 */
/* Merging summaries; the rules are in the header. */
#include "loadgen/results/summary/summary_merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

/* A rest of a second shorter than this joins the second before it. */
#define REST_S 0.1

double summary_overlap_s(const struct summary *parts, size_t count)
{
    double start = parts[0].began_unix_s;
    double end = start + parts[0].measured_s;

    for (size_t i = 1; i < count; i++) {
        start = fmax(start, parts[i].began_unix_s);
        end = fmin(end, parts[i].began_unix_s + parts[i].measured_s);
    }
    return end - start;
}

static double run_began_s(const struct summary *summary)
{
    return summary->began_unix_s - summary->warmup_s;
}

static void merge_meter(struct meter *into, const struct meter *from)
{
    for (int i = 0; i < OUTCOME_COUNT; i++)
        into->outcomes[i] += from->outcomes[i];
    into->bytes_in += from->bytes_in;
    into->bytes_out += from->bytes_out;
    histogram_merge(&into->latency, &from->latency);
    histogram_merge(&into->refusal, &from->refusal);
}

/* ---------------------------------------------------------------- seconds */

/* `length_s`: of all that this part has in this place. */
static void merge_second(struct summary_second *into, const struct summary_second *from,
                         double length_s)
{
    double done = (double)into->done + (double)from->done;

    if (from->done)
        into->mean_ms =
            (into->mean_ms * (double)into->done + from->mean_ms * (double)from->done) / done;
    into->length_s = fmax(into->length_s, length_s);
    into->offered += from->offered;
    into->done += from->done;
    into->refused += from->refused;
    into->errors += from->errors;
    into->in_flight += from->in_flight;
    into->waiting += from->waiting;
    into->bytes_in += from->bytes_in;
    into->bytes_out += from->bytes_out;
    into->p50_ms = fmax(into->p50_ms, from->p50_ms);
    into->p90_ms = fmax(into->p90_ms, from->p90_ms);
    into->p99_ms = fmax(into->p99_ms, from->p99_ms);
    into->max_ms = fmax(into->max_ms, from->max_ms);
}

/* `later_s`: whole seconds from the start of the merged run to that of this part. */
static void merge_seconds(struct summary_flow *into, const struct summary_flow *from,
                          uint64_t later_s)
{
    uint64_t last_slot = UINT64_MAX;
    double length_s = 0;

    for (size_t i = 0; i < from->seconds_count; i++) {
        double place = ceil(from->seconds[i].time_s - REST_S) - 1;
        uint64_t slot = (place > 0 ? (uint64_t)place : 0) + later_s;

        if (slot >= SUMMARY_MAX_SECONDS)
            return;
        while (into->seconds_count <= slot) {
            struct summary_second *added = summary_add_second(into);

            added->time_s = (double)into->seconds_count;
        }
        length_s = from->seconds[i].length_s + (slot == last_slot ? length_s : 0);
        last_slot = slot;
        merge_second(&into->seconds[slot], &from->seconds[i], length_s);
    }
}

/* Seconds in which no part ran are seconds in which nothing was done. */
static void fill_gaps(struct summary_flow *flow)
{
    for (size_t i = 0; i < flow->seconds_count; i++) {
        if (flow->seconds[i].length_s <= 0)
            flow->seconds[i].length_s = 1;
    }
}

/* ---------------------------------------------------------------- flows, and all of it */

static void merge_flow(struct summary_flow *into, const struct summary_flow *from)
{
    into->concurrency += from->concurrency;
    into->offered += from->offered;
    into->completed += from->completed;
    into->offered_per_s += from->offered_per_s;
    into->throughput_per_s += from->throughput_per_s;
    into->bytes_in_per_s += from->bytes_in_per_s;
    into->bytes_out_per_s += from->bytes_out_per_s;
    into->late += from->late;
    into->delayed += from->delayed;
    if (from->late_max_ns > into->late_max_ns)
        into->late_max_ns = from->late_max_ns;
    into->unfinished += from->unfinished;
    into->retried += from->retried;
    into->reconnects += from->reconnects;
    into->verified += from->verified;
    into->unverified += from->unverified;
    merge_meter(into->total, from->total);
    for (size_t i = 0; i < from->kinds_count; i++)
        merge_meter(summary_kind(into, from->kinds[i].name)->meter, from->kinds[i].meter);
}

static struct summary_flow *flow_of(struct summary *out, const struct summary_flow *like)
{
    const struct summary_flow *there = summary_find(out, like->name);

    if (there)
        return &out->flows[there - out->flows];
    struct summary_flow *flow = summary_add_flow(out);

    memcpy(flow->name, like->name, sizeof(flow->name));
    flow->protocol = like->protocol;
    flow->open_loop = like->open_loop;
    return flow;
}

/* "first + second", once each. */
static void join(char *text, size_t size, const char *more)
{
    if (strstr(text, more))
        return;
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s%s", used ? " + " : "", more);
}

static void merge_head(struct summary *out, const struct summary *parts, size_t count)
{
    double end_s = 0;

    out->label = parts[0].label ? memory_string(parts[0].label) : NULL;
    out->command = parts[0].command ? memory_string(parts[0].command) : NULL;
    out->seed = parts[0].seed;
    out->began_unix_s = parts[0].began_unix_s;
    double run_began = run_began_s(&parts[0]);

    for (size_t i = 0; i < count; i++) {
        out->began_unix_s = fmin(out->began_unix_s, parts[i].began_unix_s);
        run_began = fmin(run_began, run_began_s(&parts[i]));
        end_s = fmax(end_s, parts[i].began_unix_s + parts[i].measured_s);
        out->generator_cpu = fmax(out->generator_cpu, parts[i].generator_cpu);
        out->generator_busy = fmax(out->generator_busy, parts[i].generator_busy);
        out->cpus += parts[i].cpus;
        join(out->host, sizeof(out->host), parts[i].host);
        join(out->kernel, sizeof(out->kernel), parts[i].kernel);
    }
    out->warmup_s = out->began_unix_s - run_began;
    out->measured_s = end_s - out->began_unix_s;
}

static void merge_marks(struct summary *out, const struct summary *part, double later_s)
{
    for (size_t i = 0; i < part->marks_count; i++) {
        struct summary_mark *mark = summary_add_mark(out, part->marks[i].text);

        if (!mark)
            return;
        mark->from_s = part->marks[i].from_s + later_s;
        mark->to_s = part->marks[i].to_s + later_s;
    }
}

void summary_merge(struct summary *out, const struct summary *parts, size_t count)
{
    summary_init(out, 0);
    merge_head(out, parts, count);
    for (size_t i = 0; i < count; i++) {
        double later_s = run_began_s(&parts[i]) - run_began_s(out);

        merge_marks(out, &parts[i], later_s);
        for (size_t f = 0; f < parts[i].flows_count; f++) {
            struct summary_flow *flow = flow_of(out, &parts[i].flows[f]);

            merge_flow(flow, &parts[i].flows[f]);
            if (later_s < (double)SUMMARY_MAX_SECONDS)
                merge_seconds(flow, &parts[i].flows[f], (uint64_t)llround(later_s));
        }
    }
    for (size_t f = 0; f < out->flows_count; f++)
        fill_gaps(&out->flows[f]);
}
