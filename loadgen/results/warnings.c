/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings on a run: lateness, saturation, missing replies, wrong data. */
#include "loadgen/results/warnings.h"

/* One request in a hundred. */
static bool many(uint64_t part, uint64_t all)
{
    return part * 100 > all;
}

static void flow_warnings(FILE *out, const struct summary_flow *flow)
{
    unsigned long long offered = flow->offered;
    unsigned long long comparable = flow->verified + flow->unverified;

    if (flow->open_loop && many(flow->late, flow->offered))
        fprintf(out,
                "warning: flow %s: %llu of %llu requests were made over 1 ms late (worst %.1f ms): "
                "the generator or its machine is saturated\n",
                flow->name, (unsigned long long)flow->late, offered,
                (double)flow->late_max_ns / 1e6);
    if (flow->open_loop && many(flow->delayed, flow->offered))
        fprintf(out,
                "note: flow %s: %llu of %llu requests waited for concurrency=%llu or for a "
                "connection; their latency counts from the intended time\n",
                flow->name, (unsigned long long)flow->delayed, offered,
                (unsigned long long)flow->concurrency);
    if (flow->unfinished)
        fprintf(out,
                "warning: flow %s: %llu requests had no reply when the run ended: the true "
                "latencies are worse than shown\n",
                flow->name, (unsigned long long)flow->unfinished);
    if (flow->total->outcomes[OUTCOME_CORRUPT])
        fprintf(out,
                "warning: flow %s: %llu replies held other data than was written: the service "
                "loses or mixes up data\n",
                flow->name, (unsigned long long)flow->total->outcomes[OUTCOME_CORRUPT]);
    if (flow->unverified && many(flow->unverified, comparable))
        fprintf(out,
                "note: flow %s: %llu of %llu replies could not be verified: writes to the same "
                "place were in flight\n",
                flow->name, (unsigned long long)flow->unverified, comparable);
}

void warnings_print(FILE *out, const struct summary *summary)
{
    for (size_t i = 0; i < summary->flows_count; i++)
        flow_warnings(out, &summary->flows[i]);
    double busy = summary->generator_busy > summary->generator_cpu ? summary->generator_busy
                                                                   : summary->generator_cpu;

    if (busy > WARNINGS_GENERATOR_CPU)
        fprintf(out,
                "warning: spillload kept its processor busy for %.0f %% of the time: the figures "
                "show its limit, not the service's; share the load among several (merge)\n",
                busy * 100);
}
