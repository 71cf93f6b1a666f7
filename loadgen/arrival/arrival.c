/* SPDX-License-Identifier: Apache-2.0 */
/* Arrival processes; time is counted in ON time and laid out in real time at the end. */
#include "loadgen/arrival/arrival.h"

#include <string.h>

void arrival_init(struct arrival *arrival, const struct arrival_spec *spec, uint64_t seed,
                  uint64_t stream)
{
    memset(arrival, 0, sizeof(*arrival));
    arrival->spec = *spec;
    rng_init(&arrival->rng, seed, stream);
}

uint64_t arrival_next_ns(struct arrival *arrival)
{
    const struct arrival_spec *spec = &arrival->spec;
    double gap_ns = 1e9 / spec->rate_per_s;

    arrival->count++;
    if (spec->gaps == ARRIVAL_POISSON)
        arrival->reached += rng_exponential(&arrival->rng, gap_ns);
    else
        arrival->reached = (double)arrival->count * gap_ns;
    uint64_t on_time_ns = (uint64_t)arrival->reached;

    if (spec->on_ns == 0)
        return on_time_ns;
    return on_time_ns / spec->on_ns * (spec->on_ns + spec->off_ns) + on_time_ns % spec->on_ns;
}
