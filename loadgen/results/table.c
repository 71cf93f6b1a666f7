/* SPDX-License-Identifier: Apache-2.0 */
/* The final table. */
#include "loadgen/results/table.h"

#include "loadgen/base/units.h"

#define KIND_WIDTH 14

const char *table_time(double value_ms, uint64_t count, char buffer[TABLE_TIME_BYTES])
{
    return count ? units_format_ns(value_ms * 1e6, buffer, TABLE_TIME_BYTES) : "-";
}

static void latency_cells(FILE *out, const struct meter *meter)
{
    static const double quantiles[] = {0.5, 0.99, 0.999, 1};
    const struct histogram *latency = &meter->latency;
    char text[TABLE_TIME_BYTES];

    fprintf(out, " %9s", table_time(histogram_mean(latency) / 1e6, latency->total, text));
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        double value_ns = (double)histogram_quantile(latency, quantiles[i]);

        fprintf(out, " %9s", table_time(value_ns / 1e6, latency->total, text));
    }
    fprintf(out, " %8llu %8llu\n", (unsigned long long)meter->outcomes[OUTCOME_REFUSED],
            (unsigned long long)meter_errors(meter));
}

static uint64_t ended(const struct meter *meter)
{
    uint64_t sum = 0;

    for (int i = 0; i < OUTCOME_COUNT; i++)
        sum += meter->outcomes[i];
    return sum;
}

static void kind_rows(FILE *out, const struct summary_flow *flow, double measured_s)
{
    for (size_t i = 0; flow->kinds_count > 1 && i < flow->kinds_count; i++) {
        const struct summary_kind *kind = &flow->kinds[i];

        fprintf(out, "  %-*.*s %-5s %10.1f %10.1f", KIND_WIDTH, KIND_WIDTH, kind->name, "",
                (double)ended(kind->meter) / measured_s,
                (double)kind->meter->outcomes[OUTCOME_OK] / measured_s);
        latency_cells(out, kind->meter);
    }
}

/* What few flows have, in words. */
static void further(FILE *out, const struct summary_flow *flow)
{
    const char *between = "  ";

    if (flow->retried == 0 && flow->verified == 0 && flow->unverified == 0 && flow->reconnects == 0)
        return;
    if (flow->retried) {
        fprintf(out, "%s%llu retries after refusals", between, (unsigned long long)flow->retried);
        between = ", ";
    }
    if (flow->verified || flow->unverified) {
        fprintf(out, "%s%llu replies verified, %llu could not be", between,
                (unsigned long long)flow->verified, (unsigned long long)flow->unverified);
        between = ", ";
    }
    if (flow->reconnects)
        fprintf(out, "%s%llu reconnects", between, (unsigned long long)flow->reconnects);
    fputc('\n', out);
}

void table_print(FILE *out, const struct summary *summary)
{
    if (summary->label)
        fprintf(out, "%s\n", summary->label);
    fprintf(out, "%-16s %-5s %10s %10s %9s %9s %9s %9s %9s %8s %8s\n", "flow", "proto", "offered/s",
            "done/s", "mean", "p50", "p99", "p99.9", "max", "refused", "errors");
    for (size_t i = 0; i < summary->flows_count; i++) {
        const struct summary_flow *flow = &summary->flows[i];

        fprintf(out, "%-16s %-5s %10.1f %10.1f", flow->name, flow->protocol, flow->offered_per_s,
                flow->throughput_per_s);
        latency_cells(out, flow->total);
        kind_rows(out, flow, summary->measured_s);
        further(out, flow);
    }
}
